//! A log whose rows can't be masked, though they can be counted.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use binlogz_binlog::event::{
    Bitmap, FormatDescription, OptionalMetadata, POST_HEADER_LENGTHS, QueryEvent, RowsEvent, RowsFlags,
    SERVER_VERSION_SIZE, StatusVariables, TableId, TableMapEvent, TableMapFlags,
};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, HeaderFlags, MAGIC};
use binlogz_flow::Input;
use binlogz_schema::TablesOfLogs;

use crate::{ExitPolicy, MaskedLogs};

const FLOAT: u8 = 4;
/// Bytes before the body of a rows event of version 2, in the lengths that a format description announces.
const LENGTH: u8 = 10;

fn put_event(log: &mut Vec<u8>, event_type: EventType, body: &[u8]) {
    let checksum = match event_type {
        EventType::FORMAT_DESCRIPTION => ChecksumAlgorithm::CRC32,
        _ => ChecksumAlgorithm::NONE,
    };
    let flags = HeaderFlags::default();
    let header = EventHeader { timestamp: 1, event_type, server_id: 1, event_size: 0, end_log_pos: 0, flags };
    log.extend(encode_event(header, body, checksum));
}

/// A log that inserts these values into the only column `f` of `d.t`, a FLOAT.
fn log_of(values: &[f32]) -> Vec<u8> {
    let mut server_version = [0; SERVER_VERSION_SIZE];
    server_version[..5].copy_from_slice(b"9.7.4");
    let description = FormatDescription {
        binlog_version: 4,
        server_version,
        created: 0,
        header_length: 19,
        post_header_lengths: POST_HEADER_LENGTHS.to_vec(),
        checksum_algorithm: ChecksumAlgorithm::NONE,
    };
    let begin = QueryEvent {
        thread_id: 1,
        exec_time: 0,
        error_code: 0,
        status_variables: StatusVariables(b""),
        database: b"d",
        statement: b"BEGIN",
    };
    let map = TableMapEvent {
        table_id: TableId(1),
        flags: TableMapFlags::default(),
        database: b"d",
        table: b"t",
        column_types: &[FLOAT],
        column_metadata: &[4],
        null_bitmap: Bitmap(&[1]),
        optional_metadata: OptionalMetadata(b"\x04\x02\x01f"),
    };
    let images: Vec<u8> =
        values.iter().flat_map(|value| [vec![0], value.to_le_bytes().to_vec()].concat()).collect();
    let rows = RowsEvent {
        event_type: EventType::WRITE_ROWS,
        table_id: TableId(1),
        flags: RowsFlags::STMT_END,
        extra_data: b"",
        width: 1,
        columns: Bitmap(&[1]),
        columns_after: None,
        rows: &images,
    };
    let mut log = MAGIC.to_vec();
    put_event(&mut log, EventType::FORMAT_DESCRIPTION, &description.encode());
    put_event(&mut log, EventType::QUERY, &begin.encode().unwrap());
    put_event(&mut log, EventType::TABLE_MAP, &map.encode(8).unwrap());
    put_event(&mut log, EventType::WRITE_ROWS, &rows.encode(LENGTH).unwrap());
    put_event(&mut log, EventType::XID, &[0; 8]);
    log
}

#[test]
fn rows_that_cannot_be_masked_are_counted_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, "a key of sixteen").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let path = folder.path().join("exits.toml");
    fs::write(&path, "key_file = \"key\"\n[[table]]\nname = \"d.t\"\ncolumns.f = \"hash\"").unwrap();
    let exits = MaskedLogs::new(ExitPolicy::read(&path).unwrap(), TablesOfLogs::forward(None));
    // No server stores the last one.
    for (number, values) in [&[1.5, 2.5][..], &[1.5, 2.5, 0.0, f32::NAN]].into_iter().enumerate() {
        let input = exits.log_at(number, "log", Input::Places(Arc::new(log_of(values)))).unwrap();
        let Input::Stream(mut stream) = input else { panic!("a stream") };
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    let counts = exits.counts();
    assert_eq!((counts.transactions, counts.masked_rows), (2, 2));
    let unmasked: Vec<_> = counts.unmasked.into_iter().collect();
    assert_eq!(unmasked, [("d.t: rows that can't be read".to_owned(), 4)]);
}
