//! First step of picking columns out of a block: takes the streams of the block that are needed, and notes the rows
//! events of the table in order.

use std::collections::{BTreeMap, BTreeSet};

use binlogz_binlog::EventType;
use binlogz_binlog::event::RowsKind;

use super::around::EventStreams;
use super::images::NewImages;
use super::maps::Maps;
use super::streams::{NumberStream, TableStreams, TextStream};
use super::whole::is_met;
use super::{Pick, PickedTable, ROW_MEMORY, memory_max};
use crate::block::former::UnpackedBlock;
use crate::block::layout::{BODY, KNOWN, TYPE};
use crate::block::packed::{self, Front};
use crate::block::streams::{SparseStreams, StreamColumn};
use crate::block::walk::{ByteOrder, number_of};
use crate::error::{Error, Result};

/// A block's first step.
#[derive(Debug)]
pub(crate) enum PreparedBlock {
    /// The block's streams.
    Columns(Box<RowsStreams>),
    /// It was unpacked: it isn't packed by columns. With the table maps that it begins with.
    Unpacked(Box<UnpackedBlock>, Vec<Vec<u8>>),
    /// It has to be unpacked, with the blocks that it refers to: it has events of unknown layout, or more values than may be
    /// held at once.
    Whole(Vec<Vec<u8>>),
}

impl PreparedBlock {
    /// Whether something is needed of the block before it, if it continues from one: the transaction, or the table maps in
    /// force.
    pub(crate) fn needs_bound(&self, pick: &Pick<'_>) -> bool {
        pick.with_around
            || match self {
                PreparedBlock::Columns(_) => false,
                PreparedBlock::Unpacked(_, maps) | PreparedBlock::Whole(maps) => maps.is_empty(),
            }
    }
}

/// Streams of the events, and of the table.
#[derive(Debug)]
pub(crate) struct RowsStreams {
    pub(super) patterns: Vec<Pattern>,
    /// Rows events of the table, in order.
    pub(super) steps: Vec<RowsStep>,
    /// Events with transactions and headers, if these are picked.
    pub(super) events: Option<EventStreams>,
    pub(super) tables: Vec<(PickedTable, TableStreams)>,
    /// Whether rows that are deleted have an image.
    pub(super) with_deleted: bool,
    /// Whether the rows of each event are a run of their own.
    pub(super) with_numbers: bool,
    /// The table maps in force where the block ends.
    pub(super) maps: Vec<Vec<u8>>,
    /// Size of the block unpacked, in bytes.
    pub(super) size: usize,
}

/// A rows event of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowsStep {
    /// The event's number in the block.
    pub(super) event: usize,
    /// Which pattern it has.
    pub(super) pattern: usize,
}

/// Rows events that are alike: most of a table's are.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) table: usize,
    pub(super) kind: RowsKind,
    /// The columns of each image.
    pub(super) bitmaps: [Vec<u8>; 2],
}

impl Pattern {
    /// How many images a row has.
    fn images(&self) -> usize {
        match self.kind {
            RowsKind::Write | RowsKind::Delete => 1,
            RowsKind::Update | RowsKind::PartialUpdate => 2,
        }
    }
}

