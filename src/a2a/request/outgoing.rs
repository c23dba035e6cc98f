//! A canonical call in the agent's words.
use std::borrow::Cow;

use bytes::Bytes;
use http::Method;

use super::written;
use crate::{
    a2a::{
        Binding, Call, Canonical, Dialect, Facts,
        fault::{Fault, Kind},
        op::Op,
        rest, rpc,
        shape::{Loss, Notes, Options, Shape, Version},
    },
    json::{Node, Obj},
};

/// A request in the agent's words.
#[derive(Debug)]
pub struct Outgoing {
    /// The verb.
    pub method: Method,
    /// Path below the interface URL, with its query; empty for JSON-RPC.
    pub path: Cow<'static, str>,
    /// The body, where there is one.
    pub body: Option<Bytes>,
}

/// A call in the agent's dialect. `verb` is for subscribing over REST, where agents differ.
pub fn write(
    call: &Call,
    dialect: Dialect,
    verb: &Method,
    options: &Options,
    lost: &mut Vec<Loss>,
) -> Result<Outgoing, Fault> {
    if dialect.shape.version() == Version::V03 && call.op == Op::List {
        return Err(Fault::new(
            Kind::UnsupportedOperation,
            "the agent speaks v0.3, which has no list of tasks",
        ));
    }
    match (dialect.binding, dialect.shape) {
        (Binding::Rpc, Shape::V10) => Ok(envelope(call.op.row().v10.rpc, call.params.text())),
        (Binding::Rest, Shape::V10) if call.op.sends() && call.facts.tenant.is_none() => {
            Ok(Outgoing {
                method: Method::POST,
                path: Cow::Borrowed(call.op.row().v10.rest.path),
                body: Some(call.params.text().clone()),
            })
        }
        _ => lower(call, dialect, verb, options, lost),
    }
}

fn envelope(method: &str, params: &[u8]) -> Outgoing {
    Outgoing {
        method: Method::POST,
        path: Cow::Borrowed(""),
        body: Some(rpc::write_request(method, params).into()),
    }
}

fn lower(
    call: &Call,
    dialect: Dialect,
    verb: &Method,
    options: &Options,
    lost: &mut Vec<Loss>,
) -> Result<Outgoing, Fault> {
    let inner = |e: String| {
        Fault::new(
            Kind::Internal,
            "the request could not be written for the agent",
        )
        .because(e)
    };
    let text = std::str::from_utf8(call.params.text()).map_err(|e| inner(e.to_string()))?;
    let form = Shape::V10.request_form(call.op);
    let mut r = Obj::open(text, form, options.limits).map_err(|e| inner(e.to_string()))?;
    let mut notes = Notes::new(options);
    dialect
        .shape
        .lower_request(call.op, &mut r, &mut notes)
        .map_err(|e| Fault::params(e.to_string()))?;
    lost.append(&mut notes.lost);
    if dialect.binding == Binding::Rpc {
        return Ok(envelope(call.op.row().v03.rpc, &written(&r, text.len())));
    }
    rest_request(call, dialect, verb, r, text.len(), options.slash_paths)
}

fn rest_request(
    call: &Call,
    dialect: Dialect,
    verb: &Method,
    mut r: Obj<'_>,
    size: usize,
    slash: bool,
) -> Result<Outgoing, Fault> {
    let version = match dialect.shape {
        Shape::V03Kind | Shape::V03Proto => Version::V03,
        Shape::V03Snake | Shape::V10 => Version::V10, // R03S has v1.0's paths
    };
    let facts = &call.facts;
    let tenant = facts
        .tenant
        .as_deref()
        .filter(|_| dialect.shape == Shape::V10);
    let place = rest::Place {
        op: call.op,
        version,
        id: facts.task.as_deref().map(Cow::Borrowed),
        config: facts.config.as_deref().map(Cow::Borrowed),
        tenant: tenant.map(Cow::Borrowed),
        slash,
    };
    let mut path = place.path()?;
    r.take("tenant");
    let row = call.op.row();
    let names = match version {
        Version::V03 => &row.v03,
        Version::V10 => &row.v10,
    };
    let method = if call.op == Op::Subscribe {
        verb.clone()
    } else {
        names.rest.verbs[0].clone()
    };
    take_path(call.op, &mut r);
    if matches!(call.op, Op::Get | Op::List | Op::ListPush) {
        rest::write_query(&mut path, &r);
    }
    Ok(Outgoing {
        method,
        path: path.into(),
        body: rest_body(call, dialect.shape, r, size).map(Bytes::from),
    })
}

/// Takes out what the path says. A create keeps its own id, which no path has.
fn take_path(op: Op, r: &mut Obj<'_>) {
    let said: &[&str] = match op {
        Op::Get | Op::Cancel | Op::Subscribe => &["id"],
        Op::GetPush | Op::ListPush | Op::DeletePush => &[
            "taskId",
            "id",
            "pushNotificationConfigId",
            "push_notification_config_id",
        ],
        Op::CreatePush => &["taskId", "task_id"],
        Op::Send | Op::Stream | Op::List | Op::ExtendedCard => &[],
    };
    for key in said {
        r.take(key);
    }
}

fn rest_body(call: &Call, shape: Shape, r: Obj<'_>, size: usize) -> Option<Vec<u8>> {
    match call.op {
        Op::CreatePush if shape == Shape::V03Proto => Some(create_body(&call.facts, r)),
        Op::Cancel if shape == Shape::V03Proto => {
            let id = call.facts.task.as_deref().unwrap_or_default();
            let mut body = Obj::default();
            body.put("name", Node::string(format!("tasks/{}", rest::segment(id))));
            Some(written(&body, size))
        }
        Op::Send | Op::Stream | Op::CreatePush | Op::Cancel => Some(written(&r, size)),
        Op::Get
        | Op::List
        | Op::ListPush
        | Op::Subscribe
        | Op::GetPush
        | Op::DeletePush
        | Op::ExtendedCard => None,
    }
}

