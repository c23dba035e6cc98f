//! Our reader against `serde_json`: both take the same texts, save what we refuse by rule, and read the same.
use std::fmt;

use a2a_gateway::{
    a2a::{Op, Shape},
    json::{self, Error, Form, Limits, Node, Obj},
};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value, value::RawValue};

/// What we refuse of what is JSON.
const RULES: [&str; 7] = [
    "nested too deep",
    "reserved key",
    "key that is not Unicode",
    "second member of one name",
    "too many members in one object",
    "too many members and items",
    // In a list of objects, an item that is none.
    "unexpected byte",
];

pub(super) fn any(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let theirs = serde_json::from_str::<&RawValue>(text).is_ok();
    assert_eq!(json::is_json(text), theirs);
    let ours = json::check(text, Limits::CHECKED);
    if let Err(Error::Text { why, .. }) = &ours {
        assert!(*why != RULES[6] || !theirs, "only we refuse {text}");
    }
    must_agree(ours.as_ref(), theirs, text);
    if matches!(&ours, Err(Error::Text { why, .. }) if *why == RULES[0]) {
        assert!(depth(text) > 200, "not that deep: {text}");
    }
    if ours.is_ok() {
        assert!(depth(text) <= 200, "too deep: {text}");
    }
    unquoted(text);
    flat(text, theirs);
    for (shape, op) in [
        (Shape::V10, Op::Send),
        (Shape::V03Kind, Op::Send),
        (Shape::V03Proto, Op::CreatePush),
    ] {
        let opened = Obj::open(text, shape.request_form(op), Limits::CHECKED);
        opened_or_refused(opened, theirs, text);
        let opened = Node::open(text, shape.result_form(op), Limits::CHECKED);
        must_agree(opened.as_ref().map(|_| &()), theirs, text);
    }
}

fn must_agree(ours: Result<&(), &Error>, theirs: bool, text: &str) {
    match ours {
        Ok(()) => assert!(theirs, "only we take {text}"),
        Err(Error::Text { why, .. }) if RULES.contains(why) => {}
        Err(error) => assert!(!theirs, "only we refuse: {error} in {text}"),
    }
}

/// How deep brackets nest outside of strings.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut string, mut escape) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escape => escape = false,
            b'\\' if string => escape = true,
            b'"' => string = !string,
            b'{' | b'[' if !string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn unquoted(text: &str) {
    let theirs = serde_json::from_str::<String>(text).ok();
    let is_string =
        text.starts_with('"') && json::is_json(text) && !text.ends_with(char::is_whitespace);
    if is_string {
        let ours = json::unquote(text);
        assert_eq!(ours.as_deref(), theirs.as_deref());
    }
    if let Some(said) = theirs {
        let mut written = vec![];
        json::write_string(&said, &mut written);
        let again = serde_json::from_slice::<String>(&written).ok();
        assert_eq!(again, Some(said));
    }
}

/// An object of which nothing else is opened: the same members in the same order.
fn flat(text: &str, is_json: bool) {
    let ours = Obj::open(text, &Form::FLAT, Limits::CHECKED);
    let theirs = serde_json::from_str::<Members<'_>>(text);
    if let (Ok(ours), Ok(theirs)) = (&ours, &theirs) {
        let ours = ours.members().map(|(key, node)| (key, written(node)));
        let theirs = theirs.0.iter().map(|(k, v)| (&**k, v.get().to_owned()));
        assert!(ours.eq(theirs), "other members of {text}");
    }
    let twice = matches!(&ours, Err(Error::Text { why, .. }) if *why == RULES[3]);
    if let Ok(theirs) = &theirs {
        let mut keys: Vec<_> = theirs.0.iter().map(|(k, _)| k).collect();
        keys.sort_unstable();
        let said_twice = keys.windows(2).any(|pair| pair[0] == pair[1]);
        assert!(said_twice || !twice, "nothing is there twice: {text}");
        assert!(ours.is_err() || !said_twice, "taken with a double: {text}");
    }
    opened_or_refused(ours, is_json, text);
}

fn written(node: &Node<'_>) -> String {
    let mut out = vec![];
    node.write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn opened_or_refused(opened: Result<Obj<'_>, Error>, is_json: bool, text: &str) {
    let object = text
        .trim_start_matches([' ', '\n', '\r', '\t'])
        .starts_with('{');
    if object {
        must_agree(opened.as_ref().map(|_| &()), is_json, text);
    }
    let Ok(opened) = opened else { return };
    let unchanged = opened.unchanged();
    assert_eq!(unchanged.map(str::trim), Some(trimmed(text)));
    let mut out = vec![];
    opened.write(&mut out);
    // Numbers past a float and lone surrogates are no `Value`.
    if let Ok(before) = serde_json::from_str::<Value>(text) {
        let after = serde_json::from_slice::<Value>(&out).ok();
        assert_eq!(after, Some(before), "written back otherwise");
    } else {
        super::must_be_json(&out, "what is written back");
    }
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\n', '\r', '\t'])
}

/// Members as `serde_json` reads them, doubles and all.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Each)
    }
}

struct Each;

impl<'de> Visitor<'de> for Each {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = vec![];
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}
