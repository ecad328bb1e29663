//! The names of a store's files: `BASE.000001`, … and the index beside them, as mysqld names them.

use std::fmt;

use crate::error::{Error, Result};

/// A file of a store, by the number in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNumber(pub u64);

impl FileNumber {
    /// The file after this one.
    #[must_use]
    pub fn next(self) -> FileNumber {
        FileNumber(self.0 + 1)
    }
}

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}", self.0)
    }
}

/// The highest number that mysqld gives a file (`MAX_LOG_UNIQUE_FN_EXT`).
pub(crate) const FILE_NUMBER_MAX: u64 = 0x7fff_ffff;

/// Makes and reads the names of one store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogNames {
    base: String,
}

impl LogNames {
    /// Names that begin with `base`, as `log_bin=base` gives them.
    ///
    /// # Errors
    ///
    /// A base that is not a plain file name.
    pub fn new(base: &str) -> Result<Self> {
        let plain = !base.is_empty() && !base.contains(['/', '\0', '\n']) && !base.starts_with('.');
        if plain && base.len() <= BASE_SIZE_MAX {
            return Ok(LogNames { base: base.to_owned() });
        }
        Err(Error::Misuse { what: "base name", found: format!("{base:?}"), expected: "a plain file name" })
    }

    /// The name of a file.
    pub fn log(&self, number: FileNumber) -> String {
        format!("{}.{number}", self.base)
    }

    /// The number of a file, if the name is that of one of this store's log files.
    pub fn number(&self, name: &str) -> Option<FileNumber> {
        let digits = name.strip_prefix(self.base.as_str())?.strip_prefix('.')?;
        if digits.len() < 6 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number = FileNumber(digits.parse().ok()?);
        (number.0 <= FILE_NUMBER_MAX && self.log(number) == name).then_some(number)
    }

    /// The name of the index.
    pub fn index(&self) -> String {
        format!("{}.index", self.base)
    }

    /// Whether a file belongs to the log: one of its files, a copy of one made by recovery or repair, the
    /// index, or one of the files we keep beside it.
    pub fn is_own(&self, name: &str) -> bool {
        let beside = [self.index(), self.meta(), self.durable()];
        beside.iter().any(|own| own == name)
            || self.number(name).is_some()
            || self.log_of_copy(name).is_some()
    }

    /// The log file that this is a copy of, or has the sums of, if any.
    pub(crate) fn log_of_copy<'a>(&self, name: &'a str) -> Option<&'a str> {
        match name.strip_prefix(SUMS) {
            Some(log) => self.number(log).map(|_| log),
            None => self.log_of_copy_as(name, &[CUT, TORN, DAMAGED]),
        }
    }

    /// The log file that this is a copy of, if it is a copy of one of these kinds.
    pub(crate) fn log_of_copy_as<'a>(&self, name: &'a str, kinds: &[&str]) -> Option<&'a str> {
        let (log, _) = kinds.iter().find_map(|kind| name.split_once(kind))?;
        self.number(log).map(|_| log)
    }

    /// The name of the file that records how far the log was durable.
    pub(crate) fn durable(&self) -> String {
        format!("{}.durable", self.base)
    }

    /// The name of the file we keep beside mysqld's files.
    pub(crate) fn meta(&self) -> String {
        format!("{}{META_SUFFIX}", self.base)
    }
}

/// Between a log's name and an offset, in the names of copies (see [`super::copies`]).
pub(crate) const CUT: &str = ".cut-";
pub(crate) const TORN: &str = ".torn-";
pub(crate) const DAMAGED: &str = ".damaged-";

/// Before a log's name, in the name of the file with its sums (see [`super::sums`]). In front, so that `BASE.0*` names logs alone.
pub(crate) const SUMS: &str = "sums-";

/// The suffix, after the base, of the file we keep beside mysqld's files.
pub(crate) const META_SUFFIX: &str = ".store";

/// Leaves room for the number in the 255 bytes of a file name.
const BASE_SIZE_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_servers() {
        let names = LogNames::new("binlog").unwrap();
        assert_eq!(names.log(FileNumber(1)), "binlog.000001");
        assert_eq!(names.log(FileNumber(1_234_567)), "binlog.1234567");
        for number in [1, 999_999, 1_000_000, FILE_NUMBER_MAX] {
            assert_eq!(names.number(&names.log(FileNumber(number))), Some(FileNumber(number)));
        }
        for other in
            ["binlog.index", "binlog.1", "binlog.0000001", "binlog.00000a", "relay.000001", "binlog000001"]
        {
            assert_eq!(names.number(other), None, "{other}");
        }
        for base in ["", ".", "a/b", "../x", "a\nb"] {
            assert!(LogNames::new(base).is_err(), "{base:?}");
        }
    }
}
