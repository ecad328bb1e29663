//! Every row change of a log as an iterator: inside payloads too, decoded on all cores, in order.
//!
//! The pipeline ([`events::run`]) is a loop with callbacks; here it runs on a thread of its own and passes on
//! owned changes, a batch at a time. A caller that does not want a copy of each row uses the pipeline.

use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::vec;

use binlogz_binlog::Error as BinlogError;
use binlogz_binlog::event::{AnyGtidEvent, RowsKind};
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::row::{OwnedRow, Row, RowDecoder, TableSchema};
use crossbeam_channel::{Receiver, bounded};

use crate::error::Error;
use crate::events::{
    self, BatchItem, Event, EventBatch, HeldEvent, InputLog, RunSummary, TableEvent, WorkerTables,
};
use crate::read::input::Input;

/// Batches of changes that wait for the iterating thread: a batch is at most a megabyte of events.
const BATCHES_WAITING: usize = 2;

/// The row changes of a log, in order.
///
/// An item is a change, or an error. Bad bytes with their offset, or an input that fails, end the log early. If changes
/// in the log could not be read ([`UnreadChanges`](crate::events::UnreadChanges)), an [`Error::Unread`] comes after the
/// last change: an iteration that ended without an error had all changes. Nothing follows an error. A log in use that
/// ends inside an event ends with the event before.
///
/// ```
/// use binlogz_flow::{Input, RowChanges};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../lab/testkit/corpus/mysql-9.7.4/binlog.000001");
/// # let mut rows = 0;
/// for change in RowChanges::new(Input::open(path.as_ref())?) {
///     let change = change?;
///     let row = change.row();
///     for cell in row.after.iter().flat_map(|image| image.cells()) {
///         println!("{} @{} = {:?}", change.position, cell.index + 1, cell.value()?);
///     }
/// #   rows += 1;
/// }
/// # assert!(rows > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RowChanges {
    batches: Receiver<Result<Vec<RowChange>, Error>>,
    batch: vec::IntoIter<RowChange>,
}

/// A row inserted, updated or deleted.
#[derive(Debug, Clone)]
pub struct RowChange {
    /// Where the row is; [`RowChanges::after`] continues after it.
    pub position: RowPosition,
    /// GTID of the row's transaction; `None` if anonymous or without a GTID event.
    pub gtid: Option<Gtid>,
    /// The kind of change.
    pub kind: RowsKind,
    /// Seconds since 1970 at which the statement began, as the event's header has it.
    pub timestamp: u32,
    row: OwnedRow,
}

/// Where a row change stands in its input. As text `log:offset`, then `+index` inside a payload, then
/// `#row`: `0:4711+3#12`.
///
/// Positions are in the order of the changes. They stay the same for the same bytes, with any number of
/// threads, in files and pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowPosition {
    /// The index of the log in the input, counted from 0: there may be several, one after the other.
    pub log: u64,
    /// Where the row event begins in its log, or the payload event that holds it.
    pub offset: u64,
    /// Which event of the payload it is, counted from 0.
    pub inside: Option<u64>,
    /// Which row of the event it is, counted from 0.
    pub row: u64,
}

impl RowChange {
    /// The row's images, before and after the change.
    pub fn row(&self) -> Row<'_, '_> {
        self.row.row()
    }

    /// The table that the row belongs to.
    pub fn table(&self) -> &TableSchema {
        self.row.schema()
    }

    /// `database.table`; bytes that are no UTF-8 are replaced.
    pub fn table_name(&self) -> String {
        let table = self.table();
        format!("{}.{}", String::from_utf8_lossy(&table.database), String::from_utf8_lossy(&table.table))
    }
}

impl RowChanges {
    /// All changes of the log in `input`, decoded on every core.
    pub fn new(input: Input) -> Self {
        Self::start(input, None, thread::available_parallelism().map_or(1, NonZeroUsize::get))
    }

