//! Foreign keys that statements in the logs took away: they carried changes on below the log up to there, and neither the server nor a
//! schema has them now.
//!
//! If the logs have the CREATE TABLE of the key's table, the key is followed like one of now, up to the statement. Otherwise any table
//! may have been the parent, so each deletion below the log before the statement counts, and each update of an index that the table still
//! has, or of any column where it had other indexes.

use binlogz_schema::{
    ForeignKey, HistoryPlace, LostForeignKeys, LostKeysTable, ReferentialRule, TableHistory, TableIdentity,
};

use super::carried_rows::{CarriedRows, EventOfParent, RowsAsked};
use super::changed_cells::places_of;
use super::shortened::shortened;
use crate::choose::Operation;

/// Foreign keys that a statement took away.
#[derive(Debug, Clone)]
pub(super) struct LostKey {
    /// The key; `None`: which there were isn't known.
    key: Option<LostKeyRules>,
    /// The table that had them, for messages.
    child: String,
    /// Whether rows of the table that had them are asked for. Otherwise those of the other side are.
    is_of_chosen: bool,
    since: HistoryPlace,
    until: HistoryPlace,
    /// The statement, for messages.
    statement: String,
}

/// A key whose text is known.
#[derive(Debug, Clone)]
struct LostKeyRules {
    name: String,
    /// The table that it refers to, when it was made and when it was dropped.
    parents: [TableIdentity; 2],
    /// All names that the parents had in the logs.
    parent_names: Vec<(String, String)>,
    /// The parent's columns that the key refers to; empty: the statement doesn't tell.
    referenced: Vec<String>,
    on_delete: ReferentialRule,
    on_update: ReferentialRule,
}

/// The tables of a question, and whether it is about their rows alone.
#[derive(Clone, Copy)]
pub(super) struct AskedRows<'t> {
    /// The tables whose rows are asked for; empty: all tables.
    pub(super) tables: &'t [(String, String)],
    /// Whether rows that were changed together with them don't matter.
    pub(super) is_shown_only: bool,
    /// Tables, by database and name, from which keys of now carry changes on to them.
    pub(super) is_above: &'t dyn Fn(&str, &str) -> bool,
}

impl AskedRows<'_> {
    fn has(&self, database: &str, table: &str) -> bool {
        let is_it = |own: &(String, String)| is_table(own, database, table);
        self.tables.is_empty() || self.tables.iter().any(is_it)
    }

    fn has_any(&self, names: &[(String, String)]) -> bool {
        names.iter().any(|(database, table)| self.has(database, table))
    }
}

impl LostKey {
    /// The keys of these that matter; `is_known` says of a key, by table and name, that a schema has it.
    pub(super) fn all(
        history: &TableHistory,
        asked: AskedRows<'_>,
        is_known: &dyn Fn(&str, &str, &str) -> bool,
    ) -> Vec<LostKey> {
        let mut all = Vec::new();
        for lost in history.lost_foreign_keys() {
            let (child, is_of_chosen) = match &lost.table {
                LostKeysTable::Table(database, table) => {
                    let known = |name: &String| is_known(database, table, name);
                    if lost.name.as_ref().is_some_and(known) {
                        continue;
                    }
                    let names =
                        history.names_of_identity(&history.identity_at(lost.by.place, database, table));
                    let is_above = names.iter().any(|(database, table)| (asked.is_above)(database, table));
                    let is_of_chosen = asked.has(database, table) || asked.has_any(&names) || is_above;
                    (format!("{database}.{table}"), is_of_chosen)
                }
                LostKeysTable::OfDatabase(database) => (
                    format!("tables of {database}"),
                    asked.tables.iter().any(|(own, _)| own.eq_ignore_ascii_case(database)),
                ),
                LostKeysTable::Any => ("tables that it names".to_owned(), true),
            };
            for key in LostKeyRules::of(history, &lost) {
                let is_of_asked = |key: &LostKeyRules| asked.has_any(&key.parent_names);
                let may_be_of_asked = !asked.is_shown_only && key.as_ref().is_none_or(is_of_asked);
                if is_of_chosen || may_be_of_asked {
                    all.push(LostKey {
                        key,
                        child: child.clone(),
                        is_of_chosen,
                        since: lost.since,
                        until: lost.by.place,
                        statement: shortened(&lost.by.statement),
                    });
                }
            }
        }
        all
    }

    /// Whether it may refer to a table of this name; `is_asked`: rows of that one are asked for.
    pub(super) fn may_refer_to(&self, database: &[u8], table: &[u8], is_asked: bool) -> bool {
        match &self.key {
            Some(key) => {
                let [database, table] = [database, table].map(String::from_utf8_lossy);
                key.parent_names.iter().any(|own| is_table(own, &database, &table))
            }
            None => self.is_of_chosen || is_asked,
        }
    }

