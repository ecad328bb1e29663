//! Archives closed files: packs, stores, reads back and compares them (`binlogz-archive`). They are purged only once they
//! are in the archive. If another log follows a log, all files of that log are closed, even the last one. If the archive
//! can't be reached, files can't be purged; everything else goes on, and health says so after a while. A replica that
//! needs purged files reads them restored from the archive, one by one (`brought_back`). From an archive that is a selection of tables
//! none comes back, and a file whose selection isn't certain stays until it is purged by force.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_archive::chosen_tables::{self, SelectedLog, TableChoice, selected_name};
use binlogz_archive::create::{CreateOutcome, Creator};
use binlogz_archive::storage::encrypted::KEY_FILE;
use binlogz_archive::storage::{self, ArchiveStorage};
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{MAGIC, MAGIC_ENCRYPTED};
use binlogz_figures::moment_of_second;
use binlogz_flow::{Input, ReadAt};
use binlogz_payload::Library;
use binlogz_relay_log::{
    BringBack, ClosedLog, ClosedLogs, Error as LogError, FileLease, Form, FormFile, LineageLog, PurgedFile,
};
use binlogz_store::{FileNumber, StoredLog};

use crate::error::{Error, Result};
use crate::housekeeping::Housekeeping;
use crate::rates::Throttles;
use crate::telemetry::{Telemetry, complain, duties, report, say, spans};

/// How often to look for closed files.
const INTERVAL: Duration = Duration::from_secs(5);
/// Threads that pack files: receiving and serving go on in the meantime.
const WORKERS: usize = 1;

/// The archive for closed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// A folder, or `s3://BUCKET/PREFIX`.
    pub to: PathBuf,
    /// Whether files that are encrypted here may go into an archive that is not.
    pub plaintext: bool,
    /// The tables that are archived. Unless these are all, the archive is a selection, and no file comes back from it.
    pub tables: TableChoice,
    /// How many bytes may be brought back from the archive.
    pub bring_back: BringBack,
    /// Closed files that wait for so long, and none is archived meanwhile, are a trouble. A large file has more time: see
    /// [`ArchiveOptions::SPEED_MIN`].
    pub overdue: Duration,
    /// How often everything in the archive is checked; `None`: it isn't.
    pub check: Option<Duration>,
}

/// Archiving that has failed for this long is a trouble.
const FAILING_MAX: Duration = Duration::from_secs(60);

impl ArchiveOptions {
    /// How long archiving may stand still: longer than the restart of an object storage, and than a pause of its network.
    pub const OVERDUE: Duration = Duration::from_secs(15 * 60);
    /// How often everything in the archive is checked: often enough to find damage while a backup or a replica still has another copy.
    pub const CHECK: Duration = Duration::from_secs(7 * 24 * 3600);
    /// Bytes a second at which a file is archived at least, unless `archive_rate` is lower: a core packs several times as much.
    pub(crate) const SPEED_MIN: u64 = 1 << 20;

    /// The name of a file in the archive.
    pub(crate) fn name_of(&self, file: &str) -> String {
        if self.tables.is_all() { file.to_owned() } else { selected_name(file) }
    }

    /// The log's folder in the archive: another server's files may have the same names.
    pub(crate) fn place_of(&self, kept: &LineageLog) -> PathBuf {
        kept.folder.as_ref().map_or_else(|| self.to.clone(), |folder| self.to.join(folder))
    }
}

pub(crate) fn watch(house: &Housekeeping, options: &ArchiveOptions) {
    let mut told = BTreeMap::new();
    let mut unmet = UnmetTables { names: options.tables.named().collect(), files: 0, is_told: false };
    duties::rounds(&house.telemetry, duties::ARCHIVE, INTERVAL, "it is tried again", || {
        tell_given_up(house, &mut told);
        // An error in one log does not hold up the others.
        for kept in house.lineages.all() {
            if let Err(error) = archive(house, &kept, options, &mut unmet)
                && !house.telemetry.ending.has_begun()
            {
                kept.archived.failed(&error.to_string(), Instant::now());
                complain!(
                    house.telemetry,
                    &error,
                    &format!("{error}; files that are not archived are not purged")
                );
            }
        }
        unmet.tell(house);
        Ok(house.brought_back.sweep(&house.lineages)?)
    });
}

