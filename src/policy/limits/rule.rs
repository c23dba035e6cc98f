//! One rule: which calls it concerns, what each takes of it, and under which key.
use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
    net::Ipv6Addr,
};

use jiff::tz::TimeZone;
use smallvec::SmallVec;

use super::{Asked, window::Calendar};
use crate::{
    a2a::Op,
    config::{self, AtOnce, Of, Part, Per},
    policy::caller::Caller,
    state::{
        Key,
        counters::{Ask, By, Micros, PARTS, What},
    },
};

/// A rule, ready for use.
pub(super) struct Rule {
    pub(super) name: String,
    key: Vec<Part>,
    /// None is all.
    operations: Vec<Op>,
    kind: Kind,
    /// Whether callers choose a part of its keys.
    chosen: bool,
    /// Whether a caller's name is a part of its keys.
    named: bool,
    /// All that says what its counts mean: what differs in it is another count.
    stem: Key,
    /// The same, which all its keys begin with.
    first: String,
}

pub(super) enum Kind {
    Rate {
        interval: Micros,
        tolerance: Micros,
        limit: u64,
        per: Micros,
    },
    Quota {
        of: Of,
        limit: u64,
        window: Window,
    },
    AtOnce {
        of: AtOnce,
        limit: u32,
    },
}

pub(super) enum Window {
    Calendar(Calendar),
    /// In parts of this length.
    Rolling(Micros),
}

impl Rule {
    /// Of settings that were checked.
    pub(super) fn new(said: &config::Rule) -> Self {
        let operations = said.matching.operations.iter();
        let kind = Kind::new(said);
        let choose = |part: &Part| matches!(part, Part::Context | Part::Route(_));
        let stem = stem(said, &kind);
        Self {
            first: stem.to_string(),
            stem,
            name: said.name.clone(),
            operations: operations.filter_map(|name| Op::named(name)).collect(),
            chosen: said.key.iter().any(choose),
            named: said.key.contains(&Part::Caller),
            key: said.key.clone(),
            kind,
        }
    }

    /// All that its keys have of the rule, as text.
    pub(super) fn stem(&self) -> String {
        self.first.clone()
    }

    /// The key of all calls of a caller, if nothing of it depends on the call.
    pub(super) fn own_key(&self, caller: &Caller) -> Option<Key> {
        let who = who(caller);
        let mut parts: SmallVec<[&str; 8]> = SmallVec::new();
        parts.push(&self.first);
        for part in &self.key {
            parts.push(match part {
                Part::Caller => &who,
                Part::Tenant => caller.tenant.as_deref().unwrap_or_default(),
                Part::Global => "",
                Part::Context | Part::Operation | Part::Dialect | Part::Route(_) => return None,
            });
        }
        Some(Key::of(&parts))
    }

    /// What a call takes of it, if it concerns the call. `known` is its key, if that is known.
    pub(super) fn ask(
        &self,
        number: usize,
        known: Option<Key>,
        asked: &Asked<'_>,
        now: Micros,
    ) -> Option<Ask> {
        if !self.operations.is_empty() && !self.operations.contains(&asked.op) {
            return None;
        }
        let what = self.kind.what(asked, now)?;
        Some(Ask {
            key: known.unwrap_or_else(|| self.key_of(asked)),
            rule: u8::try_from(number).unwrap_or(u8::MAX),
            stem: self.stem,
            by: self.by(asked.caller),
            chosen: self.chosen,
            what,
        })
    }

    /// What is known only later of what a call takes: the same count, at this time.
    pub(super) fn later(&self, of: Of, cost: u64, now: Micros) -> Option<What> {
        match &self.kind {
            Kind::Quota {
                of: counted,
                limit,
                window,
            } if *counted == of => Some(window.what(*limit, cost, now)),
            Kind::Rate { .. } | Kind::Quota { .. } | Kind::AtOnce { .. } => None,
        }
    }

