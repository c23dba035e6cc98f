//! The settings as operators meet them: whole files in, settings or mistakes out.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use serde_json::Value;

use super::*;

mod rules;

const GATEWAY: &str = include_str!("../../config/gateway.yaml");
const MINIMAL: &str = include_str!("../../config/minimal.yaml");
const AGENT: &str = "backend: {url: http://agent}\n";

fn parse(text: &str) -> Result<Config, Mistakes> {
    Config::parse(text, Overrides::default())
}

fn good(text: &str) -> Config {
    parse(text).unwrap_or_else(|mistakes| panic!("{text}\n{mistakes}"))
}

/// The mistakes in `text`, printed.
fn wrong(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

#[test]
fn the_file_with_all_settings_is_the_defaults() {
    let overrides = || Overrides {
        backend: Some("http://agent".to_owned()),
        ..Overrides::default()
    };
    let said = Config::parse(GATEWAY, overrides()).expect("no mistakes");
    let silent = Config::parse("", overrides()).expect("no mistakes");
    assert_eq!(said, silent);
    assert!(said.workers >= 1);
}

#[test]
fn the_least_file_runs() {
    let config = good(MINIMAL);
    let url = config.backend.url.expect("an agent");
    assert_eq!(url.to_string(), "http://127.0.0.1:9999");
}

#[test]
fn the_files_for_a_purpose_say_what_they_are_for() {
    let adk = good(include_str!("../../config/adk-rust.yaml"));
    assert_eq!(adk.backend.rest_paths, RestPaths::Slash);
    assert!(adk.backend.follow_streams && adk.limits.send > Limits::default().send);
    let sidecar = good(include_str!("../../config/sidecar.yaml"));
    let agent = sidecar.backend.url.expect("an agent");
    assert!(agent.to_string().starts_with("http://127.0.0.1:"));
    assert_eq!((sidecar.workers, sidecar.log_format), (1, LogFormat::Json));
}

#[test]
fn the_file_with_all_settings_shows_every_key_of_the_schema() {
    let schema: Value = serde_json::from_str(&schema()).expect("JSON");
    assert_eq!(schema["additionalProperties"], false);
    let mut keys = BTreeSet::new();
    collect(&schema, &schema, "", &mut keys);
    assert!(keys.contains("limits.write_stall"), "{keys:?}");
    assert!(keys.contains("http.cors.origins"), "{keys:?}");
    assert!(keys.contains("routes[].backend"), "{keys:?}");

    let shown = shown(GATEWAY);
    let expected: BTreeSet<String> = keys.iter().map(|key| key.replace("[]", "")).collect();
    assert_eq!(shown, expected);
}

/// The key paths of a schema, through its references.
fn collect(root: &Value, schema: &Value, at: &str, keys: &mut BTreeSet<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let pointer = name.trim_start_matches('#');
        let target = root.pointer(pointer).expect("a reference leads somewhere");
        return collect(root, target, at, keys);
    }
    let dot = if at.is_empty() { "" } else { "." };
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{at}{dot}{key}");
        // A word of several has it around itself.
        let told = below["description"].is_string() || schema["description"].is_string();
        assert!(told, "{path} has a description");
        collect(root, below, &path, keys);
        keys.insert(path);
    }
    for forms in ["anyOf", "oneOf"] {
        for form in schema[forms].as_array().into_iter().flatten() {
            collect(root, form, at, keys);
        }
    }
    if schema["items"].is_object() {
        collect(root, &schema["items"], &format!("{at}[]"), keys);
    }
}

