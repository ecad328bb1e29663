//! Which log each replica was served last: a server's log that began anew has the GTIDs of the one before for other
//! transactions, so that a set of GTIDs alone does not tell what a replica has.
//!
//! ```text
//! relay.replicas      LINEAGE UUID        a line for each server uuid
//! ```
//!
//! A line may be removed while the relay runs, of a replica that was built anew: before a replica is refused, and before a
//! line is written, the file is read again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use binlogz_binlog::gtid::ServerUuid;
use binlogz_store::Storage;

use crate::error::Result;
use crate::lines::LinesFile;
use crate::relay::lock;

/// Its name in the relay's directory.
pub(crate) const NAME: &str = "relay.replicas";
/// More replicas than are remembered: each has chosen its own uuid.
const REPLICAS_MAX: usize = 10_000;
/// Each of them, and what was added by hand.
const SIZE_MAX: u64 = 16 << 20;

/// Who was served what.
#[derive(Debug)]
pub(crate) struct Served {
    file: LinesFile,
    /// As it was read or written last.
    lineages: Mutex<BTreeMap<ServerUuid, u64>>,
}

impl Served {
    /// What is kept there.
    pub(crate) fn open(storage: &Arc<dyn Storage>) -> Result<Self> {
        let storage = Arc::clone(storage);
        let file = LinesFile { storage, name: NAME, size_max: SIZE_MAX, expected: "LINEAGE UUID" };
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
        *lineages = read(&self.file)?;
        Ok(lineages.get(&replica).copied())
    }

    /// It is served this one now.
    pub(crate) fn note(&self, replica: ServerUuid, lineage: u64) -> Result<()> {
        let mut lineages = lock(&self.lineages);
        if lineages.get(&replica) == Some(&lineage) {
            return Ok(());
        }
        let mut noted = read(&self.file)?;
        let is_new = !noted.contains_key(&replica);
        if is_new && noted.len() >= REPLICAS_MAX {
            return Ok(());
        }
        noted.insert(replica, lineage);
        self.file.write(&noted, |replica, lineage| format!("{lineage} {replica}"))?;
        *lineages = noted;
        Ok(())
    }
}

fn read(file: &LinesFile) -> Result<BTreeMap<ServerUuid, u64>> {
    file.read(|replica, lineage| Some((replica.parse().ok()?, lineage.parse().ok()?)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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
}
