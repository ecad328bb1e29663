//! `binlogz doctor` against a source with a mysqld replica, a MariaDB replica and a Python CDC client: started once
//! for all tests here. Tests that change a server hold it alone.

use std::process::Command;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::common::{Folder, Ran};
use binlogz_testkit::cdc::CdcClient;
use binlogz_testkit::tool::require;
use binlogz_testkit::{MariadbSandbox, MysqlSandbox, SandboxServer, Tool};
use serde_json::Value;

/// The rights that doctor.md asks for, and fewer.
const ACCOUNTS: &str = "\
CREATE USER monitor@'%' IDENTIFIED BY 'monitor';
GRANT PROCESS, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO monitor@'%';
GRANT SELECT ON performance_schema.* TO monitor@'%';
CREATE USER half@'%' IDENTIFIED BY 'monitor';
GRANT PROCESS ON *.* TO half@'%';
CREATE USER nobody@'%' IDENTIFIED BY 'monitor';
CREATE ROLE watching;
GRANT PROCESS ON *.* TO watching;
CREATE USER by_role@'%' IDENTIFIED BY 'monitor' DEFAULT ROLE watching;
GRANT watching TO by_role@'%';
";

/// Generous: other tests keep the machine busy.
const APPEAR_MAX: Duration = Duration::from_secs(60);

struct Fleet {
    source: MysqlSandbox,
    replica: MysqlSandbox,
    mariadb: MariadbSandbox,
    cdc: CdcClient,
}

impl Fleet {
    fn start() -> Option<RwLock<Fleet>> {
        let mysql = require(Tool::Mysql)?;
        require(Tool::Mariadb)?;
        require(Tool::Cdc)?;
        let (source, replica, mariadb) = thread::scope(|scope| {
            let source = scope.spawn(|| mysql.sandbox().readable_by_mariadb().start().unwrap());
            let replica = scope.spawn(|| mysql.sandbox().start().unwrap());
            let mariadb = MariadbSandbox::start(&[]).unwrap();
            (source.join().unwrap(), replica.join().unwrap(), mariadb)
        });
        let (file, offset) = source.position().unwrap();
        mariadb.replicate_from_port(source.port(), &file, offset).unwrap();
        replica.replicate_from(&source).unwrap();
        let cdc = CdcClient::follow(source.port(), 99).unwrap();
        for server in [&source, &replica] {
            server.sql(&format!("SET sql_log_bin = OFF; {ACCOUNTS}")).unwrap();
        }
        let fleet = Fleet { source, replica, mariadb, cdc };
        fleet.wait_for_dumps(3);
        Some(RwLock::new(fleet))
    }

    fn wait_for_dumps(&self, count: u32) {
        let dumps = "SELECT COUNT(*) FROM performance_schema.processlist WHERE COMMAND LIKE 'Binlog Dump%'";
        wait_until("consumers", || self.source.sql(dumps).unwrap().trim() == count.to_string());
    }
}

#[track_caller]
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < APPEAR_MAX, "{what} in time");
        sleep(Duration::from_millis(50));
    }
}

fn fleet() -> Option<&'static RwLock<Fleet>> {
    static FLEET: OnceLock<Option<RwLock<Fleet>>> = OnceLock::new();
    FLEET.get_or_init(Fleet::start).as_ref()
}

fn shared() -> Option<RwLockReadGuard<'static, Fleet>> {
    Some(fleet()?.read().unwrap_or_else(PoisonError::into_inner))
}

fn alone() -> Option<RwLockWriteGuard<'static, Fleet>> {
    Some(fleet()?.write().unwrap_or_else(PoisonError::into_inner))
}

/// `USER@127.0.0.1:PORT`.
fn at(user: &str, server: &SandboxServer) -> String {
    format!("{user}@127.0.0.1:{}", server.port())
}

fn doctor<'a>(folder: &Folder, args: impl IntoIterator<Item = &'a str>) -> Ran {
    let mut command: Command = folder.binlogz(["doctor", "--no-defaults"]);
    command.args(args).env("MYSQL_PWD", "monitor");
    command.env("MYSQL_TEST_LOGIN_FILE", folder.path("no login file"));
    command.output().unwrap().into()
}

