//! Statements that end a script before its first change if the server's tables don't take the changes as they were logged:
//! a trigger would change more, and columns that the server generates can't be given values.
//!
//! The server is asked when the script runs, as far as the account may see that. A table that a schema describes has no generated
//! column in the script. Which columns those are is told by `extra`: servers before 5.7 have no `generation_expression`.

use super::collect::SeenTable;
use super::orphans::pair;

/// The note about them.
pub(super) const NOTE: &str =
    "a table with triggers ends the script here, and so does one with generated columns that aren't known";

/// The statements for tables of which something is changed.
pub(super) fn check(tables: &[SeenTable]) -> Vec<String> {
    let of = |is_meant: fn(&SeenTable) -> bool| -> Option<String> {
        let named = tables.iter().filter(|table| is_meant(table));
        let names: Vec<_> = named.map(|table| pair(&table.database, &table.table)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let triggers = of(|_| true).map(|names| {
        format!(
            "SELECT CONCAT(event_object_schema, '.', event_object_table, ' has the trigger ', trigger_name, ', which would run: \
             --format binlog runs none') why FROM information_schema.triggers WHERE (event_object_schema, event_object_table) \
             IN ({names})"
        )
    });
    let generated = of(|table| !table.is_described).map(|names| {
        format!(
            "SELECT CONCAT(table_schema, '.', table_name, ' has the generated column ', column_name, ': --schema tells which are') \
             why FROM information_schema.columns WHERE (table_schema, table_name) IN ({names}) AND (extra \
             LIKE '%VIRTUAL%' OR extra LIKE '%STORED%' OR extra LIKE '%PERSISTENT%')"
        )
    });
    let queries: Vec<_> = triggers.into_iter().chain(generated).collect();
    if queries.is_empty() {
        return Vec::new();
    }
    vec![
        format!(
            "SELECT COALESCE(CONCAT('SELECT `', REPLACE(GROUP_CONCAT(why SEPARATOR '; '), '`', '``'), '`'), 'DO 0') INTO \
             @binlogz_check FROM ({}) q",
            queries.join(" UNION ALL ")
        ),
        "PREPARE binlogz_check FROM @binlogz_check".to_owned(),
        "EXECUTE binlogz_check".to_owned(),
    ]
}
