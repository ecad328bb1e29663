//! Drivers' questions before they dump: the relay answers as its source does, compared with a connection to the source.

use std::collections::BTreeSet;

use binlogz_source::wire::result_set::{AnswerColumn, ResultRow};
use binlogz_source::{ConnectOptions, Connection, Password, PasswordOption};
use binlogz_testkit::{Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, url};

/// Variables that the relay answers for itself, not for its source.
const ITS_OWN: [&str; 15] = [
    "gtid_purged",
    "hostname",
    "local_infile",
    "log_bin_basename",
    "port",
    "pseudo_thread_id",
    "read_only",
    "socket",
    "statement_id",
    "super_read_only",
    "timestamp",
    "version_comment",
    // The source warns of old names.
    "warning_count",
    // How it stores transactions, which is not how the source does.
    "binlog_transaction_compression",
    "binlog_transaction_compression_level_zstd",
];

/// The first statement of Connector/J 9.1.
const CONNECTOR_J: &str = "/* mysql-connector-j-9.1.0 (Revision: 1a98a07a) */SELECT  \
    @@session.auto_increment_increment AS auto_increment_increment, \
    @@character_set_client AS character_set_client, @@character_set_connection AS character_set_connection, \
    @@character_set_results AS character_set_results, @@character_set_server AS character_set_server, \
    @@collation_server AS collation_server, @@collation_connection AS collation_connection, \
    @@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout, @@license AS license, \
    @@lower_case_table_names AS lower_case_table_names, @@max_allowed_packet AS max_allowed_packet, \
    @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema, \
    @@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, \
    @@transaction_isolation AS transaction_isolation, @@wait_timeout AS wait_timeout";

/// Statements of drivers and change-data-capture clients, in this order on one connection.
const SAID: [&str; 52] = [
    CONNECTOR_J,
    "SELECT @@max_allowed_packet,@@wait_timeout",
    "SET NAMES utf8mb4",
    "SELECT @@character_set_client, @@collation_connection",
    "SET character_set_results = NULL",
    "SELECT @@character_set_results",
    "SHOW VARIABLES LIKE 'character_set_results'",
    "SET NAMES latin1 COLLATE latin1_bin",
    "SHOW SESSION VARIABLES WHERE Variable_name IN ('character_set_connection', 'collation_connection')",
    "SHOW GLOBAL VARIABLES WHERE Variable_name = 'character_set_connection' OR Variable_name LIKE 'binlog_row%'",
    "SET NAMES nosuchset",
    "SET NAMES utf8mb4 COLLATE nosuch_ci",
    "SET NAMES latin1 COLLATE utf8mb4_bin",
    "SET NAMES DEFAULT",
    "/*!40101 SET NAMES binary */",
    "SELECT @@session.character_set_client",
    "SELECT @@autocommit, @@global.autocommit, @@session.autocommit",
    "SET autocommit=0",
    "SELECT @@autocommit, @@global.autocommit",
    "SHOW VARIABLES LIKE 'autocommit'",
    "SET autocommit = maybe",
    "SET @@session.autocommit = ON",
    "SELECT @@autocommit",
    "SET wait_timeout=31536, net_write_timeout=600, SESSION net_read_timeout = DEFAULT",
    "SELECT @@wait_timeout, @@global.wait_timeout, @@net_write_timeout, @@net_read_timeout",
    "SET wait_timeout = 'long'",
    "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
    "SET sql_mode='strict_trans_tables'",
    "SELECT @@sql_mode",
    "SET time_zone = '+02:00'",
    "SELECT @@time_zone, @@session.time_zone, @@global.time_zone",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SELECT @@transaction_isolation",
    "SET SESSION TRANSACTION READ ONLY",
    "SELECT @@transaction_read_only",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "SELECT 1",
    "COMMIT",
    "BEGIN",
    "ROLLBACK",
    "SELECT DATABASE()",
    "USE mysql",
    "SELECT DATABASE(), SCHEMA()",
    "SELECT USER(), CURRENT_USER(), current_user",
    "SELECT VERSION(), 1, 'a', NULL",
    "SELECT @@nosuch",
    "SET SESSION nosuch = 1",
    "SHOW VARIABLES LIKE 'nosuch'",
    "SELECT @@global.sql_log_bin",
    "SELECT @@gtid_mode, @@log_bin, @@server_uuid, @@server_id, @@version",
    "SHOW WARNINGS",
    "SELECT @@GLOBAL.binlog_row_metadata, @@binlog_row_image, @@binlog_format, @@lower_case_table_names",
];

fn connect(port: u16) -> Connection {
    let mut options = ConnectOptions::new("test");
    options.set_url(&format!("mysql://app@127.0.0.1:{port}")).unwrap();
    options.password = PasswordOption::Given(Password::new("secret"));
    options.get_server_public_key = true;
    Connection::open(&options).unwrap()
}

/// Names, kinds and values, or the server's error.
fn ask(
    connection: &mut Connection,
    statement: &str,
) -> Result<(Vec<AnswerColumn>, Vec<ResultRow>), (u16, String)> {
    match connection.query(statement) {
        Ok(rows) => Ok((connection.columns().to_vec(), rows)),
        Err(error) => {
            let error = error.server_error().unwrap_or_else(|| panic!("{statement}: {error}"));
            Err((error.code, error.message.clone()))
        }
    }
}

