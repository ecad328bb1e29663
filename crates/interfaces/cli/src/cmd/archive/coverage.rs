//! The archives at a place, and what each covers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use binlogz_archive::coverage::{Coverage, coverage};
use binlogz_archive::last_check::LastChecks;
use binlogz_archive::storage::{self, ArchiveStorage, Manner};

use super::{failure, open, open_in};
use crate::failure::{CommandFailure, Result, warn};

/// The archives at a place and below it; there is one at least.
/// With a limit, object storage that doesn't answer is an error in that time.
pub(in crate::cmd) fn archives_at(place: &Path, limit: Option<Duration>) -> Result<Vec<PathBuf>> {
    if storage::in_object_storage(place).is_none() && !place.exists() {
        open(place)?;
    }
    let archives = storage::archives(place, limit).map_err(failure(place))?;
    if archives.is_empty() {
        let why = "is no archive: neither it nor a place below it has a manifest.json";
        return Err(CommandFailure::of(&place.display(), why));
    }
    Ok(archives)
}

/// An archive in a list of several.
pub(super) struct ListedArchive {
    pub(super) place: PathBuf,
    pub(super) coverage: Coverage,
    pub(super) checks: LastChecks,
}

/// An archive's coverage, and its last checks.
pub(in crate::cmd) fn coverage_of(archive: &Path, limit: Option<Duration>) -> Result<(Coverage, LastChecks)> {
    let (storage, manifest) = open_in(archive, &Manner { limit, ..Manner::default() })?;
    let checks = checks_of(&storage, archive);
    Ok((coverage(&manifest).map_err(failure(archive))?, checks))
}

/// The record of the archive's last checks. A record that can't be read is empty, and a warning says so.
pub(super) fn checks_of(storage: &dyn ArchiveStorage, archive: &Path) -> LastChecks {
    LastChecks::read(storage).unwrap_or_else(|error| {
        warn(&format!("{}: {error}", archive.display()));
        LastChecks::default()
    })
}
