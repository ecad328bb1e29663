//! Finds events in bytes that arrive in pieces: a slice, the chunks of a file, a decompressor's output.
//! Unlike [`crate::reader`] it never holds a body, so an event of 1 GiB costs no memory.
//!
//! The caller pushes bytes in; the visitor sees `begin`, `body` (in as many pieces as arrived), `end`. The
//! parser checks the checksum between the last `body` and `end`, which receives the proof. A parser that does
//! not check checksums is another type, and passes on the stored checksum instead. A chunk nearly always
//! holds whole events; each then costs one call of each kind and no copy.

use std::marker::PhantomData;

use crate::checksum::{CHECKSUM_SIZE, Crc32, StoredChecksum, VerifiedChecksum, crc32};
use crate::error::{Error, Result};
use crate::event_type::EventType;
use crate::framing::Framing;
use crate::header::{EventHeader, HEADER_SIZE};

/// Called by an [`EventParser`] for the events it finds. `C` is the state of their checksums: compared and right, unless
/// the visitor asks for the stored ones.
pub trait EventVisitor<C = VerifiedChecksum> {
    /// The visitor's error type; the parser's own errors must convert into it.
    type Error: From<Error>;

    /// An event begins at `offset` of the stream. Its header passed [`Framing::check_header`].
    fn begin(&mut self, offset: u64, header: &EventHeader) -> Result<(), Self::Error>;

    /// The next bytes of the body, never empty; header and checksum are not part of it.
    fn body(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;

    /// The event is whole and its checksum, if it has one, is as `C` says.
    fn end(&mut self, checksum: C) -> Result<(), Self::Error>;
}

/// A parser's treatment of a checksum: [`VerifiedChecksum`] compares it, [`StoredChecksum`] passes it on.
pub trait ChecksumCheck: Sized {
    /// Whether the checksum of the bytes must be computed.
    const COMPARES: bool;

    /// The result for an event with this stored checksum, whose bytes give `computed`.
    fn of(stored: Option<u32>, computed: impl FnOnce() -> u32) -> Result<Self>;
}

impl ChecksumCheck for VerifiedChecksum {
    const COMPARES: bool = true;

    #[inline]
    fn of(stored: Option<u32>, computed: impl FnOnce() -> u32) -> Result<Self> {
        stored.map_or(Ok(VerifiedChecksum::nothing_to_compare()), |stored| {
            VerifiedChecksum::compare(stored, computed())
        })
    }
}

impl ChecksumCheck for StoredChecksum {
    const COMPARES: bool = false;

    #[inline]
    fn of(stored: Option<u32>, _: impl FnOnce() -> u32) -> Result<Self> {
        Ok(StoredChecksum(stored))
    }
}

/// Cuts a stream into events. All events are framed alike: a format description in the stream is refused,
/// because the events after it may be framed differently.
#[derive(Debug)]
pub struct EventParser<C = VerifiedChecksum> {
    framing: Framing,
    check: PhantomData<fn() -> C>,
    /// Offset of the first byte that was not parsed yet.
    offset: u64,
    state: ParserState,
}

#[derive(Debug)]
enum ParserState {
    /// Between events, or inside a header of which `held` bytes have arrived.
    Header { bytes: [u8; HEADER_SIZE], held: usize },
    /// Inside a body, with this many bytes still to come.
    Body { begin: u64, header: EventHeader, left: usize, crc: Crc32 },
    /// Inside the checksum.
    Checksum { begin: u64, header: EventHeader, computed: u32, bytes: [u8; CHECKSUM_SIZE], held: usize },
}

const BETWEEN_EVENTS: ParserState = ParserState::Header { bytes: [0; HEADER_SIZE], held: 0 };

impl EventParser {
    /// A parser for events that begin at `offset` of their stream. It compares their checksums.
    pub fn new(framing: Framing, offset: u64) -> Self {
        EventParser::of(framing, offset)
    }
}

impl EventParser<StoredChecksum> {
    /// A parser that does not compare checksums: for callers that only read or move events.
    pub fn unverified(framing: Framing, offset: u64) -> Self {
        EventParser::of(framing, offset)
    }
}

impl<C: ChecksumCheck> EventParser<C> {
    fn of(framing: Framing, offset: u64) -> Self {
        EventParser { framing, check: PhantomData, offset, state: BETWEEN_EVENTS }
    }

    /// Offset of the first byte not parsed yet.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Parses the next bytes of the stream.
    ///
    /// # Errors
    ///
    /// Bad bytes, with the offset of their event, and the visitor's own errors.
    pub fn push<V: EventVisitor<C>>(&mut self, mut bytes: &[u8], visitor: &mut V) -> Result<(), V::Error> {
        while !bytes.is_empty() {
            let between_events = matches!(self.state, ParserState::Header { held: 0, .. });
            bytes = match between_events.then(|| self.whole_event(bytes, visitor)).transpose()?.flatten() {
                Some(rest) => rest,
                None => self.piece(bytes, visitor)?,
            };
        }
        Ok(())
    }

