//! Where closed logs end when they are served: after the last whole transaction, or before one that the caller names.
//!
//! The log with the end is written into the relay's directory and cut there. Nothing after the end is on that disk or
//! is ever sent, so a replica can't go further, even one that was restarted meanwhile and has forgotten its UNTIL.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::{EventType, HeaderFlags};
use binlogz_store::{BinlogStore, FileNumber, FileStorage, MemoryStorage, Position, StoreOptions};

use super::{Bytes, ClosedLog, ClosedLogs};
use crate::error::{Error, Result};
use crate::groups::{EventGroup, GroupWalker};
use crate::stored_format::StoredHead;

const WRITE_SIZE: usize = 1 << 20;
const MICROSECONDS: u64 = 1_000_000;
/// Events of a file's begin, between its format description and its first transaction.
const BEGIN_FILES: [EventType; 4] = [
    EventType::PREVIOUS_GTIDS,
    EventType::MARIADB_GTID_LIST,
    EventType::MARIADB_BINLOG_CHECKPOINT,
    EventType::MARIADB_START_ENCRYPTION,
];

/// Where to stop, in the order of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StopAt {
    /// At the end.
    #[default]
    End,
    /// After this transaction.
    After(Gtid),
    /// Before this transaction.
    Before(Gtid),
    /// Before the first transaction that was committed at this time or later, in microseconds since 1970.
    Time(u64),
}

impl StopAt {
    fn gtid(&self) -> Option<Gtid> {
        match self {
            StopAt::After(gtid) | StopAt::Before(gtid) => Some(*gtid),
            StopAt::End | StopAt::Time(_) => None,
        }
    }

    fn is_before(&self, group: &EventGroup) -> bool {
        match self {
            StopAt::Before(gtid) => group.gtid == Some(*gtid),
            // What begins a file is none: without it, the log would be one of a server without GTIDs.
            StopAt::Time(_) if BEGIN_FILES.contains(&group.first.event_type) => false,
            StopAt::Time(time) => committed(group) >= *time,
            StopAt::End | StopAt::After(_) => false,
        }
    }
}

/// A transaction at the end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastTransaction {
    /// `None` if it is anonymous.
    pub gtid: Option<Gtid>,
    /// When the server whose log it is committed it, in microseconds since 1970. Servers before 8.0 tell only when the
    /// statement began, in seconds.
    pub committed: u64,
}

/// Logs that end somewhere, the last one of them in a directory.
#[derive(Debug)]
pub struct EndedLogs {
    /// The logs.
    pub logs: Arc<ClosedLogs>,
    /// All transactions up to the end, and all before the first log.
    pub gtids: GtidSet,
    /// The transactions before the first log.
    pub before: GtidSet,
    /// The transactions after the end, as far as the logs say.
    pub after: GtidSet,
    /// The last transaction before the end; `None` if there is none in the last log.
    pub last: Option<LastTransaction>,
    /// The first log that has transactions without a GTID, as far as the logs were looked at.
    pub with_anonymous: Option<String>,
    /// The version of the server that wrote the last log.
    pub server_version: String,
    /// Bytes of the logs up to the end.
    pub size: u64,
    /// The part left out at the end of the last log, which its server had not finished.
    pub torn: Option<String>,
}

impl EndedLogs {
    /// The logs.
    pub fn logs(&self) -> &ClosedLogs {
        &self.logs
    }

    /// The logs, shared with the server that serves them.
    pub fn shared(&self) -> Arc<ClosedLogs> {
        Arc::clone(&self.logs)
    }
}

/// The findings of a walk through one log.
struct WalkFindings {
    met: bool,
    end: u64,
    size: u64,
    gtids: GtidSet,
    after: GtidSet,
    last: Option<LastTransaction>,
    has_anonymous: bool,
    server_version: String,
    in_use: bool,
}

