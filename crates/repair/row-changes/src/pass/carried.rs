//! Names the foreign keys that may have carried changes of chosen rows on to children below the log: InnoDB then changed rows, and no
//! log has these changes.
//!
//! The foreign keys are those that the tables have now, and those that statements in the logs took away (`lost_keys`). No row of a child
//! is followed here, so whether there were such rows isn't known. A line names the key, the number of the parent's rows, and the place of the
//! first. The folder `cascade` finds the children's rows themselves.

mod reach;

use std::collections::BTreeMap;

use binlogz_binlog::event::FormatDescription;
use binlogz_binlog::row::Row;
use binlogz_figures::counted;
use binlogz_schema::{HistoryPlace, ReferentialRule, SchemaFile, TableHistory};

use super::carried_rows::{CarriedRows, EventOfParent, RowsAsked};
use super::lost_keys::{AskedRows, LostKey};
use super::shortened::shortened;
use crate::choose::{Direction, Operation};
use reach::KeyReach;
pub(crate) use reach::{KeyPlaces, NamedReach};

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
    /// Names that the child had before in the logs; empty if no history tells.
    earlier_children: Vec<TableOfKey>,
    /// Names that the parent had before.
    earlier_parents: Vec<TableOfKey>,
    /// The child's columns.
    columns: Vec<String>,
    /// The parent's columns that the key refers to; empty: the schema doesn't tell.
    referenced: Vec<String>,
    on_delete: ReferentialRule,
    on_update: ReferentialRule,
    is_at_column: bool,
    /// Whether the key may have changed rows of the chosen tables.
    matters: bool,
}

impl CarryingKey {
    /// The children whose changes may reach these tables, over any number of tables in between; the tables among them.
    fn tables_above(keys: &[CarryingKey], tables: &[(String, String)]) -> Vec<TableOfKey> {
        let mut above: Vec<TableOfKey> = Vec::new();
        loop {
            let is_new = |key: &&CarryingKey| {
                let is_reached = key.is_of_any(tables)
                    || keys.iter().any(|other| other.parent == key.child && above.contains(&other.child));
                is_reached && !above.contains(&key.child)
            };
            let Some(key) = keys.iter().find(is_new) else { return above };
            above.push(key.child.clone());
        }
    }

    /// Whether one of these tables is, or was, the one that has the key.
    fn is_of_any(&self, tables: &[(String, String)]) -> bool {
        std::iter::once(&self.child).chain(&self.earlier_children).any(|child| child.is_among(tables))
    }

    /// Whether one of these tables is, or was, the one that the key refers to.
    fn refers_to_any(&self, tables: &[(String, String)]) -> bool {
        std::iter::once(&self.parent).chain(&self.earlier_parents).any(|parent| parent.is_among(tables))
    }

    /// Whether the table that it refers to has, or had, this name.
    fn may_refer_to(&self, database: &[u8], table: &[u8]) -> bool {
        std::iter::once(&self.parent).chain(&self.earlier_parents).any(|parent| parent.is(database, table))
    }

    /// Whether the table that had this name at a place is the one that it refers to, or may be.
    fn refers_to(
        &self,
        (database, table): (&[u8], &[u8]),
        at: Option<(&TableHistory, HistoryPlace)>,
    ) -> bool {
        if !self.may_refer_to(database, table) {
            return false;
        }
        let Some((history, place)) = at else { return true };
        let [database_then, table_then] = [database, table].map(String::from_utf8_lossy);
        let names = history.names_since(place, &database_then, &table_then);
        let now = names.as_ref().ok().and_then(|names| names.last());
        now.is_none_or(|(database, table)| self.parent.is(database.as_bytes(), table.as_bytes()))
    }

    /// Takes what both of its tables were called in the logs before; returns the statements that leave that open.
    fn follow(&mut self, history: &TableHistory) -> Vec<String> {
        let mut unclear = Vec::new();
        let sides = [(&self.child, &mut self.earlier_children), (&self.parent, &mut self.earlier_parents)];
        for (table, earlier) in sides {
            let Some(database) = &table.database else { continue };
            match history.names_of_now(HistoryPlace::default(), database, &table.table) {
                Ok((names, _)) => {
                    let names = names.into_iter().rev().skip(1);
                    *earlier = names.map(|(database, table)| TableOfKey { database: Some(database), table }).collect();
                }
                Err(turn) => unclear.push(format!(
                    "foreign key {}: what {table} was before a statement isn't known, so what the key changed below the log before it isn't \
                     either: {}",
                    self.name,
                    shortened(&turn.statement)
                )),
            }
        }
        unclear
    }
}

