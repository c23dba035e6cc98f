//! What of TLS with clients a running gateway takes, and what it keeps until it begins again.
use serde_json::json;

use super::{
    client::Caller,
    house::{OWN, says},
    pki::{Authority, Mounted},
};
use crate::{
    program::{TOKEN, settings, write},
    support::{agent::Agent, gateway::Gateway, until, words::J10},
};

#[test]
fn settings_of_tls_need_a_restart_and_contents_of_files_do_not() {
    let authority = Authority::new("house");
    let (own, other) = (authority.issue(&OWN), authority.issue(&OWN));
    let files = Mounted::new(&[
        ("tls.crt", &own.cert),
        ("tls.key", &own.key),
        ("other.crt", &other.cert),
        ("other.key", &other.key),
    ]);
    let tls = |name: &str, more: &str| {
        let (cert, key) = (format!("{name}.crt"), format!("{name}.key"));
        let (cert, key) = (files.path(&cert), files.path(&key));
        let (cert, key) = (cert.display(), key.display());
        format!("tls: {{cert_file: '{cert}', key_file: '{key}'{more}}}")
    };
    let folder = tempfile::tempdir().unwrap();
    let (agent, _log) = Agent::always(says);
    let yaml = |rest: &str| settings(folder.path(), agent, rest);
    let file = write(folder.path(), &yaml(&tls("tls", "")));
    let gateway = Gateway::from_file(&file);
    let reload = |rest: &str| {
        write(folder.path(), &yaml(rest));
        let fields = format!("authorization: Bearer {TOKEN}\r\n");
        let answer = gateway.ask_admin("POST /v1/reload", &fields);
        assert_eq!(answer.status(), 200, "{}", answer.body);
        answer.json()
    };
    let caller = Caller::new(&authority.pem(), None).forgetting();
    let shown = || caller.connect(gateway.addr).unwrap().serial();
    assert_eq!(shown(), own.serial);
    let mut kept = caller.connect(gateway.addr).unwrap();
    let restart = |answer: serde_json::Value| answer["needsRestart"].clone();

    for change in [
        tls("other", ""),
        tls("tls", ", min_version: '1.3'"),
        "drain: {grace: 3s}".to_owned(), // none
    ] {
        assert_eq!(restart(reload(&change)), json!(["tls"]), "{change}");
        let ready = gateway.ask_admin("GET /readyz?verbose", "");
        assert_eq!(ready.status(), 200);
        let says = "a restart is needed for tls";
        assert!(ready.body.contains(says), "{}", ready.body);
        assert_eq!(shown(), own.serial, "{change}");
        assert_eq!(kept.send(J10, "").unwrap().0, 200);
    }
    // What stands beside it is taken.
    let answer = reload(&format!("{}\ndrain: {{grace: 4s}}", tls("other", "")));
    assert_eq!(answer["changed"], json!(["drain"]));
    assert_eq!(restart(answer), json!(["tls"]));
    assert_eq!(restart(reload(&tls("tls", ""))), json!([]));

    let reloads = || gateway.served().reloads.status().now().ok;
    let before = reloads();
    files.put(&[("tls.crt", &other.cert), ("tls.key", &other.key)]);
    until("the new one is shown", || shown() == other.serial);
    assert_eq!(reloads(), before, "nobody read the settings again");
    assert_eq!(kept.send(J10, "").unwrap().0, 200);
}
