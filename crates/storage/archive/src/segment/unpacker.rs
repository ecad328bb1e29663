//! Unpacks blocks of an object, each with the earlier ones that it refers to.
//!
//! Columns are taken for several blocks at once; fields are gathered in order. Blocks that others refer to are kept
//! for a while, so that a whole log is restored without unpacking much twice.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use binlogz_flow::ordered;
use parking_lot::Mutex;

use crate::block;
use crate::block::UnpackedBlock;
use crate::error::{Error, Result};
use crate::format::index::BlockEntry;
use crate::segment::budget::Budget;

/// Plain bytes of all blocks that must be unpacked to get one, including itself: the cost of one transaction.
pub(crate) const CLOSURE_MAX: u64 = 64 << 20;
/// The limit when an archive is read: more is refused. A later packer may choose another limit than ours.
pub(crate) const CLOSURE_READ_MAX: u64 = 4 * CLOSURE_MAX;
/// Memory of the blocks that are kept.
const KEPT_MAX: usize = 64 << 20;
/// Memory of the blocks whose columns are taken; a single block may exceed it.
const OPENED_MAX: usize = 160 << 20;
/// Memory of a block whose columns are taken, as a multiple of its plain bytes: numbers take eight bytes
/// each.
const OPENED_FACTOR: usize = 6;

/// Where packed blocks are.
pub(crate) trait PackedBlocks: Sync {
    /// The packed bytes of a block, checked.
    fn read(&self, entry: &BlockEntry) -> Result<Vec<u8>>;
    /// Tells where the blocks are that will be read next.
    fn expect(&self, _: &[Range<u64>]) {}
}

impl<F: Fn(&BlockEntry) -> Result<Vec<u8>> + Sync> PackedBlocks for F {
    fn read(&self, entry: &BlockEntry) -> Result<Vec<u8>> {
        self(entry)
    }
}

/// The most recently used unpacked blocks, which all readers of an object share. It is locked for as long as a block is
/// looked up or put in, never while one is read, unpacked or given to a sink: a reader that waits for its client hinders
/// no other.
#[derive(Debug, Default)]
pub(crate) struct UnpackedBlocks(Mutex<RecentBlocks>);

#[derive(Debug, Default)]
struct RecentBlocks {
    blocks: BTreeMap<u32, (u64, Arc<UnpackedBlock>)>,
    clock: u64,
}

impl UnpackedBlocks {
    fn get(&self, number: u32) -> Option<Arc<UnpackedBlock>> {
        self.0.lock().get(number)
    }

    /// Keeps a block, and drops the least recently used ones.
    pub(crate) fn put(&self, number: u32, block: Arc<UnpackedBlock>) {
        self.0.lock().put(number, block);
    }

    /// Drops all of them.
    pub(crate) fn clear(&self) {
        self.0.lock().blocks.clear();
    }
}

impl RecentBlocks {
    fn get(&mut self, number: u32) -> Option<Arc<UnpackedBlock>> {
        self.clock += 1;
        let (used, block) = self.blocks.get_mut(&number)?;
        *used = self.clock;
        Some(Arc::clone(block))
    }

    fn put(&mut self, number: u32, block: Arc<UnpackedBlock>) {
        self.clock += 1;
        self.blocks.insert(number, (self.clock, block));
        while self.blocks.values().map(|(_, block)| block.memory()).sum::<usize>() > KEPT_MAX {
            let oldest = self.blocks.iter().min_by_key(|(_, (used, _))| *used).map(|(number, _)| *number);
            let Some(oldest) = oldest.filter(|&oldest| oldest != number) else { return };
            self.blocks.remove(&oldest);
        }
    }
}

/// The block of this number.
pub(crate) fn one(
    entries: &[BlockEntry],
    packed: &dyn PackedBlocks,
    kept: &UnpackedBlocks,
    number: u32,
    workers: usize,
) -> Result<Arc<UnpackedBlock>> {
    if let Some(block) = kept.get(number) {
        return Ok(block);
    }
    let (mut at_hand, wanted) = needed(entries, kept, number)?;
    let places = wanted.iter().filter_map(|&wanted| Some(entries.get(wanted as usize)?.place()));
    packed.expect(&places.collect::<Vec<_>>());
    let unopened = UnopenedBlocks::new(workers, wanted.len());
    let mut jobs = wanted.into_iter();
    let budget = Budget::new(OPENED_MAX);
    ordered::run(
        workers,
        || jobs.next().filter(|&wanted| begin(entries, wanted, &budget)).map(Ok::<_, Error>),
        budget.until_dropped(),
        || Ok(()),
        |(), wanted| {
            let opened = unopened.open(entries, packed, wanted);
            Ok((wanted, opened.map_err(needed_by(entries, wanted, number))?))
        },
        |(wanted, opened)| {
            let entry = entry(entries, wanted)?;
            let sources = entry.references.iter().filter_map(|reference| at_hand.get(reference).cloned());
            let block = opened.gather(entry.offset, sources.collect());
            let block = Arc::new(block.map_err(needed_by(entries, wanted, number))?);
            budget.give_back(opened_memory(entry));
            at_hand.insert(wanted, block);
            Ok(())
        },
    )?;
    let block = at_hand
        .get(&number)
        .cloned()
        .ok_or_else(|| Error::damaged("block", format!("no block {number}"), "one that was read"))?;
    for (number, block) in at_hand {
        kept.put(number, block);
    }
    Ok(block)
}

