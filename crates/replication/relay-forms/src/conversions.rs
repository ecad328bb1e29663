//! Conversions that replicas share: a pool of converters, and blocks of transactions that were made for one replica and kept for
//! the others.
//!
//! ```text
//! replica ─ (log, file, form, place) ─┬─ is there ──────────── sends it
//! replica ─ (the same) ───────────────┤
//!                                     ├─ is being made ─────── waits, then sends it
//! replica ─ (another place) ──────────┴─ isn't ─ converter ─── makes it, keeps it, sends it
//! ```
//!
//! So for replicas in step, each transaction is converted once. A replica far from the others borrows a converter for
//! each of its transactions, first come first served. A thread that makes a block does not write to a client
//! meanwhile, so nobody waits for a slow client. Memory is bounded whatever the clients do. Kept blocks, blocks that
//! slow clients still hold, and blocks being made share one memory budget. When it is used up, they go to temporary
//! files; such a block is shared only as long as someone is sending it.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use binlogz_payload::SpoolMemory;
use binlogz_relay_log::{Error, Form, FormFile, Result};
use crossbeam_channel::{Receiver, Sender, bounded};
use tracing::{debug_span, field};

use crate::block::Block;
use crate::convert::Converter;
use crate::logged_tables::LoggedTables;

/// The most converters, however many cores there are.
const CONVERTERS_MAX: usize = 16;
/// More than one, since a converter may be waiting for the disk.
const CONVERTERS_PER_CORE: usize = 2;
/// Bytes of blocks kept for other replicas.
const KEPT_SIZE: usize = 24 << 20;
/// The minimum that a block counts for: its memory is allocated in steps of this size.
const COST_MIN: usize = 64 << 10;
/// Bytes of all blocks in memory: those that are kept, and others still being sent.
const BLOCKS_SIZE: usize = 32 << 20;
/// Bytes of blocks being made.
const WORK_SIZE: usize = 8 << 20;
const _: () = assert!(KEPT_SIZE < BLOCKS_SIZE);

/// Bytes of a policy's digest, of which two may be equal by chance alone.
pub(crate) const DIGEST_SIZE: usize = 64;

/// A position in a form of a stored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    /// The id of the stored log: sources share the blocks.
    pub log: u64,
    pub file: FormFile,
    pub form: Form,
    /// The digest of the policy by which it leaves.
    pub exits: Option<[u8; DIGEST_SIZE]>,
    /// Offset in the stored file.
    pub stored: u64,
    /// Position in the form. Follows from the other fields, as long as the position index is right.
    pub at: u64,
}

/// The result of converting the transactions after a position.
type ConversionResult = std::result::Result<Option<Block>, Arc<Error>>;

/// A block that exists or is being made.
#[derive(Debug)]
struct Slot {
    key: BlockKey,
    made: OnceLock<ConversionResult>,
}

/// A block, for as long as someone sends it.
#[derive(Debug, Clone)]
pub struct SharedBlock(Arc<Slot>);

impl SharedBlock {
    /// The block, once it is made.
    pub fn block(&self) -> Option<&Block> {
        self.0.made.get()?.as_ref().ok()?.as_ref()
    }
}

/// Blocks by position.
#[derive(Debug, Default)]
struct Blocks {
    slots: HashMap<BlockKey, Weak<Slot>>,
    /// Blocks kept although nobody sends them, oldest first.
    kept: VecDeque<(Arc<Slot>, usize)>,
    kept_size: usize,
}

/// Counts of conversions since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConversionCounts {
    /// Blocks that were made.
    pub made: u64,
    /// How often an existing block was sent.
    pub shared: u64,
}

/// The converters and blocks of all replicas.
#[derive(Debug)]
pub struct Conversions {
    blocks: Mutex<Blocks>,
    /// Memory for blocks.
    pub memory: SpoolMemory,
    /// Memory for converters.
    pub(crate) work: SpoolMemory,
    /// The tables at places of logs, for masks.
    pub(crate) tables: LoggedTables,
    /// The most recently used one is used next, so the others' memory stays cold.
    idle: Mutex<Vec<Converter>>,
    /// One per converter. The longest waiter gets the next one.
    permits: (Sender<()>, Receiver<()>),
    made: AtomicU64,
    shared: AtomicU64,
}

