//! The ways to be let in, as settings name them: what all workers share.
use std::{str::FromStr, sync::Arc};

use http::{HeaderName, header};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Challenge, met::Shows, secret::Shared};
use crate::{
    a2a::shape::card::{Scheme, Security},
    config::{self, Config, MetadataRule},
    gateway::{fetch::Fetch, making::BadSetup, tls::Tls},
    kept::Kept,
    policy::{
        auth::{certificates::Names, keys::Keys, passing::Passing, sets::Set, tokens::Tokens},
        conversation::Conversations,
    },
    watch::{Look, Watched},
};

/// Fields in which proxies tell of certificates (RFC 9440, Envoy).
static CERTIFICATES: [HeaderName; 3] = [
    HeaderName::from_static("client-cert"),
    HeaderName::from_static("client-cert-chain"),
    HeaderName::from_static("x-forwarded-client-cert"),
];
/// A field has no more words than these that could be keys.
const WORDS: usize = 64;

/// All ways, in order.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one question that calls ask of all ways"
)]
pub(in crate::gateway) struct Ways {
    pub(super) all: Vec<Way>,
    /// What each was made of.
    made_of: Vec<MadeOf>,
    /// Whether somebody goes by callers that are not verified.
    pub(super) named: bool,
    /// Whether everybody passes and nobody wants to know who it was.
    pub(super) nobody_cares: bool,
    /// Whether somebody may have to wait until it is known who they are.
    pub(super) wait: bool,
    /// Whether the gateway shows the agent a credential of its own.
    pub(super) own: bool,
    /// Fields that tell of certificates, where clients are asked for some.
    pub(super) told: &'static [HeaderName],
    pub(super) passing: Arc<Passing>,
    /// By which their names are made.
    pub(super) secret: Arc<Shared>,
    pub(super) challenges: Vec<Challenge>,
}

/// What a way follows from: its own settings, its realm, and the routes that a key may name.
#[derive(PartialEq, Eq)]
struct MadeOf(config::Way, config::Realm, Vec<String>);

#[derive(Clone)]
pub(super) enum Way {
    Passthrough,
    Anyone,
    Keys(Watched<Keys>, Vec<HeaderName>),
    Tokens(Arc<Issuer>),
    Certificates(Arc<Names>),
}

/// An issuer, and where its keys are.
pub(super) struct Issuer {
    pub(super) tokens: Arc<Tokens>,
    source: Source,
    /// When the issuer was last asked for a key that nobody knew.
    pub(super) asked: Mutex<Option<Instant>>,
}

enum Source {
    File(Watched<Arc<Set>>),
    Url(String, Kept<Fetched>),
}

/// Keys as they were fetched.
pub(super) struct Fetched {
    pub(super) keys: Arc<Set>,
    pub(super) at: Instant,
    /// Of the text: the same keys stay the same, and so do the tokens that they have checked.
    digest: blake3::Hash,
}

impl Issuer {
    /// The keys that there are.
    pub(super) fn now(&self) -> Option<Arc<Set>> {
        match &self.source {
            Source::File(file) => Some((*file.now()).clone()),
            Source::Url(_, kept) => kept.now().map(|fetched| fetched.keys.clone()),
        }
    }

    /// Where fetched ones are kept.
    pub(super) fn kept(&self) -> Option<&Kept<Fetched>> {
        match &self.source {
            Source::File(_) => None,
            Source::Url(_, kept) => Some(kept),
        }
    }

    /// Fetches them.
    pub(super) fn fetch(
        &self,
        from: &Fetch,
    ) -> impl Future<Output = Result<Fetched, String>> + Send + use<> {
        let (text, tokens) = (from.get(), self.tokens.clone());
        let old = self.kept().and_then(Kept::now);
        async move {
            let text = text.await?;
            let digest = blake3::hash(&text);
            let keys = match old {
                Some(old) if old.digest == digest => old.keys.clone(),
                _ => {
                    let text = std::str::from_utf8(&text).map_err(|e| e.to_string())?;
                    Set::read(text, tokens.algorithms())?.into()
                }
            };
            Ok(Fetched {
                keys,
                at: Instant::now(),
                digest,
            })
        }
    }
}

