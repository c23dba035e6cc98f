//! `metadata.memorylake` of a send: whose memory the agent uses, which projects, and how it runs. What of it the agent
//! was given is kept as [`Heard`].
use serde_json::Value;

use super::{
    call::{Call, Tongue},
    capability::{self, Capabilities},
    read::Sent,
    refusal::Refusal,
    rules::Rules,
    world::{ACTOR_PERMISSIONS, Holder, READ_PERMISSIONS, WRITE_PERMISSIONS, World},
};

/// What the agent was given with one message.
#[derive(Clone, Debug)]
pub struct Heard {
    pub tongue: Tongue,
    pub agent: String,
    pub context: String,
    pub task: String,
    /// As the model sees it.
    pub text: String,
    /// `None` where the message has no extension, which the older page allows: no memory then.
    pub extension: Option<Value>,
    pub actor: Option<String>,
    pub project: Option<String>,
    /// Of `readOnlyProjectIds` those that there are.
    pub searches: Vec<String>,
    pub skips_memory: bool,
    pub model: Option<String>,
    pub capabilities: Capabilities,
    pub waits: bool,
    pub history: Option<usize>,
}

/// The extension of one message, read and checked without the conversation.
#[derive(Clone, Debug)]
pub struct Extension {
    pub given: Option<Value>,
    pub actor: Option<String>,
    /// The one that the message names.
    pub project: Option<String>,
    pub searches: Vec<String>,
    pub skips_memory: bool,
    pub model: Option<String>,
    pub capabilities: Capabilities,
}

pub fn read(call: &Call, sent: &Sent, world: &World, who: &Holder) -> Result<Extension, Refusal> {
    let rules = &world.rules;
    let given = &call.params["metadata"]["memorylake"];
    if !given.is_object() {
        if rules.needs_extension || !given.is_null() {
            return Err(Refusal::invalid("metadata.memorylake is required"));
        }
        return Ok(Extension {
            given: None,
            actor: None,
            project: None,
            searches: vec![],
            skips_memory: true,
            model: None,
            capabilities: World::own_capabilities(&call.agent),
        });
    }
    let project = string(given, "readWriteProjectId")?;
    let overrides = &given["overrides"];
    let asked = &overrides["capabilitiesOverride"];
    let capabilities = capability::turn_on(&World::own_capabilities(&call.agent), asked, rules)?;
    let actor = actor(string(given, "actorId")?, rules, who)?;
    if let Some(project) = &project
        && rules.fixes_project
        && !World::has_project(&call.workspace, project)
    {
        return Err(Refusal::missing(format!("project {project}")));
    }
    if rules.files_need_project && project.is_none() && has_files(&sent.message) {
        return Err(Refusal::invalid("files need a readWriteProjectId"));
    }
    let skips_memory = boolean(given, "skipMemory")?.unwrap_or(false);
    Ok(Extension {
        given: Some(given.clone()),
        actor,
        project,
        searches: searches(call, given, who)?,
        skips_memory,
        model: overrides["model"].as_str().map(str::to_owned),
        capabilities,
    })
}

pub fn string(given: &Value, name: &str) -> Result<Option<String>, Refusal> {
    let no = || Refusal::invalid(format!("{name} is no string"));
    let given = Some(&given[name]).filter(|value| !value.is_null());
    given
        .map(|value| value.as_str().map(str::to_owned).ok_or_else(no))
        .transpose()
}

pub fn boolean(given: &Value, name: &str) -> Result<Option<bool>, Refusal> {
    let no = || Refusal::invalid(format!("{name} is no boolean"));
    let given = Some(&given[name]).filter(|value| !value.is_null());
    given
        .map(|value| value.as_bool().ok_or_else(no))
        .transpose()
}

fn actor(given: Option<String>, rules: &Rules, who: &Holder) -> Result<Option<String>, Refusal> {
    if !rules.checks_actors {
        return Ok(given);
    }
    let Some(actor) = given else {
        return who.actor.clone().map(Some).ok_or_else(Refusal::no_actor);
    };
    match World::actor_is_active(&actor) {
        Some(true) => Ok(Some(actor)),
        Some(false) => Err(Refusal::inactive(&actor)),
        None => Err(Refusal::invalid(format!(
            "actor {actor} is not of the workspace"
        ))),
    }
}

fn searches(call: &Call, given: &Value, who: &Holder) -> Result<Vec<String>, Refusal> {
    let list = &given["readOnlyProjectIds"];
    if list.is_null() {
        return Ok(vec![]);
    }
    let why = "readOnlyProjectIds is no list of strings";
    let list = list.as_array().ok_or_else(|| Refusal::invalid(why))?;
    let mut out = vec![];
    for project in list {
        let project = project.as_str().ok_or_else(|| Refusal::invalid(why))?;
        if !World::has_project(&call.workspace, project) {
            continue; // skipped without an error
        }
        who.needs(&READ_PERMISSIONS, project)?;
        out.push(project.to_owned());
    }
    Ok(out)
}

/// `drive://` references or inline bytes.
fn has_files(message: &Value) -> bool {
    let parts = message["parts"].as_array().into_iter().flatten();
    let mut files = parts.filter(|part| {
        let drive = part["url"]
            .as_str()
            .is_some_and(|url| url.starts_with("drive://"));
        drive || part.get("raw").is_some()
    });
    files.next().is_some()
}

impl Extension {
    /// The permissions on the actor.
    pub fn may_act(&self, who: &Holder) -> Result<(), Refusal> {
        let mut actor = self.actor.iter();
        actor.try_for_each(|actor| who.needs(&ACTOR_PERMISSIONS, actor))
    }

    /// The permissions on the project.
    pub fn may_write(&self, who: &Holder) -> Result<(), Refusal> {
        let mut project = self.project.iter();
        project.try_for_each(|project| who.needs(&WRITE_PERMISSIONS, project))
    }
}
