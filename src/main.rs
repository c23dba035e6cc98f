//! The binary: arguments, settings, log, run, exit code.
use std::{ffi::OsStr, io::Read as _, process::ExitCode};

use a2a_gateway::{
    audit::{Key, verify},
    cli::{Audit, Cli, Command, Probe, Translate},
    config::{self, Config, LogFormat, Overrides},
    drain, log, probe,
    reload::Source,
    run, translate,
};

/// The largest document that `translate` reads, in bytes.
const LONGEST: u64 = 64 * 1024 * 1024;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let is_blank = |name: &OsStr| std::env::var_os(name).is_some_and(|v| v.is_empty());
    let cli = match Cli::read(std::env::args_os(), is_blank) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match cli.command {
        Command::Serve(serve) => {
            let file = serve.config.clone();
            match Config::load(file.as_deref(), Overrides::from(&*serve)) {
                Ok(config) => {
                    log::start(config.log, config.log_format);
                    let overrides = Overrides::from(&*serve);
                    ended(run::serve(config, Source { file, overrides }))
                }
                Err(mistakes) => wrong(&mistakes),
            }
        }
        Command::Demo(demo) => {
            log::start(config::Level::Warn, LogFormat::Text);
            let usual = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
            ended(if demo.agent_only {
                run::demo_agent_alone(demo.listen.unwrap_or_else(|| usual(9000)))
            } else {
                run::demo(demo.listen.unwrap_or_else(|| usual(8080)))
            })
        }
        Command::Drain(asked) => match drain::drain(&asked) {
            Ok(drained) => {
                println!("{drained}");
                drained.exit_code()
            }
            Err(says) => {
                eprintln!("a2a-gateway: {says}");
                ExitCode::from(drain::NOT_ASKED)
            }
        },
        Command::Probe(asked) => probed(&asked),
        Command::Check(check) => match config::check(&check.config) {
            Ok(said) => {
                println!("{said}");
                ExitCode::SUCCESS
            }
            Err(mistakes) => wrong(&mistakes),
        },
        Command::Schema => {
            println!("{}", config::schema());
            ExitCode::SUCCESS
        }
        Command::Translate(translate) => translated(&translate),
        Command::Audit(asked) => match audited(&asked) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(says) => wrong(&says),
        },
    }
}

/// What works at an address.
fn probed(asked: &Probe) -> ExitCode {
    match probe::probe(asked) {
        Ok(report) => {
            if asked.json {
                println!("{}", report.json());
            } else {
                println!("{report}");
            }
            probe::exit_code(&report)
        }
        Err(says) => {
            eprintln!("a2a-gateway: {says}");
            ExitCode::from(probe::NOT_REACHED)
        }
    }
}

/// What was asked about the record of calls. False if something is wrong with it.
fn audited(asked: &Audit) -> Result<bool, String> {
    match asked {
        Audit::Verify(v) => {
            let key = v.key.as_deref().map(Key::read).transpose()?;
            let report = verify::verify(&v.files, key.as_ref(), v.anchor.as_deref());
            let report = report.map_err(|e| e.to_string())?;
            println!("{report}");
            Ok(report.is_good())
        }
        Audit::Digest(d) => {
            let key = Key::read(&d.key)?;
            let body = std::fs::read(&d.body);
            let body = body.map_err(|e| format!("{}: {e}", d.body.display()))?;
            println!("{}", key.digest(&body));
            Ok(true)
        }
    }
}

/// One document from stdin to stdout; what got lost goes to stderr, a line each.
fn translated(t: &Translate) -> ExitCode {
    let mut input = String::new();
    if let Err(error) = std::io::stdin().take(LONGEST).read_to_string(&mut input) {
        eprintln!("a2a-gateway: {error}");
        return ExitCode::FAILURE;
    }
    match translate::run(t.from, t.to, t.document, t.operation.as_deref(), &input) {
        Ok(done) => {
            println!("{}", done.output);
            for loss in &done.losses {
                eprintln!("{}", translate::line(loss));
            }
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("a2a-gateway: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn wrong(mistakes: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("{mistakes}");
    ExitCode::FAILURE
}

/// 0 when all that ran could end, 1 when something was cut or could not begin.
fn ended(done: std::io::Result<bool>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("a2a-gateway: {error}");
            ExitCode::FAILURE
        }
    }
}
