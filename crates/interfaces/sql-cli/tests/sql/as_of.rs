//! Tables as they were, `AS OF` and at the end of the logs: a server is stopped at moments of a random workload, between two
//! transactions, and its rows are noted; later the query gives the same rows, or says why it can't.
//!
//! `SEED=N` repeats a run, `BINLOGZ_MOMENTS` says how many moments are asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use binlogz_testkit::random::Random;
use binlogz_testkit::{InstalledTool, MysqlSandbox, Result, Tool, mutate, require_tool, setting};

use crate::common::{Ran, archive_of, sql};

const TABLES: [&str; 3] = ["orders", "Items", "`odd table`"];
const COLUMNS: &str = "id INT, part VARCHAR(20), u BIGINT UNSIGNED, n DECIMAL(12,3), r DOUBLE, v VARCHAR(40), at DATETIME(3), moment \
     TIMESTAMP(6) NULL, e ENUM('one','é'), s SET('x','y'), raw VARBINARY(9), PRIMARY KEY (id, part)";

/// The server's rows as text: columns that differ in spelling are told by functions that both sides have.
const OF_SERVER: &str = "SELECT id, part, u, n, r, v, DATE_FORMAT(at, '%Y-%m-%d %H:%i:%s.%f'), DATE_FORMAT(moment, '%Y-%m-%d %H:%i:%s.%f'), e, s, \
     HEX(raw) FROM shop.";
const OF_QUERY: &str = "SELECT id, part, u, n, r, v, to_char(at, '%Y-%m-%d %H:%M:%S%.6f'), to_char(moment, '%Y-%m-%d %H:%M:%S%.6f'), e, s, hex(raw) \
     FROM ";

/// A table at a moment, as the server had it.
struct NotedTable {
    name: &'static str,
    /// The server's GTIDs, and its last own one.
    executed: String,
    last: String,
    /// The time of the moment.
    time: String,
    rows: Vec<String>,
    /// The columns at the moment were those at the beginning.
    is_plain: bool,
}

fn place(server: &MysqlSandbox) -> String {
    format!("root@{}", server.socket().display())
}

/// A query with the server as base, without the heading of its answer.
fn ask(server: &MysqlSandbox, statement: &str, logs: &[PathBuf]) -> Ran {
    let mut command = sql(["--format", "tsv", "--base", &place(server), statement]);
    command.args(logs).output().unwrap().into()
}

fn sorted(text: &str, heading: usize) -> Vec<String> {
    let mut rows: Vec<String> = text.lines().skip(heading).map(str::to_owned).collect();
    rows.sort();
    rows
}

fn note(server: &MysqlSandbox, name: &'static str, is_plain: bool) -> Result<NotedTable> {
    let executed = server.gtid_executed()?;
    let (uuid, numbers) = executed.split_once(':').unwrap();
    let last = numbers.rsplit(['-', ':']).next().unwrap();
    let last = format!("{uuid}:{last}");
    let time = server.sql("SET time_zone = '+00:00'; SELECT NOW(6)")?.trim().to_owned();
    let rows = match is_plain {
        true => server.sql(&format!("SET NAMES utf8mb4; SET time_zone = '+00:00'; {OF_SERVER}{name}"))?,
        false => server.sql(&format!("SELECT id, part, u FROM shop.{name}"))?,
    };
    Ok(NotedTable { name, executed, last, time, rows: sorted(&rows, 0), is_plain })
}

/// A random change of rows.
fn change(random: &mut Random, table: &str, v: &str) -> String {
    let id = random.below(30);
    let part = ["a", "B", "é"][random.below(3)];
    let number = random.below(1_000_000);
    match random.below(6) {
        0 => format!("DELETE FROM {table} WHERE id = {id}"),
        1 => format!("UPDATE {table} SET u = {number}, {v} = NULL, r = {number} / 7 + 0.01 WHERE id < {id}"),
        2 => format!("UPDATE IGNORE {table} SET id = id + 40, raw = x'00ff{id:02x}' WHERE id = {id}"),
        3 => format!(
            "UPDATE {table} SET n = -{number}.125, e = 'é', s = 'x,y', at = '2026-11-29 01:02:03.456' WHERE part = '{part}'"
        ),
        _ => format!(
            "REPLACE INTO {table} (id, part, u, n, r, {v}, at, moment, e, s, raw) VALUES ({id}, '{part}', 18446744073709551615 - {number}, {number}.5, \
             {number}.25, 'tab\\t é {number}', '2026-01-01 00:00:00', '2026-11-29 01:02:03.000{id:03}', 'one', '', x'')"
        ),
    }
}

