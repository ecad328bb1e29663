//! The foreign keys by which changes of other rows reach chosen ones below the log: a later change that wasn't chosen may have taken a
//! chosen row away, or changed it, and no log has that.
//!
//! ```text
//! a key of a chosen table      the values that it refers to tell which chosen rows were changed
//! a key of a table in between  its rows that were changed are in no log, so chosen rows that refer to the table may have been changed
//! ```

use std::collections::BTreeSet;

use binlogz_binlog::row::Row;
use binlogz_schema::ReferentialRule;

use super::{CarryingKey, CarryingKeys, has_keys_at_columns};
use crate::choose::Operation;
use crate::pass::carried_rows::{CarriedRows, EventOfParent, RowsAsked};

/// What becomes of the rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RowsFate {
    Deleted,
    /// These columns of them change.
    Changed(Vec<String>),
}

/// The keys by which a change that a key carries on to its table reaches chosen tables further on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FurtherKeys {
    of_delete: BTreeSet<u32>,
    of_update: BTreeSet<u32>,
}

impl FurtherKeys {
    fn of(&self, operation: Operation) -> &BTreeSet<u32> {
        match operation {
            Operation::Delete => &self.of_delete,
            Operation::Update | Operation::Insert => &self.of_update,
        }
    }
}

/// The ways on which changes reach chosen tables below the log, for each foreign key in its order.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyReach {
    is_of_chosen: Vec<bool>,
    further: Vec<FurtherKeys>,
}

impl KeyReach {
    pub(super) fn of(keys: &[CarryingKey], tables: &[(String, String)]) -> Self {
        let is_of_chosen: Vec<bool> =
            keys.iter().map(|key| tables.is_empty() || key.is_of_any(tables)).collect();
        let further = keys.iter().map(|key| FurtherKeys {
            of_delete: further_keys(keys, &is_of_chosen, key, &RowsFate::Deleted),
            of_update: further_keys(keys, &is_of_chosen, key, &RowsFate::Changed(key.referenced.clone())),
        });
        KeyReach { further: further.collect(), is_of_chosen }
    }

    fn is_of_chosen(&self, key: u32) -> bool {
        self.is_of_chosen.get(key as usize).copied().unwrap_or(false)
    }

    /// Whether a key leads to a chosen table, over any number of tables in between.
    fn leads(&self, key: u32) -> bool {
        let is_further = |further: &FurtherKeys| further.of_delete.len() + further.of_update.len() > 0;
        self.is_of_chosen(key) || self.further.get(key as usize).is_some_and(is_further)
    }
}

impl CarryingKey {
    /// What becomes of its table's rows that refer to a parent's row with this fate.
    fn fates(&self, parent: &RowsFate) -> Vec<RowsFate> {
        let rule = match parent {
            RowsFate::Deleted => self.on_delete,
            RowsFate::Changed(columns) => {
                let is_it = |own: &String| columns.iter().any(|column| column.eq_ignore_ascii_case(own));
                // Without names any column may be one of them.
                let is_changed =
                    columns.is_empty() || self.referenced.is_empty() || self.referenced.iter().any(is_it);
                if is_changed { self.on_update } else { ReferentialRule::Refuse }
            }
        };
        let changed = RowsFate::Changed(self.columns.clone());
        match (rule, parent) {
            (ReferentialRule::Refuse, _) => Vec::new(),
            (ReferentialRule::Cascade, RowsFate::Deleted) => vec![RowsFate::Deleted],
            (ReferentialRule::Unknown, RowsFate::Deleted) => vec![RowsFate::Deleted, changed],
            (ReferentialRule::SetNull, RowsFate::Deleted) => vec![changed],
            (
                ReferentialRule::Cascade | ReferentialRule::SetNull | ReferentialRule::Unknown,
                RowsFate::Changed(_),
            ) => vec![changed],
        }
    }
}

/// The keys of chosen tables that a parent's change reaches, if a first key has carried it on to its own table.
fn further_keys(
    keys: &[CarryingKey],
    is_of_chosen: &[bool],
    first: &CarryingKey,
    parent: &RowsFate,
) -> BTreeSet<u32> {
    let mut reached = BTreeSet::new();
    let mut met: Vec<(&super::TableOfKey, RowsFate)> = Vec::new();
    let mut open: Vec<_> = first.fates(parent).into_iter().map(|fate| (&first.child, fate)).collect();
    while let Some(way) = open.pop() {
        if met.contains(&way) {
            continue;
        }
        let (table, fate) = &way;
        for ((number, key), is_chosen) in (0..).zip(keys).zip(is_of_chosen) {
            if key.parent != **table {
                continue;
            }
            let fates = key.fates(fate);
            if *is_chosen && !fates.is_empty() {
                reached.insert(number);
            }
            open.extend(fates.into_iter().map(|fate| (&key.child, fate)));
        }
        met.push(way);
    }
    reached
}

