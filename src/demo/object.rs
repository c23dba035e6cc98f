//! The objects of v1.0 that the agent reads and writes. They are read strictly: a member of another version, such as
//! `kind`, is a mistake. What a caller may put in freely stays the text it was, numbers included.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON object kept as text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub(super) struct Free(Box<RawValue>);

impl TryFrom<Box<RawValue>> for Free {
    type Error = &'static str;

    fn try_from(text: Box<RawValue>) -> Result<Self, Self::Error> {
        if text.get().starts_with('{') {
            Ok(Free(text))
        } else {
            Err("expected an object")
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Role {
    #[serde(rename = "ROLE_USER")]
    User,
    #[serde(rename = "ROLE_AGENT")]
    Agent,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Message {
    #[serde(rename = "messageId")]
    pub(super) id: String,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given"
    )]
    pub(super) context_id: Option<String>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given"
    )]
    pub(super) task_id: Option<String>,
    pub(super) role: Role,
    pub(super) parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Free>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) extensions: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reference_task_ids: Option<Vec<String>>,
}

impl Message {
    /// A message of the agent's.
    pub(super) fn of_agent(context: &str, task: Option<&str>, parts: Vec<Part>) -> Message {
        Message {
            id: fresh_id(),
            context_id: Some(context.to_owned()),
            task_id: task.map(str::to_owned),
            role: Role::Agent,
            parts,
            metadata: None,
            extensions: None,
            reference_task_ids: None,
        }
    }

    /// What a JSON schema cannot say: nothing required is empty, and each part holds exactly one thing.
    pub(super) fn flaw(&self) -> Option<String> {
        if self.id.is_empty() {
            return Some("message.messageId is empty".to_owned());
        }
        if self.parts.is_empty() {
            return Some("message.parts is empty".to_owned());
        }
        let flaw =
            |(at, part): (usize, &Part)| Some(format!("message.parts[{at}] {}", part.flaw()?));
        self.parts.iter().enumerate().find_map(flaw)
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Part {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) raw: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    // `null` is a value of its own here
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub(super) data: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Free>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) filename: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) media_type: Option<String>,
}

impl Part {
    pub(super) fn text(text: impl Into<String>) -> Part {
        Part {
            text: Some(text.into()),
            ..Part::default()
        }
    }

    fn flaw(&self) -> Option<&'static str> {
        let held = [
            self.text.is_some(),
            self.raw.is_some(),
            self.url.is_some(),
            self.data.is_some(),
        ];
        if held.into_iter().filter(|is| *is).count() != 1 {
            return Some("must have one of text, raw, url and data");
        }
        let encoded = self
            .raw
            .as_ref()
            .is_none_or(|raw| STANDARD.decode(raw).is_ok());
        if encoded {
            None
        } else {
            Some("has a raw that is not base64")
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
    #[serde(rename = "TASK_STATE_SUBMITTED")]
    Submitted,
    #[serde(rename = "TASK_STATE_WORKING")]
    Working,
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    #[serde(rename = "TASK_STATE_CANCELED")]
    Canceled,
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
}

impl State {
    /// Nothing follows it.
    pub(super) fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => true,
            Self::Submitted | Self::Working | Self::InputRequired | Self::AuthRequired => false,
        }
    }

    /// Nothing follows it unless the caller says more.
    pub(super) fn is_at_rest(self) -> bool {
        self.is_terminal() || matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Status {
    pub(super) state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<Message>,
    #[serde(serialize_with = "milliseconds")]
    pub(super) timestamp: Timestamp,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Artifact {
    #[serde(rename = "artifactId")]
    pub(super) id: String,
    pub(super) name: String,
    pub(super) parts: Vec<Part>,
}

#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) context_id: String,
    pub(super) status: Status,
    pub(super) artifacts: Vec<Artifact>,
    pub(super) history: Vec<Message>,
}

/// A task as a caller asked to see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown<'a> {
    id: &'a str,
    context_id: &'a str,
    status: &'a Status,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    artifacts: &'a [Artifact],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    history: &'a [Message],
}

impl Task {
    /// With the last `history` messages, all of them when not said.
    pub(super) fn shown(&self, history: Option<usize>, artifacts: bool) -> Shown<'_> {
        let skipped = self
            .history
            .len()
            .saturating_sub(history.unwrap_or(usize::MAX));
        Shown {
            id: &self.id,
            context_id: &self.context_id,
            status: &self.status,
            artifacts: if artifacts { &self.artifacts } else { &[] },
            history: &self.history[skipped..],
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PushConfig {
    #[expect(
        dead_code,
        reason = "part of the object, without meaning for one agent"
    )]
    #[serde(default, skip_serializing)]
    pub(super) tenant: Option<String>,
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) task_id: String,
    pub(super) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) authentication: Option<Authentication>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Authentication {
    scheme: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credentials: Option<String>,
}

/// An id nobody has used yet.
pub(super) fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The JSON text of one of these objects.
pub(super) fn text_of(value: &impl Serialize) -> String {
    serde_json::to_string(value)
        .expect("names are strings and nothing in here refuses to be written")
}

fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

/// An empty id is no id: some encoders write out what is not set.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.filter(|text| !text.is_empty()))
}

fn milliseconds<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{time:.3}"))
}
