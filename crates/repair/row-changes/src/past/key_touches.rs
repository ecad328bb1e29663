//! What row changes touch, on a worker: for each change of a table's own row the keys before and after it, with the row as it was; for a change
//! of a parent, that foreign keys may carry it on.
//!
//! `touched.rs` collects the records that come of this, in the order of the logs.

use std::collections::HashMap;

use binlogz_binlog::row::{Cell, Row, RowImage};
use binlogz_schema::{TableWay, WayColumn};

use super::PastError;
use super::live::LiveTable;
use super::logged_databases::LoggedDatabases;
use super::routes::{CascadingParent, ReferencedColumn};
use crate::choose::Operation;
use crate::pass::{Renderer, RowRendering, TableRow, content};
use crate::record::{KeyRecord, KeyState, TouchOfTable, put_no_key};
use crate::sql::literal::push_stored;
use crate::sql::text::push;
use crate::table::{WrittenTable, lacks};

/// A table whose changes are looked for, and what the server says of it.
pub(super) struct TouchedTable<'o> {
    pub(super) table: &'o LiveTable,
    /// The tables from which foreign keys carry changes on to it.
    pub(super) parents: Vec<CascadingParent>,
}

impl TouchedTable<'_> {
    /// The first of its parents that was in a database that the server doesn't log, and why.
    pub(super) fn unlogged_parent(&self, logged: &LoggedDatabases) -> Option<String> {
        self.parents.iter().find_map(|parent| {
            let why = parent.names.iter().find_map(|(database, _)| logged.lacks(database))?;
            Some(format!("{parent} ({why})"))
        })
    }
}

/// The columns of a table that matter, by their places in its rows.
struct PlacesInRow<'o> {
    /// Places of the key's columns in the row; `None`: dropped by then.
    key: Vec<Option<usize>>,
    /// Places of the columns of the moment that have values of their own, in their order; `None`: dropped by then.
    stored: Vec<Option<usize>>,
    names: Vec<&'o str>,
}

/// The columns of a table in each of its versions since the moment.
pub(super) struct ColumnsOnWay<'o> {
    /// `None`: it had the same columns all the time.
    way: Option<(TableWay<'o>, Vec<PlacesInRow<'o>>)>,
}

impl<'o> ColumnsOnWay<'o> {
    pub(super) fn of(table: &TouchedTable<'o>) -> Result<Self, PastError> {
        let table: &'o LiveTable = table.table;
        let Some(since) = &table.since else { return Ok(ColumnsOnWay { way: None }) };
        let way = since.logged.way((&table.asked.0, &table.asked.1))?;
        let is_stored =
            |column: &&WayColumn<'o>| column.then.facts.as_ref().is_some_and(|facts| !facts.is_generated);
        let places = |version: usize| {
            let stored: Vec<_> = way.columns.iter().filter(is_stored).collect();
            let place = |index: &usize| way.columns.get(*index)?.place_in(version);
            PlacesInRow {
                key: since.key.iter().map(place).collect(),
                names: stored.iter().map(|column| &*column.then.name).collect(),
                stored: stored.iter().map(|column| column.place_in(version)).collect(),
            }
        };
        let places = (0..way.version_count()).map(places).collect();
        Ok(ColumnsOnWay { way: Some((way, places)) })
    }
}

/// The columns of a parent that matter, by their places in each of its versions since the moment.
pub(super) struct ParentWay<'o> {
    parent: &'o CascadingParent,
    /// `None`: the parent had the same columns all the time, or where they stood isn't known.
    way: Option<TableWay<'o>>,
}

