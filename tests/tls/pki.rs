//! Authorities, certificates, lists of what was revoked, and folders that hold them as Kubernetes mounts them.
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SanType, SerialNumber, date_time_ymd,
};

static SERIAL: AtomicU64 = AtomicU64::new(1000);

pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(super) struct Issued {
    pub(super) cert: String,
    pub(super) key: String,
    pub(super) serial: u64,
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// For these names: URIs and hosts.
    pub(super) fn issue(&self, names: &[&str]) -> Issued {
        self.issue_until(names, 2100)
    }

    pub(super) fn issue_until(&self, names: &[&str], year: i32) -> Issued {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "nobody");
        params.subject_alt_names = names.iter().map(|name| san(name)).collect();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let serial = SERIAL.fetch_add(1, SeqCst);
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        Issued {
            cert: cert.pem(),
            key: key.serialize_pem(),
            serial,
        }
    }

    /// A list on which these are.
    pub(super) fn list(&self, revoked: &[u64]) -> String {
        let at = date_time_ymd(2024, 1, 1);
        let revoked = revoked.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: at,
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: at,
            next_update: date_time_ymd(2100, 1, 1),
            crl_number: SerialNumber::from(SERIAL.fetch_add(1, SeqCst)),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.0).unwrap().pem().unwrap()
    }
}

fn san(name: &str) -> SanType {
    if name.contains("://") {
        return SanType::URI(name.try_into().unwrap());
    }
    match name.parse() {
        Ok(ip) => SanType::IpAddress(ip),
        Err(_) => SanType::DnsName(name.try_into().unwrap()),
    }
}

/// A folder whose files all change at once: they are links into a folder that is a link.
pub(super) struct Mounted {
    folder: tempfile::TempDir,
    versions: AtomicUsize,
}

impl Mounted {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let mounted = Self {
            folder: tempfile::tempdir().unwrap(),
            versions: AtomicUsize::new(0),
        };
        mounted.put(files);
        for (name, _) in files {
            symlink(Path::new("..data").join(name), mounted.path(name)).unwrap();
        }
        mounted
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Other files in place of all.
    pub(super) fn put(&self, files: &[(&str, &str)]) {
        let version = format!("..{}", self.versions.fetch_add(1, SeqCst));
        let folder = self.path(&version);
        fs::create_dir(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        symlink(&version, self.path("..next")).unwrap();
        fs::rename(self.path("..next"), self.path("..data")).unwrap();
    }
}
