//! Rows of tables as they were, by their keys: an answer that reads few parts of an archive is that of the whole table.
//!
//! The server has purged the logs, so the changes after a moment are in the archive alone. `SEED=N` repeats a run, `BINLOGZ_MOMENTS` says how
//! many moments are asked for.

use std::path::{Path, PathBuf};

use binlogz_testkit::random::Random;
use binlogz_testkit::{InstalledTool, MysqlSandbox, Result, Tool, mutate, require_tool, setting};

use crate::common::{Ran, archive_of, sql};
use crate::pushdown::metric;

/// The tables: name, columns, and what a statement makes of a key so that the archive isn't asked for it.
const TABLES: [KeyedTable; 5] = [
    KeyedTable { name: "orders", columns: "id INT PRIMARY KEY, v VARCHAR(20)", key: "id", hidden: "abs(id)" },
    KeyedTable {
        name: "pairs",
        columns: "part VARCHAR(10), id BIGINT UNSIGNED, v VARCHAR(20), PRIMARY KEY (id, part)",
        key: "id",
        hidden: "abs(CAST(id AS BIGINT))",
    },
    KeyedTable {
        name: "later",
        columns: "v VARCHAR(20), id SMALLINT NOT NULL, PRIMARY KEY (id)",
        key: "id",
        hidden: "abs(id)",
    },
    KeyedTable {
        name: "names",
        columns: "name VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, v VARCHAR(20)",
        key: "name",
        hidden: "reverse(reverse(name))",
    },
    KeyedTable {
        name: "codes",
        columns: "name CHAR(9) CHARACTER SET latin1 COLLATE latin1_bin PRIMARY KEY, v VARCHAR(20)",
        key: "name",
        hidden: "reverse(reverse(name))",
    },
];

struct KeyedTable {
    name: &'static str,
    columns: &'static str,
    key: &'static str,
    hidden: &'static str,
}

/// Tables that are asked for at each moment.
const TABLES_ASKED: usize = 2;

/// Keys that differ only in case, or in an accent, among them.
const NAMES: [&str; 8] = ["a", "A", "á", "b", "bb", "Ö", "o", "0x61"];

impl KeyedTable {
    fn is_named(&self) -> bool {
        self.key == "name"
    }

    /// A key as SQL.
    fn random_key(&self, random: &mut Random) -> String {
        match self.is_named() {
            true => format!("'{}'", NAMES[random.below(NAMES.len())]),
            false => (random.below(40) + 1).to_string(),
        }
    }

    fn change(&self, random: &mut Random) -> String {
        let KeyedTable { name, key, .. } = self;
        let [one, other] = [0; 2].map(|_| self.random_key(random));
        let number = random.below(1_000_000);
        let (part, value) = match self.name {
            "pairs" => (", part", format!(", '{}'", ["x", "Y"][random.below(2)])),
            _ => ("", String::new()),
        };
        match random.below(6) {
            0 => format!("DELETE FROM {name} WHERE {key} = {one}"),
            1 => format!("UPDATE {name} SET v = '{number}' WHERE {key} = {one}"),
            2 => format!("UPDATE IGNORE {name} SET {key} = {one} WHERE {key} = {other}"),
            3 => format!("INSERT IGNORE INTO {name} ({key}{part}, v) VALUES ({one}{value}, '{number}')"),
            _ => format!("REPLACE INTO {name} ({key}{part}, v) VALUES ({one}{value}, '{number}')"),
        }
    }
}

/// Random transactions, and after some of them the moment: the GTIDs, the time.
fn workload(random: &mut Random, transactions: usize) -> String {
    let mut script =
        "USE shop; SET NAMES utf8mb4; SET time_zone = '+00:00'; SET cte_max_recursion_depth = 9999;"
            .to_owned();
    for number in 0..transactions {
        script.push_str("BEGIN;");
        for _ in 0..=random.below(3) {
            script += &TABLES[random.below(TABLES.len())].change(random);
            script.push(';');
        }
        // So that there are many parts.
        script +=
            &format!("INSERT INTO filler (t) VALUES (TO_BASE64(RANDOM_BYTES(900))), ('{number}'); COMMIT;");
        if number % (transactions / 4) == 3 {
            script.push_str("SELECT CONCAT(@@GLOBAL.gtid_executed, ' ', NOW(6)); DO SLEEP(0.01);");
        }
    }
    script
}

