//! `--schema`: the names of columns and the keys that logs lack, from a file of CREATE TABLE statements or from a server.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use binlogz_cli_common::companions::sql_inputs::SchemaArgs;
use binlogz_query::Error;
use binlogz_row_changes::{ServerSchemaError, ServerTables, is_server, server_schema};
use binlogz_schema::{SchemaFile, SchemaFileError};
use binlogz_source::ConnectOptions;

use crate::server::connect_options;

/// A place of CREATE TABLE statements.
#[derive(Debug)]
pub(crate) enum SchemaPlace {
    /// A file: its name and its text.
    File(String, String),
    /// Read when it is asked for.
    Server(Box<ConnectOptions>),
}

impl SchemaPlace {
    /// Reads a file; of a server, how to reach it. `follows`: another option names a server.
    pub(crate) fn open(args: &SchemaArgs, follows: bool) -> Result<Option<SchemaPlace>, Error> {
        let place = args.schema.as_deref();
        match (place.filter(|place| is_server(place)), args.server.given()) {
            (Some(place), _) => {
                let connect = connect_options(&args.server, place)?;
                Ok(Some(SchemaPlace::Server(Box::new(connect))))
            }
            (None, Some(option)) if !follows => Err(Error::Sql(format!(
                "{option} is for servers, but none is named, expected --schema SERVER"
            ))),
            (None, _) => {
                let read = |place: &str| Ok(SchemaPlace::File(place.to_owned(), text_of(place.as_ref())?));
                place.map(read).transpose()
            }
        }
    }

    /// The place, as errors name it.
    pub(crate) fn place(&self) -> String {
        match self {
            SchemaPlace::File(path, _) => path.clone(),
            SchemaPlace::Server(connect) => connect.server(),
        }
    }

    /// The statements; of a server all that it has now, or those of these tables.
    ///
    /// # Errors
    ///
    /// A server that can't be reached or has no such tables, and what the account may not see.
    pub(crate) fn text(
        &self,
        tables: Option<&[(String, String)]>,
    ) -> Result<Cow<'_, str>, ServerSchemaError> {
        match self {
            SchemaPlace::File(_, text) => Ok(Cow::Borrowed(text)),
            SchemaPlace::Server(connect) => {
                let tables = tables.map_or(ServerTables::All, ServerTables::Among);
                server_schema(connect, tables).map(Cow::Owned)
            }
        }
    }
}

fn text_of(path: &Path) -> Result<String, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Log(format!("{}: {error}", path.display()));
    let size = fs::metadata(path).map_err(|error| failed(&error))?.len();
    if size > SchemaFile::SIZE_MAX {
        return Err(failed(&SchemaFileError::TooLarge(size)));
    }
    let bytes = fs::read(path).map_err(|error| failed(&error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
