//! Small documents that the gateway needs for itself: an issuer's keys, a token. No redirect is followed, and what
//! comes is bounded.
use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, header, uri::PathAndQuery};

use super::{making::BadSetup, tls::Tls};
use crate::{
    agent::{self, Agent, Origin, Room},
    config::{BaseUrl, Config},
};

/// A longer document is some other one.
const LONGEST: usize = 256 * 1024;
/// How long each half may take; whoever keeps the result has a deadline for the whole.
const PATIENCE: Duration = Duration::from_secs(5);
/// Fetches are few, and one at a time is the rule.
const CONNECTIONS: usize = 2;

/// Where something is fetched, for one worker.
pub(super) struct Fetch {
    agent: Arc<Agent>,
    path: PathAndQuery,
}

impl Fetch {
    /// Connects only when something is fetched.
    pub(super) fn new(url: &str, config: &Config, tls: &Tls) -> Result<Self, BadSetup> {
        let wrong = |why: &str| BadSetup::Auth(format!("{url}: {why}"));
        let url = BaseUrl::parse(url).map_err(wrong)?;
        let (origin, _) = Origin::parse(&format!("{}://{}", url.scheme(), url.authority()))?;
        let settings = agent::Settings {
            max_connections: CONNECTIONS,
            connect: config.limits.connect,
            tls: tls.of_issuers.clone(),
            breaker: agent::Breaking::OFF, // it is no agent, and who asks says what is wrong
            ..agent::Settings::new(origin)
        };
        let path = if url.path().is_empty() {
            "/"
        } else {
            url.path()
        };
        Ok(Self {
            agent: Arc::new(Agent::new(&settings, Room::new(&settings))?),
            path: path.parse().map_err(|_| wrong("its path cannot be sent"))?,
        })
    }

    /// Closes connections that nobody uses.
    pub(super) fn sweep(&self) {
        self.agent.sweep();
    }

    /// The document.
    pub(super) fn get(&self) -> impl Future<Output = Result<Bytes, String>> + Send + use<> {
        self.ask(Method::GET, HeaderMap::new(), Bytes::new())
    }

    /// The answer to a form.
    pub(super) fn post(
        &self,
        mut fields: HeaderMap,
        form: String,
    ) -> impl Future<Output = Result<Bytes, String>> + Send + use<> {
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        fields.insert(header::CONTENT_TYPE, kind);
        self.ask(Method::POST, fields, form.into())
    }

    fn ask(
        &self,
        method: Method,
        fields: HeaderMap,
        body: Bytes,
    ) -> impl Future<Output = Result<Bytes, String>> + Send + use<> {
        let (agent, path) = (self.agent.clone(), self.path.clone());
        async move {
            let again = method == Method::GET;
            let mut request = Request::new(body);
            *request.method_mut() = method;
            *request.uri_mut() = path.into();
            let head = request.headers_mut();
            *head = fields;
            head.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
            let identity = HeaderValue::from_static("identity");
            head.insert(header::ACCEPT_ENCODING, identity);
            let sent = agent.send(request, PATIENCE, again).await;
            let (head, body) = sent.map_err(|e| e.to_string())?.into_parts();
            if !head.status.is_success() {
                return Err(format!("HTTP status {}", head.status.as_u16()));
            }
            let coding = head.headers.get(header::CONTENT_ENCODING);
            let whole = body.collect(coding, LONGEST, PATIENCE, |_| true).await;
            whole.map_err(|e| e.to_string())
        }
    }
}
