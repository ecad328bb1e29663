//! A client's statements to the source through the relay (`forward_sql`): schemas, snapshots, prepared statements, with its
//! own rights; and a snapshot's position, which is the relay's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_source::{ConnectOptions, Connection, PassOn, Password, PasswordOption};
use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, client, sql, url};

const PLAIN: &[&str] = &["--ssl-mode=disabled", "--get-server-public-key"];

fn connect(port: u16, user: &str) -> Connection {
    let mut options = ConnectOptions::new("test");
    options.set_url(&format!("mysql://{user}@127.0.0.1:{port}")).unwrap();
    options.password = PasswordOption::Given(Password::new("secret"));
    options.get_server_public_key = true;
    Connection::open(&options).unwrap()
}

/// A source with accounts whose passwords are those of the relay's.
fn source(mysql: &'static binlogz_testkit::InstalledTool) -> MysqlSandbox {
    let source = mysql.sandbox().compression(3).start().unwrap();
    source
        .sql(
            "CREATE DATABASE shop;
             CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(200) NOT NULL);
             INSERT INTO shop.orders (note) VALUES ('one'), ('two'), (REPEAT('long ', 30));
             CREATE USER app IDENTIFIED BY 'secret';
             GRANT SELECT, RELOAD, PROCESS, LOCK TABLES, SHOW VIEW, TRIGGER, EVENT, REPLICATION CLIENT ON *.* TO app;
             CREATE USER poor IDENTIFIED BY 'secret'; GRANT SELECT ON shop.orders TO poor;
             CREATE USER other IDENTIFIED BY 'other'; GRANT SELECT (id) ON shop.orders TO other",
        )
        .unwrap();
    source
}

fn configuration(source: &MysqlSandbox, keys: &str) -> Configuration {
    Configuration::of([url(source)])
        .listen(format!("forward_sql = true\nform = \"uncompressed\"\n{keys}"))
        .account("app", "admin = true")
        .account("poor", "")
        .account("stranger", "")
        .account("mapped", "source_user = \"other\"\nsource_password_file = \"other.password\"")
}

fn started(folder: &Folder, configuration: &Configuration, source: &MysqlSandbox) -> Relay {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.put("other.password", "other\n");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut relay = configuration.start(folder);
    relay.has_all_of(source);
    relay
}

/// Bytes of answers.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl PassOn for Bytes {
    fn pass(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn is_awaited(&mut self) -> bool {
        true
    }
}

