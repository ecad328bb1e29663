//! Packs pieces of logs into a segment until it is full: blocks that may refer to rows of earlier ones, in a
//! temporary file. Each block is unpacked and compared before it is kept.
//!
//! ```text
//! pieces → dealt out, in order → columns coded and taken again, several at once → gathered, compared, written, in order
//! ```
//!
//! A block that is to stay as it was packed in another object ([`BlockReuse`]) is neither dealt out nor coded, only compared.
//!
//! The result depends only on the input: the exact sizes of the earlier blocks decide whether a segment is
//! full.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use binlogz_flow::ordered;
use binlogz_scratch_file::Scratch;

use crate::block::former::{FormerImages, UnpackedBlock};
use crate::block::slots::REFERENCES_MAX;
use crate::block::{self, DealtFields, FormerColumns, Method, OpenBlock};
use crate::codec::Level;
use crate::error::{Error, Result};
use crate::format::BlockHeader;
use crate::format::contents::{BlockContents, BlockFindings, Contents, TableNumbers};
use crate::format::directory::{self, CodedDirectory};
use crate::format::ends::{self, HEAD_SIZE, MAGIC};
use crate::format::index::ContentsEntry;
use crate::format::version::VERSION;
use crate::format::{BlockEntry, Index, LogEntry};
use crate::log::{BLOCK_SIZE_MAX, BlockReuse, CutPiece, FormerBlock, FormerReferences, events};
use crate::segment::budget::Budget;
use crate::segment::unpacker::{self, CLOSURE_MAX, UnpackedBlocks};

/// The most plain bytes of a segment.
pub(crate) const PLAIN_MAX: u64 = 512 << 20;
/// The most bytes of a stored segment.
pub(crate) const PACKED_MAX: u64 = 64 << 20;
/// How many of those are reserved for the index.
const INDEX_ROOM: u64 = 1 << 20;

const _: () = assert!(BLOCK_SIZE_MAX as u64 + INDEX_ROOM < PACKED_MAX);

/// Memory of the blocks in progress, with their columns until those are coded; a single block may exceed it.
const UNDER_WAY_MAX: usize = 64 << 20;

/// A block is referred to if it saves one part in this many of the bytes that must be unpacked with it.
const GAIN: u64 = 64;

/// A segment that is being packed.
#[derive(Debug)]
pub struct Segment {
    file: Scratch,
    index: Index,
    /// Plain bytes, and how many there may be.
    plain: u64,
    plain_max: u64,
    /// Bytes written, plus the most that blocks in progress can take.
    packed: AtomicU64,
    history: History,
    kept: UnpackedBlocks,
    level: Level,
    /// Contents of the blocks, and the numbers of their tables.
    contents: Vec<BlockContents>,
    tables: TableNumbers,
    /// The directories of the blocks, as they are stored.
    directories: Vec<Vec<u8>>,
}

/// A state of a segment while it is packed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    logs: usize,
    blocks: usize,
}

/// Earlier rows that blocks may refer to.
#[derive(Debug, Default)]
struct History {
    finder: FormerImages,
    sizes: Vec<u64>,
    /// By block: the blocks that must be unpacked to get it, including itself.
    closures: Vec<BTreeSet<u32>>,
    /// The numbers here of blocks that are packed anew, by the object they were in and their number there.
    moved: HashMap<(Arc<str>, u32), u32>,
}

/// A block in progress.
struct Job {
    piece: CutPiece,
    references: Vec<u32>,
    work: BlockWork,
    /// The memory of its columns, taken from the budget.
    memory: usize,
}

/// The work on a block.
enum BlockWork {
    /// To code its fields.
    Code(Result<DealtFields>),
    /// Nothing: it stays as it was packed.
    Keep(Vec<u8>),
}

struct CodedPiece {
    piece: CutPiece,
    entry: BlockEntry,
    packed: Result<Vec<u8>>,
    /// Its columns, taken from the packed bytes again; `None`: they can't be.
    opened: Option<OpenBlock>,
    /// The memory of its columns, taken from the budget.
    memory: usize,
    /// Whether it is as it was packed before.
    is_kept: bool,
    found: BlockFindings,
    /// The block's transactions; `None`: they aren't told.
    directory: Option<CodedDirectory>,
}

impl Segment {
    /// An empty segment for [`PLAIN_MAX`] bytes.
    ///
    /// # Errors
    ///
    /// No temporary file could be made.
    pub fn new(level: Level) -> Result<Self> {
        Segment::with_size(level, PLAIN_MAX)
    }

