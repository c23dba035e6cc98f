//! A client of the gateway that sends messages and reads their answers to the end.
use std::{io, net::SocketAddr};

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, runtime::Runtime};

pub(crate) type Connection = SendRequest<Full<Bytes>>;

/// A connection that this runtime looks after.
pub(crate) async fn connect(runtime: &Runtime, to: SocketAddr) -> io::Result<Connection> {
    let socket = TcpStream::connect(to).await?;
    socket.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(socket))
        .await
        .map_err(io::Error::other)?;
    runtime.spawn(connection);
    Ok(sender)
}

/// Sends a body, with a key if there is one. Gives the length of the answer.
pub(crate) async fn send(connection: &mut Connection, path: &str, key: &str, body: Bytes) -> usize {
    let mut request = Request::post(path)
        .header(header::HOST, "gateway.test")
        .header(header::CONTENT_TYPE, "application/json");
    if !key.is_empty() {
        request = request.header("x-api-key", key);
    }
    let request = request.body(Full::new(body)).expect("a good request");
    connection.ready().await.expect("the connection stays open");
    let response = connection.send_request(request).await.expect("an answer");
    assert!(response.status().is_success(), "{}", response.status());
    let mut length = 0;
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.expect("the body arrives whole");
        length += frame.data_ref().map_or(0, Bytes::len);
    }
    length
}
