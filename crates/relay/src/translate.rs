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
use std::sync::Arc;

use binlogz_payload::PositionWriter;
use binlogz_store::{FileNumber, LogReader};
use binlogz_wire::result_set::Row;
use binlogz_wire::statement::EventsWanted;

use crate::block::{Block, Placed};
use crate::checkpoints::{Checkpoints, Noting, Seen, Start};
use crate::conversions::{Key, Shared};
use crate::convert::{Change, Stored};
use crate::error::{Error, Result};
use crate::form::Form;
use crate::groups::{Group, GroupWalker};
use crate::head::Head;
use crate::lineages::Kept;
use crate::listing::Listing;
use crate::steering;

/// Bytes copied at a time.
const COPY_SIZE: usize = 32 << 10;

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
    /// Used again and again.
    buffer: Vec<u8>,
}

impl<'a, W: FormSink> Translator<'a, W> {
    /// At the beginning of a file.
    pub(crate) fn new(kept: &'a Kept, form: Form, file: FileNumber, out: W) -> Result<Self> {
        let head = Head::read(&kept.store, file)?;
        let begin = head.end();
        Translator::at(kept, form, file, &head, &Start { stored: begin, at: begin }, out)
    }

    /// At a place of a file that begins with `head`.
    pub(crate) fn at(
        kept: &'a Kept,
        form: Form,
        file: FileNumber,
        head: &Head,
        start: &Start,
        out: W,
    ) -> Result<Self> {
        Ok(Translator {
            form,
            file,
            out: PositionWriter::unbuffered(out, start.at, false),
            walker: GroupWalker::new(kept.store.reader(file, start.stored)?, head.framing(), start.stored),
            bodies: kept.store.reader(file, start.stored)?,
            places: kept.places(file, head),
            noting: Noting::default(),
            buffer: Vec::new(),
            kept,
            head: head.clone(),
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
        self.buffer = Vec::new();
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

    /// Whether a transaction, which stands in front of everything else, is not in the form as it is stored.
    pub(crate) fn is_converted(&self, group: &Group) -> bool {
        match self.change(group) {
            Change::None => self.out.offset() != group.begin,
            Change::Name => false,
            Change::Expand | Change::Compress => true,
        }
    }

    /// The transactions behind this place as others get them too; `None`: they are as they are stored, or there are
    /// none.
    pub(crate) fn block(&mut self) -> Result<Option<Shared>> {
        let start = Start { stored: self.walker.offset(), at: self.out.offset() };
        let Translator { kept, form, file, head, .. } = self;
        let key = Key { log: kept.number, file: *file, form: *form, stored: start.stored, at: start.at };
        let conversions = &kept.conversions;
        conversions.block(key, || Block::make(kept, *form, *file, head, &start, &conversions.memory))
    }

    /// Leaves out what keeps its size.
    pub(crate) fn pass(&mut self, group: &Group) -> Result<()> {
        self.skip_to(self.out.offset() + group.size())?;
        self.note(&Placed::new(group, 0..self.out.offset()));
        Ok(())
    }

    fn skip_to(&mut self, end: u64) -> Result<()> {
        self.out.move_to(end)?;
        self.sink()?.skip_to(end);
        Ok(())
    }

    /// Writes a transaction, or an event between transactions.
    pub(crate) fn put(&mut self, group: &Group) -> Result<()> {
        let begin = self.out.offset();
        self.write(group)?;
        self.note(&Placed::new(group, begin..self.out.offset()));
        Ok(())
    }

    /// Writes, or leaves out, the next transaction of a block.
    pub(crate) fn put_shared(&mut self, block: &Block, placed: &Placed, leave_out: bool) -> Result<()> {
        match leave_out {
            true => self.skip_to(placed.at.end)?,
            false => block.write(placed, &mut self.buffer, |bytes| Ok(self.out.as_is(bytes)?))?,
        }
        self.note(placed);
        Ok(())
    }

    /// A block was written.
    pub(crate) fn behind(&mut self, block: &Block) {
        self.walker.move_to(block.stored_end());
    }

    /// The same as [`Translator::put`], for someone who sees only some of the file: the index is not told.
    pub(crate) fn write(&mut self, group: &Group) -> Result<()> {
        match self.change(group) {
            Change::Name => {
                let next = self.kept.names.name(self.form, self.file.next());
                let event = steering::rotate(&group.first, self.out.offset(), &next, self.head.checksum());
                Ok(self.out.as_is(&event)?)
            }
            Change::None if self.out.offset() == group.begin => self.copy(group),
            change => {
                let Translator { kept, file, head, walker, bodies, .. } = self;
                let stored = Stored { store: &kept.store, file: *file, head, walker, bodies };
                kept.conversions.borrow().converter().convert(group, change, stored, &mut self.out)
            }
        }
    }

    fn note(&mut self, placed: &Placed) {
        if placed.event_type.is_gtid() {
            let Placed { stored, gtid, committed, at, .. } = placed;
            let seen = Seen { stored: stored.clone(), gtid: *gtid, committed: *committed };
            self.noting.transaction(&self.places, self.form, &seen, at.end);
        }
    }

    fn change(&self, group: &Group) -> Change {
        Change::of(group, self.form, &self.head)
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
