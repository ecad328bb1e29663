//! Finds the transactions of the logs that are new: complete, and not yet exported, by an earlier run or by this one from
//! another log. A transaction is known by its GTID, or without one by its log and position.
//!
//! Each log is read once. Only its end tells whether a transaction is complete, so the rows of an open one are held until
//! then.

use std::collections::BTreeMap;
use std::io;
use std::str::FromStr;

use binlogz_archive::part::BlockRun;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_flow::Error as FlowError;
use binlogz_payload::Ineligible;
use datafusion::arrow::array::{
    Array, AsArray, BooleanArray, PrimitiveArray, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt64Array,
};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{ArrowPrimitiveType, SchemaRef, TimestampMicrosecondType, UInt64Type};

use super::ExportSummary;
use super::manifest::ExportManifest;
use crate::error::{Error, Result};
use crate::logs::Logs;
use crate::tables::{EveryPart, EveryTable, HeldRows, TableReader, TransactionsTable};

/// New transactions.
#[derive(Debug)]
pub(super) struct FreshTransactions {
    /// The GTIDs of runs before: an archive's blocks that have no others are not read.
    before: GtidSet,
    gtids: GtidSet,
    logs: BTreeMap<String, u64>,
    pub(super) counts: ExportSummary,
}

/// A batch of new rows, in the order of the logs.
pub(super) enum FreshPart {
    Transactions(RecordBatch),
    /// Rows of a table, by its number.
    Rows(usize, RecordBatch),
}

/// Takes the new transactions and rows.
pub(super) type FreshSink<'a> = &'a mut dyn FnMut(FreshPart) -> Result<()>;

/// Transactions of a log that follow one another.
#[derive(Debug, Clone, Copy)]
struct Range {
    /// Where the first one begins, and the last one.
    first: u64,
    last: u64,
    /// Where the last one ends, if no other events stand in it.
    end: u64,
}

/// The columns of the data set of transactions.
pub(super) fn schema() -> SchemaRef {
    TransactionsTable.schema()
}

/// The GTIDs of all runs up to one.
pub(super) fn gtids(manifest: &ExportManifest) -> Result<GtidSet> {
    GtidSet::from_str(&manifest.gtids)
        .map_err(|error| Error::Target(format!("manifest of run {}: {error}", manifest.run)))
}

impl FreshTransactions {
    /// Nothing is found yet.
    pub(super) fn after(manifest: &ExportManifest) -> Result<Self> {
        let before = gtids(manifest)?;
        Ok(FreshTransactions {
            gtids: before.clone(),
            before,
            logs: manifest.logs.clone(),
            counts: ExportSummary::default(),
        })
    }

    /// The transactions that are exported after this run.
    pub(super) fn exported(&self) -> (String, BTreeMap<String, u64>) {
        (self.gtids.to_string().replace('\n', ""), self.logs.clone())
    }

    /// The tables whose rows are found: none yet.
    pub(super) fn tables(&self) -> EveryTable {
        EveryTable::new(self.before.clone())
    }

    /// Whether a part of an archived log may have new ones. It has whole transactions, or a part of a single one.
    /// Transactions without GTID may stand among those with one, while a server's gtid_mode changes.
    pub(super) fn may_be_in(&self, run: &BlockRun<'_>) -> bool {
        run.gtids.is_empty() || run.may_lack_gtids() || !run.gtids.is_subset(&self.before)
    }

    /// Finds the new transactions, and the rows of theirs in these tables.
    pub(super) fn find(
        &mut self,
        logs: &Logs,
        every: &EveryTable,
        workers: usize,
        sink: FreshSink<'_>,
    ) -> Result<()> {
        let _pass = logs.pass(|_| true);
        for index in 0..logs.len() {
            let input = logs
                .open(index, &mut |run| self.may_be_in(run))
                .map_err(|error| Error::Log(error.to_string()))?;
            let mut log = Log { name: logs.name(index), is_masked: logs.are_masked(), ..Log::default() };
            let mut trouble = None;
            let ran = every.read(input, logs, (index, logs.name(index)), workers, &mut |part| {
                self.part(&mut log, part, sink).map_err(|error| stop(&mut trouble, error))
            });
            if let Some(error) = trouble {
                return Err(error);
            }
            let ran = ran.map_err(|error| Error::Log(logs.error(index, &error).to_string()))?;
            logs.ended(index, &ran).map_err(|error| Error::Log(error.to_string()))?;
        }
        Ok(())
    }

