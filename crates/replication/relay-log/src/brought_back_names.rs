//! Names of the files that are brought back from the archive, beside those of their log.

use binlogz_store::Storage;

use crate::error::{Error, Result};

/// The suffix of their names.
pub(crate) const SUFFIX: &str = ".brought-back";

/// The name of the file that holds this file of the log.
pub(crate) fn brought_back_name(log: &str) -> String {
    format!("{log}{SUFFIX}")
}

/// Removes files that an earlier run left.
pub(crate) fn remove_brought_back(storage: &dyn Storage) -> Result<()> {
    let failed = || Error::io("remove what was brought back from the archive");
    for name in storage.list().map_err(failed())?.iter().filter(|name| name.ends_with(SUFFIX)) {
        storage.remove(name).map_err(failed())?;
    }
    Ok(())
}
