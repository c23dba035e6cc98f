//! Things that are made of several files, and made anew when one has changed. Files that belong together are seldom
//! written at one moment: a certificate that does not fit its key yet waits for the other file, and what was made
//! before still holds.
use std::{path::Path, sync::Arc, time::SystemTime};

use parking_lot::{Mutex, RwLock};
use rustls::{
    RootCertStore,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, pem, pem::PemObject},
    sign::{CertifiedKey, SigningKey},
};
use tokio::sync::watch;

use super::{
    Pair,
    expiry::{self, Expiry, Told},
};
use crate::watch::{Look, Watched};

/// How many looks files may not fit together before somebody has to know.
const PATIENCE: u32 = 5;

/// What is made of files.
pub(super) struct Made<T>(Arc<Inner<T>>);

type Make<T> = dyn Fn(u64) -> Result<T, String> + Send + Sync;

struct Inner<T> {
    make: Box<Make<T>>,
    now: RwLock<Arc<T>>,
    made: watch::Sender<u64>,
    /// When what it was made of ends.
    ends: RwLock<Arc<[Expiry]>>,
    files: Mutex<Looked>,
}

/// Files, and what was seen of them.
pub(super) struct Looked {
    what: &'static str,
    files: Vec<Box<dyn Look>>,
    changes: Vec<watch::Receiver<u64>>,
    /// Looks since a change of which nothing could be made.
    waits: Option<u32>,
    /// Those whose end is told, by the setting that names them.
    ends: Vec<(String, Watched<Vec<CertificateDer<'static>>>)>,
    told: Told,
}

impl Looked {
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            files: vec![],
            changes: vec![],
            waits: None,
            ends: vec![],
            told: Told::default(),
        }
    }

    /// When these end is told from now on, under the name of their setting.
    pub(super) fn tells(&mut self, setting: String, file: Watched<Vec<CertificateDer<'static>>>) {
        self.ends.push((setting, file));
    }

    /// When they end, as files say it now.
    fn ends(&self) -> Arc<[Expiry]> {
        let ends = self.ends.iter().filter_map(|(setting, file)| {
            let at = expiry::earliest(&file.now())?;
            let setting = setting.clone();
            Some(Expiry { setting, at })
        });
        ends.collect()
    }

    /// Warns of what ends soon, once in a while.
    fn warn(&mut self, of: &[Expiry]) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_secs().cast_signed());
        for Expiry { setting, at } in self.told.near(of, now) {
            let hours_left = (at - now) / 3600;
            tracing::warn!(
                %setting, hours_left,
                "a certificate ends soon, or has ended; renew it in the same file, which is read again"
            );
        }
    }

    /// One file more.
    fn read<T: Send + Sync + 'static>(
        &mut self,
        key: &str,
        path: &Path,
        meant: impl Fn(&str) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Watched<T>, String> {
        let file = Watched::read(path, meant).map_err(|why| format!("{key}: {why}"))?;
        self.changes.push(file.changes());
        self.files.push(Box::new(file.clone()));
        Ok(file)
    }

    /// Certificates, at least one.
    pub(super) fn certificates(
        &mut self,
        key: &str,
        path: &Path,
    ) -> Result<Watched<Vec<CertificateDer<'static>>>, String> {
        self.read(key, path, |text| all(text, "certificate"))
    }

    /// Authorities, at least one.
    pub(super) fn authorities(
        &mut self,
        key: &str,
        path: &Path,
    ) -> Result<Watched<Vec<CertificateDer<'static>>>, String> {
        self.read(key, path, |text| {
            let found = all::<CertificateDer<'static>>(text, "certificate")?;
            let mut store = RootCertStore::empty();
            for (index, der) in found.iter().enumerate() {
                let added = store.add(der.clone());
                added.map_err(|why| format!("certificate {}: {why}", index + 1))?;
            }
            Ok(found)
        })
    }

    /// Lists of revoked certificates, at least one.
    pub(super) fn lists(
        &mut self,
        key: &str,
        path: &Path,
    ) -> Result<Watched<Vec<CertificateRevocationListDer<'static>>>, String> {
        self.read(key, path, |text| {
            all(text, "list of revoked certificates (X509 CRL)")
        })
    }

    /// A private key.
    fn key(
        &mut self,
        key: &str,
        path: &Path,
        provider: Arc<CryptoProvider>,
    ) -> Result<Watched<Arc<dyn SigningKey>>, String> {
        self.read(key, path, move |text| {
            // Not the error itself: it must not repeat what stands in the file.
            let der = PrivateKeyDer::from_pem_slice(text.as_bytes());
            let der = der.map_err(|_| "it holds no private key as PEM".to_owned())?;
            let key = provider.key_provider.load_private_key(der);
            key.map_err(|_| "its private key is of a kind that cannot be used".to_owned())
        })
    }

    /// A certificate with its key. They may not fit together yet whenever this is asked. Its end is told under the name
    /// of `setting`.
    pub(super) fn pair(
        &mut self,
        setting: String,
        keys: [&str; 2],
        pair: &Pair,
        provider: Arc<CryptoProvider>,
    ) -> Result<impl Fn() -> Result<CertifiedKey, String> + Send + Sync + use<>, String> {
        let chain = self.certificates(keys[0], &pair.cert_file)?;
        let key = self.key(keys[1], &pair.key_file, provider)?;
        self.tells(setting, chain.clone());
        let says = format!("{} and {} do not belong together", keys[0], keys[1]);
        Ok(move || {
            let both = CertifiedKey::new((*chain.now()).clone(), (*key.now()).clone());
            both.keys_match().map_err(|why| format!("{says}: {why}"))?;
            Ok(both)
        })
    }
}

