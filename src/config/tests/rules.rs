//! The rules for single values, sections and routes.

use std::fmt::Write;
use std::time::Duration;

use super::super::*;
use super::{AGENT, good, wrong};

/// One value after another at `key`; each must be a mistake there, on its line, without the value.
fn all_wrong(key: &str, values: &[&str]) {
    for value in values {
        let text = nested(key, value);
        let told = wrong(&text);
        let at = format!("{key}: line ");
        assert!(told.starts_with(&at), "{text}\n{told}");
        assert!(!told.contains('\n'), "{text}\n{told}");
    }
}

fn nested(key: &str, value: &str) -> String {
    let mut text = String::new();
    if !key.starts_with("backend.") {
        text.push_str(AGENT);
    }
    for (depth, part) in key.split('.').enumerate() {
        write!(text, "\n{}{part}:", "  ".repeat(depth)).expect("a String takes all");
    }
    if key.starts_with("backend.") && key != "backend.url" {
        return format!("{text} {value}\n  url: http://agent\n");
    }
    format!("{text} {value}\n")
}

#[test]
fn times_and_sizes_have_units() {
    for (text, millis) in [
        ("250ms", 250),
        ("30s", 30_000),
        ("10m", 600_000),
        ("1h", 3_600_000),
    ] {
        let config = good(&nested("stream.keep_alive", text));
        assert_eq!(config.stream.keep_alive, Duration::from_millis(millis));
    }
    for text in ["0", "0s", "\"0\""] {
        let config = good(&nested("stream.final_grace", text));
        assert_eq!(config.stream.final_grace, Duration::ZERO);
    }
    for (text, bytes) in [
        ("16KiB", 16_384),
        ("1MB", 1_000_000),
        ("\"77\"", 77),
        ("5000", 5_000),
    ] {
        assert_eq!(good(&nested("limits.event", text)).limits.event, bytes);
    }
    let times = [
        "5",
        "-1s",
        "s",
        "1.5s",
        "1 s",
        "1S",
        "1d",
        "''",
        "true",
        "[]",
        "{}",
        "~",
        "9000h",
        "1e3s",
        "99999999999999999999s",
        "18446744073709551615h",
    ];
    all_wrong("drain.grace", &times);
    let sizes = [
        "-1",
        "1.5MiB",
        "MiB",
        "1mib",
        "1 MiB",
        "1M",
        "''",
        "true",
        "[]",
        "~",
        "2000GiB",
        "1e6",
        "99999999999999999999",
    ];
    all_wrong("limits.event", &sizes);
}

#[test]
fn every_value_has_its_rules() {
    all_wrong(
        "listen",
        &["8080", "localhost:8080", "':8080'", "1.2.3.4", "''"],
    );
    all_wrong("admin", &["here", "\"127.0.0.1:8080\""]);
    all_wrong(
        "public_url",
        &["agents.example", "http://h/?q", "http://h/#f", "http://u@h"],
    );
    all_wrong("workers", &["-1", "many", "1.5", "2000"]);
    all_wrong("log", &["loud", "false", "[]"]);
    all_wrong("log_format", &["xml"]);
    all_wrong(
        "backend.url",
        &["''", "agent:80", "http://u:p@h", "http://h/{id}"],
    );
    all_wrong("backend.binding", &["grpc", "1"]);
    all_wrong("backend.version", &["\"0.2\"", "1", "v1.0"]);
    all_wrong("backend.http2", &["yes", "1", "\"true\""]);
    all_wrong("backend.max_connections", &["0", "-1", "x"]);
    all_wrong("backend.subscribe_verb", &["PUT", "post"]);
    all_wrong("backend.rest_content_type", &["text/plain"]);
    all_wrong(
        "backend.card_path",
        &["card.json", "''", "/a?b", "/a b", "/../b"],
    );
    all_wrong("backend.ca_file", &["''", "[]"]);
    all_wrong("routes", &["/a", "{}", "5"]);
    all_wrong("dialects", &["[]", "v03", "5"]);
    all_wrong(
        "dialects.v03_rest_dialects",
        &["[]", "proto", "[proto, proto]"],
    );
    all_wrong("dialects.versions", &["1.1", "\"1.1\""]);
    all_wrong("compat.r03p_file_bytes", &["triple"]);
    all_wrong("compat.preserve_lossy", &["maybe"]);
    all_wrong("push.mode", &["relay"]);
    all_wrong(
        "card.jsonrpc_path",
        &["rpc", "/", "/rpc/", "/a//b", "/{x}", "/.."],
    );
    all_wrong(
        "http.cors.origins",
        &["https://a", "5", "{}", "[[]]", "[\"*\", http://a]"],
    );
    all_wrong("http.trusted_proxies", &["10.0.0.0/8", "5"]);
    all_wrong("limits.head", &["8191", "0"]);
    all_wrong("limits.headers", &["0", "10001"]);
    all_wrong("limits.depth", &["0", "201", "-1"]);
    all_wrong("limits.body", &["0", "257MiB"]);
    all_wrong("limits.followers", &["0"]);
    all_wrong("limits.followed", &["0", "0s"]);
    all_wrong("limits.send", &["0", "0s"]);
}

