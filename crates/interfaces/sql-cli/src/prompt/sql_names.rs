//! Names of tables and columns as SQL has them.

use binlogz_query::{Names, QualifiedName};

/// Where a table without a schema is.
pub(super) const HERE: &str = Names::LOG_SCHEMA;

/// Words that are no names without quotes.
pub(super) const KEYWORDS: &[&str] = &[
    "ALL",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "CREATE VIEW",
    "CROSS JOIN",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXPLAIN ANALYZE",
    "FALSE",
    "FILTER",
    "FROM",
    "FULL JOIN",
    "GROUP BY",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER JOIN",
    "INTERSECT",
    "INTERVAL",
    "IS NOT NULL",
    "IS NULL",
    "JOIN",
    "LEFT JOIN",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OR",
    "ORDER BY",
    "OVER",
    "PARTITION BY",
    "RIGHT JOIN",
    "SELECT",
    "SHOW TABLES",
    "THEN",
    "TRUE",
    "UNION",
    "UNION ALL",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WITH",
];

/// A name as SQL has it: with quotes where it needs them.
pub(super) fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_word = KEYWORDS.iter().any(|known| known.split(' ').any(|word| word.eq_ignore_ascii_case(name)));
    let begins_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    match begins_well
        && name.chars().all(is_plain)
        && !is_word
        && !["table", "order", "offset", "group", "row", "key", "inside"].contains(&name)
    {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A table as SQL has it.
pub(super) fn written((schema, table): &QualifiedName) -> String {
    match schema == HERE {
        true => quoted(table),
        false => format!("{}.{}", quoted(schema), quoted(table)),
    }
}

/// The table that a text names: without quotes in lower case, as in SQL.
pub(super) fn parsed(text: &str) -> QualifiedName {
    let mut parts = vec![String::new()];
    let mut is_in_quotes = false;
    for c in text.trim().chars() {
        match (c, parts.last_mut()) {
            ('"', _) => is_in_quotes = !is_in_quotes,
            ('.', _) if !is_in_quotes => parts.push(String::new()),
            (c, Some(part)) if is_in_quotes => part.push(c),
            (c, Some(part)) => part.extend(c.to_lowercase()),
            (_, None) => {}
        }
    }
    let table = parts.pop().unwrap_or_default();
    (parts.pop().unwrap_or_else(|| HERE.to_owned()), table)
}
