//! Finds which tables the bytes of a transaction belong to, while they pass through.
//!
//! ```text
//! table map   header 19 | table id 6 | flags 2 | length 1, database, 0 | length 1, table, 0 | ...
//! rows        header 19 | table id 6 | ...
//! ```
//!
//! Only these few bytes of an event are read. In events of old servers that have them elsewhere, bytes are
//! counted for no table.

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{EventHeader, EventType};

use binlogz_stats::TableName;

const TABLE_ID_SIZE: usize = 6;

/// Bytes before a database's name: table id and flags.
const NAMES_OFFSET: usize = TABLE_ID_SIZE + 2;

/// Bytes of an event that are read: enough for two names of any length.
const FRONT_MAX: usize = HEADER_SIZE + NAMES_OFFSET + 2 * (1 + 255 + 1);

/// Names that are remembered from one transaction to the next.
const NAMES_MAX: usize = 4096;

/// Takes the events of transactions, as they are in a payload.
#[derive(Debug, Default)]
pub(crate) struct TableWalk {
    /// The start of the current event.
    front: Vec<u8>,
    /// Bytes of it that are still to come, once its header is known.
    left: u64,
    names: HashMap<Box<[u8]>, Arc<TableName>>,
    /// The table for an id in this transaction, as an index into `tables`.
    ids: HashMap<[u8; TABLE_ID_SIZE], usize>,
    tables: Vec<(Arc<TableName>, u64)>,
}

impl TableWalk {
    /// Takes the next bytes.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let known = self.front.len();
            if known < HEADER_SIZE {
                let (more, rest) = bytes.split_at(bytes.len().min(HEADER_SIZE - known));
                self.front.extend_from_slice(more);
                bytes = rest;
                if self.front.len() == HEADER_SIZE {
                    self.left = self
                        .header()
                        .map_or(0, |header| u64::from(header.event_size).saturating_sub(HEADER_SIZE as u64));
                    self.end_if_whole();
                }
                continue;
            }
            let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            let (more, rest) = bytes.split_at(count);
            let room = FRONT_MAX.saturating_sub(known);
            self.front.extend_from_slice(more.get(..room).unwrap_or(more));
            self.left -= count as u64;
            bytes = rest;
            self.end_if_whole();
        }
    }

    /// Ends the transaction and returns the bytes of each table's events.
    pub(crate) fn finish(&mut self) -> Vec<(Arc<TableName>, u64)> {
        self.front.clear();
        self.left = 0;
        self.ids.clear();
        std::mem::take(&mut self.tables)
    }

    fn header(&self) -> Option<EventHeader> {
        EventHeader::decode(&self.front).ok()
    }

    fn end_if_whole(&mut self) {
        if self.left > 0 {
            return;
        }
        if let Some(header) = self.header() {
            let front = std::mem::take(&mut self.front);
            self.count(&header, front.get(HEADER_SIZE..).unwrap_or_default());
            self.front = front;
        }
        self.front.clear();
    }

    /// Counts an event whose body begins with these bytes.
    fn count(&mut self, header: &EventHeader, body: &[u8]) -> Option<()> {
        let id: [u8; TABLE_ID_SIZE] = body.get(..TABLE_ID_SIZE)?.try_into().ok()?;
        let place = match header.event_type {
            EventType::TABLE_MAP => {
                let names = body.get(NAMES_OFFSET..)?;
                let place = self.place(names)?;
                self.ids.insert(id, place);
                place
            }
            event_type if event_type.is_rows() => *self.ids.get(&id)?,
            _ => return None,
        };
        self.tables.get_mut(place)?.1 += u64::from(header.event_size);
        Some(())
    }

    /// The place of the table with these names.
    fn place(&mut self, names: &[u8]) -> Option<usize> {
        let (&length, behind) = names.split_first()?;
        let database = behind.get(..usize::from(length))?;
        let (&length, behind) = behind.get(usize::from(length) + 1..)?.split_first()?;
        let table = behind.get(..usize::from(length))?;
        let key = names.get(..database.len() + table.len() + 3)?;
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        let name = match self.names.get(key) {
            Some(name) => Arc::clone(name),
            None => {
                let name = Arc::new(TableName { database: database.into(), table: table.into() });
                self.names.insert(key.into(), Arc::clone(&name));
                name
            }
        };
        let known = self.tables.iter().rposition(|(known, _)| Arc::ptr_eq(known, &name) || *known == name);
        Some(known.unwrap_or_else(|| {
            self.tables.push((name, 0));
            self.tables.len() - 1
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event_type: EventType, body: &[u8]) -> Vec<u8> {
        let event_size = (HEADER_SIZE + body.len()) as u32;
        let header = EventHeader {
            timestamp: 0,
            event_type,
            server_id: 1,
            event_size,
            end_log_pos: 0,
            flags: Default::default(),
        };
        [&header.encode()[..], body].concat()
    }

    #[test]
    fn bytes_are_counted_for_the_table_of_their_event_however_they_come() {
        let map = |id: u8, table: &str| {
            let names = [b"\x04shop\0", &[table.len() as u8][..], table.as_bytes(), b"\0 and more"].concat();
            event(EventType::TABLE_MAP, &[&[id, 0, 0, 0, 0, 0, 1, 0][..], &names].concat())
        };
        let rows = |id: u8, size: usize| {
            event(EventType::WRITE_ROWS, &[&[id, 0, 0, 0, 0, 0][..], &vec![7; size]].concat())
        };
        let events = [
            event(EventType::QUERY, b"BEGIN"),
            map(1, "item"),
            rows(1, 5000),
            map(2, "sale"),
            rows(2, 10),
            map(3, "item"),
            rows(3, 1),
            event(EventType::XID, &[0; 8]),
        ];
        let expected = [
            ("item", (events[1].len() + events[2].len() + events[5].len() + events[6].len()) as u64),
            ("sale", (events[3].len() + events[4].len()) as u64),
        ];
        let bytes = events.concat();
        let mut walk = TableWalk::default();
        for piece in [1, 7, 100, bytes.len()] {
            bytes.chunks(piece).for_each(|piece| walk.push(piece));
            let found = walk.finish();
            let found: Vec<_> = found
                .iter()
                .map(|(name, bytes)| (std::str::from_utf8(&name.table).unwrap(), *bytes))
                .collect();
            assert_eq!(found, expected, "in pieces of {piece}");
        }
    }
}
