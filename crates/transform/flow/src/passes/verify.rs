//! Verifies a whole log: the pipeline with [`binlogz_payload::verify`] in its middle.

use binlogz_payload::verify::{Findings, Problem, Verifier};

use crate::error::Error;
use crate::read::batcher::Batcher;
use crate::read::input::Input;
use crate::read::{BatchUnit, LogPiece};
use crate::read::{CutEvent, ReadProgress};
use crate::work::memory::Memory;
use crate::work::ordered;

/// The verdict on a log.
#[derive(Debug, Clone, Default)]
pub struct LogVerdict {
    /// The checks made, and the problems found.
    pub findings: Findings,
    /// Bytes of the log that were checked.
    pub bytes: u64,
    /// The log is in use and ends inside an event.
    pub cut: Option<CutEvent>,
}

/// Checks the log of `input` to its last byte with `workers` threads.
///
/// # Errors
///
/// Bytes that can't be read as events, with their offset; an input that fails.
pub fn verify(mut input: Input, workers: usize, progress: ReadProgress<'_>) -> Result<LogVerdict, Error> {
    let memory = Memory::for_workers(workers, true);
    let stop = input.stop();
    let mut batcher = Batcher::new(input, BatchUnit::Transaction, memory.batch);
    let mut verdict = LogVerdict::default();
    ordered::run(
        workers,
        || Some(batcher.next_piece()?.map_err(Error::from)),
        stop,
        || Ok(Verifier::new()?),
        |verifier, piece| {
            Ok(match piece {
                LogPiece::Start(start) => {
                    let size = start.event.len() as u64 + if start.magic { 4 } else { 0 };
                    (size, Findings { events: 1, ..Findings::default() }, None)
                }
                LogPiece::Batch(batch) => {
                    let findings = verifier.verify_bytes(&batch.bytes, batch.offset, batch.context)?;
                    (batch.bytes.len() as u64, findings, None)
                }
                LogPiece::Large(large) => {
                    let findings =
                        verifier.verify(large.reader(0..large.size), large.offset, large.context)?;
                    (large.size, findings, None)
                }
                LogPiece::Cut(cut) => (0, Findings::default(), Some(cut)),
            })
        },
        |(size, findings, cut)| {
            verdict.bytes += size;
            verdict.cut = verdict.cut.or(cut);
            let ended_inside = verdict.findings.ends_inside_transaction;
            verdict.findings.add(findings);
            // A cut ends nothing.
            verdict.findings.ends_inside_transaction |= cut.is_some() && ended_inside;
            progress(verdict.bytes);
            Ok(())
        },
    )?;
    Ok(verdict)
}

impl LogVerdict {
    /// The first problems, in the order of the log.
    pub fn problems(&self) -> &[Problem] {
        &self.findings.problems
    }
}
