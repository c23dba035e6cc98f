//! Lists of tasks, taken apart and put together again by who may see them.
use std::borrow::Cow;

use bytes::Bytes;

use super::{
    super::{Dialect, Fault, Op, shape::Options},
    seen::lifted,
};
use crate::json::write_string;

/// A page of an agent's tasks.
#[derive(Debug)]
pub struct TaskPage {
    /// The tasks, in their order.
    pub tasks: Vec<Listed>,
    /// The agent's token of the next page.
    pub next: Option<String>,
}

/// A task in a list.
#[derive(Debug)]
pub struct Listed {
    /// Its id.
    pub id: Box<str>,
    /// All of it, as canonical text.
    pub text: Vec<u8>,
}

/// The tasks of an agent's page. One without an id is whose it is nobody can say: then the page is none.
pub fn tasks_listed(from: Dialect, body: &Bytes, options: &Options) -> Result<TaskPage, Fault> {
    let page = lifted(from, Op::List, body, options)?;
    let mut tasks = vec![];
    for task in page.list("tasks").unwrap_or_default() {
        let id = task.string("id").filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| Fault::answer("a task without an id"))?;
        let mut text = vec![];
        task.write(&mut text);
        tasks.push(Listed {
            id: id.into(),
            text,
        });
    }
    let next = page.string("nextPageToken").map(Cow::into_owned);
    Ok(TaskPage {
        tasks,
        next: next.filter(|token| !token.is_empty()),
    })
}

/// A canonical page of tasks.
pub fn task_page(tasks: &[Vec<u8>], next: &str, size: u64, total: u64) -> Bytes {
    let long: usize = tasks.iter().map(|task| task.len() + 1).sum();
    let mut out = Vec::with_capacity(long + next.len() + 96);
    out.extend_from_slice(b"{\"tasks\":[");
    for (n, task) in tasks.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        out.extend_from_slice(task);
    }
    out.extend_from_slice(b"],\"nextPageToken\":");
    write_string(next, &mut out);
    let numbers = format!(",\"pageSize\":{size},\"totalSize\":{total}}}");
    out.extend_from_slice(numbers.as_bytes());
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_taken_out_of_a_page_as_they_are() {
        let options = Options::default();
        let first =
            r#"{"id":"t\u0031","status":{"state":"TASK_STATE_WORKING"},"metadata":{"n":1.10}}"#;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"tasks":[{first},{{"id":"t2"}}],"nextPageToken":"n","pageSize":2,"totalSize":9}}}}"#
        );
        let mut page = tasks_listed(Dialect::J10, &body.into(), &options).unwrap();
        let ids: Vec<&str> = page.tasks.iter().map(|t| &*t.id).collect();
        assert_eq!(ids, ["t1", "t2"]);
        assert_eq!(page.next.as_deref(), Some("n"));
        let texts = [page.tasks.remove(0).text];
        let text = task_page(&texts, "a\"b", 50, 3);
        let whole =
            format!(r#"{{"tasks":[{first}],"nextPageToken":"a\"b","pageSize":50,"totalSize":3}}"#);
        assert_eq!(text, whole);
    }

    #[test]
    fn a_page_may_be_bare_or_empty_but_not_without_ids() {
        let options = Options::default();
        let read = |text: &'static str| {
            tasks_listed(Dialect::R10, &Bytes::from_static(text.as_bytes()), &options)
        };
        let bare = read(r#"[{"id":"t1"}]"#).unwrap();
        assert_eq!((bare.tasks.len(), bare.next), (1, None));
        let none = read(r#"{"nextPageToken":""}"#).unwrap();
        assert_eq!((none.tasks.len(), none.next), (0, None));
        for nameless in [
            r#"{"tasks":[{}]}"#,
            r#"{"tasks":[{"id":""}]}"#,
            r#"{"tasks":[{"id":7}]}"#,
        ] {
            assert!(read(nameless).is_err(), "{nameless}");
        }
        assert_eq!(
            task_page(&[], "", 1, 0),
            r#"{"tasks":[],"nextPageToken":"","pageSize":1,"totalSize":0}"#
        );
    }
}
