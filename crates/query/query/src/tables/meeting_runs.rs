//! Which parts of an archived log have rows with the values that a query looks for. Ranges and filters of keys leave some parts that have
//! none, and know one column of a table alone; so the columns of the conditions are unpacked before anything else is.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlogz_archive::block::picked::{Pick, PickedChanges, PickedTable};
use binlogz_archive::format::contents::KeyProbe;
use binlogz_archive::part::{BlockRun, PickedLog};
use binlogz_arrow::column_place;
use binlogz_binlog::row::{Cell, CellContent, ColumnClass, ColumnKind, TableSchema};
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
        with_values: &|_, _| true,
        with_deleted: true,
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
    let mut left: Option<Vec<bool>> = None;
    for (place, probes) in places(&table.schema, conditions, logs) {
        let Some(pick) = table.columns.iter().position(|column| *column == place) else { continue };
        let meet = rows_meeting(table, (pick, place), probes);
        left = Some(match left {
            None => meet,
            Some(left) => left.into_iter().zip(meet).map(|(one, other)| one && other).collect(),
        });
    }
    left.map_or(table.row_count() > 0, |left| left.contains(&true))
}

/// Which rows may have one of the values in a picked column, before or after the change. A whole column at once: a search looks at far more
/// rows than it finds.
fn rows_meeting(table: &PickedTable, (pick, place): (usize, usize), probes: &[KeyProbe]) -> Vec<bool> {
    let mut meet = vec![false; table.row_count()];
    let Some(column) = table.schema.columns().get(place) else { return meet };
    let wanted = WantedBytes::of(column.kind, probes);
    for is_after in [false, true] {
        let contents = table.values(0..meet.len(), is_after, pick);
        for (meets, content) in meet.iter_mut().zip(contents) {
            let Some(content) = content.filter(|_| !*meets) else { continue };
            *meets = match (&wanted, &content) {
                (Some(wanted), CellContent::Value(bytes)) => wanted.has(bytes),
                (Some(_), CellContent::Null | CellContent::JsonDiffs(_)) => false,
                (None, _) => {
                    let cell = Cell { index: place, column, content };
                    probes.iter().any(|probe| probe.may_be(&cell))
                }
            };
        }
    }
    meet
}

/// The values of a column of whole numbers that meet conditions, as they stand in rows: these are found without reading each number.
struct WantedBytes(Vec<[u8; 8]>, usize);

impl WantedBytes {
    /// `None`: the column has no whole numbers, or it isn't known whether they have a sign; or more than a few values meet the conditions.
    fn of(kind: ColumnKind, probes: &[KeyProbe]) -> Option<Self> {
        if !matches!(kind.class(), ColumnClass::Integer) {
            return None;
        }
        let size = kind.integer_bits() as usize / 8;
        let mut wanted = Vec::new();
        for probe in probes {
            let (first, last) = probe.numbers.filter(|_| probe.is_narrow())?;
            // The low bytes of a number are the same with and without a sign; a value of the other kind is compared again.
            wanted.extend(
                (first..=last)
                    .filter(|number| fits(*number, size))
                    .map(|number| (number as u64).to_le_bytes()),
            );
        }
        Some(WantedBytes(wanted, size))
    }

    #[inline]
    fn has(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|wanted| wanted.get(..self.1) == Some(bytes))
    }
}

/// Whether a number is one of this many bytes, with or without a sign.
fn fits(number: i128, size: usize) -> bool {
    let bits = 8 * size as u32;
    number >= -(1_i128 << (bits - 1)) && number < 1_i128 << bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_found_by_their_bytes() {
        let probes = |first, last| [KeyProbe { numbers: Some((first, last)), text: None }];
        let kind = ColumnKind::MediumInt { unsigned: false };
        let wanted = WantedBytes::of(kind, &probes(-2, 1)).unwrap();
        for (bytes, is_wanted) in [
            ([0xfe, 0xff, 0xff], true),
            ([0xff, 0xff, 0xff], true),
            ([0, 0, 0], true),
            ([1, 0, 0], true),
            ([2, 0, 0], false),
            ([0xfd, 0xff, 0xff], false),
        ] {
            assert_eq!(wanted.has(&bytes), is_wanted, "{bytes:?}");
        }
        let tiny = WantedBytes::of(ColumnKind::TinyInt { unsigned: true }, &probes(255, 300)).unwrap();
        assert!(tiny.has(&[255]) && !tiny.has(&[44]));
        assert!(WantedBytes::of(kind, &probes(0, 1000)).is_none());
        assert!(WantedBytes::of(ColumnKind::Double, &probes(1, 1)).is_none());
    }
}
