//! `--exits`: logs that are masked by a policy before anything else reads them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use binlogz_cli_common::{Exit, exits};
use binlogz_exits::{ExitCounts, ExitPolicy};
use binlogz_query::{Error, Logs};
use binlogz_scratch_file::Scratch;

/// The logs as they may leave by this policy.
pub(crate) fn logs(logs: Logs, policy: &Path) -> Result<Logs, Error> {
    logs.masked(read(policy)?, nameless_file()?)
}

/// The logs as they may leave by this policy, in this file, of which each rule that hides something met something: what a name with a typing
/// error was to hide would leave.
pub(crate) fn logs_to_ask(logs: Logs, policy: &Path, file: Scratch) -> Result<Logs, Error> {
    let logs = logs.masked(read(policy)?, file)?;
    let unmet = logs.exit_counts().map(|counts| counts.unmet_masks.join(", ")).unwrap_or_default();
    match unmet.is_empty() {
        true => Ok(logs),
        false => Err(Error::Log(format!(
            "{}: the logs have no rows of {unmet}, which it is to hide; expected its right name, or optional = true",
            policy.display()
        ))),
    }
}

/// An encrypted file without a name, for masked logs.
pub(crate) fn nameless_file() -> Result<Scratch, Error> {
    Scratch::new().map_err(|error| Error::Temporary(error.to_string()))
}

/// Reads a policy.
pub(crate) fn read(path: &Path) -> Result<ExitPolicy, Error> {
    ExitPolicy::read(path).map_err(|error| Error::Log(error.to_string()))
}

/// Says what was masked and left out, if the logs leave by a policy. Changes that can't be masked for certain are changes that could not
/// be read.
pub(crate) fn report(logs: &Logs) {
    if let Some(counts) = logs.exit_counts() {
        report_counts(counts, &logs.unread());
    }
}

/// Says what was masked and left out; `unread` is set if changes are missing.
pub(crate) fn report_counts(counts: &ExitCounts, unread: &AtomicBool) {
    if exits::report(counts) != Exit::Done {
        unread.store(true, Ordering::Relaxed);
    }
}
