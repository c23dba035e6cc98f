//! Undoes a content coding. We ask for none, but some servers compress all the same. What comes out is
//! limited: a few kilobytes can unfold to gigabytes.

use std::io::{self, Read};

use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::HeaderValue;

use super::error::Error;

/// `data` without the coding that `encoding` names, at most `limit` bytes.
pub(super) fn decode(
    data: Bytes,
    encoding: Option<&HeaderValue>,
    limit: usize,
) -> Result<Bytes, Error> {
    let Some(encoding) = encoding else {
        return Ok(data);
    };
    let name = encoding.as_bytes().trim_ascii();
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if name.is_empty() || is("identity") || data.is_empty() {
        return Ok(data);
    }
    if is("gzip") || is("x-gzip") {
        return unfold(MultiGzDecoder::new(&*data), limit);
    }
    if is("deflate") {
        // Zlib by the book (RFC 9110 8.4.1.2), but some servers leave its wrapping off.
        return if zlib(&data) {
            unfold(ZlibDecoder::new(&*data), limit)
        } else {
            unfold(DeflateDecoder::new(&*data), limit)
        };
    }
    let name = String::from_utf8_lossy(&name[..name.len().min(40)]).into_owned();
    Err(Error::Undecodable(format!("unknown coding {name:?}")))
}

/// RFC 1950 2.2: method 8, and the first two bytes are a multiple of 31.
fn zlib(data: &[u8]) -> bool {
    match data {
        [first, second, ..] => {
            first & 0x0f == 8 && u16::from_be_bytes([*first, *second]).is_multiple_of(31)
        }
        [] | [_] => false,
    }
}

fn unfold(decoder: impl Read, limit: usize) -> Result<Bytes, Error> {
    let undecodable = |error: io::Error| Error::Undecodable(error.to_string());
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut plain = Vec::new();
    decoder
        .take(most)
        .read_to_end(&mut plain)
        .map_err(undecodable)?;
    if plain.len() > limit {
        return Err(Error::TooLarge("answer"));
    }
    Ok(plain.into())
}
