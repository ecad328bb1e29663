//! Writes the files in the folder of a run.

use std::path::Path;

use binlogz_atomic_file::ExistingFile;

use crate::error::{IoErrorContext, Result};

/// Results hold no rows: everybody may read them, as far as the umask allows.
const FILE_MODE: u32 = 0o666;

/// Replaces a file of the run's folder in one step.
pub(crate) fn write_whole(path: &Path, text: &[u8]) -> Result<()> {
    binlogz_atomic_file::write(path, FILE_MODE, ExistingFile::Replace, text).at("write", path)
}
