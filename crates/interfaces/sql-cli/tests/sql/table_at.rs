//! `binlogz table-at --format parquet`, which lets this program write the files: the rows beside the server's own, types and all.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::Ran;

const TABLES: &str = "CREATE DATABASE d; USE d; CREATE TABLE kinds (id INT PRIMARY KEY, `a 'b' \"c\"` VARCHAR(20) CHARACTER SET latin1, u
     BIGINT UNSIGNED, n DECIMAL(12, 3), r DOUBLE, day DATE, at DATETIME(3), moment TIMESTAMP(6) NULL, e ENUM('one', 'é') CHARACTER SET utf8mb4, s
     SET('x', 'y'), doc JSON, raw VARBINARY(9), up INT AS (id + 1) STORED); CREATE TABLE vacant LIKE kinds; CREATE TABLE gone (id INT PRIMARY KEY, v
     INT); SET time_zone = '+00:00'; INSERT INTO kinds (id, `a 'b' \"c\"`, u, n, r, day, at, moment, e, s, doc, raw) VALUES (1, 'tea é',
     18446744073709551615, -1.25, 0.1, '2026-11-29', '2026-11-29 01:02:03.456', '2026-11-29 01:02:03.456789', 'é', 'x,y', '{\"k\": [1, null]}', x'00ff'),
     (2, '', 0, 0, -0e0, NULL, NULL, NULL, NULL, '', NULL, ''); INSERT INTO gone VALUES (1, 1), (2, 2)";

/// The rows of a file: columns with their types, then each row's values, in the order of the first.
fn rows(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let fields = builder.schema().fields().iter();
    let columns = fields.map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    let mut rows = Vec::new();
    for batch in builder.build().unwrap() {
        let batch: RecordBatch = batch.unwrap();
        let options = FormatOptions::new().with_null("NULL");
        let formatters: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            rows.push(formatters.iter().map(|column| column.value(row).to_string()).collect());
        }
    }
    rows.sort();
    (columns, rows)
}

/// The main program, which lies beside this one. It is another package's: a run of these tests alone may not have built it.
fn binlogz() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_BIN_EXE_binlogz-sql")).with_file_name("binlogz");
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
    }
    path.exists().then_some(path)
}

fn table_at(binlogz: &Path, server: &MysqlSandbox, more: &[&str]) -> Ran {
    let account = format!("--socket={}", server.socket().display());
    let mut command = Command::new(binlogz);
    command.args(["table-at", "--no-defaults", "--user=root", &account, "--format", "parquet"]);
    command.args(more).output().unwrap().into()
}

#[test]
fn a_table_as_it_was_is_a_parquet_file() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let Some(binlogz) = binlogz() else { return Ok(()) };
    let server = mysql.sandbox().start()?;
    server.sql(TABLES)?;
    let moment = server.sql("SELECT @@GLOBAL.gtid_executed")?;
    let (uuid, last) = moment.trim().rsplit_once(['-', ':']).unwrap();
    let moment = format!("{}:{last}", uuid.split(':').next().unwrap());
    server.sql(
        "USE d; UPDATE kinds SET u = 7, e = 'one', raw = 'x' WHERE id = 1; DELETE FROM kinds WHERE id = 2; INSERT INTO vacant (id) VALUES (5);
         DELETE FROM gone; INSERT INTO gone VALUES (3, 3); ALTER TABLE gone RENAME COLUMN v TO w, RENAME TO gone_since",
    )?;
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap();
    let ran =
        table_at(&binlogz, &server, &["--at", &moment, "--output", to, "d.kinds", "d.vacant", "d.gone"]);
    assert_eq!((ran.code, ran.error.lines().count()), (Some(0), 1), "{}", ran.error);
    assert!(ran.error.contains("warning: d.gone was altered since the moment"), "{}", ran.error);
    let (columns, found) = rows(&folder.path().join("kinds.parquet"));
    let expected = [
        "id Int32",
        "a 'b' \"c\" Utf8",
        "u UInt64",
        "n Decimal128(12, 3)",
        "r Float64",
        "day Date32",
        "at Timestamp(µs)",
        "moment Timestamp(µs, \"+00:00\")",
        "e Utf8",
        "s Utf8",
        "doc Utf8",
        "raw Binary",
    ];
    assert_eq!(columns, expected);
    let first = [
        "1",
        "tea é",
        "18446744073709551615",
        "-1.250",
        "0.1",
        "2026-11-29",
        "2026-11-29T01:02:03.456",
        "2026-11-29T01:02:03.456789Z",
        "é",
        "x,y",
        "{\"k\": [1, null]}",
        "00ff",
    ];
    let second = ["2", "", "0", "0.000", "-0.0", "NULL", "NULL", "NULL", "NULL", "", "NULL", ""];
    assert_eq!(found, [first, second]);
    let vacant = rows(&folder.path().join("vacant.parquet"));
    assert_eq!(vacant.0, expected);
    assert!(vacant.1.is_empty(), "{:?}", vacant.1);
    let gone = rows(&folder.path().join("gone.parquet"));
    assert_eq!(gone.0, ["id Int32", "v Int32"]);
    assert_eq!(gone.1, [["1", "1"], ["2", "2"]]);

    // One table goes to a file; what is there stays.
    let file = folder.path().join("one.parquet");
    let file = file.to_str().unwrap();
    for (code, said) in [(0, ""), (2, "exists already; --force replaces it")] {
        let ran = table_at(&binlogz, &server, &["--at", &moment, "--output", file, "d.kinds"]);
        assert_eq!((ran.code, ran.error.contains(said)), (Some(code), true), "{}", ran.error);
    }
    assert_eq!(rows(Path::new(file)).1, [first, second]);
    let ran = table_at(&binlogz, &server, &["--at", &moment, "d.kinds"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.error.contains("--format parquet needs --output"), "{}", ran.error);
    Ok(())
}
