//! Writes SQL: values, and the statements that turn a row from one image into another; reads the defaults of columns.

pub(crate) mod defaults;
pub(crate) mod json;
pub(crate) mod literal;
pub(crate) mod statement;
pub(crate) mod text;

/// The reason, in words, for which a value can't be written as SQL.
pub(crate) type Unwritable = String;

/// The first lines of a script, after its title. The mysql client splits statements by its own character set, which only the
/// first line changes, as in mysqlbinlog's output.
pub(crate) const CLIENT_CHARSET: &str = "/*!\\C utf8mb4 */;\nSET NAMES utf8mb4;";