    fn part(&mut self, log: &mut Log<'_>, part: EveryPart, sink: FreshSink<'_>) -> Result<()> {
        for batch in &part.transactions {
            if let Some(batch) = self.take(log, batch)? {
                sink(FreshPart::Transactions(batch))?;
            }
        }
        let mut pass_on = |ranges: &[Range], table, batch| match of_rows(ranges, batch)? {
            Some(batch) => sink(FreshPart::Rows(table, batch)),
            None => Ok(()),
        };
        if part.open_from != log.open_from {
            log.open_from = part.open_from;
            let ranges = &log.ranges;
            log.held.release(&mut |table, batch| pass_on(ranges, table, batch))?;
        }
        for (table, batch) in part.rows {
            let ended = log.ended(&batch)?;
            if ended == batch.num_rows() {
                pass_on(&log.ranges, table, batch)?;
                continue;
            }
            pass_on(&log.ranges, table, batch.slice(0, ended))?;
            log.held.add(table, batch.slice(ended, batch.num_rows() - ended))?;
        }
        Ok(())
    }

    /// The new ones of a batch of transactions.
    fn take(&mut self, log: &mut Log<'_>, batch: &RecordBatch) -> Result<Option<RecordBatch>> {
        let columns = Columns::of(batch)?;
        let mask = (0..batch.num_rows()).map(|row| self.is_new(log, &columns, row));
        filtered(batch.clone(), mask.collect::<Result<_>>()?)
    }

    fn is_new(&mut self, log: &mut Log<'_>, columns: &Columns<'_>, row: usize) -> Result<bool> {
        // One that began before the log is in the log before, or nowhere.
        let Some(position) = value(columns.position, row) else { return Ok(log.leave_out()) };
        if columns.reason.is_valid(row) && columns.reason.value(row) == Ineligible::Incomplete.name() {
            self.counts.incomplete += 1;
            return Ok(log.leave_out());
        }
        let gtid = columns.gtid.is_valid(row).then(|| Gtid::from_str(columns.gtid.value(row)).ok()).flatten();
        match gtid {
            Some(gtid) if self.gtids.contains(&gtid) => return Ok(log.leave_out()),
            Some(gtid) => self.gtids.add(gtid),
            None => {
                let key = match &log.key {
                    Some(key) => key,
                    None => {
                        let begun = value(columns.logged_at, row).unwrap_or_default() / 1_000_000;
                        log.key.insert(self.without_gtids(log.name, begun, log.is_masked)?)
                    }
                };
                match self.logs.get_mut(key) {
                    Some(last) if position <= *last => return Ok(log.leave_out()),
                    Some(last) => *last = position,
                    None => {
                        self.logs.insert(key.clone(), position);
                    }
                }
            }
        }
        self.counts.transactions += 1;
        self.counts.rows += columns.rows.iter().filter_map(|rows| value(rows, row)).sum::<u64>();
        log.add(position, position + value(columns.bytes, row).unwrap_or_default());
        Ok(true)
    }

    /// The name under which the last transaction without GTID of a log is noted.
    ///
    /// # Errors
    ///
    /// A masked log that was exported before: its positions depend on the policy and on what was known of the tables, so they don't tell
    /// which transactions are new.
    fn without_gtids(&self, name: &str, begun: i64, is_masked: bool) -> Result<String> {
        let key = format!("{name} {begun}");
        match is_masked && self.logs.contains_key(&key) {
            true => Err(Error::Log(format!(
                "{name}: was exported before, and has transactions without GTID, of which --exits can't tell which are new; expected logs \
                 that were not exported, once each; nothing was exported"
            ))),
            false => Ok(key),
        }
    }
}

/// Ends the reading of a log because of an error that isn't the log's.
fn stop(trouble: &mut Option<Error>, error: Error) -> FlowError {
    *trouble = Some(error);
    FlowError::Output(io::Error::from(io::ErrorKind::BrokenPipe).into())
}

/// Where rows of a table stand.
struct RowPlaces<'a> {
    position: &'a UInt64Array,
    offset: &'a UInt64Array,
}

impl<'a> RowPlaces<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self> {
        Ok(RowPlaces { position: column(batch, "position")?, offset: column(batch, "offset")? })
    }

    /// Where the row's transaction begins. Without a GTID event only the event's own place is known.
    fn begin(&self, row: usize) -> u64 {
        value(self.position, row).unwrap_or_else(|| self.offset(row))
    }

    fn offset(&self, row: usize) -> u64 {
        value(self.offset, row).unwrap_or_default()
    }
}

