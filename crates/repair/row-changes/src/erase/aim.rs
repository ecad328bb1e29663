//! What is erased: the rows of tables, and what becomes of their columns.

use std::collections::{BTreeSet, HashSet};

use super::references::ChildReference;
use crate::choose::Condition;

/// What is erased.
#[derive(Debug, Clone, Default)]
pub struct ErasureAim {
    /// The tables: first those that were named, then their children.
    pub(super) tables: Vec<ErasedTable>,
    /// The foreign keys by which rows of children refer to chosen rows.
    pub(super) references: Vec<FollowedReference>,
    /// Whether the rows go; otherwise only values of columns do.
    pub(super) rows: bool,
    pub(super) columns: Vec<ErasedColumn>,
    /// Whether the texts of all statements that name a table go, not only of those with such rows.
    pub(super) texts: bool,
}

/// A table of which rows are erased.
#[derive(Debug, Clone)]
pub(super) struct ErasedTable {
    pub(super) name: (String, String),
    /// Its rows: those of which one image meets one of these.
    pub(super) conditions: Vec<Condition>,
}

impl ErasedTable {
    fn shown(&self) -> String {
        format!("{}.{}", self.name.0, self.name.1)
    }
}

/// A foreign key, its tables by their places in the aim.
#[derive(Debug, Clone)]
pub(super) struct FollowedReference {
    pub(super) child: usize,
    pub(super) parent: usize,
    pub(super) columns: Vec<String>,
    /// None: those of the parent's key.
    pub(super) referenced: Vec<String>,
}

/// A column that loses its values.
#[derive(Debug, Clone)]
pub(super) struct ErasedColumn {
    /// As it was named.
    pub(super) shown: String,
    /// By name or as `@3`.
    pub(super) column: String,
    /// Its table; `None`: each that was named and has such a column.
    pub(super) table: Option<usize>,
    /// Whether it becomes NULL, or else empty.
    pub(super) is_null: bool,
}

impl ErasureAim {
    /// The rows of tables that meet conditions, of which nothing is erased yet.
    pub fn new(chosen: impl IntoIterator<Item = ((String, String), Condition)>) -> Self {
        let mut aim = ErasureAim::default();
        for (name, condition) in chosen {
            match aim.tables.iter_mut().find(|table| table.name == name) {
                Some(table) => table.conditions.push(condition),
                None => aim.tables.push(ErasedTable { name, conditions: vec![condition] }),
            }
        }
        aim
    }

    /// The rows that refer to chosen ones, too, and those that refer to these.
    #[must_use]
    pub fn with_children(mut self, references: &[ChildReference]) -> Self {
        let mut parent = 0;
        // Children come after their parents, each once: a circle ends.
        while let Some(name) = self.tables.get(parent).map(|table| table.name.clone()) {
            for reference in references.iter().filter(|reference| reference.parent == name) {
                let child = self.place_of(&reference.child).unwrap_or_else(|| {
                    self.tables.push(ErasedTable { name: reference.child.clone(), conditions: Vec::new() });
                    self.tables.len() - 1
                });
                self.references.push(FollowedReference {
                    child,
                    parent,
                    columns: reference.columns.clone(),
                    referenced: reference.referenced.clone(),
                });
            }
            parent += 1;
        }
        self
    }

    /// The row changes go, whole.
    #[must_use]
    pub fn taking_rows(self) -> Self {
        ErasureAim { rows: true, ..self }
    }

    /// These columns lose their values: those of tables that were named, and `table.column` or `database.table.column`, which a child's have to be.
    #[must_use]
    pub fn taking_columns(mut self, null: &[String], blank: &[String]) -> Self {
        let all = null.iter().map(|name| (name, true)).chain(blank.iter().map(|name| (name, false)));
        let columns: Vec<_> = all.map(|(name, is_null)| self.column(name, is_null)).collect();
        self.columns.extend(columns);
        self
    }

    /// The texts of all statements that name the tables go, too.
    #[must_use]
    pub fn taking_texts(self, texts: bool) -> Self {
        ErasureAim { texts, ..self }
    }

    fn column(&self, shown: &str, is_null: bool) -> ErasedColumn {
        let of_table = shown.rsplit_once('.').and_then(|(table, column)| {
            let mut tables = self.tables.iter();
            let place = tables.position(|known| known.shown() == table || known.name.1 == table)?;
            Some((place, column))
        });
        let (table, column) = of_table.map_or((None, shown), |(table, column)| (Some(table), column));
        ErasedColumn { shown: shown.to_owned(), column: column.to_owned(), table, is_null }
    }

