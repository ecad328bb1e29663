//! `--exits`: logs that are masked by a policy before anything else reads them.

use std::path::Path;
use std::sync::atomic::Ordering;

use binlogz_cli_common::{Exit, exits};
use binlogz_exits::ExitPolicy;
use binlogz_query::{Error, Logs};
use binlogz_scratch_file::Scratch;

/// The logs as they may leave by this policy.
pub(crate) fn logs(logs: Logs, policy: &Path) -> Result<Logs, Error> {
    let file = Scratch::new().map_err(|error| Error::Temporary(error.to_string()))?;
    logs.masked(read(policy)?, file)
}

/// Reads a policy.
pub(crate) fn read(path: &Path) -> Result<ExitPolicy, Error> {
    ExitPolicy::read(path).map_err(|error| Error::Log(error.to_string()))
}

/// Says what was masked and left out, if the logs leave by a policy. Changes that can't be masked for certain are changes that could not
/// be read.
pub(crate) fn report(logs: &Logs) {
    let Some(counts) = logs.exit_counts() else { return };
    if exits::report(counts) != Exit::Done {
        logs.unread().store(true, Ordering::Relaxed);
    }
}
