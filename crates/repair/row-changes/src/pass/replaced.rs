//! What an update leaves out of the image after it.
//!
//! An UPDATE leaves out the columns that it leaves alone. MariaDB may log a REPLACE as an update as well: where the row that it replaces differs
//! in no later key, no foreign key and no trigger needs its deletion. Then the image has the columns that the statement names, its key among
//! them, and the others got their defaults (seen with 10.11 and 11.4, binlog_row_image=MINIMAL). INSERT … ON DUPLICATE KEY UPDATE
//! leaves them alone, but its image has the key, too. Only the statement tells, which MariaDB notes before its rows
//! (binlog_annotate_row_events); that of a trigger or a function isn't noted, but is about other tables.

use binlogz_binlog::row::Row;

use super::targets::{changed_tables_by_front, replaces_rows};
use crate::choose::Operation;
use crate::table::WrittenTable;

/// The reason for which a column isn't known that a REPLACE may have left out.
pub(crate) const UNSURE: &str = "MariaDB's REPLACE gives defaults to the columns that its images lack (binlog_row_image), and whether this was one \
     isn't known: the log doesn't have its statement (binlog_annotate_row_events)";
/// The reason for which a column isn't known that a REPLACE left out.
pub(crate) const REPLACED: &str = "MariaDB's REPLACE left the rest to defaults, which neither the logs nor a schema tell (CREATE TABLE in the logs, --schema)";

/// The fate of columns that the image after an update lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OmittedColumns {
    /// The update left them alone.
    LeftAlone,
    /// The columns have their defaults.
    Defaults,
    /// The columns were left alone or have their defaults: which of both isn't known.
    Unknown,
}

impl OmittedColumns {
    /// Tells the fate of the columns from the statement, if that is known; `has_key`: whether the image has the table's key.
    pub(crate) fn of(statement: Option<&str>, (database, table): (&str, &str), has_key: bool) -> Self {
        let is_it = |(own, name): &(Option<String>, String)| {
            *name == table.to_lowercase() && own.as_ref().is_none_or(|own| *own == database.to_lowercase())
        };
        let tables = statement.and_then(changed_tables_by_front);
        match tables.is_some_and(|tables| tables.iter().any(is_it)) {
            true if statement.is_some_and(replaces_rows) => OmittedColumns::Defaults,
            true => OmittedColumns::LeftAlone,
            false if has_key => OmittedColumns::Unknown,
            false => OmittedColumns::LeftAlone,
        }
    }
}

/// Whether a row's change may be a REPLACE that gave columns their defaults.
pub(crate) fn may_give_defaults(table: &WrittenTable, operation: Operation, row: &Row<'_, '_>) -> bool {
    let Some(after) = row.after.filter(|_| operation == Operation::Update) else { return false };
    let has = |index: usize| after.cell(index).is_some();
    let has_key = table.key.iter().flatten().all(|index| has(*index));
    has_key && table.columns.iter().any(|column| !column.is_generated && !has(column.index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_tells_what_an_image_lacks() {
        use OmittedColumns::{Defaults, LeftAlone, Unknown};
        for (statement, expected) in [
            (Some("REPLACE INTO t (id) VALUES (1)"), Defaults),
            (Some("replace delayed shop.T SET id = 1, b = 'x"), Defaults),
            (Some("LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t (id)"), Defaults),
            (Some("LOAD DATA INFILE 'replace' IGNORE INTO TABLE shop.t"), LeftAlone),
            (Some("INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE a = 'it"), LeftAlone),
            (Some("UPDATE t SET id = 2"), LeftAlone),
            // Of a trigger, or in a procedure.
            (Some("REPLACE INTO other (id) VALUES (1)"), Unknown),
            (Some("REPLACE INTO other.t (id) VALUES (1)"), Unknown),
            (Some("CALL p()"), Unknown),
            (None, Unknown),
        ] {
            assert_eq!(OmittedColumns::of(statement, ("shop", "t"), true), expected, "{statement:?}");
        }
        assert_eq!(OmittedColumns::of(None, ("shop", "t"), false), LeftAlone);
    }
}
