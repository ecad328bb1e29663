//! `table-at --dump`: forward from mysqldump's text to a GTID, the table has the rows that it had then.

use std::fs::File;
use std::path::{Path, PathBuf};

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::table_at::{TABLES, last_gtid, number, rows};
use crate::workload::Workload;

/// mysqldump's dump of the workload's database.
fn dump(server: &MysqlSandbox, folder: &Folder, name: &str, options: &[&str]) -> Result<PathBuf> {
    let socket = format!("--socket={}", server.socket().display());
    let front = ["--no-defaults", "--user=root", &socket, "--single-transaction", "--hex-blob"];
    let dumped =
        server.installed().run("mysqldump", front.iter().chain(options).chain(&["--databases", "d"]))?;
    assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    Ok(folder.put(name, dumped.stdout))
}

#[test]
fn a_dump_goes_forward_to_any_gtid() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let seed = number("SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("SEED={seed}");
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let mut workload = Workload::new(seed);
    server.sql(&workload.begin("d"))?;
    let by_gtids = dump(&server, &folder, "gtids.sql", &[])?;
    let by_position = dump(&server, &folder, "position.sql", &["--set-gtid-purged=OFF", "--source-data=2"])?;
    let mut packed = Vec::with_capacity(1 << 20);
    zstd_safe::compress(&mut packed, &std::fs::read(by_position).unwrap(), 3).unwrap();
    let by_position = folder.put("position.sql.zst", &packed);
    let cut = folder.put("cut.zst", &packed[..packed.len() / 2]);
    let mut kept = Vec::new();
    for _ in 0..2 {
        // Changes that are rolled back after they were logged are refused: they are the round trip's.
        let changes = folder.put("changes.sql", workload.run_committed("d", 20));
        server.client().arg("--force").stdin(File::open(changes).unwrap()).output().unwrap();
        // DDL that leaves the tables alone.
        server.sql(
            "USE d; CREATE TABLE other (id INT PRIMARY KEY, t0 INT) PARTITION BY HASH (id) PARTITIONS 2; ALTER TABLE other ADD x INT;
             RENAME TABLE other TO another; CREATE VIEW v AS SELECT * FROM t0; DROP VIEW v; DROP TABLE another",
        )?;
        server.flush_binary_logs()?;
        let tables: Result<Vec<_>> =
            TABLES.iter().map(|table| rows(&server, &format!("d.{table}"))).collect();
        kept.push((last_gtid(&server)?, tables?));
    }
    server.sql("CREATE DATABASE scratch")?;
    let logs: Vec<PathBuf> = server.binlogs()?;
    let files: Vec<&str> = logs.iter().filter_map(|log| log.to_str()).collect();
    let run = |table: &str, at: &str, dump: &Path, files: &[&str]| -> Ran {
        let table = format!("d.{table}");
        let front = ["table-at", &table, "--at", at, "--dump", dump.to_str().unwrap()];
        folder.run(front.iter().chain(files))
    };
    for (number, (gtid, tables)) in kept.iter().enumerate() {
        for (place, (table, expected)) in TABLES.iter().zip(tables).enumerate() {
            // A run is a client and a server's work: each table at one of the moments, from one of the dumps.
            if place % 2 != number {
                continue;
            }
            let dump = if place < 2 { &by_gtids } else { &by_position };
            let script = run(table, gtid, dump, &files);
            assert_eq!((script.code, &*script.stderr), (Some(0), ""), "SEED={seed}: {table} at {gtid}");
            let path = folder.put("past.sql", &script.stdout);
            let ran = server.client().arg("scratch").stdin(File::open(path).unwrap()).output().unwrap();
            assert!(ran.status.success(), "SEED={seed}: {table}: {}", String::from_utf8_lossy(&ran.stderr));
            let now = rows(&server, &format!("scratch.{table}"))?;
            assert_eq!(now.len(), expected.len(), "SEED={seed}: {table} at {gtid}");
            for (now, expected) in now.iter().zip(expected) {
                assert_eq!(now, expected, "SEED={seed}: {table} at {gtid}");
            }
            server.sql("SET foreign_key_checks = 0; DROP DATABASE scratch; CREATE DATABASE scratch")?;
        }
    }

    let refused = |ran: Ran, code: i32, line: &str| {
        assert_eq!((ran.code, ran.text()), (Some(code), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(line), "{}: {line}", ran.stderr);
    };
    let (first, last) = (&kept[0].0, &kept[1].0);
    let later = dump(&server, &folder, "later.sql", &[])?;
    refused(run("t0", first, &later, &files), 1, "the dump is later than the moment: it has ");
    refused(run("t0", last, &by_gtids, &files[1..]), 2, "the logs begin after the dump: they lack ");
    refused(run("t0", last, &by_position, &files[1..]), 2, "which is not among the logs");
    refused(run("t0", last, &by_gtids, &files[..1]), 1, "this transaction is not in the logs");
    refused(run("t0", "2099-01-01 00:00:00", &by_gtids, &files), 2, "is in the future");
    refused(run("t2", last, &by_gtids, &files), 2, "d.t2 has no primary key, and no unique key");
    refused(run("t0", last, &cut, &files), 2, "cut.zst: the compressed file is cut off");
    refused(run("none", last, &by_gtids, &files), 2, "has no CREATE TABLE of d.none");
    let nowhere = dump(&server, &folder, "nowhere.sql", &["--set-gtid-purged=OFF"])?;
    refused(run("t0", last, &nowhere, &files), 2, "doesn't say where in the log it was made");
    refused(run("t0", last, Path::new("."), &files), 2, "dumps of MySQL Shell are not read");
    server.sql("ALTER TABLE d.t0 ADD more INT; INSERT INTO d.parent VALUES (999, 'x')")?;
    let line = "a statement changed the table, which can't be made again: ALTER TABLE";
    refused(run("t0", &last_gtid(&server)?, &by_gtids, &files), 2, line);
    Ok(())
}
