//! A whole transaction, compressed: fields that describe the payload, then the payload.
//!
//! ```text
//! size field
//!    n fields          each: type (LEI), length (LEI), value
//!    1 end mark        0
//!    m payload         payload_size bytes
//!    k trailing        nothing in real logs; the server tolerates bytes here
//!
//! type field             value
//!    1 payload_size      LEI
//!    2 compression_type  LEI: 0 ZSTD, 255 NONE
//!    3 uncompressed_size LEI; absent where the type is NONE
//! ```
//!
//! There is no post-header, whatever the format description says of type 40. The server writes the fields in
//! the order 2, 3, 1. Its reader skips types it does not know, requires 1 and 2, and treats
//! `uncompressed_size` as informational. A payload can have 1 GiB, so the fields are read from the front of a
//! body alone. `binlogz-payload` handles the payload itself: compressed events without checksums. (Facts of
//! MySQL 9.7.4's `codecs::binary::Transaction_payload`.)

use std::fmt;

use crate::EVENT_SIZE_MAX;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::put::{PutFields, lei_size};

const WHAT: &str = "transaction payload event";

const END_MARK: u64 = 0;
const PAYLOAD_SIZE: u64 = 1;
const COMPRESSION_TYPE: u64 = 2;
const UNCOMPRESSED_SIZE: u64 = 3;

/// The most bytes that a server's fields take: two sizes of nine bytes, a type, the end mark.
pub const HEADER_SIZE_MAX: usize = (1 + 1 + 1) + 2 * (1 + 1 + 9) + 1;

/// The most bytes of fields that are read before a payload that may not be in memory. This leaves room for
/// fields of future servers; anything longer is not a header.
pub const HEADER_SIZE_LIMIT: usize = 64 << 10;

/// The largest payload that the server makes: an event of 1 GiB less event header and fields.
pub const PAYLOAD_SIZE_MAX: u64 = EVENT_SIZE_MAX as u64 - 45;

const _: () = assert!(HEADER_SIZE_MAX == 26 && crate::header::HEADER_SIZE + HEADER_SIZE_MAX == 45);

/// How a payload is compressed. Unknown values survive.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CompressionType(pub u64);

impl CompressionType {
    /// One or more zstd frames.
    pub const ZSTD: Self = CompressionType(0);
    /// The events as they are.
    pub const NONE: Self = CompressionType(255);
}

impl fmt::Display for CompressionType {
    /// Writes the compression's name as mysqlbinlog and SHOW BINLOG EVENTS print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ZSTD => f.write_str("ZSTD"),
            Self::NONE => f.write_str("NONE"),
            CompressionType(other) => write!(f, "{other:#x}"),
        }
    }
}

impl fmt::Debug for CompressionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The fields before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionPayloadHeader<'a> {
    compression_type: CompressionType,
    payload_size: u64,
    uncompressed_size: Option<u64>,
    /// The fields as they were read, including the end mark, so that order and unknown types survive. `None`
    /// if made here, to be written as the server does.
    encoded: Option<&'a [u8]>,
}

impl TransactionPayloadHeader<'static> {
    /// The header of a payload made here.
    pub fn new(compression_type: CompressionType, payload_size: u64, uncompressed_size: Option<u64>) -> Self {
        TransactionPayloadHeader { compression_type, payload_size, uncompressed_size, encoded: None }
    }
}

impl<'a> TransactionPayloadHeader<'a> {
    /// How the payload is compressed.
    pub fn compression_type(&self) -> CompressionType {
        self.compression_type
    }

    /// Bytes of the payload.
    pub fn payload_size(&self) -> u64 {
        self.payload_size
    }

    /// Bytes of the events inside, without checksums. Informational: do not allocate by it.
    pub fn uncompressed_size(&self) -> Option<u64> {
        self.uncompressed_size
    }

