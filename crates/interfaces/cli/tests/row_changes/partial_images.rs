//! Rows whose images lack columns: `undo` and `rows` take these from the rows' earlier images in the logs, and name what can't be known.
//!
//! `PARTIAL_IMAGES_SEEDS` says how many seeds of random changes, `SEED=N` begins at N.

use std::fs::File;
use std::path::PathBuf;

use binlogz_testkit::random::Random;
use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool, setting};

use crate::common::{Folder, Ran};
use crate::round_trip::{place_of, schema_of, through_mysqlbinlog};
use crate::table_at::last_gtid;

const SEEDS: u64 = 4;
const TRANSACTIONS: usize = 40;
/// Tables with keys of several sorts, children among them, generated columns, and triggers that change what is written.
const TABLES: &str = "
    CREATE TABLE k (id INT PRIMARY KEY, n INT DEFAULT 7, v VARCHAR(40) DEFAULT 'it''s', t TEXT, b BLOB, j JSON, d DECIMAL(8,2) DEFAULT 1.5,
        e ENUM('a','b','c') DEFAULT 'b', at DATETIME(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), f DOUBLE DEFAULT 2.5,
        x BINARY(4) DEFAULT 'ab');
    CREATE TABLE u (a INT NOT NULL, c VARCHAR(10) NOT NULL, n INT DEFAULT -1, t TEXT, j JSON, UNIQUE KEY (a, c));
    CREATE TABLE g (id VARCHAR(10) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, n INT, t MEDIUMTEXT, s INT AS (n + 1) STORED, w INT AS (n * 2),
        r INT);
    CREATE TRIGGER gi BEFORE INSERT ON g FOR EACH ROW SET NEW.r = NEW.n + 1000;
    CREATE TRIGGER gu BEFORE UPDATE ON g FOR EACH ROW SET NEW.r = NEW.n + 2000;
    CREATE TABLE p (id INT PRIMARY KEY, t TEXT, n INT);
    CREATE TABLE c (id INT PRIMARY KEY, p INT, q INT, t TEXT, n INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE,
        FOREIGN KEY (q) REFERENCES p (id) ON DELETE CASCADE ON UPDATE SET NULL);
    CREATE TABLE n (a INT, t TEXT, j JSON);";
const QUERIES: [(&str, &str); 6] = [
    ("k", "SELECT id, n, v, t, HEX(b), j, d, e, at, f, HEX(x) FROM k ORDER BY id"),
    ("u", "SELECT a, c, n, t, j FROM u ORDER BY a, c"),
    ("g", "SELECT id, n, t, s, w, r FROM g ORDER BY id"),
    ("p", "SELECT id, t, n FROM p ORDER BY id"),
    ("c", "SELECT id, p, q, t, n FROM c ORDER BY id"),
    ("n", "SELECT a, t, j FROM n ORDER BY a, t, CAST(j AS CHAR)"),
];

/// The rows of all tables.
fn rows(server: &MysqlSandbox) -> Result<Vec<(&'static str, String)>> {
    QUERIES.iter().map(|(table, query)| Ok((*table, server.sql(&format!("USE w; {query}"))?))).collect()
}

/// Transactions of random changes.
struct PartialWorkload {
    random: Random,
    /// Whether INSERT leaves columns to their defaults.
    has_defaults: bool,
}

