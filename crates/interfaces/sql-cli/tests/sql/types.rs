//! The type that each MySQL type becomes, at its limits, as zero dates and NULL; the columns of a table over DDL.

use binlogz_binlog::EventType;
use binlogz_binlog::event::{
    Bitmap, CommitTimestamps, GtidEvent, GtidFlags, LogicalClock, OptionalMetadata, RowsEvent, RowsFlags,
    TableId, TableMapEvent, TableMapFlags, XidEvent,
};
use binlogz_binlog::gtid::ServerUuid;
use binlogz_testkit::builder::{LogBuilder, Release, query};

use crate::common::{SHAPES, archive_of, ask};

#[test]
fn every_type_has_its_column_and_its_values() {
    let out = SHAPES.same(include_str!("types.sql"));
    let expected = include_str!("types.csv");
    assert!(out == expected, "{out}");
}

/// A row that a version of the table has: its columns' types and metadata, their names, and the bytes of a row.
pub(crate) struct Version {
    pub(crate) types: Vec<u8>,
    pub(crate) metadata: Vec<u8>,
    pub(crate) names: Vec<&'static str>,
    pub(crate) row: Vec<u8>,
}

/// The events of a transaction that inserts a row.
pub(crate) fn insert(version: &Version) -> Vec<(EventType, Vec<u8>)> {
    insert_into("shop", "item", version)
}

/// The events of a transaction that inserts a row into a table of this name.
pub(crate) fn insert_into(database: &str, table: &str, version: &Version) -> Vec<(EventType, Vec<u8>)> {
    let names: Vec<u8> =
        version.names.iter().flat_map(|name| std::iter::once(name.len() as u8).chain(name.bytes())).collect();
    // Names; the first column is the primary key.
    let optional = [&[4, names.len() as u8], &*names, &[8, 1, 0]].concat();
    let map = TableMapEvent {
        table_id: TableId(7),
        flags: TableMapFlags::BIT_LEN_EXACT,
        database: database.as_bytes(),
        table: table.as_bytes(),
        column_types: &version.types,
        column_metadata: &version.metadata,
        null_bitmap: Bitmap(&[0xff]),
        optional_metadata: OptionalMetadata(&optional),
    };
    let width = version.types.len() as u64;
    let rows = RowsEvent {
        event_type: EventType::WRITE_ROWS,
        table_id: TableId(7),
        flags: RowsFlags::STMT_END,
        extra_data: &[],
        width,
        columns: Bitmap(&[(1 << width) - 1]),
        columns_after: None,
        rows: &version.row,
    };
    vec![
        (EventType::QUERY, query("BEGIN")),
        (EventType::TABLE_MAP, map.encode(8).unwrap()),
        (EventType::WRITE_ROWS, rows.encode(10).unwrap()),
        (EventType::XID, XidEvent { xid: 1 }.encode()),
    ]
}

/// Three versions of a table: a column gets a wider type, then another one; one comes, one goes.
pub(crate) fn versions() -> [Version; 3] {
    let (long, long_long, short) = (3, 8, 2);
    let (date, datetime2, varchar) = (10, 18, 15);
    [
        Version {
            types: vec![long, short, date],
            metadata: vec![],
            names: vec!["id", "n", "day"],
            // 1, -3, 2020-02-29
            row: [&[0][..], &1u32.to_le_bytes(), &(-3i16).to_le_bytes(), &[0x5d, 0xc8, 0x0f]].concat(),
        },
        Version {
            types: vec![long, long_long, datetime2, varchar],
            metadata: vec![0, 20, 0],
            names: vec!["id", "n", "day", "note"],
            // 2, the largest number, 9999-12-31 23:59:59, text
            row: [
                &[0][..],
                &2u32.to_le_bytes(),
                &i64::MAX.to_le_bytes(),
                &[0xfe, 0xf3, 0xff, 0x7e, 0xfb],
                b"\x03tea",
            ]
            .concat(),
        },
        Version {
            types: vec![long, varchar],
            metadata: vec![20, 0],
            names: vec!["id", "day"],
            row: [&[0][..], &3u32.to_le_bytes(), b"\x05never"].concat(),
        },
    ]
}

#[test]
fn over_ddl_a_table_has_all_columns_in_types_for_all_values() {
    let versions = versions();
    let folder = tempfile::tempdir().unwrap();
    let log = |count: usize| {
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        for version in &versions[..count] {
            log.transaction_of(&insert(version));
        }
        let path = folder.path().join(format!("binlog.00000{count}"));
        std::fs::write(&path, log.bytes()).unwrap();
        path
    };
    let statement = "SELECT key, after.id, after.n, after.day, after.note FROM shop.item ORDER BY 2; \
                     SELECT DISTINCT arrow_typeof(after.n) AS n, arrow_typeof(after.day) AS day FROM shop.item";
    let two = ask(statement, &[log(2)]).ok();
    let rows = |days: [&str; 2]| {
        format!(
            "\"{{\"\"id\"\":1}}\",1,-3,{},\n\"{{\"\"id\"\":2}}\",2,9223372036854775807,{},tea\n",
            days[0], days[1]
        )
    };
    let expected = rows(["2020-02-29T00:00:00", "9999-12-31T23:59:59"]) + "n,day\nInt64,Timestamp(µs)\n";
    assert_eq!(two.split_once('\n').unwrap().1, expected);
    // A text among days makes all of them text.
    let three = ask(statement, &[log(3)]).ok();
    let expected =
        rows(["2020-02-29", "9999-12-31 23:59:59"]) + "\"{\"\"id\"\":3}\",3,,never,\nn,day\nInt64,Utf8\n";
    assert_eq!(three.split_once('\n').unwrap().1, expected);
}

/// A server before 8.0.1 committed it first: the original commit timestamp is 0.
#[test]
fn a_first_commit_whose_time_nobody_knows_is_null_and_not_1970() {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for (gno, original) in [(1, Some(0)), (2, None)] {
        let gtid = GtidEvent {
            flags: GtidFlags::default(),
            uuid: ServerUuid([7; 16]),
            gno,
            logical_clock: Some(LogicalClock { last_committed: gno as i64 - 1, sequence_number: gno as i64 }),
            commit_timestamps: Some(CommitTimestamps { immediate: 1_700_000_000_000_000, original }),
            transaction_length: None,
            server_versions: None,
            commit_group_ticket: None,
            trailing: &[],
        };
        log.event(EventType::GTID, &gtid.encode().unwrap());
        for (event_type, body) in insert(&versions()[0]) {
            log.event(event_type, &body);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, archive) = (folder.path().join("binlog.000001"), folder.path().join("archive"));
    std::fs::write(&path, log.bytes()).unwrap();
    archive_of(std::slice::from_ref(&path), &archive);
    let statement = "SELECT committed_at IS NULL AS unknown, applied_at FROM changes ORDER BY 1 DESC; \
                     SELECT count(*) AS n FROM changes WHERE committed_at > '1970-01-02'; \
                     SELECT count(*) AS n FROM transactions WHERE committed_at < '1970-01-02'; \
                     SELECT count(committed_at) AS n FROM shop.item WHERE after.id = 1";
    let time = "2023-11-14T22:13:20Z";
    let expected = format!("unknown,applied_at\ntrue,{time}\nfalse,{time}\nn\n1\nn\n0\nn\n1\n");
    for input in [path, archive] {
        assert_eq!(ask(statement, &[input]).ok(), expected);
    }
}