    /// Reads the fields at the front of a body of `body_size` bytes (without checksum), of which `front` is
    /// available. Returns the fields and their size in bytes, which is where the payload begins. `None` if
    /// `front` does not hold all of them yet. [`HEADER_SIZE_MAX`] bytes are enough for what servers write.
    ///
    /// # Errors
    ///
    /// A field that is missing or malformed, more than [`HEADER_SIZE_LIMIT`] bytes of fields, a payload
    /// larger than the rest of the body.
    pub fn decode_front(front: &'a [u8], body_size: u64) -> Result<Option<(Self, usize)>> {
        let body_size_here = usize::try_from(body_size).unwrap_or(usize::MAX);
        let front = front.get(..body_size_here).unwrap_or(front);
        let fields = front.get(..HEADER_SIZE_LIMIT).unwrap_or(front);
        match Self::read(fields) {
            Ok(header) => {
                let size = header.encoded.map_or(0, <[u8]>::len);
                let left = body_size.saturating_sub(size as u64);
                if header.payload_size > left {
                    let needed = header.payload_size;
                    return Err(Error::Short { what: WHAT, field: "payload", needed, left });
                }
                Ok(Some((header, size)))
            }
            Err(Error::Short { .. }) if fields.len() == HEADER_SIZE_LIMIT => {
                Err(Error::invalid(WHAT, "size of the fields", "above 64 KiB", "an end mark before that"))
            }
            Err(Error::Short { .. }) if front.len() < body_size_here => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads fields up to the end mark; ignores what follows.
    fn read(fields: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(fields, WHAT);
        let mut payload_size = None;
        let mut compression_type = None;
        let mut uncompressed_size = None;
        loop {
            let field_type = cursor.lei("field type")?;
            if field_type == END_MARK {
                break;
            }
            let length = cursor.lei("field length")?;
            let value = cursor.bytes_u64(length, "field value")?;
            match field_type {
                PAYLOAD_SIZE => payload_size = Some(read_value(value, "payload size")?),
                COMPRESSION_TYPE => compression_type = Some(read_value(value, "compression type")?),
                UNCOMPRESSED_SIZE => uncompressed_size = Some(read_value(value, "uncompressed size")?),
                _ => {} // of a server to come; survives in `encoded`
            }
        }
        let missing = |field| Error::invalid(WHAT, field, "absent", "a field before the payload");
        let size = fields.len() - cursor.remaining();
        Ok(TransactionPayloadHeader {
            compression_type: CompressionType(compression_type.ok_or_else(|| missing("compression type"))?),
            payload_size: payload_size.ok_or_else(|| missing("payload size"))?,
            uncompressed_size,
            encoded: fields.get(..size),
        })
    }

    /// Appends the fields: as they were read, or in the server's order and widths.
    pub fn encode(&self, body: &mut Vec<u8>) {
        if let Some(encoded) = self.encoded {
            return body.put(encoded);
        }
        let mut put_field = |field_type: u64, value: u64| {
            body.put_lei(field_type);
            body.put_lei(lei_size(value) as u64);
            body.put_lei(value);
        };
        put_field(COMPRESSION_TYPE, self.compression_type.0);
        if let Some(uncompressed_size) = self.uncompressed_size {
            put_field(UNCOMPRESSED_SIZE, uncompressed_size);
        }
        put_field(PAYLOAD_SIZE, self.payload_size);
        body.put_lei(END_MARK);
    }
}

/// The value of a field: one length-encoded integer that fills it.
fn read_value(value: &[u8], field: &'static str) -> Result<u64> {
    let mut cursor = Cursor::new(value, WHAT);
    match (cursor.lei(field), cursor.is_empty()) {
        (Ok(number), true) => Ok(number),
        // Not `Short`: more bytes of the body would not help.
        _ => Err(Error::invalid(WHAT, field, format!("{} bytes", value.len()), "one integer")),
    }
}

/// A transaction payload event held entirely in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionPayloadEvent<'a> {
    /// The fields before the payload.
    pub header: TransactionPayloadHeader<'a>,
    /// The compressed events, `header.payload_size()` bytes.
    pub payload: &'a [u8],
    /// The bytes after the payload; none in real logs.
    pub trailing: &'a [u8],
}

impl<'a> TransactionPayloadEvent<'a> {
    /// Reads a body without its checksum.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        let too_short = Error::Short { what: WHAT, field: "field type", needed: 1, left: 0 };
        let (header, size) =
            TransactionPayloadHeader::decode_front(body, body.len() as u64)?.ok_or(too_short)?;
        let mut cursor = Cursor::new(body, WHAT);
        cursor.bytes(size, "fields")?;
        let payload = cursor.bytes_u64(header.payload_size, "payload")?;
        Ok(TransactionPayloadEvent { header, payload, trailing: cursor.rest() })
    }

    /// The body as it stands in a file, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(HEADER_SIZE_MAX + self.payload.len() + self.trailing.len());
        self.header.encode(&mut body);
        body.put(self.payload);
        body.put(self.trailing);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of a real payload of MySQL 9.7.4, 188 bytes in 140.
    const SMALL: [u8; 10] = [2, 1, 0, 3, 1, 188, 1, 1, 140, 0];
    /// The header of a real payload of MySQL 9.7.4, 38 MB in 12 644 bytes.
    const LARGE: [u8; 20] = [2, 1, 0, 3, 9, 254, 0x30, 0, 0x4a, 2, 0, 0, 0, 0, 1, 3, 252, 0x64, 0x31, 0];

