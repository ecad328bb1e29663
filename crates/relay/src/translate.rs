//! One stored file in one form: whole transactions, one behind the other, each where it stands in that form.
//!
//! ```text
//! stored                  received    compressed    uncompressed
//! plain                   as it is    compressed    as it is
//! a server's payload      as it is    as it is      expanded
//! a payload of ours       expanded    as it is      expanded
//! rotate                  as it is    names the next file of the form
//! ```
//!
//! Positions, lengths and checksums are those of the form. What the bytes are written to is the caller's: a client, or
//! nothing where only positions are wanted.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_payload::rewritten::Span;
use binlogz_payload::{
    CompressOptions, CompressionLevel, PieceBytes, Place, PositionWriter, Provenance, Rewritten, Spool,
    SpoolMemory, TransactionCompressor, TransactionExpander,
};
use binlogz_store::{FileNumber, LogReader};
use binlogz_wire::result_set::Row;
use binlogz_wire::statement::EventsWanted;

use crate::checkpoints::{Checkpoints, Noting, Seen, Start};
use crate::error::{Error, Result};
use crate::form::Form;
use crate::groups::{Group, GroupWalker, HELD_SIZE_MAX};
use crate::head::Head;
use crate::lineages::Kept;
use crate::listing::Listing;
use crate::steering;

/// Rewritten bytes held in memory; the rest goes to a temporary file.
const SPOOL_SIZE: usize = 8 << 20;
/// Bytes copied at a time.
const COPY_SIZE: usize = 256 << 10;
/// Of buffers that are used again.
const BUFFER_SIZE_MAX: usize = 1 << 20;
/// At which plain transactions are compressed for the form. Part of its coordinates: it never changes.
const LEVEL: CompressionLevel = CompressionLevel::DEFAULT;

/// What a form is written to.
pub(crate) trait FormSink: Write {
    /// Nothing is written up to there.
    fn skip_to(&mut self, position: u64);
}

impl FormSink for io::Sink {
    fn skip_to(&mut self, _: u64) {}
}

/// Goes through a file.
pub(crate) struct Translator<'a, W: FormSink> {
    kept: &'a Kept,
    form: Form,
    file: FileNumber,
    head: Head,
    out: PositionWriter<W>,
    walker: GroupWalker,
    /// For what is too large to be at hand.
    bodies: LogReader,
    places: Arc<Checkpoints>,
    noting: Noting,
    expander: Option<TransactionExpander>,
    compressor: Option<TransactionCompressor>,
    memory: SpoolMemory,
    /// Used again and again.
    buffer: Vec<u8>,
    spool: Vec<u8>,
}

impl<'a, W: FormSink> Translator<'a, W> {
    /// At the beginning of a file.
    pub(crate) fn new(kept: &'a Kept, form: Form, file: FileNumber, out: W) -> Result<Self> {
        let head = Head::read(&kept.store, file)?;
        let begin = head.end();
        Ok(Translator {
            form,
            file,
            out: PositionWriter::unbuffered(out, begin, false),
            walker: GroupWalker::new(kept.store.reader(file, begin)?, head.framing(), begin),
            bodies: kept.store.reader(file, begin)?,
            places: kept.places(file, &head),
            noting: Noting::default(),
            expander: None,
            compressor: None,
            memory: SpoolMemory::new(SPOOL_SIZE),
            buffer: Vec::new(),
            spool: Vec::new(),
            kept,
            head,
        })
    }

    /// Goes on at the beginning of another file.
    pub(crate) fn turn_to(&mut self, file: FileNumber) -> Result<()> {
        self.head = Head::read(&self.kept.store, file)?;
        self.file = file;
        self.places = self.kept.places(file, &self.head);
        self.bodies = self.kept.store.reader(file, 0)?;
        let begin = self.head.end();
        self.begin(&Start { stored: begin, at: begin })
    }

    /// Goes on at a place of this file; if it turns out to be none, at the file's beginning.
    pub(crate) fn begin_at(&mut self, start: &Start) -> Result<()> {
        self.begin(start)?;
        if self.walker.is_between_events()? {
            return Ok(());
        }
        self.places.forget();
        let begin = self.head.end();
        self.begin(&Start { stored: begin, at: begin })
    }

