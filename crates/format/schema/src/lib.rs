//! Tables and their columns, as CREATE TABLE statements and later DDL define them.
//!
//! ```text
//! SQL text → tokens → statements → DefinedTable: columns, keys, foreign keys
//! ```
//!
//! [`SchemaFile`] holds the tables of a dump, of a server's SHOW CREATE TABLE or of hand-written statements. Facts that a
//! statement doesn't tell, or that we can't read, count as unknown. No I/O: the caller hands the text.

mod alter;
mod foreign_key;
mod key;
mod schema_file;
mod table;
mod tokens;

pub use foreign_key::{ForeignKey, ReferentialRule};
pub use schema_file::{SchemaFile, SchemaFileError};
pub use table::{DefinedColumn, DefinedTable, DescribedColumn, DescribedTable};
