//! Finds the end of a server's answer while its bytes pass through unread, for a client that is somebody else.
//!
//! ```text
//! COM_QUERY, COM_STMT_EXECUTE   OK or error · or column count, columns, EOF, rows, EOF or error. The EOF after the
//!                               columns is the end if a cursor was opened
//! COM_STMT_PREPARE              error · or 00 · statement 4 · columns 2 · parameters 2 · …, then the parameters' and the
//!                               columns' definitions, each with an EOF if there are any
//! COM_FIELD_LIST                error · or columns, EOF
//! COM_STMT_FETCH                rows, EOF or error
//! COM_STMT_CLOSE, COM_STMT_SEND_LONG_DATA   nothing
//! COM_SET_OPTION, COM_DEBUG     EOF or error
//! others                        OK or error
//! ```
//!
//! This holds without DEPRECATE_EOF, which the relay neither offers nor asks for.

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::{Error, Result};

use crate::command;
use crate::packet::PACKET_PAYLOAD_MAX;
use crate::response::{EOF, ERR, EofPacket, ErrPacket, MORE_RESULTS, OK, OkPacket};

const WHAT: &str = "answer";
const HEADER_SIZE: usize = 4;
/// Bytes of a message that are looked at: an OK packet up to its flags takes 23.
const HEAD_SIZE: usize = 32;
/// The byte in place of a column count that asks the client for a file.
const LOCAL_INFILE: u8 = 0xfb;
/// SERVER_STATUS_CURSOR_EXISTS: rows are fetched later.
const CURSOR_EXISTS: u16 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedPacket {
    First,
    Columns(u64),
    Rows,
    Prepared,
    /// So many lists of definitions follow, each with its EOF.
    Definitions(u8),
    Nothing,
}

/// A server's answer that passes through.
#[derive(Debug)]
pub struct AnswerPassage {
    expected: ExpectedPacket,
    /// The current packet: bytes of its header, and how many of the rest are still to come.
    header: Vec<u8>,
    left: usize,
    packet_size: usize,
    /// The beginning of the current message, and its size so far.
    head: Vec<u8>,
    size: usize,
    status: Option<u16>,
    refused: bool,
}

impl AnswerPassage {
    /// The answer to a command, given by its first byte.
    pub fn of(code: u8) -> Self {
        let expected = match code {
            command::STATEMENT_CLOSE | command::STATEMENT_LONG_DATA => ExpectedPacket::Nothing,
            command::PREPARE => ExpectedPacket::Prepared,
            command::FIELD_LIST => ExpectedPacket::Definitions(1),
            command::STATEMENT_FETCH => ExpectedPacket::Rows,
            _ => ExpectedPacket::First,
        };
        AnswerPassage {
            expected,
            header: Vec::with_capacity(HEADER_SIZE),
            left: 0,
            packet_size: 0,
            head: Vec::with_capacity(HEAD_SIZE),
            size: 0,
            status: None,
            refused: false,
        }
    }

    /// Whether all of it has passed.
    pub fn is_over(&self) -> bool {
        self.expected == ExpectedPacket::Nothing
    }

    /// The last status flags in it; `None` if there were none.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Whether it is, or ends with, an error.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Looks at the next bytes; returns how many of them belong to the answer.
    pub fn take(&mut self, input: &[u8]) -> Result<usize> {
        let mut rest = input;
        while !rest.is_empty() && !self.is_over() {
            if self.header.len() < HEADER_SIZE {
                let (piece, behind) = split(rest, HEADER_SIZE - self.header.len());
                self.header.extend_from_slice(piece);
                rest = behind;
                let [a, b, c, _] = self.header.as_slice() else { continue };
                self.packet_size = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
                self.left = self.packet_size;
            } else {
                let (piece, behind) = split(rest, self.left);
                let (shown, _) = split(piece, HEAD_SIZE - self.head.len());
                self.head.extend_from_slice(shown);
                self.left -= piece.len();
                self.size += piece.len();
                rest = behind;
            }
            if self.header.len() == HEADER_SIZE && self.left == 0 {
                self.header.clear();
                // A packet of the largest size is continued by the next.
                if self.packet_size < PACKET_PAYLOAD_MAX {
                    let head = std::mem::take(&mut self.head);
                    let size = std::mem::take(&mut self.size);
                    self.expected = self.message(&head, size)?;
                }
            }
        }
        Ok(input.len() - rest.len())
    }

