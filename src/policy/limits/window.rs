//! Windows of the calendar: an hour, a day, a month of a time zone. A day has 23 or 25 hours when clocks change, a month
//! ends with its last day.
use jiff::{Timestamp, ToSpan, Zoned, tz::TimeZone};
use parking_lot::Mutex;

use crate::{config::Per, state::counters::Micros};

const HOUR: i64 = 3_600_000_000;

/// Windows one after another. The one that runs is kept, since the calendar is dear.
#[derive(Debug)]
pub(super) struct Calendar {
    per: Per,
    zone: TimeZone,
    runs: Mutex<(Micros, Micros)>,
}

impl Calendar {
    pub(super) const fn new(per: Per, zone: TimeZone) -> Self {
        Self {
            per,
            zone,
            runs: Mutex::new((0, 0)),
        }
    }

    /// When the window that runs now ends.
    pub(super) fn until(&self, now: Micros) -> Micros {
        let mut runs = self.runs.lock();
        if !(runs.0..runs.1).contains(&now) {
            *runs = window(self.per, &self.zone, now).unwrap_or((now, Micros::MAX >> 12));
        }
        runs.1
    }

    /// How long the window that runs now is.
    pub(super) fn length(&self) -> Micros {
        let runs = self.runs.lock();
        runs.1 - runs.0
    }
}

/// The window that holds this time; `None` at the ends of the calendar.
fn window(per: Per, zone: &TimeZone, now: Micros) -> Option<(Micros, Micros)> {
    let now = Timestamp::from_microsecond(i64::try_from(now).ok()?).ok()?;
    let here = now.to_zoned(zone.clone());
    let (start, end) = match per {
        Per::Day => {
            let start = here.start_of_day().ok()?;
            (start.clone(), start.tomorrow().ok()?.start_of_day().ok()?)
        }
        Per::Month => {
            let first = |day: &Zoned| day.first_of_month().ok()?.start_of_day().ok();
            let start = first(&here)?;
            let middle = start.checked_add(32.days()).ok()?;
            (start, first(&middle)?)
        }
        Per::Hour | Per::Rolling(_) => return hour(&here),
    };
    Some((micros(&start)?, micros(&end)?))
}

/// An hour of the clock on the wall there, which need not begin with one of UTC. Where the clock is set within it by
/// less than an hour, it ends where the next one begins.
fn hour(here: &Zoned) -> Option<(Micros, Micros)> {
    let now = here.timestamp().as_microsecond();
    let shift = i64::from(here.offset().seconds()) * 1_000_000;
    let start = (now + shift).div_euclid(HOUR) * HOUR - shift;
    Some((start.try_into().ok()?, (start + HOUR).try_into().ok()?))
}

