//! Expands a large unit into its output while it is read: one thread expands, the caller's writes.
//!
//! ```text
//! compressed ─ verified, expanded, reframed ─ parts, PARTS_UNDER_WAY at most ─ positions, checksums ─ output
//!              a thread                        buffers go back                 the caller's thread
//! ```
//!
//! Nothing of a large transaction is held, in memory or in a temporary file. The checksum of what was compressed is
//! compared at its end: only then its GTID event is filled in, without which the output can't be read beyond that
//! place.

use std::io;
use std::panic;
use std::thread;

use binlogz_payload::{
    ArrivingEvents, Error as PayloadError, EventsPart, ExpandedPart, PieceContext, PositionRule,
    PositionWriter, ReservedEvent, RewrittenPiece, Spool, TransactionExpander,
};
use crossbeam_channel::{Receiver, Sender, bounded};

use super::log_output::LogOutput;
use crate::error::Error;
use crate::read::LargeUnit;

/// Parts between the two threads.
const PARTS_UNDER_WAY: usize = 4;

/// Expands `unit` into `writer`, whose output can be changed; returns what remains to be written after that.
pub(super) fn expand_on(
    expander: &mut TransactionExpander,
    (unit, place): (&LargeUnit, PieceContext),
    spool: Spool,
    threads: bool,
    writer: &mut PositionWriter<&mut dyn LogOutput>,
) -> Result<RewrittenPiece, Error> {
    let mut target = PartWriter { writer, unit, place, room: None, event: None };
    if !threads {
        let reader = unit.reader(0..unit.size);
        let mut broken = None;
        let expanded = expander.large_in_parts(reader, place, spool, &mut |part| {
            target.write(part).map_err(|error| {
                broken = Some(error);
                stopped()
            })
        });
        return match broken {
            Some(error) => Err(Error::Output(error)),
            None => Ok(expanded?),
        };
    }
    let (to_writer, parts) = bounded(PARTS_UNDER_WAY);
    let (give_back, spare) = bounded(PARTS_UNDER_WAY);
    thread::scope(|scope| {
        let expanding = scope.spawn(move || {
            let reader = unit.reader(0..unit.size);
            expander.large_in_parts(reader, place, spool, &mut |part| send(&to_writer, &spare, part))
        });
        for part in parts {
            let buffer = target.write(part).map_err(Error::Output)?;
            // Full: there are enough.
            let _ = give_back.try_send(buffer);
        }
        Ok(expanding.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))?)
    })
}

fn send(
    to_writer: &Sender<ExpandedPart>,
    spare: &Receiver<Vec<u8>>,
    part: ExpandedPart,
) -> Result<Vec<u8>, PayloadError> {
    to_writer.send(part).map_err(|_| stopped())?;
    Ok(spare.try_recv().unwrap_or_default())
}

/// Ends the expanding where the output failed, whose error is told.
fn stopped() -> PayloadError {
    PayloadError::Io(io::ErrorKind::BrokenPipe.into())
}

/// Writes parts at their places.
struct PartWriter<'a, 'w> {
    writer: &'a mut PositionWriter<&'w mut dyn LogOutput>,
    unit: &'a LargeUnit,
    place: PieceContext,
    /// Room for the GTID event of the transaction being written.
    room: Option<ReservedEvent>,
    /// The event that comes in several parts.
    event: Option<ArrivingEvents>,
}

impl PartWriter<'_, '_> {
    /// Writes a part; returns a buffer to be used again.
    fn write(&mut self, part: ExpandedPart) -> Result<Vec<u8>, PayloadError> {
        let PieceContext { offset, context, .. } = self.place;
        match part {
            ExpandedPart::Begin { before, gtid_size } => {
                let size = before.end - before.start;
                let from = offset + before.start;
                self.writer.moved(self.unit.reader(before), size, from, context)?;
                self.room = Some(self.writer.reserve(gtid_size)?);
                Ok(Vec::new())
            }
            ExpandedPart::Events(EventsPart { mut bytes, is_whole: true }) => {
                self.end_event()?;
                self.writer.made(&mut bytes, PositionRule::Own, context)?;
                Ok(bytes)
            }
            ExpandedPart::Events(EventsPart { bytes, is_whole: false }) => {
                let writer = &mut self.writer;
                let event = self.event.get_or_insert_with(|| writer.begin_made(PositionRule::Own, context));
                writer.push(event, &bytes)?;
                Ok(bytes)
            }
            ExpandedPart::End { mut gtid, positions, verified } => {
                self.end_event()?;
                if let Some(room) = self.room.take() {
                    self.writer.fill(&room, &mut gtid, positions, context, verified)?;
                    self.writer.inner()?.change(room.written_before, &gtid)?;
                }
                Ok(gtid)
            }
        }
    }

    /// The event that came in several parts must be whole.
    fn end_event(&mut self) -> Result<(), PayloadError> {
        match self.event.take() {
            Some(event) => self.writer.end_made(&event),
            None => Ok(()),
        }
    }
}
