//! The operations on tasks, push configs and cards.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{Demo, LIMIT, said, said_with, state};
use crate::demo::{
    object::{Message, Part, Role, State},
    store::Store,
};

#[tokio::test]
async fn returning_at_once_leaves_a_task_to_subscribe_to() {
    let demo = Demo::start().await;
    let id = demo.leave("stream 5 20").await;
    let events = demo
        .rest("GET", &format!("/tasks/{id}:subscribe"), "")
        .await
        .events();
    assert_eq!(events[0]["task"]["id"], json!(id));
    assert_eq!(
        state(&events.last().expect("one")["statusUpdate"]),
        "TASK_STATE_COMPLETED"
    );
    let refused = demo
        .rest("POST", &format!("/tasks/{id}:subscribe"), "{}")
        .await;
    assert_eq!(
        (
            refused.status,
            refused.json()["error"]["details"][0]["reason"].as_str()
        ),
        (400, Some("UNSUPPORTED_OPERATION"))
    );
}

#[tokio::test]
async fn a_task_goes_on_when_its_client_leaves() {
    let demo = Demo::start().await;
    let mut socket = TcpStream::connect(demo.addr).await.expect("a connection");
    let body = said("stream 3 20").to_string();
    let head = format!(
        "POST /message:stream HTTP/1.0\r\nA2A-Version: 1.0\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    socket
        .write_all((head + &body).as_bytes())
        .await
        .expect("a request");
    let mut seen = String::new();
    while !seen.contains("\n\n") {
        let mut some = [0; 512];
        let count = socket.read(&mut some).await.expect("an event");
        seen += &String::from_utf8_lossy(&some[..count]);
    }
    drop(socket);
    let id = demo.ask("ListTasks", json!({})).await["tasks"][0]["id"].clone();
    let events = demo.streamed("SubscribeToTask", json!({ "id": id })).await;
    assert_eq!(
        state(&events.last().expect("one")["statusUpdate"]),
        "TASK_STATE_COMPLETED"
    );
    let task = demo.ask("GetTask", json!({ "id": id })).await;
    assert_eq!(
        task["artifacts"][0]["parts"].as_array().map(Vec::len),
        Some(3)
    );
}

#[tokio::test]
async fn cancel_ends_work_and_waiting_but_not_what_has_ended() {
    let demo = Demo::start().await;
    let id = demo.leave("slow 60").await;
    let task = demo
        .fetch(
            "POST",
            &format!("/tasks/{id}:cancel"),
            &json!({ "id": id }).to_string(),
        )
        .await;
    assert_eq!(state(&task), "TASK_STATE_CANCELED");
    let refused = demo.rest("POST", &format!("/tasks/{id}:cancel"), "").await;
    assert_eq!(
        (
            refused.status,
            refused.json()["error"]["details"][0]["reason"].as_str()
        ),
        (400, Some("TASK_NOT_CANCELABLE"))
    );
    let waiting = demo.send("input").await;
    let task = demo.ask("CancelTask", json!({ "id": waiting["id"] })).await;
    assert_eq!(state(&task), "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn a_waiting_send_learns_of_the_cancel() {
    let demo = Demo::start().await;
    let waiting = demo.ask("SendMessage", said("slow 60"));
    let cancel = async {
        loop {
            let list = demo
                .ask("ListTasks", json!({ "status": "TASK_STATE_WORKING" }))
                .await;
            if let Some(id) = list["tasks"][0]["id"].as_str() {
                return demo.ask("CancelTask", json!({ "id": id })).await;
            }
        }
    };
    let both = async { tokio::join!(waiting, cancel) };
    let (sent, _) = timeout(LIMIT, both).await.expect("in time");
    assert_eq!(state(&sent["task"]), "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn history_length_cuts_from_the_front() {
    let demo = Demo::start().await;
    let task = demo.send("input").await;
    let answer = said_with("blue", &json!({ "taskId": task["id"] }));
    demo.ask("SendMessage", answer).await;
    let id = task["id"].as_str().expect("an id");
    for (query, count) in [
        ("", 3),
        ("?historyLength=0", 0),
        ("?historyLength=1", 1),
        ("?historyLength=9", 3),
    ] {
        let task = demo.fetch("GET", &format!("/tasks/{id}{query}"), "").await;
        assert_eq!(
            task["history"].as_array().map_or(0, Vec::len),
            count,
            "{query}"
        );
    }
    let mut params = said("hello");
    params["configuration"] = json!({ "historyLength": 0, "acceptedOutputModes": ["text/plain"] });
    assert_eq!(
        demo.ask("SendMessage", params).await["task"].get("history"),
        None
    );
}

#[tokio::test]
async fn list_filters_and_turns_pages() {
    let demo = Demo::start().await;
    for text in ["one", "fail", "three"] {
        demo.ask(
            "SendMessage",
            said_with(text, &json!({ "contextId": "c 1" })),
        )
        .await;
    }
    demo.send("elsewhere").await;
    let all = demo.ask("ListTasks", json!({})).await;
    assert_eq!(
        (&all["totalSize"], &all["pageSize"], &all["nextPageToken"]),
        (&json!(4), &json!(50), &json!(""))
    );
    assert_eq!(all["tasks"][0].get("artifacts"), None);
    assert_eq!(
        all["tasks"][0]["history"][0]["parts"][0]["text"],
        "elsewhere"
    );
    let page = demo
        .fetch(
            "GET",
            "/tasks?contextId=c+1&pageSize=2&includeArtifacts=true",
            "",
        )
        .await;
    assert_eq!(
        (&page["totalSize"], page["tasks"].as_array().map(Vec::len)),
        (&json!(3), Some(2))
    );
    assert_eq!(
        page["tasks"][0]["artifacts"][0]["parts"][0]["text"],
        "three"
    );
    let token = page["nextPageToken"].as_str().expect("a token");
    let last = demo
        .fetch(
            "GET",
            &format!("/tasks?contextId=c%201&pageSize=2&pageToken={token}"),
            "",
        )
        .await;
    assert_eq!(
        (
            &last["nextPageToken"],
            &last["tasks"][0]["history"][0]["parts"][0]["text"]
        ),
        (&json!(""), &json!("one"))
    );
    let failed = demo
        .fetch("GET", "/tasks?status=TASK_STATE_FAILED&historyLength=0", "")
        .await;
    assert_eq!(
        (&failed["totalSize"], failed["tasks"][0].get("history")),
        (&json!(1), None)
    );
    let after = all["tasks"][0]["status"]["timestamp"]
        .as_str()
        .expect("a time");
    let none = demo
        .ask(
            "ListTasks",
            json!({ "statusTimestampAfter": after.replace('Z', "999999Z") }),
        )
        .await;
    assert_eq!(
        (&none["totalSize"], &none["tasks"]),
        (&json!(0), &json!([]))
    );
}

#[tokio::test]
async fn push_configs_are_kept_by_either_binding() {
    let demo = Demo::start().await;
    let id = demo.leave("slow 60").await;
    let config = json!({ "taskId": id, "id": "a", "url": "http://127.0.0.1:9/", "token": "t", "authentication": { "scheme": "Bearer" } });
    assert_eq!(
        demo.ask("CreateTaskPushNotificationConfig", config.clone())
            .await,
        config
    );
    let base = format!("/tasks/{id}/pushNotificationConfigs");
    let unnamed = demo
        .fetch("POST", &base, r#"{"url":"http://127.0.0.1:9/2"}"#)
        .await;
    assert_eq!(
        (&unnamed["id"], &unnamed["taskId"]),
        (&json!(id), &json!(id))
    );
    assert_eq!(demo.fetch("GET", &format!("{base}/a"), "").await, config);
    assert_eq!(
        demo.ask(
            "GetTaskPushNotificationConfig",
            json!({ "taskId": id, "id": "a" })
        )
        .await,
        config
    );
    let first = demo.fetch("GET", &format!("{base}?pageSize=1"), "").await;
    assert_eq!(
        (&first["configs"], &first["nextPageToken"]),
        (&json!([config]), &json!("1"))
    );
    let second = demo
        .ask(
            "ListTaskPushNotificationConfigs",
            json!({ "taskId": id, "pageToken": "1" }),
        )
        .await;
    assert_eq!(
        (&second["configs"], &second["nextPageToken"]),
        (&json!([unnamed]), &json!(""))
    );
    assert_eq!(
        demo.fetch("DELETE", &format!("{base}/a"), "").await,
        json!({})
    );
    assert_eq!(
        demo.ask(
            "DeleteTaskPushNotificationConfig",
            json!({ "taskId": id, "id": id })
        )
        .await,
        json!({})
    );
    assert_eq!(demo.fetch("GET", &base, "").await["configs"], json!([]));
    assert_eq!(demo.rest("GET", &format!("{base}/a"), "").await.status, 404);
}

#[tokio::test]
async fn a_push_config_may_come_with_the_message() {
    let demo = Demo::start().await;
    let mut params = said("input");
    params["configuration"] =
        json!({ "taskPushNotificationConfig": { "id": "p", "url": "http://127.0.0.1:9/" } });
    let id = demo.ask("SendMessage", params).await["task"]["id"].clone();
    let found = demo
        .ask(
            "GetTaskPushNotificationConfig",
            json!({ "taskId": id, "id": "p" }),
        )
        .await;
    assert_eq!(found["taskId"], id);
}

#[tokio::test]
async fn cards_say_what_it_can_do() {
    let demo = Demo::start().await;
    let card = demo
        .http("GET", "/.well-known/agent-card.json", "", "")
        .await
        .json();
    let spoken: Vec<&Value> = card["supportedInterfaces"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|face| &face["protocolBinding"])
        .collect();
    assert_eq!(spoken, ["JSONRPC", "HTTP+JSON"]);
    assert_eq!(
        card["supportedInterfaces"][0]["url"],
        format!("http://{}", demo.addr)
    );
    assert_eq!(
        card["capabilities"],
        json!({ "streaming": true, "pushNotifications": true, "extendedAgentCard": true })
    );
    let more = demo.fetch("GET", "/extendedAgentCard", "").await;
    assert_eq!(more["skills"][1]["id"], "secret");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"}"#;
    assert_eq!(demo.rpc_text(body).await.json()["result"], more);
}

#[test]
fn the_oldest_that_ended_makes_room() {
    let store = Store::default();
    let message = || Message {
        role: Role::User,
        ..Message::of_agent("c", None, vec![Part::text("hi")])
    };
    let begin = || store.begin(message(), None).map(|begun| begun.id);
    let ids: Vec<String> = (0..1_000).map(|_| begin().expect("room")).collect();
    assert!(begin().is_err(), "all of them are at work");
    store.turn(&ids[3], State::InputRequired, None);
    store.turn(&ids[9], State::Completed, None);
    store.turn(&ids[7], State::Failed, None);
    for gone in [9, 7, 3] {
        assert!(store.show(&ids[gone], None).is_ok());
        begin().expect("room");
        assert!(store.show(&ids[gone], None).is_err());
    }
    assert!(begin().is_err());
}