impl Default for Conversions {
    fn default() -> Self {
        Conversions::new()
    }
}

impl Conversions {
    /// Converters for this machine's cores; no block is there yet.
    pub fn new() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let count = (cores * CONVERTERS_PER_CORE).min(CONVERTERS_MAX);
        let permits = bounded(count);
        for _ in 0..count {
            // The channel has room for each.
            let _ = permits.0.send(());
        }
        Conversions {
            blocks: Mutex::default(),
            memory: SpoolMemory::new(BLOCKS_SIZE),
            work: SpoolMemory::new(WORK_SIZE),
            tables: LoggedTables::default(),
            idle: Mutex::default(),
            permits,
            made: AtomicU64::new(0),
            shared: AtomicU64::new(0),
        }
    }

    /// Borrows a converter; waits until one is free.
    pub(crate) fn borrow(&self) -> ConverterLease<'_> {
        // We own the other end, so it can't be closed.
        let _ = self.permits.1.recv();
        let converter = self.idle.lock().pop().unwrap_or_else(|| Converter::new(&self.work));
        ConverterLease { of: self, converter: Some(converter) }
    }

    /// The block at a position, made by `make` if nobody has made it or is making it; `None` if there is none.
    pub(crate) fn block(
        &self,
        key: BlockKey,
        make: impl FnOnce() -> Result<Option<Block>>,
    ) -> Result<Option<SharedBlock>> {
        let slot = self.slot(key);
        let mut is_maker = false;
        let made = slot.made.get_or_init(|| {
            is_maker = true;
            let span = debug_span!("conversion", form = key.form.name(), bytes = field::Empty).entered();
            let made = make().map_err(Arc::new);
            let bytes = made.as_ref().ok().and_then(Option::as_ref).map_or(0, Block::cost);
            span.record("bytes", bytes);
            made
        });
        let counter = if is_maker { &self.made } else { &self.shared };
        if is_maker {
            self.keep(&slot, made);
        }
        match made {
            Ok(None) => Ok(None),
            Ok(Some(_)) => {
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(Some(SharedBlock(Arc::clone(&slot))))
            }
            Err(error) => Err(Error::Shared(Arc::clone(error))),
        }
    }

    /// Counts of conversions since the start.
    pub fn counts(&self) -> ConversionCounts {
        ConversionCounts {
            made: self.made.load(Ordering::Relaxed),
            shared: self.shared.load(Ordering::Relaxed),
        }
    }

    fn slot(&self, key: BlockKey) -> Arc<Slot> {
        let mut blocks = self.blocks.lock();
        if let Some(slot) = blocks.slots.get(&key).and_then(Weak::upgrade) {
            return slot;
        }
        let slot = Arc::new(Slot { key, made: OnceLock::new() });
        blocks.slots.insert(key, Arc::downgrade(&slot));
        slot
    }

    fn keep(&self, slot: &Arc<Slot>, made: &ConversionResult) {
        let mut dropped = Vec::new();
        let mut blocks = self.blocks.lock();
        match made {
            Ok(Some(block)) if !block.is_on_disk() => {
                let cost = block.cost().max(COST_MIN);
                blocks.kept_size += cost;
                blocks.kept.push_back((Arc::clone(slot), cost));
            }
            Ok(Some(_)) => {}
            // There may be more next time.
            Ok(None) | Err(_) => drop(blocks.slots.remove(&slot.key)),
        }
        while blocks.kept_size > KEPT_SIZE
            && let Some((slot, cost)) = blocks.kept.pop_front()
        {
            blocks.kept_size -= cost;
            dropped.push(slot);
        }
        if blocks.slots.len() > 2 * blocks.kept.len() + SLOTS_SLACK {
            blocks.slots.retain(|_, slot| slot.strong_count() > 0);
        }
        // Close files without holding the lock.
        drop(blocks);
    }
}

/// How many positions of dropped blocks may remain in the table.
const SLOTS_SLACK: usize = 256;

/// A borrowed converter.
#[derive(Debug)]
pub(crate) struct ConverterLease<'a> {
    of: &'a Conversions,
    /// Always present, until dropped.
    converter: Option<Converter>,
}