/// A key of a table, and the places of its columns there, or of those that it refers to; `None`: they aren't known.
#[derive(Debug)]
pub(crate) struct KeyPlaces {
    pub(crate) key: u32,
    pub(crate) columns: Option<Vec<usize>>,
}

/// The keys that may carry rows of an event on, as far as chosen tables.
#[derive(Debug)]
pub(crate) struct ReachingKeys {
    operation: Operation,
    keys: Vec<KeyPlaces>,
}

impl ReachingKeys {
    /// The keys that may have carried the change of a row on.
    pub(crate) fn of_row(&self, row: &Row<'_, '_>) -> impl Iterator<Item = &KeyPlaces> {
        self.keys.iter().filter(move |places| {
            let rows = CarriedRows { asked: RowsAsked::All, columns: places.columns.clone() };
            rows.have(self.operation, row, false)
        })
    }
}

impl CarryingKeys<'_> {
    /// Whether changes of rows of this table may reach chosen tables below the log.
    pub fn may_reach_from(&self, database: &[u8], table: &[u8]) -> bool {
        let mut leading = (0..).zip(&self.all).filter(|(number, _)| self.reach.leads(*number));
        leading.any(|(_, key)| key.may_refer_to(database, table))
            || self.lost.iter().any(|key| key.is_of_chosen() && key.may_refer_to(database, table, false))
    }

    /// The keys that may have carried rows of an event on as far as chosen tables, if it was made with foreign keys on and below the log.
    pub(crate) fn reaching(&self, event: &EventOfParent<'_>) -> ReachingKeys {
        let at = self.history.map(|history| (history, event.place));
        let schema = &event.table.schema;
        let has_keys_at_columns = has_keys_at_columns(event.source);
        let of_now = (0..).zip(&self.all).filter(|(number, key)| {
            let rule = match event.operation {
                Operation::Insert => ReferentialRule::Refuse,
                Operation::Delete => key.on_delete,
                Operation::Update => key.on_update,
            };
            let leads = self.reach.is_of_chosen(*number)
                || !self
                    .reach
                    .further
                    .get(*number as usize)
                    .is_none_or(|it| it.of(event.operation).is_empty());
            leads
                && rule != ReferentialRule::Refuse
                && (!key.is_at_column || has_keys_at_columns)
                && key.refers_to((&schema.database, &schema.table), at)
        });
        let of_now =
            of_now.map(|(key, own)| KeyPlaces { key, columns: event.columns_of_now(at, &own.referenced) });
        let lost = at.into_iter().flat_map(|at| {
            let lost = self.numbered_lost().filter(|(_, key)| key.is_of_chosen());
            lost.filter_map(move |(key, own)| {
                let columns = own.rows_carried(event, at)?.columns;
                Some(KeyPlaces { key, columns })
            })
        });
        ReachingKeys { operation: event.operation, keys: of_now.chain(lost).collect() }
    }

    /// The keys of the chosen table that an event is of.
    pub(crate) fn referring(&self, event: &EventOfParent<'_>) -> Vec<KeyPlaces> {
        let at = self.history.map(|history| (history, event.place));
        let own = [(
            String::from_utf8_lossy(&event.table.schema.database).into_owned(),
            String::from_utf8_lossy(&event.table.schema.table).into_owned(),
        )];
        let has_keys_at_columns = has_keys_at_columns(event.source);
        let of_table = (0..).zip(&self.all).filter(|(number, key)| {
            self.reach.is_of_chosen(*number)
                && (!key.is_at_column || has_keys_at_columns)
                && key.is_of_any(&own)
        });
        of_table
            .map(|(key, own)| KeyPlaces { key, columns: event.columns_of_now(at, &own.columns) })
            .collect()
    }

    /// The keys in words, by number, and the ways from one to the other.
    pub(crate) fn named_reach(&self) -> NamedReach {
        let of_now = self.all.iter().map(|key| NamedKey {
            name: format!("foreign key {}", key.name),
            child: key.child.to_string(),
            parent: key.parent.to_string(),
        });
        let lost = self.lost.iter().map(|key| NamedKey {
            name: key.shown_alone(),
            child: key.child().to_owned(),
            parent: "a table that it referred to".to_owned(),
        });
        NamedReach {
            keys: of_now.chain(lost).collect(),
            reach: self.reach.clone(),
            of_now: self.all.len() as u32,
        }
    }
}