    /// The changes after the one at `position`, which an earlier run over the same log gave.
    ///
    /// The log is read from its beginning, since later events depend on earlier ones; no rows are decoded
    /// until the position.
    pub fn after(input: Input, position: RowPosition) -> Self {
        Self::start(input, Some(position), thread::available_parallelism().map_or(1, NonZeroUsize::get))
    }

    fn start(input: Input, after: Option<RowPosition>, workers: usize) -> Self {
        let (sender, batches) = bounded(BATCHES_WAITING);
        // We don't wait for it: it ends with the log, or when it finds that the iterator is gone.
        thread::spawn(move || {
            let new_worker =
                || Ok(Worker { tables: WorkerTables::one_of(workers), decoder: RowDecoder::new(), after });
            let work = |worker: &mut Worker, batch: &mut EventBatch<'_>| Ok(worker.changes(batch));
            let sink = |changes: Vec<RowChange>| match sender.send(Ok(changes)) {
                Ok(()) => Ok(()),
                Err(_) => Err(Error::Output(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into())),
            };
            let run = || events::run(input, workers, new_worker, work, sink, &mut |_| {});
            // A thread that panicked is not the end of the log: the iterator would end as if it were.
            let ended = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
                let what = "a bug in binlogz: a thread that reads the log panicked";
                Err(Error::Input(std::io::Error::other(what).into()))
            });
            let error = match ended {
                Ok(RunSummary { read: _, unread }) if unread.is_empty() => return,
                Ok(RunSummary { read: _, unread }) => Error::Unread(Box::new(unread)),
                Err(error) => error,
            };
            // If this fails, the iterator is gone.
            let _ = sender.send(Err(error));
        });
        RowChanges { batches, batch: Vec::new().into_iter() }
    }
}

impl Iterator for RowChanges {
    type Item = Result<RowChange, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(change) = self.batch.next() {
                return Some(Ok(change));
            }
            match self.batches.recv().ok()? {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// A thread's decoder of batches.
struct Worker {
    tables: WorkerTables,
    decoder: RowDecoder,
    after: Option<RowPosition>,
}

impl Worker {
    /// The changes of a batch up to the first that can't be read, which fails the batch.
    fn changes(&mut self, batch: &mut EventBatch<'_>) -> Vec<RowChange> {
        let mut changes = Vec::new();
        if let Err(error) = self.batch(batch, &mut changes) {
            batch.fail(error);
        }
        if let Some(after) = self.after {
            // An earlier run has told those up to the change that it ended with.
            batch.retain_unread(|unread| {
                let inside = unread.position.inside.map(|inside| inside.index);
                (unread.log, unread.position.offset, inside) > (after.log, after.offset, after.inside)
            });
        }
        changes
    }

    fn batch(&mut self, batch: &mut EventBatch<'_>, changes: &mut Vec<RowChange>) -> Result<(), Error> {
        self.tables.begin(batch)?;
        let carried = batch.carried().gtid.as_deref();
        let mut gtid = carried.map(|event| held_gtid(batch.log(), event)).transpose()?.flatten();
        while let Some(item) = batch.next_item() {
            let BatchItem::Event(event) = item else { continue };
            if let Some(frame) = event.frame.filter(|frame| frame.event_type().is_gtid()) {
                let decoded = AnyGtidEvent::decode_frame(&frame).map_err(|error| event.error(error))?;
                gtid = decoded.and_then(|decoded| decoded.gtid());
            }
            self.event(&event, &gtid, changes)?;
        }
        Ok(())
    }

    /// The changes of an event, if it has some.
    fn event(
        &mut self,
        event: &Event<'_>,
        gtid: &Option<Gtid>,
        changes: &mut Vec<RowChange>,
    ) -> Result<(), Error> {
        let Some(TableEvent::Rows(schema, rows_event)) = self.tables.event(event)? else { return Ok(()) };
        let mut position = RowPosition {
            log: event.log.number,
            offset: event.position.offset,
            inside: event.position.inside.map(|inside| inside.index),
            row: u64::MAX,
        };
        if self.after.is_some_and(|after| position <= after) {
            return Ok(());
        }
        let mut rows = match self.decoder.rows(&schema, &rows_event) {
            Ok(rows) => rows,
            Err(error) => {
                event.unread(&schema, &error);
                return Ok(());
            }
        };
        while let Some(row) = rows.next_row().map_err(|error| event.error(error))? {
            position.row = position.row.wrapping_add(1);
            if self.after.is_some_and(|after| position <= after) {
                continue;
            }
            changes.push(RowChange {
                position,
                gtid: *gtid,
                kind: rows_event.kind(),
                timestamp: event.header.timestamp,
                row: OwnedRow::new(Arc::clone(&schema), &row),
            });
        }
        Ok(())
    }
}

/// The GTID of the transaction that a batch begins in.
fn held_gtid(log: &InputLog, event: &HeldEvent) -> Result<Option<Gtid>, Error> {
    let decode = || -> Result<Option<Gtid>, BinlogError> {
        let Some(frame) = log.context.framing.next_frame(&event.bytes)? else { return Ok(None) };
        Ok(AnyGtidEvent::decode_frame(&frame.unchecked()?)?.and_then(|decoded| decoded.gtid()))
    };
    decode().map_err(|error| error.at(event.offset, None).into())
}

impl fmt::Display for RowPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.log, self.offset)?;
        if let Some(index) = self.inside {
            write!(f, "+{index}")?;
        }
        write!(f, "#{}", self.row)
    }
}

