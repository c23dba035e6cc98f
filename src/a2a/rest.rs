//! The REST binding: which path is which operation, what path and query say, and the error body.
use std::borrow::Cow;

use http::Method;
use percent_encoding::{
    AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_decode_str, utf8_percent_encode,
};

use super::{
    fault::{Fault, Kind},
    op::{Names, OPS, Op, Row},
    shape::Version,
};
use crate::json::{Node, Obj};

/// What may stand in a path segment as it is (RFC 3986 unreserved).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A value as one path segment, or in a query.
pub fn segment(value: &str) -> PercentEncode<'_> {
    utf8_percent_encode(value, SEGMENT)
}

/// What a REST path names.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// The operation.
    pub op: Op,
    /// By which version's path.
    pub version: Version,
    /// The tenant before the path, v1.0 only.
    pub tenant: Option<String>,
    /// The task.
    pub id: Option<String>,
    /// The push config.
    pub config: Option<String>,
}

/// Finds the operation of a path below the interface URL, which begins with `/`.
pub fn find(method: &Method, path: &str) -> Result<Found, Fault> {
    let mut other_verb = false;
    for row in &OPS {
        for (version, names) in [(Version::V03, &row.v03), (Version::V10, &row.v10)] {
            let Some(found) = fits(row, version, names, path)? else {
                continue;
            };
            if !names.rest.verbs.contains(method) {
                other_verb = true;
                continue;
            }
            if found.tenant.as_deref() == Some("v1") {
                continue; // `/v1/` always means v0.3 (decision 4)
            }
            return Ok(found);
        }
    }
    if other_verb {
        return Err(Fault::new(
            Kind::WrongVerb,
            "this path does not take this method",
        ));
    }
    Err(Fault::new(Kind::NoRoute, "there is nothing at this path"))
}

/// Whether a path is one that the row's template describes. Splitting comes before decoding, so that nothing
/// encoded can act as a separator.
fn fits(
    row: &'static Row,
    version: Version,
    names: &Names,
    path: &str,
) -> Result<Option<Found>, Fault> {
    let mut found = Found {
        op: row.op,
        version,
        tenant: None,
        id: None,
        config: None,
    };
    let path = path.strip_prefix('/').unwrap_or(path);
    let template = &names.rest.path[1..];
    let (mut path, count) = (path, template.matches('/').count());
    if version == Version::V10 && path.matches('/').count() == count + 1 {
        let Some((tenant, rest)) = path.split_once('/') else {
            return Ok(None);
        };
        if tenant.is_empty() {
            return Ok(None);
        }
        found.tenant = Some(decode(tenant)?);
        path = rest;
    }
    if path.matches('/').count() != count {
        return Ok(None);
    }
    for (wanted, given) in template.split('/').zip(path.split('/')) {
        if let Some(rest) = wanted.strip_prefix("{id}") {
            let Some(id) = given.strip_suffix(rest).filter(|id| !id.is_empty()) else {
                return Ok(None);
            };
            // Without an action of its own the template must not swallow one.
            if rest.is_empty() && count == usize::from(version == Version::V03) + 1 && action(id) {
                return Ok(None);
            }
            found.id = Some(decode(id)?);
        } else if wanted == "{config}" {
            if given.is_empty() {
                return Ok(None);
            }
            found.config = Some(decode(given)?);
        } else if wanted != given {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

fn action(id: &str) -> bool {
    id.ends_with(":cancel") || id.ends_with(":subscribe")
}

fn decode(segment: &str) -> Result<String, Fault> {
    let text = percent_decode_str(segment).decode_utf8();
    match text {
        Ok(text) if !text.contains(['/', '\0']) => Ok(text.into_owned()),
        _ => Err(Fault::params("a path segment is not plain text")),
    }
}

/// Puts what the path says into the request; a body that says otherwise is refused.
/// `version` is that of the body, since R03S puts v0.3 on v1.0's paths.
pub fn put_path(r: &mut Obj<'_>, found: &Found, version: Version) -> Result<(), Fault> {
    let (task, config) = match (found.op, version) {
        (Op::CreatePush, _) => ("taskId", "id"),
        (op, Version::V10) if op.is_push() => ("taskId", "id"),
        (op, Version::V03) if op.is_push() => ("id", "pushNotificationConfigId"),
        _ => ("id", "id"),
    };
    if task == "taskId" {
        r.rename("task_id", task)
            .map_err(|e| Fault::params(e.to_string()))?;
    }
    for (key, value) in [
        ("tenant", &found.tenant),
        (task, &found.id),
        (config, &found.config),
    ] {
        let Some(value) = value else { continue };
        if let Some(said) = r.string(key)
            && !said.is_empty()
            && said != *value
        {
            return Err(Fault::params(format!(
                "`{key}` in the body is not that of the path"
            )));
        }
        r.put_first(key, Node::string(value.as_str()));
    }
    Ok(())
}

/// Puts the query into the request, numbers and booleans as such. `A2A-Version` is for `headers` to read.
pub fn put_query(r: &mut Obj<'_>, query: &str) -> Result<(), Fault> {
    for (key, value) in pairs(query) {
        if key.eq_ignore_ascii_case("A2A-Version") {
            continue;
        }
        if key == "tenant" && !value.is_empty() {
            return Err(Fault::params("the tenant is a path segment")); // operations 3
        }
        let node = match &*key {
            "includeArtifacts" | "include_artifacts" => match &*value {
                "true" => Node::flag(true),
                "false" => Node::flag(false),
                _ => return Err(Fault::params("`includeArtifacts` is not true or false")),
            },
            _ => Node::string(&*value),
        };
        r.add(Cow::Owned(key.into_owned()), node)
            .map_err(|e| Fault::params(e.to_string()))?;
    }
    Ok(())
}

/// The parameters of a query, decoded.
pub fn pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    query.split('&').filter(|p| !p.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (plain(key), plain(value))
    })
}

fn plain(text: &str) -> Cow<'_, str> {
    if text.contains('+') {
        let spaced = text.replace('+', " ");
        return Cow::Owned(percent_decode_str(&spaced).decode_utf8_lossy().into_owned());
    }
    percent_decode_str(text).decode_utf8_lossy()
}

