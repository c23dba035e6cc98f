//! How callers call: which version, binding and operations each used last, and what of old. It says whom to talk to
//! before v0.3 is switched off. Nothing is noted where nobody can read it.
use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use super::caller::Caller;
use crate::a2a::{Binding, Dialect, Op, Version, op::OPS, shape::old::Old};

/// At least half as many callers are remembered; beyond, those go that have not called for longest.
const MOST: usize = 10_000;

/// When something was last used, in seconds since 1970; 0 is never.
type Last = u32;

/// What all callers use. Shared by all workers.
#[derive(Clone, Default)]
pub struct Callers(Option<Arc<Mutex<Known>>>);

/// Two halves: when the young one is full it becomes the old one.
#[derive(Default)]
struct Known {
    young: HashMap<Arc<str>, Use>,
    old: HashMap<Arc<str>, Use>,
}

/// What one caller uses.
#[derive(Clone, Debug, Default)]
pub struct Use {
    /// Whom it belongs to.
    pub tenant: Option<Arc<str>>,
    /// By version, binding and operation.
    used: [[[Last; OPS.len()]; 2]; 2],
    old: [Last; Old::ALL],
}

const VERSIONS: [Version; 2] = [Version::V03, Version::V10];
const BINDINGS: [(Binding, &str); 2] = [(Binding::Rpc, "JSONRPC"), (Binding::Rest, "HTTP+JSON")];

impl Callers {
    /// None yet. Switched off, it notes nothing.
    pub fn new(on: bool) -> Self {
        Self(on.then(Arc::default))
    }

    /// Whether anything is noted.
    pub fn on(&self) -> bool {
        self.0.is_some()
    }

    /// A call.
    pub fn note(&self, caller: &Caller, dialect: Dialect, op: Op, old: Old, now: i64) {
        let Some(known) = &self.0 else { return };
        let now = Last::try_from(now).unwrap_or(Last::MAX);
        let mut known = known.lock();
        match known.young.get_mut(&caller.name) {
            Some(used) => used.note(dialect, op, old, now),
            None => known.of(caller).note(dialect, op, old, now),
        }
    }

    /// At most so many, who called last first.
    pub fn list(&self, most: usize) -> Vec<(Arc<str>, Use)> {
        let Some(known) = &self.0 else { return vec![] };
        let mut all: Vec<_> = {
            let known = known.lock();
            let all = known.young.iter().chain(&known.old);
            all.map(|(name, used)| (name.clone(), used.clone()))
                .collect()
        };
        all.sort_by_key(|(_, used)| std::cmp::Reverse(used.last()));
        all.truncate(most);
        all
    }
}

impl Known {
    /// One that is not among the young.
    fn of(&mut self, caller: &Caller) -> &mut Use {
        let before = self.old.remove(&caller.name);
        if self.young.len() >= MOST / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        let used = before.unwrap_or_else(|| Use {
            tenant: caller.tenant.clone(),
            ..Use::default()
        });
        self.young.entry(caller.name.clone()).or_insert(used)
    }
}

impl Use {
    fn note(&mut self, dialect: Dialect, op: Op, old: Old, now: Last) {
        let version = VERSIONS.iter().position(|v| *v == dialect.shape.version());
        let binding = BINDINGS.iter().position(|(b, _)| *b == dialect.binding);
        let op = OPS.iter().position(|row| row.op == op);
        if let (Some(version), Some(binding), Some(op)) = (version, binding, op) {
            self.used[version][binding][op] = now;
        }
        for (at, _) in old.each() {
            self.old[at] = now;
        }
    }

    /// When it called last.
    pub fn last(&self) -> Last {
        self.used
            .iter()
            .flatten()
            .flatten()
            .copied()
            .max()
            .unwrap_or(0)
    }

    /// Version, binding, operation and time of all that was used.
    pub fn used(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str, Last)> {
        let versions = VERSIONS.iter().zip(&self.used);
        versions.flat_map(|(version, by_binding)| {
            let bindings = BINDINGS.iter().zip(by_binding);
            bindings.flat_map(|((_, binding), by_op)| {
                let used = OPS.iter().zip(by_op).filter(|(_, last)| **last > 0);
                used.map(|(row, last)| (version.name(), *binding, row.v10.rpc, *last))
            })
        })
    }

    /// What of old was used, and when.
    pub fn old(&self) -> impl Iterator<Item = (&'static str, Last)> {
        let all = Old::all().map(|(at, name)| (name, self.old[at]));
        all.filter(|(_, last)| *last > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Caller {
        Caller {
            name: name.into(),
            ..Caller::default()
        }
    }

    #[test]
    fn the_last_of_each_is_known() {
        let callers = Callers::new(true);
        let (ann, bob) = (named("ann"), named("bob"));
        callers.note(&ann, Dialect::J03, Op::Send, Old::default(), 5);
        callers.note(&ann, Dialect::J03, Op::Send, Old::default(), 7);
        callers.note(&bob, Dialect::R10, Op::Get, Old::BLOCKING, 6);
        callers.note(&ann, Dialect::R10, Op::Stream, Old::default(), 6);
        let all = callers.list(10);
        let names: Vec<_> = all.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["ann", "bob"]);
        let used: Vec<_> = all[0].1.used().collect();
        assert_eq!(
            used,
            [
                ("0.3", "JSONRPC", "SendMessage", 7),
                ("1.0", "HTTP+JSON", "SendStreamingMessage", 6)
            ]
        );
        assert_eq!(all[0].1.old().count(), 0);
        let old: Vec<_> = all[1].1.old().collect();
        assert_eq!(old, [("configuration.blocking", 6)]);
        assert_eq!(callers.list(1).len(), 1);
    }

    #[test]
    fn their_number_is_bounded_and_the_latest_stay() {
        let callers = Callers::new(true);
        for n in 0..3 * MOST {
            let now = i64::try_from(n).unwrap();
            callers.note(
                &named(&n.to_string()),
                Dialect::J10,
                Op::Get,
                Old::default(),
                now,
            );
        }
        let all = callers.list(usize::MAX);
        assert!(all.len() <= MOST && all.len() >= MOST / 2, "{}", all.len());
        assert_eq!(*all[0].0, *(3 * MOST - 1).to_string());
        let off = Callers::new(false);
        off.note(&named("a"), Dialect::J10, Op::Get, Old::default(), 1);
        assert!(off.list(1).is_empty());
    }
}