#[test]
fn what_the_source_answers_has_its_bytes_and_the_accounts_rights() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = source(mysql);
    let mut relay = started(&folder, &configuration(&source, ""), &source);

    // The same commands on both: the same packets, up to the numbers of connections.
    let (mut there, mut through) = (connect(source.port(), "app"), connect(relay.port, "app"));
    let execute = b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\x08\0\x02\0\0\0\0\0\0\0";
    let commands: [&[u8]; 22] = [
        b"\x03SET NAMES latin1",
        b"\x03SET @mine = 5, sql_mode = 'ANSI_QUOTES'",
        b"\x03SHOW CREATE TABLE shop.orders",
        b"\x03SELECT @mine, @@sql_mode",
        b"\x02shop",
        b"\x03SHOW FULL COLUMNS FROM orders",
        b"\x03SELECT \"note\" FROM orders ORDER BY id",
        b"\x03SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = DATABASE()",
        b"\x03SHOW WARNINGS",
        b"\x03SELECT CAST('x' AS SIGNED)",
        b"\x03SHOW WARNINGS",
        b"\x04orders\0",
        b"\x16SELECT id, note FROM orders WHERE id >= ?",
        execute,
        b"\x1a\x01\0\0\0",
        execute,
        b"\x03BEGIN",
        b"\x03SELECT COUNT(*) FROM orders FOR SHARE",
        b"\x03COMMIT",
        b"\x03SELECT * FROM nosuch",
        b"\x03LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE orders",
        b"\x02nosuch",
    ];
    for command in commands {
        let [theirs, ours] = [&mut there, &mut through].map(|connection| {
            let mut bytes = Bytes::default();
            connection.forward(command, &mut bytes).unwrap();
            bytes.0
        });
        assert!(ours == theirs, "{}: {}", command.escape_ascii(), ours.escape_ascii());
    }
    // Nothing answers these; what follows them shows that nothing did.
    through.forward(b"\x19\x01\0\0\0", &mut Bytes::default()).unwrap();
    assert_eq!(
        through.query("SELECT DATABASE(), @mine").unwrap(),
        [[Some(b"shop".to_vec()), Some(b"5".to_vec())]]
    );

    // Rights are the account's at the source.
    let tell = |user: &str, statement: &str| relay.sql(mysql, user, PLAIN, statement);
    assert_eq!(tell("poor", "SELECT id FROM shop.orders").unwrap(), "1\n2\n3\n");
    let denied = tell("poor", "SELECT * FROM mysql.user").unwrap_err();
    assert!(denied.contains("ERROR 1142") && denied.contains("'poor'"), "{denied}");
    assert_eq!(tell("mapped", "SELECT id FROM shop.orders").unwrap(), "1\n2\n3\n");
    let denied = tell("mapped", "SELECT note FROM shop.orders").unwrap_err();
    assert!(denied.contains("ERROR 1143") && denied.contains("'other'"), "{denied}");
    let unknown = tell("stranger", "SELECT id FROM shop.orders").unwrap_err();
    assert!(
        unknown.contains("ERROR 1045") && unknown.contains("forwarded to the source as stranger"),
        "{unknown}"
    );
    // What the relay answers itself needs no login there.
    assert_eq!(tell("stranger", "SELECT @@read_only; SHOW BINARY LOGS").unwrap().lines().next(), Some("1"));

    // Positions are the relay's alone, and so are the numbers of connections.
    let status = tell("app", "SELECT COUNT(*) FROM shop.orders; SHOW BINARY LOG STATUS").unwrap();
    assert!(status.contains("\nbinlog-u.000001\t"), "{status}");
    for (statement, error) in [
        ("SELECT NOW(), @@GLOBAL.gtid_executed", "the relay answers for positions itself"),
        ("SELECT * FROM performance_schema.log_status", "the relay answers for positions itself"),
        ("KILL QUERY 5", "ERROR 1094"),
        ("SET GLOBAL sync_binlog = 7", "no global sync_binlog to set"),
    ] {
        let refused = tell("app", statement).unwrap_err();
        assert!(refused.contains(error), "{statement}: {refused}");
    }
    let mut bytes = Bytes::default();
    assert!(through.forward(b"\x16SHOW BINARY LOG STATUS", &mut bytes).unwrap().is_refused());
    assert!(bytes.0.windows(2).any(|code| code == 1295_u16.to_le_bytes()));

    // A dump of everything has a table that is called like a variable of positions, and mysqldump of 8.0 says FLUSH as COM_REFRESH.
    let mut everything = client(mysql, "mysqldump", relay.port, "app", "secret");
    everything.args(PLAIN).args(["--all-databases", "--single-transaction", "--source-data=2", "--no-data"]);
    let dumped = everything.output().unwrap();
    assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    let dumped = String::from_utf8_lossy(&dumped.stdout).into_owned();
    assert!(dumped.contains("CREATE TABLE IF NOT EXISTS `gtid_executed`"), "{dumped}");
    assert!(dumped.contains("SOURCE_LOG_FILE='binlog-u.000001'"), "{dumped}");
    for command in [b"\x07\x40".as_slice(), b"\x0a"] {
        let [theirs, ours] = [&mut there, &mut through].map(|connection| {
            let mut bytes = Bytes::default();
            connection.forward(command, &mut bytes).unwrap();
            bytes.0[4]
        });
        assert_eq!(ours, theirs, "{command:?}");
    }

    // COM_RESET_CONNECTION ends what was begun there.
    through.forward(b"\x1f", &mut Bytes::default()).unwrap();
    assert_eq!(through.query("SELECT @mine, DATABASE()").unwrap(), [[None, None]]);

    // Without the option, the error names it.
    drop(relay);
    relay = Configuration::of([url(&source)]).account("app", "").start(&folder);
    let named = relay.sql(mysql, "app", PLAIN, "SHOW CREATE TABLE shop.orders").unwrap_err();
    assert!(named.contains("forward_sql = true"), "{named}");
}

#[test]
fn read_only_is_the_sources_for_a_relay_that_is_told_so() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = source(mysql);
    let relay = started(&folder, &configuration(&source, "read_only = \"source\""), &source);
    let asked = "SELECT @@read_only, @@GLOBAL.super_read_only; SHOW VARIABLES LIKE 'read_only'; \
                 SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'super_read_only')";
    let tell = |statements: &str| relay.sql(mysql, "app", PLAIN, statements).unwrap();
    assert_eq!(tell(asked), "0\t0\nread_only\tOFF\nread_only\tOFF\nsuper_read_only\tOFF\n");
    assert_eq!(tell("SELECT @@read_only, @@version_comment"), "0\tbinlogz relay\n");
    // As it is now, not as when the relay connected.
    source.sql("SET GLOBAL super_read_only = ON").unwrap();
    assert_eq!(tell(asked), source.sql(asked).unwrap());
    assert!(tell(asked).starts_with("1\t1\n"));
    let told = relay.sql(mysql, "stranger", PLAIN, "SELECT @@read_only").unwrap_err();
    assert!(told.contains("forwarded to the source as stranger"), "{told}");
}

