//! Which settings hold for as long as the process does, and which differ between two readings of the file.
//!
//! What is fixed belongs to what a running gateway cannot let go: its sockets and threads, the store that its state is
//! in, the chain of its log. All else changes with the next call.
use super::Config;

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
        names
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
