//! Chooses for a reader of parts: which transactions it wants, and which blocks of an archive may have rows that its conditions leave.
//! Rows are not looked at: who asks checks each of them again.

use binlogz_archive::format::Key as ArchivedKey;
use binlogz_archive::format::contents::{KeyProbe, ListedTable};
use binlogz_archive::part::{BlockRun, TableRows};
use binlogz_arrow::is_same_column;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use pyo3::prelude::*;

use crate::bad;

const SECOND: i64 = 1_000_000;

/// The first and the last moment, in microseconds since 1970; `None`: any.
type AskedTimes = (Option<i64>, Option<i64>);
/// The first and the last number, or a text; `None`: any.
type AskedKey = (Option<i128>, Option<i128>, Option<String>);

/// Conditions as Python has them.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AskedConditions {
    /// GTIDs of the wanted transactions; those that are left out; all others than these are left out.
    gtids: Option<String>,
    start_after: Option<String>,
    until: Option<String>,
    committed_at: AskedTimes,
    logged_at: AskedTimes,
    schemas: Option<Vec<String>>,
    tables: Option<Vec<String>>,
    operations: Option<Vec<String>>,
    /// Columns, and the keys that each may have.
    keys: Vec<(String, Vec<AskedKey>)>,
    /// Whether tables are known by the statements of all logs.
    pub(crate) is_ordered: bool,
}

/// Transactions by their GTIDs.
#[derive(Debug)]
pub(crate) struct GtidSelection {
    pub(crate) left_out: GtidSet,
    /// No others; one without GTID can't be told. `None`: all.
    pub(crate) only: Option<GtidSet>,
}

impl GtidSelection {
    /// All transactions but these.
    pub(crate) fn without(left_out: GtidSet) -> Self {
        GtidSelection { left_out, only: None }
    }

    /// No transactions but these; `None`: all.
    pub(crate) fn of(only: Option<GtidSet>) -> Self {
        GtidSelection { left_out: GtidSet::default(), only }
    }

    /// Whether the transaction of a GTID event is left out.
    pub(crate) fn leaves_out(&self, gtid: Option<&Gtid>) -> bool {
        let Some(gtid) = gtid else { return false };
        self.left_out.contains(gtid) || self.only.as_ref().is_some_and(|only| !only.contains(gtid))
    }
}

/// The blocks of an archive that may have what is wanted.
#[derive(Debug)]
pub(crate) struct BlockSelection {
    asked: AskedConditions,
    gtids: Option<GtidSet>,
    /// Transactions that are not left out by name.
    chosen: Option<GtidSet>,
    keys: Vec<(String, Vec<KeyProbe>)>,
    /// Only blocks with rows are wanted.
    is_of_rows: bool,
}

impl AskedConditions {
    pub(crate) fn transactions(&self) -> PyResult<GtidSelection> {
        let left_out = self.start_after.as_deref().map_or_else(|| Ok(GtidSet::default()), parsed)?;
        Ok(GtidSelection { left_out, only: self.until.as_deref().map(parsed).transpose()? })
    }

    pub(crate) fn blocks(self, is_of_rows: bool) -> PyResult<BlockSelection> {
        let gtids = self.gtids.as_deref().map(parsed).transpose()?;
        let GtidSelection { left_out, only } = self.transactions()?;
        let chosen = only.map(|mut only| {
            only.subtract(&left_out);
            only
        });
        let keys = self.keys.iter().map(|(column, keys)| (column.clone(), keys.iter().map(probe).collect()));
        Ok(BlockSelection { keys: keys.collect(), gtids, chosen, is_of_rows, asked: self })
    }
}

/// The union of some GTID sets without others, as text.
#[pyfunction]
pub(crate) fn gtid_set(sets: Vec<String>, without: Vec<String>) -> PyResult<String> {
    let mut all = GtidSet::default();
    for set in &sets {
        all.union(&parsed(set)?);
    }
    for set in &without {
        all.subtract(&parsed(set)?);
    }
    Ok(plain(&all))
}

/// A set as text without line breaks.
pub(crate) fn plain(set: &GtidSet) -> String {
    set.to_string().replace('\n', "")
}

/// A GTID set of its text.
pub(crate) fn parsed(text: &str) -> PyResult<GtidSet> {
    text.parse().map_err(bad)
}

/// A value as an archive looks for it among the keys of its blocks.
fn probe((first, last, text): &AskedKey) -> KeyProbe {
    let Some(text) = text else {
        return KeyProbe {
            numbers: Some((first.unwrap_or(i128::MIN), last.unwrap_or(i128::MAX))),
            text: None,
        };
    };
    // What is no text in its character set looks like this.
    let is_bytes = text.starts_with("0x");
    let number = text.parse().ok().filter(|number: &i128| number.to_string() == *text);
    KeyProbe {
        numbers: number.map(|number| (number, number)),
        text: (!is_bytes).then(|| ArchivedKey::of_bytes(text.as_bytes())),
    }
}

impl BlockSelection {
    /// Whether blocks may have some of it.
    pub(crate) fn may_be_in(&self, run: &BlockRun<'_>) -> bool {
        let tells_of_tables = run.may_have_statements() || run.may_have_loose();
        (self.asked.is_ordered && tells_of_tables) || self.may_have_rows_of(run)
    }

    fn may_have_rows_of(&self, run: &BlockRun<'_>) -> bool {
        if self.gtids.as_ref().is_some_and(|gtids| gtids.is_disjoint(&run.gtids)) {
            return false;
        }
        // One without a GTID has to be told.
        if self.chosen.as_ref().is_some_and(|chosen| chosen.is_disjoint(&run.gtids)) && !run.may_lack_gtids()
        {
            return false;
        }
        if let Some((first, last)) = run.commits()
            && !meets(self.asked.committed_at, whole_seconds(first), whole_seconds(last))
        {
            return false;
        }
        if let Some((first, last)) = run.times()
            && !meets(self.asked.logged_at, first.into(), last.into())
        {
            return false;
        }
        !self.is_of_rows || run.may_have_rows(&|rows| self.may_have(rows))
    }

    fn may_have(&self, rows: TableRows<'_>) -> bool {
        let counts =
            [("insert", rows.rows.inserted), ("update", rows.rows.updated), ("delete", rows.rows.deleted)];
        counts.iter().any(|&(word, count)| count > 0 && is_among(&self.asked.operations, word.as_bytes()))
            && is_among(&self.asked.schemas, &rows.name.database)
            && is_among(&self.asked.tables, &rows.name.table)
            && self.keys.iter().all(|(column, probes)| !is_key(rows.name, column) || rows.may_have(probes))
    }
}

fn whole_seconds(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

fn is_among(names: &Option<Vec<String>>, name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name);
    names.as_ref().is_none_or(|names| names.iter().any(|wanted| *wanted == *name))
}

/// Whether times of these seconds meet a condition.
fn meets((from, to): AskedTimes, first: i64, last: i64) -> bool {
    from.is_none_or(|from| from < last.saturating_add(1).saturating_mul(SECOND))
        && to.is_none_or(|to| to >= first.saturating_mul(SECOND))
}

/// Whether a column is the one of a table whose keys an archive knows.
fn is_key(table: &ListedTable, column: &str) -> bool {
    let Some(key) = &table.key else { return false };
    match &key.name {
        Some(name) => is_same_column(&String::from_utf8_lossy(name), column),
        None => column == format!("@{}", key.index + 1),
    }
}
