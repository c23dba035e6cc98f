//! How far a string goes on without anything special: the innermost loop of reading JSON.
use wide::u8x16;

/// Where the run of plain string bytes from `at` ends: at a quote, backslash, control byte or the end.
/// Most strings are short and end in the first block.
#[inline]
pub(super) fn plain(bytes: &[u8], at: usize) -> usize {
    match bytes[at..].first_chunk().map(ends) {
        Some(ends) if ends != 0 => at + ends.trailing_zeros() as usize,
        Some(_) => long(bytes, at + 16),
        None => long(bytes, at),
    }
}

#[inline(never)]
fn long(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = bytes[at..].first_chunk() {
        let ends = ends(block);
        if ends != 0 {
            return at + ends.trailing_zeros() as usize;
        }
        at += size_of_val(block);
    }
    // Fewer than a block before the end of the text: the last block again, without what is before `at`.
    let left = bytes.len() - at;
    if let Some(block) = bytes.last_chunk() {
        let ends = ends(block) >> (size_of_val(block) - left);
        return at + left.min(ends.trailing_zeros() as usize);
    }
    let end = |c: &u8| *c < b' ' || *c == b'"' || *c == b'\\';
    bytes[at..]
        .iter()
        .position(end)
        .map_or(bytes.len(), |n| at + n)
}

/// A bit for each byte that ends a plain run.
#[inline]
fn ends(block: &[u8; 16]) -> u32 {
    let (block, all) = (u8x16::new(*block), u8x16::splat);
    let control = block.min(all(b' ' - 1)).simd_eq(block);
    (control | block.simd_eq(all(b'"')) | block.simd_eq(all(b'\\'))).to_bitmask()
}
