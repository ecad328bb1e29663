//! Picks columns of one table out of blocks of an object: what [`crate::block::picked`] does, with the earlier blocks that it
//! needs. Streams are taken for several blocks at once; rows are gathered in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use binlogz_flow::ordered;

use crate::block::picked::{self, Pick, Picked, Prepared};
use crate::error::{Error, Result};
use crate::format::index::BlockEntry;
use crate::log::events;
use crate::segment::Object;
use crate::segment::unpacker::{CLOSURE_READ_MAX, Packed};

/// Memory of what is kept of blocks that others refer to.
const KEPT_MAX: usize = 64 << 20;

/// What was picked out of earlier blocks.
#[derive(Debug, Default)]
struct Kept {
    blocks: BTreeMap<u32, (u64, Arc<Picked>)>,
    memory: usize,
    clock: u64,
}

impl Kept {
    fn get(&mut self, number: u32) -> Option<Arc<Picked>> {
        self.clock += 1;
        let (used, picked) = self.blocks.get_mut(&number)?;
        *used = self.clock;
        Some(Arc::clone(picked))
    }

    fn put(&mut self, number: u32, picked: &Arc<Picked>) {
        self.clock += 1;
        self.memory += picked.memory();
        if let Some((_, before)) = self.blocks.insert(number, (self.clock, Arc::clone(picked))) {
            self.memory -= before.memory();
        }
        while self.memory > KEPT_MAX {
            let oldest = self.blocks.iter().min_by_key(|(_, (used, _))| *used).map(|(number, _)| *number);
            let Some(oldest) = oldest.filter(|&oldest| oldest != number) else { return };
            if let Some((_, picked)) = self.blocks.remove(&oldest) {
                self.memory -= picked.memory();
            }
        }
    }
}

impl Object {
    /// Gives what is picked out of blocks to `sink`, in their order.
    ///
    /// # Errors
    ///
    /// As for [`Object::block`], and those of `sink`.
    pub fn pick(
        &self,
        numbers: &[u32],
        pick: &Pick<'_>,
        workers: usize,
        sink: &mut dyn FnMut(&BlockEntry, &Picked) -> Result<()>,
    ) -> Result<()> {
        let referred: BTreeSet<u32> =
            self.index.blocks.iter().flat_map(|entry| &entry.references).copied().collect();
        let mut jobs = numbers.iter().copied();
        let mut kept = Kept::default();
        // A block packed as bytes doesn't tell the table maps in force where it begins.
        let mut last: Option<Arc<Picked>> = None;
        ordered::run(
            workers,
            || jobs.next().map(Ok),
            || {},
            || Ok(()),
            |(), number| Ok((number, self.prepare(number, pick)?)),
            |(number, prepared)| {
                let before = last.take();
                let picked = self.picked(number, prepared, pick, before.as_deref(), &mut kept);
                let picked = picked.map_err(|error| self.name_it(number, error))?;
                if referred.contains(&number) {
                    kept.put(number, &picked);
                }
                sink(self.entry(number)?, &picked)?;
                last = Some(picked);
                Ok(())
            },
        )
    }

    fn entry(&self, number: u32) -> Result<&BlockEntry> {
        let entry = self.index.blocks.get(number as usize);
        entry.ok_or_else(|| {
            Error::damaged("index", format!("a reference to block {number}"), "one of its blocks")
        })
    }

    fn prepare(&self, number: u32, pick: &Pick<'_>) -> Result<Prepared> {
        let entry = self.entry(number)?;
        let packed = self.read(entry)?;
        picked::prepare(&packed, entry.size as usize, pick).map_err(|error| self.name_it(number, error))
    }

    /// Picks out of a block, and before that out of those that it needs.
    fn picked(
        &self,
        number: u32,
        prepared: Prepared,
        pick: &Pick<'_>,
        before: Option<&Picked>,
        kept: &mut Kept,
    ) -> Result<Arc<Picked>> {
        let mut open = vec![(number, prepared)];
        let mut at_hand: BTreeMap<u32, Arc<Picked>> = BTreeMap::new();
        let mut size = 0;
        loop {
            let Some((top, prepared)) = open.last() else {
                return at_hand.remove(&number).ok_or_else(|| {
                    Error::damaged("block", format!("no block {number}"), "one that was read")
                });
            };
            let entry = self.entry(*top)?;
            let needs =
                if let Prepared::Columns(columns) = prepared { columns.needs() } else { BTreeSet::new() };
            let mut sources = vec![None; entry.references.len()];
            let mut missing = None;
            for place in needs {
                let Some((&reference, source)) = entry.references.get(place).zip(sources.get_mut(place))
                else {
                    continue;
                };
                if let Some(picked) = at_hand.get(&reference).cloned().or_else(|| kept.get(reference)) {
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
                open.push((missing, self.prepare(missing, pick)?));
                continue;
            }
            let Some((top, prepared)) = open.pop() else { continue };
            let before = before.filter(|_| top == number && entry.continues);
            let picked = Arc::new(self.gather(top, prepared, &sources, pick, before)?);
            if top != number {
                kept.put(top, &picked);
            }
            at_hand.insert(top, picked);
        }
    }

    fn gather(
        &self,
        number: u32,
        prepared: Prepared,
        sources: &[Option<Arc<Picked>>],
        pick: &Pick<'_>,
        before: Option<&Picked>,
    ) -> Result<Picked> {
        let entry = self.entry(number)?;
        let head = self.index.logs.get(entry.log as usize).map(|log| log.head.as_slice()).unwrap_or_default();
        let (unpacked, mut maps) = match prepared {
            Prepared::Columns(columns) => return columns.gather(sources),
            Prepared::Unpacked(unpacked, maps) => (Arc::new(*unpacked), maps),
            Prepared::Whole(maps) => (self.block(number, 1)?, maps),
        };
        if maps.is_empty() {
            maps = before.map(|before| before.maps.clone()).unwrap_or_default();
        }
        let lengths = events::lengths(head);
        let lengths =
            lengths.ok_or_else(|| Error::damaged("head of the log", "no format description", "one"))?;
        Picked::of_unpacked(&unpacked, &maps, &lengths, entry.offset, pick)
    }
}