    /// Who could have made its keys up.
    fn by(&self, caller: &Caller) -> By {
        if caller.verified {
            return if self.chosen {
                By::known(digest(&caller.name))
            } else {
                By::NOBODY
            };
        }
        if !self.chosen && !self.named {
            return By::NOBODY;
        }
        By::anybody(match network(caller, 48) {
            Some(site) => Some(digest(&site)),
            None => self.chosen.then(|| digest(&caller.name)),
        })
    }

    fn key_of(&self, asked: &Asked<'_>) -> Key {
        let mut owned: SmallVec<[String; 2]> = SmallVec::new();
        for part in &self.key {
            if let Part::Route(name) = part {
                owned.push((asked.parameter)(name).unwrap_or_default());
            }
        }
        let who = who(asked.caller);
        let mut parameters = owned.iter();
        let mut parts: SmallVec<[&str; 8]> = SmallVec::new();
        parts.push(&self.first);
        for part in &self.key {
            parts.push(match part {
                Part::Caller => &who,
                Part::Tenant => asked.caller.tenant.as_deref().unwrap_or_default(),
                Part::Context => asked.context.unwrap_or_default(),
                Part::Operation => asked.op.name(),
                Part::Dialect => asked.dialect,
                Part::Global => "",
                Part::Route(_) => parameters.next().map_or("", String::as_str),
            });
        }
        Key::of(&parts)
    }

    /// What the key of a call stands for, for a person.
    pub(super) fn shown(&self, asked: &Asked<'_>) -> String {
        let one = |part: &Part| {
            let value = match part {
                Part::Caller => who(asked.caller).into_owned(),
                Part::Tenant => asked
                    .caller
                    .tenant
                    .as_deref()
                    .unwrap_or_default()
                    .to_owned(),
                Part::Context => asked.context.unwrap_or_default().to_owned(),
                Part::Operation => asked.op.name().to_owned(),
                Part::Dialect => asked.dialect.to_owned(),
                Part::Global => return "global".to_owned(),
                Part::Route(name) => (asked.parameter)(name).unwrap_or_default(),
            };
            format!("{part}={value}")
        };
        let all: Vec<String> = self.key.iter().map(one).collect();
        all.join(" ")
    }

    /// Whether this stem is its own.
    pub(super) fn is(&self, stem: Key) -> bool {
        self.stem == stem
    }

    /// How much there is of it.
    pub(super) const fn limit(&self) -> u64 {
        match &self.kind {
            Kind::Rate { limit, .. } | Kind::Quota { limit, .. } => *limit,
            Kind::AtOnce { limit, .. } => *limit as u64,
        }
    }

    /// What was used, in its own unit.
    pub(super) const fn used(&self, counted: u64) -> u64 {
        match &self.kind {
            Kind::Rate { interval, .. } => counted.div_ceil(*interval),
            Kind::Quota { .. } | Kind::AtOnce { .. } => counted,
        }
    }

    pub(super) const fn kind(&self) -> &Kind {
        &self.kind
    }
}

impl Kind {
    fn new(said: &config::Rule) -> Self {
        if let Some(rate) = &said.rate {
            let per = micros(rate.per);
            let limit = u64::from(rate.limit.max(1));
            let burst = if rate.burst == 0 {
                rate.limit
            } else {
                rate.burst
            };
            // Rounded up: never more often than settings say.
            let interval = per.div_ceil(limit).max(1);
            return Self::Rate {
                interval,
                tolerance: interval.saturating_mul(u64::from(burst.max(1)) - 1),
                limit,
                per,
            };
        }
        if let Some(quota) = &said.quota {
            let zone = TimeZone::get(&quota.time_zone).unwrap_or(TimeZone::UTC);
            return Self::Quota {
                of: quota.of,
                limit: quota.limit as u64,
                window: match quota.per {
                    Per::Rolling(time) => Window::Rolling(micros(time).div_ceil(PARTS)),
                    per @ (Per::Hour | Per::Day | Per::Month) => {
                        Window::Calendar(Calendar::new(per, zone))
                    }
                },
            };
        }
        let at_once = said.concurrency.clone().unwrap_or_default();
        Self::AtOnce {
            of: at_once.of,
            limit: at_once.limit,
        }
    }