impl PartialWorkload {
    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.random.below(words.len())]
    }

    fn value(&mut self, column: &str) -> String {
        let number = self.random.below(1000);
        match column {
            "id" | "a" | "p" | "q" => (1 + self.random.below(9)).to_string(),
            "g.id" | "c" => {
                let word = self.one_of(&["'x'", "'X '", "'é'", "'y'", "'zz'"]);
                word.to_owned()
            }
            _ if self.random.below(8) == 0 => "NULL".into(),
            "n" => number.to_string(),
            "v" => self.one_of(&["''", "'it''s'", "'日本'", "'a\\\\'"]).to_owned(),
            "t" => format!("REPEAT('text {number} ', {})", 1 + self.random.below(40)),
            "b" => format!("UNHEX(REPEAT('{number:04}00', {}))", self.random.below(20)),
            "j" => format!(
                "'{{\"a\": {number}, \"list\": [1, 2.5, \"{number}\"], \"o\": {{\"k\": null}}, \"pad\": \"{}\"}}'",
                "y".repeat(60)
            ),
            "d" => format!("{}.{:02}", self.random.below(99999), number % 100),
            "e" => self.one_of(&["'a'", "'b'", "'c'"]).to_owned(),
            "at" => format!("'2026-11-{:02} 10:00:00.{number:03}'", 1 + number % 28),
            "f" => self.one_of(&["-0e0", "0.1", "1e300", "7"]).to_owned(),
            "x" => self.one_of(&["X'00'", "X'41420000'", "X'20'"]).to_owned(),
            _ => panic!("{column}"),
        }
    }

    fn of(&mut self, table: &str, column: &str) -> String {
        let name = if table == "g" && column == "id" { "g.id" } else { column };
        self.value(name)
    }

    /// A table, its key, and its other columns.
    fn table(&mut self) -> (&'static str, &'static [&'static str], &'static [&'static str]) {
        match self.random.below(10) {
            0..=3 => ("k", &["id"], &["n", "v", "t", "b", "j", "d", "e", "at", "f", "x"]),
            4 | 5 => ("u", &["a", "c"], &["n", "t", "j"]),
            6 => ("g", &["id"], &["n", "t"]),
            7 => ("p", &["id"], &["t", "n"]),
            8 => ("c", &["id"], &["p", "q", "t", "n"]),
            _ => ("n", &[], &["a", "t", "j"]),
        }
    }

    fn set(&mut self, table: &str, columns: &[&str]) -> String {
        let sets: Vec<String> = (0..1 + self.random.below(2))
            .map(|_| {
                let column = columns[self.random.below(columns.len())];
                if column == "j" && self.random.below(3) > 0 {
                    let number = self.random.below(9);
                    let json = self.one_of(&[
                        "JSON_SET(j, '$.a', #)",
                        "JSON_REPLACE(j, '$.list[1]', 'new #')",
                        "JSON_REMOVE(j, '$.o')",
                        "JSON_SET(j, '$.o.k#', 1.5)",
                        "JSON_ARRAY_INSERT(j, '$.list[0]', CAST(#.5 AS DECIMAL(5,1)))",
                    ]);
                    return format!("j = {}", json.replace('#', &number.to_string()));
                }
                format!("{column} = {}", self.of(table, column))
            })
            .collect();
        sets.join(", ")
    }

    fn insert(&mut self, (table, key, others): (&str, &[&str], &[&str])) -> String {
        let mut columns: Vec<&str> = key.iter().chain(others).copied().collect();
        if self.has_defaults {
            let random = &mut self.random;
            columns.retain(|column| key.contains(column) || random.below(4) > 0);
        }
        let rows: Vec<String> = (0..1 + self.random.below(3))
            .map(|_| {
                let values: Vec<String> = columns.iter().map(|column| self.of(table, column)).collect();
                format!("({})", values.join(", "))
            })
            .collect();
        let (names, values) = (columns.join(", "), rows.join(", "));
        match self.random.below(4) {
            0 if table != "p" => format!("REPLACE INTO {table} ({names}) VALUES {values};\n"),
            1 => format!(
                "INSERT INTO {table} ({names}) VALUES {values} ON DUPLICATE KEY UPDATE {};\n",
                self.set(table, others)
            ),
            _ => format!("INSERT IGNORE INTO {table} ({names}) VALUES {values};\n"),
        }
    }

    fn change(&mut self) -> String {
        let own = self.table();
        self.change_of(own)
    }

    fn change_of(&mut self, own: (&str, &[&str], &[&str])) -> String {
        let (table, key, others) = own;
        let first = key.first().unwrap_or(&"a");
        let chosen = format!("{first} = {}", self.of(table, first));
        match self.random.below(10) {
            0..=3 => self.insert(own),
            4..=6 => format!("UPDATE IGNORE {table} SET {} WHERE {chosen};\n", self.set(table, others)),
            7 => format!(
                "UPDATE IGNORE {table} SET {first} = {}, {} WHERE {chosen};\n",
                self.of(table, first),
                self.set(table, others)
            ),
            8 => format!("UPDATE IGNORE {table} SET {} LIMIT 3;\n", self.set(table, others)),
            _ => format!("DELETE FROM {table} WHERE {chosen} LIMIT 2;\n"),
        }
    }

    fn transactions(&mut self, count: usize) -> String {
        let mut sql = "USE w;\n".to_owned();
        for _ in 0..count {
            let image = self.one_of(&["MINIMAL", "MINIMAL", "NOBLOB", "FULL"]);
            let json = self.one_of(&["", "PARTIAL_JSON"]);
            sql += &format!("SET binlog_row_image = {image}, binlog_row_value_options = '{json}';\nBEGIN;\n");
            for _ in 0..1 + self.random.below(4) {
                sql += &self.change();
            }
            sql += self.one_of(&["COMMIT;\n", "COMMIT;\n", "COMMIT;\n", "COMMIT;\n", "ROLLBACK;\n"]);
        }
        sql
    }
}

/// Runs statements of which the server refuses some.
fn run(server: &MysqlSandbox, folder: &Folder, sql: &str) {
    let path = folder.put("changes.sql", sql);
    let ran = server.client().arg("--force").stdin(File::open(path).unwrap()).output().unwrap();
    println!("{}", String::from_utf8_lossy(&ran.stderr).lines().count());
}

fn apply(server: &MysqlSandbox, folder: &Folder, script: &Ran) {
    let path = folder.put("script.sql", &script.stdout);
    let ran = server.client().stdin(File::open(path).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn what_images_lack_comes_from_earlier_ones() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let (first, count) = (setting("SEED", 1), setting("PARTIAL_IMAGES_SEEDS", SEEDS));
    let server = mysql.sandbox().start()?;
    for seed in first..first + count {
        println!("SEED={seed}");
        there_and_back(&server, seed)?;
    }
    Ok(())
}

/// From the end back to a GTID in the middle and forward again, in each form: the rows are the server's own.
fn there_and_back(server: &MysqlSandbox, seed: u64) -> Result<()> {
    let folder = Folder::new();
    let mut workload = PartialWorkload { random: Random::new(seed), has_defaults: seed.is_multiple_of(2) };
    let metadata = workload.one_of(&["FULL", "MINIMAL"]);
    let compression = workload.one_of(&["ON", "OFF"]);
    server.sql(&format!(
        "SET GLOBAL binlog_row_metadata = {metadata}, GLOBAL binlog_transaction_compression = {compression};
         CREATE DATABASE w; USE w;{TABLES}"
    ))?;
    let first = server.flush_binary_logs()?;
    let count = server.binlogs()?.iter().position(|log| *log == first).unwrap() + 1;
    run(server, &folder, &workload.transactions(TRANSACTIONS));
    if workload.random.below(2) == 0 {
        server.flush_binary_logs()?;
    }
    let (middle, then) = (last_gtid(server)?, rows(server)?);
    run(server, &folder, &workload.transactions(TRANSACTIONS));
    let (end, now) = (last_gtid(server)?, rows(server)?);
    // A script ends before it would run a trigger once more.
    server.sql("USE w; DROP TRIGGER gi; DROP TRIGGER gu")?;
    server.flush_binary_logs()?;
    let logs: Vec<PathBuf> = server.binlogs()?.split_off(count);
    let logs = &logs[..logs.len() - 1];
    let number = |gtid: &str| gtid.rsplit(':').next().unwrap().parse::<u64>().unwrap();
    let uuid = server.server_uuid()?;
    let gtids = format!("--gtids={uuid}:{}-{}", number(&middle) + 1, number(&end));
    let schema = schema_of(server, &folder, "w")?;
    let schema = format!("--schema={}", schema.display());
    let command = |options: &[&str]| {
        let logs = logs.iter().map(|log| log.as_os_str());
        folder.run(options.iter().map(AsRef::as_ref).chain(logs))
    };
    for (verb, state) in [("undo", &then), ("redo", &now)] {
        let script = command(&[verb, &gtids, &schema]);
        assert_eq!((script.code, &*script.stderr), (Some(0), ""), "SEED={seed} {verb}:\n{}", script.text());
        apply(server, &folder, &script);
        assert_eq!(&rows(server)?, state, "SEED={seed}: {verb} as a script");
    }
    // Without a key a row with a document that changed in part isn't found in this form.
    let keyed = ["k", "u", "g", "p", "c"].map(|table| format!("--table=w.{table}"));
    let keyed: Vec<&str> = keyed.iter().map(String::as_str).collect();
    let without = |rows: &[(&'static str, String)]| rows[..keyed.len()].to_vec();
    for (verb, state) in [("undo", &then), ("redo", &now)] {
        let options = [verb, &gtids, &schema, "--format", "binlog", "--output", verb, "--force"];
        let written = command(&[&options[..], &keyed].concat());
        assert_eq!((written.code, written.text()), (Some(0), ""), "SEED={seed} {verb}: {}", written.stderr);
        through_mysqlbinlog(server, &folder.path(verb))?;
        assert_eq!(without(&rows(server)?), without(state), "SEED={seed}: {verb} as a log");
    }
    for (verb, state) in [("undo", &then), ("redo", &now)] {
        let place = place_of(server);
        let options = [verb, &gtids, "--apply", &place, "--user=root", "--no-defaults", "--execute"];
        let applied = command(&[&options[..], &keyed].concat());
        // That a table had no rows in this seed is warned of.
        assert_eq!(applied.code, Some(0), "SEED={seed} {verb}: {}{}", applied.stderr, applied.text());
        assert_eq!(without(&rows(server)?), without(state), "SEED={seed}: {verb} applied");
    }
    server.sql("DROP DATABASE w")?;
    Ok(())
}

/// What stands between a row's earlier image and the change, and the words for it: nothing certain is known since then.
const BETWEEN: [(&str, &str); 8] = [
    ("ALTER TABLE t MODIFY a BIGINT", ": ALTER TABLE t MODIFY a BIGINT"),
    (
        "TRUNCATE t; SET sql_log_bin = 0; INSERT INTO t VALUES (1, 1, 'old', 5); SET sql_log_bin = 1",
        ": TRUNCATE t",
    ),
    (
        "SET binlog_format = STATEMENT; UPDATE t SET b = 'stated' WHERE id = 1",
        ": UPDATE t SET b = 'stated' WHERE id = 1",
    ),
    ("SET binlog_format = STATEMENT; UPDATE seen SET b = 'by view'", ": UPDATE seen SET b = 'by view'"),
    ("SET binlog_format = STATEMENT; INSERT INTO other VALUES (1)", ": INSERT INTO other VALUES (1)"),
    (
        "XA START 'x'; UPDATE t SET b = 'never' WHERE id = 1; XA END 'x'; XA PREPARE 'x'; XA ROLLBACK 'x'",
        "since a transaction that was rolled back",
    ),
    (
        "SET sql_log_bin = 0; UPDATE t SET a = 9; SET sql_log_bin = 1, binlog_row_image = NOBLOB; UPDATE t SET c = 2",
        "since an image that contradicts an earlier one",
    ),
    (
        "RENAME TABLE t TO away, other TO t; RENAME TABLE t TO other, away TO t",
        ": RENAME TABLE t TO other, away TO t",
    ),
];

#[test]
fn what_isnt_known_for_certain_is_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    let begin = "DROP DATABASE IF EXISTS w; CREATE DATABASE w; USE w; CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT, c INT DEFAULT 5);
                 CREATE TABLE other (a INT); CREATE VIEW seen AS SELECT * FROM t;";
    let undo = |logs: &[PathBuf]| -> Result<Ran> {
        let gtids = format!("--gtids={}", last_gtid(&server)?);
        let options = ["undo", &gtids].map(AsRef::as_ref);
        Ok(folder.run(options.into_iter().chain(logs.iter().map(|log| log.as_os_str()))))
    };
    let change = "SET SESSION binlog_row_image = MINIMAL; USE w; UPDATE t SET b = 'new' WHERE id = 1";
    let lacks = "UPDATE of a row in w.t: the logged image lacks b (binlog_row_image=FULL writes all columns); the row has `id` = 1; ";

    // Nothing in between: the column comes back, with all others compared.
    server.sql(begin)?;
    server.flush_binary_logs()?;
    server.sql("USE w; INSERT INTO t VALUES (1, 1, 'old', 5)")?;
    let earlier = server.flush_binary_logs()?;
    server.sql(change)?;
    let log = server.flush_binary_logs()?;
    let whole = undo(&[earlier, log.clone()])?;
    whole.is_done();
    let update = "UPDATE `w`.`t` SET `b` = 'old' WHERE `id` = 1 AND `a` = 1 AND CAST(`b` AS BINARY) = 'new' AND `c` = 5;";
    assert!(whole.text().contains(update), "{}", whole.text());

    // Its earlier image isn't in the given logs.
    let named = |ran: &Ran, why: &str, what: &str| {
        assert_eq!(ran.code, Some(1), "{what}: {}", ran.text());
        assert!(ran.text().contains(&format!("{lacks}{why}")), "{what}: {}", ran.text());
    };
    named(&undo(&[log])?, "no earlier image of the row in the given logs tells the rest", "one log");

    let rows = folder.put("rows.txt", "1\t1\tloaded\t5\n");
    let load = format!(
        "SET binlog_format = STATEMENT; LOAD DATA LOCAL INFILE '{}' REPLACE INTO TABLE t",
        rows.display()
    );
    for (between, since) in BETWEEN.into_iter().chain([(&*load, ": LOAD DATA ")]) {
        server.sql(begin)?;
        server.flush_binary_logs()?;
        let first = server.binlogs()?.len() - 1;
        server.sql("USE w; INSERT INTO t VALUES (1, 1, 'old', 5)")?;
        server.sql(&format!("USE w; {between}"))?;
        server.sql(change)?;
        server.flush_binary_logs()?;
        let logs = server.binlogs()?;
        let ran = undo(&logs[first..logs.len() - 1])?;
        assert!(ran.text().contains(since), "{between}: {}", ran.text());
        named(&ran, "its earlier images count no longer since ", between);
    }

    // Logs are missing in between, of which none was chosen.
    server.sql(begin)?;
    server.flush_binary_logs()?;
    server.sql("USE w; INSERT INTO t VALUES (1, 1, 'old', 5)")?;
    let earlier = server.flush_binary_logs()?;
    server.sql("USE w; UPDATE t SET b = 'missing'")?;
    server.flush_binary_logs()?;
    server.sql(change)?;
    let log = server.flush_binary_logs()?;
    named(&undo(&[earlier, log])?, "its earlier images count no longer since ", "a gap");

    // A default isn't in the log, if that lacks the CREATE TABLE.
    server.sql(begin)?;
    server.flush_binary_logs()?;
    server.sql("USE w; SET binlog_row_image = MINIMAL; INSERT INTO t (id, a, b) VALUES (1, 1, 'old'); UPDATE t SET c = 6")?;
    let log = server.flush_binary_logs()?;
    let ran = undo(&[log])?;
    let why = "UPDATE of a row in w.t: the logged image lacks c (binlog_row_image=FULL writes all columns); the row has `id` = 1; its INSERT \
               left the rest to defaults, which neither the logs nor a schema tell";
    assert!(ran.code == Some(1) && ran.text().contains(why), "{}", ran.text());
    Ok(())
}

/// The images of a table that fits the schema only by its history aren't followed: another table's row isn't taken for its row.
#[test]
fn a_row_is_never_rebuilt_from_another_tables_image() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_image", "MINIMAL").start()?;
    let folder = Folder::new();
    server.flush_binary_logs()?;
    let first = server.binlogs()?.len() - 1;
    let mut chosen = Vec::new();
    for (statement, is_chosen) in [
        (
            "CREATE DATABASE w; USE w; CREATE TABLE a (id INT PRIMARY KEY, v TEXT); CREATE TABLE b LIKE a",
            false,
        ),
        ("USE w; INSERT INTO a VALUES (1, 'old'); INSERT INTO b VALUES (7, 'its own')", false),
        ("UPDATE w.a SET v = 'new' WHERE id = 1", true),
        ("INSERT INTO w.a VALUES (2, 'nobody chose')", false),
        ("UPDATE w.b SET v = 'other' WHERE id = 7", true),
        ("ALTER TABLE w.b ADD c INT", false),
    ] {
        server.sql(statement)?;
        if is_chosen {
            chosen.push(last_gtid(&server)?);
        }
    }
    server.flush_binary_logs()?;
    let logs = server.binlogs()?;
    let (gtids, place) = (chosen.join(","), server.socket().display().to_string());
    let options =
        ["undo", "--no-defaults", "--user=root", "--gtids", &gtids, "--schema", &place].map(AsRef::as_ref);
    let ran =
        folder.run(options.into_iter().chain(logs[first..logs.len() - 1].iter().map(|log| log.as_os_str())));
    let text = ran.text();
    assert!(text.contains("UPDATE `w`.`a` SET `v` = 'old' WHERE `id` = 1"), "{text}");
    assert!(!text.contains("nobody chose"), "{text}");
    let has_b = text.contains("UPDATE `w`.`b` SET `v` = 'its own' WHERE `id` = 7");
    let names_b =
        text.contains("not undone: ") && text.contains(" of a row in w.b: the logged image lacks v");
    assert!(has_b && ran.code == Some(0) || names_b && ran.code == Some(1), "{:?} {text}", ran.code);
    Ok(())
}

#[test]
fn columns_that_foreign_keys_change_below_the_log_are_not_taken() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql
        .sandbox()
        .option("innodb_native_foreign_keys", "ON")
        .option("binlog_row_image", "MINIMAL")
        .start()?;
    let folder = Folder::new();
    server.sql(
        "CREATE DATABASE w; USE w; CREATE TABLE p (id INT PRIMARY KEY);
         CREATE TABLE c (id INT PRIMARY KEY, p INT, n INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE);
         CREATE TABLE m (p INT, n INT, v INT, PRIMARY KEY (p, n), FOREIGN KEY (p) REFERENCES p (id) ON UPDATE CASCADE)",
    )?;
    server.flush_binary_logs()?;
    server.sql(
        "USE w; INSERT INTO p VALUES (1), (2), (3); INSERT INTO c VALUES (1, 1, 10), (2, 2, 20); INSERT INTO m VALUES (3, 1, 1);
         UPDATE p SET id = 9 WHERE id = 1; UPDATE p SET id = 8 WHERE id = 3;
         UPDATE c SET n = 11 WHERE id = 1; DELETE FROM c WHERE id = 1; UPDATE m SET v = 2 WHERE p = 8",
    )?;
    let log = server.flush_binary_logs()?;
    let schema = schema_of(&server, &folder, "w")?;
    let options = ["undo".as_ref(), "--schema".as_ref(), schema.as_os_str()];
    let ran = folder.run(options.into_iter().chain([log.as_os_str()]));
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    // What no foreign key touches is known.
    let update = "UPDATE `w`.`c` SET `n` = 10 WHERE `id` = 1 AND `n` = 11;";
    let lacks = [
        "DELETE of a row in w.c: the logged image lacks p (binlog_row_image=FULL writes all columns); the row has `id` = 1; foreign keys",
        "UPDATE of a row in w.m: the logged image lacks v (binlog_row_image=FULL writes all columns); the row has `p` = 8, `n` = 1; ",
    ];
    for part in lacks.into_iter().chain([update]) {
        assert!(ran.text().contains(part), "{part}\n{}", ran.text());
    }

    // The key was dropped since, so the table of now doesn't have it.
    server.sql(
        "USE w; INSERT INTO p VALUES (50);
         CREATE TABLE d (id INT PRIMARY KEY, p INT, CONSTRAINT dropped FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL)",
    )?;
    server.flush_binary_logs()?;
    server.sql(
        "USE w; INSERT INTO d VALUES (1, 50); DELETE FROM p WHERE id = 50; DELETE FROM d WHERE id = 1;
         ALTER TABLE d DROP FOREIGN KEY dropped",
    )?;
    let log = server.flush_binary_logs()?;
    let schema = schema_of(&server, &folder, "w")?;
    let options = ["undo", "--table", "w.d", "--operation", "delete", "--schema"].map(AsRef::as_ref);
    let ran = folder.run(options.into_iter().chain([schema.as_os_str(), log.as_os_str()]));
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    assert!(ran.text().contains("DELETE of a row in w.d: the logged image lacks p"), "{}", ran.text());
    // A time of a commit may have these digits too.
    assert!(!ran.text().contains("= 50") && !ran.text().contains(", 50"), "{}", ran.text());
    Ok(())
}

const TWIN_SEEDS: u64 = 3;
const TWIN_STATEMENTS: usize = 60;
const K: (&str, &[&str], &[&str]) = ("k", &["id"], &["n", "v", "t", "b", "j", "d", "e", "at", "f", "x"]);
/// Conditions on columns that images lack.
const CONDITIONS: [&str; 6] = [
    "n > 500",
    "before.n < 300 AND id < 6",
    "after.d IS NULL OR before.e = 2",
    "id = 3 OR t LIKE 'text 1%'",
    "NOT (before.n <=> after.n)",
    "id IN (1, 2) AND d > 100",
];

/// The same changes, of one table with images that lack columns and of one with whole ones: what is shown of both is the same.
#[test]
fn rows_are_those_of_whole_images() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let first = setting("SEED", 1);
    let server = mysql.sandbox().start()?;
    for seed in first..first + setting("PARTIAL_IMAGES_SEEDS", TWIN_SEEDS) {
        println!("SEED={seed}");
        twins(&server, seed)?;
    }
    Ok(())
}

