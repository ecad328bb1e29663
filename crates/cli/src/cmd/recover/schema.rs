//! Where columns' names, keys and what else the log lacks come from: a file of CREATE TABLE statements, or a server.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use binlogz_recover::{SchemaFile, SchemaFileError};
use binlogz_source::{ConnectOptions, Connection};
use clap::Args;

use crate::failure::{Failure, Result};
use crate::server_args::with_place;

/// See the module.
#[derive(Debug, Args)]
#[command(next_help_heading = "Choosing transactions and rows")]
pub(super) struct SchemaArg {
    /// Take column names and keys, where the log lacks them, from a file of CREATE TABLE statements or from a server
    ///
    /// As mysqldump --no-data --databases writes it; a server is HOST:PORT or a socket. Only it tells which columns are
    /// generated.
    #[arg(long, value_name = "FILE.sql|SERVER")]
    schema: Option<String>,
}

/// Where the foreign keys come from whose cascades are taken back too.
#[derive(Debug, Args)]
#[command(next_help_heading = "Choosing transactions and rows")]
pub(super) struct CascadesArg {
    /// Take back, too, what foreign keys did to rows that are not in the log; they are in a file of CREATE TABLE statements
    /// or on a server
    ///
    /// Servers before 9.6 don't log rows that ON DELETE CASCADE deletes and those that SET NULL changes. Each is known by its
    /// last image in the logs given, so these should reach back far enough. What can't be found is said. The logs are
    /// read twice. Names and keys of these tables come from there as well, unless --schema is given.
    #[arg(long, value_name = "FILE.sql|SERVER", hide_short_help = true)]
    cascades: Option<String>,
}

impl CascadesArg {
    /// Reads them, with the tables on both sides.
    pub(super) fn read(
        &self,
        options: &impl Fn() -> Result<ConnectOptions>,
    ) -> Result<Option<(SchemaFile, String)>> {
        let Some(place) = &self.cascades else { return Ok(None) };
        let schema = match is_server(place) {
            true => of_server(&with_place(&options()?, place).map_err(Failure::Line)?, &[], &FAMILIES)?,
            false => of_file(place.as_ref())?,
        };
        Ok(Some((schema, place.clone())))
    }

    /// Whether it names a server.
    pub(super) fn is_server(&self) -> bool {
        self.cascades.as_deref().is_some_and(is_server)
    }
}

impl SchemaArg {
    /// Reads it; without it that of the server to which changes are applied, or of the one that has the logs, where there is
    /// one. Of a server only these tables, all if there are none.
    pub(super) fn read(
        &self,
        tables: &[(String, String)],
        options: &impl Fn() -> Result<ConnectOptions>,
        (apply_to, log_server): (Option<&ConnectOptions>, Option<&ConnectOptions>),
    ) -> Result<Option<SchemaFile>> {
        match (&self.schema, apply_to, log_server) {
            (Some(place), ..) if is_server(place) => {
                let connect = with_place(&options()?, place).map_err(Failure::Line)?;
                of_server(&connect, tables, &TABLES).map(Some)
            }
            (Some(path), ..) => of_file(path.as_ref()).map(Some),
            (None, Some(connect), _) => of_server(connect, tables, &TABLES).map(Some),
            (None, None, Some(connect)) => of_log_server(connect, tables),
            (None, None, None) => Ok(None),
        }
    }

    /// Whether it names a server.
    pub(super) fn is_server(&self) -> bool {
        self.schema.as_deref().is_some_and(is_server)
    }
}

/// Reads all tables of a file or a server.
pub(in crate::cmd) fn read_schema(
    place: &str,
    options: &dyn Fn() -> Result<ConnectOptions>,
) -> Result<SchemaFile> {
    match is_server(place) {
        true => of_server(&with_place(&options()?, place).map_err(Failure::Line)?, &[], &TABLES),
        false => of_file(place.as_ref()),
    }
}

