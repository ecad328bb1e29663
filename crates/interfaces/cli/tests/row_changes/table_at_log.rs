//! `table-at --format binlog`: the log, applied to empty tables, makes them what they were.

use std::fs::File;

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::Folder;
use crate::round_trip::{place_of, through_mysqlbinlog};
use crate::table_at::{TABLES, last_gtid, number, rows};
use crate::workload::Workload;

/// Types that the workload lacks, indexes over generated columns, an invisible column.
const OTHERS: &str = "USE d; CREATE TABLE d.others (id INT PRIMARY KEY, e ENUM('a','é') CHARACTER SET latin1, s SET('x','日') CHARACTER SET utf8mb4,
     w ENUM('q') CHARACTER SET utf16, f FLOAT(7,2), g DOUBLE(10,2), h DECIMAL(30,0) ZEROFILL, z INT ZEROFILL, wide CHAR(200), hidden INT
     INVISIBLE, up INT AS (z + 1) STORED, low INT AS (id * 2) VIRTUAL, poly POLYGON, doc JSON, UNIQUE KEY (up), KEY (low), KEY ((id + 7)));
     INSERT INTO d.others (id, e, s, w, f, g, h, z, wide, hidden, poly, doc) VALUES (1, 'é', 'x,日', 'q', 1.25, -2.5, 7, 42, REPEAT('日', 200),
     5, ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))'), '{\"bb\": 5000000000, \"a\": [-1, 70000, 1e3, {}]}'), (2, 'a', '', NULL, -0e0, -0e0,
     NULL, 43, '', NULL, NULL, NULL)";

fn hidden(server: &MysqlSandbox) -> Result<String> {
    server.sql(
        "USE d; SELECT id, HEX(e), e + 0, s + 0, HEX(w), f, g, h, z, SHA2(wide, 256), hidden, up, low, ST_AsText(poly), doc, JSON_TYPE(doc->'$.bb') \
         FROM d.others ORDER BY id; SELECT id FROM d.others FORCE INDEX (low) WHERE low = 4; SELECT id FROM d.others WHERE id + 7 = 9; \
         SELECT id FROM d.others FORCE INDEX (up) WHERE up = 43",
    )
}

#[test]
fn a_log_makes_tables_what_they_were() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let seed = number("SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("SEED={seed}");
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let mut workload = Workload::new(seed);
    server.sql(&workload.begin("d"))?;
    server.sql(OTHERS)?;
    let before: Vec<_> =
        TABLES.iter().map(|table| rows(&server, &format!("d.{table}"))).collect::<Result<_>>()?;
    let (others, moment) = (hidden(&server)?, last_gtid(&server)?);
    let changes = folder.put("changes.sql", workload.run("d", 20));
    server.client().arg("--force").stdin(File::open(changes).unwrap()).output().unwrap();
    server.sql("USE d; UPDATE d.others SET z = z + 100; INSERT INTO d.others (id) VALUES (3)")?;

    let place = place_of(&server);
    let connection = ["--no-defaults", "--user=root", "--server", &place];
    let options = ["table-at", "--at", &moment, "--format", "binlog", "--output", "past.binlog"];
    let tables: Vec<String> = TABLES.iter().chain(&["others"]).map(|table| format!("d.{table}")).collect();
    let written =
        folder.run(options.iter().chain(&connection).copied().chain(tables.iter().map(String::as_str)));
    assert_eq!((written.code, written.text(), &*written.stderr), (Some(0), "", ""), "SEED={seed}");
    folder.run(["verify", "past.binlog"]).is_done();
    for table in &tables {
        server.sql(&format!("USE d; SET foreign_key_checks = 0; TRUNCATE {table}"))?;
    }
    through_mysqlbinlog(&server, &folder.path("past.binlog"))?;
    for (table, before) in TABLES.iter().zip(&before) {
        let after = rows(&server, &format!("d.{table}"))?;
        assert!(!after.is_empty() || before.is_empty(), "SEED={seed}: {table}");
        for (after, before) in after.iter().zip(before) {
            assert_eq!(after, before, "SEED={seed}: {table}");
        }
        assert_eq!(after.len(), before.len(), "SEED={seed}: {table}");
    }
    assert_eq!(hidden(&server)?, others, "SEED={seed}");

    // The log tells names and members.
    let printed = folder.run(["dump", "--format", "jsonl", "past.binlog"]);
    printed.is_done();
    let rows: Vec<_> = printed.text().lines().filter(|line| line.contains("\"others\"")).collect();
    let parts = ["\"e\"", "\"é\"", "\"x\"", "\"日\"", "\"q\""];
    let is_told = rows.iter().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(is_told, "{rows:?}");
    let needs =
        folder.run(["table-at", "d.t0", "--at", &moment, "--format", "binlog"].iter().chain(&connection));
    assert_eq!(needs.code, Some(2));
    assert!(needs.stderr.contains("--format binlog needs --output"), "{}", needs.stderr);
    Ok(())
}
