//! New settings for a gateway that runs: the file is looked at, and read again when somebody asks (SIGHUP, `POST
//! /v1/reload`). One thread does it all, so that there is one reload at a time.
//!
//! ```text
//!   file changed ──┐                     ┌─ mistakes ──► nothing changes; logged once, all of them
//!   SIGHUP ────────┼─► read ─► mean ─────┤
//!   POST ──────────┘                     └─ what is fixed is kept as it runs, and named ─► taken ─► in force
//! ```
//! A file that was changed by an editor, or by a mount that swaps a symbolic link, is taken once two looks have found the
//! same. What the command line and the environment said at the start goes before the file here as well.
use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

use crate::{
    config::{Config, Mistakes, Overrides},
    watch::Changing,
};

/// How often the file is looked at.
const EVERY: Duration = Duration::from_secs(1);
/// So many may ask while settings are being read.
const ASKING: usize = 16;
/// How long who asks waits: a file may lie where reading takes for ever.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the end waits for a reading that is under way.
const LAST: Duration = Duration::from_secs(1);
/// How long settings that lack something wait for their next turn, at most: each time twice as long.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Where settings came from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// What goes before it.
    pub overrides: Overrides,
}

/// What came of reading settings again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// They are in force.
    Taken {
        /// The sections that differ from those before.
        changed: Vec<&'static str>,
        /// Settings that stay as they were until a restart.
        restart: Vec<&'static str>,
    },
    /// Nothing changed; what is wrong, a line each.
    Refused(Vec<String>),
    /// There is no file.
    NoFile,
    /// Too many have asked, or the gateway ends.
    Busy,
    /// They are being read still.
    Late,
}

/// How settings stand.
#[derive(Clone, Debug)]
pub struct Said {
    /// When those in force were taken.
    pub last_ok: SystemTime,
    /// How often settings were taken, the first ones not counted.
    pub ok: u64,
    /// How often they were refused.
    pub failed: u64,
    /// Whether the file is good as it is now; if not, the settings from before are in force.
    pub valid: bool,
    /// Settings in the file that differ from those in force, since they need a restart.
    pub needs_restart: Vec<&'static str>,
}

/// The same, for who looks at it.
#[derive(Clone)]
pub struct Status(Arc<Mutex<Said>>);

impl Status {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Said {
            last_ok: SystemTime::now(),
            ok: 0,
            failed: 0,
            valid: true,
            needs_restart: vec![],
        })))
    }

    /// As it is now.
    pub fn now(&self) -> Said {
        self.0.lock().clone()
    }

    /// A line for people. It tells nothing that is in the file, but names of settings.
    pub fn line(&self) -> String {
        let said = self.now();
        let at = jiff::Timestamp::try_from(said.last_ok);
        let at = at.map_or_else(|_| String::new(), |at| format!(" of {at:.0}"));
        let mut line = if said.valid {
            format!("settings: those{at} are in force")
        } else {
            format!("settings: the file is bad, see the log; those{at} are in force")
        };
        if !said.needs_restart.is_empty() {
            line.push_str("; a restart is needed for ");
            line.push_str(&said.needs_restart.join(", "));
        }
        line
    }
}

/// Those whose settings they are: makes the step from the old to the new ones, or says why that cannot be.
pub type Take = Box<dyn FnMut(&Config) -> Result<(), String> + Send>;

enum Ask {
    Read(Option<oneshot::Sender<Answer>>),
    End,
}

/// Asks for settings to be read again.
#[derive(Clone)]
pub struct Asks(SyncSender<Ask>);

impl Asks {
    /// Waits for the answer, but not for ever.
    pub async fn ask(&self) -> Answer {
        let (to, answer) = oneshot::channel();
        if self.0.try_send(Ask::Read(Some(to))).is_err() {
            return Answer::Busy;
        }
        match timeout(PATIENCE, answer).await {
            Ok(answer) => answer.unwrap_or(Answer::Busy),
            Err(_) => Answer::Late,
        }
    }

