//! The place of the data sets: a folder, or object storage. Both hold the same files, and in both a run counts once its manifest
//! is there.
//!
//! ```text
//! TO/DATABASE/TABLE/day=2026-11-24/00000042-0.parquet    a file of run 42
//! TO/_transactions/day=2026-11-24/00000042-0.parquet
//! TO/views.sql
//! TO/_binlogz/00000042.json                              the manifest of run 42: with it, the run counts
//! ```
//!
//! Readers of data sets skip what begins with `_` or `.`.

mod bucket;
mod folder;

use std::path::{Path, PathBuf};

use binlogz_archive::storage;
use binlogz_atomic_file::TemporaryFolder;
use datafusion::arrow::datatypes::SchemaRef;

use self::bucket::Bucket;
use self::folder::Folder;
use super::manifest::{FORMAT, Manifest};
use crate::error::{Error, Result};

/// The folder of what is not data.
const CONTROL: &str = "_binlogz";
const VIEWS: &str = "views.sql";

/// Refuses what was meant as an address, but would be made a folder.
fn is_no_address(to: &Path) -> Result<()> {
    storage::refuse_addresses(&to.to_string_lossy()).map_err(|error| Error::Target(error.to_string()))
}

/// A target that this run writes to.
#[derive(Debug)]
pub(super) enum Target {
    /// One that no other run writes to.
    Folder(Folder),
    /// One that others may write to: the first that stores its manifest wins.
    Bucket(Bucket),
}

impl Target {
    /// Opens a target, and makes it if it isn't there.
    pub(super) fn open(to: &Path) -> Result<Self> {
        is_no_address(to)?;
        match storage::in_object_storage(to) {
            Some(_) => Ok(Target::Bucket(Bucket::open(to)?)),
            None => Ok(Target::Folder(Folder::open(to)?)),
        }
    }

    /// The manifest of the last run, of a target that may not exist.
    pub(super) fn last(to: &Path) -> Result<Option<Manifest>> {
        is_no_address(to)?;
        match storage::in_object_storage(to) {
            Some(_) => Bucket::open(to)?.last(),
            None => Folder::last(to),
        }
    }

    /// Ends what a killed run left, as far as that can be told, and gives the manifest of the last run.
    pub(super) fn recover(&mut self) -> Result<Option<Manifest>> {
        match self {
            Target::Folder(folder) => folder.recover(),
            Target::Bucket(bucket) => bucket.recover(),
        }
    }

    /// A folder for the files of a new run; it is gone if the run ends without them.
    pub(super) fn begin(&self) -> Result<TemporaryFolder> {
        match self {
            Target::Folder(folder) => folder.begin(),
            Target::Bucket(bucket) => bucket.begin(),
        }
    }

    /// How the names of a run's files begin.
    pub(super) fn file_prefix(&self, run: u64) -> String {
        match self {
            Target::Folder(_) => format!("{run:08}"),
            Target::Bucket(bucket) => bucket.file_prefix(run),
        }
    }

    /// Makes a run count, and gives its files their names.
    pub(super) fn commit(&mut self, staging: TemporaryFolder, manifest: &Manifest) -> Result<()> {
        match self {
            Target::Folder(folder) => folder.commit(staging, manifest),
            Target::Bucket(bucket) => bucket.commit(&staging, manifest),
        }
    }

    /// The columns of a data set's newest file; `None`: it has none.
    pub(super) fn newest_schema(&self, data_set: &str) -> Result<Option<SchemaRef>> {
        match self {
            Target::Folder(folder) => folder.newest_schema(data_set),
            Target::Bucket(bucket) => bucket.newest_schema(data_set),
        }
    }
}

fn manifest_name(run: u64) -> String {
    format!("{run:08}.json")
}

/// The run whose manifest has this name.
fn run_of(name: &str) -> Option<u64> {
    name.strip_suffix(".json")?.parse().ok()
}

/// The manifest that these bytes are; `place`: where they stand.
fn read_manifest(bytes: &[u8], place: &str) -> Result<Manifest> {
    let bad = |what: String| Error::Target(format!("{place}: {what}"));
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
    let format = value.get("format").and_then(serde_json::Value::as_u64);
    if format != Some(FORMAT.into()) {
        let found = format.map_or_else(|| "none".to_owned(), |format| format.to_string());
        return Err(bad(format!("the format of a manifest: found {found}, expected {FORMAT}")));
    }
    serde_json::from_value(value).map_err(|error| bad(error.to_string()))
}

/// A manifest as it is stored.
fn manifest_bytes(manifest: &Manifest, place: &str) -> Result<Vec<u8>> {
    let bytes = serde_json::to_vec_pretty(manifest);
    let mut bytes = bytes.map_err(|error| Error::Target(format!("{place}: {error}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn not_ours(place: &str) -> Error {
    Error::Target(format!(
        "{place}: is not empty, and not a folder of exports; expected one, or an empty folder"
    ))
}

/// The folder of a table's data set in the target.
pub(super) fn data_set(database: &str, table: &str) -> String {
    format!("{}/{}", folder_name(database), folder_name(table))
}

/// A name as a folder: letters, digits, `_`, `-` and `$` stay, other characters are `%2F` and so on. `_` at the begin would
/// hide it.
fn folder_name(name: &str) -> String {
    let mut folder = String::new();
    for (place, c) in name.char_indices() {
        if c.is_alphanumeric() || c == '$' || (place > 0 && matches!(c, '_' | '-')) {
            folder.push(c);
        } else {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| folder.push_str(&format!("%{byte:02X}")));
        }
    }
    folder
}

/// The name that a folder has.
pub(super) fn name_of(folder: &str) -> String {
    let mut name = Vec::new();
    let mut rest = folder.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| byte == b'%');
        let decoded = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        name.push(decoded.unwrap_or(byte));
        rest = if decoded.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&name).into_owned()
}

/// Ends the process as `kill -9` would, where a test asks for it.
fn fail_point(name: &str) {
    if cfg!(debug_assertions) && std::env::var("BINLOGZ_EXPORT_DIES_AT").is_ok_and(|wanted| wanted == name) {
        std::process::abort();
    }
}

fn failed(place: &Path) -> impl Fn(std::io::Error) -> Error + use<> {
    let place: PathBuf = place.to_owned();
    move |error| Error::Target(format!("{}: {error}", place.display()))
}
