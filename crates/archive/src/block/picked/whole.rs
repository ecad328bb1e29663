//! Picks out of a block that was unpacked as a whole: one that is not packed by columns, or has events of unknown layout.

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{PostHeaderLengths, RowsEvent, TableId, TableMapEvent};
use binlogz_binlog::row::{CellContent, RowDecoder, TableSchema};

use super::values::{Content, State};
use super::{Around, Bound, Pick, Picked, PickedTable, RowRun, no_row};
use crate::block::former::Unpacked;
use crate::error::{Error, Result};
use crate::log::events;

impl Picked {
    /// Picks out of a block that was unpacked as a whole. `before`: what is known where it begins.
    pub(crate) fn of_unpacked(
        block: &Unpacked,
        before: &Bound,
        lengths: &PostHeaderLengths,
        offset: u64,
        pick: &Pick<'_>,
    ) -> Result<Picked> {
        let mut whole = OfWhole { pick, picked: Picked::default(), by_id: HashMap::new() };
        let mut transactions = before.transactions.clone();
        let map_length = lengths.of(EventType::TABLE_MAP);
        before.maps.iter().try_for_each(|map| whole.map(map, map_length))?;
        let mut decoder = RowDecoder::new();
        for event in events::events(&block.log, offset) {
            let Some(frame) = events::frame(event) else { continue };
            let event_type = frame.event_type();
            if pick.with_around {
                transactions.pass(frame.header(), frame.body())?;
            }
            if event_type == EventType::TABLE_MAP {
                whole.map(frame.body(), map_length)?;
            } else if event_type.is_rows() {
                let rows = RowsEvent::decode(event_type, frame.body(), lengths.of(event_type))?;
                let around = pick.with_around.then(|| Around {
                    transaction: transactions.open.clone(),
                    timestamp: frame.header().timestamp,
                    server_id: frame.header().server_id,
                });
                whole.rows(&rows, around, &mut decoder)?;
            }
        }
        let mut picked = whole.picked;
        let maps = whole.by_id.into_iter();
        let maps = maps.filter_map(|(_, known)| known.map(|(_, body)| body)).collect();
        picked.end = Bound { maps, transactions };
        for table in &mut picked.tables {
            let images = block.tables.get(&table.name).and_then(|number| block.images.get(*number));
            for place in images.into_iter().flatten() {
                let bytes = block.log.get(place.start as usize..place.end as usize).ok_or_else(no_row)?;
                table.leave(bytes)?;
            }
        }
        Ok(picked)
    }
}

/// Picks out of a log.
struct OfWhole<'w> {
    pick: &'w Pick<'w>,
    picked: Picked,
    by_id: HashMap<TableId, Option<(usize, Vec<u8>)>>,
}

impl OfWhole<'_> {
    fn map(&mut self, body: &[u8], post_header_length: u8) -> Result<()> {
        let map = TableMapEvent::decode(body, post_header_length)?;
        let name = body.get(6..).unwrap_or_default();
        let mut found = None;
        if map.database == self.pick.database && map.table == self.pick.table {
            found = self.picked.tables.iter().position(|table| table.name == name);
            if found.is_none() {
                let schema = TableSchema::new(&map)?;
                let columns = (self.pick.columns)(&schema);
                let columns = columns.ok_or_else(|| {
                    Error::damaged("table", "other columns", "those that its archive tells")
                })?;
                found = Some(self.picked.tables.len());
                self.picked.tables.push(PickedTable::new(name, schema, columns));
            }
        }
        self.by_id.insert(map.table_id, found.map(|found| (found, body.to_vec())));
        Ok(())
    }

    fn rows(&mut self, rows: &RowsEvent<'_>, around: Option<Around>, decoder: &mut RowDecoder) -> Result<()> {
        let Some(&Some((number, _))) = self.by_id.get(&rows.table_id) else { return Ok(()) };
        let Some(table) = self.picked.tables.get_mut(number) else { return Ok(()) };
        let schema = Arc::clone(&table.schema);
        let start = table.rows.len();
        let mut read = decoder.rows(&schema, rows)?;
        while let Some(row) = read.next_row()? {
            let mut images = [None; 2];
            for (place, image) in images.iter_mut().zip([row.before, row.after]) {
                let Some(image) = image else { continue };
                *place = Some(table.new_image(false)?);
                for (cells, column) in table.cells.iter_mut().zip(&table.columns) {
                    cells.push(match image.cell(*column).map(|cell| cell.content) {
                        None => Content::None(State::Absent),
                        Some(CellContent::Null) => Content::None(State::Null),
                        Some(CellContent::Value(bytes) | CellContent::JsonDiffs(bytes)) => {
                            Content::Value(bytes)
                        }
                    })?;
                }
            }
            table.rows.push(images);
        }
        let end = table.rows.len();
        self.picked.add_run(RowRun { table: number, kind: rows.kind(), rows: start..end, around });
        Ok(())
    }
}
