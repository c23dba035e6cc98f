//! The connection to who is probed: every question within its time, every answer within its size. No redirect is followed:
//! headers may be secrets, which go where they were told to go.
use std::{path::Path, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, header, response::Parts};
use tokio::time::Instant;

use super::way::Asked;
use crate::{
    a2a::{Version, headers},
    agent::{self, Agent, Body, Origin, Room},
    tls::{Client, Roots},
};

/// The longest answer, and the longest stream.
pub(super) const LONGEST: usize = 4 * 1024 * 1024;
/// One question at a time.
const CONNECTIONS: usize = 1;

/// Who is probed.
pub(super) struct Link {
    agent: Agent,
    origin: Origin,
    base: String,
    fields: HeaderMap,
    question: Duration,
    until: Instant,
}

/// A whole answer.
pub(super) struct Whole {
    pub(super) head: Parts,
    pub(super) body: Bytes,
}

/// Why there is none.
pub(super) enum Trouble {
    /// Nobody was there.
    Nobody(String),
    /// Something went wrong on the way.
    Way(String),
}

impl Trouble {
    pub(super) fn says(self) -> String {
        match self {
            Self::Nobody(why) | Self::Way(why) => why,
        }
    }
}

impl From<agent::Error> for Trouble {
    fn from(error: agent::Error) -> Self {
        let nobody = matches!(
            error,
            agent::Error::Unreachable(_) | agent::Error::Timeout { sent: false }
        );
        let late = matches!(error, agent::Error::Timeout { .. });
        let says = if late {
            "no answer in time".to_owned()
        } else {
            error.to_string()
        };
        if nobody {
            Self::Nobody(says)
        } else {
            Self::Way(says)
        }
    }
}

impl Link {
    pub(super) fn new(
        url: &str,
        fields: HeaderMap,
        ca_file: Option<&Path>,
        whole: Duration,
    ) -> Result<Self, String> {
        let (origin, base) = Origin::parse(url).map_err(|e| e.to_string())?;
        let tls = origin.secure().then(|| {
            let roots = Roots {
                ca_file: ca_file.map(Path::to_owned),
                ..Roots::default()
            };
            Client::read("probe", &roots)
        });
        let question = super::question(whole);
        let settings = agent::Settings {
            max_connections: CONNECTIONS,
            wait: question,
            connect: question,
            tls: tls.transpose()?,
            ..agent::Settings::new(origin.clone())
        };
        let agent = Agent::new(&settings, Room::new(&settings)).map_err(|e| e.to_string())?;
        Ok(Self {
            agent,
            origin,
            base,
            fields,
            question,
            until: Instant::now() + whole,
        })
    }

    /// The path that was probed, without a slash at its end.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// The path of a URL at the same place.
    pub(super) fn path_here(&self, url: &str) -> Option<String> {
        let (origin, path) = Origin::parse(url).ok()?;
        (origin == self.origin).then_some(path)
    }

    /// When a question that is asked now has to be answered.
    pub(super) fn deadline(&self) -> Instant {
        self.until.min(Instant::now() + self.question)
    }

    /// The card at a path, for a version.
    pub(super) async fn get(&self, path: &str, version: Option<Version>) -> Result<Whole, Trouble> {
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = Method::GET;
        let accept = HeaderValue::from_static("application/json");
        let deadline = self.deadline();
        let (head, body) = self.send(request, path, version, accept, deadline).await?;
        whole(head, body, deadline).await
    }

    /// The head of an answer, and its body as it comes.
    pub(super) async fn open(
        &self,
        asked: &Asked,
        deadline: Instant,
    ) -> Result<(Parts, Body), Trouble> {
        let mut request = Request::new(asked.body.clone().unwrap_or_default());
        *request.method_mut() = asked.method.clone();
        if asked.body.is_some() {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(header::CONTENT_TYPE, json);
        }
        let accept = if asked.op.streams() {
            "text/event-stream, application/json"
        } else {
            "application/json, application/a2a+json"
        };
        let accept = HeaderValue::from_static(accept);
        // Clients of v0.3 know no such field; without it a request is v0.3 (v1.0 3.6.2).
        let version = Some(asked.dialect.shape.version()).filter(|v| *v == Version::V10);
        self.send(request, &asked.path, version, accept, deadline)
            .await
    }

    /// The same with the whole body.
    pub(super) async fn ask(&self, asked: &Asked) -> Result<Whole, Trouble> {
        let deadline = self.deadline();
        let (head, body) = self.open(asked, deadline).await?;
        whole(head, body, deadline).await
    }

    async fn send(
        &self,
        mut request: Request<Bytes>,
        path: &str,
        version: Option<Version>,
        accept: HeaderValue,
        deadline: Instant,
    ) -> Result<(Parts, Body), Trouble> {
        let path = if path.is_empty() { "/" } else { path };
        *request.uri_mut() = path
            .parse()
            .map_err(|_| Trouble::Way("its path cannot be sent".to_owned()))?;
        let fields = request.headers_mut();
        fields.insert(header::ACCEPT, accept);
        let identity = HeaderValue::from_static("identity");
        fields.insert(header::ACCEPT_ENCODING, identity);
        if let Some(version) = version {
            let value = HeaderValue::from_static(version.name());
            fields.insert(headers::VERSION, value);
        }
        fields.extend(self.fields.clone());
        let left = left(deadline);
        if left.is_zero() {
            let says = "not asked: the time for the whole probe is over";
            return Err(Trouble::Way(says.to_owned()));
        }
        let response = self.agent.send(request, left, false).await?;
        Ok(response.into_parts())
    }
}

/// The whole body.
pub(super) async fn whole(head: Parts, body: Body, deadline: Instant) -> Result<Whole, Trouble> {
    let coding = head.headers.get(header::CONTENT_ENCODING);
    let body = body.collect(coding, LONGEST, left(deadline), |_| true);
    let body = body.await?;
    Ok(Whole { head, body })
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// The media type of an answer, without its parameters.
pub(super) fn media_type(head: &Parts) -> String {
    let said = head.headers.get(header::CONTENT_TYPE);
    let said = said.and_then(|value| value.to_str().ok()).unwrap_or("");
    let bare = said.split(';').next().unwrap_or("").trim();
    bare.to_ascii_lowercase()
}

/// A head, for a person.
pub(super) fn shown(head: &Parts) -> String {
    let kind = media_type(head);
    let kind = if kind.is_empty() {
        "no content type"
    } else {
        &kind
    };
    let to = head.headers.get(header::LOCATION);
    match to.and_then(|to| to.to_str().ok()) {
        Some(to) if head.status.is_redirection() => {
            format!("{}, a redirect to {to}", head.status.as_u16())
        }
        Some(_) | None => format!("{} {kind}", head.status.as_u16()),
    }
}
