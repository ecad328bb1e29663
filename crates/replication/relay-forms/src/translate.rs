//! One file of a form: whole transactions, one after the other, each at its position in that form.
//!
//! ```text
//! stored                  received    compressed    uncompressed
//! plain                   as it is    compressed    as it is
//! a server's payload      as it is    as it is      expanded
//! a payload of ours       expanded    as it is      expanded
//! rotate                  as it is    names the next file of the form
//! ```
//!
//! A file of the uncompressed form may be a part of a stored file (`parts`): it ends with a rotate of its own. Positions,
//! lengths and checksums are those of the form. No byte of an event goes out before the event is compared with its
//! checksum, even in a transaction that is sent unchanged (`checked`): a damaged byte is an error. The caller supplies
//! the sink: a client, or nothing if only positions are needed.

use std::io::{self, Write};
use std::sync::Arc;

use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{Error as BinlogError, EventHeader, EventType, HeaderFlags, VerifiedChecksum};
use binlogz_payload::PositionWriter;
use binlogz_relay_log::{
    Checkpoints, Error, EventGroup, FilePart, Form, FormFile, GroupWalker, GtidCollector, LineageLog, Result,
    SeenTransaction, StartOffsets, StoredHead, in_part, verified,
};
use binlogz_store::{FileNumber, LogReader};

use crate::block::{Block, PlacedTransaction};
use crate::convert::{FormChange, StoredGroup};
use crate::forms::Forms;
use crate::masked::PlacedMasker;
use crate::{artificial_events, checked};

/// The sink that a form is written to.
pub trait FormSink: Write {
    /// Skips to this position without writing.
    fn skip_to(&mut self, position: u64);
}

impl FormSink for io::Sink {
    fn skip_to(&mut self, _: u64) {}
}

/// Goes through a file of a form, and writes it to a sink.
pub struct Translator<'a, W: FormSink> {
    pub(crate) forms: Forms<'a>,
    pub(crate) form: Form,
    pub(crate) part: Arc<FilePart>,
    /// Whether the events before the transactions are still to be written.
    in_front: bool,
    pub(crate) out: PositionWriter<W>,
    walker: GroupWalker,
    /// Reads events that are too large to hold.
    bodies: LogReader,
    places: Arc<Checkpoints>,
    noting: GtidCollector,
    pub(crate) buffer: Vec<u8>,
    /// Masks what follows the transaction that was masked last.
    pub(crate) masker: Option<PlacedMasker>,
}

/// A position in a file of a form, with everything opened to continue from there.
pub struct OpenedFile {
    form: Form,
    part: Arc<FilePart>,
    start: StartOffsets,
    walked: LogReader,
    bodies: LogReader,
}

impl OpenedFile {
    /// The beginning of a file.
    pub fn new(kept: &LineageLog, form: Form, file: FormFile) -> Result<Self> {
        let part = kept.part(form, file, None)?;
        let start = part.start();
        OpenedFile::at(kept, form, &Arc::new(part), start)
    }

    fn at(kept: &LineageLog, form: Form, part: &Arc<FilePart>, start: StartOffsets) -> Result<Self> {
        let open = || kept.store.reader(part.of.file, start.stored);
        Ok(OpenedFile { form, part: Arc::clone(part), walked: open()?, bodies: open()?, start })
    }
}

impl<'a, W: FormSink> Translator<'a, W> {
    /// Starts at the beginning of a file.
    pub fn new(forms: Forms<'a>, form: Form, file: FormFile, out: W) -> Result<Self> {
        Ok(Translator::from(forms, OpenedFile::new(forms.kept, form, file)?, out))
    }

    /// Starts at the beginning of an open file.
    pub fn of(forms: Forms<'a>, form: Form, part: FilePart, out: W) -> Result<Self> {
        let start = part.start();
        Translator::at(forms, form, &Arc::new(part), &start, out)
    }

    /// Starts at a position of a file.
    pub fn at(
        forms: Forms<'a>,
        form: Form,
        part: &Arc<FilePart>,
        start: &StartOffsets,
        out: W,
    ) -> Result<Self> {
        Ok(Translator::from(forms, OpenedFile::at(forms.kept, form, part, start.clone())?, out))
    }

    /// Starts at a position that is already open.
    pub fn from(forms: Forms<'a>, opened: OpenedFile, out: W) -> Self {
        let OpenedFile { form, part, start, walked, bodies } = opened;
        Translator {
            form,
            in_front: start == part.start(),
            out: PositionWriter::unbuffered(out, start.at, false),
            walker: GroupWalker::new(walked, part.head.framing(), start.stored),
            bodies,
            places: forms.kept.places(part.of.file, &part.stored_head),
            noting: noting_from(&part, &start),
            buffer: Vec::new(),
            masker: None,
            forms,
            part,
        }
    }

