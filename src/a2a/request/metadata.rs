//! Edits of the `metadata` that comes with a message. Only the objects on the way to a member are opened: what is
//! beside it stays the text it was.
use std::borrow::Cow;

use crate::{
    a2a::fault::Fault,
    json::{Node, Obj},
};

/// What becomes of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit<'e> {
    /// Its name, below those of the objects around it.
    pub path: &'e [String],
    /// What becomes of it.
    pub what: What<'e>,
}

/// What becomes of a member. Values are JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What<'e> {
    /// It has this value, whatever it had.
    Set(Cow<'e, str>),
    /// It has this value where it had none; `null` is none.
    Default(Cow<'e, str>),
    /// It is not there.
    Remove,
    /// It is there; a message without it is refused.
    Require,
}

/// How the member is called that all edits are below.
const METADATA: &str = "metadata";

/// Edits the metadata of a message's canonical request. A caller who says a member twice is refused where it is opened.
pub(super) fn edit(request: &mut Obj<'_>, edits: &[Edit<'_>]) -> Result<(), Fault> {
    edits.iter().try_for_each(|edit| apply(request, edit))
}

fn apply(r: &mut Obj<'_>, edit: &Edit<'_>) -> Result<(), Fault> {
    let Some((last, around)) = edit.path.split_last() else {
        return Ok(());
    };
    let remove = edit.what == What::Remove;
    let required = || Fault::params(format!("{} is required", place(edit.path))).early();
    let mut at = r;
    for (depth, key) in std::iter::once(METADATA)
        .chain(around.iter().map(String::as_str))
        .enumerate()
    {
        if is_nothing(at, key) {
            if remove {
                return Ok(());
            }
            if edit.what == What::Require {
                return Err(required());
            }
            at.set(key, Node::Obj(Obj::default()));
        }
        let object = at.enter(key).map_err(|e| {
            let at = place(&edit.path[..depth]);
            Fault::params(format!("{at} cannot be read: {e}"))
        })?;
        at = match object {
            Some(object) => object,
            None if remove => return Ok(()),
            None => {
                let at = place(&edit.path[..depth]);
                return Err(Fault::params(format!("{at} is not an object")));
            }
        };
    }
    match &edit.what {
        What::Set(value) => at.set(last, Node::Made(value.clone().into_owned())),
        What::Default(value) if is_nothing(at, last) => {
            at.set(last, Node::Made(value.clone().into_owned()));
        }
        What::Remove => drop(at.take(last)),
        What::Require if is_nothing(at, last) => return Err(required()),
        What::Default(_) | What::Require => {}
    }
    Ok(())
}

fn is_nothing(o: &Obj<'_>, key: &str) -> bool {
    matches!(o.get(key), None | Some(Node::Text("null")))
}

