//! Reads archived logs part by part, where other parts of the plan may tell meanwhile that the rest isn't wanted: a few parts first, then ever
//! more of them at once, each time those that the filters of now leave.
//!
//! ```text
//! ORDER BY committed_at DESC LIMIT 10      the last parts that have as many rows, in the log's order; then the others, of which the filter of
//!                                          the sort leaves none
//! join                                     the filter has the keys of the other side before the first part is read
//! ```
//!
//! Rows that come at the same time are in the same step, so that of equal rows those that come first in the log win, as without steps.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;

use binlogz_archive::directory::{DirectoryStep, NeededDirectory};
use binlogz_archive::format::directory::DirectoryGroups;
use binlogz_archive::part::BlockRun;
use binlogz_binlog::event::{FormatDescription, version_number};
use binlogz_binlog::{EventReader, EventType};
use binlogz_flow::{InOrder, Input};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;

use super::demand::BatchDemand;
use super::part_filter::PartFilter;
use super::{Counts, ScanPlan};
use crate::logs::unwanted::ReadingEnd;

/// How many parts are read before the filters are looked at again: at first, and at most.
const PARTS_FIRST: usize = 2;
const PARTS_MAX: usize = 64;

/// The first server that writes times of commit into GTID events.
const FIRST_WITH_TIMES: u32 = 80_001;

/// A part of a log.
struct LogPart {
    start: u64,
    blocks: usize,
    /// How many rows of the table it has, and the first and last second in which they were committed; `None`: unknown.
    rows: Option<u64>,
    commits: Option<(u64, u64)>,
}

/// Takes batches; says whether more is wanted.
type SendBatch<'s> = &'s mut dyn FnMut(RecordBatch) -> bool;

impl ScanPlan {
    /// Whether logs are read part by part.
    pub(super) fn reads_by_parts(&self) -> bool {
        !self.filters.is_empty() || self.latest.is_some()
    }

