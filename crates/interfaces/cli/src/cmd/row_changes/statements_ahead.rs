//! The statements of logs, read ahead of their rows: they tell what tables were.

use std::num::NonZeroUsize;

use binlogz_encryption::Keyring;
use binlogz_row_changes::StatementsAhead;

use super::inputs::RecoverLog;
use crate::cmd::workers;
use crate::failure::Result;

/// The statements in the logs; `None`: some can't be read.
pub(super) fn statements_ahead(
    logs: &[RecoverLog],
    keyring: Option<&Keyring>,
    jobs: Option<NonZeroUsize>,
) -> Result<Option<StatementsAhead>> {
    let mut statements = StatementsAhead::default();
    for (number, log) in logs.iter().enumerate() {
        let input = log.open_part(keyring, &mut |run| run.may_have_statements())?;
        let progress = log.progress((number + 1, logs.len()))?;
        let input = progress.watch(input);
        let read = statements.read(input, &log.name(), workers(jobs), &mut |bytes| progress.at(bytes));
        // It may be a statement.
        if read.map_err(|error| log.failure(error))?.unread.iter().next().is_some() {
            return Ok(None);
        }
    }
    Ok(Some(statements))
}
