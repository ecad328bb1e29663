//! A payload event that arrives in pieces: reads its fields, expands the payload, finds the events inside and
//! passes them to a visitor.
//!
//! Neither the payload nor its contents are in memory as a whole. Everything a payload says of itself may be
//! false. Its contents must be whole events, none of them another payload (such a log could hold itself) or
//! the beginning of another transaction. They have no checksums: that of the payload event covers them, and
//! is compared once the event is complete.

use binlogz_binlog::event::{CompressionType, TransactionPayloadHeader};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{
    Error as BinlogError, EventHeader, EventParser, EventType, EventVisitor, Framing, StoredChecksum,
};

use crate::codec::expander::Expander;
use crate::error::{Error, Result};

const WHAT: &str = "transaction payload";

/// A payload event of which some bytes have arrived.
#[derive(Debug)]
pub struct PayloadStream {
    offset: u64,
    body_size: u64,
    /// The fields before the payload, as far as they have arrived.
    front: Vec<u8>,
    fields: Option<Fields>,
    /// Finds the events in the expanded payload.
    parser: EventParser<StoredChecksum>,
}

#[derive(Debug, Clone, Copy)]
struct Fields {
    compression_type: CompressionType,
    payload_size: u64,
    uncompressed_size: Option<u64>,
    /// Bytes of the payload still to come.
    left: u64,
}

/// Figures of a whole payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadSizes {
    /// Bytes of the payload, as its header says and as found.
    pub compressed: u64,
    /// Bytes of the events inside, without checksums, as found (not as the header says).
    pub uncompressed: u64,
}

impl PayloadStream {
    /// A payload event begins at `offset` of a log with this framing.
    pub fn begin(offset: u64, header: &EventHeader, framing: Framing) -> Self {
        let around = (HEADER_SIZE + framing.checksum().size()) as u64;
        PayloadStream {
            offset,
            body_size: u64::from(header.event_size).saturating_sub(around),
            front: Vec::new(),
            fields: None,
            parser: EventParser::unverified(framing.inside_payload(), 0),
        }
    }

