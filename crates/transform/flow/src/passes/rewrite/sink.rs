//! The last stage of a rewrite: pieces in the order of the log, to the output.

use std::io::{self, Read};

use binlogz_binlog::EventType;
use binlogz_binlog::header::{EventHeader, HEADER_SIZE};
use binlogz_payload::{PieceContext, PositionWriter, RewrittenPiece, TransactionExpander};

use super::expand_on::expand_on;
use super::log_output::LogOutput;
use super::{MovedTransaction, NewStart, PieceInput, RewriteSummary};
use crate::error::Error;
use crate::read::{CutEvent, LargeUnit, ReadProgress};
use crate::work::memory::Memory;

/// A worker's result.
pub(super) enum RewriteDone {
    Start(NewStart),
    Piece {
        rewritten: Box<RewrittenPiece>,
        input: PieceInput,
        size_read: u64,
    },
    /// Left to be expanded into the output.
    Unexpanded(LargeUnit, PieceContext),
    Cut(CutEvent),
}

/// Whether the unit is a transaction in a payload.
pub(super) fn has_payload(unit: &LargeUnit) -> io::Result<bool> {
    let first = header_at(unit, 0)?.filter(|first| first.event_type.is_gtid());
    let Some(first) = first else { return Ok(false) };
    let second = header_at(unit, u64::from(first.event_size))?;
    Ok(second.is_some_and(|second| second.event_type == EventType::TRANSACTION_PAYLOAD))
}

fn header_at(unit: &LargeUnit, place: u64) -> io::Result<Option<EventHeader>> {
    let mut header = Vec::new();
    unit.reader(place..place + HEADER_SIZE as u64).read_to_end(&mut header)?;
    Ok(EventHeader::decode(&header).ok())
}

/// Takes a caller's note of a transaction's move.
type MoveNote<'a> = &'a mut dyn FnMut(MovedTransaction) -> io::Result<()>;

/// Writes results one after the other.
pub(super) struct RewriteSink<'a, 'm> {
    pub(super) memory: &'a Memory,
    pub(super) writer: PositionWriter<&'a mut dyn LogOutput>,
    pub(super) going_on_at: &'a [(u64, u64)],
    pub(super) moved: Option<MoveNote<'m>>,
    pub(super) progress: Option<ReadProgress<'m>>,
    pub(super) summary: RewriteSummary,
    pub(super) large_expander: Option<TransactionExpander>,
    /// Where the spans of a piece went; used again.
    pub(super) places: Vec<u64>,
}

impl RewriteSink<'_, '_> {
    pub(super) fn take(&mut self, result: RewriteDone) -> Result<(), Error> {
        match result {
            RewriteDone::Start(start) => self.start(&start)?,
            RewriteDone::Piece { rewritten, input, size_read } => {
                self.go_on(rewritten.offset)?;
                self.piece(*rewritten, input, size_read)?;
            }
            RewriteDone::Unexpanded(unit, place) => self.expand_on(unit, place)?,
            RewriteDone::Cut(cut) => self.summary.cut = Some(cut),
        }
        if let Some(progress) = &mut self.progress {
            progress(self.summary.bytes_read);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<RewriteSummary, Error> {
        let RewriteSink { writer, mut summary, .. } = self;
        summary.bytes_written = writer.written();
        writer.finish().map_err(Error::Output)?;
        Ok(summary)
    }

    fn start(&mut self, start: &NewStart) -> Result<(), Error> {
        if start.magic {
            self.writer.magic().map_err(Error::Output)?;
            self.summary.bytes_read += 4;
        }
        self.summary.bytes_read += start.size_read;
        self.writer.as_is(&start.event).map_err(Error::Output)
    }

    /// A piece begins at `offset` of the log read: behind a gap, perhaps.
    fn go_on(&mut self, offset: u64) -> Result<(), Error> {
        if let Some((&(old, new), rest)) = self.going_on_at.split_first()
            && old == offset
        {
            self.writer.move_to(new).map_err(Error::Output)?;
            self.going_on_at = rest;
        }
        Ok(())
    }

    fn expand_on(&mut self, unit: LargeUnit, place: PieceContext) -> Result<(), Error> {
        self.go_on(unit.offset)?;
        let expander = match &mut self.large_expander {
            Some(expander) => expander,
            none => none.insert(TransactionExpander::new()?),
        };
        let (spool, threads) = (self.memory.spool(), self.memory.workers > 1);
        let left = expand_on(expander, (&unit, place), spool, threads, &mut self.writer)?;
        let size = unit.size;
        self.piece(left, PieceInput::Large(unit), size)
    }

    fn piece(
        &mut self,
        mut rewritten: RewrittenPiece,
        mut input: PieceInput,
        size_read: u64,
    ) -> Result<(), Error> {
        self.places.clear();
        let places = self.moved.is_some().then_some(&mut self.places);
        match places {
            Some(places) => self.writer.write(&mut rewritten, &mut input, |_, place| places.push(place)),
            None => self.writer.write(&mut rewritten, &mut input, |_, _| {}),
        }
        .map_err(Error::Output)?;
        self.note_moves(&mut rewritten)?;
        self.summary.tally.add(&rewritten.tally);
        self.summary.bytes_read += size_read;
        self.memory.keep(rewritten.spool.into_buffer());
        if let PieceInput::Batch(bytes) = input {
            self.memory.keep(bytes);
        }
        Ok(())
    }

    fn note_moves(&mut self, rewritten: &mut RewrittenPiece) -> Result<(), Error> {
        let Some(moved) = &mut self.moved else { return Ok(()) };
        for mark in rewritten.marks.iter_mut().flat_map(|marks| marks.drain(..)) {
            let places = (self.places.get(mark.spans.start), self.places.get(mark.spans.end));
            let (Some(&start), Some(&end)) = places else { continue };
            moved(MovedTransaction { gtid: mark.gtid, old: mark.old, new: start..end })
                .map_err(|error| Error::Output(error.into()))?;
        }
        Ok(())
    }
}
