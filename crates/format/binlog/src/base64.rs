//! Base64 in lines of 76 characters, as the server writes it: in `BINLOG` statements and in JSON text.

/// Bytes of a whole line.
const LINE_BYTES: usize = 57;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends `bytes` in base64; a line feed between lines, none after the last.
pub fn write_lines(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len().div_ceil(3) * 4 + bytes.len() / LINE_BYTES);
    for (index, line) in bytes.chunks(LINE_BYTES).enumerate() {
        if index > 0 {
            out.push(b'\n');
        }
        let (groups, rest) = line.as_chunks::<3>();
        groups.iter().for_each(|&group| out.extend_from_slice(&encode(group)));
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
    }
}

fn encode([first, second, third]: [u8; 3]) -> [u8; 4] {
    let bits = u32::from(first) << 16 | u32::from(second) << 8 | u32::from(third);
    [18, 12, 6, 0].map(|shift| ALPHABET.get((bits >> shift & 63) as usize).copied().unwrap_or(b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        write_lines(bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn padding() {
        assert_eq!(lines(b""), "");
        assert_eq!(lines(b"f"), "Zg==");
        assert_eq!(lines(b"fo"), "Zm8=");
        assert_eq!(lines(b"foo"), "Zm9v");
        assert_eq!(lines(b"\xff\xef\xfe\x00"), "/+/+AA==");
    }

    #[test]
    fn lines_end_after_76_characters_if_more_follow() {
        assert_eq!(lines(&[0; 57]), "A".repeat(76));
        assert_eq!(lines(&[0; 58]), format!("{}\nAA==", "A".repeat(76)));
        assert_eq!(lines(&[0; 115]).lines().map(str::len).collect::<Vec<_>>(), [76, 76, 4]);
    }
}
