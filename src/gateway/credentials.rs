//! What the gateway shows the agent of itself: a secret of its own, or a token that it fetches. The callers' own
//! credentials stay here then.
use std::{path::Path, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::{fetch::Fetch, making::BadSetup, tls::Tls};
use crate::{
    a2a::{Fault, Kind},
    config::{self, Config, Oauth2, SecretHeader},
    follow::Follow,
    kept::Kept,
    watch::{Look, Watched},
};

/// What a token is good for that does not say it.
const USUAL: Duration = Duration::from_mins(5);
/// The most of a token's time that is kept in reserve, for a call that is on its way.
const RESERVE: Duration = Duration::from_secs(30);
/// How long after a refused token no other one is taken to be refused: calls that went out with it still come back.
const REFUSED_PAUSE: Duration = Duration::from_secs(10);
/// What forms may hold as it is (RFC 3986 2.3).
const FORM: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What all workers share.
pub(super) enum Own {
    /// Nothing: callers show their own.
    None,
    /// A field with a secret.
    Header(HeaderName, Secret),
    /// A token.
    Token(Box<Tokens>),
}

pub(super) enum Secret {
    Fixed(HeaderValue),
    File(Watched<HeaderValue>),
}

pub(super) struct Tokens {
    settings: Oauth2,
    secret: Watched<String>,
    kept: Kept<Token>,
    refused: Mutex<Option<Instant>>,
}

struct Token {
    value: HeaderValue,
    /// From then on another is fetched.
    fresh: Instant,
    /// From then on it is not sent any more.
    good: Instant,
}

/// For one worker.
pub(super) struct Credentials {
    own: Arc<Own>,
    fetch: Option<Fetch>,
    follow: Follow,
}

const ADVICE: &str = "no token could be fetched for the agent; look at token_url, client_id and the secret's file in \
                      backend.credentials.oauth2, and whether the issuer is up";

impl Own {
    /// Reads what is needed; `files` gets those that are to be looked at from now on.
    pub(super) fn new(config: &Config, files: &mut Vec<Box<dyn Look>>) -> Result<Self, BadSetup> {
        match &config.backend.credentials {
            None => Ok(Self::None),
            Some(config::Credentials::Header(said)) => header(said, files),
            Some(config::Credentials::Oauth2(said)) => {
                let secret = watched(&said.client_secret_file, files, |text| {
                    let secret = text.trim();
                    if secret.is_empty() {
                        return Err("it is empty".to_owned());
                    }
                    Ok(secret.to_owned())
                })?;
                Ok(Self::Token(Box::new(Tokens {
                    settings: said.clone(),
                    secret,
                    kept: Kept::new(ADVICE),
                    refused: Mutex::new(None),
                })))
            }
        }
    }
}

fn header(said: &SecretHeader, files: &mut Vec<Box<dyn Look>>) -> Result<Own, BadSetup> {
    let wrong = |why: &str| BadSetup::Auth(format!("backend.credentials.header: {why}"));
    let name = HeaderName::try_from(&said.name).map_err(|_| wrong("no name of a field"))?;
    let secret = match (&said.file, &said.env) {
        (Some(file), _) => Secret::File(watched(file, files, value)?),
        (None, Some(variable)) => {
            let text = config::variable(variable).map_err(|why| wrong(&why))?;
            Secret::Fixed(value(&text).map_err(|why| wrong(&format!("{variable}: {why}")))?)
        }
        (None, None) => return Err(wrong("neither file nor env")),
    };
    Ok(Own::Header(name, secret))
}

fn watched<T: Send + Sync + 'static>(
    file: &Path,
    files: &mut Vec<Box<dyn Look>>,
    read: impl Fn(&str) -> Result<T, String> + Send + Sync + 'static,
) -> Result<Watched<T>, BadSetup> {
    let wrong = |why| BadSetup::Auth(format!("backend.credentials: {why}"));
    let file = Watched::read(file, read).map_err(wrong)?;
    files.push(Box::new(file.clone()));
    Ok(file)
}

/// A secret as a field's value. What is wrong with it is told without it.
fn value(text: &str) -> Result<HeaderValue, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| "it cannot be the value of a field".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

impl Credentials {
    pub(super) fn new(
        own: Arc<Own>,
        config: &Config,
        tls: &Tls,
        follow: Follow,
    ) -> Result<Self, BadSetup> {
        let fetch = match &*own {
            Own::Token(tokens) => Some(Fetch::new(&tokens.settings.token_url, config, tls)?),
            Own::None | Own::Header(..) => None,
        };
        Ok(Self { own, fetch, follow })
    }

    /// Whether there are any.
    pub(super) fn on(&self) -> bool {
        !matches!(*self.own, Own::None)
    }

    /// Once in a while: closes connections that nobody uses.
    pub(super) fn sweep(&self) {
        self.fetch.iter().for_each(Fetch::sweep);
    }

    /// The field that they are put in.
    pub(super) fn writes(&self) -> Option<&HeaderName> {
        match &*self.own {
            Own::None => None,
            Own::Header(name, _) => Some(name),
            Own::Token(_) => Some(&header::AUTHORIZATION),
        }
    }