impl ClosedLogs {
    /// Puts the log with the end into a directory, cut there; later logs are left out.
    ///
    /// # Errors
    ///
    /// [`Error::Unmet`] if the logs don't have the place to stop at; a log that can't be read or is damaged before it.
    pub fn ended(mut self, stop: &StopAt, directory: &Path) -> Result<EndedLogs> {
        let mut all = GtidSet::new();
        for number in self.may_have(stop)? {
            let Some(log) = self.logs.get(&number) else { continue };
            let path = directory.join(&log.name);
            self.put(log, &path)?;
            let walked = self.walk(number, log, stop, directory)?;
            if !walked.met {
                fs::remove_file(&path).map_err(Error::io(format!("remove {}", path.display())))?;
                continue;
            }
            let torn = walked.torn(&self, log, stop)?;
            let cut = File::options().write(true).open(&path).and_then(|file| file.set_len(walked.end));
            cut.map_err(Error::io(format!("cut {}", path.display())))?;
            let index = directory.join(format!("{}.index", self.base));
            fs::write(&index, self.index_up_to(number))
                .map_err(Error::io(format!("write {}", index.display())))?;
            all.union(&self.previous(log)?);
            all.union(&walked.gtids);
            let mut after = walked.after;
            for later in self.logs.range(number.next()..).map(|(_, log)| log) {
                after.union(&self.previous(later)?);
                if let Bytes::Archived(entry) = &later.bytes {
                    after.union(&entry.gtid_set().map_err(self.failed())?);
                }
            }
            after.subtract(&all);
            self.logs.split_off(&number.next());
            let before_last: u64 = self.logs.range(..number).map(|(_, log)| log.size).sum();
            let own = walked.has_anonymous.then(|| self.range().1.to_owned());
            return Ok(EndedLogs {
                with_anonymous: self.with_anonymous().map(str::to_owned).or(own),
                before: self.before_all()?,
                gtids: all,
                after,
                last: walked.last,
                server_version: walked.server_version,
                size: before_last + walked.end,
                torn,
                logs: Arc::new(self),
            });
        }
        Err(self.unmet(stop))
    }

    /// The index that lists the log on disk. Earlier files are as if they had been purged.
    fn index_up_to(&self, number: FileNumber) -> String {
        self.logs.get(&number).map(|log| format!("./{}\n", log.name)).unwrap_or_default()
    }

    /// The logs that may have the end, in order.
    fn may_have(&self, stop: &StopAt) -> Result<Vec<FileNumber>> {
        let next = |number: &FileNumber| self.logs.range(number.next()..).next();
        let last = self.logs.last_key_value().map(|(number, _)| *number);
        let mut found = Vec::new();
        for (number, log) in &self.logs {
            let may = match stop {
                StopAt::End => Some(*number) == last,
                StopAt::After(gtid) | StopAt::Before(gtid) => match &log.bytes {
                    Bytes::Archived(entry) => entry.gtid_set().map_err(self.failed())?.contains(gtid),
                    // What the next one has before it, and this one has not.
                    Bytes::File(..) => {
                        let is_next = next(number).map(|(_, next)| self.previous(next)).transpose()?;
                        !self.previous(log)?.contains(gtid) && is_next.is_none_or(|next| next.contains(gtid))
                    }
                },
                // A log's last event, and the first of the next one, come after each of its commits: within that second.
                StopAt::Time(time) => {
                    let ended = log.ended().map(u64::from);
                    let begun = next(number).and_then(|(_, next)| next.begun()).map(u64::from);
                    ended.max(begun).is_none_or(|end| end * MICROSECONDS + (MICROSECONDS - 1) >= *time)
                        || Some(*number) == last
                }
            };
            if may {
                found.push(*number);
            }
        }
        Ok(found)
    }

    fn unmet(&self, stop: &StopAt) -> Error {
        let place = &self.place;
        let (first, last) = self.range();
        Error::Unmet(match stop.gtid() {
            Some(gtid) => format!("{place}: {gtid} is in none of the logs {first} to {last}"),
            None => format!(
                "{place}: the logs {first} to {last} end before that time, so it can't be told whether transactions are \
                 missing up to then; without it all of them are taken"
            ),
        })
    }

