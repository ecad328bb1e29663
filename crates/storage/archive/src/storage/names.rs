//! Names of logs and objects, as manifests, parts and indexes give them. Anyone who may write an archive chooses them,
//! and they become names of files: of objects that are read, deleted and copied, and of logs that are restored. So each
//! is checked where it is parsed, and a checked one is the name of a file in one folder, never a way out of it.

use std::borrow::Borrow;
use std::ffi::OsStr;
use std::fmt;
use std::ops::Deref;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::SEGMENT;
use crate::error::{Error, Result};

/// The longest name in bytes: file systems take no longer one.
const NAME_SIZE_MAX: usize = 255;
/// Characters of a refused name that an error shows.
const SHOWN_MAX: usize = 60;
/// The end of every object's name, which parts it from the manifest's copy, temporary files and anything else in the folder.
const OBJECT_SUFFIX: &str = ".binlogz";
/// Hexadecimal digits of a SHA-256 in a segment's name.
const DIGEST_DIGITS: usize = 32;

/// Whether this is the name of a file, in whatever folder it is put.
pub(super) fn is_plain(name: &str) -> bool {
    let is_special = |char: char| char == '/' || char == '\\' || char.is_control();
    !name.is_empty()
        && name.len() <= NAME_SIZE_MAX
        && name != "."
        && name != ".."
        && !name.chars().any(is_special)
}

fn refused(what: &str, name: &str, expected: &str) -> Error {
    // Escaped: a terminal would obey control characters.
    let mut shown: String = name.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect();
    if name.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    Error::unexpected(what, format_args!("\"{shown}\" ({} bytes)", name.len()), expected)
}

macro_rules! checked_name {
    ($name:ident) => {
        impl $name {
            /// The name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(name: String) -> Result<Self> {
                $name::new(name)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<Path> for $name {
            fn as_ref(&self) -> &Path {
                Path::new(&self.0)
            }
        }

        impl AsRef<OsStr> for $name {
            fn as_ref(&self) -> &OsStr {
                OsStr::new(&self.0)
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        impl PartialEq<String> for $name {
            fn eq(&self, other: &String) -> bool {
                self.0 == *other
            }
        }

        impl PartialEq<$name> for String {
            fn eq(&self, other: &$name) -> bool {
                *self == other.0
            }
        }

        impl PartialEq<$name> for str {
            fn eq(&self, other: &$name) -> bool {
                *self == other.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

/// The file name of a log: not empty, at most 255 bytes, without folders and control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LogName(String);

/// The name of an object in an archive's folder of objects: as a log's name, and it ends with `.binlogz`, as all objects do that
/// hold logs or parts of the manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectName(String);

checked_name!(LogName);
checked_name!(ObjectName);

impl LogName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// One that could be anything but a file in the folder it is put into.
    pub fn new(name: impl Into<String>) -> Result<LogName> {
        let name = name.into();
        match is_plain(&name) {
            true => Ok(LogName(name)),
            false => {
                Err(refused("name of a log", &name, "a file's name, without folders and control characters"))
            }
        }
    }
}

impl ObjectName {
    /// The name of a segment, which tells the begin of its SHA-256.
    pub(crate) fn of_segment(sha256: &str) -> Result<ObjectName> {
        ObjectName::new(format!(
            "{SEGMENT}{}{OBJECT_SUFFIX}",
            sha256.get(..DIGEST_DIGITS).unwrap_or_default()
        ))
    }

    /// The name of its copy: `NAME-copy.binlogz`.
    pub(crate) fn copy(&self) -> ObjectName {
        let stem = self.0.strip_suffix(OBJECT_SUFFIX).unwrap_or(&self.0);
        ObjectName(format!("{stem}-copy{OBJECT_SUFFIX}"))
    }

    /// Checks a name.
    ///
    /// # Errors
    ///
    /// One that could be anything but an object in the archive's folder of objects.
    pub fn new(name: impl Into<String>) -> Result<ObjectName> {
        let name = name.into();
        // Temporary files begin with a dot.
        match is_plain(&name)
            && name.len() > OBJECT_SUFFIX.len()
            && name.ends_with(OBJECT_SUFFIX)
            && !name.starts_with('.')
        {
            true => Ok(ObjectName(name)),
            false => Err(refused(
                "name of an object",
                &name,
                "a file's name, without folders, that ends with .binlogz",
            )),
        }
    }
}

/// Whether an object's name tells this SHA-256; `None`: it tells none, as those of archives of version 1.
pub(crate) fn name_tells(object: &str, sha256: &str) -> Option<bool> {
    let told = object.strip_prefix(SEGMENT)?.strip_suffix(OBJECT_SUFFIX)?;
    (told.len() == DIGEST_DIGITS).then(|| sha256.starts_with(told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_a_file_in_its_folder_or_refused() {
        for name in ["binlog.000001", "a b", "Ü.000001", "..a", "a..", &"a".repeat(255)] {
            assert_eq!(LogName::new(name).unwrap(), name);
            // A dot would hide it, and the end may make it too long.
            let object = format!("{name}.binlogz");
            assert_eq!(
                ObjectName::new(&*object).is_ok(),
                !name.starts_with('.') && name.len() < 255,
                "{object}"
            );
        }
        for name in [
            "",
            ".",
            "..",
            "/",
            "a/b",
            "../a",
            "/etc/a",
            "a\0",
            "a\nb",
            "a\u{85}",
            "a\\b",
            "\u{1b}[2J",
            &"a".repeat(256),
        ] {
            assert!(LogName::new(name).is_err(), "{name:?}");
            assert!(ObjectName::new(format!("{name}/x.binlogz")).is_err(), "{name:?}");
        }
        for name in [
            "manifest-copy.json",
            "manifest.json",
            "segment-1",
            ".binlogz",
            ".binlogz-x.binlogz",
            "a/b.binlogz",
        ] {
            assert!(ObjectName::new(name).is_err(), "{name:?}");
        }
        let error = LogName::new("a\u{1b}/".repeat(100)).unwrap_err().to_string();
        assert!(error.contains("\\u{1b}") && error.len() < 300 && !error.contains('\u{1b}'), "{error}");
    }
}
