//! Every way that a call can go, in every dialect: what its record says, member by member.
use serde_json::{Map, Value, json};

use crate::{
    place::Place,
    support::{
        agent::{Agent, Asked, answer},
        gateway::Gateway,
        keys::{api_key, file, item, keys_way},
        message::Message,
        words::{self, ALL, J03, J10, R10, Speak},
    },
};

const KEY: &str = "a-key-of-a-caller-51a7";

/// Members that all records have.
const ALWAYS: [&str; 12] = [
    "seq", "kind", "time", "id", "peer", "caller", "decision", "bytes", "events", "losses",
    "micros", "link",
];

/// One house for one dialect, and what its records are to say.
struct Table {
    speak: Speak,
    agent: Agent,
    gateway: Gateway,
    expected: Vec<(&'static str, Value)>,
}

/// What an agent answers by itself; the test answers messages.
fn says(asked: &Asked) -> Option<Vec<u8>> {
    let json = "content-type: application/json\r\n";
    if asked.is("GET ") {
        let card = r#"{"name":"n","description":"d","version":"1","supportedInterfaces":[],"capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[]}"#;
        return Some(answer(200, json, card));
    }
    let body = asked.json();
    let said = match body["method"].as_str().unwrap() {
        "ListTasks" => {
            words::result(r#"{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}"#)
        }
        "GetTask" => {
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}"#.to_owned()
        }
        _ => return None,
    };
    Some(answer(200, json, said))
}

impl Table {
    fn set(place: &Place, speak: Speak) -> Self {
        let agent = Agent::answering(says);
        let keys = file(&item("a", KEY, "tenant: red"));
        let section = place.section("flush: 10ms, checkpoint: 0, digest: true");
        let rule =
            "{name: few, key: [caller], match: {operations: [GetTask]}, rate: {limit: 1, per: 1h}}";
        let gateway = Gateway::of(&format!(
            "workers: 1\nbackend: {{url: 'http://{}'}}\nauth: [{}]\nlimits: {{rules: [{rule}]}}\n{section}",
            agent.addr,
            keys_way(&keys)
        ))
        .keeping([keys]);
        Self {
            speak,
            agent,
            gateway,
            expected: vec![],
        }
    }

    /// The fields that each call has.
    fn fields(&self) -> String {
        let version = if self.speak.is_old() { "0.3" } else { "1.0" };
        format!("a2a-version: {version}\r\n{}", api_key(KEY))
    }

    /// What the next record is to say beside what all do. What is null is not there.
    fn expects(&mut self, what: &'static str, more: Value) {
        let mut all = json!({
            "caller": "key:a", "tenant": "red", "route": "/", "in": format!("{:?}", self.speak),
            "out": "J10", "events": 0, "losses": 0,
        });
        let Value::Object(more) = more else { panic!() };
        for (key, value) in more {
            all[key] = value;
        }
        self.expected.push((what, all));
    }

    fn sends(&mut self) {
        let (line, body) = self.speak.send();
        let mut client = self.gateway.client();
        client.send(line, &self.fields(), &body);
        self.agent.next().json(&words::result(&words::wrapped()));
        let out = client.answer().body.len();
        let more =
            json!({"task": "t1", "context": "c1", "state": "TASK_STATE_WORKING", "digest": true});
        let more = message(&body, Some(out), &more);
        self.expects("a send", more);
    }

    fn streams(&mut self) {
        let (line, body) = self.speak.stream();
        let mut client = self.gateway.client();
        client.send(line, &self.fields(), &body);
        let mut call = self.agent.next();
        call.begin();
        call.event(&words::result(words::WORKING));
        call.event(&words::result(words::DONE));
        call.end();
        let out = client.answer().body.len();
        let more = json!({
            "operation": "SendStreamingMessage", "task": "t1", "context": "c1", "events": 2,
            "state": "TASK_STATE_COMPLETED", "digest": true,
        });
        let more = message(&body, Some(out), &more);
        self.expects("a stream", more);
    }

    /// One call whose answer is a document, and its record.
    fn asks(
        &mut self,
        what: &'static str,
        (line, body): (&str, String),
        fields: &str,
        more: Value,
    ) {
        let answer = self.gateway.ask(line, fields, &body);
        let read = more["status"] != 401 && more.get("caller").is_none();
        let mut more = more;
        if self.speak == Speak::R03K && (body.is_empty() || !read) && more.get("in").is_none() {
            more["in"] = "R03P".into(); // without a body, or unread, they are one
        }
        more["status"] = answer.status().into();
        let bytes = if read { body.len() } else { 0 };
        more["bytes"] = json!({"in": bytes, "out": answer.body.len()});
        if bytes > 0 {
            more["digest"] = true.into();
        }
        self.expects(what, more);
    }