/// The rows of a table that are of new transactions; `None`: there are none.
fn of_rows(ranges: &[Range], batch: RecordBatch) -> Result<Option<RecordBatch>> {
    let places = RowPlaces::of(&batch)?;
    let place = |row: usize| {
        let begin = places.begin(row);
        let number = ranges.partition_point(|range| range.first <= begin).checked_sub(1)?;
        let range = ranges.get(number)?;
        let is_in = match places.position.is_valid(row) {
            true => begin <= range.last,
            false => places.offset(row) < range.end,
        };
        is_in.then_some(number)
    };
    let rows = batch.num_rows();
    // Rows are in order: if the first and the last one are in a range, all are.
    if rows > 0 && place(0).is_some_and(|number| place(rows - 1) == Some(number)) {
        return Ok(Some(batch));
    }
    let mask = (0..rows).map(|row| place(row).is_some()).collect();
    filtered(batch, mask)
}

/// A log while it is read.
#[derive(Default)]
struct Log<'a> {
    name: &'a str,
    /// Whether its positions are those of a masked log.
    is_masked: bool,
    /// The log's name, and when its first transaction without GTID was logged: names come again after RESET.
    key: Option<String>,
    /// The log's new transactions, in order.
    ranges: Vec<Range>,
    /// Whether the next transaction follows the last range.
    is_open: bool,
    /// Where the transaction begins that goes on, and its rows until now.
    open_from: Option<u64>,
    held: HeldRows,
}

impl Log<'_> {
    fn leave_out(&mut self) -> bool {
        self.is_open = false;
        false
    }

    fn add(&mut self, position: u64, end: u64) {
        match self.ranges.last_mut().filter(|_| self.is_open) {
            Some(range) => (range.last, range.end) = (position, end),
            None => self.ranges.push(Range { first: position, last: position, end }),
        }
        self.is_open = true;
    }

    /// The rows of a batch, from its first one on, whose transactions have ended.
    fn ended(&self, batch: &RecordBatch) -> Result<usize> {
        let (Some(open_from), rows) = (self.open_from, batch.num_rows()) else { return Ok(batch.num_rows()) };
        let places = RowPlaces::of(batch)?;
        // Rows are in order, and most batches have none of it.
        let goes_on = |row: usize| places.begin(row) >= open_from;
        if rows == 0 || !goes_on(rows - 1) {
            return Ok(rows);
        }
        Ok((0..rows).find(|&row| goes_on(row)).unwrap_or(rows))
    }
}

/// The columns of transactions that tell which are new.
struct Columns<'a> {
    position: &'a UInt64Array,
    gtid: &'a StringArray,
    logged_at: &'a TimestampMicrosecondArray,
    bytes: &'a UInt64Array,
    rows: [&'a UInt64Array; 3],
    reason: &'a StringArray,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self> {
        let number = |name| column::<UInt64Type>(batch, name);
        Ok(Columns {
            position: number("position")?,
            gtid: text(batch, "gtid")?,
            logged_at: column::<TimestampMicrosecondType>(batch, "logged_at")?,
            bytes: number("bytes")?,
            rows: [number("inserted")?, number("updated")?, number("deleted")?],
            reason: text(batch, "not_compressed")?,
        })
    }
}

/// A column of numbers or moments.
pub(super) fn column<'b, T: ArrowPrimitiveType>(
    batch: &'b RecordBatch,
    name: &str,
) -> Result<&'b PrimitiveArray<T>> {
    let column = batch.column_by_name(name).and_then(|column| column.as_primitive_opt::<T>());
    column.ok_or_else(|| Error::Target(format!("no column {name} in a batch")))
}

fn text<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b StringArray> {
    let column = batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
    column.ok_or_else(|| Error::Target(format!("no column {name} in a batch")))
}

/// A value; `None`: NULL.
pub(super) fn value<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    column.is_valid(row).then(|| column.value(row))
}

fn filtered(batch: RecordBatch, mask: Vec<bool>) -> Result<Option<RecordBatch>> {
    if mask.iter().all(|is_in| *is_in) {
        return Ok((batch.num_rows() > 0).then_some(batch));
    }
    let batch = filter_record_batch(&batch, &BooleanArray::from(mask))
        .map_err(|error| Error::Target(error.to_string()))?;
    Ok((batch.num_rows() > 0).then_some(batch))
}