    /// Ends the stream.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] if it ends inside an event.
    pub fn finish(&self) -> Result<()> {
        let (begin, event_type, needed) = match &self.state {
            ParserState::Header { held: 0, .. } => return Ok(()),
            ParserState::Header { held, .. } => (self.offset - *held as u64, None, HEADER_SIZE as u64),
            ParserState::Body { begin, header, .. } | ParserState::Checksum { begin, header, .. } => {
                (*begin, Some(header.event_type), u64::from(header.event_size))
            }
        };
        Err(Error::Truncated { needed, left: self.offset - begin }.at(begin, event_type))
    }

    /// The fast path: an event entirely at the front of `bytes`. `None` if there is none.
    #[inline]
    fn whole_event<'a, V: EventVisitor<C>>(
        &mut self,
        bytes: &'a [u8],
        visitor: &mut V,
    ) -> Result<Option<&'a [u8]>, V::Error> {
        if bytes.len() < HEADER_SIZE {
            return Ok(None);
        }
        let header = self.header(bytes)?;
        let Some((event, rest)) = bytes.split_at_checked(header.event_size as usize) else { return Ok(None) };
        let begin = self.offset;
        let checksum_size = self.framing.checksum().size();
        let (covered, checksum) = event.split_at_checked(event.len() - checksum_size).unwrap_or_default();
        let stored = checksum.first_chunk::<CHECKSUM_SIZE>().map(|stored| u32::from_le_bytes(*stored));
        let checked = C::of(stored, || crc32(covered)).map_err(|e| e.at(begin, Some(header.event_type)))?;
        visitor.begin(begin, &header)?;
        match covered.get(HEADER_SIZE..) {
            None | Some([]) => {}
            Some(body) => visitor.body(body)?,
        }
        visitor.end(checked)?;
        self.offset += u64::from(header.event_size);
        Ok(Some(rest))
    }

    /// The slow path: takes as much of the current event as `bytes` hold; returns the rest.
    fn piece<'a, V: EventVisitor<C>>(
        &mut self,
        bytes: &'a [u8],
        visitor: &mut V,
    ) -> Result<&'a [u8], V::Error> {
        match &mut self.state {
            ParserState::Header { bytes: header_bytes, held } => {
                let rest = top_up(header_bytes, held, bytes);
                self.offset += (bytes.len() - rest.len()) as u64;
                if *held == HEADER_SIZE {
                    let header_bytes = *header_bytes;
                    let begin = self.offset - HEADER_SIZE as u64;
                    let header = self.header_at(begin, &header_bytes)?;
                    visitor.begin(begin, &header)?;
                    let left = header.event_size as usize - HEADER_SIZE - self.framing.checksum().size();
                    let mut crc = Crc32::new();
                    crc.update(&header_bytes);
                    self.state = ParserState::Body { begin, header, left, crc };
                    self.end_body(visitor)?;
                }
                Ok(rest)
            }
            ParserState::Body { left, crc, .. } => {
                let (piece, rest) = bytes.split_at_checked(*left).unwrap_or((bytes, &[]));
                *left -= piece.len();
                self.offset += piece.len() as u64;
                if C::COMPARES && self.framing.checksum().size() > 0 {
                    crc.update(piece);
                }
                visitor.body(piece)?;
                self.end_body(visitor)?;
                Ok(rest)
            }
            ParserState::Checksum { begin, header, computed, bytes: stored, held } => {
                let rest = top_up(stored, held, bytes);
                self.offset += (bytes.len() - rest.len()) as u64;
                if *held == CHECKSUM_SIZE {
                    let begin = *begin;
                    let event_type = header.event_type;
                    let checked = C::of(Some(u32::from_le_bytes(*stored)), || *computed);
                    visitor.end(checked.map_err(|error| error.at(begin, Some(event_type)))?)?;
                    self.state = BETWEEN_EVENTS;
                }
                Ok(rest)
            }
        }
    }

    /// Moves on to the checksum, or to the next event, when the body is whole.
    fn end_body<V: EventVisitor<C>>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        let ParserState::Body { begin, header, left: 0, crc } = &self.state else { return Ok(()) };
        if self.framing.checksum().size() > 0 {
            let computed = crc.clone().finish();
            self.state = ParserState::Checksum {
                begin: *begin,
                header: *header,
                computed,
                bytes: [0; CHECKSUM_SIZE],
                held: 0,
            };
        } else {
            visitor.end(C::of(None, || 0)?)?;
            self.state = BETWEEN_EVENTS;
        }
        Ok(())
    }

    #[inline]
    fn header(&self, bytes: &[u8]) -> Result<EventHeader> {
        self.header_at(self.offset, bytes)
    }

    #[inline]
    fn header_at(&self, begin: u64, bytes: &[u8]) -> Result<EventHeader> {
        let header = EventHeader::decode(bytes).map_err(|error| error.at(begin, None))?;
        self.framing.check_header(&header).map_err(|error| error.at(begin, None))?;
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            let error = Error::invalid(
                "event header",
                "event type",
                "FormatDescription",
                "an event of a transaction",
            );
            return Err(error.at(begin, Some(header.event_type)));
        }
        Ok(header)
    }
}