/// Gives blocks to `sink` in the order of `numbers`.
pub(crate) fn each(
    entries: &[BlockEntry],
    packed: &dyn PackedBlocks,
    kept: &UnpackedBlocks,
    numbers: &[u32],
    workers: usize,
    sink: &mut dyn FnMut(&BlockEntry, &UnpackedBlock) -> Result<()>,
) -> Result<()> {
    let referred: BTreeSet<u32> = entries.iter().flat_map(|entry| &entry.references).copied().collect();
    let mut jobs = numbers.iter().copied();
    let unopened = UnopenedBlocks::new(workers, numbers.len());
    let budget = Budget::new(OPENED_MAX);
    ordered::run(
        workers,
        || jobs.next().filter(|&number| begin(entries, number, &budget)).map(Ok),
        budget.until_dropped(),
        || Ok(()),
        |(), number| Ok((number, unopened.open(entries, packed, number)?)),
        |(number, opened)| {
            let entry = entry(entries, number)?;
            let sources = entry
                .references
                .iter()
                .map(|&reference| {
                    one(entries, packed, kept, reference, workers)
                        .map_err(needed_by(entries, reference, number))
                })
                .collect::<Result<_>>()?;
            let block = Arc::new(opened.gather(entry.offset, sources)?);
            budget.give_back(opened_memory(entry));
            if referred.contains(&number) {
                kept.put(number, Arc::clone(&block));
            }
            sink(entry, &block)
        },
    )
}

/// Waits until a block may be opened; `false` if the run is over.
fn begin(entries: &[BlockEntry], number: u32, budget: &Budget) -> bool {
    let memory = entries.get(number as usize).map_or(0, opened_memory);
    let go = budget.wait_for(memory);
    budget.take(memory);
    go
}

fn opened_memory(entry: &BlockEntry) -> usize {
    entry.size as usize * OPENED_FACTOR
}

fn entry(entries: &[BlockEntry], number: u32) -> Result<&BlockEntry> {
    entries
        .get(number as usize)
        .ok_or_else(|| Error::damaged("index", format!("a reference to block {number}"), "one of its blocks"))
}

/// The blocks of a run that aren't opened yet: the last ones are opened by the cores that the others no longer need.
struct UnopenedBlocks {
    workers: usize,
    left: AtomicUsize,
}

impl UnopenedBlocks {
    fn new(workers: usize, left: usize) -> Self {
        UnopenedBlocks { workers, left: AtomicUsize::new(left) }
    }

    fn open(
        &self,
        entries: &[BlockEntry],
        packed: &dyn PackedBlocks,
        number: u32,
    ) -> Result<block::OpenBlock> {
        let entry = entry(entries, number)?;
        let threads = self.workers / self.left.load(Ordering::Relaxed).max(1);
        let opened = block::open_by(&packed.read(entry)?, entry.size as usize, threads);
        self.left.fetch_sub(1, Ordering::Relaxed);
        opened
    }
}

/// If the block `wanted` fails, `number`, which needs it, can't be unpacked either.
fn needed_by(entries: &[BlockEntry], wanted: u32, number: u32) -> impl FnOnce(Error) -> Error {
    let block = entries.get(number as usize).filter(|_| wanted != number).map(BlockEntry::describe);
    move |error| match block {
        Some(block) => Error::Needs { block, source: Box::new(error) },
        None => error,
    }
}

/// The blocks that are available, and those to be unpacked, in order, to get this one.
type NeededBlocks = (BTreeMap<u32, Arc<UnpackedBlock>>, BTreeSet<u32>);

fn needed(entries: &[BlockEntry], kept: &UnpackedBlocks, number: u32) -> Result<NeededBlocks> {
    let mut at_hand = BTreeMap::new();
    let mut wanted = BTreeSet::new();
    let mut size = 0;
    let mut open = vec![number];
    while let Some(number) = open.pop() {
        if at_hand.contains_key(&number) || !wanted.insert(number) {
            continue;
        }
        let entry = entry(entries, number)?;
        size += entry.size;
        if size > CLOSURE_READ_MAX {
            return Err(Error::damaged(
                "block",
                format!("references to {size} bytes"),
                "no more than blocks may refer to",
            ));
        }
        for &reference in &entry.references {
            match kept.get(reference) {
                Some(block) => drop(at_hand.insert(reference, block)),
                None => open.push(reference),
            }
        }
    }
    Ok((at_hand, wanted))
}
