//! Statements that end a script before a DELETE by which a foreign key would delete or change rows that nobody asked about.
//!
//! ```text
//! first DELETE of a table    the server's foreign keys to it → a query in @binlogz_children_N, NUL for the rows
//! DELETEs in a row           the query with their conditions, prepared and executed; then the DELETEs
//! ```
//!
//! The server is asked when the script runs: others may have added foreign keys as well as rows. The rows are counted as they are
//! then, not as the transaction's view has them, and locked. A count above 0 makes the server's arithmetic fail
//! with an error that names the column, and any client stops there.

use super::one_row::ONE_ROW;
use super::orphans::{name, pair, table};
use crate::sql::text::push_quoted;

/// DELETEs that one check is for, and the bytes of their conditions, which a query has once or twice for each foreign key.
const ROWS_MAX: usize = 100;
const CONDITIONS_SIZE_MAX: usize = 32 << 10;
/// A NUL stands for the conditions: no name has one.
const CONDITIONS: &str = r"\0";
/// The most characters in the name of a column.
const COLUMN_NAME_LENGTH_MAX: usize = 64;

/// The note before the first check of a table.
const NOTE: &str = "-- a DELETE ends the script if rows refer to its row by a foreign key with CASCADE, SET NULL or SET DEFAULT, as far \
     as the account may see them\n";

/// DELETEs of one table that wait for their check.
#[derive(Debug, Default)]
pub(super) struct WaitingDeletes {
    table: usize,
    /// The conditions of the deletes, with their separators.
    conditions: Vec<u8>,
    rows: usize,
    statements: Vec<u8>,
    /// Tables whose query the script has.
    known: Vec<usize>,
}

impl WaitingDeletes {
    /// Whether a further DELETE has to wait for another check.
    pub(super) fn is_full_for(&self, table: usize) -> bool {
        let is_full = self.rows >= ROWS_MAX || self.conditions.len() >= CONDITIONS_SIZE_MAX;
        self.rows > 0 && (is_full || self.table != table)
    }

    /// The table whose DELETEs wait, by its number.
    pub(super) fn table(&self) -> Option<usize> {
        (self.rows > 0).then_some(self.table)
    }

    /// Takes a DELETE with its condition.
    pub(super) fn push(&mut self, table: usize, condition: &[u8], statement: &[u8]) {
        self.table = table;
        self.conditions.extend_from_slice(if self.rows == 0 { b"(" } else { b" OR (" });
        self.conditions.extend_from_slice(condition);
        self.conditions.push(b')');
        self.statements.extend_from_slice(statement);
        self.statements.extend_from_slice(b";\n");
        self.statements.extend_from_slice(ONE_ROW.as_bytes());
        self.rows += 1;
    }

    /// The check, and what waited for it; `names` are those of the table.
    pub(super) fn take(&mut self, names: (&str, &str)) -> Vec<u8> {
        let mut out = Vec::new();
        if self.rows == 0 {
            return out;
        }
        let number = self.table;
        if !self.known.contains(&number) {
            self.known.push(number);
            if self.known.len() == 1 {
                out.extend_from_slice(NOTE.as_bytes());
            }
            out.extend_from_slice(query(number, names).as_bytes());
        }
        out.extend_from_slice(
            format!("SET @binlogz_check = REPLACE(@binlogz_children_{number}, '{CONDITIONS}', ").as_bytes(),
        );
        push_quoted(&mut out, &self.conditions);
        out.extend_from_slice(b");\nPREPARE binlogz_check FROM @binlogz_check;\nEXECUTE binlogz_check;\n");
        out.append(&mut self.statements);
        self.conditions.clear();
        self.rows = 0;
        out
    }
}

/// The condition of a DELETE that the script has for a table.
pub(super) fn condition<'s>(statement: &'s [u8], (database, table): (&str, &str)) -> Option<&'s [u8]> {
    // Most statements are others.
    if !statement.starts_with(b"DELETE") {
        return None;
    }
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let begin = format!("DELETE FROM {}.{} WHERE ", quoted(database), quoted(table));
    let condition = statement.strip_prefix(begin.as_bytes())?;
    Some(condition.strip_suffix(b" LIMIT 1").unwrap_or(condition))
}