    /// The fields before the payload, once they have arrived.
    pub fn fields(&self) -> Option<TransactionPayloadHeader<'static>> {
        let fields = self.fields?;
        let Fields { compression_type, payload_size, uncompressed_size, .. } = fields;
        Some(TransactionPayloadHeader::new(compression_type, payload_size, uncompressed_size))
    }

    /// Takes the next bytes of the event's body that belong to the fields before the payload; returns the
    /// rest.
    ///
    /// # Errors
    ///
    /// Fields that are damaged or claim an impossible size, with the offset of the payload event.
    pub fn front<'a>(&mut self, bytes: &'a [u8], expander: &mut Expander) -> Result<&'a [u8]> {
        if self.fields.is_some() {
            return Ok(bytes);
        }
        let Some(rest) = self.read_fields(bytes)? else { return Ok(&[]) };
        expander.begin()?;
        Ok(rest)
    }

    /// The payload's part of the next bytes of the event's body; `None` before its fields arrived, and for a
    /// payload that is not compressed.
    pub(crate) fn compressed<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let fields = self.fields.filter(|fields| fields.compression_type == CompressionType::ZSTD)?;
        bytes.get(..usize::try_from(fields.left).unwrap_or(usize::MAX).min(bytes.len()))
    }

    /// Takes the next bytes of the event's body. The offsets passed to `visitor` count the uncompressed bytes
    /// of the payload.
    ///
    /// # Errors
    ///
    /// Damage, with the offset of the payload event; what `visitor` fails with.
    pub fn body<V: EventVisitor<StoredChecksum, Error = Error>>(
        &mut self,
        bytes: &[u8],
        expander: &mut Expander,
        visitor: &mut V,
    ) -> Result<()> {
        let bytes = self.front(bytes, expander)?;
        let Some(fields) = &mut self.fields else { return Ok(()) };
        let taken = usize::try_from(fields.left).unwrap_or(usize::MAX).min(bytes.len());
        // Bytes after the payload are tolerated, as the server does.
        let bytes = bytes.get(..taken).unwrap_or_default();
        fields.left -= taken as u64;
        let parser = &mut self.parser;
        let visitor = &mut InnerFilter(visitor);
        let result = match fields.compression_type {
            CompressionType::NONE => parser.push(bytes, visitor),
            _ => expander.push(bytes, |events| parser.push(events, visitor)),
        };
        result.map_err(|error| self.error(error))
    }

    /// The event is complete, so its payload and the events in it must be too.
    ///
    /// # Errors
    ///
    /// A payload that ends too early, or holds nothing.
    pub fn end(&self, expander: &Expander) -> Result<PayloadSizes> {
        let Some(fields) = self.fields else {
            return Err(self
                .error(BinlogError::Truncated { needed: self.body_size + 1, left: self.body_size }.into()));
        };
        if fields.compression_type != CompressionType::NONE {
            expander.finish().map_err(|error| self.error(error))?;
        }
        self.parser.finish().map_err(|error| self.error(error.into()))?;
        if self.parser.offset() == 0 {
            let error = BinlogError::invalid(WHAT, "number of events", 0, "at least one");
            return Err(self.error(error.into()));
        }
        Ok(PayloadSizes { compressed: fields.payload_size, uncompressed: self.parser.offset() })
    }

    /// Reads the fields before the payload; returns the rest. `None` if they are not complete yet.
    fn read_fields<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>> {
        let held = self.front.len();
        let decoded = if held == 0 {
            TransactionPayloadHeader::decode_front(bytes, self.body_size)
        } else {
            self.front.extend_from_slice(bytes);
            TransactionPayloadHeader::decode_front(&self.front, self.body_size)
        };
        let at = |error: BinlogError| error.at(self.offset, Some(EventType::TRANSACTION_PAYLOAD));
        let Some((header, size)) = decoded.map_err(at)? else {
            if held == 0 {
                self.front.extend_from_slice(bytes);
            }
            return Ok(None);
        };
        let compression_type = header.compression_type();
        if !matches!(compression_type, CompressionType::ZSTD | CompressionType::NONE) {
            let expected = "0 (ZSTD) or 255 (NONE)";
            return Err(at(BinlogError::invalid(WHAT, "compression type", compression_type, expected)).into());
        }
        let payload_size = header.payload_size();
        let uncompressed_size = header.uncompressed_size();
        self.fields = Some(Fields { compression_type, payload_size, uncompressed_size, left: payload_size });
        Ok(bytes.get(size - held..))
    }

    /// Wraps an error inside the payload.
    fn error(&self, error: Error) -> Error {
        error.in_payload(self.offset)
    }
}

/// Only passes on events that may be in a payload.
struct InnerFilter<'a, V>(&'a mut V);

impl<V: EventVisitor<StoredChecksum, Error = Error>> EventVisitor<StoredChecksum> for InnerFilter<'_, V> {
    type Error = Error;

    #[inline]
    fn begin(&mut self, offset: u64, header: &EventHeader) -> Result<()> {
        check_inside(header).map_err(|error| error.at(offset, None))?;
        self.0.begin(offset, header)
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.body(bytes)
    }

    #[inline]
    fn end(&mut self, checksum: StoredChecksum) -> Result<()> {
        self.0.end(checksum)
    }
}

/// Refuses what no payload may hold: another payload, since it could hold itself; a GTID event, since the
/// transaction's own precedes the payload; a format description.
///
/// # Errors
///
/// The event's type, with the types that are allowed there.
pub fn check_inside(header: &EventHeader) -> Result<(), BinlogError> {
    let expected = match header.event_type {
        EventType::TRANSACTION_PAYLOAD => "no nested payload",
        EventType::FORMAT_DESCRIPTION => "an event of a transaction",
        event_type if event_type.is_gtid() => "no GTID event",
        _ => return Ok(()),
    };
    Err(BinlogError::invalid(WHAT, "event inside", header.event_type, expected))
}
