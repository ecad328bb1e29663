//! The foreign keys that change rows by themselves, and the tables on both sides of them.

use binlogz_schema::{ReferentialRule, SchemaFile};

/// A foreign key of a child, with its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Constraint {
    pub(super) name: String,
    pub(super) child: (String, String),
    pub(super) columns: Vec<String>,
    pub(super) parent: (String, String),
    pub(super) referenced: Vec<String>,
    pub(super) on_delete: ReferentialRule,
    pub(super) on_update: ReferentialRule,
}

impl Constraint {
    /// The child as `database.table`.
    pub(super) fn child(&self) -> String {
        format!("{}.{}", self.child.0, self.child.1)
    }

    pub(super) fn parent(&self) -> String {
        format!("{}.{}", self.parent.0, self.parent.1)
    }
}

/// Why a schema tells no family.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FamilyError {
    /// A table's database isn't known.
    #[error(
        "doesn't say in which database {0} is, expected a USE statement: mysqldump --no-data --databases writes it"
    )]
    NoDatabase(String),
    /// MySQL before 9.0 makes no key of it.
    #[error(
        "has REFERENCES at the column {column} of {table}, which MySQL before 9.0 makes no foreign key of: expected FOREIGN KEY \
         ({column}) REFERENCES … if the server has it, else a column without it"
    )]
    AtColumn {
        /// The child.
        table: String,
        /// The column that has REFERENCES.
        column: String,
    },
    /// The parent's primary key isn't told.
    #[error(
        "has foreign key {name} of {table}, and not the primary key of {parent}, to which it refers: expected CREATE TABLE {parent}"
    )]
    NoReferenced {
        /// The foreign key.
        name: String,
        /// The child.
        table: String,
        /// The parent.
        parent: String,
    },
    /// No foreign key of the tables changes rows of a child.
    #[error("has no foreign key with CASCADE or SET NULL")]
    NoCascades,
}

/// The foreign keys that change rows by themselves, and the tables on both sides of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Family {
    pub(super) constraints: Vec<Constraint>,
    /// The tables of the family, each by database and name.
    pub(super) tables: Vec<(String, String)>,
}

impl Family {
    pub(super) fn new(schema: &SchemaFile) -> Result<Self, FamilyError> {
        let mut keys: Vec<_> = schema.foreign_keys().collect();
        keys.retain(|(_, _, key)| {
            (key.on_delete, key.on_update) != (ReferentialRule::Refuse, ReferentialRule::Refuse)
        });
        // The same order in every run.
        keys.sort_by_key(|(database, table, key)| (*database, *table, &key.name));
        let mut constraints = Vec::new();
        for (database, table, key) in keys {
            let database = database.ok_or_else(|| FamilyError::NoDatabase(table.to_owned()))?;
            let parent = key.database.clone().unwrap_or_else(|| database.to_owned());
            if key.is_at_column {
                let column = key.columns.join(", ");
                return Err(FamilyError::AtColumn { table: table.to_owned(), column });
            }
            let referenced = schema.referenced(Some(database), key).to_vec();
            if referenced.is_empty() {
                let name = key.name.clone();
                let parent = key.parent.clone();
                return Err(FamilyError::NoReferenced { name, table: table.to_owned(), parent });
            }
            constraints.push(Constraint {
                name: key.name.clone(),
                child: (database.to_owned(), table.to_owned()),
                columns: key.columns.clone(),
                parent: (parent, key.parent.clone()),
                referenced,
                on_delete: key.on_delete,
                on_update: key.on_update,
            });
        }
        if constraints.is_empty() {
            return Err(FamilyError::NoCascades);
        }
        let both = constraints.iter().flat_map(|constraint| [&constraint.child, &constraint.parent]);
        let mut tables: Vec<_> = both.cloned().collect();
        tables.sort();
        tables.dedup();
        Ok(Family { constraints, tables })
    }
}
