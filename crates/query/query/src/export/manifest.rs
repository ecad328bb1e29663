//! The manifest of a run: what this run and all before it exported. Each run has a JSON file, `_binlogz/00000042.json`;
//! the last one describes the whole target.
//!
//! ```text
//! {
//!   "format": 2,
//!   "run": 42,
//!   "previous": "…",       SHA-256 of the whole manifest of run 41; null: this is the first run
//!   …
//!   "sha256": "…"          SHA-256 of all lines before this one: head -n -2 FILE | sha256sum
//! }
//! ```
//!
//! Manifests of format 1 have neither `previous` nor `sha256`; [`super::history`] decides which of several may have that
//! format.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::digest::sha256;
use super::names::{DataPath, StagedName};
use crate::error::{Error, Result};

/// The version of the manifest that is written.
pub(super) const FORMAT: u32 = 2;
/// The version of earlier manifests, without checksum.
pub(super) const FORMAT_UNCHECKED: u32 = 1;

/// The line with the checksum, around its digits.
const CHECKSUM_BEGIN: &[u8] = b"  \"sha256\": \"";
const CHECKSUM_END: &[u8] = b"\"\n}\n";
const CHECKSUM_DIGITS: usize = 64;

/// How a data set is divided into folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Partition {
    /// By the day of the commit, in UTC.
    #[default]
    Day,
    /// By its month.
    Month,
    /// Not at all.
    None,
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Partition::Day => "day",
            Partition::Month => "month",
            Partition::None => "none",
        })
    }
}

/// A run's manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportManifest {
    pub(super) format: u32,
    /// The number of the run; runs are numbered from 1.
    pub(super) run: u64,
    /// The SHA-256 of the manifest of the run before; `None`: the first run, or format 1.
    #[serde(default)]
    pub(super) previous: Option<String>,
    pub(super) partition: Partition,
    /// The chosen tables; none: all.
    pub(super) tables: Vec<[String; 2]>,
    /// Names the policy by which all runs were masked; `None`: they weren't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exits: Option<String>,
    /// The transactions of all runs.
    pub(super) gtids: String,
    /// Transactions without GTID: by log, where the last one begins that was exported.
    pub(super) logs: BTreeMap<String, u64>,
    /// Transactions and row changes of this run.
    pub(super) transactions: u64,
    pub(super) rows: u64,
    /// The data sets of this run's tables: database and table, by the folder, whose name may not tell them.
    #[serde(default)]
    pub(super) data_sets: BTreeMap<String, [String; 2]>,
    /// The files of this run.
    pub(super) files: Vec<WrittenFile>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenFile {
    /// Path of the file in the folder.
    pub(super) path: DataPath,
    /// The file's name before it got there.
    pub(super) staged: StagedName,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

impl ExportManifest {
    /// A manifest as it is stored; `place`: where it will stand.
    pub(super) fn encode(&self, place: &str) -> Result<Vec<u8>> {
        with_checksum(self).map_err(|error| Error::Target(format!("{place}: {error}")))
    }

    /// The manifest that these bytes are; `place`: where they stand. One with a checksum has the right one.
    pub(super) fn decode(bytes: &[u8], place: &str) -> Result<Self> {
        let bad = |what: String| Error::Target(format!("{place}: {what}"));
        let json = |error: serde_json::Error| bad(error.to_string());
        let checked = checked(bytes).map_err(bad)?;
        let value: serde_json::Value =
            serde_json::from_slice(checked.as_deref().unwrap_or(bytes)).map_err(json)?;
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        let expected = if checked.is_some() { FORMAT } else { FORMAT_UNCHECKED };
        if format == Some(FORMAT.into()) && checked.is_none() {
            return Err(bad(
                "a manifest without its checksum, expected \"sha256\" in the last line".to_owned()
            ));
        }
        if format != Some(expected.into()) {
            let found = format.map_or_else(|| "none".to_owned(), |format| format.to_string());
            return Err(bad(format!("the format of a manifest: found {found}, expected {expected}")));
        }
        serde_json::from_value(value).map_err(json)
    }

    /// Whether it is of a version that wrote no checksums.
    pub(super) fn is_unchecked(&self) -> bool {
        self.format == FORMAT_UNCHECKED
    }
}

/// A JSON object with its checksum in the last line.
pub(super) fn with_checksum(object: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let text = serde_json::to_vec_pretty(object)?;
    let mut bytes = [text.strip_suffix(b"\n}").unwrap_or(&text), b",\n"].concat();
    let hash = sha256(&bytes);
    bytes.extend([CHECKSUM_BEGIN, hash.as_bytes(), CHECKSUM_END].concat());
    Ok(bytes)
}

/// The JSON object without its checksum, which was compared; `None`: it has none.
pub(super) fn checked(bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let digits = bytes.strip_suffix(CHECKSUM_END).and_then(|rest| rest.split_last_chunk::<CHECKSUM_DIGITS>());
    let Some((rest, digits)) = digits else { return Ok(None) };
    let Some(lines) = rest.strip_suffix(CHECKSUM_BEGIN) else { return Ok(None) };
    let found = sha256(lines);
    let expected = String::from_utf8_lossy(digits);
    if found != expected {
        return Err(format!(
            "the SHA-256 of its lines is {found}, expected {expected}, as its last line says"
        ));
    }
    let body = lines.strip_suffix(b",\n").unwrap_or(lines);
    Ok(Some([body, b"\n}"].concat()))
}