    /// Does not wait: what comes of it is in the log.
    pub fn ask_only(&self) {
        let _one_waits_already = self.0.try_send(Ask::Read(None));
    }
}

/// The thread that reads settings again. It ends with this.
pub struct Reloads {
    asks: Asks,
    status: Status,
    thread: Option<JoinHandle<()>>,
    /// Nothing is to be taken any more.
    ends: Arc<AtomicBool>,
    /// Nothing is ever sent: the thread's end is the message.
    ended: Mutex<Receiver<()>>,
}

/// Asks that nobody hears yet, so that others can be handed the way to them.
pub struct Waiting {
    asks: Asks,
    asked: Receiver<Ask>,
    status: Status,
}

impl Waiting {
    /// Nobody has asked yet.
    #[expect(clippy::new_without_default, reason = "it begins something")]
    pub fn new() -> Self {
        let (asks, asked) = sync_channel(ASKING);
        Self {
            asks: Asks(asks),
            asked,
            status: Status::new(),
        }
    }

    /// For who asks.
    pub fn asks(&self) -> &Asks {
        &self.asks
    }

    /// For who looks how it stands.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Begins to look and to listen. `running` is in force.
    pub fn start(self, source: Source, running: Config, take: Take) -> io::Result<Reloads> {
        let watched = source.file.clone().filter(|file| is_watched(file));
        let ends = Arc::new(AtomicBool::new(false));
        let reader = Reader {
            file: watched.map(Changing::new),
            source,
            running,
            take,
            said: None,
            lacks: None,
            status: self.status.clone(),
            ends: ends.clone(),
        };
        let thread = thread::Builder::new().name("settings".to_owned());
        let (lives, ended) = sync_channel(0);
        let thread = thread.spawn(move || {
            let _lives: SyncSender<()> = lives;
            reader.run(&self.asked);
        })?;
        Ok(Reloads {
            asks: self.asks,
            status: self.status,
            thread: Some(thread),
            ends,
            ended: Mutex::new(ended),
        })
    }
}

impl Reloads {
    /// For who asks.
    pub fn asks(&self) -> &Asks {
        &self.asks
    }

    /// For who looks how it stands.
    pub fn status(&self) -> &Status {
        &self.status
    }
}

impl Drop for Reloads {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        let _sees_it_after_the_rest = self.asks.0.try_send(Ask::End);
        if self.ended.get_mut().recv_timeout(LAST) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!(
                "a file of the settings is being read and does not come; it is not waited for"
            );
            return; // its thread ends with the process
        }
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// A pipe cannot be read twice, nor looked at.
fn is_watched(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file())
}

struct Reader {
    source: Source,
    file: Option<Changing>,
    running: Config,
    take: Take,
    /// What was last said of a bad file: it is not said again.
    said: Option<String>,
    /// Settings that lack something beside the file, such as a key that is mounted a moment later.
    lacks: Option<Lacks>,
    status: Status,
    ends: Arc<AtomicBool>,
}

/// Settings that wait for what they lack.
struct Lacks {
    /// As the file says.
    config: Config,
    pause: Duration,
    until: Instant,
}

impl Lacks {
    fn new(config: Config, pause: Duration) -> Self {
        let until = Instant::now() + pause;
        Self {
            config,
            pause,
            until,
        }
    }
}

impl Reader {
    fn run(mut self, asked: &Receiver<Ask>) {
        while !self.ends.load(Relaxed) {
            match asked.recv_timeout(EVERY) {
                Ok(Ask::Read(to)) => {
                    let answer = self.read_again();
                    if let Some(to) = to {
                        let _gone = to.send(answer);
                    }
                }
                Ok(Ask::End) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => self.look(),
            }
        }
    }