/// Tables that a selection names without `*`, and that had no rows since the start.
struct UnmetTables {
    names: BTreeSet<String>,
    /// Files of which selections were made.
    files: u64,
    is_told: bool,
}

impl UnmetTables {
    fn look(&mut self, met: &BTreeSet<String>) {
        self.files += 1;
        self.names.retain(|name| !met.contains(name));
    }

    /// Tells of them once, after the first files: a name may be misspelt.
    fn tell(&mut self, house: &Housekeeping) {
        if self.is_told || self.files == 0 {
            return;
        }
        self.is_told = true;
        for name in &self.names {
            let line = format!(
                "{name}: has no rows in the {} files that were read for the archive since the start, though [archive] tables names it",
                self.files
            );
            say!(house.telemetry, &line);
        }
    }
}

/// Tells once of each helper that does not work: payloads that only it could make again are kept as they are.
fn tell_given_up(house: &Housekeeping, told: &mut BTreeMap<&'static str, String>) {
    for library in Library::ALL {
        let Some(why) = library.given_up() else {
            told.remove(library.version());
            continue;
        };
        if told.get(library.version()) != Some(&why) {
            let program = library.program().unwrap_or_default();
            let error =
                Error::Log(LogError::Payload(binlogz_payload::Error::Helper { program, wrong: why.clone() }));
            let line = format!("{error}; payloads that {library} made are archived as they are meanwhile");
            complain!(house.telemetry, &error, &line);
            told.insert(library.version(), why);
        }
    }
}

/// Removes files that were brought back and are no longer read; for logs without a source.
pub(crate) fn sweep(house: &Housekeeping) {
    duties::rounds(&house.telemetry, duties::RETAIN, INTERVAL, "it is tried again", || {
        Ok(house.brought_back.sweep(&house.lineages)?)
    });
}

/// Whether all of a log is archived, so that it can be removed completely; always true without an archive.
pub(crate) fn may_go_whole(house: &Housekeeping, kept: &LineageLog) -> Result<bool> {
    let logs = kept.store.logs()?;
    let last = logs.last().map(|log| log.number);
    let doubtful = logs.first().and_then(|first| kept.archived.first_doubtful(first.number));
    Ok(is_final(kept) && (house.archive.is_none() || kept.archived.last() >= last && doubtful.is_none()))
}

/// How far files may be purged that nobody purges by force: not the first one whose selection isn't certain.
pub(crate) fn up_to_doubtful(kept: &LineageLog, first: FileNumber) -> Result<FileNumber> {
    let logs = kept.store.logs()?;
    let doubtful = logs.first().and_then(|log| kept.archived.first_doubtful(log.number));
    Ok(doubtful.map_or(first, |doubtful| first.min(doubtful)))
}

/// Whether a log is final: another one continues in its place, and all of it is durable.
fn is_final(kept: &LineageLog) -> bool {
    kept.is_retired() && kept.store.positions().is_some_and(|now| now.written == now.durable)
}

/// The closed files of a log that are not archived yet.
pub(crate) fn waiting(kept: &LineageLog) -> Result<Vec<StoredLog>> {
    let last = kept.archived.last();
    let mut closed = kept.store.logs()?;
    if !is_final(kept) {
        closed.pop();
    }
    closed.retain(|log| Some(log.number) > last);
    Ok(closed)
}

/// The problem with archiving a log while these files wait for it; `None`: there is none.
pub(crate) fn trouble(house: &Housekeeping, kept: &LineageLog, waiting: &[StoredLog]) -> Option<String> {
    let options = house.archive.as_ref()?;
    let first = waiting.first()?;
    let now = Instant::now();
    let to = options.place_of(kept).display().to_string();
    let files = match waiting.len() {
        1 => "a closed file waits".to_owned(),
        count => format!("{count} closed files wait"),
    };
    let rate = house.throttles.archive.status().lowest().unwrap_or(u64::MAX);
    let time = Duration::from_secs(first.size / rate.clamp(1, ArchiveOptions::SPEED_MIN));
    match (kept.archived.failing(now), kept.archived.still(now)) {
        (Some((long, why)), _) if long >= FAILING_MAX.min(options.overdue) => {
            Some(format!("archiving to {to} has failed for {} s, and {files}: {why}", long.as_secs()))
        }
        (_, still) if still >= options.overdue + time => {
            let still = still.as_secs();
            Some(format!("archiving to {to} is overdue: {files}, and none was archived for {still} s"))
        }
        _ => None,
    }
}

