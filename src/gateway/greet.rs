//! Who calls. The ways that settings name are tried in their order; the first that knows the credential decides. One
//! that nobody knows is refused, or passes through where that is the last way.
use std::{net::IpAddr, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use parking_lot::Mutex;
use tokio::time::Instant;

mod leash;
mod met;
mod ways;

use leash::Leash;
pub(super) use met::Met;
use met::More;
pub(super) use ways::Ways;
use ways::{Issuer, Way};

use super::{Inner, Peer, fetch::Fetch};
use crate::{
    a2a::{Fault, Kind, Op, Version, headers, reply::ReplyTo, request::Read, shape::old::Old},
    follow::Follow,
    policy::{
        auth::{self, passing::CREDENTIALS, sets::Set, tokens::Refused},
        caller::Caller,
    },
};

/// How often a key that nobody knows makes the gateway ask the issuer again: anybody can make one up.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(10);
/// Keys are fetched again after this, so that one is noticed that the issuer has taken back.
const FRESH: Duration = Duration::from_mins(5);

/// The door, for one worker.
pub(super) struct Auth {
    ways: Arc<Ways>,
    /// Where each way's keys are fetched, if they are.
    fetches: Vec<Option<Fetch>>,
    follow: Follow,
    /// Each worker has its own: a count that all of them write would cost every call of each.
    nobody: Arc<Caller>,
    last: Mutex<Option<(IpAddr, Arc<Caller>)>>,
}

/// What a request has shown so far that no way knew.
#[derive(Default)]
struct Shown {
    any: bool,
    bearer: bool,
}

impl Auth {
    pub(super) fn new(ways: Arc<Ways>, fetches: Vec<Option<Fetch>>, follow: Follow) -> Self {
        Self {
            ways,
            fetches,
            follow,
            nobody: Arc::default(),
            last: Mutex::new(None),
        }
    }

    /// What cards say of it.
    pub(super) fn ways(&self) -> &Ways {
        &self.ways
    }

    /// Once in a while: closes connections that nobody uses.
    pub(super) fn sweep(&self) {
        self.fetches.iter().flatten().for_each(Fetch::sweep);
    }

    /// Who sends this, before anything else of it is read.
    pub(super) async fn greet(&self, fields: &HeaderMap, peer: &Peer) -> Result<Met, Fault> {
        if self.ways.nobody_cares {
            return Ok(self.nobody());
        }
        Box::pin(self.ask(fields, peer)).await
    }

    /// Somebody whom nobody asks for.
    pub(super) fn nobody(&self) -> Met {
        Met::new(self.nobody.clone())
    }

    async fn ask(&self, fields: &HeaderMap, peer: &Peer) -> Result<Met, Fault> {
        let mut shown = Shown::default();
        for (way, fetch) in self.ways.all.iter().zip(&self.fetches) {
            let met = match way {
                Way::Passthrough => Some(self.passing(fields, peer).await),
                Way::Anyone if shown.any => None, // a wrong credential is better told
                Way::Anyone => Some(Met::new(self.peer(peer))),
                Way::Keys(file, names) => {
                    let keys = file.now();
                    let mut met = None;
                    for name in names {
                        let Some(text) = shown.look(fields, name) else {
                            continue;
                        };
                        if let Some(key) = keys.find(text) {
                            if !key.is_good(auth::wall()) {
                                return Err(self.refuse(&shown, EXPIRED).because("an expired key"));
                            }
                            let more = More {
                                rights: Some(key.rights.clone()),
                                leash: Leash::Key(file.clone(), key.clone()),
                                key_in: Some(name.clone()),
                                mark: None,
                            };
                            met = Some(Met::with(key.caller.clone(), more));
                            break;
                        }
                    }
                    met
                }
                Way::Tokens(issuer) => match shown.look(fields, &header::AUTHORIZATION) {
                    Some(token) => self.token(issuer, fetch.as_ref(), token, &shown).await?,
                    None => None,
                },
            };
            if let Some(met) = met {
                return Ok(met);
            }
        }
        Err(self.refuse(&shown, if shown.any { WRONG } else { NONE }))
    }

    /// Whose token it is. None if it is not of this issuer.
    async fn token(
        &self,
        issuer: &Issuer,
        fetch: Option<&Fetch>,
        token: &str,
        shown: &Shown,
    ) -> Result<Option<Met>, Fault> {
        let now = auth::wall();
        if let Some(keys) = issuer.now()
            && let Some(proven) = issuer.tokens.proven(token, &keys, now).await
        {
            self.freshen(issuer, fetch);
            return Ok(Some(Met::by_token(&proven)));
        }
        if !issuer.tokens.concern(token) {
            return Ok(None);
        }
        let keys = self.keys(issuer, fetch).await?;
        let mut checked = issuer.tokens.check(token, &keys).await;
        if matches!(checked, Err(Refused::UnknownKey))
            && let Some(newer) = self.newer(issuer, fetch, &keys).await
        {
            checked = issuer.tokens.check(token, &newer).await;
        }
        let why = match checked {
            Ok(proven) => return Ok(Some(Met::by_token(&proven))),
            Err(Refused::Expired) => return Err(self.refuse(shown, EXPIRED).because("a token")),
            Err(Refused::UnknownKey) => "the issuer has no such key",
            Err(Refused::Invalid(why)) => why,
        };
        Err(self.refuse(shown, WRONG).because(why))
    }

    /// The issuer's keys, fetched if there are none yet.
    async fn keys(&self, issuer: &Issuer, fetch: Option<&Fetch>) -> Result<Arc<Set>, Fault> {
        if let Some(keys) = issuer.now() {
            self.freshen(issuer, fetch);
            return Ok(keys);
        }
        if let (Some(kept), Some(fetch)) = (issuer.kept(), fetch) {
            kept.fetched(&self.follow, issuer.fetch(fetch)).await;
        }
        issuer.now().ok_or_else(|| {
            let mut fault = Fault::new(Kind::Overloaded, "tokens cannot be checked at the moment")
                .because("the issuer's keys could not be fetched");
            fault.retry_after = Some(1);
            fault
        })
    }

    /// Fetches keys again behind the back of who asks, once they are old.
    fn freshen(&self, issuer: &Issuer, fetch: Option<&Fetch>) {
        if let (Some(kept), Some(fetch)) = (issuer.kept(), fetch)
            && kept.now().is_some_and(|keys| keys.at.elapsed() > FRESH)
        {
            kept.begin(&self.follow, issuer.fetch(fetch));
        }
    }

    /// Other keys than these, if the issuer has them by now.
    async fn newer(
        &self,
        issuer: &Issuer,
        fetch: Option<&Fetch>,
        than: &Arc<Set>,
    ) -> Option<Arc<Set>> {
        let (kept, fetch) = (issuer.kept()?, fetch?);
        let may = {
            let mut asked = issuer.asked.lock();
            let may = asked.is_none_or(|at| at.elapsed() >= UNKNOWN_PAUSE);
            if may {
                *asked = Some(Instant::now());
            }
            may
        };
        let keys = if may {
            kept.fetched(&self.follow, issuer.fetch(fetch)).await
        } else {
            kept.settled().await // somebody may be at it
        };
        let keys = keys?.keys.clone();
        (!Arc::ptr_eq(&keys, than)).then_some(keys)
    }

    async fn passing(&self, fields: &HeaderMap, peer: &Peer) -> Met {
        if !self.ways.named {
            return self.nobody();
        }
        let Some(mark) = self.ways.passing.mark(fields) else {
            return Met::new(self.peer(peer));
        };
        let known = self.ways.passing.known(&mark).await;
        let is_known = known.is_some();
        let more = More {
            mark: Some((mark, is_known)),
            ..More::default()
        };
        Met::with(known.unwrap_or_else(|| self.peer(peer)), more)
    }

    /// Who is known by the address alone. The next call is often from there as well.
    fn peer(&self, peer: &Peer) -> Arc<Caller> {
        let ip = peer.addr.ip();
        let mut last = self.last.lock();
        match &*last {
            Some((known, caller)) if *known == ip => caller.clone(),
            _ => {
                let made = Arc::new(caller(peer));
                *last = Some((ip, made.clone()));
                made
            }
        }
    }

    /// The same fault, with what would help.
    pub(super) fn challenges(&self, mut fault: Fault) -> Fault {
        let challenges = &self.ways.challenges;
        fault.more.challenges = challenges.iter().map(|c| c.value(false)).collect();
        fault
    }

    fn refuse(&self, shown: &Shown, words: &'static str) -> Fault {
        let mut fault = Fault::new(Kind::Unauthenticated, words);
        let challenges = &self.ways.challenges;
        fault.more.challenges = challenges.iter().map(|c| c.value(shown.bearer)).collect();
        fault
    }

    /// Whether this may be done, by a route that is named by its path in the settings.
    pub(super) fn may(met: &Met, op: Op, route: &str) -> Result<(), Fault> {
        let rights = met.more.as_ref().and_then(|more| more.rights.as_ref());
        match rights {
            Some(rights) if !rights.allow(op, route) => {
                Err(Fault::new(Kind::AccessDenied, "this is not allowed"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Takes out of a request for the agent what is no business of its: keys of the gateway's, and where the gateway
    /// shows a credential of its own, all others. That one is put in afterwards.
    pub(super) fn keep_back(&self, met: &Met, fields: &mut HeaderMap) {
        if self.ways.own {
            for name in &CREDENTIALS {
                fields.remove(name);
            }
        } else if let Some(name) = met.more.as_ref().and_then(|more| more.key_in.as_ref()) {
            fields.remove(name);
        }
        if self.ways.own || met.caller.verified {
            for name in self.ways.key_fields() {
                if *name != header::AUTHORIZATION {
                    fields.remove(name);
                }
            }
        }
    }

    /// What the agent's answer says about a credential that only passes through.
    pub(super) async fn answered(&self, met: &mut Met, good: Option<bool>) {
        let mark = met.more.as_mut().and_then(|more| more.mark.take());
        match (good, mark) {
            (Some(true), Some((mark, false))) => self.ways.passing.accepted(mark).await,
            (Some(false), Some((mark, true))) => self.ways.passing.refused(&mark).await,
            (Some(_) | None, _) => {}
        }
    }
}

const NONE: &str = "a credential is needed";
const WRONG: &str = "the credential is not valid";
const EXPIRED: &str = "the credential has expired";

impl Shown {
    fn look<'f>(&mut self, fields: &'f HeaderMap, name: &HeaderName) -> Option<&'f str> {
        let text = auth::shown(fields, name)?;
        self.any = true;
        self.bearer |= *name == header::AUTHORIZATION;
        Some(text)
    }
}

impl Inner {
    /// Notes who calls how, where somebody may want to read it.
    pub(super) fn notice(&self, met: &Met, read: &mut Read, fields: &HeaderMap, to: &ReplyTo) {
        if !self.callers.on() {
            return;
        }
        let new = to.dialect.shape.version() == Version::V10;
        if new && fields.contains_key(headers::X_EXTENSIONS) {
            read.old.add(Old::X_EXTENSIONS);
        }
        let (op, now) = (read.call.op, auth::wall());
        self.callers
            .note(&met.caller, to.dialect, op, read.old, now);
    }
}

/// Who is known by the address alone.
pub(super) fn caller(peer: &Peer) -> Caller {
    Caller {
        name: format!("peer:{}", peer.addr.ip().to_canonical()).into(),
        ..Caller::default()
    }
}

/// One way to be told what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Challenge {
    Bearer,
    ApiKey,
}

impl Challenge {
    fn value(self, token_was_shown: bool) -> HeaderValue {
        HeaderValue::from_static(match (self, token_was_shown) {
            (Self::Bearer, false) => "Bearer realm=\"a2a-gateway\"",
            (Self::Bearer, true) => "Bearer realm=\"a2a-gateway\", error=\"invalid_token\"",
            (Self::ApiKey, _) => "ApiKey realm=\"a2a-gateway\"",
        })
    }
}
