//! Whether what cannot be is refused in the words of each version and binding.
use serde_json::Value;

use super::{
    answer,
    link::{self, Link, Whole},
    report::{Draft, Wrong},
    way::{self, Asked, Way},
};
use crate::a2a::{Binding, Kind, Op, Version, answer::read_fault};

/// What is asked that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    UnknownTask,
    UnknownMethod,
}

pub(super) const CASES: [Case; 2] = [Case::UnknownTask, Case::UnknownMethod];

impl Case {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::UnknownTask => "unknown task",
            Self::UnknownMethod => "unknown method",
        }
    }

    const fn code(self) -> i64 {
        match self {
            Self::UnknownTask => -32001,
            Self::UnknownMethod => -32601,
        }
    }

    const fn right(self, way: Way) -> &'static str {
        match (self, way.binding, way.version) {
            (Self::UnknownTask, Binding::Rpc, _) => {
                "TaskNotFoundError: 200, error.code -32001 (v1.0 5.4, 9.5; v0.3 8.2)"
            }
            (Self::UnknownTask, Binding::Rest, Version::V10) => {
                "TaskNotFoundError: 404, error.code 404, an ErrorInfo with reason TASK_NOT_FOUND in error.details (v1.0 5.4, 11.6)"
            }
            (Self::UnknownTask, Binding::Rest, Version::V03) => {
                "TaskNotFoundError: 404 with a JSON body (v0.3 3.2.3, 8.2)"
            }
            (Self::UnknownMethod, Binding::Rpc, _) => {
                "200, error.code -32601 (JSON-RPC 2.0 5.1; v1.0 9.5, v0.3 8.1)"
            }
            (Self::UnknownMethod, Binding::Rest, _) => {
                "404, 405 or 501 for a path that is none (RFC 9110 15.5.5; v1.0 5.3, v0.3 3.5.6)"
            }
        }
    }
}

/// Asks, and looks.
pub(super) async fn judge(
    mut draft: Draft,
    link: &Link,
    way: Way,
    base: &str,
    case: Case,
) -> Draft {
    let right = case.right(way);
    let asked = match case {
        Case::UnknownTask => way::unknown_task(way, base),
        Case::UnknownMethod => way::unknown_method(way, base),
    };
    let asked = match asked {
        Ok(asked) => asked,
        Err(why) => return draft.wrong(Wrong::new(why, right)),
    };
    draft.sent = asked.shown();
    match link.ask(&asked).await {
        Err(trouble) => {
            let says = trouble.says();
            draft.came.clone_from(&says);
            draft.wrong(Wrong::new(says, right))
        }
        Ok(whole) => {
            draft.came = link::shown(&whole.head);
            let told = match way.binding {
                Binding::Rpc => rpc(&asked, &whole, case, right),
                Binding::Rest => rest(way, &asked, &whole, case, right),
            };
            let result = told.map(|says| draft.came.push_str(&says));
            draft.judged(result)
        }
    }
}

fn rpc(asked: &Asked, whole: &Whole, case: Case, right: &'static str) -> Result<String, Wrong> {
    if whole.head.status != 200 {
        let what = format!("the status is {}", whole.head.status.as_u16());
        return Err(Wrong::new(what, right));
    }
    answer::kind(asked, &whole.head)?;
    let envelope = answer::envelope(asked, &whole.body)?;
    match envelope["error"]["code"].as_i64() {
        Some(code) if code == case.code() => Ok(format!(", {code}")),
        Some(code) => Err(Wrong::new(format!("error.code is {code}"), right)),
        None => Err(Wrong::new("there is no error.code", right)),
    }
}

fn rest(
    way: Way,
    asked: &Asked,
    whole: &Whole,
    case: Case,
    right: &'static str,
) -> Result<String, Wrong> {
    let status = whole.head.status.as_u16();
    let wrong = |what: String| Err(Wrong::new(what, right));
    match case {
        Case::UnknownMethod if [404, 405, 501].contains(&status) => return Ok(String::new()),
        Case::UnknownTask if status == 404 => {}
        Case::UnknownMethod | Case::UnknownTask => {
            return wrong(format!("the status is {status}"));
        }
    }
    answer::kind(asked, &whole.head)?;
    let text = String::from_utf8_lossy(&whole.body);
    let body: Value = match serde_json::from_str(&text) {
        Ok(body @ Value::Object(_)) => body,
        Ok(_) | Err(_) => return wrong("the body is no JSON object".to_owned()),
    };
    let kind = read_fault(status, &text, Op::Get).kind;
    if kind != Kind::TaskNotFound {
        return wrong(format!("it says {}", kind.wire().reason));
    }
    if way.version == Version::V03 {
        return Ok(String::new()); // v0.3 does not say how
    }
    if body["error"]["code"].as_u64() != Some(u64::from(status)) {
        return wrong("error.code is not the status".to_owned());
    }
    let details = body["error"]["details"].as_array();
    let says = details.is_some_and(|all| all.iter().any(|d| d["reason"] == "TASK_NOT_FOUND"));
    if !says {
        return wrong("error.details have no reason TASK_NOT_FOUND".to_owned());
    }
    Ok(", TASK_NOT_FOUND".to_owned())
}
