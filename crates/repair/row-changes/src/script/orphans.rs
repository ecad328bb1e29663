//! Statements that count rows without the row that they refer to, and end a script if it made more of them.
//!
//! Since 9.6 the log has the rows that foreign keys changed, and they are changed again unchecked, as they were: in the log's
//! order no check would pass. Their own keys may refer to rows that are not there any more, as those of a parent that wasn't
//! chosen. So the rows of all foreign keys of these tables are counted before and after.

use crate::sql::text::push_hex;

/// The statement by which queries of any length can be made.
pub(super) const LONG_TEXTS: &str = "SET SESSION group_concat_max_len = 4194304";

/// The error that the mysql client stops at names a column that no table has.
const ERROR: &str = "rows came back without the rows that their foreign keys refer to";

/// The statements that count for the first time.
pub(super) fn begin(tables: &[(&str, &str)]) -> Vec<String> {
    let names: Vec<_> = tables.iter().map(|(database, table)| pair(database, table)).collect();
    let names = names.join(", ");
    let keys = format!(
        "SELECT constraint_schema s, constraint_name n, {} child, {} parent, {} own, {} other FROM \
         information_schema.key_column_usage WHERE referenced_table_name IS NOT NULL AND ((table_schema, table_name) IN \
         ({names}) OR (referenced_table_schema, referenced_table_name) IN ({names}))",
        table("table_schema", "table_name"),
        table("referenced_table_schema", "referenced_table_name"),
        name("column_name"),
        name("referenced_column_name"),
    );
    let counts = format!(
        "SELECT CONCAT('(SELECT COUNT(*) FROM ', child, ' c LEFT JOIN ', parent, ' p ON ', GROUP_CONCAT(CONCAT('c.', own, \
         ' = p.', other) SEPARATOR ' AND '), ' WHERE ', GROUP_CONCAT(CONCAT('c.', own, ' IS NOT NULL') SEPARATOR ' AND '), \
         ' AND p.', MIN(other), ' IS NULL)') one FROM ({keys}) k GROUP BY s, n, child, parent"
    );
    vec![
        LONG_TEXTS.to_owned(),
        format!(
            "SELECT CONCAT('SELECT ', COALESCE(GROUP_CONCAT(one SEPARATOR ' + '), '0'), ' INTO @binlogz_orphans') INTO \
             @binlogz_count FROM ({counts}) q"
        ),
        "PREPARE binlogz_count FROM @binlogz_count".to_owned(),
        COUNT.to_owned(),
        "SET @binlogz_orphans_before = @binlogz_orphans".to_owned(),
    ]
}

/// The statement that counts again.
pub(super) const COUNT: &str = "EXECUTE binlogz_count";
/// The query that tells how many there are more.
pub(super) const MORE: &str =
    "SELECT GREATEST(@binlogz_orphans, @binlogz_orphans_before) - @binlogz_orphans_before";

/// The statements that count again, and end in an error if there are more.
pub(super) fn check() -> Vec<String> {
    vec![
        COUNT.to_owned(),
        format!(
            "SET @binlogz_check = IF(@binlogz_orphans > @binlogz_orphans_before, 'SELECT `{ERROR}`', 'DO 0')"
        ),
        "PREPARE binlogz_check FROM @binlogz_check".to_owned(),
        "EXECUTE binlogz_check".to_owned(),
    ]
}

/// The expression of a name in backticks.
pub(super) fn name(column: &str) -> String {
    format!("CONCAT('`', REPLACE({column}, '`', '``'), '`')")
}

/// The expression of a table's full name in backticks.
pub(super) fn table(database: &str, table: &str) -> String {
    format!("CONCAT({}, '.', {})", name(database), name(table))
}

/// Names as literals that mean the same in every client.
pub(super) fn pair(database: &str, table: &str) -> String {
    let literal = |name: &str| {
        let mut out = b"_utf8mb4 ".to_vec();
        push_hex(&mut out, name.as_bytes());
        String::from_utf8_lossy(&out).into_owned()
    };
    format!("({}, {})", literal(database), literal(table))
}
