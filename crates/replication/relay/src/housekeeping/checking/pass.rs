//! How far the check of an archive has come, and what it found: kept across restarts.
//!
//! ```text
//! relay.check
//! binlogz-relay check 1
//! since 1699000000          when the archive was first looked at, in seconds since 1970
//! whole 1699500000          when the last pass began that has looked at everything; without this line none has
//! began 1700000000          when the present pass began; without this line there is none
//! after binlog.000012       the log that it looked at last
//! log binlog.000003         a log that is damaged or missing, and in the next line
//! found segment-… is gone   what was found
//! ```
//!
//! The file is in the directory of the log whose archive it is about. If it is lost, a pass starts again.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use binlogz_binlog::printable;
use binlogz_relay_log::small_file;
use binlogz_store::{Storage, storage};

use crate::error::{Error, Result};

const NAME: &str = "relay.check";
const TITLE: &str = "binlogz-relay check 1";
/// Of the damaged logs so many are written down; a pass finds the others again.
const DAMAGED_MAX: usize = 1000;
/// The longest text that is written of a finding, in characters.
const FOUND_MAX: usize = 500;
const SIZE_MAX: u64 = 8 << 20;

/// A pass that has not looked at everything yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PresentPass {
    /// When it began, in seconds since 1970.
    pub(super) began: u64,
    /// The log that it looked at last.
    pub(super) after: Option<String>,
}

/// How far the check of an archive has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CheckProgress {
    pub(super) since: u64,
    pub(super) whole: Option<u64>,
    pub(super) present: Option<PresentPass>,
    /// By the logs' names.
    pub(super) damaged: BTreeMap<String, String>,
}

impl CheckProgress {
    pub(super) fn new(now: u64) -> CheckProgress {
        CheckProgress { since: now, whole: None, present: None, damaged: BTreeMap::new() }
    }

    /// Whether a pass should begin. A clock that was put back must not keep it from beginning.
    pub(super) fn is_due(&self, interval: Duration, now: u64) -> bool {
        let is_recent = |whole: u64| whole <= now && now - whole < interval.as_secs();
        self.present.is_none() && !self.whole.is_some_and(is_recent)
    }

    /// How long ago the last pass began that has looked at everything; if none has, since when there is something to check.
    pub(super) fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.whole.unwrap_or(self.since))
    }

    /// A log is damaged or missing. Returns whether that is news.
    pub(super) fn is_damaged(&mut self, log: &str, found: &str) -> bool {
        let found: String = printable(found).chars().take(FOUND_MAX).collect();
        self.damaged.insert(log.to_owned(), found.clone()).as_ref() != Some(&found)
    }

    /// A file of another version, or a damaged one, counts as none.
    pub(super) fn read(storage: &dyn Storage) -> Result<Option<CheckProgress>> {
        let text = small_file(storage, NAME, SIZE_MAX)?;
        Ok(text.and_then(|text| CheckProgress::decode(&text)))
    }

    pub(super) fn write(&self, storage: &dyn Storage) -> Result<()> {
        storage::replace(storage, NAME, self.encode().as_bytes()).map_err(Error::io(format!("write {NAME}")))
    }

    fn encode(&self) -> String {
        let mut text = format!("{TITLE}\nsince {}\n", self.since);
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            // Writing to memory can't fail.
            let _ = writeln!(text, "{name} {value}");
        };
        if let Some(whole) = self.whole {
            line("whole", &whole);
        }
        if let Some(PresentPass { began, after }) = &self.present {
            line("began", began);
            after.iter().for_each(|after| line("after", after));
        }
        for (log, found) in self.damaged.iter().take(DAMAGED_MAX) {
            line("log", log);
            line("found", found);
        }
        text
    }

    fn decode(text: &str) -> Option<CheckProgress> {
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) || !text.ends_with('\n') {
            return None;
        }
        let mut since = None;
        let mut whole = None;
        let mut began = None;
        let mut after = None;
        let mut log = None;
        let mut damaged = BTreeMap::new();
        for line in lines {
            let (name, value) = line.split_once(' ')?;
            match name {
                "since" => since = Some(value.parse().ok()?),
                "whole" => whole = Some(value.parse().ok()?),
                "began" => began = Some(value.parse().ok()?),
                "after" => after = Some(value.to_owned()),
                "log" => log = Some(value.to_owned()),
                "found" => drop(damaged.insert(log.take()?, value.to_owned())),
                // Of another release of this version.
                _ => {}
            }
        }
        let present = began.map(|began| PresentPass { began, after });
        Some(CheckProgress { since: since?, whole, present, damaged })
    }
}

#[cfg(test)]
mod tests {
    use binlogz_store::MemoryStorage;

    use super::*;

    #[test]
    fn the_progress_of_a_check_comes_back_and_nothing_else_is_taken_for_it() {
        let storage = MemoryStorage::new();
        assert_eq!(CheckProgress::read(&storage).unwrap(), None);
        let mut found = CheckProgress { whole: Some(3), ..CheckProgress::new(7) };
        assert!(found.is_damaged("binlog.000003", "gone\nfor ever"));
        assert!(!found.is_damaged("binlog.000003", "gone\nfor ever"), "that is known");
        let present = Some(PresentPass { began: 9, after: Some("a b.000001".into()) });
        let present = CheckProgress { present, ..found.clone() };
        for progress in [CheckProgress::new(u64::MAX), found, present] {
            progress.write(&storage).unwrap();
            assert_eq!(CheckProgress::read(&storage).unwrap(), Some(progress));
        }
        for other in
            ["binlogz-relay check 2\nsince 1\n", "binlogz-relay check 1\nsince 1", "binlogz-relay check 1\n"]
        {
            storage::replace(&storage, NAME, other.as_bytes()).unwrap();
            assert_eq!(CheckProgress::read(&storage).unwrap(), None, "{other}");
        }
    }

    #[test]
    fn a_pass_is_due_after_the_interval_whatever_the_clock_does() {
        let week = Duration::from_secs(7 * 86400);
        let checked = |whole| CheckProgress { whole, ..CheckProgress::new(0) };
        assert!(checked(None).is_due(week, 1));
        assert!(!checked(Some(1000)).is_due(week, 1000 + 7 * 86400 - 1));
        assert!(checked(Some(1000)).is_due(week, 1000 + 7 * 86400));
        assert!(checked(Some(1000)).is_due(week, 999), "a clock that was put back");
        let present = Some(PresentPass { began: 0, after: None });
        assert!(!CheckProgress { present, ..checked(None) }.is_due(week, 1));
    }
}
