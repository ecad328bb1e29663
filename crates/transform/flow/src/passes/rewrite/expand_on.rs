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
    ArrivingEvents, Error as PayloadError, ExpandedPart, PieceContext, PositionRule, PositionWriter,
    ReservedEvent, RewrittenPiece, Spool, TransactionExpander,
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
    let mut target = PartWriter { writer, unit, place, open: None };
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
    /// The transaction being written.
    open: Option<(ReservedEvent, ArrivingEvents)>,
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
                let room = self.writer.reserve(gtid_size)?;
                self.open = Some((room, self.writer.begin_made(PositionRule::Own, context)));
                Ok(Vec::new())
            }
            ExpandedPart::Events(bytes) => {
                if let Some((_, events)) = &mut self.open {
                    self.writer.push(events, &bytes)?;
                }
                Ok(bytes)
            }
            ExpandedPart::End { mut gtid, positions, verified } => {
                if let Some((room, events)) = self.open.take() {
                    self.writer.end_made(&events)?;
                    self.writer.fill(&room, &mut gtid, positions, context, verified)?;
                    self.writer.inner()?.change(room.written_before, &gtid)?;
                }
                Ok(gtid)
            }
        }
    }
}
