//! What becomes of the columns of a table, as each of its maps describes it, and where the columns of its foreign keys are.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlogz_binlog::row::{ColumnKind, ColumnSchema, Fraction, TableSchema, Time};
use binlogz_schema::{TablesOfLogs, TablesSoFar};

use super::aim::ErasureAim;
use super::key_numbers::KeyNumbers;
use crate::choose::{RowSelection, WantedKeys};
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

/// What becomes of the rows of a table, as one map describes it.
#[derive(Debug)]
pub(super) struct TableErasure {
    /// The table's place in the aim.
    pub(super) number: usize,
    pub(super) table: WrittenTable,
    /// The foreign keys by which its rows refer to others: their places in the aim, and its columns.
    pub(super) references: Vec<(usize, Vec<usize>)>,
    /// Those by which others refer to its rows.
    pub(super) referred: Vec<(usize, Vec<usize>)>,
    /// A key without which no row meets a condition.
    pub(super) keys: Option<KeyNumbers>,
    /// By column; `None`: it stays.
    pub(super) cells: Vec<Option<CellErasure>>,
}

/// The plans of the tables, and what is known of them at each place of the logs.
pub(super) struct PlannedTables<'a> {
    aim: &'a ErasureAim,
    tables: Arc<TablesOfLogs>,
    pub(super) so_far: TablesSoFar,
    plans: Vec<RememberedErasure>,
    /// Columns of the aim that a table had, and tables that passed.
    met: BTreeSet<usize>,
    met_tables: BTreeSet<usize>,
}

/// The plan of a map, as long as statements leave the table alone.
struct RememberedErasure {
    map: Arc<TableSchema>,
    era: usize,
    plan: Arc<TableErasure>,
}

impl<'a> PlannedTables<'a> {
    pub(super) fn new(aim: &'a ErasureAim, tables: Arc<TablesOfLogs>, so_far: TablesSoFar) -> Self {
        PlannedTables {
            aim,
            tables,
            so_far,
            plans: Vec::new(),
            met: BTreeSet::new(),
            met_tables: BTreeSet::new(),
        }
    }

    pub(super) fn begin_log(&mut self, name: &str) {
        self.tables.begin_log(name);
        self.so_far.begin_log(name.as_bytes());
    }

    /// Whether a statement at this offset is to be recorded: it wasn't read ahead.
    pub(super) fn records(&self, offset: u64) -> bool {
        self.tables.records(self.so_far.place(offset))
    }

    /// The plan of a map of a table of the aim at this offset of the log.
    pub(super) fn plan(
        &mut self,
        number: usize,
        map: &Arc<TableSchema>,
        offset: u64,
    ) -> Result<Arc<TableErasure>, Error> {
        let place = self.so_far.place(offset);
        let era = self.tables.era(place, &self.so_far);
        let is_it = |plan: &&RememberedErasure| Arc::ptr_eq(&plan.map, map) && plan.era == era;
        if let Some(remembered) = self.plans.iter().rev().find(is_it) {
            return Ok(Arc::clone(&remembered.plan));
        }
        self.met_tables.insert(number);
        let completed = self.tables.complete(map, place, &self.so_far);
        let mut table = WrittenTable::new(&completed.schema, None);
        if table.key.is_none() && !completed.key.is_empty() {
            table.key = Some(completed.key.clone());
        }
        table.in_keys.extend(completed.keys.iter().flatten());
        let problem = completed.problem.as_deref();
        let aim = self.aim;
        let mut plan = TableErasure {
            number,
            cells: self.cells(number, &table, problem)?,
            references: Vec::new(),
            referred: Vec::new(),
            keys: self.key_numbers(number, &table),
            table,
        };
        for (place, reference) in aim.references.iter().enumerate() {
            if reference.child == number {
                plan.references.push((place, columns_of(&plan.table, &reference.columns, problem)?));
            }
            if reference.parent == number {
                plan.referred.push((place, referenced_of(&plan.table, &reference.referenced, problem)?));
            }
        }
        let plan = Arc::new(plan);
        if self.plans.len() >= REMEMBERED_MAX {
            self.plans.clear();
        }
        self.plans.push(RememberedErasure { map: Arc::clone(map), era, plan: Arc::clone(&plan) });
        Ok(plan)
    }

