//! The words for logs that don't name columns, wherever that matters.

/// Says that the log has no names of a table's columns, or of those of one that is named before, and how they are got.
pub fn names_lacking(table: Option<&str>) -> String {
    let of = table.map(|table| format!(" for {table}")).unwrap_or_default();
    format!(
        "the log has no column names{of} (binlog_row_metadata=FULL writes them; --schema tells them, from a file or a server)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_named_where_nothing_else_names_it() {
        assert!(
            names_lacking(Some("s.t"))
                .starts_with("the log has no column names for s.t (binlog_row_metadata=")
        );
        assert!(names_lacking(None).starts_with("the log has no column names (binlog_row_metadata="));
    }
}
