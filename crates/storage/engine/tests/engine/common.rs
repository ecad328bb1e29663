//! An engine in memory, transactions of rows, and what its log holds.

use std::sync::Arc;

use binlogz_binlog::event::{
    AnyGtidEvent, Bitmap, ColumnType, OptionalMetadata, RowsEvent, RowsFlags, TableId, TableMapEvent,
    TableMapFlags,
};
use binlogz_binlog::gtid::ServerUuid;
use binlogz_binlog::{EventReader, EventType};
use binlogz_engine::{Engine, EngineOptions, Session, VariableValue};
use binlogz_store::{BinlogStore, Storage};

pub(crate) const UUID: ServerUuid = ServerUuid(*b"the engine's uid");

pub(crate) fn open(storage: impl Storage + 'static, variables: &[(&str, VariableValue<'_>)]) -> Engine {
    let options = EngineOptions { variables, ..EngineOptions::new(UUID, 7) };
    Engine::open(Arc::new(storage), options).unwrap().0
}

pub(crate) const ON: (&str, VariableValue<'static>) =
    ("binlog_transaction_compression", VariableValue::Text("ON"));

/// Appends a row of `size` bytes to the table shop.item (v BLOB).
pub(crate) fn insert(session: &mut Session, size: usize) {
    let table = TableMapEvent {
        table_id: TableId(90),
        flags: TableMapFlags::BIT_LEN_EXACT,
        database: b"shop",
        table: b"item",
        column_types: &[ColumnType::BLOB.0],
        column_metadata: &[4],
        null_bitmap: Bitmap(&[0]),
        optional_metadata: OptionalMetadata(&[]),
    };
    let mut row = vec![0];
    row.extend_from_slice(&(size as u32).to_le_bytes());
    row.extend((0..size).map(|place| b"all of these words "[place % 19]));
    let rows = RowsEvent {
        event_type: EventType::WRITE_ROWS,
        table_id: TableId(90),
        flags: RowsFlags(1),
        extra_data: &[],
        width: 1,
        columns: Bitmap(&[1]),
        columns_after: None,
        rows: &row,
    };
    session.table_map(&table).unwrap();
    session.rows(&rows).unwrap();
}

/// The events of a file, by type, and the GTIDs of all.
pub(crate) fn events(store: &BinlogStore) -> Vec<Vec<EventType>> {
    let logs = store.logs().unwrap();
    let events = |log: &binlogz_store::StoredLog| {
        let mut reader = EventReader::new(store.reader(log.number, 0).unwrap());
        let mut events = Vec::new();
        while let Some((offset, frame)) = reader.next_event().unwrap() {
            assert_eq!(u64::from(frame.header().end_log_pos), offset + frame.bytes().len() as u64);
            events.push(frame.event_type());
        }
        events
    };
    logs.iter().map(events).collect()
}

/// The logical clock and length of each transaction, file by file: (last_committed, sequence_number).
pub(crate) fn clocks(store: &BinlogStore) -> Vec<Vec<(i64, i64)>> {
    let logs = store.logs().unwrap();
    let clocks = |log: &binlogz_store::StoredLog| {
        let mut reader = EventReader::new(store.reader(log.number, 0).unwrap());
        let mut clocks = Vec::new();
        while let Some((_, frame)) = reader.next_event().unwrap() {
            if let Some(event) = AnyGtidEvent::decode_frame(&frame).unwrap() {
                let clock = event.logical_clock().unwrap();
                clocks.push((clock.last_committed, clock.sequence_number));
            }
        }
        clocks
    };
    logs.iter().map(clocks).collect()
}
