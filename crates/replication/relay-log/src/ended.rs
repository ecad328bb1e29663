//! An old log with no files left on disk: another log continues where it ended, and retention removed it completely.
//! We keep a record of it: replicas may still have its transactions, and no other log may use its names.
//!
//! ```text
//! relay.ended
//! binlogz-relay ended 1
//! log BASE
//! source 1410447f-e54d-11f1-848d-02fc00000001
//! end 12 4711                which file was the last one, and where it ended
//! gtids SET                  all that it held, or came before it
//! next named                 since 0.3, if it ended with a rotate event: replicas know the name of a file after the last one
//! ```
//!
//! Written and synced before the first of the remaining files is removed. If a crash leaves any, the next start
//! removes them.

use std::sync::Arc;

use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_store::{FileNumber, LogNames, Position, Storage, storage};

use crate::error::{Error, Result};
use crate::small_files::{check_version, is_member, small_file};

pub(crate) const NAME: &str = "relay.ended";
const TITLE: &str = "binlogz-relay ended 1";
const NEXT_NAMED: &str = "next named";
/// A GTID set is most of it.
const SIZE_MAX: u64 = 256 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndedLineage {
    pub(crate) base: String,
    pub(crate) source: ServerUuid,
    pub(crate) end: Position,
    pub(crate) gtids: GtidSet,
    /// Whether its last event named another file.
    pub(crate) is_next_named: bool,
}

impl EndedLineage {
    /// The record of the log in this directory, if it has ended.
    pub(crate) fn read(storage: &Arc<dyn Storage>) -> Result<Option<EndedLineage>> {
        let Some(text) = small_file(storage.as_ref(), NAME, SIZE_MAX)? else { return Ok(None) };
        check_version(NAME, text.lines().next().unwrap_or_default())?;
        let unfit = || Error::damaged(NAME, &text, format!("{TITLE:?} and how a log ended"));
        EndedLineage::decode(&text).map(Some).ok_or_else(unfit)
    }

    pub(crate) fn write(&self, storage: &Arc<dyn Storage>) -> Result<()> {
        storage::replace(storage.as_ref(), NAME, self.encode().as_bytes())
            .map_err(Error::io(format!("write {NAME}")))
    }

    /// Removes the files of the log.
    pub(crate) fn remove_files(&self, storage: &Arc<dyn Storage>) -> Result<Vec<String>> {
        let failed = |name: &str| Error::io(format!("remove {name}"));
        let names = LogNames::new(&self.base)?;
        let of_log = |name: &str| names.is_own(name.strip_suffix(".places").unwrap_or(name));
        let mut removed = Vec::new();
        for name in storage.list().map_err(failed("the log"))? {
            if of_log(&name) {
                storage.remove(&name).map_err(failed(&name))?;
                removed.push(name);
            }
        }
        storage.sync_names().map_err(failed("the log"))?;
        removed.retain(|name| names.number(name).is_some());
        Ok(removed)
    }

    fn encode(&self) -> String {
        let EndedLineage { base, source, end, gtids, is_next_named } = self;
        let gtids = gtids.to_string().replace('\n', "");
        let next = is_next_named.then(|| format!("{NEXT_NAMED}\n")).unwrap_or_default();
        let Position { file, offset } = end;
        format!("{TITLE}\nlog {base}\nsource {source}\nend {} {offset}\ngtids {gtids}\n{next}", file.0)
    }

    fn decode(text: &str) -> Option<EndedLineage> {
        let text = text.strip_suffix('\n')?;
        let mut lines = text.split('\n');
        if lines.next()? != TITLE {
            return None;
        }
        let base = lines.next()?.strip_prefix("log ")?.to_owned();
        // It becomes part of names of files.
        LogNames::new(&base).ok()?;
        let source = lines.next()?.strip_prefix("source ")?.parse().ok()?;
        let (file, offset) = lines.next()?.strip_prefix("end ")?.split_once(' ')?;
        let end = Position { file: FileNumber(file.parse().ok()?), offset: offset.parse().ok()? };
        let gtids = lines.next()?.strip_prefix("gtids ")?.parse().ok()?;
        let mut is_next_named = false;
        for line in lines {
            match line == NEXT_NAMED {
                true => is_next_named = true,
                false if is_member(line) => {}
                false => return None,
            }
        }
        Some(EndedLineage { base, source, end, gtids, is_next_named })
    }
}

#[cfg(test)]
mod tests {
    use binlogz_store::MemoryStorage;

    use super::*;

    #[test]
    fn what_is_kept_comes_back_and_nothing_else_is_taken_for_it() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        assert_eq!(EndedLineage::read(&storage).unwrap(), None);
        let uuid = "1410447f-e54d-11f1-848d-02fc00000001";
        for (gtids, is_next_named) in [("", false), (&format!("{uuid}:1-5:tag:7"), true)] {
            let ended = EndedLineage {
                base: "relay".into(),
                source: uuid.parse().unwrap(),
                end: Position { file: FileNumber(12), offset: 4711 },
                gtids: gtids.parse().unwrap(),
                is_next_named,
            };
            ended.write(&storage).unwrap();
            assert_eq!(EndedLineage::read(&storage).unwrap(), Some(ended.clone()));
            let text = ended.encode();
            // A record of before 0.3 ends there.
            let without_next = text.len() - if is_next_named { NEXT_NAMED.len() + 1 } else { 0 };
            for end in (0..text.len()).filter(|end| *end != without_next) {
                assert_eq!(EndedLineage::decode(text.get(..end).unwrap()), None, "cut at {end}");
            }
            assert_eq!(EndedLineage::decode(&format!("{text}more\n")), None);
            // Members that another release adds are passed over; another version is not.
            assert_eq!(EndedLineage::decode(&format!("{text}later 1 2\n")), Some(ended));
            storage::replace(storage.as_ref(), NAME, b"binlogz-relay ended 2\nmore\n").unwrap();
            let error = EndedLineage::read(&storage).unwrap_err().to_string();
            assert!(
                error.contains("relay.ended in the relay's directory: format version 2, expected"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_logs_files_go_and_the_relays_own_stay() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let all = [
            "relay.000001",
            "relay.000001.places",
            "relay.index",
            "relay.store",
            "relay.uuid",
            "relay.forms",
        ];
        for name in all {
            storage.open(name, true).unwrap();
        }
        let ended = EndedLineage {
            base: "relay".into(),
            source: "1410447f-e54d-11f1-848d-02fc00000001".parse().unwrap(),
            end: Position { file: FileNumber(1), offset: 4 },
            gtids: GtidSet::new(),
            is_next_named: false,
        };
        assert_eq!(ended.remove_files(&storage).unwrap(), ["relay.000001"]);
        let mut left = storage.list().unwrap();
        left.sort();
        assert_eq!(left, ["relay.forms", "relay.uuid"]);
    }
}
