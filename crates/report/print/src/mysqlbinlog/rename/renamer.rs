//! `--raw --rewrite-db`: the events of a file, those that name a database under its new name, payloads opened.
//!
//! ```text
//! event that names no database   copied unchanged
//! event that may name one        held; its checksum is checked; rewritten if it does
//! payload                        held; expanded, and its events compressed again if one of them does
//! ```
//!
//! A rewritten event has a new size and checksum, and keeps the rest of its header. So the file's positions
//! and transaction lengths are still the server's, as in the files that mysqlbinlog writes. A checksum is
//! computed only for bytes whose old one was right.

use std::io::{self, Read, Write};

use binlogz_binlog::checksum::{CHECKSUM_SIZE, Crc32};
use binlogz_binlog::event::{
    CompressionType, FormatDescription, PostHeaderLengths, TransactionPayloadHeader,
};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{
    EVENT_SIZE_MAX, Error as BinlogError, EventHeader, EventParser, EventType, EventVisitor, Framing,
    StoredChecksum, VerifiedChecksum,
};
use binlogz_payload::{CompressionLevel, Compressor, Error, Expander, PayloadStream, Spool, SpoolMemory};

use super::{names_database, renamed_body};
use crate::met::{MetRequests, OptionPlaces};

/// Bytes of held events in memory; the rest goes to a temporary file.
const MEMORY_SIZE: usize = 8 << 20;

/// Bytes of held events read at once.
const STAGE_SIZE: usize = 128 << 10;

type Result<T> = std::result::Result<T, Error>;
type Renames = [(Vec<u8>, Vec<u8>)];

/// Renames databases in the events of files.
#[derive(Debug)]
pub struct Renamer {
    renames: Vec<(Vec<u8>, Vec<u8>)>,
    framing: Framing,
    lengths: PostHeaderLengths,
    codecs: Codecs,
    memory: SpoolMemory,
    event: EventRenaming,
    met: MetRequests,
}

/// The state of the current event.
#[derive(Debug)]
enum EventRenaming {
    /// The event's header is not whole yet.
    Header(Vec<u8>),
    /// The event's bytes were written as they are.
    Passed,
    Held(EventHeader, Spool),
}

#[derive(Debug)]
struct Codecs {
    expander: Expander,
    compressor: Compressor,
}

impl Renamer {
    /// Old and new names.
    ///
    /// # Errors
    ///
    /// No memory for libzstd.
    pub fn new(renames: Vec<(Vec<u8>, Vec<u8>)>) -> Result<Self> {
        // mysqlbinlog compresses at the server's default level, whatever level the server used.
        let compressor = Compressor::new(CompressionLevel::default())?;
        Ok(Renamer {
            renames,
            framing: Framing::new(),
            lengths: PostHeaderLengths::default(),
            codecs: Codecs { expander: Expander::new()?, compressor },
            memory: SpoolMemory::new(MEMORY_SIZE),
            event: EventRenaming::Header(Vec::new()),
            met: MetRequests::default(),
        })
    }

    /// Which rules applied so far.
    pub fn met(&self) -> MetRequests {
        self.met
    }

    /// Takes the next bytes of an event, and writes the result once it is known.
    ///
    /// # Errors
    ///
    /// An event that must be read and can't be; an output that fails.
    pub fn push(&mut self, bytes: &[u8], ends_event: bool, out: &mut impl Write) -> Result<()> {
        match &mut self.event {
            EventRenaming::Header(front) => {
                front.extend_from_slice(bytes);
                if front.len() >= HEADER_SIZE {
                    let front = std::mem::take(front);
                    self.event = self.begin(&front, out)?;
                }
            }
            EventRenaming::Passed => out.write_all(bytes)?,
            EventRenaming::Held(_, spool) => spool.append(bytes)?,
        }
        if !ends_event {
            return Ok(());
        }
        match std::mem::replace(&mut self.event, EventRenaming::Header(Vec::new())) {
            EventRenaming::Header(front) => {
                let left = front.len() as u64;
                Err(BinlogError::Truncated { needed: HEADER_SIZE as u64, left }.into())
            }
            EventRenaming::Passed => Ok(()),
            EventRenaming::Held(header, held) => self.finish(&header, &held, out),
        }
    }