/// All of a kind in a text.
fn all<T: PemObject>(text: &str, what: &str) -> Result<Vec<T>, String> {
    let found: Result<Vec<T>, pem::Error> = T::pem_slice_iter(text.as_bytes()).collect();
    let found = found.map_err(|why| format!("it is no PEM: {why}"))?;
    if found.is_empty() {
        return Err(format!("it holds no {what} as PEM"));
    }
    Ok(found)
}

impl<T> Clone for Made<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> PartialEq for Made<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Send + Sync + 'static> Made<T> {
    /// Makes it the first time. `make` is told which time it is.
    pub(super) fn of(
        files: Looked,
        make: impl Fn(u64) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let now = make(0)?;
        Ok(Self(Arc::new(Inner {
            make: Box::new(make),
            now: RwLock::new(now.into()),
            made: watch::Sender::new(0),
            ends: RwLock::new(files.ends()),
            files: Mutex::new(files),
        })))
    }

    pub(super) fn now(&self) -> Arc<T> {
        self.0.now.read().clone()
    }

    /// When the certificates end that it is made of.
    pub(super) fn ends(&self) -> Arc<[Expiry]> {
        self.0.ends.read().clone()
    }

    /// Hears of every time that it is made anew.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.0.made.subscribe()
    }
}

impl<T: Send + Sync> Look for Made<T> {
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.0) > 1 // one is the watch's own
    }

    fn look(&self) {
        let of = &*self.0;
        let files = &mut *of.files.lock();
        files.files.iter().for_each(|file| file.look());
        for change in &mut files.changes {
            if change.has_changed().unwrap_or(false) {
                change.mark_unchanged();
                files.waits = Some(0);
            }
        }
        files.warn(&of.ends.read().clone());
        let Some(looks) = files.waits else {
            return;
        };
        let what = files.what;
        let time = *of.made.borrow() + 1;
        match (of.make)(time) {
            Ok(made) => {
                *of.now.write() = made.into();
                *of.ends.write() = files.ends();
                of.made.send_replace(time);
                files.waits = None;
                tracing::info!(what, "new certificates hold for new connections");
            }
            Err(_) if looks < PATIENCE => files.waits = Some(looks + 1),
            Err(why) => {
                files.waits = None;
                tracing::error!(
                    what, %why,
                    "files have changed and do not fit together, and those from before still hold; put them right, best \
                     all at once by a link to a folder that holds them"
                );
            }
        }
    }
}
