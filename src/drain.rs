//! `a2a-gateway drain`: has a running gateway begin its drain, and waits until it can be stopped. It is for a preStop hook
//! in an image that has no shell and no client.
//!
//! It is let in by the admin token and nothing else: who shares a network, as all containers of a pod do, is not therefore
//! somebody who may stop the gateway. A gateway whose drain was asked for stays when it is over, so that whoever stops it
//! finds it there; one that has gone meanwhile was told to stop by somebody else.
use std::{
    fmt, io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::{
    net::{TcpStream, UnixStream},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::either::Either;

use crate::{
    cli,
    config::{Config, Listen, Overrides},
};

/// The exit code when the gateway could not be asked.
pub const NOT_ASKED: u8 = 2;
/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is asked how far it is.
const EVERY: Duration = Duration::from_millis(200);
/// How much longer than the drain may take it is waited for: the last records are written, and a store is told.
const SLACK: Duration = Duration::from_secs(10);
/// The longest answer.
const LONGEST: usize = 16 * 1024;

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// All ended by itself.
    Clean,
    /// Something was cut.
    Cut,
    /// It has gone, by another's word.
    Gone,
    /// Something still runs, and the time is over.
    Late,
}

impl Drained {
    /// 0 if nothing was cut as far as is known.
    pub fn exit_code(self) -> ExitCode {
        match self {
            Self::Clean | Self::Gone => ExitCode::SUCCESS,
            Self::Cut | Self::Late => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "drained: all calls have ended",
            Self::Cut => "drained: some calls were cut; raise drain.grace if they need longer",
            Self::Gone => "drained: the gateway has ended",
            Self::Late => "calls still run, and the time to wait is over",
        })
    }
}

/// How far it is, as the gateway says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stand {
    state: String,
    at_most_seconds: f64,
    clean: Option<bool>,
}

/// Does it. Fails if the gateway cannot be asked, with what to do about that.
pub fn drain(asked: &cli::Drain) -> Result<Drained, String> {
    let settings = match &asked.config {
        Some(file) if asked.admin.is_none() || asked.token_file.is_none() => {
            let overrides = Overrides {
                admin: asked.admin.clone(),
                ..Overrides::default()
            };
            let read = Config::load_without_agent(file, overrides);
            Some(read.map_err(|mistakes| mistakes.to_string())?)
        }
        Some(_) | None => None,
    };
    let settings = settings.as_ref();
    let admin = asked.admin.clone();
    let admin = admin.or_else(|| settings.and_then(|s| s.admin.clone()));
    let admin = admin.ok_or(
        "say where its admin address is: --admin, or --config with a file that has `admin`",
    )?;
    let file = settings.and_then(|s| s.admin_token_file.as_deref());
    let file = asked.token_file.as_deref().or(file);
    let file = file.ok_or(
        "a drain needs the admin token: --token-file, or --config with a file that has `admin_token_file`",
    )?;
    let gateway = Gateway {
        at: reachable(admin),
        token: token(file)?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(gateway.drain(asked.wait))
}

fn token(file: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|e| format!("the admin token in {}: {e}", file.display()))?;
    Ok(text.trim().to_owned())
}

/// Where one connects to that listens everywhere.
fn reachable(admin: Listen) -> Listen {
    let Listen::Tcp(admin) = admin else {
        return admin;
    };
    let ip = match admin {
        SocketAddr::V4(at) if at.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(at) if at.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        SocketAddr::V4(_) | SocketAddr::V6(_) => admin.ip(),
    };
    SocketAddr::new(ip, admin.port()).into()
}

struct Gateway {
    at: Listen,
    token: String,
}

/// What came of a question.
enum Said {
    Stand(Stand),
    /// Nobody listens there.
    Nobody(String),
    /// It has no ear for it at the moment, or the way there fails: it may run still.
    Unclear(String),
    Refused(String),
}

