//! The commands and their arguments. Those of `serve` may also come from the environment; an argument
//! goes before a variable, a variable before the file, the file before the default.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::config::{Binding, Level, Listen, Overrides, Version};

/// Lets A2A clients of any version and binding talk to one agent.
#[derive(Clone, Debug, Parser)]
#[command(name = "a2a-gateway", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Run a small agent behind a gateway, to try things out.
    Demo(Demo),
    /// Run the gateway.
    Serve(Box<Serve>),
    /// Have a running gateway end its calls, and wait until it can be stopped.
    ///
    /// Exit code: 0 when all ended, 1 when something was cut or still ran when the time was over, 2 when the gateway
    /// could not be asked.
    Drain(Drain),
    /// Ask an A2A address, a gateway or an agent, in all versions and bindings, and tell what works.
    ///
    /// Exit code: 0 when all works that its card offers, 1 when something is wrong, 2 when it cannot be reached.
    Probe(Probe),
    /// Tell all mistakes in a settings file.
    Check(Check),
    /// Translate one document from standard input to standard output.
    Translate(Translate),
    /// Look at the record of calls.
    #[command(subcommand)]
    Audit(Audit),
    /// Print the JSON Schema of the settings file.
    Schema,
}

/// Arguments of `demo`.
#[derive(Clone, Debug, Args)]
pub struct Demo {
    /// The address and port to listen on.
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Run the agent alone, for a gateway that runs elsewhere.
    #[arg(long)]
    pub agent_only: bool,
}

/// Arguments of `serve`.
#[derive(Clone, Debug, Default, Args)]
pub struct Serve {
    /// The settings file.
    #[arg(long, value_name = "FILE", env = "A2A_GATEWAY_CONFIG")]
    pub config: Option<PathBuf>,
    /// The address of the agent.
    #[arg(long, value_name = "URL", env = "A2A_GATEWAY_BACKEND")]
    pub backend: Option<String>,
    /// The address and port to listen on, or unix: and the path of a socket.
    #[arg(long, value_name = "ADDR", env = "A2A_GATEWAY_LISTEN")]
    pub listen: Option<Listen>,
    /// The address clients know the gateway by.
    #[arg(long, value_name = "URL", env = "A2A_GATEWAY_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// The binding the agent speaks.
    #[arg(long, value_name = "BINDING", env = "A2A_GATEWAY_BACKEND_BINDING")]
    pub backend_binding: Option<Binding>,
    /// The version the agent speaks.
    #[arg(long, value_name = "VERSION", env = "A2A_GATEWAY_BACKEND_VERSION")]
    pub backend_version: Option<Version>,
    /// The address and port for probes and metrics.
    #[arg(long, value_name = "ADDR", env = "A2A_GATEWAY_ADMIN")]
    pub admin: Option<Listen>,
    /// Threads that serve; 0 is one for each core.
    #[arg(long, value_name = "N", env = "A2A_GATEWAY_WORKERS")]
    pub workers: Option<usize>,
    /// What is logged.
    #[arg(long, value_name = "LEVEL", env = "A2A_GATEWAY_LOG")]
    pub log: Option<Level>,
}

/// Arguments of `drain`.
#[derive(Clone, Debug, Default, Args)]
pub struct Drain {
    /// The settings file of the gateway: it names its admin address and the file of its token.
    #[arg(long, value_name = "FILE", env = "A2A_GATEWAY_CONFIG")]
    pub config: Option<PathBuf>,
    /// Its admin address; before the file's.
    #[arg(long, value_name = "ADDR", env = "A2A_GATEWAY_ADMIN")]
    pub admin: Option<Listen>,
    /// The file with the token of its admin address; before the one that the settings name.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// How long to wait, such as 30s; a little longer than the drain can take, if this is not said.
    #[arg(long, value_name = "TIME", value_parser = crate::config::time)]
    pub wait: Option<std::time::Duration>,
}

