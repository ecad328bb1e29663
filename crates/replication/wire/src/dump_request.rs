//! How a client asks for a binary log.
//!
//! ```text
//! by position (12)           by GTID set (1e)
//! size field                 size field
//!    1 command                  1 command
//!    4 position                 2 flags
//!    2 flags                    4 server_id
//!    4 server_id                4 name_size
//!    + name, the rest           + name
//!                               8 position
//!                               4 gtid_set_size
//!                               + gtid_set   what the client has; see binlogz_binlog::gtid
//! ```
//!
//! An empty name means the first file. To the server a name ends at its first NUL, and we do the same: MySQL
//! 5.6 sends as many NULs as the file name it knows is long, and some clients send a NUL after the name. By
//! GTID set, the server starts with the file that holds the first GTID the client lacks, unless a name is
//! given. (Facts of MySQL 9.7.4's `rpl_source.cc`.)

use std::fmt;
use std::ops::BitOr;

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::gtid::{GtidSet, GtidSetFormat};
use binlogz_binlog::put::PutFields;
use binlogz_binlog::{Error, Result};

const WHAT: &str = "dump request";

/// COM_BINLOG_DUMP.
pub(crate) const DUMP_BY_POSITION: u8 = 0x12;
/// COM_BINLOG_DUMP_GTID.
pub(crate) const DUMP_BY_GTID_SET: u8 = 0x1e;

/// Flags of a dump request. Unknown bits are preserved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DumpFlags(pub u16);

impl DumpFlags {
    /// Send an EOF packet at the end of the log instead of waiting for more.
    pub const NON_BLOCK: Self = DumpFlags(1);
    /// Of MariaDB: send the texts of statements, too, which stand before their rows. Without it the stream lacks events of the file.
    pub const ANNOTATE_ROWS: Self = DumpFlags(2);
    /// Of MySQL: send heartbeats of version 2, which can hold positions above 4 GiB. Since 8.0.28.
    pub const HEARTBEAT_V2: Self = DumpFlags(2);
    /// The GTID set was written without its tags, for a source that does not know them. Since 8.3.
    pub const SKIP_TAGGED_GTIDS: Self = DumpFlags(4);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for DumpFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        DumpFlags(self.0 | other.0)
    }
}

impl fmt::Debug for DumpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// Which part of the binary log a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DumpRequest {
    /// The log from a position on: COM_BINLOG_DUMP.
    ByPosition {
        /// Flags of the request.
        flags: DumpFlags,
        /// The client's own id; with 0 the server does not wait at the end of the log.
        server_id: u32,
        /// The file to begin with, without directory; empty means the first.
        name: Vec<u8>,
        /// Offset in that file, at least 4: where an event begins.
        position: u32,
    },
    /// Everything the client lacks: COM_BINLOG_DUMP_GTID.
    ByGtidSet {
        /// Flags of the request.
        flags: DumpFlags,
        /// The client's own id; with 0 the server does not wait at the end of the log.
        server_id: u32,
        /// The file to begin with; empty leaves it to the server.
        name: Vec<u8>,
        /// Offset in that file; 4 unless a name is given.
        position: u64,
        /// The GTIDs the client has.
        gtid_set: GtidSet,
        /// How the set is written.
        format: GtidSetFormat,
    },
}

impl DumpRequest {
    /// Whether the server ends the stream at the end of the log.
    pub fn is_non_blocking(&self) -> bool {
        let (DumpRequest::ByPosition { flags, server_id, .. }
        | DumpRequest::ByGtidSet { flags, server_id, .. }) = self;
        flags.contains(DumpFlags::NON_BLOCK) || *server_id == 0
    }