    fn reads(&mut self) {
        let fields = self.fields();
        let rpc = |method: &str| {
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":"q1","method":"{method}","params":{{}}}}"#);
            ("POST /", body)
        };
        let none = String::new;
        let list = match self.speak {
            J03 => rpc("tasks/list"),
            J10 => rpc("ListTasks"),
            R10 => ("GET /tasks", none()),
            Speak::R03P | Speak::R03K => ("GET /v1/tasks", none()),
        };
        let none_such =
            json!({"decision": "refused", "rule": "METHOD_NOT_FOUND", "fault": "METHOD_NOT_FOUND"});
        let listed = match self.speak {
            J10 | R10 => json!({"operation": "ListTasks", "decision": "allowed"}),
            J03 => none_such, // v0.3 has no such method
            Speak::R03P | Speak::R03K => {
                let mut none_such = none_such; // nor such a path, which is seen before anybody is
                none_such["caller"] = "peer:127.0.0.1".into();
                none_such["tenant"] = Value::Null;
                none_such
            }
        };
        self.asks("a list", list, &fields, listed);
        let card = ("GET /.well-known/agent-card.json", none());
        let more = json!({"operation": "AgentCard", "decision": "allowed", "in": Value::Null, "tenant": Value::Null, "caller": "peer:127.0.0.1"});
        self.asks("a card", card, &fields, more);
        let get = self.speak.get();
        let more = json!({"operation": "GetTask", "task": "t1", "decision": "allowed", "fault": "TASK_NOT_FOUND"});
        self.asks("an error of the agent", get.clone(), &fields, more);
        let more = json!({"operation": "GetTask", "task": "t1", "decision": "refused", "rule": "limits.few", "fault": "RATE_LIMITED"});
        self.asks("a refusal by limits", get, &fields, more);
    }

    fn is_refused(&mut self) {
        let nobody =
            json!({"caller": "peer:127.0.0.1", "tenant": Value::Null, "decision": "refused"});
        let with = |more: Value| {
            let mut all = nobody.clone();
            for (key, value) in more.as_object().unwrap() {
                all[key] = value.clone();
            }
            all
        };
        let fields = self.fields();
        let path = ("GET /no/such/thing", String::new());
        let more = with(
            json!({"in": Value::Null, "rule": "METHOD_NOT_FOUND", "fault": "METHOD_NOT_FOUND"}),
        );
        self.asks("a refusal before auth", path, &fields, more);
        let version = fields.split_inclusive("\r\n").next().unwrap().to_owned();
        // A path says what is asked for, a body that nobody has read does not.
        let operation = (!self.speak.is_rpc()).then_some("SendMessage");
        let more = with(json!({
            "operation": operation, "rule": "UNAUTHENTICATED", "fault": "UNAUTHENTICATED",
        }));
        self.asks("a refusal by auth", self.speak.send(), &version, more);
        // Of a conversation that somebody has.
        let (line, body) = Message::send("m1").of("c9").words(self.speak);
        let mut client = self.gateway.client();
        client.send(line, &fields, &body);
        let call = self.agent.next();
        let place = self.expected.len();
        let busy = Message::send("m2").of("c9").words(self.speak);
        let more = json!({
            "operation": "SendMessage", "context": "c9", "message": "m2", "decision": "refused",
            "rule": "CONVERSATION_BUSY", "fault": "CONVERSATION_BUSY",
        });
        self.asks("a refusal by the conversation", busy, &fields, more);
        let done = words::TASK
            .replace("WORKING", "COMPLETED")
            .replace("c1", "c9");
        call.json(&words::result(&format!("{{\"task\":{done}}}")));
        let out = client.answer().body.len();
        let more =
            json!({"task": "t1", "context": "c9", "state": "TASK_STATE_COMPLETED", "digest": true});
        let more = message(&body, Some(out), &more);
        self.expects("its holder", more);
        let last = self.expected.pop().unwrap();
        self.expected.insert(place, last); // it began first
    }

