//! What is counted, and how it is named.
use std::{collections::BTreeSet, fs};

use a2a_gateway::telemetry::names::{Kind, METRICS};
use tokio::time::Instant;

use crate::{
    certificates::{self, OF_TLS},
    program::{self, Program},
    scrape::{ADMIN, Scrape, until_scraped},
    support::{
        agent::Agent,
        gateway::Gateway,
        place::Place,
        words::{self, ALL, J10},
    },
};

const CALLS: &str = "a2a_gateway_calls_total";

#[test]
fn the_scrape_is_the_table_and_nothing_else() {
    let place = Place::new();
    let agent = Agent::start();
    let gateway = place.gateway(agent.addr, "", ADMIN);
    let mut client = gateway.client();
    let (line, body) = J10.stream();
    client.send(line, "", &body);
    let mut call = agent.next();
    call.begin();
    call.event(&words::result(words::DONE));
    call.end();
    client.answer();
    client.ask("POST /", "content-type: text/plain\r\n", "no"); // a refusal
    client.send("POST /", "", &loses()); // a loss
    agent.next().json(&words::result(&words::wrapped()));
    assert_eq!(client.answer().status(), 200);
    let mut scrape = until_scraped(&gateway, CALLS, &[], 3.0);
    let with_tls = certificates::scraped();
    for name in OF_TLS {
        let of_tls = with_tls.types.get(name).cloned().unwrap();
        let before = scrape.types.insert(name.to_owned(), of_tls);
        assert_eq!(before, None, "{name} is there without TLS");
    }
    scrape.series.extend(with_tls.series);
    let there: BTreeSet<_> = scrape.types.keys().map(String::as_str).collect();
    let table: BTreeSet<_> = METRICS.iter().map(|m| m.scrape).collect();
    assert_eq!(there, table);
    for metric in METRICS {
        let kind = &scrape.types[metric.scrape];
        let expected = match metric.kind {
            Kind::Counter => "counter",
            Kind::UpDown | Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        assert_eq!(kind, expected, "{}", metric.name);
        let mut seen = 0;
        for (name, labels, _) in &scrape.series {
            let of_histogram = ["_bucket", "_sum", "_count"]
                .iter()
                .any(|end| name.strip_suffix(end) == Some(metric.scrape));
            if name != metric.scrape && !of_histogram {
                continue;
            }
            seen += 1;
            let names: BTreeSet<_> = labels.iter().map(|(n, _)| n.as_str()).collect();
            let mut expected: BTreeSet<_> = metric.labels.iter().copied().collect();
            if name.ends_with("_bucket") {
                expected.insert("le");
            }
            assert_eq!(names, expected, "{name}");
        }
        assert!(seen > 0, "{} has no series", metric.name);
    }
}

/// A v0.3 message with a member that v1.0 has no place for.
fn loses() -> String {
    let (_, body) = words::J03.send();
    body.replace(
        r#""kind":"message""#,
        r#""kind":"message","madeUpByTheCaller":{"a":1}"#,
    )
}

#[test]
fn calls_are_counted_by_what_they_are() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", ADMIN);
    for speak in ALL {
        let mut client = gateway.client();
        let (line, body) = speak.send();
        client.send(line, "", &body);
        agent.next().json(&words::result(&words::wrapped()));
        assert_eq!(client.answer().status(), 200);
        let (line, body) = speak.get();
        client.send(line, "", &body);
        agent.next().json(&words::result(words::TASK));
        client.answer();
    }
    let scrape = until_scraped(&gateway, CALLS, &[], 10.0);
    for method in ["SendMessage", "GetTask"] {
        for (client, count) in [
            ("v0.3-jsonrpc", 1.0),
            ("v0.3-rest", 2.0),
            ("v1.0-jsonrpc", 1.0),
            ("v1.0-rest", 1.0),
        ] {
            let labels = [
                ("route", "default"),
                ("method", method),
                ("client", client),
                ("outcome", "ok"),
            ];
            let counted = scrape.value(CALLS, &labels);
            assert!((counted - count).abs() < 1e-9, "{labels:?}: {counted}");
        }
        let took = scrape.value(
            "a2a_gateway_call_duration_seconds_count",
            &[("route", "default"), ("method", method)],
        );
        assert!((took - 5.0).abs() < 1e-9, "{method}: {took}");
    }
    let sent: usize = ALL.map(|s| s.send().1.len() + s.get().1.len()).iter().sum();
    let received = scrape.value("a2a_gateway_request_size_bytes_total", &[]);
    assert!((received - f64::from(u32::try_from(sent).unwrap())).abs() < 1e-9);
    assert!(scrape.value("a2a_gateway_response_size_bytes_total", &[]) > 500.0);
    assert!(agent.is_left_alone_now());
}