#[test]
fn a_position_is_told_once_the_relay_has_what_the_client_saw() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = source(mysql);
    let relay = started(&folder, &configuration(&source, "forward_wait_ms = 700"), &source);

    relay.sql(mysql, "app", PLAIN, "STOP REPLICA").unwrap();
    source.sql("INSERT INTO shop.orders (note) VALUES ('late')").unwrap();
    let mut client = connect(relay.port, "app");
    let before = client.query("SHOW BINARY LOG STATUS").unwrap();
    assert_eq!(client.query("SELECT COUNT(*) FROM shop.orders").unwrap(), [[Some(b"4".to_vec())]]);
    let executed = source.gtid_executed().unwrap();
    let last = executed.rsplit(['-', ':']).next().unwrap();
    for statement in ["SHOW BINARY LOG STATUS", "SELECT @@gtid_executed", "SHOW MASTER STATUS"] {
        let error = client.query(statement).unwrap_err().to_string();
        assert!(error.contains("would lie before what this connection may have read there"), "{error}");
        assert!(error.contains(&format!(":{last} of its source")), "{error}");
    }
    // A client that saw nothing there is told at once.
    assert_eq!(connect(relay.port, "app").query("SHOW BINARY LOG STATUS").unwrap(), before);
    relay.sql(mysql, "app", PLAIN, "START REPLICA").unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    let after = loop {
        match client.query("SHOW BINARY LOG STATUS") {
            Ok(rows) => break rows,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    };
    assert_eq!(String::from_utf8_lossy(after[0][4].as_ref().unwrap()).replace('\n', ""), executed);
    assert!(after != before);
}

#[test]
fn a_position_of_a_source_without_gtids_is_told_once_the_relay_has_what_the_client_saw() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source =
        mysql.sandbox().option("gtid-mode", "OFF").option("enforce-gtid-consistency", "OFF").start().unwrap();
    source
        .sql(
            "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, note TEXT);
             CREATE USER app IDENTIFIED BY 'secret'; GRANT SELECT, REPLICATION CLIENT ON *.* TO app",
        )
        .unwrap();
    let configuration = Configuration::of([url(&source)])
        .listen("forward_sql = true\nforward_wait_ms = 700\nform = \"received\"")
        .account("app", "admin = true");
    let mut relay = configuration.start(&folder);
    relay.wait_for("log", |relay| relay.sql(mysql, "app", PLAIN, "SELECT 1").ok());
    let end = |rows: &[Vec<Option<Vec<u8>>>]| -> (String, u64) {
        let cell = |at: usize| String::from_utf8(rows[0][at].clone().unwrap()).unwrap();
        (cell(0), cell(1).parse().unwrap())
    };
    let of_source = || {
        let status = source.sql("SHOW BINARY LOG STATUS").unwrap();
        let mut cells = status.split('\t');
        (cells.next().unwrap().to_owned(), cells.next().unwrap().parse::<u64>().unwrap())
    };
    let mut client = connect(relay.port, "app");
    relay.wait_for("whole log", |_| {
        let rows = client.query("SHOW BINARY LOG STATUS").unwrap();
        (!rows.is_empty() && end(&rows) == of_source()).then_some(())
    });
    let before = of_source();

    relay.sql(mysql, "app", PLAIN, "STOP REPLICA").unwrap();
    source.sql("INSERT INTO shop.orders (note) VALUES ('late')").unwrap();
    assert_eq!(client.query("SELECT COUNT(*) FROM shop.orders").unwrap(), [[Some(b"1".to_vec())]]);
    let (file, offset) = of_source();
    let error = client.query("SHOW BINARY LOG STATUS").unwrap_err().to_string();
    assert!(error.contains("would lie before what this connection may have read there"), "{error}");
    assert!(error.contains(&file) && error.contains(&offset.to_string()), "{error}");
    // A client that saw nothing there is told at once.
    let mut other = connect(relay.port, "app");
    assert_eq!(end(&other.query("SHOW BINARY LOG STATUS").unwrap()), before);
    relay.sql(mysql, "app", PLAIN, "START REPLICA").unwrap();
    let rows = relay.wait_for("position", |_| client.query("SHOW BINARY LOG STATUS").ok());
    assert_eq!(end(&rows), (file, offset));
}

