//! Which log each replica was last served. A log that was reset reuses the GTIDs of the previous one for other
//! transactions, so a GTID set alone does not tell what a replica has.
//!
//! ```text
//! relay.replicas      LINEAGE UUID        a line for each server uuid, in the order in which they came last
//!                     LINEAGE UUID once   a newcomer; these lines come first
//! ```
//!
//! Replicas choose their uuids, and some clients choose another one each time. So a uuid that comes for the first time is
//! a newcomer, which its line says, until it comes again. Newcomers displace only each other, the least recently seen
//! first. Of the others the least recently seen goes when there are too many, but never before those that are connected.
//!
//! After a replica was rebuilt, an operator may remove its line while the relay runs. So we read the file again
//! before refusing a replica and before writing a line.

use parking_lot::Mutex;
use std::sync::Arc;

use binlogz_binlog::gtid::ServerUuid;
use binlogz_relay_log::LinesFile;
use binlogz_store::Storage;

use crate::error::Result;
use crate::serve::remembered::recent::Recent;

pub(crate) const NAME: &str = "relay.replicas";
/// The most replicas that we remember.
const REPLICAS_MAX: usize = 10_000;
/// The most newcomers among clients. They must not be so few that a replica is forgotten before it comes again.
const NEWCOMERS_MAX: usize = 1_000;
/// The last word of a newcomer's line.
const ONCE: &str = "once";

#[derive(Debug)]
pub(crate) struct LastServed {
    file: LinesFile,
    /// As last read or written.
    replicas: Mutex<Replicas>,
}

/// The number of the log that each replica was last served.
#[derive(Debug, Clone)]
struct Replicas {
    /// Replicas that came once.
    newcomers: Recent<ServerUuid, u64>,
    /// Replicas that came again.
    known: Recent<ServerUuid, u64>,
}

impl Replicas {
    fn get(&self, replica: ServerUuid) -> Option<u64> {
        self.known.get(&replica).or_else(|| self.newcomers.get(&replica)).copied()
    }

    fn touch(&mut self, replica: &ServerUuid) {
        self.newcomers.touch(replica);
        self.known.touch(replica);
    }

    /// The replica came, and is served this log.
    fn put(&mut self, replica: ServerUuid, lineage: u64) {
        match self.get(replica) {
            None => self.newcomers.put(replica, lineage),
            Some(_) => {
                self.newcomers.remove(&replica);
                self.known.put(replica, lineage);
            }
        }
    }

    fn shrink(&mut self, connected: impl FnOnce() -> Vec<ServerUuid>) {
        if self.newcomers.len() > NEWCOMERS_MAX || self.known.len() > REPLICAS_MAX {
            connected().iter().for_each(|replica| self.touch(replica));
            self.newcomers.shrink(NEWCOMERS_MAX);
            self.known.shrink(REPLICAS_MAX);
        }
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let line = |(replica, lineage): (&ServerUuid, &u64)| format!("{lineage} {replica}");
        let newcomers = self.newcomers.in_order().into_iter().map(move |one| format!("{} {ONCE}", line(one)));
        newcomers.chain(self.known.in_order().into_iter().map(line))
    }
}

impl LastServed {
    pub(crate) fn open(storage: &Arc<dyn Storage>) -> Result<Self> {
        let file = LinesFile { storage: Arc::clone(storage), name: NAME, expected: "LINEAGE UUID" };
        let replicas = Mutex::new(read(&file)?);
        Ok(LastServed { file, replicas })
    }

    /// The number of the log that a replica was last served.
    pub(crate) fn last(&self, replica: ServerUuid) -> Option<u64> {
        self.replicas.lock().get(replica)
    }

    /// The number of the log that a replica was last served, after reading the file again.
    pub(crate) fn last_in_file(&self, replica: ServerUuid) -> Result<Option<u64>> {
        let mut replicas = self.replicas.lock();
        *replicas = self.read_again(&replicas)?;
        Ok(replicas.get(replica))
    }

    /// Records that the replica is now served this log. `connected` gives the replicas that are connected, which are
    /// in use however long ago they came.
    pub(crate) fn note(
        &self,
        replica: ServerUuid,
        lineage: u64,
        connected: impl FnOnce() -> Vec<ServerUuid>,
    ) -> Result<()> {
        let mut replicas = self.replicas.lock();
        if replicas.known.touch(&replica) == Some(&lineage) {
            return Ok(());
        }
        let mut noted = self.read_again(&replicas)?;
        noted.put(replica, lineage);
        noted.shrink(connected);
        self.file.write(noted.lines())?;
        *replicas = noted;
        Ok(())
    }

    /// The replica was connected until now.
    pub(crate) fn left(&self, replica: ServerUuid) {
        self.replicas.lock().touch(&replica);
    }

    /// The current lines of the file, in the order in which this process saw the replicas. The file's own order is
    /// that of its last write.
    fn read_again(&self, known: &Replicas) -> Result<Replicas> {
        let mut noted = read(&self.file)?;
        for (replica, _) in known.newcomers.in_order().into_iter().chain(known.known.in_order()) {
            noted.touch(replica);
        }
        Ok(noted)
    }
}

fn read(file: &LinesFile) -> Result<Replicas> {
    let mut replicas = Replicas { newcomers: Recent::new(), known: Recent::new() };
    file.read(|lineage, replica| {
        // Words that another release may have added are passed over.
        let mut words = replica.split(' ');
        let replica = words.next()?;
        let (list, count_max) = match words.any(|word| word == ONCE) {
            true => (&mut replicas.newcomers, NEWCOMERS_MAX),
            false => (&mut replicas.known, REPLICAS_MAX),
        };
        list.put(replica.parse().ok()?, lineage.parse().ok()?);
        if list.len() > 2 * count_max {
            list.shrink(count_max);
        }
        Some(())
    })?;
    replicas.newcomers.shrink(NEWCOMERS_MAX);
    replicas.known.shrink(REPLICAS_MAX);
    Ok(replicas)
}