    fn body(fields: &[u8], payload: usize) -> Vec<u8> {
        [fields, &vec![0x28; payload]].concat()
    }

    #[test]
    fn a_header_made_here_has_the_bytes_of_the_server() {
        for (expected, payload_size, uncompressed_size) in
            [(SMALL.as_slice(), 140, 188), (&LARGE, 12_644, 0x024a_0030)]
        {
            let header =
                TransactionPayloadHeader::new(CompressionType::ZSTD, payload_size, Some(uncompressed_size));
            let mut fields = Vec::new();
            header.encode(&mut fields);
            assert_eq!(fields, expected);
            let (read, size) = TransactionPayloadHeader::decode_front(&fields, 1 << 20).unwrap().unwrap();
            assert_eq!(size, expected.len());
            assert_eq!(read.compression_type(), CompressionType::ZSTD);
            assert_eq!(read.payload_size(), payload_size);
            assert_eq!(read.uncompressed_size(), Some(uncompressed_size));
        }
    }

    #[test]
    fn none_takes_three_bytes_and_has_no_uncompressed_size() {
        let mut fields = Vec::new();
        TransactionPayloadHeader::new(CompressionType::NONE, 5, None).encode(&mut fields);
        assert_eq!(fields, [2, 3, 252, 255, 0, 1, 1, 5, 0]);
        let event = body(&fields, 5);
        let event = TransactionPayloadEvent::decode(&event).unwrap();
        assert_eq!(event.header.compression_type(), CompressionType::NONE);
        assert_eq!(event.header.uncompressed_size(), None);
    }

    #[test]
    fn unknown_fields_and_their_place_survive() {
        let fields = [200, 2, 7, 7, 1, 1, 3, 2, 1, 77, 252, 1, 1, 0, 0];
        let bytes = [&fields[..], b"abc", b"trailing"].concat();
        let event = TransactionPayloadEvent::decode(&bytes).unwrap();
        assert_eq!(event.payload, b"abc");
        assert_eq!(event.trailing, b"trailing");
        assert_eq!(event.header.compression_type().to_string(), "0x4d");
        assert_eq!(event.encode(), bytes);
    }

    #[test]
    fn a_front_is_enough_and_a_part_of_it_is_not_an_error() {
        for length in 0..SMALL.len() {
            assert_eq!(TransactionPayloadHeader::decode_front(&SMALL[..length], 150).unwrap(), None);
        }
        assert!(TransactionPayloadHeader::decode_front(&SMALL, 150).unwrap().is_some());
    }

    #[test]
    fn a_payload_beyond_the_body_is_an_error() {
        let error = TransactionPayloadHeader::decode_front(&SMALL, 149).unwrap_err();
        assert_eq!(error.to_string(), "transaction payload event: payload needs 140 bytes, 139 are left");
    }

    #[test]
    fn cut_anywhere_it_is_an_error() {
        let whole = body(&SMALL, 140);
        TransactionPayloadEvent::decode(&whole).unwrap();
        for length in 0..whole.len() {
            assert!(TransactionPayloadEvent::decode(&whole[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn required_fields_are_required() {
        let missing_type = TransactionPayloadEvent::decode(&[1, 1, 0, 0]).unwrap_err();
        assert_eq!(
            missing_type.to_string(),
            "transaction payload event: compression type is absent, expected a field before the payload"
        );
        assert!(TransactionPayloadEvent::decode(&[2, 1, 0, 0]).is_err());
        assert!(TransactionPayloadEvent::decode(&[2, 2, 0, 0, 1, 1, 0, 0]).is_err(), "type in two bytes");
        assert!(TransactionPayloadEvent::decode(&[2, 0, 1, 1, 0, 0]).is_err(), "type without bytes");
        // A bad field is an error even if the rest of the body is not available.
        assert!(TransactionPayloadHeader::decode_front(&[2, 0, 1, 1], 1 << 20).is_err());
    }

    #[test]
    fn fields_without_end_are_not_read_forever() {
        // A field that claims a gigabyte, in a body that may have it.
        let mut bytes = vec![99, 254, 0, 0, 0, 0x30, 0, 0, 0, 0];
        assert_eq!(TransactionPayloadHeader::decode_front(&bytes, 1 << 30).unwrap(), None);
        bytes.resize(HEADER_SIZE_LIMIT, 0);
        assert!(TransactionPayloadHeader::decode_front(&bytes, 1 << 30).is_err());
    }
}
