//! The variables of compression at the relay: the server's rules, and their effect on stored transactions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, client, sql, url};
use binlogz_payload::statistics::COLUMNS;
use binlogz_testkit::{InstalledTool, MysqlSandbox, Tool, require_tool};

/// The server's answer to the same client; its account at the relay has the same password.
fn at_source(
    mysql: &InstalledTool,
    source: &MysqlSandbox,
    user: &str,
    statements: &str,
) -> Result<String, String> {
    sql(client(mysql, "mysql", source.port(), user, "secret"), statements)
}

const SHOWN: &str = "SELECT @@GLOBAL.binlog_transaction_compression, @@GLOBAL.binlog_transaction_compression_level_zstd; \
                     SHOW GLOBAL VARIABLES LIKE 'binlog_transaction_compression%zstd'; \
                     SHOW GLOBAL VARIABLES LIKE 'binlog_transaction_compression'";

#[test]
fn the_variables_of_compression_have_the_servers_rules() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source
        .sql(
            "CREATE USER boss IDENTIFIED BY 'secret'; GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO boss;
             CREATE USER safe IDENTIFIED BY 'secret'; CREATE DATABASE d;
             CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)",
        )
        .unwrap();
    let configuration = Configuration::of([url(&source)])
        .account("boss", "admin = true\nform = \"received\"")
        .account("safe", "");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);

    // Beside the live server, the same statements: the same answers, warnings and values.
    let (switch, level) = ("binlog_transaction_compression", "binlog_transaction_compression_level_zstd");
    let switch_values =
        ["ON", "off", "1", "0", "TRUE", "'on'", "DEFAULT", "2", "-1", "'yes'", "NULL", "maybe"];
    let level_values = ["1", "22", "23", "0", "-5", "DEFAULT", "'7'", "NULL", "7", "seven", "TRUE"];
    let sets = |name: &'static str, values: &[&str]| -> Vec<String> {
        values.iter().map(|value| format!("SET GLOBAL {name} = {value}")).collect()
    };
    let mut statements = sets(switch, &switch_values);
    statements.extend(sets(level, &level_values));
    statements.push(format!("SET @@global.{level} = 5, @@GLOBAL.{switch} := ON"));
    statements.push(format!("SET GLOBAL {switch} = OFF, GLOBAL {level} = 'x'"));
    // Names of user variables have a bound, in characters.
    statements.extend(["a", "é"].iter().flat_map(|letter| {
        [64, 65, 200].map(|length| format!("SET NAMES utf8mb4; SET @`{}` = 1", letter.repeat(length)))
    }));
    for statement in &statements {
        for user in ["boss", "safe"] {
            let asked = format!("{statement}; SHOW WARNINGS");
            let ours = relay.sql(mysql, user, &["--ssl-mode=disabled", "--get-server-public-key"], &asked);
            assert_eq!(ours, at_source(mysql, &source, user, &asked), "{user}: {asked}");
        }
        let ours = relay.sql(mysql, "boss", &["--ssl-mode=disabled"], SHOWN);
        assert_eq!(ours, at_source(mysql, &source, "boss", SHOWN), "after {statement}");
    }
    source.sql(&format!("SET GLOBAL {switch} = OFF")).unwrap();

    // A setting holds for what is stored, from the next transaction on.
    let tell = |relay: &Relay, statement: &str| relay.sql(mysql, "boss", &["--ssl-mode=disabled"], statement);
    let payloads = || {
        let events = folder.run(["events", "kept/binlog.000001"]);
        events.text().matches("Transaction_payload").count()
    };
    let insert = "INSERT INTO d.t (body) VALUES (REPEAT('the same ', 200))";
    let stored = |relay: &mut Relay, setting: &str| {
        tell(relay, setting).unwrap();
        source.sql(insert).unwrap();
        relay.has_gtids_of(&source);
        payloads()
    };
    assert_eq!(stored(&mut relay, "SET GLOBAL binlog_transaction_compression = OFF"), 0);
    assert_eq!(stored(&mut relay, "SET GLOBAL binlog_transaction_compression = ON"), 1);
    assert_eq!(stored(&mut relay, "SET GLOBAL binlog_transaction_compression_level_zstd = 19"), 2);
    assert_eq!(stored(&mut relay, "SET GLOBAL binlog_transaction_compression = DEFAULT"), 2);
    assert_eq!(stored(&mut relay, "SET GLOBAL binlog_transaction_compression = 1"), 3);

    // The table of the statistics: what the files hold, and, both rows together, what the source counts for itself.
    const TABLE: &str = "performance_schema.binary_log_transaction_compression_stats";
    let own = tell(&relay, &format!("SELECT * FROM {TABLE}")).unwrap();
    let rows: Vec<Vec<&str>> = own.lines().map(|line| line.split('\t').collect()).collect();
    let [zstd, none] = rows.as_slice() else { panic!("{own}") };
    assert_eq!((zstd[..3].join(" "), none[1]), ("BINARY ZSTD 3".to_owned(), "NONE"));
    let stats = folder.run(["stats", "--format", "json", "kept/binlog.000001"]);
    let stats: serde_json::Value = serde_json::from_str(stats.text()).unwrap();
    for (row, of_file) in rows.iter().zip(stats["compression"].as_array().unwrap()) {
        for (column, own) in COLUMNS.iter().zip(row).filter(|(column, _)| !column.ends_with("TIMESTAMP")) {
            let of_file = &of_file[column];
            assert_eq!(of_file.as_str().map_or(of_file.to_string(), str::to_owned), *own, "{column}");
        }
    }
    let columns = "SUM(TRANSACTION_COUNTER), SUM(UNCOMPRESSED_BYTES_COUNTER), MIN(FIRST_TRANSACTION_TIMESTAMP), \
                   MAX(LAST_TRANSACTION_TIMESTAMP), MAX(LAST_TRANSACTION_ID)";
    let of_source = source.sql(&format!("SELECT {columns} FROM {TABLE} WHERE LOG_TYPE = 'BINARY'")).unwrap();
    let sum = |at: usize| rows.iter().map(|row| row[at].parse::<u64>().unwrap()).sum::<u64>().to_string();
    let last = zstd[13].max(none[13]);
    let id = rows.iter().find(|row| row[13] == last).unwrap()[10];
    let first = zstd[9].min(none[9]);
    assert_eq!([sum(2).as_str(), &sum(4), first, last, id].join("\t"), of_source.trim_end());
    let query = |text: &str| tell(&relay, &text.replace("{}", TABLE)).unwrap();
    assert_eq!(
        query("SELECT log_type, COMPRESSION_TYPE FROM {} WHERE compression_type = 'zstd' LIMIT 1"),
        "BINARY\tZSTD\n"
    );
    query("TRUNCATE TABLE {}");
    assert_eq!(query("SELECT * FROM {}"), "");

    // What is not kept, and what can't be had here.
    for (statement, error) in [
        ("SET PERSIST binlog_transaction_compression = ON", "its configuration says what holds"),
        ("SET GLOBAL sync_binlog = 7", "no global sync_binlog to set"),
        (
            "SELECT size FROM performance_schema.binary_log_transaction_compression_stats",
            "Unknown column 'size' in 'field list'",
        ),
        ("SELECT * FROM mysql.user", "no table mysql.user"),
        ("TRUNCATE mysql.user", "no table mysql.user"),
        ("FLUSH BINARY LOGS", "FLUSH BINARY LOGS there begins a new file here too"),
    ] {
        let told = tell(&relay, statement).unwrap_err();
        assert!(told.contains(error), "{statement}: {told}");
    }
    assert!(tell(&relay, SHOWN).unwrap().starts_with("1\t19\n"));
    assert!(!folder.path("kept/binlog.000002").exists());
    drop(relay);
    let mut relay = configuration.start(&folder);
    assert!(tell(&relay, SHOWN).unwrap().starts_with("0\t3\n"));

    // In the form of the source it is the source's, byte for byte.
    source.flush_binary_logs().unwrap();
    let has_begun = || fs::metadata(folder.path("kept/binlog.000002")).is_ok_and(|begun| begun.len() > 0);
    relay.wait_for("next file", |_| has_begun().then_some(()));
    let fetched = relay.fetch(mysql, "boss", &folder.path("fetched"), &[], &["binlog.000001"]).unwrap();
    let its = fs::read(source.datadir().join("binlog.000001")).unwrap();
    assert!(fs::read(&fetched[0]).unwrap() == its);

    // Rows are for the relay's user and group, in each file and folder that it made.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let kept = folder.path("kept");
    assert_eq!(mode(&kept) & !0o750, 0, "{:o}", mode(&kept));
    let names = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().path());
    let names: Vec<_> =
        names.inspect(|path| assert_eq!(mode(path) & !0o640, 0, "{}", path.display())).collect();
    for name in
        ["binlog.000001", "binlog.index", "binlog.store", "binlogz.lock", "relay.uuid", "relay.numbers"]
    {
        assert!(names.contains(&kept.join(name)), "{name}: {names:?}");
    }
}
