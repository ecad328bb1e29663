//! One file of a form: whole transactions, one behind the other, each where it stands in that form.
//!
//! ```text
//! stored                  received    compressed    uncompressed
//! plain                   as it is    compressed    as it is
//! a server's payload      as it is    as it is      expanded
//! a payload of ours       expanded    as it is      expanded
//! rotate                  as it is    names the next file of the form
//! ```
//!
//! A file of the uncompressed form may be a part of a stored file (`parts`): it ends with a rotate of its own.
//! Positions, lengths and checksums are those of the form. A byte that is not as it was stored goes out under its wrong
//! checksum where a transaction goes out as it is, and is an error where anything of it changes. What the bytes are written to is the caller's: a client, or
//! nothing where only positions are wanted.

use std::io::{self, Read, Write};
use std::sync::Arc;

use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{EventHeader, EventType, HeaderFlags, Verified};
use binlogz_payload::PositionWriter;
use binlogz_store::{FileNumber, LogReader};

use crate::block::{Block, Placed};
use crate::checkpoints::{Checkpoints, Noting, Seen, Start, in_part};
use crate::conversions::{Key, Shared};
use crate::convert::{Change, Stored};
use crate::error::{Error, Result};
use crate::form::Form;
use crate::groups::{Group, GroupWalker};
use crate::head::Head;
use crate::lineages::Kept;
use crate::parts::{FormFile, Part, verified};
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

/// Goes through a file of a form.
pub(crate) struct Translator<'a, W: FormSink> {
    kept: &'a Kept,
    form: Form,
    part: Arc<Part>,
    /// What stands in front of the transactions is still to be written.
    in_front: bool,
    out: PositionWriter<W>,
    walker: GroupWalker,
    /// For what is too large to be at hand.
    bodies: LogReader,
    places: Arc<Checkpoints>,
    noting: Noting,
    /// Used again and again.
    buffer: Vec<u8>,
}

/// A place in a file of a form, with all that is opened to go on from there.
pub(crate) struct Opened {
    form: Form,
    part: Arc<Part>,
    start: Start,
    walked: LogReader,
    bodies: LogReader,
}

impl Opened {
    /// The beginning of a file.
    pub(crate) fn new(kept: &Kept, form: Form, file: FormFile) -> Result<Self> {
        let part = kept.part(form, file, None)?;
        let start = part.start();
        Opened::at(kept, form, &Arc::new(part), start)
    }

    fn at(kept: &Kept, form: Form, part: &Arc<Part>, start: Start) -> Result<Self> {
        let open = || kept.store.reader(part.of.file, start.stored);
        Ok(Opened { form, part: Arc::clone(part), walked: open()?, bodies: open()?, start })
    }
}

impl<'a, W: FormSink> Translator<'a, W> {
    /// At the beginning of a file.
    pub(crate) fn new(kept: &'a Kept, form: Form, file: FormFile, out: W) -> Result<Self> {
        Ok(Translator::from(kept, Opened::new(kept, form, file)?, out))
    }

    /// At the beginning of a file that is open.
    pub(crate) fn of(kept: &'a Kept, form: Form, part: Part, out: W) -> Result<Self> {
        let start = part.start();
        Translator::at(kept, form, &Arc::new(part), &start, out)
    }

    /// At a place of a file.
    pub(crate) fn at(kept: &'a Kept, form: Form, part: &Arc<Part>, start: &Start, out: W) -> Result<Self> {
        Ok(Translator::from(kept, Opened::at(kept, form, part, start.clone())?, out))
    }

    /// At a place that is open.
    pub(crate) fn from(kept: &'a Kept, opened: Opened, out: W) -> Self {
        let Opened { form, part, start, walked, bodies } = opened;
        Translator {
            form,
            in_front: start == part.start(),
            out: PositionWriter::unbuffered(out, start.at, false),
            walker: GroupWalker::new(walked, part.head.framing(), start.stored),
            bodies,
            places: kept.places(part.of.file, &part.stored_head),
            noting: noting_from(&part, &start),
            buffer: Vec::new(),
            kept,
            part,
        }
    }

