//! Numbered transactions, and helpers to see which of them a log holds.

use std::sync::Arc;

use binlogz_binlog::event::{
    AnyGtidEvent, CommitTimestamps, GtidEvent, GtidFlags, LogicalClock, QueryEvent, ServerVersions,
    StatusVariables,
};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::gtid::{Gtid, GtidSet, ServerUuid};
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventReader, EventType, HeaderFlags};
use binlogz_store::{BinlogStore, FileHead, LogEvents, RecoveryReport, Result, Storage, StoreOptions};

pub(crate) const UUID: ServerUuid = ServerUuid(*b"the store's uuid");

pub(crate) const EVENTS: LogEvents =
    LogEvents { server_id: 7, checksum: ChecksumAlgorithm::CRC32, timestamp: 1_700_000_000 };

pub(crate) fn open(storage: impl Storage + 'static) -> Result<(BinlogStore, RecoveryReport)> {
    BinlogStore::open(Arc::new(storage), StoreOptions::default())
}

/// A transaction of two events: its GTID, and a statement of `size` bytes.
pub(crate) fn transaction(gno: u64, size: usize) -> Vec<u8> {
    let gtid = GtidEvent {
        flags: GtidFlags(1),
        uuid: UUID,
        gno,
        logical_clock: Some(LogicalClock { last_committed: 0, sequence_number: gno as i64 }),
        commit_timestamps: Some(CommitTimestamps { immediate: 1, original: None }),
        transaction_length: Some(0),
        server_versions: Some(ServerVersions { immediate: 90704, original: None }),
        commit_group_ticket: None,
        trailing: &[],
    };
    let statement = format!("/* {} */", "x".repeat(size));
    let query = QueryEvent {
        thread_id: 1,
        exec_time: 0,
        error_code: 0,
        status_variables: StatusVariables::default(),
        database: b"",
        statement: statement.as_bytes(),
    };
    let event = |event_type, body: Vec<u8>| {
        let flags = HeaderFlags::default();
        let header =
            EventHeader { timestamp: 1, event_type, server_id: 7, event_size: 0, end_log_pos: 0, flags };
        encode_event(header, &body, ChecksumAlgorithm::CRC32)
    };
    [event(EventType::GTID, gtid.encode().unwrap()), event(EventType::QUERY, query.encode().unwrap())]
        .concat()
}

/// The transactions from 1 to `last`.
pub(crate) fn gtids(last: u64) -> GtidSet {
    let mut set = GtidSet::new();
    (1..=last).for_each(|gno| set.add(Gtid::new(UUID.into(), gno).unwrap()));
    set
}

pub(crate) fn head(previous_gtids: &GtidSet) -> Vec<u8> {
    FileHead { events: EVENTS, server_version: "9.7.4", created: 0, previous_gtids }.encode()
}

/// Begins the next file, after writing a rotate event to the current one.
pub(crate) fn rotate(store: &BinlogStore, previous_gtids: &GtidSet) -> Result<()> {
    let mut writer = store.writer()?;
    let next = writer.next_number();
    if let Some(end) = writer.position() {
        writer.append(&EVENTS.rotate(end.offset, &store.names().log(next)))?;
    }
    writer.begin_file(next, &head(previous_gtids), None).map(drop)
}

/// The numbers of all transactions that readers see, in order.
pub(crate) fn numbers(store: &BinlogStore) -> Vec<u64> {
    let mut found = Vec::new();
    for log in store.logs().unwrap() {
        let mut events = EventReader::new(store.reader(log.number, 0).unwrap());
        while let Some((_, frame)) = events.next_event().unwrap() {
            if let Some(gtid) = AnyGtidEvent::decode_frame(&frame).unwrap().and_then(|event| event.gtid()) {
                found.push(gtid.gno());
            }
        }
    }
    found
}