/// The key paths of a file, commented ones too, read by their indentation.
fn shown(text: &str) -> BTreeSet<String> {
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut keys = BTreeSet::new();
    for line in text.lines() {
        let uncommented = line.replacen("# ", "", 1);
        let is_comment = uncommented != line;
        let line = uncommented.replacen("- ", "  ", 1);
        let word = line.trim_start();
        let Some((key, value)) = word.split_once(':') else {
            continue;
        };
        // Prose has colons too, but not behind its first word and before its last.
        if key.contains(' ') || is_comment && value.trim().contains(' ') {
            continue;
        }
        let indent = line.len() - word.len();
        path.retain(|(depth, _)| *depth < indent);
        path.push((indent, key.to_owned()));
        let whole: Vec<&str> = path.iter().map(|(_, key)| key.as_str()).collect();
        keys.insert(whole.join("."));
    }
    keys
}

#[test]
fn the_schema_knows_forms_and_defaults() {
    let schema: Value = serde_json::from_str(&schema()).expect("JSON");
    let limits = &schema["$defs"]["Limits"]["properties"];
    assert_eq!(limits["body"]["default"], "16MiB");
    assert_eq!(limits["stream_idle"]["default"], "1h");
    assert_eq!(limits["depth"]["maximum"], 200);
    let stream = &schema["$defs"]["Stream"]["properties"];
    assert_eq!(stream["final_grace"]["default"], "250ms");
    let required = serde_json::json!(["path", "backend"]);
    assert_eq!(schema["$defs"]["Route"]["required"], required);
}

#[test]
fn the_preset_of_memorylake_is_single_settings() {
    let backend = |more: &str| good(&format!("backend: {{url: 'http://agent'{more}}}\n")).backend;
    let spelled = backend(
        ", subscribe_verb: GET, default_metadata: {memorylake: {}}, explicit_wait: true, push_notifications: false, hydrate_tasks: true",
    );
    assert_eq!(backend(", preset: memorylake"), spelled);
    let own = backend(
        ", preset: memorylake, subscribe_verb: POST, default_metadata: {}, explicit_wait: false, push_notifications: true, hydrate_tasks: false",
    );
    assert_eq!(backend(""), own);
}

#[test]
fn a_preset_is_single_settings_and_what_is_said_goes_before_it() {
    let backend = |more: &str| good(&format!("backend: {{url: 'http://agent'{more}}}\n")).backend;
    let spelled = backend(
        ", rest_paths: slash, always_output_modes: true, ignores_configuration: true, follow_streams: true",
    );
    assert_eq!(backend(", preset: adk-rust"), spelled);
    assert_ne!(backend(""), spelled);

    let own = backend(", preset: adk-rust, rest_paths: colon, always_output_modes: false");
    assert_eq!(own.rest_paths, RestPaths::Colon);
    assert!(!own.always_output_modes && own.ignores_configuration);

    let told = wrong("backend: {url: 'http://agent', preset: adk}\n");
    let says = "backend.preset: line 1: expected one of: adk-rust, memorylake";
    assert_eq!(told, says);
}

#[test]
fn the_command_line_goes_before_the_file_and_the_file_before_defaults() {
    let text = "listen: 127.0.0.1:1\nlog: warn\nbackend:\n  url: http://file\n  version: 0.3\n";
    let file = good(text);
    assert_eq!(
        (file.log, file.backend.version),
        (Level::Warn, Version::V03)
    );
    assert_eq!(file.backend.binding, Binding::Jsonrpc);

    let overrides = Overrides {
        backend: Some("http://said".to_owned()),
        listen: "127.0.0.1:2".parse().ok(),
        binding: Some(Binding::Rest),
        workers: Some(3),
        log: Some(Level::Off),
        ..Overrides::default()
    };
    let both = Config::parse(text, overrides).expect("no mistakes");
    assert_eq!(both.backend.url, BaseUrl::parse("http://said").ok());
    assert_eq!(
        (both.listen.to_string().as_str(), both.workers),
        ("127.0.0.1:2", 3)
    );
    assert_eq!(
        (both.log, both.backend.binding),
        (Level::Off, Binding::Rest)
    );
    assert_eq!(both.backend.version, Version::V03);
}

