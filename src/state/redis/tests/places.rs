//! Other places than one server: a cluster, sentinels, TLS.
use std::{fs, process::Stdio, time::Duration};

use super::{
    cluster::{cluster, port},
    replica::{eventually, key, replica, settings},
    server::RedisServer,
};
use crate::state::{
    Take,
    redis::Address,
    retry::{Begun, Record},
    slot::{End, Phase},
};

#[tokio::test]
async fn a_cluster_spreads_conversations_by_their_tags() {
    let (_server, url) = cluster();
    let a = replica(&url, settings()).await;
    let b = replica(&url, settings()).await;
    for n in 0..100 {
        a.must_take(&n.to_string(), n + 1).await;
        assert_eq!(b.finds(&n.to_string()).await.token, n + 1);
    }
    let mut listed = b.list(1000).await.unwrap();
    listed.sort_by_key(|s| s.entry.holders[0].token);
    assert_eq!(listed.len(), 100);
    assert_eq!(listed[7].key, key("7"));
    assert!(a.settles("7", 8, End::Free).await);
    b.must_take("7", 200).await;
    assert_eq!(a.bind(key("7"), "one").await, Ok(None));
    assert_eq!(b.bind(key("7"), "two").await, Ok(Some("one".into())));
    for n in 0..20 {
        let new = Record::new(n, key("says"));
        let begun = a.begin_retry(key(&n.to_string()), new.clone()).await;
        assert_eq!(begun, Ok(Begun::New));
        let begun = b.begin_retry(key(&n.to_string()), new.clone()).await;
        assert_eq!(begun, Ok(Begun::Same(new)));
    }
}

#[tokio::test]
async fn sentinels_say_where_the_master_is() {
    let (at, asked) = (port(), port());
    let master = RedisServer::with(&["--port", &at, "--bind", "127.0.0.1"]);
    let dir = tempfile::TempDir::new().unwrap();
    let config = dir.path().join("sentinel.conf");
    let text = format!("port {asked}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {at} 1\n");
    fs::write(&config, text).unwrap();
    let mut sentinel = std::process::Command::new("redis-server")
        .arg(&config)
        .arg("--sentinel")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let url = format!("redis+sentinel://127.0.0.1:{asked}/main");
    let a = replica(&url, settings()).await;
    a.must_take("c", 1).await;
    let b = replica(&master.url(), settings()).await;
    assert_eq!(b.phases("c").await, [(1, Phase::InFlight)]);
    sentinel.kill().unwrap();
    sentinel.wait().unwrap();
    // The connection is to the master.
    assert!(a.settles("c", 1, End::Free).await);
    eventually(async || matches!(b.takes("c", 2).await, Ok(Take::Taken(_)))).await;
}

#[tokio::test]
async fn a_certificate_of_nobody_known_is_refused() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let dir = tempfile::TempDir::new().unwrap();
    let (cert, secret) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    fs::write(&cert, made.cert.pem()).unwrap();
    fs::write(&secret, made.signing_key.serialize_pem()).unwrap();
    let at = port();
    let _server = RedisServer::with(&[
        "--tls-port",
        &at,
        "--bind",
        "127.0.0.1",
        "--tls-auth-clients",
        "no",
        "--tls-cert-file",
        cert.to_str().unwrap(),
        "--tls-key-file",
        secret.to_str().unwrap(),
        "--tls-ca-cert-file",
        cert.to_str().unwrap(),
    ]);
    let address = Address::parse(&format!("rediss://localhost:{at}")).unwrap();
    let link = address.connect(Duration::from_secs(10)).await;
    let error = link.err().unwrap().to_string();
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_password_is_given_and_never_told() {
    let at = port();
    let _server = RedisServer::with(&[
        "--port",
        &at,
        "--bind",
        "127.0.0.1",
        "--requirepass",
        "s3cret/",
    ]);
    let a = replica(&format!("redis://:s3cret%2F@127.0.0.1:{at}"), settings()).await;
    a.must_take("c", 1).await;
    let wrong = Address::parse(&format!("redis://:other@127.0.0.1:{at}")).unwrap();
    let error = wrong.connect(Duration::from_secs(10)).await.err().unwrap();
    assert!(!format!("{error} {error:?}").contains("other"), "{error:?}");
}
