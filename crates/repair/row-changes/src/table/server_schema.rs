//! CREATE TABLE statements of the tables that a server has, as text for [`SchemaFile`].

use std::fs;
use std::os::unix::fs::FileTypeExt;

use binlogz_schema::SchemaFile;
use binlogz_source::{ConnectOptions, Connection};

/// Which tables of a server are meant, each by database and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerTables<'t> {
    /// All tables that the account may see, without the server's own.
    All,
    /// These; each has to be there.
    Named(&'t [(String, String)]),
    /// The named tables that are there and that the account may see.
    Among(&'t [(String, String)]),
    /// The tables on both sides of foreign keys that change rows.
    Families,
}

/// A reason for which a server's tables can't be described.
#[derive(Debug, thiserror::Error)]
pub enum ServerSchemaError {
    /// The server can't be reached, or refuses.
    #[error(transparent)]
    Source(#[from] binlogz_source::Error),
    /// The server has none of these tables.
    #[error("{server}: has no {what} that this account may see")]
    NoTables {
        /// Host and port, or the socket.
        server: String,
        /// The thing that it has none of.
        what: &'static str,
    },
    /// A table that the account may not see.
    #[error("{server}: {refusal}; expected an account with SELECT on {table}")]
    Denied {
        /// Host and port, or the socket.
        server: String,
        /// The table, in backticks.
        table: String,
        /// The server's words.
        refusal: String,
    },
    /// A named table that isn't there.
    #[error("{server}: has no table {table}")]
    NoSuchTable {
        /// Host and port, or the socket.
        server: String,
        /// The table, in backticks.
        table: String,
    },
    /// A view, which has no rows in a log.
    #[error("{server}: {table} is a view there, expected a table")]
    View {
        /// Host and port, or the socket.
        server: String,
        /// The table, in backticks.
        table: String,
    },
    /// More than a schema file may have.
    #[error("{server}: has more than {} MiB of CREATE TABLE statements", SchemaFile::SIZE_MAX >> 20)]
    TooLarge {
        /// Host and port, or the socket.
        server: String,
    },
}

/// Names come in UTF-8 and in backticks; options and keys are shown, a generated invisible primary key too, which is in the log.
const SETTINGS: [&str; 2] = [
    "SET NAMES utf8mb4",
    "SET SESSION sql_mode = '', SESSION sql_quote_show_create = 1 \
     /*!80030 , SESSION show_gipk_in_create_table_and_information_schema = 1 */",
];
const TABLES: &str = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND \
                      table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') ORDER BY table_schema, \
                      table_name";
const FAMILIES: &str = "SELECT constraint_schema, table_name FROM information_schema.referential_constraints WHERE delete_rule \
                        NOT IN ('RESTRICT', 'NO ACTION') OR update_rule NOT IN ('RESTRICT', 'NO ACTION') UNION SELECT \
                        unique_constraint_schema, referenced_table_name FROM information_schema.referential_constraints WHERE \
                        delete_rule NOT IN ('RESTRICT', 'NO ACTION') OR update_rule NOT IN ('RESTRICT', 'NO ACTION')";

/// The server's errors of a statement that is not allowed on a table, and of a table that isn't there.
const TABLE_ACCESS_DENIED: u16 = 1142;
const NO_SUCH_TABLE: u16 = 1146;

/// Whether the place of a schema is a server: a socket, or what has a port or a user and is no file.
pub fn is_server(place: &str) -> bool {
    match fs::metadata(place) {
        Ok(metadata) => metadata.file_type().is_socket(),
        Err(_) => !place.ends_with(".sql") && place.contains([':', '@']),
    }
}

/// The CREATE TABLE statements of a server's tables, after USE statements for their databases.
///
/// # Errors
///
/// A server that can't be reached, tables that aren't there or that the account may not see, more than
/// [`SchemaFile::SIZE_MAX`] bytes.
pub fn server_schema(
    connect: &ConnectOptions,
    tables: ServerTables<'_>,
) -> Result<String, ServerSchemaError> {
    let server = || connect.server();
    let mut connection = Connection::open(connect)?;
    for setting in SETTINGS {
        connection.query(setting)?;
    }
    let meant = match tables {
        ServerTables::Named(tables) => tables.to_vec(),
        ServerTables::All => listed(&mut connection, TABLES)?,
        ServerTables::Among(tables) => {
            let mut there = listed(&mut connection, TABLES)?;
            there.retain(|table| tables.contains(table));
            there
        }
        ServerTables::Families => listed(&mut connection, FAMILIES)?,
    };
    // What is not named may be gone, or a view, since it was listed.
    let is_named = matches!(tables, ServerTables::Named(_));
    let mut statements = String::new();
    for (database, table) in meant {
        let database = quoted(&database);
        let table = format!("{database}.{}", quoted(&table));
        match connection.query(&format!("SHOW CREATE TABLE {table}")) {
            Ok(rows) => {
                let statement = text(rows.first().and_then(|row| row.get(1)));
                if statement.starts_with("CREATE TABLE") {
                    statements += &format!("USE {database};\n{statement};\n");
                } else if is_named {
                    return Err(ServerSchemaError::View { server: server(), table });
                }
            }
            Err(error) => match error.server_error() {
                Some(refusal) if refusal.code == NO_SUCH_TABLE && !is_named => {}
                Some(refusal) if refusal.code == NO_SUCH_TABLE => {
                    return Err(ServerSchemaError::NoSuchTable { server: server(), table });
                }
                Some(refusal) if refusal.code == TABLE_ACCESS_DENIED => {
                    let refusal = refusal.to_string();
                    return Err(ServerSchemaError::Denied { server: server(), table, refusal });
                }
                _ => return Err(error.into()),
            },
        }
        if statements.len() as u64 > SchemaFile::SIZE_MAX {
            return Err(ServerSchemaError::TooLarge { server: server() });
        }
    }
    let what = match tables {
        ServerTables::Families => "foreign key with CASCADE or SET NULL",
        ServerTables::Among(_) => "such tables",
        ServerTables::All | ServerTables::Named(_) => "tables",
    };
    match statements.is_empty() {
        true => Err(ServerSchemaError::NoTables { server: server(), what }),
        false => Ok(statements),
    }
}

/// Whether the account may see all tables of a server: information_schema hides those on which it has no right, and their foreign keys.
///
/// # Errors
///
/// A server that can't be reached or refuses.
pub fn sees_all_tables(connect: &ConnectOptions) -> Result<bool, binlogz_source::Error> {
    Ok(rights_lacking_on_all(connect, &["SELECT"])?.is_empty())
}

/// Which of these rights, as SHOW GRANTS names them, the account doesn't have on all tables of a server. With a partial revoke it has none.
///
/// # Errors
///
/// A server that can't be reached or refuses.
pub fn rights_lacking_on_all<'r>(
    connect: &ConnectOptions,
    rights: &[&'r str],
) -> Result<Vec<&'r str>, binlogz_source::Error> {
    let mut connection = Connection::open(connect)?;
    // Servers before 8.0 have no roles; MariaDB shows what a role grants by itself.
    let roles = connection.query("SELECT CURRENT_ROLE()");
    let roles = roles.ok().and_then(|rows| rows.into_iter().next());
    let roles = roles.map(|row| text(row.first())).filter(|roles| roles.starts_with('`'));
    let mut grants = connection.query("SHOW GRANTS")?;
    if let Some(roles) = roles {
        grants.extend(connection.query(&format!("SHOW GRANTS FOR CURRENT_USER() USING {roles}"))?);
    }
    let lines: Vec<_> = grants.iter().map(|row| text(row.first())).collect();
    let has_revoke = lines.iter().any(|line| is_partial_revoke(line));
    let mut lacking = rights.to_vec();
    lacking.retain(|right| has_revoke || !lines.iter().any(|line| grants_on_all(line, right)));
    Ok(lacking)
}

fn grants_on_all(line: &str, wanted: &str) -> bool {
    let rights = line.strip_prefix("GRANT ").and_then(|line| Some(line.split_once(" ON *.* TO ")?.0));
    rights.is_some_and(|rights| rights.split(", ").any(|right| [wanted, "ALL PRIVILEGES"].contains(&right)))
}

fn is_partial_revoke(line: &str) -> bool {
    line.starts_with("REVOKE ")
}

fn listed(connection: &mut Connection, query: &str) -> Result<Vec<(String, String)>, binlogz_source::Error> {
    let rows = connection.query(query)?;
    Ok(rows.iter().map(|row| (text(row.first()), text(row.get(1)))).collect())
}

fn text(value: Option<&Option<Vec<u8>>>) -> String {
    String::from_utf8_lossy(value.and_then(Option::as_deref).unwrap_or_default()).into_owned()
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_global_right_to_read_shows_all_tables() {
        let all = [
            "GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION",
            "GRANT INSERT, SELECT, RELOAD ON *.* TO `a`@`%`",
        ];
        assert!(all.iter().all(|line| grants_on_all(line, "SELECT")));
        assert!(!grants_on_all(all[1], "ALTER"));
        let others = [
            "GRANT SELECT ON `shop`.* TO `a`@`%`",
            "GRANT REPLICATION SLAVE ON *.* TO `a`@`%`",
            "GRANT `SELECT`@`%` TO `a`@`%`",
        ];
        assert!(!others.iter().any(|line| grants_on_all(line, "SELECT")));
        assert!(is_partial_revoke("REVOKE SELECT ON `secret`.* FROM `a`@`%`"));
    }
}