/// Some of the moments that a script has told, each in one of the ways in which it is asked for.
fn moments(told: &str, count: usize, random: &mut Random) -> Vec<String> {
    let told: Vec<_> = told.lines().filter_map(|line| line.split_once(' ')).collect();
    let chosen = (0..count).map(|_| {
        let (gtids, time) = told[random.below(told.len())];
        let (uuid, numbers) = gtids.split_once(':').unwrap();
        let last = numbers.rsplit(['-', ':']).next().unwrap();
        [gtids.to_owned(), format!("{uuid}:{last}"), time.to_owned()][random.below(3)].clone()
    });
    chosen.collect()
}

/// Statements with the server as base, over an archive.
fn ask(server: &MysqlSandbox, statements: &[String], archive: &Path) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.sql");
    std::fs::write(&script, statements.join(";\n")).unwrap();
    let place = format!("root@{}", server.socket().display());
    let mut command = sql(["--format", "csv", "--base", &place, "-f"]);
    command.args([&script, archive]).output().unwrap().into()
}

/// Copies the logs that are over, and has the server purge them.
fn take_logs(server: &MysqlSandbox, folder: &Path) -> Result<Vec<PathBuf>> {
    server.flush_binary_logs()?;
    let own = server.position()?.0;
    for log in server.binlogs()? {
        let name = log.file_name().unwrap();
        if name != own.as_str() {
            std::fs::copy(&log, folder.join(name)).unwrap();
        }
    }
    server.sql(&format!("PURGE BINARY LOGS TO '{own}'"))?;
    let mut copies: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    copies.sort();
    Ok(copies)
}

/// Statements by key, and the same of which the base isn't told the key.
fn statements(moments: &[String], random: &mut Random) -> [Vec<String>; 2] {
    let mut by_key = Vec::new();
    let mut whole = Vec::new();
    for moment in moments {
        for _ in 0..TABLES_ASKED {
            let table = &TABLES[random.below(TABLES.len())];
            let KeyedTable { name, key, hidden, .. } = table;
            let keys = [0; 3].map(|_| table.random_key(random));
            let more = match *name {
                "pairs" => ["AND part = 'x'", "AND reverse(part) = 'x'"],
                _ => [""; 2],
            };
            for (condition, is_one) in
                [(format!("= {}", keys[0]), true), (format!("IN ({})", keys.join(", ")), false)]
            {
                let more = if is_one { more } else { [""; 2] };
                for (statements, key, more) in [(&mut by_key, key, more[0]), (&mut whole, hidden, more[1])] {
                    statements.push(format!(
                        "SELECT * FROM shop.{name} AS OF '{moment}' WHERE {key} {condition} {more} ORDER BY {key}, v"
                    ));
                }
            }
        }
    }
    [by_key, whole]
}

#[test]
fn rows_by_key_are_those_of_the_whole_table() -> Result<()> {
    compare_rows(require_tool!(Tool::Mysql), 1)
}

#[test]
#[ignore = "takes minutes: scripts/soak/sql-as-of.sh runs it"]
fn rows_by_key_at_random_moments_are_those_of_the_whole_table() -> Result<()> {
    compare_rows(require_tool!(Tool::Mysql), setting("BINLOGZ_MOMENTS", 8))
}

