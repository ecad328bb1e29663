//! The statement that ends a script if the one before it didn't change exactly one row.
//!
//! The server's arithmetic fails, with an error that names what it is about, and any client stops there. That is before the
//! COMMIT, so the transaction is rolled back. It is no `DO`, which tells no error on MariaDB; nothing of it is logged.

/// The statement, with its line end.
pub(super) const ONE_ROW: &str = "SET @binlogz_row = ~0 + (ROW_COUNT() <> 1);\n";

/// The note about it.
pub(super) const NOTE: &str = "an UPDATE or DELETE whose row isn't as the log left it ends the script, as row_count() <> 1 is out of range then";
