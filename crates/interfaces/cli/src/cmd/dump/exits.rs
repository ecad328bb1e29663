//! `--exits`: what is printed leaves by a policy.

use binlogz_cli_common::exits::{policy, report};
use binlogz_encryption::Keyring;
use binlogz_exits::MaskedLogs;
use binlogz_flow::Input;
use binlogz_schema::TablesOfLogs;

use super::options::DumpSettings;
use super::tables::tables_of;
use crate::Exit;
use crate::failure::{CommandFailure, Result};

/// The gate of the logs that are dumped, if there is a policy.
pub(super) fn gate(options: &DumpSettings, keyring: Option<&Keyring>) -> Result<Option<MaskedLogs>> {
    let Some(path) = &options.exits else { return Ok(None) };
    Ok(Some(MaskedLogs::completing(policy(path)?, tables_of(options, keyring)?)))
}

/// What printers know of tables. Masked logs tell it themselves.
pub(super) fn printed_tables(
    options: &DumpSettings,
    keyring: Option<&Keyring>,
    exits: Option<&MaskedLogs>,
) -> Result<TablesOfLogs> {
    match exits {
        Some(_) => Ok(TablesOfLogs::forward(None)),
        None => tables_of(options, keyring),
    }
}

/// The log as it may leave.
pub(super) fn leaving(exits: Option<&MaskedLogs>, name: &str, input: Input) -> Result<Input> {
    match exits {
        Some(exits) => exits.log(name, input).map_err(|error| CommandFailure::of(&name, error)),
        None => Ok(input),
    }
}

/// Says what was left out; whether changes are missing.
pub(super) fn ended(exits: Option<&MaskedLogs>) -> bool {
    exits.is_some_and(|exits| report(&exits.counts()) != Exit::Done)
}
