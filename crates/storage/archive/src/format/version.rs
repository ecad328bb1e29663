//! The versions of objects.

use crate::error::Error;

/// The version written.
pub const VERSION: u32 = 18;
/// The versions before it that are read. There were no objects of versions 4, 7, 10, 12 and 14 to 17: they are the manifest's. Version 18 has
/// texts whose phrases were replaced, which earlier programs don't know.
const VERSIONS_BEFORE: [u32; 9] = [1, 2, 3, 5, 6, 8, 9, 11, 13];
/// The first version with block headers.
pub(crate) const VERSION_HEADERS: u32 = 3;
/// The first version that says what blocks hold.
pub(crate) const VERSION_CONTENTS: u32 = 6;
/// The first version whose contents have the definitions of tables.
pub(crate) const VERSION_DEFINITIONS: u32 = 9;
/// The first version with a directory of transactions.
pub(crate) const VERSION_DIRECTORY: u32 = 11;

/// Whether objects of this version are read.
pub(super) fn is_known(version: u32) -> bool {
    version == VERSION || VERSIONS_BEFORE.contains(&version)
}

pub(super) fn unknown_version(version: u32) -> Error {
    Error::unexpected("version", version, format!("1 to 3, 5, 6, 8, 9, 11, 13 or {VERSION}"))
}
