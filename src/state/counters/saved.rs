//! What of a count outlives the process, as bytes: its kind, who chose it, and its numbers.
use super::{By, Micros, Ring, ring::KEPT};

/// A count, as it is saved. What is held at once ends with the process.
#[derive(Clone, Debug)]
pub(super) enum Saved {
    Rate { rest: Micros },
    Window { until: Micros, used: u64 },
    Rolling { part: Micros, ring: Ring },
}

/// The kind, four bytes of who chose it, and the most numbers that follow.
const LONGEST: usize = 1 + 4 + 8 * (2 + KEPT);

impl Saved {
    pub(super) fn write(&self, by: By) -> Vec<u8> {
        let mut out = Vec::with_capacity(LONGEST);
        let mut put = |kind: u8, numbers: &[u64]| {
            out.push(kind);
            out.extend_from_slice(&by.0.to_le_bytes());
            for number in numbers {
                out.extend_from_slice(&number.to_le_bytes());
            }
        };
        match self {
            Self::Rate { rest } => put(0, &[*rest]),
            Self::Window { until, used } => put(1, &[*until, *used]),
            Self::Rolling { part, ring } => {
                let (newest, used) = ring.parts();
                let mut numbers = vec![*part, newest];
                numbers.extend_from_slice(used);
                put(2, &numbers);
            }
        }
        out
    }

    /// `None` if it is not what `write` writes.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, By)> {
        let (kind, rest) = bytes.split_first()?;
        let (by, rest) = rest.split_first_chunk::<4>()?;
        let (numbers, odd) = rest.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|n| u64::from_le_bytes(*n)).collect();
        let saved = match (kind, numbers.as_slice()) {
            (0, [rest]) => Self::Rate { rest: *rest },
            (1, [until, used]) => Self::Window {
                until: *until,
                used: *used,
            },
            (2, [part, newest, used @ ..]) if *part > 0 => Self::Rolling {
                part: *part,
                ring: Ring::of(*newest, used.try_into().ok()?),
            },
            _ => return None,
        };
        odd.is_empty()
            .then_some((saved, By(u32::from_le_bytes(*by))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut ring = Ring::default();
        ring.turn(100, 3);
        ring.add(7);
        for saved in [
            Saved::Rate { rest: 5 },
            Saved::Window {
                until: u64::MAX,
                used: 9,
            },
            Saved::Rolling { part: 3, ring },
        ] {
            let bytes = saved.write(By(77));
            let (read, by) = Saved::read(&bytes).unwrap();
            assert_eq!((read.write(By(77)), by), (bytes.clone(), By(77)));
            for cut in 0..bytes.len() {
                assert!(Saved::read(&bytes[..cut]).is_none(), "{saved:?} {cut}");
            }
        }
    }
}