fn twins(server: &MysqlSandbox, seed: u64) -> Result<()> {
    let folder = Folder::new();
    let mut workload = PartialWorkload { random: Random::new(seed), has_defaults: seed.is_multiple_of(2) };
    let metadata = workload.one_of(&["FULL", "MINIMAL"]);
    let compression = workload.one_of(&["ON", "OFF"]);
    server.sql(&format!(
        "SET GLOBAL binlog_row_metadata = {metadata}, GLOBAL binlog_transaction_compression = {compression};
         CREATE DATABASE w; USE w;{TABLES} CREATE TABLE l LIKE k"
    ))?;
    let begin = server.flush_binary_logs()?;
    let count = server.binlogs()?.iter().position(|log| *log == begin).unwrap() + 1;
    let mut sql = "USE w;\n".to_owned();
    for number in 0..TWIN_STATEMENTS {
        let image = workload.one_of(&["MINIMAL", "MINIMAL", "NOBLOB", "FULL"]);
        let json = workload.one_of(&["", "PARTIAL_JSON"]);
        let statement = workload.change_of(K);
        let time = 1_795_000_000 + number;
        sql += &format!(
            "SET timestamp = {time}, binlog_row_image = {image}, binlog_row_value_options = '{json}';\n{statement}"
        );
        let whole = statement.replace(" k ", " l ");
        sql += &format!("SET binlog_row_image = FULL, binlog_row_value_options = '';\n{whole}");
    }
    run(server, &folder, &sql);
    server.flush_binary_logs()?;
    let logs = server.binlogs()?.split_off(count);
    let logs = &logs[..logs.len() - 1];
    let schema = format!("--schema={}", schema_of(server, &folder, "w")?.display());
    let command = |options: &[&str]| {
        let logs = logs.iter().map(|log| log.as_os_str());
        folder.run(options.iter().map(AsRef::as_ref).chain([schema.as_ref()]).chain(logs))
    };
    for condition in [None].into_iter().chain(CONDITIONS.map(Some)) {
        let what = format!("SEED={seed} {condition:?}");
        let condition = condition.map(|condition| format!("--where={condition}"));
        let options = |front: &[&'static str]| -> Vec<String> {
            front.iter().map(|option| (*option).to_owned()).chain(condition.clone()).collect()
        };
        let of = |front: &[&'static str]| {
            let options = options(front);
            command(&options.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let [lean, whole] = ["w.k", "w.l"].map(|table| of(&["rows", table, "--format", "json"]));
        assert_eq!((lean.code, &*lean.stderr), (whole.code, &*whole.stderr), "{what}");
        assert_eq!(shown(&lean), shown(&whole), "{what}");
        assert!(condition.is_some() || lean.text().contains("\"rebuilt\""), "{what}");
        assert!(!whole.text().contains("\"rebuilt\""), "{what}");
        let [lean, whole] = ["w.k", "w.l"].map(|table| of(&["undo", "--table", table]));
        assert_eq!((lean.code, statement_heads(&lean)), (whole.code, statement_heads(&whole)), "{what}");
    }
    server.sql("DROP DATABASE w")?;
    Ok(())
}

/// What a history tells of rows, apart from places, times, tables, and where a value comes from.
fn shown(ran: &Ran) -> Vec<serde_json::Value> {
    let parts = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        serde_json::json!([
            line["operation"],
            line["before"],
            line["after"],
            line["changed"],
            line["unknown"]
        ])
    };
    ran.text().lines().map(parts).collect()
}

/// The statements of a script, up to their conditions.
fn statement_heads(ran: &Ran) -> Vec<String> {
    let text = ran.text();
    let lines = text.lines().filter(|line| line.contains("`w`.`k`") || line.contains("`w`.`l`"));
    let head = |line: &str| {
        let head = line.split(" WHERE ").next().unwrap_or_default();
        head.replace("`w`.`l`", "`w`.`k`")
    };
    lines.map(head).collect()
}

#[test]
fn rows_name_what_nothing_tells() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    server.sql(
        "CREATE DATABASE w; USE w; CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT, c INT); CREATE TABLE n (a INT, b INT);
         INSERT INTO t VALUES (1, 1, 'old', 5), (2, 2, 'two', 6); INSERT INTO n VALUES (1, 1)",
    )?;
    server.flush_binary_logs()?;
    server.sql(
        "USE w; SET binlog_row_image = MINIMAL; UPDATE t SET b = 'new' WHERE id = 1; UPDATE t SET b = 'newer' WHERE id = 1;
         DELETE FROM t WHERE id = 2",
    )?;
    let log = server.flush_binary_logs()?;
    let rows = |options: &[&str]| {
        folder.run(["rows", "w.t"].iter().chain(options).map(AsRef::as_ref).chain([log.as_os_str()]))
    };
    let text = rows(&[]);
    let note = "binlogz: w.t: 3 changes that lack columns in the log, which nothing else tells; the output names them\n";
    assert_eq!((text.code, &*text.stderr), (Some(1), note));
    let why = "no earlier image of the row in the given logs tells the rest";
    let lines = [
        "  * b   (not known) → 'new'".to_owned(),
        format!("  not known: a, b, c: {why}"),
        "    id  1".to_owned(),
        "  * b   'new' (rebuilt) → 'newer'".to_owned(),
        format!("  not known: a, c: {why}"),
        "  - id  2".to_owned(),
    ];
    for line in lines {
        assert!(text.text().lines().any(|own| own == line), "{line}\n{}", text.text());
    }
    let json = rows(&["--format", "json"]);
    assert_eq!((json.code, &*json.stderr), (Some(1), note));
    let second: serde_json::Value = serde_json::from_str(json.text().lines().nth(1).unwrap()).unwrap();
    assert_eq!(second["rebuilt"], serde_json::json!({"before": ["b"], "after": ["id"]}));
    assert_eq!(
        (&second["unknown"], &second["unknown_why"]),
        (&serde_json::json!(["a", "c"]), &serde_json::json!(why))
    );
    // CSV is what is logged.
    let csv = rows(&["--format", "csv"]);
    csv.is_done();
    assert_eq!(csv.text().matches("'new'").count(), 1, "{}", csv.text());

    // A condition is decided where it can be, and otherwise an error.
    let known = rows(&["--where", "before.b = 'new' AND id = 1"]);
    let refused = "binlogz: --where: w.t: b: the image lacks it (binlog_row_image=FULL writes all columns), so it can't be told: ";
    assert_eq!((known.code, &*known.stderr), (Some(2), &*format!("{refused}{why}\n")), "{}", known.text());
    let known = rows(&["--where", "before.b = 'new' AND id = 1", "--format", "csv", "--operation", "delete"]);
    assert_eq!((known.code, known.text().lines().count()), (Some(1), 1), "{}", known.stderr);
    let undone = folder
        .run(["undo", "--where", "c = 5 AND id = 1"].iter().map(AsRef::as_ref).chain([log.as_os_str()]));
    assert_eq!(undone.code, Some(2), "{}", undone.text());
    assert!(undone.stderr.contains("--where: w.t: c: the image lacks it"), "{}", undone.stderr);

    // What can be read only once is shown as it was logged.
    let piped = folder.run_with(["rows", "w.t", "-"], &std::fs::read(&log).unwrap());
    assert!(piped.text().contains("  * b   (not logged) → 'newer'"), "{}", piped.text());
    assert_eq!((piped.code, &*piped.stderr), (Some(1), note));
    Ok(())
}

