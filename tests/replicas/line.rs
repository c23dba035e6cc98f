//! A connection to one replica, opened again when that has gone.
use std::{io, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::AbortHandle};

use super::{stand::Replica, work::Message};

pub struct Line {
    to: Arc<Replica>,
    open: Option<Open>,
}

/// Closed when dropped, whatever is under way.
struct Open {
    sender: SendRequest<Full<Bytes>>,
    connection: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Nobody answers there, or not any more.
pub struct Cut;

impl Line {
    pub fn new(to: &Arc<Replica>) -> Self {
        Self {
            to: to.clone(),
            open: None,
        }
    }

    /// Connects if need be.
    pub async fn open(&mut self) -> Result<(), Cut> {
        if let Some(open) = &mut self.open
            && open.sender.ready().await.is_ok()
        {
            return Ok(());
        }
        self.open = None;
        self.open = Some(self.connect().await.map_err(|_| Cut)?);
        Ok(())
    }

    async fn connect(&self) -> io::Result<Open> {
        let addr = self.to.addr().ok_or(io::ErrorKind::NotConnected)?;
        let io = TcpStream::connect(addr).await?;
        io.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(io))
            .await
            .map_err(io::Error::other)?;
        let connection = tokio::spawn(connection).abort_handle();
        Ok(Open { sender, connection })
    }

    /// Sends a message, as the conversation's own caller.
    pub async fn post(&mut self, message: &Message) -> Result<Response<Incoming>, Cut> {
        self.open().await?;
        let request = Request::post(message.path())
            .header(header::HOST, "gateway.test")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, format!("Bearer {}", message.context))
            .header("a2a-version", "1.0")
            .body(Full::new(message.body().into()))
            .unwrap();
        let open = self.open.as_mut().ok_or(Cut)?;
        open.sender.send_request(request).await.map_err(|_| Cut)
    }

    /// Leaves, also in the midst of an answer.
    pub fn hang_up(&mut self) {
        self.open = None;
    }
}
