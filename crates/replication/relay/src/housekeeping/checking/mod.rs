//! Checks what archives hold, log by log over days, so that damage is found while there may be another copy of it.
//!
//! ```text
//! due ─ the manifest ─ each log: all blocks, and its SHA-256 (`binlogz_archive::check`) ─ the archive's record of checks
//!                      └ damaged or missing: red, logged, written down; looked at again until it is whole
//! ```
//!
//! Only a part of the time is spent on it ([`REST`]). Each look at an archive is given up when it takes too long: an archive
//! or a helper that hangs holds up nothing but these checks, and is told.

mod pass;
mod patient;

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use binlogz_archive::check;
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::last_check::{self, LastChecks};
use binlogz_archive::presence::CheckDepth;
use binlogz_archive::storage::{self, ArchiveStorage};
use binlogz_relay_log::{Error as LogError, LineageLog};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::housekeeping::Housekeeping;
use crate::housekeeping::archiving::ArchiveOptions;
use crate::telemetry::{complain, duties, say};
use crate::time::now;
use pass::{CheckProgress, PresentPass};
use patient::PatientThread;

/// How often to look whether a check is due.
const INTERVAL: Duration = Duration::from_secs(5);
/// Threads that unpack a log: receiving and serving go on in the meantime.
const WORKERS: usize = 1;
/// After each look the duty rests for this many times as long: at most a quarter of the time is spent on checks.
const REST: u32 = 3;
/// A round ends after so long, though there is more to look at.
const ROUND: Duration = Duration::from_secs(60);
/// A manifest is read again after so long: others may have changed the archive.
const OPEN_MAX: Duration = Duration::from_secs(600);
/// A damaged log is looked at again after so long, unless checks follow each other sooner.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
/// After an error it is tried again after so long, or after `overdue` if that is less.
const RETRY: Duration = Duration::from_secs(60);
/// The manifest's name among the logs that are damaged; no log has such a name.
const MANIFEST: &str = "the manifest";

/// How an archive was checked.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ArchiveCheckStatus {
    /// How often everything is checked.
    pub interval_seconds: u64,
    /// How long ago the last check of everything began; before the first one, how long there has been something to check.
    /// None: nothing is archived yet.
    pub age_seconds: Option<u64>,
    /// Logs that were looked at since the start.
    pub checked_logs: u64,
    /// Logs that were found damaged or missing, and were not found whole since.
    pub damaged_logs: usize,
    /// How long looking has been failing; none if it isn't.
    pub failing_seconds: Option<u64>,
}

/// The results of the checks of a source's archives.
#[derive(Debug, Default)]
pub(crate) struct ArchiveChecks {
    /// By the numbers of their logs.
    of: Mutex<BTreeMap<u64, CheckState>>,
    checked_logs: AtomicU64,
}

#[derive(Debug, Default)]
struct CheckState {
    progress: Option<CheckProgress>,
    /// Since when it fails, and why it last did.
    failing: Option<(Instant, String)>,
}

impl ArchiveChecks {
    fn progress(&self, log: u64) -> Option<CheckProgress> {
        self.of.lock().get(&log)?.progress.clone()
    }

    fn note(&self, log: u64, progress: &CheckProgress) {
        self.of.lock().entry(log).or_default().progress = Some(progress.clone());
    }

    fn well(&self, log: u64) {
        self.of.lock().entry(log).or_default().failing = None;
    }

    fn failed(&self, log: u64, why: &str) {
        let mut checks = self.of.lock();
        let failing = &mut checks.entry(log).or_default().failing;
        let since = failing.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        *failing = Some((since, why.to_owned()));
    }

    /// The state of all of them together; `None`: they are not checked.
    pub(crate) fn status(&self, options: &ArchiveOptions) -> Option<ArchiveCheckStatus> {
        let interval = options.check?;
        let now = now();
        let checks = self.of.lock();
        let known = || checks.values().filter_map(|state| state.progress.as_ref());
        let failing = checks.values().filter_map(|state| state.failing.as_ref());
        Some(ArchiveCheckStatus {
            interval_seconds: interval.as_secs(),
            age_seconds: known().map(|progress| progress.age(now)).max(),
            checked_logs: self.checked_logs.load(Ordering::Relaxed),
            damaged_logs: known().map(|progress| progress.damaged.len()).sum(),
            failing_seconds: failing.map(|(since, _)| since.elapsed().as_secs()).max(),
        })
    }
}

