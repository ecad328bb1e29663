//! Where the columns' names, keys and other facts that the log lacks come from: a file of CREATE TABLE statements, or a
//! server.

use std::fs;
use std::path::Path;

use binlogz_row_changes::{
    CarryingKeys, Direction, ServerSchemaError, ServerTables, is_server, sees_all_tables, server_schema,
};
use binlogz_schema::{SchemaFile, SchemaFileError};
use binlogz_source::ConnectOptions;
use clap::Args;

use crate::failure::{CommandFailure, Result, warn};
use crate::server_args::with_place;

/// The option that names a source of what logs lack: names of columns, and keys.
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
        let schema = match self.server(options)? {
            Some(connect) => of_server(&connect, ServerTables::Families)?,
            None => of_file(place.as_ref())?,
        };
        Ok(Some((schema, place.clone())))
    }

    /// The server that it names, if it names one.
    pub(super) fn server(
        &self,
        options: &impl Fn() -> Result<ConnectOptions>,
    ) -> Result<Option<ConnectOptions>> {
        let Some(place) = self.cascades.as_deref().filter(|place| is_server(place)) else { return Ok(None) };
        with_place(&options()?, place).map(Some).map_err(CommandFailure::Line)
    }

    /// Whether it names a server.
    pub(super) fn is_server(&self) -> bool {
        self.cascades.as_deref().is_some_and(is_server)
    }
}

impl SchemaArg {
    /// As if it had been given so.
    pub(super) fn of(schema: Option<String>) -> Self {
        SchemaArg { schema }
    }

    /// Reads the schema. If none is given, reads that of the server to which changes are applied, or of the one that has
    /// the logs, if there is one. From a server it reads only these tables, or all if there are none.
    pub(super) fn read(
        &self,
        tables: &[(String, String)],
        options: &impl Fn() -> Result<ConnectOptions>,
        (apply_to, log_server): (Option<&ConnectOptions>, Option<&ConnectOptions>),
    ) -> Result<Option<SchemaFile>> {
        let meant = if tables.is_empty() { ServerTables::All } else { ServerTables::Named(tables) };
        match (&self.schema, apply_to, log_server) {
            (Some(place), ..) if is_server(place) => {
                let connect = with_place(&options()?, place).map_err(CommandFailure::Line)?;
                of_server_of_logs(&connect, meant).map(Some)
            }
            (Some(path), ..) => of_file(path.as_ref()).map(Some),
            (None, Some(connect), _) => of_server(connect, meant).map(Some),
            (None, None, Some(connect)) => of_log_server(connect, tables),
            (None, None, None) => Ok(None),
        }
    }

    /// The foreign keys that may have changed rows of these tables, or others with them, below the log, as far as a schema tells; `None`: there
    /// is none; `Err`: why it doesn't. `direction` is `None` where changes are only shown. From a server the schema gets the tables on both
    /// sides of foreign keys too: where the log has no names, they tell whether a change was one of the columns that a key refers to.
    pub(super) fn carrying_keys(
        &self,
        (schema, tables): (&mut Option<SchemaFile>, &[(String, String)]),
        direction: Option<Direction>,
        options: &impl Fn() -> Result<ConnectOptions>,
        servers: (Option<&ConnectOptions>, Option<&ConnectOptions>),
    ) -> Result<std::result::Result<Option<CarryingKeys<'static>>, String>> {
        let keys = |schema: &SchemaFile| CarryingKeys::new(schema, tables, direction);
        let Some(connect) = self.server(options, servers)? else { return Ok(Ok(schema.as_ref().map(keys))) };
        let seen_at = (direction == Some(Direction::Undo)).then_some(&connect);
        Ok(match server_schema(&connect, ServerTables::Families) {
            Err(ServerSchemaError::NoTables { .. }) => {
                Ok(Some(as_seen_at(keys(&SchemaFile::default()), seen_at)?))
            }
            Err(ServerSchemaError::Denied { server, table, refusal }) => Err(format!(
                "{server}: {refusal}: the foreign keys of {table} aren't known, so what they changed below the log isn't either"
            )),
            described => {
                let families = parsed(&connect, described)?;
                let seen = keys(&families);
                if let Some(schema) = schema {
                    *schema = SchemaFile::of_all([&families, &*schema]);
                }
                Ok(Some(as_seen_at(seen, seen_at)?))
            }
        })
    }

    /// The server that tells the facts that a log lacks, if the source of them is a server: as [`read`](Self::read) finds
    /// it.
    pub(super) fn server(
        &self,
        options: &impl Fn() -> Result<ConnectOptions>,
        (apply_to, log_server): (Option<&ConnectOptions>, Option<&ConnectOptions>),
    ) -> Result<Option<ConnectOptions>> {
        match &self.schema {
            Some(place) if is_server(place) => {
                with_place(&options()?, place).map(Some).map_err(CommandFailure::Line)
            }
            Some(_) => Ok(None),
            None => Ok(apply_to.or(log_server).cloned()),
        }
    }

    /// Whether it is given.
    pub(super) fn is_given(&self) -> bool {
        self.schema.is_some()
    }

    /// Whether it names a server.
    pub(super) fn is_server(&self) -> bool {
        self.schema.as_deref().is_some_and(is_server)
    }
}

