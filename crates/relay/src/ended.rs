//! An old log of which nothing is on disk any more: another one goes on where it ended, and retention has removed it whole.
//! What it was stays known: replicas are still told what they may have of it, and its names are nobody else's.
//!
//! ```text
//! relay.ended
//! binlogz-relay ended 1
//! log BASE
//! source 1410447f-e54d-11f1-848d-02fc00000001
//! end 12 4711                which file was the last one, and where it ended
//! gtids SET                  all that it held, or came before it
//! ```
//!
//! Written, synced, before the first of the files goes that are left: what a crash leaves of them is removed at the next start.

use std::sync::Arc;

use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_store::{FileNumber, LogNames, Position, Storage, storage};

use crate::error::{Error, Result};
use crate::lines::small_file;

pub(crate) const NAME: &str = "relay.ended";
const TITLE: &str = "binlogz-relay ended 1";
/// A GTID set is most of it.
const SIZE_MAX: u64 = 256 << 20;

/// What is left of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) base: String,
    pub(crate) source: ServerUuid,
    pub(crate) end: Position,
    pub(crate) gtids: GtidSet,
}

impl Ended {
    /// What was kept there, if the log there has ended.
    pub(crate) fn read(storage: &Arc<dyn Storage>) -> Result<Option<Ended>> {
        let Some(text) = small_file(storage.as_ref(), NAME, SIZE_MAX)? else { return Ok(None) };
        let unfit =
            || Error::Lineage(format!("{NAME}: bytes that don't say how a log ended, expected {TITLE:?}"));
        Ended::decode(&text).map(Some).ok_or_else(unfit)
    }

    /// Keeps it for good.
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
        let Ended { base, source, end, gtids } = self;
        let gtids = gtids.to_string().replace('\n', "");
        format!("{TITLE}\nlog {base}\nsource {source}\nend {} {}\ngtids {gtids}\n", end.file.0, end.offset)
    }

    fn decode(text: &str) -> Option<Ended> {
        let text = text.strip_suffix('\n')?;
        let mut lines = text.split('\n');
        if lines.next()? != TITLE {
            return None;
        }
        let base = lines.next()?.strip_prefix("log ")?.to_owned();
        let source = lines.next()?.strip_prefix("source ")?.parse().ok()?;
        let (file, offset) = lines.next()?.strip_prefix("end ")?.split_once(' ')?;
        let end = Position { file: FileNumber(file.parse().ok()?), offset: offset.parse().ok()? };
        let gtids = lines.next()?.strip_prefix("gtids ")?.parse().ok()?;
        lines.next().is_none().then_some(Ended { base, source, end, gtids })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_store::MemoryStorage;

    use super::*;

    #[test]
    fn what_is_kept_comes_back_and_nothing_else_is_taken_for_it() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        assert_eq!(Ended::read(&storage).unwrap(), None);
        let uuid = "1410447f-e54d-11f1-848d-02fc00000001";
        for gtids in ["", &format!("{uuid}:1-5:tag:7")] {
            let ended = Ended {
                base: "relay".into(),
                source: uuid.parse().unwrap(),
                end: Position { file: FileNumber(12), offset: 4711 },
                gtids: gtids.parse().unwrap(),
            };
            ended.write(&storage).unwrap();
            assert_eq!(Ended::read(&storage).unwrap(), Some(ended.clone()));
            let text = ended.encode();
            for end in 0..text.len() {
                assert_eq!(Ended::decode(text.get(..end).unwrap()), None, "cut at {end}");
            }
            assert_eq!(Ended::decode(&format!("{text}more\n")), None);
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
        let ended = Ended {
            base: "relay".into(),
            source: "1410447f-e54d-11f1-848d-02fc00000001".parse().unwrap(),
            end: Position { file: FileNumber(1), offset: 4 },
            gtids: GtidSet::new(),
        };
        assert_eq!(ended.remove_files(&storage).unwrap(), ["relay.000001"]);
        let mut left = storage.list().unwrap();
        left.sort();
        assert_eq!(left, ["relay.forms", "relay.uuid"]);
    }
}
