//! The logs given to `archive create`: which of them can be archived, and which may be purged where they come from.

use std::collections::HashMap;
use std::path::Path;

use binlogz_archive::Result as ArchiveResult;
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::log::numbered;
use binlogz_archive::presence::{self, Inspector};
use binlogz_archive::storage::ArchiveStorage;
use binlogz_binlog::header::{EVENT_SIZE_OFFSET, EVENT_TYPE_OFFSET, FLAGS_OFFSET, HEADER_SIZE};
use binlogz_binlog::{EventType, HeaderFlags, MAGIC, MAGIC_ENCRYPTED, MAGIC_INNODB};
use binlogz_flow::ReadAt;

use crate::failure::INDEX;

/// The state of a log, judged by its beginning.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LogBeginning {
    Closed,
    /// The server still writes it.
    InUse,
    /// The reason.
    NoLog(&'static str),
}

/// Looks at a log's format description, and for the next log beside it. A log that has a next one is closed, even if its flag
/// says that it is in use: its server crashed.
#[expect(clippy::indexing_slicing, reason = "the header is an array's rest")]
pub(super) fn look_at(log: &dyn ReadAt, path: &Path, name: &str) -> LogBeginning {
    let mut front = [0; MAGIC.len() + HEADER_SIZE];
    let read = log.read_at(&mut front, 0).unwrap_or_default();
    let (magic, header) = front.split_at(MAGIC.len());
    if read == 0 {
        return LogBeginning::NoLog("is empty, expected a binary log");
    }
    if magic == MAGIC_ENCRYPTED {
        // Without its key nothing more is known.
        return LogBeginning::Closed;
    }
    if magic != MAGIC && name.ends_with(INDEX) {
        return LogBeginning::NoLog("is the index, which lists the logs; expected a binary log");
    }
    if magic == MAGIC_INNODB {
        return LogBeginning::NoLog(
            "is a file of MariaDB's InnoDB-based binary log, expected a binary log in a file; a replica with log_slave_updates and \
             without binlog_storage_engine writes one",
        );
    }
    if magic.starts_with(&[0x1f, 0x8b]) {
        return LogBeginning::NoLog("is gzip, expected a binary log; unpack a copy of it first");
    }
    if read < front.len() || magic != MAGIC {
        return LogBeginning::NoLog("does not begin as a binary log does");
    }
    let event_type = EventType(header[EVENT_TYPE_OFFSET]);
    let size = header[EVENT_SIZE_OFFSET..].first_chunk().map_or(0, |size| u32::from_le_bytes(*size));
    let end = MAGIC.len() as u64 + u64::from(size);
    let is_whole = size as usize > HEADER_SIZE && log.read_at(&mut [0], end - 1).is_ok_and(|read| read == 1);
    if ![EventType::FORMAT_DESCRIPTION, EventType::START_V3].contains(&event_type) || !is_whole {
        return LogBeginning::NoLog("has no whole format description");
    }
    let has_next = numbered(name, 1).is_some_and(|next| path.with_file_name(next).exists());
    match u16::from(header[FLAGS_OFFSET]) & HeaderFlags::IN_USE.0 != 0 && !has_next {
        true => LogBeginning::InUse,
        false => LogBeginning::Closed,
    }
}

/// Sees whether the archive has what its manifest names.
pub(super) struct Objects<'s> {
    pub(super) storage: &'s dyn ArchiveStorage,
    pub(super) inspector: Inspector<'s>,
}

impl Objects<'_> {
    /// The first problem with the objects of these logs, as far as was looked; `None`: none. All objects are compared
    /// with a listing. Objects of logs whose file the source still has, as far as we can see, are examined.
    fn problem(&mut self, logs: &[&FileEntry], folder: &Path) -> ArchiveResult<Option<String>> {
        if let Some((file, why)) = presence::missing(self.storage, logs.iter().copied())? {
            return Ok(Some(format!("of {} {why}", file.name)));
        }
        for file in logs.iter().filter(|file| folder.join(&file.name).exists()) {
            if let Some(why) = self.inspector.problem(file)? {
                return Ok(Some(format!("of {} {why}", file.name)));
            }
        }
        Ok(None)
    }
}