fn micros(at: &Zoned) -> Option<Micros> {
    at.timestamp().as_microsecond().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window at that time there: its beginning and its length in hours.
    fn at(per: Per, now: &str) -> (String, u64) {
        let now: Zoned = now.parse().unwrap();
        let zone = now.time_zone().clone();
        let (start, end) = window(per, &zone, micros(&now).unwrap()).unwrap();
        let start_at = Timestamp::from_microsecond(start.cast_signed()).unwrap();
        let hours = (end - start) / HOUR.cast_unsigned();
        (start_at.to_zoned(zone).datetime().to_string(), hours)
    }

    #[test]
    fn months_end_with_their_last_day() {
        for (now, start, days) in [
            ("2024-02-29T23:59:59[UTC]", "2024-02-01T00:00:00", 29),
            ("2026-02-01T00:00:00[UTC]", "2026-02-01T00:00:00", 28),
            ("2026-12-31T23:59:59[UTC]", "2026-12-01T00:00:00", 31),
            ("2026-04-30T12:00:00[Asia/Tokyo]", "2026-04-01T00:00:00", 30),
        ] {
            assert_eq!(at(Per::Month, now), (start.to_owned(), days * 24), "{now}");
        }
        // One that clocks change in is an hour shorter.
        let march = at(Per::Month, "2026-03-31T23:00:00[Europe/Berlin]");
        assert_eq!(march, ("2026-03-01T00:00:00".to_owned(), 31 * 24 - 1));
    }

    #[test]
    fn days_are_as_long_as_the_clocks_say() {
        for (now, start, hours) in [
            (
                "2026-03-29T01:59:00[Europe/Berlin]",
                "2026-03-29T00:00:00",
                23,
            ),
            (
                "2026-10-25T23:00:00[Europe/Berlin]",
                "2026-10-25T00:00:00",
                25,
            ),
            (
                "2026-10-26T00:00:00[Europe/Berlin]",
                "2026-10-26T00:00:00",
                24,
            ),
            // Midnight does not exist there on that day.
            (
                "2018-11-04T12:00:00[America/Sao_Paulo]",
                "2018-11-04T01:00:00",
                23,
            ),
        ] {
            assert_eq!(at(Per::Day, now), (start.to_owned(), hours), "{now}");
        }
    }

    /// A year and more, window after window: each begins where the one before it ended, at a midnight there, and is
    /// the same whenever one asks in it.
    #[test]
    fn windows_follow_each_other_without_a_gap_wherever_clocks_change() {
        for zone in [
            "UTC",
            "Europe/Berlin",
            "America/New_York",
            "America/Sao_Paulo",   // changed at midnight until 2019
            "Australia/Lord_Howe", // by half an hour
            "Asia/Kathmandu",
            "Pacific/Apia", // had no 30 December in 2011
        ] {
            let there = TimeZone::get(zone).unwrap();
            for (from, per, windows) in [
                ("2011-01-31T23:59:59.999999Z", Per::Month, 24),
                ("2011-01-31T12:00:00Z", Per::Day, 800),
                ("2018-01-31T12:00:00Z", Per::Day, 500),
                ("2018-10-01T00:00:00Z", Per::Hour, 24 * 220),
                ("2023-12-31T23:59:59Z", Per::Month, 15),
            ] {
                let at: Timestamp = from.parse().unwrap();
                let mut now = at.as_microsecond().cast_unsigned();
                let mut before = None;
                for _ in 0..windows {
                    let (start, end) = window(per, &there, now).unwrap();
                    assert!((start..end).contains(&now), "{zone} {from}");
                    // Clocks that are set by half an hour cut an hour of the wall short.
                    let cut = per == Per::Hour;
                    let follows = |b| b == start || cut && b > start;
                    assert!(before.is_none_or(follows), "{zone} {from}");
                    for inside in [now, now.midpoint(end), end - 1] {
                        assert_eq!(window(per, &there, inside), Some((start, end)), "{zone}");
                    }
                    let begins = Timestamp::from_microsecond(start.cast_signed()).unwrap();
                    let begins = begins.to_zoned(there.clone());
                    match per {
                        Per::Month => assert_eq!(begins.day(), 1, "{zone} {begins}"),
                        Per::Day => assert_eq!(begins, begins.start_of_day().unwrap()),
                        Per::Hour | Per::Rolling(_) => {}
                    }
                    (before, now) = (Some(end), end);
                }
            }
        }
        // From the 31st into a month that has none.
        for (now, next) in [("2026-01-31", 28), ("2024-01-31", 29), ("2026-03-31", 30)] {
            let last: Zoned = format!("{now}T23:59:59[Asia/Tokyo]").parse().unwrap();
            let zone = last.time_zone().clone();
            let (_, end) = window(Per::Month, &zone, micros(&last).unwrap()).unwrap();
            let (start, end) = window(Per::Month, &zone, end).unwrap();
            assert_eq!((end - start) / HOUR.cast_unsigned(), next * 24, "{now}");
        }
    }

    #[test]
    fn hours_are_those_of_the_wall() {
        let there = at(Per::Hour, "2026-05-01T10:29:59[Asia/Kolkata]");
        assert_eq!(there, ("2026-05-01T10:00:00".to_owned(), 1));
        // Both of the two that are called the same.
        for (now, start) in [
            ("2026-10-25T02:30:00+02:00[Europe/Berlin]", 0),
            ("2026-10-25T02:30:00+01:00[Europe/Berlin]", 1),
        ] {
            let now: Zoned = now.parse().unwrap();
            let zone = now.time_zone().clone();
            let (begins, _) = window(Per::Hour, &zone, micros(&now).unwrap()).unwrap();
            let midnight: Timestamp = "2026-10-25T00:00:00Z".parse().unwrap();
            let midnight = midnight.as_microsecond().cast_unsigned();
            assert_eq!(begins, midnight + start * HOUR.cast_unsigned());
        }
    }

    #[test]
    fn a_window_is_kept_until_it_ends() {
        let calendar = Calendar::new(Per::Hour, TimeZone::UTC);
        let hour = HOUR.cast_unsigned();
        assert_eq!(calendar.until(hour + 5), 2 * hour);
        assert_eq!(calendar.until(2 * hour - 1), 2 * hour);
        assert_eq!(calendar.until(2 * hour), 3 * hour);
        assert_eq!(calendar.until(5), hour); // the clock was set back
    }
}
