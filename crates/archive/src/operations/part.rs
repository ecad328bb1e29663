//! Gives a log back without the parts in which nothing is looked for: its blocks are neither read nor unpacked.
//!
//! A run is the least that is left out: the blocks of whole transactions, or those of one transaction that takes several.
//! The log's head is always given, and so are the events at its end that are in no transaction.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::gtid::GtidSet;

use crate::error::{Error, Result};
use crate::format::contents::{BlockContents, Contents, KeyProbe, TableContents, TableName};
use crate::format::{FileEntry, index};
use crate::operations::restore;
use crate::segment::Object;
use crate::storage::Storage;

/// An object, and what its blocks hold.
#[derive(Debug)]
pub struct Told {
    object: Object,
    /// `None`: they may hold anything.
    contents: Option<Contents>,
}

impl Told {
    /// Opens an object.
    ///
    /// # Errors
    ///
    /// An object that is missing or damaged.
    pub fn open(storage: &dyn Storage, object: &str) -> Result<Told> {
        let object = restore::open(storage, object)?;
        let contents = match object.contents() {
            Ok(contents) => contents.filter(|_| !object.made_anew),
            Err(Error::In { source, .. }) if matches!(*source, Error::Io { .. }) => return Err(*source),
            Err(_) => None,
        };
        Ok(Told { object, contents })
    }
}

/// Blocks that are given or left out together.
#[derive(Debug)]
pub struct Run<'a> {
    /// Its bytes in the log; in the expanded one, if the log had payloads.
    pub range: Range<u64>,
    /// The transactions that begin in it.
    pub gtids: GtidSet,
    times: Option<(u32, u32)>,
    blocks: Vec<Block<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct Block<'a> {
    /// Which of the log's objects, and which of its blocks.
    object: usize,
    number: u32,
    told: Option<(&'a Contents, &'a BlockContents)>,
}

/// Rows of one table in a block.
#[derive(Debug, Clone, Copy)]
pub struct TableRows<'a> {
    /// The table.
    pub name: &'a TableName,
    /// How many, and of which kind.
    pub rows: &'a TableContents,
    block: &'a BlockContents,
}

impl TableRows<'_> {
    /// Whether a row may have one of these keys.
    pub fn may_have(&self, probes: &[KeyProbe]) -> bool {
        self.block.may_have(self.name, self.rows, probes)
    }
}

impl Run<'_> {
    fn any(&self, is: impl Fn(&BlockContents) -> bool) -> bool {
        self.blocks.iter().any(|block| block.told.is_none_or(|(_, told)| told.is_opaque || is(told)))
    }

    /// Whether it may have statements other than transaction control.
    pub fn may_have_statements(&self) -> bool {
        self.any(|block| block.has_statements)
    }

    /// Whether it may have XA COMMIT or XA ROLLBACK.
    pub fn may_end_xa(&self) -> bool {
        self.any(|block| block.ends_xa)
    }

    /// Whether it may have events that are in no transaction.
    pub fn may_have_loose(&self) -> bool {
        self.any(|block| block.has_loose)
    }

    /// The smallest and the largest timestamp of its events.
    pub fn times(&self) -> Option<(u32, u32)> {
        self.times
    }

    /// When its transactions were committed, in seconds since 1970: the first and the last; `None`: unknown.
    pub fn commits(&self) -> Option<(u64, u64)> {
        let mut all = None;
        for block in &self.blocks {
            let (_, told) = block.told.filter(|(_, told)| !told.is_opaque)?;
            let Some((first, last)) = told.commits else { continue };
            let (low, high) = all.unwrap_or((first, last));
            all = Some((first.min(low), last.max(high)));
        }
        all
    }

    /// Whether it may have rows such as these.
    pub fn may_have_rows(&self, is_wanted: &dyn Fn(TableRows<'_>) -> bool) -> bool {
        self.blocks.iter().any(|block| {
            block.told.is_none_or(|(contents, told)| {
                let mut rows = told.tables.iter().filter_map(|rows| {
                    let name = contents.tables.get(rows.table as usize)?;
                    Some(TableRows { name, rows, block: told })
                });
                told.is_opaque || rows.any(is_wanted)
            })
        })
    }
}

/// The parts of a log that are given.
#[derive(Debug)]
pub struct Parts {
    objects: Vec<Arc<Told>>,
    steps: Vec<Step>,
    /// What is left out, in order, each between two events.
    pub gaps: Vec<Range<u64>>,
}

#[derive(Debug)]
enum Step {
    Bytes(Vec<u8>),
    /// Which of the objects, and its blocks.
    Blocks(usize, Vec<u32>),
}

