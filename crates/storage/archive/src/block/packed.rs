//! Packs a run of whole events and unpacks it again, each in two steps, so that the expensive one can run for
//! several blocks at once. Packing deals out the fields in the order of the log ([`deal`]), then codes their
//! columns ([`DealtFields::code`]). Unpacking takes the columns ([`open`]), then gathers the fields in order
//! ([`OpenBlock::gather`]). A block refers to rows of itself and of the earlier blocks that it is given.
//!
//! ```text
//! method  1       0 bytes | 1 columns, as version 1 | 2 columns, as version 2 | 3 columns and 4 text, as version 5 |
//!                 5 columns | 6 text
//! bytes:          zstd's frame of the log's bytes
//! columns and text:
//! maps    varint  count of the table maps seen so far by a transaction that the block's start cuts
//!         bytes   each: length, body of the event
//! text:
//! coder   1       0 zstd | 1 PPMd
//!                 the code of the log's bytes
//! columns:
//! magic   1       1: the log's magic comes first
//! count   varint  events
//! columns         see streams.rs, from method 3 on with pools; each event's fields, see layout.rs. From method 5 on
//!                 partial updates and differences, see slots.rs
//! tail    bytes   length, then the bytes after the last whole event
//! ```
//!
//! A run whose columns take more than its text is packed as text. Later blocks may still refer to its rows: their
//! unpacker goes over the run's events to find them. A run that can't be taken apart, or would not come back identical,
//! is packed as bytes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{EventType, MAGIC};

use crate::block::former::{BlockFinder, BlockImages, FormerImages, Formers, UnpackedBlock};
use crate::block::layout::{BlockLayout, TYPE};
use crate::block::streams::{CodePlaces, FormerColumns, SparseStreams, Streams};
use crate::block::walk::{Dealer, FieldGatherer, Walk};
use crate::codec::text::{self, ByteContent, Coder};
use crate::codec::varint::{self, Taker};
use crate::codec::{Level, zstd};
use crate::error::{Error, Result};
use crate::log::events::event_end;
use crate::log::{BLOCK_SIZE_MAX, CutPiece, MAPS_MAX};

const BYTES: u8 = 0;
const COLUMNS_BY_KEY: u8 = 1;
const COLUMNS_APART: u8 = 2;
const COLUMNS_POOLED: u8 = 3;
const TEXT_BEFORE: u8 = 4;
const COLUMNS: u8 = 5;
const TEXT: u8 = 6;

/// Text is tried if zstd's fast level takes less than this many eighths of the size of the columns.
const TEXT_EIGHTHS: usize = 9;
/// It is not even looked at if columns take less than one byte of this many.
const COLUMNS_GOOD: usize = 16;

/// Whether it is tried, one byte in this many says, at least these.
const SAMPLE_SHARE: usize = 4;
const SAMPLE_MIN: usize = 512 << 10;

/// How a block was packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// As bytes, whatever they mean.
    Bytes,
    /// By columns.
    Columns,
}

/// The fields of a part of a log, dealt out to columns.
#[derive(Debug)]
pub(crate) struct DealtFields {
    /// The table maps that the block's start cuts off.
    maps: Vec<u8>,
    magic: bool,
    count: u64,
    streams: Streams,
    /// The forms of each table's columns.
    forms: Vec<Vec<u8>>,
    tail: Vec<u8>,
    /// Rows that no longer exist unchanged for later blocks.
    pub(crate) taken: BlockImages,
    /// By earlier block: the bytes of rows that it already holds.
    pub(crate) gains: HashMap<u32, u64>,
}

/// Deals out a part of a log as block `number` of its segment, which may refer to these earlier blocks.
pub(crate) fn deal(
    piece: &CutPiece,
    number: u32,
    finder: &mut FormerImages,
    references: &[u32],
) -> Result<DealtFields> {
    let formers = Formers::Find(BlockFinder::new(finder, number, references));
    let mut layout = BlockLayout::new(piece.offset, formers, true);
    let mut maps = Vec::new();
    varint::put(&mut maps, piece.maps.len() as u64);
    for map in &piece.maps {
        varint::put_bytes(&mut maps, map);
        layout.remember_table(map);
    }
    let (streams, count, tail) = walk_over(&piece.log, &mut layout)?;
    let forms = layout.forms();
    let Formers::Find(found) = layout.into_formers() else {
        return Err(Error::damaged("block", "a layout that reads", "one that packs"));
    };
    let (taken, gains) = found.into_taken();
    let magic = piece.log.starts_with(&MAGIC);
    Ok(DealtFields { maps, magic, count, streams, forms, tail: tail.to_vec(), taken, gains })
}

