//! Converts one stored transaction to a form: compressed, expanded, or at another position.
//!
//! The position writer fills in positions and checksums, after the checksums of all input have been verified: damage
//! ends the conversion. Converters are borrowed (`conversions.rs`), because zstd's contexts are large and there may
//! be many replicas.

use std::io::{self, Read, Write};
use std::ops::Range;

use binlogz_binlog::{Error as BinlogError, EventType};
use binlogz_payload::{
    CompressOptions, CompressionLevel, Library, PieceBytes, PieceContext, PositionWriter, Provenance, Recipe,
    RewrittenPiece, RewrittenSpan, Spool, SpoolMemory, TransactionCompressor, TransactionExpander,
};
use binlogz_relay_log::{Error, EventGroup, Form, GroupWalker, Result, StoredHead, verified};
use binlogz_store::{BinlogStore, FileNumber, LogReader};

use crate::{checked, clock};

/// Transactions up to this size are held in memory during conversion.
pub(crate) const HELD_SIZE_MAX: u64 = 1 << 20;
/// Size limit of reused buffers.
const BUFFER_SIZE_MAX: usize = 1 << 20;
/// How plain transactions are compressed for the form. The level is part of its coordinates: it never changes.
const OPTIONS: CompressOptions = CompressOptions {
    level: CompressionLevel::DEFAULT,
    library: Library::Linked,
    recipe: Recipe::Sized,
    mark_frames: true,
    marks: false,
};

/// The change that a form makes to a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormChange {
    None,
    Expand,
    Compress,
    /// Names the next file.
    Name,
}

impl FormChange {
    /// The change for a transaction, or an event between transactions, in a file that begins with `head`.
    pub(crate) fn of(group: &EventGroup, form: Form, head: &StoredHead) -> FormChange {
        match (form, group.payload) {
            (Form::Received, Some(Provenance::Binlogz)) | (Form::Uncompressed, Some(_)) => FormChange::Expand,
            (Form::Received, _) => FormChange::None,
            _ if group.first.event_type == EventType::ROTATE && !group.is_transaction => FormChange::Name,
            (Form::Compressed, None) if group.is_transaction && head.announces_payloads() => {
                FormChange::Compress
            }
            _ => FormChange::None,
        }
    }
}

/// A stored transaction and how to read it.
pub(crate) struct StoredGroup<'a> {
    pub store: &'a BinlogStore,
    pub file: FileNumber,
    pub head: &'a StoredHead,
    /// How much to subtract from its clock.
    pub clock: i64,
    /// The walker that found it.
    pub walker: &'a mut GroupWalker,
    /// Reads events that are too large to hold.
    pub(crate) bodies: &'a mut LogReader,
}

/// One zstd context for each direction, and buffers, all reused.
#[derive(Debug)]
pub(crate) struct Converter {
    expander: Option<TransactionExpander>,
    compressor: Option<TransactionCompressor>,
    memory: SpoolMemory,
    buffer: Vec<u8>,
    spool: Vec<u8>,
}

impl Converter {
    /// A converter that shares this memory with the others.
    pub(crate) fn new(memory: &SpoolMemory) -> Self {
        Converter {
            expander: None,
            compressor: None,
            memory: memory.clone(),
            buffer: Vec::new(),
            spool: Vec::new(),
        }
    }

    /// Writes the converted transaction.
    pub(crate) fn convert<W: Write>(
        &mut self,
        group: &EventGroup,
        change: FormChange,
        mut stored: StoredGroup<'_>,
        out: &mut PositionWriter<W>,
    ) -> Result<()> {
        let spool = Spool::new(&self.memory, std::mem::take(&mut self.spool));
        let held = group.size() <= HELD_SIZE_MAX;
        if held {
            self.hold(group, &mut stored)?;
        }
        let mut rewritten = self.rewrite(group, change, held, &mut stored, spool)?;
        if change == FormChange::Expand && group.expanded_size > rewritten.tally.uncompressed_bytes {
            let found = rewritten.tally.uncompressed_bytes;
            let declared = format!("{} bytes, and it holds {found}", group.expanded_size);
            let error = BinlogError::invalid("payload", "declared size", declared, "the size of its events");
            return Err(error.at(group.begin, Some(EventType::TRANSACTION_PAYLOAD)).into());
        }
        if stored.clock > 0 && group.first.event_type.is_gtid() {
            let event = self.first_event(group, held, &mut stored)?;
            let frame = verified(&event, stored.head.framing(), group.begin)?;
            clock::set_back(&frame, group, stored.clock, &mut rewritten)?;
        }
        match held {
            true => out.write(&mut rewritten, &mut self.buffer, |_, _| {})?,
            false => {
                let mut piece = StoredPiece { reader: stored.bodies, begin: group.begin };
                out.write(&mut rewritten, &mut piece, |_, _| {})?;
                // Only large transactions use large windows.
                (self.expander, self.compressor) = (None, None);
            }
        }
        self.spool = rewritten.spool.into_buffer();
        for buffer in [&mut self.spool, &mut self.buffer] {
            if buffer.capacity() > BUFFER_SIZE_MAX {
                *buffer = Vec::new();
            }
        }
        Ok(())
    }