/// Takes the streams of a block of `size` bytes.
pub(crate) fn prepare(packed: &[u8], size: usize, pick: &Pick<'_>) -> Result<PreparedBlock> {
    let Front { maps, count, mut from } = match packed::front(packed, size)? {
        (_, Some(front)) => front,
        (maps, None) => {
            let unpacked = packed::open(packed, size)?.gather(0, Vec::new())?;
            return Ok(PreparedBlock::Unpacked(Box::new(unpacked), maps));
        }
    };
    let mut streams = SparseStreams::find(&mut from, size)?;
    from.bytes()?;
    if from.left() > 0 {
        let found = format!("{} bytes after its last event", from.left());
        return Err(Error::damaged("block", found, "none"));
    }
    let types = streams.numbers(TYPE)?;
    if types.len() != count {
        return Err(Error::damaged("block", format!("{} event types", types.len()), "one for each event"));
    }
    let Some(mut rows_types) = rows_streams(&mut streams, &types)? else {
        return Ok(PreparedBlock::Whole(maps));
    };
    let mut maps_seen = Maps::default();
    for map in &maps {
        if let Some((id, rest)) = map.split_at_checked(6) {
            maps_seen.note(number_of(id, ByteOrder::Low), rest, pick)?;
        }
    }
    let map_ids = NumberStream(streams.numbers(stream_of(EventType::TABLE_MAP, BODY))?, 0);
    let map_bodies = TextStream(streams.strings(stream_of(EventType::TABLE_MAP, BODY + 1))?, 0);
    let mut rows_steps = RowsSteps::default();
    rows_steps.take(&types, &mut rows_types, (map_ids, map_bodies), &mut maps_seen, pick)?;
    let RowsSteps { steps, patterns, .. } = rows_steps;
    if maps_seen.is_unfit || changes_documents_in_part(&patterns, &maps_seen.tables) {
        return Ok(PreparedBlock::Whole(maps));
    }
    let in_force = maps_seen.in_force();
    let events = pick.with_around.then(|| EventStreams::take(&mut streams, types)).transpose()?;
    let tables = maps_seen
        .tables
        .into_iter()
        .map(|(number, table)| {
            let group = StreamColumn::TABLES + number;
            TableStreams::take(&mut streams, group, &table, pick.with_deleted).map(|streams| (table, streams))
        })
        .collect::<Result<Vec<_>>>()?;
    if memory_of(&tables, &patterns) > memory_max(size) {
        return Ok(PreparedBlock::Whole(maps));
    }
    let with_deleted = pick.with_deleted;
    let with_numbers = pick.with_numbers;
    let columns =
        RowsStreams { patterns, steps, events, tables, with_deleted, with_numbers, maps: in_force, size };
    Ok(PreparedBlock::Columns(Box::new(columns)))
}

impl PreparedBlock {
    /// Takes where the transactions of its GTID events begin in the log, in order, unless its events tell that.
    ///
    /// # Errors
    ///
    /// Another number of them than there are such events.
    pub(crate) fn take_positions(&mut self, positions: impl FnOnce() -> Result<Vec<u64>>) -> Result<()> {
        match self {
            PreparedBlock::Columns(columns) => match &mut columns.events {
                Some(events) => events.take_positions(positions()?),
                None => Ok(()),
            },
            PreparedBlock::Unpacked(..) | PreparedBlock::Whole(_) => Ok(()),
        }
    }
}

/// Whether events may have a document of a picked column as its differences: those are taken event by event.
fn changes_documents_in_part(patterns: &[Pattern], tables: &[(usize, PickedTable)]) -> bool {
    patterns.iter().any(|pattern| {
        pattern.kind == RowsKind::PartialUpdate
            && tables.get(pattern.table).is_some_and(|(_, table)| table.has_documents())
    })
}

/// Streams of the rows events of one type.
struct RowsTypeStreams {
    kind: RowsKind,
    ids: NumberStream,
    /// The columns of the first image, and of the second.
    bitmaps: [TextStream; 2],
}

fn stream_of(event_type: EventType, slot: usize) -> StreamColumn {
    StreamColumn::new(usize::from(event_type.0), slot)
}

/// Takes the streams of the rows events, by type; `None`: the block has to be read event by event.
fn rows_streams(
    streams: &mut SparseStreams<'_>,
    types: &[i64],
) -> Result<Option<BTreeMap<EventType, RowsTypeStreams>>> {
    let mut rows_types = BTreeMap::new();
    for event_type in types.iter().copied().collect::<BTreeSet<_>>() {
        let Ok(code) = u8::try_from(event_type) else { continue };
        let event_type = EventType(code);
        if is_met(event_type) {
            return Ok(None);
        }
        if event_type != EventType::TABLE_MAP && !event_type.is_rows() {
            continue;
        }
        if streams.numbers(stream_of(event_type, KNOWN))?.iter().any(|&known| known != 1) {
            return Ok(None);
        }
        let Some(kind) = kind_of(event_type) else {
            if event_type == EventType::TABLE_MAP {
                continue;
            }
            return Ok(None);
        };
        let ids = NumberStream(streams.numbers(stream_of(event_type, BODY))?, 0);
        let first = TextStream(streams.strings(stream_of(event_type, BODY + 5))?, 0);
        let second = TextStream(streams.strings(stream_of(event_type, BODY + 6))?, 0);
        rows_types.insert(event_type, RowsTypeStreams { kind, ids, bitmaps: [first, second] });
    }
    Ok(Some(rows_types))
}