/// Arguments of `probe`.
#[derive(Clone, Debug, Args)]
pub struct Probe {
    /// The address: below it are the card's well-known path and, where the card says nothing else, the interfaces.
    #[arg(value_name = "URL")]
    pub url: String,
    /// A header for every request, such as 'Authorization: Bearer TOKEN'; may be repeated.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// A file of such headers, one a line, for those that nobody should see among the arguments.
    #[arg(long, value_name = "FILE")]
    pub header_file: Option<PathBuf>,
    /// Authorities to trust besides the system's, for https.
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// How long all of it may take; one question may take a quarter of it.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::config::time)]
    pub timeout: std::time::Duration,
    /// What the agent is told.
    #[arg(long, value_name = "TEXT", default_value = "hello")]
    pub message: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `check`.
#[derive(Clone, Debug, Args)]
pub struct Check {
    /// The settings file.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
}

/// What to do with the record of calls.
#[derive(Clone, Debug, Subcommand)]
pub enum Audit {
    /// Tell whether each line of a log is as it was written, and whether one is missing.
    Verify(Verify),
    /// Print the digest of a request's body, as records have it by `audit.digest`.
    Digest(Digest),
}

/// Arguments of `audit verify`.
#[derive(Clone, Debug, Args)]
pub struct Verify {
    /// All files of the log, in any order, or the folder that they are in.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The file with the key of the chain; without it no link is verified.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// A file with checkpoints, as stdout had them; they show whether the end is missing.
    #[arg(long, value_name = "FILE")]
    pub anchor: Option<PathBuf>,
}

/// Arguments of `audit digest`.
#[derive(Clone, Debug, Args)]
pub struct Digest {
    /// The body.
    #[arg(value_name = "FILE")]
    pub body: PathBuf,
    /// The file with the key of the chain.
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
}

/// Arguments of `translate`.
#[derive(Clone, Debug, Args)]
pub struct Translate {
    /// The dialect of the document.
    #[arg(long, value_name = "DIALECT")]
    pub from: DialectName,
    /// The dialect to write it in.
    #[arg(long, value_name = "DIALECT")]
    pub to: DialectName,
    /// What the document is.
    #[arg(long, value_name = "KIND")]
    pub document: Document,
    /// The operation it belongs to, where the document does not tell.
    #[arg(long, value_name = "OPERATION")]
    pub operation: Option<String>,
}

/// A dialect as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DialectName {
    /// v0.3 over JSON-RPC.
    #[value(name = "v0.3-jsonrpc")]
    V03Jsonrpc,
    /// v0.3 over REST, as most write it.
    #[value(name = "v0.3-rest")]
    V03Rest,
    /// v0.3 over REST with `kind`.
    #[value(name = "v0.3-rest-kind")]
    V03RestKind,
    /// v1.0 over JSON-RPC.
    #[value(name = "v1.0-jsonrpc")]
    V10Jsonrpc,
    /// v1.0 over REST.
    #[value(name = "v1.0-rest")]
    V10Rest,
}

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Document {
    /// What a client sends.
    Request,
    /// What it gets back.
    Response,
    /// One event of a stream.
    Event,
    /// A refusal.
    Error,
    /// An agent card.
    Card,
}