    /// An empty segment for this many plain bytes; a single block may have more.
    ///
    /// # Errors
    ///
    /// No temporary file could be made.
    pub fn with_size(level: Level, plain_max: u64) -> Result<Self> {
        let mut file = Scratch::new().map_err(Error::io("make a temporary file"))?;
        let head = [MAGIC.as_slice(), &VERSION.to_le_bytes()].concat();
        file.write_all(&head).map_err(Error::io("write a temporary file"))?;
        Ok(Segment {
            file,
            index: Index::default(),
            plain: 0,
            plain_max,
            packed: AtomicU64::new(HEAD_SIZE),
            history: History::default(),
            kept: UnpackedBlocks::default(),
            level,
            contents: Vec::new(),
            tables: TableNumbers::default(),
            directories: Vec::new(),
        })
    }

    /// The blocks in it.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Whether there is room for another block.
    fn has_room(&self, piece: &CutPiece) -> bool {
        let header_max = self.index.logs.last().map_or(0, header_size_max);
        let packed = self.packed.load(Ordering::Acquire) + stored_size_max(piece.log.len(), header_max);
        let empty = self.index.blocks.is_empty();
        let plain = self.plain + piece.log.len() as u64;
        empty || (plain <= self.plain_max && packed <= PACKED_MAX - INDEX_ROOM)
    }

    /// Frees the blocks that are kept unpacked; they are unpacked again when needed.
    pub(crate) fn slim(&mut self) {
        self.kept = UnpackedBlocks::default();
    }

    /// Begins a log, or continues one; returns its number here.
    pub fn begin(&mut self, name: &str, head: &[u8]) -> u32 {
        self.index.logs.push(LogEntry { name: name.into(), head: head.to_vec() });
        (self.index.logs.len() - 1) as u32
    }

    /// The current state.
    pub(crate) fn mark(&self) -> Mark {
        Mark { logs: self.index.logs.len(), blocks: self.index.blocks.len() }
    }

    /// Drops everything after a mark. Rows dropped with it must not be referred to, so no more is packed.
    pub(crate) fn give_back(&mut self, mark: Mark) {
        self.index.logs.truncate(mark.logs);
        self.index.blocks.truncate(mark.blocks);
        self.contents.truncate(mark.blocks);
        self.directories.truncate(mark.blocks);
    }

    /// Packs pieces of a log, `workers` at once. Returns the first piece that does not fit, or `None` once
    /// `next` has no more.
    ///
    /// # Errors
    ///
    /// The errors of `next`; a temporary file that can't be written.
    pub fn pack(
        &mut self,
        log: u32,
        next: &mut (dyn FnMut() -> Result<Option<CutPiece>> + Send),
        workers: usize,
    ) -> Result<Option<CutPiece>> {
        let mut held = None;
        loop {
            self.pack_some(log, next, workers, &mut held)?;
            match held.as_ref() {
                // All blocks are written, so their sizes are now known.
                Some(piece) if self.has_room(piece) => {}
                _ => return Ok(held),
            }
        }
    }

