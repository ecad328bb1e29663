//! How the transaction of a row ended, and the statement that a row is of: over logs, compressed ones and archives, with any number
//! of threads.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use binlogz_binlog::EventType;
use binlogz_binlog::event::{
    Bitmap, OptionalMetadata, RowsEvent, RowsFlags, RowsQueryEvent, TableId, TableMapEvent, TableMapFlags,
    XaId, XaPrepareEvent, XidEvent,
};
use binlogz_flow::{Input, Rewrite, Rewriter};
use binlogz_payload::CompressOptions;
use binlogz_testkit::builder::{LogBuilder, Release, query};

use crate::common::{Ran, archive_of, sql};

type Events = Vec<(EventType, Vec<u8>)>;

/// Bytes of a row's text: many such rows take several batches.
const TEXT_SIZE: u16 = 1000;
/// Rows of a large transaction, in one statement.
const MANY: usize = 4000;

fn map() -> (EventType, Vec<u8>) {
    // Names; the first column is the primary key.
    let optional = OptionalMetadata(&[4, 8, 2, b'i', b'd', 4, b't', b'e', b'x', b't', 8, 1, 0]);
    let map = TableMapEvent {
        table_id: TableId(7),
        flags: TableMapFlags::BIT_LEN_EXACT,
        database: b"shop",
        table: b"item",
        column_types: &[3, 15],
        column_metadata: &TEXT_SIZE.to_le_bytes(),
        null_bitmap: Bitmap(&[0xff]),
        optional_metadata: optional,
    };
    (EventType::TABLE_MAP, map.encode(8).unwrap())
}

fn rows(id: u32, flags: RowsFlags) -> (EventType, Vec<u8>) {
    let text = vec![b'x'; usize::from(TEXT_SIZE)];
    let row = [&[0][..], &id.to_le_bytes(), &TEXT_SIZE.to_le_bytes(), &text].concat();
    let rows = RowsEvent {
        event_type: EventType::WRITE_ROWS,
        table_id: TableId(7),
        flags,
        extra_data: &[],
        width: 2,
        columns: Bitmap(&[3]),
        columns_after: None,
        rows: &row,
    };
    (EventType::WRITE_ROWS, rows.encode(10).unwrap())
}

fn statement(text: &str) -> (EventType, Vec<u8>) {
    (EventType::QUERY, query(text))
}

fn text_of(statement: &str) -> (EventType, Vec<u8>) {
    (EventType::ROWS_QUERY, RowsQueryEvent { length: 0, statement: statement.as_bytes() }.encode())
}

/// A transaction that inserts a row and ends so.
fn insert(id: u32, end: (EventType, Vec<u8>)) -> Events {
    vec![statement("BEGIN"), map(), rows(id, RowsFlags::STMT_END), end]
}

fn xid() -> (EventType, Vec<u8>) {
    (EventType::XID, XidEvent { xid: 1 }.encode())
}

/// An XA transaction that inserts a row.
fn xa(id: u32, name: &str, one_phase: bool) -> Events {
    let xa_id = XaId { format_id: 1, gtrid: name.as_bytes(), bqual: b"" };
    vec![
        statement(&format!("XA START {xa_id}")),
        map(),
        rows(id, RowsFlags::STMT_END),
        statement(&format!("XA END {xa_id}")),
        (EventType::XA_PREPARE, XaPrepareEvent { one_phase, xa_id }.encode().unwrap()),
    ]
}

fn decide(word: &str, name: &str) -> Events {
    let xa_id = XaId { format_id: 1, gtrid: name.as_bytes(), bqual: b"" };
    vec![statement(&format!("XA {word} {xa_id}"))]
}

/// Many rows of one statement, and one of another.
fn large(id: u32) -> Events {
    let mut events = vec![statement("BEGIN"), text_of("INSERT many"), map()];
    events.extend((0..MANY - 1).map(|_| rows(id, RowsFlags::default())));
    events.extend([rows(id, RowsFlags::STMT_END), map(), rows(id, RowsFlags::STMT_END), xid()]);
    events
}