/// A workload with its notes.
fn noted(server: &MysqlSandbox, random: &mut Random, steps: usize) -> Result<Vec<NotedTable>> {
    server.sql("CREATE DATABASE shop")?;
    for table in TABLES {
        server.sql(&format!("CREATE TABLE shop.{table} ({COLUMNS})"))?;
    }
    let mut notes = Vec::new();
    let mut altered = [false; TABLES.len()];
    for step in 0..steps {
        let number = random.below(TABLES.len());
        let table = TABLES[number];
        let mut statements = "USE shop; SET NAMES utf8mb4; SET time_zone = '+00:00'; BEGIN;".to_owned();
        for _ in 0..=random.below(3) {
            statements += &change(random, table, if altered[number] { "w" } else { "v" });
            statements.push(';');
        }
        server.sql(&(statements + "COMMIT"))?;
        if step == steps / 2 {
            server.flush_binary_logs()?;
        }
        // Later columns and names are followed; the rows of before have those of before.
        if random.below(4) == 0 && !altered[number] {
            altered[number] = true;
            server.sql(&format!(
                "ALTER TABLE shop.{table} ADD COLUMN later INT DEFAULT 5 AFTER id, RENAME COLUMN v TO w"
            ))?;
        }
        let asked = random.below(TABLES.len());
        notes.push(note(server, TABLES[asked], !altered[asked])?);
    }
    server.sql("USE shop; RENAME TABLE orders TO orders_old; CREATE TABLE orders (id INT PRIMARY KEY); INSERT INTO orders VALUES (7)")?;
    Ok(notes)
}

#[test]
fn a_table_is_as_it_was_at_random_moments() -> Result<()> {
    compare_tables(require_tool!(Tool::Mysql))
}

#[test]
#[ignore = "MySQL 8.0.33 is 550 MB: scripts/soak/sql-as-of.sh runs it"]
fn a_table_of_mysql_8_0_is_as_it_was_at_random_moments() -> Result<()> {
    compare_tables(require_tool!(Tool::Mysql80))
}

fn compare_tables(mysql: &'static InstalledTool) -> Result<()> {
    let seed = mutate::seed();
    let moments: usize = setting("BINLOGZ_MOMENTS", 8);
    let mut random = Random::new(seed);
    let server = mysql.sandbox().start()?;
    let notes = noted(&server, &mut random, moments.div_ceil(4).max(12))?;
    let log = server.flush_binary_logs()?;
    for _ in 0..moments {
        let NotedTable { name, executed, last, time, rows, is_plain } = &notes[random.below(notes.len())];
        let moment = [executed, last, time][random.below(3)];
        let name = match name.strip_prefix('`') {
            Some(name) => format!("\"{}\"", name.trim_end_matches('`')),
            None => format!("\"{name}\""),
        };
        let select = if *is_plain { OF_QUERY } else { "SELECT id, part, u FROM " };
        let ran = ask(&server, &format!("{select}shop.{name} AS OF '{moment}'"), std::slice::from_ref(&log));
        assert_eq!((ran.code, &*ran.error), (Some(0), ""), "SEED={seed} {name} AS OF {moment}");
        assert_eq!(sorted(&ran.out, 1), *rows, "SEED={seed} {name} AS OF {moment}");
    }
    Ok(())
}

/// The keys of a table's rows, as they are noted.
fn by_key(rows: &[String]) -> BTreeMap<Vec<&str>, &str> {
    rows.iter().map(|row| (row.split('\t').take(2).collect(), row.as_str())).collect()
}