impl Gateway {
    async fn drain(&self, wait: Option<Duration>) -> Result<Drained, String> {
        let began = Instant::now();
        let first = match self.ask(Method::POST).await {
            Said::Stand(stand) => stand,
            Said::Nobody(why) | Said::Unclear(why) | Said::Refused(why) => return Err(why),
        };
        let most = Duration::try_from_secs_f64(first.at_most_seconds).unwrap_or_default();
        let until = began + wait.unwrap_or(most + SLACK);
        let (mut stand, mut nobody) = (first, false);
        loop {
            if stand.state == "drained" {
                let clean = stand.clean.unwrap_or_default();
                return Ok(if clean { Drained::Clean } else { Drained::Cut });
            }
            if timeout_at(until, tokio::time::sleep(EVERY)).await.is_err() {
                return Ok(Drained::Late);
            }
            let before = std::mem::take(&mut nobody);
            match timeout_at(until, self.ask(Method::GET)).await {
                Err(_) => return Ok(Drained::Late),
                Ok(Said::Stand(said)) => stand = said,
                Ok(Said::Nobody(_)) if before => return Ok(Drained::Gone),
                Ok(Said::Nobody(_)) => nobody = true,
                Ok(Said::Unclear(_)) => {}
                Ok(Said::Refused(why)) => return Err(why),
            }
        }
    }

    async fn ask(&self, method: Method) -> Said {
        let at = &self.at;
        let Ok(said) = timeout(PATIENCE, self.exchange(method)).await else {
            return Said::Unclear(format!("{at} does not answer; is it the admin address?"));
        };
        match said {
            Err(error) => {
                let says = format!("{at} cannot be asked: {error}; is it the admin address?");
                let kind = error.kind();
                if kind == io::ErrorKind::ConnectionRefused || kind == io::ErrorKind::NotFound {
                    Said::Nobody(says)
                } else {
                    Said::Unclear(says)
                }
            }
            Ok((StatusCode::UNAUTHORIZED, _)) => Said::Refused(format!(
                "{at} does not take the token; is it that of the gateway's `admin_token_file`?"
            )),
            Ok((status, text)) => match serde_json::from_slice(&text) {
                Ok(stand) => Said::Stand(stand),
                Err(_) if status.is_server_error() => {
                    Said::Unclear(format!("{at} answers {status}"))
                }
                Err(_) => Said::Refused(format!(
                    "{at} answers {status} and is no a2a-gateway that can be drained"
                )),
            },
        }
    }

    async fn exchange(&self, method: Method) -> io::Result<(StatusCode, Bytes)> {
        let (io, host) = match &self.at {
            Listen::Tcp(at) => (Either::Left(TcpStream::connect(at).await?), at.to_string()),
            Listen::Unix(path) => {
                let io = UnixStream::connect(path).await?;
                (Either::Right(io), "localhost".to_owned())
            }
        };
        let (mut sender, connection) = http1::handshake(TokioIo::new(io))
            .await
            .map_err(io::Error::other)?;
        let request = Request::builder()
            .method(method)
            .uri("/v1/drain")
            .header(header::HOST, host)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONNECTION, "close")
            .body(Empty::<Bytes>::new())
            .map_err(io::Error::other)?;
        let answer = async {
            let response = sender
                .send_request(request)
                .await
                .map_err(io::Error::other)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), LONGEST).collect().await;
            let body = body.map_err(io::Error::other)?;
            Ok((status, body.to_bytes()))
        };
        // The answer is what counts; the connection only moves its bytes, and may end before it is read.
        let mut connection = std::pin::pin!(connection);
        let mut answer = std::pin::pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            _ended = &mut connection => answer.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// One connection: answered with this, or dropped at once.
    async fn says(listener: &TcpListener, state: Option<&str>) {
        let (mut io, _) = listener.accept().await.unwrap();
        let Some(state) = state else {
            return;
        };
        let _read = io.read(&mut [0; 1024]).await.unwrap();
        let body = format!(r#"{{"state":"{state}","atMostSeconds":30,"clean":true}}"#);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        io.write_all((head + &body).as_bytes()).await.unwrap();
    }

    async fn drained(states: &[Option<&str>]) -> Result<Drained, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gateway = Gateway {
            at: listener.local_addr().unwrap().into(),
            token: "token".to_owned(),
        };
        let answers = async move {
            for state in states {
                says(&listener, *state).await;
            }
        };
        tokio::join!(gateway.drain(Some(Duration::from_secs(20))), answers).0
    }

    #[tokio::test]
    async fn a_connection_that_fails_is_not_the_end_of_the_gateway() {
        let states = [Some("draining"), None, None, Some("drained")];
        assert_eq!(drained(&states).await, Ok(Drained::Clean));
        assert_eq!(drained(&[Some("draining")]).await, Ok(Drained::Gone));
        assert!(drained(&[None]).await.is_err());
    }
}