    /// Continues at the beginning of the next stored file, or another one.
    pub fn turn_to(&mut self, file: FileNumber) -> Result<()> {
        let number = Some(self.part.number.next()).filter(|_| file == self.part.of.file.next());
        self.part = Arc::new(self.forms.kept.part(self.form, FormFile::first_of(file), number)?);
        self.places = self.forms.kept.places(file, &self.part.stored_head);
        self.bodies = self.forms.kept.store.reader(file, 0)?;
        self.begin(&self.part.start())
    }

    /// Continues in the next part of this stored file, whose first transaction is the next one.
    pub fn turn_to_next_part(&mut self) -> Result<()> {
        let of = FormFile { part: self.part.of.part + 1, ..self.part.of };
        self.part = Arc::new(self.forms.kept.part(self.form, of, Some(self.part.number.next()))?);
        self.walker.move_to(self.part.stored);
        self.in_front = true;
        Ok(self.out.move_to(self.part.head.end())?)
    }

    /// The last checkpoint at or before a position of this file.
    pub fn before(&self, position: u64) -> Option<StartOffsets> {
        let part = self.part.of.part;
        if let Some(exits) = self.forms.exits {
            return exits.before(self.forms.kept.id, self.part.of, position);
        }
        self.places.before(self.form, in_part(part, position))?.within(part)
    }

    /// The last checkpoint of this file such that every transaction before it is in `has`.
    pub fn behind_gtids(&self, has: &GtidSet) -> Option<StartOffsets> {
        if let Some(exits) = self.forms.exits {
            // Where it is in the stored file is known of the form in which that was received.
            let stored = self.places.behind_gtids(Form::Received, has)?.stored;
            return exits.before_stored(self.forms.kept.id, self.part.of, stored);
        }
        self.places.behind_gtids(self.form, has)?.within(self.part.of.part)
    }

    /// Continues at a checkpoint of this file, or at the file's beginning if the checkpoint is invalid.
    pub fn begin_at(&mut self, start: &StartOffsets) -> Result<()> {
        self.begin(start)?;
        if self.walker.is_between_events()? {
            return Ok(());
        }
        match self.forms.exits {
            Some(exits) => exits.forget(self.forms.kept.id, self.part.of),
            None => self.places.forget(),
        }
        self.begin(&self.part.start())
    }

    fn begin(&mut self, start: &StartOffsets) -> Result<()> {
        let reader = self.forms.kept.store.reader(self.part.of.file, start.stored)?;
        self.walker = GroupWalker::new(reader, self.part.head.framing(), start.stored);
        self.noting = noting_from(&self.part, start);
        self.in_front = *start == self.part.start();
        Ok(self.out.move_to(start.at)?)
    }

    /// The stored file.
    pub fn file(&self) -> FileNumber {
        self.part.of.file
    }

    /// The file's name in the form.
    pub fn name(&self) -> String {
        self.forms.name(self.form, self.part.number)
    }

    /// The file of the form.
    pub fn part(&self) -> &Arc<FilePart> {
        &self.part
    }

    /// The format description that the file of the form begins with.
    pub fn head(&self) -> &StoredHead {
        &self.part.head
    }

    /// Walks the rest of the stored file.
    pub fn walker(&mut self) -> &mut GroupWalker {
        &mut self.walker
    }

    /// The position of the next event in the form.
    pub fn offset(&self) -> u64 {
        self.out.offset()
    }

    /// The sink.
    ///
    /// # Errors
    ///
    /// An earlier write to it failed.
    pub fn sink(&mut self) -> Result<&mut W> {
        Ok(self.out.inner()?)
    }

    /// Frees memory, before a pause.
    pub fn release(&mut self) {
        self.walker.release();
        self.buffer = Vec::new();
    }

    /// Whether events before the transactions are still to be written.
    pub fn is_in_front(&self) -> bool {
        self.in_front && !self.part.front.is_empty()
    }

    /// Writes the events that precede the transactions and are not in the stored file.
    pub fn put_front(&mut self) -> Result<()> {
        if std::mem::take(&mut self.in_front) {
            self.out.as_is(&self.part.front)?;
        }
        Ok(())
    }

