use super::*;
use proptest::prelude::*;
use serde_json::Value;

static FORM: Form = Form::of(&[
    ("one", As::One(&FORM)),
    ("each", As::Each(&FORM)),
    ("text", As::Text),
]);

static KEPT: Form = Form::of(&[
    ("role", As::Text),
    ("one", As::Text),
    ("each", As::Text),
    ("text", As::Text),
]);

fn open(text: &str) -> Result<Obj<'_>> {
    Obj::open(text, &FORM, Limits::default())
}
fn ok(text: &str) -> Result {
    check(text, Limits::default())
}
fn written(obj: &Obj<'_>) -> String {
    let mut out = vec![];
    obj.write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn what_is_not_edited_is_written_as_it_came() {
    let text = r#"{"one":{"each":[{},{"n":-1.10e+2}]},"text":"é\u00e9\ud800","x":{ "a" : [ 1 , {} ] },"each":[]}"#;
    assert_eq!(written(&open(text).unwrap()), text);
    let spaced = " { \"one\" : { \"a\" : [ ] } , \"each\" : [ { } ] }\r\n\t";
    let kept = r#"{"one":{"a":[ ]},"each":[{}]}"#;
    assert_eq!(written(&open(spaced).unwrap()), kept);
}

#[test]
fn edits() {
    let mut o = open(r#"{"kind":"x","role":"user","one":{"a":1},"each":[{"b":2},{}]}"#).unwrap();
    o.take("kind");
    o.word("role", |w| (w == "user").then_some("ROLE_USER"));
    o.within("one", |i| i.rename("a", "c")).unwrap();
    o.each("each", |i| {
        i.put("ok", Node::flag(true));
        Ok(())
    })
    .unwrap();
    o.merge(open(r#"{"text":"\"","gone":1}"#).unwrap()).unwrap();
    let mut lost = vec![];
    o.keep(&KEPT, |k| {
        lost.push(k.to_owned());
    });
    assert_eq!(lost, ["gone"]);
    assert_eq!(o.string("text").unwrap(), "\"");
    assert_eq!(o.string("role").unwrap(), "ROLE_USER");
    o.put("text", Node::Word(Cow::Owned("a\nb".into())));
    o.wrap("all");
    assert_eq!(
        o.inside("all").and_then(|o| o.inside("one")?.raw("c")),
        Some("1")
    );
    assert_eq!(
        written(&o),
        r#"{"all":{"role":"ROLE_USER","one":{"c":1},"each":[{"b":2,"ok":true},{"ok":true}],"text":"a\nb"}}"#
    );
}

#[test]
fn a_closed_member_opens_when_asked() {
    let mut o = Obj::open(
        r#"{"a":{"b":[{"c":1}]},"n":null,"s":""}"#,
        &Form::FLAT,
        Limits::default(),
    )
    .unwrap();
    o.within("a", |a| a.each("b", |b| b.rename("c", "d")))
        .unwrap();
    o.within("n", |_| unreachable!()).unwrap();
    o.each("n", |_| unreachable!()).unwrap();
    assert!(o.take_obj("n").unwrap().is_none());
    assert!(o.within("s", |_| Ok(())).is_err());
    assert!(o.each("s", |_| Ok(())).is_err());
    assert!(o.take_obj("s").is_err());
    assert_eq!(written(&o), r#"{"a":{"b":[{"d":1}]}}"#);
}

#[test]
fn no_object_gets_two_members_of_one_name() {
    for text in [
        r#"{"a":1,"a":1}"#,
        r#"{"contextId":1,"c\u006fntextId":2}"#,
        r#"{"one":{"a":1,"b":2,"a":1}}"#,
        r#"{"each":[{"":1,"":1}]}"#,
    ] {
        assert!(open(text).is_err(), "{text}");
    }
    let mut o = open(r#"{"a":1,"b":2}"#).unwrap();
    assert_eq!(o.rename("a", "b"), Err(Error::Twice("b".into())));
    assert_eq!(
        o.merge(open(r#"{"b":3}"#).unwrap()),
        Err(Error::Twice("b".into()))
    );
    o.rename("a", "a").unwrap();
    o.put("b", Node::flag(false));
    assert_eq!(written(&o), r#"{"a":1,"b":false}"#);
}

#[test]
fn an_opened_object_has_a_limit_of_members_and_a_closed_one_has_none() {
    let many = |n: usize, last: &str| {
        let members: Vec<String> = (1..n).map(|i| format!("\"{i}\":0,")).collect();
        let members = members.concat();
        format!("{{{members}\"{last}\":0}}")
    };
    assert!(open(&many(1024, "x")).is_ok());
    assert!(open(&many(1024, "700")).is_err());
    assert!(open(&many(1025, "x")).is_err());
    assert!(open(&format!("{{\"free\":{}}}", many(80_000, "x"))).is_ok());
    let items = |n: usize| format!("{{\"each\":[{}{{}}]}}", "{},".repeat(n));
    assert!(open(&items(150_000)).is_ok());
    assert!(open(&items(250_000)).is_err());
}

/// Names are told apart by a tag first: these have one in common, or only a mark, or are long.
#[test]
fn names_of_one_tag_are_two_names() {
    static TWINS: Form = Form::of(&[("a1c2e", As::Text), ("a3c4e", As::One(&FORM))]);
    let mut o = Obj::open(
        r#"{"a1c2e":1,"a3c4e":{"x":2},"a5c6e":3,"":4,"x":5}"#,
        &TWINS,
        Limits::default(),
    )
    .unwrap();
    assert_eq!((o.raw("a1c2e"), o.raw("a5c6e")), (Some("1"), Some("3")));
    assert_eq!(o.inside("a3c4e").and_then(|o| o.raw("x")), Some("2"));
    assert_eq!((o.raw(""), o.raw("x")), (Some("4"), Some("5")));
    assert!(!o.has("a7c8e"));
    o.put("a5c6e", Node::flag(true));
    o.rename("x", "a7c8e").unwrap();
    let mut lost = vec![];
    o.keep(&TWINS, |k| lost.push(k.to_owned()));
    assert_eq!(lost, ["a5c6e", "", "a7c8e"]);
    assert_eq!(written(&o), r#"{"a1c2e":1,"a3c4e":{"x":2}}"#);
    let (long, longer) = ("n".repeat(3), "n".repeat(259));
    let text = format!(r#"{{"{longer}":1,"{long}":2}}"#);
    let o = open(&text).unwrap();
    assert_eq!((o.raw(&long), o.raw(&longer)), (Some("2"), Some("1")));
}

#[test]
fn names_in_snake_case_get_the_proper_one() {
    static NAMES: Form = Form::of(&[("contextId", As::Text), ("url", As::Text)]);
    let mut o = Obj::open(
        r#"{"context_id":1,"url":2,"other_id":3}"#,
        &NAMES,
        Limits::default(),
    )
    .unwrap();
    o.camel(&NAMES).unwrap();
    assert_eq!(written(&o), r#"{"contextId":1,"url":2,"other_id":3}"#);
    assert!(o.changed());
    let mut both = open(r#"{"context_id":1,"contextId":2}"#).unwrap();
    assert_eq!(both.camel(&NAMES), Err(Error::Twice("contextId".into())));
}

#[test]
fn what_was_not_edited_is_not_changed() {
    let text = r#"{"one":{"each":[{"x":null}]},"text":"a"}"#;
    let mut o = open(text).unwrap();
    o.word("text", |_| Some("a"));
    o.no_nulls("");
    assert!(!o.changed());
    o.within("one", |o| {
        o.each("each", |e| {
            e.no_nulls("");
            Ok(())
        })
    })
    .unwrap();
    assert!(o.changed());
}

#[test]
fn depth_is_counted_over_open_and_closed_levels() {
    let nest = |n: usize| {
        let (a, z) = (r#"{"one":"#.repeat(3), "}".repeat(3));
        format!("{a}{}{}{z}", r#"{"x":["#.repeat(n), "]}".repeat(n))
    };
    assert!(open(&nest(98)).is_ok()); // 3 + 2 * 98 = 199
    assert!(open(&nest(99)).is_err());
    assert!(check(&"[".repeat(100_000), Limits::default()).is_err());
}

#[test]
fn the_reserved_key_is_refused_however_it_is_spelt() {
    for text in [
        r#"{"$serde_json::private::RawValue":"1"}"#,
        r#"{"x":[{"\u0024serde_json::private::RawValue":"1"}]}"#,
    ] {
        assert!(open(text).is_err(), "{text}");
    }
    assert!(open(r#"{"x":"$serde_json::private::RawValue"}"#).is_ok());
}

/// Wherever a string ends and whatever ends it, the wide reads find the same place as a slow one.
#[test]
fn strings_of_every_length() {
    for len in 0..130 {
        let run = "é".repeat(len / 2) + &"x".repeat(len % 2);
        assert_eq!(ok(&format!("\"{run}\"")), Ok(()), "{len}");
        assert_eq!(
            ok(&format!("[\"{run}\\n{run}\",\"\\u00aF\"]")),
            Ok(()),
            "{len}"
        );
        for end in ["", "\\", "\\x\"", "\\u00g0\"", "\u{1f}\"", "\n\""] {
            assert!(ok(&format!("\"{run}{end}")).is_err(), "{len} {end:?}");
        }
    }
}

proptest! {
    /// Bytes that look like JSON: we take what `serde_json` takes, except for repeated keys.
    #[test]
    fn as_strict_as_serde_json(text in r#"[\[\]{},:"\\ua0-9.eE+\- \ntrflsn]{0,12}"#) {
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
        prop_assert_eq!(ok(&text).is_ok(), theirs);
    }

    #[test]
    fn any_object_comes_back(keys in proptest::collection::btree_map(".{0,6}", ".{0,40}", 0..6), deep in any::<bool>()) {
        let value = serde_json::to_value(keys).unwrap();
        let value = if deep { serde_json::json!({"one": value, "each": [value]}) } else { value };
        let text = value.to_string();
        let back: Value = serde_json::from_str(&written(&open(&text).unwrap())).unwrap();
        prop_assert_eq!(back, value);
    }
}
