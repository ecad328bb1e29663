//! A server's three short answers: OK, error, end of rows.
//!
//! ```text
//! OK   00 (fe where it ends rows or a stream) · affected_rows LEI · last_insert_id LEI · status 2 ·
//!      warnings 2 · info, the rest
//! ERR  ff · code 2 · [23 '#' · sqlstate 5] · message, the rest
//! EOF  fe · warnings 2 · status 2; always below 9 bytes, which tells it from a row
//! ```
//!
//! An error sent instead of a greeting has no SQLSTATE.

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::PutFields;
use binlogz_binlog::{Error, Result};

/// First byte of an OK packet.
pub const OK: u8 = 0x00;
/// First byte of an EOF packet, and of an OK packet in its place.
pub const EOF: u8 = 0xfe;
/// First byte of an error.
pub const ERR: u8 = 0xff;

/// SERVER_MORE_RESULTS_EXISTS, a status flag: the answer of a further statement follows.
pub(crate) const MORE_RESULTS: u16 = 8;

/// Longer messages with the first byte of an EOF packet are something else.
const EOF_SIZE_MAX: usize = 8;

/// The command succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OkPacket<'a> {
    /// Rows that the statement changed.
    pub affected_rows: u64,
    /// The first generated key.
    pub last_insert_id: u64,
    /// Status flags of the session.
    pub status: u16,
    /// Number of warnings.
    pub warnings: u16,
    /// A message for people; with SESSION_TRACK also the session's changes, which are not parsed here.
    pub info: &'a [u8],
}

impl<'a> OkPacket<'a> {
    /// Reads the message, whatever its first byte is.
    pub fn decode(message: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, "OK packet");
        expect_first(&mut cursor, &[OK, EOF], "00 or fe")?;
        Ok(OkPacket {
            affected_rows: cursor.lei("affected rows")?,
            last_insert_id: cursor.lei("last insert id")?,
            status: cursor.u16("status")?,
            warnings: cursor.u16("warnings")?,
            info: cursor.rest(),
        })
    }

    /// Appends the message with the first byte [`OK`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(OK);
        out.put_lei(self.affected_rows);
        out.put_lei(self.last_insert_id);
        out.put_u16(self.status);
        out.put_u16(self.warnings);
        out.put(self.info);
    }
}

/// The command was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// The server's error number.
    pub code: u16,
    /// SQLSTATE; absent in an error sent instead of a greeting.
    pub sqlstate: Option<[u8; 5]>,
    /// The message for people.
    pub message: &'a [u8],
}

impl<'a> ErrPacket<'a> {
    /// Bytes before the fields that may be absent.
    pub(crate) const SIZE_MIN: usize = 3;

    /// Reads the message.
    pub fn decode(message: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, "error packet");
        expect_first(&mut cursor, &[ERR], "ff")?;
        let code = cursor.u16("code")?;
        let sqlstate = if cursor.peek().first() == Some(&b'#') {
            cursor.u8("sqlstate mark")?;
            Some(cursor.array("sqlstate")?)
        } else {
            None
        };
        Ok(ErrPacket { code, sqlstate, message: cursor.rest() })
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(ERR);
        out.put_u16(self.code);
        if let Some(sqlstate) = &self.sqlstate {
            out.put_u8(b'#');
            out.put(sqlstate);
        }
        out.put(self.message);
    }
}

/// The end of the rows or of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EofPacket {
    /// Number of warnings.
    pub warnings: u16,
    /// Status flags of the session.
    pub status: u16,
}

impl EofPacket {
    /// Whether a message is an EOF packet: its first byte alone can also begin a row.
    pub fn is(message: &[u8]) -> bool {
        message.first() == Some(&EOF) && message.len() <= EOF_SIZE_MAX
    }

    /// Reads the message.
    pub fn decode(message: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, "EOF packet");
        expect_first(&mut cursor, &[EOF], "fe")?;
        let packet = EofPacket { warnings: cursor.u16("warnings")?, status: cursor.u16("status")? };
        cursor.finish()?;
        Ok(packet)
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(EOF);
        out.put_u16(self.warnings);
        out.put_u16(self.status);
    }
}

fn expect_first(cursor: &mut Cursor<'_>, allowed: &[u8], expected: &'static str) -> Result<()> {
    let first = cursor.u8("first byte")?;
    if allowed.contains(&first) {
        return Ok(());
    }
    Err(Error::invalid(cursor.what(), "first byte", format!("{first:02x}"), expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_every_cut_is_an_error;

    #[test]
    fn ok_packets_round_trip() {
        let packet =
            OkPacket { affected_rows: 300, last_insert_id: 1, status: 2, warnings: 3, info: b"Rows matched" };
        let mut bytes = Vec::new();
        packet.encode(&mut bytes);
        assert_eq!(bytes, b"\0\xfc\x2c\x01\x01\x02\0\x03\0Rows matched");
        assert_eq!(OkPacket::decode(&bytes).unwrap(), packet);
        for length in 0..9 {
            assert!(OkPacket::decode(&bytes[..length]).is_err());
        }
        bytes[0] = EOF;
        assert_eq!(OkPacket::decode(&bytes).unwrap(), packet);
        assert!(OkPacket::decode(b"\x01\0\0\0\0\0\0").is_err());
    }

    #[test]
    fn errors_round_trip_with_and_without_sqlstate() {
        let packets: [(&[u8], ErrPacket<'_>); 2] = [
            (
                b"\xff\x15\x04#28000Access denied",
                ErrPacket { code: 1045, sqlstate: Some(*b"28000"), message: b"Access denied" },
            ),
            (
                b"\xff\x10\x04Too many connections",
                ErrPacket { code: 1040, sqlstate: None, message: b"Too many connections" },
            ),
        ];
        for (bytes, packet) in packets {
            assert_eq!(ErrPacket::decode(bytes).unwrap(), packet);
            let mut encoded = Vec::new();
            packet.encode(&mut encoded);
            assert_eq!(encoded, bytes);
        }
        assert!(ErrPacket::decode(b"\xff\x15\x04#2800").is_err());
    }

    #[test]
    fn eof_packets_round_trip_and_are_short() {
        let packet = EofPacket { warnings: 1, status: 2 };
        let mut bytes = Vec::new();
        packet.encode(&mut bytes);
        assert_eq!(bytes, b"\xfe\x01\0\x02\0");
        assert_every_cut_is_an_error(&bytes, |bytes| EofPacket::decode(bytes).map(drop));
        assert!(EofPacket::is(&bytes));
        assert!(!EofPacket::is(b"\xfe\0\0\0\0\0\0\0\x01a"), "a row with a text of 16 MiB");
        assert!(!EofPacket::is(b""));
    }
}