    /// What a call takes, if it takes anything of this.
    fn what(&self, asked: &Asked<'_>, now: Micros) -> Option<What> {
        match self {
            Self::Rate {
                interval,
                tolerance,
                ..
            } => Some(What::Rate {
                interval: *interval,
                tolerance: *tolerance,
            }),
            Self::Quota { of, limit, window } => {
                let (counts, cost) = match of {
                    Of::Messages => (asked.op.sends(), 1),
                    Of::RequestBytes => (asked.bytes > 0, asked.bytes as u64),
                    Of::ResponseBytes => (true, 0),
                    Of::StreamSeconds => (asked.op.streams(), 0),
                };
                counts.then(|| window.what(*limit, cost, now))
            }
            Self::AtOnce { of, limit } => {
                let counts = match of {
                    AtOnce::Sends => asked.op.sends(),
                    AtOnce::Streams => asked.op.streams(),
                };
                counts.then_some(What::AtOnce { limit: *limit })
            }
        }
    }
}

impl Window {
    fn what(&self, limit: u64, cost: u64, now: Micros) -> What {
        match self {
            Self::Calendar(calendar) => What::Window {
                until: calendar.until(now),
                limit,
                cost,
            },
            Self::Rolling(part) => What::Rolling {
                part: *part,
                limit,
                cost,
            },
        }
    }

    /// How long it is.
    pub(super) fn length(&self) -> Micros {
        match self {
            Self::Calendar(calendar) => calendar.length(),
            Self::Rolling(part) => part * PARTS,
        }
    }
}

/// All that gives a count its meaning: the rule, what it counts and how, and which parts its keys have. How much there
/// is of it may change.
fn stem(said: &config::Rule, kind: &Kind) -> Key {
    let counts = match kind {
        // Its word is a time, and what that means in calls goes by its interval.
        Kind::Rate { interval, .. } => format!("rate {interval}"),
        Kind::Quota { of, window, .. } => {
            let quota = said.quota.clone().unwrap_or_default();
            let per = String::from(quota.per);
            match window {
                Window::Calendar(_) => format!("quota {of:?} {per} {}", quota.time_zone),
                Window::Rolling(_) => format!("quota {of:?} {per}"),
            }
        }
        Kind::AtOnce { of, .. } => format!("at once {of:?}"),
    };
    let parts: Vec<String> = said.key.iter().map(ToString::to_string).collect();
    let mut all = vec!["limit", &said.name, &counts];
    all.extend(parts.iter().map(String::as_str));
    Key::of(&all)
}

/// The caller's name. One that is known by its address alone has a whole /64 of IPv6, and can have as many names.
fn who(caller: &Caller) -> Cow<'_, str> {
    network(caller, 64).map_or(Cow::Borrowed(&*caller.name), Cow::Owned)
}

/// The network of so many bits that a caller is of who is known by its address of IPv6 alone.
fn network(caller: &Caller, bits: u8) -> Option<String> {
    let address = caller.name.strip_prefix("peer:")?;
    let address: Ipv6Addr = address.parse().ok()?;
    let rest = 128 - bits;
    let network = Ipv6Addr::from(address.to_bits() >> rest << rest);
    Some(format!("peer:{network}/{bits}"))
}

fn digest(name: &str) -> u32 {
    let mut hash = DefaultHasher::new();
    name.hash(&mut hash);
    u32::try_from(hash.finish() >> 32).unwrap_or(u32::MAX)
}

fn micros(time: std::time::Duration) -> Micros {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX >> 12)
}
