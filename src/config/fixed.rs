//! Which settings hold for as long as the process does, and which differ between two readings of the file.
//!
//! What is fixed belongs to what a running gateway cannot let go: its sockets and threads, the store that its state is
//! in, the chain of its log. All else changes with the next call.
//!
//! Who is let in goes by what the listener makes sure of: where the file changes that as well, `auth` waits with it. And a
//! mixture of two readings is looked at like one.
use super::{Config, Mistakes, mean};

/// A setting that a running gateway keeps: its name, whether two readings differ in it, and how it is kept.
struct Fixed {
    name: &'static str,
    differs: fn(&Config, &Config) -> bool,
    keep: fn(&mut Config, &Config),
}

macro_rules! fixed {
    ($($name:literal: $($part:ident).+;)+) => {
        &[$(Fixed {
            name: $name,
            differs: |one, other| one.$($part).+ != other.$($part).+,
            keep: |new, running| new.$($part).+ = running.$($part).+.clone(),
        }),+]
    };
}

/// Always.
const ALWAYS: &[Fixed] = fixed! {
    "listen": listen;
    "admin": admin;
    "workers": workers;
    "log_format": log_format;
    "state.store": state.store;
    "state.persist": state.persist;
    "audit.folder": audit.folder;
    "audit.stdout": audit.stdout;
    "audit.key_file": audit.key_file;
    "audit.otlp": audit.otlp;
    "tls": tls;
    "telemetry": telemetry;
    "access_log": access_log;
};

/// With a store that is shared: its own thread has them.
const WITH_SHARED_STORE: &[Fixed] = fixed! {
    "state.on_error": state.on_error;
    "state.prefix": state.prefix;
    "state.lease": state.lease;
    "state.timeout": state.timeout;
    "state.settle_timeout": state.settle_timeout;
    "conversation.settle": conversation.settle;
    "conversation.max_hold": conversation.max_hold;
    "conversation.max_held": conversation.max_held;
    "conversation.max_tasks": conversation.max_tasks;
    "conversation.max_bindings": conversation.max_bindings;
    "conversation.binding_ttl": conversation.binding_ttl;
    "retry.window": retry.window;
    "retry.max_messages": retry.max_messages;
    "ownership.ttl": ownership.ttl;
    "ownership.max_entries": ownership.max_entries;
    "ownership.max_per_owner": ownership.max_per_owner;
};

macro_rules! sections {
    ($one:ident, $other:ident: $($part:ident)+) => {{
        let mut changed = vec![];
        $(if $one.$part != $other.$part {
            changed.push(stringify!($part));
        })+
        changed
    }};
}

impl Config {
    /// Takes what is fixed from the settings that run, and names what would have been otherwise: it needs a restart.
    pub fn keep_fixed(&mut self, running: &Self) -> Vec<&'static str> {
        let shared = !running.state.is_memory();
        let more = if shared { WITH_SHARED_STORE } else { &[] };
        let mut names = vec![];
        for one in ALWAYS.iter().chain(more) {
            if (one.differs)(self, running) {
                (one.keep)(self, running);
                names.push(one.name);
            }
        }
        let door = ["listen", "tls"].iter().any(|name| names.contains(name));
        if door && self.auth != running.auth {
            self.auth.clone_from(&running.auth);
            names.push("auth");
        }
        names
    }

    /// Whether these make sense together, each being right by itself: some are those that run, and some are new.
    pub fn stands_together(&self) -> Result<(), Mistakes> {
        mean::together_alone(self)
    }

    /// The sections, by their names in the file, in which two readings differ.
    pub fn changes(&self, other: &Self) -> Vec<&'static str> {
        sections!(self, other: listen tls public_url admin admin_token_file workers log log_format auth backend routes
            metadata face dialects compat stream conversation retry state ownership push card http limits audit access_log
            telemetry drain)
    }
}

#[cfg(test)]
mod tests {
    use super::{ALWAYS, Fixed, WITH_SHARED_STORE};
    use crate::config::{Config, Overrides};

