//! Requests that the logs don't satisfy: a GTID that is not there, a position beyond the end, a table that never
//! occurs. If it can be looked for first, the run ends before anything is printed; otherwise the exit code tells.
//!
//! mysqlbinlog prints what there is and exits with 0. When called by mysqlbinlog's name, `dump` does the same
//! and says so on stderr, except for options that mysqlbinlog does not have. The rule is [`binlogz_print::met`]'s.

use std::ffi::OsStr;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_encryption::Keyring;
use binlogz_flow::Input;
use binlogz_print::met::{UnmetKind, UnmetRequest};

use super::options::{DumpSettings, POSITION_MIN};
use super::tell_line;
use binlogz_archive::input as archived;

/// Reports requests that were not met. Returns whether the exit code must say so.
pub(super) fn tell(options: &DumpSettings, unmet: &[UnmetRequest]) -> bool {
    let mut failed = false;
    for UnmetRequest { line, kind } in unmet {
        let fails = match kind {
            UnmetKind::Mysqlbinlogs => !options.called_mysqlbinlog,
            UnmetKind::OurOwn => true,
            UnmetKind::Partial => false,
        };
        tell_line(if fails { "ERROR" } else { "WARNING" }, line);
        failed |= fails;
    }
    failed
}

/// Requests that are known to be unmet before a log is dumped. The dump itself reports unreadable logs.
pub(super) fn ahead(options: &DumpSettings) -> Vec<UnmetRequest> {
    if options.is_remote() {
        return Vec::new();
    }
    let keyring = options.keyring.as_deref().and_then(|path| Keyring::open(path).ok());
    let keyring = keyring.as_ref();
    let mut unmet = Vec::new();
    if let Some(gtid) = &options.stop_before_gtid
        && is_absent(options, keyring, |found| found == gtid, |set| set.contains(gtid))
    {
        unmet.push(UnmetRequest::stop_before_gtid(gtid));
    }
    // At the very end nothing is missing: a run that continues there may be early.
    if options.start_position > POSITION_MIN
        && let Some(log) = options.logs.first()
        && let Some(end) = size(log.as_os_str(), keyring).filter(|&end| end < options.start_position)
    {
        unmet.push(UnmetRequest::start_position(options.start_position, end));
    }
    if options.called_mysqlbinlog {
        return unmet;
    }
    if let Some(set) = &options.include_gtids
        && is_absent(options, keyring, |found| set.contains(found), |there| !there.is_disjoint(set))
    {
        unmet.push(UnmetRequest::include_gtids(set));
    }
    if let (Some(stop), Some(log)) =
        (options.stop_position.filter(|&stop| stop != u64::MAX), options.logs.last())
        && let Some(end) = size(log.as_os_str(), keyring).filter(|&end| end < stop)
    {
        unmet.push(UnmetRequest::stop_position(stop, end));
    }
    unmet
}

/// Whether it is certain that none of the logs has a requested transaction.
fn is_absent(
    options: &DumpSettings,
    keyring: Option<&Keyring>,
    is_wanted: impl Fn(&Gtid) -> bool,
    is_wanted_of: impl Fn(&GtidSet) -> bool,
) -> bool {
    options.logs.iter().enumerate().all(|(number, log)| {
        let from = if number == 0 { options.start_position } else { POSITION_MIN };
        match archived::find(log) {
            Ok(Some(archived)) => archived.gtids().is_some_and(|set| !is_wanted_of(&set)),
            Ok(None) => {
                open(log.as_os_str(), keyring).and_then(|input| input.has_gtid(from, &is_wanted))
                    == Some(false)
            }
            Err(_) => false,
        }
    })
}

/// Plain bytes of a log; `None`: unknown.
fn size(log: &OsStr, keyring: Option<&Keyring>) -> Option<u64> {
    if let Some(archived) = archived::find(log.as_ref()).ok()? {
        return Some(archived.size());
    }
    open(log, keyring)?.size()
}

fn open(log: &OsStr, keyring: Option<&Keyring>) -> Option<Input> {
    if log == "-" {
        return None;
    }
    let input = Input::open(log.as_ref()).ok()?;
    match keyring {
        None => Some(input),
        Some(keyring) => input.decrypted(keyring).ok(),
    }
}
