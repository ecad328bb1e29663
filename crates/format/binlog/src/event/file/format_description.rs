//! The first event of each file: how to read the others.
//!
//! ```text
//! offset size field
//!      0    2 binlog_version      4
//!      2   50 server_version      NUL padded
//!     52    4 created             seconds since 1970; not 0 only in the first file after a start
//!     56    1 header_length       19
//!     57    n post_header_lengths one byte for each type from 1; n is what is left
//!   57+n    1 checksum_algorithm  since 5.6.1 (MariaDB 5.3)
//!   58+n    4 checksum            since 5.6.1, also where the algorithm is NONE
//! ```
//!
//! The slot of type 40 holds 40 although a transaction payload has no post-header: the server wrote
//! the type's code there in 8.0.20 and the format has kept it. Nothing reads that slot.
//! (Facts of MySQL 9.7.4's `Format_description_event`.)

use crate::checksum::{CHECKSUM_SIZE, ChecksumAlgorithm};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event_type::EventType;
use crate::frame::EventFrame;
use crate::header::HEADER_SIZE;
use crate::put::PutFields;

const WHAT: &str = "format description event";
/// Bytes of the server version.
pub const SERVER_VERSION_SIZE: usize = 50;
const FIXED_SIZE: usize = 2 + SERVER_VERSION_SIZE + 4 + 1;
const CHECKSUM_FIELDS_SIZE: usize = 1 + CHECKSUM_SIZE;

/// The post-header lengths that MySQL 9.7 writes, for types 1 to 42.
pub const POST_HEADER_LENGTHS: [u8; 42] = [
    0x00, 0x0d, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x04, 0x00, 0x00, 0x00, 0x63, 0x00, 0x04,
    0x1a, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x0a, 0x0a, 0x0a, 0x2a, 0x2a,
    0x00, 0x12, 0x34, 0x00, 0x0a, 0x28, 0x00, 0x00,
];

/// A decoded format description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatDescription {
    /// 4 in every file since 5.0.
    pub binlog_version: u16,
    /// The writer's version string, NUL padded.
    pub server_version: [u8; SERVER_VERSION_SIZE],
    /// Start of the server, seconds since 1970; 0 in all but its first file.
    pub created: u32,
    /// Bytes of every event header: 19.
    pub header_length: u8,
    /// Bytes of each type's post-header, for types from 1 on.
    pub post_header_lengths: Vec<u8>,
    /// The algorithm of all events that follow.
    pub checksum_algorithm: ChecksumAlgorithm,
}

impl FormatDescription {
    /// Reads the event.
    pub fn decode_frame(frame: &EventFrame<'_>) -> Result<Self> {
        Self::decode(frame.body(), frame.checksum_size() > 0)
    }

    /// Reads a body without its checksum; `has_algorithm` says whether the writer supported checksums.
    pub fn decode(body: &[u8], has_algorithm: bool) -> Result<Self> {
        let mut cursor = Cursor::new(body, WHAT);
        let binlog_version = cursor.u16("binlog version")?;
        if binlog_version != 4 {
            return Err(Error::invalid(WHAT, "binlog version", binlog_version, "4"));
        }
        let server_version = cursor.array("server version")?;
        let created = cursor.u32("created")?;
        let header_length = cursor.u8("header length")?;
        if usize::from(header_length) != HEADER_SIZE {
            return Err(Error::invalid(WHAT, "header length", header_length, "19"));
        }
        let count = cursor.remaining().saturating_sub(usize::from(has_algorithm));
        if count > usize::from(u8::MAX) {
            return Err(Error::invalid(WHAT, "number of event types", count, "at most 255"));
        }
        // Only the version says whether checksums follow: a damaged version must not make us skip them.
        if !has_algorithm && count >= usize::from(EventType::GTID.0) {
            let version = String::from_utf8_lossy(trim_nul(&server_version));
            return Err(Error::invalid(WHAT, "server version", version, "one that knows GTID events"));
        }
        let post_header_lengths = cursor.bytes(count, "post-header lengths")?.to_vec();
        let checksum_algorithm = if has_algorithm {
            ChecksumAlgorithm(cursor.u8("checksum algorithm")?)
        } else {
            ChecksumAlgorithm::UNDEFINED
        };
        if has_algorithm && checksum_algorithm.0 > ChecksumAlgorithm::CRC32.0 {
            return Err(Error::invalid(
                WHAT,
                "checksum algorithm",
                checksum_algorithm.0,
                "0 (NONE) or 1 (CRC32)",
            ));
        }
        cursor.finish()?;
        Ok(FormatDescription {
            binlog_version,
            server_version,
            created,
            header_length,
            post_header_lengths,
            checksum_algorithm,
        })
    }

