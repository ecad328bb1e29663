//! Columns that an INSERT left out of its image: `undo` takes their constant defaults from the DDL of the logs, a schema file or a server, and
//! names what isn't known.
//!
//! `DEFAULTS_SEEDS` says how many seeds of random tables, `SEED=N` begins at N, `DEFAULTS_SERVER=8.0` takes MySQL 8.0.33.

use std::fs::File;
use std::path::PathBuf;

use binlogz_testkit::random::Random;
use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool, setting};

use crate::common::{Folder, Ran};
use crate::round_trip::{place_of, schema_of};
use crate::table_at::last_gtid;

const SEEDS: u64 = 12;

/// Types, and defaults as people write them. All are known.
const KNOWN: [(&str, &[&str]); 28] = [
    ("TINYINT", &["0", "-128", "'5'", "TRUE", "NULL"]),
    ("TINYINT UNSIGNED", &["255", "0"]),
    ("SMALLINT", &["-7", "32767"]),
    ("MEDIUMINT", &["-8388608", "1"]),
    ("INT", &["7", "-7", "'42'", "NULL"]),
    ("INT(6) UNSIGNED ZEROFILL", &["42"]),
    ("BIGINT UNSIGNED", &["18446744073709551615"]),
    ("BIGINT", &["-9223372036854775808"]),
    ("DECIMAL(8,2)", &["0", "1.50", "-99.99", "'12.3'"]),
    ("DECIMAL(30,12)", &["123456789012345678.000000000001", "-0.5"]),
    ("DOUBLE", &["0", "1.5", "-2.5e-3", "1e300"]),
    ("FLOAT", &["0"]),
    ("BIT(9)", &["b'101'", "257"]),
    ("YEAR", &["2026", "'1901'"]),
    ("DATE", &["'2026-11-28'", "'1000-01-01'"]),
    ("TIME", &["'10:20:30'", "'-838:59:59'"]),
    ("TIME(4)", &["'00:00:01.2500'", "'-00:00:00.5'"]),
    ("DATETIME", &["'2026-11-28 23:59:59'", "'2026-11-28'"]),
    ("DATETIME(3)", &["'2026-11-28 01:02:03.456'"]),
    ("ENUM('a','b','c')", &["'b'", "'c'"]),
    ("SET('x','y','z')", &["'x,z'", "''", "'y'"]),
    ("CHAR(6)", &["'abc'", "''", "'it''s'"]),
    ("VARCHAR(20)", &["'a\\\\b'", "'two  '", "''", "'\"'", "'line\\nend'"]),
    ("VARCHAR(20) CHARACTER SET latin1", &["'plain'"]),
    ("BINARY(6)", &["'ab'", "0x00FF", "''"]),
    ("VARBINARY(6)", &["0x00FF00", "'ab'"]),
    ("TEXT", &[]),
    ("JSON", &[]),
];
/// Defaults whose values the image has.
const LOGGED: [(&str, &str); 3] = [
    ("DATETIME(6)", "DEFAULT CURRENT_TIMESTAMP(6)"),
    ("INT", "DEFAULT (1 + 1)"),
    ("VARCHAR(36)", "DEFAULT (UUID())"),
];

/// A random table with its columns' names.
struct DefaultsTable {
    random: Random,
    definition: String,
    columns: Vec<String>,
    /// Columns, their types and defaults that an ALTER may set.
    settable: Vec<(String, &'static [&'static str])>,
}

impl DefaultsTable {
    fn new(mut random: Random) -> Self {
        let mut columns = Vec::new();
        let mut settable = Vec::new();
        let mut items = vec!["id INT PRIMARY KEY".to_owned(), "n INT".to_owned()];
        for _ in 0..3 + random.below(12) {
            let name = format!("c{}", columns.len());
            let definition = if random.below(12) == 0 {
                let (column, default) = LOGGED[random.below(LOGGED.len())];
                format!("{column} {default}")
            } else {
                let (column, defaults) = KNOWN[random.below(KNOWN.len())];
                let not_null = random.below(3) == 0 && column != "JSON";
                settable.push((name.clone(), defaults));
                let constants: Vec<&&str> =
                    defaults.iter().filter(|text| !not_null || **text != "NULL").collect();
                match random.below(5) {
                    _ if constants.is_empty() && not_null => format!("{column} NOT NULL"),
                    0 if not_null => format!("{column} NOT NULL"),
                    0 => column.to_owned(),
                    _ if constants.is_empty() => column.to_owned(),
                    _ => {
                        let default = constants[random.below(constants.len())];
                        let null = if not_null { "NOT NULL " } else { "" };
                        format!("{column} {null}DEFAULT {default} COMMENT 'DEFAULT 3'")
                    }
                }
            };
            items.push(format!("{name} {definition}"));
            columns.push(name);
        }
        DefaultsTable { random, definition: items.join(", "), columns, settable }
    }