    /// Looks at a message; returns which message comes next.
    fn message(&mut self, head: &[u8], size: usize) -> Result<ExpectedPacket> {
        let first = *head.first().ok_or_else(|| Error::invalid(WHAT, "size", 0, "at least one byte"))?;
        if first == ERR && self.expected_may_be_error(size) {
            self.refused = true;
            return Ok(ExpectedPacket::Nothing);
        }
        let is_eof = first == EOF && EofPacket::is(head) && size == head.len();
        Ok(match self.expected {
            ExpectedPacket::First => match first {
                OK => {
                    let ok = OkPacket::decode(head)?;
                    self.after(ok.status)
                }
                // COM_SET_OPTION and COM_DEBUG are answered so.
                EOF if is_eof => self.after(EofPacket::decode(head)?.status),
                LOCAL_INFILE => {
                    return Err(Error::invalid(WHAT, "first byte", "fb: a wish for a local file", "rows"));
                }
                _ => ExpectedPacket::Columns(Cursor::new(head, WHAT).lei("column count")?),
            },
            ExpectedPacket::Columns(0) if is_eof => {
                let status = EofPacket::decode(head)?.status;
                match status & CURSOR_EXISTS {
                    0 => ExpectedPacket::Rows,
                    _ => self.after(status),
                }
            }
            ExpectedPacket::Columns(0) => {
                return Err(Error::invalid(WHAT, "first byte", first, "the end of the columns"));
            }
            ExpectedPacket::Columns(left) => ExpectedPacket::Columns(left - 1),
            ExpectedPacket::Rows if is_eof => self.after(EofPacket::decode(head)?.status),
            ExpectedPacket::Rows => ExpectedPacket::Rows,
            ExpectedPacket::Prepared => {
                let mut cursor = Cursor::new(head, "prepared statement");
                cursor.u8("first byte")?;
                cursor.u32("statement")?;
                let columns = cursor.u16("columns")?;
                let parameters = cursor.u16("parameters")?;
                match u8::from(columns > 0) + u8::from(parameters > 0) {
                    0 => ExpectedPacket::Nothing,
                    lists => ExpectedPacket::Definitions(lists),
                }
            }
            ExpectedPacket::Definitions(lists) if is_eof => {
                self.status = Some(EofPacket::decode(head)?.status);
                if lists > 1 { ExpectedPacket::Definitions(lists - 1) } else { ExpectedPacket::Nothing }
            }
            ExpectedPacket::Definitions(lists) => ExpectedPacket::Definitions(lists),
            ExpectedPacket::Nothing => ExpectedPacket::Nothing,
        })
    }

    /// A column count, a column and a row never begin with ff.
    fn expected_may_be_error(&self, size: usize) -> bool {
        !self.is_over() && size >= ErrPacket::SIZE_MIN
    }

    /// The packets expected after an OK or EOF that ends an answer.
    fn after(&mut self, status: u16) -> ExpectedPacket {
        self.status = Some(status);
        if status & MORE_RESULTS != 0 { ExpectedPacket::First } else { ExpectedPacket::Nothing }
    }
}

