//! The archives at a place, and what each covers.

use std::path::{Path, PathBuf};

use binlogz_archive::coverage::{Coverage, coverage};
use binlogz_archive::last_check::LastChecks;
use binlogz_archive::storage::ArchiveStorage;

use super::{failure, open};
use crate::failure::{Result, warn};

/// An archive in a list of several.
pub(super) struct ListedArchive {
    pub(super) place: PathBuf,
    pub(super) coverage: Coverage,
    pub(super) checks: LastChecks,
}

/// An archive's coverage, and its last checks.
pub(super) fn coverage_of(archive: &Path) -> Result<(Coverage, LastChecks)> {
    let (storage, manifest) = open(archive)?;
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
