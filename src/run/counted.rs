//! What is counted where it happens, and read for metrics: connections, memory, the audit log, the state store.
use super::Served;
use crate::{
    audit::Usage,
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

fn records(usage: &Usage) -> [(&'static str, u64); 3] {
    let missed = usage.without_place + usage.beyond_share;
    let (dropped, refused) = if usage.refuses {
        (0, missed)
    } else {
        (missed, 0)
    };
    [
        ("written", usage.written),
        ("dropped", dropped),
        ("refused", refused),
    ]
}