fn json(ran: &Ran) -> Value {
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// The rows of the first server that have this name.
fn rows<'a>(report: &'a Value, what: &str) -> Vec<&'a Value> {
    let findings = report["servers"][0]["findings"].as_array().expect("findings");
    findings.iter().filter(|finding| finding["what"] == what).collect()
}

#[track_caller]
fn row<'a>(report: &'a Value, what: &str) -> &'a Value {
    match rows(report, what).as_slice() {
        [row] => row,
        others => panic!("{what}: {others:?}"),
    }
}

#[test]
fn every_consumer_is_named_rightly() {
    let Some(fleet) = shared() else { return };
    let folder = Folder::new();
    let source = at("monitor", &fleet.source);
    let ran = doctor(&folder, ["--format", "json", &source]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{ran:?}");
    let report = json(&ran);
    assert_eq!(report["servers"][0]["safe"], false);
    assert_eq!(report["servers"][0]["verdict"], "bad");

    let consumers = rows(&report, "consumer");
    let mut found: Vec<_> = consumers
        .iter()
        .map(|row| {
            let of = |name: &str| row["consumer"][name].as_str().unwrap_or("-").to_owned();
            (of("name"), of("version"), of("reads"), of("since"), of("certainty"), row["verdict"].clone())
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let mysql = fleet.replica.installed().version();
    let mariadb = fleet.mariadb.installed().version();
    let expected = [
        ("MariaDB replica", mariadb, "no", "-", "measured", "bad"),
        ("MySQL replica", mysql, "yes", "8.0.20", "measured", "ok"),
        ("python-mysql-replication", "-", "no", "-", "measured", "bad"),
    ];
    let expected = expected.map(|(name, version, reads, since, certainty, verdict)| {
        (name.into(), version.into(), reads.into(), since.into(), certainty.into(), verdict.into())
    });
    assert_eq!(found, expected);

    let replica = consumers.iter().find(|row| row["consumer"]["name"] == "MySQL replica").unwrap();
    let uuid = fleet.replica.server_uuid().unwrap();
    assert_eq!(replica["consumer"]["server_uuid"], uuid.as_str());
    assert_eq!(
        replica["consumer"]["server_id"].to_string(),
        fleet.replica.sql("SELECT @@server_id").unwrap().trim()
    );
    assert_eq!(replica["consumer"]["account"], "repl");
    let silent = consumers.iter().find(|row| row["consumer"]["name"] == "python-mysql-replication").unwrap();
    assert!(silent["consumer"]["on_compressed"].as_str().unwrap().starts_with("loses its rows silently"));

    let text = doctor(&folder, [source.as_str()]);
    for expected in
        ["turning compression on breaks consumers: 1 consumer reads it, 2 don't", "Rollout plan", &uuid]
    {
        assert!(text.text().contains(expected), "{expected}: {}", text.text());
    }
    assert_eq!(text.code, Some(1));
}

#[test]
fn what_is_said_of_them_is_what_they_do() {
    let Some(fleet) = alone() else { return };
    let rows = |fleet: &Fleet| fleet.cdc.events().iter().filter(|event| *event == "WriteRowsEvent").count();
    let gtids = |fleet: &Fleet| fleet.cdc.events().iter().filter(|event| *event == "GtidEvent").count();
    let source = &fleet.source;
    source
        .sql("CREATE DATABASE proof; CREATE TABLE proof.row (id INT); INSERT INTO proof.row VALUES (1)")
        .unwrap();
    wait_until("a plain row", || rows(&fleet) == 1);
    let seen = gtids(&fleet);
    source.sql("SET binlog_transaction_compression = ON; INSERT INTO proof.row VALUES (2)").unwrap();
    wait_until("the compressed transaction", || gtids(&fleet) == seen + 1);
    source.sql("INSERT INTO proof.row VALUES (3)").unwrap();
    wait_until("the row behind it", || rows(&fleet) >= 2);
    assert_eq!(rows(&fleet), 2, "of three rows, the compressed one is lost");

    // The mysqld replica applies it; the one of MariaDB stops and says why.
    fleet.replica.wait_for_source(source).unwrap();
    assert_eq!(fleet.replica.sql("SELECT COUNT(*) FROM proof.row").unwrap().trim(), "3");
    let error = || {
        let status = fleet.mariadb.replica_status().unwrap();
        format!("{}{}", status["Last_IO_Error"], status["Last_SQL_Error"])
    };
    wait_until("MariaDB's error", || !error().is_empty());
    assert!(
        error().starts_with("Relay log read failure: Could not parse relay log event entry"),
        "{}",
        error()
    );
    let log = fleet.mariadb.log().unwrap();
    assert!(log.contains("TRANSACTION_PAYLOAD_EVENT"), "{log}");

    let (file, offset) = source.position().unwrap();
    fleet.mariadb.sql("STOP SLAVE").unwrap();
    fleet.mariadb.replicate_from_port(source.port(), &file, offset).unwrap();
    fleet.wait_for_dumps(3);
}

#[test]
fn a_missing_right_is_named_for_its_row() {
    let Some(fleet) = shared() else { return };
    let folder = Folder::new();
    let report = |user| {
        let ran = doctor(&folder, ["--format", "json", &at(user, &fleet.source)]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{user}: {ran:?}");
        json(&ran)
    };
    let nobody = report("nobody");
    for (what, grant) in [
        ("consumers", "PROCESS ON *.*"),
        (
            "binary_log_transaction_compression_stats",
            "SELECT ON performance_schema.binary_log_transaction_compression_stats",
        ),
        ("stage_timings", "SELECT ON performance_schema.*"),
        ("sessions_with_another_value", "SELECT ON performance_schema.*"),
        ("appliers_with_another_value", "SELECT ON performance_schema.*"),
    ] {
        let row = row(&nobody, what);
        assert_eq!((&row["missing_grant"], &row["verdict"]), (&grant.into(), &"unknown".into()), "{what}");
        assert!(row["remedy"].as_str().unwrap().contains(grant), "{row}");
    }
    assert_eq!(rows(&nobody, "consumer").len(), 0);
    assert_eq!(row(&nobody, "binlog_format")["verdict"], "ok", "settings are for everybody");

    // All are seen, but not what they are.
    for user in ["half", "by_role"] {
        let report = report(user);
        let all = row(&report, "consumers");
        assert_eq!(
            (&all["verdict"], &all["missing_grant"]),
            (&"ok".into(), &"REPLICATION SLAVE ON *.*".into())
        );
        let consumers = rows(&report, "consumer");
        assert_eq!(consumers.len(), 3, "{user}");
        for row in consumers {
            assert_eq!(row["verdict"], "unknown");
            assert_eq!(row["missing_grant"], "SELECT ON performance_schema.session_connect_attrs");
        }
    }
    let monitor = json(&doctor(&folder, ["--format", "json", &at("monitor", &fleet.source)]));
    let missing = monitor["servers"][0]["findings"].as_array().unwrap().iter();
    assert_eq!(missing.filter(|row| !row["missing_grant"].is_null()).count(), 0);
}

#[test]
fn servers_that_cannot_be_looked_at_have_a_line_each() {
    let Some(fleet) = shared() else { return };
    let folder = Folder::new();
    let refused = "connect to 127.0.0.1:1: Connection refused (os error 111)";
    doctor(&folder, ["monitor@127.0.0.1:1"]).fails(refused);
    let wrong = at("root", &fleet.source);
    let said = "logging in: server says 1045 (28000): Access denied for user 'root'@'127.0.0.1' (using password: YES)";
    let ways = "-p asks for a password; MYSQL_PWD and option files may have it too";
    doctor(&folder, [wrong.as_str()]).fails(&format!("{wrong}: {said}; {ways}"));

    // The same servers by ten names, one of which is bad.
    let port = fleet.source.port();
    let socket = fleet.source.socket().display().to_string();
    let names = [
        at("monitor", &fleet.source),
        "monitor@127.0.0.1:1".into(),
        at("monitor", &fleet.replica),
        format!("127.0.0.1:{port}"),
        format!("mysql://127.0.0.1:{port}"),
        format!("mysql://monitor@127.0.0.1:{port}/"),
        at("nobody", &fleet.source),
        at("half", &fleet.source),
        socket,
        at("by_role", &fleet.replica),
    ];
    folder.put("fleet", format!("# ten servers\n{}\n", names.join(" # one\n")));
    let ran = doctor(&folder, ["--user=monitor", "--targets", "fleet", "--format", "json"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.stderr, format!("binlogz: {refused}\n"));
    let report = json(&ran);
    let servers = report["servers"].as_array().unwrap();
    assert_eq!(servers.len(), names.len());
    assert_eq!(
        (&servers[0]["server"], &servers[0]["error"]),
        (&"monitor@127.0.0.1:1".into(), &refused.into())
    );
    for server in &servers[1..] {
        assert!(server["error"].is_null() && server["findings"].as_array().unwrap().len() > 15, "{server}");
    }
    let safe: Vec<_> = servers.iter().map(|server| server["safe"].as_bool().unwrap()).collect();
    assert!(safe.is_sorted(), "the worst first: {safe:?}");
    assert_eq!(
        safe.iter().filter(|safe| **safe).count(),
        0,
        "nobody follows the replica, so there is no telling"
    );

    let text = doctor(&folder, ["--user=monitor", "--targets", "fleet"]);
    let first: Vec<_> = text.text().lines().take(2).collect();
    assert!(
        first[0].starts_with("server ") && first[1].contains("bad      connect to 127.0.0.1:1"),
        "{first:?}"
    );
    assert_eq!(text.text().matches("Rollout plan of ").count(), 9);
}

#[test]
fn of_a_server_without_consumers_nothing_is_known_and_mariadb_can_not() {
    let Some(fleet) = shared() else { return };
    let folder = Folder::new();
    let ran = doctor(&folder, [at("monitor", &fleet.replica).as_str()]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{ran:?}");
    let headline = ": turning compression on can't be judged: nobody is connected, so there is no telling whom it breaks ";
    let in_one_line = ran.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(in_one_line.contains(headline), "{}", ran.text());
    assert!(ran.text().contains("unknown  consumers "), "{}", ran.text());
    assert!(ran.text().contains("STOP REPLICA SQL_THREAD"), "it is a replica itself");

    let mut command = folder.binlogz(["doctor", "--no-defaults", "--user=repl", "--format=json"]);
    command.arg(format!("127.0.0.1:{}", fleet.mariadb.port())).env("MYSQL_PWD", "repl");
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let report = json(&ran);
    assert!(
        row(&report, "version")["found"]
            .as_str()
            .unwrap()
            .ends_with("MariaDB has no transaction compression")
    );
    assert_eq!(report["servers"][0]["plan"], Value::Array(Vec::new()));
}

#[test]
fn what_breaks_and_what_it_saves_make_one_answer() {
    let Some(fleet) = shared() else { return };
    let folder = Folder::new();
    let source = at("monitor", &fleet.source);
    let ran = doctor(&folder, ["--advise", "--budget", "1s", "--format=json", &source]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let server = &json(&ran)["servers"][0];
    // There are not twenty transactions in its log, and before another test has written there are none of rows.
    let answer = match server["estimate"]["verdict"].as_str() {
        Some("cant_tell") => "cant_tell",
        Some("leave_off") => "no",
        _ => panic!("{server}"),
    };
    assert_eq!(server["answer"], answer);
    assert!(!server["estimate"]["reasons"].as_array().unwrap().is_empty(), "{server}");
    let text = doctor(&folder, ["--advise", "--budget", "1s", &source]);
    let said = match answer {
        "no" => "no: leave compression off",
        _ => "can't tell: too few transactions to tell",
    };
    let answer = format!("Turn compression on at {source}?\n  {said}\n");
    assert!(text.text().starts_with(&answer), "{}", text.text());
    assert!(text.text().contains("What it breaks:\n  - "), "{}", text.text());

    // Its logs are not for everybody.
    let ran = doctor(&folder, ["--advise", "--budget", "1s", &at("nobody", &fleet.source)]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("REPLICATION CLIENT"), "{}", ran.stderr);
    doctor(&folder, ["--budget", "1s", "db1"]).is(
        2,
        "",
        "binlogz: the following required arguments were not provided:\n  <--advise|--profile <PROFILE>>\n\nUsage: binlogz \
         doctor --budget <TIME> <--advise|--profile <PROFILE>> <SERVER>...\n\nFor more information, try '--help'.\n",
    );
}

#[test]
fn settings_and_threads_are_judged_and_changes_since_a_baseline_told() {
    let Some(fleet) = alone() else { return };
    let folder = Folder::new();
    let source = at("monitor", &fleet.source);
    let saved = doctor(&folder, ["--save", "before.json", &source]);
    assert_eq!((saved.code, saved.stderr.as_str()), (Some(1), ""));
    doctor(&folder, ["--save", "before.json", &source])
        .fails("before.json: exists already; --force replaces it");
    let same = doctor(&folder, ["--since", "before.json", "--format=json", &source]);
    assert_eq!(json(&same)["changes"], Value::Array(Vec::new()));

    fleet
        .source
        .sql(
            "SET GLOBAL binlog_format = MIXED; SET GLOBAL binlog_row_image = MINIMAL; \
             SET GLOBAL binlog_rows_query_log_events = ON; SET GLOBAL binlog_checksum = NONE; \
             SET GLOBAL max_allowed_packet = 1048576; SET GLOBAL replica_max_allowed_packet = 67108864; \
             SET GLOBAL replica_compressed_protocol = ON; \
             UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' \
             WHERE NAME LIKE 'stage/sql/%ompressing transaction changes%'; \
             SET SESSION binlog_transaction_compression = ON; CREATE DATABASE judged; \
             CREATE TABLE judged.row (id INT) ENGINE = InnoDB; SET SESSION binlog_format = ROW; \
             INSERT INTO judged.row VALUES (1); SET GLOBAL binlog_transaction_compression = ON",
        )
        .unwrap();
    let ran = doctor(&folder, ["--since", "before.json", "--format=json", &source]);
    let text = doctor(&folder, ["--since", "before.json", &source]);
    fleet
        .source
        .sql(
            "SET GLOBAL binlog_format = ROW; SET GLOBAL binlog_row_image = FULL; \
             SET GLOBAL binlog_rows_query_log_events = OFF; SET GLOBAL binlog_checksum = CRC32; \
             SET GLOBAL max_allowed_packet = 67108864; SET GLOBAL replica_max_allowed_packet = 1073741824; \
             SET GLOBAL replica_compressed_protocol = OFF; SET GLOBAL binlog_transaction_compression = OFF",
        )
        .unwrap();
    let (file, offset) = fleet.source.position().unwrap();
    fleet.mariadb.sql("STOP SLAVE").unwrap();
    fleet.mariadb.replicate_from_port(fleet.source.port(), &file, offset).unwrap();
    fleet.wait_for_dumps(3);

    let report = json(&ran);
    for (what, verdict, found) in [
        ("binlog_transaction_compression", "ok", "ON, level 3"),
        ("binlog_format", "warn", "MIXED"),
        ("binlog_row_image", "ok", "MINIMAL: there is less to save than with FULL"),
        ("binlog_rows_query_log_events", "ok", "ON: the statements' texts are compressed with the rows"),
        ("binlog_checksum", "warn", "NONE"),
        ("max_allowed_packet", "warn", "1 MiB"),
        ("replica_max_allowed_packet", "warn", "64 MiB"),
        ("connection_compression", "warn", "replica_compressed_protocol is ON"),
    ] {
        let row = row(&report, what);
        assert_eq!((row["verdict"].as_str(), row["found"].as_str()), (Some(verdict), Some(found)));
        let change = report["changes"].as_array().unwrap().iter().find(|change| change["what"] == what);
        assert_eq!(change.unwrap()["now"], row["found"]);
    }
    let stages = row(&report, "stage_timings")["found"].as_str().unwrap();
    assert!(stages.starts_with("Compressing ") && stages.contains("wait/io/file/sql/binlog"), "{stages}");
    let statistics = row(&report, "binary_log_transaction_compression_stats")["found"].as_str().unwrap();
    assert!(statistics.contains("BINARY ZSTD "), "{statistics}");
    // The Python client's second connection was there before.
    let old = row(&report, "sessions_with_another_value");
    assert_eq!(old["verdict"], "warn");
    assert!(old["found"].as_str().unwrap().contains("1 of repl with compression OFF"), "{old}");
    assert!(text.text().contains("Changed since the baseline:\n"), "{}", text.text());
    assert!(text.text().contains("    was  ok: ROW\n    is   warn: MIXED\n"), "{}", text.text());
}

#[test]
fn appliers_keep_the_value_they_began_with() {
    let Some(fleet) = alone() else { return };
    let folder = Folder::new();
    let appliers = || {
        let report = json(&doctor(&folder, ["--format=json", &at("monitor", &fleet.replica)]));
        row(&report, "appliers_with_another_value")["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(appliers(), "ok");
    fleet.replica.sql("SET GLOBAL binlog_transaction_compression = ON").unwrap();
    let held = appliers();
    fleet.replica.sql("STOP REPLICA SQL_THREAD; START REPLICA SQL_THREAD").unwrap();
    let restarted = appliers();
    fleet.replica.sql("SET GLOBAL binlog_transaction_compression = OFF").unwrap();
    fleet.replica.sql("STOP REPLICA SQL_THREAD; START REPLICA SQL_THREAD").unwrap();
    assert_eq!((held.as_str(), restarted.as_str()), ("warn", "ok"));
}

#[test]
fn ones_own_knowledge_comes_first() {
    let Some(fleet) = shared() else { return };
    let folder = Folder::new();
    folder.put(
        "knowledge.toml",
        "[[consumer]]\nname = 'orders'\nmatch = { user = 'repl', _client_name = 'pymysql' }\nsame_as = 'Debezium'\n\
         version_is = '2.7.3'\n",
    );
    let source = at("monitor", &fleet.source);
    let ran = doctor(&folder, ["--knowledge", "knowledge.toml", "--format=json", &source]);
    let report = json(&ran);
    let orders =
        rows(&report, "consumer").into_iter().find(|row| row["consumer"]["name"] == "orders").unwrap();
    assert_eq!(
        (&orders["consumer"]["reads"], &orders["consumer"]["version"]),
        (&"yes".into(), &"2.7.3".into())
    );
    folder.put("bad.toml", "[[consumer]]\nname = 3\n");
    let ran = doctor(&folder, ["--knowledge", "bad.toml", &source]);
    assert!(ran.code == Some(2) && ran.stderr.starts_with("binlogz: bad.toml: line 2: "), "{ran:?}");
}

#[test]
fn the_document_is_stable() {
    let Some(fleet) = shared() else { return };
    let folder = Folder::new();
    let report = json(&doctor(&folder, ["--format=json", &at("monitor", &fleet.source)]));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!((keys(&report).as_str(), &report["format"]), ("changes format servers", &1.into()));
    let server = &report["servers"][0];
    assert_eq!(keys(server), "error findings plan safe server server_uuid verdict version");
    assert_eq!(keys(&server["plan"][0]), "lines title");
    let consumer = rows(&report, "consumer")[0];
    assert_eq!(keys(consumer), "consumer found missing_grant remedy subject verdict what");
    assert_eq!(
        keys(&consumer["consumer"]),
        "account address certainty connection_id date name on_compressed reads server_id server_uuid since source tried version"
    );
    let mut names: Vec<_> =
        server["findings"].as_array().unwrap().iter().map(|row| row["what"].as_str().unwrap()).collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "version",
            "known_bug",
            "binlog_transaction_compression",
            "log_bin",
            "binlog_format",
            "binlog_row_image",
            "binlog_checksum",
            "binlog_encryption",
            "max_allowed_packet",
            "replica_max_allowed_packet",
            "binlog_rows_query_log_events",
            "group_replication_compression_threshold",
            "connection_compression",
            "replica_parallel_type",
            "binary_log_transaction_compression_stats",
            "stage_timings",
            "sessions_with_another_value",
            "appliers_with_another_value",
            "consumers",
            "consumer",
        ]
    );
}

#[test]
fn bad_usage_is_a_line() {
    let folder = Folder::new();
    for given in ["--password=secret", "-psecret", "-p=secret"] {
        let secret = doctor(&folder, [given, "db1"]);
        assert_eq!(secret.code, Some(2));
        assert!(
            secret.stderr.starts_with("binlogz: --password has a value: others would see it;"),
            "{secret:?}"
        );
        assert!(!secret.stderr.contains("secret"), "{secret:?}");
    }
    folder.put("empty", "# nobody\n");
    doctor(&folder, ["--targets", "empty"]).fails("--targets names no server");
    doctor(&folder, ["--targets", "none"]).fails("none: No such file or directory (os error 2)");
    folder.put("baseline", "{}");
    doctor(&folder, ["--since", "baseline", "db1"])
        .fails("baseline: is no baseline, expected the JSON document that doctor --save wrote");
    doctor(&folder, ["-h", "db1", "db2"])
        .fails("--host, --port and --socket name another server than SERVER does: give one of them");
}
