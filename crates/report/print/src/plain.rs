//! Finds how much of a text can be copied before a character that has to be escaped.

/// Bytes checked together: enough for the compiler to use vector instructions.
const BLOCK: usize = 32;
/// Bytes checked together in the rest of the text.
const SMALL_BLOCK: usize = 8;

/// How many bytes at the start are not special.
#[inline]
pub(crate) fn plain_length(text: &[u8], is_special: impl Fn(u8) -> bool + Copy) -> usize {
    let start = plain_blocks::<BLOCK>(text, is_special);
    let rest = text.get(start..).unwrap_or_default();
    let small = plain_blocks::<SMALL_BLOCK>(rest, is_special);
    let rest = rest.get(small..).unwrap_or_default();
    start + small + rest.iter().position(|&byte| is_special(byte)).unwrap_or(rest.len())
}

/// The bytes of the blocks at the start that have nothing special. Every byte of a block is checked, without stopping
/// early: that vectorizes well.
#[inline]
fn plain_blocks<const N: usize>(text: &[u8], is_special: impl Fn(u8) -> bool + Copy) -> usize {
    let (blocks, _) = text.as_chunks::<N>();
    let has_special = |block: &[u8; N]| block.iter().fold(false, |found, &byte| found | is_special(byte));
    blocks.iter().take_while(|block| !has_special(block)).count() * N
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_special_byte_is_found_at_every_place() {
        for length in 0..100 {
            let mut text = vec![b'x'; length];
            assert_eq!(plain_length(&text, |byte| byte == b'!'), length);
            for at in (0..length).rev() {
                text[at] = b'!';
                assert_eq!(plain_length(&text, |byte| byte == b'!'), at, "of {length}");
            }
        }
    }
}