    /// Whether the file of the form ends before this transaction, which was read last.
    pub fn is_cut(&self, group: &EventGroup) -> Result<bool> {
        // A cut never counts more bytes than were written, unless masks made them fewer.
        let may_be = self.form == Form::Uncompressed
            && group.first.event_type.is_gtid()
            && group.begin > self.part.stored
            && (self.out.offset() >= self.forms.kept.cuts.limit() || self.forms.exits.is_some());
        Ok(may_be && self.forms.kept.cuts.is_at(&self.forms.kept.store, self.part.of.file, group.begin)?)
    }

    /// Ends a file of the form before this transaction, with an event that names the next file.
    pub fn put_end(&mut self, group: &EventGroup) -> Result<()> {
        let header = EventHeader {
            event_type: EventType::ROTATE,
            server_id: self.part.head.header.server_id,
            flags: HeaderFlags::default(),
            ..group.first
        };
        let not_gtid = || {
            let found = group.first.event_type;
            let error = BinlogError::invalid("file that is cut", "event at the cut", found, "a GTID event");
            error.at(group.begin, Some(found))
        };
        let event = self.rotate(&header, group.verified.ok_or_else(not_gtid)?);
        Ok(self.out.as_is(&event)?)
    }

    fn rotate(&self, header: &EventHeader, verified: VerifiedChecksum) -> Vec<u8> {
        let next = self.forms.name(self.form, self.part.number.next());
        artificial_events::rotate(header, verified, self.out.offset(), &next, self.part.head.checksum())
    }

    /// The entries collected for the index since its last checkpoint.
    pub(crate) fn into_noting(self) -> GtidCollector {
        self.noting
    }

    /// The walk reached the end of the file: save the index.
    pub fn finish_file(&mut self) {
        if self.forms.exits.is_some() {
            return;
        }
        let end = self.walker.offset();
        let closed = self.forms.kept.store.positions().is_some_and(|now| now.durable.file > self.file());
        if closed && self.walker.end().is_ok_and(|whole| whole == end) {
            let at = in_part(self.part.of.part, self.out.offset());
            self.noting.end(&self.places, self.form, end, at);
        }
        // If the index can't be written, the next reader that needs it rebuilds it.
        let _ = self.places.save(end, true);
    }

    /// A transaction that the source never ended, at the end of its file. Nothing of it leaves by a policy.
    pub fn left(&mut self) -> Option<EventGroup> {
        self.walker.left().filter(|_| self.forms.exits.is_none())
    }

    /// Whether a transaction has the same size in the form as in the stored file.
    pub fn keeps_size(&self, group: &EventGroup) -> bool {
        let is_reclocked = self.part.clock > 0 && group.first.event_type == EventType::GTID_TAGGED;
        self.forms.exits.is_none() && self.change(group) == FormChange::None && !is_reclocked
    }

    /// Whether the next transaction differs in the form from the stored one.
    pub fn is_converted(&self, group: &EventGroup) -> bool {
        match self.change(group) {
            FormChange::None => {
                self.forms.exits.is_some() || !self.part.is_as_stored(self.out.offset(), group)
            }
            FormChange::Name => false,
            FormChange::Expand | FormChange::Compress => true,
        }
    }

    /// Leaves out a transaction that keeps its size.
    pub fn pass(&mut self, group: &EventGroup) -> Result<()> {
        self.skip_to(self.out.offset() + group.size())?;
        self.note(&PlacedTransaction::new(group, 0..self.out.offset()));
        Ok(())
    }

    fn skip_to(&mut self, end: u64) -> Result<()> {
        self.out.move_to(end)?;
        self.sink()?.skip_to(end);
        Ok(())
    }

    /// Writes a transaction, or an event between transactions.
    pub fn put(&mut self, group: &EventGroup) -> Result<()> {
        let begin = self.out.offset();
        self.write(group)?;
        self.note(&PlacedTransaction::new(group, begin..self.out.offset()));
        Ok(())
    }

    /// Writes or leaves out the next transaction of a block.
    pub fn put_shared(&mut self, block: &Block, placed: &PlacedTransaction, leave_out: bool) -> Result<()> {
        match leave_out {
            true => self.skip_to(placed.at.end)?,
            false => block.write(placed, &mut self.buffer, |bytes| Ok(self.out.as_is(bytes)?))?,
        }
        self.note(placed);
        Ok(())
    }

    /// Moves past a block that was written.
    pub fn behind(&mut self, block: &Block) {
        self.walker.move_to(block.stored_end());
    }