impl Parts {
    /// Chooses the runs to give. `objects` are those of the log, in order. `None`: everything is given. So it is, too,
    /// if the log had payloads and any run is wanted: where its transactions stood is known only once all are
    /// compressed again.
    ///
    /// # Errors
    ///
    /// An object that does not hold the log.
    pub fn choose(
        file: &FileEntry,
        objects: Vec<Arc<Told>>,
        is_wanted: &mut dyn FnMut(&Run<'_>) -> bool,
    ) -> Result<Option<Parts>> {
        let (mut steps, mut gaps) = (Vec::new(), Vec::<Range<u64>>::new());
        let Some(runs) = runs(file, &objects)? else { return Ok(None) };
        let head = head_of(file, &objects)?;
        for run in &runs {
            if is_wanted(run) {
                if file.payload_level.is_some() {
                    return Ok(None);
                }
                for block in &run.blocks {
                    match steps.last_mut() {
                        Some(Step::Blocks(object, numbers)) if *object == block.object => {
                            numbers.push(block.number);
                        }
                        _ => steps.push(Step::Blocks(block.object, vec![block.number])),
                    }
                }
                continue;
            }
            let mut gap = run.range.clone();
            if gap.start == 0 {
                steps.push(Step::Bytes(head.clone()));
                gap.start = head.len() as u64;
            }
            let tail = run
                .blocks
                .last()
                .and_then(|last| last.told)
                .map(|(_, told)| told.tail.clone())
                .unwrap_or_default();
            gap.end = gap.end.saturating_sub(tail.len() as u64).max(gap.start);
            match gaps.last_mut() {
                Some(last) if last.end == gap.start => last.end = gap.end,
                _ => gaps.push(gap),
            }
            if !tail.is_empty() {
                steps.push(Step::Bytes(tail));
            }
        }
        if file.payload_level.is_some() {
            // The end of its last event is another: so nothing but the head is given.
            let start = head.len() as u64;
            let after = start..file.size.max(start);
            (steps, gaps) = (vec![Step::Bytes(head)], Vec::from_iter([after]));
        }
        gaps.retain(|gap| !gap.is_empty());
        Ok((!gaps.is_empty()).then_some(Parts { objects, steps, gaps }))
    }

    /// Writes what is given.
    ///
    /// # Errors
    ///
    /// Damaged blocks, output that fails.
    pub fn write(&self, out: &mut dyn Write, workers: usize) -> Result<()> {
        for step in &self.steps {
            match step {
                Step::Bytes(bytes) => out.write_all(bytes).map_err(Error::writing)?,
                Step::Blocks(object, numbers) => {
                    let Some(told) = self.objects.get(*object) else { continue };
                    told.object.blocks(numbers, workers, &mut |_, block| {
                        out.write_all(&block.log).map_err(Error::writing)
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// The log's magic and first events, which every reader needs.
fn head_of(file: &FileEntry, objects: &[Arc<Told>]) -> Result<Vec<u8>> {
    let Some(told) = objects.first() else { return Ok(Vec::new()) };
    let (log, _) = told.object.log(&file.name)?;
    Ok(told.object.index.logs.get(log as usize).map(|log| log.head.clone()).unwrap_or_default())
}

/// The runs of a log; `None`: they can't be told apart for certain.
fn runs<'a>(file: &FileEntry, objects: &'a [Arc<Told>]) -> Result<Option<Vec<Run<'a>>>> {
    let mut runs: Vec<Run<'a>> = Vec::new();
    let mut offset = 0;
    for (place, told) in objects.iter().enumerate() {
        if told.object.made_anew {
            return Ok(None);
        }
        let (_, numbers) = told.object.log(&file.name)?;
        for number in numbers {
            let Some(entry) = told.object.index.blocks.get(number as usize) else { return Ok(None) };
            if entry.offset != offset {
                return Err(Error::unexpected("begin of a block", entry.offset, offset));
            }
            offset += entry.size;
            let contents = told.contents.as_ref();
            let block = contents.and_then(|contents| Some((contents, contents.blocks.get(number as usize)?)));
            let block = Block { object: place, number, told: block };
            match runs.last_mut() {
                Some(run) if entry.continues => {
                    run.range.end = offset;
                    run.gtids.union(&entry.gtids);
                    run.times = index::join_times(run.times, entry.times);
                    run.blocks.push(block);
                }
                _ => runs.push(Run {
                    range: entry.offset..offset,
                    gtids: entry.gtids.clone(),
                    times: entry.times,
                    blocks: vec![block],
                }),
            }
        }
    }
    Ok(Some(runs))
}