    fn rewrite(
        &mut self,
        group: &EventGroup,
        change: FormChange,
        held: bool,
        stored: &mut StoredGroup<'_>,
        spool: Spool,
    ) -> Result<RewrittenPiece> {
        let context = stored.head.context();
        let announced = stored.head.announces_payloads();
        let place = PieceContext { offset: group.begin, context, announced };
        Ok(match change {
            FormChange::Expand => {
                let expander = match &mut self.expander {
                    Some(expander) => expander,
                    none => none.insert(TransactionExpander::new()?),
                };
                match held {
                    true => expander.batch(&self.buffer, place, spool)?,
                    false => {
                        stored.bodies.seek_to(group.begin);
                        expander.large(stored.bodies.by_ref().take(group.size()), place, spool)?
                    }
                }
            }
            FormChange::Compress => {
                let compressor = match &mut self.compressor {
                    Some(compressor) => compressor,
                    none => none.insert(TransactionCompressor::new(OPTIONS)?),
                };
                match held {
                    true => compressor.batch(&self.buffer, place, spool)?,
                    false => {
                        let store = stored.store;
                        let file = stored.file;
                        let reader = |range: Range<u64>| {
                            let reader = store.reader(file, group.begin + range.start);
                            Ok(reader.map_err(io::Error::other)?.take(range.end - range.start))
                        };
                        compressor.large(reader, group.size(), place, spool)?
                    }
                }
            }
            FormChange::None | FormChange::Name => {
                // The position writer verifies bytes that aren't held, when it reads them.
                if held {
                    checked::verify(&self.buffer, stored.head.framing(), group.begin)?;
                }
                let mut plain = RewrittenPiece::new(group.begin, context, spool, false);
                plain.spans.push(RewrittenSpan::Plain(0..group.size()));
                plain
            }
        })
    }

    /// The first event of a transaction.
    fn first_event(&self, group: &EventGroup, held: bool, stored: &mut StoredGroup<'_>) -> Result<Vec<u8>> {
        let size = group.first.event_size as usize;
        if held {
            return Ok(self.buffer.get(..size).unwrap_or_default().to_vec());
        }
        let mut event = Vec::new();
        stored.bodies.seek_to(group.begin);
        let reader = stored.bodies.by_ref().take(size as u64);
        { reader }.read_to_end(&mut event).map_err(Error::of_stored)?;
        Ok(event)
    }

    /// Reads a transaction into the buffer.
    fn hold(&mut self, group: &EventGroup, stored: &mut StoredGroup<'_>) -> Result<()> {
        self.buffer.clear();
        if let Some(bytes) = stored.walker.bytes(group)? {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.buffer.resize(group.size() as usize, 0);
        stored.bodies.seek_to(group.begin);
        stored.bodies.read_exact(&mut self.buffer).map_err(Error::of_stored)
    }
}

/// A transaction that is not held in memory.
struct StoredPiece<'a> {
    reader: &'a mut LogReader,
    begin: u64,
}

impl PieceBytes for StoredPiece<'_> {
    fn in_memory(&mut self, _: Range<u64>) -> Option<&mut [u8]> {
        None
    }

    fn reader(&mut self, range: Range<u64>) -> io::Result<Box<dyn Read + '_>> {
        self.reader.seek_to(self.begin + range.start);
        Ok(Box::new(self.reader.by_ref().take(range.end - range.start)))
    }
}