    /// Goes on at the beginning of the next stored file, or another one.
    pub(crate) fn turn_to(&mut self, file: FileNumber) -> Result<()> {
        let number = Some(self.part.number.next()).filter(|_| file == self.part.of.file.next());
        self.part = Arc::new(self.kept.part(self.form, FormFile::first_of(file), number)?);
        self.places = self.kept.places(file, &self.part.stored_head);
        self.bodies = self.kept.store.reader(file, 0)?;
        self.begin(&self.part.start())
    }

    /// Goes on in the next part of this stored file, whose first transaction is the next one.
    pub(crate) fn turn_to_next_part(&mut self) -> Result<()> {
        let of = FormFile { part: self.part.of.part + 1, ..self.part.of };
        self.part = Arc::new(self.kept.part(self.form, of, Some(self.part.number.next()))?);
        self.walker.move_to(self.part.stored);
        self.in_front = true;
        Ok(self.out.move_to(self.part.head.end())?)
    }

    /// The last place of the index at or before a position of this file.
    pub(crate) fn before(&self, position: u64) -> Option<Start> {
        let part = self.part.of.part;
        self.places.before(self.form, in_part(part, position))?.within(part)
    }

    /// The last place of this file in front of which there is nothing that is not in `has`.
    pub(crate) fn behind_gtids(&self, has: &GtidSet) -> Option<Start> {
        self.places.behind_gtids(self.form, has)?.within(self.part.of.part)
    }

    /// Goes on at a place of this file; if it turns out to be none, at the file's beginning.
    pub(crate) fn begin_at(&mut self, start: &Start) -> Result<()> {
        self.begin(start)?;
        if self.walker.is_between_events()? {
            return Ok(());
        }
        self.places.forget();
        self.begin(&self.part.start())
    }

    fn begin(&mut self, start: &Start) -> Result<()> {
        let reader = self.kept.store.reader(self.part.of.file, start.stored)?;
        self.walker = GroupWalker::new(reader, self.part.head.framing(), start.stored);
        self.noting = noting_from(&self.part, start);
        self.in_front = *start == self.part.start();
        Ok(self.out.move_to(start.at)?)
    }

    /// The stored file.
    pub(crate) fn file(&self) -> FileNumber {
        self.part.of.file
    }

    /// The file's name in the form.
    pub(crate) fn name(&self) -> String {
        self.kept.names.name(self.form, self.part.number)
    }

    pub(crate) fn part(&self) -> &Arc<Part> {
        &self.part
    }

