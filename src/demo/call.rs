//! The operations and what each is told, the same for both bindings.

#![expect(
    dead_code,
    reason = "some members are read only to know that they are well-formed"
)]

use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    object::{Free, Message, PushConfig, State},
    refusal::{Fault, Refusal},
};

/// A page of ListTasks when none is said, and the most that may be asked for (v1.0 3.1.4).
const PAGE: usize = 50;
const LARGEST_PAGE: usize = 100;

/// One call, read and checked.
#[derive(Debug)]
pub(super) enum Call {
    Send(SendMessage),
    Stream(SendMessage),
    Get(GetTask),
    List(ListTasks),
    Cancel(OneTask),
    Subscribe(OneTask),
    PushCreate(PushConfig),
    PushGet(OnePush),
    PushList(ListPushes),
    PushDelete(OnePush),
    ExtendedCard,
}

// `tenant` is read everywhere, since v1.0 has it everywhere, and means nothing: this is one agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SendMessage {
    pub(super) tenant: Option<String>,
    pub(super) message: Message,
    #[serde(default)]
    pub(super) configuration: Option<Configuration>,
    metadata: Option<Free>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Configuration {
    accepted_output_modes: Option<Vec<String>>,
    pub(super) history_length: Option<usize>,
    pub(super) task_push_notification_config: Option<PushConfig>,
    pub(super) return_immediately: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetTask {
    pub(super) tenant: Option<String>,
    pub(super) id: String,
    pub(super) history_length: Option<usize>,
}

/// Cancel and subscribe; `metadata` is a member of the first only, which is not worth a type.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OneTask {
    pub(super) tenant: Option<String>,
    #[serde(default)]
    pub(super) id: String,
    metadata: Option<Free>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ListTasks {
    pub(super) tenant: Option<String>,
    pub(super) context_id: Option<String>,
    pub(super) status: Option<State>,
    pub(super) page_size: Option<usize>,
    pub(super) page_token: Option<String>,
    pub(super) history_length: Option<usize>,
    pub(super) status_timestamp_after: Option<String>,
    pub(super) include_artifacts: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OnePush {
    pub(super) tenant: Option<String>,
    pub(super) task_id: String,
    pub(super) id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ListPushes {
    pub(super) tenant: Option<String>,
    pub(super) task_id: String,
    pub(super) page_size: Option<usize>,
    pub(super) page_token: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParams {
    pub(super) tenant: Option<String>,
}

impl Call {
    /// The call as it came, if it makes sense.
    pub(super) fn checked(self) -> Result<Call, Refusal> {
        let flaw = match &self {
            Self::Send(send) | Self::Stream(send) => send.message.flaw(),
            Self::Get(GetTask { id, .. })
            | Self::Cancel(OneTask { id, .. })
            | Self::Subscribe(OneTask { id, .. }) => empty("id", id),
            Self::PushCreate(push) => {
                empty("taskId", &push.task_id).or_else(|| empty("url", &push.url))
            }
            Self::PushGet(push) | Self::PushDelete(push) => {
                empty("taskId", &push.task_id).or_else(|| empty("id", &push.id))
            }
            Self::PushList(list) => empty("taskId", &list.task_id),
            Self::List(_) | Self::ExtendedCard => None,
        };
        flaw.map_or(Ok(self), |flaw| Err(Fault::InvalidParams.because(flaw)))
    }
}

impl ListTasks {
    /// How many tasks a page holds.
    pub(super) fn page(&self) -> Result<usize, Refusal> {
        match self.page_size {
            None => Ok(PAGE),
            Some(size @ 1..=LARGEST_PAGE) => Ok(size),
            Some(size) => Err(Fault::InvalidParams
                .because(format!("pageSize {size} is not from 1 to {LARGEST_PAGE}"))),
        }
    }

    /// Only tasks whose status is newer.
    pub(super) fn after(&self) -> Result<Option<Timestamp>, Refusal> {
        let Some(text) = &self.status_timestamp_after else {
            return Ok(None);
        };
        let time = text
            .parse()
            .map_err(|_| Fault::InvalidParams.because(format!("{text:?} is not a time")))?;
        Ok(Some(time))
    }
}

/// Reads what one operation is told from text that is known to be JSON.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Refusal> {
    serde_json::from_str(text).map_err(|error| Fault::InvalidParams.because(error.to_string()))
}

fn empty(name: &str, value: &str) -> Option<String> {
    value
        .is_empty()
        .then(|| format!("{name} is missing or empty"))
}