/// The form in which Python's v0.3 server takes a webhook; it is the only one of those seen that some server
/// takes at all.
fn create_body(facts: &Facts, resource: Obj<'_>) -> Vec<u8> {
    let task = facts.task.as_deref().unwrap_or_default();
    let mut outer = Obj::default();
    outer.put(
        "parent",
        Node::string(format!("tasks/{}", rest::segment(task))),
    );
    if let Some(config) = &facts.config {
        outer.put("configId", Node::string(config.as_str()));
    }
    outer.put("config", Node::Obj(resource));
    written(&outer, 256)
}

/// The same list of webhooks, from another page on.
pub fn next_page(call: &Call, token: &str, options: &Options) -> Result<Canonical, Fault> {
    let inner =
        |e: String| Fault::new(Kind::Internal, "the next page cannot be asked for").because(e);
    let text = std::str::from_utf8(call.params.text()).map_err(|e| inner(e.to_string()))?;
    let form = Shape::V10.request_form(Op::ListPush);
    let mut r = Obj::open(text, form, options.limits).map_err(|e| inner(e.to_string()))?;
    r.put("pageToken", Node::string(token));
    Ok(Canonical(written(&r, text.len()).into()))
}

/// The question for the task of another call.
pub fn get_task(call: &Call) -> Call {
    let task = call.facts.task.as_deref().unwrap_or_default();
    ours(Op::Get, &[("id", task)], call.facts.tenant.as_deref(), &[])
}

/// The question for a task, without its history.
pub fn ask_task(task: &str, tenant: Option<&str>) -> Call {
    ours(Op::Get, &[("id", task)], tenant, &[("historyLength", "0")])
}

/// The question for the task of a message that was sent before, with as much history as that asked for.
pub fn ask_now(task: &str, tenant: Option<&str>, history: Option<u64>) -> Call {
    let history = history.map(|n| n.to_string());
    let history = history.as_deref().map(|n| ("historyLength", n));
    ours(Op::Get, &[("id", task)], tenant, history.as_slice())
}

/// The call for what is still to come of a task.
pub fn subscribe(task: &str, tenant: Option<&str>) -> Call {
    ours(Op::Subscribe, &[("id", task)], tenant, &[])
}

/// The question for the tasks of a context, a page of them.
pub fn ask_tasks(context: &str, tenant: Option<&str>, page: Option<&str>) -> Call {
    let mut words = vec![("contextId", context)];
    words.extend(page.map(|token| ("pageToken", token)));
    ours(
        Op::List,
        &words,
        tenant,
        &[("pageSize", "100"), ("historyLength", "0")],
    )
}

fn ours(
    op: Op,
    words: &[(&'static str, &str)],
    tenant: Option<&str>,
    numbers: &[(&'static str, &str)],
) -> Call {
    let mut r = Obj::default();
    for (key, value) in tenant.iter().map(|t| ("tenant", *t)).chain(words.to_vec()) {
        r.put(key, Node::string(value));
    }
    for (key, number) in numbers {
        r.put(key, Node::Text(number));
    }
    let word = |key| words.iter().find(|(k, _)| *k == key);
    Call {
        op,
        facts: Facts {
            task: word("id").map(|(_, task)| (*task).to_owned()),
            context: word("contextId").map(|(_, context)| (*context).to_owned()),
            tenant: tenant.map(str::to_owned),
            ..Facts::default()
        },
        params: Canonical(written(&r, 0).into()),
    }
}

/// Gives a configuration `acceptedOutputModes`, for agents that refuse one without (ADK-Rust before 2.3).
pub fn fill_output_modes(call: &mut Call, options: &Options) -> Result<(), Fault> {
    const MODES: &str = "acceptedOutputModes";
    let inner =
        |e: String| Fault::new(Kind::Internal, "the output modes cannot be added").because(e);
    let text = std::str::from_utf8(call.params.text()).map_err(|e| inner(e.to_string()))?;
    let form = Shape::V10.request_form(call.op);
    let mut r = Obj::open(text, form, options.limits).map_err(|e| inner(e.to_string()))?;
    r.within("configuration", |c| {
        if !c.has(MODES) {
            c.put(MODES, Node::List(vec![]));
        }
        Ok(())
    })
    .map_err(|e| inner(e.to_string()))?;
    if r.changed() {
        call.params = Canonical(written(&r, text.len()).into());
    }
    Ok(())
}

/// Names the context in a message that names only its task: agents differ on a lone task id.
pub fn fill_context(call: &mut Call, context: &str, options: &Options) -> Result<(), Fault> {
    let inner =
        |e: String| Fault::new(Kind::Internal, "the context cannot be filled in").because(e);
    let text = std::str::from_utf8(call.params.text()).map_err(|e| inner(e.to_string()))?;
    let form = Shape::V10.request_form(call.op);
    let mut r = Obj::open(text, form, options.limits).map_err(|e| inner(e.to_string()))?;
    r.within("message", |m| {
        m.put("contextId", Node::string(context));
        Ok(())
    })
    .map_err(|e| inner(e.to_string()))?;
    call.params = Canonical(written(&r, text.len() + context.len()).into());
    call.facts.context = Some(context.to_owned());
    Ok(())
}
