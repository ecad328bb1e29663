//! The curves as bars of text: commits a second against committers, both growing by factors.

use std::io::{self, Write};

use super::measure::{CommitResults, CommitSettings};

/// The longest bar.
const WIDTH: f64 = 48.0;

/// A bar a run, a block for each policy and level.
pub(super) fn write(rows: &[(CommitSettings, CommitResults)], out: &mut impl Write) -> io::Result<()> {
    let rates = || rows.iter().map(|(_, measured)| measured.commits_per_second().max(1.0));
    let low = rates().fold(f64::INFINITY, f64::min);
    let high = rates().fold(1.0, f64::max);
    let mut block = None;
    for (cell, measured) in rows {
        let this = (cell.policy, cell.compression());
        if block.as_ref() != Some(&this) {
            writeln!(out, "\nflush_log_at_commit {}, compression {}", this.0, this.1)?;
            block = Some(this);
        }
        let rate = measured.commits_per_second().max(1.0);
        let span = (high / low).ln().max(1e-9);
        let length = 1.0 + (WIDTH - 1.0) * ((rate / low).ln() / span);
        writeln!(out, "{:>7} {} {rate:.0}", cell.committers, "#".repeat(length.round() as usize))?;
    }
    Ok(())
}