#[cfg(test)]
mod tests {
    use binlogz_store::FileStorage;

    use super::*;

    #[test]
    fn the_last_log_of_each_replica_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let storage: Arc<dyn Storage> = Arc::new(FileStorage::open(folder.path()).unwrap());
        let served = LastServed::open(&storage).unwrap();
        let uuid = |digit: char| {
            let digits = |count| digit.to_string().repeat(count);
            let text = [digits(8), digits(4), digits(4), digits(4), digits(12)].join("-");
            text.parse::<ServerUuid>().unwrap()
        };
        assert_eq!(served.last(uuid('a')), None);
        let note = |served: &LastServed, digit, lineage| served.note(uuid(digit), lineage, Vec::new).unwrap();
        note(&served, 'a', 1);
        note(&served, 'b', 1);
        note(&served, 'a', 2);
        let text = std::fs::read_to_string(folder.path().join(NAME)).unwrap();
        assert_eq!(text, format!("1 {} once\n2 {}\n", uuid('b'), uuid('a')));
        let served = LastServed::open(&storage).unwrap();
        assert_eq!([served.last(uuid('a')), served.last(uuid('b'))], [Some(2), Some(1)]);
        // Lines that an operator removes in the meantime don't come back.
        let file = folder.path().join(NAME);
        std::fs::write(&file, format!("1 {}\n", uuid('b'))).unwrap();
        assert_eq!(served.last_in_file(uuid('a')).unwrap(), None);
        assert_eq!(served.last(uuid('a')), None);
        std::fs::write(&file, "").unwrap();
        note(&served, 'c', 1);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("1 {} once\n", uuid('c')));
        let later = format!(
            "binlogz-relay replicas 1\n# a remark\n3 {} later once\n4 {} later\n",
            uuid('d'),
            uuid('e')
        );
        std::fs::write(&file, later).unwrap();
        assert_eq!(served.last_in_file(uuid('d')).unwrap(), Some(3));
        assert_eq!(served.last_in_file(uuid('e')).unwrap(), Some(4));
        std::fs::write(&file, "binlogz-relay replicas 2\n").unwrap();
        let error = served.last_in_file(uuid('a')).unwrap_err().to_string();
        assert!(error.contains("relay.replicas in the relay's directory: format version 2"), "{error}");
        std::fs::write(&file, "one two\n").unwrap();
        let error = served.last_in_file(uuid('a')).unwrap_err().to_string();
        assert!(error.contains("expected LINEAGE UUID"), "{error}");
        assert!(LastServed::open(&storage).is_err());
    }

    /// Different for each number.
    fn uuid_of(n: u64) -> ServerUuid {
        let mut uuid = ServerUuid::default();
        uuid.0[..8].copy_from_slice(&n.to_le_bytes());
        uuid
    }

    fn lines(count: u64) -> String {
        (0..count).map(|n| format!("{} {}\n", u64::MAX - n, uuid_of(n))).collect()
    }

    #[test]
    fn with_too_many_replicas_those_that_did_not_come_for_longest_go() {
        let storage: Arc<dyn Storage> = Arc::new(binlogz_store::MemoryStorage::new());
        let full = REPLICAS_MAX as u64;
        binlogz_store::storage::replace(storage.as_ref(), NAME, lines(full).as_bytes()).unwrap();
        let served = LastServed::open(&storage).unwrap();
        served.note(uuid_of(0), u64::MAX, Vec::new).unwrap();
        for n in full..full + 3 {
            // The first time it is a newcomer.
            served.note(uuid_of(n), 1, Vec::new).unwrap();
            served.note(uuid_of(n), 1, || vec![uuid_of(3)]).unwrap();
        }
        for served in [served, LastServed::open(&storage).unwrap()] {
            let last = [0, 1, 2, 3, 4, 5, full, full + 2].map(|n| served.last(uuid_of(n)));
            let kept = |n| Some(u64::MAX - n);
            assert_eq!(last, [kept(0), None, None, kept(3), None, kept(5), Some(1), Some(1)]);
        }
        // More lines than we remember, as an operator may have written them: the last ones count.
        binlogz_store::storage::replace(storage.as_ref(), NAME, lines(full + 50).as_bytes()).unwrap();
        let served = LastServed::open(&storage).unwrap();
        assert_eq!([49, 50].map(|n| served.last(uuid_of(n)).is_some()), [false, true]);
    }

    #[test]
    fn clients_of_random_uuids_displace_each_other_and_no_replica() {
        let storage: Arc<dyn Storage> = Arc::new(binlogz_store::MemoryStorage::new());
        let served = LastServed::open(&storage).unwrap();
        let again = uuid_of(1);
        let once = uuid_of(2);
        let connected = uuid_of(3);
        for replica in [again, again, once, connected] {
            served.note(replica, 7, Vec::new).unwrap();
        }
        let random = (0..NEWCOMERS_MAX as u64 + 200).map(|n| uuid_of(1000 + n));
        random.for_each(|client| served.note(client, 8, || vec![connected]).unwrap());
        for served in [served, LastServed::open(&storage).unwrap()] {
            let last = [again, once, connected].map(|replica| served.last(replica));
            assert_eq!(last, [Some(7), None, Some(7)]);
        }
        let text = binlogz_store::storage::read_all(storage.open(NAME, false).unwrap().as_ref(), 1 << 20);
        assert_eq!(String::from_utf8(text.unwrap()).unwrap().lines().count(), NEWCOMERS_MAX + 1);
    }
}
