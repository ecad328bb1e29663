//! XA transactions in the dump of a client that doesn't know them: an empty transaction where one is prepared or rolled back, the
//! rows where it is committed.
//!
//! ```text
//! rotate to the transaction's own file · format description
//! GTID of XA COMMIT · BEGIN · rows of the prepared transaction, from the stored log · XID
//! rotate back to NAME, after XA COMMIT · format description
//! ```
//!
//! A client that left between the two rotates names that file when it comes back, and gets the rest (`XaFileName`).

use std::io::{self, Write};
use std::sync::Arc;

use binlogz_binlog::frame::encode_event;
use binlogz_binlog::{EventHeader, MAGIC};
use binlogz_payload::Error as PayloadError;
use binlogz_relay_forms::{Block, Forms, PlacedTransaction, SharedBlock, Translator, artificial_events};
use binlogz_relay_log::{Error as LogError, EventGroup, Form, FormFile, LineageLog, StartOffsets, verified};

use super::{DumpStream, Sender, broken};
use crate::error::{Error, Result};
use crate::serve::events::xa::{
    FIRST_POSITION, PreparedPlace, PreparedSearch, RenumberedEvents, StepReader, TransactionEnds, XaFileName,
    XaRendering, XaStep, search, stored_bytes,
};
use crate::serve::sending::sink::EventSink;
use crate::telemetry::say;

/// A place in a transaction's own file, for a client that asks for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct XaFilePosition(pub(crate) u64);