    /// Packs pieces until there might be no more room.
    fn pack_some(
        &mut self,
        log: u32,
        next: &mut (dyn FnMut() -> Result<Option<CutPiece>> + Send),
        workers: usize,
        held: &mut Option<CutPiece>,
    ) -> Result<()> {
        let Segment {
            file,
            index,
            plain,
            plain_max,
            packed,
            history,
            kept,
            level,
            contents,
            tables,
            directories,
        } = self;
        let level = *level;
        let plain_max = *plain_max;
        let packed = &*packed;
        let entry_of_log = index.logs.get(log as usize).cloned();
        let entry_of_log = entry_of_log
            .ok_or_else(|| Error::damaged("segment", format!("log {log}"), "one that was begun"))?;
        let header_max = header_size_max(&entry_of_log);
        let lengths = events::lengths(&entry_of_log.head);
        let budget = Budget::new(UNDER_WAY_MAX);
        let jobs = || {
            if !budget.wait_for(1) {
                return None;
            }
            let piece = match held.take().map_or_else(&mut *next, |piece| Ok(Some(piece))) {
                Ok(piece) => piece?,
                Err(error) => return Some(Err(error)),
            };
            let size = stored_size_max(piece.log.len(), header_max);
            let all = packed.load(Ordering::Acquire) + size;
            let fits = *plain + piece.log.len() as u64 <= plain_max && all <= PACKED_MAX - INDEX_ROOM;
            if !fits && !history.sizes.is_empty() {
                *held = Some(piece);
                return None;
            }
            *plain += piece.log.len() as u64;
            packed.fetch_add(size, Ordering::AcqRel);
            let job = history.deal(piece);
            budget.take(job.piece.log.len() + job.memory);
            Some(Ok(job))
        };
        let code = |(): &mut (), mut job: Job| {
            let mut former = former_columns(&mut job.piece);
            let mut entry = BlockEntry::of(&job.piece);
            entry.log = log;
            entry.references = job.references;
            let is_kept = matches!(job.work, BlockWork::Keep(_));
            let packed = match job.work {
                BlockWork::Code(dealt) => {
                    dealt.and_then(|dealt| dealt.code(&job.piece.log, level, &mut former))
                }
                BlockWork::Keep(packed) => Ok(packed),
            };
            if packed.as_ref().is_ok_and(|packed| block::stands_alone(packed)) {
                entry.references.clear();
            }
            // By the same core, right after they were coded, rather than by the one thread that compares.
            let size = job.piece.log.len();
            let opened =
                packed.as_ref().ok().and_then(|packed| block::open_after(packed, size, &former).ok());
            drop(former);
            let found = BlockFindings::of(&job.piece, lengths.as_ref(), VERSION);
            let directory = job.piece.directory.as_ref();
            let directory = directory.map(|told| CodedDirectory::of(told, job.piece.offset)).transpose()?;
            Ok(CodedPiece {
                piece: job.piece,
                entry,
                packed,
                opened,
                memory: job.memory,
                is_kept,
                found,
                directory,
            })
        };
        let keep = |coded: CodedPiece| {
            let size = coded.piece.log.len();
            let size_max = stored_size_max(size, header_max);
            let origin = coded.piece.origin;
            let CodedPiece { piece, entry, packed: coded, opened, memory, is_kept, found, directory } = coded;
            let coded = coded.ok().zip(opened);
            let anew = is_kept.then_some(level);
            let (bytes, mut entry) =
                check(&*file, &index.blocks, kept, (piece, entry, coded), (anew, workers))?;
            budget.give_back(memory);
            let mut told = found.told(entry.packed_size, &mut |name| tables.of(name));
            told.origin = origin;
            let directory = directory_of(directory, &told, tables, entry.packed_size);
            contents.push(told);
            entry.at = index.blocks.last().map_or(HEAD_SIZE, |last| last.at + last.packed_size);
            let first = index.blocks.last().is_none_or(|last| last.log != log);
            let number = index.blocks.len() as u32;
            let header = BlockHeader::encode(number, &entry, &entry_of_log, first);
            let stored = [header.as_slice(), &bytes].concat();
            file.write_all_at(&stored, entry.at).map_err(Error::io("write a temporary file"))?;
            entry.at += header.len() as u64;
            packed.fetch_add((stored.len() + directory.len()) as u64, Ordering::AcqRel);
            directories.push(directory);
            packed.fetch_sub(size_max, Ordering::AcqRel);
            index.blocks.push(entry);
            budget.give_back(size);
            Ok(())
        };
        ordered::run(workers, jobs, budget.until_dropped(), || Ok(()), code, keep)
    }

    /// Completes the segment; returns its bytes, their number, and the index.
    ///
    /// # Errors
    ///
    /// A temporary file that can't be written.
    pub fn finish(mut self) -> Result<(Scratch, u64, Index)> {
        let at = self.index.blocks.last().map_or(HEAD_SIZE, |last| last.at + last.packed_size);
        let contents = Contents { tables: self.tables.into_tables(), blocks: self.contents }.encode()?;
        let directory = directory::encode(&self.directories);
        let directory_at = at + contents.len() as u64;
        self.index.contents = Some(ContentsEntry::of(&contents, at));
        self.index.directory = Some(ContentsEntry::of(&directory, directory_at));
        let end = ends::end(directory_at + directory.len() as u64, &self.index.encode());
        let bytes = [contents, directory, end].concat();
        self.file.write_all_at(&bytes, at).map_err(Error::io("write a temporary file"))?;
        Ok((self.file, at + bytes.len() as u64, self.index))
    }
}

/// The most bytes of a block's header, not counting its log's name and head and its GTIDs.
const HEADER_SMALL: u64 = 4 << 10;