impl<'o> ParentWay<'o> {
    pub(super) fn of_table(table: &'o TouchedTable<'_>) -> Vec<ParentWay<'o>> {
        let logged = table.table.since.as_ref().map(|since| &since.logged);
        let way = |parent: &'o CascadingParent| {
            logged.filter(|_| parent.is_altered)?.way_of_now(&parent.name, &parent.names)
        };
        table.parents.iter().map(|parent| ParentWay { parent, way: way(parent) }).collect()
    }

    /// Whether foreign keys carry a change of the parent on: it deleted a row, or gave a column to which they refer another value.
    fn carries_on(&self, table: &WrittenTable, operation: Operation, row: &Row<'_, '_>) -> bool {
        let name = (&*table.schema.database, &*table.schema.table);
        let is_named = |own: &(String, String)| (own.0.as_bytes(), own.1.as_bytes()) == name;
        if table.place < self.parent.begin || !self.parent.names.iter().any(is_named) {
            return false;
        }
        match operation {
            Operation::Insert => false,
            Operation::Update => self.changes_columns(table, row),
            Operation::Delete => self.parent.carries_deletes,
        }
    }

    fn changes_columns(&self, table: &WrittenTable, row: &Row<'_, '_>) -> bool {
        let columns = &self.parent.columns;
        let Some(way) = &self.way else {
            let may_be = |column: &ReferencedColumn| column.place.is_none_or(|place| is_changed(row, place));
            return !columns.is_empty() && self.parent.is_altered || columns.iter().any(may_be);
        };
        let [database, name] = [&table.schema.database, &table.schema.table]
            .map(|name| std::str::from_utf8(name).unwrap_or_default());
        // Another table has this name there. If that one was dropped, the key may have referred to it.
        let Some(version) = way.version_at(table.place, database, name) else {
            return !columns.is_empty() && way.may_replace(table.place, database, name);
        };
        columns.iter().any(|column| {
            let own = way.columns.iter().find(|own| own.place_now() == column.place);
            own.and_then(|own| own.place_in(version)).is_none_or(|place| is_changed(row, place))
        })
    }
}

/// Whether an update may have given a column another value. One that the row after it lacks was left alone.
fn is_changed(row: &Row<'_, '_>, column: usize) -> bool {
    match (content(row.before, column), content(row.after, column)) {
        (Some(before), Some(after)) => before != after,
        (None, after) => after.is_some(),
        (Some(_), None) => false,
    }
}

/// Which of the tables the rows of each name may concern: as their own, or as those of a parent.
#[derive(Default)]
pub(super) struct ConcernedTables(HashMap<Vec<u8>, HashMap<Vec<u8>, Vec<usize>>>);

impl ConcernedTables {
    pub(super) fn add(&mut self, (database, table): &(String, String), number: usize) {
        let of_database = self.0.entry(database.as_bytes().to_vec()).or_default();
        let numbers = of_database.entry(table.as_bytes().to_vec()).or_default();
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }

    fn of(&self, database: &[u8], table: &[u8]) -> &[usize] {
        self.0.get(database).and_then(|tables| tables.get(table)).map_or(&[], Vec::as_slice)
    }
}

/// A column of a table's primary key, and which of its values are looked for.
pub struct WantedKeyValues {
    /// The place of the column in the table's rows.
    pub column: usize,
    /// Whether a value may be one of them.
    pub may_be: Box<dyn Fn(&Cell<'_>) -> bool + Send + Sync>,
}

impl std::fmt::Debug for WantedKeyValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WantedKeyValues").field("column", &self.column).finish_non_exhaustive()
    }
}

impl WantedKeyValues {
    /// Whether a row may have one before or after its change. One that has no value of the column may.
    fn may_be_in(&self, table: &WrittenTable, row: &Row<'_, '_>) -> bool {
        let Some(column) = table.columns.get(self.column) else { return true };
        let images = [row.before, row.after].into_iter().flatten();
        let mut cells = images.filter_map(|image| image.cell(column.index)).peekable();
        cells.peek().is_none() || cells.any(|cell| (self.may_be)(&cell))
    }
}

/// Says what rows touch.
pub(super) struct Touches<'o> {
    pub(super) tables: &'o [TouchedTable<'o>],
    /// The values of the keys of the only table's rows that matter; none: all of them do.
    pub(super) wanted: &'o [WantedKeyValues],
    pub(super) concerned: &'o ConcernedTables,
    pub(super) columns: &'o [ColumnsOnWay<'o>],
    pub(super) parents: &'o [Vec<ParentWay<'o>>],
}

