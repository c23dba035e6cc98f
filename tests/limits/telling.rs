//! How a refusal is told, in every dialect.
use crate::support::{
    message::{CONTENT, Message, Refusal},
    stage::{ANN, BINDINGS, Stage},
    words::{ALL, R10},
};

const HOURLY: &str = "limits: {rules: [{name: hourly, key: [global], rate: {limit: 1, per: 1h}}]}";
const DAILY: &str =
    "auth: [anyone]\nlimits: {rules: [{name: daily, key: [caller], quota: {limit: 1, per: day}}]}";

#[test]
fn a_refusal_is_told_in_the_caller_s_dialect_with_its_fields() {
    for rest in BINDINGS {
        for (yaml, status, reason) in [
            (HOURLY, 429, "RATE_LIMITED"),
            (DAILY, 402, "QUOTA_EXCEEDED"),
        ] {
            let stage = Stage::set(rest, yaml);
            stage.ends(stage.talk(ANN, Message::send("m1").of("c1")), "t1", "c1");
            for speak in ALL {
                for message in [Message::send("m2"), Message::stream("m2")] {
                    let mut client = stage.says(ANN.speaking(speak), message.of("c2"));
                    let answer = client.answer();
                    let refusal = Refusal::read(speak, &answer);
                    // By its status, also to an old client of a stream.
                    assert_eq!(refusal.status, status, "{answer:?}");
                    assert_eq!(refusal.reason, reason);
                    let again: u32 = refusal.retry_after.as_ref().unwrap().parse().unwrap();
                    assert!((1..=86_400).contains(&again), "{again}");
                    let policy = answer.head.get("ratelimit-policy").unwrap();
                    let name = if status == 429 { "hourly" } else { "daily" };
                    assert!(
                        policy.starts_with(&format!("\"{name}\";q=1;w=")),
                        "{policy}"
                    );
                    let left = answer.head.get("ratelimit").unwrap();
                    assert_eq!(left, format!("\"{name}\";r=0;t={again}"));
                    assert_eq!(refusal.metadata["rule"], name);
                    if speak.is_rpc() {
                        assert_eq!(refusal.code, -32000);
                        assert!(refusal.body.contains(r#""id":"q1""#), "{refusal:?}");
                    }
                    if speak == R10 {
                        let error: serde_json::Value = serde_json::from_str(&refusal.body).unwrap();
                        assert_eq!(error["error"]["status"], "RESOURCE_EXHAUSTED");
                    }
                    assert!(!refusal.body.contains(CONTENT), "{refusal:?}");
                }
            }
            assert!(stage.agent.is_left_alone_now());
        }
    }
}

#[test]
fn an_address_that_asks_too_often_is_refused() {
    let stage = Stage::set(false, "limits: {per_peer: {rate: 1, burst: 2}}");
    stage.ends(stage.talk(ANN, Message::send("m1").of("c1")), "t1", "c1");
    stage.ends(stage.talk(ANN, Message::send("m2").of("c1")), "t2", "c1");
    let answer = stage.says(ANN, Message::send("m3").of("c1")).answer();
    assert_eq!(answer.status(), 429, "{answer:?}");
    assert!(
        answer
            .head
            .get("retry-after")
            .unwrap()
            .parse::<u32>()
            .unwrap()
            >= 1
    );
}

#[test]
fn a_parameter_of_the_path_is_one_however_it_is_written() {
    let stage = Stage::build(|agent| {
        crate::support::gateway::Gateway::of(&format!(
            "workers: 1
routes: [{{path: '/rooms/{{room}}', backend: 'http://{}/rooms/{{room}}'}}]
limits: {{rules: [{{name: room, key: [route.room], quota: {{limit: 1, per: day}}}}]}}",
            agent.addr
        ))
    });
    let send = |path: &str, id: &str| {
        let (_, body) = Message::send(id).of(id).words(ANN.speak);
        stage.writes(ANN, &format!("POST {path}"), &body)
    };
    let first = send("/rooms/red%2Done", "m1");
    stage.ends(
        (first, stage.reached(Message::send("m1").of("m1"))),
        "t1",
        "m1",
    );
    assert_eq!(send("/rooms/red-one", "m2").answer().status(), 402);
    let other = send("/rooms/blue", "m3");
    stage.ends(
        (other, stage.reached(Message::send("m3").of("m3"))),
        "t3",
        "m3",
    );
}
