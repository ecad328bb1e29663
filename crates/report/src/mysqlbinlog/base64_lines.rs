//! Base64 as it stands in `BINLOG` statements: lines of 76 characters, each with its end.

use base64_simd::{AsOut, STANDARD};

const LINE_BYTES: usize = 57;
const LINE_CHARACTERS: usize = LINE_BYTES / 3 * 4;

/// Appends `bytes` in lines, each ended by a line feed.
pub(super) fn push_base64_lines(out: &mut Vec<u8>, bytes: &[u8]) {
    let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
    out.reserve(lines.len() * (LINE_CHARACTERS + 1) + LINE_CHARACTERS + 1);
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