/// The line that says which logs may be purged at the source, or why none may. `name` is the last archived log, at
/// `path`.
///
/// # Errors
///
/// An archive that can't be asked for the objects.
pub(super) fn purge_line(
    manifest: &Manifest,
    last: &str,
    path: &Path,
    log: &dyn ReadAt,
    objects: &mut Objects<'_>,
) -> ArchiveResult<Option<String>> {
    let Some((line, chain)) = planned(manifest, last, path, log) else { return Ok(None) };
    Ok(Some(match objects.problem(&chain, folder_of(path))? {
        Some(problem) if !chain.is_empty() => {
            format!("{}; give it to `archive create` again, or check the archive", refused(last, &problem))
        }
        _ => line,
    }))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn refused(last: &str, why: &str) -> String {
    format!("{last}: is archived, but {why}: no PURGE BINARY LOGS that goes so far is safe")
}

/// The refusal or the answer that the manifest alone gives, and the logs that are said to be archived, if any are.
fn planned<'m>(
    manifest: &'m Manifest,
    last: &str,
    path: &Path,
    log: &dyn ReadAt,
) -> Option<(String, Vec<&'m FileEntry>)> {
    let closed = manifest.files.iter().filter(|file| file.active_size.is_none());
    let closed: HashMap<&str, &FileEntry> = closed.map(|file| (file.name.as_str(), file)).collect();
    let known = |name: &str| closed.get(name).copied();
    let mut first = known(last)?;
    let (base, number) = parts(last)?;
    let next = numbered(last, 1)?;
    let refusal = |missing: String| Some((refused(last, &missing), Vec::new()));
    let mut chain = vec![first];
    // Go back as long as each log holds all that the next one says came before.
    while let Some(before) = numbered(&first.name, -1) {
        match known(&before) {
            Some(before) if follows(before, first) => {
                chain.push(before);
                first = before;
            }
            Some(_) => {
                let name = &first.name;
                return refusal(format!("{name} does not follow {before}, as their GTIDs have it"));
            }
            None => break,
        }
    }
    let earlier = |name: &str| parts(name).is_some_and(|(other, at)| other == base && at < number);
    let beside = std::fs::read_dir(folder_of(path)).ok();
    let mut beside: Vec<String> = beside
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| earlier(name) && known(name).is_none())
        .collect();
    beside.sort();
    if let Some(missing) = beside.first() {
        return refusal(format!("{missing} is not"));
    }
    let before = numbered(&first.name, -1);
    let is_cut = manifest.files.iter().any(|file| {
        earlier(&file.name) && parts(&file.name).map(|(_, at)| at) < parts(&first.name).map(|(_, at)| at)
    });
    if let Some(missing) = before.filter(|_| is_cut) {
        return refusal(format!("{missing} is not"));
    }
    let size = known(last)?.size;
    let first = &first.name;
    let archived =
        if first == last { format!("{last} is archived") } else { format!("{first} to {last} are archived") };
    if !path.with_file_name(&next).exists() && !ends_with_rotate_to(log, size, &next) {
        return Some((format!("{archived}; {last} is the last of its server as yet"), chain));
    }
    Some((format!("{archived}; where the source has none older: PURGE BINARY LOGS TO '{next}';"), chain))
}

/// Whether nothing is missing between two logs, as far as GTIDs tell.
fn follows(before: &FileEntry, after: &FileEntry) -> bool {
    let (Ok(mut all), Ok(gtids), Ok(previous)) =
        (before.previous_gtid_set(), before.gtid_set(), after.previous_gtid_set())
    else {
        return false;
    };
    all.union(&gtids);
    previous.is_subset(&all)
}

/// Whether a log's server went on in a log of this name.
#[expect(clippy::indexing_slicing, reason = "the event is made that large")]
fn ends_with_rotate_to(log: &dyn ReadAt, size: u64, next: &str) -> bool {
    const POSITION_SIZE: usize = 8;
    [0, 4].into_iter().any(|checksum_size| {
        let event_size = HEADER_SIZE + POSITION_SIZE + next.len() + checksum_size;
        let mut event = vec![0; event_size];
        let at = size.checked_sub(event_size as u64);
        at.is_some_and(|at| log.read_at(&mut event, at).is_ok_and(|read| read == event_size))
            && EventType(event[EVENT_TYPE_OFFSET]) == EventType::ROTATE
            && event[HEADER_SIZE + POSITION_SIZE..].starts_with(next.as_bytes())
    })
}

fn parts(name: &str) -> Option<(&str, u64)> {
    let (base, number) = name.rsplit_once('.')?;
    Some((base, number.parse().ok()?))
}