/// What differs between two notes, as a query tells it.
fn difference(before: &NotedTable, after: &NotedTable) -> Vec<String> {
    let (before, after) = (by_key(&before.rows), by_key(&after.rows));
    let none = ["NULL"; 11].join("\t");
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let told = keys.into_iter().filter_map(|key| match (before.get(key), after.get(key)) {
        (Some(before), Some(after)) if before == after => None,
        (Some(before), Some(after)) => Some(format!("update\t{before}\t{after}")),
        (Some(before), None) => Some(format!("delete\t{before}\t{none}")),
        (None, Some(after)) => Some(format!("insert\t{none}\t{after}")),
        (None, None) => None,
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    told
}

/// The columns of an image, as the notes have them.
fn columns_of(image: &str) -> String {
    let columns = ["id", "part", "u", "n", "r", "v", "at", "moment", "e", "s", "raw"];
    let column = |name| match name {
        "at" | "moment" => format!("to_char({image}.{name}, '%Y-%m-%d %H:%M:%S%.6f') AS {image}_{name}"),
        "raw" => format!("hex({image}.raw) AS {image}_raw"),
        name => format!("{image}.{name} AS {image}_{name}"),
    };
    columns.map(column).join(", ")
}

#[test]
fn random_moments_of_a_table_differ_as_they_did_on_the_server() -> Result<()> {
    compare_moments(require_tool!(Tool::Mysql))
}

#[test]
#[ignore = "MySQL 8.0.33 is 550 MB: scripts/soak/sql-as-of.sh runs it"]
fn random_moments_of_a_table_of_mysql_8_0_differ_as_they_did_on_the_server() -> Result<()> {
    compare_moments(require_tool!(Tool::Mysql80))
}

fn compare_moments(mysql: &'static InstalledTool) -> Result<()> {
    let seed = mutate::seed();
    let moments: usize = setting("BINLOGZ_MOMENTS", 8);
    let mut random = Random::new(seed);
    for metadata in ["MINIMAL", "FULL"] {
        let server = mysql.sandbox().option("binlog-row-metadata", metadata).start()?;
        let notes = noted(&server, &mut random, moments.div_ceil(4).max(12))?;
        let log = server.flush_binary_logs()?;
        let mut asked = 0;
        while asked < moments.div_ceil(2) {
            let [before, after] = [0; 2].map(|_| &notes[random.below(notes.len())]);
            if before.name != after.name {
                continue;
            }
            asked += 1;
            let [from, to] =
                [before, after].map(|note| [&note.executed, &note.last, &note.time][random.below(3)]);
            let name = before.name.trim_matches('`');
            let statement = format!(
                "SELECT operation, {}, {} FROM table_diff('shop', '{name}', '{from}', '{to}')",
                columns_of("before"),
                columns_of("after")
            );
            let ran = ask(&server, &statement, std::slice::from_ref(&log));
            let what = format!("SEED={seed} {metadata} {name} {from} {to}");
            match (before.is_plain, after.is_plain) {
                (true, true) => {
                    assert_eq!((ran.code, &*ran.error), (Some(0), ""), "{what}");
                    assert_eq!(sorted(&ran.out, 1), difference(before, after), "{what}");
                }
                (true, false) | (false, true) => {
                    let said = ran.failure();
                    assert!(said.contains("expected the same at both moments"), "{what}: {said}");
                }
                (false, false) => {
                    // The notes have three of the columns.
                    let statement = format!(
                        "SELECT operation, before.id AS a, before.part AS b, before.u AS c, after.id AS d, after.part AS e, after.u AS f FROM \
                         table_diff('shop', '{name}', '{from}', '{to}') WHERE operation <> 'update' OR before.u IS DISTINCT FROM after.u"
                    );
                    let told = ask(&server, &statement, std::slice::from_ref(&log)).ok();
                    let none = ["NULL"; 11].join("\t");
                    let expected = difference(before, after)
                        .into_iter()
                        .map(|row| row.replace(&none, "NULL\tNULL\tNULL"));
                    assert_eq!(sorted(&told, 1), expected.collect::<Vec<_>>(), "{what}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_difference_that_is_not_known_is_an_error() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql("CREATE DATABASE shop; USE shop; CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT NOT NULL UNIQUE); CREATE TABLE heap (v INT); INSERT INTO t \
                VALUES (1, 1, 1)")?;
    let executed = server.gtid_executed()?;
    server.sql("USE shop; ALTER TABLE t ADD COLUMN late INT")?;
    let altered = server.gtid_executed()?;
    server.sql("USE shop; UPDATE t SET v = 2")?;
    let log = server.flush_binary_logs()?;
    let diff = |arguments: &str| {
        ask(&server, &format!("SELECT * FROM table_diff({arguments})"), std::slice::from_ref(&log))
    };
    let told = diff(&format!("'shop', 't', '{altered}', 'now'")).ok();
    assert_eq!(
        told,
        "operation\tbefore\tafter\nupdate\t{id: 1, v: 1, w: 1, late: NULL}\t{id: 1, v: 2, w: 1, late: NULL}\n"
    );
    assert_eq!(diff("'shop', 't', 'now', 'now'").ok(), "operation\tbefore\tafter\n");
    for (arguments, said) in [
        (format!("'shop', 't', '{executed}', 'now'"), "expected the same at both moments"),
        (format!("'shop', 'heap', '{executed}', 'now'"), "has no primary key"),
        (format!("'shop', 'none', '{executed}', 'now'"), "there is no table shop.none AS OF"),
        ("'shop', 't', 'soon', 'now'".to_owned(), "AS OF 'soon'"),
        ("'shop', 't', 'now', '2099-01-01'".to_owned(), "is in the future"),
        ("'shop', 't', 'now'".to_owned(), "table_diff takes four texts"),
        ("'shop', 't', 'now', 1".to_owned(), "table_diff takes four texts"),
    ] {
        let told = diff(&arguments).failure();
        assert!(told.contains(said), "{arguments}: {told}");
    }
    let statement = "SELECT * FROM table_diff('shop', 't', '10:40', '10:50')";
    let ran: Ran = sql([statement]).arg(&log).output().unwrap().into();
    assert!(ran.failure().contains("needs --base, the server that has the tables"));
    Ok(())
}

#[test]
fn a_table_alone_is_as_at_the_end_of_the_logs() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql("CREATE DATABASE shop; USE shop; CREATE TABLE orders (id INT PRIMARY KEY, total INT, twice INT AS (total * 2) STORED); \
                CREATE TABLE quiet (id INT PRIMARY KEY, e ENUM('a','b')); INSERT INTO quiet VALUES (1, 'b')")?;
    let first = server.flush_binary_logs()?;
    // The second in which a log begins may belong to the log before it.
    server.sql("DO SLEEP(1.2); USE shop; INSERT INTO orders (id, total) VALUES (1, 10), (2, 20)")?;
    let moment = server.sql("SET time_zone = '+00:00'; SELECT NOW(6)")?;
    let moment = moment.trim();
    server.sql("UPDATE shop.orders SET total = 11 WHERE id = 1")?;
    let second = server.flush_binary_logs()?;
    server.sql("DELETE FROM shop.orders WHERE id = 2; INSERT INTO shop.orders (id, total) VALUES (3, 30)")?;
    let third = server.flush_binary_logs()?;
    let logs = [first.clone(), second.clone()];
    let all = "SELECT * FROM shop.orders ORDER BY id";
    assert_eq!(ask(&server, all, &logs).ok(), "id\ttotal\n1\t11\n2\t20\n");
    assert_eq!(
        ask(&server, all, &[first.clone(), second.clone(), third.clone()]).ok(),
        "id\ttotal\n1\t11\n3\t30\n"
    );
    // Of several moments in one statement, and of a table that the logs don't name.
    let both = format!(
        "SELECT o.id, orders.total, now.total, q.e FROM shop.orders AS OF '{moment}' LEFT JOIN shop.orders now ON now.id = orders.id JOIN shop.quiet q \
         ON q.id = 1 JOIN shop.orders AS OF '{moment}' AS o ON o.id = orders.id ORDER BY 1"
    );
    let second_alone = [second.clone()];
    assert_eq!(ask(&server, &both, &second_alone).ok(), "id\ttotal\ttotal\te\n1\t10\t11\tb\n2\t20\t20\tb\n");
    let count = format!("SELECT count(*) AS n FROM shop.orders AS OF '{moment}'");
    assert_eq!(ask(&server, &count, &second_alone).ok(), "n\n2\n");
    let empty = ask(&server, "SELECT * FROM shop.orders", std::slice::from_ref(&first)).ok();
    assert_eq!(empty, "id\ttotal\n", "a table without rows has its columns");
    // The changes are still there.
    let changes = "SELECT operation, after.total FROM table_changes('shop', 'orders') ORDER BY 2";
    let schema = place(&server);
    let mut command = sql(["--format", "tsv", "--base", &schema, "--schema", &schema, changes]);
    let ran = Ran::from(command.arg(&second).output().unwrap());
    assert_eq!(ran.ok().lines().skip(1).collect::<Vec<_>>(), ["insert\t10", "update\t11", "insert\t20"]);
    let listed = ask(&server, "SHOW TABLES", &second_alone).ok();
    assert!(listed.contains("shop\tquiet") && listed.contains("shop\torders"), "{listed}");
    let described = ask(&server, "DESCRIBE shop.quiet", &second_alone).ok();
    assert!(described.contains("e\tUtf8"), "{described}");

    // What the server has purged comes from the inputs, in an archive too.
    let copies = tempfile::tempdir().unwrap();
    let archive = copies.path().join("archive");
    archive_of(&[first.clone(), second.clone()], &archive);
    let third_name = third.file_name().unwrap().to_str().unwrap();
    let kept = copies.path().join(third_name);
    std::fs::copy(&third, &kept).unwrap();
    server.sql(&format!("PURGE BINARY LOGS TO '{third_name}'"))?;
    let at = format!("SELECT * FROM shop.orders AS OF '{moment}' ORDER BY id");
    assert_eq!(ask(&server, &at, std::slice::from_ref(&archive)).ok(), "id\ttotal\n1\t10\n2\t20\n");
    assert_eq!(ask(&server, &at, &[archive, kept.clone()]).ok(), "id\ttotal\n1\t10\n2\t20\n");
    let said = ask(&server, &at, &[kept]).failure();
    assert!(said.contains("begin after the moment"), "{said}");
    Ok(())
}

#[test]
fn now_is_one_moment_for_a_statement_and_a_later_one_for_the_next() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT); CREATE TABLE shop.u LIKE shop.t")?;
    let log = server.flush_binary_logs()?;
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.sql");
    let statement = "SELECT (SELECT count(*) FROM shop.t AS OF 'now') AS t, (SELECT count(*) FROM shop.u AS OF 'now') AS u;";
    std::fs::write(&script, format!("{statement}\n{statement}\n")).unwrap();
    let is_over = AtomicBool::new(false);
    let ran: Ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let both =
                    "BEGIN; INSERT INTO shop.t VALUES (), (); INSERT INTO shop.u VALUES (), (); COMMIT";
                server.sql(both).unwrap();
            }
        });
        let mut command = sql(["--format", "tsv", "--base", &place(&server), "-f"]);
        let output = command.args([&script, &log]).output();
        is_over.store(true, Ordering::Relaxed);
        output.unwrap().into()
    });
    let told = ran.ok();
    let counts: Vec<(u64, u64)> = (told.lines().filter_map(|line| line.split_once('\t')))
        .filter_map(|(of_t, of_u)| Some((of_t.parse().ok()?, of_u.parse().ok()?)))
        .collect();
    let [(first, first_of_u), (second, second_of_u)] = counts[..] else { panic!("{told}") };
    assert_eq!((first, second), (first_of_u, second_of_u), "{told}");
    assert!(second > first, "{told}");
    Ok(())
}