#[test]
fn items_of_lists_are_told_by_number() {
    for (key, list, item) in [
        ("dialects.versions", "[\"1.1\", \"2.0\"]", 1),
        ("dialects.versions", "[\"1.01\"]", 0),
        ("dialects.versions", "[1.10]", 0),
        ("dialects.v03_rest_dialects", "[proto, json]", 1),
        ("http.trusted_proxies", "[10.0.0.0/8, ::/129]", 1),
        ("http.cors.origins", "[https://a, https://b/path]", 1),
        ("http.cors.origins", "[HTTPS://a]", 0),
        ("http.cors.origins", "[https://A]", 0),
    ] {
        let told = wrong(&nested(key, list));
        assert!(told.starts_with(&format!("{key}[{item}]: line ")), "{told}");
    }
}

#[test]
fn sets_that_leave_nothing_are_refused() {
    let told = wrong(&format!("{AGENT}dialects: {{v03: false, v10: false}}\n"));
    assert!(told.contains("v03 or v10 must be on"), "{told}");
    let told = wrong(&format!(
        "{AGENT}dialects: {{rest: false, jsonrpc: false}}\n"
    ));
    assert!(told.contains("jsonrpc or rest must be on"), "{told}");
    good(&format!(
        "{AGENT}dialects: {{rest: false, v03_rest_dialects: []}}\n"
    ));
}

#[test]
fn browsers_and_proxies() {
    let text = "http: {cors: {origins: \"*\"}, trusted_proxies: [10.0.0.0/8, \"::1\"]}\n";
    let http = good(&format!("{AGENT}{text}")).http;
    assert_eq!(http.cors.origins, Origins::Any);
    assert_eq!(http.trusted_proxies[1].to_string(), "::1/128");
    let origins = good(&nested("http.cors.origins", "[https://a, http://b:81]"))
        .http
        .cors
        .origins;
    let expected = ["https://a", "http://b:81"].map(str::to_owned);
    assert_eq!(origins, Origins::These(expected.to_vec()));
}

#[test]
fn routes_with_the_same_shape_are_told() {
    let text = "\
routes:
  - {path: '/a/{x}', backend: 'http://h/{x}'}
  - {path: '/a/b', backend: 'http://h'}
  - {path: '/a/{y}', backend: 'http://h/{y}'}
  - 5
";
    let whole = wrong(text);
    assert!(whole.starts_with("routes[3]: line 5: "), "{whole}");
    let text = text.replace("  - 5\n", "");
    let told = wrong(&text);
    assert_eq!(
        told,
        "routes[2].path: line 4: matches the same paths as routes[0]"
    );
}

#[test]
fn routes_are_read() {
    let text = "\
routes:
  - path: /workspaces/{workspaceId}/agents/{agentId}/a2a
    backend: https://host/x/{workspaceId}/{agentId}/a2a
";
    let routes = good(text).routes;
    assert_eq!(routes[0].path.segments().len(), 5);
    assert_eq!(routes[0].backend.authority, "host");
}

#[test]
fn rules_of_limits_are_checked() {
    let text = "\
backend: {url: 'http://agent'}
limits:
  per_peer: {burst: 5}
  rules:
    - {name: 'no name', key: [caller], rate: {limit: 1, per: 1s}}
    - {name: a, key: [], concurrency: {limit: 1}}
    - {name: a, key: [global, caller], rate: {limit: 1, per: 1s}}
    - {name: b, key: [route.room], quota: {limit: 1, per: rolling 1h}}
    - {name: c, key: [caller]}
    - {name: d, key: [caller], rate: {limit: 1, per: 1s}, concurrency: {limit: 0}}
    - {name: e, key: [user], quota: {limit: 1, per: year}}
    - {name: f, key: [tenant], match: {operations: [Send]}, quota: {limit: 1, time_zone: Mars/Base}}
    - {name: g, key: [tenant], rate: {limit: 5}}
";
    let told = wrong(text);
    for says in [
        "limits.per_peer.burst: line 3: expected a rate",
        "limits.rules[0].name: line 5: expected a name",
        "limits.rules[1].key: line 6: expected what is counted apart",
        "limits.rules[2].name: line 7: another rule",
        "limits.rules[2].key: line 7: global stands alone",
        "limits.rules[3].key: line 8: no route has this parameter",
        "limits.rules[4]: line 9: expected one of rate, quota and concurrency",
        "limits.rules[5]: line 10: expected one of rate",
        "limits.rules[5].concurrency.limit: line 10: expected more than 0",
        "limits.rules[6].key",
        "limits.rules[6].quota.per: line 11: expected hour, day, month",
        "limits.rules[7].match.operations[0]: line 12: expected the name of an operation",
        "limits.rules[7].quota.time_zone: line 12: expected a time zone",
        "limits.rules[8].rate.per: line 13: expected at least a microsecond",
    ] {
        assert!(told.contains(says), "{says}\n{told}");
    }
    let config = good(
        "routes: [{path: '/{room}', backend: 'http://a/{room}'}]\nlimits: {rules: [{name: r, key: [route.room, caller], \
         quota: {of: response_bytes, limit: 10MiB, per: rolling 24h}}]}\n",
    );
    let quota = config.limits.rules[0].quota.as_ref().unwrap();
    assert_eq!(quota.per, Per::Rolling(Duration::from_hours(24)));
}