/// The foreign keys that may have changed rows of chosen tables below the log, or rows with those of chosen tables.
#[derive(Debug, Clone)]
pub struct CarryingKeys<'h> {
    /// The keys of all tables.
    all: Vec<CarryingKey>,
    /// The tables that are chosen, or none for all.
    tables: Vec<(String, String)>,
    is_shown_only: bool,
    /// Whether the server carries changes on by these keys again, or somebody else looks after what they did.
    are_minded: bool,
    /// Keys that statements in the logs took away.
    lost: Vec<LostKey>,
    /// Which table had which name when.
    history: Option<&'h TableHistory>,
    /// Keys that can't be followed through the logs, line by line.
    unclear: Vec<String>,
    /// Whether the parents' changes that are chosen are taken back: the server then takes ON UPDATE CASCADE back by itself.
    undoes: bool,
    /// The server whose account may not see all tables, and so not all keys that refer to chosen rows.
    half_seen: Option<String>,
    /// The ways on which changes of others reach chosen rows.
    reach: KeyReach,
}

impl<'h> CarryingKeys<'h> {
    /// The foreign keys of these tables and, where changes are taken back, those that refer to them; all if there are no tables. There may
    /// be none. `direction` is `None` where changes are only shown. Where they are made again, the server carries them on again.
    pub fn new(schema: &SchemaFile, tables: &[(String, String)], direction: Option<Direction>) -> Self {
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
            let on_delete = key.on_delete;
            let on_update = key.on_update;
            let is_at_column = key.is_at_column;
            let columns = key.columns.clone();
            let earlier_children = Vec::new();
            let earlier_parents = Vec::new();
            keys.push(CarryingKey {
                name,
                child,
                parent,
                earlier_children,
                earlier_parents,
                columns,
                referenced,
                on_delete,
                on_update,
                is_at_column,
                matters: false,
            });
        }
        // The same order in every run.
        keys.sort_by_key(|key| (key.child.to_string(), key.name.clone()));
        let mut carrying = CarryingKeys {
            all: keys,
            tables: tables.to_vec(),
            is_shown_only: direction.is_none(),
            are_minded: direction == Some(Direction::Redo),
            lost: Vec::new(),
            history: None,
            unclear: Vec::new(),
            undoes: direction == Some(Direction::Undo),
            half_seen: None,
            reach: KeyReach::default(),
        };
        carrying.choose();
        carrying
    }

    /// Whether no key changes rows of its table.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The keys are those that the account sees, which may not see all tables of this server: where chosen rows are taken back, others may
    /// have referred to them.
    #[must_use]
    pub fn half_seen_at(mut self, server: String) -> Self {
        self.half_seen = Some(server).filter(|_| self.undoes);
        self
    }

    /// Leaves what the keys of the schema did to others: only keys that statements in the logs took away are named.
    #[must_use]
    pub fn of_dropped_alone(mut self) -> Self {
        self.are_minded = true;
        self.choose();
        self
    }

    /// Finds the keys that matter for the tables chosen.
    fn choose(&mut self) {
        let parents = self.lost.iter().flat_map(LostKey::parents_of_chosen).cloned();
        let tables: Vec<_> = self.tables.iter().cloned().chain(parents).collect();
        let above = CarryingKey::tables_above(&self.all, &tables);
        for key in &mut self.all {
            let leads_to_chosen = self.tables.is_empty()
                || above.contains(&key.child)
                || !self.is_shown_only && key.refers_to_any(&self.tables);
            key.matters = leads_to_chosen && !self.are_minded;
        }
        self.reach = KeyReach::of(&self.all, &self.tables);
    }

    /// The keys that matter, by number.
    fn numbered(&self) -> impl Iterator<Item = (u32, &CarryingKey)> {
        (0..).zip(&self.all).filter(|(_, key)| key.matters)
    }

    /// The keys that statements took away, by number: after those of now.
    fn numbered_lost(&self) -> impl Iterator<Item = (u32, &LostKey)> {
        (self.all.len() as u32..).zip(&self.lost)
    }

    /// The keys that statements in the logs took away and that matter for the tables chosen.
    fn lost_in(&self, history: &TableHistory) -> Vec<LostKey> {
        let above = CarryingKey::tables_above(&self.all, &self.tables);
        let leads = |key: &CarryingKey| !self.tables.is_empty() && above.contains(&key.child);
        let is_above = |database: &str, table: &str| {
            let mut leading = self.all.iter().filter(|key| leads(key));
            leading.any(|key| key.may_refer_to(database.as_bytes(), table.as_bytes()))
        };
        let is_known = |database: &str, table: &str, name: &str| {
            let is_it = |key: &CarryingKey| {
                key.name.eq_ignore_ascii_case(name) && key.child.is(database.as_bytes(), table.as_bytes())
            };
            self.all.iter().any(is_it) && !history.adds_foreign_key(name)
        };
        let asked =
            AskedRows { tables: &self.tables, is_shown_only: self.is_shown_only, is_above: &is_above };
        LostKey::all(history, asked, &is_known)
    }

    /// The number that stands for keys that the account may not see.
    fn unseen(&self) -> u32 {
        (self.all.len() + self.lost.len()) as u32
    }

    /// The same keys under the names that their tables had at each place of the logs, and those that statements took away. `None`: the keys,
    /// the names and the parents' columns were always those of now.
    #[must_use]
    pub fn through<'t>(&self, history: &'t TableHistory) -> Option<CarryingKeys<'t>>
    where
        'h: 't,
    {
        let mut keys: CarryingKeys<'t> = self.clone();
        let unclear = keys.all.iter_mut().map(|key| key.follow(history)).collect::<Vec<_>>();
        keys.lost = keys.lost_in(history);
        let has_earlier = |key: &CarryingKey| key.earlier_children.len() + key.earlier_parents.len() > 0;
        let is_as_now = !keys.all.iter().any(has_earlier) && unclear.iter().all(Vec::is_empty);
        if is_as_now && keys.lost.is_empty() && !keys.has_touched_parent(history) {
            return None;
        }
        keys.choose();
        let lines = keys.all.iter().zip(unclear).filter(|(key, _)| key.matters);
        keys.unclear = lines.flat_map(|(_, lines)| lines).collect();
        keys.history = Some(history);
        Some(keys)
    }

    /// Whether statements may have changed a table to which one of them refers, or may refer.
    fn has_touched_parent(&self, history: &TableHistory) -> bool {
        let touches = |database: &str, table: &str| history.touches(HistoryPlace::default(), database, table);
        let parents = self.numbered().map(|(_, key)| &key.parent);
        let is_touched = |parent: &TableOfKey| {
            parent.database.as_ref().is_none_or(|database| touches(database, &parent.table))
        };
        let may_be_unseen = self.half_seen.is_some()
            && (self.tables.is_empty()
                || self.tables.iter().any(|(database, table)| touches(database, table)));
        parents.into_iter().any(is_touched) || may_be_unseen
    }

    /// Whether each of them can be followed through the logs.
    pub(crate) fn are_clear(&self) -> bool {
        self.unclear.is_empty()
    }

    /// Whether one of them refers to this table, or to one that had its name.
    pub fn has_parent(&self, database: &[u8], table: &[u8]) -> bool {
        let is_chosen =
            |(own, name): &(String, String)| own.as_bytes() == database && name.as_bytes() == table;
        let is_asked = self.tables.is_empty() || self.tables.iter().any(is_chosen);
        self.half_seen.is_some() && is_asked
            || self.numbered().any(|(_, key)| key.may_refer_to(database, table))
            || self.lost.iter().any(|key| key.may_refer_to(database, table, is_asked))
    }

    /// The keys that may have carried rows of an event on, if it was made with foreign keys on and below the log.
    pub(crate) fn of_event(&self, event: &EventOfParent<'_>) -> KeysOfEvent {
        let at = self.history.map(|history| (history, event.place));
        let has_keys_at_columns = has_keys_at_columns(event.source);
        let of_now = self.numbered().filter(|(_, key)| !key.is_at_column || has_keys_at_columns);
        let of_now = of_now.filter_map(|(number, key)| Some((number, self.rows_carried(key, event, at)?)));
        let lost = at.into_iter().flat_map(|at| {
            self.numbered_lost().filter_map(move |(number, key)| Some((number, key.rows_carried(event, at)?)))
        });
        let unseen = self.half_seen.as_ref().map(|_| {
            (self.unseen(), CarriedRows { asked: RowsAsked::Chosen, columns: event.columns_of_indexes(at) })
        });
        KeysOfEvent { operation: event.operation, keys: of_now.chain(lost).chain(unseen).collect() }
    }

    /// Which rows of an event a key of now may have carried on; `None`: none of them.
    fn rows_carried(
        &self,
        key: &CarryingKey,
        event: &EventOfParent<'_>,
        at: Option<(&TableHistory, HistoryPlace)>,
    ) -> Option<CarriedRows> {
        let schema = &event.table.schema;
        let rule = match event.operation {
            Operation::Insert => ReferentialRule::Refuse,
            Operation::Delete => key.on_delete,
            Operation::Update => key.on_update,
        };
        if rule == ReferentialRule::Refuse || !key.refers_to((&schema.database, &schema.table), at) {
            return None;
        }
        let is_repeated =
            event.operation == Operation::Update && self.undoes && rule == ReferentialRule::Cascade;
        let asked = if is_repeated { RowsAsked::Others } else { RowsAsked::All };
        Some(CarriedRows { asked, columns: event.columns_of_now(at, &key.referenced) })
    }
}

