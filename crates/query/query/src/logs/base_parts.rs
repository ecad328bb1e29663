//! Parts of archived logs for a base: those that may have changes of certain rows, found by the column of their key.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlogz_archive::block::picked::{Pick, PickedChanges, PickedTable};
use binlogz_archive::part::BlockRun;
use binlogz_binlog::row::{Cell, TableSchema};
use binlogz_flow::{FactsUpTo, Input, LogFacts};

use super::base::{KeyedRows, WholeLogs};
use super::inputs::Logs;
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
    /// Looks for rows in parts of an archived log, as [`WholeLogs::parts_with`] does.
    fn rows_in(
        &self,
        index: usize,
        starts: &BTreeSet<u64>,
        wanted: &KeyedRows<'_>,
    ) -> Result<(BTreeSet<u64>, usize), LogError> {
        let (database, table) = wanted.table;
        let mut found = BTreeSet::new();
        // Where the run of each block begins that is looked into.
        let mut blocks = Vec::new();
        let log = self.picked(index, false, &mut |run| {
            if !starts.contains(&run.start()) {
                return Some(false);
            }
            if !tells_columns(run, wanted) {
                found.insert(run.start());
                return Some(false);
            }
            blocks.extend(std::iter::repeat_n(run.start(), run.block_count()));
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
            with_before: true,
            with_numbers: false,
            with_positions: false,
        };
        let make = |picked: &PickedChanges| Ok(picked.tables.iter().any(|table| may_have_row(table, wanted)));
        let mut looked_into = 0;
        let mut start = None;
        let reading = self.reading_now();
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let looked = log.each(&pick, workers, &make, &mut |bytes, may_have| {
            // The parts of a block after its first have none.
            if bytes > 0 {
                start = blocks.get(looked_into).copied();
                looked_into += 1;
            }
            found.extend(start.filter(|_| may_have));
            match reading.is_over() {
                true => Err(binlogz_archive::Error::writing(std::io::ErrorKind::BrokenPipe.into())),
                false => Ok(()),
            }
        });
        looked.map_err(|error| self.archive_error(index, &error))?;
        Ok((found, looked_into))
    }
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