/// The problems with the archive of a log, one line each.
pub(crate) fn troubles(house: &Housekeeping, kept: &LineageLog) -> Vec<String> {
    let Some(options) = &house.archive else { return Vec::new() };
    let Some(interval) = options.check else { return Vec::new() };
    let checks = house.checks.of.lock();
    let Some(CheckState { progress, failing }) = checks.get(&kept.number) else { return Vec::new() };
    let to = options.place_of(kept).display().to_string();
    let mut troubles = Vec::new();
    let damaged = progress.as_ref().map(|progress| &progress.damaged);
    if let Some((damaged, (_, found))) =
        damaged.and_then(|damaged| Some((damaged, damaged.first_key_value()?)))
    {
        let more = match damaged.len() {
            1 => String::new(),
            count => format!("; {} more are damaged or missing", count - 1),
        };
        troubles.push(format!("the archive {to} is not whole: {found}{more}"));
    }
    if let Some((since, why)) = failing.as_ref().filter(|(since, _)| since.elapsed() >= options.overdue) {
        let long = since.elapsed().as_secs();
        troubles.push(format!("checking the archive {to} has failed for {long} s: {why}"));
    }
    let age = progress.as_ref().map_or(0, |progress| progress.age(now()));
    if age >= (interval + interval.max(ArchiveOptions::OVERDUE)).as_secs() {
        troubles.push(format!(
            "the archive {to} was not checked for {age} s, and is to be checked each {} s",
            interval.as_secs()
        ));
    }
    troubles
}

pub(crate) fn watch(house: &Housekeeping, options: &ArchiveOptions, interval: Duration) {
    let mut checker = ArchiveChecker::new(house, options, interval);
    duties::rounds(&house.telemetry, duties::CHECK, INTERVAL, "it is tried again", || checker.round(now()));
}

/// An archive whose manifest was read.
struct OpenArchive {
    storage: Box<dyn ArchiveStorage>,
    manifest: Manifest,
    at: Instant,
}

pub(crate) struct ArchiveChecker<'a> {
    house: &'a Housekeeping,
    options: &'a ArchiveOptions,
    interval: Duration,
    /// By the numbers of their logs, as are the others.
    open: BTreeMap<u64, Arc<OpenArchive>>,
    threads: BTreeMap<u64, PatientThread>,
    /// When damaged logs were last looked at again.
    looked: BTreeMap<u64, Instant>,
    /// When it last failed, and what was told of that.
    failed: BTreeMap<u64, (Instant, String)>,
}

