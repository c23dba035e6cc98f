//! Who calls. The ways that settings name are tried in their order; the first that knows the credential decides. One
//! that nobody knows is refused, or passes through where that is the last way.
use std::{net::IpAddr, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::time::Instant;

mod leash;
mod met;
mod secret;
mod ways;

use leash::Leash;
pub(super) use met::Met;
use met::{More, Shows};
pub(super) use ways::Ways;
use ways::{Issuer, Way};

use super::{Inner, Peer, at_once, fetch::Fetch};
use crate::{
    a2a::{Fault, Kind, Op, Version, headers, reply::ReplyTo, request::Read, shape::old::Old},
    follow::Follow,
    policy::{
        auth::{
            self,
            passing::{CREDENTIALS, Passing},
            sets::Set,
            tokens::{Proven, Refused},
        },
        caller::Caller,
    },
    reply::Proof,
    tls::Certificate,
};

/// How often a key that nobody knows, or a signature that fits no key, makes the gateway ask the issuer again: anybody
/// can make one up.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(10);
/// Keys are fetched again after this, so that one is noticed that the issuer has taken back.
const FRESH: Duration = Duration::from_mins(5);

/// The door, for one worker.
pub(super) struct Auth {
    ways: Arc<Ways>,
    /// Where each way's keys are fetched, if they are.
    fetches: Vec<Option<Arc<Fetch>>>,
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
    pub(super) fn new(ways: Arc<Ways>, fetches: Vec<Option<Arc<Fetch>>>, follow: Follow) -> Self {
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
        self.fetches.iter().flatten().for_each(|f| f.sweep());
        if self.ways.named {
            self.ways.passing.tick();
            self.ways.secret.look(&self.follow);
        }
    }

    /// Who sends this, before anything else of it is read.
    pub(super) async fn greet(&self, fields: &HeaderMap, peer: &Peer) -> Result<Met, Fault> {
        if self.ways.nobody_cares {
            return Ok(self.nobody());
        }
        if self.ways.wait {
            return Box::pin(self.ask(fields, peer)).await;
        }
        at_once(self.ask(fields, peer))
    }

    /// Somebody whom nobody asks for.
    pub(super) fn nobody(&self) -> Met {
        Met::new(self.nobody.clone())
    }

    async fn ask(&self, fields: &HeaderMap, peer: &Peer) -> Result<Met, Fault> {
        let mut shown = Shown::default();
        for (at, (way, fetch)) in self.ways.all.iter().zip(&self.fetches).enumerate() {
            let met = match way {
                Way::Passthrough => Some(self.passing(fields, peer)),
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
                            if !key.is_good(auth::wall) {
                                return Err(self.refuse(&shown, EXPIRED).because("an expired key"));
                            }
                            let more = More {
                                rights: Some(key.rights.clone()),
                                leash: Leash::Key(file.clone(), key.clone()),
                                mark: None,
                            };
                            met = Some(Met::with(key.caller.clone(), more));
                            break;
                        }
                    }
                    met
                }
                Way::Certificates(names) => shown.certificate(peer).and_then(|certificate| {
                    let caller = certificate.memo(names.id, || names.caller(certificate.names()));
                    let more = More {
                        leash: Leash::Certificate(certificate.clone()),
                        ..More::default()
                    };
                    (*caller).clone().map(|caller| Met::with(caller, more))
                }),
                Way::Tokens(issuer) => match shown.look(fields, &header::AUTHORIZATION) {
                    Some(token) => {
                        let fetch = fetch.as_deref();
                        let proven = self.token(issuer, fetch, token, &shown).await?;
                        proven.map(|proven| Met::by_token(at, proven))
                    }
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
    ) -> Result<Option<Arc<Proven>>, Fault> {
        let now = auth::wall();
        if let Some(keys) = issuer.now()
            && let Some(proven) = issuer.tokens.proven(token, &keys, now).await
        {
            self.freshen(issuer, fetch);
            return Ok(Some(proven));
        }
        if !issuer.tokens.concern(token) {
            return Ok(None);
        }
        let keys = self.keys(issuer, fetch).await?;
        let mut checked = issuer.tokens.check(token, &keys).await;
        if matches!(checked, Err(Refused::UnknownKey | Refused::WrongSignature))
            && let Some(newer) = self.newer(issuer, fetch, &keys).await
        {
            checked = issuer.tokens.check(token, &newer).await;
        }
        let why = match checked {
            Ok(proven) => return Ok(Some(proven)),
            Err(Refused::Expired) => return Err(self.refuse(shown, EXPIRED).because("a token")),
            Err(Refused::UnknownKey) => "the issuer has no such key",
            Err(Refused::WrongSignature) => "its signature is wrong",
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

    fn passing(&self, fields: &HeaderMap, peer: &Peer) -> Met {
        if !self.ways.named {
            return self.nobody();
        }
        // Without the secret that all replicas share, a credential would have another name in each.
        let Some(secret) = self.ways.secret.now(&self.follow) else {
            return Met::new(self.peer(peer));
        };
        let Some(mark) = Passing::mark(&secret, fields) else {
            return Met::new(self.peer(peer));
        };
        let known = self.ways.passing.known(&mark);
        let mark = Shows {
            mark,
            known: known.is_some(),
            from: peer.addr.ip(),
        };
        let more = More {
            mark: Some(mark),
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

    /// Takes out of a request for the agent what is no business of its: keys of the gateway's, wherever they stand, and
    /// where the gateway shows a credential of its own, all others. That one is put in afterwards.
    ///
    /// Who was let in otherwise than by passing through has shown all that the other fields of keys are for; only
    /// `Authorization` may hold what the agent wants to see.
    ///
    /// `written` is the field that it is put in, over what is there.
    pub(super) fn keep_back(
        &self,
        met: &Met,
        fields: &mut HeaderMap,
        written: Option<&HeaderName>,
    ) {
        let ways = &self.ways;
        let shown_all = ways.own || met.caller.verified;
        let goes = |name: &HeaderName| {
            // Which certificate somebody has shown is for the gateway to know: a field that says so is made up.
            ways.told.contains(name)
                || (ways.own && CREDENTIALS.contains(name))
                || (shown_all
                    && *name != header::AUTHORIZATION
                    && ways.key_fields().any(|field| field == name))
        };
        // Looked for rather than removed by all their names: each of those would be hashed.
        let gone = fields
            .keys()
            .filter(|name| Some(*name) != written && goes(name));
        let gone: SmallVec<[HeaderName; 4]> = gone.cloned().collect();
        for name in gone {
            fields.remove(name);
        }
        if ways.own || ways.key_fields().next().is_none() {
            return;
        }
        for name in &CREDENTIALS {
            self.keep_keys_back(name, fields);
        }
        if !shown_all {
            for name in ways.key_fields() {
                self.keep_keys_back(name, fields);
            }
        }
    }

    /// All of a field goes with the key that it holds.
    fn keep_keys_back(&self, name: &HeaderName, fields: &mut HeaderMap) {
        let holds = |value: &HeaderValue| self.ways.know_key_in(value.as_bytes());
        if fields.get_all(name).iter().any(holds) {
            fields.remove(name);
        }
    }

    /// What the agent's answer says about a credential that only passes through.
    pub(super) fn answered(&self, met: &mut Met, good: bool) {
        if let Some(mark) = met.more.as_mut().and_then(|more| more.mark.take()) {
            self.ways.told(&mark, good);
        }
    }

    /// The same for a stream, which says so with its first event.
    pub(super) fn proof(&self, met: &mut Met) -> Option<Proof> {
        let mark = met.more.as_mut()?.mark.take()?;
        let ways = self.ways.clone();
        Some(Box::new(move |good| ways.told(&mark, good)))
    }
}

const NONE: &str = "a credential is needed";
const WRONG: &str = "the credential is not valid";
const EXPIRED: &str = "the credential has expired";

impl Shown {
    fn certificate<'p>(&mut self, peer: &'p Peer) -> Option<&'p Arc<Certificate>> {
        let certificate = peer.certificate.as_ref()?;
        self.any = true;
        certificate.is_good().then_some(certificate)
    }

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
fn caller(peer: &Peer) -> Caller {
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
    /// No scheme is registered that says so, and a 401 needs one.
    Certificate,
}

impl Challenge {
    fn value(self, token_was_shown: bool) -> HeaderValue {
        HeaderValue::from_static(match (self, token_was_shown) {
            (Self::Bearer, false) => "Bearer realm=\"a2a-gateway\"",
            (Self::Bearer, true) => "Bearer realm=\"a2a-gateway\", error=\"invalid_token\"",
            (Self::ApiKey, _) => "ApiKey realm=\"a2a-gateway\"",
            (Self::Certificate, _) => "ClientCertificate realm=\"a2a-gateway\"",
        })
    }
}