fn header_size_max(log: &LogEntry) -> u64 {
    HEADER_SMALL + (log.name.len() + log.head.len()) as u64
}

/// The most bytes that a block of this size takes with its header. GTIDs that are not ranges may take more as
/// text.
fn stored_size_max(size: usize, header_max: u64) -> u64 {
    let packed_size = block::packed_size_max(size) as u64;
    packed_size + directory::room(packed_size) + header_max + size as u64 / 8
}

/// Memory of the columns that are taken from a block that stays as it was packed, as a multiple of its plain bytes.
const KEPT_FACTOR: usize = 3;

/// Whether a block may stay as it was packed; it is compared with the piece of this size afterwards.
fn stays(former: &FormerBlock, size: usize) -> bool {
    former.reuse != BlockReuse::Columns && former.size == size && block::is_by_columns(&former.packed)
}

/// The columns of the block that the piece is what is left of. Without them all are coded.
fn former_columns(piece: &mut CutPiece) -> FormerColumns {
    let former = piece.former.take();
    former.and_then(|former| block::former_columns(former.packed, former.size).ok()).unwrap_or_default()
}

/// The directory to store of a block with these contents: its tables are named as the contents name them, by their numbers.
fn directory_of(
    coded: Option<CodedDirectory>,
    contents: &BlockContents,
    tables: &TableNumbers,
    packed_size: u64,
) -> Vec<u8> {
    let Some(coded) = coded.filter(|_| !contents.is_opaque) else { return Vec::new() };
    let numbers = tables.names_of(contents);
    coded.told(directory::room(packed_size), &|table| {
        numbers.get(&(table.database.as_slice(), table.table.as_slice())).copied()
    })
}

/// Packs a block that refers to no other.
fn packed_alone(piece: &CutPiece, level: Level) -> Result<(Vec<u8>, OpenBlock)> {
    let dealt = block::deal(piece, 0, &mut FormerImages::default(), &[])?;
    let packed = dealt.code(&piece.log, level, &mut FormerColumns::default())?;
    let opened = block::open(&packed, piece.log.len())?;
    Ok((packed, opened))
}

/// Gathers a block from the columns that were taken from its packed bytes, and compares it; if it does not come back the same, it is packed
/// `anew` at a level, else as bytes.
fn check(
    file: &Scratch,
    entries: &[BlockEntry],
    kept: &UnpackedBlocks,
    (piece, mut entry, packed): (CutPiece, BlockEntry, Option<(Vec<u8>, OpenBlock)>),
    (anew, workers): (Option<Level>, usize),
) -> Result<(Vec<u8>, BlockEntry)> {
    let read = |entry: &BlockEntry| {
        let mut bytes = vec![0; entry.packed_size as usize];
        file.read_exact_at(&mut bytes, entry.at).map_err(Error::io("read a temporary file"))?;
        Ok(bytes)
    };
    let gather = |opened: OpenBlock, references: &[u32]| {
        let sources =
            references.iter().map(|&reference| unpacker::one(entries, &read, kept, reference, workers));
        opened.gather(entry.offset, sources.collect::<Result<_>>()?)
    };
    let number = entries.len() as u32;
    let size_max = block::packed_size_max(piece.log.len());
    let compared = |packed: Option<(Vec<u8>, OpenBlock)>, references: &[u32]| {
        let (packed, opened) = packed.filter(|(packed, _)| packed.len() <= size_max)?;
        let unpacked = gather(opened, references).ok().filter(|unpacked| unpacked.log == piece.log)?;
        kept.put(number, Arc::new(unpacked));
        Some(packed)
    };
    let mut packed = compared(packed, &entry.references);
    if packed.is_none()
        && let Some(level) = anew
    {
        // A row to which it refers lost values.
        packed = compared(packed_alone(&piece, level).ok(), &[]);
        entry.references.clear();
    }
    let packed = match packed {
        Some(packed) => {
            entry.method = if block::stands_alone(&packed) { Method::Bytes } else { Method::Columns };
            packed
        }
        None => {
            entry.references.clear();
            let packed = block::pack_bytes(&piece.log)?;
            let unpacked = block::open(&packed, piece.log.len())?.gather(entry.offset, Vec::new())?;
            if unpacked.log != piece.log {
                return Err(Error::damaged("block", "other bytes after unpacking", "those that were packed"));
            }
            kept.put(number, Arc::new(UnpackedBlock { log: piece.log, ..UnpackedBlock::default() }));
            packed
        }
    };
    entry.packed_size = packed.len() as u64;
    entry.crc32 = crc32fast::hash(&packed);
    Ok((packed, entry))
}