/// Archives files closed since the last run.
fn archive(
    house: &Housekeeping,
    kept: &LineageLog,
    options: &ArchiveOptions,
    unmet: &mut UnmetTables,
) -> Result<()> {
    let closed = waiting(kept)?;
    if closed.is_empty() {
        kept.archived.idle(Instant::now());
        return Ok(());
    }
    let span = spans::archive(&house.telemetry);
    span.record("files", closed.len());
    let _round = span.entered();
    let to = options.place_of(kept);
    let failed = |error| Error::Log(LogError::Archive(to.display().to_string(), error));
    let storage = storage::at(&to).map_err(failed)?;
    let mut told = |created: &CreateOutcome| {
        let (CreateOutcome::Added(file) | CreateOutcome::Known(file) | CreateOutcome::StoredAgain(file, _)) =
            created;
        if let Some(log) = closed.iter().find(|log| *file.name == *options.name_of(&log.name)) {
            kept.archived.advance(log.number, Instant::now());
        }
        match created {
            CreateOutcome::Added(_) => {
                say!(
                    house.telemetry,
                    &format!("archived {}: {} -> {} bytes", file.name, file.size, file.packed_size)
                );
            }
            CreateOutcome::StoredAgain(_, why) => {
                say!(house.telemetry, &format!("archived {} again: {why}", file.name));
            }
            CreateOutcome::Known(_) => {}
        }
    };
    let is_encrypted = storage.is_encrypted().map_err(failed)?;
    let mut creator = Creator::new(&storage, WORKERS, &mut told).map_err(failed)?;
    if !options.tables.is_all() {
        creator.selection(options.tables.clone()).map_err(failed)?;
    }
    let mut refused = None;
    for log in &closed {
        let directory = &house.directory;
        let directory =
            kept.folder.as_ref().map_or_else(|| directory.clone(), |folder| directory.join(folder));
        let path = directory.join(&log.name);
        let reading = || Error::io(format!("read {}", path.display()));
        let mode = std::fs::metadata(&path).map_err(reading())?.mode();
        let mut input = Input::open(&path).map_err(reading())?;
        if let Some(keyring) = &house.keyring {
            input = input.decrypted(keyring).map_err(|error| reading()(std::io::Error::other(error)))?;
        }
        let Input::Places(bytes) = input else { continue };
        if !options.plaintext && !is_encrypted && was_encrypted(&path).map_err(reading())? {
            refused = Some(Error::Refused(format!(
                "{}: {} is encrypted, and the archive is not: {KEY_FILE} names a key for a new archive, plaintext = true \
                 in [archive] allows it",
                to.display(),
                log.name
            )));
            break;
        }
        let telemetry = Arc::clone(&house.telemetry);
        let throttles = Arc::clone(&house.throttles);
        let bytes = Arc::new(ThrottledFile { bytes, telemetry, throttles });
        let added = stored((house, kept, options), log, bytes, unmet)
            .and_then(|bytes| creator.add_file(&options.name_of(&log.name), bytes, Some(mode)));
        match added {
            Ok(()) => {}
            // Nothing is read any more once the source ends.
            Err(error) if house.telemetry.ending.has_begun() => return Err(failed(error)),
            // What was packed before it is kept. A torn one is repaired first.
            Err(error) => {
                refused = Some(failed(error));
                break;
            }
        }
    }
    creator.finish().map_err(failed)?;
    refused.map_or(Ok(()), Err)
}

/// What is stored of a closed file: the whole of it, or the chosen tables.
fn stored(
    (house, kept, options): (&Housekeeping, &LineageLog, &ArchiveOptions),
    file: &StoredLog,
    bytes: Arc<dyn ReadAt>,
    unmet: &mut UnmetTables,
) -> binlogz_archive::Result<Arc<dyn ReadAt>> {
    if options.tables.is_all() {
        return Ok(bytes);
    }
    let SelectedLog { log, doubts, met, .. } = chosen_tables::select(&bytes, &options.tables, WORKERS)?;
    unmet.look(&met);
    let name = &file.name;
    if !doubts.is_empty() && kept.archived.doubt(file.number) {
        for doubt in doubts.lines() {
            report!(
                house.telemetry,
                true,
                &format!("{name}: in the archive, a selection of tables: {doubt}")
            );
        }
        let line = format!(
            "{name}: stays here, and so do later files, until it is purged by force: its selection isn't certain"
        );
        report!(house.telemetry, true, &line);
    }
    Ok(log)
}

