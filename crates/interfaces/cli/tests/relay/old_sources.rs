//! Sources older than 9.7: MySQL 5.6 and 8.0.33 as the relay's clients see them.
//!
//! 8.0.33 is a download of 550 MB: `scripts/soak/old-servers.sh` runs those tests.

use std::collections::BTreeMap;

use binlogz_testkit::{Mysql56Sandbox, SandboxServer, Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay};

/// Variables that the relay answers for itself.
const OWN: [&str; 25] = [
    "binlog_checksum",
    "binlog_transaction_compression",
    "binlog_transaction_compression_level_zstd",
    "enforce_gtid_consistency",
    "gtid_executed",
    "gtid_mode",
    "gtid_owned",
    "gtid_purged",
    "hostname",
    "local_infile",
    "log_bin",
    "log_bin_basename",
    "port",
    "pseudo_thread_id",
    "read_only",
    "require_secure_transport",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_source_enabled",
    "server_id",
    "server_uuid",
    "socket",
    "super_read_only",
    "timestamp",
    "version",
    "version_comment",
];
/// Variables that Connector/J asks for in one statement, as far as 5.6 has them.
const OF_DRIVERS: [&str; 16] = [
    "auto_increment_increment",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "character_set_server",
    "collation_server",
    "init_connect",
    "interactive_timeout",
    "license",
    "lower_case_table_names",
    "max_allowed_packet",
    "net_write_timeout",
    "performance_schema",
    "sql_mode",
    "time_zone",
    "wait_timeout",
];

fn followed(source: &SandboxServer, folder: &Folder) -> Relay {
    Configuration::of([format!("mysql://repl@127.0.0.1:{}", source.port())])
        .account("reader", "form = \"received\"")
        .start(folder)
}

/// A source's variables at the relay, in SHOW and SELECT.
fn has_variables_of(source: &SandboxServer, relay: &mut Relay) {
    let mysql = Tool::Mysql.find().unwrap();
    let plain = &["--ssl-mode=disabled", "--get-server-public-key"];
    let known = "SHOW GLOBAL VARIABLES LIKE 'wait_timeout'";
    relay.wait_for("variables", |relay| {
        relay.sql(mysql, "reader", plain, known).is_ok_and(|row| !row.is_empty()).then_some(())
    });
    let listed = |text: String| -> BTreeMap<String, String> {
        let row = |line: &str| line.split_once('\t').map(|(name, value)| (name.to_owned(), value.to_owned()));
        text.lines().filter_map(row).collect()
    };
    let all = "SHOW GLOBAL VARIABLES";
    let there = listed(source.sql(all).unwrap());
    let here = listed(relay.sql(mysql, "reader", plain, all).unwrap());
    assert!(there.len() > 300, "{}", there.len());
    for (name, value) in there.iter().filter(|(name, _)| !OWN.contains(&name.as_str())) {
        assert_eq!(here.get(name), Some(value), "{name}");
    }
    for name in here.keys().filter(|name| !there.contains_key(*name)) {
        assert!(OWN.contains(&name.as_str()), "the source has no {name}");
    }
    let select = format!("SELECT @@GLOBAL.{}", OF_DRIVERS.join(", @@GLOBAL."));
    assert_eq!(relay.sql(mysql, "reader", plain, &select).unwrap(), source.sql(&select).unwrap());
}

#[test]
fn the_variables_are_those_of_a_source_of_5_6() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    require_tool!(Tool::Mysql56);
    let folder = Folder::new();
    let source = Mysql56Sandbox::start(&[("sql-mode", "ANSI_QUOTES"), ("wait-timeout", "1234")]).unwrap();
    source.sql("CREATE DATABASE shop").unwrap();
    has_variables_of(&source, &mut followed(&source, &folder));
}

#[test]
#[ignore = "MySQL 8.0.33 is a download of 550 MB"]
fn the_variables_are_those_of_a_source_of_8_0() {
    require_tool!(Tool::Mysql);
    let mysql80 = require_tool!(Tool::Mysql80);
    let folder = Folder::new();
    let source = mysql80.sandbox().option("wait-timeout", "1234").start().unwrap();
    source.sql("CREATE DATABASE shop").unwrap();
    has_variables_of(&source, &mut followed(&source, &folder));
}

#[test]
#[ignore = "MySQL 8.0.33 is a download of 550 MB"]
fn the_statistics_of_compression_are_those_of_a_source_of_8_0() {
    let mysql = require_tool!(Tool::Mysql);
    let mysql80 = require_tool!(Tool::Mysql80);
    let folder = Folder::new();
    let source = mysql80.sandbox().compression(3).start().unwrap();
    source
        .sql(
            "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT);
             INSERT INTO shop.t (body) VALUES ('a');
             INSERT INTO shop.t (body) VALUES (REPEAT('the same ', 200));
             INSERT INTO shop.t (body) SELECT REPEAT(SHA2(id, 512), 20000) FROM shop.t;
             SET SESSION binlog_transaction_compression = OFF; INSERT INTO shop.t (body) VALUES ('plain');
             SET SESSION binlog_transaction_compression = ON; DELETE FROM shop.t WHERE id < 3",
        )
        .unwrap();
    let mut relay = followed(&source, &folder);
    relay.has_all_of(&source);
    let of = |kind: &str| {
        format!(
            "SELECT LOG_TYPE, COMPRESSION_TYPE, TRANSACTION_COUNTER, COMPRESSED_BYTES_COUNTER, UNCOMPRESSED_BYTES_COUNTER, \
             COMPRESSION_PERCENTAGE, FIRST_TRANSACTION_ID, FIRST_TRANSACTION_COMPRESSED_BYTES, \
             FIRST_TRANSACTION_UNCOMPRESSED_BYTES, LAST_TRANSACTION_ID, LAST_TRANSACTION_COMPRESSED_BYTES, \
             LAST_TRANSACTION_UNCOMPRESSED_BYTES FROM performance_schema.binary_log_transaction_compression_stats \
             WHERE LOG_TYPE = 'BINARY' AND COMPRESSION_TYPE = '{kind}'"
        )
    };
    for kind in ["ZSTD", "NONE"] {
        let ours = relay.sql(mysql, "reader", &["--ssl-mode=disabled", "--get-server-public-key"], &of(kind));
        let theirs = source.sql(&of(kind)).unwrap();
        assert!(!theirs.is_empty());
        assert_eq!(ours.unwrap(), theirs, "{kind}");
    }
}