    fn begin(&mut self, front: &[u8], out: &mut impl Write) -> Result<EventRenaming> {
        let header = EventHeader::decode(front)?;
        let event_type = header.event_type;
        if !names_database(event_type)
            && !matches!(event_type, EventType::FORMAT_DESCRIPTION | EventType::TRANSACTION_PAYLOAD)
        {
            out.write_all(front)?;
            return Ok(EventRenaming::Passed);
        }
        let mut held = Spool::new(&self.memory, Vec::new());
        held.append(front)?;
        Ok(EventRenaming::Held(header, held))
    }

    /// An event that was held is whole.
    fn finish(&mut self, header: &EventHeader, held: &Spool, out: &mut impl Write) -> Result<()> {
        let made = match header.event_type {
            EventType::FORMAT_DESCRIPTION => {
                self.format_description(held)?;
                None
            }
            _ => self.renamed(header, held)?,
        };
        match made {
            None => io::copy(&mut held.reader(0..held.size()), out).map(drop)?,
            Some(body) => self.write(header, &body, out)?,
        }
        Ok(())
    }

    fn format_description(&mut self, held: &Spool) -> Result<()> {
        let bytes = all(held)?;
        let left = bytes.len() as u64;
        let frame = Framing::new()
            .next_frame(&bytes)?
            .ok_or(BinlogError::Truncated { needed: left + 1, left })?
            .verify()?;
        let description = FormatDescription::decode_frame(&frame)?;
        self.framing = Framing::of(&description);
        self.lengths = PostHeaderLengths::from(&description);
        Ok(())
    }

    /// The new body of an event; `None` if it stays as it is.
    fn renamed(&mut self, header: &EventHeader, held: &Spool) -> Result<Option<Spool>> {
        let mut looker = Looker {
            renames: &self.renames,
            lengths: &self.lengths,
            framing: self.framing,
            codecs: &mut self.codecs,
            payload: None,
            body: Vec::new(),
            header: *header,
            inside: RenamedPayload::new(&self.renames, &self.lengths, &self.memory),
            made: None,
        };
        let mut parser = EventParser::new(self.framing, 0);
        let mut reader = held.reader(0..held.size());
        let mut stage = vec![0; STAGE_SIZE.min(usize::try_from(held.size()).unwrap_or(STAGE_SIZE))];
        loop {
            let count = reader.read(&mut stage)?;
            if count == 0 {
                break;
            }
            parser.push(stage.get(..count).unwrap_or_default(), &mut looker)?;
        }
        parser.finish()?;
        self.met.renames.union(looker.inside.applied);
        Ok(looker.made)
    }

    /// Writes an event whose body was made here.
    fn write(&self, header: &EventHeader, body: &Spool, out: &mut impl Write) -> Result<()> {
        let checksum_size = self.framing.checksum().size();
        let size = (HEADER_SIZE + checksum_size) as u64 + body.size();
        let event_size = u32::try_from(size).ok().filter(|&size| size <= EVENT_SIZE_MAX);
        let event_size = event_size
            .ok_or_else(|| BinlogError::invalid("event", "size under the new name", size, "at most 1 GiB"))?;
        let mut out = ChecksummedWriter { out, crc: Crc32::new() };
        out.write_all(&EventHeader { event_size, ..*header }.encode())?;
        io::copy(&mut body.reader(0..body.size()), &mut out)?;
        if checksum_size == CHECKSUM_SIZE {
            let ChecksummedWriter { out, crc } = out;
            out.write_all(&crc.finish().to_le_bytes())?;
        }
        Ok(())
    }
}

struct ChecksummedWriter<'a, W> {
    out: &'a mut W,
    crc: Crc32,
}