/// The statement that makes the query for a table. It has a scalar for each foreign key, which overflows if a row refers to one of
/// the table's rows that are deleted; rows that are deleted themselves don't count. Names are in utf8mb3 on the server, which the
/// conditions need not fit.
fn query(number: usize, (database, own_table): (&str, &str)) -> String {
    let of_table = pair(database, own_table);
    let child = table("k.table_schema", "k.table_name");
    let parent = table("k.referenced_table_schema", "k.referenced_table_name");
    let keys = format!(
        "SELECT k.constraint_schema s, k.constraint_name n, {child} child, {parent} parent, CONCAT(k.table_schema, '.', \
         k.table_name) shown, {} own, {} other FROM information_schema.key_column_usage k JOIN \
         information_schema.referential_constraints r ON r.constraint_schema = k.constraint_schema AND r.constraint_name = \
         k.constraint_name AND r.table_name = k.table_name WHERE (k.referenced_table_schema, k.referenced_table_name) IN \
         ({of_table}) AND r.delete_rule NOT IN ('RESTRICT', 'NO ACTION')",
        name("k.column_name"),
        name("k.referenced_column_name"),
    );
    let shown = name(&format!("LEFT(CONCAT('rows refer to it: ', shown), {COLUMN_NAME_LENGTH_MAX})"));
    let counts = format!(
        "SELECT CONCAT('(SELECT ~0 + n.', {shown}, ' FROM (SELECT COUNT(*) ', {shown}, ' FROM (SELECT ', \
         GROUP_CONCAT(other SEPARATOR ', '), ' FROM ', parent, ' WHERE {CONDITIONS} LOCK IN SHARE MODE) p JOIN ', \
         IF(child = parent, CONCAT('(SELECT ', GROUP_CONCAT(own SEPARATOR ', '), ' FROM ', child, ' WHERE ({CONDITIONS}) IS \
         NOT TRUE LOCK IN SHARE MODE)'), child), ' c ON ', GROUP_CONCAT(CONCAT('c.', own, ' = p.', other) SEPARATOR ' AND '), \
         ' LOCK IN SHARE MODE) n)') one FROM ({keys}) k GROUP BY s, n, child, parent, shown"
    );
    format!(
        "SELECT CONVERT(COALESCE(CONCAT('SELECT CONCAT_WS('','', ', GROUP_CONCAT(one SEPARATOR ', '), ') INTO @binlogz_children'), \
         'DO 0') USING utf8mb4) INTO @binlogz_children_{number} FROM ({counts}) q;\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_those_of_the_statements() {
        let names = ("s`x", "t WHERE u");
        let statement = b"DELETE FROM `s``x`.`t WHERE u` WHERE `a` = ' LIMIT 1'";
        assert_eq!(condition(statement, names), Some(&b"`a` = ' LIMIT 1'"[..]));
        assert_eq!(
            condition(b"DELETE FROM `s`.`t` WHERE `a` = 1 LIMIT 1", ("s", "t")),
            Some(&b"`a` = 1"[..])
        );
        for other in [&b"UPDATE `s`.`t` SET `a` = 1"[..], b"DELETE FROM `s`.`u` WHERE `a` = 1"] {
            assert_eq!(condition(other, ("s", "t")), None);
        }
    }

    #[test]
    fn one_check_is_for_many_rows_of_a_table() {
        let mut waiting = WaitingDeletes::default();
        assert!(waiting.take(("s", "t")).is_empty());
        for row in 0..ROWS_MAX {
            assert!(!waiting.is_full_for(3), "{row}");
            waiting.push(3, b"`a` = 'x'", b"DELETE");
        }
        assert!(waiting.is_full_for(3));
        let text = String::from_utf8(waiting.take(("s", "t"))).unwrap();
        assert_eq!(text.matches("DELETE;\n").count(), ROWS_MAX);
        assert_eq!(text.matches("EXECUTE").count(), 1);
        assert!(text.contains(r"'\0', '(`a` = ''x'') OR (`a` = ''x'')"), "{text}");
        assert!(!waiting.is_full_for(4));
        waiting.push(3, b"`a` = 1", b"DELETE");
        assert!(waiting.is_full_for(4));
        let text = String::from_utf8(waiting.take(("s", "t"))).unwrap();
        assert!(text.starts_with("SET @binlogz_check = "), "its query is there: {text}");
    }
}