impl ConverterLease<'_> {
    pub(crate) fn converter(&mut self) -> &mut Converter {
        self.converter.get_or_insert_with(|| Converter::new(&self.of.work))
    }
}

impl Drop for ConverterLease<'_> {
    fn drop(&mut self) {
        self.of.idle.lock().extend(self.converter.take());
        let _ = self.of.permits.0.send(());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use binlogz_payload::Spool;
    use binlogz_store::FileNumber;

    use super::*;

    fn key(stored: u64) -> BlockKey {
        BlockKey {
            log: 1,
            file: FormFile::first_of(FileNumber(1)),
            form: Form::Uncompressed,
            exits: None,
            stored,
            at: stored,
        }
    }

    fn block(memory: &SpoolMemory, size: usize) -> Result<Option<Block>> {
        let mut spool = Spool::new(memory, Vec::new());
        spool.append(&vec![7; size]).unwrap();
        Ok(Some(Block::new(spool, 0, Vec::new())))
    }

    #[test]
    fn who_asks_while_it_is_made_waits_for_it() {
        let conversions = Conversions::new();
        let made = AtomicUsize::new(0);
        let together = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    together.wait();
                    let shared = conversions.block(key(4), || {
                        made.fetch_add(1, Ordering::Relaxed);
                        block(&conversions.memory, 100)
                    });
                    assert!(shared.unwrap().unwrap().block().is_some());
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
        assert_eq!(conversions.counts(), ConversionCounts { made: 1, shared: 7 });
    }

    #[test]
    fn what_failed_or_was_not_there_yet_is_tried_again() {
        let conversions = Conversions::new();
        let failed = conversions.block(key(4), || Err(Error::Refused("damaged".into())));
        assert_eq!(failed.unwrap_err().to_string(), "damaged");
        assert!(conversions.block(key(4), || Ok(None)).unwrap().is_none());
        assert!(conversions.block(key(4), || block(&conversions.memory, 1)).unwrap().is_some());
        assert_eq!(conversions.counts(), ConversionCounts { made: 1, shared: 0 });
    }

    #[test]
    fn memory_is_bounded_however_many_blocks_are_kept_or_held() {
        let conversions = Conversions::new();
        let size = 256 << 10;
        let make = |at| conversions.block(key(at), || block(&conversions.memory, size)).unwrap().unwrap();
        // Nobody holds these: the oldest make room.
        for at in 0..100 {
            assert!(!make(at).block().unwrap().is_on_disk(), "{at}");
        }
        assert!(conversions.blocks.lock().kept_size <= KEPT_SIZE);
        let first = conversions.blocks.lock().slots.get(&key(0)).and_then(Weak::upgrade);
        assert!(first.is_none());
        assert_eq!(conversions.counts(), ConversionCounts { made: 100, shared: 0 });
        make(99);
        assert_eq!(conversions.counts().shared, 1, "the newest stays");
        // Slow clients hold these: those over the limit are on disk, and exist while someone sends them.
        let held: Vec<_> = (1000..1200).map(make).collect();
        let in_memory = held.iter().filter(|shared| !shared.block().unwrap().is_on_disk()).count();
        assert!((1..=BLOCKS_SIZE / size).contains(&in_memory), "{in_memory}");
        let before = conversions.counts();
        make(1199);
        assert_eq!(conversions.counts().shared, before.shared + 1);
        drop(held);
        make(1199);
        assert_eq!(conversions.counts().made, before.made + 1);
        // Positions of dropped blocks don't pile up.
        assert!(conversions.blocks.lock().slots.len() < 2 * KEPT_SIZE / size + 2 * SLOTS_SLACK);
    }

    #[test]
    fn converters_are_as_many_as_allowed_and_come_back() {
        let conversions = Conversions::new();
        let count = conversions.permits.1.len();
        assert!((1..=CONVERTERS_MAX).contains(&count));
        let busy = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 * CONVERTERS_MAX {
                scope.spawn(|| {
                    let mut lease = conversions.borrow();
                    most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    lease.converter();
                    thread::yield_now();
                    busy.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!(most.into_inner() <= count);
        assert_eq!(conversions.permits.1.len(), count);
        assert!(conversions.idle.lock().len() <= count);
    }
}