    fn begin(&mut self, start: &Start) -> Result<()> {
        let reader = self.kept.store.reader(self.file, start.stored)?;
        self.walker = GroupWalker::new(reader, self.head.framing(), start.stored);
        self.noting = Noting::default();
        Ok(self.out.move_to(start.at)?)
    }

    pub(crate) fn file(&self) -> FileNumber {
        self.file
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    pub(crate) fn places(&self) -> &Checkpoints {
        &self.places
    }

    /// What is behind it in the stored file.
    pub(crate) fn walker(&mut self) -> &mut GroupWalker {
        &mut self.walker
    }

    /// Where the next event goes in the form.
    pub(crate) fn offset(&self) -> u64 {
        self.out.offset()
    }

    pub(crate) fn sink(&mut self) -> Result<&mut W> {
        Ok(self.out.inner()?)
    }

    /// Nothing is to come for a while.
    pub(crate) fn release(&mut self) {
        self.walker.release();
        (self.expander, self.compressor) = (None, None);
        (self.buffer, self.spool) = (Vec::new(), Vec::new());
    }

    /// The file was gone through: what was seen is kept.
    pub(crate) fn finish_file(&mut self) {
        let end = self.walker.offset();
        let closed = self.kept.store.positions().is_some_and(|now| now.durable.file > self.file);
        if closed && self.walker.end().is_ok_and(|whole| whole == end) {
            self.noting.end(&self.places, self.form, end, self.out.offset());
        }
        // An index that can't be written is made again by the next one who needs it.
        let _ = self.places.save(end, true);
    }

    /// Whether a transaction has in the form the size that it has in the stored file.
    pub(crate) fn keeps_size(&self, group: &Group) -> bool {
        self.change(group) == Change::None
    }

    /// Leaves out what keeps its size.
    pub(crate) fn pass(&mut self, group: &Group) -> Result<()> {
        let end = self.out.offset() + group.size();
        self.out.move_to(end)?;
        self.sink()?.skip_to(end);
        self.note(group);
        Ok(())
    }

    /// Writes a transaction, or an event between transactions.
    pub(crate) fn put(&mut self, group: &Group) -> Result<()> {
        match self.change(group) {
            Change::Name => {
                let next = self.kept.names.name(self.form, self.file.next());
                let event = steering::rotate(&group.first, self.out.offset(), &next, self.head.checksum());
                self.out.as_is(&event)?;
            }
            Change::None if self.out.offset() == group.begin => self.copy(group)?,
            change => self.rewrite(group, change)?,
        }
        self.note(group);
        Ok(())
    }

    fn note(&mut self, group: &Group) {
        if group.first.event_type.is_gtid() {
            let seen = Seen { stored: group.begin..group.end, gtid: group.gtid, committed: group.committed };
            self.noting.transaction(&self.places, self.form, &seen, self.out.offset());
        }
    }

    fn change(&self, group: &Group) -> Change {
        match (self.form, group.payload) {
            (Form::Received, Some(Provenance::Binlogz)) | (Form::Uncompressed, Some(_)) => Change::Expand,
            (Form::Received, _) => Change::None,
            _ if group.first.event_type == EventType::ROTATE && !group.is_transaction => Change::Name,
            (Form::Compressed, None) if group.is_transaction && self.head.announces_payloads() => {
                Change::Compress
            }
            _ => Change::None,
        }
    }

    fn copy(&mut self, group: &Group) -> Result<()> {
        if let Some(bytes) = self.walker.bytes(group)? {
            return Ok(self.out.as_is(bytes)?);
        }
        self.bodies.seek_to(group.begin);
        let mut left = group.size();
        self.buffer.resize(COPY_SIZE, 0);
        while left > 0 {
            let room = usize::try_from(left).unwrap_or(COPY_SIZE).min(COPY_SIZE);
            let chunk = self.buffer.get_mut(..room).unwrap_or_default();
            self.bodies.read_exact(chunk).map_err(Error::io("read a stored log"))?;
            self.out.as_is(chunk)?;
            left -= room as u64;
        }
        Ok(())
    }

    fn rewrite(&mut self, group: &Group, change: Change) -> Result<()> {
        let place = Place {
            offset: group.begin,
            context: self.head.context(),
            announced: self.head.announces_payloads(),
        };
        let spool = Spool::new(&self.memory, std::mem::take(&mut self.spool));
        let held = match self.walker.bytes(group)? {
            Some(bytes) => {
                self.buffer.clear();
                self.buffer.extend_from_slice(bytes);
                true
            }
            None => false,
        };
        // What was begun before the index's place is not at hand, however small it is.
        let held = held || (group.size() <= HELD_SIZE_MAX && self.read_group(group)?);
        let mut rewritten = match change {
            Change::Expand => {
                let expander = match &mut self.expander {
                    Some(expander) => expander,
                    none => none.insert(TransactionExpander::new()?),
                };
                match held {
                    true => expander.batch(&self.buffer, place, spool)?,
                    false => {
                        self.bodies.seek_to(group.begin);
                        expander.large(self.bodies.by_ref().take(group.size()), place, spool)?
                    }
                }
            }
            Change::Compress => {
                let compressor = match &mut self.compressor {
                    Some(compressor) => compressor,
                    none => none.insert(TransactionCompressor::new(OPTIONS)?),
                };
                match held {
                    true => compressor.batch(&self.buffer, place, spool)?,
                    false => {
                        let (store, file) = (&self.kept.store, self.file);
                        let reader = |range: Range<u64>| {
                            let reader = store.reader(file, group.begin + range.start);
                            Ok(reader.map_err(io::Error::other)?.take(range.end - range.start))
                        };
                        compressor.large(reader, group.size(), place, spool)?
                    }
                }
            }
            Change::None | Change::Name => {
                let mut plain = Rewritten::new(group.begin, place.context, spool, false);
                plain.spans.push(Span::Plain(0..group.size()));
                plain
            }
        };
        if held {
            self.out.write(&mut rewritten, &mut self.buffer, |_, _| {})?;
        } else {
            let mut piece = StoredPiece { reader: &mut self.bodies, begin: group.begin };
            self.out.write(&mut rewritten, &mut piece, |_, _| {})?;
        }
        self.spool = rewritten.spool.into_buffer();
        if self.spool.capacity() > BUFFER_SIZE_MAX {
            self.spool = Vec::new();
        }
        Ok(())
    }

    fn read_group(&mut self, group: &Group) -> Result<bool> {
        self.buffer.resize(group.size() as usize, 0);
        self.bodies.seek_to(group.begin);
        self.bodies.read_exact(&mut self.buffer).map_err(Error::io("read a stored log"))?;
        Ok(true)
    }
}

/// How plain transactions are compressed for the form.
const OPTIONS: CompressOptions = CompressOptions { level: LEVEL, mark_frames: true, marks: false };

/// What a form makes of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Expand,
    Compress,
    Name,
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

/// Where what is durable of a file ends in a form.
pub(crate) fn end_of(kept: &Kept, form: Form, file: FileNumber) -> Result<u64> {
    go_to_end(kept, form, file).map(|(end, _)| end)
}

/// The same, with what was collected for the index since its last place.
pub(crate) fn go_to_end(kept: &Kept, form: Form, file: FileNumber) -> Result<(u64, Noting)> {
    let mut translator = Translator::new(kept, form, file, io::sink())?;
    if let Some(start) = translator.places.before(form, u64::MAX) {
        translator.begin_at(&start)?;
    }
    while let Some(group) = translator.walker.next()? {
        match translator.keeps_size(&group) {
            true => translator.pass(&group)?,
            false => translator.put(&group)?,
        }
    }
    if let Some(left) = translator.walker.left() {
        translator.put(&left)?;
    }
    translator.finish_file();
    Ok((translator.offset(), translator.noting))
}

/// Lists the events of a file in a form, as far as they are durable.
pub(crate) fn list_events(
    kept: &Kept,
    form: Form,
    file: FileNumber,
    wanted: &EventsWanted,
) -> Result<Result<Vec<Row>, String>> {
    let name = kept.names.name(form, file);
    let listing = Listing::new(name, &Head::read(&kept.store, file)?, wanted);
    let from = listing.from();
    let mut translator = Translator::new(kept, form, file, listing)?;
    if let Some(start) = translator.places.before(form, from) {
        translator.begin_at(&start)?;
        let at = translator.offset();
        translator.sink()?.skip_to(at);
    }
    while !translator.sink()?.is_done() {
        let Some(group) = translator.walker.next()? else { break };
        let unseen = translator.offset() + group.size() <= from && translator.keeps_size(&group);
        let done = if unseen { translator.pass(&group) } else { translator.put(&group) };
        if translator.sink()?.is_done() {
            break;
        }
        done?;
    }
    Ok(translator.sink()?.finish())
}
