//! The layout of a block's events, field by field: one description that packing and unpacking share.
//!
//! The columns leave out fields that can be computed: an event's size, its checksum if it is right, and `end_log_pos` if
//! it gives the event's end. A field that resembles the previous one in the block (timestamps, GTID counters, table ids)
//! is kept as the difference from it.
//!
//! ```text
//! slots of an event type's group
//!  0 type     (only in group 0)         8 and up: fields of the body, see `body`
//!  1 its body has the known layout      40: the body, if its layout is not known
//!  2 its checksum is right
//!  3 timestamp   4 server id   5 flags
//!  6 end_log_pos, minus the offset of the event's end
//! ```

use std::collections::HashMap;

use binlogz_binlog::EventType;
use binlogz_binlog::checksum::CHECKSUM_SIZE;
use binlogz_binlog::event::TableMapEvent;
use binlogz_binlog::header::{END_LOG_POS_OFFSET, EVENT_SIZE_OFFSET, EVENT_TYPE_OFFSET, HEADER_SIZE};

use crate::block::former::{Formers, UnpackedBlock};
use crate::block::rows::{MappedTable, Past};
use crate::block::slots::ImageRole;
use crate::block::streams::StreamColumn;
use crate::block::walk::{ByteOrder, Walk, number_of};
use crate::error::{Error, Result};
use crate::log::events::{TABLE_MAP_POST_HEADER, has_checksum};

pub(super) const TYPE: StreamColumn = StreamColumn::new(0, 0);
pub(super) const KNOWN: usize = 1;
const CHECKSUM: usize = 2;
pub(super) const TIMESTAMP: usize = 3;
pub(super) const SERVER_ID: usize = 4;
pub(super) const FLAGS: usize = 5;
const END_LOG_POS: usize = 6;
pub(super) const BODY: usize = 8;
pub(super) const UNKNOWN_BODY: usize = 40;

// Fields of the bodies of GTID events and queries.
pub(super) const UUID: usize = 1;
pub(super) const GNO: usize = 2;
pub(super) const CLOCK_TYPE: usize = 3;
pub(super) const COMMIT_TIMESTAMP: usize = 6;
pub(super) const ORIGINAL_COMMIT_TIMESTAMP: usize = 7;
pub(super) const STATEMENT: usize = 7;

/// The type of the clock that a GTID event has; of others the commit timestamps are none.
pub(super) const LOGICAL_CLOCK: i64 = 2;
/// Flag in a GTID event's commit timestamp: the original commit's timestamp follows.
pub(super) const ORIGINAL_TIMESTAMP: i64 = 1 << 55;
/// The bits of a commit timestamp.
pub(super) const TIMESTAMP_MAX: u64 = (1 << 56) - 1;
/// Flag in a GTID event's server version: the original server's version follows.
const ORIGINAL_VERSION: i64 = 1 << 31;
/// The most tables of a block.
pub(super) const TABLES_MAX: usize = 1 << 16;

/// The fields that the next event's are likely to resemble.
#[derive(Debug, Clone, Copy, Default)]
struct LastFields {
    timestamp: i64,
    server_id: i64,
    end_log_pos: i64,
    gno: i64,
    sequence_number: i64,
    commit_timestamp: i64,
    xid: i64,
    thread_id: i64,
    table_id: i64,
}

/// Layout of the events walked over so far.
#[derive(Debug, Default)]
pub(crate) struct BlockLayout<'a> {
    last: LastFields,
    /// Numbers of the tables in the block, keyed by their table maps without the table id.
    numbers: HashMap<Vec<u8>, usize>,
    tables: Vec<Option<MappedTable>>,
    /// The table for a table id.
    ids: HashMap<i64, usize>,
    past: Past<'a>,
    /// Where the block begins in its file, modulo 2^32.
    offset: u32,
}

impl<'a> BlockLayout<'a> {
    /// For a block that begins at `offset` of its file. `differs`: it may have partial updates and differences.
    pub(crate) fn new(offset: u64, formers: Formers<'a>, differs: bool) -> Self {
        BlockLayout { offset: offset as u32, past: Past::new(formers, differs), ..BlockLayout::default() }
    }

    /// The forms of each table's columns, by group.
    pub(crate) fn forms(&self) -> Vec<Vec<u8>> {
        self.tables.iter().map(|table| table.as_ref().map(MappedTable::forms).unwrap_or_default()).collect()
    }

