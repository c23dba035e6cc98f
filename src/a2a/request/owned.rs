//! What a request says that only matters where tasks belong to somebody: all the tasks that a message names, and the
//! page of a list.
use super::written;
use crate::{
    a2a::{
        Call, Canonical,
        fault::{Fault, Kind},
        shape::{Options, Shape},
    },
    json::{self, Node, Obj},
};

/// The most tasks that a message may refer to.
const REFERENCES: usize = 32;

/// The tasks that a message names: the one it resumes, those it refers to, and the one that its webhook is for.
pub fn tasks_named(call: &Call, options: &Options) -> Result<Vec<String>, Fault> {
    let mut named: Vec<String> = call.facts.task.iter().cloned().collect();
    if !call.facts.refers && !call.facts.webhook {
        return Ok(named); // as most do
    }
    let r = opened(call, options)?;
    if let Some(list) = r.inside("message").and_then(|m| m.get("referenceTaskIds")) {
        let texts = match list {
            Node::Text("null") => vec![],
            Node::Text(text) => texts(text).ok_or_else(|| {
                Fault::params("`referenceTaskIds` is not a list of strings, or a long one")
            })?,
            Node::Made(_) | Node::Word(_) | Node::Obj(_) | Node::List(_) => {
                return Err(Fault::params("`referenceTaskIds` is not a list of strings"));
            }
        };
        named.extend(texts);
    }
    let webhook = r
        .inside("configuration")
        .and_then(|c| c.inside("taskPushNotificationConfig"));
    if let Some(task) = webhook.and_then(|w| w.get("taskId")) {
        let task = task.said().ok_or_else(|| {
            Fault::params("`taskPushNotificationConfig.taskId` is not a string of Unicode")
        })?;
        if !task.is_empty() {
            named.push(task.into_owned());
        }
    }
    named.sort_unstable();
    named.dedup();
    Ok(named)
}

/// The strings of a list that is not too long.
fn texts(list: &str) -> Option<Vec<String>> {
    let all: Vec<String> = serde_json::from_str(list).ok()?;
    (all.len() <= REFERENCES).then_some(all)
}

/// Which part of a list is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paging {
    /// From here on.
    pub token: Option<String>,
    /// At most so many.
    pub size: Option<u64>,
}

/// Which part of a list a call asks for.
pub fn paging(call: &Call, options: &Options) -> Result<Paging, Fault> {
    let r = opened(call, options)?;
    let token = match r.get("pageToken") {
        None => None,
        Some(node) => {
            let said = node.said();
            Some(
                said.ok_or_else(|| Fault::params("`pageToken` is not a string of Unicode"))?
                    .into_owned(),
            )
        }
    };
    let size = match r.get("pageSize") {
        Some(Node::Text(number)) => number.parse().ok(),
        Some(Node::Made(number)) => number.parse().ok(),
        None | Some(Node::Word(_) | Node::Obj(_) | Node::List(_)) => None,
    };
    Ok(Paging {
        token: token.filter(|t| !t.is_empty()),
        size,
    })
}

/// The same list, another part of it. A size that is not given stays as it was said.
pub fn list_page(
    call: &Call,
    token: Option<&str>,
    size: Option<u64>,
    options: &Options,
) -> Result<Canonical, Fault> {
    let mut r = opened(call, options)?;
    match token {
        Some(token) => r.put("pageToken", Node::string(token)),
        None => drop(r.take("pageToken")),
    }
    if let Some(size) = size {
        r.put("pageSize", Node::Made(size.to_string()));
    }
    Ok(Canonical(written(&r, call.params.text().len()).into()))
}

fn opened<'c>(call: &'c Call, options: &Options) -> Result<Obj<'c>, Fault> {
    let inner =
        |e: String| Fault::new(Kind::Internal, "the request cannot be read again").because(e);
    let text = std::str::from_utf8(call.params.text()).map_err(|e| inner(e.to_string()))?;
    let form = Shape::V10.request_form(call.op);
    Obj::open(text, form, options.limits).map_err(|e: json::Error| inner(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::a2a::{Facts, Op};

    fn call(op: Op, params: &str) -> Call {
        Call {
            op,
            facts: Facts::default(),
            params: Canonical(params.to_owned().into()),
        }
    }

    fn read(params: &str) -> Call {
        let mut call = call(Op::Send, params);
        let form = Shape::V10.request_form(call.op);
        let opened = Obj::open(params, form, Options::default().limits).unwrap();
        call.facts = Facts::read(call.op, &opened).unwrap();
        call
    }

    fn named(params: &str) -> Result<Vec<String>, Fault> {
        tasks_named(&read(params), &Options::default())
    }

    #[test]
    fn a_message_names_tasks_in_three_places() {
        let all = r#"{"message":{"taskId":"t1","reference\u0054askIds":["r1","r\u0032","t1"]},
            "configuration":{"taskPushNotificationConfig":{"url":"http://x","taskId":"p1"}}}"#;
        assert_eq!(named(all).unwrap(), ["p1", "r1", "r2", "t1"]);
        for (one, of) in [
            (r#"{"message":{"taskId":"t1"}}"#, ["t1"]),
            (r#"{"message":{"referenceTaskIds":["r1"]}}"#, ["r1"]),
            (
                r#"{"message":{},"configuration":{"taskPushNotificationConfig":{"taskId":"p1"}}}"#,
                ["p1"],
            ),
        ] {
            assert_eq!(named(one).unwrap(), of, "{one}");
        }
    }

    #[test]
    fn a_message_may_name_none_but_not_what_nobody_can_check() {
        for none in [
            r#"{"message":{}}"#,
            r#"{"message":{"referenceTaskIds":null},"configuration":{}}"#,
            r#"{"message":{"referenceTaskIds":[]},"configuration":{"taskPushNotificationConfig":{"taskId":""}}}"#,
        ] {
            assert_eq!(named(none).unwrap(), [""; 0], "{none}");
        }
        let many = format!(
            r#"{{"message":{{"referenceTaskIds":[{}"x"]}}}}"#,
            r#""x","#.repeat(32)
        );
        for bad in [
            r#"{"message":{"referenceTaskIds":"t1"}}"#,
            r#"{"message":{"referenceTaskIds":[1]}}"#,
            r#"{"message":{"referenceTaskIds":{"0":"t1"}}}"#,
            r#"{"message":{},"configuration":{"taskPushNotificationConfig":{"taskId":7}}}"#,
            &many,
        ] {
            assert_eq!(named(bad).unwrap_err().kind, Kind::InvalidParams, "{bad}");
        }
    }

    #[test]
    fn a_list_is_asked_for_from_another_page_on() {
        let call = call(
            Op::List,
            r#"{"contextId":"c1","pageSize":7,"pageToken":"a\u0062"}"#,
        );
        let options = Options::default();
        let paging = paging(&call, &options).unwrap();
        assert_eq!(paging.token.as_deref(), Some("ab"));
        assert_eq!(paging.size, Some(7));
        let page = |token, size| {
            let page = list_page(&call, token, size, &options).unwrap();
            String::from_utf8(page.text().to_vec()).unwrap()
        };
        assert_eq!(
            page(Some("n"), Some(50)),
            r#"{"contextId":"c1","pageSize":50,"pageToken":"n"}"#
        );
        assert_eq!(page(None, None), r#"{"contextId":"c1","pageSize":7}"#);
    }
}
