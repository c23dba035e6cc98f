//! The double as a program, to try things against: `memorylake [--listen ADDRESS] [--page en|cn|older]`.
//!
//! It prints the base URL of its agent and serves until it is ended. The key is `sk_xxxxxx`; what the text of a
//! message does stands in `script.rs`.
use std::{env, net::TcpListener, process::ExitCode, thread};

#[path = "../memorylake.rs"]
mod memorylake;

use memorylake::{Lake, Page, Rules};

fn main() -> ExitCode {
    match started(env::args().skip(1)) {
        Ok(lake) => {
            println!("http://{}{}", lake.addr, lake.base());
            loop {
                thread::park();
            }
        }
        Err(why) => {
            eprintln!("{why}\nmemorylake [--listen ADDRESS] [--page en|cn|older]");
            ExitCode::from(2)
        }
    }
}

fn started(mut arguments: impl Iterator<Item = String>) -> Result<Lake, String> {
    let (mut listen, mut page) = ("127.0.0.1:0".to_owned(), Page::default());
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(format!("{name} needs a value"))?;
        match name.as_str() {
            "--listen" => listen = value,
            "--page" => {
                let found = Page::ALL.into_iter().find(|page| page.name() == value);
                page = found.ok_or(format!("there is no page {value}"))?;
            }
            _ => return Err(format!("there is no {name}")),
        }
    }
    let listener = TcpListener::bind(&listen).map_err(|e| format!("{listen}: {e}"))?;
    Ok(Lake::listen(listener, Rules::of(page)))
}