    /// What becomes of each column.
    fn cells(
        &mut self,
        number: usize,
        table: &WrittenTable,
        problem: Option<&str>,
    ) -> Result<Vec<Option<CellErasure>>, Error> {
        let mut cells = vec![None; table.schema.columns().len()];
        let aim = self.aim;
        for (place, aimed) in aim.columns.iter().enumerate().filter(|(_, aimed)| aim.is_of(aimed, number)) {
            let Some(index) = index_of(table, &aimed.column, problem)? else { continue };
            self.met.insert(place);
            let Some(schema) = table.schema.columns().get(index) else { continue };
            let erasure = erasure_of(schema, aimed.is_null, table.in_keys.contains(&index));
            let erasure = erasure.map_err(|why| {
                Error::Refused(format!("{}, column {}: {why}", table.shown(), aimed.column))
            })?;
            if let Some(cell) = cells.get_mut(index) {
                *cell = Some(erasure);
            }
        }
        Ok(cells)
    }

    /// The column of whole numbers, if there is one, by which most rows are known to meet no condition.
    fn key_numbers(&self, number: usize, table: &WrittenTable) -> Option<KeyNumbers> {
        let aimed = self.aim.tables.get(number)?;
        let name = (&table.schema.database[..], &table.schema.table[..]);
        let numbers = |index: usize, column: &ColumnSchema| -> Option<KeyNumbers> {
            if !is_whole_number(column) {
                return None;
            }
            let mut spans = Vec::new();
            for condition in &aimed.conditions {
                let selection = RowSelection {
                    tables: vec![aimed.name.clone()],
                    condition: Some(condition.clone()),
                    ..RowSelection::default()
                };
                match selection.keys(name, (index, column.name.as_deref()), None) {
                    WantedKeys::Nothing => {}
                    WantedKeys::All => return None,
                    WantedKeys::Some(keys) => spans.extend(keys.into_iter().filter_map(|key| key.numbers)),
                }
            }
            Some(KeyNumbers::new(index, spans))
        };
        let mut columns = table.schema.columns().iter().enumerate();
        columns.find_map(|(index, column)| numbers(index, column))
    }

    /// The columns that no table had in these logs, though such tables were there.
    pub(super) fn unmet_columns(&self) -> Vec<&'a str> {
        let columns = self.aim.columns.iter().enumerate();
        let unmet = columns.filter(|(place, column)| {
            let was_there = self.met_tables.iter().any(|table| self.aim.is_of(column, *table));
            was_there && !self.met.contains(place)
        });
        unmet.map(|(_, column)| &*column.shown).collect()
    }
}

/// Whether values of a column are whole numbers.
fn is_whole_number(column: &ColumnSchema) -> bool {
    match column.kind {
        ColumnKind::TinyInt { .. }
        | ColumnKind::SmallInt { .. }
        | ColumnKind::MediumInt { .. }
        | ColumnKind::Int { .. }
        | ColumnKind::BigInt { .. } => true,
        ColumnKind::Null
        | ColumnKind::Year
        | ColumnKind::Date
        | ColumnKind::OldTime
        | ColumnKind::Float
        | ColumnKind::OldTimestamp
        | ColumnKind::Double
        | ColumnKind::OldDateTime
        | ColumnKind::Decimal(_)
        | ColumnKind::Bit { .. }
        | ColumnKind::Time { .. }
        | ColumnKind::DateTime { .. }
        | ColumnKind::Timestamp { .. }
        | ColumnKind::Enum { .. }
        | ColumnKind::Set { .. }
        | ColumnKind::Char { .. }
        | ColumnKind::Varchar { .. }
        | ColumnKind::Blob { .. }
        | ColumnKind::Json { .. }
        | ColumnKind::Geometry { .. }
        | ColumnKind::Vector { .. }
        | ColumnKind::TypedArray => false,
    }
}

/// The places of a foreign key's columns, which the table has.
fn columns_of(table: &WrittenTable, names: &[String], problem: Option<&str>) -> Result<Vec<usize>, Error> {
    let place = |name: &String| {
        index_of(table, name, problem)?.ok_or_else(|| {
            Error::Refused(format!("{}: has no column {name} here, which a foreign key has", table.shown()))
        })
    };
    names.iter().map(place).collect()
}

/// The places of the columns that a foreign key refers to; without names, those of the table's key.
fn referenced_of(table: &WrittenTable, names: &[String], problem: Option<&str>) -> Result<Vec<usize>, Error> {
    if !names.is_empty() {
        return columns_of(table, names, problem);
    }
    table.key.clone().ok_or_else(|| {
        Error::Refused(format!(
            "{}: its primary key isn't known, to which a foreign key refers (--schema tells it)",
            table.shown()
        ))
    })
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
