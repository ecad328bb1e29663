//! Opens what a crash left behind: the only way from files to a store.
//!
//! ```text
//! left behind                                     becomes
//! BASE.index.new, BASE.store.new,                 removed: the old ones are whole
//!   BASE.durable.new
//! a log that the index does not list, too old     removed: a purge was cut short
//! a log that it does not list, newer, no          removed: a rotation was cut short
//!   transaction in it
//! the last log listed, in use, torn after the     cut behind its last whole transaction; a copy of what was cut is
//!   watermark                                       kept beside it
//! the last log listed, damaged before it          left as it is: not written to until it is repaired
//! anything else that does not fit                 an error: no crash of ours leaves that
//! ```
//!
//! Only the last file can be torn, since a rotation syncs a file before it says that it is closed. What was durable is
//! never cut (`watermark.rs`): damage there is no crash's. What is
//! kept of a file in use is written again and synced before anything else: after a sync that failed, the
//! system's cache may show bytes that the disk has not, and says nothing about it.

use std::fmt;
use std::time::Duration;

use binlogz_binlog::gtid::GtidSet;

use crate::aside;
use crate::damage::{self, Damage};
use crate::error::{Error, Result};
use crate::file::LogFile;
use crate::index;
use crate::log_name::FileNumber;
use crate::positions::Position;
use crate::scan::{self, Scan};
use crate::storage::NEW_SUFFIX;
use crate::store::Place;
use crate::watermark::{Floor, Watermark};

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
    /// What is damaged of it, of what was durable: it is not written to.
    pub damage: Option<Damage>,
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
    /// Whole transactions among them: more than a crash of this process leaves, since it writes in order.
    pub transactions: u64,
    /// The copy that was made of them; `None`: the disk had no room for it, and no transaction was whole.
    pub kept_as: Option<String>,
}

impl RecoveryReport {
    /// Whether somebody should look at it: bytes that were durable are damaged, or whole transactions were cut.
    pub fn is_alarming(&self) -> bool {
        self.damage.is_some() || self.cut.as_ref().is_some_and(|cut| cut.transactions > 0)
    }
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
            write!(f, "; {} at {}: {} bytes were cut off", cut.file, cut.offset, cut.size)?;
            if cut.transactions > 0 {
                write!(f, " with {} whole transactions in them", cut.transactions)?;
            }
            if let Some(kept_as) = &cut.kept_as {
                write!(f, " and kept as {kept_as}")?;
            }
            write!(f, ": {}", cut.reason)?;
        }
        if let Some(damage) = &self.damage {
            write!(f, "; nothing was cut and nothing more is written: {damage}")?;
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
    pub(crate) watermark: Watermark,
    pub(crate) report: RecoveryReport,
}

pub(crate) fn recover(place: &Place, interval: Duration) -> Result<Recovered> {
    let storage = place.storage.as_ref();
    let present = storage.list().map_err(Error::io("list", "the directory"))?;
    let mut report = RecoveryReport::default();
    for name in present.iter().filter(|name| is_half_made(place, name)) {
        remove(place, name, &mut report)?;
    }
    let listed = index::read(storage, &place.names, &present)?;
    let files = listed.unwrap_or_default();
    remove_unlisted(place, &present, &files, &mut report)?;
    // Also names that are there: an index whose renaming was never synced could go back to the one before.
    storage.sync_names().map_err(Error::io("sync", "the directory"))?;
    let watermark = Watermark::open(storage, &place.names, &present, interval)?;
    let mut active = None;
    if let Some(last) = files.last() {
        active = recover_last(place, &watermark, *last, &mut report)?;
    }
    if let Some(end) = report.end.filter(|_| report.damage.is_none()) {
        watermark.note(storage, end, true)?;
    }
    Ok(Recovered { files, active, watermark, report })
}

fn is_half_made(place: &Place, name: &str) -> bool {
    name.strip_suffix(NEW_SUFFIX).is_some_and(|name| {
        [place.names.index(), place.names.meta(), place.names.durable()].contains(&name.to_owned())
    })
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

/// Looks at the last file, and cuts what was torn off its end; also after a repair. Gives it if it can be appended to.
pub(crate) fn recover_last(
    place: &Place,
    watermark: &Watermark,
    last: FileNumber,
    report: &mut RecoveryReport,
) -> Result<Option<(LogFile, u64)>> {
    let name = place.names.log(last);
    let log = LogFile::open(place.storage.as_ref(), &name, place.keyring.as_deref())?;
    let size = log.size()?;
    let scan = match scan::scan(&log, size)? {
        Ok(scan) => scan,
        // The head was durable before the index had the file.
        Err(error) => {
            let whole = scan::Scan::without_head(error);
            damaged(&log, &whole, last, size, size, report)?;
            return Ok(None);
        }
    };
    (report.was_in_use, report.closed) = (scan.in_use, scan.closed);
    let floor = match watermark.floor() {
        Floor::At(floor) if floor.file > last => {
            return Err(Error::unfit(
                &place.names.index(),
                format!("it ends with {name}"),
                "the file that was durable last, or no BASE.durable",
            ));
        }
        // It was synced before it was closed.
        _ if !scan.in_use => size,
        Floor::Unreadable => size,
        Floor::At(floor) if floor.file == last => floor.offset,
        Floor::At(_) | Floor::Unknown => 0,
    };
    if scan.valid < floor {
        damaged(&log, &scan, last, floor, size, report)?;
        return Ok(None);
    }
    report.end = Some(Position { file: last, offset: scan.whole });
    (report.gtids, report.transactions) = (scan.gtids.clone(), scan.transactions);
    if !scan.in_use {
        return Ok(None);
    }
    let whole = scan.whole;
    if let Some(error) = &scan.torn {
        if whole < floor {
            // The source never ended this transaction: it will be asked for it again.
            let end = Position { file: last, offset: whole };
            watermark.note(place.storage.as_ref(), end, true)?;
        }
        cut(place, &log, &scan, size, error.to_string(), report)?;
    }
    write_again(&log, whole)?;
    Ok(Some((log, whole)))
}

/// Cuts a torn tail, of which a copy is kept.
fn cut(
    place: &Place,
    log: &LogFile,
    scan: &Scan,
    size: u64,
    reason: String,
    report: &mut RecoveryReport,
) -> Result<()> {
    let whole = scan.whole;
    let behind = damage::look_around(log, scan, 0, size)?;
    let transactions = behind.transactions - scan.transactions;
    let kept = aside::keep_tail(place.storage.as_ref(), &place.names, log, whole, transactions > 0);
    let kept_as = match kept {
        Ok(name) => Some(name),
        // What never was a whole transaction is not worth a log that can't be opened.
        Err(_) if transactions == 0 => None,
        Err(error) => return Err(Error::io("keep the torn end of", &log.name)(error)),
    };
    let file = log.name.clone();
    report.cut = Some(Cut { file, offset: whole, size: size - whole, reason, transactions, kept_as });
    log.set_size(whole)
}

/// Nothing is cut: what is whole can be read.
fn damaged(
    log: &LogFile,
    scan: &Scan,
    last: FileNumber,
    floor: u64,
    size: u64,
    report: &mut RecoveryReport,
) -> Result<()> {
    let around = damage::look_around(log, scan, floor, size)?;
    report.end = Some(Position { file: last, offset: around.end });
    (report.gtids, report.transactions) = (around.gtids, around.transactions);
    report.damage = Some(Damage { file: last, name: log.name.clone(), holes: around.holes });
    write_again(log, size.min(around.end))
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
