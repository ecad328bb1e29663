//! Names in the target: folders of data sets, paths of files. The names in a manifest are parsed here, into types that
//! can't lead out of the target.
//!
//! ```text
//! shop/orders/day=2026-11-24/00000042-0.parquet     a data set has the folders DATABASE/TABLE
//! mix/čaj%20茶/00000042-0.parquet                    what is no letter, digit, $, - or _ is %XX, for each byte of UTF-8
//! mix/%EF%BC%9A%EF…~9f86d081884c7d65…/…              a name that would be too long: its beginning, ~, a hash of the name
//! _transactions/day=2026-11-24/00000042-0.parquet
//! ```
//!
//! No escaped name has `~`, so a short name is never taken for a long one. Manifests tell database and table of each folder.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::TRANSACTIONS;
use super::digest::sha256;

/// The longest name of a file or folder in bytes, in Linux's file systems.
const NAME_MAX: usize = 255;
/// The longest name of a data set's folder: two of them and the rest of a path also fit in an object's name (1,024 bytes in S3).
const FOLDER_MAX: usize = 160;
/// How a longer name is shortened: bytes of its beginning, and digits of the hash (128 bits: no two names have the same).
const BEGINNING_MAX: usize = 100;
const HASH_DIGITS: usize = 32;
/// How names of files end.
const EXTENSION: &str = ".parquet";

/// Where a file of a run lies in the target: a file of a data set, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct DataPath(String);

/// The name of a file until it gets its place: digits, and the extension.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct StagedName(String);

/// A name that no export writes.
#[derive(Debug, thiserror::Error)]
#[error("{name:?} is no file of an export: {why}")]
pub(super) struct NameError {
    name: String,
    why: String,
}

impl DataPath {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder of its data set: `shop/orders`, or `_transactions`.
    pub(super) fn data_set(&self) -> &str {
        let depth = if self.0.starts_with(TRANSACTIONS) { 0 } else { 1 };
        let end = self.0.match_indices('/').nth(depth).map_or(self.0.len(), |(end, _)| end);
        self.0.get(..end).unwrap_or(&self.0)
    }

    /// Whether it is one of those that begin with this mark of a run, `00000042` for instance.
    pub(super) fn is_of(&self, mark: &str) -> bool {
        let name = self.0.rsplit_once('/').map_or(self.0.as_str(), |(_, name)| name);
        name.strip_prefix(mark).is_some_and(|rest| rest.starts_with('-'))
    }
}

impl TryFrom<String> for DataPath {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        match data_path_fault(&name) {
            None => Ok(DataPath(name)),
            Some(why) => Err(NameError { name, why }),
        }
    }
}

impl From<DataPath> for String {
    fn from(path: DataPath) -> Self {
        path.0
    }
}

impl fmt::Display for DataPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error in the path of a data set's file; `None`: the path is valid.
fn data_path_fault(path: &str) -> Option<String> {
    let names: Vec<_> = path.split('/').collect();
    let is_of_transactions = names.first() == Some(&TRANSACTIONS);
    let (least, most) = if is_of_transactions { (2, 3) } else { (3, 4) };
    if !(least..=most).contains(&names.len()) {
        return Some(format!("found {} names, expected {least} or {most}", names.len()));
    }
    for (place, name) in names.iter().enumerate() {
        let is_hidden = name.starts_with(['.', '_']) && !(place == 0 && is_of_transactions);
        if name.is_empty() || is_hidden {
            return Some(format!("{name:?} in it, expected a name that readers see"));
        }
        if let Some(other) = name.chars().find(|c| !c.is_alphanumeric() && !"$_-%~=.+".contains(*c)) {
            return Some(format!("{other:?} in it, expected letters, digits and $ _ - % ~ = . +"));
        }
        if name.len() > NAME_MAX {
            return Some(format!("a name of {} bytes in it, expected at most {NAME_MAX}", name.len()));
        }
    }
    let is_file = names.last().is_some_and(|name| name.ends_with(EXTENSION));
    (!is_file).then(|| format!("expected {EXTENSION} at its end"))
}

impl StagedName {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for StagedName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        let digits = name.strip_suffix(EXTENSION).unwrap_or_default();
        if !digits.is_empty() && digits.len() < NAME_MAX && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(StagedName(name));
        }
        Err(NameError { name, why: format!("expected digits and {EXTENSION}") })
    }
}

impl From<StagedName> for String {
    fn from(name: StagedName) -> Self {
        name.0
    }
}

/// The folder of a table's data set in the target.
pub(super) fn data_set(database: &str, table: &str) -> String {
    format!("{}/{}", folder_name(database), folder_name(table))
}

/// A name as a folder: letters, digits, `_`, `-` and `$` stay, other characters are `%2F` and so on. `_` at the begin would
/// hide it.
fn folder_name(name: &str) -> String {
    let mut folder = String::new();
    let mut beginning = 0;
    for (place, c) in name.char_indices() {
        if c.is_alphanumeric() || c == '$' || (place > 0 && matches!(c, '_' | '-')) {
            folder.push(c);
        } else {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| folder.push_str(&format!("%{byte:02X}")));
        }
        if folder.len() <= BEGINNING_MAX {
            beginning = folder.len();
        }
    }
    if folder.len() > FOLDER_MAX {
        folder.truncate(beginning);
        folder.push('~');
        folder.push_str(sha256(name.as_bytes()).get(..HASH_DIGITS).unwrap_or_default());
    }
    folder
}

/// The name that a folder has, if its name was not too long: of manifests that don't tell it.
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
