//! The result of a run of `export`, as one line.

use std::io::{self, Write};

use binlogz_figures::{counted, human_size};
use binlogz_query::Error;
use binlogz_query::export::ExportSummary;

use crate::complain;

/// Tells the result of a run.
pub(crate) fn tell(exported: &ExportSummary, is_dry: bool, in_bytes: bool) -> Result<(), Error> {
    warn(exported);
    if exported.incomplete > 0 {
        let count = counted(exported.incomplete, "transactions");
        complain(&format!("warning: {count} left out: the end is not in the logs"));
    }
    writeln!(io::stdout(), "{}", told(exported, is_dry, in_bytes)).map_err(Error::from)
}

/// Tells what a run found in its target that nobody may expect.
pub(crate) fn warn(exported: &ExportSummary) {
    if exported.is_taken_over {
        complain(
            "warning: the manifests of earlier runs have no checksums and are taken as they are; from now on a change is an error",
        );
    }
    if exported.deleted > 0 {
        let count = counted(exported.deleted, "files");
        let are = if exported.deleted == 1 { "is" } else { "are" };
        complain(&format!("warning: {count} of earlier runs {are} gone; their rows are not exported again"));
    }
}

/// A run's result, as one line.
fn told(exported: &ExportSummary, is_dry: bool, in_bytes: bool) -> String {
    let transactions = counted(exported.transactions, "transactions");
    let rows = counted(exported.rows, "row changes");
    match exported.run {
        None if exported.transactions == 0 => "nothing is new".to_owned(),
        None if is_dry => format!("new: {transactions}, {rows} of all tables"),
        None => format!("not written: {transactions}"),
        Some(run) => format!(
            "run {run}: {transactions}, {rows} of {}, {}, {}",
            counted(exported.tables as u64, "tables"),
            counted(exported.files as u64, "files"),
            if in_bytes { counted(exported.bytes, "bytes") } else { human_size(exported.bytes) },
        ),
    }
}