impl Ways {
    /// Reads what they need; `files` gets those that are to be looked at from now on. A way that was there before, and
    /// what it has fetched and remembers, goes on.
    pub(in crate::gateway) fn new(
        config: &Config,
        conversations: &Conversations,
        before: Option<&Self>,
        files: &mut Vec<Box<dyn Look>>,
    ) -> Result<Self, BadSetup> {
        let mut all = vec![];
        let mut made_of = vec![];
        for (said, realm) in config.auth.iter().zip(config::realms(&config.auth)) {
            let of = MadeOf(said.clone(), realm.clone(), routes(config));
            let known = before.and_then(|before| before.known(&of));
            all.push(match (known, said) {
                (Some(known), _) => known,
                (None, config::Way::Passthrough) => Way::Passthrough,
                (None, config::Way::Anyone) => Way::Anyone,
                (None, config::Way::ApiKeys(said)) => keys(config, said, realm, files)?,
                (None, config::Way::ClientCertificates(said)) => {
                    Way::Certificates(Names::new(said, realm).into())
                }
                (None, config::Way::Jwt(said)) => Way::Tokens(issuer(said, realm, files)?.into()),
            });
            made_of.push(of);
        }
        let passes = matches!(all[..], [Way::Passthrough]);
        let writes = |rules: &[MetadataRule]| !rules.is_empty();
        let named = config.admin.is_some()
            || config.audit.is_on()
            || config.access_log
            || config.ownership.is_on()
            || !config.limits.rules.is_empty()
            || writes(&config.metadata)
            || config.routes.iter().any(|route| writes(&route.metadata));
        let challenges = challenges(&all);
        let passthrough = all.iter().any(|w| matches!(w, Way::Passthrough));
        // Once the file has its writer, nobody else can look for it there.
        let later = config.state.is_memory() && config.state.persist.is_some();
        let secret = match before.map(|before| &before.secret) {
            Some(secret) if !matches!(**secret, Shared::None) => secret.clone(),
            Some(_) | None if named && (passthrough || later) => {
                Shared::new(config, conversations)?.into()
            }
            Some(_) | None => Arc::default(),
        };
        Ok(Self {
            made_of,
            named,
            nobody_cares: passes && !named,
            wait: all.iter().any(|way| matches!(way, Way::Tokens(_))),
            own: config.backend.credentials.is_some(),
            told: match &config.tls {
                Some(tls) if tls.client_certificates.mode != config::Asks::Off => &CERTIFICATES,
                Some(_) | None => &[],
            },
            passing: before.map_or_else(Arc::default, |before| before.passing.clone()),
            secret,
            challenges,
            all,
        })
    }

    fn known(&self, of: &MadeOf) -> Option<Way> {
        let mut all = self.made_of.iter().zip(&self.all);
        all.find(|(made_of, _)| *made_of == of)
            .map(|(_, way)| way.clone())
    }

    /// Where each way's keys are fetched, for one worker.
    pub(in crate::gateway) fn fetches(
        &self,
        config: &Config,
        tls: &Tls,
    ) -> Result<Vec<Option<Arc<Fetch>>>, BadSetup> {
        let fetch = |way: &Way| match way {
            Way::Tokens(issuer) => match &issuer.source {
                Source::Url(url, _) => Ok(Some(Fetch::new(url, config, tls)?.into())),
                Source::File(_) => Ok(None),
            },
            Way::Passthrough | Way::Anyone | Way::Keys(..) | Way::Certificates(_) => Ok(None),
        };
        self.all.iter().map(fetch).collect()
    }

    /// The fields that may hold a key.
    pub(super) fn key_fields(&self) -> impl Iterator<Item = &HeaderName> {
        self.all.iter().flat_map(|way| match way {
            Way::Keys(_, names) => names.as_slice(),
            Way::Passthrough | Way::Anyone | Way::Tokens(_) | Way::Certificates(_) => &[],
        })
    }

    /// Whether a field's value is, or has within it, a key of the gateway's: also one that is no longer good.
    pub(super) fn know_key_in(&self, value: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(value) else {
            return false;
        };
        let known = |word: &str| {
            !word.is_empty()
                && self.all.iter().any(|way| match way {
                    Way::Keys(file, _) => file.now().find(word).is_some(),
                    Way::Passthrough | Way::Anyone | Way::Tokens(_) | Way::Certificates(_) => false,
                })
        };
        let text = text.trim();
        let behind_scheme = text.split_once(' ').map_or("", |(_, rest)| rest.trim());
        let between = |c: char| c.is_ascii_whitespace() || matches!(c, ',' | ';' | '=' | '"');
        let mut words = text.split(between).take(WORDS);
        known(text)
            || known(behind_scheme)
            || words.any(|word| word != text && word != behind_scheme && known(word))
    }

