//! A guard for each peer address, before anything is known of a call. An address of IPv6 is its /64, which one customer
//! has whole.
use std::{
    net::{IpAddr, Ipv6Addr},
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter, clock::Clock as _};

use crate::{
    a2a::{Fault, Kind},
    config::PerPeer,
};

/// Addresses that are told apart. Beyond, whole networks are.
const APART: usize = 100_000;

/// The guard, over all workers.
#[derive(Clone)]
pub struct Peers(Option<Arc<Inner>>);

struct Inner {
    limiter: DefaultKeyedRateLimiter<IpAddr>,
    full: AtomicBool,
}

impl Peers {
    /// None, where no rate is set.
    pub fn new(settings: &PerPeer) -> Self {
        let rate = NonZero::new(settings.rate);
        Self(rate.map(|rate| {
            let burst = NonZero::new(settings.burst).unwrap_or(rate);
            Arc::new(Inner {
                limiter: RateLimiter::keyed(Quota::per_second(rate).allow_burst(burst)),
                full: AtomicBool::new(false),
            })
        }))
    }

    /// Whether this address may call now.
    pub fn admit(&self, from: IpAddr) -> Result<(), Fault> {
        let Some(inner) = &self.0 else {
            return Ok(());
        };
        let key = network(from, inner.full.load(Relaxed));
        inner.limiter.check_key(&key).map_err(|until| {
            let wait = until.wait_time_from(governor::clock::DefaultClock::default().now());
            let mut fault = Fault::new(Kind::RateLimited, "too many calls from this address");
            let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX);
            fault.retry_after = Some(seconds.saturating_add(1));
            fault
        })
    }

    /// Once a second: forgets who has been quiet.
    pub fn tick(&self) {
        if let Some(inner) = &self.0 {
            inner.limiter.retain_recent();
            inner.limiter.shrink_to_fit();
            inner.full.store(inner.limiter.len() >= APART, Relaxed);
        }
    }
}

/// What stands for an address: itself or its /64, and where there are too many its /16 or /32.
fn network(from: IpAddr, coarse: bool) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V4(v4) if coarse => {
            let [a, b, ..] = v4.octets();
            IpAddr::from([a, b, 0, 0])
        }
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => {
            let keep = if coarse { 96 } else { 64 };
            Ipv6Addr::from(v6.to_bits() >> keep << keep).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_burst_and_another_one_its_own() {
        let peers = Peers::new(&PerPeer { rate: 1, burst: 3 });
        let admitted = |from: &str| peers.admit(from.parse().unwrap()).is_ok();
        for _ in 0..3 {
            assert!(admitted("192.0.2.1"));
        }
        let refused = peers
            .admit("::ffff:192.0.2.1".parse().unwrap())
            .unwrap_err();
        assert_eq!(refused.kind, Kind::RateLimited);
        assert!(refused.retry_after.unwrap() >= 1);
        assert!(admitted("192.0.2.2"));
        for last in 1..=3 {
            assert!(admitted(&format!("2001:db8::{last}")));
        }
        assert!(!admitted("2001:db8::4"));
        assert!(admitted("2001:db8:0:1::4"));
        assert!(
            Peers::new(&PerPeer::default())
                .admit([192, 0, 2, 1].into())
                .is_ok()
        );
    }

    #[test]
    fn too_many_addresses_are_networks() {
        let is = |from: &str, coarse, net: &str| {
            assert_eq!(network(from.parse().unwrap(), coarse).to_string(), net);
        };
        is("192.0.2.1", true, "192.0.0.0");
        is("2001:db8:1:2:3::4", false, "2001:db8:1:2::");
        is("2001:db8:1:2:3::4", true, "2001:db8::");
    }
}
