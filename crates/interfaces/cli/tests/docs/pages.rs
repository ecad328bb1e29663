//! Finds the pages of the documentation.

use std::path::{Path, PathBuf};

/// The checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// A page by its name from there.
pub(crate) fn read(page: impl AsRef<Path>) -> String {
    let page = page.as_ref();
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}