/// Columns of many types that no change touches, with values of two rows.
const UNTOUCHED: [(&str, &str, [&str; 2]); 17] = [
    ("u8", "TINYINT UNSIGNED", ["255", "0"]),
    ("big", "BIGINT", ["-9223372036854775808", "NULL"]),
    ("ubig", "BIGINT UNSIGNED", ["18446744073709551615", "7"]),
    ("dec1", "DECIMAL(20,5)", ["-12345.00001", "0"]),
    ("dbl", "DOUBLE", ["1e300", "-0.1"]),
    ("bits", "BIT(10)", ["b'1000000001'", "NULL"]),
    ("y", "YEAR", ["2026", "1901"]),
    ("da", "DATE", ["'2026-11-22'", "'1000-01-01'"]),
    ("ti", "TIME(2)", ["'-838:59:58.25'", "'00:00:01.5'"]),
    ("dt", "DATETIME(5)", ["'2026-11-22 23:10:00.12345'", "NULL"]),
    ("ts", "TIMESTAMP(3) NULL", ["'2026-11-22 23:10:00.123'", "NULL"]),
    ("en", "ENUM('a','b','é')", ["'é'", "'a'"]),
    ("se", "SET('a','b','c')", ["'a,c'", "''"]),
    ("ch", "CHAR(5)", ["'日本'", "''"]),
    ("la", "VARCHAR(10) CHARACTER SET latin1", ["'é'", "NULL"]),
    ("bi", "BINARY(4)", ["X'41420000'", "X'00000000'"]),
    ("vb", "BLOB", ["REPEAT('x', 9000)", "''"]),
];