#[test]
fn a_snapshot_under_writes_joins_its_stream() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = source(mysql);
    let relay = started(&folder, &configuration(&source, "forward_wait_ms = 120000"), &source);
    let replica = mysql.sandbox().start().unwrap();

    // mysqldump takes it while others write: FLUSH TABLES WITH READ LOCK, START TRANSACTION WITH CONSISTENT SNAPSHOT,
    // SHOW BINARY LOG STATUS, SHOW CREATE TABLE, SELECT.
    let (stop, written) = (AtomicBool::new(false), AtomicBool::new(false));
    let dump = folder.path("shop.sql");
    let tell = |statement: &str| relay.sql(mysql, "app", PLAIN, statement).unwrap();
    // The relay lags: it receives again once the snapshot is there.
    tell("STOP REPLICA");
    let snapshots = "SELECT COUNT(*) FROM information_schema.innodb_trx JOIN performance_schema.processlist
                     ON trx_mysql_thread_id = ID WHERE USER = 'app'";
    thread::scope(|scope| {
        for writer in 0..2 {
            let (source, stop, written) = (&source, &stop, &written);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let rows =
                        format!("INSERT INTO shop.orders (note) VALUES ('{writer}'), (REPEAT('same ', 30));");
                    source.sql(&rows.repeat(50)).unwrap();
                    written.store(true, Ordering::Relaxed);
                }
            });
        }
        while !written.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(20));
        }
        let taken = scope.spawn(|| {
            let mut command = client(mysql, "mysqldump", relay.port, "app", "secret");
            command.args(PLAIN).args(["--single-transaction", "--source-data=1", "--set-gtid-purged=ON"]);
            command.arg(format!("--result-file={}", dump.display())).args(["--databases", "shop"]);
            command.output().unwrap()
        });
        // InnoDB answers from a cache that it renews only if nobody has read it for 100 ms.
        while !taken.is_finished() && source.sql(snapshots).unwrap().trim() == "0" {
            thread::sleep(Duration::from_millis(200));
        }
        tell("START REPLICA");
        let taken = taken.join();
        stop.store(true, Ordering::Relaxed);
        let taken = taken.unwrap();
        assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    });
    let text = std::fs::read_to_string(&dump).unwrap();
    let position = text.lines().find(|line| line.starts_with("CHANGE REPLICATION SOURCE TO")).expect(&text);
    assert!(position.contains("SOURCE_LOG_FILE='binlog-u.000001'"), "{position}");

    // Loaded into a replica that continues at the dump's position, every row is there once: a repeated one would end the
    // replica at its key, a missing one shows in the checksum.
    replica.sql("RESET BINARY LOGS AND GTIDS").unwrap();
    replica.sql_file(&dump).unwrap();
    let loaded: u64 = replica.sql("SELECT COUNT(*) FROM shop.orders").unwrap().trim().parse().unwrap();
    let all: u64 = source.sql("SELECT COUNT(*) FROM shop.orders").unwrap().trim().parse().unwrap();
    assert!(loaded < all, "nothing was written meanwhile");
    let start = position.trim_start_matches("CHANGE REPLICATION SOURCE TO ").trim_end_matches(';');
    relay.replicates_to(&replica, "app", &format!("{start}, SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1"));
    relay.brings(&source, &replica, &["shop"]);
}

/// The end of the source while a client waits, and the end of a client.
#[test]
fn a_source_that_ends_is_told_and_a_client_that_ends_lets_go() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut source = source(mysql);
    let relay = started(&folder, &configuration(&source, ""), &source);
    let connections = |source: &MysqlSandbox| -> u64 {
        let count = "SELECT COUNT(*) FROM performance_schema.processlist WHERE USER = 'app'";
        source.sql(count).unwrap().trim().parse().unwrap()
    };
    let until = Instant::now() + Duration::from_secs(120);
    let wait_for = |what: &str, found: &dyn Fn() -> bool| {
        while !found() {
            assert!(Instant::now() < until, "{what}");
            thread::sleep(Duration::from_millis(20));
        }
    };
    let mut locking = connect(relay.port, "app");
    locking.query("FLUSH TABLES WITH READ LOCK").unwrap();
    assert_eq!(connections(&source), 1);
    // A client goes while its statement runs: so does its connection.
    let waits = sql_in_background(client(mysql, "mysql", relay.port, "poor", "secret"), "SELECT SLEEP(600)");
    let sleeps = |source: &MysqlSandbox| {
        let count = "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO LIKE 'SELECT SLEEP%' AND USER = 'poor'";
        source.sql(count).unwrap().trim() == "1"
    };
    wait_for("the forwarded statement", &|| sleeps(&source));
    drop(waits);
    // The source looks every 5 s whether anybody still waits for a sleep.
    wait_for("the end of the statement", &|| !sleeps(&source));
    drop(locking);
    wait_for("the end of the client's connection", &|| connections(&source) == 0);
    source.sql("INSERT INTO shop.orders (note) VALUES ('no lock')").unwrap();

    let mut begun = connect(relay.port, "app");
    begun.query("START TRANSACTION WITH CONSISTENT SNAPSHOT").unwrap();
    source.stop().unwrap();
    let error = begun.query("SELECT * FROM shop.orders").unwrap_err();
    assert_eq!(error.server_error().map(|error| error.code), Some(1053), "{error}");
    assert!(begun.query("SELECT 1").is_err());
    let mut late = connect(relay.port, "app");
    let error = late.query("SELECT * FROM shop.orders").unwrap_err().to_string();
    assert!(error.contains("can't forward this to the source"), "{error}");
    assert_eq!(late.query("SELECT 1").unwrap(), [[Some(b"1".to_vec())]]);
    assert!(sql(client(mysql, "mysql", relay.port, "app", "secret"), "SHOW BINARY LOG STATUS").is_ok());
}