impl<'a> ArchiveChecker<'a> {
    pub(crate) fn new(house: &'a Housekeeping, options: &'a ArchiveOptions, interval: Duration) -> Self {
        ArchiveChecker {
            house,
            options,
            interval,
            open: BTreeMap::new(),
            threads: BTreeMap::new(),
            looked: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Looks at what is due at this time, in seconds since 1970.
    pub(crate) fn round(&mut self, now: u64) -> Result<()> {
        let round = Instant::now();
        loop {
            let began = Instant::now();
            let mut has_more = false;
            // An error in one archive does not hold up the others.
            for kept in self.house.lineages.all() {
                has_more |= self.attempt(&kept, now)?;
            }
            let rest = began.elapsed().saturating_mul(REST);
            if !has_more || round.elapsed() > ROUND || !self.house.telemetry.ending.sleep(rest) {
                return Ok(());
            }
        }
    }

    /// Returns whether there is more to look at.
    fn attempt(&mut self, kept: &LineageLog, now: u64) -> Result<bool> {
        let house = self.house;
        let number = kept.number;
        let pause = RETRY.min(self.options.overdue);
        if self.failed.get(&number).is_some_and(|(at, _)| at.elapsed() < pause) {
            return Ok(false);
        }
        match self.step(kept, now) {
            Ok(has_more) => {
                house.checks.well(number);
                self.failed.remove(&number);
                if !has_more {
                    // A manifest may be large.
                    self.open.remove(&number);
                }
                Ok(has_more)
            }
            Err(error) if error.is_bug() => Err(error),
            Err(_) if house.telemetry.ending.has_begun() => Ok(false),
            Err(error) => {
                let line = error.to_string();
                house.checks.failed(number, &line);
                self.open.remove(&number);
                if self.failed.get(&number).is_none_or(|(_, told)| *told != line) {
                    let line = format!("{line}; the archive is not checked meanwhile");
                    complain!(house.telemetry, &error, &line);
                }
                self.failed.insert(number, (Instant::now(), line));
                Ok(false)
            }
        }
    }

    /// One step of a pass, if one is due. Returns whether there is another.
    fn step(&mut self, kept: &LineageLog, now: u64) -> Result<bool> {
        let number = kept.number;
        let mut progress = match self.house.checks.progress(number) {
            Some(progress) => progress,
            None => match CheckProgress::read(kept.storage.as_ref())? {
                Some(progress) => {
                    self.house.checks.note(number, &progress);
                    progress
                }
                None => CheckProgress::new(now),
            },
        };
        let is_due = progress.is_due(self.interval, now);
        let pause = LOOK_AGAIN.min(self.interval);
        let looks_again = !progress.damaged.is_empty()
            && self.looked.get(&number).is_none_or(|looked| looked.elapsed() >= pause);
        if !is_due && !looks_again && progress.present.is_none() {
            return Ok(false);
        }
        let Some(archive) = self.opened(kept)? else { return Ok(false) };
        if looks_again {
            self.look_again(kept, &mut progress)?;
            self.looked.insert(number, Instant::now());
        }
        if is_due {
            if let Some(time) = self.checked_by_others(kept, &archive, now)?
                && progress.damaged.is_empty()
            {
                progress.whole = Some(time);
                self.save(kept, &progress)?;
                return Ok(false);
            }
            progress.present = Some(PresentPass { began: now, after: None });
        }
        let Some(pass) = progress.present.clone() else { return Ok(false) };
        if pass.after.is_none() {
            self.look(kept, &mut progress, MANIFEST)?;
        }
        match next_log(&archive.manifest, pass.after.as_deref()).map(|file| file.name.to_string()) {
            Some(name) => {
                self.look(kept, &mut progress, &name)?;
                progress.present = Some(PresentPass { after: Some(name), ..pass });
            }
            None => {
                (progress.present, progress.whole) = (None, Some(pass.began));
                self.write_down(kept, &progress)?;
            }
        }
        self.save(kept, &progress)?;
        Ok(progress.present.is_some())
    }

    fn save(&self, kept: &LineageLog, progress: &CheckProgress) -> Result<()> {
        self.house.checks.note(kept.number, progress);
        progress.write(kept.storage.as_ref())
    }

    /// Looks at a log of the archive, or at its manifest, and tells what is wrong.
    fn look(&mut self, kept: &LineageLog, progress: &mut CheckProgress, name: &str) -> Result<()> {
        let mut found = self.damage_of(kept, name)?;
        if !found.is_empty() {
            // Another run may have moved it since the manifest was read; an archive that can't be reached has no damage.
            self.open.remove(&kept.number);
            found = self.damage_of(kept, name)?;
        }
        let to = self.options.place_of(kept).display().to_string();
        let Some(first) = found.first() else {
            if progress.damaged.remove(name).is_some() {
                self.save(kept, progress)?;
                say!(
                    self.house.telemetry,
                    &format!("archive {to}: {name} is whole again, or not there any more")
                );
            }
            return Ok(());
        };
        if progress.is_damaged(name, first) {
            let error = Error::Log(LogError::DamagedLog(format!("archive {to}: {first}")));
            complain!(
                self.house.telemetry,
                &error,
                &format!("{error}; it was found by checking the archive")
            );
        }
        self.save(kept, progress)?;
        self.write_down(kept, progress)
    }

    /// Looks again at what was found damaged.
    fn look_again(&mut self, kept: &LineageLog, progress: &mut CheckProgress) -> Result<()> {
        self.open.remove(&kept.number);
        for name in progress.damaged.keys().cloned().collect::<Vec<_>>() {
            self.look(kept, progress, &name)?;
        }
        match progress.damaged.is_empty() && progress.present.is_none() {
            true => self.write_down(kept, progress),
            false => Ok(()),
        }
    }

    /// The damage of a log of the archive, or of its manifest; none if the log is not in it.
    fn damage_of(&mut self, kept: &LineageLog, name: &str) -> Result<Vec<String>> {
        let Some(archive) = self.opened(kept)? else { return Ok(Vec::new()) };
        if name == MANIFEST {
            let manifest = move || Ok(check::damage_of_manifest(archive.storage.as_ref(), &archive.manifest));
            return self.within(kept, 0, "its manifest", manifest);
        }
        let file = archive.manifest.files.iter().find(|file| file.name == *name);
        let Some(file) = file.cloned() else { return Ok(Vec::new()) };
        self.house.checks.checked_logs.fetch_add(1, Ordering::Relaxed);
        let size = file.size;
        let log = move || Ok(check::damage_of_log(archive.storage.as_ref(), &file, WORKERS));
        self.within(kept, size, name, log)
    }

    /// Writes down in the archive what is known, so that whoever asks it knows too.
    fn write_down(&mut self, kept: &LineageLog, progress: &CheckProgress) -> Result<()> {
        let Some(archive) = self.opened(kept)? else { return Ok(()) };
        let began = progress.present.as_ref().map(|pass| pass.began).or(progress.whole);
        let began = UNIX_EPOCH + Duration::from_secs(began.unwrap_or(progress.since));
        let problems = progress.damaged.len() as u64;
        let note = move || {
            let OpenArchive { storage, manifest, .. } = &*archive;
            last_check::note(storage.as_ref(), manifest, CheckDepth::Content, problems, began)
        };
        self.within(kept, 0, "its record of checks", note)
    }

    /// When somebody else last checked everything and found nothing wrong, if that counts.
    fn checked_by_others(
        &mut self,
        kept: &LineageLog,
        archive: &Arc<OpenArchive>,
        now: u64,
    ) -> Result<Option<u64>> {
        let archive = Arc::clone(archive);
        let read = move || Ok(LastChecks::read(archive.storage.as_ref()).unwrap_or_default());
        let checks = self.within(kept, 0, "its record of checks", read)?;
        let last = checks.deepest().filter(|last| last.depth == CheckDepth::Content && last.problems == 0);
        let is_recent = |time: &u64| *time <= now && now - *time < self.interval.as_secs();
        Ok(last.map(|last| last.time).filter(is_recent))
    }

    /// The archive of a log; `None`: nothing is archived yet.
    fn opened(&mut self, kept: &LineageLog) -> Result<Option<Arc<OpenArchive>>> {
        let known = self.open.get(&kept.number).filter(|open| open.at.elapsed() < OPEN_MAX);
        if let Some(open) = known {
            return Ok(Some(Arc::clone(open)));
        }
        let to = self.options.place_of(kept);
        let read = move || {
            let storage = storage::at(&to)?;
            let manifest = Manifest::read(&storage)?;
            Ok(manifest.map(|manifest| OpenArchive { storage, manifest, at: Instant::now() }))
        };
        let Some(open) = self.within(kept, 0, "its manifest", read)? else { return Ok(None) };
        let open = Arc::new(open);
        self.open.insert(kept.number, Arc::clone(&open));
        Ok(Some(open))
    }

    /// Looks at something of an archive, with as much time as archiving it would have.
    fn within<T: Send + 'static>(
        &mut self,
        kept: &LineageLog,
        size: u64,
        what: &str,
        look: impl FnOnce() -> binlogz_archive::Result<T> + Send + 'static,
    ) -> Result<T> {
        let patience = self.options.overdue + Duration::from_secs(size / ArchiveOptions::SPEED_MIN);
        let to = self.options.place_of(kept).display().to_string();
        let thread = self.threads.entry(kept.number).or_default();
        let looked = thread.run(&self.house.telemetry, patience, look);
        looked
            .map_err(|late| match late {
                Error::Io { source, .. } => Error::Log(LogError::Archive(
                    to.clone(),
                    binlogz_archive::Error::Io { doing: format!("check {what}"), source },
                )),
                other => other,
            })?
            .map_err(|error| Error::Log(LogError::Archive(to, error)))
    }
}

/// The log after this one, in the manifest's order. If that one was removed meanwhile, the next by name.
fn next_log<'m>(manifest: &'m Manifest, after: Option<&str>) -> Option<&'m FileEntry> {
    let Some(after) = after else { return manifest.files.first() };
    match manifest.files.iter().position(|file| file.name == *after) {
        Some(at) => manifest.files.get(at + 1),
        None => manifest.files.iter().find(|file| file.name.as_str() > after),
    }
}
