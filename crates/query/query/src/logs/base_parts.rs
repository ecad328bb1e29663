//! Parts of archived logs for a base: those that may have changes of certain rows, found by the column of their key.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlogz_archive::block::picked::{Pick, PickedChanges, PickedTable};
use binlogz_archive::directory::{LogDirectory, NeededDirectory};
use binlogz_archive::format::contents::KeyProbe;
use binlogz_archive::format::directory::DirectoryGroups;
use binlogz_archive::format::{ColumnKeys, ColumnKeysBuilder};
use binlogz_archive::part::BlockRun;
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::row::{Cell, TableSchema};
use binlogz_flow::{FactsUpTo, Input, LogFacts};

use super::base::{KeyedRows, WholeLogs};
use super::inputs::Logs;
use super::known_keys::PartColumn;
use super::unwanted::{ReadingEnd, wanted_input};
use crate::error::{Error, LogError, Result};

impl WholeLogs for Logs {
    fn count(&self) -> usize {
        self.len()
    }

    fn whole(&self, index: usize) -> Result<(&str, Input)> {
        let input = self.open(index, &mut |_| true).map_err(of_log)?;
        Ok((self.path(index), input))
    }

    fn undivided_size(&self, index: usize) -> u64 {
        match self.each_part(index, &mut |_| {}) {
            Ok(true) => 0,
            Ok(false) | Err(_) => self.size_of(index),
        }
    }

    fn each_part(&self, index: usize, take: &mut dyn FnMut(&BlockRun<'_>)) -> Result<bool> {
        self.each_run(index, take).map_err(of_log)
    }

    fn parts(&self, index: usize, starts: &BTreeSet<u64>) -> Result<(&str, Input, bool)> {
        let opened = self.open_parts(index, &mut |run| starts.contains(&run.start()));
        let (input, is_whole) = opened.map_err(of_log)?;
        Ok((self.path(index), input, is_whole))
    }

    fn parts_with(
        &self,
        index: usize,
        starts: &BTreeSet<u64>,
        wanted: &KeyedRows<'_>,
    ) -> Result<(BTreeSet<u64>, usize)> {
        self.rows_in(index, starts, wanted).map_err(of_log)
    }

    fn gtids_in_order(&self, index: usize, start: u64) -> Result<Option<Vec<Gtid>>> {
        self.ordered_gtids(index, start).map_err(of_log)
    }

    fn sequence_facts(&self, index: usize, up_to: FactsUpTo) -> Result<LogFacts> {
        let facts = match up_to {
            FactsUpTo::FirstTransaction => self.facts(index, up_to),
            FactsUpTo::End => self.facts_to_end(index),
        };
        facts.map_err(of_log)
    }

    fn for_statement(&self, input: Input) -> Input {
        wanted_input(input, Arc::new(self.reading_now()))
    }
}

fn of_log(error: LogError) -> Error {
    Error::Log(error.to_string())
}

impl Logs {
    /// The GTIDs of a part, as [`WholeLogs::gtids_in_order`] tells them.
    fn ordered_gtids(&self, index: usize, start: u64) -> Result<Option<Vec<Gtid>>, LogError> {
        let needed = NeededDirectory { groups: DirectoryGroups::GTIDS, as_logged: false };
        let directory = self.directory(index, needed, &mut |run| run.start() == start)?;
        let Some(directory) = directory.filter(LogDirectory::tells_all) else { return Ok(None) };
        let mut gtids = Vec::new();
        for (object, number) in directory.told() {
            let block = directory.block(object, number);
            let block = block.map_err(|error| self.archive_error(index, &error))?;
            for entry in block.entries().filter(|entry| entry.has_begun) {
                let Some(gtid) = entry.gtid else { return Ok(None) };
                gtids.push(gtid);
            }
        }
        Ok(Some(gtids))
    }

    /// Looks for rows in parts of an archived log, as [`WholeLogs::parts_with`] does.
    fn rows_in(
        &self,
        index: usize,
        starts: &BTreeSet<u64>,
        wanted: &KeyedRows<'_>,
    ) -> Result<(BTreeSet<u64>, usize), LogError> {
        let (database, table) = wanted.table;
        let mut found = BTreeSet::new();
        let packing = self.packing(index);
        let is_kept = self.known_keys.begin() && packing.is_some();
        // For each block that is looked into, its part.
        let mut blocks: Vec<PartColumn> = Vec::new();
        let log = self.picked(index, false, &mut |run| {
            if !starts.contains(&run.start()) {
                return Some(false);
            }
            if !tells_columns(run, wanted) {
                found.insert(run.start());
                return Some(false);
            }
            let part = PartColumn {
                log: index,
                packing: packing.unwrap_or_default(),
                start: run.start(),
                blocks: run.block_count(),
                table: (database.to_owned(), table.to_owned()),
                column: wanted.column,
            };
            if self.lacks_keys(&part, wanted) {
                return Some(false);
            }
            blocks.extend(std::iter::repeat_n(part, run.block_count()));
            Some(true)
        })?;
        // Parts whose columns can't be read alone may have the values.
        let Some(log) = log else { return Ok((starts.clone(), 0)) };
        if blocks.is_empty() {
            return Ok((found, 0));
        }
        let columns = |schema: &TableSchema| {
            Some(if wanted.column < schema.columns().len() { vec![wanted.column] } else { Vec::new() })
        };
        let pick = Pick {
            database: database.as_bytes(),
            table: table.as_bytes(),
            columns: &columns,
            with_around: false,
            with_values: &|_, _| true,
            with_deleted: true,
            with_numbers: false,
            with_positions: false,
        };
        let make = |picked: &PickedChanges| {
            let may_have = picked.tables.iter().any(|table| may_have_row(table, wanted));
            Ok((may_have, is_kept.then(|| keys_of(picked, wanted))))
        };
        let mut search = PartSearch { logs: self, blocks, looked_into: 0, keys: Vec::new(), found };
        let reading = self.reading_now();
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let looked = log.each(&pick, workers, &make, &mut |bytes, (may_have, keys)| {
            search.take(bytes > 0, may_have, keys);
            match reading.is_over() {
                true => Err(binlogz_archive::Error::writing(std::io::ErrorKind::BrokenPipe.into())),
                false => Ok(()),
            }
        });
        looked.map_err(|error| self.archive_error(index, &error))?;
        Ok(search.end())
    }