/// A text that is no [`RowPosition`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("row position is {0:?}, expected log:offset#row or log:offset+index#row")]
pub struct BadRowPosition(String);

impl FromStr for RowPosition {
    type Err = BadRowPosition;

    fn from_str(text: &str) -> Result<Self, BadRowPosition> {
        let parse = || {
            let (log, rest) = text.split_once(':')?;
            let (place, row) = rest.split_once('#')?;
            let (offset, inside) = match place.split_once('+') {
                Some((offset, index)) => (offset, Some(index.parse().ok()?)),
                None => (place, None),
            };
            let log = log.parse().ok()?;
            let offset = offset.parse().ok()?;
            let row = row.parse().ok()?;
            Some(RowPosition { log, offset, inside, row })
        };
        parse().ok_or_else(|| BadRowPosition(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log that is read well at first.
    struct Panicking(std::io::Cursor<Vec<u8>>);

    impl std::io::Read for Panicking {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buffer)? {
                0 => panic!("a bug that this test injects"),
                read => Ok(read),
            }
        }
    }

    #[test]
    fn a_thread_that_panics_is_not_the_end_of_the_log() {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../../lab/testkit/corpus/mysql-9.7.4/binlog.000001");
        let log = std::io::Cursor::new(std::fs::read(path).unwrap());
        let mut changes = RowChanges::new(Input::Stream(Box::new(Panicking(log))));
        let last = changes.by_ref().last();
        let error = last.and_then(Result::err).map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("a bug in binlogz: a thread that reads the log panicked"));
        assert!(changes.next().is_none());
    }

    #[test]
    fn positions_as_text_and_in_order() {
        let place = |inside, row| RowPosition { log: 0, offset: 4711, inside, row };
        for (text, position) in [("0:4711#0", place(None, 0)), ("0:4711+3#12", place(Some(3), 12))] {
            assert_eq!(position.to_string(), text);
            assert_eq!(text.parse(), Ok(position));
        }
        for bad in ["", "4711", "0:4711", "0:#1", "0:1+#1", "0:1#-1", "a:1#1", "0:1#1 "] {
            assert!(bad.parse::<RowPosition>().is_err(), "{bad}");
        }
        assert!(place(Some(3), 12) < place(Some(4), 0) && place(Some(4), 0) < place(Some(4), 1));
    }
}
