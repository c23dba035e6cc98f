//! Bare messages, kept for callers who ask again: there is no task to ask the agent for.
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use http::HeaderMap;
use tokio::time::Instant;

use super::Said;
use crate::state::Key;

/// The longest that is kept.
const LONGEST: usize = 64 * 1024;
/// All that is kept; beyond, the oldest goes.
const ROOM: usize = 16 * 1024 * 1024;
/// What one costs besides its text.
const EACH: usize = 256;

#[derive(Default)]
pub(super) struct Small {
    answers: HashMap<Key, (Arc<Said>, Instant)>,
    /// In order of age. What was put twice is there twice.
    order: VecDeque<(Key, Instant, usize)>,
    bytes: usize,
}

impl Small {
    pub(super) fn put(&mut self, key: Key, said: &Said, until: Instant) {
        if said.text.len() > LONGEST {
            return;
        }
        let cost = said.text.len() + EACH;
        let kept = Said {
            fields: HeaderMap::new(),
            // A copy: its text may be a piece of something large.
            text: Bytes::copy_from_slice(&said.text),
        };
        self.answers.insert(key, (Arc::new(kept), until));
        self.order.push_back((key, until, cost));
        self.bytes += cost;
        while self.bytes > ROOM {
            self.pop();
        }
    }

    pub(super) fn get(&self, key: Key) -> Option<Arc<Said>> {
        let (said, until) = self.answers.get(&key)?;
        (*until > Instant::now()).then(|| said.clone())
    }

    /// Forgets those that nobody may ask for any more.
    pub(super) fn tick(&mut self) {
        let now = Instant::now();
        while self
            .order
            .front()
            .is_some_and(|(_, until, _)| *until <= now)
        {
            self.pop();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.answers.len()
    }

    fn pop(&mut self) {
        let Some((key, until, cost)) = self.order.pop_front() else {
            return;
        };
        self.bytes -= cost;
        if self
            .answers
            .get(&key)
            .is_some_and(|(_, kept)| *kept == until)
        {
            self.answers.remove(&key);
        }
    }
}