    /// Whether a part is known to have none of the values.
    fn lacks_keys(&self, part: &PartColumn, wanted: &KeyedRows<'_>) -> bool {
        wanted.probes.iter().all(KeyProbe::is_narrow)
            && self
                .known_keys
                .get(part)
                .is_some_and(|keys| !keys.iter().any(|keys| keys.may_have(wanted.probes)))
    }
}

/// The parts of a log in which rows are looked for, block after block.
struct PartSearch<'l> {
    logs: &'l Logs,
    /// For each block, its part.
    blocks: Vec<PartColumn>,
    looked_into: usize,
    /// The keys of the part that is looked into.
    keys: Vec<ColumnKeys>,
    found: BTreeSet<u64>,
}

impl PartSearch<'_> {
    /// Takes what a block has, or a piece of one that comes in several.
    fn take(&mut self, begins_block: bool, may_have: bool, keys: Option<ColumnKeys>) {
        if begins_block {
            self.looked_into += 1;
            let last = self.looked_into.checked_sub(2).and_then(|last| self.blocks.get(last));
            if last.is_some_and(|last| Some(last) != self.part()) {
                self.keep(self.looked_into - 2);
            }
        }
        let start = self.part().map(|part| part.start);
        self.found.extend(start.filter(|_| may_have));
        self.keys.extend(keys);
    }

    fn part(&self) -> Option<&PartColumn> {
        self.blocks.get(self.looked_into.checked_sub(1)?)
    }

    /// Keeps the keys of the part that this block is the last of.
    fn keep(&mut self, block: usize) {
        let keys = std::mem::take(&mut self.keys);
        if let Some(part) = self.blocks.get(block).filter(|_| !keys.is_empty()) {
            self.logs.known_keys.put(part.clone(), keys);
        }
    }

    /// Where the parts begin that may have a row, and how many blocks were looked into.
    fn end(mut self) -> (BTreeSet<u64>, usize) {
        if let Some(last) = self.looked_into.checked_sub(1) {
            self.keep(last);
        }
        (self.found, self.looked_into)
    }
}

/// The keys that rows have in the column, before or after their changes.
fn keys_of(picked: &PickedChanges, wanted: &KeyedRows<'_>) -> ColumnKeys {
    let mut keys = ColumnKeysBuilder::default();
    for table in &picked.tables {
        let columns = table.schema.columns();
        let Some(column) = columns.get(wanted.column).filter(|_| table.columns == [wanted.column]) else {
            keys.add_other();
            continue;
        };
        let rows = 0..table.row_count();
        let [before, after] = [false, true].map(|is_after| table.values(rows.clone(), is_after, 0));
        for (before, after) in before.zip(after) {
            if before.is_none() && after.is_none() {
                keys.add_other();
            }
            for content in [before, after].into_iter().flatten() {
                keys.add(&Cell { index: wanted.column, column, content });
            }
        }
    }
    keys.build()
}

/// Whether the archive tells the columns of the table's rows in a part, so that they can be unpacked alone.
fn tells_columns(run: &BlockRun<'_>, wanted: &KeyedRows<'_>) -> bool {
    let (database, table) = wanted.table;
    let is_it = |name: &binlogz_archive::format::contents::ListedTable| {
        (name.database.as_slice(), name.table.as_slice()) == (database.as_bytes(), table.as_bytes())
    };
    let rows = run.rows();
    rows.is_some_and(|rows| {
        rows.iter().filter(|rows| is_it(rows.name)).all(|rows| rows.name.definition.is_some())
    })
}

/// Whether a row may have one of the values. One that has no value of the column, before or after its change, may.
fn may_have_row(table: &PickedTable, wanted: &KeyedRows<'_>) -> bool {
    let columns = table.schema.columns();
    let Some(column) = columns.get(wanted.column).filter(|_| table.columns == [wanted.column]) else {
        return table.row_count() > 0;
    };
    let rows = 0..table.row_count();
    let [before, after] = [false, true].map(|is_after| table.values(rows.clone(), is_after, 0));
    before.zip(after).any(|(before, after)| {
        let mut contents = [before, after].into_iter().flatten().peekable();
        contents.peek().is_none()
            || contents.any(|content| {
                let cell = Cell { index: wanted.column, column, content };
                wanted.probes.iter().any(|probe| probe.may_be(&cell))
            })
    })
}