    /// The body as it is in a file, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(FIXED_SIZE + self.post_header_lengths.len() + CHECKSUM_FIELDS_SIZE);
        body.put_u16(self.binlog_version);
        body.put(&self.server_version);
        body.put_u32(self.created);
        body.put_u8(self.header_length);
        body.put(&self.post_header_lengths);
        if self.has_checksum() {
            body.put_u8(self.checksum_algorithm.0);
        }
        body
    }

    /// Whether the event itself carries algorithm and checksum.
    pub fn has_checksum(&self) -> bool {
        self.checksum_algorithm != ChecksumAlgorithm::UNDEFINED
    }

    /// The highest type code that may follow.
    pub fn number_of_event_types(&self) -> u8 {
        u8::try_from(self.post_header_lengths.len()).unwrap_or(u8::MAX)
    }

    /// The post-header length of a type, 0 for types not announced.
    pub fn post_header_length(&self, event_type: EventType) -> u8 {
        usize::from(event_type.0)
            .checked_sub(1)
            .and_then(|index| self.post_header_lengths.get(index).copied())
            .unwrap_or(0)
    }

    /// The writer's version as text.
    pub fn server_version(&self) -> String {
        String::from_utf8_lossy(trim_nul(&self.server_version)).into_owned()
    }

    /// The writer's version as a number, XXYYZZ as in `MYSQL_VERSION_ID`: 90704 for 9.7.4.
    pub fn server_version_number(&self) -> u32 {
        version_number(&self.server_version)
    }

    /// Whether MariaDB wrote the file.
    pub fn is_mariadb(&self) -> bool {
        is_mariadb(&self.server_version)
    }

    /// Bytes of the checksum after a whole format description event: 4 if its writer supported checksums,
    /// else 0.
    pub fn checksum_size(event: &[u8]) -> Result<usize> {
        let mut cursor = Cursor::new(event, WHAT);
        cursor.bytes(HEADER_SIZE, "event header")?;
        let binlog_version = cursor.u16("binlog version")?;
        if binlog_version != 4 {
            return Err(Error::invalid(WHAT, "binlog version", binlog_version, "4"));
        }
        let version: [u8; SERVER_VERSION_SIZE] = cursor.array("server version")?;
        let first_with_checksum = if is_mariadb(&version) { 50_300 } else { 50_601 };
        if version_number(&version) < first_with_checksum {
            return Ok(0);
        }
        cursor.u32("created")?;
        cursor.u8("header length")?;
        cursor.bytes(CHECKSUM_FIELDS_SIZE, "checksum")?;
        Ok(CHECKSUM_SIZE)
    }
}

fn trim_nul(version: &[u8]) -> &[u8] {
    version.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn is_mariadb(version: &[u8]) -> bool {
    trim_nul(version).windows(7).any(|window| window.eq_ignore_ascii_case(b"mariadb"))
}

/// A server's version as a number: `9.7.4-log` is 90704. Missing parts count as 0.
pub fn version_number(version: &[u8]) -> u32 {
    let text = trim_nul(version);
    let mut parts = [0u32; 3];
    for (part, digits) in parts.iter_mut().zip(text.split(|&byte| byte == b'.')) {
        let number = digits.iter().take_while(|byte| byte.is_ascii_digit()).take(4);
        *part = number.fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
        if digits.iter().any(|byte| !byte.is_ascii_digit()) {
            break;
        }
    }
    let [major, minor, patch] = parts;
    major * 10_000 + minor * 100 + patch
}
