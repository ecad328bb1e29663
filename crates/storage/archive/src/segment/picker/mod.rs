//! Picks columns of one table out of blocks of an object, as [`crate::block::picked`] does for one block, together with
//! the earlier blocks that it needs. Workers do all of it, several blocks at once; a block that needs an earlier one
//! waits until that is gathered. Two kinds of blocks are gathered in order: one that continues from the block before it
//! ([`PickedBlock::Later`]), and one with too many values to be held at once ([`PickedBlock::Parts`]).

mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use binlogz_flow::ordered;
use shared::{End, PickerShared, UnderWay};

use crate::block::former::UnpackedBlock;
use crate::block::picked::{self, BlockBound, Pick, PickedChanges, PreparedBlock, WholeBlock};
use crate::error::{Error, Result};
use crate::format::index::BlockEntry;
use crate::log::events;
use crate::segment::Object;
use crate::segment::unpacker::CLOSURE_READ_MAX;

/// Where the transactions of a block's GTID events begin in the log, in order.
pub type Positions<'a> = dyn Fn(u32) -> Result<Vec<u64>> + Sync + 'a;

/// Memory of a part of a block with very many values.
const PART_MEMORY_MAX: usize = 16 << 20;

/// One block to pick from.
struct Job<'s> {
    number: u32,
    turn: u64,
    /// Other blocks refer to it, and may wait for it.
    under_way: Option<UnderWay<'s>>,
}