/// Deals out the events of a log; returns their columns and number, and the bytes after the last whole event.
fn walk_over<'a>(log: &'a [u8], layout: &mut BlockLayout<'_>) -> Result<(Streams, u64, &'a [u8])> {
    let mut dealer = Dealer::new(log);
    let mut count = 0;
    let mut at = 0;
    if log.starts_with(&MAGIC) {
        at = MAGIC.len();
        dealer.begin(at);
        dealer.known(&MAGIC)?;
    }
    while let Some(end) = event_end(log, at) {
        dealer.begin(end);
        if layout.event(&mut dealer, true).is_err() {
            dealer.undo();
            dealer.begin(end);
            layout.event(&mut dealer, false)?;
        }
        count += 1;
        at = end;
    }
    Ok((dealer.streams, count, log.get(at..).unwrap_or_default()))
}

impl DealtFields {
    /// Bytes of memory that its columns take.
    pub(crate) fn memory(&self) -> usize {
        self.streams.memory()
    }

    /// Codes its columns, or the log's bytes if that is smaller. Columns that are as they were in `former` keep their code.
    pub(crate) fn code(self, log: &[u8], level: Level, former: &mut FormerColumns) -> Result<Vec<u8>> {
        let mut packed = vec![COLUMNS];
        packed.extend_from_slice(&self.maps);
        packed.push(u8::from(self.magic));
        varint::put(&mut packed, self.count);
        self.streams.pack(&self.forms, level, former, &mut packed)?;
        drop(self.streams);
        varint::put_bytes(&mut packed, &self.tail);
        if former.is_none() && is_worth_trying(log, packed.len(), self.tail.len(), level)? {
            let text = as_text(&self.maps, log, level)?;
            if text.len() < packed.len() {
                return Ok(text);
            }
        }
        Ok(packed)
    }
}

/// Packs a log as text; `maps` is already coded.
fn as_text(maps: &[u8], log: &[u8], level: Level) -> Result<Vec<u8>> {
    let (coder, code) = text::pack(log, ByteContent::Any, level)?;
    let coder = if coder == Coder::Ppmd { 1 } else { 0 };
    Ok([&[TEXT], maps, &[coder], &code].concat())
}

/// Whether a block of this log might take less as text than in `columns` bytes. `tail` of these bytes are in no column
/// and stand there as they are.
fn is_worth_trying(log: &[u8], columns: usize, tail: usize, level: Level) -> Result<bool> {
    match level {
        // Of an event that is larger than a block nothing is in columns.
        Level::Fast => Ok(tail > columns / 2),
        Level::Default if columns < log.len() / COLUMNS_GOOD => Ok(false),
        Level::Default => {
            let sample = middle(log);
            let expected = zstd::pack(sample, zstd::Effort::Sample)?.len() * log.len() / sample.len().max(1);
            Ok(expected < columns.saturating_mul(TEXT_EIGHTHS) / 8)
        }
        Level::Max => Ok(true),
    }
}

/// The bytes in the middle that say what a block would take as text.
fn middle(log: &[u8]) -> &[u8] {
    let size = (log.len() / SAMPLE_SHARE).max(SAMPLE_MIN).min(log.len());
    let start = (log.len() - size) / 2;
    log.get(start..start + size).unwrap_or_default()
}

/// Whether a packed block needs no other: its references are not needed.
pub(crate) fn stands_alone(packed: &[u8]) -> bool {
    matches!(packed.first(), Some(&(BYTES | TEXT_BEFORE | TEXT)))
}

/// Whether a block is packed by columns as they are now.
pub(crate) fn is_by_columns(packed: &[u8]) -> bool {
    packed.first() == Some(&COLUMNS)
}

/// Packs bytes about which nothing is known.
pub(crate) fn pack_bytes(log: &[u8]) -> Result<Vec<u8>> {
    let mut packed = vec![BYTES];
    packed.extend_from_slice(&zstd::pack(log, zstd::Effort::Full)?);
    Ok(packed)
}