    /// Reads the message.
    pub fn decode(message: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, WHAT);
        match cursor.u8("command")? {
            DUMP_BY_POSITION => Ok(DumpRequest::ByPosition {
                position: cursor.u32("position")?,
                flags: DumpFlags(cursor.u16("flags")?),
                server_id: cursor.u32("server id")?,
                name: up_to_nul(cursor.rest()).to_vec(),
            }),
            DUMP_BY_GTID_SET => {
                let flags = DumpFlags(cursor.u16("flags")?);
                let server_id = cursor.u32("server id")?;
                let name_size = cursor.u32("name size")?;
                let name = up_to_nul(cursor.bytes_u64(u64::from(name_size), "name")?).to_vec();
                let position = cursor.u64("position")?;
                let gtid_set_size = cursor.u32("GTID set size")?;
                let gtid_set = cursor.bytes_u64(u64::from(gtid_set_size), "GTID set")?;
                // What follows is ignored, as by the server.
                let (gtid_set, format) = GtidSet::decode(gtid_set)?;
                Ok(DumpRequest::ByGtidSet { flags, server_id, name, position, gtid_set, format })
            }
            other => Err(Error::invalid(WHAT, "command", format!("{other:#04x}"), "0x12 or 0x1e")),
        }
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            DumpRequest::ByPosition { flags, server_id, name, position } => {
                out.put_u8(DUMP_BY_POSITION);
                out.put_u32(*position);
                out.put_u16(flags.0);
                out.put_u32(*server_id);
                out.put(name);
            }
            DumpRequest::ByGtidSet { flags, server_id, name, position, gtid_set, format } => {
                let mut encoded = Vec::new();
                gtid_set.encode(*format, &mut encoded);
                out.put_u8(DUMP_BY_GTID_SET);
                out.put_u16(flags.0);
                out.put_u32(*server_id);
                out.put_u32(name.len() as u32);
                out.put(name);
                out.put_u64(*position);
                out.put_u32(encoded.len() as u32);
                out.put(&encoded);
            }
        }
    }
}

fn up_to_nul(name: &[u8]) -> &[u8] {
    name.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_cuts_are_errors_and_more_is_ignored;

    fn encode(request: &DumpRequest) -> Vec<u8> {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        bytes
    }

    #[test]
    fn by_position() {
        let request = DumpRequest::ByPosition {
            flags: DumpFlags::NON_BLOCK,
            server_id: 1,
            name: b"binlog.000001".to_vec(),
            position: 4,
        };
        let bytes = encode(&request);
        assert_eq!(bytes, b"\x12\x04\0\0\0\x01\0\x01\0\0\0binlog.000001");
        assert_eq!(DumpRequest::decode(&bytes).unwrap(), request);
        assert!(request.is_non_blocking());
        for length in 0..11 {
            assert!(DumpRequest::decode(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn by_gtid_set() {
        for (set, size) in [
            ("", 8),
            ("1410447f-e54d-11f1-848d-02fc00000001:1-5", 48),
            ("1410447f-e54d-11f1-848d-02fc00000001:tag_1:1-5", 54),
        ] {
            let gtid_set: GtidSet = set.parse().unwrap();
            let request = DumpRequest::ByGtidSet {
                flags: DumpFlags::HEARTBEAT_V2,
                server_id: 33091,
                name: Vec::new(),
                position: 4,
                format: gtid_set.format(),
                gtid_set,
            };
            let bytes = encode(&request);
            assert_eq!(&bytes[..15], b"\x1e\x02\0\x43\x81\0\0\0\0\0\0\x04\0\0\0");
            assert_eq!(bytes.len(), 23 + size, "{set}");
            assert_eq!(DumpRequest::decode(&bytes).unwrap(), request);
            assert_cuts_are_errors_and_more_is_ignored(&bytes, |bytes| DumpRequest::decode(bytes).map(drop));
        }
    }

    #[test]
    fn a_name_ends_at_its_first_nul() {
        for (sent, name) in [("binlog.000001\0", "binlog.000001"), ("\0\0\0\0", ""), ("a\0b", "a"), ("", "")]
        {
            let by_position = [b"\x12\x04\0\0\0\0\0\x07\0\0\0", sent.as_bytes()].concat();
            let size = u32::try_from(sent.len()).unwrap().to_le_bytes();
            let by_gtid_set = [
                b"\x1e\0\0\x07\0\0\0",
                size.as_slice(),
                sent.as_bytes(),
                b"\x04\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0",
            ]
            .concat();
            for bytes in [by_position, by_gtid_set] {
                let (DumpRequest::ByPosition { name: found, .. }
                | DumpRequest::ByGtidSet { name: found, .. }) = DumpRequest::decode(&bytes).unwrap();
                assert_eq!(found, name.as_bytes(), "{sent:?}");
            }
        }
    }

    #[test]
    fn lies_about_sizes_are_errors() {
        let error = DumpRequest::decode(b"\x1e\0\0\0\0\0\0\xff\xff\xff\xffname").unwrap_err().to_string();
        assert_eq!(error, "dump request: name needs 4294967295 bytes, 4 are left");
        assert!(DumpRequest::decode(b"\x03SELECT 1").is_err());
    }
}