/// The foreign keys that may have carried rows of an event on, by number.
pub(crate) struct KeysOfEvent {
    operation: Operation,
    keys: Vec<(u32, CarriedRows)>,
}

impl KeysOfEvent {
    /// The keys that may have carried the change of a row on to other tables; `is_row_chosen`: the row itself is asked for.
    pub(crate) fn of_row(&self, row: &Row<'_, '_>, is_row_chosen: bool) -> impl Iterator<Item = u32> {
        let carried = self.keys.iter().filter(move |(_, rows)| rows.have(self.operation, row, is_row_chosen));
        carried.map(|(number, _)| *number)
    }
}

/// Whether the server of a log makes a foreign key of REFERENCES at a column: MariaDB does, and MySQL since 9.0.
fn has_keys_at_columns(source: &FormatDescription) -> bool {
    source.is_mariadb() || source.server_version_number() >= 90_000
}

/// Changes that were carried on: how many rows of the parent, and where the first is; by key.
#[derive(Debug, Default)]
pub(crate) struct CarriedChanges {
    counts: BTreeMap<u32, (u64, String)>,
    /// Changes of the open transaction, which counts once it is committed.
    open: BTreeMap<u32, (u64, String)>,
    /// The logs, in their order.
    logs: Vec<String>,
}

