//! Which log each replica was served last: a server's log that began anew has the GTIDs of the one before for other
//! transactions, so that a set of GTIDs alone does not tell what a replica has.
//!
//! ```text
//! relay.replicas      LINEAGE UUID        a line for each server uuid
//! ```
//!
//! Read with each dump that begins, so that a line can be removed while the relay runs: of a replica that was built anew.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use binlogz_binlog::gtid::ServerUuid;
use binlogz_store::{Storage, storage};

use crate::error::{Error, Result};
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
    storage: Arc<dyn Storage>,
    writing: Mutex<()>,
}

impl Served {
    /// What is kept there.
    pub(crate) fn new(storage: &Arc<dyn Storage>) -> Self {
        Served { storage: Arc::clone(storage), writing: Mutex::default() }
    }

    /// The number of the log that a replica was served last.
    pub(crate) fn last(&self, replica: ServerUuid) -> Result<Option<u64>> {
        Ok(self.read()?.get(&replica).copied())
    }

    /// It is served this one now.
    pub(crate) fn note(&self, replica: ServerUuid, lineage: u64) -> Result<()> {
        let _writing = lock(&self.writing);
        let mut served = self.read()?;
        let is_new = !served.contains_key(&replica);
        if served.get(&replica) == Some(&lineage) || (is_new && served.len() >= REPLICAS_MAX) {
            return Ok(());
        }
        served.insert(replica, lineage);
        let text: String = served.iter().map(|(replica, lineage)| format!("{lineage} {replica}\n")).collect();
        storage::replace(self.storage.as_ref(), NAME, text.as_bytes())
            .map_err(Error::io(format!("write {NAME}")))
    }

    fn read(&self) -> Result<BTreeMap<ServerUuid, u64>> {
        let file = self.storage.open(NAME, false);
        let bytes = match file.and_then(|file| storage::read_all(file.as_ref(), SIZE_MAX)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::io(format!("read {NAME}"))(error)),
        };
        let text = String::from_utf8_lossy(&bytes);
        let one = |line: &str| {
            let (lineage, uuid) = line.split_once(' ')?;
            Some((uuid.parse().ok()?, lineage.parse().ok()?))
        };
        let unfit = |line| Error::Refused(format!("{NAME}: {line:?}, expected LINEAGE UUID"));
        text.lines().map(|line| one(line).ok_or_else(|| unfit(line))).collect()
    }
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
        let served = Served::new(&storage);
        let uuid = |digit: char| {
            let digits = |count| digit.to_string().repeat(count);
            let text = [digits(8), digits(4), digits(4), digits(4), digits(12)].join("-");
            text.parse::<ServerUuid>().unwrap()
        };
        assert_eq!(served.last(uuid('a')).unwrap(), None);
        served.note(uuid('a'), 1).unwrap();
        served.note(uuid('b'), 1).unwrap();
        served.note(uuid('a'), 2).unwrap();
        let served = Served::new(&storage);
        assert_eq!([served.last(uuid('a')).unwrap(), served.last(uuid('b')).unwrap()], [Some(2), Some(1)]);
        std::fs::write(folder.path().join(NAME), "").unwrap();
        assert_eq!(served.last(uuid('a')).unwrap(), None);
        std::fs::write(folder.path().join(NAME), "one two\n").unwrap();
        assert!(served.last(uuid('a')).unwrap_err().to_string().contains("expected LINEAGE UUID"));
    }
}
