//! Which log each replica was served last: a server's log that began anew has the GTIDs of the one before for other
//! transactions, so that a set of GTIDs alone does not tell what a replica has.
//!
//! ```text
//! relay.replicas      LINEAGE UUID        a line for each server uuid, in the order in which they came last
//! ```
//!
//! Replicas choose their uuids: where there are too many, the one that did not come for longest goes.
//!
//! A line may be removed while the relay runs, of a replica that was built anew: before a replica is refused, and before a
//! line is written, the file is read again.

use std::sync::{Arc, Mutex};

use binlogz_binlog::gtid::ServerUuid;
use binlogz_store::Storage;

use crate::error::Result;
use crate::lines::LinesFile;
use crate::recent::Recent;
use crate::relay::lock;

/// Its name in the relay's directory.
pub(crate) const NAME: &str = "relay.replicas";
/// More replicas than are remembered: each has chosen its own uuid.
const REPLICAS_MAX: usize = 10_000;

/// Who was served what.
#[derive(Debug)]
pub(crate) struct Served {
    file: LinesFile,
    /// As it was read or written last.
    lineages: Mutex<Recent<ServerUuid, u64>>,
}

impl Served {
    /// What is kept there.
    pub(crate) fn open(storage: &Arc<dyn Storage>) -> Result<Self> {
        let file = LinesFile { storage: Arc::clone(storage), name: NAME, expected: "LINEAGE UUID" };
        let lineages = Mutex::new(read(&file)?);
        Ok(Served { file, lineages })
    }

    /// The number of the log that a replica was served last.
    pub(crate) fn last(&self, replica: ServerUuid) -> Option<u64> {
        lock(&self.lineages).get(&replica).copied()
    }

    /// The same, as the file has it now.
    pub(crate) fn last_in_file(&self, replica: ServerUuid) -> Result<Option<u64>> {
        let mut lineages = lock(&self.lineages);
        *lineages = self.read_again(&lineages)?;
        Ok(lineages.get(&replica).copied())
    }

    /// It is served this one now.
    pub(crate) fn note(&self, replica: ServerUuid, lineage: u64) -> Result<()> {
        let mut lineages = lock(&self.lineages);
        if lineages.touch(&replica) == Some(&lineage) {
            return Ok(());
        }
        let mut noted = self.read_again(&lineages)?;
        noted.put(replica, lineage);
        noted.shrink(REPLICAS_MAX);
        let lines = noted.in_order().into_iter().map(|(replica, lineage)| format!("{lineage} {replica}"));
        self.file.write(lines)?;
        *lineages = noted;
        Ok(())
    }

    /// What the file has now, in the order in which this process saw them come: the file's order is that of when it was
    /// written last.
    fn read_again(&self, known: &Recent<ServerUuid, u64>) -> Result<Recent<ServerUuid, u64>> {
        let mut noted = read(&self.file)?;
        for (replica, _) in known.in_order() {
            noted.touch(replica);
        }
        Ok(noted)
    }
}

fn read(file: &LinesFile) -> Result<Recent<ServerUuid, u64>> {
    let mut lineages = Recent::new();
    file.read(|lineage, replica| {
        lineages.put(replica.parse().ok()?, lineage.parse().ok()?);
        if lineages.len() > 2 * REPLICAS_MAX {
            lineages.shrink(REPLICAS_MAX);
        }
        Some(())
    })?;
    lineages.shrink(REPLICAS_MAX);
    Ok(lineages)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use binlogz_store::FileStorage;

    use super::*;

    #[test]
    fn the_last_log_of_each_replica_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let storage: Arc<dyn Storage> = Arc::new(FileStorage::open(folder.path()).unwrap());
        let served = Served::open(&storage).unwrap();
        let uuid = |digit: char| {
            let digits = |count| digit.to_string().repeat(count);
            let text = [digits(8), digits(4), digits(4), digits(4), digits(12)].join("-");
            text.parse::<ServerUuid>().unwrap()
        };
        assert_eq!(served.last(uuid('a')), None);
        served.note(uuid('a'), 1).unwrap();
        served.note(uuid('b'), 1).unwrap();
        served.note(uuid('a'), 2).unwrap();
        let served = Served::open(&storage).unwrap();
        assert_eq!([served.last(uuid('a')), served.last(uuid('b'))], [Some(2), Some(1)]);
        // Lines that somebody removes meanwhile don't come back.
        let file = folder.path().join(NAME);
        std::fs::write(&file, format!("1 {}\n", uuid('b'))).unwrap();
        assert_eq!(served.last_in_file(uuid('a')).unwrap(), None);
        assert_eq!(served.last(uuid('a')), None);
        std::fs::write(&file, "").unwrap();
        served.note(uuid('c'), 1).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("1 {}\n", uuid('c')));
        std::fs::write(&file, "one two\n").unwrap();
        let error = served.last_in_file(uuid('a')).unwrap_err().to_string();
        assert!(error.contains("expected LINEAGE UUID"), "{error}");
        assert!(Served::open(&storage).is_err());
    }

    #[test]
    fn with_too_many_replicas_those_that_did_not_come_for_longest_go() {
        let storage: Arc<dyn Storage> = Arc::new(binlogz_store::MemoryStorage::new());
        let uuid = |n: u64| {
            let mut uuid = ServerUuid::default();
            uuid.0[..8].copy_from_slice(&n.to_le_bytes());
            uuid
        };
        let lines =
            |count: u64| (0..count).map(|n| format!("{} {}\n", u64::MAX - n, uuid(n))).collect::<String>();
        let full = REPLICAS_MAX as u64;
        binlogz_store::storage::replace(storage.as_ref(), NAME, lines(full).as_bytes()).unwrap();
        let served = Served::open(&storage).unwrap();
        served.note(uuid(0), u64::MAX).unwrap();
        for n in full..full + 3 {
            served.note(uuid(n), 1).unwrap();
        }
        for served in [served, Served::open(&storage).unwrap()] {
            let last = [0, 1, 2, 3, 4, full, full + 2].map(|n| served.last(uuid(n)));
            let kept = |n| Some(u64::MAX - n);
            assert_eq!(last, [kept(0), None, None, None, kept(4), Some(1), Some(1)]);
        }
        // More than are remembered, as somebody may have put them there: the last ones count.
        binlogz_store::storage::replace(storage.as_ref(), NAME, lines(full + 50).as_bytes()).unwrap();
        let served = Served::open(&storage).unwrap();
        assert_eq!([49, 50].map(|n| served.last(uuid(n)).is_some()), [false, true]);
    }
}
