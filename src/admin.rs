//! Probes, and what operators look at and change, on a port of its own, so that neither callers nor a full house of
//! connections stand in their way.
//!
//! A small table of paths over the same server as the calls', on one thread and with tighter limits. What a probe
//! says is a plain function: it reads flags and counters and never waits.

mod audit;
mod callers;
mod conversations;
mod limits;
mod metrics;
mod token;

use std::convert::Infallible;
use std::io::{Error, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::MapErr;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

pub use audit::audit;
pub use callers::callers;
pub use conversations::{conversations, release};
pub use limits::limits;
pub use metrics::metrics;

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
    /// Its query.
    pub query: Option<String>,
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

    /// `/readyz`: calls are welcome, or why they are not; with `?verbose` also `details`, in whole lines.
    pub fn ready(
        ready: impl Fn() -> std::result::Result<(), String> + Send + Sync + 'static,
        details: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Self::waiting(Method::GET, "/readyz", move |asked| {
            let mut page = match ready() {
                Ok(()) => Page::plain(StatusCode::OK, "ok\n"),
                Err(why) => Page::plain(StatusCode::SERVICE_UNAVAILABLE, why + "\n"),
            };
            if asked
                .query
                .is_some_and(|query| query.starts_with("verbose"))
            {
                page.text += &details();
            }
            std::future::ready(page)
        })
    }
}

/// Serves `routes` at `listen`, if it is to be served at all.
pub fn start(listen: Option<Listen>, routes: Vec<Route>) -> Result<Option<Running>> {
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
struct Admin(Arc<[Route]>);

impl Admin {
    /// The page, and the verbs to use instead where there is none for this one.
    async fn page(
        &self,
        verb: &Method,
        path: &str,
        query: Option<&str>,
        token: Option<String>,
    ) -> (Page, String) {
        let fitting = || self.0.iter().filter(|route| route.rest(path).is_some());
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
        let query = query.map(str::to_owned);
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
            let (verb, uri) = (request.method(), request.uri());
            let (page, allow) = admin.page(verb, uri.path(), uri.query(), token).await;
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
            Route::ready(ready, || "one is up\n".to_owned()),
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
        assert!(verbose.ends_with("\r\n\r\nok\none is up\n"), "{verbose}");
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
