//! The schema of each database. It has the database's name, but for a database called `binlog`: the tables that all logs have
//! are in that schema.
//!
//! ```text
//! shop               shop
//! binlog             binlog@database
//! binlog@database    binlog@database@database
//! ```

/// The schema of the tables that all logs have, and of views.
pub(crate) const LOG_SCHEMA: &str = "binlog";
/// Added to the name of a database that would be taken for our schema.
const ADDED: &str = "@database";

/// The schema of a database.
pub(super) fn schema_of(database: &str) -> String {
    match is_marked(database) {
        true => format!("{database}{ADDED}"),
        false => database.to_owned(),
    }
}

/// The database of a schema.
pub(super) fn database_of(schema: &str) -> &str {
    schema.strip_suffix(ADDED).filter(|database| is_marked(database)).unwrap_or(schema)
}

/// Whether a database has a schema of another name.
fn is_marked(database: &str) -> bool {
    let rest = database.strip_prefix(LOG_SCHEMA);
    rest.is_some_and(|rest| rest.replace(ADDED, "").is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_has_one_schema() {
        for (database, schema) in [
            ("shop", "shop"),
            ("Binlog", "Binlog"),
            ("binlogs", "binlogs"),
            ("shop@database", "shop@database"),
            ("binlog", "binlog@database"),
            ("binlog@database", "binlog@database@database"),
            ("binlog@database!", "binlog@database!"),
        ] {
            assert_eq!(schema_of(database), schema);
            assert_eq!(database_of(schema), database);
        }
        assert_eq!(database_of(LOG_SCHEMA), LOG_SCHEMA);
    }
}
