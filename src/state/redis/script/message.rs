//! What the store is told of messages that may be sent again (`message.lua`), and what it answers.
use std::time::Duration;

use redis::{FromRedisValue, ParsingError, Script, ScriptInvocation, Value};

use super::{QUIET, Told, arg_of, lease_of};
use crate::state::{
    retry::{Fate, Record},
    slot::{Millis, Times},
};

/// What is said of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Saying {
    /// It is about to be sent, unless it was begun before by another than this, which never was.
    Begin(Record, Option<u64>),
    /// That became of it, to be remembered so long; while it runs also that its gateway is there.
    Tell(Record, Duration),
    /// The one of this token was never sent.
    Forget(u64),
}

/// The answer.
#[derive(Clone, Debug)]
pub(in super::super) struct Found {
    pub(in super::super) told: Told,
    pub(in super::super) epoch: Millis,
    /// Who has it, after a no. What a gateway left that died runs no more.
    pub(in super::super) record: Option<Record>,
}

/// The script, with all that is the same for each message.
pub(in super::super) struct Messages {
    script: Script,
    lease: Duration,
    window: Duration,
}

impl Messages {
    pub(in super::super) fn new(times: &Times, window: Duration) -> Self {
        let script = concat!(include_str!("../clock.lua"), include_str!("../message.lua"));
        Self {
            script: Script::new(script),
            lease: lease_of(times),
            window,
        }
    }

    /// One operation on what is remembered under this key. Tests shift the clock.
    pub(in super::super) fn call(
        &self,
        key: &str,
        epoch: &str,
        saying: &Saying,
        shift: u64,
    ) -> ScriptInvocation<'_> {
        let (name, token, window) = match saying {
            Saying::Begin(new, _) => ("begin", new.token, self.window),
            Saying::Tell(record, window) => ("tell", record.token, *window),
            Saying::Forget(token) => ("forget", *token, self.window),
        };
        let mut call = self.script.key(key);
        call.key(epoch).arg(name).arg(shift);
        for time in [QUIET, self.lease, window] {
            call.arg(arg_of(time));
        }
        call.arg(token);
        let (record, over) = match saying {
            Saying::Begin(new, over) => (new, *over),
            Saying::Tell(record, _) => (record, None),
            Saying::Forget(_) => return call,
        };
        call.arg(record.digest.to_string()).arg(record.fate.name());
        let over = over.map(|token| token.to_string());
        call.arg(over.unwrap_or_default());
        call.arg(record.task.as_deref()); // may be missing, so that it is the last
        call
    }
}

type Wire = (
    u8,
    Millis,
    Millis,
    Option<u64>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<Millis>,
);

impl FromRedisValue for Found {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let (told, epoch, now, token, digest, fate, task, lease): Wire =
            FromRedisValue::from_redis_value(value)?;
        let record = match (token, digest, fate, lease) {
            (Some(token), Some(digest), Some(fate), Some(lease)) => {
                let digest = digest.parse();
                let record = Record {
                    token,
                    digest: digest.map_err(|_| "a digest that the script is not told")?,
                    fate: Fate::of_name(&fate).ok_or("a fate that the script is not told")?,
                    task: task.map(String::into_boxed_str),
                };
                Some(if lease <= now {
                    record.lapsed()
                } else {
                    record
                })
            }
            _ => None,
        };
        Ok(Self {
            told: Told::of(told)?,
            epoch,
            record,
        })
    }
}