#[test]
fn what_came_of_calls_is_told_apart() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", ADMIN);
    let (line, body) = J10.send();
    let mut client = gateway.client();
    // By the caller's fault, told by the agent and by the gateway; by the agent's; by nobody's, who went.
    client.send(line, "", &body);
    agent
        .next()
        .json(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no such task"}}"#);
    client.answer();
    client.ask(
        "POST /",
        "",
        r#"{"jsonrpc":"2.0","id":1,"method":"Nonsense"}"#,
    );
    client.send(line, "", &body);
    agent.next().answer(500, "", "");
    client.answer();
    client.ask("GET /no/such/path", "", "");
    let mut leaver = gateway.client();
    let (line, body) = J10.get();
    leaver.send(line, "", &body);
    let call = agent.next();
    drop(leaver);
    let scrape = until_scraped(&gateway, CALLS, &[("outcome", "left")], 1.0);
    drop(call);
    for (method, outcome, count) in [
        ("SendMessage", "caller", 1.0),
        ("none", "caller", 2.0),
        ("SendMessage", "agent", 1.0),
        ("GetTask", "left", 1.0),
        ("SendMessage", "ok", 0.0),
    ] {
        let labels = [("method", method), ("outcome", outcome)];
        let counted = scrape.value(CALLS, &labels);
        assert!(
            (counted - count).abs() < 1e-9,
            "{labels:?}: {counted} {scrape:#?}"
        );
    }
    let refusals = "a2a_gateway_refusals_total";
    let unknown = scrape.value(refusals, &[("reason", "METHOD_NOT_FOUND"), ("rule", "")]);
    assert!((unknown - 2.0).abs() < 1e-9);
    let all = scrape.value(refusals, &[]);
    assert!(
        (all - 2.0).abs() < 1e-9,
        "what the agent refuses was let through"
    );
}

#[test]
fn refusals_name_the_rule() {
    let (agent, _) = Agent::always(|_| {
        let json = "content-type: application/json\r\n";
        crate::support::agent::answer(200, json, words::result(words::TASK))
    });
    let rule = "limits: {rules: [{name: few, key: [global], rate: {limit: 1, per: 1h}}]}\n";
    let gateway = Gateway::with(agent, "", &format!("{ADMIN}{rule}"));
    let (line, body) = J10.get();
    let mut client = gateway.client();
    for _ in 0..3 {
        client.ask(line, "", &body);
    }
    let labels = [("reason", "RATE_LIMITED"), ("rule", "few")];
    until_scraped(&gateway, "a2a_gateway_refusals_total", &labels, 2.0);
}

#[test]
fn streams_are_counted_while_they_live_and_their_events_as_they_come() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", ADMIN);
    let mut open = vec![];
    for speak in ALL {
        let (line, body) = speak.stream();
        let mut client = gateway.client();
        client.send(line, "", &body);
        let mut call = agent.next();
        call.begin();
        call.event(&words::result(words::WORKING));
        client.head();
        client.event().unwrap();
        open.push((client, call));
    }
    let streams = "a2a_gateway_streams";
    let scrape = until_scraped(&gateway, streams, &[("route", "default")], 5.0);
    let events = scrape.value("a2a_gateway_events_total", &[]);
    assert!((events - 5.0).abs() < 1e-9, "they are counted at once");
    let first = "a2a_gateway_time_to_first_event_seconds_count";
    assert!((scrape.value(first, &[]) - 5.0).abs() < 1e-9);
    assert!(scrape.value(CALLS, &[]).abs() < 1e-9, "none has ended");
    // Ends: well, by its agent, by its client.
    for (at, (mut client, mut call)) in open.into_iter().enumerate() {
        match at {
            0 => {
                call.event(&words::result(words::DONE));
                call.end();
                client.rest();
            }
            1 => {
                call.reset();
                client.rest();
            }
            _ => drop(client),
        }
    }
    until_scraped(&gateway, streams, &[], 0.0);
    until_scraped(&gateway, CALLS, &[], 5.0);
    let scrape = Scrape::of(&gateway);
    for (outcome, count) in [("ok", 1.0), ("agent", 1.0), ("left", 3.0)] {
        let counted = scrape.value(CALLS, &[("outcome", outcome)]);
        assert!((counted - count).abs() < 1e-9, "{outcome}: {counted}");
    }
    let events = scrape.value("a2a_gateway_events_total", &[]);
    assert!((events - 6.0).abs() < 1e-9);
    let firsts = scrape.value(first, &[]);
    assert!((firsts - 5.0).abs() < 1e-9, "the first of a stream alone");
}

