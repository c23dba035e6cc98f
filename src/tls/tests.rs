//! Names in certificates, and files that change.
use std::{fs, sync::Arc};

use rcgen::{CertifiedKey, generate_simple_self_signed};

use super::{Client, Pair, Roots, Server, Settings, certificate::is_id};

#[test]
fn ids_of_spiffe_are_known_by_their_form() {
    for good in ["spiffe://a/b", "spiffe://a.b-c_1/ns/X/sa/y.z"] {
        assert!(is_id(good), "{good}");
    }
    let long = format!("spiffe://a/{}", "b".repeat(2048));
    for bad in [
        "spiffe://a",
        "spiffe://a/",
        "spiffe:///b",
        "spiffe://A/b",
        "SPIFFE://a/b",
        "spiffe://a/b/",
        "spiffe://a//b",
        "spiffe://a/../b",
        "spiffe://a/b?c",
        "spiffe://a/b%20",
        "spiffe://a:1/b",
        "spiffe://x@a/b",
        "https://a/b",
        &long,
    ] {
        assert!(!is_id(bad), "{bad}");
    }
}

fn made() -> (String, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

#[test]
fn files_that_do_not_fit_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let own = Pair {
        cert_file: folder.path().join("crt"),
        key_file: folder.path().join("key"),
    };
    let ((cert, key), (cert2, key2)) = (made(), made());
    fs::write(&own.cert_file, &cert).unwrap();
    fs::write(&own.key_file, &key2).unwrap();
    let settings = Settings {
        own: own.clone(),
        only_13: false,
        clients: None,
    };
    let says = Server::read(&settings).unwrap_err();
    assert!(says.contains("do not belong together"), "{says}");
    fs::write(&own.key_file, &key).unwrap();
    let server = Server::read(&settings).unwrap();
    let (files, first) = (server.files(), server.now());
    let same = || Arc::ptr_eq(&first, &server.now());
    fs::write(&own.cert_file, &cert2).unwrap();
    for _ in 0..10 {
        files.look();
        assert!(same());
    }
    fs::write(&own.key_file, "no key").unwrap();
    for _ in 0..3 {
        files.look();
        assert!(same());
    }
    fs::write(&own.key_file, &key2).unwrap();
    files.look();
    assert!(same(), "it may be half a file");
    files.look();
    assert!(!same());
    assert_eq!(server.now().time, 1);
    // Nothing changes by itself.
    let second = server.now();
    files.look();
    assert!(Arc::ptr_eq(&second, &server.now()));
}

#[test]
fn mistakes_name_the_setting_and_the_file_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let (cert, key) = made();
    let secret = key.lines().nth(1).unwrap();
    let broken = key.replace(secret, &format!("{secret}!"));
    for (cert, key, says) in [
        (&*cert, "", "key_file: "),
        (&cert, &*broken, "it holds no private key as PEM"),
        (&key, &key, "it holds no certificate as PEM"),
        ("", &key, "cert_file: "),
    ] {
        let own = Pair {
            cert_file: at("crt", cert),
            key_file: at("key", key),
        };
        let told = Client::read(
            "backend",
            &Roots {
                own: Some(own),
                ..Roots::default()
            },
        );
        let told = told.unwrap_err();
        assert!(told.contains(says) && !told.contains(secret), "{told}");
    }
    let missing = Roots {
        ca_file: Some(folder.path().join("none")),
        ..Roots::default()
    };
    let told = Client::read("backend", &missing).unwrap_err();
    assert!(
        told.starts_with("ca_file: ") && told.contains("none"),
        "{told}"
    );
}