impl CarriedChanges {
    /// A log begins.
    pub(super) fn begin_log(&mut self, name: &str) {
        self.logs.push(name.to_owned());
    }

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

    /// A line for each key of now; `verb` is what isn't done with the children.
    pub(crate) fn notes(&self, keys: &CarryingKeys<'_>, verb: &str) -> Vec<String> {
        let numbered = self.counts.iter();
        let line = |(number, (count, place)): (&u32, &(u64, String))| {
            let CarryingKey { name, child, parent, .. } = keys.all.get(*number as usize)?;
            Some(format!(
                "foreign key {name}: rows of {child} that the server changed with {} of {parent} are in no log, so they aren't {verb}; the \
                 first is {place}",
                counted(*count, "rows")
            ))
        };
        numbered.filter_map(line).chain(keys.unclear.iter().cloned()).collect()
    }

    /// The line about keys that the account may not see.
    pub(crate) fn unseen_note(&self, keys: &CarryingKeys<'_>, verb: &str) -> Option<String> {
        let server = keys.half_seen.as_ref()?;
        let (count, place) = self.counts.get(&keys.unseen())?;
        Some(format!(
            "{server}: the account may not see all tables, nor their foreign keys: rows of others that the server changed with {} may be in \
             no log, and so not {verb}; the first is {place}; expected an account with SELECT on *.*",
            counted(*count, "rows")
        ))
    }

    /// A line for each key that a statement took away; of those that aren't known a bounded number.
    pub(crate) fn lost_notes(&self, keys: &CarryingKeys<'_>, verb: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let mut unknown = Vec::new();
        for (number, (count, place)) in &self.counts {
            let number = (*number as usize).checked_sub(keys.all.len());
            let Some(key) = number.and_then(|number| keys.lost.get(number)) else { continue };
            let log = usize::try_from(key.log()).ok().and_then(|log| self.logs.get(log.checked_sub(1)?));
            let shown = key.shown(log.map_or("", String::as_str));
            let rows = counted(*count, "rows");
            match key.is_known() {
                true => lines.push(format!(
                    "{shown}: rows of {} that the server changed with {rows} of the table that it referred to are in no log, so they aren't \
                     {verb}; the first is {place}",
                    key.child()
                )),
                false => unknown.push(format!(
                    "{shown}: rows that the server changed with {rows} before it may be in no log, and so not {verb}; the first is {place}"
                )),
            }
        }
        let more = unknown.len().saturating_sub(UNKNOWN_MAX) as u64;
        lines.extend(unknown.into_iter().take(UNKNOWN_MAX));
        if more > 0 {
            lines.push(format!("the same holds for {} of these logs", counted(more, "more statements")));
        }
        lines
    }
}

/// The most lines about keys that aren't known.
const UNKNOWN_MAX: usize = 5;
