//! Which tables refer to which: by the foreign keys that a schema tells, and those of the statements of logs.

use std::fmt::Write;

use binlogz_binlog::event::QueryEvent;
use binlogz_binlog::statement::StatementKind;
use binlogz_flow::Input;
use binlogz_flow::events::{self, BatchItem, EventBatch};
use binlogz_schema::{ForeignKey, SchemaFile, SchemaFileError};

use crate::pass::StatementWords;

/// A foreign key, whatever its rules are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChildReference {
    /// The child: its database and its name.
    pub child: (String, String),
    /// The child's columns.
    pub columns: Vec<String>,
    /// The parent.
    pub parent: (String, String),
    /// The parent's columns; none: those of its key.
    pub referenced: Vec<String>,
}

impl ChildReference {
    /// All that a schema tells.
    ///
    /// # Errors
    ///
    /// A table with a foreign key, without a database.
    pub fn of_schema(schema: &SchemaFile) -> Result<Vec<Self>, NoDatabaseOfKey> {
        let of = |(database, table, key): (Option<&str>, &str, &ForeignKey)| {
            let database = database.ok_or_else(|| NoDatabaseOfKey(table.to_owned()))?;
            Ok(ChildReference {
                child: (database.to_owned(), table.to_owned()),
                columns: key.columns.clone(),
                parent: (key.database.clone().unwrap_or_else(|| database.to_owned()), key.parent.clone()),
                referenced: schema.referenced(Some(database), key).to_vec(),
            })
        };
        schema.foreign_keys().map(of).collect()
    }
}

/// A table with a foreign key whose database isn't told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "doesn't say in which database {0} is, which has a foreign key: expected a USE statement, as mysqldump --no-data --databases writes it"
)]
pub struct NoDatabaseOfKey(String);

/// The statements of logs that define tables, in their order.
#[derive(Debug, Default)]
pub struct LoggedDefinitions(String);

impl LoggedDefinitions {
    /// Takes those of the next log. Only parts with statements have to be there.
    ///
    /// # Errors
    ///
    /// A log that can't be read.
    pub fn take(&mut self, log: Input, workers: usize) -> Result<(), binlogz_flow::Error> {
        let sink = |statements: Vec<String>| {
            self.0.extend(statements);
            Ok(())
        };
        events::run(log, workers, || Ok(()), |(), batch| Ok(definitions_of(batch)), sink, &mut |_| {})
            .map(drop)
    }

    /// The tables that they define, also those that were dropped; `None`: there is none.
    ///
    /// # Errors
    ///
    /// A statement that can't be read.
    pub fn schema(&self) -> Result<Option<SchemaFile>, SchemaFileError> {
        match SchemaFile::parse(&self.0) {
            Err(SchemaFileError::NoTables) => Ok(None),
            read => read.map(Some),
        }
    }
}

/// What can't be read fails the batch.
fn definitions_of(batch: &mut EventBatch<'_>) -> Vec<String> {
    let mut statements = Vec::new();
    let mut failed = None;
    while let Some(item) = batch.next_item() {
        let BatchItem::Event(event) = item else { continue };
        // In payloads there is no DDL: the server doesn't compress it.
        if !event.header.event_type.class().may_change_tables() || event.is_inside_payload() {
            continue;
        }
        match QueryEvent::decode(event.body) {
            Ok(query) => statements.extend(definition(&query)),
            Err(error) => {
                failed = Some(event.error(error));
                break;
            }
        }
    }
    if let Some(error) = failed {
        batch.fail(error);
    }
    statements
}

/// A statement that defines a table, after one that names its database.
fn definition(query: &QueryEvent<'_>) -> Option<String> {
    if StatementKind::of(query.statement) != StatementKind::Other {
        return None;
    }
    let text = String::from_utf8_lossy(query.statement);
    let words = StatementWords::of(&text);
    if words.defines_program() || !["create", "alter", "rename"].iter().any(|word| words.is(word)) {
        return None;
    }
    let database = String::from_utf8_lossy(query.database).replace('`', "``");
    let mut statement = String::new();
    // A string takes everything.
    let _ = writeln!(statement, "USE `{database}`;\n{text};");
    Some(statement)
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::event::StatusVariables;

    use super::*;

    fn reference(child: &str, columns: &str, parent: (&str, &str), referenced: &str) -> ChildReference {
        ChildReference {
            child: ("shop".to_owned(), child.to_owned()),
            columns: vec![columns.to_owned()],
            parent: (parent.0.to_owned(), parent.1.to_owned()),
            referenced: vec![referenced.to_owned()],
        }
    }

    #[test]
    fn a_schema_tells_references_and_a_table_without_a_database_is_an_error() {
        let text = "CREATE TABLE a (id INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES b (id) ON DELETE SET NULL);
            CREATE TABLE b (id INT PRIMARY KEY, c INT); ALTER TABLE b ADD FOREIGN KEY (c) REFERENCES other.c (n);";
        let schema = SchemaFile::parse(&format!("USE shop; {text}")).unwrap();
        let mut all = ChildReference::of_schema(&schema).unwrap();
        all.sort();
        let expected = [reference("a", "b", ("shop", "b"), "id"), reference("b", "c", ("other", "c"), "n")];
        assert_eq!(all, expected);
        let error = ChildReference::of_schema(&SchemaFile::parse(text).unwrap()).unwrap_err();
        assert!(error.to_string().contains("has a foreign key: expected a USE statement"), "{error}");
    }

    #[test]
    fn statements_that_define_tables_are_taken_with_their_database() {
        let taken = |statement: &str| {
            definition(&QueryEvent {
                thread_id: 1,
                exec_time: 0,
                error_code: 0,
                status_variables: StatusVariables(&[]),
                database: b"sh`op",
                statement: statement.as_bytes(),
            })
        };
        assert_eq!(
            taken("CREATE TABLE t (a INT)").as_deref(),
            Some("USE `sh``op`;\nCREATE TABLE t (a INT);\n")
        );
        assert!(taken("/* x */ alter table t add b int").is_some());
        for other in [
            "BEGIN",
            "INSERT INTO t VALUES (1)",
            "DROP TABLE t",
            "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW BEGIN END",
        ] {
            assert_eq!(taken(other), None, "{other}");
        }
    }
}
