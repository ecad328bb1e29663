//! Types written by servers before 5.6.4, in events made here: today's mysqlbinlog still prints them, but no
//! available server writes them.

use binlogz_binlog::event::{
    Bitmap, ColumnType, FormatDescription, OptionalMetadata, POST_HEADER_LENGTHS, RowsEvent, RowsFlags,
    TableId, TableMapEvent, TableMapFlags,
};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, HeaderFlags, MAGIC};
use binlogz_print::mysqlbinlog::Verbosity;
use binlogz_testkit::{InstalledTool, Tool, require_tool};

use crate::row_lines;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// A log of one table and one row event.
fn log(
    column_types: &[ColumnType],
    column_metadata: &[u8],
    extra_data: &[u8],
    rows: &[u8],
) -> Result<Vec<u8>> {
    let mut server_version = [0; 50];
    server_version[..5].copy_from_slice(b"9.7.4");
    let description = FormatDescription {
        binlog_version: 4,
        server_version,
        created: 0,
        header_length: 19,
        post_header_lengths: POST_HEADER_LENGTHS.to_vec(),
        checksum_algorithm: ChecksumAlgorithm::NONE,
    };
    let columns = vec![0xff; column_types.len().div_ceil(8)];
    let types: Vec<u8> = column_types.iter().map(|column_type| column_type.0).collect();
    let table_map = TableMapEvent {
        table_id: TableId(90),
        flags: TableMapFlags::default(),
        database: b"old",
        table: b"t",
        column_types: &types,
        column_metadata,
        null_bitmap: Bitmap(&columns),
        optional_metadata: OptionalMetadata(b""),
    };
    let event = RowsEvent {
        event_type: EventType::WRITE_ROWS,
        table_id: TableId(90),
        flags: RowsFlags::STMT_END,
        extra_data,
        width: types.len() as u64,
        columns: Bitmap(&columns),
        columns_after: None,
        rows,
    };
    let mut log = MAGIC.to_vec();
    for (event_type, body, checksum) in [
        // A format description has a checksum, whatever it says about the others.
        (EventType::FORMAT_DESCRIPTION, description.encode(), ChecksumAlgorithm::CRC32),
        (EventType::TABLE_MAP, table_map.encode(8)?, ChecksumAlgorithm::NONE),
        (EventType::WRITE_ROWS, event.encode(10)?, ChecksumAlgorithm::NONE),
    ] {
        let header = EventHeader {
            timestamp: 1,
            event_type,
            server_id: 1,
            event_size: 0,
            end_log_pos: 0,
            flags: HeaderFlags(0),
        };
        log.extend(encode_event(header, &body, checksum));
    }
    Ok(log)
}

/// Our lines.
fn printed(log: &[u8]) -> Result<String> {
    let mut lines = Vec::new();
    row_lines::each_event(log, Verbosity::Types, |event| {
        lines.extend_from_slice(event);
        Ok(())
    })?;
    Ok(String::from_utf8(lines)?)
}

/// The lines of the real mysqlbinlog.
fn printed_by(mysql: &InstalledTool, log: &[u8]) -> Result<String> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), log)?;
    let args = ["-vv".as_ref(), "--base64-output=decode-rows".as_ref(), file.path().as_os_str()];
    let output = String::from_utf8(mysql.mysqlbinlog(args)?.stdout)?;
    Ok(output.split_inclusive('\n').filter(|line| line.starts_with("###")).collect())
}

#[test]
fn times_before_5_6_4() -> Result<()> {
    let types = [
        ColumnType::TIME,
        ColumnType::DATETIME,
        ColumnType::TIMESTAMP,
        ColumnType::NEWDATE,
        ColumnType::DATE,
        ColumnType::STRING,
    ];
    let row = |time: i32, datetime: u64, timestamp: u32| {
        let mut row = vec![0xc0];
        row.extend(&time.to_le_bytes()[..3]);
        row.extend(datetime.to_le_bytes());
        row.extend(timestamp.to_le_bytes());
        row.extend(b"\x5d\xc8\x0f\x5d\xc8\x0f\x02ab");
        row
    };
    let mut rows = row(8_385_959, 99_991_231_235_959, i32::MAX as u32);
    rows.extend(row(0, 0, 0));
    rows.extend(row(-123_456, 20_200_000_030_405, u32::MAX));
    rows.push(0xff);
    let log = log(&types, &[254, 20], b"", &rows)?;
    let lines = printed(&log)?;
    for line in [
        "###   @1='838:59:59' /* TIME meta=0 nullable=1 is_null=0 */\n",
        "###   @2=9999-12-31 23:59:59 /* DATETIME meta=0 nullable=1 is_null=0 */\n",
        "###   @3=2147483647 /* TIMESTAMP meta=0 nullable=1 is_null=0 */\n",
        "###   @4='2020:02:29' /* DATE meta=0 nullable=1 is_null=0 */\n",
        "###   @6='ab' /* STRING(20) meta=65044 nullable=1 is_null=0 */\n",
        "###   @2=NULL /* DATETIME meta=0 nullable=1 is_null=1 */\n",
    ] {
        assert!(lines.contains(line), "{lines}");
    }
    let mysql = require_tool!(Tool::Mysql);
    assert_eq!(lines, printed_by(mysql, &log)?);
    Ok(())
}

#[test]
fn extra_row_info_of_ndb() -> Result<()> {
    let log = log(&[ColumnType::LONG], b"", b"\0\x05\x02\x0a\xbc\xff", b"\xfe\x07\0\0\0")?;
    let lines = printed(&log)?;
    assert!(lines.starts_with("### Extra row ndb info: data_format: 2, len: 3, data: 0x0ABCFF\n"), "{lines}");
    let mysql = require_tool!(Tool::Mysql);
    assert_eq!(lines, printed_by(mysql, &log)?);
    Ok(())
}