/// The rows events of the picked tables, in order.
#[derive(Default)]
struct RowsSteps {
    steps: Vec<RowsStep>,
    patterns: Vec<Pattern>,
    /// The last pattern of each table and kind.
    latest: BTreeMap<(usize, EventType), usize>,
}

impl RowsSteps {
    /// Goes through the events of a block; `maps_seen` learns its table maps.
    fn take(
        &mut self,
        types: &[i64],
        rows_types: &mut BTreeMap<EventType, RowsTypeStreams>,
        (mut map_ids, mut map_bodies): (NumberStream, TextStream),
        maps_seen: &mut Maps,
        pick: &Pick<'_>,
    ) -> Result<()> {
        let mut last_id = 0i64;
        for (event, event_type) in types.iter().enumerate() {
            let Some(event_type) = u8::try_from(*event_type).ok().map(EventType) else { continue };
            if event_type == EventType::TABLE_MAP {
                last_id = map_ids.next()?.wrapping_add(last_id);
                maps_seen.note(last_id, map_bodies.next()?, pick)?;
            } else if let Some(RowsTypeStreams { kind, ids, bitmaps: [first, second] }) =
                rows_types.get_mut(&event_type)
            {
                last_id = ids.next()?.wrapping_add(last_id);
                let table = maps_seen.ids.get(&last_id).and_then(|number| maps_seen.picked.get(number));
                let two = matches!(kind, RowsKind::Update | RowsKind::PartialUpdate);
                let bitmaps = [first.next()?, if two { second.next()? } else { &[] }];
                let Some(&table) = table else { continue };
                let pattern = self.pattern(event_type, (table, *kind), bitmaps);
                self.steps.push(RowsStep { event, pattern });
            }
        }
        Ok(())
    }

    /// The number of the pattern of a rows event.
    fn pattern(
        &mut self,
        event_type: EventType,
        (table, kind): (usize, RowsKind),
        bitmaps: [&[u8]; 2],
    ) -> usize {
        let is_same =
            |number: &&usize| self.patterns.get(**number).is_some_and(|known| known.bitmaps == bitmaps);
        if let Some(&number) = self.latest.get(&(table, event_type)).filter(is_same) {
            return number;
        }
        self.latest.insert((table, event_type), self.patterns.len());
        self.patterns.push(Pattern { table, kind, bitmaps: bitmaps.map(<[u8]>::to_vec) });
        self.patterns.len() - 1
    }
}

/// Bytes that the rows of the tables take while they are gathered.
fn memory_of(tables: &[(PickedTable, TableStreams)], patterns: &[Pattern]) -> usize {
    let memory = tables.iter().enumerate().map(|(place, (table, streams))| {
        let of_table = patterns.iter().filter(|pattern| pattern.table == place);
        let images = of_table.map(Pattern::images).max().unwrap_or_default();
        streams
            .rows()
            .saturating_mul(ROW_MEMORY + images * (table.memory_of_image() + size_of::<NewImages<'_>>()))
    });
    memory.fold(0, usize::saturating_add)
}

fn kind_of(event_type: EventType) -> Option<RowsKind> {
    match event_type {
        EventType::WRITE_ROWS | EventType::WRITE_ROWS_V1 => Some(RowsKind::Write),
        EventType::DELETE_ROWS | EventType::DELETE_ROWS_V1 => Some(RowsKind::Delete),
        EventType::UPDATE_ROWS | EventType::UPDATE_ROWS_V1 => Some(RowsKind::Update),
        EventType::PARTIAL_UPDATE_ROWS => Some(RowsKind::PartialUpdate),
        _ => None,
    }
}
