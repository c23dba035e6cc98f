//! What the process is told from outside: SIGTERM and SIGINT drain, and cut the second time; SIGHUP is whoever's who asks
//! for it. From the first moment on none of them ends the process by itself any more.

use std::io::Result;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use super::{Running, runtime};

/// The signals, heard by whoever waits.
#[derive(Debug)]
pub struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
    hang_up: Option<Signal>,
}

/// Why a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By a signal.
    Told,
    /// By itself, or because somebody else drained it.
    ByItself,
}

impl Signals {
    /// Hears what ends the process.
    pub fn new() -> Result<Self> {
        let runtime = runtime()?;
        let (terminate, interrupt) = {
            let _inside = runtime.enter();
            (
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            )
        };
        Ok(Self {
            runtime,
            terminate,
            interrupt,
            hang_up: None,
        })
    }

    /// Hears SIGHUP as well.
    pub fn and_hang_up(mut self) -> Result<Self> {
        let hang_up = {
            let _inside = self.runtime.enter();
            signal(SignalKind::hangup())?
        };
        self.hang_up = Some(hang_up);
        Ok(self)
    }

    /// Waits until the server has ended; drains it at the first signal and cuts it at the second. At
    /// SIGHUP, settings are to be `read_again`.
    pub fn until_ended(&mut self, running: &Running, read_again: impl Fn()) -> Ended {
        let Self {
            runtime,
            terminate,
            interrupt,
            hang_up,
        } = self;
        runtime.block_on(async {
            let mut told = 0;
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                    () = heard(hang_up) => {
                        read_again();
                        continue;
                    }
                    () = running.ended.wait() => break,
                }
                told += 1;
                tracing::info!(connections = running.counts().connections(), "leaving");
                if told == 1 {
                    running.drain();
                } else {
                    running.cut();
                }
            }
            if told == 0 {
                return Ended::ByItself;
            }
            Ended::Told
        })
    }

    /// Waits for a signal to end, for so long. False if none came.
    pub fn end_comes(&mut self, within: Duration) -> bool {
        let Self {
            runtime,
            terminate,
            interrupt,
            ..
        } = self;
        runtime.block_on(async {
            let end = async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            };
            timeout(within, end).await.is_ok()
        })
    }
}

async fn heard(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