    /// Writes a log as a file.
    fn put(&self, log: &ClosedLog, path: &Path) -> Result<()> {
        let failed = || Error::io(format!("write {}", path.display()));
        let file = File::create(path).map_err(failed())?;
        let mut out = BufWriter::with_capacity(WRITE_SIZE, file);
        self.write(log, &mut out)?;
        out.flush().map_err(failed())
    }

    /// Goes through a log that is in the directory, reading little but headers.
    fn walk(
        &self,
        number: FileNumber,
        log: &ClosedLog,
        stop: &StopAt,
        directory: &Path,
    ) -> Result<WalkFindings> {
        let path = directory.join(&log.name);
        let size = fs::metadata(&path).map_err(Error::io(format!("read {}", path.display())))?.len();
        let options = StoreOptions { base_name: self.base.clone(), ..StoreOptions::default() };
        let (store, _) = BinlogStore::open(Arc::new(MemoryStorage::new()), options)?;
        store.ended_at(Position { file: number, offset: size });
        store.lend(number, Arc::new(FileStorage::open(directory)?), &log.name);
        let bad = |error: Error| error.in_stored(|| format!("{}/{}", self.place, log.name));
        let head = StoredHead::read(&store, number).map_err(bad)?;
        let mut walker = GroupWalker::new(store.reader(number, head.end())?, head.framing(), head.end());
        let mut walked = WalkFindings {
            met: *stop == StopAt::End,
            end: head.end(),
            size,
            gtids: GtidSet::new(),
            after: GtidSet::new(),
            last: None,
            has_anonymous: false,
            server_version: head.description.server_version().to_owned(),
            in_use: head.header.flags.contains(HeaderFlags::IN_USE),
        };
        let mut is_behind = false;
        while let Some(group) = walker.next_group().map_err(bad)? {
            if [EventType::ROTATE, EventType::STOP].contains(&group.first.event_type) {
                walked.size = walked.size.min(group.begin);
                break;
            }
            if !is_behind && stop.is_before(&group) {
                (is_behind, walked.met) = (true, true);
            }
            if is_behind {
                group.gtid.into_iter().for_each(|gtid| walked.after.add(gtid));
                continue;
            }
            walked.take(&group);
            if matches!(stop, StopAt::After(gtid) if group.gtid == Some(*gtid)) {
                (is_behind, walked.met) = (true, true);
            }
        }
        if !is_behind {
            walked.size = walked.size.max(walked.end);
        }
        Ok(walked)
    }
}

impl WalkFindings {
    fn take(&mut self, group: &EventGroup) {
        self.end = group.end;
        if group.is_transaction {
            group.gtid.into_iter().for_each(|gtid| self.gtids.add(gtid));
            self.has_anonymous |= group.gtid.is_none();
            self.last = Some(LastTransaction { gtid: group.gtid, committed: committed(group) });
        }
    }

    /// The rest of the log when it is taken to its end.
    fn torn(&self, logs: &ClosedLogs, log: &ClosedLog, stop: &StopAt) -> Result<Option<String>> {
        let left = self.size - self.end;
        if *stop != StopAt::End || left == 0 {
            return Ok(None);
        }
        let what = format!(
            "{}/{} at {}: {left} bytes are left, which are no whole transaction",
            logs.place, log.name, self.end
        );
        match self.in_use {
            true => Ok(Some(format!("{what}: the log was in use; they are left out"))),
            false => Err(Error::DamagedLog(format!("{what}, expected the end of the log"))),
        }
    }
}

impl ClosedLog {
    /// When its server began it.
    fn begun(&self) -> Option<u32> {
        match &self.bytes {
            Bytes::Archived(entry) => entry.times.map(|(first, _)| first),
            Bytes::File(_, facts) => Some(facts.created),
        }
    }

