//! Which parts of an archived log have rows with the values that a query looks for. Ranges and filters of keys leave some parts that have
//! none, and know one column of a table alone; so the columns of the conditions are unpacked before anything else is.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlogz_archive::block::picked::{Pick, PickedChanges, PickedTable};
use binlogz_archive::format::contents::KeyProbe;
use binlogz_archive::part::{BlockRun, PickedLog};
use binlogz_arrow::column_place;
use binlogz_binlog::row::{Cell, TableSchema};
use binlogz_schema::HistoryPlace;
use datafusion::common::Result;

use super::ReadJob;
use super::picked::left;
use crate::logs::Logs;
use crate::logs::wanted::ValueCondition;

/// The parts of a log that have such rows.
#[derive(Debug, Default)]
pub(crate) struct MeetingRuns {
    /// Where they begin in the log.
    pub(crate) starts: BTreeSet<u64>,
    /// Blocks of which columns were unpacked to find that.
    pub(crate) blocks_looked_into: usize,
    pub(crate) bytes_read: u64,
}

/// A run of blocks that is looked into.
struct CandidateRun {
    start: u64,
    /// How many blocks it has.
    blocks: usize,
}

/// The parts of a log that have rows which meet all of these conditions. `None`: it can't be found from columns alone. Parts of which that is so
/// count as such that have them. `keys_alone`: no other column is worth it.
pub(super) fn meeting_runs(
    job: &ReadJob<'_>,
    conditions: &[ValueCondition],
    keys_alone: bool,
) -> Result<Option<MeetingRuns>> {
    let ReadJob { logs, index, wanted, .. } = *job;
    let Some((database, table)) = wanted.one_table() else { return Ok(None) };
    if logs.tables()?.is_some_and(|tables| tables.may_change(database, table)) {
        return Ok(None);
    }
    let mut found = MeetingRuns::default();
    let mut candidates = Vec::new();
    let mut has_key = false;
    let log = logs.picked(index, false, &mut |run| {
        if !wanted.may_be_in(run, true, logs) {
            return Some(false);
        }
        let Some(tables) = tables_of(run, job) else {
            found.starts.insert(run.start());
            return Some(false);
        };
        has_key |= tables.iter().any(|name| conditions.iter().any(|one| logs.is_key(name, &one.column)));
        candidates.push(CandidateRun { start: run.start(), blocks: run.block_count() });
        Some(true)
    })?;
    let Some(log) = log.filter(|_| has_key || !keys_alone) else { return Ok(None) };
    if !candidates.is_empty() {
        look_into(&log, (database, table), job, conditions, &candidates, &mut found)?;
    }
    Ok(Some(found))
}

/// The wanted tables that have rows in a part of a log; `None`: their columns can't be picked.
fn tables_of<'r>(
    run: &BlockRun<'r>,
    job: &ReadJob<'_>,
) -> Option<Vec<&'r binlogz_archive::format::contents::ListedTable>> {
    let rows = run.rows()?;
    let names = rows.iter().map(|rows| rows.name);
    let names = names.filter(|name| job.wanted.has_name(&name.database, &name.table));
    names.map(|name| name.definition.is_some().then_some(name)).collect()
}

/// Goes through the columns of the conditions in these runs.
fn look_into(
    log: &PickedLog,
    (database, table): (&str, &str),
    job: &ReadJob<'_>,
    conditions: &[ValueCondition],
    candidates: &[CandidateRun],
    found: &mut MeetingRuns,
) -> Result<()> {
    let logs = job.logs;
    let columns = |schema: &TableSchema| {
        let places = places(schema, conditions, logs);
        Some(places.into_iter().map(|(place, _)| place).collect::<BTreeSet<_>>().into_iter().collect())
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
    let make =
        |picked: &PickedChanges| Ok(picked.tables.iter().any(|table| has_row(table, conditions, logs)));
    // Where each block's run begins.
    let mut starts = candidates.iter().flat_map(|run| std::iter::repeat_n(run.start, run.blocks));
    let mut start = None;
    let looked = log.each(&pick, job.workers, &make, &mut |bytes, meets| {
        // The parts of a block after its first have none.
        if bytes > 0 {
            start = starts.next();
            found.blocks_looked_into += 1;
            found.bytes_read += bytes;
        }
        found.starts.extend(start.filter(|_| meets));
        match job.end.is_over() {
            true => Err(left()),
            false => Ok(()),
        }
    });
    looked.map_err(|error| logs.archive_error(job.index, &error))?;
    Ok(())
}

/// The conditions on columns that a table has, each with the column's place.
fn places<'c>(
    schema: &TableSchema,
    conditions: &'c [ValueCondition],
    logs: &Logs,
) -> Vec<(usize, &'c [KeyProbe])> {
    let (told, _) = logs.told(&Arc::new(schema.clone()), HistoryPlace::default());
    let place = |condition: &'c ValueCondition| {
        Some((column_place(&told.names, &condition.column)?, condition.probes.as_slice()))
    };
    conditions.iter().filter_map(place).collect()
}

/// Whether a row may meet all conditions, before or after its change.
fn has_row(table: &PickedTable, conditions: &[ValueCondition], logs: &Logs) -> bool {
    let places = places(&table.schema, conditions, logs);
    let picks: Vec<_> = places
        .into_iter()
        .filter_map(|(place, probes)| {
            Some((table.columns.iter().position(|column| *column == place)?, place, probes))
        })
        .collect();
    let meets = |row: usize, is_after: bool, pick: usize, place: usize, probes: &[KeyProbe]| {
        let content = table.values(row..row + 1, is_after, pick).next().flatten();
        let Some((content, column)) = content.zip(table.schema.columns().get(place)) else { return false };
        let cell = Cell { index: place, column, content };
        probes.iter().any(|probe| probe.may_be(&cell))
    };
    (0..table.row_count()).any(|row| {
        picks.iter().all(|&(pick, place, probes)| {
            [false, true].into_iter().any(|is_after| meets(row, is_after, pick, place, probes))
        })
    })
}
