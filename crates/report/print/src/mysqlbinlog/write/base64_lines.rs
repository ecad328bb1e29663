//! Base64 as in `BINLOG` statements: lines of 76 characters, each with its line feed.

use base64_simd::{AsOut, STANDARD};

const LINE_BYTES: usize = 57;
const LINE_CHARACTERS: usize = LINE_BYTES / 3 * 4;

/// Lines encoded together: enough to fill vectors, into memory that is in the cache.
const LINES: usize = 16;

/// Appends `bytes` in lines, each ended by a line feed.
pub(crate) fn push_base64_lines(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len().div_ceil(LINE_BYTES) * (LINE_CHARACTERS + 1));
    let (blocks, rest) = bytes.as_chunks::<{ LINES * LINE_BYTES }>();
    if !blocks.is_empty() {
        push_blocks(out, blocks);
    }
    let (lines, rest) = rest.as_chunks::<LINE_BYTES>();
    for line in lines {
        let mut text = [b'\n'; LINE_CHARACTERS + 1];
        let (characters, _) = text.split_at_mut(LINE_CHARACTERS);
        let _ = STANDARD.encode(line, characters.as_out());
        out.extend_from_slice(&text);
    }
    if !rest.is_empty() {
        STANDARD.encode_append(rest, out);
        out.push(b'\n');
    }
}

fn push_blocks(out: &mut Vec<u8>, blocks: &[[u8; LINES * LINE_BYTES]]) {
    let mut encoded = [0; LINES * LINE_CHARACTERS];
    for block in blocks {
        let _ = STANDARD.encode(block, encoded.as_mut_slice().as_out());
        for line in encoded.as_chunks::<LINE_CHARACTERS>().0 {
            let mut ended = [b'\n'; LINE_CHARACTERS + 1];
            if let Some(text) = ended.first_chunk_mut() {
                *text = *line;
            }
            out.extend_from_slice(&ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_server() {
        let bytes: Vec<u8> = (0..2000u32).map(|n| (n * 7 % 251) as u8).collect();
        for length in (0..400).chain([911, 912, 913, 1823, 1824, 1825, 2000]) {
            let mut ours = Vec::new();
            let mut theirs = Vec::new();
            push_base64_lines(&mut ours, &bytes[..length]);
            binlogz_binlog::base64::write_lines(&bytes[..length], &mut theirs);
            if length > 0 {
                theirs.push(b'\n');
            }
            assert_eq!(ours, theirs, "{length} bytes");
        }
    }
}