    /// The time of its last event, if known.
    fn ended(&self) -> Option<u32> {
        match &self.bytes {
            Bytes::Archived(entry) => entry.times.map(|(_, last)| last),
            Bytes::File(..) => None,
        }
    }
}

/// When a transaction was committed, in microseconds since 1970.
fn committed(group: &EventGroup) -> u64 {
    match group.committed {
        0 => u64::from(group.first.timestamp) * MICROSECONDS,
        committed => committed,
    }
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::checksum::crc32;
    use binlogz_binlog::event::{PreviousGtidsEvent, RotateEvent};
    use binlogz_testkit::builder::{LogBuilder, Release, UUID};

    use super::*;

    /// A log of a server that says in seconds when a transaction was, with these times of its events.
    fn log(last: u64, transactions: u64, next: &str, times: &[u32]) -> Vec<u8> {
        let mut log = LogBuilder::new(Release::MYSQL_5_7);
        let mut gtid_set = GtidSet::new();
        (1..=last).for_each(|gno| gtid_set.add(Gtid::new(UUID.into(), gno).unwrap()));
        let format = gtid_set.format();
        log.event(EventType::PREVIOUS_GTIDS, &PreviousGtidsEvent { gtid_set, format }.encode());
        log.behind_gno(last);
        let create = binlogz_testkit::builder::query("CREATE TABLE t (i INT)");
        for _ in 0..transactions {
            log.transaction_of(&[(EventType::QUERY, create.clone())]);
        }
        log.event(EventType::ROTATE, &RotateEvent { position: 4, name: next.as_bytes() }.encode());
        let mut bytes = log.take();
        let mut begin = 4;
        for time in times {
            let size = u32::from_le_bytes(bytes[begin + 9..begin + 13].try_into().unwrap()) as usize;
            bytes[begin..begin + 4].copy_from_slice(&time.to_le_bytes());
            let sum = crc32(&bytes[begin..begin + size - 4]);
            bytes[begin + size - 4..begin + size].copy_from_slice(&sum.to_le_bytes());
            begin += size;
        }
        assert_eq!(begin, bytes.len());
        bytes
    }

    #[test]
    fn a_moment_before_on_after_a_commit_and_between_logs_is_a_whole_log_each_time() {
        let from = tempfile::tempdir().unwrap();
        // Format description, what came before, GTID and statement of each transaction, rotate.
        let first = log(0, 2, "binlog.000002", &[100, 100, 110, 110, 112, 112, 120]);
        let second = log(2, 1, "binlog.000003", &[120, 120, 130, 130, 140]);
        let paths = [("binlog.000001", first), ("binlog.000002", second)].map(|(name, bytes)| {
            let path = from.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        });
        for (time, last) in [
            (50, 0_u8),
            (100, 0),
            (110, 0),
            (111, 1),
            (112, 1),
            (113, 2),
            (115, 2),
            (119, 2),
            (120, 2),
            (121, 2),
            (130, 2),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let logs = ClosedLogs::of_files(&paths, None).unwrap();
            let ended = logs.ended(&StopAt::Time(time * MICROSECONDS), folder.path()).unwrap();
            assert_eq!(ended.gtids.count(), u128::from(last), "{time}");
            let (_, name) = ended.logs().range();
            let facts = binlogz_flow::LogFacts::read(
                name.to_owned(),
                &fs::read(folder.path().join(name)).unwrap(),
                binlogz_flow::FactsUpTo::End,
            );
            // Without what came before, it would be the log of a server without GTIDs.
            let facts = facts.unwrap();
            let mut all = facts.previous.unwrap_or_else(|| panic!("{time}: {name} lacks its begin"));
            all.union(&facts.gtids.unwrap());
            assert_eq!(all, ended.gtids, "{time}");
        }
        let logs = ClosedLogs::of_files(&paths, None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(logs.ended(&StopAt::Time(131 * MICROSECONDS), folder.path()), Err(Error::Unmet(_))));
    }
}
