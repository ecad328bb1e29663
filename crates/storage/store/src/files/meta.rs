//! The file we keep beside mysqld's: the version of our own format, and which server's log the store holds.
//!
//! ```text
//! binlogz-store 1                                     the format's version
//! source 1410447f-e54d-11f1-848d-02fc00000001         server_uuid of the server whose log this is, or -
//! lineage 1                                           which of that server's logs: RESET begins a new one
//! ```
//!
//! The file names and offsets of a log mean something only together with these: a store is never opened as
//! that of another server or another lineage.

use binlogz_binlog::gtid::ServerUuid;

use crate::error::{Error, Result};
use crate::files::names::{LogNames, META_SUFFIX};
use crate::storage::{self, Storage};

/// The version of the files that we add. We refuse later versions rather than guess.
pub(crate) const FORMAT_VERSION: u32 = 1;

const META_SIZE_MAX: u64 = 4096;
const TITLE: &str = "binlogz-store";

/// The server a log belongs to, and which of that server's logs it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lineage {
    /// The server whose coordinates the files have; `None` if the coordinates are the store's own.
    pub source: Option<ServerUuid>,
    /// Counts the logs of that server: RESET BINARY LOGS begins a new one.
    pub number: u64,
}

impl Default for Lineage {
    fn default() -> Self {
        Lineage { source: None, number: 1 }
    }
}

/// Whether a line is a name, a space and a value.
pub(crate) fn is_member(line: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|letter| letter.is_ascii_lowercase() || letter == b'-')
    };
    line.split_once(' ').is_some_and(|(name, value)| is_name(name) && !value.is_empty())
}

impl Lineage {
    fn encode(&self) -> String {
        let source = self.source.map_or_else(|| "-".to_owned(), |source| source.to_string());
        format!("{TITLE} {FORMAT_VERSION}\nsource {source}\nlineage {}\n", self.number)
    }

    fn decode(text: &str) -> Option<Result<Self, u32>> {
        let mut lines = text.lines();
        let version: u32 = lines.next()?.strip_prefix(TITLE)?.trim().parse().ok()?;
        if version != FORMAT_VERSION {
            return Some(Err(version));
        }
        let source = match lines.next()?.strip_prefix("source ")? {
            "-" => None,
            uuid => Some(uuid.parse().ok()?),
        };
        let number = lines.next()?.strip_prefix("lineage ")?.parse().ok()?;
        // Lines that another release may have added are passed over.
        lines.all(is_member).then_some(Ok(Lineage { source, number }))
    }
}

/// The store in a directory, if there is one: the base of its files' names, and its lineage.
pub(crate) fn find(storage: &dyn Storage) -> Result<Option<(String, Lineage)>> {
    let present = storage.list().map_err(Error::io("list", "the directory"))?;
    let mut found = present.iter().filter_map(|name| Some((name, name.strip_suffix(META_SUFFIX)?)));
    let Some((name, base)) = found.next() else { return Ok(None) };
    if let Some((other, _)) = found.next() {
        return Err(Error::unfit(other, format!("a second store beside {name}"), "one store in a directory"));
    }
    let file = storage.open(name, false).map_err(Error::io("open", name))?;
    let bytes = storage::read_all(file.as_ref(), META_SIZE_MAX).map_err(Error::io("read", name))?;
    match Lineage::decode(&String::from_utf8_lossy(&bytes)) {
        Some(Ok(lineage)) => Ok(Some((base.to_owned(), lineage))),
        Some(Err(version)) => Err(Error::unfit(name, format!("format version {version}"), "version 1")),
        None => Err(Error::unfit(name, "bytes that don't describe a store", "binlogz-store VERSION")),
    }
}

/// Checks that the store is of this lineage, or makes it so if it is new.
pub(crate) fn check(
    storage: &dyn Storage,
    names: &LogNames,
    present: &[String],
    wanted: Lineage,
) -> Result<()> {
    let name = names.meta();
    if !present.contains(&name) {
        return storage::replace(storage, &name, wanted.encode().as_bytes())
            .map_err(Error::io("write", &name));
    }
    let file = storage.open(&name, false).map_err(Error::io("open", &name))?;
    let bytes = storage::read_all(file.as_ref(), META_SIZE_MAX).map_err(Error::io("read", &name))?;
    let text = String::from_utf8_lossy(&bytes);
    match Lineage::decode(&text) {
        Some(Ok(found)) if found == wanted => Ok(()),
        Some(Ok(found)) => {
            let source = found.source.map_or_else(|| "no server".to_owned(), |source| source.to_string());
            let found = format!("the store holds the log of {source}, lineage {}", found.number);
            Err(Error::unfit(&name, found, "the source and lineage asked for"))
        }
        Some(Err(version)) => Err(Error::unfit(&name, format!("format version {version}"), "version 1")),
        None => Err(Error::unfit(&name, "bytes that don't describe a store", "binlogz-store VERSION")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::MemoryStorage;

    #[test]
    fn a_store_is_never_opened_as_another() {
        let storage = MemoryStorage::new();
        let names = LogNames::new("binlog").unwrap();
        let check = |wanted| check(&storage, &names, &storage.list().unwrap(), wanted);
        let source = "1410447f-e54d-11f1-848d-02fc00000001".parse().unwrap();
        let first = Lineage { source: Some(source), number: 1 };
        assert_eq!(find(&storage).unwrap(), None);
        check(first).unwrap();
        check(first).unwrap();
        assert_eq!(find(&storage).unwrap(), Some(("binlog".into(), first)));
        let error = check(Lineage { number: 2, ..first }).unwrap_err().to_string();
        assert_eq!(
            error,
            "binlog.store: the store holds the log of 1410447f-e54d-11f1-848d-02fc00000001, lineage 1, \
             expected the source and lineage asked for"
        );
        assert!(check(Lineage::default()).is_err());
        for (text, expected) in [
            ("binlogz-store 2\nwhatever\n", "binlog.store: format version 2, expected version 1"),
            ("", "binlog.store: bytes that don't describe a store, expected binlogz-store VERSION"),
            (
                "binlogz-store 1\nsource -\nlineage 1\nmore",
                "binlog.store: bytes that don't describe a store, expected binlogz-store VERSION",
            ),
        ] {
            storage::replace(&storage, "binlog.store", text.as_bytes()).unwrap();
            assert_eq!(check(first).unwrap_err().to_string(), expected);
        }
    }
}
