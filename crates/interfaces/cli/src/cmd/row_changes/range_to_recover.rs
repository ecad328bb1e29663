//! The range of `recover --fold`: its logs become a folded log with GTIDs.

use std::fmt::Display;
use std::io::Write;
use std::num::NonZeroU64;

use binlogz_binlog::gtid::GtidSet;
use binlogz_encryption::Keyring;
use binlogz_row_changes::{FoldAim, FoldOptions, FoldSummary, RowSelection};
use binlogz_source::ConnectOptions;

use super::RecoverLog;
use super::folding::{FoldedLogs, LogFold, SchemaOfAll};
use super::schema::SchemaArg;
use crate::cmd::workers;
use crate::failure::Result;
use crate::log_path::LogPath;

/// Logs that are folded for a server.
pub(in crate::cmd) struct RangeToRecover<'r> {
    /// From the first one on that has transactions which the server lacks, the last one cut where recovery ends.
    pub(in crate::cmd) logs: Vec<LogPath>,
    pub(in crate::cmd) keyring: Option<&'r Keyring>,
    /// As the option `--schema` names it.
    pub(in crate::cmd) schema: Option<String>,
    /// Everything of the logs that the server had before.
    pub(in crate::cmd) before: GtidSet,
    pub(in crate::cmd) transaction_rows: NonZeroU64,
}

impl RangeToRecover<'_> {
    /// Writes the folded log; `None`: the logs have changes that can't be read, which was told. `options` connect to the server of `schema`.
    pub(in crate::cmd) fn fold(
        &self,
        options: &impl Fn() -> Result<ConnectOptions>,
        out: &mut impl Write,
        place: &dyn Display,
    ) -> Result<Option<FoldSummary>> {
        let logs: Vec<_> = self.logs.iter().cloned().map(RecoverLog::Path).collect();
        let known = SchemaOfAll::read(&SchemaArg::of(self.schema.clone()), options, (None, None))?;
        let tables = known.tables(&logs, self.keyring, workers(None))?;
        let run =
            LogFold { logs: &logs, keyring: self.keyring, tables: Some(&tables), workers: workers(None) };
        let fold_options = FoldOptions {
            excluded: self.before.clone(),
            since: None,
            until: None,
            selection: RowSelection::default(),
            aim: FoldAim::Apply,
            transaction_rows: self.transaction_rows,
            previous: Some(self.before.clone()),
        };
        Ok(run.run(fold_options, out, place)?.map(|FoldedLogs { summary, .. }| summary))
    }
}