/// A key in words.
#[derive(Debug, Clone)]
pub(crate) struct NamedKey {
    pub(crate) name: String,
    pub(crate) child: String,
    pub(crate) parent: String,
}

/// Foreign keys in words, and the ways on which they carry changes on.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamedReach {
    keys: Vec<NamedKey>,
    reach: KeyReach,
    /// How many of the keys the tables have now.
    of_now: u32,
}

impl NamedReach {
    pub(crate) fn key(&self, number: u32) -> Option<&NamedKey> {
        self.keys.get(number as usize)
    }

    /// Whether a statement took a key away.
    pub(crate) fn is_lost(&self, number: u32) -> bool {
        number >= self.of_now
    }

    /// The keys of chosen tables to which a key carries changes of its own table on.
    pub(crate) fn further(&self, number: u32, operation: Operation) -> impl Iterator<Item = u32> {
        let further = self.reach.further.get(number as usize);
        further.into_iter().flat_map(move |further| further.of(operation)).copied()
    }
}

#[cfg(test)]
mod tests {
    use binlogz_schema::SchemaFile;

    use super::*;

    fn reach(tables: &[&str], statements: &str) -> (Vec<String>, KeyReach) {
        let schema = SchemaFile::parse(&format!("USE s;\n{statements}")).unwrap();
        let tables: Vec<_> = tables.iter().map(|table| ("s".to_owned(), (*table).to_owned())).collect();
        let keys = CarryingKeys::new(&schema, &tables, Some(crate::choose::Direction::Undo));
        (keys.all.iter().map(|key| key.name.clone()).collect(), keys.reach)
    }

    /// By key: whether it is of a chosen table, and what a DELETE and an UPDATE of its parent reach further on.
    fn ways(tables: &[&str], statements: &str) -> Vec<String> {
        let (names, reach) = reach(tables, statements);
        let shown = |numbers: &BTreeSet<u32>| {
            numbers.iter().map(|number| &*names[*number as usize]).collect::<Vec<_>>().join(" ")
        };
        let line = |(number, name): (usize, &String)| {
            let further = &reach.further[number];
            format!(
                "{name} {} [{}] [{}]",
                reach.is_of_chosen[number],
                shown(&further.of_delete),
                shown(&further.of_update)
            )
        };
        names.iter().enumerate().map(line).collect()
    }

    #[test]
    fn deletes_reach_chosen_tables_over_others() {
        let statements = "
            CREATE TABLE a (id INT PRIMARY KEY);
            CREATE TABLE b (id INT PRIMARY KEY, a INT, CONSTRAINT ba FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE);
            CREATE TABLE c (id INT PRIMARY KEY, b INT, CONSTRAINT cb FOREIGN KEY (b) REFERENCES b (id) ON DELETE SET NULL);
            CREATE TABLE d (id INT PRIMARY KEY, c INT, CONSTRAINT dc FOREIGN KEY (c) REFERENCES c (id) ON DELETE CASCADE);";
        assert_eq!(ways(&["c"], statements), ["ba false [cb] []", "cb true [] []", "dc false [] []"]);
        // SET NULL leaves the rows of c, and their keys.
        assert_eq!(ways(&["d"], statements), ["ba false [] []", "cb false [] []", "dc true [] []"]);
        assert_eq!(ways(&[], statements), ["ba true [cb] []", "cb true [] []", "dc true [] []"]);
    }

    #[test]
    fn updates_reach_tables_whose_key_is_what_changes() {
        let statements = "
            CREATE TABLE a (id INT PRIMARY KEY);
            CREATE TABLE b (a INT PRIMARY KEY, n INT, CONSTRAINT ba FOREIGN KEY (a) REFERENCES a (id) ON UPDATE CASCADE);
            CREATE TABLE c (id INT PRIMARY KEY, b INT, CONSTRAINT cb FOREIGN KEY (b) REFERENCES b (a) ON UPDATE CASCADE);
            CREATE TABLE e (id INT PRIMARY KEY, e INT, CONSTRAINT ee FOREIGN KEY (e) REFERENCES e (id) ON DELETE CASCADE);";
        assert_eq!(ways(&["c"], statements), ["ba false [] [cb]", "cb true [] []", "ee false [] []"]);
        // The rows that refer to a row that went go, too.
        assert_eq!(ways(&["e"], statements), ["ba false [] []", "cb false [] []", "ee true [ee] []"]);
    }
}
