//! Appends a batch to the stored log, with positions for its place there, and adds its transactions to the index.

use std::io::{self, Read, Write};
use std::ops::Range;

use binlogz_payload::{PieceBytes, PositionWriter, Spool};
use binlogz_relay_log::{Checkpoints, Form, GtidCollector, LineageLog, SeenTransaction};
use binlogz_store::StoreWriter;

use super::{Ready, ReceivedBatch, ReceivedTransaction, StoreProgress, StoringState};
use crate::error::{Error, Result};
use crate::receive::intake::Intake;
use crate::telemetry::meters::Meters;
use crate::telemetry::spans;

pub(super) fn write(
    intake: &Intake,
    kept: &LineageLog,
    progress: &StoreProgress,
    ready: Ready,
) -> Result<()> {
    let Ready { batch, mut rewritten } = ready;
    if progress.failed() {
        return Ok(());
    }
    let ReceivedBatch { spool, offset, generation, gtids, transactions, .. } = batch;
    let span = spans::store(&intake.telemetry, transactions.len()).entered();
    let writer = kept.store.writer()?;
    let Some(begin) = writer.position() else {
        return Err(Error::Gap {
            name: kept
                .store
                .names()
                .log(kept.store.positions().map_or(binlogz_store::FileNumber(0), |now| now.written.file)),
            offset,
            expected: "the next file: this one was closed".into(),
        });
    };
    let mut append = Append { writer, meters: &intake.telemetry.meters, size: 0, error: None };
    let mut placed = Vec::new();
    let mut out = PositionWriter::resume(&mut append, begin.offset, true);
    let mut input = UnchangedBytes(spool);
    let written =
        out.write(&mut rewritten, &mut input, |_, offset| placed.push(offset)).and_then(|()| out.finish());
    if let Some(error) = append.error.take() {
        return Err(error.into());
    }
    written?;
    span.record("bytes", append.size);
    // Published only now: no reader sees part of a batch, and an error above leaves none.
    append.writer.publish()?;
    drop(append);
    let marks = rewritten.marks.as_deref();
    let mut table = intake.compression_stats.lock();
    for (index, transaction) in transactions.iter().enumerate() {
        let made = marks.and_then(|marks| marks.get(index)?.payload);
        transaction.sizes.count(&mut table, generation, transaction.gtid, transaction.committed, made);
    }
    drop(table);
    let mut state = progress.state.lock();
    let StoringState { noting, places, .. } = &mut *state;
    if let Some(places) = places {
        note(noting, places, &transactions, |index, transaction| match marks {
            None => {
                let moved = |at: u64| begin.offset + (at - offset);
                Some(moved(transaction.range.start)..moved(transaction.range.end))
            }
            Some(marks) => {
                let mark = marks.get(index).filter(|mark| mark.old == transaction.range)?;
                let at = |span: usize| placed.get(span).copied();
                Some(at(mark.spans.start)?..at(mark.spans.end)?)
            }
        });
        // If the index can't be written, the next reader that needs it rebuilds it.
        let durable =
            kept.store.positions().map(|now| now.durable).filter(|durable| durable.file == begin.file);
        let _ = durable.map(|durable| places.save(durable.offset, false));
    }
    drop(state);
    intake.written(kept, &gtids);
    Ok(())
}

/// Adds a batch's transactions to the index. `stored`: a transaction's current offset. If one is unknown, so are all
/// later ones, and the index notes that some were missed.
fn note(
    noting: &mut GtidCollector,
    places: &Checkpoints,
    transactions: &[ReceivedTransaction],
    stored: impl Fn(usize, &ReceivedTransaction) -> Option<Range<u64>>,
) {
    for (index, transaction) in transactions.iter().enumerate() {
        let Some(stored) = stored(index, transaction) else { return noting.missed() };
        let ReceivedTransaction { range, gtid, committed, .. } = transaction;
        let seen = SeenTransaction { stored, gtid: *gtid, committed: *committed };
        noting.transaction(places, Form::Received, &seen, range.end);
    }
}

/// Appends to the store.
struct Append<'a> {
    writer: StoreWriter<'a>,
    meters: &'a Meters,
    /// Bytes so far.
    size: u64,
    /// Why the last write failed.
    error: Option<binlogz_store::Error>,
}

impl Write for Append<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.writer.extend(bytes) {
            Ok(_) => {
                self.meters.stored(bytes.len() as u64);
                self.size += bytes.len() as u64;
                Ok(bytes.len())
            }
            Err(error) => {
                let kind = io::Error::other(error.to_string());
                self.error = Some(error);
                Err(kind)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Received bytes, unchanged.
pub(super) struct UnchangedBytes(pub(super) Spool);

impl PieceBytes for UnchangedBytes {
    fn in_memory(&mut self, range: Range<u64>) -> Option<&mut [u8]> {
        self.0.in_memory(range)
    }

    fn reader(&mut self, range: Range<u64>) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0.reader(range)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use binlogz_relay_log::Indexes;

    use super::*;
    use crate::receive::sizes::Sizes;

    const SERVER: &str = "1410447f-e54d-11f1-848d-02fc00000001";

    #[test]
    fn transactions_whose_place_is_not_known_leave_no_claim_behind() {
        let indexes = Indexes::new(Arc::new(binlogz_store::MemoryStorage::new()));
        let places = indexes.of(binlogz_store::FileNumber(1), "binlog.000001", b"head");
        // Each ends just past a mebibyte, so there is a checkpoint.
        let transactions: Vec<ReceivedTransaction> = (1..=6_u64)
            .map(|number| ReceivedTransaction {
                range: (number << 20) - 9..(number << 20) + 9,
                gtid: Some(format!("{SERVER}:{number}").parse().unwrap()),
                committed: 1,
                sizes: Sizes::default(),
            })
            .collect();
        let (first, rest) = transactions.split_at(4);
        let mut noting = GtidCollector::default();
        // As if a worker's result did not match what was received.
        note(&mut noting, &places, first, |index, transaction| {
            (index != 2).then(|| transaction.range.clone())
        });
        note(&mut noting, &places, rest, |_, transaction| Some(transaction.range.clone()));
        // A replica that lacks the third must not start after it.
        let behind = |has: &str| {
            let start = places.behind_gtids(Form::Received, &format!("{SERVER}:{has}").parse().unwrap());
            start.map(|start| start.stored >> 20)
        };
        assert_eq!(behind("1-2:4-6"), Some(2));
        assert_eq!(behind("1-6"), Some(2), "and one that lacks nothing reads a little in vain");
    }
}
