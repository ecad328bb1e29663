//! Files of an export as pyiceberg's `add_files` takes them: no row is lost, each file is in its day, and what is read is what SQL has.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use binlogz_testkit::builder::{LogBuilder, Release};
use binlogz_testkit::{Tool, require_tool};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{SHAPES, schema, sql};
use crate::export::{export, files, told};
use crate::types::{Version, insert};

/// A vector of two numbers; then another column beside it.
fn versions() -> [Version; 2] {
    let (long, vector, short) = (3, 242, 2);
    let row = |id: u32, more: &[u8]| {
        let numbers = [1.5f32.to_le_bytes(), (-2.0f32).to_le_bytes()].concat();
        [&[0][..], &id.to_le_bytes(), &8u32.to_le_bytes(), &numbers, more].concat()
    };
    [
        Version { types: vec![long, vector], metadata: vec![4], names: vec!["id", "v"], row: row(1, &[]) },
        Version {
            types: vec![long, vector, short],
            metadata: vec![4],
            names: vec!["id", "v", "n"],
            row: row(2, &7i16.to_le_bytes()),
        },
    ]
}

#[test]
fn add_files_takes_all_files_of_a_table() -> binlogz_testkit::Result<()> {
    let python = require_tool!(Tool::FlightSql);
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("lake");
    let mut vector_logs = Vec::new();
    for log in [&SHAPES.plain[..5], &SHAPES.plain[5..]] {
        told(export(&to, &[], log));
    }
    for (run, version) in (0..).zip(&versions()) {
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        log.behind_gno(run).transaction_of(&insert(version));
        let path = folder.path().join(format!("vectors.00000{}", run + 1));
        fs::write(&path, log.bytes()).unwrap();
        told(export(&to, &[], std::slice::from_ref(&path)));
        vector_logs.push(path);
    }
    // The name of a list's member in a file doesn't change the type of its column.
    let vectors = files(&to.join("shop/item"));
    let types: Vec<_> = vectors.iter().map(after).collect();
    assert!(
        types.len() == 2 && types.iter().all(|one| one.contains("List(Float32, field: 'element')")),
        "{types:?}"
    );

    let mut command = python.command("python");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql/iceberg.py")).arg(folder.path());
    let tables = [
        ("employees/titles", "employees.titles", &SHAPES.plain),
        ("mix/strings", "mix.strings", &SHAPES.plain),
        ("shop/item", "shop.item", &vector_logs),
    ];
    for (number, (data_set, target, logs)) in tables.into_iter().enumerate() {
        let expected = folder.path().join(format!("expected{number}.parquet"));
        let mut ask = sql(["--format", "parquet", "--schema"]);
        ask.arg(schema()).arg(format!("SELECT * EXCLUDE (ending) FROM {target}")).args(logs);
        let ran = ask.stdout(File::create(&expected).unwrap()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{target}: {said}");
        command.arg(to.join(data_set)).arg(expected);
    }
    let ran = command.output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{errors}");
    Ok(())
}

/// The type of the images in a file.
fn after(path: &PathBuf) -> String {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.schema().field_with_name("after").unwrap().data_type().to_string()
}