/// No log has the rows' INSERTs: what no change touched is what the server's rows have now.
#[test]
fn rows_of_a_server_have_what_its_rows_have_now() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    let definitions: String = UNTOUCHED.iter().map(|(name, of, _)| format!(", {name} {of}")).collect();
    let values = |row: usize| -> String {
        UNTOUCHED.iter().map(|(.., values)| format!(", {}", values[row])).collect()
    };
    server.sql(&format!(
        "CREATE DATABASE w; USE w; CREATE TABLE k (id VARCHAR(10), a INT, n INT, j JSON{definitions}, PRIMARY KEY (id, a)); CREATE TABLE l LIKE k;
         SET time_zone = '+00:00'; INSERT INTO k VALUES ('one', 1, 1, '[1]'{}), ('two', 2, 2, '{{}}'{}); INSERT INTO l SELECT * FROM k",
        values(0),
        values(1)
    ))?;
    let log = server.flush_binary_logs()?;
    let next = server.binlogs()?.pop().unwrap();
    println!("{} {}", log.display(), next.display());
    server.sql(&format!("PURGE BINARY LOGS TO '{}'", next.file_name().unwrap().to_str().unwrap()))?;
    for (image, table) in [("MINIMAL", "k"), ("FULL", "l")] {
        server.sql(&format!(
            "USE w; SET binlog_row_image = {image}; UPDATE {table} SET n = 10 WHERE a = 1; UPDATE {table} SET n = 11, id = 'uno' WHERE a = 1;
             UPDATE {table} SET n = 20 WHERE a = 2"
        ))?;
    }
    let place = server.socket().display().to_string();
    let rows = |table: &str, options: &[&str]| {
        let front = ["rows", table, "--no-defaults", "--user=root", "--server", &place, "--format", "json"];
        folder.run(front.iter().chain(options))
    };
    let objects = |ran: &Ran| -> Vec<serde_json::Value> {
        ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    // As on a server that was made from a copy.
    server.sql("SET GLOBAL gtid_purged = '+3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5'")?;
    let (lean, whole) = (rows("w.k", &[]), rows("w.l", &[]));
    assert_eq!((lean.code, whole.code), (Some(1), Some(0)), "{}{}", lean.stderr, whole.stderr);
    let (lean, whole) = (objects(&lean), objects(&whole));
    assert_eq!((lean.len(), whole.len()), (3, 3));
    for (lean, whole) in lean.iter().zip(&whole) {
        for image in ["before", "after"] {
            for (name, ..) in UNTOUCHED {
                assert_eq!(lean[image][name], whole[image][name], "{image} {name}");
                assert!(
                    lean["rebuilt"][image].as_array().unwrap().iter().any(|own| own == name),
                    "{image} {name}"
                );
            }
        }
    }
    // What a change replaced, the row of now doesn't have, and a document it doesn't tell exactly.
    let unknown: Vec<_> = lean.iter().map(|change| change["unknown"].clone()).collect();
    let named = |names: &[&str]| serde_json::json!(names);
    assert_eq!(unknown, [named(&["n", "j"]), named(&["j"]), named(&["n", "j"])]);
    assert_eq!(lean[1]["before"]["n"], 10);
    let why = lean[0]["unknown_why"].as_str().unwrap();
    assert!(why.ends_with("tells the rest; nor does the server's row of now, for certain"), "{why}");
    let chosen = rows("w.k", &["--where", "u8 = 255 AND la = 'é'"]);
    assert_eq!(objects(&chosen).len(), 2, "{}", chosen.stderr);

    // Of logs that were named it isn't known whether they are all.
    let name = next.file_name().unwrap().to_str().unwrap();
    let named_log = objects(&rows("w.k", &[name]));
    assert!(named_log.iter().all(|change| change["unknown"].as_array().unwrap().len() >= UNTOUCHED.len()));
    // A row that another than the log's change reached isn't the one of its last image.
    server.sql("SET sql_log_bin = 0; UPDATE w.k SET n = 99 WHERE a = 2")?;
    let contradicted = objects(&rows("w.k", &[]));
    let counts: Vec<_> =
        contradicted.iter().map(|change| change["unknown"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [2, 1, UNTOUCHED.len() + 2]);
    // A statement on the table may have changed all rows.
    server.sql("SET binlog_format = STATEMENT; UPDATE w.k SET u8 = 1")?;
    let stated = objects(&rows("w.k", &[]));
    assert!(stated.iter().all(|change| change["unknown"].as_array().unwrap().len() > UNTOUCHED.len()));
    Ok(())
}
