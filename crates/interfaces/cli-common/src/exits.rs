//! What may leave: the policy of `--exits`, and what is said of what was masked and left out.

use std::path::Path;

use binlogz_exits::{ExitCounts, ExitPolicy, LeftOut};
use binlogz_figures::{counted, grouped};

use crate::Exit;
use crate::failure::{CommandFailure, Result, complain, say, warn, warn_cut};

/// Reads a policy.
///
/// # Errors
///
/// A file that can't be read or isn't a policy.
pub fn policy(path: &Path) -> Result<ExitPolicy> {
    ExitPolicy::read(path).map_err(|error| CommandFailure::Line(error.to_string()))
}

/// Says what was masked and left out.
pub fn report(counts: &ExitCounts) -> Exit {
    for (log, cut) in &counts.cuts {
        warn_cut(log, *cut, "; they are left out");
    }
    say(&summary(counts));
    for (why, count) in &counts.unmasked {
        let count = if *count == 0 { String::new() } else { format!(": {}", grouped(*count)) };
        complain(&format!("left out, {why}{count}"));
    }
    for key in &counts.weak_keys {
        warn(&format!(
            "{key}: rows may get the same unique key, since the policy may make different values of its columns equal"
        ));
    }
    if !counts.unmet_tables.is_empty() {
        say(&format!("no rows of tables that the policy names: {}", counts.unmet_tables.join(", ")));
    }
    for place in &counts.unmet_masks {
        complain(&format!(
            "no rows of {place}, which the policy was to hide, expected its right name, or optional = true"
        ));
    }
    match counts.unmasked.is_empty() && counts.unmet_masks.is_empty() {
        true => Exit::Done,
        false => Exit::Negative,
    }
}

fn summary(counts: &ExitCounts) -> String {
    let masked = format!(
        "{}, {} masked",
        counted(counts.transactions, "transactions"),
        counted(counts.masked_rows, "rows")
    );
    let rows = (counts.left_out_rows > 0).then(|| counted(counts.left_out_rows, "rows"));
    let others = counts
        .left_out
        .iter()
        .map(|(what, count): (&LeftOut, &u64)| format!("{} {}", grouped(*count), what.shown()));
    let left_out: Vec<_> = rows.into_iter().chain(others).collect();
    match left_out.is_empty() {
        true => masked,
        false => format!("{masked}; left out by the policy: {}", left_out.join(", ")),
    }
}
