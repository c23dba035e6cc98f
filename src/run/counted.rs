//! What is counted where it happens, and read for metrics: connections, memory, the audit log, the state store.
use std::{collections::BTreeMap, time::SystemTime};

use super::Served;
use crate::{
    agent::{Address, Breaker, Status},
    audit::Usage,
    front::Front,
    reload,
    telemetry::{Telemetry, names},
    tls::{self, Expiry},
};

/// Tells telemetry where to read. The same is told again after a reload, of what is new then.
pub(super) fn read_by(telemetry: &Telemetry, of: &Served) {
    let counts = of.running.counts();
    telemetry.gauge(names::CONNECTIONS, {
        let counts = counts.clone();
        move || counts.connections() as u64
    });
    telemetry.gauge(names::CONNECTIONS_REFUSED, move || counts.refused());
    let draining = of.running.draining();
    telemetry.gauge(names::DRAINING, move || u64::from(draining.is_cancelled()));
    let followers = of.running.followers();
    telemetry.gauge(names::FOLLOWERS, move || followers() as u64);
    let budget = of.budget.clone();
    telemetry.gauge(names::BUFFERED, move || budget.used() as u64);
    let conversations = of.conversations.clone();
    telemetry.gauge(names::HELD, move || conversations.store().held() as u64);
    let conversations = of.conversations.clone();
    telemetry.gauge(names::STORE_UP, move || {
        u64::from(conversations.store().is_up())
    });
    of_tls(telemetry, of);
    of_agents(telemetry, &of.front);
    of_reloads(telemetry, of.reloads.status());
    if of.audit.is_on() {
        let audit = of.audit.clone();
        telemetry.reads(names::AUDIT_QUEUE, move |say| {
            if let Some(usage) = audit.usage() {
                say.count(&[], usage.taken as u64);
            }
        });
        let audit = of.audit.clone();
        telemetry.reads(names::AUDIT_RECORDS, move |say| {
            if let Some(usage) = audit.usage() {
                for (result, records) in records(&usage) {
                    say.count(&[result], records);
                }
            }
        });
    }
}

/// Certificates of both sides, and how clients come to terms with ours.
fn of_tls(telemetry: &Telemetry, of: &Served) {
    let (tls, front) = (of.tls.clone(), of.front.clone());
    telemetry.reads(names::CERTIFICATE_EXPIRY, move |say| {
        let own = tls.as_ref().map(tls::Server::ends);
        let shown = front.setup().certificate_of_agents();
        for all in [own, shown].into_iter().flatten() {
            for Expiry { setting, at } in &*all {
                say.seconds(&[setting], *at);
            }
        }
    });
    if of.tls.is_some() {
        let counts = of.running.counts();
        telemetry.reads(names::HANDSHAKES, move |say| {
            say.count(&["ok"], counts.handshakes());
            say.count(&["failed"], counts.handshakes_failed());
        });
    }
}

/// The addresses of the agents, as settings have them now.
fn of_agents(telemetry: &Telemetry, front: &Front) {
    type Number = fn(&Address) -> u64;
    type Both = fn(u64, u64) -> u64;
    let addresses: [(_, Number, Both); 4] = [
        (names::BACKEND_UP, |of| u64::from(of.up), u64::min),
        (
            names::BACKEND_CONNECTIONS,
            |of| of.connections as u64,
            u64::saturating_add,
        ),
        (
            names::BACKEND_WAITING,
            |of| of.waiting as u64,
            u64::saturating_add,
        ),
        (
            names::BACKEND_BREAKER,
            |of| u64::from(of.breaker == Breaker::Open),
            u64::max,
        ),
    ];
    for (name, number, both) in addresses {
        let front = front.clone();
        telemetry.reads(name, move |say| {
            let all = front.setup().backends().status();
            for (address, number) in by_address(&all, number, both) {
                say.count(&[address], number);
            }
        });
    }
    let front = front.clone();
    telemetry.gauge(names::BACKEND_RETRIES, move || {
        let all = front.setup().backends().status();
        all.iter().map(|status| status.retries).sum()
    });
}

/// One number for each address: two agents may be at one, and what is said of it twice is lost once.
fn by_address(
    all: &[Status],
    number: impl Fn(&Address) -> u64,
    both: impl Fn(u64, u64) -> u64,
) -> BTreeMap<&str, u64> {
    let mut said = BTreeMap::new();
    for address in all.iter().flat_map(|status| &status.addresses) {
        let number = number(address);
        said.entry(&*address.address)
            .and_modify(|before| *before = both(*before, number))
            .or_insert(number);
    }
    said
}

fn of_reloads(telemetry: &Telemetry, status: &reload::Status) {
    let now = status.clone();
    telemetry.reads(names::RELOADS, move |say| {
        let said = now.now();
        say.count(&["ok"], said.ok);
        say.count(&["failed"], said.failed);
    });
    let now = status.clone();
    telemetry.gauge(names::LAST_RELOAD, move || seconds(now.now().last_ok));
    let now = status.clone();
    telemetry.gauge(names::CONFIG_VALID, move || u64::from(now.now().valid));
}

const fn records(usage: &Usage) -> [(&'static str, u64); 3] {
    [
        ("written", usage.written),
        ("dropped", usage.dropped),
        ("refused", usage.refused),
    ]
}

/// Since 1970.
fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_agents_at_one_address_are_told_of_together() {
        let at = |address: &str, up, connections| Address {
            address: address.to_owned(),
            up,
            breaker: Breaker::Closed,
            connections,
            busy: 0,
            waiting: 0,
        };
        let of = |addresses| Status {
            addresses,
            retries: 0,
        };
        let all = [
            of(vec![at("a", true, 2), at("b", true, 1)]),
            of(vec![at("a", false, 3)]),
        ];
        let told = |number: fn(&Address) -> u64, both: fn(u64, u64) -> u64| {
            let all = by_address(&all, number, both);
            all.into_iter().collect::<Vec<_>>()
        };
        let connections = told(|of| of.connections as u64, u64::saturating_add);
        assert_eq!(connections, [("a", 5), ("b", 1)]);
        let up = told(|of| u64::from(of.up), u64::min);
        assert_eq!(up, [("a", 0), ("b", 1)]);
    }
}
