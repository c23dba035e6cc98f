//! How far a string goes on without anything special: the innermost loop of reading JSON.

/// A string is read in words of 8 bytes; one longer than so many words goes on in blocks of 32.
const WORDS: usize = 3;

/// Where the run of plain string bytes from `at` ends: at a quote, backslash, control byte or the end.
/// Short strings end in the first words; the blocks make long ones as fast as memory.
#[inline]
#[allow(
    clippy::needless_bitwise_bool,
    reason = "without branches a block compiles to vector code"
)]
pub(super) fn plain(bytes: &[u8], mut at: usize) -> usize {
    let end = |c: u8| (c < 0x20) | (c == b'"') | (c == b'\\');
    let mut words = 0;
    while let Some(word) = bytes[at..].first_chunk() {
        let ends = ends(u64::from_le_bytes(*word));
        if ends != 0 {
            return at + ends.trailing_zeros() as usize / 8;
        }
        at += 8;
        words += 1;
        if words == WORDS {
            // Long: on in blocks, and by words again in the last of them.
            while let Some(block) = bytes[at..].first_chunk::<32>()
                && !block.iter().fold(false, |any, c| any | end(*c))
            {
                at += 32;
            }
        }
    }
    bytes[at..]
        .iter()
        .position(|c| end(*c))
        .map_or(bytes.len(), |n| at + n)
}

/// The high bit of each byte that ends a plain run, exact up to the first: a borrow only reaches bytes after one that ends it.
#[inline]
fn ends(word: u64) -> u64 {
    const fn all(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    let below = |x: u64, limit: u8| x.wrapping_sub(all(limit)) & !x;
    let ends = below(word, 0x20) | below(word ^ all(b'"'), 1) | below(word ^ all(b'\\'), 1);
    ends & all(0x80)
}