impl History {
    /// Deals out a piece: with the references of the block that it is what is left of; or, if it pays, once more with references to the blocks
    /// that hold its rows.
    fn deal(&mut self, mut piece: CutPiece) -> Job {
        let number = self.sizes.len() as u32;
        let former = piece.former.as_ref().and_then(|former| former.references.clone());
        let known = former.as_ref().and_then(|former| self.moved(former, piece.log.len() as u64));
        let mut references = known.clone().unwrap_or_default();
        let is_in_order = known.as_ref().is_some_and(|known| known.is_sorted());
        let kept = piece.former.take_if(|former| is_in_order && stays(former, piece.log.len()));
        let (work, memory) = match kept {
            Some(former) => {
                if former.reuse == BlockReuse::WholeReferred {
                    drop(self.dealt(&piece, number, &references));
                }
                (BlockWork::Keep(former.packed), piece.log.len() * KEPT_FACTOR)
            }
            None => {
                references.sort_unstable();
                let mut dealt = block::deal(&piece, number, &mut self.finder, &references);
                if let Ok(first) = &dealt
                    && known.is_none()
                {
                    references = self.choose(&first.gains, piece.log.len() as u64);
                    if !references.is_empty() {
                        dealt = block::deal(&piece, number, &mut self.finder, &references);
                    }
                }
                self.forget_taken(&mut dealt, &piece);
                let memory = dealt.as_ref().map_or(0, DealtFields::memory);
                (BlockWork::Code(dealt), memory)
            }
        };
        if let Some(former) = former {
            self.moved.insert((former.object, former.number), number);
        }
        self.sizes.push(piece.log.len() as u64);
        let mut closure = self.closure(&references);
        closure.insert(number);
        self.closures.push(closure);
        Job { piece, references, work, memory }
    }

    /// Deals out a piece with these references, for the rows that later ones may refer to.
    fn dealt(&mut self, piece: &CutPiece, number: u32, references: &[u32]) -> Result<DealtFields> {
        let mut dealt = block::deal(piece, number, &mut self.finder, references);
        self.forget_taken(&mut dealt, piece);
        dealt
    }

    fn forget_taken(&mut self, dealt: &mut Result<DealtFields>, piece: &CutPiece) {
        if let Ok(dealt) = dealt {
            self.finder.forget(std::mem::take(&mut dealt.taken), &piece.log);
        }
    }

    /// What became of the blocks to which one of this size referred, in their order; `None`: one isn't here, or they are too many bytes now.
    fn moved(&self, former: &FormerReferences, size: u64) -> Option<Vec<u32>> {
        let place = |block: &u32| self.moved.get(&(Arc::clone(&former.object), *block)).copied();
        let references = former.blocks.iter().map(place).collect::<Option<Vec<u32>>>()?;
        (self.size(&self.closure(&references)) + size <= CLOSURE_MAX).then_some(references)
    }

    /// The blocks to refer to, those that save the most first, as long as the blocks that must be unpacked with them stay
    /// within their limit.
    fn choose(&self, gains: &HashMap<u32, u64>, size: u64) -> Vec<u32> {
        let mut gains: Vec<_> = gains.iter().map(|(&block, &gain)| (gain, block)).collect();
        gains.sort_unstable_by(|one, other| other.cmp(one));
        let mut chosen: Vec<u32> = Vec::new();
        let mut closure = BTreeSet::new();
        for (gain, block) in gains {
            let mut with = closure.clone();
            with.extend(self.closures.get(block as usize).into_iter().flatten().copied());
            let before = self.size(&closure);
            let behind = self.size(&with);
            let pays = gain * GAIN >= behind - before + size && behind + size <= CLOSURE_MAX;
            if pays && chosen.len() < REFERENCES_MAX {
                chosen.push(block);
                closure = with;
            }
        }
        chosen.sort_unstable();
        chosen
    }

    fn closure(&self, references: &[u32]) -> BTreeSet<u32> {
        let closures = references.iter().filter_map(|&block| self.closures.get(block as usize));
        closures.flatten().copied().collect()
    }

    fn size(&self, blocks: &BTreeSet<u32>) -> u64 {
        blocks.iter().filter_map(|&block| self.sizes.get(block as usize)).sum()
    }
}
