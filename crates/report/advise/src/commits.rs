//! Measures how much longer a small transaction takes in the session that commits it than in a meter, which compresses
//! one right after the other: see [`ServerSessions`].
//!
//! A few transactions of each class of size are kept while the logs are read. Afterwards, with nothing else running, each
//! is compressed both ways. Large transactions are left out: they take equally long both ways.

use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use binlogz_binlog::event::QueryEvent;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{EventHeader, EventType};
use binlogz_flow::measure::{CompressionMeter, ServerSessions};
use binlogz_payload::{CompressionLevel, Error};
use binlogz_stats::size_class::CLASSES;
use parking_lot::Mutex;

use crate::Advice;
use crate::large::SMALL_CLASSES;

/// Transactions kept for each class.
const KEPT: usize = 128;

/// Each class and level is measured on at least this many, however little time there is.
const AT_LEAST: usize = 8;

/// By class of size: the time of a commit for each nanosecond of the meter's.
pub(crate) type Slowdowns = [f64; CLASSES];

/// Transactions that are compressed once more as commits. All workers share it.
#[derive(Debug)]
pub struct Commits {
    classes: [Mutex<BinaryHeap<KeptCommit>>; SMALL_CLASSES],
    /// Numbers from here on are no longer kept.
    limits: [AtomicU64; SMALL_CLASSES],
}

/// A transaction; ordered by its number, which is pseudo-random.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KeptCommit {
    number: u64,
    events: Vec<u8>,
}

impl Default for Commits {
    fn default() -> Self {
        Commits { classes: Default::default(), limits: std::array::from_fn(|_| AtomicU64::new(u64::MAX)) }
    }
}

impl Commits {
    /// Keeps a transaction if its number is low enough: its events, as the compressor gets them.
    pub(crate) fn offer(&self, class: usize, number: u64, events: &[u8]) {
        let Some((kept, limit)) = self.classes.get(class).zip(self.limits.get(class)) else { return };
        if number >= limit.load(Ordering::Relaxed) {
            return;
        }
        let mut kept = kept.lock();
        kept.push(KeptCommit { number, events: events.to_vec() });
        if kept.len() > KEPT {
            kept.pop();
            limit.store(kept.peek().map_or(0, |highest| highest.number), Ordering::Relaxed);
        }
    }
}

impl KeptCommit {
    /// The thread that committed it, from its BEGIN; 0 if there is none.
    fn session(&self) -> u32 {
        let begin = EventHeader::decode(&self.events).ok();
        let end = begin
            .filter(|header| header.event_type == EventType::QUERY)
            .map(|header| header.event_size as usize);
        let body = end.and_then(|end| self.events.get(HEADER_SIZE..end.min(self.events.len())));
        body.and_then(|body| QueryEvent::decode(body).ok()).map_or(0, |query| query.thread_id)
    }
}

impl Advice {
    /// Measures how much longer commits take than the meter said, for about this long. `expanding`: measure
    /// as for a sample, where each transaction is expanded after it is compressed.
    ///
    /// # Errors
    ///
    /// No memory for a context.
    pub fn measure_commits(
        &mut self,
        commits: &Commits,
        expanding: bool,
        time: Duration,
    ) -> Result<(), Error> {
        let mut classes: Vec<_> = commits
            .classes
            .iter()
            .map(|kept| std::mem::take(&mut *kept.lock()).into_vec())
            .enumerate()
            .filter(|(_, kept)| !kept.is_empty())
            .collect();
        // In pseudo-random order: threads take turns irregularly, as on a server.
        classes.iter_mut().for_each(|(_, kept)| kept.sort());
        // As in a run: one meter for all levels.
        let mut meter = CompressionMeter::new(&self.levels, self.generation.recipe())?;
        let mut sessions = ServerSessions::new(CompressionLevel::DEFAULT);
        let share = time.div_f64(((self.levels.len() + 1) * classes.len()).max(1) as f64);
        self.slowdowns = vec![[1.0; CLASSES]; self.levels.len()];
        for (class, kept) in &classes {
            let metered = metered(kept, &mut meter, expanding, Instant::now() + share)?;
            for (place, level) in self.levels.iter().enumerate() {
                let metered = metered.iter().map(|costs| costs.get(place).copied().unwrap_or(0));
                sessions.set_level(*level);
                let slowdown = slowdown_of(kept, metered, &mut sessions, Instant::now() + share)?;
                if let Some(known) = self.slowdowns.get_mut(place).and_then(|level| level.get_mut(*class)) {
                    *known = slowdown;
                }
            }
        }
        Ok(())
    }
}

