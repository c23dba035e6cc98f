//! Streams do not outlive what they were asked for with.
use std::time::Duration;

use serde_json::json;

use crate::{
    house::{KEY, READER, api_key, bearer, file, head, item, keys_way, overwrite},
    issuer::{Issuer, Pair, claims, now, set},
    support::{
        agent::{Agent, Call},
        client::Client,
        gateway::Gateway,
        words::{ALL, J10, R10, Speak, WORKING, data, result, wrapped},
    },
};

/// All streams are about one task.
const OFF: &str = "conversation: {on_busy: off}";

fn opens(gateway: &Gateway, agent: &Agent, speak: Speak, fields: &str) -> (Client, Call) {
    let (line, body) = speak.stream();
    let mut client = gateway.client();
    client.send(line, &format!("{fields}{}", head(speak)), &body);
    let mut call = agent.next();
    call.begin();
    call.event(&result(&wrapped()));
    assert_eq!(client.head().status(), 200);
    assert!(client.event().is_some());
    (client, call)
}

/// The stream ends with a frame that says why, within a minute.
fn is_ended(speak: Speak, client: &mut Client) {
    let start = tokio::time::Instant::now();
    let last = loop {
        let event = client.event().expect("a last word");
        assert!(start.elapsed() < Duration::from_mins(1), "it goes on");
        if !event.starts_with(':') {
            break event;
        }
    };
    assert!(last.contains("credential is no longer good"), "{last}");
    assert_eq!(client.event(), None);
    if speak == R10 {
        let (value, _) = data(&last);
        assert_eq!(value["error"]["status"], "UNAUTHENTICATED", "{value}");
    }
}

#[test]
fn a_stream_ends_when_its_key_is_revoked_and_no_other_does() {
    let keys = file(&(item("a", KEY, "") + &item("b", READER, "")));
    let agent = Agent::start();
    let gateway = Gateway::with(
        agent.addr,
        "",
        &format!("auth: [{}]\n{OFF}", keys_way(&keys)),
    );
    let mut ended: Vec<_> = ALL
        .iter()
        .map(|speak| (*speak, opens(&gateway, &agent, *speak, &api_key(KEY))))
        .collect();
    let (mut stays, mut call) = opens(&gateway, &agent, J10, &api_key(READER));
    overwrite(&keys, &item("b", READER, ""));
    for (speak, (client, call)) in &mut ended {
        is_ended(*speak, client);
        call.closed();
    }
    call.event(&result(WORKING));
    assert!(stays.event().unwrap().contains("WORKING"));
    // Other rights are another key as well.
    overwrite(&keys, &item("b", READER, "operations: [GetTask]"));
    is_ended(J10, &mut stays);
}

#[test]
fn a_stream_ends_when_its_issuer_withdraws_the_key() {
    let (one, two) = (Pair::new("one"), Pair::new("two"));
    let issuer = Issuer::with(&[one.clone(), two.clone()]);
    let keys = file(&set(&[one.clone(), two.clone()]));
    let (start, _) = issuer
        .way()
        .split_once(" jwks_url")
        .map(|(s, e)| (s.to_owned(), e.to_owned()))
        .unwrap();
    let from_file = format!("{start} jwks_file: '{}'}}}}", keys.path().display());
    let agent = Agent::start();
    let gateway = |way: &str| Gateway::with(agent.addr, "", &format!("auth: [{way}]\n{OFF}"));
    let gateways = [gateway(&issuer.way()), gateway(&from_file)];
    let (mut ended, mut stay) = (vec![], vec![]);
    for gateway in &gateways {
        let by = |pair: &Pair| bearer(&pair.signs(&claims()));
        ended.push(opens(gateway, &agent, R10, &by(&one)));
        stay.push(opens(gateway, &agent, R10, &by(&two)));
    }
    // The one that stays is told of anew, and is the same key.
    let mut left = two.public();
    left["use"] = json!("sig");
    let left = json!({"keys": [left]}).to_string();
    issuer.says(200, left.clone());
    overwrite(&keys, &left);
    for (client, call) in &mut ended {
        is_ended(R10, client);
        call.closed();
    }
    for (client, call) in &mut stay {
        call.event(&result(WORKING));
        let event = std::iter::from_fn(|| client.event()).find(|e| !e.starts_with(':'));
        assert!(event.unwrap().contains("WORKING"));
    }
}

#[test]
fn a_stream_ends_when_its_token_or_key_expires() {
    let pair = Pair::new("one");
    let issuer = Issuer::with(std::slice::from_ref(&pair));
    let soon = jiff::Timestamp::from_second(now() + 5).unwrap();
    let keys = file(&item("a", KEY, &format!("expires: {soon}")));
    let agent = Agent::start();
    let auth = format!("auth: [{}, {}]\n{OFF}", keys_way(&keys), issuer.way());
    let gateway = Gateway::with(agent.addr, "", &auth);
    let mut late = claims();
    late["exp"] = json!(now() - 25); // within the leeway, for a moment
    let token = bearer(&pair.signs(&late));
    let (mut by_key, _call) = opens(&gateway, &agent, R10, &api_key(KEY));
    let (mut by_token, _call) = opens(&gateway, &agent, R10, &token);
    is_ended(R10, &mut by_key);
    is_ended(R10, &mut by_token);
    let (line, body) = J10.send();
    for fields in [api_key(KEY), token] {
        assert_eq!(
            gateway.ask(line, &(fields + &head(J10)), &body).status(),
            401
        );
    }
}
