//! `doctor --profile` and `relay doctor`: what clients of a profile would not be sent as it is, of a real source's last hour; and that
//! a dump ends where they say.

use serde_json::Value;

use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, reserved_port, url};

const LOG: &str = "\
CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, word VARCHAR(10)); INSERT INTO a.t VALUES (1, 'one');
CREATE USER u1@'%' IDENTIFIED BY 'x'; GRANT SELECT ON a.* TO u1@'%';
CREATE TABLE a.docs (id INT PRIMARY KEY, doc JSON); INSERT INTO a.docs VALUES (1, '{}'); INSERT INTO a.docs VALUES (2, '[]');
SET gtid_next = 'AUTOMATIC:nightly'; INSERT INTO a.t VALUES (3, 'three'); SET gtid_next = 'AUTOMATIC';
XA START 'q'; INSERT INTO a.t VALUES (2, 'two'); XA END 'q'; XA PREPARE 'q'; XA ROLLBACK 'q';
";

fn doctor(folder: &Folder, source: &MysqlSandbox, options: &[&str]) -> (Option<i32>, Value) {
    let port = source.port().to_string();
    let mut command =
        folder.binlogz(["doctor", "--format", "json", "-u", "repl", "-P", &port, "-h", "127.0.0.1"]);
    let output = command.args(options).env("MYSQL_PWD", "repl").output().unwrap();
    let document = serde_json::from_slice(&output.stdout);
    let document =
        document.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), document)
}

/// Each finding as `PROFILE TREATMENT THING COUNT`, and the place of the first.
fn findings(surveyed: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |finding: &Value| {
        let words = ["profile", "treatment", "thing"].map(|key| text(&finding[key]));
        let place = format!("{} {}", text(&finding["log"]), finding["position"]);
        (format!("{} {}", words.join(" "), finding["transactions"]), place)
    };
    surveyed["findings"].as_array().unwrap().iter().map(one).collect()
}

/// The offset at which a dump of the uncompressed form ends, from the words of its error.
fn refused_at(relay: &Relay, mysql: &binlogz_testkit::InstalledTool, user: &str) -> String {
    let mut print = relay.mysqlbinlog(mysql, user);
    let output = print.args(["--get-server-public-key", "binlog-u.000001"]).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_a_profile_is_not_sent_is_named_with_its_first_place() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source.sql(LOG).unwrap();
    source.flush_binary_logs().unwrap();
    source.sql("INSERT INTO a.docs VALUES (3, '{}')").unwrap();

    let (code, report) = doctor(&folder, &source, &["--profile", "mariadb-11.4,mysql-8.3"]);
    let surveyed = &report["servers"][0]["surveyed"];
    let found = findings(surveyed);
    let counted: Vec<&str> = found.iter().map(|(finding, _)| finding.as_str()).collect();
    assert_eq!(
        counted,
        [
            "mariadb-11.4 refused JSON 3",
            "mariadb-11.4 left out accounts 2",
            "mariadb-11.4 translated tags 1",
            "mariadb-11.4 translated XA 2",
        ],
        "{report}"
    );
    assert_eq!(code, Some(1));
    assert_eq!(surveyed["profiles"], serde_json::json!(["mariadb-11.4", "mysql-8.3"]));
    assert!(surveyed["findings"][0]["why"].as_str().unwrap().contains("a.docs has a column of type JSON"));
    let gtid = surveyed["findings"][2]["gtid"].as_str().unwrap();
    assert!(gtid.ends_with(":nightly:1"), "{gtid}");
    assert_eq!(surveyed["stopped_at"], Value::Null);
    let (_, without) = doctor(&folder, &source, &[]);
    assert!(without["servers"][0].get("surveyed").is_none());
    let unknown = folder.run(["doctor", "--profile", "mariadb"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("expected one of mysql-5.5, mysql-5.6"), "{}", unknown.stderr);

    // The relay says the same of its own log, and ends a dump there.
    let mut relay = Configuration::of([url(&source)])
        .account("maria", "reads = \"mariadb-11.4\"")
        .account("new", "reads = \"mysql-8.3\"\nform = \"received\"")
        .ports(reserved_port(), reserved_port())
        .start(&folder);
    relay.has_all_of(&source);
    let output = folder.run(["relay", "doctor", "--format", "json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(findings(&told["logs"][0]), found, "{told}");
    assert_eq!(output.code, Some(1));
    let (_, first_json) = &found[0];
    let offset = first_json.strip_prefix("binlog.000001 ").unwrap();
    // The event is a little after the beginning of its transaction; nothing before it is compressed.
    let why = refused_at(&relay, mysql, "maria");
    let at: u64 = why.split("the rows at ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let begin: u64 = offset.parse().unwrap();
    assert!(begin < at && at < begin + 400, "{why}, {begin}");
    let shown = folder.run(["relay", "doctor"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(
            "look in the last hour: mariadb-11.4, refused, JSON: 3 transactions, first at binlog.000001"
        ),
        "{text}"
    );
    assert!(
        text.contains("note in the last hour: mariadb-11.4, left out, accounts: 2 transactions"),
        "{text}"
    );
    // From elsewhere, only its status is known.
    let elsewhere = folder.run(["relay", "doctor", &relay.http.to_string(), "--format", "json"]);
    let told: Value = serde_json::from_slice(&elsewhere.stdout).unwrap();
    assert_eq!(told["logs"], serde_json::json!([]));
}
