//! Tells how old closed files are, by the source's times and by the time that was seen to pass. A clock that jumps makes
//! no file older.
//!
//! ```text
//! seen       seconds that passed on the monotonic clock while the relay ran; of the time that it was down, the lesser of what this
//!            machine's clock and the source's say
//! closed     of each file, how much had been seen when it was closed; of a file that was closed before it came here, less: as much
//!            as the source's times say
//!
//! relay.ages
//! binlogz-relay ages 1
//! seen 86400
//! source 1700000000         the source's clock then, in seconds since 1970
//! wall 1700000003           this machine's
//! file 2 12 3400            of log 2, file 12 was closed when 3400 s had been seen
//! ```
//!
//! The file is in the relay's directory, and is written when a file is closed and about once a minute. If it is lost, files are as
//! old as the source's times say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_relay_log::small_file;
use binlogz_store::{FileNumber, Storage, storage};

use crate::error::{Error, Result};
use crate::telemetry::Telemetry;
use crate::time::now;

const NAME: &str = "relay.ages";
const TITLE: &str = "binlogz-relay ages 1";
/// A log of 100,000 files needs less than 4 MiB.
const SIZE_MAX: u64 = 16 << 20;
/// Two clocks that went apart by more have not both gone right; clocks that are set right step by step go by less.
const JUMP: u64 = 60;
/// A jump is shown for so long. Meanwhile, and for as long after a long pause, one run purges no more than its share.
pub(crate) const SHOWN: Duration = Duration::from_secs(3600);
/// A pause of more seconds is a long one.
const PAUSE_LONG: u64 = 3600;
/// A run's share of a log's closed files is one in this many, and at least one.
const SHARE: usize = 8;
/// The next run that takes its share comes after this.
const SHARE_INTERVAL: Duration = Duration::from_secs(600);
/// The file is written after as many seconds.
const WRITE_INTERVAL: u64 = 60;

/// A reading of all clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    pub(crate) monotonic: Instant,
    /// This machine's clock, in seconds since 1970.
    pub(crate) wall: u64,
    /// The source's clock when it was asked last, in seconds since 1970, and when that was; `None`: it was not asked
    /// since the start.
    pub(crate) source: Option<(u64, Instant)>,
}

impl Clocks {
    pub(crate) fn read(telemetry: &Telemetry) -> Clocks {
        Clocks { monotonic: Instant::now(), wall: now(), source: telemetry.lag.source_clock() }
    }
}

/// A log's number, and a file of it.
type Key = (u64, FileNumber);

/// How old closed files are: by the source's times, and by the time that was seen to pass.
#[derive(Debug, Default)]
pub(crate) struct Ages {
    seen: Duration,
    /// When the clocks were last read.
    at: Option<Instant>,
    wall: u64,
    /// The source's clock when that much had been seen.
    source: Option<(u64, Duration)>,
    /// When the source's clock was last asked.
    asked: Option<Instant>,
    /// How long the relay was down by this machine's clock, until the source's says that too.
    down: Option<i64>,
    closed: BTreeMap<Key, i64>,
    /// When files ended, by the source's times: each is read once.
    ends: BTreeMap<Key, u64>,
    /// The seconds seen and the number of files when the file was last written.
    written: Option<(u64, usize)>,
    jump: Option<(Instant, String)>,
    /// Until when a run takes no more than its share, and when it last took it.
    careful_until: Option<Instant>,
    share_taken: Option<Instant>,
}

