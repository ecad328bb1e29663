//! What becomes of the columns of the table, as each of its maps describes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlogz_binlog::row::{ColumnKind, ColumnSchema, Fraction, TableSchema, Time};
use binlogz_schema::{TablesOfLogs, TablesSoFar};

use super::ErasureAim;
use crate::pass::Error;
use crate::table::WrittenTable;

/// The binary form of JSON's null.
const JSON_NULL: &[u8] = &[4, 0];
/// Maps of the table that are remembered: more than a transaction has.
const REMEMBERED_MAX: usize = 64;

/// What becomes of a column's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CellErasure {
    Null,
    /// The value that takes the place of each, as a row image has it.
    Blank(Vec<u8>),
}

/// What becomes of the rows of the table, as one map describes it.
#[derive(Debug)]
pub(super) struct TableErasure {
    pub(super) table: WrittenTable,
    /// By column; `None`: it stays.
    pub(super) cells: Vec<Option<CellErasure>>,
}

/// The plans of the table, and what is known of it at each place of the logs.
pub(super) struct PlannedTables<'a> {
    aim: &'a ErasureAim,
    tables: Arc<TablesOfLogs>,
    pub(super) so_far: TablesSoFar,
    plans: Vec<RememberedErasure>,
    met: BTreeSet<&'a str>,
    has_met: bool,
}

/// The plan of a map, as long as statements leave the table alone.
struct RememberedErasure {
    map: Arc<TableSchema>,
    era: usize,
    plan: Arc<TableErasure>,
}

impl<'a> PlannedTables<'a> {
    pub(super) fn new(aim: &'a ErasureAim, tables: Arc<TablesOfLogs>, so_far: TablesSoFar) -> Self {
        PlannedTables { aim, tables, so_far, plans: Vec::new(), met: BTreeSet::new(), has_met: false }
    }

    pub(super) fn begin_log(&mut self, name: &str) {
        self.tables.begin_log(name);
        self.so_far.begin_log(name.as_bytes());
    }

    /// Whether a statement at this offset is to be recorded: it wasn't read ahead.
    pub(super) fn records(&self, offset: u64) -> bool {
        self.tables.records(self.so_far.place(offset))
    }

    /// The plan of a map at this offset of the log.
    pub(super) fn plan(&mut self, map: &Arc<TableSchema>, offset: u64) -> Result<Arc<TableErasure>, Error> {
        let place = self.so_far.place(offset);
        let era = self.tables.era(place, &self.so_far);
        let is_it = |plan: &&RememberedErasure| Arc::ptr_eq(&plan.map, map) && plan.era == era;
        if let Some(remembered) = self.plans.iter().rev().find(is_it) {
            return Ok(Arc::clone(&remembered.plan));
        }
        self.has_met = true;
        let completed = self.tables.complete(map, place, &self.so_far);
        let table = WrittenTable::new(&completed.schema, None);
        let keys: BTreeSet<usize> = completed.keys.iter().flatten().chain(&table.in_keys).copied().collect();
        let mut cells = vec![None; completed.schema.columns().len()];
        let aim = self.aim;
        for (column, is_null) in
            aim.null.iter().map(|name| (name, true)).chain(aim.blank.iter().map(|name| (name, false)))
        {
            let Some(index) = index_of(&table, column, completed.problem.as_deref())? else { continue };
            self.met.insert(column);
            let Some(schema) = completed.schema.columns().get(index) else { continue };
            let erasure = erasure_of(schema, is_null, keys.contains(&index));
            let erasure = erasure
                .map_err(|why| Error::Refused(format!("{}, column {column}: {why}", table.shown())))?;
            if let Some(cell) = cells.get_mut(index) {
                *cell = Some(erasure);
            }
        }
        let plan = Arc::new(TableErasure { table, cells });
        if self.plans.len() >= REMEMBERED_MAX {
            self.plans.clear();
        }
        self.plans.push(RememberedErasure { map: Arc::clone(map), era, plan: Arc::clone(&plan) });
        Ok(plan)
    }

    /// Whether a map of the table has passed.
    pub(super) fn has_met_table(&self) -> bool {
        self.has_met
    }

