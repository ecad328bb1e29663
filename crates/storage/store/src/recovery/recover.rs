//! Opens the files that a crash left: the only way from files to a store.
//!
//! ```text
//! left by the crash                               becomes
//! BASE.index.new, BASE.store.new,                 removed: the old ones are whole
//!   BASE.durable.new
//! a log not in the index, older                   removed: a purge was cut short
//! a log not in the index, newer, without          removed: a rotation was cut short
//!   transactions
//! the last log listed, in use, torn after the     cut after its last whole transaction; a copy of what was cut is
//!   watermark                                       kept beside it
//! the last log listed, damaged before it          left as it is: not written to until it is repaired
//! anything else that does not fit                 an error: no crash of ours leaves that
//! ```
//!
//! Only the last file can be torn, since a rotation syncs a file before it marks it as closed. Durable bytes are never
//! cut (`watermark.rs`): damage there is not from a crash. The part that we keep of a file in use is first written again
//! and synced: after a failed sync, the system's cache may show bytes that are not on disk, without saying so.

use std::fmt;
use std::time::Duration;

use binlogz_binlog::gtid::GtidSet;

use crate::error::{Error, Result};
use crate::files::Position;
use crate::files::StorePlace;
use crate::files::copies;
use crate::files::index;
use crate::files::log_file::LogFile;
use crate::files::names::FileNumber;
use crate::files::watermark::{Floor, Watermark};
use crate::recovery::damage::{self, Damage};
use crate::recovery::scan::{self, Demands, FileScan};
use crate::storage::NEW_SUFFIX;

/// Bytes written again at once.
const CHUNK_SIZE: u64 = 1 << 20;

/// The findings and actions of opening a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Where the log ends; `None` if it is new.
    pub end: Option<Position>,
    /// The last file was not closed.
    pub was_in_use: bool,
    /// The last file ends with a rotate or a stop event: nothing may be appended to it.
    pub closed: bool,
    /// The tail that was cut off the last file.
    pub cut: Option<CutTail>,
    /// Damage in the durable part of the last file: it is not written to.
    pub damage: Option<Damage>,
    /// Removed files: leftovers of a rotation or a purge that was cut short.
    pub removed: Vec<String>,
    /// All GTIDs of the log, including those of purged files.
    pub gtids: GtidSet,
    /// The number of whole transactions in the last file.
    pub transactions: u64,
}

/// A torn tail that was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutTail {
    /// The file.
    pub file: String,
    /// Where the file ends now.
    pub offset: u64,
    /// Bytes that were cut.
    pub size: u64,
    /// The problem with them.
    pub reason: String,
    /// Whole transactions in it: a crash of this process leaves none, since it writes in order.
    pub transactions: u64,
    /// The copy of the cut bytes; `None` if the disk had no room for it and no transaction in them was whole.
    pub kept_as: Option<String>,
}