/// The keys, which may not be all if the server's account may not see all tables.
pub(super) fn as_seen_at<'h>(
    keys: CarryingKeys<'h>,
    server: Option<&ConnectOptions>,
) -> Result<CarryingKeys<'h>> {
    let Some(connect) = server else { return Ok(keys) };
    match sees_all_tables(connect) {
        Ok(true) => Ok(keys),
        Ok(false) => Ok(keys.half_seen_at(connect.server())),
        Err(error) => Err(CommandFailure::of_server(&connect.server(), error)),
    }
}

/// Reads all tables of a file or a server.
pub(in crate::cmd) fn read_schema(
    place: &str,
    options: &dyn Fn() -> Result<ConnectOptions>,
) -> Result<SchemaFile> {
    match is_server(place) {
        true => {
            let connect = with_place(&options()?, place).map_err(CommandFailure::Line)?;
            of_server(&connect, ServerTables::All)
        }
        false => of_file(place.as_ref()),
    }
}

fn of_file(path: &Path) -> Result<SchemaFile> {
    let trouble = |error: &dyn std::fmt::Display| CommandFailure::of(&path.display(), error);
    let size = fs::metadata(path).map_err(|error| trouble(&error))?.len();
    if size > SchemaFile::SIZE_MAX {
        return Err(trouble(&SchemaFileError::TooLarge(size)));
    }
    let bytes = fs::read(path).map_err(|error| trouble(&error))?;
    SchemaFile::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| trouble(&error))
}

/// The schema of a server whose logs are read. A table that it no longer has, or that the account may not see, is left to
/// the log's own table maps.
fn of_log_server(connect: &ConnectOptions, tables: &[(String, String)]) -> Result<Option<SchemaFile>> {
    let meant = if tables.is_empty() { ServerTables::All } else { ServerTables::Among(tables) };
    match server_schema(connect, meant) {
        Err(ServerSchemaError::NoTables { .. }) => Ok(None),
        described => parsed(connect, described).map(Some),
    }
}

/// All tables of a server, as far as its account may see them: those of the logs may have had other names.
pub(super) fn all_tables_of(connect: &ConnectOptions) -> Result<Option<SchemaFile>> {
    match server_schema(connect, ServerTables::All) {
        Err(ServerSchemaError::NoTables { .. } | ServerSchemaError::Denied { .. }) => Ok(None),
        described => parsed(connect, described).map(Some),
    }
}

/// The schema of a server that isn't that of the logs. If a table isn't there, all of its tables: statements of the logs may have given it
/// another name.
fn of_server_of_logs(connect: &ConnectOptions, tables: ServerTables<'_>) -> Result<SchemaFile> {
    match server_schema(connect, tables) {
        Err(missing @ ServerSchemaError::NoSuchTable { .. }) => {
            warn(&format!("{missing} now; its columns are those that the logs' statements tell, if they do"));
            of_server(connect, ServerTables::All)
        }
        described => parsed(connect, described),
    }
}

fn of_server(connect: &ConnectOptions, tables: ServerTables<'_>) -> Result<SchemaFile> {
    parsed(connect, server_schema(connect, tables))
}

fn parsed(
    connect: &ConnectOptions,
    described: std::result::Result<String, ServerSchemaError>,
) -> Result<SchemaFile> {
    let statements = described.map_err(|error| CommandFailure::Line(error.to_string()))?;
    SchemaFile::parse(&statements).map_err(|error| CommandFailure::of(&connect.server(), error))
}
