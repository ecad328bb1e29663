//! A MariaDB log is called one, and its events have MariaDB's names.

use std::fs;

use crate::common::Folder;
use binlogz_testkit::{MariadbSandbox, Tool, require_tool};

/// Rows, a statement and a DDL, row images compressed where they are long.
const WORK: &str = "\
CREATE DATABASE d;
CREATE TABLE d.t (a INT, b TEXT);
INSERT INTO d.t VALUES (1, REPEAT('x', 1000));
UPDATE d.t SET a = 2;
DELETE FROM d.t;
FLUSH BINARY LOGS";

#[test]
fn a_log_of_mariadb_is_called_one() {
    require_tool!(Tool::Mariadb);
    let options = [("binlog-format", "ROW"), ("log-bin-compress", "ON"), ("log-bin-compress-min-len", "10")];
    let server = MariadbSandbox::start(&options).unwrap();
    server.sql(WORK).unwrap();
    let folder = Folder::new();
    folder.put("binlog.000001", fs::read(server.datadir().join("binlog.000001")).unwrap());

    // As the server itself lists them: name, position, type.
    let column = |text: &str, columns: [usize; 3]| -> Vec<String> {
        let row = |line: &str| {
            let cells: Vec<_> = line.split('\t').collect();
            columns.map(|column| cells[column]).join(" ")
        };
        text.lines().map(row).collect()
    };
    let listed = server.sql("SHOW BINLOG EVENTS IN 'binlog.000001'").unwrap();
    let ran = folder.run(["events", "--format=tsv", "binlog.000001"]);
    let ours: Vec<_> = column(ran.text(), [0, 1, 2]).split_off(1);
    assert_eq!(ours, column(&listed, [0, 1, 2]));
    assert!(ran.text().contains("\tAnnotate_rows\t"), "{}", ran.text());
    assert!(ran.text().contains("\tUPDATE d.t SET a = 2\n"), "{}", ran.text());

    let version = server.sql("SELECT VERSION()").unwrap();
    let warning = format!(
        "binlogz: warning: binlog.000001: is a log of MariaDB ({}), which has no transaction compression: none of its \
         transactions is compressed or can be\n",
        version.trim()
    );
    for command in [&["compress", "--output=small"][..], &["stats"], &["advise"]] {
        let ran = folder.run(command.iter().chain(&["binlog.000001"]));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), warning.as_str()), "{command:?}");
    }
}
