//! Which changes of parents foreign keys carried on below the log: rows of children changed with them, and no log has those changes.
//!
//! Nothing is followed here, so it isn't known whether there were such rows. That much is said, with the foreign key, how many rows of the
//! parent, and where the first is. The folder `cascade` finds the rows themselves.

use std::collections::BTreeMap;

use binlogz_binlog::event::FormatDescription;
use binlogz_binlog::row::{CellContent, Row, RowImage};
use binlogz_figures::counted;
use binlogz_schema::{ReferentialRule, SchemaFile};

use crate::choose::{Direction, Operation};
use crate::table::WrittenTable;

/// A table as a foreign key names it: a file of statements may not say in which database.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TableOfKey {
    database: Option<String>,
    table: String,
}

impl TableOfKey {
    fn is(&self, database: &[u8], table: &[u8]) -> bool {
        self.table.as_bytes() == table && self.database.as_ref().is_none_or(|own| own.as_bytes() == database)
    }

    fn is_among(&self, tables: &[(String, String)]) -> bool {
        tables.iter().any(|(database, table)| self.is(database.as_bytes(), table.as_bytes()))
    }
}

impl std::fmt::Display for TableOfKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.database {
            Some(database) => write!(f, "{database}.{}", self.table),
            None => f.write_str(&self.table),
        }
    }
}

/// A foreign key that changes rows of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CarryingKey {
    name: String,
    child: TableOfKey,
    parent: TableOfKey,
    /// None: the schema doesn't tell which columns of the parent they are.
    referenced: Vec<String>,
    on_delete: ReferentialRule,
    on_update: ReferentialRule,
    is_at_column: bool,
}

impl CarryingKey {
    /// The children whose changes may reach these tables, over any number of tables in between; the tables among them.
    fn tables_above(keys: &[CarryingKey], tables: &[(String, String)]) -> Vec<TableOfKey> {
        let mut above: Vec<TableOfKey> = Vec::new();
        loop {
            let is_new = |key: &&CarryingKey| {
                let is_reached = key.child.is_among(tables)
                    || keys.iter().any(|other| other.parent == key.child && above.contains(&other.child));
                is_reached && !above.contains(&key.child)
            };
            let Some(key) = keys.iter().find(is_new) else { return above };
            above.push(key.child.clone());
        }
    }
}

/// The foreign keys that may have changed rows of chosen tables below the log, or rows with those of chosen tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarryingKeys {
    keys: Vec<CarryingKey>,
    /// Whether the parents' changes that are chosen are taken back: the server then takes ON UPDATE CASCADE back by itself.
    undoes: bool,
}

impl CarryingKeys {
    /// The foreign keys of these tables and, where changes are taken back, those that refer to them; all if there are no tables. `None`:
    /// there is no such key. `direction` is `None` where changes are only shown.
    pub fn new(
        schema: &SchemaFile,
        tables: &[(String, String)],
        direction: Option<Direction>,
    ) -> Option<CarryingKeys> {
        let mut keys = Vec::new();
        for (database, table, key) in schema.foreign_keys() {
            if (key.on_delete, key.on_update) == (ReferentialRule::Refuse, ReferentialRule::Refuse) {
                continue;
            }
            let referenced = schema.referenced(database, key).to_vec();
            let database = database.map(str::to_owned);
            let parent_database = key.database.clone().or_else(|| database.clone());
            let child = TableOfKey { database, table: table.to_owned() };
            let parent = TableOfKey { database: parent_database, table: key.parent.clone() };
            let name = key.name.clone();
            let (on_delete, on_update) = (key.on_delete, key.on_update);
            let is_at_column = key.is_at_column;
            keys.push(CarryingKey { name, child, parent, referenced, on_delete, on_update, is_at_column });
        }
        if !tables.is_empty() {
            let above = CarryingKey::tables_above(&keys, tables);
            keys.retain(|key| {
                above.contains(&key.child) || direction.is_some() && key.parent.is_among(tables)
            });
        }
        // The same order in every run.
        keys.sort_by_key(|key| (key.child.to_string(), key.name.clone()));
        let undoes = direction == Some(Direction::Undo);
        (!keys.is_empty()).then_some(CarryingKeys { keys, undoes })
    }