impl<W: Write> Write for ChecksummedWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.crc.update(bytes);
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn all(held: &Spool) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    held.reader(0..held.size()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads an event that was held.
struct Looker<'a> {
    renames: &'a Renames,
    lengths: &'a PostHeaderLengths,
    framing: Framing,
    codecs: &'a mut Codecs,
    header: EventHeader,
    payload: Option<PayloadStream>,
    body: Vec<u8>,
    inside: RenamedPayload<'a>,
    /// The new body, once the checksum of the old one was right.
    made: Option<Spool>,
}

impl EventVisitor for Looker<'_> {
    type Error = Error;

    fn begin(&mut self, offset: u64, header: &EventHeader) -> Result<()> {
        self.header = *header;
        if header.event_type == EventType::TRANSACTION_PAYLOAD {
            self.payload = Some(PayloadStream::begin(offset, header, self.framing));
        }
        Ok(())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(payload) = &mut self.payload else {
            self.body.extend_from_slice(bytes);
            return Ok(());
        };
        let Codecs { expander, compressor } = &mut *self.codecs;
        let bytes = payload.front(bytes, expander)?;
        if let Some(fields) = payload.fields()
            && !self.inside.is_begun
        {
            self.inside.is_begun = true;
            if fields.compression_type() == CompressionType::ZSTD {
                compressor.begin_unsized()?;
                self.inside.is_compressed = true;
            }
        }
        payload.body(bytes, expander, &mut CompressingWriter { inside: &mut self.inside, compressor })
    }

    fn end(&mut self, _: VerifiedChecksum) -> Result<()> {
        let made = &mut self.inside.made;
        let Some(payload) = &self.payload else {
            let EventHeader { event_type, .. } = self.header;
            let length = self.lengths.of(event_type);
            if let Some((rule, body)) = renamed_body(event_type, &self.body, length, self.renames)? {
                self.inside.applied.insert(rule);
                made.append(&body)?;
                self.made = Some(std::mem::replace(made, Spool::on_disk()));
            }
            return Ok(());
        };
        payload.end(&self.codecs.expander)?;
        if !self.inside.is_renamed {
            return Ok(());
        }
        let (compression_type, uncompressed_size) = match self.inside.is_compressed {
            true => {
                self.codecs.compressor.finish(made)?;
                (CompressionType::ZSTD, Some(self.inside.size))
            }
            false => (CompressionType::NONE, None),
        };
        let mut fields = Vec::new();
        TransactionPayloadHeader::new(compression_type, made.size(), uncompressed_size).encode(&mut fields);
        let mut body = Spool::new(&self.inside.memory, Vec::new());
        body.append(&fields)?;
        io::copy(&mut made.reader(0..made.size()), &mut body)?;
        self.made = Some(body);
        Ok(())
    }
}

/// The events of a payload under their new names.
struct RenamedPayload<'a> {
    renames: &'a Renames,
    lengths: &'a PostHeaderLengths,
    memory: SpoolMemory,
    is_begun: bool,
    is_compressed: bool,
    is_renamed: bool,
    /// The rules that applied.
    applied: OptionPlaces,
    /// The events' bytes, or the bytes that they are compressed to.
    made: Spool,
    /// Bytes of the events.
    size: u64,
    /// An event that may be renamed.
    held: Option<(EventHeader, Vec<u8>)>,
}

impl<'a> RenamedPayload<'a> {
    fn new(renames: &'a Renames, lengths: &'a PostHeaderLengths, memory: &SpoolMemory) -> Self {
        RenamedPayload {
            renames,
            lengths,
            memory: memory.clone(),
            is_begun: false,
            is_compressed: false,
            is_renamed: false,
            applied: OptionPlaces::default(),
            made: Spool::new(memory, Vec::new()),
            size: 0,
            held: None,
        }
    }
}

struct CompressingWriter<'a, 'i> {
    inside: &'a mut RenamedPayload<'i>,
    compressor: &'a mut Compressor,
}