/// A file that is read no faster than the rate for archiving allows.
struct ThrottledFile {
    bytes: Arc<dyn ReadAt>,
    telemetry: Arc<Telemetry>,
    throttles: Arc<Throttles>,
}

impl ThrottledFile {
    fn pay(&self, count: usize) -> io::Result<usize> {
        if let Some(tickets) = self.throttles.archive.take(count) {
            self.throttles.archive.wait(&tickets, |time| self.telemetry.ending.sleep(time));
            if self.telemetry.ending.has_begun() {
                return Err(io::Error::other("the source is no longer wanted"));
            }
        }
        Ok(count)
    }
}

impl ReadAt for ThrottledFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.bytes.read_at(buffer, offset).and_then(|count| self.pay(count))
    }

    fn append_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        self.bytes.append_at(buffer, offset).and_then(|count| self.pay(count))
    }
}

/// Whether a file is encrypted as a server encrypts its logs.
fn was_encrypted(path: &Path) -> io::Result<bool> {
    let mut magic = [0; MAGIC_ENCRYPTED.len()];
    File::open(path)?.read_exact(&mut magic)?;
    Ok(magic == MAGIC_ENCRYPTED)
}

/// The first of these files that may not be purged, because it isn't archived; `None` if there is no archive.
pub(crate) fn first_needed(house: &Housekeeping, kept: &LineageLog) -> Result<Option<FileNumber>> {
    if house.archive.is_none() {
        return Ok(None);
    }
    let first = || Ok::<_, Error>(kept.store.logs()?.first().map(|log| log.number));
    kept.archived.last().map_or_else(first, |last| Ok(Some(last.next())))
}

/// The archived files that come before those on disk, without a gap.
struct Shelf {
    logs: Arc<ClosedLogs>,
    /// Newest first.
    numbers: Vec<FileNumber>,
}

impl Shelf {
    /// `None` if there is no archive.
    fn of(house: &Housekeeping, kept: &LineageLog) -> Result<Option<Shelf>> {
        let Some((first, _)) = kept.front(Form::Received)? else { return Ok(None) };
        let logs = match (&house.closed, &house.archive) {
            (Some(closed), _) => Arc::clone(closed),
            (None, Some(options)) => {
                Arc::new(ClosedLogs::in_archive(&options.place_of(kept), kept.store.names())?)
            }
            (None, None) => return Ok(None),
        };
        Ok(Some(Shelf { numbers: logs.just_before(first), logs }))
    }

    fn get(&self, number: FileNumber) -> Option<&ClosedLog> {
        self.logs.get(number).filter(|_| self.numbers.contains(&number))
    }
}