#[test]
fn tls_says_what_belongs_together() {
    let with = |more: &str| format!("{AGENT}{more}\n");
    let pair = "cert_file: /c, key_file: /k";
    good(&with(&format!(
        "tls: {{{pair}, min_version: 1.3, client_certificates: {{mode: optional, ca_file: /a, crl_files: [/l]}}}}\nauth: [{{client_certificates: {{}}}}]"
    )));
    for (more, says) in [
        ("tls: {}", "tls.cert_file: line 2: expected the name"),
        ("tls: {cert_file: /c}", "key_file"),
        (
            "tls: {cert_file: /c, key_file: /k}\nlisten: unix:/x",
            "tls: line 2: there is none over a Unix socket",
        ),
        (
            "tls: {cert_file: /c, key_file: /k, client_certificates: {mode: required}}",
            "ca_file",
        ),
        (
            "tls: {cert_file: /c, key_file: /k, client_certificates: {ca_file: /a}}",
            "expected optional or required",
        ),
        (
            "tls: {cert_file: /c, key_file: /k, min_version: 1.1}",
            "tls.min_version: line 2: expected one of: 1.2, 1.3",
        ),
        (
            "auth: [{client_certificates: {}}]",
            "auth[0].client_certificates: line 2: nobody is asked for a certificate",
        ),
        (
            "listen: unix:x",
            "listen: line 2: expected unix: and a path",
        ),
        (
            "admin: unix:/a/",
            "admin: line 2: expected unix: and a path",
        ),
        (
            "listen: unix:/a\nadmin: unix:/a",
            "admin: line 3: must differ from listen",
        ),
    ] {
        let told = wrong(&with(more));
        assert!(told.contains(says), "{more}\n{told}");
    }
}

#[test]
fn tls_with_agents_says_what_belongs_together() {
    for (backend, says) in [
        (
            "client_cert_file: /c",
            "backend.client_cert_file: line 1: goes together with client_key_file",
        ),
        (
            "client_key_file: ''",
            "backend.client_key_file: line 1: expected the name of a file",
        ),
        (
            "system_roots: false",
            "backend.system_roots: line 1: nobody would be trusted",
        ),
        (
            "server_name: 'a b'",
            "backend.server_name: line 1: expected the name of a host",
        ),
    ] {
        let told = wrong(&format!("backend: {{url: 'https://agent', {backend}}}\n"));
        assert!(told.contains(says), "{backend}\n{told}");
    }
    let routes = "routes: [{path: /x, backend: 'http://localhost/a'}]\n";
    let told = wrong(&format!(
        "backend: {{url: 'unix:/a', server_name: a}}\n{routes}"
    ));
    assert!(
        told.contains("backend.url: line 1: localhost stands for"),
        "{told}"
    );
    let told = wrong(&format!(
        "backend: {{url: 'https://a', server_name: a}}\n{routes}"
    ));
    assert!(told.contains("more than one origin"), "{told}");
    let agent = good("backend: {url: 'unix:/run/a.sock'}\n").backend;
    assert_eq!(agent.place().as_deref(), Some("unix:/run/a.sock"));
}

#[test]
fn names_in_certificates_have_the_parts_that_are_asked_for() {
    let with = |more: &str| format!("{AGENT}{more}\n");
    let pair = "cert_file: /c, key_file: /k";
    for (names, says) in [
        ("names: ['A.b']", "names[0]: line 3: expected spiffe://"),
        (
            "names: ['{a}.b', 'c.d'], tenant: a",
            "tenant: line 3: expected a word",
        ),
        (
            "names: ['a.b'], tenant: trust_domain",
            "tenant: line 3: expected a word",
        ),
        ("labels: {x: y}", "labels.x: line 3: expected a word"),
        (
            "names: ['spiffe://d/{n}'], tenant: trust_domain, labels: {x: n}",
            "",
        ),
    ] {
        let tls = format!("tls: {{{pair}, client_certificates: {{mode: required, ca_file: /a}}}}");
        let text = with(&format!(
            "{tls}\nauth: [{{client_certificates: {{{names}}}}}]"
        ));
        if says.is_empty() {
            good(&text);
        } else {
            let told = wrong(&text);
            assert!(told.contains(says), "{names}\n{told}");
        }
    }
}