/// A limit on the rows of answers would be a table without some of its rows.
#[test]
fn what_a_server_sets_for_all_sessions_does_not_matter() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v INT); INSERT INTO shop.t VALUES (1, 1), (2, 2), (3, 3), (4, 4)")?;
    let executed = server.gtid_executed()?;
    server.sql("UPDATE shop.t SET v = 9 WHERE id = 2")?;
    let log = server.flush_binary_logs()?;
    server.sql(
        "SET GLOBAL sql_select_limit = 2, GLOBAL sql_big_selects = OFF, GLOBAL max_join_size = 1, GLOBAL sql_safe_updates = ON, GLOBAL autocommit = OFF",
    )?;
    let ran = ask(&server, &format!("SELECT * FROM shop.t AS OF '{executed}' ORDER BY id"), &[log]);
    server.sql(
        "SET GLOBAL autocommit = ON, GLOBAL sql_safe_updates = OFF, GLOBAL max_join_size = DEFAULT, GLOBAL sql_big_selects = ON, \
         GLOBAL sql_select_limit = DEFAULT",
    )?;
    assert_eq!(ran.ok(), "id\tv\n1\t1\n2\t2\n3\t3\n4\t4\n");
    Ok(())
}

#[test]
fn what_is_not_known_exactly_is_an_error_with_its_place() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql("CREATE DATABASE shop; USE shop; CREATE TABLE emptied (id INT PRIMARY KEY); CREATE TABLE heap (id INT); CREATE TABLE by_text (id INT \
                PRIMARY KEY, v INT); INSERT INTO emptied VALUES (1); INSERT INTO by_text VALUES (1, 1)")?;
    let executed = server.gtid_executed()?;
    let time = server.sql("SET time_zone = '+00:00'; SELECT NOW(6)")?.trim().to_owned();
    server.sql("USE shop; TRUNCATE TABLE emptied; SET SESSION binlog_format = STATEMENT; UPDATE by_text SET v = 2; SET SESSION binlog_format = ROW; \
                CREATE TABLE young (id INT PRIMARY KEY)")?;
    let (uuid, numbers) = executed.split_once(':').unwrap();
    let last: u64 = numbers.rsplit('-').next().unwrap().parse().unwrap();
    let log = server.flush_binary_logs()?;
    for (table, moment, lines) in [
        (
            "shop.emptied",
            &*executed,
            &["shop.emptied: ", "TRUNCATE TABLE emptied", &*format!("{uuid}:{}", last + 1), " at "][..],
        ),
        ("shop.by_text", &*time, &["UPDATE by_text SET v = 2", &*format!("{uuid}:{}", last + 2)]),
        ("shop.young", &*time, &["CREATE TABLE young", "didn't exist at the moment"]),
        ("shop.heap", &*time, &["has no primary key"]),
        ("shop.nothing", &*time, &["there is no table shop.nothing AS OF"]),
        // Its rows are passwords, and CREATE USER, which changes it, has no rows in the log.
        ("mysql.user", &*time, &["is a table of the server itself"]),
        ("shop.by_text", &*format!("{uuid}:{}", last + 900), &["this transaction is not in the logs"]),
        (
            "shop.by_text",
            &*format!("{uuid}:1-{}", last + 900),
            &["these transactions of the moment are not in the logs"],
        ),
        ("shop.by_text", &*format!("{uuid}:2-{last}"), &["aren't: the server never had just these"]),
        ("shop.by_text", "2099-01-01", &["is in the future"]),
        ("shop.by_text", "soon", &["or a GTID, as UUID:23, or a GTID set, as UUID:1-23"]),
        ("changes", &*time, &["expected a table of a database, as shop.orders AS OF"]),
    ] {
        let said =
            ask(&server, &format!("SELECT * FROM {table} AS OF '{moment}'"), std::slice::from_ref(&log))
                .failure();
        for line in lines {
            assert!(said.contains(line), "{table} AS OF {moment}: {said}");
        }
    }
    let statement = format!("SELECT 1 FROM shop.by_text AS OF '{time}'");
    let ran: Ran = sql([statement.as_str()]).arg(&log).output().unwrap().into();
    assert!(ran.failure().contains("needs --base, the server that has the tables"));
    Ok(())
}

