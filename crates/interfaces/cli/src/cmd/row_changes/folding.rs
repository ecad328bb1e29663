//! One fold over logs: `fold` writes what comes of it, `undo --all` takes it back.
//!
//! ```text
//! schema of all tables → SchemaOfAll: keys and foreign keys → tables of the logs, read ahead → LogFold: a folded log
//! ```

use std::fmt::Display;
use std::io::{BufWriter, Write};

use binlogz_encryption::Keyring;
use binlogz_row_changes::{CarryingKeys, Error, Fold, FoldOptions, FoldSummary, FoldTables, sees_all_tables};
use binlogz_schema::SchemaFile;
use binlogz_source::ConnectOptions;

use super::failure;
use super::inputs::RecoverLog;
use super::schema::SchemaArg;
use crate::Exit;
use crate::failure::{CommandFailure, Result, name_unread, warn, warn_cut};

/// The tables of now, as far as a schema tells, and the foreign keys that change rows of others.
pub(super) struct SchemaOfAll {
    pub(super) described: Option<SchemaFile>,
    /// `None`: they aren't known.
    keys: Option<CarryingKeys<'static>>,
}

impl SchemaOfAll {
    /// Reads them: of the server to which changes are applied, or of the one that has the logs, if none is given.
    pub(super) fn read(
        schema: &SchemaArg,
        options: &impl Fn() -> Result<ConnectOptions>,
        servers: (Option<&ConnectOptions>, Option<&ConnectOptions>),
    ) -> Result<Self> {
        let mut described = schema.read(&[], options, servers)?;
        let keys = schema.carrying_keys((&mut described, &[]), None, options, servers)?;
        let mut keys = keys.unwrap_or_else(|why| {
            warn(&why);
            None
        });
        if let Some(connect) = schema.server(options, servers)?.filter(|_| keys.is_some()) {
            let sees_all = sees_all_tables(&connect);
            if !sees_all.map_err(|error| CommandFailure::of_server(&connect.server(), error))? {
                warn(&format!(
                    "{}: the account may not see all tables, nor their foreign keys; expected an account with SELECT on *.*",
                    connect.server()
                ));
                keys = None;
            }
        }
        Ok(SchemaOfAll { described, keys })
    }

    /// The tables of logs, which are read for their statements.
    pub(super) fn tables(
        &self,
        logs: &[RecoverLog],
        keyring: Option<&Keyring>,
        workers: usize,
    ) -> Result<FoldTables> {
        let mut tables = FoldTables::new(self.described.clone(), self.keys.clone());
        for (number, log) in logs.iter().enumerate() {
            let progress = log.progress((number + 1, logs.len()))?;
            let input = progress.watch(log.open(keyring)?);
            // The pass over the rows names the events that can't be read.
            let _ = tables.read_ahead(input, workers).map_err(|error| failure(log, Error::Log(error)))?;
        }
        tables.settle();
        Ok(tables)
    }
}

/// Logs that are folded.
pub(super) struct LogFold<'f> {
    pub(super) logs: &'f [RecoverLog],
    pub(super) keyring: Option<&'f Keyring>,
    /// `None`: they can't be read twice.
    pub(super) tables: Option<&'f FoldTables>,
    pub(super) workers: usize,
}

/// What came of folding logs.
pub(super) struct FoldedLogs {
    pub(super) summary: FoldSummary,
    /// The name of the last log that was read, and where it ended.
    pub(super) last: Option<(String, u64)>,
}

impl LogFold<'_> {
    /// Folds the logs; `None`: changes of them can't be read, which was told.
    pub(super) fn run(
        &self,
        options: FoldOptions,
        out: &mut impl Write,
        place: &dyn Display,
    ) -> Result<Option<FoldedLogs>> {
        let mut out = BufWriter::new(out);
        let folded = self.fold(options, &mut out, place)?;
        out.flush().map_err(|error| CommandFailure::writing(place, &error))?;
        Ok(folded)
    }

    fn fold(
        &self,
        options: FoldOptions,
        out: &mut dyn Write,
        place: &dyn Display,
    ) -> Result<Option<FoldedLogs>> {
        let fold = Fold::new(self.tables, options, out);
        let mut fold = fold.map_err(|error| CommandFailure::writing(place, &error))?;
        let mut last = None;
        for (number, log) in self.logs.iter().enumerate() {
            let progress = log.progress((number + 1, self.logs.len()))?;
            let input = progress.watch(log.open(self.keyring)?);
            let read = fold.read(input, &log.name(), self.workers, &mut |bytes| progress.at(bytes));
            let (ran, goes_on) = read.map_err(|error| trouble(log, place, error))?;
            if name_unread(log, &ran.unread, "nothing is written") != Exit::Done {
                return Ok(None);
            }
            if let Some(cut) = ran.read.cut {
                warn_cut(log, cut, "; they are left out");
            }
            last = Some((log.name(), ran.read.bytes_read));
            if !goes_on {
                break;
            }
        }
        let summary = fold.finish().map_err(|error| trouble(&"fold", place, error))?;
        if let Some(cut) = &summary.cut {
            warn(&format!("{cut}: the logs end within this transaction; it is left out"));
        }
        Ok(Some(FoldedLogs { summary, last }))
    }
}

/// An error of a fold: of what it reads, of what it writes, or of a temporary file.
fn trouble(log: &dyn Display, place: &dyn Display, error: Error) -> CommandFailure {
    match error {
        Error::Io(error) => CommandFailure::writing(place, &error),
        error => failure(log, error),
    }
}