#[test]
fn a_mistake_that_is_overruled_is_none() {
    let overrides = Overrides {
        listen: "127.0.0.1:2".parse().ok(),
        ..Overrides::default()
    };
    let text = format!("listen: [nonsense]\n{AGENT}");
    Config::parse(&text, overrides).expect("no mistakes");
}

#[test]
fn a_mistake_on_the_command_line_has_no_line() {
    let overrides = Overrides {
        public_url: Some("agents.example".to_owned()),
        ..Overrides::default()
    };
    let text = format!("public_url: http://file\n{AGENT}");
    let mistakes = Config::parse(&text, overrides).expect_err("no scheme");
    let says = "public_url: expected an address such as https://host/path";
    assert_eq!(mistakes.to_string(), says);
}

#[test]
fn all_mistakes_are_told_at_once_with_key_and_line() {
    let text = "\
listen: here
wokers: 4
log: loud
backend:
  url: https://user:hunter2@agent/
  wait: 5
  version: 1.1
  retries: 3
routes:
  - path: /a/{id}
    backend: https://host/{x}
  - path: /b/v1
    bakend: https://host
limits:
  body: huge
  depth: 201
  silence: 0s
  depth: 3
";
    let expected = "\
listen: line 1: expected an address and a port, such as 127.0.0.1:8080 or [::]:8080, or unix:/path/of/socket
wokers: line 2: unknown key; known here: listen, tls, public_url, admin, admin_token_file, workers, log, log_format, auth, backend, routes, metadata, face, dialects, compat, stream, conversation, retry, state, ownership, push, card, http, limits, audit, access_log, telemetry, drain
log: line 3: expected one of: error, warn, info, debug, trace, off
backend.url: line 5: an address must not hold credentials
backend.wait: line 6: expected a time such as 250ms, 30s, 10m or 1h
backend.version: line 7: expected one of: 1.0, 0.3
backend.retries: line 8: unknown key; known here: preset, url, addresses, resolve, affinity, breaker, repeats, health, binding, version, http2, max_connections, wait, idle, subscribe_verb, rest_content_type, rest_paths, always_output_modes, ignores_configuration, ca_file, system_roots, client_cert_file, client_key_file, server_name, card_path, follow_streams, default_metadata, require_metadata, explicit_wait, push_notifications, hydrate_tasks, credentials
routes[0].backend: line 11: the path and the backend must have the same parameters
routes[1].path: line 12: a path must not end in `v1`, which means v0.3 REST
routes[1].backend: line 12: every route has a path and a backend
routes[1].bakend: line 13: unknown key; known here: path, backend, agent_parameter, metadata, face
limits.body: line 15: expected a size such as 64KiB, 16MiB, 1MB or a number of bytes
limits.depth: line 16: expected at most 200
limits.silence: line 17: expected more than 0
limits.depth: line 18: given twice, first on line 16";
    assert_eq!(wrong(text), expected);
}

#[test]
fn a_shared_store_is_checked_before_it_is_used() {
    let text = "\
backend: {url: 'http://agent'}
conversation: {settle: 5s}
state:
  store: redis+sentinel://user:hunter2@host
  lease: 5s
";
    let says = wrong(text);
    for mistake in [
        "state.store: line 4: expected memory, or: sentinels need a master's name",
        "state.lease: line 5: expected more than conversation.settle",
    ] {
        assert!(says.contains(mistake), "{says}");
    }
    assert!(!says.contains("hunter2"), "{says}");
    let short =
        good("backend: {url: 'http://agent'}\nretry: {message_id: 'on'}\nstate: 'redis://h'\n");
    assert_eq!(short.state.store.0, "redis://h");
    assert!(wrong("backend: {url: 'http://agent'}\nstate: 'redis:/h'\n").contains("line 2"));
}

