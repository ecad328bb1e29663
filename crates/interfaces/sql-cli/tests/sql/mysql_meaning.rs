//! What MySQL people take for granted: the place of NULL, names in any case, `/` and DIV, databases of any name, columns whose type
//! changed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use binlogz_testkit::builder::{LogBuilder, Release};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{SHAPES, archive_of, ask};
use crate::export::{export, files};
use crate::types::{Version, insert, insert_into};

/// The lines of an answer after its heading.
#[track_caller]
fn lines(statement: &str, inputs: &[PathBuf]) -> Vec<String> {
    ask(statement, inputs).ok().lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn nulls_are_below_everything() {
    let log = std::slice::from_ref(&SHAPES.plain[7]);
    let values = "(VALUES (2), (NULL), (1)) t(a)";
    for (statement, expected) in [
        (format!("SELECT coalesce(a, 0) FROM {values} ORDER BY a"), "0 1 2"),
        (format!("SELECT coalesce(a, 0) FROM {values} ORDER BY a DESC"), "2 1 0"),
        (format!("SELECT coalesce(a, 0) FROM {values} ORDER BY a DESC LIMIT 2"), "2 1"),
        (format!("SELECT coalesce(a, 0) FROM {values} ORDER BY a NULLS LAST"), "1 2 0"),
        (
            format!(
                "SELECT row_number() OVER (ORDER BY a) FROM {values} WHERE a IS NULL OR a = 1 ORDER BY a"
            ),
            "1 2",
        ),
        (format!("SELECT first_value(a) OVER (ORDER BY a DESC) FROM {values}"), "2 2 2"),
    ] {
        assert_eq!(lines(&statement, log).join(" "), expected, "{statement}");
    }
}

#[test]
fn division_is_mysqls() {
    let log = std::slice::from_ref(&SHAPES.plain[7]);
    let mut wrong = Vec::new();
    for (expression, expected) in [
        ("7 / 2", "3.5000"),
        ("2 / 3", "0.6667"),
        ("-2 / 3", "-0.6667"),
        ("99999 / 100000", "1.0000"),
        ("9223372036854775807 / 1", "9223372036854775807.0000"),
        ("arrow_cast('18446744073709551615', 'UInt64') / 2", "9223372036854775807.5000"),
        ("sum(a) / count(*) FROM (VALUES (1), (2)) t(a)", "1.5000"),
        ("sum(a / 2) FROM (VALUES (1), (2)) t(a)", "1.5000"),
        ("max(s) FROM (SELECT sum(a / 4) OVER (ORDER BY a) AS s FROM (VALUES (1), (2)) t(a))", "0.7500"),
        ("1 / 0 IS NULL", "true"),
        ("1 % 0 IS NULL", "true"),
        ("1.5 / 0 IS NULL", "true"),
        ("1e0 / 0e0 IS NULL", "true"),
        ("a / b IS NULL FROM (VALUES (1, 0)) t(a, b)", "true"),
        ("7 % 4", "3"),
        ("7 DIV 2", "3"),
        ("-7 DIV 2", "-3"),
        ("99999 DIV 100000", "0"),
        ("7 DIV 0 IS NULL", "true"),
        ("5.5 DIV 2", "2"),
        ("1000 div 10 DIV 10 + 1", "11"),
        ("9223372036854775807 DIV 1", "9223372036854775807"),
        ("arrow_cast('18446744073709551615', 'UInt64') DIV arrow_cast(1, 'UInt64')", "18446744073709551615"),
        ("\"div\" FROM (VALUES (1)) t(\"div\")", "1"),
    ] {
        let ran = ask(&format!("SELECT {expression}"), log);
        if ran.out.lines().nth(1).unwrap_or_default() != expected || ran.code != Some(0) {
            wrong.push(format!("{expression}: {ran:?}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Two versions of a table: names in another case, and other types of columns.
fn versions() -> [Version; 3] {
    let (long, double, long_long, varchar, timestamp2, datetime2) = (3, 5, 8, 15, 17, 18);
    [
        Version {
            types: vec![long, datetime2, double, long],
            metadata: vec![0, 8],
            names: vec!["id", "changedAt", "n", "v"],
            // 1, 2020-01-02 03:04:05, 0.5, 7
            row: [
                &[0][..],
                &1u32.to_le_bytes(),
                &[0x99, 0xa5, 0x44, 0x31, 0x05],
                &0.5_f64.to_le_bytes(),
                &7u32.to_le_bytes(),
            ]
            .concat(),
        },
        Version {
            types: vec![long, timestamp2, long_long, varchar],
            metadata: vec![0, 20, 0],
            names: vec!["ID", "ChangedAt", "N", "v"],
            // 2, 2020-01-02 03:05:41, a number that no DOUBLE has, text
            row: [
                &[0][..],
                &2u32.to_le_bytes(),
                &[0x5e, 0x0d, 0x5e, 0x05],
                &9_007_199_254_740_993_i64.to_le_bytes(),
                b"\x03tea",
            ]
            .concat(),
        },
        Version {
            types: vec![long, varchar],
            metadata: vec![20, 0],
            names: vec!["id", "changedat"],
            row: [&[0][..], &3u32.to_le_bytes(), b"\x05never"].concat(),
        },
    ]
}

/// A log with rows of the first versions, and an archive of it.
fn logs(folder: &Path, count: usize) -> [PathBuf; 2] {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for version in &versions()[..count] {
        log.transaction_of(&insert(version));
    }
    let (path, archive) =
        (folder.join(format!("binlog.00000{count}")), folder.join(format!("archive-{count}")));
    fs::write(&path, log.bytes()).unwrap();
    archive_of(std::slice::from_ref(&path), &archive);
    [path, archive]
}

#[test]
fn a_column_is_one_in_whatever_case_and_keeps_each_value() {
    let folder = tempfile::tempdir().unwrap();
    let ways = [
        "after.changedat",
        "after.ChangedAt",
        "after['CHANGEDAT']",
        "after.\"changedAt\"",
        "a.after.changedat",
    ];
    for input in logs(folder.path(), 2) {
        let input = [input];
        let rows =
            lines("SELECT after.id, after.changedAt, after.N, after.V FROM shop.item ORDER BY 1", &input);
        assert_eq!(rows, ["1,2020-01-02T03:04:05,0.5,7", "2,2020-01-02T03:05:41,9007199254740993,tea"]);
        for way in ways {
            let count = format!("SELECT count(*) FROM shop.item a WHERE {way} > '2020-01-02 03:05:00'");
            assert_eq!(lines(&count, &input), ["1"], "{way}");
        }
        let key = "SELECT count(*) FROM shop.item WHERE after.id = 2";
        assert_eq!(lines(key, &input), ["1"]);
        let unknown = "expected one of id, changedAt, n, v";
        for (name, told) in [("after.changed", "changed in after"), ("after['changed']", "changed in after")]
        {
            let error = ask(&format!("SELECT {name} FROM shop.item"), &input).failure();
            assert_eq!(error, format!("there is no column {told}, {unknown}"));
        }
    }
    // As text, all times are in one notation.
    for input in logs(folder.path(), 3) {
        let rows = lines("SELECT after.changedat FROM shop.item ORDER BY after.id", &[input]);
        assert_eq!(rows, ["2020-01-02 03:04:05", "2020-01-02 03:05:41", "never"]);
    }
}

#[test]
fn an_export_has_one_column_where_a_name_changed_in_case() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("binlog.000001"), folder.path().join("lake"));
    for (run, version) in (1..).zip(&versions()[..2]) {
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        log.behind_gno(run - 1).transaction_of(&insert(version));
        fs::write(&path, log.bytes()).unwrap();
        export(&to, &["--partition", "none"], std::slice::from_ref(&path)).ok();
    }
    let types = |path: &PathBuf| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        reader.schema().field_with_name("after").unwrap().data_type().to_string()
    };
    let types: Vec<_> = files(&to.join("shop")).iter().map(types).collect();
    assert_eq!(types.len(), 2);
    for column in ["\"id\": Int32", "\"changedAt\": Timestamp(µs)", "\"n\": Utf8", "\"v\": Utf8"] {
        assert!(types[1].contains(column), "{column}: {types:?}");
    }
    assert_eq!(types[1].matches("\": ").count(), 4, "{types:?}");
}

#[test]
fn tables_of_a_database_called_binlog_are_told_from_those_of_all_logs() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let [version, ..] = versions();
    log.transaction_of(&insert_into("binlog", "transactions", &version));
    log.transaction_of(&insert_into("binlog", "t", &version));
    let path = folder.path().join("binlog.000001");
    fs::write(&path, log.bytes()).unwrap();
    let archive = folder.path().join("archive");
    archive_of(std::slice::from_ref(&path), &archive);
    for input in [path, archive] {
        let input = [input];
        for table in ["transactions", "t"] {
            let rows = lines(&format!("SELECT after.id FROM \"binlog@database\".{table}"), &input);
            assert_eq!(rows, ["1"]);
        }
        assert_eq!(lines("SELECT count(*) FROM transactions", &input), ["2"]);
        assert_eq!(lines("SELECT count(*) FROM binlog.changes", &input), ["2"]);
        let view = "CREATE VIEW v AS SELECT 5 AS a; SELECT a FROM binlog.v";
        assert_eq!(ask(view, &input).ok(), "a\n5\n");
        let failure = |statement: &str| ask(statement, &input).failure();
        assert_eq!(
            failure("SELECT count(*) FROM binlog.transactions"),
            "binlog.transactions: expected \"binlog@database\".transactions for the table of the database binlog; that of all logs is \
             the name alone"
        );
        assert_eq!(
            failure("SELECT count(*) FROM (SELECT * FROM binlog.t)"),
            "binlog.t: expected \"binlog@database\".t for the table of the database binlog"
        );
        let tables = lines("SELECT table_schema, table_name FROM information_schema.tables", &input);
        assert!(tables.contains(&"binlog@database,transactions".to_owned()), "{tables:?}");
    }
    // Other logs have no such database.
    let log = std::slice::from_ref(&SHAPES.plain[1]);
    assert_eq!(lines("SELECT count(*) > 0 FROM binlog.transactions", log), ["true"]);
}
