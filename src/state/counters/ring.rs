//! A window that rolls, in parts: what was used in the part that runs and in the sixteen before it. Together they cover
//! more than the window wherever it begins, so that no time of its length ever holds more than its limit; what is used
//! comes free up to a sixteenth late.
use super::Micros;

/// The parts of a window.
pub const PARTS: u64 = 16;
/// The one that runs, and those before it.
pub(super) const KEPT: usize = 17;

/// What was used, by part.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    /// The number of the newest part.
    newest: u64,
    used: [u64; KEPT],
}

impl Ring {
    /// As it was saved.
    pub(super) const fn of(newest: u64, used: [u64; KEPT]) -> Self {
        Self { newest, used }
    }

    /// What is to be saved of it.
    pub(super) const fn parts(&self) -> (u64, &[u64; KEPT]) {
        (self.newest, &self.used)
    }

    fn place(part: u64) -> usize {
        usize::try_from(part % KEPT as u64).unwrap_or_default()
    }

    /// Lets time pass.
    pub fn turn(&mut self, now: Micros, part: Micros) {
        let newest = now / part;
        if newest <= self.newest {
            return;
        }
        let passed = newest - self.newest;
        if passed >= KEPT as u64 {
            self.used = [0; KEPT];
        } else {
            for gone in self.newest + 1..=newest {
                self.used[Self::place(gone)] = 0;
            }
        }
        self.newest = newest;
    }

    /// All that is used.
    pub fn used(&self) -> u64 {
        self.used
            .iter()
            .fold(0, |sum, one| sum.saturating_add(*one))
    }

    /// Uses more.
    pub fn add(&mut self, cost: u64) {
        let place = &mut self.used[Self::place(self.newest)];
        *place = place.saturating_add(cost);
    }

    /// Gives back what was used then.
    pub fn give_back(&mut self, at: Micros, part: Micros, cost: u64) {
        let then = at / part;
        if then <= self.newest && self.newest - then < KEPT as u64 {
            let place = &mut self.used[Self::place(then)];
            *place = place.saturating_sub(cost);
        }
    }

    /// How long until so much fits again.
    pub fn wait(&self, now: Micros, part: Micros, limit: u64, cost: u64) -> Micros {
        let mut used = self.used();
        let oldest = self.newest.saturating_sub(KEPT as u64 - 1);
        for gone in oldest..=self.newest {
            used -= self.used[Self::place(gone)];
            if used.saturating_add(cost) <= limit {
                let free = (gone + KEPT as u64).saturating_mul(part);
                return free.saturating_sub(now);
            }
        }
        part.saturating_mul(KEPT as u64) // it never fits
    }
}