    /// Puts them into a request for the agent.
    pub(super) async fn put(&self, fields: &mut HeaderMap) -> Result<(), Fault> {
        match &*self.own {
            Own::None => {}
            Own::Header(name, Secret::Fixed(value)) => {
                fields.insert(name, value.clone());
            }
            Own::Header(name, Secret::File(file)) => {
                fields.insert(name, (*file.now()).clone());
            }
            Own::Token(tokens) => {
                let token = Box::pin(self.token(tokens)).await.ok_or_else(|| {
                    Fault::new(
                        Kind::BackendUnreachable,
                        "the gateway cannot log in at the agent",
                    )
                    .because("there is no token for backend.credentials.oauth2")
                })?;
                fields.insert(header::AUTHORIZATION, token.value.clone());
            }
        }
        Ok(())
    }

    /// The agent has refused them: a token is fetched anew for the next call.
    pub(super) fn refused(&self) {
        let Own::Token(tokens) = &*self.own else {
            return;
        };
        let mut refused = tokens.refused.lock();
        if refused.is_none_or(|at| at.elapsed() >= REFUSED_PAUSE) {
            *refused = Some(Instant::now());
            tokens.kept.forget();
        }
    }

    async fn token(&self, of: &Tokens) -> Option<Arc<Token>> {
        let fetch = self.fetch.as_ref()?;
        let now = Instant::now();
        if let Some(token) = of.kept.now()
            && now < token.good
        {
            if now >= token.fresh {
                of.kept.begin(&self.follow, of.fetch(fetch));
            }
            return Some(token);
        }
        let token = of.kept.fetched(&self.follow, of.fetch(fetch)).await?;
        (Instant::now() < token.good).then_some(token)
    }
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    token_type: String,
    /// A number, which some issuers write as a text.
    #[serde(default)]
    expires_in: Value,
}

impl Tokens {
    /// One token (RFC 6749 4.4.2), with the secret as it is now (2.3.1).
    fn fetch(&self, from: &Fetch) -> impl Future<Output = Result<Token, String>> + Send + use<> {
        let encoded = |text: &str| utf8_percent_encode(text, FORM).to_string();
        let said = &self.settings;
        let pair = format!(
            "{}:{}",
            encoded(&said.client_id),
            encoded(&self.secret.now())
        );
        let mut fields = HeaderMap::new();
        let basic = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
        if let Ok(mut basic) = basic {
            basic.set_sensitive(true);
            fields.insert(header::AUTHORIZATION, basic);
        }
        let mut form = "grant_type=client_credentials".to_owned();
        if let Some(scope) = &said.scope {
            form.push_str("&scope=");
            form.push_str(&encoded(scope));
        }
        let answer = from.post(fields, form);
        async move { read(&answer.await?, Instant::now()) }
    }
}

/// Reads an answer; what is wrong with it is told without it.
fn read(text: &[u8], now: Instant) -> Result<Token, String> {
    let answer: Answer = serde_json::from_slice(text)
        .map_err(|_| "the answer has no access_token and token_type".to_owned())?;
    if !answer.token_type.eq_ignore_ascii_case("bearer") {
        return Err("its token_type is not Bearer".to_owned());
    }
    if answer.access_token.is_empty() {
        return Err("its access_token is empty".to_owned());
    }
    let said = &answer.expires_in;
    let text = said.as_str().and_then(|text| text.parse().ok());
    let seconds = said.as_u64().or(text);
    // Longer than a day is as good as a day, and no clock overflows.
    let day = Duration::from_hours(24);
    let lives = seconds.map_or(USUAL, |s| Duration::from_secs(s).min(day));
    Ok(Token {
        value: value(&format!("Bearer {}", answer.access_token))?,
        fresh: now + lives * 3 / 4,
        good: now + lives - RESERVE.min(lives / 10),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_says_how_long_its_token_is_good() {
        let now = Instant::now();
        let times = |text: &str| {
            let token = read(text.as_bytes(), now).ok()?;
            assert!(token.value.is_sensitive());
            let seconds = |at: Instant| (at - now).as_secs();
            Some((
                token.value.to_str().ok()?.to_owned(),
                seconds(token.fresh),
                seconds(token.good),
            ))
        };
        let good = |fresh, good| Some(("Bearer t".to_owned(), fresh, good));
        for (expires, fresh, last) in [
            (r#","expires_in":100"#, 75, 90),
            (r#","expires_in":"100""#, 75, 90),
            (r#","expires_in":3600"#, 2700, 3570),
            (r#","expires_in":18446744073709551615"#, 64_800, 86_370),
            ("", 225, 270),
        ] {
            let text = format!(r#"{{"access_token":"t","token_type":"bearer"{expires}}}"#);
            assert_eq!(times(&text), good(fresh, last), "{text}");
        }
        for bad in [
            r#"{"access_token":"hunter2","token_type":"mac"}"#,
            r#"{"access_token":"hunter2\u0001","token_type":"bearer"}"#,
            r#"{"error":"hunter2"}"#,
            "hunter2",
        ] {
            let told = read(bad.as_bytes(), now).err();
            let told = told.unwrap_or_else(|| panic!("{bad}"));
            assert!(!told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn a_secret_is_told_nowhere() {
        assert!(value(" \n").is_err());
        let told = value("hunter2\u{1}").unwrap_err();
        assert!(!told.contains("hunter2"));
        let value = value(" hunter2\n").unwrap();
        assert_eq!(value, "hunter2");
        assert!(!format!("{value:?}").contains("hunter2"));
    }
}
