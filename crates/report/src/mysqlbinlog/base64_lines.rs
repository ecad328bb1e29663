//! Base64 as it stands in `BINLOG` statements: lines of 76 characters, each with its end.

use base64_simd::{AsOut, STANDARD};

const LINE_BYTES: usize = 57;
const LINE_CHARACTERS: usize = LINE_BYTES / 3 * 4;

/// Lines that are encoded together: in one go, so that vectors are filled, and into memory that is at hand.
const LINES: usize = 32;

/// Appends `bytes` in lines, each ended by a line feed.
pub(super) fn push_base64_lines(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len().div_ceil(LINE_BYTES) * (LINE_CHARACTERS + 1));
    let mut encoded = [0; LINES * LINE_CHARACTERS];
    for block in bytes.chunks(LINES * LINE_BYTES) {
        let encoded = STANDARD.encode(block, encoded.as_mut_slice().as_out());
        let (lines, rest) = encoded.as_chunks::<LINE_CHARACTERS>();
        for line in lines {
            let mut ended = [b'\n'; LINE_CHARACTERS + 1];
            if let Some(text) = ended.first_chunk_mut() {
                *text = *line;
            }
            out.extend_from_slice(&ended);
        }
        if !rest.is_empty() {
            out.extend_from_slice(rest);
            out.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_server() {
        let bytes: Vec<u8> = (0..400u32).map(|n| (n * 7 % 251) as u8).collect();
        for length in 0..bytes.len() {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            push_base64_lines(&mut ours, &bytes[..length]);
            binlogz_binlog::base64::write_lines(&bytes[..length], &mut theirs);
            if length > 0 {
                theirs.push(b'\n');
            }
            assert_eq!(ours, theirs, "{length} bytes");
        }
    }
}
