//! The operations: what is checked in which order, and what is done.
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    call::{Call, Op, Tongue},
    callback, capability,
    extension::{self, Extension, Heard},
    read::{self, Sent},
    refusal::Refusal,
    script::{self, End},
    task::Task,
    tell,
    world::World,
};

/// An answer: a document, or a stream of a task's events after a first one.
pub enum Reply {
    Document(Value),
    Stream(Arc<Task>, Option<Value>),
}

pub async fn perform(
    world: &Arc<World>,
    call: &Call,
    authorization: Option<&str>,
) -> Result<Reply, Refusal> {
    if !World::has_agent(&call.workspace, &call.agent) {
        return Err(Refusal::missing(format!("agent {}", call.agent)));
    }
    if call.op == Op::Card {
        return Ok(Reply::Document(card(world, call)));
    }
    let who = world.holder(authorization)?;
    who.needs(&[world.rules.permission], "")?;
    let brief = |task: &Task| {
        let told = task.brief(call.tongue != Tongue::R03);
        Reply::Document(tell::task(call.tongue, &call.id, &told))
    };
    match call.op {
        Op::Send | Op::Stream => {
            who.has_quota()?;
            send(world, call, &who).await
        }
        Op::Get => Ok(brief(&*task(world, call)?)),
        Op::Cancel => {
            let task = task(world, call)?;
            if !task.cancel() {
                let why = Refusal::invalid("the task is over and cannot be canceled");
                return Err(why.of_agent(-32002));
            }
            Ok(brief(&task)) // not told what comes back
        }
        Op::Subscribe => {
            let task = task(world, call)?;
            if matches!(task.state(), "TASK_STATE_FAILED" | "TASK_STATE_CANCELED") {
                let why = Refusal::invalid("the task has failed or was canceled");
                return Err(why.of_agent(-32004));
            }
            Ok(Reply::Stream(task, None))
        }
        Op::Card => unreachable!("answered above"),
    }
}

fn task(world: &World, call: &Call) -> Result<Arc<Task>, Refusal> {
    known(world, call, call.task.as_deref().unwrap_or_default())
}

fn known(world: &World, call: &Call, id: &str) -> Result<Arc<Task>, Refusal> {
    let of = (call.workspace.clone(), call.agent.clone());
    let found = world.task(id).filter(|task| task.of == of);
    found.ok_or_else(|| {
        let no = Refusal::missing(format!("task {id}"));
        if world.rules.agent_misses_task {
            no.of_agent(-32001)
        } else {
            no
        }
    })
}

async fn send(
    world: &Arc<World>,
    call: &Call,
    who: &super::world::Holder,
) -> Result<Reply, Refusal> {
    let sent = read::sent(call.tongue, &call.params, &world.rules)?;
    if let Some(id) = &sent.task {
        known(world, call, id)?; // not told what becomes of a message to a task
    }
    let extension = extension::read(call, &sent, world, who)?;
    let (task, project) = admit(world, call, &sent, &extension, who)?;
    let text = text(&sent, &extension);
    world.hear(heard(call, &sent, &extension, &task, project, text.clone()));
    let unknown = extension.model.as_ref().filter(|m| !world.has_model(m));
    let streams = call.op == Op::Stream;
    let script = match unknown {
        Some(model) => {
            let why = format!("LLM model config not found: {model}");
            (vec![], End::Failed(why))
        }
        None => script::of(world, &text, &sent.message, streams),
    };
    let created = task.created(sent.history);
    let (works, tells) = (Arc::clone(&task), Arc::clone(world));
    let callback = sent.callback.filter(|_| world.rules.calls_back);
    super::wire::spawn(async move {
        works.work(script).await;
        if let Some(url) = callback {
            callback::tell(&tells, &url, &works).await;
        }
    });
    if streams {
        let cut = sent.history.filter(|_| world.rules.streams_cut_history);
        let first = json!({"task": task.created(cut)});
        return Ok(Reply::Stream(task, Some(first)));
    }
    let told = if sent.waits {
        task.over().await;
        task.whole(sent.history)
    } else {
        created
    };
    Ok(Reply::Document(tell::sent(call.tongue, &call.id, &told)))
}

/// The task of a message that its conversation takes. Two at once are told apart here.
fn admit(
    world: &World,
    call: &Call,
    sent: &Sent,
    extension: &Extension,
    who: &super::world::Holder,
) -> Result<(Arc<Task>, Option<String>), Refusal> {
    let context = sent.context.clone();
    let context = context.unwrap_or_else(|| format!("ctx_{}", Uuid::new_v4().simple()));
    let mut conversations = world.conversations.lock();
    let project = conversations.admit(call, &context, extension, &world.rules, who)?;
    let of = (call.workspace.clone(), call.agent.clone());
    let task = Task::new(of, &context, sent.message.clone());
    world.add(&task);
    conversations.goes_on(call, &context, extension, &task);
    Ok((task, project))
}

/// The first text, as the model sees it.
fn text(sent: &Sent, extension: &Extension) -> String {
    let parts = sent.message["parts"].as_array().into_iter().flatten();
    let mut texts = parts.filter_map(|part| part["text"].as_str());
    let text = texts.next().unwrap_or_default().trim();
    if extension.capabilities.contains_key("pii") {
        capability::masked(text)
    } else {
        text.to_owned()
    }
}

fn heard(
    call: &Call,
    sent: &Sent,
    extension: &Extension,
    task: &Task,
    project: Option<String>,
    text: String,
) -> Heard {
    Heard {
        tongue: call.tongue,
        agent: call.agent.clone(),
        context: task.context.clone(),
        task: task.id.clone(),
        text,
        extension: extension.given.clone(),
        actor: extension.actor.clone(),
        project,
        searches: extension.searches.clone(),
        skips_memory: extension.skips_memory,
        model: extension.model.clone(),
        capabilities: extension.capabilities.clone(),
        waits: sent.waits,
        history: sent.history,
    }
}

/// The page tells of the card that it advertises no push notifications; where it lies and the rest is A2A's.
fn card(world: &World, call: &Call) -> Value {
    let (workspace, agent) = (&call.workspace, &call.agent);
    let base = format!(
        "http://{}{}/workspaces/{workspace}/agents/{agent}/a2a",
        world.addr,
        super::API
    );
    let at = |binding, version| json!({"url": base, "protocolBinding": binding, "protocolVersion": version});
    json!({
        "name": "MemoryLake double", "description": "Does what the text of a message says.", "version": "1",
        "supportedInterfaces": [at("JSONRPC", "1.0"), at("HTTP+JSON", "1.0"), at("JSONRPC", "0.3")],
        "capabilities": {"streaming": true, "pushNotifications": world.rules.calls_back},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "echo", "name": "Words", "description": "What the text says", "tags": ["test"]}],
    })
}
