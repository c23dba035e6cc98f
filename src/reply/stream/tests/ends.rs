//! Ends that are no good ones: each is told in one error frame.
use super::*;

/// How an error frame begins in each dialect.
fn error_frame(dialect: Dialect, rpc: i32, status: u16) -> String {
    match dialect.name() {
        "J10" | "J03" => {
            format!(r#"data: {{"jsonrpc":"2.0","id":null,"error":{{"code":{rpc},"#)
        }
        "R10" => format!("event: error\ndata: {{\"error\":{{\"code\":{status},"),
        _ => format!("event: error\ndata: {{\"code\":{rpc},"),
    }
}

const ALL: [Dialect; 5] = [
    Dialect::J03,
    Dialect::R03P,
    Dialect::R03K,
    Dialect::J10,
    Dialect::R10,
];

async fn ends_in_error(does: &[Does], rpc: i32, status: u16, message: &str) {
    for dialect in ALL {
        let mut rig = Rig::new(dialect);
        rig.event(TASK);
        for does in does {
            rig.does(does.clone());
        }
        let text = rig.rest().await;
        let frame = text.split_inclusive("\n\n").nth(1).unwrap_or_default();
        let wanted = error_frame(dialect, rpc, status);
        assert!(frame.starts_with(&wanted), "{}: {text}", dialect.name());
        assert!(frame.contains(message), "{}: {text}", dialect.name());
        assert_eq!(text.matches("\n\n").count(), 2, "{text}");
    }
}

fn says(text: impl Into<String>) -> Does {
    Does::Says(text.into())
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_ends_in_one_error_frame() {
    let broken = "upstream stream interrupted";
    for does in [
        vec![Does::Breaks],
        vec![says("data: {\"stat"), Does::Breaks],
        // A body that ends where the connection does cannot say that it was cut.
        vec![says("data: {\"stat"), Does::Ends],
        vec![says("da"), Does::Ends],
    ] {
        ends_in_error(&does, -32603, 502, broken).await;
    }
    let label = [says("event: error\n"), Does::Ends];
    ends_in_error(&label, -32603, 500, "").await;
}

#[tokio::test(start_paused = true)]
async fn the_agent_s_error_is_the_client_s() {
    let error = r#"{"error":{"code":404,"status":"NOT_FOUND","message":"gone","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org"}]}}"#;
    for does in [
        vec![says(format!("data: {error}\n\n"))],
        vec![says(format!("event: error\ndata: {error}\n\n"))],
        vec![says(format!("data: {error}")), Does::Ends],
    ] {
        ends_in_error(&does, -32001, 404, "gone").await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_read_ends_the_stream() {
    let message = "the agent's answer is not valid A2A";
    for bad in ["{\"task\":", "[]", "1", "", "{\"task\":{},\"task\":{}}"] {
        let does = [says(format!("data: {bad}\n\n"))];
        ends_in_error(&does, -32006, 500, message).await;
    }
    let line = says(format!("data: {}\n", "x".repeat(16 * 1024)));
    ends_in_error(&vec![line; 5], -32006, 500, message).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_stream_with_a_word() {
    for dialect in ALL {
        let mut rig = Rig::new(dialect);
        rig.event(TASK);
        rig.frame().await.unwrap();
        assert_eq!(rig.now().await, Poll::Pending);
        rig.stop.cancel();
        let text = rig.rest().await;
        assert!(
            text.starts_with(&error_frame(dialect, -32603, 503)),
            "{text}"
        );
        assert!(text.contains("the gateway is stopping"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_stream_hears_that_it_is_to_stop() {
    let mut rig = Rig::new(Dialect::R10);
    rig.stop.cancel();
    let long = TASK.replace(r#""id":"t""#, &format!(r#""id":"{}""#, "t".repeat(40_000)));
    for _ in 0..100 {
        rig.event(&long);
    }
    let text = rig.rest().await;
    assert_eq!(finals(&text).last(), Some(&"error"));
    assert!(finals(&text).len() < 20);
}