/// The rows of a database that isn't logged are those of now, whatever the moment is.
#[test]
fn a_table_that_the_server_does_not_log_is_an_error() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog-do-db", "shop").start()?;
    server.sql(
        "CREATE DATABASE shop; CREATE DATABASE other; CREATE TABLE shop.t (id INT PRIMARY KEY, v INT); CREATE TABLE other.t LIKE shop.t;
         INSERT INTO shop.t VALUES (1, 1); INSERT INTO other.t VALUES (1, 1)",
    )?;
    let moment = server.gtid_executed()?;
    server.sql("UPDATE shop.t SET v = 2; UPDATE other.t SET v = 2")?;
    let logs = [server.flush_binary_logs()?];
    for (table, line) in [
        ("other.t", "other.t: binlog-do-db is shop: changes in the database other aren't logged"),
        ("shop.t", "binlog-do-db is shop: statements such as ALTER TABLE and TRUNCATE"),
    ] {
        let error =
            ask(&server, &format!("SELECT v FROM {table} AS OF '{}'", moment.trim()), &logs).failure();
        assert!(error.contains(line), "{line}: {error}");
    }
    Ok(())
}

/// Rows are logged by the database of their table, DDL by the default one: only who uses the server knows whether there was such DDL, unless
/// the server shows that there was.
#[test]
fn a_server_that_ignores_another_database_is_asked_with_its_users_word_for_its_ddl() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog-ignore-db", "mysql").start()?;
    server.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v INT); CREATE TABLE shop.u LIKE shop.t;
         INSERT INTO shop.t VALUES (1, 1); INSERT INTO shop.u VALUES (1, 1)",
    )?;
    let moment = server.gtid_executed()?;
    server.sql("USE mysql; UPDATE shop.t SET v = 2; INSERT INTO shop.t VALUES (2, 2); DO SLEEP(1.1); ALTER TABLE shop.u ADD COLUMN w INT FIRST")?;
    let logs = [server.flush_binary_logs()?];
    let of = |table: &str, options: &[&str]| {
        let statement = format!("SELECT * FROM shop.{table} AS OF '{}'", moment.trim());
        let mut command = sql(["--format", "tsv", "--base", &place(&server)]);
        command.args(options).arg(statement).args(&logs);
        Ran::from(command.output().unwrap())
    };
    let said = of("t", &[]).failure();
    assert!(said.contains("binlog-ignore-db is mysql: statements such as ALTER TABLE"), "{said}");
    assert!(said.ends_with("; --base-ddl-logged takes it that there were none"), "{said}");
    assert_eq!(of("t", &["--base-ddl-logged"]).ok(), "id\tv\n1\t1\n");
    let said = of("u", &["--base-ddl-logged"]).failure();
    assert!(said.contains("a statement that isn't in the logs made or altered it at 20"), "{said}");
    Ok(())
}