impl RecoveryReport {
    /// Whether someone should look at it: bytes that were durable are damaged, or whole transactions were
    /// cut.
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
                write!(f, "file {} {state}; transactions in it: {}", end.file, self.transactions)?;
            }
        }
        if let Some(cut) = &self.cut {
            write!(f, "; {} at {}: {} bytes were cut off", cut.file, cut.offset, cut.size)?;
            if cut.transactions > 0 {
                write!(f, ", whole transactions in them: {}", cut.transactions)?;
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

/// The state recovery hands to the store.
pub(crate) struct RecoveredState {
    pub(crate) files: Vec<FileNumber>,
    /// The last file, if it can be appended to.
    pub(crate) active: Option<(LogFile, u64)>,
    pub(crate) watermark: Watermark,
    pub(crate) report: RecoveryReport,
}

pub(crate) fn recover(place: &StorePlace, interval: Duration) -> Result<RecoveredState> {
    let storage = place.storage.as_ref();
    let present = storage.list().map_err(Error::io("list", "the directory"))?;
    let mut report = RecoveryReport::default();
    for name in present.iter().filter(|name| is_half_made(place, name)) {
        remove(place, name, &mut report)?;
    }
    let listed = index::read(storage, &place.names, &present)?;
    let files = listed.unwrap_or_default();
    remove_unlisted(place, &present, &files, &mut report)?;
    // Also for existing names: an index whose rename was never synced could revert to the one before.
    storage.sync_names().map_err(Error::io("sync", "the directory"))?;
    let watermark = Watermark::open(storage, &place.names, &present, interval)?;
    let mut active = None;
    if let Some(last) = files.last() {
        active = recover_last(place, &watermark, *last, &mut report)?;
    }
    if let Some(end) = report.end.filter(|_| report.damage.is_none()) {
        watermark.note(storage, end, true)?;
    }
    Ok(RecoveredState { files, active, watermark, report })
}

fn is_half_made(place: &StorePlace, name: &str) -> bool {
    name.strip_suffix(NEW_SUFFIX).is_some_and(|name| {
        [place.names.index(), place.names.meta(), place.names.durable()].contains(&name.to_owned())
    })
}

fn remove(place: &StorePlace, name: &str, report: &mut RecoveryReport) -> Result<()> {
    place.storage.remove(name).map_err(Error::io("remove", name))?;
    report.removed.push(name.to_owned());
    Ok(())
}

fn remove_unlisted(
    place: &StorePlace,
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

/// Whether an unlisted file is one that a rotation had just begun.
pub(crate) fn holds_nothing(place: &StorePlace, name: &str) -> Result<bool> {
    // Even its encryption header may be missing.
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

/// Checks the last file, and cuts a torn tail off its end; also used after a repair. Returns it if it can be
/// appended to.
pub(crate) fn recover_last(
    place: &StorePlace,
    watermark: &Watermark,
    last: FileNumber,
    report: &mut RecoveryReport,
) -> Result<Option<(LogFile, u64)>> {
    let name = place.names.log(last);
    let log = LogFile::open(place.storage.as_ref(), &name, place.keyring.as_deref())?;
    let size = log.size()?;
    let scan = match scan::scan(&log, size)? {
        Ok(scan) => scan,
        // The head was durable before the index listed the file.
        Err(error) => {
            let whole = scan::FileScan::without_head(error);
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
        // The file was synced before it was closed.
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
            // The source never ended this transaction, and will be asked for it again.
            let end = Position { file: last, offset: whole };
            watermark.note(place.storage.as_ref(), end, true)?;
        }
        cut(place, &log, &scan, size, error.to_string(), report)?;
    }
    write_again(&log, whole)?;
    Ok(Some((log, whole)))
}

/// Cuts a torn tail and keeps a copy of it.
fn cut(
    place: &StorePlace,
    log: &LogFile,
    scan: &FileScan,
    size: u64,
    reason: String,
    report: &mut RecoveryReport,
) -> Result<()> {
    let whole = scan.whole;
    let behind = damage::look_around(log, scan, 0, size, Demands::WholeTransactions)?;
    let transactions = behind.transactions - scan.transactions;
    let kept = copies::keep_tail(place.storage.as_ref(), &place.names, log, whole, transactions > 0);
    let kept_as = match kept {
        Ok(name) => Some(name),
        // A tail without whole transactions is not worth failing to open the log.
        Err(_) if transactions == 0 => None,
        Err(error) => return Err(Error::io("keep the torn end of", &log.name)(error)),
    };
    let file = log.name.clone();
    report.cut = Some(CutTail { file, offset: whole, size: size - whole, reason, transactions, kept_as });
    log.set_size(whole)
}

/// Cuts nothing: whatever is whole can be read.
fn damaged(
    log: &LogFile,
    scan: &FileScan,
    last: FileNumber,
    floor: u64,
    size: u64,
    report: &mut RecoveryReport,
) -> Result<()> {
    let around = damage::look_around(log, scan, floor, size, Demands::WholeTransactions)?;
    report.end = Some(Position { file: last, offset: around.end });
    (report.gtids, report.transactions) = (around.gtids, around.transactions);
    report.damage = Some(Damage { file: last, name: log.name.clone(), holes: around.holes });
    write_again(log, size.min(around.end))
}

/// The module docs say why.
fn write_again(log: &LogFile, size: u64) -> Result<()> {
    let mut chunk = vec![0; CHUNK_SIZE as usize];
    let mut scratch = Vec::new();
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