    pub(crate) fn head(&self) -> &Head {
        &self.part.head
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

    /// Whether something stands in front of the transactions that is still to be written.
    pub(crate) fn is_in_front(&self) -> bool {
        self.in_front && !self.part.front.is_empty()
    }

    /// Writes what stands in front of the transactions and not in the stored file.
    pub(crate) fn put_front(&mut self) -> Result<()> {
        if std::mem::take(&mut self.in_front) {
            self.out.as_is(&self.part.front)?;
        }
        Ok(())
    }

    /// Whether the file of the form ends in front of this transaction, which was told last.
    pub(crate) fn is_cut(&self, group: &Group) -> Result<bool> {
        // What counts for a cut is never more than what was written.
        let may_be = self.form == Form::Uncompressed
            && group.first.event_type.is_gtid()
            && group.begin > self.part.stored
            && self.out.offset() >= self.kept.cuts.limit();
        Ok(may_be && self.kept.cuts.is_at(&self.kept.store, self.part.of.file, group.begin)?)
    }

    /// Ends a file of the form in front of this transaction: with an event that names the next one.
    pub(crate) fn put_end(&mut self, group: &Group) -> Result<()> {
        let header = EventHeader {
            event_type: EventType::ROTATE,
            server_id: self.part.head.header.server_id,
            flags: HeaderFlags::default(),
            ..group.first
        };
        let not_gtid =
            || Error::Refused(format!("a file is cut at {}, where no GTID event stands", group.begin));
        let event = self.rotate(&header, group.verified.ok_or_else(not_gtid)?);
        Ok(self.out.as_is(&event)?)
    }

    fn rotate(&self, header: &EventHeader, verified: Verified) -> Vec<u8> {
        let next = self.kept.names.name(self.form, self.part.number.next());
        steering::rotate(header, verified, self.out.offset(), &next, self.part.head.checksum())
    }

    /// What was collected for the index since its last place.
    pub(crate) fn into_noting(self) -> Noting {
        self.noting
    }

    /// The file was gone through: what was seen is kept.
    pub(crate) fn finish_file(&mut self) {
        let end = self.walker.offset();
        let closed = self.kept.store.positions().is_some_and(|now| now.durable.file > self.file());
        if closed && self.walker.end().is_ok_and(|whole| whole == end) {
            let at = in_part(self.part.of.part, self.out.offset());
            self.noting.end(&self.places, self.form, end, at);
        }
        // An index that can't be written is made again by the next one who needs it.
        let _ = self.places.save(end, true);
    }

    /// Whether a transaction has in the form the size that it has in the stored file.
    pub(crate) fn keeps_size(&self, group: &Group) -> bool {
        let is_reclocked = self.part.clock > 0 && group.first.event_type == EventType::GTID_TAGGED;
        self.change(group) == Change::None && !is_reclocked
    }

    /// Whether a transaction, which stands in front of everything else, is not in the form as it is stored.
    pub(crate) fn is_converted(&self, group: &Group) -> bool {
        match self.change(group) {
            Change::None => !self.part.is_as_stored(self.out.offset(), group),
            Change::Name => false,
            Change::Expand | Change::Compress => true,
        }
    }

    /// The transactions behind this place as others get them too; `None`: they are as they are stored, or there are
    /// none.
    pub(crate) fn block(&mut self) -> Result<Option<Shared>> {
        let start = Start { stored: self.walker.offset(), at: self.out.offset() };
        let Translator { kept, form, part, .. } = self;
        let key = Key { log: kept.number, file: part.of, form: *form, stored: start.stored, at: start.at };
        let conversions = &kept.conversions;
        conversions.block(key, || Block::make(kept, *form, part, &start, &conversions.memory))
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
                let framing = self.part.head.framing();
                let too_large =
                    || Error::Refused(format!("the rotate event at {} is too large", group.begin));
                let event = self.walker.bytes(group)?.ok_or_else(too_large)?;
                let frame = verified(event, framing, group.begin)?;
                let (header, proof) = (*frame.header(), frame.proof());
                let event = self.rotate(&header, proof);
                Ok(self.out.as_is(&event)?)
            }
            Change::None if self.part.is_as_stored(self.out.offset(), group) => self.copy(group),
            change => {
                let Translator { kept, part, walker, bodies, .. } = self;
                let (file, head, clock) = (part.of.file, &part.head, part.clock);
                let stored = Stored { store: &kept.store, file, head, clock, walker, bodies };
                kept.conversions.borrow().converter().convert(group, change, stored, &mut self.out)
            }
        }
    }

    fn note(&mut self, placed: &Placed) {
        if placed.event_type.is_gtid() {
            let Placed { stored, gtid, committed, at, .. } = placed;
            let seen = Seen { stored: stored.clone(), gtid: *gtid, committed: *committed };
            self.noting.transaction(&self.places, self.form, &seen, in_part(self.part.of.part, at.end));
        }
    }

    fn change(&self, group: &Group) -> Change {
        Change::of(group, self.form, &self.part.head)
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

/// Whoever begins with a later part of a stored file has not seen what is in front of it.
fn noting_from(part: &Part, start: &Start) -> Noting {
    match (*start == part.start(), part.of.part) {
        (true, 0) => Noting::default(),
        (true, _) => Noting::between_places(),
        (false, _) => Noting::at_place(start.stored),
    }
}
