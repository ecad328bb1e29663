//! Opens what a crash left behind: the only way from files to a store.
//!
//! ```text
//! left behind                                     becomes
//! BASE.index.new, BASE.store.new                  removed: the old ones are whole
//! a log that the index does not list, too old     removed: a purge was cut short
//! a log that it does not list, newer, no          removed: a rotation was cut short
//!   transaction in it
//! the last log listed, in use                     cut behind its last whole transaction
//! anything else that does not fit                 an error: no crash of ours leaves that
//! ```
//!
//! Only the last file can be torn, since a rotation syncs a file before it says that it is closed. What is
//! kept of a file in use is written again and synced before anything else: after a sync that failed, the
//! system's cache may show bytes that the disk has not, and says nothing about it.

use std::fmt;

use binlogz_binlog::gtid::GtidSet;

use crate::error::{Error, Result};
use crate::file::LogFile;
use crate::index;
use crate::log_name::FileNumber;
use crate::positions::Position;
use crate::scan::{self, Scan};
use crate::storage::NEW_SUFFIX;
use crate::store::Place;

/// Bytes written again at a time.
const CHUNK_SIZE: u64 = 1 << 20;

/// What opening a store found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Where the log ends; `None`: it is new.
    pub end: Option<Position>,
    /// The last file was not closed.
    pub was_in_use: bool,
    /// The last file ends with a rotate or a stop event: nothing may be appended to it.
    pub closed: bool,
    /// What was cut off its end.
    pub cut: Option<Cut>,
    /// Files removed: leftovers of a rotation or a purge that was cut short.
    pub removed: Vec<String>,
    /// All GTIDs of the log, those of purged files included.
    pub gtids: GtidSet,
    /// Whole transactions in the last file.
    pub transactions: u64,
}

/// A torn tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The file.
    pub file: String,
    /// Where it ends now.
    pub offset: u64,
    /// Bytes that stood behind.
    pub size: u64,
    /// What was wrong with them.
    pub reason: String,
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end {
            None => write!(f, "a new log")?,
            Some(end) => {
                let state = if self.was_in_use { "was not closed" } else { "was closed" };
                write!(f, "file {} {state} and holds {} transactions", end.file, self.transactions)?;
            }
        }
        if let Some(cut) = &self.cut {
            write!(f, "; {} at {}: {} bytes were cut off: {}", cut.file, cut.offset, cut.size, cut.reason)?;
        }
        match self.removed.is_empty() {
            true => Ok(()),
            false => write!(f, "; removed {}", self.removed.join(", ")),
        }
    }
}

/// What a store begins with.
pub(crate) struct Recovered {
    pub(crate) files: Vec<FileNumber>,
    /// The last file, if it can be appended to.
    pub(crate) active: Option<(LogFile, u64)>,
    pub(crate) report: RecoveryReport,
}

pub(crate) fn recover(place: &Place) -> Result<Recovered> {
    let storage = place.storage.as_ref();
    let present = storage.list().map_err(Error::io("list", "the directory"))?;
    let mut report = RecoveryReport::default();
    for name in present.iter().filter(|name| is_half_made(place, name)) {
        remove(place, name, &mut report)?;
    }
    let listed = index::read(storage, &place.names, &present)?;
    let files = listed.unwrap_or_default();
    remove_unlisted(place, &present, &files, &mut report)?;
    if !report.removed.is_empty() {
        storage.sync_names().map_err(Error::io("sync", "the directory"))?;
    }
    let active = match files.last() {
        None => None,
        Some(last) => recover_last(place, *last, &mut report)?,
    };
    Ok(Recovered { files, active, report })
}

fn is_half_made(place: &Place, name: &str) -> bool {
    name.strip_suffix(NEW_SUFFIX)
        .is_some_and(|name| [place.names.index(), place.names.meta()].contains(&name.to_owned()))
}

fn remove(place: &Place, name: &str, report: &mut RecoveryReport) -> Result<()> {
    place.storage.remove(name).map_err(Error::io("remove", name))?;
    report.removed.push(name.to_owned());
    Ok(())
}

fn remove_unlisted(
    place: &Place,
    present: &[String],
    files: &[FileNumber],
    report: &mut RecoveryReport,
) -> Result<()> {
    for file in files.iter().map(|file| place.names.log(*file)) {
        if !present.contains(&file) {
            return Err(Error::unfit(
                &file,
                "the index lists it, and it is not there",
                "every file of the index",
            ));
        }
    }
    for name in present {
        let Some(number) = place.names.number(name).filter(|number| !files.contains(number)) else {
            continue;
        };
        let older = files.first().is_some_and(|first| number < *first);
        let newer = files.last().is_none_or(|last| number > *last);
        let leftover = older || (newer && holds_nothing(place, name)?);
        if !leftover {
            return Err(Error::unfit(name, "the index does not list it", "a file that is in the index"));
        }
        remove(place, name, report)?;
    }
    Ok(())
}

/// Whether a file that was never listed is one that a rotation had just begun.
pub(crate) fn holds_nothing(place: &Place, name: &str) -> Result<bool> {
    // Not even its encryption header need be there.
    let Ok(log) = LogFile::open(place.storage.as_ref(), name, place.keyring.as_deref()) else {
        let file = place.storage.open(name, false).map_err(Error::io("open", name))?;
        let size = file.size().map_err(Error::io("size", name))?;
        return Ok(size <= binlogz_encryption::HEADER_SIZE as u64);
    };
    match scan::scan(&log, log.size()?)? {
        Ok(scan) => Ok(scan.transactions == 0),
        // Nothing is ever appended to a file whose head is not durable.
        Err(_) => Ok(true),
    }
}

fn recover_last(
    place: &Place,
    last: FileNumber,
    report: &mut RecoveryReport,
) -> Result<Option<(LogFile, u64)>> {
    let name = place.names.log(last);
    let log = LogFile::open(place.storage.as_ref(), &name, place.keyring.as_deref())?;
    let size = log.size()?;
    let damaged = |source| Error::Damaged { file: name.clone(), source };
    let scan = scan::scan(&log, size)?.map_err(damaged)?;
    let Scan { in_use, whole, torn, gtids, transactions, closed } = scan;
    report.end = Some(Position { file: last, offset: whole });
    (report.was_in_use, report.closed) = (in_use, closed);
    (report.gtids, report.transactions) = (gtids, transactions);
    if !in_use {
        // It was synced before it was closed: damage here is not a crash's.
        return match torn {
            Some(error) => Err(damaged(error)),
            None => Ok(None),
        };
    }
    if let Some(error) = torn {
        let cut = Cut { file: name, offset: whole, size: size - whole, reason: error.to_string() };
        report.cut = Some(cut);
        log.set_size(whole)?;
    }
    write_again(&log, whole)?;
    Ok(Some((log, whole)))
}

/// See the module.
fn write_again(log: &LogFile, size: u64) -> Result<()> {
    let (mut chunk, mut scratch) = (vec![0; CHUNK_SIZE as usize], Vec::new());
    let mut offset = 0;
    while offset < size {
        let room = (size - offset).min(CHUNK_SIZE) as usize;
        let count = log.read_at(offset, chunk.get_mut(..room).unwrap_or_default())?;
        if count == 0 {
            break;
        }
        log.write_at(offset, chunk.get(..count).unwrap_or_default(), &mut scratch)?;
        offset += count as u64;
    }
    log.sync()
}