fn sql_in_background(mut client: std::process::Command, statement: &str) -> crate::common::relay::Running {
    client.args(PLAIN).args(["--batch", "--execute", statement]);
    client.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    crate::common::relay::Running(client.spawn().unwrap())
}

/// Ways to ask a source how far it is, which no relay takes for that: each is a connection's statements, the last of which is answered.
const SPELLINGS: [&[&str]; 7] = [
    &["SHOW GLOBAL VARIABLES WHERE Variable_name LIKE 'gtid_ex%'"],
    &["SELECT VARIABLE_VALUE FROM performance_schema.global_variables WHERE VARIABLE_NAME LIKE 'gtid%ted'"],
    &["SET @a = CONCAT('SELECT @@GLO', 'BAL.gtid_ex', 'ecuted')", "PREPARE s FROM @a", "EXECUTE s"],
    &["SET @a = CONCAT('SHOW BINARY', ' LOG STATUS')", "PREPARE s FROM @a", "EXECUTE s"],
    &["/*!50000 SHOW BINARY LOG STATUS */"],
    &["SELECT * FROM shop.how_far"],
    &["SELECT 'x', UPPER(v) FROM shop.how_far"],
];

#[test]
fn whatever_the_statement_no_answer_tells_of_what_the_relay_lacks() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = source(mysql);
    source
        .sql(
            "CREATE VIEW shop.how_far AS SELECT VARIABLE_VALUE v FROM performance_schema.global_variables \
             WHERE VARIABLE_NAME = 'gtid_executed'",
        )
        .unwrap();
    let relay = started(&folder, &configuration(&source, "forward_wait_ms = 300"), &source);
    let ask = |statements: &[&str]| {
        let mut client = connect(relay.port, "app");
        let mut last = Ok(Vec::new());
        for statement in statements {
            last = client.query(statement);
        }
        let text = |rows: Vec<Vec<Option<Vec<u8>>>>| {
            let cells = rows.into_iter().flatten().flatten();
            cells.map(|cell| String::from_utf8_lossy(&cell).to_lowercase()).collect::<Vec<_>>().join(" ")
        };
        last.map(text).map_err(|error| error.to_string())
    };
    relay.sql(mysql, "app", PLAIN, "STOP REPLICA").unwrap();
    source.sql("INSERT INTO shop.orders (note) VALUES ('late')").unwrap();
    let executed = source.gtid_executed().unwrap();
    for statements in SPELLINGS {
        match ask(statements) {
            Ok(told) => assert!(!told.contains(&executed), "{statements:?}: {told}"),
            Err(error) => assert!(error.contains("the relay does not have"), "{statements:?}: {error}"),
        }
    }
    // GTIDs that are nobody's, and the source's own that the relay has, are data like other.
    let uuid = source.server_uuid().unwrap();
    let told = ask(&[&format!("SELECT NOW(), '{uuid}:1', '{uuid}:999999'")]).unwrap();
    assert!(told.ends_with(&format!("{uuid}:1 {uuid}:999999")), "{told}");
    relay.sql(mysql, "app", PLAIN, "START REPLICA").unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    for statements in SPELLINGS {
        let told = loop {
            match ask(statements) {
                Ok(told) if told.contains(&executed) => break told,
                other => assert!(Instant::now() < until, "{statements:?}: {other:?}"),
            }
        };
        assert!(told.contains(&uuid), "{told}");
    }
}
