//! `binlogz archive prune` and `merge` both take objects out of an archive: their common options and words.

use std::path::Path;
use std::time::Duration;

use binlogz_archive::Error;
use binlogz_archive::storage::ListedObject;
use binlogz_figures::counted;
use clap::Args;

use crate::failure::complain;
use crate::terminal::SizesArg;
use crate::units;

/// The options.
#[derive(Debug, Args)]
pub(super) struct UpkeepArgs {
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// How long objects that no log is in any more stay, for restores that have begun; 0 deletes them at once
    #[arg(long, value_name = "DURATION", default_value = GRACE_DEFAULT, value_parser = units::duration_or_zero)]
    pub(super) grace: Duration,
    #[command(flatten)]
    pub(super) sizes: SizesArg,
}

/// A night's restore ends undisturbed, and tomorrow's run of a daily job deletes what today's took out.
pub(super) const GRACE_DEFAULT: &str = "12h";

/// How many objects, and how large they are together.
pub(super) fn in_words(objects: &[ListedObject], sizes: SizesArg) -> String {
    let size = sizes.in_words(objects.iter().map(|object| object.size).sum());
    format!("{}, {size}", counted(objects.len() as u64, "objects"))
}

/// Objects may be locked for a time.
pub(super) fn say_undeleted(archive: &Path, undeleted: &[(String, Error)]) {
    for (object, error) in undeleted {
        complain(&format!("{}: {object} can't be deleted: {error}", archive.display()));
    }
}
