//! The A2A v1.0 service of ADK-Rust around an agent without a model, as an application of it would be put together:
//! JSON-RPC at `/jsonrpc`, REST at the root, and the card.
//!
//! `adk PORT` serves on that loopback port (0 is any free one) and prints its URL. The agent obeys the first word of a
//! message, as far as ADK-Rust lets it: `echo TEXT`, `stream N MS`, `slow SECONDS`, `tool NAME`, `fail`.
use std::{sync::Arc, time::Duration};

use a2a_protocol_types::{AgentCapabilities, AgentSkill};
use adk_agent::CustomAgent;
use adk_core::{AdkError, Agent, Content, Event, EventStream, Part};
use adk_runner::Runner;
use adk_server::a2a::v1::{
    card::{CachedAgentCard, build_v1_agent_card},
    executor::V1Executor,
    jsonrpc_handler::jsonrpc_handler,
    push::{HttpPushNotificationSender, PushNotificationSender},
    request_handler::RequestHandler,
    rest_handler::rest_router,
    task_store::InMemoryTaskStore,
    version::version_negotiation,
};
use adk_session::{InMemorySessionService, SessionService};
use axum::{
    Router,
    routing::{get, post},
};
use tokio::{net::TcpListener, sync::RwLock};

const NAME: &str = "scripted";

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let port: u16 = port.expect("the port is named: adk PORT");
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await
        .expect("a free port");
    let address = listener.local_addr().expect("an address");
    let url = format!("http://{address}");
    let service = service(&url);
    println!("{url}");
    axum::serve(listener, service).await.expect("it serves");
}

fn service(url: &str) -> Router {
    let agent = agent();
    let store = Arc::new(InMemoryTaskStore::new());
    let sessions: Arc<dyn SessionService> = Arc::new(InMemorySessionService::new());
    let push: Arc<dyn PushNotificationSender> = Arc::new(HttpPushNotificationSender::new());
    let can = AgentCapabilities::none()
        .with_streaming(true)
        .with_push_notifications(true)
        .with_extended_agent_card(true);
    let card = Arc::new(RwLock::new(CachedAgentCard::new(build_v1_agent_card(
        "Interop agent (ADK-Rust)",
        "Obeys the first word of a message",
        &format!("{url}/jsonrpc"),
        "1.0.0",
        vec![skill("echo")],
        can,
    ))));
    let runner = Runner::builder()
        .app_name(agent.name())
        .agent(agent)
        .session_service(sessions)
        .build_config();
    let executor = Arc::new(V1Executor::new(store.clone()));
    let handler =
        RequestHandler::with_runner(executor, store, push, card.clone(), Arc::new(runner));
    let handler = Arc::new(handler);
    let shown = get(move || async move {
        let card = card.read().await;
        (
            [("content-type", "application/json")],
            card.card_json.clone(),
        )
    });
    Router::new()
        .route("/jsonrpc", post(jsonrpc_handler))
        .with_state(handler.clone())
        .merge(rest_router(handler))
        .layer(axum::middleware::from_fn(version_negotiation))
        .route("/.well-known/agent-card.json", shown)
}

fn skill(id: &str) -> AgentSkill {
    AgentSkill {
        id: id.to_owned(),
        name: id.to_owned(),
        description: id.to_owned(),
        tags: vec!["test".to_owned()],
        examples: None,
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    }
}

fn agent() -> Arc<dyn Agent> {
    let agent = CustomAgent::builder(NAME)
        .description("an agent without a model")
        .handler(|context| async move {
            let said: String = context
                .user_content()
                .parts
                .iter()
                .filter_map(Part::text)
                .collect();
            Ok(script(context.invocation_id().to_owned(), said))
        })
        .build();
    Arc::new(agent.expect("an agent"))
}

/// What the agent does.
fn script(run: String, said: String) -> EventStream {
    Box::pin(async_stream::stream! {
        let (word, rest) = said.split_once(' ').unwrap_or((&said, ""));
        let says = |part: Part| {
            let mut event = Event::new(&run);
            event.author = NAME.to_owned();
            event.llm_response.content = Some(Content { role: "model".to_owned(), parts: vec![part] });
            event
        };
        let text = |text: String| says(Part::Text { text });
        match word {
            "echo" if !rest.is_empty() => yield Ok(text(rest.to_owned())),
            "stream" => {
                let (count, pause) = rest.split_once(' ').unwrap_or((rest, "0"));
                let count: u64 = count.parse().unwrap_or(1);
                let pause = Duration::from_millis(pause.parse().unwrap_or(0));
                for at in 0..count {
                    if at > 0 {
                        tokio::time::sleep(pause).await;
                    }
                    let mut chunk = text(format!("chunk {at} "));
                    chunk.llm_response.partial = at + 1 < count;
                    yield Ok(chunk);
                }
            }
            "slow" => {
                tokio::time::sleep(Duration::from_secs_f64(rest.parse().unwrap_or(1.0))).await;
                yield Ok(text(format!("slept {rest}")));
            }
            "tool" => {
                yield Ok(says(Part::FunctionCall {
                    name: rest.to_owned(),
                    args: serde_json::json!({"a": 1}),
                    id: Some("call-1".to_owned()),
                    thought_signature: None,
                }));
                yield Ok(text(format!("called {rest}")));
            }
            "fail" => yield Err(AdkError::agent("it failed")),
            _ => yield Ok(text(said.clone())),
        }
    })
}