    /// Reads the logs, in steps.
    pub(super) fn read_by_parts(
        &self,
        counts: &Counts,
        (end, demand): (&Arc<dyn ReadingEnd>, &BatchDemand),
        send: SendBatch<'_>,
    ) -> Result<()> {
        let logs: Vec<usize> = self.wanted_logs(counts).collect();
        let parts = logs.iter().map(|index| -> Result<_> { Ok((*index, self.parts_of(*index, counts)?)) });
        let mut parts = parts.collect::<Result<BTreeMap<_, _>>>()?;
        // A part that isn't wanted is counted here, and those of each step aren't counted again.
        let of_step = counts.without_skipped();
        for (index, starts) in self.latest_parts(&parts)? {
            if let Some(Some(parts)) = parts.get_mut(&index) {
                parts.retain(|part| !starts.contains(&part.start));
            }
            if !self.read_wanted((index, &self.wanted.within(starts)), &of_step, end, send)? {
                return Ok(());
            }
        }
        for index in logs {
            let goes_on = match parts.remove(&index).flatten() {
                Some(left) => self.read_parts((index, left), (counts, &of_step), (end, demand), send)?,
                None => self.read_wanted((index, &self.wanted), counts, end, send)?,
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Reads these parts of a log, as far as the filters leave them; says whether more is wanted.
    fn read_parts(
        &self,
        (index, parts): (usize, Vec<LogPart>),
        (counts, of_step): (&Counts, &Counts),
        (end, demand): (&Arc<dyn ReadingEnd>, &BatchDemand),
        send: SendBatch<'_>,
    ) -> Result<bool> {
        let mut left: BTreeMap<u64, usize> = parts.iter().map(|part| (part.start, part.blocks)).collect();
        let mut step_size = PARTS_FIRST;
        let mut timed = None;
        while !left.is_empty() {
            demand.wait(&|| end.is_over());
            let filter = PartFilter::now(self);
            if timed.is_none() && filter.asks_for_times() {
                timed = Some(self.timed_parts(index)?);
            }
            let is_timed = |start| timed.as_ref().is_some_and(|timed: &BTreeSet<_>| timed.contains(&start));
            let mut step = BTreeSet::new();
            self.logs.each_run(index, &mut |run| {
                if step.len() >= step_size || !left.contains_key(&run.start()) {
                    return;
                }
                let blocks = left.remove(&run.start()).unwrap_or_default();
                let of_rows = (self.reader.is_of_rows(), &*self.logs);
                match filter.may_be_in(run, is_timed(run.start()), of_rows) {
                    true => drop(step.insert(run.start())),
                    false => counts.blocks_skipped.add(blocks),
                }
            })?;
            if !step.is_empty()
                && !self.read_wanted((index, &self.wanted.within(step)), of_step, end, send)?
            {
                return Ok(false);
            }
            step_size = (step_size * 2).min(PARTS_MAX);
        }
        Ok(true)
    }

    /// The parts of a log that may have wanted rows; `None`: it is read as a whole.
    fn parts_of(&self, index: usize, counts: &Counts) -> Result<Option<Vec<LogPart>>> {
        if !self.reader.is_divided() || !self.logs.divides(index)? {
            return Ok(None);
        }
        let mut parts = Vec::new();
        let is_of_rows = self.reader.is_of_rows();
        let is_divided = self.logs.each_run(index, &mut |run| {
            if !self.wanted.may_be_in(run, is_of_rows, &self.logs) {
                counts.blocks_skipped.add(run.block_count());
                return;
            }
            parts.push(LogPart {
                start: run.start(),
                blocks: run.block_count(),
                rows: self.rows_of(run),
                commits: run.commits(),
            });
        })?;
        Ok(is_divided.then_some(parts))
    }

    /// Where the parts of a log begin of which the archive tells that all transactions have a time of commit.
    fn timed_parts(&self, index: usize) -> Result<BTreeSet<u64>> {
        let needed = NeededDirectory { groups: DirectoryGroups::TIMES, as_logged: false };
        let mut parts = Vec::new();
        let directory = self.logs.directory(index, needed, &mut |run| {
            parts.push((run.start(), run.block_count()));
            true
        })?;
        let Some(directory) = directory else { return Ok(BTreeSet::new()) };
        let mut told = directory.told();
        let mut timed = BTreeSet::new();
        for (start, blocks) in parts {
            let is_read = |step: &DirectoryStep| match step {
                DirectoryStep::Read(range) => range.contains(&start),
                DirectoryStep::Told(_) => false,
            };
            if directory.steps().iter().any(is_read) {
                continue;
            }
            let mut is_timed = true;
            for (object, number) in told.by_ref().take(blocks) {
                // A block isn't opened to find whether it has to be opened.
                is_timed = is_timed && !directory.opens(object, number);
                if is_timed {
                    let block = directory.block(object, number);
                    let block = block.map_err(|error| self.logs.archive_error(index, &error))?;
                    is_timed = block.entries().all(|entry| !entry.has_begun || entry.committed_at.is_some());
                }
            }
            if is_timed {
                timed.insert(start);
            }
        }
        Ok(timed)
    }

    /// How many rows a part has.
    fn rows_of(&self, run: &BlockRun<'_>) -> Option<u64> {
        if !self.reader.is_of_rows() {
            return (!run.may_lack_gtids()).then(|| u64::try_from(run.gtids.count()).unwrap_or(u64::MAX));
        }
        let rows = run.rows()?;
        let own = rows.iter().filter(|rows| self.wanted.has_name(&rows.name.database, &rows.name.table));
        let counts = own.flat_map(|rows| [rows.rows.inserted, rows.rows.updated, rows.rows.deleted]);
        Some(counts.fold(0, u64::saturating_add))
    }

    /// The last parts that have as many rows as are wanted of the latest transactions, by log; none, if nobody asks or it isn't known.
    fn latest_parts(
        &self,
        parts: &BTreeMap<usize, Option<Vec<LogPart>>>,
    ) -> Result<BTreeMap<usize, BTreeSet<u64>>> {
        let none = BTreeMap::new();
        let Some(wanted) = self.latest else { return Ok(none) };
        let mut all = Vec::new();
        for (index, parts) in parts {
            let Some(parts) = parts else { return Ok(none) };
            for part in parts {
                let (Some(rows), Some((first, last))) = (part.rows, part.commits) else { return Ok(none) };
                all.push((last, first, rows, *index, part.start));
            }
        }
        all.sort_unstable_by(|one, other| other.cmp(one));
        let mut rows = 0_u64;
        let mut begin = u64::MAX;
        for (_, first, count, ..) in &all {
            if rows >= wanted as u64 {
                break;
            }
            rows = rows.saturating_add(*count);
            begin = begin.min(*first);
        }
        let mut latest: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for (_, _, _, index, start) in all.iter().filter(|(last, ..)| *last >= begin) {
            latest.entry(*index).or_default().insert(*start);
        }
        for index in parts.keys() {
            if !self.tells_times(*index)? {
                return Ok(none);
            }
        }
        Ok(latest)
    }

    /// Whether a log's server writes when transactions were committed.
    fn tells_times(&self, index: usize) -> Result<bool> {
        let input = self.logs.open(index, &mut |_| false)?;
        let stream: Box<dyn Read> = match input {
            Input::Places(places) | Input::Seek { places, .. } => Box::new(InOrder::new(places)),
            Input::Stream(stream) | Input::Sparse { stream, .. } => stream,
            Input::Live(_) | Input::Pipe(_) => return Ok(false),
        };
        let mut events = EventReader::new(std::io::BufReader::new(stream));
        // Whoever reads the log says that it can't be read.
        let Ok(Some((_, frame))) = events.next_event() else { return Ok(false) };
        if frame.header().event_type != EventType::FORMAT_DESCRIPTION {
            return Ok(false);
        }
        let version = FormatDescription::decode_frame(&frame).map(|description| description.server_version());
        Ok(version.is_ok_and(|version| writes_times(&version)))
    }
}

fn writes_times(version: &str) -> bool {
    version_number(version.as_bytes()) >= FIRST_WITH_TIMES && !version.contains("MariaDB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_write_times_since_8_0_1() {
        for version in ["8.0.1", "8.0.33-log", "9.7.4", "26.1.0"] {
            assert!(writes_times(version), "{version}");
        }
        for version in ["8.0.0", "5.7.44-log", "10.11.6-MariaDB-log", "5.5.5-10.11.6-MariaDB", ""] {
            assert!(!writes_times(version), "{version}");
        }
    }
}
