//! Gives a log back without the parts that a reader has no use for: their blocks are neither read nor unpacked.
//!
//! A run is the least that is left out: the blocks of whole transactions, or those of one transaction that takes several.
//! The log's head is always given, and so are the events at its end that are in no transaction.

use std::io::{Seek, Write};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{EventClass, EventType};
use binlogz_flow::Input;
use binlogz_scratch_file::Scratch;

use crate::block::picked::{BlockBound, Pick, PickedChanges};
use crate::error::{Error, Result};
use crate::format::contents::{BlockContents, Contents, KeyProbe, ListedTable, TableContents};
use crate::format::directory::{DirectoryGroups, StoredDirectory};
use crate::format::{FileEntry, index};
use crate::log::directory::BlockDirectory;
use crate::log::payloads::{self, Codec};
use crate::operations::restore::{self, LastObject};
use crate::segment::Object;
use crate::storage::ArchiveStorage;

/// An object, and what its blocks hold.
#[derive(Debug)]
pub struct ObjectContents {
    object: Arc<Object>,
    /// `None`: they may hold anything.
    contents: Option<Contents>,
    /// Its transactions, once they were asked for; `None`: they aren't told.
    directory: OnceLock<Option<StoredDirectory>>,
}

impl ObjectContents {
    /// Opens an object.
    ///
    /// # Errors
    ///
    /// An object that is missing or damaged.
    pub fn open(storage: &dyn ArchiveStorage, last: &LastObject, object: &str) -> Result<ObjectContents> {
        let object = last.open(storage, object)?;
        let contents = match object.contents() {
            Ok(contents) => contents.filter(|_| !object.made_anew),
            Err(Error::In { source, .. }) if matches!(*source, Error::Io { .. }) => return Err(*source),
            Err(_) => None,
        };
        Ok(ObjectContents { object, contents, directory: OnceLock::new() })
    }

    /// The transactions of its blocks; `None`: they aren't told, or it can't be read what is told.
    fn directory(&self) -> Result<Option<(&StoredDirectory, &Contents)>> {
        let directory = match self.directory.get() {
            Some(directory) => directory,
            None => {
                let stored = match self.object.directory() {
                    Ok(stored) => stored.filter(|_| !self.object.made_anew),
                    Err(Error::In { source, .. }) if matches!(*source, Error::Io { .. }) => {
                        return Err(*source);
                    }
                    Err(_) => None,
                };
                self.directory.get_or_init(|| stored)
            }
        };
        Ok(directory.as_ref().zip(self.contents.as_ref()))
    }
}

impl ObjectContents {
    /// About how much memory it takes besides unpacked blocks, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.object.told_memory()
    }

    /// Drops the unpacked blocks of its object that nobody uses.
    pub(crate) fn forget_blocks(&self) {
        self.object.forget_blocks();
    }

    /// The groups that the directory of a block has.
    pub(super) fn told_groups(&self, number: u32) -> DirectoryGroups {
        let directory = self.directory.get().and_then(Option::as_ref);
        directory.map(|directory| directory.groups(number)).unwrap_or_default()
    }

    /// The directory of a block, with these groups.
    pub(super) fn directory_of(
        &self,
        number: u32,
        groups: DirectoryGroups,
    ) -> Result<Option<BlockDirectory>> {
        match self.directory()? {
            Some(told) => self.object.directory_of(number, told, groups),
            None => Ok(None),
        }
    }
}

/// Blocks that are given or left out together.
#[derive(Debug)]
pub struct BlockRun<'a> {
    /// The run's range in the log as it is packed, in bytes: without payloads.
    packed: Range<u64>,
    /// The run's range in the log, in bytes; `None`: the log had payloads, and the archive doesn't tell the range.
    place: Option<Range<u64>>,
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
    pub name: &'a ListedTable,
    /// How many rows, by kind of change.
    pub rows: &'a TableContents,
    block: &'a BlockContents,
}

impl TableRows<'_> {
    /// Whether a row may have one of these keys.
    pub fn may_have(&self, probes: &[KeyProbe]) -> bool {
        self.block.may_have(self.name, self.rows, probes)
    }
}