    fn read(text: &str) -> Config {
        let text = format!("backend: {{url: 'http://a'}}\n{text}");
        Config::parse(&text, Overrides::default()).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn what_is_fixed_stays_and_is_named() {
        let running = read("listen: 127.0.0.1:1\nworkers: 2");
        let mut new = read("listen: 127.0.0.1:2\nworkers: 2\ndrain: {grace: 1s}");
        assert_eq!(new.changes(&running), ["listen", "drain"]);
        assert_eq!(new.keep_fixed(&running), ["listen"]);
        assert_eq!(new.listen, running.listen);
        assert_eq!(new.changes(&running), ["drain"]);
        assert!(new.keep_fixed(&running).is_empty());
    }

    /// The names in this part of a text, in any kind of quotes.
    fn names<'t>(text: &'t str, from: &str, to: &str) -> Vec<&'t str> {
        let (_, rest) = text.split_once(from).unwrap();
        let (part, _) = rest.split_once(to).unwrap();
        let other = |c: char| !c.is_ascii_lowercase() && c != '_' && c != '.';
        let all = part.split(other).map(|name| name.trim_end_matches('.'));
        all.filter(|name| !name.is_empty() && *name != "and")
            .collect()
    }

    #[test]
    fn the_guides_name_all_that_needs_a_restart() {
        let of = |list: &'static [Fixed]| list.iter().map(|one| one.name).collect::<Vec<_>>();
        let guide = include_str!("../../README.md");
        let settings = include_str!("../../config/gateway.yaml");
        for text in [guide, settings] {
            assert_eq!(names(text, "A restart is needed for", ";"), of(ALWAYS));
        }
        let shared = names(settings, "with a shared store for", "\n\n");
        assert_eq!(shared, of(WITH_SHARED_STORE));
    }

    const FILES: &str =
        "tls: {cert_file: c, key_file: k, client_certificates: {mode: required, ca_file: a}}";

    #[test]
    fn who_is_let_in_waits_with_the_listener() {
        let keys = "auth: [{api_keys: {file: keys}}]";
        let running = read(&format!("listen: 0.0.0.0:1\n{keys}"));
        for (listener, name) in [("listen: 127.0.0.1:1", "listen"), (FILES, "tls")] {
            for auth in ["anyone", "passthrough", "client_certificates: {}"] {
                if listener != FILES && auth.starts_with("client") {
                    continue;
                }
                let at = if listener == FILES {
                    "listen: 0.0.0.0:1"
                } else {
                    ""
                };
                let mut new = read(
                    &format!("{at}\n{listener}\nauth: [{auth}]")
                        .replace("[client_certificates: {}]", "[{client_certificates: {}}]"),
                );
                assert_eq!(new.keep_fixed(&running), [name, "auth"], "{auth}");
                assert_eq!(new.auth, running.auth, "{auth}");
                assert!(new.stands_together().is_ok());
            }
        }
        // Alone it is taken.
        let mut new = read("listen: 0.0.0.0:1\nauth: [anyone]");
        assert!(new.keep_fixed(&running).is_empty());
        assert_ne!(new.auth, running.auth);
    }

    #[test]
    fn a_mixture_that_makes_no_sense_is_found() {
        let running = read("listen: 0.0.0.0:1");
        let owned = "backend: {url: 'http://a', credentials: {header: {name: x, env: Y}}}\nownership: {by: caller}\n";
        let text =
            format!("listen: 0.0.0.0:1\n{FILES}\nauth: [{{client_certificates: {{}}}}]\n{owned}");
        let mut new = Config::parse(&text, Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
        assert!(new.stands_together().is_ok());
        assert_eq!(new.keep_fixed(&running), ["tls", "auth"]);
        let mistakes = new.stands_together().unwrap_err().to_string();
        assert!(mistakes.contains("ownership.by"), "{mistakes}");
    }

    #[test]
    fn a_shared_store_fixes_more() {
        let held = "conversation: {max_held: 7}";
        let mut new = read(held);
        assert!(new.keep_fixed(&read("")).is_empty());
        let mut new = read(&format!("state: redis://h:1\n{held}"));
        let running = read("state: redis://h:1");
        assert_eq!(new.keep_fixed(&running), ["conversation.max_held"]);
        // It is the store that runs that says so.
        let mut new = read(held);
        let names = new.keep_fixed(&running);
        assert_eq!(names, ["state.store", "conversation.max_held"]);
        assert_eq!(new, running);
    }
}