    pub(super) fn unmet_columns(&self) -> Vec<&'a str> {
        let all = self.aim.null.iter().chain(&self.aim.blank).map(String::as_str);
        all.filter(|column| !self.met.contains(column)).collect()
    }
}

/// The place of a column that is called by its name or as `@3`; `None`: this table has no such column.
fn index_of(table: &WrittenTable, column: &str, problem: Option<&str>) -> Result<Option<usize>, Error> {
    if let Some(number) = column.strip_prefix('@').and_then(|number| number.parse::<usize>().ok()) {
        return Ok(number.checked_sub(1).filter(|index| *index < table.columns.len()));
    }
    let is_it = |name: &[u8]| String::from_utf8_lossy(name).to_lowercase() == column.to_lowercase();
    let mut columns = table.columns.iter();
    let index = columns.position(|own| own.name.as_deref().is_some_and(is_it));
    if index.is_none() && !table.has_names {
        let why = problem.map(|problem| format!(": {problem}")).unwrap_or_default();
        return Err(Error::Refused(format!(
            "{}: the names of its columns aren't known{why} (--schema FILE tells them, and @3 is the third column)",
            table.shown()
        )));
    }
    Ok(index)
}

/// What becomes of a column; `Err`: why that can't be.
fn erasure_of(column: &ColumnSchema, is_null: bool, is_in_key: bool) -> Result<CellErasure, String> {
    if is_in_key {
        return Err(
            "it is in a key, by which rows are found and told apart, expected another column, or --rows"
                .to_owned(),
        );
    }
    match (is_null, column.nullable) {
        (true, true) => Ok(CellErasure::Null),
        (true, false) => Err("it is NOT NULL, expected --blank, or --rows".to_owned()),
        (false, _) => blank(column).map(CellErasure::Blank),
    }
}

/// The empty value of a column's type, as its row images have it: what MySQL takes where a NOT NULL column gets no value.
fn blank(column: &ColumnSchema) -> Result<Vec<u8>, String> {
    let zeros = |size: usize| Ok(vec![0; size]);
    match column.kind {
        ColumnKind::TinyInt { .. } | ColumnKind::Year => zeros(1),
        ColumnKind::SmallInt { .. } => zeros(2),
        ColumnKind::MediumInt { .. } | ColumnKind::Date | ColumnKind::OldTime => zeros(3),
        ColumnKind::Int { .. } | ColumnKind::Float | ColumnKind::OldTimestamp => zeros(4),
        ColumnKind::BigInt { .. } | ColumnKind::Double | ColumnKind::OldDateTime => zeros(8),
        ColumnKind::Decimal(format) => {
            let digits = format.digits("0", "").ok_or("it has no zero, expected --null, or --rows")?;
            Ok(format.encode(false, &digits))
        }
        ColumnKind::Bit { bits } => zeros(usize::from(bits.div_ceil(8))),
        ColumnKind::Time { fraction_digits } => {
            Ok(Time::of_seconds(false, 0, Fraction::of(0, fraction_digits)).encode())
        }
        // 0000-00-00 00:00:00, of which the sign bit is set.
        ColumnKind::DateTime { fraction_digits } => {
            let mut bytes = vec![0x80, 0, 0, 0, 0];
            bytes.resize(5 + fraction_size(fraction_digits), 0);
            Ok(bytes)
        }
        ColumnKind::Timestamp { fraction_digits } => zeros(4 + fraction_size(fraction_digits)),
        // The first member.
        ColumnKind::Enum { size } => Ok(1_u64.to_le_bytes().into_iter().take(size.into()).collect()),
        ColumnKind::Set { size } => zeros(size.into()),
        ColumnKind::Char { .. } | ColumnKind::Varchar { .. } | ColumnKind::Blob { .. } => Ok(Vec::new()),
        ColumnKind::Json { .. } => Ok(JSON_NULL.to_vec()),
        ColumnKind::Null
        | ColumnKind::Geometry { .. }
        | ColumnKind::Vector { .. }
        | ColumnKind::TypedArray => {
            Err(format!("it is {}, which has no empty value, expected --null, or --rows", column.column_type))
        }
    }
}

/// Bytes of a fraction of seconds with this many digits.
fn fraction_size(digits: u8) -> usize {
    usize::from(digits.div_ceil(2))
}