    /// Returns the formers it was given.
    pub(crate) fn into_formers(self) -> Formers<'a> {
        self.past.formers
    }

    /// The block that was walked over, for blocks that refer to it.
    pub(crate) fn into_unpacked(self, log: Vec<u8>) -> UnpackedBlock {
        let images =
            self.tables.into_iter().map(|table| table.map(MappedTable::into_places).unwrap_or_default());
        UnpackedBlock { log, tables: self.numbers, images: images.collect() }
    }

    /// Walks over an event. When reading, `known` says whether to try its layout; after an error nothing here
    /// has changed.
    pub(crate) fn event(&mut self, walk: &mut impl Walk, known: bool) -> Result<()> {
        let before = self.last;
        self.past.pending.clear();
        let walked = self.walk(walk, known);
        if walked.is_err() {
            self.last = before;
        }
        walked
    }

    fn walk(&mut self, walk: &mut impl Walk, known: bool) -> Result<()> {
        let start = walk.walked().len();
        let event_type =
            walk.decide(TYPE, |_, event| event.get(EVENT_TYPE_OFFSET).copied().unwrap_or_default().into())?;
        let event_type = u8::try_from(event_type)
            .map_err(|_| Error::damaged("event type", event_type.to_string(), "0 to 255"))?;
        let slot = |slot| StreamColumn::new(usize::from(event_type), slot);
        let checked = walk.decide(slot(CHECKSUM), |_, event| i64::from(has_checksum(event)))? == 1;
        let known = walk.decide(slot(KNOWN), |_, _| i64::from(known))? == 1;
        let checksum_size = if checked { CHECKSUM_SIZE } else { 0 };

        let low = ByteOrder::Low;
        self.last.timestamp = walk.number(slot(TIMESTAMP), 4, low, self.last.timestamp)?;
        walk.known(&[event_type])?;
        self.last.server_id = walk.number(slot(SERVER_ID), 4, low, self.last.server_id)?;
        walk.skip(8)?;
        walk.number(slot(FLAGS), 2, low, 0)?;
        walk.leave_behind(checksum_size)?;
        if known {
            self.body(walk, EventType(event_type))?;
        } else {
            walk.rest(slot(UNKNOWN_BODY))?;
        }
        walk.finish()?;

        let end = walk.walked().len() + checksum_size;
        let size = (end - start) as u32;
        walk.put_back(start + EVENT_SIZE_OFFSET, &size.to_le_bytes());
        let expected = self.offset.wrapping_add(end as u32);
        let difference = walk.decide(slot(END_LOG_POS), |walked, _| {
            let at = start + END_LOG_POS_OFFSET;
            let stored = number_of(walked.get(at..at + 4).unwrap_or_default(), ByteOrder::Low) as u32;
            i64::from(stored.wrapping_sub(expected) as i32).wrapping_sub(self.last.end_log_pos)
        })?;
        self.last.end_log_pos = self.last.end_log_pos.wrapping_add(difference);
        let end_log_pos = expected.wrapping_add(self.last.end_log_pos as u32);
        walk.put_back(start + END_LOG_POS_OFFSET, &end_log_pos.to_le_bytes());
        if checked {
            walk.checksum(start)?;
        }
        self.remember(walk.walked(), start, EventType(event_type));
        Ok(())
    }

    /// Walks over a body up to its checksum.
    fn body(&mut self, walk: &mut impl Walk, event_type: EventType) -> Result<()> {
        let slot = |field| StreamColumn::new(usize::from(event_type.0), BODY + field);
        let low = ByteOrder::Low;
        let last = &mut self.last;
        match event_type {
            EventType::GTID | EventType::ANONYMOUS_GTID => gtid(walk, last, slot),
            EventType::XID => {
                last.xid = walk.number(slot(0), 8, low, last.xid)?;
                Ok(())
            }
            EventType::QUERY => {
                last.thread_id = walk.number(slot(0), 4, low, last.thread_id)?;
                walk.number(slot(1), 4, low, 0)?;
                let database = walk.number(slot(2), 1, ByteOrder::High, 0)? as usize;
                walk.number(slot(3), 2, low, 0)?;
                let status = walk.number(slot(4), 2, low, 0)? as usize & 0xffff;
                walk.fixed(slot(5), status)?;
                walk.fixed(slot(6), database + 1)?;
                walk.rest(slot(STATEMENT)).map(drop)
            }
            EventType::TABLE_MAP => {
                last.table_id = walk.number(slot(0), 6, low, last.table_id)?;
                walk.rest(slot(1)).map(drop)
            }
            EventType::WRITE_ROWS | EventType::WRITE_ROWS_V1 => {
                self.rows(walk, event_type, &[ImageRole::Inserted])
            }
            EventType::DELETE_ROWS | EventType::DELETE_ROWS_V1 => {
                self.rows(walk, event_type, &[ImageRole::Deleted])
            }
            EventType::UPDATE_ROWS | EventType::UPDATE_ROWS_V1 => {
                self.rows(walk, event_type, &[ImageRole::Before, ImageRole::After])
            }
            EventType::PARTIAL_UPDATE_ROWS if self.past.differs => {
                self.rows(walk, event_type, &[ImageRole::Before, ImageRole::After])
            }
            _ => Err(Error::damaged("event", format!("type {}", event_type.0), "a type with a known layout")),
        }
    }

    fn rows(&mut self, walk: &mut impl Walk, event_type: EventType, roles: &[ImageRole]) -> Result<()> {
        let slot = |field| StreamColumn::new(usize::from(event_type.0), BODY + field);
        let low = ByteOrder::Low;
        self.last.table_id = walk.number(slot(0), 6, low, self.last.table_id)?;
        walk.number(slot(1), 2, low, 0)?;
        if event_type.0 >= EventType::WRITE_ROWS.0 {
            let extra = walk.number(slot(2), 2, low, 0)?;
            let extra = usize::try_from(extra - 2).map_err(|_| {
                Error::damaged(
                    "extra row info",
                    format!("{extra} bytes"),
                    "at least 2, which count themselves",
                )
            })?;
            walk.fixed(slot(3), extra)?;
        }
        let count = walk.packed(slot(4), 0)?;
        let table = self.ids.get(&self.last.table_id).and_then(|&number| self.tables.get(number)?.as_ref());
        let table = table.ok_or_else(|| {
            Error::damaged("rows event", "a table without a table map", "a table map before it")
        })?;
        if usize::try_from(count) != Ok(table.column_count()) {
            return Err(Error::damaged("rows event", format!("{count} columns"), "as many as its table has"));
        }
        let mut images = Vec::with_capacity(2);
        for (index, role) in roles.iter().enumerate() {
            images.push((*role, walk.fixed(slot(5 + index), table.column_count().div_ceil(8))?));
        }
        table.rows(walk, &images, event_type == EventType::PARTIAL_UPDATE_ROWS, &mut self.past)
    }

    /// Notes what the event at `start` means for later events.
    fn remember(&mut self, walked: &[u8], start: usize, event_type: EventType) {
        if event_type == EventType::TABLE_MAP {
            let at = start + HEADER_SIZE;
            let end = walked.len().saturating_sub(if has_checksum(walked.get(start..).unwrap_or_default()) {
                CHECKSUM_SIZE
            } else {
                0
            });
            if let Some(body) = walked.get(at..end) {
                self.remember_table(body);
            }
        } else if let Some(&number) = self.ids.get(&self.last.table_id)
            && let Some(Some(table)) = self.tables.get_mut(number)
        {
            table.remember(walked, &mut self.past);
        }
    }

    /// Notes the body of a table map.
    pub(crate) fn remember_table(&mut self, body: &[u8]) {
        let Some((id, rest)) = body.split_at_checked(6) else { return };
        let number = match self.numbers.get(rest) {
            Some(&number) => number,
            None if self.tables.len() == TABLES_MAX => return,
            None => {
                let number = self.tables.len();
                let map = TableMapEvent::decode(body, TABLE_MAP_POST_HEADER);
                let table = map.ok().and_then(|map| MappedTable::new(number, rest, &map, &self.past).ok());
                self.tables.push(table);
                self.numbers.insert(rest.to_vec(), number);
                number
            }
        };
        self.ids.insert(number_of(id, ByteOrder::Low), number);
    }
}