#[test]
fn a_stream_that_is_read_on_without_its_client_is_not_live_and_takes_no_longer() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "follow_streams: true", ADMIN);
    let (line, body) = J10.stream();
    let begun = Instant::now();
    let mut client = gateway.client();
    client.send(line, "", &body);
    let mut call = agent.next();
    call.begin();
    call.event(&words::result(words::WORKING));
    client.head();
    client.event().unwrap();
    let streams = "a2a_gateway_streams";
    until_scraped(&gateway, streams, &[], 1.0);
    drop(client);
    let scrape = until_scraped(&gateway, streams, &[], 0.0);
    let seen = begun.elapsed().as_secs_f64();
    assert!(call.is_open(), "somebody reads on");
    assert!(scrape.value(CALLS, &[]).abs() < 1e-9, "it has not ended");
    call.event(&words::result(words::DONE));
    call.end();
    let scrape = until_scraped(&gateway, CALLS, &[("outcome", "left")], 1.0);
    assert!(scrape.value(streams, &[]).abs() < 1e-9, "it left once");
    let took = scrape.value("a2a_gateway_call_duration_seconds_sum", &[]);
    assert!(
        took <= seen,
        "its client was there for {seen} s, not {took}"
    );
}

#[test]
fn metrics_set_no_memory_aside_for_series_that_never_come() {
    let folder = tempfile::tempdir().unwrap();
    let agent = Agent::start();
    let resident = |more: &str| -> u64 {
        let yaml = program::settings(folder.path(), agent.addr, more);
        let program = Program::start(folder.path(), &yaml);
        let status = fs::read_to_string(format!("/proc/{}/status", program.id())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        let kib = line.unwrap().split_whitespace().next().unwrap();
        kib.parse::<u64>().unwrap() / 1024
    };
    let without = resident("telemetry: {metrics: {prometheus: false}}");
    let with = resident("");
    assert!(
        with < without + 16,
        "{with} MiB with metrics, {without} MiB without"
    );
}

#[test]
fn what_callers_make_up_is_one_label() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", ADMIN);
    let mut client = gateway.client();
    for number in 0..20 {
        let body = loses().replace("madeUpByTheCaller", &format!("madeUp{number}"));
        client.send("POST /", "", &body);
        agent.next().json(&words::result(&words::wrapped()));
        assert_eq!(client.answer().status(), 200);
    }
    let losses = "a2a_gateway_losses_total";
    let scrape = until_scraped(&gateway, losses, &[("path", "unknown")], 20.0);
    let paths = scrape.series.iter().filter(|(name, ..)| name == losses);
    for (_, labels, _) in paths {
        assert!(!labels[0].1.contains("madeUp"), "{labels:?}");
    }
}

#[test]
fn a_route_is_named_by_its_template() {
    let agent = Agent::start();
    let gateway = Gateway::of(&format!(
        "workers: 1\n{ADMIN}routes: [{{path: '/agents/{{id}}', backend: 'http://{}/{{id}}'}}]\n",
        agent.addr
    ));
    let mut client = gateway.client();
    for id in ["one", "two"] {
        let (_, body) = J10.get();
        client.send(&format!("POST /agents/{id}"), "", &body);
        agent.next().json(&words::result(words::TASK));
        assert_eq!(client.answer().status(), 200);
    }
    until_scraped(&gateway, CALLS, &[("route", "/agents/{id}")], 2.0);
}

#[test]
fn metrics_are_on_where_there_is_an_admin_address_and_can_be_switched_off() {
    let agent = Agent::start();
    assert!(
        !Gateway::with(agent.addr, "", "")
            .served()
            .telemetry
            .has_metrics()
    );
    let on = Gateway::with(agent.addr, "", ADMIN);
    assert!(on.served().telemetry.has_metrics());
    let off = "telemetry: {metrics: {prometheus: false}}\n";
    let off = Gateway::with(agent.addr, "", &format!("{ADMIN}{off}"));
    assert!(!off.served().telemetry.has_metrics());
    assert_eq!(off.ask_admin("GET /metrics", "").status(), 404);
}

#[test]
fn connections_and_the_drain_show() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", ADMIN);
    let mut client = gateway.client();
    client.ask("GET /no/such/path", "", "");
    let scrape = until_scraped(&gateway, "a2a_gateway_connections", &[], 1.0);
    assert!(scrape.value("a2a_gateway_draining", &[]).abs() < 1e-9);
    assert!((scrape.value("a2a_gateway_store_up", &[]) - 1.0).abs() < 1e-9);
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert!((scrape.value("a2a_gateway_build_info", &version) - 1.0).abs() < 1e-9);
    gateway.served().running.drain();
    until_scraped(&gateway, "a2a_gateway_draining", &[], 1.0);
}
