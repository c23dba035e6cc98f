//! When certificates end: read from their DER, told to whoever asks, and warned of when it is near.
//!
//! ```text
//!   Certificate ─ TBSCertificate ─ [0] version?, serial, algorithm, issuer, Validity ─ not before, not after, …
//! ```
//! Only what leads there is walked (RFC 5280 4.1): whether the certificate is any good is for those to say who use it.
use jiff::civil::DateTime;
use rustls::pki_types::CertificateDer;

/// So long before a certificate ends, somebody has to know.
const NEAR: i64 = 7 * DAY;
/// How often they are told.
const DAY: i64 = 24 * 60 * 60;

/// When the first certificate of a file ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The setting that names the file.
    pub setting: String,
    /// The last second that it holds, in Unix time.
    pub at: i64,
}

/// Remembers when somebody was told last.
#[derive(Debug, Default)]
pub(super) struct Told(Option<i64>);

impl Told {
    /// Those of which somebody has to be told now.
    pub(super) fn near<'a>(&mut self, all: &'a [Expiry], now: i64) -> Vec<&'a Expiry> {
        let near: Vec<_> = all.iter().filter(|one| one.at - now < NEAR).collect();
        if near.is_empty() {
            self.0 = None; // a later one is told at once
        } else if self.0.is_some_and(|told| now - told < DAY) {
            return vec![];
        } else {
            self.0 = Some(now);
        }
        near
    }
}

/// When the first of these ends; none of which that cannot be read counts.
pub(super) fn earliest(of: &[CertificateDer<'_>]) -> Option<i64> {
    of.iter().filter_map(|der| not_after(der)).min()
}

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// Until when a certificate holds, in Unix time.
fn not_after(der: &[u8]) -> Option<i64> {
    let certificate = &mut { der };
    let signed = &mut inside(certificate, SEQUENCE)?;
    let fields = &mut inside(signed, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        inside(fields, VERSION)?; // there is none in one of version 1
    }
    for passed in [INTEGER, SEQUENCE, SEQUENCE] {
        inside(fields, passed)?;
    }
    let validity = &mut inside(fields, SEQUENCE)?;
    element(validity)?;
    let (kind, text) = element(validity)?;
    time(kind, text)
}

/// What is in the next element, if it is of this kind.
fn inside<'a>(of: &mut &'a [u8], kind: u8) -> Option<&'a [u8]> {
    element(of)
        .filter(|(k, _)| *k == kind)
        .map(|(_, text)| text)
}

/// The next element, and what follows stays: its kind, and what is in it.
fn element<'a>(of: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&kind, rest) = of.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let bytes;
        (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if bytes.is_empty() || bytes.len() > 4 {
            return None; // of no known length, or longer than any certificate
        }
        length = bytes.iter().fold(0, |all, b| all << 8 | usize::from(*b));
    }
    let (text, rest) = rest.split_at_checked(length)?;
    *of = rest;
    Some((kind, text))
}

/// A time as certificates have it: to the second, and in UTC (RFC 5280 4.1.2.5).
fn time(kind: u8, text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |of: &[u8]| of.iter().fold(0, |all, d| all * 10 + i16::from(d - b'0'));
    let (year, rest) = match (kind, digits.len()) {
        (UTC_TIME, 12) => {
            let year = number(&digits[..2]);
            (if year < 50 { 2000 } else { 1900 } + year, &digits[2..])
        }
        (GENERALIZED_TIME, 14) => (number(&digits[..4]), &digits[4..]),
        _ => return None,
    };
    let mut parts = rest.chunks(2).map(|two| i8::try_from(number(two)).ok());
    let mut part = || parts.next().flatten();
    let (month, day) = (part()?, part()?);
    let at = DateTime::new(year, month, day, part()?, part()?, part()?, 0).ok()?;
    // Not by a timestamp: the last day there is, which stands for "never", is none in every zone.
    Some(
        at.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0))
            .as_secs(),
    )
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn until(year: i32, month: u8, day: u8) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(1999, 1, 1);
        params.not_after = date_time_ymd(year, month, day);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().into()
    }

    #[test]
    fn certificates_end_when_they_say() {
        for (year, month, day, at) in [
            (2001, 9, 9, 999_993_600),
            (2024, 2, 29, 1_709_164_800), // by UTCTime
            (2049, 12, 31, 2_524_521_600),
            (2050, 1, 1, 2_524_608_000), // by GeneralizedTime
            (9999, 12, 31, 253_402_214_400),
        ] {
            let der = until(year, month, day);
            assert_eq!(not_after(&der), Some(at), "{year}-{month}-{day}");
            let kind = if year < 2050 {
                UTC_TIME
            } else {
                GENERALIZED_TIME
            };
            let wanted = [kind, if year < 2050 { 13 } else { 15 }];
            assert!(der.windows(2).any(|two| two == wanted), "{year}");
        }
        let all = [until(2050, 1, 1), until(2024, 2, 29), until(2049, 12, 31)];
        assert_eq!(earliest(&all), Some(1_709_164_800));
        assert_eq!(earliest(&[]), None);
    }

    #[test]
    fn half_a_certificate_has_no_end() {
        let der = until(2024, 2, 29);
        for length in 0..der.len() {
            assert_eq!(not_after(&der[..length]), None, "{length}");
        }
        for at in 0..der.len() {
            for other in [0x00, 0x80, 0xff] {
                let mut der = der.to_vec();
                der[at] = other;
                let _whatever = not_after(&der);
            }
        }
    }

    #[test]
    fn times_are_whole() {
        for (kind, text, at) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "500101000000Z", Some(-631_152_000)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "7001010000Z", None),
            (UTC_TIME, "700101000000+0100", None),
            (UTC_TIME, "701301000000Z", None),
            (UTC_TIME, "70010100000 Z", None),
            (GENERALIZED_TIME, "20240101000000.5Z", None),
            (GENERALIZED_TIME, "240101000000Z", None),
            (SEQUENCE, "700101000000Z", None),
        ] {
            assert_eq!(time(kind, text.as_bytes()), at, "{text}");
        }
    }

    #[test]
    fn what_ends_soon_is_told_once_a_day() {
        let of = |setting: &str, at| Expiry {
            setting: setting.to_owned(),
            at,
        };
        let all = [of("a", 100 * DAY), of("b", 200 * DAY)];
        let mut told = Told::default();
        let mut told_at = |all: &[Expiry], now| {
            let near = told.near(all, now);
            near.iter()
                .map(|one| one.setting.clone())
                .collect::<Vec<_>>()
        };
        let none: [&str; 0] = [];
        assert_eq!(told_at(&all, 93 * DAY), none);
        assert_eq!(told_at(&all, 93 * DAY + 1), ["a"]);
        assert_eq!(told_at(&all, 94 * DAY), none);
        assert_eq!(told_at(&all, 94 * DAY + 1), ["a"]);
        // A new one, and the next time.
        assert_eq!(told_at(&[of("a", 102 * DAY)], 94 * DAY + 2), none);
        assert_eq!(told_at(&[of("a", 102 * DAY)], 95 * DAY + 1), ["a"]);
        assert_eq!(told_at(&all[1..], 95 * DAY + 2), none);
        assert_eq!(told_at(&all, 95 * DAY + 3), ["a"]);
        assert_eq!(told_at(&all, 300 * DAY), ["a", "b"]);
    }
}
