//! Push callbacks, which only the older page has: the URL gets the task's state when it ends. What is sent there, and
//! when, is not told.
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::{net::TcpStream, time::timeout};

use super::{task::Task, wire, world::World};

const PATIENCE: Duration = Duration::from_secs(5);

pub async fn tell(world: &World, url: &str, task: &Task) {
    let told = task.brief(true);
    let post = post(url, told.to_string());
    let arrived = matches!(timeout(PATIENCE, post).await, Ok(Some(())));
    world.called_back(json!({"url": url, "task": told, "arrived": arrived}));
}

async fn post(url: &str, body: String) -> Option<()> {
    let uri: Uri = url.parse().ok()?;
    let authority = uri.authority()?.as_str();
    let io = TcpStream::connect(authority).await.ok()?;
    let (mut to, connection) = http1::handshake(TokioIo::new(io)).await.ok()?;
    wire::spawn(async move {
        let _cut = connection.await;
    });
    let request = Request::post(uri.path_and_query()?.as_str())
        .header(header::HOST, authority)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::<Bytes>::from(body));
    let response = to.send_request(request.ok()?).await.ok()?;
    response.into_body().collect().await.ok()?;
    Some(())
}