/// Two logs. A row's number is that of its transaction.
fn logs(folder: &Path) -> Vec<PathBuf> {
    let mut first = LogBuilder::new(Release::MYSQL_9_7);
    for events in [
        insert(1, xid()),
        xa(2, "rolled back later", false),
        xa(3, "committed", false),
        decide("COMMIT", "committed"),
        xa(4, "nobody knows", false),
        xa(5, "at once", true),
        insert(6, statement("ROLLBACK")),
        large(7),
        insert(8, statement("COMMIT")),
    ] {
        first.transaction_of(&events);
    }
    let mut second = LogBuilder::new(Release::MYSQL_9_7);
    second.behind_gno(100);
    for events in [
        decide("ROLLBACK", "rolled back later"),
        // The name again.
        xa(9, "rolled back later", false),
        decide("COMMIT", "rolled back later"),
    ] {
        second.transaction_of(&events);
    }
    let mut cut = insert(10, xid());
    cut.pop();
    second.transaction_of(&cut);
    [(1, first), (2, second)]
        .map(|(number, log)| {
            let path = folder.join(format!("binlog.00000{number}"));
            fs::write(&path, log.bytes()).unwrap();
            path
        })
        .to_vec()
}

fn ask(jobs: &str, statement: &str, inputs: &[PathBuf]) -> String {
    let mut command = sql(["--format", "csv", "--jobs", jobs, statement]);
    Ran::from(command.args(inputs).output().unwrap()).ok()
}

#[test]
fn a_row_tells_how_its_transaction_ended_and_its_statement() {
    let folder = tempfile::tempdir().unwrap();
    let plain = logs(folder.path());
    let compressed = folder.path().join("compressed");
    fs::create_dir(&compressed).unwrap();
    let compress = |path: &PathBuf| {
        let twin = compressed.join(path.file_name().unwrap());
        let how = Rewrite::Compress(CompressOptions::default());
        Rewriter::new(how).workers(2).run(Input::open(path).unwrap(), File::create(&twin).unwrap()).unwrap();
        twin
    };
    let compressed: Vec<_> = plain.iter().map(compress).collect();
    assert!(fs::metadata(&compressed[0]).unwrap().len() < 100_000);
    let archive = folder.path().join("archive");
    archive_of(&plain, &archive);
    let expected = format!(
        "id,ending,n\n1,committed,1\n2,rolled back,1\n3,committed,1\n4,not certain,1\n5,committed,1\n6,not certain,1\n7,committed,{}\n\
         8,committed,1\n9,committed,1\n10,not certain,1\n",
        MANY + 1
    );
    let by_row = "SELECT after.id AS id, ending, count(*) AS n FROM shop.item GROUP BY 1, 2 ORDER BY 1";
    let by_statement = "SELECT statement, count(*) AS n FROM changes GROUP BY 1 ORDER BY 1";
    let texts = format!("statement,n\n,10\nINSERT many,{MANY}\n");
    for jobs in ["1", "3"] {
        for inputs in [&plain, &compressed, &vec![archive.clone()]] {
            assert_eq!(ask(jobs, by_row, inputs), expected, "{jobs}: {inputs:?}");
            assert_eq!(ask(jobs, by_statement, inputs), texts, "{jobs}: {inputs:?}");
            let sum = "SELECT count(*) FROM changes WHERE ending = 'committed'";
            assert_eq!(ask(jobs, sum, inputs).lines().nth(1), Some(&*format!("{}", MANY + 6)));
            let twice = "SELECT a.ending, count(*) AS n FROM changes a WHERE a.ending <> 'committed' GROUP BY a.ending ORDER BY 1";
            assert_eq!(ask(jobs, twice, inputs), "ending,n\nnot certain,3\nrolled back,1\n");
        }
    }
    // Of the first log alone nobody knows.
    let first = ask("2", "SELECT DISTINCT ending FROM shop.item WHERE after.id = 2", &plain[..1]);
    assert_eq!(first, "ending\nnot certain\n");
}