    pub(super) fn place_of(&self, name: &(String, String)) -> Option<usize> {
        self.tables.iter().position(|table| table.name == *name)
    }

    /// The place of a table as a log names it.
    pub(super) fn place_of_logged(&self, database: &[u8], table: &[u8]) -> Option<usize> {
        let is_it =
            |known: &ErasedTable| known.name.0.as_bytes() == database && known.name.1.as_bytes() == table;
        self.tables.iter().position(is_it)
    }

    /// Whether a column is one of this table, as far as names of tables tell.
    pub(super) fn is_of(&self, column: &ErasedColumn, table: usize) -> bool {
        let is_named = || self.tables.get(table).is_some_and(|table| !table.conditions.is_empty());
        column.table.map_or_else(is_named, |own| own == table)
    }

    /// The names of the tables in small letters, as statements may have them.
    pub(super) fn words(&self) -> HashSet<String> {
        self.tables.iter().map(|table| table.name.1.to_lowercase()).collect()
    }

    /// The tables, each with the conditions of its rows; a child has none.
    pub fn tables(&self) -> impl Iterator<Item = (&(String, String), &[Condition])> {
        self.tables.iter().map(|table| (&table.name, &*table.conditions))
    }

    /// The tables as `database.table`, in the order of [`ErasureCounts::tables`](super::ErasureCounts::tables).
    pub fn names(&self) -> Vec<String> {
        self.tables.iter().map(ErasedTable::shown).collect()
    }

    /// The tables that were named, for messages.
    pub fn shown(&self) -> String {
        let named = self.tables.iter().filter(|table| !table.conditions.is_empty());
        named.map(ErasedTable::shown).collect::<Vec<_>>().join(", ")
    }

    /// The tables to whose rows those of this one refer, as `database.table`.
    pub fn parents_of(&self, table: usize) -> BTreeSet<String> {
        let own = self.references.iter().filter(|reference| reference.child == table);
        own.filter_map(|reference| self.tables.get(reference.parent)).map(ErasedTable::shown).collect()
    }

    /// Whether chosen rows of the table with this number lose anything.
    pub fn erases_of(&self, table: usize) -> bool {
        self.rows || self.columns.iter().any(|column| self.is_of(column, table))
    }

    /// Whether rows of this table may be chosen by what they refer to.
    pub fn is_child(&self, name: &(String, String)) -> bool {
        let place = self.place_of(name);
        self.references.iter().any(|reference| Some(reference.child) == place)
    }

    /// Whether children were looked for, so that there may be something that refers to chosen rows.
    pub(super) fn follows(&self) -> bool {
        !self.references.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &str) -> (String, String) {
        ("shop".to_owned(), table.to_owned())
    }

    fn reference(child: &str, parent: &str) -> ChildReference {
        let columns = vec![format!("{parent}_id")];
        ChildReference {
            child: name(child),
            columns,
            parent: name(parent),
            referenced: vec!["id".to_owned()],
        }
    }

    #[test]
    fn children_are_followed_levels_deep_and_circles_end() {
        let condition = Condition::parse("id = 42").unwrap();
        let chosen = [(name("customers"), condition.clone()), (name("customers"), condition)];
        let aim = ErasureAim::new(chosen).with_children(&[
            reference("items", "orders"),
            reference("orders", "customers"),
            reference("customers", "orders"),
            reference("customers", "customers"),
            reference("others", "nobody"),
        ]);
        assert_eq!(aim.names(), ["shop.customers", "shop.orders", "shop.items"]);
        assert_eq!((aim.shown().as_str(), aim.tables[0].conditions.len()), ("shop.customers", 2));
        assert_eq!(aim.references.len(), 4);
        assert_eq!(Vec::from_iter(aim.parents_of(0)), ["shop.customers", "shop.orders"]);
        let aim = aim.taking_columns(
            &["email".to_owned()],
            &["orders.address".to_owned(), "shop.items.@3".to_owned()],
        );
        let of = |table: usize| -> Vec<&str> {
            aim.columns
                .iter()
                .filter(|column| aim.is_of(column, table))
                .map(|column| &*column.column)
                .collect()
        };
        assert_eq!([of(0), of(1), of(2)], [vec!["email"], vec!["address"], vec!["@3"]]);
    }
}