impl Renderer for Touches<'_> {
    fn render(&self, TableRow { table, operation, row }: TableRow<'_>, out: &mut Vec<u8>) -> RowRendering {
        let mut records = Vec::new();
        for &number in self.concerned.of(&table.schema.database, &table.schema.table) {
            let (Some(own), Some(columns)) = (self.tables.get(number), self.columns.get(number)) else {
                continue;
            };
            match &columns.way {
                None => {
                    let names = (own.table.database.as_bytes(), own.table.table.as_bytes());
                    let is_own = (&*table.schema.database, &*table.schema.table) == names;
                    if is_own && self.wanted.iter().all(|wanted| wanted.may_be_in(table, row)) {
                        let key = own.table.key.iter().map(|index| Some(*index));
                        let stored = table
                            .columns
                            .iter()
                            .filter(|column| !column.is_generated)
                            .map(|column| Some(column.index));
                        let places =
                            PlacesInRow { key: key.collect(), stored: stored.collect(), names: Vec::new() };
                        push_touches(&mut records, table, (operation, row), &places);
                    }
                }
                Some((way, places)) => {
                    let [database, name] = [&table.schema.database, &table.schema.table]
                        .map(|name| std::str::from_utf8(name).unwrap_or_default());
                    let version = way.version_at(table.place, database, name);
                    if let Some(places) = version.and_then(|version| places.get(version)) {
                        match table.is_settled {
                            true => push_touches(&mut records, table, (operation, row), places),
                            false => put_no_key(
                                &mut records,
                                "the columns of the table at this place aren't known",
                            ),
                        }
                    }
                }
            }
            if !records.is_empty() {
                TouchOfTable::Own(number, &records).encode(out);
                records.clear();
            }
            let parents = self.parents.get(number).map_or(&[][..], Vec::as_slice);
            let parent = parents.iter().find(|parent| parent.carries_on(table, operation, row));
            if let Some(ParentWay { parent, .. }) = parent {
                if (&*parent.name.0, &*parent.name.1) == (&*own.table.database, &*own.table.table) {
                    push(&mut records, "a row of the table, to which others of it refer");
                } else {
                    push(&mut records, format_args!("{} of a row in ", operation.name()));
                    records.extend_from_slice(&table.name);
                }
                TouchOfTable::Parent(number, &records).encode(out);
                records.clear();
            }
        }
        if out.is_empty() { RowRendering::Nothing } else { RowRendering::Text(0) }
    }
}

/// Appends what a change of a table's own row says of keys.
fn push_touches(
    out: &mut Vec<u8>,
    table: &WrittenTable,
    (operation, row): (Operation, &Row<'_, '_>),
    places: &PlacesInRow<'_>,
) {
    if let Some(unfit) = &table.unfit {
        let why = unfit.replace("--schema doesn't fit", "the table was changed after it");
        return put_no_key(out, &why);
    }
    let mut before = Vec::new();
    let mut after = Vec::new();
    let told = (|| {
        if operation != Operation::Insert {
            push_key(&mut before, table, places, [row.before, None])?;
        }
        if operation != Operation::Delete {
            // An update left alone the columns that its image lacks.
            push_key(&mut after, table, places, [row.after, row.before])?;
        }
        Ok::<_, String>(())
    })();
    if let Err(why) = told {
        return put_no_key(out, &format!("{} of a row: {why}", operation.name()));
    }
    if let Some(image) = row.before {
        let mut text = Vec::new();
        match push_values(&mut text, table, (&places.stored, &places.names), |index| image.cell(index)) {
            Ok(()) => KeyRecord { state: KeyState::There, key: &before, text: &text }.encode(out),
            Err(why) => {
                let mut line = format!("{} of the row of key ", operation.name()).into_bytes();
                line.extend_from_slice(&before);
                push(&mut line, format_args!(": {why}"));
                KeyRecord { state: KeyState::Unknown, key: &before, text: &line }.encode(out);
            }
        }
    }
    if row.after.is_some() && before != after {
        KeyRecord { state: KeyState::Absent, key: &after, text: b"" }.encode(out);
    }
}

fn push_key(
    out: &mut Vec<u8>,
    table: &WrittenTable,
    places: &PlacesInRow<'_>,
    images: [Option<RowImage<'_, '_>>; 2],
) -> Result<(), String> {
    push_values(out, table, (&places.key, &[]), |index| {
        images.iter().flatten().find_map(|image| image.cell(index))
    })
}

/// Appends values in parentheses: of the columns in these places, which have these names.
fn push_values<'a>(
    out: &mut Vec<u8>,
    table: &WrittenTable,
    (places, names): (&[Option<usize>], &[&str]),
    cell: impl Fn(usize) -> Option<Cell<'a>>,
) -> Result<(), String> {
    let mut absent = Vec::new();
    let mut dropped = Vec::new();
    for (number, place) in places.iter().enumerate() {
        push(out, if number == 0 { "(" } else { ", " });
        let Some(column) = place.and_then(|place| table.columns.get(place)) else {
            dropped.push(names.get(number).copied().unwrap_or_default());
            continue;
        };
        match cell(column.index) {
            Some(cell) => {
                push_stored(out, column, &cell).map_err(|why| format!("{}: {why}", column.shown()))?
            }
            None => absent.push(column.shown()),
        }
    }
    push(out, ")");
    match (dropped.is_empty(), absent.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => Err(lacks(&absent)),
        (false, _) => Err(format!("the table no longer had the columns {}", dropped.join(", "))),
    }
}