    /// An ALTER of one column's default, if there is one that can be.
    fn alter(&mut self) -> String {
        let settable: Vec<_> = self.settable.iter().filter(|(_, defaults)| !defaults.is_empty()).collect();
        if settable.is_empty() {
            return String::new();
        }
        let (name, defaults) = settable[self.random.below(settable.len())];
        let default = defaults[self.random.below(defaults.len())];
        // Perhaps the column can't be NULL.
        let default = if default == "NULL" { "1" } else { default };
        match self.random.below(4) {
            0 => format!("ALTER TABLE t ALTER COLUMN {name} DROP DEFAULT;\n"),
            1 => format!("ALTER TABLE t ALTER {name} SET DEFAULT {default};\n"),
            2 => format!("ALTER TABLE t ALTER {name} SET DEFAULT {default}, ADD KEY k{name} (n);\n"),
            _ => "ALTER TABLE t ADD COLUMN added INT DEFAULT 11;\n".to_owned(),
        }
    }

    /// INSERTs that name some of the columns.
    fn inserts(&mut self, from: usize, count: usize) -> String {
        let mut sql = String::new();
        for id in from..from + count {
            let verb = ["INSERT", "INSERT IGNORE", "REPLACE"][self.random.below(3)];
            match self.random.below(4) {
                0 => sql += &format!("{verb} INTO t (id) VALUES ({id});\n"),
                1 => sql += &format!("{verb} INTO t (id, n) VALUES ({id}, {id}), ({}, NULL);\n", id + 1000),
                2 => {
                    let name = &self.columns[self.random.below(self.columns.len())];
                    sql += &format!("{verb} INTO t (id, {name}) VALUES ({id}, DEFAULT);\n");
                }
                _ => sql += &format!("INSERT INTO t (id) VALUES ({id}) ON DUPLICATE KEY UPDATE n = 5;\n"),
            }
        }
        sql
    }
}

/// What a query needs to compare all columns byte by byte.
fn columns(server: &MysqlSandbox) -> Result<String> {
    server.sql(
        "SELECT GROUP_CONCAT(CONCAT('HEX(', column_name, ')') ORDER BY ordinal_position) FROM information_schema.columns
         WHERE table_schema = 'w' AND table_name = 't'",
    )
}

fn rows(server: &MysqlSandbox, columns: &str) -> Result<String> {
    server.sql(&format!("SET time_zone = '+00:00'; SELECT {columns} FROM w.t ORDER BY id"))
}

/// Runs statements of which the server refuses some.
fn run(server: &MysqlSandbox, folder: &Folder, sql: &str) {
    let path = folder.put("changes.sql", format!("USE w; SET sql_mode = '';\n{sql}"));
    let ran = server.client().arg("--force").stdin(File::open(path).unwrap()).output().unwrap();
    assert!(ran.status.code().is_some(), "{}", String::from_utf8_lossy(&ran.stderr));
}

fn apply(server: &MysqlSandbox, folder: &Folder, script: &Ran) {
    let path = folder.put("script.sql", &script.stdout);
    let ran = server.client().stdin(File::open(path).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}\n{}", String::from_utf8_lossy(&ran.stderr), script.text());
}

/// Begins a log.
fn new_log(server: &MysqlSandbox) -> Result<PathBuf> {
    server.flush_binary_logs()?;
    Ok(server.binlogs()?.pop().unwrap())
}

/// The logs from one on, all of them closed.
fn logs_from(server: &MysqlSandbox, first: &PathBuf) -> Result<Vec<PathBuf>> {
    server.flush_binary_logs()?;
    let logs = server.binlogs()?;
    let begin = logs.iter().position(|log| log == first).unwrap();
    Ok(logs[begin..logs.len() - 1].to_vec())
}

/// Then foreign keys change rows below the log.
fn is_before_9_6() -> bool {
    std::env::var("DEFAULTS_SERVER").as_deref() == Ok("8.0")
}

#[test]
fn what_inserts_leave_out_comes_from_constant_defaults() -> Result<()> {
    let mysql = match is_before_9_6() {
        true => require_tool!(Tool::Mysql80),
        false => require_tool!(Tool::Mysql),
    };
    let server = mysql.sandbox().option("binlog_row_image", "MINIMAL").start()?;
    let (first, count) = (setting("SEED", 1), setting("DEFAULTS_SEEDS", SEEDS));
    let (mut equal, mut named) = (0, 0);
    for seed in first..first + count {
        println!("SEED={seed}");
        there_and_back(&server, seed, &mut equal, &mut named)?;
    }
    println!("{equal} equal, {named} named");
    // Only a default that ALTER changed after the rows may be unknown.
    assert!(equal >= 4 * named, "{equal} equal, {named} named");
    Ok(())
}