    /// Somebody asks: all is taken anew, also where the file says what it said.
    fn read_again(&mut self) -> Answer {
        let Some(file) = &self.source.file else {
            tracing::warn!(
                "there is no settings file to read again: the gateway was started without"
            );
            return Answer::NoFile;
        };
        if !is_watched(file) {
            let says = format!("{} is no file that can be read again", file.display());
            return self.refuse(vec![says], true);
        }
        match Config::load(Some(file), self.source.overrides.clone()) {
            Ok(config) => self.meant(config, true),
            Err(mistakes) => self.refuse(lines(&mistakes), true),
        }
    }

    /// Whether the file has changed.
    fn look(&mut self) {
        let Some(found) = self.file.as_mut().and_then(Changing::look) else {
            return self.try_again();
        };
        match found {
            Err(error) => {
                let says = format!("it cannot be read: {error}");
                self.refuse(vec![says], false);
            }
            Ok(text) => match Config::parse(&text, self.source.overrides.clone()) {
                Err(mistakes) => {
                    self.refuse(lines(&mistakes), false);
                }
                // Half a file, mostly.
                Ok(config) if text.trim().is_empty() && config != self.running => {
                    self.refuse(vec!["it is empty".to_owned()], false);
                }
                Ok(config) => {
                    self.meant(config, false);
                }
            },
        }
    }

    /// What was lacking may be there now.
    fn try_again(&mut self) {
        let now = Instant::now();
        if let Some(lacks) = self.lacks.take_if(|lacks| lacks.until <= now) {
            self.meant(lacks.config, false);
            if let Some(still) = self.lacks.take() {
                let pause = (lacks.pause * 2).min(LONGEST_PAUSE);
                self.lacks = Some(Lacks::new(still.config, pause));
            }
        }
    }

    fn meant(&mut self, said: Config, asked: bool) -> Answer {
        let mut config = said.clone();
        let restart = config.keep_fixed(&self.running);
        if !restart.is_empty()
            && let Err(mistakes) = config.stands_together()
        {
            let until = format!("until a restart for {}", restart.join(", "));
            let lines = mistakes.iter().map(|one| format!("{until}: {one}"));
            return self.refuse(lines.collect(), asked);
        }
        let changed = config.changes(&self.running);
        if !changed.is_empty() || asked {
            if self.ends.load(Relaxed) {
                return Answer::Busy;
            }
            if let Err(why) = (self.take)(&config) {
                let refused = self.refuse(vec![why], asked);
                self.lacks = Some(Lacks::new(said, EVERY));
                return refused;
            }
            for says in config.warnings() {
                tracing::warn!("{says}");
            }
            self.running = config;
        }
        (self.said, self.lacks) = (None, None);
        let mut status = self.status.0.lock();
        let news = status.needs_restart != restart;
        status.valid = true;
        status.needs_restart.clone_from(&restart);
        if !changed.is_empty() || asked {
            status.last_ok = SystemTime::now();
            status.ok += 1;
            tracing::info!(
                changed = changed.join(","),
                "the settings were read again and are in force"
            );
        }
        drop(status);
        if news && !restart.is_empty() {
            tracing::warn!(
                settings = restart.join(","),
                "these settings were changed and need a restart; until then those from before hold"
            );
        }
        Answer::Taken { changed, restart }
    }

    fn refuse(&mut self, mistakes: Vec<String>, asked: bool) -> Answer {
        self.lacks = None;
        let all = mistakes.join("\n");
        let again = self.said.as_ref() == Some(&all);
        let mut status = self.status.0.lock();
        status.valid = false;
        if !again || asked {
            status.failed += 1;
        }
        drop(status);
        if !again {
            let file = self.source.file.as_deref().unwrap_or(Path::new(""));
            tracing::error!(
                file = %file.display(), mistakes = %all,
                "the settings file has changed and is not taken, and the settings from before hold; mend it, and see \
                 `a2a-gateway check`"
            );
            self.said = Some(all);
        }
        Answer::Refused(mistakes)
    }
}

fn lines(mistakes: &Mistakes) -> Vec<String> {
    mistakes.iter().map(ToString::to_string).collect()
}