/// Where a request goes: the path below the interface URL, with its query.
#[derive(Debug)]
pub struct Place<'r> {
    /// The operation.
    pub op: Op,
    /// The version of the path.
    pub version: Version,
    /// Task and config, decoded.
    pub id: Option<Cow<'r, str>>,
    /// The config.
    pub config: Option<Cow<'r, str>>,
    /// The tenant, v1.0 only.
    pub tenant: Option<Cow<'r, str>>,
    /// What is done to a task is a segment of its own: `/tasks/{id}/cancel`.
    pub slash: bool,
}

impl Place<'_> {
    /// The path. An id that would be a step up in the path, or more than one step, is
    /// refused: some servers decode `%2E%2E` and `%2F` before they route.
    pub fn path(&self) -> Result<String, Fault> {
        let row = self.op.row();
        let names = match self.version {
            Version::V03 => &row.v03,
            Version::V10 => &row.v10,
        };
        let mut path = String::with_capacity(96);
        if let Some(tenant) = self.tenant.as_deref().filter(|t| !t.is_empty()) {
            path.push('/');
            push(&mut path, tenant)?;
        }
        let mut rest = names.rest.path;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            path.push_str(before);
            let value = if name == "id" { &self.id } else { &self.config };
            let Some(value) = value.as_deref().filter(|v| !v.is_empty()) else {
                return Err(Fault::params("an id is missing"));
            };
            push(&mut path, value)?;
            rest = after;
        }
        match rest.strip_prefix(':') {
            Some(done) if self.slash => {
                path.push('/');
                path.push_str(done);
            }
            _ => path.push_str(rest),
        }
        Ok(path)
    }
}

fn push(path: &mut String, value: &str) -> Result<(), Fault> {
    if matches!(value, "." | "..") || value.contains('/') {
        return Err(Fault::params(
            "an id in a path cannot be `.` or `..`, and has no `/` in it",
        ));
    }
    path.extend(segment(value));
    Ok(())
}