/// The first `count` bytes, or all if there are fewer, and the rest.
fn split(bytes: &[u8], count: usize) -> (&[u8], &[u8]) {
    bytes.split_at_checked(count).unwrap_or((bytes, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketWriter;

    const EOF_MESSAGE: &[u8] = b"\xfe\0\0\x02\0";
    const IN_TRANSACTION: &[u8] = b"\xfe\0\0\x03\0";

    /// Passes an answer in pieces of every size, followed by a byte that belongs to no answer.
    fn passes(code: u8, messages: &[&[u8]]) -> AnswerPassage {
        let mut writer = PacketWriter::default();
        writer.set_sequence(1);
        messages.iter().for_each(|message| writer.message(|out| out.extend_from_slice(message)));
        let mut bytes = writer.pending().to_vec();
        let size = bytes.len();
        bytes.push(0x77);
        let mut last = None;
        for step in 1..=bytes.len() {
            let mut passage = AnswerPassage::of(code);
            let mut passed = 0;
            for piece in bytes.chunks(step) {
                assert!(!passage.is_over() || passed == size);
                let taken = passage.take(piece).unwrap();
                passed += taken;
                if taken < piece.len() {
                    break;
                }
            }
            assert!(passage.is_over() && passed == size, "{passage:?} after {passed} of {size}");
            last = Some(passage);
        }
        last.unwrap()
    }

    #[test]
    fn answers_end_where_they_end() {
        let ok: &[u8] = b"\0\xfc\x01\x01\xfd\x01\x01\x01\x03\0\0\0and a text";
        assert_eq!(passes(command::QUERY, &[ok]).status(), Some(3));
        let more: &[u8] = b"\0\0\0\x0a\0\0\0";
        let error: &[u8] = b"\xff\x76\x04#42000denied";
        assert!(passes(command::QUERY, &[more, error]).is_refused());
        let rows: &[&[u8]] = &[
            b"\x02",
            b"\x03def1",
            b"\x03def2",
            EOF_MESSAGE,
            b"\xfb\x011",
            b"\0\x02\xfe\xfe",
            IN_TRANSACTION,
        ];
        assert_eq!(passes(command::QUERY, rows).status(), Some(3));
        assert!(!passes(command::STATEMENT_EXECUTE, rows).is_refused());
        assert!(passes(command::QUERY, &[b"\x01", b"\x03def", EOF_MESSAGE, b"\x011", error]).is_refused());
        // A row of eight bytes or more that begins as an EOF packet does.
        let long: &[u8] = b"\xfe\x01\0\0\0\0\0\0\0a";
        passes(command::QUERY, &[b"\x01", b"\x03def", EOF_MESSAGE, long, EOF_MESSAGE]);
        passes(command::STATEMENT_FETCH, &[b"\0\0\x01", EOF_MESSAGE]);
        let with_cursor: &[u8] = b"\xfe\0\0\x42\0";
        assert_eq!(
            passes(command::STATEMENT_EXECUTE, &[b"\x01", b"\x03def", with_cursor]).status(),
            Some(0x42)
        );
        let prepared = |counts: &[u8]| [b"\0\x01\0\0\0", counts, b"\0\0\0"].concat();
        passes(command::PREPARE, &[&prepared(b"\0\0\0\0")]);
        passes(command::PREPARE, &[&prepared(b"\x01\0\0\0"), b"\x03def", EOF_MESSAGE]);
        let both = prepared(b"\x01\0\x02\0");
        passes(command::PREPARE, &[&both, b"\x03def", b"\x03def", EOF_MESSAGE, b"\x03def", EOF_MESSAGE]);
        assert!(passes(command::PREPARE, &[error]).is_refused());
        passes(command::FIELD_LIST, &[b"\x03def", EOF_MESSAGE]);
        passes(command::USE_DATABASE, &[b"\0\0\0\x02\0\0\0"]);
        assert!(AnswerPassage::of(command::STATEMENT_CLOSE).is_over());
    }

    #[test]
    fn a_row_of_more_than_one_packet_is_one_row() {
        let large = vec![0xfe; PACKET_PAYLOAD_MAX + 5];
        let mut writer = PacketWriter::default();
        for message in [&b"\x01"[..], b"\x03def", EOF_MESSAGE, &large, EOF_MESSAGE] {
            writer.message(|out| out.extend_from_slice(message));
        }
        let mut passage = AnswerPassage::of(command::QUERY);
        for piece in writer.pending().chunks(1 << 20) {
            assert!(!passage.is_over());
            assert_eq!(passage.take(piece).unwrap(), piece.len());
        }
        assert!(passage.is_over());
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for bad in [&b"\0\0\0\x01"[..], b"\x02\0\0\x01\xfb/", b"\x01\0\0\x01\0", b"\x01\0\0\x01\xfe"] {
            assert!(AnswerPassage::of(command::QUERY).take(bad).is_err(), "{bad:?}");
        }
    }
}
