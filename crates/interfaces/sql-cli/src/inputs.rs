//! How `sql` and `export` read logs: the logs that their common options name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use binlogz_cli_common::companions::sql_inputs::{BaseArgs, SqlInputArgs};
use binlogz_cli_common::failure::warn;
use binlogz_cli_common::time::shown;
use binlogz_encryption::Keyring;
use binlogz_query::{Error, Logs};

use crate::base::ServerBase;
use crate::schema::SchemaPlace;

/// The logs at these paths, with what --schema tells of their tables now.
pub(crate) fn logs(args: &SqlInputArgs, base: &BaseArgs, paths: Vec<OsString>) -> Result<Logs, Error> {
    let schema = SchemaPlace::open(&args.schema, base.base.is_some())?;
    let opened = logs_with(args, paths, schema.as_ref(), None)?;
    say_erased(&opened);
    based(opened, args, base)
}

/// Says which logs of archives lack values that were erased.
pub(crate) fn say_erased(logs: &Logs) {
    if let Some(erased) = logs.erased() {
        warn(&erased.in_words(shown));
    }
}

/// Logs with the base of the options, if they name one.
pub(crate) fn based(logs: Logs, args: &SqlInputArgs, base: &BaseArgs) -> Result<Logs, Error> {
    let base = ServerBase::open(base, &args.schema.server, args.jobs())?;
    Ok(match base {
        Some(base) => logs.with_base(Arc::new(base)),
        None => logs,
    })
}

/// The logs at these paths, described by a schema that is already open, of which only these tables matter.
pub(crate) fn logs_with(
    args: &SqlInputArgs,
    paths: Vec<OsString>,
    schema: Option<&SchemaPlace>,
    tables: Option<&[(String, String)]>,
) -> Result<Logs, Error> {
    let keyring = args.keyring.as_deref().map(open_keyring).transpose()?;
    let paths = paths.into_iter().map(PathBuf::from).collect();
    let logs = Logs::new(paths, keyring, warn)?;
    // One command has one set of logs.
    let _ = UNREAD.set(logs.unread());
    let Some(schema) = schema else { return Ok(logs) };
    let text = schema.text(tables).map_err(|error| Error::Log(error.to_string()))?;
    let logs = logs.with_schema(text.into_owned());
    logs.map_err(|error| Error::Log(format!("{}: {error}", schema.place())))
}

/// Set once the command's logs are open: whether changes were met that could not be read.
static UNREAD: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Whether there were changes that could not be read. Each was reported.
pub(crate) fn met_unread() -> bool {
    UNREAD.get().is_some_and(|unread| unread.load(Ordering::Relaxed))
}

pub(crate) fn open_keyring(path: &Path) -> Result<Keyring, Error> {
    Keyring::open(path).map_err(|error| Error::Log(format!("{}: {error}", path.display())))
}
