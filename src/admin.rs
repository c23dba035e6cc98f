//! Probes, and what operators look at and change, on a port of its own, so that neither callers nor a full house of
//! connections stand in their way.
//!
//! A small table of paths over the same server as the calls', on one thread and with tighter limits. What a probe
//! says is a plain function: it reads flags and counters and never waits.

mod audit;
mod callers;
mod conversations;
mod drain;
mod limits;
mod metrics;
mod reload;
mod token;

use std::convert::Infallible;
use std::io::{Error, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::combinators::MapErr;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use parking_lot::RwLock;

pub use audit::audit;
pub use callers::callers;
pub use conversations::{conversations, release};
pub use drain::{Drains, drain, drains};
pub use limits::limits;
pub use metrics::metrics;
pub use reload::reload;

use crate::server::{self, Listen, Peer, Running, Service, Settings};

/// How long a probe may take to say what it wants, or may stay silent.
const PATIENCE: Duration = Duration::from_secs(5);
/// Probes and scrapers are few.
const MAX_CONNECTIONS: usize = 64;
/// How long a drain waits for an answer that is being written.
const GRACE: Duration = Duration::from_secs(1);
const PLAIN: &str = "text/plain; charset=utf-8";

/// What a path says.
#[derive(Clone, Debug)]
pub struct Page {
    /// The status of the answer.
    pub status: StatusCode,
    /// The type of its text.
    pub content_type: &'static str,
    /// Its text.
    pub text: String,
}

impl Page {
    /// Plain text.
    pub fn plain(status: StatusCode, text: impl Into<String>) -> Self {
        Self {
            status,
            content_type: PLAIN,
            text: text.into(),
        }
    }
}

/// What is asked of a path.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What of the path follows the route's own.
    pub rest: String,
    /// The token that came with it.
    pub token: Option<String>,
    /// What follows the `?`.
    pub query: String,
}

type Answer = Pin<Box<dyn Future<Output = Page> + Send>>;

/// A path, and what it says.
pub struct Route {
    verb: Method,
    path: &'static str,
    /// Everything below the path is its, too.
    below: bool,
    page: Box<dyn Fn(Asked) -> Answer + Send + Sync>,
}

impl Route {
    /// A path that says to GET and HEAD what `page` returns, asked each time.
    pub fn new(path: &'static str, page: impl Fn() -> Page + Send + Sync + 'static) -> Self {
        Self::waiting(Method::GET, path, move |_| std::future::ready(page()))
    }

    /// A path that does something that is waited for.
    pub fn waiting<F>(
        verb: Method,
        path: &'static str,
        page: impl Fn(Asked) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Page> + Send + 'static,
    {
        Self {
            verb,
            path,
            below: false,
            page: Box::new(move |asked| Box::pin(page(asked))),
        }
    }

    /// The same for everything below the path.
    #[must_use]
    pub fn and_below(mut self) -> Self {
        self.below = true;
        self
    }

    fn rest<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.path)?;
        (rest.is_empty() || self.below).then_some(rest)
    }

    fn takes(&self, verb: &Method) -> bool {
        self.verb == *verb || self.verb == Method::GET && *verb == Method::HEAD
    }

    /// `/livez`: the process answers.
    pub fn live() -> Self {
        Self::new("/livez", || Page::plain(StatusCode::OK, "ok\n"))
    }

    /// `/readyz`: calls are welcome, or why they are not. With `?verbose` all details follow, a line each.
    pub fn ready(
        ready: impl Fn() -> std::result::Result<(), String> + Send + Sync + 'static,
        details: Vec<Detail>,
    ) -> Self {
        Self::waiting(Method::GET, "/readyz", move |asked| {
            let (status, mut text) = match ready() {
                Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
                Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why + "\n"),
            };
            let words = asked.query.split('&');
            if words
                .map(|word| word.split('=').next())
                .any(|w| w == Some("verbose"))
            {
                for detail in &details {
                    let line = detail();
                    if !line.is_empty() {
                        text.push_str(&line);
                        text.push('\n');
                    }
                }
            }
            std::future::ready(Page::plain(status, text))
        })
    }
}

/// A line about one part of the gateway. It is told to everybody who may ask whether calls are welcome.
pub type Detail = Box<dyn Fn() -> String + Send + Sync>;

/// The paths of an address, which may be exchanged for others.
#[derive(Clone)]
pub struct Table(Arc<RwLock<Arc<[Route]>>>);

impl Table {
    /// These.
    pub fn new(routes: Vec<Route>) -> Self {
        Self(Arc::new(RwLock::new(routes.into())))
    }

    /// These instead, for the next request.
    pub fn set(&self, routes: Vec<Route>) {
        *self.0.write() = routes.into();
    }
}

impl From<Vec<Route>> for Table {
    fn from(routes: Vec<Route>) -> Self {
        Self::new(routes)
    }
}