impl Sender<'_> {
    /// The step of XA that a stored transaction is, if this client has to get another one in its place.
    pub(super) fn xa_step_of_group(&mut self, group: &EventGroup) -> Result<Option<XaStep>> {
        if !self.translates_xa || group.payload.is_some() {
            return Ok(None);
        }
        let checksum = self.log.head().checksum();
        let reader = StepReader { forms: self.forms, file: self.log.file(), checksum };
        let step = reader.step(self.log.walker().bytes(group)?, group)?;
        self.check_unmasked(step)
    }

    /// The step of XA that a converted transaction is, likewise.
    pub(super) fn xa_step_of_placed(
        &mut self,
        block: &Block,
        placed: &PlacedTransaction,
    ) -> Result<Option<XaStep>> {
        if !self.translates_xa || !placed.event_type.is_gtid() {
            return Ok(None);
        }
        let mut ends = TransactionEnds::default();
        block.write(placed, &mut Vec::new(), |bytes| {
            ends.feed(bytes);
            Ok(())
        })?;
        self.check_unmasked(ends.step(self.log.head().checksum()))
    }

    /// Refuses a step of XA to a client whose account has a policy: the rows that would stand in its place aren't masked.
    fn check_unmasked(&self, step: Option<XaStep>) -> Result<Option<XaStep>> {
        match (&step, self.forms.exits) {
            (Some(_), Some(_)) => Err(Error::Refused(format!(
                "the transaction at {} of {} is an XA transaction, which is not made plain for an account with a policy (exits): expected a \
                 replica that knows XA, MySQL 5.7 or later",
                self.log.offset(),
                self.name()
            ))),
            _ => Ok(step),
        }
    }

    /// Makes the next transaction plain where it stands, if it is a step of XA.
    pub(super) fn render_xa(&mut self, step: Option<&XaStep>) -> Result<()> {
        if self.translates_xa {
            self.sink()?.render_xa(step.map(XaStep::rendering));
        }
        Ok(())
    }

    /// Takes the step that was sent or left out, which began at this offset of the stored file.
    pub(super) fn pass_xa(&mut self, step: Option<XaStep>, offset: u64) {
        let Some(step) = step else { return };
        let place = PreparedPlace { lineage: self.kept.number, file: self.log.file(), offset };
        self.prepared.step(&step, place);
        let oldest = self.prepared.oldest_file(self.kept.number);
        self.dump.progress.holds_prepared(self.prepared.count(), oldest);
    }

    /// Whether the client gets rows in the place of this transaction.
    ///
    /// # Errors
    ///
    /// It begins inside the transaction, or asked for rows that are not of this one.
    pub(super) fn brings_rows(&self, step: Option<&XaStep>, placed: &PlacedTransaction) -> Result<bool> {
        let from = self.dump.from;
        let is_commit = matches!(step, Some(XaStep::Commit(_)));
        if placed.at.end <= from {
            return Ok(false);
        }
        if self.dump.inside.is_some() && !(is_commit && placed.at.start == from) {
            return Err(Error::Refused(format!(
                "no XA transaction is committed at {from} of {}",
                self.name()
            )));
        }
        if is_commit && placed.at.start < from {
            let begin = placed.at.start;
            return Err(Error::Refused(format!(
                "the position {from} is inside of the XA COMMIT at {begin}, where this client gets the rows of the \
                 transaction: begin at {begin}"
            )));
        }
        Ok(is_commit)
    }

    /// Sends the rows of a transaction in the place of its XA COMMIT. `asks`: for an acknowledgement. What follows has to move
    /// past the statement.
    pub(super) fn bring_rows(&mut self, step: &XaStep, placed: &PlacedTransaction, asks: bool) -> Result<()> {
        let XaStep::Commit(name) = step else { return Ok(()) };
        if self.forms.exits.is_some() {
            return Err(Error::Refused("rows of XA transactions aren't masked".into()));
        }
        self.check_goes_on(name, placed)?;
        let prepared = self.find_prepared(name, placed)?;
        let older;
        let kept = match prepared.lineage == self.kept.number {
            true => self.kept,
            false => {
                older = self.older_log(prepared.lineage)?;
                older.as_ref()
            }
        };
        let front = self.commit_gtid(placed)?;
        let at = placed.at.start;
        let (from, version) = (self.dump.from, self.log.head().description.server_version_number());
        let checksum = self.log.head().checksum();
        let name_of_file = self.xa_file_name(at)?;
        let start = match self.dump.inside.take() {
            Some(XaFilePosition(position)) => position,
            None => {
                self.tell_file(&name_of_file, FIRST_POSITION, false)?;
                FIRST_POSITION
            }
        };
        let forms = self.forms.conversions.of(kept);
        let sink = self.log.sink()?;
        sink.wants_ack_at = None;
        sink.begin_file(FIRST_POSITION, start.max(FIRST_POSITION), checksum, version);
        sink.write_all(&front).map_err(unwritten)?;
        sink.render_xa(Some(XaRendering::Plain));
        let position = FIRST_POSITION + front.len() as u64;
        let sent = send_prepared(forms, prepared, sink, position);
        sink.render_xa(None);
        sent.map_err(|error| error.in_stored(|| kept.store.names().log(prepared.file)))?;
        if sink.position() < sink.from() {
            return Err(super::behind_the_end());
        }
        sink.begin_file(at, from, checksum, version);
        self.dump.progress.translated_xa();
        let name = self.name();
        self.tell_file(&name, placed.at.end, asks)
    }

    /// The name of the file of a transaction that is committed there.
    ///
    /// # Errors
    ///
    /// The current file has no number, as all logs of servers have.
    pub(super) fn xa_file_name(&self, offset: u64) -> Result<String> {
        let log = self.name();
        XaFileName { log, offset }.name().ok_or_else(|| {
            Error::Refused(format!(
                "{} has no number: an XA transaction's own file is named after one",
                self.name()
            ))
        })
    }

    /// Refuses rows to a client such as mysqlbinlog, which reads one file to its end: it would take the file with the rows for
    /// the next one, and stop there as if all were well.
    fn check_goes_on(&self, name: &str, placed: &PlacedTransaction) -> Result<()> {
        let DumpStream { non_blocking, has, inside, .. } = &self.dump;
        if !non_blocking || has.is_some() || inside.is_some() {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "the rows of the XA transaction {name}, which is committed at {}, are in a file of their own for this client's \
             profile, and it reads this one alone. An account with reads = \"other\" gets the file as it is",
            placed.at.start
        )))
    }

    /// Tells the client that it goes on in this file, at this position.
    fn tell_file(&mut self, name: &str, position: u64, asks: bool) -> Result<()> {
        let head = self.log.head();
        let rotate = artificial_events::fake_rotate(head.header.server_id, name, position, head.checksum());
        let description = artificial_events::format_description(head, true, false);
        let sink = self.sink()?;
        sink.say(&rotate).map_err(broken)?;
        match asks {
            true => sink.ask(&description).map_err(broken),
            false => sink.say(&description).map_err(broken),
        }
    }

    /// The GTID event of an XA COMMIT, as the first event of the transaction's own file; empty: it has none.
    fn commit_gtid(&self, placed: &PlacedTransaction) -> Result<Vec<u8>> {
        let file = self.log.file();
        let bytes = stored_bytes(self.forms, file, placed.stored.clone())?;
        let framing = self.log.part().stored_head.framing();
        let frame = verified(&bytes, framing, placed.stored.start)
            .map_err(|error| error.in_stored(|| self.kept.store.names().log(file)))?;
        if !frame.event_type().is_gtid() {
            return Ok(Vec::new());
        }
        let end = FIRST_POSITION + u64::from(frame.header().event_size);
        let header = EventHeader { end_log_pos: end as u32, ..*frame.header() };
        Ok(encode_event(header, frame.body(), framing.checksum()))
    }

    /// Where a transaction was prepared that is committed there.
    fn find_prepared(&self, name: &str, committed: &PlacedTransaction) -> Result<PreparedPlace> {
        if let Some(place) = self.prepared.place(name) {
            return Ok(place);
        }
        let before = Some((self.log.file(), committed.stored.start));
        let mut wanted = PreparedSearch { name, gtid: committed.gtid, before };
        let mut found = search(self.forms, wanted)?;
        wanted.before = None;
        for older in self.lineages.goes_on_from(self.kept) {
            if found.is_some() || wanted.gtid.is_none() {
                break;
            }
            found = search(self.forms.conversions.of(&older), wanted)?;
        }
        let place = found.ok_or_else(|| self.not_prepared(name, committed))?;
        let log = self.lineages.all().into_iter().find(|kept| kept.number == place.lineage);
        say!(
            self.telemetry,
            &format!(
                "the XA transaction {name}, committed at {} of {}, was prepared before this dump: found at {} of {}",
                committed.at.start,
                self.name(),
                place.offset,
                log.map(|log| log.store.names().log(place.file)).unwrap_or_default()
            )
        );
        Ok(place)
    }

    /// The error for a transaction whose rows are not here.
    fn not_prepared(&self, name: &str, committed: &PlacedTransaction) -> Error {
        let oldest = self.kept.store.logs().ok().and_then(|logs| Some(logs.first()?.name.clone()));
        Error::Refused(format!(
            "the rows of the XA transaction {name}, which is committed at {} of {}, are not here: it was prepared before \
             the oldest stored log, {}, or there is no XA PREPARE of it. Build the replica anew from a backup of the source as of \
             after that commit",
            committed.at.start,
            self.name(),
            oldest.unwrap_or_default()
        ))
    }

    fn older_log(&self, number: u64) -> Result<Arc<LineageLog>> {
        let gone = || broken(io::Error::other("a log that was searched is there no more"));
        self.lineages.all().into_iter().find(|kept| kept.number == number).ok_or_else(gone)
    }
}