/// The most bytes that a packed part of a log takes: columns are used only if they take less than the bytes
/// would.
pub(crate) fn packed_size_max(size: usize) -> usize {
    zstd_safe::compress_bound(size) + 1
}

/// A block whose columns were taken.
#[derive(Debug)]
pub struct OpenBlock {
    size: usize,
    what: StreamContent,
}

#[derive(Debug)]
enum StreamContent {
    Bytes(Vec<u8>),
    Columns { method: u8, maps: Vec<Vec<u8>>, magic: bool, count: usize, streams: Streams, tail: Vec<u8> },
    Text { method: u8, maps: Vec<Vec<u8>>, log: Vec<u8> },
}

/// Takes the columns of a block of `size` bytes.
///
/// # Errors
///
/// Bytes that no packer writes.
pub fn open(packed: &[u8], size: usize) -> Result<OpenBlock> {
    open_by(packed, size, 1)
}

/// The columns of a block of `size` bytes as it was packed before; none if it wasn't by columns as they are now.
pub(crate) fn former_columns(packed: Vec<u8>, size: usize) -> Result<FormerColumns> {
    let (_, front) = front(&packed, size)?;
    let Some(Front { mut from, .. }) = front else { return Ok(FormerColumns::default()) };
    let mut places = CodePlaces::default();
    let streams = Streams::unpack_noting(&mut from, size, true, &mut places)?;
    Ok(FormerColumns::new(packed, streams, places))
}

/// Takes the columns of a block as [`open`] does; those whose code was kept are those of the former block.
pub(crate) fn open_after(packed: &[u8], size: usize, former: &FormerColumns) -> Result<OpenBlock> {
    match former.is_none() || packed.first() != Some(&COLUMNS) {
        true => open(packed, size),
        false => {
            let mut from = Taker::new(packed);
            from.byte()?;
            let what =
                open_columns(&mut from, size, COLUMNS, |from| Streams::unpack_after(from, size, former))?;
            Ok(OpenBlock { size, what })
        }
    }
}

/// Takes the columns of a block as [`open`] does, by so many threads, the calling one among them.
pub(crate) fn open_by(packed: &[u8], size: usize, threads: usize) -> Result<OpenBlock> {
    if size > BLOCK_SIZE_MAX {
        return Err(Error::unexpected("size of a block", size, format_args!("at most {BLOCK_SIZE_MAX}")));
    }
    let mut from = Taker::new(packed);
    let what = match from.byte()? {
        BYTES => StreamContent::Bytes(zstd::unpack(from.take(from.left())?, size)?),
        method @ (COLUMNS_BY_KEY | COLUMNS_APART | COLUMNS_POOLED | COLUMNS) => {
            let pooled = matches!(method, COLUMNS_POOLED | COLUMNS);
            open_columns(&mut from, size, method, |from| Streams::unpack(from, size, pooled, threads))?
        }
        method @ (TEXT_BEFORE | TEXT) => {
            let maps = take_maps(&mut from)?;
            let coder = match from.byte()? {
                0 => Coder::Zstd,
                1 => Coder::Ppmd,
                other => return Err(Error::damaged("text", format!("coder {other}"), "0 or 1")),
            };
            StreamContent::Text { method, maps, log: text::unpack(coder, from.take(from.left())?, size)? }
        }
        other => return Err(Error::damaged("block", format!("method {other}"), "0 to 6")),
    };
    Ok(OpenBlock { size, what })
}

fn take_maps(from: &mut Taker<'_>) -> Result<Vec<Vec<u8>>> {
    let mut maps = Vec::new();
    for _ in 0..from.at_most(MAPS_MAX as u64, "count of table maps")? {
        maps.push(from.bytes()?.to_vec());
    }
    Ok(maps)
}

/// The start of a block of columns: everything before the columns themselves.
pub(crate) struct Front<'a> {
    /// The table maps in force where it begins.
    pub(crate) maps: Vec<Vec<u8>>,
    /// How many events the block has.
    pub(crate) count: usize,
    /// The block's columns, and everything after them.
    pub(crate) from: Taker<'a>,
}