/// A member of the metadata, for a person.
fn place(path: &[String]) -> String {
    let mut text = format!("`{METADATA}");
    for key in path {
        text.push('.');
        text.push_str(key);
    }
    text.push('`');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        a2a::{
            Op,
            shape::{Options, Shape},
        },
        json::Obj,
    };

    fn edited(params: &str, edits: &[(&str, What<'_>)]) -> Result<String, String> {
        let form = Shape::V10.request_form(Op::Send);
        let mut request = Obj::open(params, form, Options::default().limits).unwrap();
        let paths: Vec<Vec<String>> = edits
            .iter()
            .map(|(path, _)| path.split('.').map(str::to_owned).collect())
            .collect();
        let edits: Vec<_> = edits
            .iter()
            .zip(&paths)
            .map(|((_, what), path)| Edit {
                path,
                what: what.clone(),
            })
            .collect();
        edit(&mut request, &edits).map_err(|fault| fault.message.into_owned())?;
        if let Some(text) = request.unchanged() {
            return Ok(text.to_owned());
        }
        let mut out = vec![];
        request.write(&mut out);
        Ok(String::from_utf8(out).unwrap())
    }

    fn set(text: &str) -> What<'_> {
        What::Set(Cow::Borrowed(text))
    }

    fn default(text: &str) -> What<'_> {
        What::Default(Cow::Borrowed(text))
    }

    #[test]
    fn what_is_beside_the_member_stays_as_it_was() {
        let odd = r#""n" : 1.10e+2 , "big":123456789012345678901234567890,"x\u0041":{"n":-0.0 }"#;
        let params =
            format!(r#"{{"message":{{}},"metadata":{{"ml":{{"actorId":"me",{odd}}},{odd}}}}}"#);
        let out = edited(&params, &[("ml.actorId", set(r#""actor-1""#))]).unwrap();
        for part in [
            "1.10e+2",
            "123456789012345678901234567890",
            r#"{"n":-0.0 }"#,
        ] {
            assert_eq!(out.matches(part).count(), 2, "{out}");
        }
        assert_eq!(out.matches(r#""actorId":"actor-1""#).count(), 1, "{out}");
        assert!(!out.contains("\"me\""), "{out}");
    }

    #[test]
    fn what_has_nothing_to_change_passes_byte_by_byte() {
        let params = r#"{ "message" : {}, "metadata":{"ml": {"a":1.0} } }"#;
        let edits = [
            ("ml.a", default("2")),
            ("ml.b", What::Remove),
            ("x.y.z", What::Remove),
            ("ml.a.b", What::Remove),
        ];
        assert_eq!(edited(params, &edits).unwrap(), params);
        let bare = r#"{"message":{} }"#;
        assert_eq!(edited(bare, &[("x.y", What::Remove)]).unwrap(), bare);
    }

    #[test]
    fn objects_on_the_way_are_made() {
        for params in [
            r#"{"message":{}}"#,
            r#"{"message":{},"metadata":null}"#,
            r#"{"message":{},"metadata":{"ml":null}}"#,
            r#"{"message":{},"metadata":{"ml":{"a":null}}}"#,
        ] {
            for what in [set("true"), default("true")] {
                let out = edited(params, &[("ml.a", what)]).unwrap();
                assert_eq!(out, r#"{"message":{},"metadata":{"ml":{"a":true}}}"#);
            }
        }
        let both = edited(
            r#"{"message":{}}"#,
            &[("a", set("1")), ("b.c", default("2"))],
        );
        let whole = r#"{"message":{},"metadata":{"a":1,"b":{"c":2}}}"#;
        assert_eq!(both.unwrap(), whole);
    }

    #[test]
    fn a_default_gives_way_and_a_removed_one_is_gone() {
        let params = r#"{"message":{},"metadata":{"a":{"b":false,"c":""}}}"#;
        let edits = [("a.b", default("1")), ("a.c", What::Remove)];
        let out = edited(params, &edits).unwrap();
        assert_eq!(out, r#"{"message":{},"metadata":{"a":{"b":false}}}"#);
    }

    #[test]
    fn a_name_that_needs_escapes_is_written_with_them() {
        let out = edited(r#"{"message":{}}"#, &[("a\"b\\", set("1"))]).unwrap();
        assert_eq!(out, r#"{"message":{},"metadata":{"a\"b\\":1}}"#);
        // Another spelling of a name is that name.
        let spelled = r#"{"message":{},"metadata":{"\u0061":"mine"}}"#;
        let out = edited(spelled, &[("a", set("1"))]).unwrap();
        assert!(!out.contains("mine"), "{out}");
    }

    #[test]
    fn what_stands_in_the_way_is_refused() {
        let refused = |params: &str, what| edited(params, &[("ml.a", what)]).unwrap_err();
        let in_the_way = r#"{"message":{},"metadata":{"ml":5}}"#;
        for what in [set("1"), default("1")] {
            assert_eq!(refused(in_the_way, what), "`metadata.ml` is not an object");
        }
        let said = refused(r#"{"message":{},"metadata":[]}"#, set("1"));
        assert_eq!(said, "`metadata` is not an object");
        // Which of two counts is not ours to guess.
        for twice in [
            r#"{"message":{},"metadata":{"ml":{"a":1},"ml":{"a":2}}}"#,
            r#"{"message":{},"metadata":{"ml":{"a":1,"\u0061":2}}}"#,
        ] {
            let said = refused(twice, set("1"));
            assert!(said.contains("second member of one name"), "{said}");
        }
    }
}
