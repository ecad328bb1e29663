//! Knowledge of a table: from its table map in the log, and from a schema file where the log doesn't tell.
//!
//! A log tells columns' names and the primary key only with `binlog_row_metadata=FULL`, and never which columns are
//! generated: [`SchemaFile`] does, and a server can write its text.

mod members;
mod server_schema;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use binlogz_binlog::row::{Cell, ColumnKind, ColumnSchema, TableSchema};
use binlogz_print::mysqlbinlog::push_identifier;
use binlogz_schema::{
    ColumnsNow, DefinedTable, HistoryPlace, KeptColumn, ReferentialRule, SchemaFile, TableHistory, TableThen,
    TurningPoint,
};

pub(crate) use members::MemberNames;
pub use server_schema::{
    ServerSchemaError, ServerTables, is_server, rights_lacking_on_all, sees_all_tables, server_schema,
};

/// A table whose rows are written.
#[derive(Debug)]
pub(crate) struct WrittenTable {
    /// The table as its table map describes it.
    pub(crate) schema: Arc<TableSchema>,
    /// `` `database`.`table` ``.
    pub(crate) name: Vec<u8>,
    pub(crate) columns: Vec<TableColumn>,
    /// The columns of a key that no two rows have in common, none of them NULL; `None`: none is known.
    pub(crate) key: Option<Vec<usize>>,
    /// The columns of all keys that no two rows have in common, as far as they are known.
    pub(crate) in_keys: BTreeSet<usize>,
    /// Whether each column's name is known.
    pub(crate) has_names: bool,
    /// The reason for which no row of the table can be written; `None`: rows can be written.
    pub(crate) unfit: Option<String>,
    /// Whether its columns are those of the time of its rows, whatever statements changed them later.
    pub(crate) is_settled: bool,
    /// Whether it has a foreign key to itself by which a deleted row takes others along, as far as foreign keys are known.
    pub(crate) cascades_to_itself: bool,
    /// A place of the logs at which it was this table, where their history is known.
    pub(crate) place: HistoryPlace,
}

/// A column of a [`WrittenTable`].
#[derive(Debug, Clone, Default)]
pub(crate) struct TableColumn {
    pub(crate) index: usize,
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) is_generated: bool,
    /// Whether the column is unsigned, as the schema file says; `None`: it doesn't say.
    pub(crate) unsigned: Option<bool>,
    /// The column's type in capitals, as the schema file says.
    pub(crate) type_name: Option<String>,
    /// The members of an ENUM or SET, as the schema file says.
    pub(crate) members: Vec<String>,
    /// Whether a later statement dropped it: the table of now doesn't have it.
    pub(crate) is_gone: bool,
}

impl TableColumn {
    /// Whether statements give it values.
    pub(crate) fn is_stored(&self) -> bool {
        !self.is_generated && !self.is_gone
    }

    /// Appends its name in backticks, or its number as mysqlbinlog shows it.
    pub(crate) fn push_name(&self, out: &mut Vec<u8>) {
        match &self.name {
            Some(name) => push_identifier(out, name),
            None => out.extend_from_slice(format!("@{}", self.index + 1).as_bytes()),
        }
    }

    /// The bytes of a string as the column has them: of a BINARY(n) the log leaves out the zeros at its end. Where the log
    /// names no collation (before 8.0, MariaDB), the schema file tells which column is one.
    pub(crate) fn padded<'a>(&self, cell: &Cell<'_>, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match cell.column.kind {
            ColumnKind::Char { length_max } if cell.column.collation.is_none() && self.is_fixed_binary() => {
                let mut padded = bytes.to_vec();
                padded.resize(usize::from(length_max).max(bytes.len()), 0);
                Cow::Owned(padded)
            }
            _ => cell.column.padded(bytes),
        }
    }

    /// Whether the schema file says that its strings are bytes, filled up with zeros.
    fn is_fixed_binary(&self) -> bool {
        matches!(self.type_name.as_deref(), Some("BINARY" | "UUID" | "INET6" | "INET4"))
    }

    /// The column's name, or its number, for messages.
    pub(crate) fn shown(&self) -> String {
        match &self.name {
            Some(name) => String::from_utf8_lossy(name).into_owned(),
            None => format!("@{}", self.index + 1),
        }
    }
}

