//! Rules as settings say them, with a clock that stands still until it is told to go on.
use std::time::Duration;

use tokio::time::advance;

use super::*;
use crate::{
    a2a::Kind,
    config::{Config, Overrides},
    state::counters::memory::Local,
};

const AGENT: &str = "backend: {url: 'http://agent'}\nroutes: [{path: '/w/{room}', backend: 'http://agent/{room}'}]\n";

fn limits(now: &str, rules: &str) -> Limits {
    let text = format!("{AGENT}limits:\n  rules: {rules}\n");
    let config = Config::parse(&text, Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let now: jiff::Zoned = now.parse().unwrap();
    let now = now.timestamp().as_microsecond().cast_unsigned();
    let local = Local::new(1000, 100);
    Limits::new(&config.limits, Counters::local(local), Clock::at(now))
}

const NOON: &str = "2026-05-05T12:00:00[UTC]";

fn caller(name: &str) -> Caller {
    Caller {
        name: name.into(),
        ..Caller::default()
    }
}

async fn asks(limits: &Limits, who: &str, op: Op, context: &str) -> Result<Box<Guard>, Fault> {
    let who = caller(who);
    let asked = Asked {
        caller: &who,
        op,
        dialect: "J10",
        context: Some(context),
        parameter: &|name| Some(format!("value of {name}")),
        bytes: 100,
    };
    limits
        .take(&asked)
        .await
        .map(|guard| guard.expect("a rule concerns it"))
}

/// Sends a message that reaches the agent and is answered.
async fn sends(limits: &Limits, who: &str) -> Result<(), Fault> {
    let mut guard = asks(limits, who, Op::Send, "c").await?;
    guard.goes_out();
    Ok(())
}

async fn op(limits: &Limits, who: &str, op: Op, context: &str) -> Result<(), Fault> {
    let mut guard = asks(limits, who, op, context).await?;
    guard.goes_out();
    Ok(())
}

async fn passed(seconds: u64) {
    advance(Duration::from_secs(seconds)).await;
}

fn fields(fault: &Fault) -> Vec<(&str, &str)> {
    let fields = fault.more.fields.iter();
    fields
        .map(|(n, v)| (n.as_str(), v.to_str().unwrap()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_which_rule_and_when_to_come_again() {
    let minute = "[{name: minute, key: [caller], rate: {limit: 2, per: 1m}}]";
    let limits = limits(NOON, minute);
    sends(&limits, "ann").await.unwrap();
    sends(&limits, "ann").await.unwrap();
    passed(10).await;
    let fault = sends(&limits, "ann").await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.retry_after),
        (Kind::RateLimited, Some(20))
    );
    let said = [
        ("ratelimit-policy", "\"minute\";q=2;w=60"),
        ("ratelimit", "\"minute\";r=0;t=20"),
    ];
    assert_eq!(fields(&fault), said);
    assert_eq!(fault.more.metadata, [("rule", "minute".to_owned())]);
    sends(&limits, "bob").await.unwrap();
    passed(20).await;
    sends(&limits, "ann").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_month_s_quota_ends_with_the_month_there() {
    let month = "[{name: m, key: [caller], quota: {limit: 1, per: month, time_zone: Asia/Tokyo}}]";
    let limits = limits("2026-02-28T23:59:58[Asia/Tokyo]", month);
    sends(&limits, "ann").await.unwrap();
    let fault = sends(&limits, "ann").await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.retry_after),
        (Kind::QuotaExceeded, Some(2))
    );
    let february = 28 * 24 * 3600;
    let policy = format!("\"m\";q=1;w={february}");
    assert_eq!(fields(&fault)[0], ("ratelimit-policy", policy.as_str()));
    passed(2).await;
    sends(&limits, "ann").await.unwrap();
    let fault = sends(&limits, "ann").await.unwrap_err();
    assert_eq!(fault.retry_after, Some(31 * 24 * 3600));
}

#[tokio::test(start_paused = true)]
async fn a_day_s_quota_lasts_as_long_as_that_day() {
    for (day, hours) in [("2026-03-29", 23), ("2026-03-30", 24), ("2026-10-25", 25)] {
        let rule =
            "[{name: d, key: [caller], quota: {limit: 1, per: day, time_zone: Europe/Berlin}}]";
        let limits = limits(&format!("{day}T00:00:00[Europe/Berlin]"), rule);
        sends(&limits, "ann").await.unwrap();
        passed(hours * 3600 - 1).await;
        let fault = sends(&limits, "ann").await.unwrap_err();
        assert_eq!(fault.retry_after, Some(1), "{day}");
        passed(1).await;
        sends(&limits, "ann").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_never_reached_the_agent_is_free() {
    let rules = "[{name: r, key: [caller], rate: {limit: 1, per: 1h}}, \
        {name: q, key: [caller], quota: {limit: 1, per: rolling 1h}}, \
        {name: b, key: [caller], quota: {of: request_bytes, limit: 100, per: day}}, \
        {name: c, key: [caller], concurrency: {limit: 1}}]";
    let limits = limits(NOON, rules);
    let unreachable = Fault::new(Kind::BackendUnreachable, "");
    for _ in 0..10 {
        drop(asks(&limits, "ann", Op::Send, "c").await.unwrap());
        let mut guard = asks(&limits, "ann", Op::Send, "c").await.unwrap();
        guard.goes_out();
        guard.failed(&unreachable, false);
        guard.failed(&unreachable, false); // once only
    }
    // What somebody answered, or what may have begun, is not.
    let mut guard = asks(&limits, "ann", Op::Send, "c").await.unwrap();
    guard.goes_out();
    guard.failed(&Fault::new(Kind::BackendTimeout, ""), false);
    drop(guard);
    let fault = sends(&limits, "ann").await.unwrap_err();
    assert_eq!(fault.kind, Kind::QuotaExceeded);
    let mut guard = asks(&limits, "bob", Op::Send, "c").await.unwrap();
    guard.goes_out();
    guard.failed(&Fault::new(Kind::TaskNotFound, ""), true);
    drop(guard);
    sends(&limits, "bob").await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_takes_nothing_of_the_other_rules() {
    let rules = "[{name: big, key: [caller], quota: {limit: 3, per: day}}, \
        {name: small, key: [context], quota: {limit: 1, per: day}}]";
    let limits = limits(NOON, rules);
    let send = async |context| {
        let mut guard = asks(&limits, "ann", Op::Send, context).await?;
        guard.goes_out();
        Ok::<_, Fault>(())
    };
    send("c1").await.unwrap();
    for _ in 0..10 {
        let fault = send("c1").await.unwrap_err();
        assert_eq!(fault.more.metadata, [("rule", "small".to_owned())]);
    }
    send("c2").await.unwrap();
    send("c3").await.unwrap();
    let fault = send("c4").await.unwrap_err();
    assert_eq!(fault.more.metadata, [("rule", "big".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn keys_hold_apart_what_they_name_and_nothing_else() {
    for (key, who, context, operation) in [
        ("global", false, false, false),
        ("tenant", false, false, false),
        ("dialect", false, false, false),
        ("route.room", false, false, false),
        ("caller", true, false, false),
        ("context", false, true, false),
        ("operation", false, false, true),
        ("caller, operation", true, false, true),
    ] {
        let rule = format!("[{{name: r, key: [{key}], rate: {{limit: 1, per: 1h}}}}]");
        let limits = limits(NOON, &rule);
        op(&limits, "ann", Op::Send, "c1").await.unwrap();
        op(&limits, "ann", Op::Send, "c1").await.unwrap_err();
        let free = op(&limits, "bob", Op::Send, "c1").await.is_ok();
        assert_eq!(free, who, "{key}");
        let free = op(&limits, "ann", Op::Send, "c2").await.is_ok();
        assert_eq!(free, context, "{key}");
        let free = op(&limits, "ann", Op::Get, "c1").await.is_ok();
        assert_eq!(free, operation, "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_of_ipv6_is_its_network() {
    let rule = "[{name: r, key: [caller], rate: {limit: 1, per: 1h}}]";
    let limits = limits(NOON, rule);
    for (address, admitted) in [
        ("peer:2001:db8::1", true),
        ("peer:2001:db8::2", false),
        ("peer:2001:db8:0:1::1", true),
        ("peer:192.0.2.1", true),
        ("peer:192.0.2.2", true),
        ("key:2001:db8::3", true),
    ] {
        assert_eq!(sends(&limits, address).await.is_ok(), admitted, "{address}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_concerns_what_it_matches() {
    let rules = "[{name: r, key: [caller], match: {operations: [message/send, GetTask]}, \
        rate: {limit: 1, per: 1h}}]";
    let limits = limits(NOON, rules);
    sends(&limits, "ann").await.unwrap();
    asks(&limits, "ann", Op::Get, "c")
        .await
        .map(drop)
        .unwrap_err();
    let who = caller("ann");
    let asked = Asked {
        caller: &who,
        op: Op::List,
        dialect: "R10",
        context: None,
        parameter: &|_| None,
        bytes: 0,
    };
    assert!(limits.take(&asked).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn bytes_and_seconds_are_charged_as_they_pass() {
    let rules = "[{name: b, key: [global], quota: {of: response_bytes, limit: 100KB, per: day}}, \
        {name: s, key: [global], quota: {of: stream_seconds, limit: 10, per: day}}]";
    let limits = limits(NOON, rules);
    let open = || asks(&limits, "ann", Op::Stream, "c");
    let mut first = open().await.unwrap();
    first.goes_out();
    passed(8).await;
    first.told(90_000);
    let mut second = open().await.unwrap();
    second.goes_out();
    passed(1).await;
    second.told(1);
    drop(second); // its second and its byte
    passed(1).await;
    let third = open().await;
    assert!(third.is_ok(), "9 seconds and 90,001 bytes");
    drop(third);
    first.told(1);
    let fault = open().await.map(drop).unwrap_err();
    assert_eq!(fault.more.metadata, [("rule", "s".to_owned())]);
    assert_eq!(fault.kind, Kind::QuotaExceeded);
    // Documents cost bytes alone.
    let mut document = asks(&limits, "ann", Op::Get, "c").await.unwrap();
    document.goes_out();
    document.told(20_000);
    drop(document);
    asks(&limits, "ann", Op::Get, "c")
        .await
        .map(drop)
        .unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn what_is_held_at_once_is_free_when_its_call_ends() {
    let rules = "[{name: sends, key: [caller], concurrency: {of: sends, limit: 2}}, \
        {name: streams, key: [caller], concurrency: {of: streams, limit: 1}}]";
    let limits = limits(NOON, rules);
    let take = async |op| {
        let mut guard = asks(&limits, "ann", op, "c").await?;
        guard.goes_out();
        Ok::<_, Fault>(guard)
    };
    let stream = take(Op::Stream).await.unwrap();
    let fault = take(Op::Subscribe).await.map(drop).unwrap_err();
    assert_eq!(
        (fault.kind, fault.retry_after),
        (Kind::RateLimited, Some(1))
    );
    let policy = (
        "ratelimit-policy",
        "\"streams\";q=1;qu=\"concurrent-requests\"",
    );
    assert_eq!(fields(&fault)[0], policy);
    let send = take(Op::Send).await.unwrap();
    take(Op::Send).await.map(drop).unwrap_err();
    drop(send);
    let _send = take(Op::Send).await.unwrap();
    drop(stream);
    take(Op::Subscribe).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn usage_is_told_by_key() {
    let rules = "[{name: r, key: [caller, context], rate: {limit: 60, per: 1m}}, \
        {name: q, key: [global], quota: {limit: 10, per: hour}}]";
    let limits = limits(NOON, rules);
    sends(&limits, "ann").await.unwrap();
    sends(&limits, "ann").await.unwrap();
    let mut usage = limits.usage(10).await.unwrap();
    usage.sort_by_key(|u| u.rule.clone());
    let [q, r] = &usage[..] else {
        panic!("{usage:?}")
    };
    assert_eq!(
        (q.key.as_str(), q.used, q.limit, q.resets),
        ("global", 2, Some(10), Some(3600))
    );
    assert_eq!(
        (r.key.as_str(), r.used, r.limit),
        ("caller=ann context=c", 2, Some(60))
    );
}

/// Two limits that count in one place, the second after the settings were changed.
fn changed(before: &str, after: &str) -> (Limits, Limits) {
    let first = limits(NOON, &format!("[{before}]"));
    let second = limits(NOON, &format!("[{after}]"));
    let (Limits(Some(ours)), Limits(Some(theirs))) = (first, second) else {
        panic!("both have a rule")
    };
    let (ours, mut theirs) = (
        Arc::into_inner(ours).unwrap(),
        Arc::into_inner(theirs).unwrap(),
    );
    let counters = Arc::new(Local::new(1000, 100));
    let ours = Inner {
        counters: Counters::of(counters.clone()),
        ..ours
    };
    theirs.counters = Counters::of(counters);
    (Limits(Some(Arc::new(ours))), Limits(Some(Arc::new(theirs))))
}

#[tokio::test(start_paused = true)]
async fn what_counts_something_else_is_another_count() {
    let rule = |key: &str, kind: &str| format!("{{name: r, key: [{key}], {kind}}}");
    let day = rule("context", "quota: {limit: 1, per: day}");
    for other in [
        rule("context", "quota: {limit: 1, per: month}"),
        rule("context", "quota: {limit: 1, per: hour}"),
        rule(
            "context",
            "quota: {limit: 1, per: day, time_zone: Asia/Tokyo}",
        ),
        rule(
            "context",
            "quota: {of: request_bytes, limit: 100, per: day}",
        ),
        rule("context", "quota: {limit: 1, per: rolling 1h}"),
        rule("context", "rate: {limit: 1, per: 1h}"),
        rule("caller", "quota: {limit: 1, per: day}"),
        rule("route.room", "quota: {limit: 1, per: day}"),
    ] {
        let (first, second) = changed(&day, &other);
        // All parts of keys have one value.
        op(&first, "value of room", Op::Send, "value of room")
            .await
            .unwrap();
        op(&first, "value of room", Op::Send, "value of room")
            .await
            .unwrap_err();
        let said = op(&second, "value of room", Op::Send, "value of room").await;
        assert!(said.is_ok(), "{other}");
    }
    for (before, after) in [("rolling 1h", "rolling 2h"), ("rolling 24h", "rolling 1h")] {
        let per = |per| rule("context", &format!("quota: {{limit: 1, per: {per}}}"));
        let (first, second) = changed(&per(before), &per(after));
        op(&first, "ann", Op::Send, "c").await.unwrap();
        op(&second, "ann", Op::Send, "c").await.unwrap();
    }
    // How much there is may change, and what was used stays.
    let (first, second) = changed(&day, &rule("context", "quota: {limit: 2, per: day}"));
    op(&first, "ann", Op::Send, "c").await.unwrap();
    op(&second, "ann", Op::Send, "c").await.unwrap();
    op(&second, "ann", Op::Send, "c").await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn made_up_callers_leave_room_for_those_who_are_known() {
    let rule = "[{name: r, key: [caller], rate: {limit: 1, per: 1h}}]";
    let limits = limits(NOON, rule); // of 1000 keys
    let mut admitted = 0;
    for n in 0..2_000 {
        let address = format!("peer:2001:db8:7:{n:x}::1"); // one /48
        admitted += u32::from(sends(&limits, &address).await.is_ok());
    }
    assert_eq!(
        admitted,
        32 + 1,
        "a sixteenth of a half, and the others together"
    );
    for n in 0..2_000 {
        let address = format!("peer:10.0.{}.{}", n / 256, n % 256);
        admitted += u32::from(sends(&limits, &address).await.is_ok());
    }
    assert_eq!(admitted, 500 + 1, "a half, and its others together");
    for n in 0..400 {
        let who = Caller {
            verified: true,
            ..caller(&format!("key:{n}"))
        };
        let asked = Asked {
            caller: &who,
            op: Op::Send,
            dialect: "J10",
            context: None,
            parameter: &|_| None,
            bytes: 1,
        };
        let mut guard = limits.take(&asked).await.unwrap().unwrap();
        guard.goes_out();
    }
}

/// What is worked out once for a caller, after a call by these rules.
async fn worked_out(limits: &Limits, ann: &Caller) -> (Key, usize) {
    let asked = Asked {
        caller: ann,
        op: Op::Send,
        dialect: "J10",
        context: None,
        parameter: &|_| None,
        bytes: 100,
    };
    limits.take(&asked).await.unwrap();
    let kept = ann.kept.limits.read();
    let (name, keys) = kept.as_ref().unwrap();
    (*name, keys.as_ptr().addr())
}

#[tokio::test(start_paused = true)]
async fn what_is_worked_out_for_a_caller_outlives_a_reload() {
    let minute = "[{name: minute, key: [caller], rate: {limit: 9, per: 1m}}]";
    let hour = "[{name: hour, key: [caller], rate: {limit: 9, per: 1h}}]";
    let ann = caller("ann");
    let first = worked_out(&limits(NOON, minute), &ann).await;
    assert_eq!(worked_out(&limits(NOON, minute), &ann).await, first);
    let (other, at) = worked_out(&limits(NOON, hour), &ann).await;
    assert_ne!(other, first.0);
    assert_eq!(worked_out(&limits(NOON, hour), &ann).await, (other, at));
}