    /// What the agent says of a credential.
    pub(super) fn told(&self, of: &Shows, good: bool) {
        match (good, of.known) {
            (true, false) => self.passing.accepted(of.mark, of.from),
            (false, true) => self.passing.refused(&of.mark),
            (true, true) | (false, false) => {}
        }
    }

    /// What a card says of them; nothing where the agent alone decides.
    pub(in crate::gateway) fn security(&self) -> Option<Security> {
        let mut schemes = vec![];
        let mut others = false;
        for way in &self.all {
            match way {
                Way::Passthrough | Way::Anyone => others = true,
                Way::Keys(_, names) => schemes.extend(names.iter().map(|name| {
                    if *name == header::AUTHORIZATION {
                        Scheme::Bearer { jwt: false }
                    } else {
                        Scheme::Key(name.as_str().to_owned())
                    }
                })),
                Way::Tokens(_) => schemes.push(Scheme::Bearer { jwt: true }),
                Way::Certificates(_) => schemes.push(Scheme::Certificate),
            }
        }
        let passes = self.all.iter().any(|w| matches!(w, Way::Passthrough));
        if schemes.is_empty() && passes {
            return None;
        }
        Some(Security {
            schemes,
            beside: passes,
            none: others && !passes,
        })
    }
}

/// The names that a key's rights may have.
fn routes(config: &Config) -> Vec<String> {
    let mut routes: Vec<String> = config.routes.iter().map(|r| r.path.to_string()).collect();
    if config.backend.url.is_some() {
        routes.push("/".to_owned());
    }
    routes
}

fn keys(
    config: &Config,
    said: &config::ApiKeys,
    realm: config::Realm,
    files: &mut Vec<Box<dyn Look>>,
) -> Result<Way, BadSetup> {
    let routes = routes(config);
    let read = move |text: &str| Keys::read(text, &routes, &realm);
    let wrong = |why| BadSetup::Auth(format!("api_keys.file: {why}"));
    let file = Watched::read(&said.file, read).map_err(wrong)?;
    files.push(Box::new(file.clone()));
    let names = said.headers.iter().map(|name| HeaderName::from_str(name));
    let names: Result<_, _> = names.collect();
    let names = names.map_err(|_| BadSetup::Auth("api_keys.headers: no name".to_owned()))?;
    Ok(Way::Keys(file, names))
}

fn issuer(
    said: &config::Jwt,
    realm: config::Realm,
    files: &mut Vec<Box<dyn Look>>,
) -> Result<Issuer, BadSetup> {
    let tokens = Arc::new(Tokens::new(said, realm));
    let wrong = |why| BadSetup::Auth(format!("jwt.jwks_file: {why}"));
    let source = match (&said.jwks_url, &said.jwks_file) {
        (None, Some(file)) => {
            let of = tokens.clone();
            let read = move |text: &str| Set::read(text, of.algorithms()).map(Arc::new);
            let file = Watched::read(file, read).map_err(wrong)?;
            files.push(Box::new(file.clone()));
            Source::File(file)
        }
        (url, _) => Source::Url(url.clone().unwrap_or_default(), Kept::new(ADVICE)),
    };
    Ok(Issuer {
        tokens,
        source,
        asked: Mutex::new(None),
    })
}

const ADVICE: &str = "the keys of an issuer could not be fetched; those from before still hold. Is auth.jwt.jwks_url \
                      right, and reachable from here?";

fn challenges(all: &[Way]) -> Vec<Challenge> {
    let mut challenges = vec![];
    let mut add = |challenge| {
        if !challenges.contains(&challenge) {
            challenges.push(challenge);
        }
    };
    for way in all {
        match way {
            Way::Passthrough | Way::Anyone => {}
            Way::Keys(_, names) => {
                for name in names {
                    let bearer = *name == header::AUTHORIZATION;
                    add(if bearer {
                        Challenge::Bearer
                    } else {
                        Challenge::ApiKey
                    });
                }
            }
            Way::Tokens(_) => add(Challenge::Bearer),
            Way::Certificates(_) => add(Challenge::Certificate),
        }
    }
    challenges
}
