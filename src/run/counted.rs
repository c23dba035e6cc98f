//! What is counted where it happens, and read for metrics: connections, memory, the audit log, the state store.
use std::time::SystemTime;

use super::Served;
use crate::{
    agent::{Address, Breaker},
    audit::Usage,
    front::Front,
    reload,
    telemetry::{Telemetry, names},
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

/// The addresses of the agents, as settings have them now.
fn of_agents(telemetry: &Telemetry, front: &Front) {
    type Number = fn(&Address) -> u64;
    let addresses: [(_, Number); 4] = [
        (names::BACKEND_UP, |of| u64::from(of.up)),
        (names::BACKEND_CONNECTIONS, |of| of.connections as u64),
        (names::BACKEND_WAITING, |of| of.waiting as u64),
        (names::BACKEND_BREAKER, |of| {
            u64::from(of.breaker == Breaker::Open)
        }),
    ];
    for (name, number) in addresses {
        let front = front.clone();
        telemetry.reads(name, move |say| {
            for status in front.setup().backends().status() {
                for address in &status.addresses {
                    say.count(&[&address.address], number(address));
                }
            }
        });
    }
    let front = front.clone();
    telemetry.gauge(names::BACKEND_RETRIES, move || {
        let all = front.setup().backends().status();
        all.iter().map(|status| status.retries).sum()
    });
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
