//! Tables and their columns, as CREATE TABLE statements and later DDL define them.
//!
//! ```text
//! SQL text → tokens → statements → DefinedTable: columns, keys, foreign keys → TableHistory: which table at which place
//! ```
//!
//! [`SchemaFile`] holds the tables of a dump, of a server's SHOW CREATE TABLE or of hand-written statements. Facts that a
//! statement doesn't tell, or that we can't read, count as unknown. [`TableHistory`] follows tables through the statements of
//! logs, forward from CREATE TABLE and backward from the tables of now; [`TablesSoFar`] only forward. [`TablesOfLogs`] answers
//! what table the one of a table map is. [`StatementSubject`] tells what a statement is about. No I/O: the caller hands the text.

mod alter;
mod column_default;
mod complete;
mod foreign_key;
mod forward;
mod history;
mod key;
mod names_lacking;
mod schema_file;
mod statement;
mod statement_subject;
mod table;
mod tokens;

pub use column_default::ColumnDefault;
pub use complete::{CompletedTable, CompletedTables, TablesOfLogs};
pub use foreign_key::{ForeignKey, ReferentialRule};
pub use forward::{TableByNow, TablesSoFar};
pub use history::{
    ColumnsNow, HistoryPlace, KeptColumn, LostForeignKeys, LostKeysTable, NoTableWay, RecordedStatement,
    TableHistory, TableIdentity, TableThen, TableWay, TurningPoint, WayColumn,
};
pub use names_lacking::names_lacking;
pub use schema_file::{SchemaFile, SchemaFileError};
pub use statement_subject::{StatementSubject, TableReference};
pub use table::{ColumnFacts, DefinedColumn, DefinedTable};
pub use tokens::{statement_tokens, without_version_comments};
