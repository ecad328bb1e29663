//! Picks out of a block that was unpacked as a whole: one that is not packed by columns, has events of unknown layout, or has
//! so many values that they are not held all at once.

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_binlog::event::{
    CompressedEvent, PostHeaderLengths, RowsEvent, RowsKind, TableId, TableMapEvent,
};
use binlogz_binlog::row::{CellContent, RowDecoder, TableSchema};
use binlogz_binlog::{ChangeContent, EventType, HeaderFlags};

use super::values::{CellState, ValueContent};
use super::{BlockBound, Pick, PickedChanges, PickedTable, ROW_MEMORY, RowContext, RowImage, RowRun, no_row};
use crate::block::former::UnpackedBlock;
use crate::error::{Error, Result};
use crate::log::events;

/// Whether events of this type may hold changes that are not in row events: compressed ones of MariaDB, and those that can't
/// be decoded.
pub(super) fn is_met(event_type: EventType) -> bool {
    let content = event_type.changes();
    event_type.mariadb_expanded().is_some() || matches!(content, ChangeContent::Unread | ChangeContent::Lost)
}

/// A block that was unpacked as a whole.
#[derive(Debug)]
pub(crate) struct WholeBlock<'w> {
    pub(crate) block: &'w UnpackedBlock,
    /// Where the block begins in its log, in bytes.
    pub(crate) offset: u64,
    /// Post-header lengths of the log's events.
    pub(crate) lengths: &'w PostHeaderLengths,
    /// The state where the block begins.
    pub(crate) before: &'w BlockBound,
}

impl WholeBlock<'_> {
    /// Picks its rows. When they take so much memory, `part` is given what there is, and says whether to go on with the rest.
    /// Returns the last part.
    pub(crate) fn rows(
        &self,
        pick: &Pick<'_>,
        memory_max: usize,
        part: &mut dyn FnMut(PickedChanges) -> bool,
    ) -> Result<PickedChanges> {
        let WholeBlock { block, offset, lengths, before } = *self;
        let mut whole = OfWhole::new(pick, memory_max, part);
        let mut transactions = before.transactions.clone();
        before.maps.iter().try_for_each(|map| whole.map(map, lengths))?;
        let mut decoder = RowDecoder::new();
        let mut expanded = Vec::new();
        let mut end = offset + events::magic_size(&block.log, offset);
        for event in events::events(&block.log, offset) {
            let begin = end;
            end += event.len() as u64;
            let Some(frame) = events::frame(event) else { continue };
            let mut event_type = frame.event_type();
            let mut body = frame.body();
            if event_type.mariadb_expanded().is_some() {
                expanded.clear();
                let compressed = CompressedEvent::decode(event_type, body, lengths)?;
                compressed.expand(&mut expanded)?;
                (event_type, body) = (compressed.expanded_type, &expanded);
            } else if is_met(event_type) && !frame.header().flags.contains(HeaderFlags::IGNORABLE) {
                let found = format!("a {event_type} event, of which the changes can't be read");
                return Err(Error::damaged("log", found, "events that can be decoded"));
            }
            if pick.with_around {
                let position = pick.with_positions.then_some(begin);
                transactions.pass(frame.header(), frame.body(), position)?;
            }
            if event_type == EventType::TABLE_MAP {
                whole.map(body, lengths)?;
            } else if event_type.is_rows() {
                let rows = RowsEvent::decode(event_type, body, lengths.of(event_type))?;
                let around = pick.with_around.then(|| RowContext {
                    transaction: transactions.open.clone(),
                    timestamp: frame.header().timestamp,
                    server_id: frame.header().server_id,
                });
                whole.rows(&rows, around.as_ref(), &mut decoder)?;
                if whole.is_over {
                    break;
                }
            }
        }
        let mut picked = whole.picked;
        let maps = whole.by_id.into_values().filter_map(|known| known.map(|(_, body)| body)).collect();
        picked.end = BlockBound { maps, transactions };
        Ok(picked)
    }

    /// Picks only the images to which later blocks may refer.
    pub(crate) fn images(&self, pick: &Pick<'_>) -> Result<PickedChanges> {
        let mut no_part = |_| false;
        let mut tables = OfWhole::new(pick, 0, &mut no_part);
        self.before.maps.iter().try_for_each(|map| tables.map(map, self.lengths))?;
        for event in events::events(&self.block.log, self.offset) {
            if let Some(frame) = events::frame(event)
                && frame.event_type() == EventType::TABLE_MAP
            {
                tables.map(frame.body(), self.lengths)?;
            }
        }
        let mut picked = tables.picked;
        self.leave(&mut picked)?;
        Ok(picked)
    }

    /// Takes the images to which later blocks may refer.
    pub(crate) fn leave(&self, picked: &mut PickedChanges) -> Result<()> {
        let block = self.block;
        for table in &mut picked.tables {
            let images = block.tables.get(&table.name).and_then(|number| block.images.get(*number));
            for place in images.into_iter().flatten() {
                let bytes = block.log.get(place.start as usize..place.end as usize).ok_or_else(no_row)?;
                table.leave(bytes)?;
            }
        }
        Ok(())
    }
}

