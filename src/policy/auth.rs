//! Who asks, as far as the gateway itself can tell: by a key of its own, by an issuer's token or a certificate, or, where it leaves that
//! to the agent, by a credential that the agent has accepted. What proves who somebody is lies here; fetching and
//! reading again what that takes is the gateway's.
pub mod certificates;
pub mod keys;
pub mod passing;
pub mod rights;
pub mod sets;
pub mod tokens;

use http::{HeaderMap, HeaderName, header};

/// A longer credential is none, and is not looked at.
const LONGEST: usize = 8 * 1024;

/// What a field holds as a credential: behind `Bearer` in `Authorization`, else all of it.
pub fn shown<'f>(fields: &'f HeaderMap, name: &HeaderName) -> Option<&'f str> {
    let mut values = fields.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None; // of two, nobody can say which is meant
    };
    let value = value.to_str().ok()?;
    if *name != header::AUTHORIZATION {
        return Some(value.trim()).filter(|v| !v.is_empty());
    }
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The time by the wall's clock, in seconds since 1970.
pub fn wall() -> i64 {
    jiff::Timestamp::now().as_second()
}
