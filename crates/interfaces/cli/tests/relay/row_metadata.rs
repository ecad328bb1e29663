//! `row_metadata` of an account: a source with `binlog_row_metadata = FULL` and 9.7's types, read by mysqlbinlog and a replica.

use std::process::Output;

use binlogz_testkit::{InstalledTool, Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, url};

const TABLES: &str = "\
CREATE DATABASE shop;
CREATE TABLE shop.all_types (
  id INT UNSIGNED, tiny TINYINT, small SMALLINT UNSIGNED, medium MEDIUMINT, big BIGINT UNSIGNED, price DECIMAL(20,4), f FLOAT, d DOUBLE UNSIGNED,
  y YEAR, day DATE, t TIME(3), at DATETIME(6), stamp TIMESTAMP(2) NULL, bits BIT(13), c CHAR(10) CHARACTER SET latin1, v VARCHAR(300) COLLATE utf8mb4_bin,
  b BINARY(4), vb VARBINARY(99), tx TEXT, bl LONGBLOB, e ENUM('small', 'large'), s SET('a', 'b', 'c') CHARACTER SET latin1, j JSON,
  g GEOMETRY, p POINT NOT NULL, vec VECTOR(3), hidden INT DEFAULT 7 INVISIBLE, PRIMARY KEY (id, v(20)));
CREATE TABLE shop.i (i INT PRIMARY KEY);
CREATE TABLE shop.texts (a VARCHAR(10), b VARCHAR(10) CHARACTER SET latin1, c TEXT, d CHAR(3), e TEXT, f TEXT, g TEXT, h TEXT, i TEXT, j TEXT);
CREATE TABLE shop.places (first GEOMETRY, second LINESTRING, third POLYGON);
";
const ROWS: &str = "\
INSERT INTO shop.all_types VALUES (4294967295, -1, 65535, -8388608, 18446744073709551615, -1.5, 1.5, 2.5, 2026, '2026-11-29', '12:00:00.123',
  '2026-11-29 12:00:00.123456', '2026-11-29 12:00:00', b'1010', 'é', 'ß', 'bin', 'vb', 'text', REPEAT('x', 5000), 'large', 'a,c', '{\"a\": [1, 2]}',
  ST_GeomFromText('POINT(1 2)'), ST_GeomFromText('POINT(3 4)'), TO_VECTOR('[1,2,3]'));
INSERT INTO shop.i VALUES (1), (2);
INSERT INTO shop.texts VALUES ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j');
INSERT INTO shop.places VALUES (NULL, ST_GeomFromText('LINESTRING(0 0, 1 1)'), NULL);
UPDATE shop.all_types SET tiny = 2; UPDATE shop.i SET i = i + 5 ORDER BY i DESC;
DELETE FROM shop.all_types; DELETE FROM shop.i; DELETE FROM shop.texts; DELETE FROM shop.places;
";