/// Serves `routes` at `listen`, if it is to be served at all.
pub fn start(listen: Option<Listen>, routes: impl Into<Table>) -> Result<Option<Running>> {
    let Some(listen) = listen else {
        return Ok(None);
    };
    let settings = Settings {
        name: "admin",
        listen,
        workers: 1,
        max_connections: MAX_CONNECTIONS,
        silence: PATIENCE,
        header: PATIENCE,
        write_stall: PATIENCE,
        max_head: 8 * 1024,
        max_followers: 0,
        drain_grace: GRACE,
        http2: false,
        ..Settings::default()
    };
    let admin = Admin(routes.into());
    server::start(settings, move |_| admin.clone()).map(Some)
}

#[derive(Clone)]
struct Admin(Table);

impl Admin {
    /// The page, and the verbs to use instead where there is none for this one.
    async fn page(&self, verb: &Method, uri: &Uri, token: Option<String>) -> (Page, String) {
        let path = uri.path();
        let routes = self.0.0.read().clone();
        let fitting = || routes.iter().filter(|route| route.rest(path).is_some());
        let Some(route) = fitting().find(|route| route.takes(verb)) else {
            let verbs: Vec<&str> = fitting().flat_map(|r| verbs(&r.verb)).copied().collect();
            if verbs.is_empty() {
                return (
                    Page::plain(StatusCode::NOT_FOUND, "not found\n"),
                    String::new(),
                );
            }
            let verbs = verbs.join(", ");
            let page = Page::plain(StatusCode::METHOD_NOT_ALLOWED, format!("use {verbs}\n"));
            return (page, verbs);
        };
        let rest = route.rest(path).unwrap_or_default().to_owned();
        let query = uri.query().unwrap_or_default().to_owned();
        let asked = Asked { rest, token, query };
        ((route.page)(asked).await, String::new())
    }
}

impl Service for Admin {
    type Body = MapErr<Full<Bytes>, fn(Infallible) -> Error>;

    fn call(
        &self,
        request: Request<Incoming>,
        _: Peer,
    ) -> impl Future<Output = Response<Self::Body>> + Send + 'static + use<> {
        let admin = self.clone();
        async move {
            let token = request.headers().get(header::AUTHORIZATION);
            let token = token.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
            let token = token.map(str::to_owned);
            let (page, allow) = admin.page(request.method(), request.uri(), token).await;
            let never: fn(Infallible) -> Error = |never| match never {};
            let mut response = Response::new(Full::from(page.text).map_err(never));
            *response.status_mut() = page.status;
            let fields = response.headers_mut();
            fields.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static(page.content_type),
            );
            fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            if let (false, Ok(allow)) = (allow.is_empty(), HeaderValue::try_from(allow)) {
                fields.insert(header::ALLOW, allow);
            }
            if page.status == StatusCode::UNAUTHORIZED {
                let challenge = HeaderValue::from_static("Bearer realm=\"a2a-gateway admin\"");
                fields.insert(header::WWW_AUTHENTICATE, challenge);
            }
            response
        }
    }
}

const fn verbs(of: &Method) -> &'static [&'static str] {
    match *of {
        Method::GET => &["GET", "HEAD"],
        _ => &["POST"],
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use std::net::SocketAddr;

    use super::*;

    fn ask(addr: SocketAddr, line: &str) -> String {
        let mut io = TcpStream::connect(addr).unwrap();
        write!(
            io,
            "{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        io.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn routes_answer() {
        let draining = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&draining);
        let ready = move || {
            if flag.load(Relaxed) {
                return Err("draining".to_owned());
            }
            Ok(())
        };
        let listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
        let routes = vec![
            Route::live(),
            Route::ready(ready, vec![Box::new(|| "all: well".to_owned())]),
        ];
        let running = start(listen, routes).unwrap().unwrap();
        let addr = running.local_addr;

        let live = ask(addr, "GET /livez");
        assert!(live.starts_with("HTTP/1.1 200 OK\r\n"), "{live}");
        assert!(live.ends_with("\r\n\r\nok\n"), "{live}");
        let head = ask(addr, "HEAD /livez");
        assert!(head.contains("content-length: 3\r\n"), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        let verbose = ask(addr, "GET /readyz?verbose");
        assert!(verbose.starts_with("HTTP/1.1 200"), "{verbose}");
        assert!(verbose.ends_with("ok\nall: well\n"), "{verbose}");
        assert!(ask(addr, "GET /readyz").ends_with("\r\n\r\nok\n"));
        draining.store(true, Relaxed);
        let busy = ask(addr, "GET /readyz");
        assert!(busy.starts_with("HTTP/1.1 503"), "{busy}");
        assert!(busy.ends_with("draining\n"), "{busy}");
        assert!(ask(addr, "GET /").starts_with("HTTP/1.1 404"));
        let post = ask(addr, "POST /livez");
        assert!(post.starts_with("HTTP/1.1 405"), "{post}");
        assert!(post.contains("allow: GET, HEAD\r\n"), "{post}");

        running.drain();
        assert!(running.wait().clean());
    }

    #[test]
    fn nothing_listens_without_an_address() {
        assert!(start(None, vec![Route::live()]).unwrap().is_none());
    }
}
