//! Texts and names in statements, for the SQL mode that [`TargetServer`](crate::TargetServer) gives its sessions.

/// A text as a literal of SQL.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A name as an identifier of SQL.
pub(crate) fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