impl WrittenTable {
    /// Joins the facts in the log with those in the schema file.
    pub(crate) fn new(schema: &Arc<TableSchema>, file: Option<&SchemaFile>) -> Self {
        let mut name = Vec::new();
        push_identifier(&mut name, &schema.database);
        name.push(b'.');
        push_identifier(&mut name, &schema.table);
        let column = |(index, column): (usize, &ColumnSchema)| TableColumn {
            index,
            name: column.name.as_deref().map(<[u8]>::to_vec),
            ..TableColumn::default()
        };
        let key = primary_key(schema);
        let mut table = WrittenTable {
            schema: Arc::clone(schema),
            name,
            columns: schema.columns().iter().enumerate().map(column).collect(),
            in_keys: key.iter().flatten().copied().collect(),
            key,
            has_names: false,
            unfit: None,
            is_settled: false,
            cascades_to_itself: false,
            place: HistoryPlace::END,
        };
        if let Some(file) = file.and_then(|file| file.table(&schema.database, &schema.table)) {
            table.unfit = file.unfit(schema);
            if table.unfit.is_none() {
                table.take(file);
            }
        }
        table.has_names = table.columns.iter().all(|column| column.name.is_some());
        table
    }

    /// The table as it was at a place of the logs, by their history. If rows are written to the table of now, its columns have
    /// the names that they have there. An error is the statement after which that isn't known, if there is one.
    pub(crate) fn of_history<'h>(
        schema: &Arc<TableSchema>,
        history: &'h TableHistory,
        place: HistoryPlace,
        as_now: bool,
    ) -> Result<Self, Option<&'h TurningPoint>> {
        let [database, name] = [&schema.database, &schema.table].map(|name| std::str::from_utf8(name));
        let (Ok(database), Ok(name)) = (database, name) else { return Err(None) };
        let then = match history.at(place, database, name) {
            TableThen::Known(then) => then,
            TableThen::UnknownSince(turn) | TableThen::Disagrees(turn) => return Err(Some(turn)),
            TableThen::NotTold => return Err(None),
        };
        let mut table = WrittenTable::new(schema, None);
        if then.unfit(schema).is_some() {
            return Err(None);
        }
        table.take(then);
        if as_now {
            match history.columns_now(place, database, name) {
                ColumnsNow::Kept { now, columns } => table.become_now(now, &columns).ok_or(None)?,
                ColumnsNow::GoneSince(turn) => return Err(Some(turn)),
                ColumnsNow::Unknown => return Err(None),
            }
        }
        table.has_names = table.columns.iter().all(|column| column.name.is_some());
        table.is_settled = true;
        Ok(table)
    }

    /// Gives the columns the names of now, and the table the key of now. `None`: rows can't be written to it.
    fn become_now(&mut self, now: &DefinedTable, columns: &[Option<KeptColumn<'_>>]) -> Option<()> {
        for (column, kept) in self.columns.iter_mut().zip(columns) {
            match kept {
                Some(kept) if kept.takes_values => {
                    column.name = Some(kept.now.name.clone().into_bytes());
                    column.is_generated = kept.now.facts.as_ref()?.is_generated;
                }
                Some(_) => return None,
                None => column.is_gone = true,
            }
        }
        let index_then = |index: &usize| {
            let name = &now.columns.get(*index)?.name;
            columns.iter().position(|kept| kept.as_ref().is_some_and(|kept| kept.now.name == *name))
        };
        let keys = now.keys.iter().filter_map(|key| key.iter().map(index_then).collect::<Option<Vec<_>>>());
        self.key = keys.into_iter().find(|key| self.is_never_null(key));
        // Without a key a row is one of several equal ones, if it has the same columns.
        let is_same = columns.iter().all(Option::is_some) && columns.len() == now.columns.len();
        (self.key.is_some() || is_same).then_some(())
    }

    fn is_never_null(&self, key: &[usize]) -> bool {
        let columns = self.schema.columns();
        key.iter().all(|index| columns.get(*index).is_some_and(|column| !column.nullable))
    }

    /// Takes the facts that the log doesn't tell.
    fn take(&mut self, file: &DefinedTable) {
        for (column, told) in self.columns.iter_mut().zip(&file.columns) {
            column.name.get_or_insert_with(|| told.name.clone().into_bytes());
            let Some(facts) = &told.facts else { continue };
            column.is_generated = facts.is_generated;
            column.unsigned = Some(facts.is_unsigned);
            column.type_name = Some(facts.type_name.clone());
            column.members.clone_from(&facts.members);
        }
        self.in_keys.extend(file.keys.iter().flatten());
        self.cascades_to_itself = file.foreign_keys.iter().any(|key| {
            let is_own = |database: &String| database.as_bytes().eq_ignore_ascii_case(&self.schema.database);
            key.on_delete == ReferentialRule::Cascade
                && key.parent.eq_ignore_ascii_case(&file.name)
                && key.database.as_ref().is_none_or(is_own)
        });
        if self.key.is_none() {
            self.key = file.keys.iter().find(|key| self.is_never_null(key)).cloned();
        }
    }

    /// `database.table`, for messages.
    pub(crate) fn shown(&self) -> String {
        let [database, table] =
            [&self.schema.database, &self.schema.table].map(|name| String::from_utf8_lossy(name));
        format!("{database}.{table}")
    }
}

