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

/// The folders of all crates of the product: `crates/FLOOR/CRATE`.
pub(crate) fn crate_folders() -> Vec<PathBuf> {
    let below = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let floors = below(&root().join("crates")).into_iter().filter(|path| path.is_dir());
    floors.flat_map(|floor| below(&floor)).filter(|path| path.join("Cargo.toml").exists()).collect()
}