impl BlockRun<'_> {
    /// Whether the directories of its blocks have these groups.
    pub(super) fn tells(&self, objects: &[Arc<ObjectContents>], groups: DirectoryGroups) -> Result<bool> {
        for block in &self.blocks {
            let Some(told) = objects.get(block.object) else { return Ok(false) };
            let Some((directory, _)) = told.directory()? else { return Ok(false) };
            if !directory.groups(block.number).has(groups) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The object of each of its blocks, and its number there.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, u32)> {
        self.blocks.iter().map(|block| (block.object, block.number))
    }

    /// The run's range in the log as it is packed.
    pub(super) fn packed_range(&self) -> Range<u64> {
        self.packed.clone()
    }

    /// The run's range in the log; as it is packed if nothing else is known.
    fn range(&self) -> &Range<u64> {
        self.place.as_ref().unwrap_or(&self.packed)
    }

    /// Where the run begins in the log, in bytes; as it is packed if nothing else is known.
    pub fn start(&self) -> u64 {
        self.range().start
    }

    /// How many blocks it has.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Where the run ends in the log, in bytes; `None`: the archive doesn't tell.
    pub fn end(&self) -> Option<u64> {
        self.place.as_ref().map(|place| place.end)
    }

    /// The events at its end that are in no transaction, as the archive's contents have them; empty if they don't.
    fn tail(&self) -> &[u8] {
        let told = self.blocks.last().and_then(|last| last.told);
        told.map(|(_, told)| told.tail.as_slice()).unwrap_or_default()
    }

    fn any(&self, is: impl Fn(&BlockContents) -> bool) -> bool {
        self.blocks.iter().any(|block| block.told.is_none_or(|(_, told)| told.is_opaque || is(told)))
    }

    /// Whether it may have statements other than transaction control.
    pub fn may_have_statements(&self) -> bool {
        self.any(|block| block.has_statements)
    }

    /// Whether it may have texts of statements beside their rows, of which the contents don't tell: the types of its events are taken from its
    /// blocks.
    pub(super) fn may_have_texts(&self, objects: &[Arc<ObjectContents>]) -> Result<bool> {
        let is_text = |event_type: EventType| event_type.class() == EventClass::RowsStatement;
        for (place, number) in self.places() {
            let Some(told) = objects.get(place) else { return Ok(true) };
            let types = told.object.event_types(number)?;
            if types.is_none_or(|types| types.into_iter().any(is_text)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether it may have XA COMMIT or XA ROLLBACK.
    pub fn may_end_xa(&self) -> bool {
        self.any(|block| block.ends_xa)
    }

    /// Whether it may have events that are in no transaction.
    pub fn may_have_loose(&self) -> bool {
        self.any(|block| block.has_loose)
    }

    /// Whether it may have transactions without GTID.
    pub fn may_lack_gtids(&self) -> bool {
        self.any(|block| !block.has_all_gtids)
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

impl<'a> BlockRun<'a> {
    /// All rows in it, by block and table; `None`: the archive doesn't tell.
    pub fn rows(&self) -> Option<Vec<TableRows<'a>>> {
        let mut all = Vec::new();
        for block in &self.blocks {
            let (contents, told) = block.told.filter(|(_, told)| !told.is_opaque)?;
            for rows in &told.tables {
                let name = contents.tables.get(rows.table as usize)?;
                all.push(TableRows { name, rows, block: told });
            }
        }
        Some(all)
    }
}

/// The parts of a log that are given.
#[derive(Debug)]
pub struct LogParts {
    objects: Vec<Arc<ObjectContents>>,
    steps: Vec<Step>,
    /// The parts left out, in order, each between two events.
    pub gaps: Vec<Range<u64>>,
    /// For a log with payloads: how they are made, and the same gaps in the log without them, as it is packed.
    payloads: Option<(Codec, Vec<Range<u64>>)>,
}

#[derive(Debug)]
enum Step {
    Bytes(Vec<u8>),
    /// Which of the objects, and its blocks.
    Blocks(usize, Vec<u32>),
}

impl LogParts {
    /// Chooses the runs to give. `objects` are those of the log, in order. `None`: everything is given. So it is, too,
    /// if the log had payloads, any run is wanted, and the archive doesn't tell where its transactions stood.
    ///
    /// # Errors
    ///
    /// An object that does not hold the log; payloads of another codec.
    pub fn choose(
        file: &FileEntry,
        objects: Vec<Arc<ObjectContents>>,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> bool,
    ) -> Result<Option<LogParts>> {
        let codec = file.payload_level.map(|level| restore::codec_of(file, level)).transpose()?;
        let head = head_of(file, &objects)?;
        if codec.is_some_and(|codec| !payloads::stays(&head, codec)) {
            return Ok(None);
        }
        let Some(mut runs) = runs(file, &objects)? else { return Ok(None) };
        let mut wanted: Vec<bool> = runs.iter().map(&mut *is_wanted).collect();
        if codec.is_some() && runs.iter().any(|run| run.place.is_none()) {
            if wanted.contains(&true) || !join(&mut runs, file.size) {
                return Ok(None);
            }
            wanted.truncate(1);
        }
        // After a format description within the log, payloads may be made in another way.
        if codec.is_some() && runs.iter().zip(&wanted).any(|(run, wanted)| *wanted && run.may_have_loose()) {
            return Ok(None);
        }
        let mut choice = Choice::default();
        for (run, wanted) in runs.iter().zip(wanted) {
            match wanted {
                true => choice.take(run),
                false => choice.leave_out(run, &head),
            }
        }
        let Choice { steps, gaps } = choice;
        let (gaps, packed): (Vec<_>, Vec<_>) =
            gaps.into_iter().filter(|(gap, packed)| !gap.is_empty() || !packed.is_empty()).unzip();
        let payloads = codec.map(|codec| (codec, packed));
        Ok((!gaps.is_empty()).then_some(LogParts { objects, steps, gaps, payloads }))
    }

    /// Whether any choice of runs is given without the others, so that several readers can divide a log among them.
    ///
    /// # Errors
    ///
    /// As [`LogParts::choose`].
    pub fn divides(file: &FileEntry, objects: &[Arc<ObjectContents>]) -> Result<bool> {
        let codec = file.payload_level.map(|level| restore::codec_of(file, level)).transpose()?;
        let head = head_of(file, objects)?;
        let Some(runs) = runs(file, objects)? else { return Ok(false) };
        Ok(codec.is_none_or(|codec| {
            payloads::stays(&head, codec)
                && runs.iter().all(|run| run.place.is_some() && !run.may_have_loose())
        }))
    }

    /// Writes the parts of the log.
    ///
    /// # Errors
    ///
    /// Damaged blocks, output that fails.
    pub fn write(&self, out: &mut dyn Write, workers: usize) -> Result<()> {
        let Some((codec, packed)) = &self.payloads else { return self.write_packed(out, workers) };
        let mut plain = Scratch::new().map_err(Error::io("make a temporary file"))?;
        self.write_packed(&mut plain, workers)?;
        plain.rewind().map_err(Error::io("read a temporary file"))?;
        let places: Vec<_> =
            packed.iter().zip(&self.gaps).map(|(packed, gap)| (packed.end, gap.end)).collect();
        let log = Input::Sparse { stream: Box::new(plain), gaps: packed.clone() };
        payloads::compress_parts(log, &places, *codec, out, workers)
    }

    /// Writes the parts of the log as they are packed: without payloads.
    fn write_packed(&self, out: &mut dyn Write, workers: usize) -> Result<()> {
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

/// Columns of one table in a log, and nothing else of it.
#[derive(Debug)]
pub struct PickedLog {
    objects: Vec<Arc<ObjectContents>>,
    /// Which of the objects, and its blocks.
    steps: Vec<(usize, Vec<u32>)>,
    /// What the directories of its blocks tell of where transactions begin; empty: nobody asks.
    groups: DirectoryGroups,
    /// Whether the log had payloads.
    has_payloads: bool,
}

/// The groups of a directory that tell where the transactions of GTID events begin.
const OF_POSITIONS: DirectoryGroups = DirectoryGroups::SIZES.with(DirectoryGroups::GTIDS);

impl PickedLog {
    /// Chooses the runs to pick from. `objects` are those of the log, in order. `with_positions`: it is asked where transactions begin.
    /// `is_wanted` says of each run whether it is, or `None`: not even whether its columns can be picked. Then `None`; so it is, too, if
    /// positions are asked for that the directory of a wanted run doesn't tell.
    ///
    /// # Errors
    ///
    /// An object that does not hold the log.
    pub fn choose(
        file: &FileEntry,
        objects: Vec<Arc<ObjectContents>>,
        with_positions: bool,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> Option<bool>,
    ) -> Result<Option<PickedLog>> {
        if objects.iter().any(|told| !told.object.has_definitions()) {
            return Ok(None);
        }
        // Of a log that had payloads a directory doesn't tell where they stood.
        if with_positions && file.payload_level.is_some() {
            return Ok(None);
        }
        let groups = if with_positions { OF_POSITIONS } else { DirectoryGroups::default() };
        let Some(runs) = runs(file, &objects)? else { return Ok(None) };
        let mut steps: Vec<(usize, Vec<u32>)> = Vec::new();
        for run in &runs {
            match is_wanted(run) {
                None => return Ok(None),
                Some(false) => continue,
                Some(true) => {}
            }
            if with_positions && !run.tells(&objects, groups)? {
                return Ok(None);
            }
            for block in &run.blocks {
                match steps.last_mut() {
                    Some((object, numbers)) if *object == block.object => numbers.push(block.number),
                    _ => steps.push((block.object, vec![block.number])),
                }
            }
        }
        Ok(Some(PickedLog { objects, steps, groups, has_payloads: file.payload_level.is_some() }))
    }

    /// Whether the log had payloads: the places of its events are not those of the log as it is packed.
    pub fn has_payloads(&self) -> bool {
        self.has_payloads
    }

    /// Where the transactions of a block's GTID events begin in the log.
    fn positions(&self, told: &ObjectContents, number: u32) -> Result<Vec<u64>> {
        match told.directory_of(number, self.groups)? {
            Some(directory) if self.groups.has(OF_POSITIONS) => Ok(directory.positions_of_gtid_events()),
            _ => Ok(Vec::new()),
        }
    }

    /// Has workers `make` something of what is picked of each block, and gives it to `sink` in the log's order, as
    /// [`Object::pick`] does.
    ///
    /// # Errors
    ///
    /// Damaged blocks, and those of `make` and `sink`.
    pub fn each<T: Send>(
        &self,
        pick: &Pick<'_>,
        workers: usize,
        make: &(dyn Fn(&PickedChanges) -> Result<T> + Sync),
        sink: &mut dyn FnMut(u64, T) -> Result<()>,
    ) -> Result<()> {
        // A transaction may reach over several objects.
        let mut bound = BlockBound::default();
        for (object, numbers) in &self.steps {
            let Some(told) = self.objects.get(*object) else { continue };
            let positions = |number| self.positions(told, number);
            told.object.pick(numbers, (pick, &positions), workers, &mut bound, make, sink)?;
        }
        Ok(())
    }
}

/// The choice so far.
#[derive(Debug, Default)]
struct Choice {
    steps: Vec<Step>,
    /// In the log, and as it is packed.
    gaps: Vec<(Range<u64>, Range<u64>)>,
}

impl Choice {
    fn take(&mut self, run: &BlockRun<'_>) {
        for block in &run.blocks {
            match self.steps.last_mut() {
                Some(Step::Blocks(object, numbers)) if *object == block.object => numbers.push(block.number),
                _ => self.steps.push(Step::Blocks(block.object, vec![block.number])),
            }
        }
    }

    fn leave_out(&mut self, run: &BlockRun<'_>, head: &[u8]) {
        let tail = run.tail();
        let gap_of = |range: &Range<u64>| {
            let start = if range.start == 0 { head.len() as u64 } else { range.start };
            start..range.end.saturating_sub(tail.len() as u64).max(start)
        };
        if run.packed.start == 0 {
            self.steps.push(Step::Bytes(head.to_vec()));
        }
        let gap = gap_of(run.range());
        let packed = gap_of(&run.packed);
        match self.gaps.last_mut() {
            Some((last, packed_last)) if last.end == gap.start && packed_last.end == packed.start => {
                (last.end, packed_last.end) = (gap.end, packed.end);
            }
            _ => self.gaps.push((gap, packed)),
        }
        if !tail.is_empty() {
            self.steps.push(Step::Bytes(tail.to_vec()));
        }
    }
}

/// Makes all runs one, of a log of this size; `false`: events at the end of one, which are always given, would be in it.
fn join(runs: &mut Vec<BlockRun<'_>>, size: u64) -> bool {
    let Some((last, others)) = runs.split_last_mut() else { return false };
    if others.iter().any(|run| !run.tail().is_empty()) {
        return false;
    }
    (last.packed.start, last.place) = (0, Some(0..size));
    let before = runs.len() - 1;
    runs.drain(..before);
    true
}

/// The log's magic and first events, which every reader needs.
fn head_of(file: &FileEntry, objects: &[Arc<ObjectContents>]) -> Result<Vec<u8>> {
    let Some(told) = objects.first() else { return Ok(Vec::new()) };
    let (log, _) = told.object.log(&file.name)?;
    Ok(told.object.index.logs.get(log as usize).map(|log| log.head.clone()).unwrap_or_default())
}

/// The runs of a log; `None`: where one ends isn't certain.
pub(super) fn runs<'a>(
    file: &FileEntry,
    objects: &'a [Arc<ObjectContents>],
) -> Result<Option<Vec<BlockRun<'a>>>> {
    let mut runs: Vec<BlockRun<'a>> = Vec::new();
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
                    run.packed.end = offset;
                    run.gtids.union(&entry.gtids);
                    run.times = index::join_times(run.times, entry.times);
                    run.blocks.push(block);
                }
                _ => runs.push(BlockRun {
                    packed: entry.offset..offset,
                    place: None,
                    gtids: entry.gtids.clone(),
                    times: entry.times,
                    blocks: vec![block],
                }),
            }
        }
    }
    place(&mut runs, file);
    Ok(Some(runs))
}