/// The meter's times for transactions at each level, for as many as time allows.
fn metered(
    kept: &[KeptCommit],
    meter: &mut CompressionMeter,
    expanding: bool,
    deadline: Instant,
) -> Result<Vec<Vec<u64>>, Error> {
    let mut metered = Vec::new();
    // The first one follows a wait.
    if let Some(first) = kept.first() {
        meter.held(&first.events, true, expanding)?;
    }
    for KeptCommit { events, .. } in kept {
        if metered.len() >= AT_LEAST && Instant::now() >= deadline {
            break;
        }
        let costs = meter.held(events, true, expanding)?;
        metered.push(costs.iter().map(|cost| cost.compress).collect());
    }
    Ok(metered)
}

/// The sessions' time for these transactions divided by the meter's, as far as time allows.
fn slowdown_of(
    kept: &[KeptCommit],
    metered: impl Iterator<Item = u64>,
    sessions: &mut ServerSessions,
    deadline: Instant,
) -> Result<f64, Error> {
    let mut behind_another = 0;
    let mut committing = 0;
    for (done, (transaction, metered)) in kept.iter().zip(metered).enumerate() {
        if done >= AT_LEAST && Instant::now() >= deadline {
            break;
        }
        behind_another += metered;
        committing += sessions.committing(transaction.session(), &transaction.events)?;
    }
    Ok(crate::per(committing as f64, behind_another as f64).max(1.0))
}

#[cfg(test)]
mod tests {
    use crate::figures::ClassLevel;
    use binlogz_payload::ServerGeneration;

    use super::*;

    #[test]
    fn those_with_the_lowest_numbers_are_kept() {
        let commits = Commits::default();
        for number in (0..1000).rev() {
            commits.offer(2, number, &[number as u8]);
            commits.offer(CLASSES, number, b"none of the small ones");
        }
        let mut kept: Vec<_> = commits.classes[2].lock().drain().collect();
        kept.sort();
        assert!(kept.iter().map(|kept| kept.number).eq(0..KEPT as u64));
    }

    #[test]
    fn begin_names_the_session() {
        // Thread 7, no time, no database, no error, no status variables.
        let body = b"\x07\0\0\0\0\0\0\0\0\0\0\0\0\0BEGIN";
        let event = |event_type| {
            let event_size = (HEADER_SIZE + body.len()) as u32;
            let header =
                EventHeader { event_type, event_size, ..EventHeader::decode(&[0; HEADER_SIZE]).unwrap() };
            [&header.encode()[..], body, b"a table map"].concat()
        };
        let session = |events: Vec<u8>| KeptCommit { number: 0, events }.session();
        assert_eq!(session(event(EventType::QUERY)), 7);
        assert_eq!(session(event(EventType::TABLE_MAP)), 0);
        assert_eq!(session(event(EventType::QUERY)[..HEADER_SIZE + 3].to_vec()), 0);
        assert_eq!(session(Vec::new()), 0);
    }

    #[test]
    fn a_class_is_slower_by_its_own_factor() {
        let mut advice = Advice::new(&[CompressionLevel::DEFAULT], 1, ServerGeneration::default());
        for (class, times) in [(2, [1000, 3000]), (SMALL_CLASSES, [500_000, 700_000])] {
            let class = &mut advice.figures.classes[class];
            let mut level = ClassLevel { compress: times.iter().sum(), ..ClassLevel::default() };
            times.iter().for_each(|time| level.times.count(*time, 1.0));
            class.levels.push(level);
        }
        let before = [advice.compress_time(0), advice.commit_times(0).quantile(0.25)];
        advice.slowdowns = vec![[1.0; CLASSES]];
        advice.slowdowns[0][2] = 2.0;
        let after = [advice.compress_time(0), advice.commit_times(0).quantile(0.25)];
        assert_eq!([before[0], after[0]], [1_204_000.0, 1_208_000.0]);
        assert!((after[1] / before[1] / 2.0 - 1.0).abs() < 0.05, "{before:?} {after:?}");
        assert_eq!(advice.commit_times(0).max(), 700_000);
    }
}
