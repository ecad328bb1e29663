//! `--hexdump`: the bytes of an event as comments, 16 a line.

use binlogz_binlog::header::HEADER_SIZE;

const BYTES_PER_LINE: usize = 16;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends the dump of an event that begins at `position`.
pub(crate) fn push_hexdump(out: &mut Vec<u8>, event: &[u8], position: u64) {
    let (header, rest) = event.split_at_checked(HEADER_SIZE).unwrap_or((event, &[]));
    push_hexdump_header(out, header, position);
    push_hexdump_rest(out, rest, position + HEADER_SIZE as u64);
    out.extend_from_slice(b"# ");
}

/// Appends the lines of an event's header.
pub(crate) fn push_hexdump_header(out: &mut Vec<u8>, header: &[u8], position: u64) {
    out.extend_from_slice(
        b"\n# Position  Timestamp   Type   Source ID        Size      Source Pos    Flags \n",
    );
    push_position(out, position);
    for (index, &byte) in header.iter().enumerate() {
        if matches!(index, 4 | 5 | 9 | 13 | 17) {
            out.extend_from_slice(b"  ");
        }
        out.push(b' ');
        push_hex(out, byte);
    }
    out.push(b'\n');
}

/// Appends the lines of the bytes after the header, the first of which is at `position`.
pub(crate) fn push_hexdump_rest(out: &mut Vec<u8>, rest: &[u8], position: u64) {
    for (index, line) in rest.chunks(BYTES_PER_LINE).enumerate() {
        push_position(out, position + (index * BYTES_PER_LINE) as u64);
        out.push(b' ');
        let start = out.len();
        for (index, &byte) in line.iter().enumerate() {
            if index > 7 {
                out.push(b' ');
            }
            push_hex(out, byte);
            if index <= 7 {
                out.push(b' ');
            }
        }
        out.resize(start + 3 * BYTES_PER_LINE, b' ');
        out.extend_from_slice(b" |");
        out.extend(line.iter().map(|&byte| if byte.is_ascii_alphanumeric() { byte } else { b'.' }));
        out.extend_from_slice(b"|\n");
    }
}

fn push_position(out: &mut Vec<u8>, position: u64) {
    let digits = 8.max((u64::BITS - position.leading_zeros()).div_ceil(4));
    out.extend_from_slice(b"# ");
    for place in (0..digits).rev() {
        out.extend(DIGITS.get((position >> (4 * place) & 15) as usize));
    }
}

fn push_hex(out: &mut Vec<u8>, byte: u8) {
    out.extend(DIGITS.get(usize::from(byte >> 4)));
    out.extend(DIGITS.get(usize::from(byte & 15)));
}