/// The front of a block of `size` bytes, if it is packed by columns as they are now; else the table maps that it begins with.
pub(crate) fn front(packed: &[u8], size: usize) -> Result<(Vec<Vec<u8>>, Option<Front<'_>>)> {
    if size > BLOCK_SIZE_MAX {
        return Err(Error::unexpected("size of a block", size, format_args!("at most {BLOCK_SIZE_MAX}")));
    }
    let mut from = Taker::new(packed);
    match from.byte()? {
        COLUMNS => {
            let maps = take_maps(&mut from)?;
            from.byte()?;
            let count = from.at_most((size / HEADER_SIZE) as u64, "count of events")?;
            Ok((Vec::new(), Some(Front { maps, count, from })))
        }
        TEXT | TEXT_BEFORE => Ok((take_maps(&mut from)?, None)),
        _ => Ok((Vec::new(), None)),
    }
}

/// The types that events of a block of `size` bytes have; `None`: it isn't packed by columns as they are now.
pub(crate) fn event_types(packed: &[u8], size: usize) -> Result<Option<BTreeSet<EventType>>> {
    let (_, front) = front(packed, size)?;
    let Some(Front { mut from, .. }) = front else { return Ok(None) };
    let types = SparseStreams::find(&mut from, size)?.numbers(TYPE)?;
    let of_number = |number: i64| {
        let code = u8::try_from(number);
        code.map(EventType).map_err(|_| Error::damaged("event type", number.to_string(), "0 to 255"))
    };
    let types: BTreeSet<i64> = types.into_iter().collect();
    types.into_iter().map(of_number).collect::<Result<_>>().map(Some)
}

fn open_columns<'a>(
    from: &mut Taker<'a>,
    size: usize,
    method: u8,
    unpack: impl FnOnce(&mut Taker<'a>) -> Result<Streams>,
) -> Result<StreamContent> {
    let maps = take_maps(from)?;
    let magic = from.byte()? == 1;
    let count = from.at_most((size / HEADER_SIZE) as u64, "count of events")?;
    let streams = unpack(from)?;
    let tail = from.bytes()?.to_vec();
    match from.left() {
        0 => Ok(StreamContent::Columns { method, maps, magic, count, streams, tail }),
        left => Err(Error::damaged("block", format!("{left} bytes after its last event"), "none")),
    }
}