/// Picks out of a log.
struct OfWhole<'w> {
    pick: &'w Pick<'w>,
    picked: PickedChanges,
    by_id: HashMap<TableId, Option<(usize, Vec<u8>)>>,
    /// Bytes of memory that the rows take so far; at most `memory_max`.
    memory: usize,
    memory_max: usize,
    part: &'w mut dyn FnMut(PickedChanges) -> bool,
    /// No more is wanted.
    is_over: bool,
}

impl<'w> OfWhole<'w> {
    fn new(pick: &'w Pick<'w>, memory_max: usize, part: &'w mut dyn FnMut(PickedChanges) -> bool) -> Self {
        let picked = PickedChanges::default();
        let by_id = HashMap::new();
        OfWhole { pick, picked, by_id, memory: 0, memory_max, part, is_over: false }
    }

    fn map(&mut self, body: &[u8], lengths: &PostHeaderLengths) -> Result<()> {
        let map = TableMapEvent::decode(body, lengths.of(EventType::TABLE_MAP))?;
        let name = body.get(6..).unwrap_or_default();
        let mut found = None;
        if map.database == self.pick.database && map.table == self.pick.table {
            found = self.picked.tables.iter().position(|table| table.name == name);
            if found.is_none() {
                let schema = TableSchema::new(&map, lengths.family())?;
                let columns = (self.pick.columns)(&schema);
                let columns = columns.ok_or_else(|| {
                    Error::damaged("table", "other columns", "those that its archive tells")
                })?;
                found = Some(self.picked.tables.len());
                self.picked.tables.push(PickedTable::new(name, schema, columns, self.pick.with_values));
            }
        }
        self.by_id.insert(map.table_id, found.map(|found| (found, body.to_vec())));
        Ok(())
    }

    fn rows(
        &mut self,
        rows: &RowsEvent<'_>,
        around: Option<&RowContext>,
        decoder: &mut RowDecoder,
    ) -> Result<()> {
        let Some(&Some((number, _))) = self.by_id.get(&rows.table_id) else { return Ok(()) };
        let Some(table) = self.picked.tables.get(number) else { return Ok(()) };
        let schema = Arc::clone(&table.schema);
        let of_image = table.memory_of_image();
        let is_delete = rows.kind() == RowsKind::Delete;
        let with_before = !is_delete || self.pick.with_deleted || table.has_documents();
        let mut start = table.rows.len();
        let mut first = 0;
        let mut read = decoder.rows(&schema, rows)?;
        while let Some(row) = read.next_row()? {
            let images = [row.before, row.after].into_iter().flatten().count();
            self.memory += ROW_MEMORY + images * of_image;
            if self.memory > self.memory_max {
                self.memory = 0;
                first += self.end_run(number, rows, (start, first), around);
                if !self.pass_on() {
                    return Ok(());
                }
                start = 0;
            }
            let Some(table) = self.picked.tables.get_mut(number) else { return Ok(()) };
            let mut images = [RowImage::NONE; 2];
            let before = row.before.filter(|_| with_before);
            for (place, image) in images.iter_mut().zip([before, row.after]) {
                let Some(image) = image else { continue };
                *place = RowImage(table.new_image(false)?);
                for (cells, column) in table.cells.iter_mut().zip(&table.columns) {
                    cells.push(match image.cell(*column).map(|cell| cell.content) {
                        None => ValueContent::None(CellState::Absent),
                        Some(CellContent::Null) => ValueContent::None(CellState::Null),
                        Some(CellContent::Value(bytes)) => ValueContent::Value(bytes),
                        Some(CellContent::JsonDiffs(bytes)) => ValueContent::Differences(bytes),
                    })?;
                }
            }
            table.rows.push(images);
        }
        self.end_run(number, rows, (start, first), around);
        Ok(())
    }

    /// Adds the rows of an event from `start` on, of which the first has the number `first`. Returns how many they are.
    fn end_run(
        &mut self,
        table: usize,
        rows: &RowsEvent<'_>,
        (start, first): (usize, u64),
        around: Option<&RowContext>,
    ) -> u64 {
        let end = self.picked.tables.get(table).map_or(start, |table| table.rows.len());
        if end > start {
            let around = around.cloned();
            let run = RowRun { table, kind: rows.kind(), rows: start..end, first, around };
            self.picked.add_run(run, self.pick.with_numbers);
        }
        end.saturating_sub(start) as u64
    }

    /// Passes on the rows so far, and starts again with the same tables.
    fn pass_on(&mut self) -> bool {
        let tables = self.picked.tables.iter().map(PickedTable::anew).collect();
        let picked =
            std::mem::replace(&mut self.picked, PickedChanges { tables, ..PickedChanges::default() });
        self.is_over = !(self.part)(picked);
        !self.is_over
    }
}
