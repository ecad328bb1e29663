//! Names by a schema: a log of a server with `binlog_row_metadata` MINIMAL, whose tables were changed within it.

use std::fs;
use std::process::Command;

use binlogz_testkit::{Result, Tool, require_tool};

use super::{library, path};

const SCHEMA: &str = "CREATE DATABASE d; USE d;
    CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, later INT, renamed ENUM('new','paid'), tags SET('a','b'));
    CREATE TABLE u (a INT);";

#[test]
fn columns_have_the_names_of_their_place() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "MINIMAL").start()?;
    server.sql(
        "CREATE DATABASE d; USE d; CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, state ENUM('new','paid'), tags SET('a','b'));
         CREATE TABLE u (a INT, gone ENUM('x')); CREATE TABLE other (a INT)",
    )?;
    server.flush_binary_logs()?;
    server.sql(
        "USE d; INSERT INTO t VALUES (4000000000, 'paid', 'a,b'); INSERT INTO u VALUES (1, 'x'); INSERT INTO other VALUES (5);
         ALTER TABLE t ADD later INT AFTER id, RENAME COLUMN state TO renamed; ALTER TABLE u DROP COLUMN gone;
         INSERT INTO t VALUES (2, 7, 'new', ''); INSERT INTO u VALUES (3)",
    )?;
    let log = server.flush_binary_logs()?;
    let folder = tempfile::tempdir().unwrap();
    let (program, schema) = (folder.path().join("names"), folder.path().join("schema.sql"));
    fs::write(&schema, SCHEMA).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    compiler.arg(path("tests/names/names.c")).arg("-I").arg(path("include"));
    let built = compiler.arg("-L").arg(library()).arg("-lbinlogz").output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let run = |schema: &std::path::Path| {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", library()).arg(&log).arg(schema).output().unwrap()
    };
    let ran = run(&schema);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [first, dropped, other, second, last] = lines[..] else { panic!("{text}") };
    assert_eq!(first, "t: id=4000000000 state=paid tags=a,b");
    assert!(dropped.starts_with("u: (") && dropped.contains("ALTER TABLE u DROP COLUMN gone"), "{dropped}");
    assert!(dropped.ends_with(")=1"), "an unnamed member is a number: {dropped}");
    assert_eq!(other, "other: ?=5");
    assert_eq!(second, "t: id=2 later=7 renamed=new tags=");
    assert_eq!(last, "u: a=3");

    let ran = run(&log);
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(!ran.status.success() && told.contains(&log.display().to_string()), "{told}");
    Ok(())
}
