//! A value that is fetched, kept, and fetched again: by one at a time, for all who wait. What fails is not tried again
//! at once, and takes nothing away.
//!
//! The fetching is followed, not run by whoever asks: a caller that leaves must not stop it for the others, nor make
//! each of them begin anew.
use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, RwLock};
use tokio::{sync::watch, time::Instant};

use crate::follow::Follow;

/// How long fetching may take. Who waits for it waits a little longer.
const PATIENCE: Duration = Duration::from_secs(5);
const SLACK: Duration = Duration::from_secs(1);
/// How long after a failure nobody tries; twice as long after the next, up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// A value, or the way to one.
pub struct Kept<T>(Arc<Inner<T>>);

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Inner<T> {
    /// What to tell operators when it cannot be fetched.
    advice: &'static str,
    value: RwLock<Option<Arc<T>>>,
    state: Mutex<State>,
    /// Counts how often a fetch has ended.
    ended: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    runs: bool,
    /// Since the last success.
    failures: u32,
    not_before: Option<Instant>,
}

impl<T: Send + Sync + 'static> Kept<T> {
    /// Nothing yet. `advice` is for the log, when it cannot be fetched.
    pub fn new(advice: &'static str) -> Self {
        Self(Arc::new(Inner {
            advice,
            value: RwLock::new(None),
            state: Mutex::default(),
            ended: watch::Sender::new(0),
        }))
    }

    /// The value, if there is one.
    pub fn now(&self) -> Option<Arc<T>> {
        self.0.value.read().clone()
    }

    /// Forgets the value.
    pub fn forget(&self) {
        *self.0.value.write() = None;
    }

    /// Fetches behind the back of whoever asks, unless somebody is at it, or has just failed.
    pub fn begin<F>(&self, follow: &Follow, fetch: F)
    where
        F: Future<Output = Result<T, String>> + Send + 'static,
    {
        {
            let mut state = self.0.state.lock();
            let paused = state.not_before.is_some_and(|at| Instant::now() < at);
            if state.runs || paused {
                return;
            }
            state.runs = true;
        }
        let mut end = End(self.0.clone(), None);
        // Refused or dropped half-way, it has failed: the end says so.
        follow(Box::pin(async move {
            let late = || Err("it took too long".to_owned());
            let fetched = tokio::time::timeout(PATIENCE, fetch).await;
            end.came(fetched.unwrap_or_else(|_| late()));
        }));
    }

    /// Fetches, or waits for who is at it. The value as it is then: where it failed, the one before.
    pub async fn fetched<F>(&self, follow: &Follow, fetch: F) -> Option<Arc<T>>
    where
        F: Future<Output = Result<T, String>> + Send + 'static,
    {
        let mut ended = self.0.ended.subscribe();
        self.begin(follow, fetch);
        self.end(&mut ended).await
    }

    /// The value, once nobody fetches it.
    pub async fn settled(&self) -> Option<Arc<T>> {
        let mut ended = self.0.ended.subscribe();
        self.end(&mut ended).await
    }

    async fn end(&self, ended: &mut watch::Receiver<u64>) -> Option<Arc<T>> {
        let runs = self.0.state.lock().runs;
        if runs {
            let _ends_by_itself = tokio::time::timeout(PATIENCE + SLACK, ended.changed()).await;
        }
        self.now()
    }
}

/// The end of a fetch, however it comes.
struct End<T>(Arc<Inner<T>>, Option<Result<T, String>>);

impl<T> End<T> {
    fn came(&mut self, outcome: Result<T, String>) {
        self.1 = Some(outcome);
    }
}

impl<T> Drop for End<T> {
    fn drop(&mut self) {
        let outcome = self.1.take();
        let outcome = outcome.unwrap_or_else(|| Err("it was given up".to_owned()));
        let mut state = self.0.state.lock();
        state.runs = false;
        match outcome {
            Ok(value) => {
                *self.0.value.write() = Some(Arc::new(value));
                (state.failures, state.not_before) = (0, None);
            }
            Err(why) => {
                tracing::warn!(%why, "{}", self.0.advice);
                let pause = PAUSE * 2u32.pow(state.failures.min(8));
                state.failures = state.failures.saturating_add(1);
                state.not_before = Some(Instant::now() + pause.min(LONGEST_PAUSE));
            }
        }
        drop(state);
        self.0.ended.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use futures_util::future::join_all;

    use super::*;

    fn follow() -> Follow {
        Arc::new(|work| {
            #[expect(clippy::disallowed_methods, reason = "the test is the server")]
            tokio::spawn(work);
            true
        })
    }

    #[tokio::test(start_paused = true)]
    async fn many_wait_for_one() {
        let (kept, count) = (Kept::new(""), Arc::new(AtomicUsize::new(0)));
        let follow = follow();
        let fetch = || {
            let count = count.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(count.fetch_add(1, SeqCst))
            }
        };
        let all = join_all((0..100).map(|_| kept.fetched(&follow, fetch()))).await;
        assert!(all.iter().all(|v| v.as_deref() == Some(&0)), "{all:?}");
        // Who asked first has gone before its end.
        let first = kept.fetched(&follow, fetch());
        let left = tokio::time::timeout(Duration::from_millis(1), first).await;
        assert!(left.is_err());
        assert_eq!(kept.fetched(&follow, fetch()).await.as_deref(), Some(&1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_tried_again_later_and_takes_nothing_away() {
        let (kept, follow) = (Kept::new(""), follow());
        assert_eq!(
            kept.fetched(&follow, async { Ok(1) }).await.as_deref(),
            Some(&1)
        );
        let bad = || std::future::ready(Err("no".to_owned()));
        assert_eq!(kept.fetched(&follow, bad()).await.as_deref(), Some(&1));
        // Too early for another attempt.
        assert_eq!(
            kept.fetched(&follow, async { Ok(2) }).await.as_deref(),
            Some(&1)
        );
        tokio::time::advance(PAUSE).await;
        assert_eq!(
            kept.fetched(&follow, async { Ok(2) }).await.as_deref(),
            Some(&2)
        );
        let start = Instant::now();
        let never = std::future::pending();
        assert_eq!(kept.fetched(&follow, never).await.as_deref(), Some(&2));
        assert!(start.elapsed() <= PATIENCE + SLACK);
    }

    #[tokio::test]
    async fn without_room_it_has_failed() {
        let kept = Kept::new("");
        let full: Follow = Arc::new(|_| false);
        assert_eq!(kept.fetched(&full, async { Ok(1) }).await, None);
    }
}