    /// Writes a transaction as [`Translator::put`] does, but does not update the index: for a caller that sees only part
    /// of the file.
    pub fn write(&mut self, group: &EventGroup) -> Result<()> {
        match self.change(group) {
            FormChange::Name => {
                let framing = self.part.head.framing();
                let too_large = || {
                    let found = group.first.event_type;
                    let size = group.size();
                    let error = BinlogError::invalid("rotate event", "event size", size, "at most 64 KiB");
                    error.at(group.begin, Some(found))
                };
                let event = self.walker.bytes(group)?.ok_or_else(too_large)?;
                let frame = verified(event, framing, group.begin)?;
                let header = *frame.header();
                let proof = frame.proof();
                let event = self.rotate(&header, proof);
                Ok(self.out.as_is(&event)?)
            }
            change => self.write_changed(group, change),
        }
    }

    /// Writes a transaction as [`Translator::write`] does; or nothing of one that may not leave, and says why.
    pub(crate) fn write_unless_refused(&mut self, group: &EventGroup) -> Result<Option<Arc<str>>> {
        match self.write(group) {
            Ok(()) => Ok(None),
            Err(Error::Refused(why)) if self.forms.exits.is_some() && group.is_transaction => {
                Ok(Some(why.into()))
            }
            Err(error) => Err(error),
        }
    }

    /// Writes a transaction as [`Translator::put`] does; or nothing of one that may not leave.
    pub(crate) fn put_unless_refused(&mut self, group: &EventGroup) -> Result<()> {
        let begin = self.out.offset();
        let refused = self.write_unless_refused(group)?;
        let placed = PlacedTransaction::new(group, begin..self.out.offset());
        self.note(&PlacedTransaction { refused, ..placed });
        Ok(())
    }

    fn write_changed(&mut self, group: &EventGroup, change: FormChange) -> Result<()> {
        if let Some(exits) = self.forms.exits {
            return self.mask(exits, group);
        }
        match change {
            FormChange::None if self.part.is_as_stored(self.out.offset(), group) => self.copy(group),
            change => {
                let Translator { forms, part, walker, bodies, .. } = self;
                let file = part.of.file;
                let head = &part.head;
                let clock = part.clock;
                let stored = StoredGroup { store: &forms.kept.store, file, head, clock, walker, bodies };
                forms.conversions.borrow().converter().convert(group, change, stored, &mut self.out)
            }
        }
    }

    fn note(&mut self, placed: &PlacedTransaction) {
        if let Some(exits) = self.forms.exits {
            // After one that is refused the position is the same as before it.
            if placed.refused.is_none() {
                let end = StartOffsets { stored: placed.stored.end, at: placed.at.end };
                exits.note(self.forms.kept.id, self.part.of, &end);
            }
            return;
        }
        if placed.event_type.is_gtid() {
            let PlacedTransaction { stored, gtid, committed, at, .. } = placed;
            let seen = SeenTransaction { stored: stored.clone(), gtid: *gtid, committed: *committed };
            self.noting.transaction(&self.places, self.form, &seen, in_part(self.part.of.part, at.end));
        }
    }

    fn change(&self, group: &EventGroup) -> FormChange {
        FormChange::of(group, self.form, &self.part.head)
    }

    /// Where a file's events don't follow each other, an earlier one may be to blame: the first damaged event of the transaction
    /// whose end was not found, as an error.
    pub fn check_open(&mut self) -> Result<()> {
        let Some(begin) = self.walker.open_begin() else { return Ok(()) };
        let range = begin..self.walker.offset();
        let framing = self.part.head.framing();
        checked::copy(&mut self.bodies, range, framing, &mut self.buffer, |_| Ok(()))
    }

    /// Writes a transaction as it is stored, if none of its events is damaged.
    fn copy(&mut self, group: &EventGroup) -> Result<()> {
        let framing = self.part.head.framing();
        let Translator { walker, bodies, buffer, out, .. } = self;
        if let Some(bytes) = walker.bytes(group)? {
            checked::verify(bytes, framing, group.begin)?;
            return Ok(out.as_is(bytes)?);
        }
        checked::copy(bodies, group.begin..group.end, framing, buffer, |bytes| Ok(out.as_is(bytes)?))
    }
}

/// A reader that begins with a later part of a stored file has not seen the earlier parts.
fn noting_from(part: &FilePart, start: &StartOffsets) -> GtidCollector {
    match (*start == part.start(), part.of.part) {
        (true, 0) => GtidCollector::default(),
        (true, _) => GtidCollector::between_places(),
        (false, _) => GtidCollector::at_place(start.stored),
    }
}