/// The last archived file whose previous GTIDs are all in this set, if no later file is missing.
pub(crate) fn last_with(
    house: &Housekeeping,
    kept: &LineageLog,
    gtid_set: &GtidSet,
) -> Result<Option<FileNumber>> {
    let Some(shelf) = Shelf::of(house, kept)? else { return Ok(None) };
    for number in shelf.numbers.iter().copied() {
        let Some(log) = shelf.get(number) else { continue };
        if shelf.logs.previous(log)?.is_subset(gtid_set) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// The purged file with this number in a form, if it is archived.
pub(crate) fn find(
    house: &Housekeeping,
    kept: &LineageLog,
    form: Form,
    wanted: FileNumber,
) -> Result<Option<FormFile>> {
    let Some(shelf) = Shelf::of(house, kept)? else { return Ok(None) };
    if form != Form::Uncompressed {
        return Ok(shelf.numbers.contains(&wanted).then(|| FormFile::first_of(wanted)));
    }
    let Some((_, mut number)) = kept.front(form)? else { return Ok(None) };
    for file in shelf.numbers {
        number.0 = number.0.saturating_sub(parts(house, kept, form, file)?);
        if let Some(part) = wanted.0.checked_sub(number.0) {
            return Ok(Some(FormFile { file, part: part as u32 }));
        }
    }
    Ok(None)
}

/// Counts the files of a form that purged files from this one on were cut into: their names depend on it. If the
/// count is unknown for some, they are brought back one by one.
pub(crate) fn count_parts(
    house: &Housekeeping,
    kept: &LineageLog,
    form: Form,
    from: FileNumber,
) -> Result<()> {
    let Some((first, _)) = kept.front(Form::Received)? else { return Ok(()) };
    if form == Form::Uncompressed {
        for file in from.0..first.0 {
            parts(house, kept, form, FileNumber(file))?;
        }
    }
    Ok(())
}

fn parts(house: &Housekeeping, kept: &LineageLog, form: Form, file: FileNumber) -> Result<u64> {
    let count = || Ok::<_, Error>(kept.parts_of(form, file)?.count() as u64);
    match count() {
        Ok(count) => Ok(count),
        Err(Error::Log(LogError::Store(_))) => {
            let _lease = lease(house, kept, file)?;
            count()
        }
        Err(error) => Err(error),
    }
}

/// Keeps a file available while the returned lease is held; `None` if it is in the log.
///
/// # Errors
///
/// The file is neither in the log nor in the archive, is not the one that was archived, or there is no room for it.
pub(crate) fn lease(
    house: &Housekeeping,
    kept: &LineageLog,
    number: FileNumber,
) -> Result<Option<FileLease>> {
    lease_at(house, kept, number, (Form::Received, MAGIC.len() as u64))
}

/// [`lease`] for a reader that begins at this offset of a file of a form.
///
/// # Errors
///
/// As [`lease`]; values were erased from the file before that offset, so that it may be one of the file as it was.
pub(crate) fn lease_at(
    house: &Housekeeping,
    kept: &LineageLog,
    number: FileNumber,
    begin: (Form, u64),
) -> Result<Option<FileLease>> {
    if kept.store.logs()?.iter().any(|log| log.number == number) {
        // The last of closed logs is on disk as its archive has it.
        let closed = house.closed.as_ref().and_then(|closed| closed.get(number));
        return closed.map_or(Ok(()), |log| check_position(log, begin)).map(|()| None);
    }
    let shelf = Shelf::of(house, kept)?.ok_or_else(purged)?;
    let log = shelf.get(number).ok_or_else(purged)?;
    check_position(log, begin)?;
    let place = PurgedFile { lineages: &house.lineages, kept, number, version: log.version() };
    let mut failed = None;
    let mut came = false;
    let leased = house.brought_back.lease(&place, log.size, &mut |out| {
        came = true;
        shelf.logs.write(log, out).map_err(|error| {
            let line = error.to_string();
            failed = Some(error);
            io::Error::other(line)
        })
    });
    // Errors of the archive are reported in its own words.
    let lease = leased.map_err(|error| failed.unwrap_or(error))?;
    let erased = log.erased();
    if came {
        let note = erased
            .as_ref()
            .map_or_else(String::new, |erased| format!(": {}", erased.in_words(moment_of_second)));
        say!(house.telemetry, &format!("brought {} back from {}{note}", log.name, shelf.logs.place()));
    }
    if erased.is_some() {
        kept.cuts.find_again(&kept.store, number, log.version())?;
    }
    Ok(Some(lease))
}

/// Positions after the first row that lost values are others than in the file that was purged, and no one can tell which a client means.
fn check_position(log: &ClosedLog, (form, from): (Form, u64)) -> Result<()> {
    let begin = MAGIC.len() as u64;
    let same_until = match (log.positions_until(), form) {
        (None, _) => return Ok(()),
        (Some(until), Form::Received) => until.max(begin),
        // Its positions are others, too.
        (Some(_), Form::Compressed | Form::Uncompressed) => begin,
    };
    if from <= same_until {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "Values were erased from {} in the archive: positions after {same_until} are others since, and what {from} was isn't known; go on by GTID, or \
         begin the file at {begin}",
        log.name
    )))
}

/// The error if neither the log nor the archive has the transactions that a client lacks.
pub(crate) fn purged() -> Error {
    Error::Refused(
        "Cannot replicate because the source purged required binary logs: the relay's log begins later"
            .into(),
    )
}