impl CompressingWriter<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.inside.size += bytes.len() as u64;
        match self.inside.is_compressed {
            true => self.compressor.write(bytes, &mut self.inside.made),
            false => Ok(self.inside.made.append(bytes)?),
        }
    }
}

impl EventVisitor<StoredChecksum> for CompressingWriter<'_, '_> {
    type Error = Error;

    fn begin(&mut self, _: u64, header: &EventHeader) -> Result<()> {
        if names_database(header.event_type) {
            self.inside.held = Some((*header, Vec::new()));
            return Ok(());
        }
        self.put(&header.encode())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.inside.held {
            Some((_, body)) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            None => self.put(bytes),
        }
    }

    fn end(&mut self, _: StoredChecksum) -> Result<()> {
        let Some((header, body)) = self.inside.held.take() else { return Ok(()) };
        let length = self.inside.lengths.of(header.event_type);
        let renamed = renamed_body(header.event_type, &body, length, self.inside.renames)?;
        let body = match renamed {
            Some((rule, body)) => {
                self.inside.applied.insert(rule);
                self.inside.is_renamed = true;
                body
            }
            None => body,
        };
        let event_size = (HEADER_SIZE + body.len()) as u32;
        self.put(&EventHeader { event_size, ..header }.encode())?;
        self.put(&body)
    }
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::MAGIC;
    use binlogz_testkit::builder::{LogBuilder, PayloadBody, Release, inner_transaction};

    use super::*;

    /// A file's events after renaming, pushed in pieces of this size.
    fn renamed(log: &[u8], piece: usize, memory: usize) -> Result<Vec<u8>> {
        let mut renamer = Renamer::new(vec![(b"shop".to_vec(), b"another".to_vec())])?;
        renamer.memory = SpoolMemory::new(memory);
        let mut out = MAGIC.to_vec();
        let mut left = log.strip_prefix(&MAGIC).unwrap();
        while !left.is_empty() {
            let size = u32::from_le_bytes(left[9..13].try_into().unwrap()) as usize;
            let (event, rest) = left.split_at(size);
            let mut pieces = event.chunks(piece).peekable();
            while let Some(piece) = pieces.next() {
                renamer.push(piece, pieces.peek().is_none(), &mut out)?;
            }
            left = rest;
        }
        Ok(out)
    }

    fn log() -> Vec<u8> {
        let events = inner_transaction(&[b"three", b"four"]);
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        log.transaction(&[b"one", b"two"])
            .payload(&PayloadBody::zstd(&events))
            .payload(&PayloadBody::none(&events));
        log.bytes().to_vec()
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        let log = log();
        let whole = renamed(&log, usize::MAX, MEMORY_SIZE).unwrap();
        assert!(whole != log);
        for piece in [1, 7, 19, 100] {
            assert!(renamed(&log, piece, MEMORY_SIZE).unwrap() == whole, "{piece}");
            assert!(renamed(&log, piece, 0).unwrap() == whole, "{piece}, on disk");
        }
    }

    /// Changes each byte of each event that is read: none is rewritten with a checksum that fits the damage.
    #[test]
    fn no_checksum_is_made_of_bytes_whose_own_was_wrong() {
        let log = log();
        let whole = renamed(&log, usize::MAX, MEMORY_SIZE).unwrap();
        let mut begin = MAGIC.len();
        let mut refused = 0;
        while begin < log.len() {
            let end = begin + u32::from_le_bytes(log[begin + 9..begin + 13].try_into().unwrap()) as usize;
            let event_type = EventType(log[begin + 4]);
            let body = begin + HEADER_SIZE..end;
            for at in
                body.filter(|_| names_database(event_type) || event_type == EventType::TRANSACTION_PAYLOAD)
            {
                let mut damaged = log.clone();
                damaged[at] ^= 0x10;
                assert!(renamed(&damaged, usize::MAX, MEMORY_SIZE).is_err(), "{event_type} at {at}");
                refused += 1;
            }
            begin = end;
        }
        assert!(refused > 100 && !whole.is_empty());
    }
}