    /// Whether one of them refers to this table.
    pub fn has_parent(&self, database: &[u8], table: &[u8]) -> bool {
        self.keys.iter().any(|key| key.parent.is(database, table))
    }

    /// The keys, by number, that carried a change of a parent on, if it was made with foreign keys on and below the log. `source` wrote
    /// the log.
    pub(crate) fn carrying<'k>(
        &'k self,
        source: &FormatDescription,
        table: &'k WrittenTable,
        operation: Operation,
        row: &'k Row<'_, '_>,
        is_row_chosen: bool,
    ) -> impl Iterator<Item = u32> + 'k {
        let has_keys_at_columns = has_keys_at_columns(source);
        let carries = move |key: &CarryingKey| match operation {
            _ if key.is_at_column && !has_keys_at_columns => false,
            Operation::Insert => false,
            Operation::Delete => key.on_delete != ReferentialRule::Refuse,
            Operation::Update => {
                key.on_update != ReferentialRule::Refuse
                    && !(self.undoes && is_row_chosen && key.on_update == ReferentialRule::Cascade)
                    && (key.referenced.is_empty()
                        || key.referenced.iter().any(|column| may_differ(table, row, column)))
            }
        };
        let (database, name) = (&*table.schema.database, &*table.schema.table);
        let keys = (0u32..).zip(&self.keys);
        keys.filter(move |(_, key)| key.parent.is(database, name) && carries(key)).map(|(number, _)| number)
    }
}

/// Whether the server of a log makes a foreign key of REFERENCES at a column: MariaDB does, and MySQL since 9.0.
fn has_keys_at_columns(source: &FormatDescription) -> bool {
    source.is_mariadb() || source.server_version_number() >= 90_000
}

/// Whether an UPDATE may have changed a column: it did, or which column it is isn't known.
fn may_differ(table: &WrittenTable, row: &Row<'_, '_>, column: &str) -> bool {
    let is_it = |name: &Vec<u8>| String::from_utf8_lossy(name).eq_ignore_ascii_case(column);
    let mut columns = table.columns.iter();
    let Some(column) = columns.find(|own| own.name.as_ref().is_some_and(is_it)) else { return true };
    match (content(row.before, column.index), content(row.after, column.index)) {
        (Some(before), Some(after)) => before != after,
        // It was given a value, and the log doesn't have the old one.
        (None, Some(_)) => true,
        // An UPDATE logs every column that it changes.
        (_, None) => false,
    }
}

/// What an image has in a column; `None`: there is no image, or it lacks the column.
pub(crate) fn content<'a>(image: Option<RowImage<'_, 'a>>, index: usize) -> Option<CellContent<'a>> {
    Some(image?.cell(index)?.content)
}

/// Changes that were carried on: how many rows of the parent, and where the first is; by key.
#[derive(Debug, Default)]
pub(crate) struct CarriedChanges {
    counts: BTreeMap<u32, (u64, String)>,
    /// Those of the open transaction.
    open: BTreeMap<u32, (u64, String)>,
}

impl CarriedChanges {
    /// A row that a key carried on, in the open transaction.
    pub(crate) fn add(&mut self, key: u32, place: impl FnOnce() -> String) {
        self.open.entry(key).or_insert_with(|| (0, place())).0 += 1;
    }

    /// The open transaction ends; whether it was rolled back.
    pub(crate) fn end(&mut self, is_rolled_back: bool) {
        for (key, (count, place)) in std::mem::take(&mut self.open) {
            if !is_rolled_back {
                self.counts.entry(key).or_insert((0, place)).0 += count;
            }
        }
    }

    /// A line for each key; `verb` is what isn't done with the children.
    pub(crate) fn notes(&self, keys: &CarryingKeys, verb: &str) -> Vec<String> {
        let numbered = self.counts.iter();
        let line = |(number, (count, place)): (&u32, &(u64, String))| {
            let CarryingKey { name, child, parent, .. } = keys.keys.get(*number as usize)?;
            Some(format!(
                "foreign key {name}: rows of {child} that the server changed with {} of {parent} are in no log, so they aren't {verb}; the \
                 first is {place}",
                counted(*count, "rows")
            ))
        };
        numbered.filter_map(line).collect()
    }
}