/// Fills `array` from the front of `bytes`; returns the rest.
fn top_up<'a, const N: usize>(array: &mut [u8; N], held: &mut usize, bytes: &'a [u8]) -> &'a [u8] {
    let free = array.get_mut(*held..).unwrap_or_default();
    let count = free.len().min(bytes.len());
    for (slot, byte) in free.iter_mut().zip(bytes) {
        *slot = *byte;
    }
    *held += count;
    bytes.get(count..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::ChecksumAlgorithm;
    use crate::frame::encode_event;
    use crate::header::HeaderFlags;

    /// Notes every call that it gets.
    #[derive(Default, Debug, PartialEq)]
    struct Log(Vec<(u64, u8, Vec<u8>, bool)>);

    impl EventVisitor for Log {
        type Error = Error;
        fn begin(&mut self, offset: u64, header: &EventHeader) -> Result<()> {
            self.0.push((offset, header.event_type.0, Vec::new(), false));
            Ok(())
        }
        fn body(&mut self, bytes: &[u8]) -> Result<()> {
            assert!(!bytes.is_empty());
            self.0.last_mut().unwrap().2.extend_from_slice(bytes);
            Ok(())
        }
        fn end(&mut self, _: VerifiedChecksum) -> Result<()> {
            self.0.last_mut().unwrap().3 = true;
            Ok(())
        }
    }

    fn stream(algorithm: ChecksumAlgorithm) -> Vec<u8> {
        let bodies: [&[u8]; 4] = [b"", b"x", b"a body of some length", b""];
        let header = |event_type| EventHeader {
            timestamp: 0,
            event_type: EventType(event_type),
            server_id: 1,
            event_size: 0,
            end_log_pos: 0,
            flags: HeaderFlags::default(),
        };
        bodies.iter().zip(1..).flat_map(|(body, ty)| encode_event(header(ty), body, algorithm)).collect()
    }

    fn framing(checksum: ChecksumAlgorithm) -> Framing {
        Framing::with_checksum(checksum)
    }

    #[test]
    fn pieces_of_any_size_tell_the_same() {
        for algorithm in [ChecksumAlgorithm::NONE, ChecksumAlgorithm::CRC32] {
            let bytes = stream(algorithm);
            let mut whole = Log::default();
            let mut parser = EventParser::new(framing(algorithm), 100);
            parser.push(&bytes, &mut whole).unwrap();
            parser.finish().unwrap();
            assert_eq!(whole.0.len(), 4);
            assert_eq!(whole.0[2].2, b"a body of some length");
            assert!(whole.0.iter().all(|event| event.3));
            for size in 1..bytes.len() {
                let mut log = Log::default();
                let mut parser = EventParser::new(framing(algorithm), 100);
                for piece in bytes.chunks(size) {
                    parser.push(piece, &mut log).unwrap();
                }
                parser.finish().unwrap();
                assert_eq!(log, whole, "pieces of {size}");
            }
        }
    }

    #[test]
    fn a_cut_names_the_event_it_falls_in() {
        let bytes = stream(ChecksumAlgorithm::CRC32);
        let mut parser = EventParser::new(framing(ChecksumAlgorithm::CRC32), 4);
        parser.push(&bytes[..bytes.len() - 1], &mut Log::default()).unwrap();
        let error = parser.finish().unwrap_err();
        assert!(error.is_truncation());
        assert_eq!(error.offset(), Some(4 + 23 + 24 + 44));
    }

    #[test]
    fn a_wrong_checksum_is_noticed_in_pieces_too() {
        let mut bytes = stream(ChecksumAlgorithm::CRC32);
        bytes[30] ^= 1;
        for size in [1, bytes.len()] {
            let mut parser = EventParser::new(framing(ChecksumAlgorithm::CRC32), 0);
            let mut log = Log::default();
            assert!(
                bytes.chunks(size).any(|piece| parser.push(piece, &mut log).is_err()),
                "pieces of {size}"
            );
            assert!(!log.0.get(1).is_some_and(|event| event.3), "the bad event was ended");
        }
    }
}
