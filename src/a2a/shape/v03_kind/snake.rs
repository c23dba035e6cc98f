//! R03S: the same objects with every name of ours in `snake_case`.
use crate::json::{Obj, Result};

/// Every name that R03S spells with underscores.
const NAMES: [(&str, &str); 17] = [
    ("message_id", "messageId"),
    ("context_id", "contextId"),
    ("task_id", "taskId"),
    ("reference_task_ids", "referenceTaskIds"),
    ("artifact_id", "artifactId"),
    ("last_chunk", "lastChunk"),
    ("mime_type", "mimeType"),
    ("accepted_output_modes", "acceptedOutputModes"),
    ("history_length", "historyLength"),
    ("push_notification_config", "pushNotificationConfig"),
    ("push_notification_config_id", "pushNotificationConfigId"),
    ("next_page_token", "nextPageToken"),
    ("page_size", "pageSize"),
    ("total_size", "totalSize"),
    ("page_token", "pageToken"),
    ("status_timestamp_after", "statusTimestampAfter"),
    ("include_artifacts", "includeArtifacts"),
];
/// The members in which more of them stand. `metadata` and `data` are not ours to rename in.
const HOLDERS: [&str; 9] = [
    "message",
    "status",
    "artifact",
    "file",
    "configuration",
    "pushNotificationConfig",
    "push_notification_config",
    "authentication",
    "config",
];
const LISTS: [&str; 5] = ["parts", "artifacts", "history", "tasks", "configs"];

pub(in crate::a2a::shape) fn camel(o: &mut Obj<'_>) -> Result {
    renamed(o, |name| (name.0, name.1))
}

pub(in crate::a2a::shape) fn snake(o: &mut Obj<'_>) -> Result {
    renamed(o, |name| (name.1, name.0))
}

fn renamed(
    o: &mut Obj<'_>,
    way: fn(&(&'static str, &'static str)) -> (&'static str, &'static str),
) -> Result {
    for key in HOLDERS {
        if o.inside(key).is_some() || o.raw(key).is_some_and(|t| t.starts_with('{')) {
            o.within(key, |inner| renamed(inner, way))?;
        }
    }
    for key in LISTS {
        if o.list(key).is_some() {
            o.each(key, |inner| renamed(inner, way))?;
        }
    }
    for name in &NAMES {
        let (from, to) = way(name);
        o.rename(from, to)?;
    }
    Ok(())
}
