//! What is told of tables beside the log.

use binlogz_binlog::row::TableSchema;

/// Facts about tables that a log may lack: from CREATE TABLE statements.
pub trait SchemaTold: Sync {
    /// The facts about this table; `None`: nothing is known of it.
    ///
    /// # Errors
    ///
    /// Another structure of the table: the words for a person.
    fn told(&self, schema: &TableSchema) -> Result<Option<TableTold>, String>;
}

/// Facts about a table.
#[derive(Debug, Clone, Default)]
pub struct TableTold {
    /// All columns of the table.
    pub columns: Vec<ColumnTold>,
    /// The columns of its primary key, or of the first unique one; empty if it has none.
    pub key: Vec<usize>,
}

/// Facts about a column.
#[derive(Debug, Clone, Default)]
pub struct ColumnTold {
    /// Name of the column.
    pub name: String,
    /// Whether it is UNSIGNED.
    pub unsigned: bool,
    /// Whether it is BINARY, VARBINARY or a BLOB.
    pub is_binary: bool,
    /// The members of an ENUM or SET.
    pub members: Vec<String>,
}