/// Rows of defaults are changed and deleted; each source of the defaults brings them back, or names what it doesn't know.
fn there_and_back(server: &MysqlSandbox, seed: u64, equal: &mut usize, named: &mut usize) -> Result<()> {
    let folder = Folder::new();
    let mut table = DefaultsTable::new(Random::new(seed));
    let metadata = ["FULL", "MINIMAL"][table.random.below(2)];
    let image = ["MINIMAL", "MINIMAL", "NOBLOB"][table.random.below(3)];
    server.sql(&format!("SET GLOBAL binlog_row_metadata = {metadata}, GLOBAL binlog_row_image = {image}"))?;
    let with_table = new_log(server)?;
    server.sql(&format!(
        "CREATE DATABASE w; USE w; SET sql_mode = ''; CREATE TABLE t ({})",
        table.definition
    ))?;
    let without_table = new_log(server)?;
    let mut changes = table.inserts(1, 4);
    let is_altered = table.random.below(2) == 0;
    if is_altered {
        changes += &table.alter();
        changes += &table.inserts(5, 4);
    }
    run(server, &folder, &changes);
    let kept = if is_altered { 5 } else { 1 };
    let columns = columns(server)?;
    let then = rows(server, &columns)?;
    let changed = ["UPDATE t SET n = 99", "DELETE FROM t"][table.random.below(2)];
    // Of rows from before the ALTER the images don't count.
    run(server, &folder, &format!("{changed} WHERE id BETWEEN {kept} AND 999;\n"));
    let gtids = format!("--gtids={}", last_gtid(server)?);
    let is_altered_later = table.random.below(4) == 0;
    if is_altered_later {
        run(server, &folder, &table.alter());
    }
    let schema = schema_of(server, &folder, "w")?;
    let (file, place) = (format!("--schema={}", schema.display()), format!("--schema={}", place_of(server)));
    let to_server = ["--user=root", "--no-defaults"];
    let (all, of_rows) = (logs_from(server, &with_table)?, logs_from(server, &without_table)?);
    let of_rows = &of_rows[..all.len() - 1];
    let sources: [(&str, &[PathBuf], Vec<&str>); 4] = [
        ("the DDL of the logs", &all, vec![]),
        ("a file", of_rows, vec![&file]),
        ("a file and the DDL", &all, vec![&file]),
        ("a server", of_rows, [&[&*place][..], &to_server].concat()),
    ];
    for (source, logs, options) in sources {
        // Without names the statements can't be written.
        if metadata == "MINIMAL" && options.is_empty() {
            continue;
        }
        let options = [&["undo", &*gtids][..], &options].concat();
        let ran = folder.run(options.iter().map(AsRef::as_ref).chain(logs.iter().map(|log| log.as_os_str())));
        let what =
            format!("SEED={seed}: {source}, {changed}, {}\n{}{}", table.definition, ran.stderr, ran.text());
        if ran.code == Some(1) {
            // The logs' DDL alone doesn't tell that no other table refers to this one.
            let is_doubtful = is_before_9_6() && options.len() == 2;
            if is_doubtful {
                assert!(
                    ran.text().contains("foreign keys may have changed the rest below the log"),
                    "{what}"
                );
                continue;
            }
            assert!(is_altered_later, "{what}");
            *named += 1;
            continue;
        }
        assert_eq!(ran.code, Some(0), "{what}");
        apply(server, &folder, &ran);
        assert_eq!(rows(server, &columns)?, then, "{what}");
        *equal += 1;
        run(server, &folder, &format!("{changed} WHERE id BETWEEN {kept} AND 999;\n"));
    }
    server.sql("DROP DATABASE w")?;
    Ok(())
}

/// A table whose default isn't known from all sources.
struct DoubtfulDefault {
    why: &'static str,
    column: &'static str,
    /// What stands between its CREATE TABLE and its rows, and after them.
    before: &'static str,
    after: &'static str,
    /// Its value as the table of now tells it, and that together with all DDL; `None`: it is named.
    of_now: Option<&'static str>,
    of_both: Option<&'static str>,
}

