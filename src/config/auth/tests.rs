//! Ways as operators write them.
use std::fmt::Write;

use super::*;
use crate::config::{Mistakes, Overrides};

const AGENT: &str = "backend: {url: http://agent}\n";

fn parse(text: &str) -> Result<Config, Mistakes> {
    Config::parse(text, Overrides::default())
}

fn wrong(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

#[test]
fn ways_are_read_in_their_order() {
    let text = "
auth:
  - api_keys: {file: /keys}
  - jwt: {issuer: 'https://i', audience: [a], algorithms: [ES256, EdDSA], jwks_url: 'https://i/keys', tenant: org}
  - jwt: {issuer: 'https://j', audience: [a], algorithms: [RS256], jwks_file: /jwks, labels: {plan: p}}
  - passthrough
";
    let config = parse(&format!("{AGENT}{text}")).expect("no mistakes");
    let [
        Way::ApiKeys(keys),
        Way::Jwt(first),
        Way::Jwt(second),
        Way::Passthrough,
    ] = &config.auth[..]
    else {
        panic!("{:?}", config.auth)
    };
    assert_eq!(keys.headers, ["x-api-key", "authorization"]);
    assert_eq!(first.algorithms, [Algorithm::ES256, Algorithm::EdDSA]);
    assert_eq!(second.labels["plan"], "p");
    assert_eq!(parse(AGENT).expect("no mistakes").auth, [Way::Passthrough]);
}

#[test]
fn what_would_let_the_wrong_ones_in_is_told() {
    let whole = "issuer: i, audience: [a], algorithms: [ES256]";
    for (auth, says) in [
        ("[]", "auth: line 2: expected at least one way"),
        (
            "[passthrough, anyone]",
            "auth[0]: line 2: lets everybody in",
        ),
        (
            "[open]",
            "auth[0]: line 2: expected one of: passthrough, anyone, api_keys, jwt",
        ),
        (
            "[jwt]",
            "auth[0]: line 2: expected keys with values below it",
        ),
        ("[{anyone: x}]", "the word alone"),
        ("[{jwt: {}}]", "auth[0].jwt.issuer: line 2: expected what"),
        ("[{jwt: {issuer: i}}]", "auth[0].jwt.audience"),
        (
            "[{jwt: {issuer: i, audience: [a]}}]",
            "auth[0].jwt.algorithms",
        ),
        ("[{jwt: {algorithms: [HS256]}}]", "expected one of: RS256,"),
        ("[{jwt: {algorithms: [none]}}]", "expected one of: RS256,"),
        (
            &format!("[{{jwt: {{{whole}}}}}]"),
            "either jwks_url or jwks_file",
        ),
        (
            &format!("[{{jwt: {{{whole}, jwks_url: 'http://i'}}}}]"),
            "expected https",
        ),
        (
            &format!("[{{jwt: {{{whole}, jwks_url: 'https://i', jwks_file: x}}}}]"),
            "either",
        ),
        ("[{api_keys: {}}]", "auth[0].api_keys.file"),
        (
            "[{api_keys: {file: x, headers: []}}]",
            "auth[0].api_keys.headers",
        ),
        (
            "[{api_keys: {file: x, headers: [host]}}]",
            "auth[0].api_keys.headers[0]",
        ),
        (
            "[{api_keys: {file: x, headers: ['a b']}}]",
            "auth[0].api_keys.headers[0]",
        ),
        (
            "[{api_keys: {file: x, header: y}}]",
            "auth[0].api_keys.header: line 2: unknown key",
        ),
    ] {
        let told = wrong(&format!("{AGENT}auth: {auth}\n"));
        assert!(told.contains(says), "{auth}\n{told}");
    }
    let local = format!("[{{jwt: {{{whole}, jwks_url: 'http://127.0.0.1:1/k'}}}}]");
    parse(&format!("{AGENT}auth: {local}\n")).expect("no mistakes");
}

#[test]
fn the_gateways_own_credentials_are_not_for_everybody() {
    let with = |auth: &str, credentials: &str| {
        parse(&format!(
            "auth: {auth}\nbackend: {{url: http://agent, credentials: {credentials}}}\n"
        ))
        .map_err(|mistakes| mistakes.to_string())
    };
    let header = "{header: {file: /secret}}";
    let told = with("[passthrough]", header).expect_err("open to all");
    assert!(
        told.contains("backend.credentials: line 2: they would be shown for everybody"),
        "{told}"
    );
    with("[anyone]", header).expect("no mistakes");
    with(
        "[{api_keys: {file: /k}}]",
        "{header: {name: x-key, env: SECRET}}",
    )
    .expect("no mistakes");
    let oauth2 = "token_url: 'https://i', client_id: g, client_secret_file: /s";
    with("[anyone]", &format!("{{oauth2: {{{oauth2}}}}}")).expect("no mistakes");
    for (wrong, says) in [
        ("{}", "expected one of: header, oauth2"),
        ("{header: {}}", "either file or env"),
        ("{header: {file: a, env: b}}", "either file or env"),
        ("{header: {file: a, name: host}}", "the name of a field"),
        ("{oauth2: {}}", "backend.credentials.oauth2.token_url"),
        (
            "{oauth2: {token_url: 'http://i', client_id: g, client_secret_file: /s}}",
            "https",
        ),
        (
            "{oauth2: {token_url: 'https://u:hunter2@i'}}",
            "credentials.oauth2.token_url",
        ),
        ("{oauth2: {secret: hunter2}}", "unknown key"),
        ("hunter2", "expected one of: header, oauth2"),
    ] {
        let told = with("[anyone]", wrong).expect_err(wrong);
        assert!(
            told.contains(says) && !told.contains("hunter2"),
            "{wrong}\n{told}"
        );
    }
}

#[test]
fn a_file_of_keys_tells_all_its_mistakes_and_no_digest() {
    let digest = "sha256:".to_owned() + &"0f".repeat(32);
    let good = format!("- {{name: a, digest: '{digest}'}}\n");
    let read = |text: &str| keys(text, &["/".to_owned()], &["GetTask"]);
    let all = read(&good).expect("no mistakes");
    assert_eq!((all.len(), all[0].digest), (1, [15; 32]));
    assert_eq!(read("").expect("no keys").len(), 0);
    let text = format!(
        "{good}- {{name: a b, digest: sha256:12}}\n- {{digest: hunter2, routes: [/x], operations: [Get]}}\n\
         - {{name: a, tenant: t, digest: '{digest}', expires: soon, key: hunter2}}\n"
    );
    let told = read(&text).expect_err("mistakes").to_string();
    for says in [
        "[1].name: line 2: expected a word without spaces",
        "[1].digest: line 2: expected sha256: and 64",
        "[2].name: line 3: every key has a name",
        "[2].digest: line 3",
        "[2].routes[0]: line 3: expected the path of a route",
        "[2].operations[0]: line 3: expected one of: GetTask",
        "[3].key: line 4: unknown key",
        "[3].digest: line 4: is that of [0]",
        "[3].name: line 4: [0] has the same name",
        "[3].expires: line 4: expected a time",
    ] {
        assert!(told.contains(says), "{says}\n{told}");
    }
    assert!(
        !told.contains("hunter2") && !told.contains("0f0f"),
        "{told}"
    );
    assert!(read("name: a").is_err() && read("- a").is_err());
    let mut many = String::new();
    for n in 0..20_000 {
        let item = format!("name: k{n}, digest: 'sha256:{n:064x}', tenant: t, labels: {{a: b}}");
        writeln!(many, "- {{{item}}}").expect("a String takes all");
    }
    assert_eq!(read(&many).expect("no mistakes").len(), 20_000);
}

#[test]
fn a_secret_that_anybody_on_the_way_can_read_is_warned_of() {
    let warned = |backend: &str, more: &str| {
        let text = format!(
            "auth: [anyone]\nbackend: {{{backend}credentials: {{header: {{file: /s}}}}}}\n{more}"
        );
        let config = parse(&text).expect("no mistakes");
        config.warnings().any(|says| says.contains("plain http"))
    };
    for (url, plain) in [
        ("http://agent", true),
        ("http://192.0.2.1:80/a", true),
        ("https://agent", false),
        ("http://127.0.0.1:1", false),
        ("http://[::1]:1", false),
        ("http://localhost/a", false),
    ] {
        assert_eq!(warned(&format!("url: '{url}', "), ""), plain, "{url}");
        let route = format!("routes: [{{path: /a, backend: '{url}/x'}}]\n");
        assert_eq!(warned("", &route), plain, "{url}");
    }
    assert_eq!(parse(AGENT).expect("no mistakes").warnings().count(), 0);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.yaml");
    let text = "auth: [anyone]\nbackend: {url: http://agent, credentials: {header: {file: /s}}}\n";
    std::fs::write(&file, text).expect("a file");
    let told = crate::config::check(&file).expect("no mistakes");
    assert!(
        told.contains("warning: backend.credentials: they go"),
        "{told}"
    );
}