#[test]
fn what_is_no_yaml_is_told_with_its_line_and_without_an_excerpt() {
    for text in [
        "listen: 127.0.0.1:1\nlog: \"hunter2\nbackend:\n",
        "a: b\n\thunter2: x\n",
        "a: [hunter2\nb: c\n",
        "a: b\n--- \nb: hunter2\n",
        "a: &hunter2 b\nc: *hunter\n",
        "<<: {hunter2: b}\n",
    ] {
        let mistakes = parse(text).expect_err(text);
        assert!(!mistakes.to_string().contains("hunter2"), "{mistakes}");
        assert!(
            mistakes.iter().all(|mistake| mistake.line.is_some()),
            "{mistakes}"
        );
    }
}

#[test]
fn a_file_that_is_no_mapping_is_told() {
    assert_eq!(wrong("- listen\n"), "expected keys with values");
    assert_eq!(wrong("hello\n"), "expected keys with values");
    assert_eq!(wrong("5"), "expected keys with values");
}

#[test]
fn a_missing_agent_is_told_with_what_to_do() {
    for text in ["", "# nothing\n", "---\n", "backend:\n", "routes: []\n"] {
        let told = wrong(text);
        assert!(told.contains("A2A_GATEWAY_BACKEND"), "{told}");
        assert!(told.starts_with("backend.url: "), "{told}");
    }
    good("routes: [{path: /a, backend: http://agent}]\n");
    // Present but wrong is one mistake, not two.
    assert!(!wrong("backend: {url: agent}\n").contains("A2A_GATEWAY_BACKEND"));
}

#[test]
fn the_comments_out_of_a_section_leave_its_defaults() {
    let config = good(&format!("{AGENT}limits:\n  # body: 1MiB\nroutes: []\n"));
    assert_eq!(config.limits, Limits::default());
}

#[test]
fn anchors_are_read_and_bombs_are_not() {
    let config = good("card: {max_age: &t 7s, stale: *t}\nbackend: {url: http://a}\n");
    assert_eq!(config.card.stale, Duration::from_secs(7));

    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..8 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{items}]").expect("a String takes all");
    }
    assert!(wrong(&bomb).contains("YAML"));
    assert!(wrong(&"[".repeat(100)).contains("YAML"));
}

#[test]
fn a_hundred_mistakes_are_enough() {
    let mut text = AGENT.to_owned();
    for number in 0..300 {
        writeln!(text, "key{number}: x").expect("a String takes all");
    }
    let mistakes = parse(&text).expect_err("unknown keys");
    assert_eq!(mistakes.iter().count(), 101);
    assert!(mistakes.to_string().ends_with("enough for now"));
}

#[test]
fn a_key_is_shown_short_and_on_one_line() {
    let told = wrong(&format!("{AGENT}\"a\\nb\\e{}\": 1\n", "x".repeat(200)));
    let key = told.split(':').next().expect("a key");
    assert!(
        key.starts_with("a\\nb\\u{1b}xxx") && key.len() < 80,
        "{key}"
    );
}

#[test]
fn files_are_bounded_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gateway.yaml");
    let load = || Config::load(Some(&path), Overrides::default());
    let absent = load().expect_err("no file").to_string();
    assert!(
        absent.contains("gateway.yaml") && absent.contains("cannot read"),
        "{absent}"
    );

    std::fs::write(&path, MINIMAL).expect("written");
    load().expect("no mistakes");
    assert!(check(&path).is_ok_and(|says| says.ends_with("no mistakes")));

    let long = format!("{MINIMAL}#{}\n", "x".repeat(MAX_FILE));
    std::fs::write(&path, long).expect("written");
    assert!(load().expect_err("too long").to_string().contains("1 MiB"));
    std::fs::write(&path, b"listen: \xff\n").expect("written");
    assert!(load().expect_err("bytes").to_string().contains("UTF-8"));

    std::fs::write(&path, GATEWAY).expect("written");
    assert!(check(&path).is_ok_and(|says| says.contains("--backend")));
    std::fs::write(&path, "log: x\n").expect("written");
    assert_eq!(check(&path).expect_err("a mistake").iter().count(), 1);
}