/// A copy of the logs that a server has, in their order.
fn copied(server: &MysqlSandbox, folder: &Path) -> Result<Vec<PathBuf>> {
    let last = server.flush_binary_logs()?;
    let names = server.sql("SHOW BINARY LOGS")?;
    let names = names.lines().filter_map(|line| line.split('\t').next());
    let copies = names.take_while(|name| *name <= last.file_name().unwrap().to_str().unwrap()).map(|name| {
        let copy = folder.join(name);
        std::fs::copy(last.with_file_name(name), &copy).unwrap();
        copy
    });
    Ok(copies.collect())
}

fn set_gtid_modes(server: &MysqlSandbox, modes: [&str; 2]) -> Result<()> {
    modes.iter().try_for_each(|mode| server.sql(&format!("SET GLOBAL gtid_mode = {mode}")).map(drop))
}

fn utc_time(server: &MysqlSandbox) -> Result<String> {
    Ok(server.sql("SET time_zone = '+00:00'; SELECT NOW(6)")?.trim().to_owned())
}

/// Transactions without GTIDs leave no gap in a GTID set.
#[test]
fn a_log_that_is_missing_between_the_inputs_and_the_servers_own_is_an_error() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v INT); INSERT INTO shop.t VALUES (1, 1), (2, 2)")?;
    server.flush_binary_logs()?;
    server.sql("DO SLEEP(1.2); INSERT INTO shop.t VALUES (3, 3)")?;
    let (executed, time) = (server.gtid_executed()?, utc_time(&server)?);
    server.flush_binary_logs()?;
    set_gtid_modes(&server, ["ON_PERMISSIVE", "OFF_PERMISSIVE"])?;
    server.sql("UPDATE shop.t SET v = 9 WHERE id = 1")?;
    set_gtid_modes(&server, ["ON_PERMISSIVE", "ON"])?;
    server.sql("UPDATE shop.t SET v = 8 WHERE id = 2")?;
    let folder = tempfile::tempdir().unwrap();
    let all = copied(&server, folder.path())?;
    let (own, inputs) = all.split_last().unwrap();
    server.sql(&format!("PURGE BINARY LOGS TO '{}'", own.file_name().unwrap().to_str().unwrap()))?;
    let at = |moment: &str| format!("SELECT * FROM shop.t AS OF '{moment}' ORDER BY id");
    let lacking = &inputs[..2];
    for moment in [&time, &executed] {
        let said = ask(&server, &at(moment), lacking).failure();
        assert!(said.contains("are missing between") && said.contains("000003 to "), "{moment}: {said}");
    }
    assert_eq!(ask(&server, &at(&time), inputs).ok(), "id\tv\n1\t1\n2\t2\n3\t3\n");
    let said = ask(&server, &at(&executed), inputs).failure();
    assert!(said.contains("a transaction has no GTID"), "{said}");
    Ok(())
}