impl Cli {
    /// Reads `arguments`, the first of which is the name of the program.
    ///
    /// `is_blank` tells whether a variable is set to nothing, which is how many set-ups write "not
    /// set"; such a variable is not read.
    pub fn read<I, A>(arguments: I, is_blank: impl Fn(&OsStr) -> bool) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = A>,
        A: Into<OsString> + Clone,
    {
        let command = Self::command().mut_subcommands(|command| {
            command.mut_args(|argument| match argument.get_env() {
                Some(name) if is_blank(name) => argument.env(None::<&'static str>),
                Some(_) | None => argument,
            })
        });
        Self::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }
}

impl From<&Serve> for Overrides {
    fn from(said: &Serve) -> Self {
        Self {
            backend: said.backend.clone(),
            listen: said.listen.clone(),
            public_url: said.public_url.clone(),
            binding: said.backend_binding,
            version: said.backend_version,
            admin: said.admin.clone(),
            workers: said.workers,
            log: said.log,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;

    fn read(arguments: &[&str]) -> Cli {
        let whole = ["a2a-gateway"].iter().chain(arguments);
        Cli::read(whole, |_| false).expect("valid arguments")
    }

    fn serve(arguments: &[&str], is_blank: impl Fn(&OsStr) -> bool) -> Result<Serve, clap::Error> {
        let whole = ["a2a-gateway", "serve"].iter().chain(arguments);
        match Cli::read(whole, is_blank)?.command {
            Command::Serve(serve) => Ok(*serve),
            Command::Demo(_)
            | Command::Drain(_)
            | Command::Probe(_)
            | Command::Check(_)
            | Command::Translate(_)
            | Command::Audit(_)
            | Command::Schema => panic!("asked for serve"),
        }
    }

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn arguments_become_overrides() {
        let said = serve(
            &[
                "--backend",
                "http://agent",
                "--listen",
                "[::]:80",
                "--public-url",
                "http://us",
                "--backend-binding",
                "rest",
                "--backend-version",
                "0.3",
                "--admin",
                "127.0.0.1:81",
                "--workers",
                "2",
                "--log",
                "off",
                "--config",
                "x.yaml",
            ],
            |_| false,
        );
        let said = said.expect("valid arguments");
        assert_eq!(said.config, Some(PathBuf::from("x.yaml")));
        let over = Overrides::from(&said);
        assert_eq!(over.backend.as_deref(), Some("http://agent"));
        assert_eq!(over.public_url.as_deref(), Some("http://us"));
        assert_eq!(
            (over.binding, over.version),
            (Some(Binding::Rest), Some(Version::V03))
        );
        assert_eq!((over.workers, over.log), (Some(2), Some(Level::Off)));
        assert_eq!(over.listen, "[::]:80".parse().ok());
        assert_eq!(
            over.admin.map(|at| at.to_string().ends_with(":81")),
            Some(true)
        );
    }

    #[test]
    fn the_other_commands_are_read() {
        assert!(matches!(read(&["schema"]).command, Command::Schema));
        assert!(matches!(
            read(&["demo"]).command,
            Command::Demo(Demo {
                listen: None,
                agent_only: false
            })
        ));
        let agent = read(&["demo", "--agent-only", "--listen", "0.0.0.0:9000"]);
        assert!(matches!(
            agent.command,
            Command::Demo(Demo {
                listen: Some(_),
                agent_only: true
            })
        ));
        assert!(matches!(
            read(&["check", "--config", "x"]).command,
            Command::Check(_)
        ));
        let from = [
            "translate",
            "--from",
            "v0.3-rest-kind",
            "--to",
            "v1.0-jsonrpc",
        ];
        let document = ["--document", "event", "--operation", "SendMessage"];
        let Command::Translate(translate) = read(&[from.as_slice(), &document].concat()).command
        else {
            panic!("asked for translate");
        };
        assert_eq!(translate.from, DialectName::V03RestKind);
        assert_eq!(translate.to, DialectName::V10Jsonrpc);
        assert_eq!(translate.document, Document::Event);
        let drain = [
            "drain",
            "--admin",
            "127.0.0.1:81",
            "--token-file",
            "t",
            "--wait",
            "35s",
        ];
        let Command::Drain(drain) = read(&drain).command else {
            panic!("asked for drain");
        };
        assert_eq!(drain.wait, Some(std::time::Duration::from_secs(35)));
        let probe = ["probe", "http://a", "--header", "a: b", "--header", "c: d"];
        let Command::Probe(probe) = read(&probe).command else {
            panic!("asked for probe");
        };
        assert_eq!(probe.headers, ["a: b", "c: d"]);
        assert_eq!(probe.timeout, std::time::Duration::from_mins(1));
        let verify = ["audit", "verify", "a", "b", "--key", "k", "--anchor", "c"];
        let Command::Audit(Audit::Verify(verify)) = read(&verify).command else {
            panic!("asked for audit verify");
        };
        assert_eq!(verify.files, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(verify.key, Some(PathBuf::from("k")));
        assert_eq!(verify.anchor, Some(PathBuf::from("c")));
        for arguments in [
            &["a2a-gateway"][..],
            &["a2a-gateway", "audit", "verify"],
            &["a2a-gateway", "audit", "digest", "body"],
            &["a2a-gateway", "check"],
            &["a2a-gateway", "serve", "--log", "loud"],
            &["a2a-gateway", "drain", "--wait", "soon"],
            &["a2a-gateway", "probe"],
            &["a2a-gateway", "serve", "--listen", "here"],
            &["a2a-gateway", "translate", "--from", "v2"],
        ] {
            assert!(Cli::read(arguments, |_| false).is_err(), "{arguments:?}");
        }
    }

    /// Variables cannot be set in this process without `unsafe`, so they are set for a child.
    #[test]
    fn variables_are_read_below_arguments_and_blank_ones_are_not() {
        let own = std::env::current_exe().expect("this program");
        let output = process::Command::new(own)
            .args(["--exact", "--ignored", "cli::tests::in_a_set_environment"])
            .env("A2A_GATEWAY_BACKEND", "http://variable")
            .env("A2A_GATEWAY_LISTEN", "127.0.0.1:7")
            .env("A2A_GATEWAY_WORKERS", "")
            .env("A2A_GATEWAY_LOG", "")
            .env("A2A_GATEWAY_TEST", "anything")
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            said.contains("1 passed") && output.status.success(),
            "{said}"
        );
    }

    #[test]
    #[ignore = "the test above runs it with variables"]
    fn in_a_set_environment() {
        let is_blank = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
        let said = serve(&["--listen", "127.0.0.1:8"], is_blank).expect("blank ones are not read");
        assert_eq!(said.backend.as_deref(), Some("http://variable"));
        assert_eq!(said.listen, "127.0.0.1:8".parse().ok());
        assert_eq!((said.workers, said.log), (None, None));
        assert!(serve(&[], |_| false).is_err());
    }
}