/// A structure's digest, which tells two structures of one table apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Structure {
    kinds: u64,
    /// `None`: not in the log.
    names: Option<u64>,
    /// Whether the columns are those of the time of the rows, whatever statements changed them later.
    pub(crate) is_settled: bool,
    /// Whether the columns' names are known, by the log or otherwise.
    pub(crate) is_named: bool,
}

/// Bits of [`Structure`]'s flags.
const NAMED: u8 = 1;
const SETTLED: u8 = 2;
const NAMED_SOMEWHERE: u8 = 4;

impl Structure {
    pub(crate) fn of(schema: &TableSchema) -> Self {
        let mut kinds = DefaultHasher::new();
        let mut names = DefaultHasher::new();
        let mut are_named = true;
        for column in schema.columns() {
            format!("{:?}", column.kind).hash(&mut kinds);
            column.name.hash(&mut names);
            are_named &= column.name.is_some();
        }
        Structure {
            kinds: kinds.finish(),
            names: are_named.then(|| names.finish()),
            is_settled: false,
            is_named: are_named,
        }
    }

    /// The structure of a table whose rows are written.
    pub(crate) fn of_written(table: &WrittenTable) -> Self {
        Structure { is_named: table.has_names, ..Structure::of(&table.schema) }.settled(table.is_settled)
    }

    /// Sets whether later statements leave the structure as it is.
    pub(crate) fn settled(self, is_settled: bool) -> Self {
        Structure { is_settled, ..self }
    }

    /// Whether the log tells the columns' names.
    pub(crate) fn has_names(self) -> bool {
        self.names.is_some()
    }

    /// Whether both can be of one structure.
    pub(crate) fn fits(self, other: Structure) -> bool {
        let differ = matches!((self.names, other.names), (Some(one), Some(two)) if one != two);
        self.kinds == other.kinds && !differ
    }

    pub(crate) fn to_bytes(self) -> [u8; 17] {
        let mut bytes = [0; 17];
        let (kinds, names) = bytes.split_at_mut(8);
        kinds.copy_from_slice(&self.kinds.to_le_bytes());
        if let (Some(hash), Some((is_there, place))) = (self.names, names.split_first_mut()) {
            *is_there = NAMED;
            place.copy_from_slice(&hash.to_le_bytes());
        }
        if let (true, Some(facts)) = (self.is_settled, bytes.get_mut(8)) {
            *facts |= SETTLED;
        }
        if let (true, Some(facts)) = (self.is_named, bytes.get_mut(8)) {
            *facts |= NAMED_SOMEWHERE;
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; 17]) -> Self {
        let [kinds @ .., _, _, _, _, _, _, _, _, _] = *bytes;
        let [_, _, _, _, _, _, _, _, facts, names @ ..] = *bytes;
        let names = (facts & NAMED != 0).then_some(u64::from_le_bytes(names));
        Structure {
            kinds: u64::from_le_bytes(kinds),
            names,
            is_settled: facts & SETTLED != 0,
            is_named: facts & NAMED_SOMEWHERE != 0,
        }
    }
}

/// Says which columns an image lacks.
pub(crate) fn lacks(columns: &[String]) -> String {
    format!("the logged image lacks {} (binlog_row_image=FULL writes all columns)", columns.join(", "))
}

fn primary_key(schema: &TableSchema) -> Option<Vec<usize>> {
    let parts = schema.columns().iter().enumerate();
    let mut parts: Vec<_> =
        parts.filter_map(|(index, column)| Some((column.primary_key?.place, index))).collect();
    parts.sort_unstable();
    (!parts.is_empty()).then(|| parts.into_iter().map(|(_, index)| index).collect())
}
