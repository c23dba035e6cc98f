//! Records of calls as a collector gets them, and what comes of one that is away.
use std::fs;

use a2a_gateway::audit::{Key, verify};
use serde_json::Value;

use crate::support::{
    agent::{self, Agent},
    client::Client,
    collector::{Collector, attribute, text},
    gateway::Gateway,
    place::Place,
    until,
    words::{self, J10},
};

fn gateway(place: &Place, agent: std::net::SocketAddr, to: &Collector, more: &str) -> Gateway {
    let section = place.section(&format!("otlp: true, flush: 10ms, {more}"));
    let to = to.endpoint();
    // All test clients have one address, which would have a quarter of the places.
    let rest = format!(
        "telemetry: {{otlp: {{endpoint: '{to}'}}}}\nhttp: {{trusted_proxies: [127.0.0.1]}}\n"
    );
    Gateway::with(agent, "", &format!("{section}{rest}"))
}

fn answering() -> std::net::SocketAddr {
    let (at, _) = Agent::always(|_| {
        let json = "content-type: application/json\r\n";
        agent::answer(200, json, words::result(words::TASK))
    });
    at
}

fn ask(client: &mut Client) -> u16 {
    let (line, body) = J10.get();
    client.ask(line, "", &body).status()
}

/// The lines that came, by number, each once; checkpoints are apart.
fn lines(collector: &Collector) -> (Vec<String>, Vec<Value>) {
    let (mut lines, mut checkpoints) = (std::collections::BTreeMap::new(), vec![]);
    for record in collector.logs() {
        let line = text(record.body.as_ref());
        let json: Value = serde_json::from_str(&line).unwrap();
        let kind = json["kind"].as_str().unwrap();
        assert_eq!(record.event_name, format!("a2a.audit.{kind}"));
        let seq = attribute(&record.attributes, "a2a.audit.seq").unwrap();
        assert_eq!(seq, json["seq"].to_string());
        assert!(record.time_unix_nano > 0);
        if kind == "checkpoint" {
            checkpoints.push(json);
        } else {
            lines.insert(json["seq"].as_u64().unwrap(), line);
        }
    }
    (lines.into_values().collect(), checkpoints)
}

fn in_files(place: &Place) -> Vec<String> {
    let files = place.files().into_iter();
    let texts = files.map(|file| fs::read_to_string(file).unwrap());
    let lines = texts.flat_map(|t| t.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.collect()
}

#[test]
fn the_collector_has_the_log_line_by_line_and_it_verifies() {
    let (place, collector) = (Place::new(), Collector::start());
    let gateway = gateway(&place, answering(), &collector, "checkpoint: 10ms");
    let mut client = gateway.client();
    for _ in 0..5 {
        assert_eq!(ask(&mut client), 200);
    }
    drop(client);
    let audit = gateway.served().audit.clone();
    until("all is written", || audit.usage().unwrap().taken == 0);
    assert!(audit.close(std::time::Duration::from_secs(5)));
    let (sent, checkpoints) = lines(&collector);
    assert_eq!(sent, in_files(&place));
    assert_eq!(sent.len(), 6, "the file's first line and five calls");
    assert_eq!(checkpoints.last().unwrap()["seq"], 6);
    let copy = place.0.path().join("copy.jsonl");
    fs::write(&copy, format!("{}\n", sent.join("\n"))).unwrap();
    let key = Key::read(&place.key_file()).unwrap();
    let report = verify::verify(&[copy], Some(&key), None).unwrap();
    assert!(report.is_good(), "{report}");
    assert_eq!(audit.usage().unwrap().written, 5);
}

#[test]
fn without_files_the_collector_is_the_log() {
    let collector = Collector::start();
    let place = Place::new();
    let gateway = Gateway::with(
        answering(),
        "",
        &format!(
            "audit: {{otlp: true, key_file: '{}', flush: 2ms}}\ntelemetry: {{otlp: {{endpoint: '{}'}}}}\n",
            place.key_file().display(),
            collector.endpoint()
        ),
    );
    assert_eq!(ask(&mut gateway.client()), 200);
    until("the record comes", || lines(&collector).0.len() == 2);
    assert!(lines(&collector).0[1].contains("GetTask"));
}

#[test]
fn while_the_collector_is_away_files_go_on_until_no_place_is_left() {
    let (place, collector) = (Place::new(), Collector::start());
    collector.says(503);
    let gateway = gateway(&place, answering(), &collector, "checkpoint: 0, queue: 4");
    let mut client = gateway.client();
    for _ in 0..4 {
        assert_eq!(ask(&mut client), 200);
    }
    let calls = || {
        in_files(&place)
            .iter()
            .filter(|l| l.contains("\"call\""))
            .count()
    };
    until("the files have them", || calls() == 4);
    assert_eq!(ask(&mut client), 503, "it cannot be recorded");
    assert_eq!(gateway.served().audit.usage().unwrap().taken, 4);
    collector.says(200);
    until("places come free", || ask(&mut client) == 200);
    until("all come", || {
        lines(&collector).0 == in_files(&place) && calls() >= 5
    });
    let (sent, _) = lines(&collector);
    let missed = sent.iter().filter(|l| l.contains("\"missed\""));
    assert!(missed.count() >= 1, "what was refused is told: {sent:#?}");
}

#[test]
fn or_calls_are_served_without_a_record() {
    let (place, collector) = (Place::new(), Collector::start());
    collector.says(401);
    let gateway = gateway(
        &place,
        answering(),
        &collector,
        "checkpoint: 0, queue: 4, on_full: drop",
    );
    let mut client = gateway.client();
    for _ in 0..8 {
        assert_eq!(ask(&mut client), 200);
    }
    let usage = gateway.served().audit.usage().unwrap();
    assert_eq!((usage.taken, usage.without_place, usage.written), (4, 4, 0));
}

#[test]
fn a_line_that_is_refused_for_ever_holds_up_no_other() {
    const BAD: &str = "\"status\":404";
    for status in [400, 413, 422] {
        let (place, collector) = (Place::new(), Collector::start());
        collector.refuses(BAD, status);
        collector.says(503); // so that lines come together
        let gateway = gateway(&place, answering(), &collector, "checkpoint: 0");
        let mut client = gateway.client();
        for n in 0..9 {
            if n % 4 == 1 {
                assert_eq!(client.ask("GET /no/such/path", "", "").status(), 404);
            } else {
                assert_eq!(ask(&mut client), 200);
            }
        }
        until("the files have them", || in_files(&place).len() == 10);
        collector.says(200);
        let audit = gateway.served().audit.clone();
        until("all places are free", || audit.usage().unwrap().taken == 0);
        let mut good = in_files(&place);
        good.retain(|line| !line.contains(BAD));
        assert_eq!(good.len(), 7 + 1, "and the file's first line");
        assert_eq!(lines(&collector).0, good);
        assert_eq!(ask(&mut client), 200);
        until("what follows comes", || lines(&collector).0.len() == 9);
    }
}