impl Ages {
    /// Reads the ages that an earlier run of the relay stored.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub(crate) fn read(storage: &dyn Storage) -> Result<Ages> {
        let Some(text) = small_file(storage, NAME, SIZE_MAX)? else { return Ok(Ages::default()) };
        // Another version, or a damaged file: without what is in it files are as old as the source's times say.
        Ok(Ages::decode(&text).unwrap_or_default())
    }

    fn decode(text: &str) -> Option<Ages> {
        let mut ages = Ages::default();
        let mut lines = text.lines();
        let mut source = None;
        if lines.next()? != TITLE || !text.ends_with('\n') {
            return None;
        }
        for line in lines {
            let mut words = line.split(' ');
            let name = words.next()?;
            let mut number = || words.next()?.parse::<i64>().ok();
            match name {
                "seen" => ages.seen = Duration::from_secs(number()?.try_into().ok()?),
                "source" => source = Some(number()?.try_into().ok()?),
                "wall" => ages.wall = number()?.try_into().ok()?,
                "file" => {
                    let key = (number()?.try_into().ok()?, FileNumber(number()?.try_into().ok()?));
                    ages.closed.insert(key, number()?);
                }
                // Of another release of this version.
                _ => {}
            }
        }
        ages.source = source.map(|source| (source, ages.seen));
        Some(ages)
    }

    /// The source's clock, going on from when it was last asked; `None`: it was never asked.
    fn source(&self) -> Option<u64> {
        self.source.map(|(source, at)| source + self.seen.saturating_sub(at).as_secs())
    }

    fn encode(&self) -> String {
        use std::fmt::Write;
        let mut text = format!("{TITLE}\nseen {}\nwall {}\n", self.seen.as_secs(), self.wall);
        let mut line = |line: String| {
            // Writing to memory can't fail.
            let _ = writeln!(text, "{line}");
        };
        if let Some(source) = self.source() {
            line(format!("source {source}"));
        }
        for ((log, file), closed) in &self.closed {
            line(format!("file {log} {} {closed}", file.0));
        }
        text
    }

    /// Writes what changed, if it is time.
    pub(crate) fn save(&mut self, storage: &Arc<dyn Storage>) -> Result<()> {
        let now = (self.seen.as_secs(), self.closed.len());
        let is_due =
            self.written.is_none_or(|(seen, files)| seen + WRITE_INTERVAL <= now.0 || files != now.1);
        if is_due {
            storage::replace(storage.as_ref(), NAME, self.encode().as_bytes())
                .map_err(Error::io(format!("write {NAME}")))?;
            self.written = Some(now);
        }
        Ok(())
    }

    /// Adds the time that has passed since the last call. Returns a line for the log if a clock has jumped.
    pub(crate) fn advance(&mut self, clocks: &Clocks) -> Option<String> {
        let passed = match self.at {
            Some(at) => clocks.monotonic.saturating_duration_since(at),
            None => {
                self.down = (self.wall > 0).then(|| difference(clocks.wall, self.wall));
                self.wall = clocks.wall;
                Duration::ZERO
            }
        };
        self.seen += passed;
        let seconds = passed.as_secs();
        let mut jumps = Vec::new();
        let by_wall = difference(clocks.wall, self.wall);
        if by_wall.abs_diff(seconds as i64) > JUMP {
            jumps.push(format!("this machine's clock went by {by_wall} s while {seconds} s passed"));
        }
        if let Some((said, asked)) = clocks.source.filter(|(_, asked)| Some(*asked) != self.asked) {
            let source = said + clocks.monotonic.saturating_duration_since(asked).as_secs();
            let by_source = self.source().map(|known| difference(source, known));
            match (by_source, self.down.take()) {
                (Some(by_source), Some(by_wall)) => {
                    let down = u64::try_from(by_source.min(by_wall)).unwrap_or(0);
                    self.seen += Duration::from_secs(down);
                    if by_source.abs_diff(by_wall) > JUMP {
                        jumps.push(format!(
                            "while the relay was down, this machine's clock went by {by_wall} s and the source's by \
                             {by_source} s"
                        ));
                    }
                    if down > PAUSE_LONG {
                        self.careful_until = Some(clocks.monotonic + SHOWN);
                    }
                }
                (Some(by_source), None) if by_source.unsigned_abs() > JUMP => {
                    jumps.push(format!(
                        "the source's clock went by {by_source} s more than this machine has seen pass"
                    ));
                }
                _ => {}
            }
            (self.source, self.asked) = (Some((source, self.seen)), Some(asked));
        }
        (self.at, self.wall) = (Some(clocks.monotonic), clocks.wall);
        if jumps.is_empty() {
            return None;
        }
        let told = format!(
            "a clock has jumped: {}; files are purged by the time that was seen to pass, a few at a time",
            jumps.join(", and ")
        );
        self.careful_until = Some(clocks.monotonic + SHOWN);
        self.jump = Some((clocks.monotonic, told.clone()));
        Some(told)
    }

    /// When a file of a log ended: when the next one began, in seconds since 1970.
    pub(crate) fn end_of(
        &mut self,
        log: u64,
        file: FileNumber,
        read: impl FnOnce() -> Result<u64>,
    ) -> Result<u64> {
        if let Some(end) = self.ends.get(&(log, file)) {
            return Ok(*end);
        }
        let end = read()?;
        self.ends.insert((log, file), end);
        Ok(end)
    }

    /// Notes when files of a log were closed, each with the time of its end in seconds since 1970, and forgets all others of it.
    pub(crate) fn note(&mut self, log: u64, files: &[(FileNumber, u64)], has_jumped: bool) {
        let Some(source) = self.source() else { return };
        let is_there = |key: &Key| key.0 != log || files.iter().any(|(file, _)| *file == key.1);
        self.closed.retain(|key, _| is_there(key));
        self.ends.retain(|key, _| is_there(key));
        let seen = self.seen.as_secs() as i64;
        for (file, end) in files {
            // What a clock says that has just jumped is not believed.
            let before = if has_jumped { 0 } else { difference(source, *end).max(0) };
            self.closed.entry((log, *file)).or_insert(seen - before);
        }
    }

    /// Whether a file that ended at this time, in seconds since 1970, is older than this: by the source's clock, and by
    /// the time that was seen to pass.
    pub(crate) fn is_older(&self, log: u64, (file, end): (FileNumber, u64), age: Duration) -> bool {
        let (Some(source), Some(closed)) = (self.source(), self.closed.get(&(log, file))) else {
            return false;
        };
        let age = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
        difference(source, end) > age && (self.seen.as_secs() as i64).saturating_sub(*closed) > age
    }

    /// How many of the old files of a log a run may purge now.
    pub(crate) fn share(&mut self, old: usize, closed: usize) -> usize {
        let Some(now) = self.at else { return 0 };
        let is_careful = self.careful_until.is_some_and(|until| now < until);
        let share = (closed / SHARE).max(1);
        if !is_careful || old == 0 {
            return old;
        }
        let is_early =
            self.share_taken.is_some_and(|taken| now.saturating_duration_since(taken) < SHARE_INTERVAL);
        if is_early {
            return 0;
        }
        self.share_taken = Some(now);
        old.min(share)
    }

    /// The jump of a clock that is shown.
    pub(crate) fn trouble(&self, now: Instant) -> Option<String> {
        let (at, told) = self.jump.as_ref()?;
        (now.saturating_duration_since(*at) < SHOWN).then(|| told.clone())
    }
}

fn difference(one: u64, other: u64) -> i64 {
    let [one, other] = [one, other].map(|time| i64::try_from(time).unwrap_or(i64::MAX));
    one.saturating_sub(other)
}