/// The kinds that clients tell apart. Flags and lengths of texts depend on the expression.
fn kinds(columns: &[AnswerColumn]) -> Vec<(String, String)> {
    let kind = |column: &AnswerColumn| match (column.kind.is_text(), column.kind.is_integer()) {
        (true, _) => "text".to_owned(),
        (_, true) => "integer".to_owned(),
        _ => format!("type {}", column.kind.column_type),
    };
    columns.iter().map(|column| (String::from_utf8_lossy(&column.name).into_owned(), kind(column))).collect()
}

fn text(cell: &Option<Vec<u8>>) -> String {
    cell.as_ref().map_or("NULL".into(), |cell| String::from_utf8_lossy(cell).into_owned())
}

#[test]
fn drivers_get_the_sources_answers() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut source = mysql
        .sandbox()
        .option("binlog-row-metadata", "FULL")
        .option("binlog-row-image", "MINIMAL")
        .option("wait-timeout", "1234")
        .option("sql-mode", "NO_ENGINE_SUBSTITUTION")
        .start()
        .unwrap();
    source.sql("CREATE USER app IDENTIFIED BY 'secret'; GRANT SELECT ON mysql.* TO app").unwrap();
    let configuration = Configuration::of([url(&source)]).account("app", "form = \"received\"");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);

    // Every variable of the source, by SELECT and by SHOW, in both scopes.
    let mut of_source = connect(source.port());
    let mut of_relay = connect(relay.port);
    for scope in ["GLOBAL", "SESSION"] {
        let listed = format!("SHOW {scope} VARIABLES");
        let [theirs, ours] =
            [&mut of_source, &mut of_relay].map(|connection| ask(connection, &listed).unwrap());
        assert_eq!(kinds(&theirs.0), kinds(&ours.0));
        let names: Vec<String> = theirs.1.iter().map(|row| text(&row[0])).collect();
        assert!(names.len() > 500, "{names:?}");
        assert_eq!(names, ours.1.iter().map(|row| text(&row[0])).collect::<Vec<_>>(), "{scope}");
        let rows = theirs.1.iter().zip(&ours.1);
        let differ: BTreeSet<String> =
            rows.filter(|(theirs, ours)| theirs != ours).map(|(theirs, _)| text(&theirs[0])).collect();
        let unexpected: Vec<_> = differ.iter().filter(|name| !ITS_OWN.contains(&name.as_str())).collect();
        assert!(unexpected.is_empty(), "{scope}: {unexpected:?}");

        // Those of sessions only are refused there, and so are those of the server only as a session's.
        let of_scope: Vec<&String> = names
            .iter()
            .filter(|name| ask(&mut of_source, &format!("SELECT @@{scope}.{name}")).is_ok())
            .collect();
        assert!(of_scope.len() > 100);
        let items: Vec<String> = of_scope.iter().map(|name| format!("@@{scope}.{name}")).collect();
        let select = format!("SELECT {}", items.join(", "));
        let [theirs, ours] =
            [&mut of_source, &mut of_relay].map(|connection| ask(connection, &select).unwrap());
        assert_eq!(kinds(&theirs.0), kinds(&ours.0));
        let cells = of_scope.iter().zip(theirs.1[0].iter().zip(&ours.1[0]));
        let unexpected: Vec<_> = cells
            .filter(|(name, (theirs, ours))| theirs != ours && !ITS_OWN.contains(&name.as_str()))
            .collect();
        assert!(unexpected.is_empty(), "{scope}: {unexpected:?}");
    }

    // On connections of their own.
    let mut of_source = connect(source.port());
    let mut of_relay = connect(relay.port);
    let mut unlike = Vec::new();
    for statement in SAID {
        let [theirs, ours] = [&mut of_source, &mut of_relay]
            .map(|connection| ask(connection, statement).map(|(columns, rows)| (kinds(&columns), rows)));
        if ours != theirs {
            unlike.push(format!("{statement}: {ours:?}, expected {theirs:?}"));
        }
    }
    assert!(unlike.is_empty(), "{}", unlike.join("\n"));
    let own = ask(&mut of_relay, "SELECT @@read_only, @@super_read_only, @@port, CONNECTION_ID() = 0");
    assert!(own.is_err(), "{own:?}");
    let own = ask(&mut of_relay, "SELECT @@read_only, @@super_read_only, @@port, @@socket").unwrap().1;
    let port = relay.port.to_string().into_bytes();
    assert_eq!(own, [[Some(b"1".to_vec()), Some(b"1".to_vec()), Some(port), None]]);

    // The relay sees changes of the source at its next connect, and its knowledge outlives the source.
    source.sql("SET GLOBAL binlog_row_image = FULL").unwrap();
    let image = "SELECT @@binlog_row_image";
    assert_eq!(text(&ask(&mut of_relay, image).unwrap().1[0][0]), "MINIMAL");
    drop(relay);
    // Also where what it knew is damaged: it is fetched again.
    folder.put("kept/relay.variables", "{\"variables\": 7}");
    let mut relay: Relay = configuration.start(&folder);
    let port = relay.port;
    // Before it has asked the source, it has defaults of its own, and not all variables.
    relay.wait_for("the source's new value", |_| {
        let mut client = connect(port);
        let image = ask(&mut client, image).is_ok_and(|answer| text(&answer.1[0][0]) == "FULL");
        (image && ask(&mut client, CONNECTOR_J).is_ok()).then_some(())
    });
    drop(relay);
    source.stop().unwrap();
    let relay = configuration.start(&folder);
    let mut of_relay = connect(relay.port);
    let answer = ask(&mut of_relay, CONNECTOR_J).unwrap().1;
    assert_eq!(answer[0].len(), 19);
    assert_eq!(text(&answer[0][18]), "1234");
    assert_eq!(text(&ask(&mut of_relay, image).unwrap().1[0][0]), "FULL");
}