#[test]
fn without_gtids_inputs_do_not_reach_to_the_servers_own_logs() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("gtid-mode", "OFF").start()?;
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v INT); INSERT INTO shop.t VALUES (1, 1)")?;
    server.flush_binary_logs()?;
    // Nothing is in it.
    let vacant = server.flush_binary_logs()?;
    let time = utc_time(&server)?;
    server.sql("UPDATE shop.t SET v = 2")?;
    let folder = tempfile::tempdir().unwrap();
    let all = copied(&server, folder.path())?;
    let at = format!("SELECT * FROM shop.t AS OF '{time}'");
    assert_eq!(ask(&server, &at, &all).ok(), "id\tv\n1\t1\n");
    let said = ask(&server, "SELECT * FROM shop.t", &[vacant]).failure();
    assert!(said.contains("the logs have no transaction with a GTID"), "{said}");
    server.sql(&format!("PURGE BINARY LOGS TO '{}'", server.position()?.0))?;
    let said = ask(&server, &at, &all).failure();
    assert!(said.contains("nothing tells whether INPUTs reach to it"), "{said}");
    Ok(())
}

/// A server of queries with a base, ended with the test.
struct BaseServing {
    child: Child,
    port: String,
    _temporary: tempfile::TempDir,
}

impl BaseServing {
    fn start(server: &MysqlSandbox, log: &Path) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut command =
            sql(["serve", "--listen", "127.0.0.1:0", "--mysql", "127.0.0.1:0", "--base", &place(server)]);
        command.arg(log).env("TMPDIR", temporary.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.map_while(std::result::Result::ok).find_map(|line| {
            let (_, address) = line.split_once("on mysql://")?;
            Some(address.rsplit_once(':')?.1.to_owned())
        });
        BaseServing { child, port: port.expect("it listens for MySQL's clients"), _temporary: temporary }
    }

