//! How a refusal is told.
use crate::support::{
    message::{CONTENT, Message},
    stage::{ANN, BINDINGS, PATIENT, Stage},
    words::{ALL, J03, R10},
};

#[test]
fn a_busy_conversation_is_told_in_the_caller_s_dialect_with_a_time_to_come_again() {
    for rest in BINDINGS {
        let stage = Stage::set(rest, PATIENT);
        let held = stage.talk(ANN, Message::send("m1").of("c1"));
        for speak in ALL {
            for message in [Message::send("m2"), Message::stream("m2")] {
                let refusal = stage.refused(ANN.speaking(speak), message.of("c1"));
                refusal.is_told_as_bad(speak);
                let again = refusal.retry_after.as_ref().unwrap();
                let again: u64 = again.parse().unwrap();
                assert!((1..=60).contains(&again), "{again}");
                assert!(!refusal.body.contains(CONTENT), "{refusal:?}");
                assert!(!refusal.body.contains("ann"), "{refusal:?}");
                if speak == R10 {
                    let error: serde_json::Value = serde_json::from_str(&refusal.body).unwrap();
                    assert_eq!(error["error"]["status"], "INVALID_ARGUMENT");
                    let info = &error["error"]["details"][0];
                    assert_eq!(info["domain"], "a2a-gateway");
                }
                if speak.is_rpc() {
                    assert!(refusal.body.contains(r#""id":"q1""#), "{refusal:?}");
                }
                // An old JSON-RPC client of a stream reads events only.
                let frames = speak == J03 && message.streams;
                assert_eq!(refusal.body.starts_with("data: "), frames);
            }
        }
        stage.ends(held, "t1", "c1");
    }
}
