//! What a million counts take of this process's memory, by what the system says of it: a test of its own, since others
//! in the same process would take memory too.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;

use a2a_gateway::state::{
    Key,
    counters::{Ask, By, What, memory::Local},
};

const KEYS: u32 = 1_000_000;
/// An odd number whose multiples look like digests.
const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
const NOW: u64 = 1_700_000_000_000_000;

/// Bytes of this process in memory.
fn resident() -> usize {
    let said = fs::read_to_string("/proc/self/statm").unwrap();
    let pages = said.split(' ').nth(1).unwrap();
    pages.parse::<usize>().unwrap() * 4096
}

fn takes(what: What, most: usize) {
    let before = resident();
    let counts = Local::new(KEYS as usize, KEYS as usize);
    for n in 0..KEYS {
        let one = Ask {
            // Spread as digests are, which would take the most of the time.
            key: Key((u128::from(n + 1).wrapping_mul(SPREAD)).to_le_bytes()),
            rule: 0,
            stem: Key([0; 16]),
            by: By::known(n << 1), // a group each, which costs most
            chosen: true,
            what,
        };
        counts.take(&[one], NOW).unwrap();
    }
    assert_eq!(counts.held(), KEYS as usize);
    let each = resident().saturating_sub(before) / KEYS as usize;
    assert!(each <= most, "{what:?}: {each} bytes a key");
}

/// The bounds that `config/gateway.yaml` says.
#[test]
fn a_million_keys_take_no_more_than_the_settings_say() {
    let rate = What::Rate {
        interval: 1_000_000,
        tolerance: 0,
    };
    let (limit, cost) = (1, 1);
    let until = NOW + 1_000_000;
    takes(rate, 134);
    takes(What::Window { until, limit, cost }, 134);
    let part = 1_000_000;
    takes(What::Rolling { part, limit, cost }, 302);
}