/// Sends the events of a prepared transaction, without its GTID event, from this position on.
fn send_prepared(
    forms: Forms<'_>,
    prepared: PreparedPlace,
    sink: &mut EventSink,
    position: u64,
) -> Result<(), LogError> {
    let form = Form::Uncompressed;
    let part = Arc::new(forms.kept.part(form, FormFile::first_of(prepared.file), Some(prepared.file))?);
    let to = sink.checksum();
    let events = RenumberedEvents::new(sink, position, part.head.checksum(), to);
    // Any position does for one that is converted, but none at which a file of the form may be cut.
    let as_stored = StartOffsets { stored: prepared.offset, at: prepared.offset };
    let mut translator = Translator::at(forms, form, &part, &as_stored, events)?;
    let group = translator.walker().next_group()?.ok_or_else(|| gone(prepared))?;
    if group.payload.is_none() {
        translator.write(&group)?;
    } else {
        let start = StartOffsets { at: MAGIC.len() as u64, ..as_stored };
        let shared = Translator::at(forms, form, &part, &start, io::sink())?.block()?;
        let block = shared.as_ref().and_then(SharedBlock::block).ok_or_else(|| gone(prepared))?;
        let placed = block.transactions().first().ok_or_else(|| gone(prepared))?;
        block.write(placed, &mut Vec::new(), |bytes| {
            Ok(translator.sink()?.write_all(bytes).map_err(PayloadError::Io)?)
        })?;
    }
    match translator.sink()?.is_between_events() {
        true => Ok(()),
        false => Err(gone(prepared)),
    }
}

/// A transaction is not where it was found.
fn gone(prepared: PreparedPlace) -> LogError {
    LogError::Refused(format!(
        "no whole transaction begins at {} of the stored file any more",
        prepared.offset
    ))
}

/// A client can't be written to, or can't have the event.
fn unwritten(error: io::Error) -> Error {
    Error::Log(LogError::Payload(PayloadError::Io(error)))
}
