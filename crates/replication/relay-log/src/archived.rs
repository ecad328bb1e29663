//! How far a log is archived, and whether archiving fails: `housekeeping::archiving` notes it, retention and health ask.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use binlogz_binlog::printable;
use binlogz_store::FileNumber;

/// How far a log is archived.
#[derive(Debug)]
pub struct ArchivedFiles(Mutex<ArchivedState>);

#[derive(Debug)]
struct ArchivedState {
    last: Option<FileNumber>,
    /// Files whose selection of tables isn't certain.
    doubtful: BTreeSet<FileNumber>,
    /// When a file was last archived, or none waited for it.
    moved: Instant,
    /// Since when it fails, and why it last did.
    failing: Option<(Instant, String)>,
}

impl Default for ArchivedFiles {
    fn default() -> Self {
        ArchivedFiles(Mutex::new(ArchivedState {
            last: None,
            doubtful: BTreeSet::new(),
            moved: Instant::now(),
            failing: None,
        }))
    }
}

impl ArchivedFiles {
    /// The last file that is in the archive.
    pub fn last(&self) -> Option<FileNumber> {
        self.0.lock().last
    }

    /// A file was archived, or is in the archive.
    pub fn advance(&self, number: FileNumber, now: Instant) {
        let mut state = self.0.lock();
        state.last = state.last.max(Some(number));
        (state.moved, state.failing) = (now, None);
    }

    /// Of a file a selection of tables is archived, or will be, that isn't certain. `false`: that was noted before.
    pub fn doubt(&self, number: FileNumber) -> bool {
        self.0.lock().doubtful.insert(number)
    }

    /// The first such file from this one on.
    pub fn first_doubtful(&self, from: FileNumber) -> Option<FileNumber> {
        self.0.lock().doubtful.range(from..).next().copied()
    }

    /// No file waits.
    pub fn idle(&self, now: Instant) {
        let mut state = self.0.lock();
        (state.moved, state.failing) = (now, None);
    }

    /// An attempt to archive failed.
    pub fn failed(&self, why: &str, now: Instant) {
        let mut state = self.0.lock();
        let since = state.failing.as_ref().map_or(now, |(since, _)| *since);
        state.failing = Some((since, printable(why).into_owned()));
    }

    /// How long it has been failing, and why.
    pub fn failing(&self, now: Instant) -> Option<(Duration, String)> {
        let failing = self.0.lock().failing.clone();
        failing.map(|(since, why)| (now.saturating_duration_since(since), why))
    }

    /// How long no file was archived though some may wait.
    pub fn still(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.0.lock().moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_or_stands_still_is_told_for_how_long() {
        let archived = ArchivedFiles::default();
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        archived.idle(began);
        assert_eq!((archived.failing(after(9)), archived.still(after(9))), (None, Duration::from_secs(9)));
        // Each attempt fails: the first counts, the last says why.
        archived.failed("no\nroute", after(10));
        archived.failed("no room", after(70));
        assert_eq!(archived.failing(after(76)), Some((Duration::from_secs(66), "no room".into())));
        // A file got there.
        archived.advance(FileNumber(3), after(80));
        archived.advance(FileNumber(2), after(81));
        assert_eq!(archived.last(), Some(FileNumber(3)));
        assert_eq!(archived.first_doubtful(FileNumber(1)), None);
        [5, 3].into_iter().map(FileNumber).for_each(|number| assert!(archived.doubt(number)));
        assert!(!archived.doubt(FileNumber(5)));
        let first = |from| archived.first_doubtful(FileNumber(from)).map(|number| number.0);
        assert_eq!((first(1), first(4), first(6)), (Some(3), Some(5), None));
        assert_eq!((archived.failing(after(90)), archived.still(after(90))), (None, Duration::from_secs(9)));
    }
}