fn compare_rows(mysql: &'static InstalledTool, count: usize) -> Result<()> {
    let seed = mutate::seed();
    let mut random = Random::new(seed);
    let metadata = ["MINIMAL", "FULL"][random.below(2)];
    let what = format!("SEED={seed} {metadata}");
    let server = mysql.sandbox().option("binlog-row-metadata", metadata).start()?;
    let mut script = "CREATE DATABASE shop; USE shop; CREATE TABLE filler (id INT PRIMARY KEY AUTO_INCREMENT, t TEXT); CREATE TABLE apart (id INT \
                      PRIMARY KEY, v INT);"
        .to_owned();
    for KeyedTable { name, columns, .. } in &TABLES {
        script += &format!("CREATE TABLE {name} ({columns});");
    }
    server.sql(&script)?;
    server.flush_binary_logs()?;
    let mut noted = server.sql(&workload(&mut random, 300))?;
    let folder = tempfile::tempdir().unwrap();
    let logs = take_logs(&server, folder.path())?;
    let archives = tempfile::tempdir().unwrap();
    let first = archives.path().join("first");
    archive_of(&logs, &first);
    let told = moments(&noted, count, &mut random);
    compare(&server, &first, &told, &mut random, &what)?;
    few_blocks_are_read(&server, &first, &noted, &what);
    sets_that_never_were_are_refused(&server, &first, &noted, &what);
    // A table may have been altered since, and a transaction prepared in a part that has no wanted row.
    server.sql(
        "USE shop; ALTER TABLE pairs ADD COLUMN early INT DEFAULT 5 FIRST; XA START 'x'; INSERT INTO apart VALUES (1, 1); XA END 'x'; XA PREPARE 'x'",
    )?;
    noted += &server.sql(&workload(&mut random, 40))?;
    server.sql("XA COMMIT 'x'")?;
    noted += &server.sql(&workload(&mut random, 20))?;
    let logs = take_logs(&server, folder.path())?;
    let all = archives.path().join("all");
    archive_of(&logs, &all);
    let told = moments(&noted, count, &mut random);
    compare(&server, &all, &told, &mut random, &format!("{what}, altered"))?;
    for moment in &told {
        let [by_key, whole] = ["id", "abs(id)"].map(|key| {
            ask(&server, &[format!("SELECT * FROM shop.apart AS OF '{moment}' WHERE {key} = 1")], &all)
        });
        assert_eq!(
            (by_key.code, by_key.out, by_key.error),
            (whole.code, whole.out, whole.error),
            "{what} {moment}"
        );
    }
    Ok(())
}

fn compare(
    server: &MysqlSandbox,
    archive: &Path,
    moments: &[String],
    random: &mut Random,
    what: &str,
) -> Result<()> {
    let [by_key, whole] = statements(moments, random);
    let [told, expected] = [&by_key, &whole].map(|statements| ask(server, statements, archive).ok());
    assert_eq!(told, expected, "{what} {by_key:#?}");
    Ok(())
}

/// A key that no row ever had is in no part; one that a row had is in few.
fn few_blocks_are_read(server: &MysqlSandbox, archive: &Path, noted: &str, what: &str) {
    // All of it took a second or two, and of a time only the second tells which parts come before it.
    let (moment, _) = noted.lines().find_map(|line| line.split_once(' ')).unwrap();
    for (table, condition, blocks_max) in [
        ("orders", "id = 1000", 0),
        ("pairs", "id IN (1000, 2000)", 0),
        ("names", "name = 'nobody'", 0),
        ("orders", "id = 7", 14),
    ] {
        let explained =
            format!("EXPLAIN ANALYZE SELECT * FROM shop.{table} AS OF '{moment}' WHERE {condition}");
        let explained = ask(server, &[explained], archive).ok();
        let [read, skipped] = ["blocks_read", "blocks_skipped"].map(|name| metric(&explained, name));
        assert!(read <= blocks_max && skipped > 20, "{what} {moment} {condition}: {explained}");
    }
}

/// Of a set of transactions with a gap the server never had just these, which the part tells that has the gap, though it isn't read for a row.
fn sets_that_never_were_are_refused(server: &MysqlSandbox, archive: &Path, noted: &str, what: &str) {
    let (gtids, _) = noted.lines().find_map(|line| line.split_once(' ')).unwrap();
    let (uuid, numbers) = gtids.split_once(':').unwrap();
    let last: u64 = numbers.rsplit(['-', ':']).next().unwrap().parse().unwrap();
    for (next, is_one) in [(last + 1, true), (last + 2, false), (last + 60, false)] {
        let moment = format!("{uuid}:1-{last}:{next}");
        let ran =
            ask(server, &[format!("SELECT * FROM shop.orders AS OF '{moment}' WHERE id = 1000")], archive);
        assert_eq!(ran.code, Some(if is_one { 0 } else { 2 }), "{what} {moment}: {}", ran.error);
        assert_eq!(ran.error.contains("the server never had just these"), !is_one, "{what} {}", ran.error);
    }
}