/// A worker's result for one block.
enum PickedBlock<'s, T> {
    /// The caller's value for this block, and the state where the block ends.
    Whole(u32, T, BlockBound),
    /// It is gathered when it is its turn: it needs the state where the block before it ends.
    Later(Job<'s>, PreparedBlock),
    /// It is picked in parts when it is its turn. With the table maps that it begins with.
    Parts(Job<'s>, Vec<Vec<u8>>),
}

/// The picked contents of one block.
enum Outcome {
    Whole(Arc<PickedChanges>),
    /// More than may be held at once. With the table maps that it begins with.
    Parts(Vec<Vec<u8>>),
}

impl Object {
    /// Has workers `make` a value of the picked contents of each block, and gives the values to `sink` in the order of
    /// the blocks, with the bytes of the block. A block with very many values comes in several parts, and its bytes come
    /// with the first. `positions` tells where the transactions of a block's GTID events begin in the log. `bound`: the state
    /// where the blocks begin, and then where they end.
    ///
    /// # Errors
    ///
    /// As for [`Object::block`], and those of `make`, `positions` and `sink`.
    pub fn pick<T: Send>(
        &self,
        numbers: &[u32],
        (pick, positions): (&Pick<'_>, &Positions<'_>),
        workers: usize,
        bound: &mut BlockBound,
        make: &(dyn Fn(&PickedChanges) -> Result<T> + Sync),
        sink: &mut dyn FnMut(u64, T) -> Result<()>,
    ) -> Result<()> {
        let referred: BTreeSet<u32> =
            self.index.blocks.iter().flat_map(|entry| &entry.references).copied().collect();
        let shared = PickerShared::default();
        let mut turns = numbers.iter().copied().zip(0..);
        let jobs = || {
            let (number, turn) = turns.next()?;
            let under_way = referred.contains(&number).then(|| shared.begin(number, turn));
            Some(Ok(Job { number, turn, under_way }))
        };
        let sink = |made: PickedBlock<'_, T>| {
            let (number, maps) = match made {
                PickedBlock::Whole(number, made, end) => {
                    *bound = end;
                    return sink(self.entry(number)?.packed_size, made);
                }
                PickedBlock::Later(job, prepared) => {
                    match self.picked_by(&job, prepared, pick, bound, &shared)? {
                        Outcome::Whole(picked) => {
                            bound.clone_from(&picked.end);
                            return sink(self.entry(job.number)?.packed_size, make(&picked)?);
                        }
                        Outcome::Parts(maps) => (job.number, maps),
                    }
                }
                PickedBlock::Parts(job, maps) => {
                    *bound = BlockBound::default();
                    (job.number, maps)
                }
            };
            bound.begin(maps);
            *bound = self.in_parts(number, pick, bound, make, &mut *sink)?;
            Ok(())
        };
        // Each worker reads its blocks into the same memory.
        let work = |packed: &mut Vec<u8>, job| self.work(job, packed, (pick, positions), make, &shared);
        ordered::run(workers, jobs, End(&shared), || Ok(Vec::new()), work, sink)
    }

    /// A worker's part.
    fn work<'s, T>(
        &self,
        mut job: Job<'s>,
        packed: &mut Vec<u8>,
        (pick, positions): (&Pick<'_>, &Positions<'_>),
        make: &(dyn Fn(&PickedChanges) -> Result<T> + Sync),
        shared: &'s PickerShared,
    ) -> Result<PickedBlock<'s, T>> {
        let mut prepared = self.prepare(job.number, packed, pick)?;
        if pick.with_positions {
            prepared
                .take_positions(|| positions(job.number))
                .map_err(|error| self.name_it(job.number, error))?;
        }
        if prepared.needs_bound(pick) && self.entry(job.number)?.continues {
            return Ok(PickedBlock::Later(job, prepared));
        }
        match self.picked_by(&job, prepared, pick, &BlockBound::default(), shared)? {
            Outcome::Whole(picked) => {
                // A block that needs it doesn't wait for what is made of it.
                job.under_way = None;
                Ok(PickedBlock::Whole(job.number, make(&picked)?, picked.end.clone()))
            }
            Outcome::Parts(maps) => {
                job.under_way = None;
                Ok(PickedBlock::Parts(job, maps))
            }
        }
    }

    /// Picks out of a block in parts; returns the state where it ends.
    fn in_parts<T>(
        &self,
        number: u32,
        pick: &Pick<'_>,
        before: &BlockBound,
        make: &(dyn Fn(&PickedChanges) -> Result<T> + Sync),
        mut sink: impl FnMut(u64, T) -> Result<()>,
    ) -> Result<BlockBound> {
        let mut bytes = self.entry(number)?.packed_size;
        let mut sink = |picked: &PickedChanges| sink(std::mem::take(&mut bytes), make(picked)?);
        let mut sunk = Ok(());
        let block = self.block(number, 1)?;
        let last = self.of_whole(number, &block, before, |whole| {
            whole.rows(pick, PART_MEMORY_MAX, &mut |part| {
                sunk = sink(&part);
                sunk.is_ok()
            })
        });
        sunk?;
        let last = last?;
        sink(&last)?;
        Ok(last.end)
    }

    /// Picks from the block of a job; the result is kept if other blocks refer to it.
    fn picked_by(
        &self,
        job: &Job<'_>,
        prepared: PreparedBlock,
        pick: &Pick<'_>,
        before: &BlockBound,
        shared: &PickerShared,
    ) -> Result<Outcome> {
        let outcome = self
            .picked(job, prepared, pick, before, shared)
            .map_err(|error| self.name_it(job.number, error))?;
        if let (Some(_), Outcome::Whole(picked)) = (&job.under_way, &outcome) {
            shared.keep(job.number, picked);
        }
        Ok(outcome)
    }

    fn entry(&self, number: u32) -> Result<&BlockEntry> {
        let entry = self.index.blocks.get(number as usize);
        entry.ok_or_else(|| {
            Error::damaged("index", format!("a reference to block {number}"), "one of its blocks")
        })
    }

    /// Reads a block in place of what `packed` holds, and takes its streams.
    fn prepare(&self, number: u32, packed: &mut Vec<u8>, pick: &Pick<'_>) -> Result<PreparedBlock> {
        let entry = self.entry(number)?;
        self.read_into(entry, packed)?;
        picked::prepare(packed, entry.size as usize, pick).map_err(|error| self.name_it(number, error))
    }

    /// Picks out of a block, after the blocks that it needs. `before`: the state where it begins, if it continues from a
    /// block before it.
    fn picked(
        &self,
        &Job { number, turn, .. }: &Job<'_>,
        prepared: PreparedBlock,
        pick: &Pick<'_>,
        before: &BlockBound,
        shared: &PickerShared,
    ) -> Result<Outcome> {
        let mut open = vec![(number, prepared)];
        let mut at_hand: BTreeMap<u32, Arc<PickedChanges>> = BTreeMap::new();
        let mut size = 0;
        loop {
            // The block itself is the first of them, and the last that is taken.
            let Some((top, prepared)) = open.last() else {
                return Err(Error::damaged("block", format!("no block {number}"), "one that was read"));
            };
            let entry = self.entry(*top)?;
            let needs = if let PreparedBlock::Columns(columns) = prepared {
                columns.needs()
            } else {
                BTreeSet::new()
            };
            let mut sources = vec![None; entry.references.len()];
            let mut missing = None;
            for place in needs {
                let Some((&reference, source)) = entry.references.get(place).zip(sources.get_mut(place))
                else {
                    continue;
                };
                if let Some(picked) =
                    at_hand.get(&reference).cloned().or_else(|| shared.earlier(reference, turn))
                {
                    at_hand.insert(reference, Arc::clone(&picked));
                    *source = Some(picked);
                } else if reference >= *top {
                    return Err(Error::damaged(
                        "index",
                        format!("a reference to block {reference}"),
                        "an earlier one",
                    ));
                } else {
                    missing = Some(reference);
                }
            }
            if let Some(missing) = missing {
                size += self.entry(missing)?.size;
                if size > CLOSURE_READ_MAX {
                    let found = format!("references to {size} bytes");
                    return Err(Error::damaged("block", found, "no more than blocks may refer to"));
                }
                open.push((missing, self.prepare(missing, &mut Vec::new(), &pick.of_references())?));
                continue;
            }
            let Some((top, prepared)) = open.pop() else { continue };
            if top == number {
                return self.gather(top, prepared, &sources, pick, before);
            }
            let picked = Arc::new(self.gather_images(top, prepared, &sources, &pick.of_references())?);
            shared.keep(top, &picked);
            at_hand.insert(top, picked);
        }
    }

    /// Picks the rows of a block, and the images that others may refer to.
    fn gather(
        &self,
        number: u32,
        prepared: PreparedBlock,
        sources: &[Option<Arc<PickedChanges>>],
        pick: &Pick<'_>,
        before: &BlockBound,
    ) -> Result<Outcome> {
        let (unpacked, maps) = match prepared {
            PreparedBlock::Columns(columns) => {
                return Ok(Outcome::Whole(Arc::new(columns.gather(sources, before)?)));
            }
            PreparedBlock::Whole(maps) => return Ok(Outcome::Parts(maps)),
            PreparedBlock::Unpacked(unpacked, maps) => (unpacked, maps),
        };
        let mut before = before.clone();
        before.begin(maps.clone());
        let mut is_whole = true;
        let picked = self.of_whole(number, &unpacked, &before, |whole| {
            let mut picked = whole.rows(pick, picked::memory_max(unpacked.log.len()), &mut |_| {
                is_whole = false;
                false
            })?;
            whole.leave(&mut picked)?;
            Ok(picked)
        })?;
        Ok(if is_whole { Outcome::Whole(Arc::new(picked)) } else { Outcome::Parts(maps) })
    }

    /// Picks the images of a block that others may refer to.
    fn gather_images(
        &self,
        number: u32,
        prepared: PreparedBlock,
        sources: &[Option<Arc<PickedChanges>>],
        pick: &Pick<'_>,
    ) -> Result<PickedChanges> {
        let (unpacked, maps) = match prepared {
            PreparedBlock::Columns(columns) => return columns.gather(sources, &BlockBound::default()),
            PreparedBlock::Unpacked(unpacked, maps) => (Arc::new(*unpacked), maps),
            PreparedBlock::Whole(maps) => (self.block(number, 1)?, maps),
        };
        let mut before = BlockBound::default();
        before.begin(maps);
        self.of_whole(number, &unpacked, &before, |whole| whole.images(pick))
    }

    /// Makes something of a block that was unpacked as a whole.
    fn of_whole<T>(
        &self,
        number: u32,
        block: &UnpackedBlock,
        before: &BlockBound,
        make: impl FnOnce(WholeBlock<'_>) -> Result<T>,
    ) -> Result<T> {
        let entry = self.entry(number)?;
        let head = self.index.logs.get(entry.log as usize).map(|log| log.head.as_slice()).unwrap_or_default();
        let made = events::lengths(head)
            .ok_or_else(|| Error::damaged("head of the log", "no format description", "one"))
            .and_then(|lengths| make(WholeBlock { block, offset: entry.offset, lengths: &lengths, before }));
        made.map_err(|error| self.name_it(number, error))
    }
}