    fn is_left(&mut self) {
        let (line, body) = self.speak.send();
        let mut client = self.gateway.client();
        client.send(line, &self.fields(), &body);
        let call = self.agent.next();
        drop(client);
        self.gateway.until_connected(0);
        call.json(&words::result(&words::wrapped()));
        let more = json!({
            "task": "t1", "context": "c1", "state": "TASK_STATE_WORKING", "digest": true,
            "left": true, "status": Value::Null,
        });
        let more = message(&body, None, &more);
        self.expects("a hang-up before the head", more);

        let (line, body) = self.speak.stream();
        let mut client = self.gateway.client();
        client.send(line, &self.fields(), &body);
        let mut call = self.agent.next();
        call.begin();
        call.event(&words::result(words::WORKING));
        client.head();
        client.event().unwrap();
        drop(client);
        call.closed();
        let more = json!({
            "operation": "SendStreamingMessage", "task": "t1", "context": "c1", "events": 1,
            "state": "TASK_STATE_WORKING", "digest": true, "left": true,
        });
        let more = message(&body, None, &more);
        self.expects("a hang-up within a stream", more);

        let mut client = self.gateway.client();
        let fields = self.fields();
        let json = "content-type: application/json";
        client.wire.write(format!(
            "{line} HTTP/1.1\r\nhost: g\r\n{json}\r\ncontent-length: 99\r\n{fields}\r\n{{"
        ));
        self.gateway.until_connected(1);
        drop(client);
        self.gateway.until_connected(0);
        let more = json!({"bytes": {"in": 0}});
        self.expects("a hang-up within the request", more);
    }
}

/// What a message's record says, however it ends.
fn message(body: &str, out: Option<usize>, more: &Value) -> Value {
    let mut all = json!({
        "operation": "SendMessage", "message": "m1", "decision": "allowed", "status": 200,
        "bytes": {"in": body.len(), "out": out.unwrap_or_default()},
    });
    for (key, value) in more.as_object().unwrap() {
        all[key] = value.clone();
    }
    all
}

/// By when they began.
fn in_order(mut calls: Vec<Value>) -> Vec<Value> {
    calls.sort_by_key(|call| {
        let id = call["id"].as_str().unwrap();
        id.rsplit_once('-').unwrap().1.parse::<u64>().unwrap()
    });
    calls
}

fn check(speak: Speak, what: &str, call: &Value, expected: &Value) {
    let at = format!("{speak:?}: {what}: {call:#}");
    let has: &Map<_, _> = call.as_object().unwrap();
    for name in ALWAYS {
        assert!(has.contains_key(name), "{name} is not there: {at}");
    }
    if what == "a hang-up within the request" {
        // That its client left, or that its body broke off: by what is noticed first.
        let left = call["left"] == true && call["decision"] == "none";
        assert!(left || call["rule"] == "INVALID_REQUEST", "{at}");
        return;
    }
    let expected = expected.as_object().unwrap();
    for (name, value) in expected {
        match (&**name, value) {
            ("digest", _) => assert_eq!(call["digest"].as_str().map(str::len), Some(64), "{at}"),
            ("bytes", value) if call["left"] == true => {
                assert_eq!(call["bytes"]["in"], value["in"], "{at}");
            }
            ("in", Value::Null) => {} // nothing in it says how its client speaks
            _ => assert_eq!(&call[name], value, "{name}: {at}"),
        }
    }
    let known: Vec<_> = ALWAYS
        .iter()
        .copied()
        .chain(expected.keys().map(|k| &**k))
        .collect();
    for name in has.keys() {
        assert!(known.contains(&&**name), "{name} is too much: {at}");
    }
    let time = |name: &str| call["micros"][name].as_u64();
    let ended = time("ended").unwrap();
    assert_eq!(time("answered").is_some(), call["status"].is_u64(), "{at}");
    assert!(
        time("answered").is_none_or(|answered| answered <= ended),
        "{at}"
    );
    let card = call["operation"] == "AgentCard";
    let admitted = call["decision"] == "allowed" && !card;
    assert_eq!(time("admitted").is_some(), admitted, "{at}");
    assert_eq!(
        call["decision"] == "refused",
        call["rule"].is_string(),
        "{at}"
    );
    assert!(
        call["peer"].as_str().unwrap().starts_with("127.0.0.1:"),
        "{at}"
    );
}

#[test]
fn each_member_is_filled_whatever_becomes_of_the_call() {
    for speak in ALL {
        let place = Place::new();
        let mut table = Table::set(&place, speak);
        table.sends();
        table.streams();
        table.reads();
        table.is_refused();
        table.is_left();
        let Table {
            gateway, expected, ..
        } = table;
        let calls = in_order(place.ends(gateway));
        assert_eq!(calls.len(), expected.len(), "{speak:?}: {calls:#?}");
        for (call, (what, expected)) in calls.iter().zip(&expected) {
            check(speak, what, call, expected);
        }
    }
}