/// The parts of logs in an object that no manifest looks for there, since `is_known` doesn't know them: what a log that was packed anew or
/// removed left behind. Each is a block of its own.
pub(super) fn stray_runs<'a>(
    told: &'a ObjectContents,
    is_known: &dyn Fn(&str) -> bool,
) -> impl Iterator<Item = BlockRun<'a>> {
    let index = &told.object.index;
    let strays: Vec<bool> = index.logs.iter().map(|log| !is_known(&log.name)).collect();
    let blocks = (0..).zip(&index.blocks);
    let blocks = blocks.filter(move |(_, block)| strays.get(block.log as usize).copied().unwrap_or(true));
    blocks.map(|(number, entry)| {
        let contents = told.contents.as_ref();
        let block = contents.and_then(|contents| Some((contents, contents.blocks.get(number as usize)?)));
        BlockRun {
            packed: entry.offset..entry.offset + entry.size,
            place: None,
            gtids: entry.gtids.clone(),
            times: entry.times,
            blocks: vec![Block { object: 0, number, told: block }],
        }
    })
}

/// Finds where the runs stand in the log.
fn place(runs: &mut [BlockRun<'_>], file: &FileEntry) {
    let with_payloads = file.payload_level.is_some();
    let mut end = Some(file.size);
    for run in runs.iter_mut().rev() {
        let told = run.blocks.first().and_then(|first| first.told);
        let start = match (with_payloads, run.packed.start) {
            (false, start) => Some(start),
            (true, 0) => Some(0),
            (true, _) => told.and_then(|(_, told)| told.origin),
        };
        let place = start.zip(end).filter(|(start, end)| start <= end);
        run.place = place.map(|(start, end)| start..end);
        end = place.map(|(start, _)| start);
    }
}