/// A socket, or what has a port or a user and is no file.
fn is_server(place: &str) -> bool {
    match fs::metadata(place) {
        Ok(metadata) => metadata.file_type().is_socket(),
        Err(_) => !place.ends_with(".sql") && place.contains([':', '@']),
    }
}

fn of_file(path: &Path) -> Result<SchemaFile> {
    let trouble = |error: &dyn std::fmt::Display| Failure::of(&path.display(), error);
    let size = fs::metadata(path).map_err(|error| trouble(&error))?.len();
    if size > SchemaFile::SIZE_MAX {
        return Err(trouble(&SchemaFileError::TooLarge(size)));
    }
    let bytes = fs::read(path).map_err(|error| trouble(&error))?;
    SchemaFile::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| trouble(&error))
}

/// Which tables of a server are meant, and how it is said that there are none.
struct Listing {
    query: &'static str,
    none: &'static str,
}

const TABLES: Listing = Listing {
    query: "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema NOT \
            IN ('mysql', 'information_schema', 'performance_schema', 'sys')",
    none: "has no tables that this account may see",
};

/// Both sides of foreign keys that change rows.
const FAMILIES: Listing = Listing {
    query: "SELECT constraint_schema, table_name FROM information_schema.referential_constraints WHERE delete_rule IN \
            ('CASCADE', 'SET NULL') OR update_rule IN ('CASCADE', 'SET NULL') UNION SELECT unique_constraint_schema, \
            referenced_table_name FROM information_schema.referential_constraints WHERE delete_rule IN ('CASCADE', 'SET \
            NULL') OR update_rule IN ('CASCADE', 'SET NULL')",
    none: "has no foreign key with CASCADE or SET NULL that this account may see",
};

/// Of a server whose logs are read: a table that it has no more, or that the account may not see, is as its log tells it.
fn of_log_server(connect: &ConnectOptions, tables: &[(String, String)]) -> Result<Option<SchemaFile>> {
    let listed = Connection::open(connect).and_then(|mut connection| listed(&mut connection, &TABLES));
    let mut there = listed.map_err(|error| Failure::of(&connect.server(), error))?;
    there.retain(|table| tables.is_empty() || tables.contains(table));
    if there.is_empty() { Ok(None) } else { of_server(connect, &there, &TABLES).map(Some) }
}

/// The tables that are meant, by database and name.
fn listed(
    connection: &mut Connection,
    listing: &Listing,
) -> Result<Vec<(String, String)>, binlogz_source::Error> {
    let rows = connection.query(listing.query)?;
    Ok(rows.iter().map(|row| (text(row.first()), text(row.get(1)))).collect())
}

fn text(value: Option<&Option<Vec<u8>>>) -> String {
    String::from_utf8_lossy(value.and_then(Option::as_deref).unwrap_or_default()).into_owned()
}

fn of_server(connect: &ConnectOptions, tables: &[(String, String)], all: &Listing) -> Result<SchemaFile> {
    let trouble = |error: binlogz_source::Error| Failure::of(&connect.server(), error);
    let mut connection = Connection::open(connect).map_err(trouble)?;
    for setting in ["SET NAMES utf8mb4", "SET SESSION sql_mode = '', SESSION sql_quote_show_create = 1"] {
        connection.query(setting).map_err(trouble)?;
    }
    let meant = match tables {
        [] => listed(&mut connection, all).map_err(trouble)?,
        tables => tables.to_vec(),
    };
    let mut statements = String::new();
    for (database, table) in meant {
        let [database, table] = [database, table].map(|name| format!("`{}`", name.replace('`', "``")));
        let rows = connection.query(&format!("SHOW CREATE TABLE {database}.{table}")).map_err(trouble)?;
        let statement = text(rows.first().and_then(|row| row.get(1)));
        statements += &format!("USE {database};\n{statement};\n");
    }
    SchemaFile::parse(&statements).map_err(|error| match error {
        SchemaFileError::NoTables => Failure::of(&connect.server(), all.none),
        error => Failure::of(&connect.server(), error),
    })
}
