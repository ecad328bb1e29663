//! Logs of a real MariaDB come back byte for byte: its GTID events, annotated rows, and events that it compressed.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlogz_archive::create::{self, CreateOutcome};
use binlogz_archive::format::Manifest;
use binlogz_archive::storage::ArchiveFolder;
use binlogz_archive::{check, restore};
use binlogz_testkit::{MariadbSandbox, Result, Tool, require_tool};

const STATEMENTS: &str = "\
CREATE DATABASE m; USE m;
CREATE TABLE t (a INT PRIMARY KEY, b DECIMAL(20,5), d DATETIME(6), v VARCHAR(300), x TEXT);
INSERT INTO t VALUES (1, 2.5, '2020-01-02 03:04:05.123456', 'one', REPEAT('long ', 500)), (2, NULL, NULL, 'two', NULL);
UPDATE t SET b = 7, x = REPEAT('other ', 400);
SET binlog_format = STATEMENT; INSERT INTO t (a, x) VALUES (3, 'long enough to be compressed'); SET binlog_format = ROW;
DELETE FROM t WHERE a < 3;
FLUSH LOGS;";

/// Types of the events of a log, as far as they can be followed.
fn types(log: &[u8]) -> BTreeSet<u8> {
    let mut types = BTreeSet::new();
    let mut at = 4;
    while let Some(header) = log.get(at..at + 19) {
        types.insert(header[4]);
        at += u32::from_le_bytes([header[9], header[10], header[11], header[12]]) as usize;
    }
    types
}

#[test]
fn logs_of_mariadb_come_back() -> Result<()> {
    require_tool!(Tool::Mariadb);
    for checksum in ["CRC32", "NONE"] {
        let server = MariadbSandbox::start(&[
            ("binlog-format", "ROW"),
            ("binlog-checksum", checksum),
            ("binlog-annotate-row-events", "ON"),
        ])?;
        server.sql(STATEMENTS)?;
        server.sql(&format!(
            "SET GLOBAL log_bin_compress = ON; SET GLOBAL log_bin_compress_min_len = 10; DROP DATABASE m; FLUSH LOGS; {STATEMENTS}"
        ))?;
        let dir = tempfile::tempdir().expect("a folder");
        let archive = ArchiveFolder::new(dir.path());
        let mut seen = BTreeSet::new();
        for path in server.binlogs()? {
            let log = std::fs::read(&path).expect("a log");
            let name = path.file_name().expect("a name").to_string_lossy();
            let CreateOutcome::Added(entry) =
                create::add(&archive, &name, Arc::new(log.clone()), 1).expect("packed")
            else {
                panic!("{name} is new");
            };
            let mut back = Vec::new();
            restore::whole(&archive, &entry, &mut back, 1).expect("restored");
            assert!(back == log, "{name} with checksum {checksum}");
            println!("{name}: {} -> {}, checksum {checksum}", entry.size, entry.packed_size);
            seen.extend(types(&log));
        }
        // Annotated rows, GTID, GTID list; QUERY and rows compressed.
        let wanted: BTreeSet<u8> = [160, 162, 163, 165, 166, 167, 168].into();
        assert!(wanted.is_subset(&seen), "{seen:?}");
        let manifest = Manifest::read(&archive).expect("a manifest").expect("one");
        assert_eq!(check::check(&archive, &manifest, 1).expect("checked"), Vec::<String>::new());
    }
    Ok(())
}
