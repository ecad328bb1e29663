//! The transactions of a log, as the directories of its objects tell them: no block is opened, but for times of commit that a directory
//! had no room for.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::FileEntry;
use crate::format::directory::DirectoryGroups;
use crate::log::directory::BlockDirectory;
use crate::operations::part::{BlockRun, ObjectContents, runs};

/// A question about transactions.
#[derive(Debug, Clone, Copy)]
pub struct NeededDirectory {
    /// The groups of columns that it needs.
    pub groups: DirectoryGroups,
    /// Whether it asks for what payloads change: events, sizes and places in the log. Of a log that had payloads a directory doesn't
    /// tell them.
    pub as_logged: bool,
}

/// The transactions of a log.
#[derive(Debug)]
pub struct LogDirectory {
    objects: Vec<Arc<ObjectContents>>,
    groups: DirectoryGroups,
    steps: Vec<DirectoryStep>,
}

/// A part of a log, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryStep {
    /// Blocks whose transactions are told, each by its object among those of the log and its number there.
    Told(Vec<(usize, u32)>),
    /// Runs whose events have to be read: those that begin in this range of the log.
    Read(Range<u64>),
}

impl LogDirectory {
    /// Chooses the runs that are asked for. `objects` are those of the log, in order. `None`: the log has to be read.
    ///
    /// # Errors
    ///
    /// An object that does not hold the log; storage that fails.
    pub fn choose(
        file: &FileEntry,
        objects: Vec<Arc<ObjectContents>>,
        needed: NeededDirectory,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> bool,
    ) -> Result<Option<LogDirectory>> {
        let with_payloads = file.payload_level.is_some();
        if with_payloads && needed.as_logged {
            return Ok(None);
        }
        let groups = needed.groups.with(DirectoryGroups::SHAPES);
        // Which transactions have times is told with their GTIDs.
        let with_times = groups.has(DirectoryGroups::TIMES);
        let groups = if with_times { groups.with(DirectoryGroups::GTIDS) } else { groups };
        let Some(runs) = runs(file, &objects)? else { return Ok(None) };
        let mut steps: Vec<DirectoryStep> = Vec::new();
        for run in &runs {
            if !is_wanted(run) {
                continue;
            }
            if run.tells(&objects, groups.without(DirectoryGroups::TIMES))? {
                match steps.last_mut() {
                    Some(DirectoryStep::Told(blocks)) => blocks.extend(run.places()),
                    _ => steps.push(DirectoryStep::Told(run.places().collect())),
                }
                continue;
            }
            // Where payloads stood isn't certain without all runs.
            if with_payloads {
                return Ok(None);
            }
            let range = run.packed_range();
            match steps.last_mut() {
                Some(DirectoryStep::Read(last)) => last.end = range.end,
                _ => steps.push(DirectoryStep::Read(range)),
            }
        }
        drop(runs);
        let is_told = steps.iter().any(|step| matches!(step, DirectoryStep::Told(_)));
        Ok(is_told.then_some(LogDirectory { objects, groups, steps }))
    }

    /// Its parts, in order.
    pub fn steps(&self) -> &[DirectoryStep] {
        &self.steps
    }

    /// Whether nothing has to be read.
    pub fn tells_all(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, DirectoryStep::Told(_)))
    }

    /// The blocks whose transactions are told, in order.
    pub fn told(&self) -> impl Iterator<Item = (usize, u32)> {
        self.steps
            .iter()
            .flat_map(|step| match step {
                DirectoryStep::Told(blocks) => blocks.as_slice(),
                DirectoryStep::Read(_) => &[],
            })
            .copied()
    }

    /// Whether a block is opened for its times of commit: its directory had no room for them.
    pub fn opens(&self, object: usize, number: u32) -> bool {
        let told = self.objects.get(object).map(|told| told.told_groups(number)).unwrap_or_default();
        self.groups.without(told).has(DirectoryGroups::TIMES)
    }

    /// The transactions of a block, by its object and number.
    ///
    /// # Errors
    ///
    /// A directory that lies; a damaged block, where times are taken from it.
    pub fn block(&self, object: usize, number: u32) -> Result<BlockDirectory> {
        let told = self.objects.get(object).map(|told| told.directory_of(number, self.groups)).transpose()?;
        told.flatten().ok_or_else(|| {
            Error::damaged("directory of transactions", "nothing of a block", "its transactions")
        })
    }
}
