//! What the tests of faults are made of: agents behind proxies, a gateway before them, and how calls may end.
use a2a_gateway::agent::Status;

use crate::{
    proxy::Proxy,
    support::{
        agent::{self, Agent, Asked, Log},
        client::{Answer, Client},
        gateway::Gateway,
        message::{Message, Refusal},
        until,
        words::{Speak, data},
    },
};

/// An agent, and the proxy before it.
pub(crate) struct Place {
    pub(crate) log: Log,
    pub(crate) proxy: Proxy,
}

impl Place {
    /// A v1.0 JSON-RPC agent; what it names itself has `name` in it.
    pub(crate) fn of(name: &'static str) -> Self {
        let (agent, log) = Agent::always(move |asked| answer(asked, name));
        Self {
            log,
            proxy: Proxy::before(agent),
        }
    }

    /// The ids of the messages that reached it.
    pub(crate) fn messages(&self) -> Vec<String> {
        let all = self.log.all();
        let ids = all.iter().filter_map(|asked| {
            let body = serde_json::from_str::<serde_json::Value>(&asked.body).ok()?;
            let id = body["params"]["message"]["messageId"].as_str()?;
            Some(id.to_owned())
        });
        ids.collect()
    }

    /// How often it was asked for a task.
    pub(crate) fn questions(&self) -> usize {
        let all = self.log.all();
        all.iter().filter(|a| a.body.contains("GetTask")).count()
    }
}

/// What an agent that is well says.
pub(crate) fn answer(asked: &Asked, name: &str) -> Vec<u8> {
    let json = "content-type: application/json\r\n";
    if asked.is("GET /healthz") {
        return agent::answer(200, "", "ok");
    }
    let body = asked.json();
    let params = &body["params"];
    if body["method"] == "GetTask" {
        let id = params["id"].as_str().unwrap();
        let task = format!(
            r#"{{"id":"{id}","contextId":"c","status":{{"state":"TASK_STATE_COMPLETED"}}}}"#
        );
        return agent::answer(200, json, crate::support::words::result(&task));
    }
    let message = &params["message"];
    let id = message["messageId"].as_str().unwrap();
    let context = message["contextId"].as_str().map(str::to_owned);
    let context = context.unwrap_or_else(|| format!("c-{name}-{id}"));
    let ids = format!(r#""contextId":"{context}","status":{{"state":"TASK_STATE_COMPLETED"}}"#);
    let task = format!(r#"{{"task":{{"id":"t-{name}-{id}",{ids}}}}}"#);
    let task = crate::support::words::result(&task);
    if body["method"] == "SendMessage" {
        return agent::answer(200, json, task);
    }
    let update = format!(r#"{{"statusUpdate":{{"taskId":"t-{name}-{id}",{ids}}}}}"#);
    let working = task.replace("COMPLETED", "WORKING");
    let done = crate::support::words::result(&update);
    let mut out = agent::STREAM.as_bytes().to_vec();
    for event in [working, done] {
        out.extend(agent::chunk(format!("data: {event}\n\n")));
    }
    out.extend(b"0\r\n\r\n");
    out
}

/// A gateway before these addresses of one agent.
pub(crate) fn gateway(places: &[&Place], backend: &str, rest: &str) -> Gateway {
    let addresses: Vec<_> = places.iter().map(|place| place.proxy.addr).collect();
    let listed: Vec<_> = addresses.iter().map(|a| format!("'{a}'")).collect();
    let backend = format!("addresses: [{}], {backend}", listed.join(", "));
    Gateway::with(addresses[0], &backend, rest)
}

/// How a call ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With what the agent said.
    Well,
    /// With a fault of this reason.
    Fault(String),
    /// A stream that had begun, with a fault in its last event.
    Broke,
}

/// Sends a message and waits for its end, whatever that is. Asserts that it is told in the dialect of the client.
pub(crate) fn send(gateway: &Gateway, speak: Speak, message: Message<'_>) -> Ended {
    let mut client = gateway.client();
    let (line, body) = message.words(speak);
    client.send(line, &fields(speak), &body);
    ended(speak, message.streams, &mut client)
}

pub(crate) fn fields(speak: Speak) -> String {
    let version = if speak.is_old() {
        ""
    } else {
        "a2a-version: 1.0\r\n"
    };
    format!("content-type: application/json\r\n{version}")
}

pub(crate) fn ended(speak: Speak, streams: bool, client: &mut Client) -> Ended {
    let whole: Answer = client.answer();
    let events = whole.head.get("content-type") == Some("text/event-stream");
    if events {
        let frames = whole.body.trim_end().split("\n\n");
        let frames: Vec<_> = frames.filter(|f| !f.starts_with(':')).collect();
        let (last, _) = data(frames.last().expect("an event"));
        let failed = last.get("error").is_some() || last.get("code").is_some();
        if !failed {
            assert!(streams && frames.len() > 1, "{speak:?}: {whole:?}");
            return Ended::Well;
        }
        if frames.len() > 1 {
            return Ended::Broke;
        }
    } else if whole.status() == 200 && whole.json().get("error").is_none() {
        assert!(!streams, "{speak:?}: {whole:?}");
        return Ended::Well;
    }
    if events && !speak.is_rpc() {
        return Ended::Broke; // the head had gone out before anything came
    }
    let refusal = Refusal::read(speak, &whole);
    assert!(!refusal.reason.is_empty(), "{speak:?}: {whole:?}");
    Ended::Fault(refusal.reason)
}

/// The agent's addresses, as the gateway has them.
pub(crate) fn status(gateway: &Gateway) -> Status {
    let all = gateway.served().front.setup().backends().status();
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_iter().next().unwrap()
}

/// Waits until nothing is under way: all places and turns were given back.
pub(crate) fn at_rest(gateway: &Gateway) {
    until("all places are given back", || {
        let status = status(gateway);
        let mut all = status.addresses.iter();
        all.all(|address| address.busy == 0 && address.waiting == 0)
    });
}

/// Waits until the address of this proxy is seen as up, or as down.
pub(crate) fn until_up(gateway: &Gateway, place: &Place, up: bool) {
    until("the gateway sees how the address is", || {
        is_up(gateway, place) == Some(up)
    });
}

/// How the address of this proxy is seen; nothing where it is not known.
pub(crate) fn is_up(gateway: &Gateway, place: &Place) -> Option<bool> {
    let label = place.proxy.addr.to_string();
    let status = status(gateway);
    let mut all = status.addresses.iter();
    all.find(|address| address.address == label)
        .map(|address| address.up)
}
