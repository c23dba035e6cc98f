//! The agent card: cached, rewritten, and never a way around the gateway. And which agent a path belongs to.
use std::net::SocketAddr;

use crate::support::{agent::Agent, client::Answer, gateway::Gateway, words};

const CARD: &str = "GET /.well-known/agent-card.json";

pub(super) fn card(agent: SocketAddr) -> String {
    format!(
        r#"{{"name":"n","description":"d","version":"1","supportedInterfaces":[{{"url":"http://{agent}/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}],"capabilities":{{"streaming":true,"extendedAgentCard":true}},"defaultInputModes":["text"],"defaultOutputModes":["text"],"skills":[],"signatures":[{{"protected":"p","signature":"s"}}]}}"#
    )
}

fn urls(answer: &Answer) -> Vec<String> {
    let card = answer.json();
    let list = card["supportedInterfaces"].as_array().unwrap();
    list.iter()
        .map(|i| i["url"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_card_leads_to_the_gateway_only() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "public_url: https://agents.example/pub");
    for (version, old, new) in [("1.0", false, true), ("0.3", true, true), ("", true, true)] {
        let mut client = gateway.client();
        client.send(CARD, &format!("a2a-version: {version}\r\n"), "");
        if agent.seen() == 0 {
            let call = agent.next();
            assert!(call.asked.is("GET /.well-known/agent-card.json "));
            call.answer(
                200,
                "content-type: application/json\r\ncache-control: max-age=600\r\n",
                card(agent.addr),
            );
        }
        let answer = client.answer();
        assert_eq!(answer.status(), 200);
        assert!(!answer.body.contains(&agent.addr.to_string()));
        assert!(!answer.body.contains("signatures"));
        let card = answer.json();
        assert_eq!(card["url"].is_string(), old, "{version}");
        assert_eq!(card["supportedInterfaces"].is_array(), new, "{version}");
        assert!(
            urls(&answer)
                .iter()
                .all(|u| u == "https://agents.example/pub")
        );
        assert_eq!(answer.head.get("vary"), Some("A2A-Version"));
        assert_eq!(
            answer.head.get("cache-control"),
            Some("public, max-age=600")
        );
        // The same again by its tag, and by its head alone; also below the path of the public URL.
        let tag = answer.head.get("etag").unwrap();
        let fields = format!("a2a-version: {version}\r\nif-none-match: \"x\", W/{tag}\r\n");
        let same = client.ask(CARD, &fields, "");
        assert_eq!((same.status(), same.body.as_str()), (304, ""));
        assert_eq!(same.head.get("etag"), Some(tag));
        let fields = format!("a2a-version: {version}\r\n");
        client.send("HEAD /pub/.well-known/agent-card.json", &fields, "");
        let head = client.head();
        assert_eq!(head.status(), 200);
        let length = answer.body.len().to_string();
        assert_eq!(head.get("content-length"), Some(length.as_str()));
    }
    assert_eq!(agent.seen(), 1);
}

#[test]
fn without_a_public_url_a_card_names_the_host_that_was_used() {
    let (addr, _) = Agent::always(|asked| {
        let host: SocketAddr = asked.head.get("host").unwrap().parse().unwrap();
        crate::support::agent::answer(200, "", card(host))
    });
    let gateway = Gateway::before(addr);
    let ask = |fields: &str| gateway.ask(CARD, &format!("a2a-version: 1.0\r\n{fields}"), "");
    let answer = ask("host: here.example:81\r\n");
    assert_eq!(answer.head.get("cache-control"), Some("no-store"));
    assert!(urls(&answer).iter().all(|u| u == "http://here.example:81"));
    // Nobody is believed who is not trusted.
    let forwarded =
        "host: here.example\r\nx-forwarded-host: evil.example\r\nx-forwarded-proto: https\r\n";
    assert!(
        urls(&ask(forwarded))
            .iter()
            .all(|u| u == "http://here.example")
    );
    for evil in ["a@evil.example", "evil.example/x", "a\"b", "a b", "a,b", ""] {
        let answer = ask(&format!("host: {evil}\r\n"));
        assert_eq!(answer.status(), 400, "{evil}: {answer:?}");
    }
    let trusting = Gateway::with(addr, "", "http: {trusted_proxies: [127.0.0.0/8]}");
    let answer = trusting.ask(CARD, &format!("a2a-version: 1.0\r\n{forwarded}"), "");
    assert!(urls(&answer).iter().all(|u| u == "https://evil.example"));
}

#[test]
fn a_card_is_fetched_again_behind_its_readers_and_kept_while_the_agent_is_away() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "card: {max_age: 1ms, stale: 1h}");
    let mut client = gateway.client();
    client.send(CARD, "", "");
    let call = agent.next();
    assert_eq!(call.asked.head.get("if-none-match"), None);
    let first = card(agent.addr);
    call.answer(200, "etag: \"one\"\r\n", &first);
    assert!(client.answer().body.contains(r#""name":"n""#));

    // Stale by now: the old one is served at once, and the agent is asked.
    let mut refresh = || {
        let start = tokio::time::Instant::now();
        loop {
            let answer = client.ask(CARD, "", "");
            assert_eq!(answer.status(), 200);
            if !agent.is_left_alone_now() {
                return (agent.next(), answer.body);
            }
            assert!(start.elapsed() < crate::support::PATIENCE, "never asked");
        }
    };
    let (call, _) = refresh();
    assert_eq!(call.asked.head.get("if-none-match"), Some("\"one\""));
    call.answer(304, "", "");
    let (call, body) = refresh();
    assert!(body.contains(r#""name":"n""#));
    call.answer(200, "etag: \"two\"\r\n", first.replace("\"n\"", "\"n2\""));
    let (call, body) = refresh();
    assert!(body.contains(r#""name":"n2""#));
    // What is no card takes no good one's place.
    call.answer(200, "etag: \"bad\"\r\n", "<html>");
    let (call, body) = refresh();
    assert!(body.contains(r#""name":"n2""#));
    assert_eq!(call.asked.head.get("if-none-match"), Some("\"two\""));
    drop(call);
    drop(agent);
    assert!(client.ask(CARD, "", "").body.contains(r#""name":"n2""#));
}

#[test]
fn an_agent_that_is_away_for_too_long_has_no_card() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "card: {max_age: 1ms, stale: 1ms}");
    let mut client = gateway.client();
    client.send(CARD, "", "");
    agent.next().answer(200, "", card(agent.addr));
    assert_eq!(client.answer().status(), 200);
    let start = tokio::time::Instant::now();
    while client.ask_refusing(&agent, CARD) != 502 {
        assert!(start.elapsed() < crate::support::PATIENCE);
    }
}

#[test]
fn a_card_that_is_not_there_is_told_so() {
    let agent = Agent::start();
    let gateway = Gateway::with(agent.addr, "", "dialects: {agent_json: true}");
    for (status, told) in [(404, 404), (500, 502), (401, 502)] {
        let mut client = gateway.client();
        client.send("GET /.well-known/agent.json", "", "");
        let call = agent.next();
        assert!(call.asked.is("GET /.well-known/agent-card.json "));
        call.answer(status, "content-type: text/html\r\n", "<html>");
        let answer = client.answer();
        assert_eq!(answer.status(), told);
        assert!(!answer.body.contains("html"));
    }
    let closed = Gateway::before(agent.addr);
    assert_eq!(
        closed.ask("GET /.well-known/agent.json", "", "").status(),
        404
    );
    assert_eq!(
        closed
            .ask("POST /.well-known/agent-card.json", "", "")
            .status(),
        405
    );
    assert!(agent.is_left_alone());
}

/// One agent at the root, the other behind a route with parameters.
fn with_a_route(one: &Agent, two: &Agent) -> Gateway {
    Gateway::of(&format!(
        "public_url: https://agents.example
backend: {{url: 'http://{}/one', binding: rest}}
routes:
  - {{path: '/ws/{{w}}/agents/{{a}}/a2a', backend: 'http://{}/x/{{a}}/of/{{w}}'}}",
        one.addr, two.addr
    ))
}

#[test]
fn routes_lead_to_their_agents() {
    let (one, two) = (Agent::start(), Agent::start());
    let gateway = with_a_route(&one, &two);
    let base = "/ws/w%201/agents/a1/a2a";
    let mut client = gateway.client();
    client.send(&format!("GET {base}/tasks/t%2F1?historyLength=2"), "", "");
    assert_eq!(client.answer().status(), 400); // an id that is two segments to somebody
    client.send(&format!("GET {base}/tasks/t1?historyLength=2"), "", "");
    let call = two.next();
    assert!(
        call.asked
            .is("GET /x/a1/of/w%201/tasks/t1?historyLength=2 "),
        "{}",
        call.asked.head.line
    );
    call.json(words::TASK);
    assert_eq!(client.answer().status(), 200);
    client.send("GET /tasks/t1", "", "");
    let call = one.next();
    assert!(call.asked.is("GET /one/tasks/t1 "));
    call.json(words::TASK);
    assert_eq!(client.answer().status(), 200);

    client.send(
        &format!("GET {base}/.well-known/agent-card.json"),
        "a2a-version: 1.0\r\n",
        "",
    );
    let call = two.next();
    assert!(
        call.asked
            .is("GET /x/a1/of/w%201/.well-known/agent-card.json ")
    );
    call.answer(404, "", "");
    let call = two.next();
    assert!(call.asked.is("GET /.well-known/agent-card.json "));
    call.answer(200, "", card(two.addr));
    let answer = client.answer();
    let wanted = format!("https://agents.example{base}");
    assert!(urls(&answer).iter().all(|u| *u == wanted), "{answer:?}");
}

#[test]
fn no_parameter_and_no_id_leaves_its_place() {
    let (one, two) = (Agent::start(), Agent::start());
    let gateway = with_a_route(&one, &two);
    let base = "/ws/w1/agents/a1/a2a";
    for evil in [
        "..", ".", "%2e%2e", "a%2Fb", "a%5Cb", "a%3Fb", "a%23b", "a%252Fb", "a%00", "",
    ] {
        for path in [
            format!("/ws/{evil}/agents/a1/a2a/tasks/t1"),
            format!("/ws/w1/agents/{evil}/a2a/tasks/t1"),
        ] {
            assert_eq!(
                gateway.ask(&format!("GET {path}"), "", "").status(),
                404,
                "{path}"
            );
        }
    }
    for evil in ["..", "%2e%2e", "a%2Fb", "."] {
        let answer = gateway.ask(&format!("GET {base}/tasks/{evil}"), "", "");
        assert!(matches!(answer.status(), 400 | 404), "{evil}");
    }
    assert!(one.is_left_alone() && two.is_left_alone());
}