/// What mysqlbinlog prints of a file with its rows and its tables' metadata.
fn printed(relay: &Relay, mysql: &InstalledTool, user: &str, file: &str) -> Output {
    let mut print = relay.mysqlbinlog(mysql, user);
    print.args([
        "-vv",
        "--print-table-metadata",
        "--base64-output=DECODE-ROWS",
        "--get-server-public-key",
        file,
    ]);
    print.output().unwrap()
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The lines about tables and rows.
fn tables_and_rows(printed: &str) -> Vec<&str> {
    let is_of_rows = |line: &&str| line.starts_with("###");
    let is_of_tables = |line: &&str| {
        ["# Columns(", "#         ", "# Primary Key"].iter().any(|front| line.starts_with(front))
    };
    printed.lines().filter(|line| is_of_rows(line) || is_of_tables(line)).collect()
}

/// Without the name of the next file, which mysqlbinlog prints at the end as often as it is told.
fn without_names(printed: &str) -> Vec<&str> {
    printed.lines().filter(|line| !line.contains("Rotate to")).collect()
}

fn places(printed: &str) -> Vec<&str> {
    printed.lines().filter(|line| line.starts_with("# at ")).collect()
}

#[test]
fn an_account_gets_the_metadata_of_its_choice_at_the_same_places() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).option("binlog-row-metadata", "FULL").start().unwrap();
    source.sql(TABLES).unwrap();
    source.flush_binary_logs().unwrap();
    source.sql(ROWS).unwrap();
    source.flush_binary_logs().unwrap();
    source.sql("SET GLOBAL binlog_row_metadata = MINIMAL").unwrap();
    source.sql(ROWS).unwrap();
    let mut relay = Configuration::of([url(&source)])
        .account("all", "form = \"uncompressed\"\nrow_metadata = \"as received\"")
        .account("minimal", "row_metadata = \"minimal\"")
        .account("none", "row_metadata = \"none\"")
        .account("full", "row_metadata = \"full\"")
        .account("maxwell", "reads = \"maxwell-1\"")
        .account("named", "reads = \"maxwell-1\"\nrow_metadata = \"as received\"")
        .start(&folder);
    relay.has_all_of(&source);
    let [full, minimal] = ["binlog-u.000002", "binlog-u.000003"];

    let all = text(printed(&relay, mysql, "all", full));
    assert!(all.contains("# Primary Key(id, v(20))") && all.contains("`hidden` INT"), "{all}");
    assert_eq!(without_names(&text(printed(&relay, mysql, "full", full))), without_names(&all));
    // The same statements, logged by the source itself with MINIMAL.
    let sources = text(printed(&relay, mysql, "all", minimal));
    let expected = tables_and_rows(&sources);
    assert!(expected.iter().any(|line| line.contains("INT UNSIGNED")) && !sources.contains("`hidden`"));
    let stripped = text(printed(&relay, mysql, "minimal", full));
    assert_eq!(tables_and_rows(&stripped), expected);
    assert_eq!(without_names(&text(printed(&relay, mysql, "minimal", minimal))), without_names(&sources));
    let bare = text(printed(&relay, mysql, "none", full));
    assert!(!bare.contains("UNSIGNED") && !bare.contains("`hidden`"), "{bare}");
    for less in [&stripped, &bare] {
        assert_eq!(places(less), places(&all));
    }
    // The server prints rows with signs where no metadata tells that they have none.
    assert!(bare.contains("###   @1=-1 (4294967295)"), "{bare}");
    let refused = printed(&relay, mysql, "full", minimal);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("shop.all_types"), "{why}");
    assert!(why.contains("has no names of columns: the source did not log it with"), "{why}");
    // A vector is not for Maxwell, and what stands before it comes without metadata.
    let refused = printed(&relay, mysql, "maxwell", full);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("shop.all_types has a column of type VECTOR"), "{why}");

    let replica = mysql.sandbox().start().unwrap();
    source.sql("INSERT INTO shop.i VALUES (8); INSERT INTO shop.texts (a) VALUES ('last')").unwrap();
    relay.replicates_to(&replica, "none", "SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1");
    relay.brings(&source, &replica, &["shop"]);
}

#[test]
fn compressed_transactions_are_not_for_an_account_with_metadata_of_its_own() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).option("binlog-row-metadata", "FULL").start().unwrap();
    source
        .sql("CREATE DATABASE shop; CREATE TABLE shop.i (i INT PRIMARY KEY); INSERT INTO shop.i VALUES (1)")
        .unwrap();
    let mut relay = Configuration::of([url(&source)])
        .account("minimal", "row_metadata = \"minimal\"")
        .account("maxwell", "reads = \"maxwell-1\"")
        .start(&folder);
    relay.has_all_of(&source);
    for (user, why) in [
        (
            "minimal",
            "the account has tables or row_metadata of its own: begin in a file of the uncompressed form",
        ),
        ("maxwell", "Maxwell 1 does not read such: begin in a file of the uncompressed form"),
    ] {
        let refused = printed(&relay, mysql, user, "binlog.000001");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(why), "{user}: {said}");
        text(printed(&relay, mysql, user, "binlog-u.000001"));
    }
}