    /// What the mysql client says: rows, or its error.
    fn ask(&self, mysql: &InstalledTool, statement: &str) -> std::result::Result<String, String> {
        let mut command: Command = mysql.command("mysql");
        command.args([
            "--no-defaults",
            "-h127.0.0.1",
            "-P",
            &self.port,
            "-u",
            "anybody",
            "--batch",
            "-N",
            "-e",
            statement,
        ]);
        let output = command.output().unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).unwrap()),
            false => Err(String::from_utf8(output.stderr).unwrap()),
        }
    }
}

impl Drop for BaseServing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn mysqls_clients_ask_for_tables_as_they_were() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql("CREATE DATABASE shop; USE shop; CREATE TABLE Orders (id INT PRIMARY KEY, `Total` DECIMAL(9,2), at DATETIME); INSERT INTO Orders VALUES \
                (1, 10.50, '2026-11-29 01:02:03'), (2, 20, NULL)")?;
    let executed = server.gtid_executed()?;
    server.sql("UPDATE shop.Orders SET `Total` = 99 WHERE id = 1; CREATE TABLE shop.quiet (id BIGINT UNSIGNED PRIMARY KEY)")?;
    let updated = server.gtid_executed()?;
    let log = server.flush_binary_logs()?;
    server.sql("DELETE FROM shop.Orders")?;
    let serving = BaseServing::start(&server, &log);
    let then = "1\t10.50\t2026-11-29 01:02:03.000000\n2\t20.00\tNULL\n";
    for (statement, rows) in [
        (format!("SELECT * FROM `shop`.`Orders` AS OF '{executed}' ORDER BY id"), then),
        (format!("USE shop; SELECT Orders.id, o.total, o.at FROM Orders AS OF \"{executed}\", Orders as of '{executed}' o WHERE o.id = Orders.id ORDER BY 1"), then),
        (format!("SELECT SUM(total) FROM shop.Orders FOR SYSTEM_TIME AS OF '{executed}'"), "30.50\n"),
        ("SELECT id, total FROM shop.Orders ORDER BY id".to_owned(), "1\t99.00\n2\t20.00\n"),
        ("SELECT COUNT(*) FROM shop.quiet".to_owned(), "0\n"),
        (
            format!("SELECT operation, before.total, AFTER.`Total` FROM table_diff('shop', 'Orders', \"{executed}\", '{updated}') d ORDER BY before.id"),
            "update\t10.50\t99.00\n",
        ),
        ("SHOW TABLES FROM shop".to_owned(), "Orders\nquiet\n"),
        (
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'shop' ORDER BY table_name, ordinal_position".to_owned(),
            "id\tint\nTotal\tdecimal\nat\tdatetime\nid\tbigint\n",
        ),
    ] {
        assert_eq!(serving.ask(mysql, &statement).as_deref(), Ok(rows), "{statement}");
    }
    for (statement, number, said) in [
        (
            format!("SELECT 1 FROM shop.nothing AS OF '{executed}'"),
            "ERROR 1146 (42S02)",
            "Table 'shop.nothing",
        ),
        ("SELECT 1 FROM shop.Orders AS OF 'soon'".to_owned(), "ERROR 1105", "AS OF 'soon'"),
        (format!("SELECT 1 FROM shop.quiet AS OF '{executed}'"), "ERROR 1105", "didn't exist at the moment"),
        (
            format!("SELECT nothing FROM shop.Orders AS OF '{executed}'"),
            "ERROR 1054 (42S22)",
            "Unknown column 'nothing'",
        ),
        (
            "SELECT 1 FROM changes AS OF '10:42'".to_owned(),
            "ERROR 1146 (42S02)",
            "Table 'binlog.changes' doesn't exist",
        ),
    ] {
        let error = serving.ask(mysql, &statement).unwrap_err();
        assert!(error.contains(number) && error.contains(said), "{statement}: {error}");
    }
    Ok(())
}
