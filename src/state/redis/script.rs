//! The operations of a conversation in the store: what the Lua script (`slot.lua`) is told and what it answers. Those
//! of a message that may be sent again are in `message`.
use std::time::Duration;

use redis::{FromRedisValue, ParsingError, Script, ScriptInvocation, Value};
use serde::Deserialize;

use super::super::slot::{Asker, End, Entry, Holder, Mark, Millis, Newcomer, Phase, Times, millis};

mod counts;
mod message;

pub(super) use counts::{Counted, Counting, Counts, Doing};
pub(super) use message::{Found, Messages, Saying};

/// How long a store that lost its data admits nobody, while replicas put their slots back.
pub(super) const QUIET: Duration = Duration::from_secs(5);

/// One operation; what it means is said at [`Entry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Take(Option<Mark>, Wants),
    Free(Mark),
    GoesOn(Mark),
    Name(u64, Box<str>),
    Renew(u64),
    Settle(u64, End),
    /// Puts the holder back, who was taken so long ago; the last one is whether it may join others.
    Restore(Holder, Millis, bool),
    Release,
    Look,
}

/// A newcomer who waits in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wants {
    pub(super) token: u64,
    pub(super) asker: Asker,
    pub(super) task: Option<Box<str>>,
}

impl Wants {
    pub(super) fn as_newcomer(&self) -> Newcomer<'_> {
        Newcomer {
            token: self.token,
            asker: self.asker,
            task: self.task.as_deref(),
        }
    }
}

impl From<&Newcomer<'_>> for Wants {
    fn from(of: &Newcomer<'_>) -> Self {
        Self {
            token: of.token,
            asker: of.asker,
            task: of.task.map(Into::into),
        }
    }
}

/// What was said to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    No,
    Yes,
    /// The store has lost its data and admits nobody yet.
    Quiet,
}

impl Told {
    fn of(said: u8) -> Result<Self, ParsingError> {
        match said {
            0 => Ok(Self::No),
            1 => Ok(Self::Yes),
            2 => Ok(Self::Quiet),
            _ => Err("an answer that the script does not give".into()),
        }
    }
}

/// The script's answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) told: Told,
    /// When the store began, by itself; another one than before tells that it has lost its data.
    pub(super) epoch: Millis,
    /// The store's time.
    pub(super) now: Millis,
    /// The conversation afterwards.
    pub(super) entry: Entry,
}

/// The script, with all that is the same for each operation.
pub(super) struct Slots {
    script: Script,
    times: Times,
}

impl Slots {
    pub(super) fn new(times: Times) -> Self {
        let script = Script::new(concat!(include_str!("clock.lua"), include_str!("slot.lua")));
        Self { script, times }
    }

    /// One operation on the entry under this key. Tests shift the clock.
    pub(super) fn call(&self, key: &str, epoch: &str, op: &Op, shift: u64) -> ScriptInvocation<'_> {
        let mut call = self.script.key(key);
        call.key(epoch).arg(op.name()).arg(shift).arg(arg_of(QUIET));
        for time in [
            lease_of(&self.times),
            self.times.settle,
            self.times.max_hold,
        ] {
            call.arg(arg_of(time));
        }
        op.put(&mut call);
        call
    }
}

/// A store that many processes write to always has leases.
fn lease_of(times: &Times) -> Duration {
    times.lease.unwrap_or(times.max_hold)
}

/// As scripts count: what is longer is as long as they can tell.
fn arg_of(time: Duration) -> Millis {
    millis(time).min(Millis::MAX >> 12)
}

impl Op {
    const fn name(&self) -> &'static str {
        match self {
            Self::Take(None, _) => "take",
            Self::Take(Some(_), _) => "take_over",
            Self::Free(_) => "free",
            Self::GoesOn(..) => "goes_on",
            Self::Name(..) => "name",
            Self::Renew(_) => "renew",
            Self::Settle(..) => "settle",
            Self::Restore(..) => "restore",
            Self::Release => "release",
            Self::Look => "look",
        }
    }

    /// Its own arguments, in the script's order; one that may be missing is the last.
    fn put(&self, call: &mut ScriptInvocation<'_>) {
        let mark = |call: &mut ScriptInvocation<'_>, mark: &Mark| {
            call.arg(mark.token).arg(mark.generation);
        };
        let wants = |call: &mut ScriptInvocation<'_>, of: &Wants| {
            call.arg(of.token).arg(of.asker.0).arg(of.task.as_deref());
        };
        match self {
            Self::Take(over, of) => {
                if let Some(seen) = over {
                    mark(call, seen);
                }
                wants(call, of);
            }
            Self::Free(seen) | Self::GoesOn(seen) => mark(call, seen),
            Self::Name(token, task) => {
                call.arg(*token).arg(&**task);
            }
            Self::Renew(token) => {
                call.arg(*token);
            }
            Self::Settle(token, end) => {
                call.arg(*token);
                match end {
                    End::Free => call.arg("free"),
                    End::Held(task) => call.arg("held").arg(task.as_deref()),
                    End::Unknown => call.arg("unknown"),
                };
            }
            Self::Restore(holder, age, further) => {
                call.arg(holder.token).arg(u8::from(*further));
                call.arg(holder.asker.0).arg(holder.generation);
                call.arg(holder.phase.name()).arg(u8::from(holder.resumes));
                call.arg(*age).arg(holder.task.as_deref());
            }
            Self::Release | Self::Look => {}
        }
    }
}

impl FromRedisValue for Reply {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let (told, epoch, now, entry): (u8, Millis, Millis, String) =
            FromRedisValue::from_redis_value(value)?;
        Ok(Self {
            told: Told::of(told)?,
            epoch,
            now,
            entry: entry_of(&entry)?,
        })
    }
}

/// A holder as the script keeps it.
#[derive(Deserialize)]
struct Kept {
    token: String,
    generation: u32,
    phase: String,
    task: Option<Box<str>>,
    resumes: bool,
    asker: String,
    taken: Millis,
    settled: Millis,
    lease: Millis,
    ends: Millis,
}

fn entry_of(text: &str) -> Result<Entry, ParsingError> {
    if text.is_empty() {
        return Ok(Entry::default());
    }
    let kept: Vec<Kept> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let holders: Option<_> = kept.into_iter().map(holder_of).collect();
    match holders {
        Some(holders) => Ok(Entry { holders }),
        None => Err("a holder that the script does not write".into()),
    }
}

fn holder_of(kept: Kept) -> Option<Holder> {
    Some(Holder {
        token: kept.token.parse().ok()?,
        generation: kept.generation,
        phase: Phase::of_name(&kept.phase)?,
        task: kept.task,
        resumes: kept.resumes,
        asker: Asker(kept.asker.parse().ok()?),
        taken: kept.taken,
        settled: kept.settled,
        lease: kept.lease,
        until: kept.ends,
    })
}
