//! Any bytes as a request: what is read is written for every agent, and reads again as the same call.
use std::borrow::Cow;

use a2a_gateway::a2a::{
    Binding, Dialect, Op, Version,
    op::OPS,
    reply::ReplyTo,
    request::{self, Outgoing, Read, Reading},
    rest::{self, Found},
    shape::Options,
};
use bytes::Bytes;
use http::Method;

use super::{AGENTS, accepts, is_of_bytes, must_be_json, must_be_told, roomy};

/// What needs no body is tried with short ones.
const SHORT: usize = 200;

pub(super) fn any(bytes: &[u8], options: &Options) {
    let body = Bytes::copy_from_slice(bytes);
    let mut to = ReplyTo::new(Dialect::J03);
    match request::read_rpc(&body, &Reading::new(None, &accepts(true), options), &mut to) {
        Ok(read) => must_reach_agents(&read, options),
        Err(fault) => must_be_told(&to, &fault),
    }
    for row in &OPS {
        if !row.op.sends() && row.op != Op::CreatePush && bytes.len() > SHORT {
            continue;
        }
        for (version, names) in [(Version::V03, &row.v03), (Version::V10, &row.v10)] {
            let path = names.rest.path;
            let found = Found {
                op: row.op,
                version,
                tenant: None,
                id: path.contains("{id}").then(|| "t-1".to_owned()),
                config: path.contains("{config}").then(|| "c-1".to_owned()),
            };
            rest(&found, None, None, &body, options);
            if version == Version::V10 && (row.op.sends() || row.op == Op::Get) {
                // v0.3 in `snake_case` has the paths of v1.0.
                rest(&found, None, Some(Version::V03), &body, options);
            }
        }
    }
}

/// A REST request.
pub(super) fn rest(
    found: &Found,
    query: Option<&str>,
    said: Option<Version>,
    body: &Bytes,
    options: &Options,
) {
    let mut to = ReplyTo::new(Dialect::R10);
    let accepts = accepts(said.is_some());
    match request::read_rest(
        found,
        query,
        body,
        &Reading::new(said, &accepts, options),
        &mut to,
    ) {
        Ok(read) => must_reach_agents(&read, options),
        Err(fault) => must_be_told(&to, &fault),
    }
}

fn must_reach_agents(read: &Read, options: &Options) {
    let call = &read.call;
    must_be_json(call.params.text(), "a canonical request");
    for agent in AGENTS {
        let mut lost = vec![];
        let roomy = roomy(options);
        match request::write(call, agent, &Method::POST, &roomy, &mut lost) {
            Ok(out) => must_read_again(read, agent, &out, &roomy),
            Err(fault) => must_be_told(&ReplyTo::new(Dialect::J10), &fault),
        }
    }
}

/// A path as the specification has it: an agent with slashes in their place knows which is which.
fn with_colon<'p>(path: &'p str, op: Op, options: &Options) -> Cow<'p, str> {
    let slash = options.slash_paths && matches!(op, Op::Cancel | Op::Subscribe);
    match path.rsplit_once('/').filter(|_| slash) {
        Some((task, done)) => Cow::Owned(format!("{task}:{done}")),
        None => Cow::Borrowed(path),
    }
}

/// What the agent reads is the call that policies saw: no other operation, task or conversation.
fn must_read_again(read: &Read, agent: Dialect, out: &Outgoing, options: &Options) {
    let shown = || format!("{} {out:?}", agent.name());
    if let Some(body) = &out.body {
        must_be_json(body, "a request for the agent");
    }
    let body = out.body.clone().unwrap_or_default();
    let accepts = accepts(false);
    let mut to = ReplyTo::new(agent);
    let again = match agent.binding {
        Binding::Rpc => request::read_rpc(&body, &Reading::new(None, &accepts, options), &mut to),
        Binding::Rest => {
            let (path, query) = match out.path.split_once('?') {
                Some((path, query)) => (path, Some(query)),
                None => (&*out.path, None),
            };
            if facts_with_slash(read) {
                return; // a client is not let to write one; what agents make of it is theirs
            }
            let sane = http::uri::PathAndQuery::try_from(&*out.path);
            assert!(sane.is_ok(), "an address that is none: {}", shown());
            let found = rest::find(&out.method, &with_colon(path, read.call.op, options));
            let found = found.unwrap_or_else(|e| panic!("nothing is there: {e} {}", shown()));
            request::read_rest(
                &found,
                query,
                &body,
                &Reading::new(None, &accepts, options),
                &mut to,
            )
        }
    };
    let again = match again {
        Ok(again) => again,
        Err(fault) if is_of_bytes(&fault) => return,
        Err(fault) => panic!("not read again: {fault} {}", shown()),
    };
    let (call, facts) = (&read.call, &read.call.facts);
    assert_eq!(again.call.op, call.op, "{}", shown());
    assert_eq!(again.call.facts.task, facts.task, "{}", shown());
    if matches!(call.op, Op::GetPush | Op::DeletePush) {
        assert_eq!(again.call.facts.config, facts.config, "{}", shown());
    }
    if call.op.sends() {
        assert_eq!(again.call.facts.context, facts.context, "{}", shown());
        assert_eq!(again.call.facts.message, facts.message, "{}", shown());
    }
    if agent.shape.version() == Version::V10 && call.op != Op::ListPush {
        assert_eq!(again.call.facts, *facts, "{}", shown());
    }
}

fn facts_with_slash(read: &Read) -> bool {
    let facts = &read.call.facts;
    let said = [&facts.task, &facts.config, &facts.tenant];
    said.into_iter()
        .flatten()
        .any(|id| id.contains(['/', '\0']))
}