impl OpenBlock {
    /// Gathers the fields of the block, which begins at `offset` of its log and refers to `sources`.
    ///
    /// # Errors
    ///
    /// Columns that don't fit together.
    pub fn gather(self, offset: u64, sources: Vec<Arc<UnpackedBlock>>) -> Result<UnpackedBlock> {
        let (method, maps, magic, count, streams, tail) = match self.what {
            StreamContent::Bytes(log) => return Ok(UnpackedBlock { log, ..UnpackedBlock::default() }),
            StreamContent::Text { method, maps, log } => {
                let mut layout = BlockLayout::new(offset, Formers::Given(Vec::new()), method == TEXT);
                maps.iter().for_each(|map| layout.remember_table(map));
                walk_over(&log, &mut layout)?;
                return Ok(layout.into_unpacked(log));
            }
            StreamContent::Columns { method, maps, magic, count, streams, tail } => {
                (method, maps, magic, count, streams, tail)
            }
        };
        let formers = if method == COLUMNS_BY_KEY { Formers::ByKey } else { Formers::Given(sources) };
        let mut layout = BlockLayout::new(offset, formers, method == COLUMNS);
        maps.iter().for_each(|map| layout.remember_table(map));
        let mut gatherer = FieldGatherer::new(streams, self.size);
        if magic {
            gatherer.known(&MAGIC)?;
        }
        for _ in 0..count {
            layout.event(&mut gatherer, false)?;
        }
        let mut log = gatherer.log;
        log.extend_from_slice(&tail);
        if log.len() == self.size {
            Ok(layout.into_unpacked(log))
        } else {
            Err(Error::damaged(
                "block",
                format!("{} bytes unpacked", log.len()),
                "the size that its header says",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use binlogz_testkit::corpus;

    use super::*;
    use crate::format::Manifest;
    use crate::operations::restore;
    use crate::storage::ArchiveFolder;

    /// Packs a part of a log on its own.
    fn pack(log: &[u8]) -> (Vec<u8>, Method) {
        let piece = CutPiece { log: log.to_vec(), ..CutPiece::default() };
        let packed = deal(&piece, 0, &mut FormerImages::default(), &[]).unwrap();
        let packed = packed.code(log, Level::Default, &mut FormerColumns::default()).unwrap();
        if unpack(&packed, log.len()).is_ok_and(|back| back == log) {
            return (packed, Method::Columns);
        }
        (pack_bytes(log).unwrap(), Method::Bytes)
    }

    fn unpack(packed: &[u8], size: usize) -> Result<Vec<u8>> {
        Ok(open(packed, size)?.gather(0, Vec::new())?.log)
    }

    /// A log from the corpus.
    fn events(name: &str) -> Vec<u8> {
        std::fs::read(corpus::path(name)).unwrap()
    }

    #[test]
    fn logs_come_back_from_columns_and_small() {
        for name in ["binlog.000006", "levels.000001", "binlog.000001", "relay.000012"] {
            let log = events(name);
            let (packed, method) = pack(&log);
            assert_eq!(method, Method::Columns, "{name}");
            assert!(unpack(&packed, log.len()).unwrap() == log, "{name}");
            println!("{name}: {} of {}", packed.len(), log.len());
        }
    }

    #[test]
    fn a_block_of_text_comes_back_with_its_rows_and_damaged_it_is_no_panic() {
        for name in ["binlog.000006", "binlog.000001", "relay.000012"] {
            let log = events(name);
            let (columns, _) = pack(&log);
            let columns = open(&columns, log.len()).unwrap().gather(0, Vec::new()).unwrap();
            for level in [Level::Fast, Level::Default, Level::Max] {
                let packed = as_text(&[0], &log, level).unwrap();
                assert!(stands_alone(&packed));
                let text = open(&packed, log.len()).unwrap().gather(0, Vec::new()).unwrap();
                assert!(text.log == log && text.images == columns.images && text.tables == columns.tables);
                for length in (0..packed.len()).step_by(packed.len() / 30 + 1) {
                    let cut = unpack(&packed[..length], log.len());
                    assert!(cut.is_err() || cut.is_ok_and(|back| back == log), "{length}");
                }
                for at in (0..packed.len()).step_by(packed.len() / 30 + 1) {
                    let mut bad = packed.clone();
                    bad[at] ^= 0x55;
                    let _ = unpack(&bad, log.len());
                }
                assert!(unpack(&packed, log.len() - 1).is_err());
                assert!(unpack(&packed, log.len() + 1).is_err());
            }
        }
    }

    #[test]
    fn what_is_no_log_comes_back_too() {
        for log in [&b""[..], b"x", &[0; 100], &[0xff; 1000]] {
            let (packed, _) = pack(log);
            assert_eq!(unpack(&packed, log.len()).unwrap(), log);
        }
    }

    /// Documents changed in part: the begin of a log that is archived as a fixture.
    fn partial_updates() -> Vec<u8> {
        let fixture = ArchiveFolder::new(format!("{}/tests/fixtures/version-8", env!("CARGO_MANIFEST_DIR")));
        let manifest = Manifest::read(&fixture).unwrap().unwrap();
        let mut log = Vec::new();
        restore::whole(&fixture, &manifest.files[1], &mut log, 1).unwrap();
        log.truncate(60_000);
        log
    }

    #[test]
    fn cut_or_changed_a_block_is_an_error_or_other_bytes_and_never_a_panic() {
        for log in [events("binlog.000006"), partial_updates()] {
            let (packed, method) = pack(&log);
            assert_eq!(method, Method::Columns);
            for length in (0..packed.len()).step_by(packed.len() / 60 + 1) {
                assert!(unpack(&packed[..length], log.len()).is_err(), "{length}");
            }
            for at in (0..packed.len()).step_by(packed.len() / 200 + 1) {
                let mut bad = packed.clone();
                bad[at] ^= 0x55;
                let _ = unpack(&bad, log.len());
            }
            assert!(unpack(&packed, log.len() - 1).is_err());
            assert!(unpack(&packed, usize::MAX).is_err());
        }
    }

    #[test]
    fn rows_of_partial_updates_have_the_same_numbers_in_columns_and_in_text() {
        let log = partial_updates();
        let (columns, _) = pack(&log);
        let columns = open(&columns, log.len()).unwrap().gather(0, Vec::new()).unwrap();
        let text = as_text(&[0], &log, Level::Fast).unwrap();
        let text = open(&text, log.len()).unwrap().gather(0, Vec::new()).unwrap();
        assert!(text.images == columns.images && text.images.iter().any(|images| images.len() > 20));
    }
}
