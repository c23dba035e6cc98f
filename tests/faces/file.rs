//! The example of settings for MemoryLake runs as it is.
use std::path::Path;

use a2a_gateway::{
    config::{Config, Overrides},
    run,
};

use crate::support::client::Client;

#[test]
fn the_example_for_memorylake_runs_and_has_both_faces() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let overrides = Overrides {
        listen: "127.0.0.1:0".parse().ok(),
        admin: "127.0.0.1:0".parse().ok(),
        workers: Some(1),
        ..Overrides::default()
    };
    let config = Config::load(Some(&root.join("config/memorylake.yaml")), overrides);
    let served = run::start(config.unwrap_or_else(|e| panic!("{e}"))).unwrap();
    let ask = |path: &str, body: &str| {
        let mut client = Client::connect(served.running.local_addr);
        let json = "content-type: application/json\r\n";
        client.ask(&format!("POST {path}"), json, body)
    };
    // Both are refused before anybody is connected to.
    let lake = "/openapi/memorylake/api/v3/workspaces/ws-1/agents/agent-1/a2a";
    let message = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#;
    let answer = ask(&format!("{lake}/message:send"), message);
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.json()["error_code"], "INVALID_ARGUMENT");
    let answer = ask("/agents/ws-1/agent-1/message:send", "{}");
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.json()["error"]["status"], "INVALID_ARGUMENT");
    served.running.cut();
    served.admin.unwrap().cut();
}
