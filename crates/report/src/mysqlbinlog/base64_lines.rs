//! Base64 as it stands in `BINLOG` statements: lines of 76 characters, each with its end. Two
//! characters at a time from a table, since this is most of what plain mysqlbinlog output is.

const LINE_BYTES: usize = 57;
const LINE_CHARACTERS: usize = LINE_BYTES / 3 * 4;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The two characters of 12 bits.
static PAIRS: [[u8; 2]; 1 << 12] = pairs();

#[allow(clippy::indexing_slicing, reason = "in a constant, where it can't panic later")]
const fn pairs() -> [[u8; 2]; 1 << 12] {
    let mut pairs = [[0; 2]; 1 << 12];
    let mut bits = 0;
    while bits < pairs.len() {
        pairs[bits] = [ALPHABET[bits >> 6], ALPHABET[bits & 63]];
        bits += 1;
    }
    pairs
}

/// Appends `bytes` in lines, each ended by a line feed.
pub(super) fn push_base64_lines(out: &mut Vec<u8>, bytes: &[u8]) {
    let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
    out.reserve(lines.len() * (LINE_CHARACTERS + 1) + rest.len() * 2 + 4);
    for line in lines {
        let mut text = [b'\n'; LINE_CHARACTERS + 1];
        let (groups, _) = line.as_chunks::<3>();
        let (quads, _) = text.as_chunks_mut::<4>();
        for (quad, group) in quads.iter_mut().zip(groups) {
            *quad = encode(*group);
        }
        out.extend_from_slice(&text);
    }
    if rest.is_empty() {
        return;
    }
    let (groups, rest) = rest.as_chunks::<3>();
    for group in groups {
        out.extend_from_slice(&encode(*group));
    }
    match *rest {
        [first] => {
            let [a, b, ..] = encode([first, 0, 0]);
            out.extend_from_slice(&[a, b, b'=', b'=']);
        }
        [first, second] => {
            let [a, b, c, _] = encode([first, second, 0]);
            out.extend_from_slice(&[a, b, c, b'=']);
        }
        _ => {}
    }
    out.push(b'\n');
}

#[inline]
fn encode([first, second, third]: [u8; 3]) -> [u8; 4] {
    let bits = usize::from(first) << 16 | usize::from(second) << 8 | usize::from(third);
    let pair = |bits: usize| PAIRS.get(bits & 0xfff).copied().unwrap_or_default();
    let ([a, b], [c, d]) = (pair(bits >> 12), pair(bits));
    [a, b, c, d]
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