fn gtid(walk: &mut impl Walk, last: &mut LastFields, slot: impl Fn(usize) -> StreamColumn) -> Result<()> {
    let low = ByteOrder::Low;
    walk.number(slot(0), 1, low, 0)?;
    walk.fixed(slot(UUID), 16)?;
    last.gno = walk.number(slot(GNO), 8, low, last.gno)?;
    walk.number(slot(CLOCK_TYPE), 1, low, 0)?;
    // last_committed is near the sequence number of the previous transaction.
    walk.number(slot(4), 8, low, last.sequence_number)?;
    last.sequence_number = walk.number(slot(5), 8, low, last.sequence_number)?;
    let timestamp = walk.number(slot(COMMIT_TIMESTAMP), 7, low, last.commit_timestamp)?;
    last.commit_timestamp = timestamp;
    if timestamp & ORIGINAL_TIMESTAMP != 0 {
        let base = timestamp & (ORIGINAL_TIMESTAMP - 1);
        walk.number(slot(ORIGINAL_COMMIT_TIMESTAMP), 7, low, base)?;
    }
    walk.packed(slot(8), 0)?;
    let version = walk.number(slot(9), 4, low, 0)?;
    if version & ORIGINAL_VERSION != 0 {
        walk.number(slot(10), 4, low, 0)?;
    }
    // A commit group ticket, if there is one.
    walk.rest(slot(11)).map(drop)
}