    /// Which rows of an event it may have carried on, if it was made with foreign keys on and below the log; `None`: none of them.
    pub(super) fn rows_carried(
        &self,
        event: &EventOfParent<'_>,
        at: (&TableHistory, HistoryPlace),
    ) -> Option<CarriedRows> {
        let (history, place) = at;
        if place < self.since || place >= self.until {
            return None;
        }
        let Some(key) = &self.key else {
            let asked = if self.is_of_chosen { RowsAsked::All } else { RowsAsked::Chosen };
            let columns = event.columns_of_indexes(Some(at));
            return Some(CarriedRows { asked, columns });
        };
        let rule = match event.operation {
            Operation::Insert => ReferentialRule::Refuse,
            Operation::Delete => key.on_delete,
            Operation::Update => key.on_update,
        };
        let [database, table] = event.names();
        let is_parent = key.parents.contains(&history.identity_at(place, &database, &table))
            || key.has_other_parents() && self.may_refer_to(database.as_bytes(), table.as_bytes(), false);
        if rule == ReferentialRule::Refuse || !is_parent {
            return None;
        }
        // A statement may have given the columns other names.
        let is_same = !key.referenced.is_empty() && !history.touches(self.since, &database, &table);
        let columns = if is_same { places_of(event.table, key.names()) } else { None };
        Some(CarriedRows { asked: RowsAsked::All, columns })
    }

    /// The keys in words, with the statement, which stands in this log.
    pub(super) fn shown(&self, log: &str) -> String {
        let LostKey { child, until, statement, .. } = self;
        let place = format!("{log} at {}", until.offset);
        match &self.key {
            Some(key) => format!(
                "foreign key {} of {child}, which a statement took away ({place}: {statement})",
                key.name
            ),
            None => {
                format!(
                    "foreign keys of {child} that a statement took away ({place}: {statement}) aren't known"
                )
            }
        }
    }

    /// The keys in words, without the statement.
    pub(super) fn shown_alone(&self) -> String {
        match &self.key {
            Some(key) => format!("foreign key {}, which a statement took away later", key.name),
            None => "foreign keys that a statement took away later".to_owned(),
        }
    }

    /// Whether rows of the table that had them are asked for.
    pub(super) fn is_of_chosen(&self) -> bool {
        self.is_of_chosen
    }

    /// All names of the tables that it refers to, if rows of the table that had it are asked for.
    pub(super) fn parents_of_chosen(&self) -> &[(String, String)] {
        match &self.key {
            Some(key) if self.is_of_chosen => &key.parent_names,
            Some(_) | None => &[],
        }
    }

    /// The table that had them.
    pub(super) fn child(&self) -> &str {
        &self.child
    }

    /// Whether it is known which keys the statement took away.
    pub(super) fn is_known(&self) -> bool {
        self.key.is_some()
    }

    /// Which of the logs the statement stands in, counted from 1.
    pub(super) fn log(&self) -> u64 {
        self.until.log
    }
}

/// Whether a table has this name, which some servers spell in another case than statements.
fn is_table((own, name): &(String, String), database: &str, table: &str) -> bool {
    own.eq_ignore_ascii_case(database) && name.eq_ignore_ascii_case(table)
}

impl LostKeyRules {
    /// Whether another table took the place of its parent, which was dropped: it may have referred to more tables of the name in between.
    fn has_other_parents(&self) -> bool {
        let [first, last] = &self.parents;
        first != last
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.referenced.iter().map(String::as_str)
    }

    /// The rules of the lost keys that change rows; `None` for keys that aren't known.
    fn of(history: &TableHistory, lost: &LostForeignKeys<'_>) -> Vec<Option<LostKeyRules>> {
        let (Some(keys), LostKeysTable::Table(database, _)) = (&lost.keys, &lost.table) else {
            return vec![None];
        };
        let changing = keys.iter().filter(|key| {
            (key.on_delete, key.on_update) != (ReferentialRule::Refuse, ReferentialRule::Refuse)
        });
        let rules = |key: &ForeignKey| {
            let parent_database = key.database.as_deref().unwrap_or(database);
            let parents = [lost.since, lost.by.place]
                .map(|place| history.identity_at(place, parent_database, &key.parent));
            let mut parent_names = vec![(parent_database.to_owned(), key.parent.clone())];
            parent_names.extend(parents.iter().flat_map(|parent| history.names_of_identity(parent)));
            let name = key.name.clone();
            let referenced = key.referenced.clone();
            let on_delete = key.on_delete;
            let on_update = key.on_update;
            Some(LostKeyRules { name, parents, parent_names, referenced, on_delete, on_update })
        };
        changing.map(rules).collect()
    }
}