const DOUBTFUL: [DoubtfulDefault; 5] = [
    DoubtfulDefault {
        why: "six digits of it are shown",
        column: "d FLOAT DEFAULT 1.000001",
        before: "",
        after: "",
        of_now: None,
        of_both: None,
    },
    DoubtfulDefault {
        why: "a moment in the zone of a session",
        column: "d TIMESTAMP NULL DEFAULT '2026-01-02 03:04:05'",
        before: "",
        after: "",
        of_now: None,
        of_both: None,
    },
    DoubtfulDefault {
        why: "another character set",
        column: "d CHAR(4) CHARACTER SET latin1 DEFAULT 'é'",
        before: "",
        after: "",
        of_now: None,
        of_both: None,
    },
    DoubtfulDefault {
        why: "changed without a trace in the logs",
        column: "d INT DEFAULT 5",
        before: "SET sql_log_bin = 0; ALTER TABLE t ALTER d SET DEFAULT 7; SET sql_log_bin = 1",
        after: "",
        of_now: Some("7"),
        of_both: None,
    },
    DoubtfulDefault {
        why: "changed since",
        column: "d INT DEFAULT 5",
        before: "",
        after: "ALTER TABLE t ALTER d SET DEFAULT 7",
        of_now: None,
        of_both: Some("5"),
    },
];

#[test]
fn defaults_that_arent_known_are_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_image", "MINIMAL").start()?;
    let folder = Folder::new();
    let undo = |logs: &[PathBuf], gtid: &str, options: &[&str]| -> Ran {
        let options = [&["undo", "--table=w.t", "--gtids", gtid][..], options].concat();
        folder.run(options.iter().map(AsRef::as_ref).chain(logs.iter().map(|log| log.as_os_str())))
    };
    let place = place_of(&server);
    let at_server = ["--schema", &place, "--user=root", "--no-defaults"];
    for DoubtfulDefault { why, column, before, after, of_now, of_both } in DOUBTFUL {
        let with_table = new_log(&server)?;
        server.sql(&format!(
            "DROP DATABASE IF EXISTS w; CREATE DATABASE w; USE w; CREATE TABLE t (id INT PRIMARY KEY, {column}); {before}"
        ))?;
        let without_table = new_log(&server)?;
        server.sql("INSERT INTO w.t (id) VALUES (1); DELETE FROM w.t")?;
        let gtid = last_gtid(&server)?;
        let of_rows = logs_from(&server, &without_table)?;
        server.sql(&format!("USE w; {after}"))?;
        let since = logs_from(&server, &without_table)?;
        let schema = schema_of(&server, &folder, "w")?.display().to_string();
        is_named_or(&undo(&of_rows, &gtid, &at_server), of_now, &format!("{why}: a server"));
        is_named_or(&undo(&since, &gtid, &["--schema", &schema]), of_now, &format!("{why}: a file"));
        let all = logs_from(&server, &with_table)?;
        is_named_or(&undo(&all, &gtid, &at_server), of_both, &format!("{why}: a server and the DDL"));
        is_named_or(
            &undo(&all, &gtid, &["--schema", &schema]),
            of_both,
            &format!("{why}: a file and the DDL"),
        );
    }

    // The server's logs that could tell of an ALTER since are gone.
    server.sql("DROP DATABASE IF EXISTS w; CREATE DATABASE w; USE w; CREATE TABLE t (id INT PRIMARY KEY, d INT DEFAULT 5)")?;
    let first = new_log(&server)?;
    server.sql("INSERT INTO w.t (id) VALUES (1); DELETE FROM w.t")?;
    let gtid = last_gtid(&server)?;
    let logs = logs_from(&server, &first)?;
    let copy = folder.put("copy.000001", std::fs::read(&logs[0]).unwrap());
    let known = undo(std::slice::from_ref(&copy), &gtid, &at_server);
    assert_eq!(known.code, Some(0), "{}", known.text());
    assert!(known.text().contains("(`id`, `d`) VALUES (1, 5)"), "{}", known.text());
    server.sql("ALTER TABLE w.t ALTER d SET DEFAULT 7")?;
    let last = new_log(&server)?;
    server.sql(&format!("PURGE BINARY LOGS TO '{}'", last.file_name().unwrap().display()))?;
    let ran = undo(std::slice::from_ref(&copy), &gtid, &at_server);
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    assert!(!ran.text().contains("INSERT INTO"), "{}", ran.text());
    Ok(())
}

/// The default is this one, or else it is named.
fn is_named_or(ran: &Ran, value: Option<&str>, what: &str) {
    let text = ran.text();
    match value {
        Some(value) => {
            assert_eq!(ran.code, Some(0), "{what}: {}{text}", ran.stderr);
            assert!(text.contains(&format!("(`id`, `d`) VALUES (1, {value})")), "{what}: {text}");
        }
        None => {
            assert_eq!(ran.code, Some(1), "{what}: {text}");
            assert!(text.contains("the logged image lacks d "), "{what}: {text}");
            assert!(
                text.contains("its INSERT left the rest to defaults, which neither the logs"),
                "{what}: {text}"
            );
            assert!(!text.contains("INSERT INTO"), "{what}: {text}");
        }
    }
}