/// Appends the members of a request as a query.
pub fn write_query(path: &mut String, r: &Obj<'_>) {
    let mut before = '?';
    for (key, node) in r.members() {
        let mut text = vec![];
        node.write(&mut text);
        let text = String::from_utf8(text).unwrap_or_default();
        let value = crate::json::unquote(&text).unwrap_or(Cow::Borrowed(&text));
        path.push(before);
        path.extend(segment(key));
        path.push('=');
        path.extend(segment(&value));
        before = '&';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(method: &Method, path: &str) -> Result<(Op, Version, String), Kind> {
        let found = find(method, path).map_err(|f| f.kind)?;
        let parts = [&found.tenant, &found.id, &found.config];
        let said: Vec<_> = parts.into_iter().flatten().cloned().collect();
        Ok((found.op, found.version, said.join(" ")))
    }

    #[test]
    fn paths_name_operations() {
        use Version::{V03, V10};
        let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
        for (method, path, op, version, said) in [
            (&post, "/message:send", Op::Send, V10, ""),
            (&post, "/v1/message:send", Op::Send, V03, ""),
            (&post, "/acme/message:stream", Op::Stream, V10, "acme"),
            (&get, "/tasks/a%20b", Op::Get, V10, "a b"),
            (&get, "/tasks/urn:x:1", Op::Get, V10, "urn:x:1"),
            (&post, "/tasks/urn:x:cancel", Op::Cancel, V10, "urn:x"),
            (&get, "/v1/tasks/t:subscribe", Op::Subscribe, V03, "t"),
            (&post, "/v1/tasks/t:subscribe", Op::Subscribe, V03, "t"),
            (&get, "/tasks", Op::List, V10, ""),
            (&get, "/acme/tasks", Op::List, V10, "acme"),
            (
                &post,
                "/tasks/t/pushNotificationConfigs",
                Op::CreatePush,
                V10,
                "t",
            ),
            (
                &get,
                "/v1/tasks/t/pushNotificationConfigs/c",
                Op::GetPush,
                V03,
                "t c",
            ),
            (
                &delete,
                "/a/tasks/t/pushNotificationConfigs/c",
                Op::DeletePush,
                V10,
                "a t c",
            ),
            (&get, "/extendedAgentCard", Op::ExtendedCard, V10, ""),
            (&get, "/v1/tasks", Op::List, V03, ""),
            (&get, "/v1/card", Op::ExtendedCard, V03, ""),
        ] {
            assert_eq!(
                at(method, path),
                Ok((op, version, said.to_owned())),
                "{path}"
            );
        }
        for (method, path, kind) in [
            (&get, "/message:send", Kind::WrongVerb),
            (&get, "/tasks/t:cancel", Kind::WrongVerb),
            (&post, "/tasks/t:fly", Kind::WrongVerb),
            (&get, "/", Kind::NoRoute),
            (&get, "/tasks/", Kind::NoRoute),
            (&get, "/a/b/c/d", Kind::NoRoute),
            (&get, "/tasks/a%2Fb", Kind::InvalidParams),
            (&get, "/tasks/%ff", Kind::InvalidParams),
        ] {
            assert_eq!(at(method, path), Err(kind), "{path}");
        }
    }

    #[test]
    fn ids_cannot_leave_their_place() {
        let place = |id: &'static str| Place {
            op: Op::Cancel,
            version: Version::V10,
            id: Some(Cow::Borrowed(id)),
            config: None,
            tenant: None,
            slash: false,
        };
        assert_eq!(
            place("a..b?c#d%").path().unwrap(),
            "/tasks/a..b%3Fc%23d%25:cancel"
        );
        assert!(place("..").path().is_err());
        assert!(place("a/pushNotificationConfigs/c").path().is_err());
        assert!(place("").path().is_err());
    }

    #[test]
    fn what_is_done_to_a_task_may_be_a_segment() {
        for (op, colon, slash) in [
            (Op::Cancel, "/tasks/a%3A:cancel", "/tasks/a%3A/cancel"),
            (
                Op::Subscribe,
                "/tasks/a%3A:subscribe",
                "/tasks/a%3A/subscribe",
            ),
            (Op::Get, "/tasks/a%3A", "/tasks/a%3A"),
            (Op::Send, "/message:send", "/message:send"),
            (Op::Stream, "/message:stream", "/message:stream"),
            (Op::List, "/tasks", "/tasks"),
            (
                Op::GetPush,
                "/tasks/a%3A/pushNotificationConfigs/c%3A",
                "/tasks/a%3A/pushNotificationConfigs/c%3A",
            ),
        ] {
            for (way, wanted) in [(false, colon), (true, slash)] {
                let place = Place {
                    op,
                    version: Version::V10,
                    id: Some(Cow::Borrowed("a:")),
                    config: Some(Cow::Borrowed("c:")),
                    tenant: None,
                    slash: way,
                };
                assert_eq!(place.path().unwrap(), wanted);
            }
        }
    }
}
