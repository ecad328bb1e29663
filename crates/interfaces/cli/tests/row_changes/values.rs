//! Values that are the server's in every output: strings of bytes that end in zeros, the last member of a SET.

use std::fs::File;
use std::path::Path;

use binlogz_testkit::{Result, Tool, corpus, require_tool};

use crate::common::Folder;
use crate::round_trip::place_of;
use crate::table_at::last_gtid;

/// Item 15 of issue 42: a log leaves out the zeros at the end of a BINARY(n).
#[test]
fn a_binary_key_that_ends_in_zeros_is_whole_and_found() {
    let folder = Folder::new();
    folder.put("log", std::fs::read(corpus::case("binary16_key_ends_in_00.binlog")).unwrap());
    // Its bytes and their base64.
    let keys = [
        ("3e11fa4771ca11e19e33c80aa9420000", "PhH6R3HKEeGeM8gKqUIAAA=="),
        ("3e11fa4771ca11e19e33c80aa9429500", "PhH6R3HKEeGeM8gKqUKVAA=="),
        ("3e11fa4771ca11e19e33c80aa9429501", "PhH6R3HKEeGeM8gKqUKVAQ=="),
    ];
    let made = folder.run(["archive", "create", "--to", "archive", "log"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    for format in ["jsonl", "debezium", "maxwell"] {
        let ran = folder.run(["dump", "--format", format, "log"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for (_, base64) in keys {
            assert!(ran.text().contains(base64), "{format}: {base64}: {}", ran.text());
        }
    }
    let undone = folder.run(["undo", "log"]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    for (hex, _) in keys {
        assert!(undone.text().contains(&format!("X'{hex}'")), "{hex}: {}", undone.text());
        for input in ["log", "archive"] {
            let found = folder.run(["rows", "r2.o", "--where", &format!("id = X'{hex}'"), input]);
            assert_eq!(found.code, Some(0), "{input}: {hex}: {}", found.stderr);
            assert_eq!(found.text().matches("DELETE r2.o").count(), 1, "{input}: {hex}: {}", found.text());
        }
    }
}

/// Item 15 of issue 42: the server compares a SET as a number with a sign.
#[test]
fn the_last_member_of_a_set_is_compared_as_the_server_compares_it() {
    let folder = Folder::new();
    folder.put("log", std::fs::read(corpus::case("set_member_64_no_key.binlog")).unwrap());
    let undone = folder.run(["undo", "log"]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    let text = undone.text();
    assert!(text.contains("`a` = 7 AND `s` | 0 = 9223372036854775809 LIMIT 1"), "{text}");
    assert!(text.contains("`s` = 1"), "{text}");
}

/// On a server: every statement of `undo` and `redo` matches its row, with a key and without.
#[test]
fn statements_match_rows_of_long_sets_and_padded_bytes() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    let members: Vec<_> = (1..=64).map(|number| format!("'m{number}'")).collect();
    let members = members.join(",");
    let keys = [("k", "PRIMARY KEY (b, s)"), ("n", "KEY (b)")];
    let tables = keys.map(|(name, key)| {
        format!("CREATE TABLE {name} (b BINARY(16), s SET({members}), v VARBINARY(16), bits BIT(64), {key});")
    });
    server.sql(&format!("CREATE DATABASE d; USE d; {}", tables.concat()))?;
    server.flush_binary_logs()?;
    let before = server.checksum_tables("d")?;
    let values = ["X''", "X'6101'", "X'61'", "X'000102030405060708090a0b0c0d0e0f'", "X'00ff00'"];
    let sets = ["''", "'m64'", "'m1,m64'", "'m63'"];
    let mut sql = String::from("USE d;");
    for (name, _) in keys {
        for bytes in values {
            for set in sets {
                sql.push_str(&format!(
                    "INSERT INTO {name} VALUES ({bytes}, {set}, {bytes}, ({set} = 'm64') | (1 << 63));"
                ));
            }
        }
        sql.push_str(&format!("UPDATE {name} SET v = CONCAT(v, X'00') WHERE LENGTH(v) < 10;"));
        sql.push_str(&format!("UPDATE {name} SET s = s ^ 2, bits = 0 WHERE b = CAST(X'61' AS BINARY(16));"));
        sql.push_str(&format!("DELETE FROM {name} WHERE s = 'm64';"));
    }
    server.sql(&sql)?;
    let after = server.checksum_tables("d")?;
    let log = server.flush_binary_logs()?;
    for (verb, state) in [("undo", before), ("redo", after)] {
        let script = folder.run([verb.as_ref(), log.as_os_str()]);
        script.is_done();
        apply(&server, &folder.put("script.sql", &script.stdout));
        assert_eq!(server.checksum_tables("d")?, state, "{verb}");
    }
    Ok(())
}

/// Issue 44: a zero is not the one with the other sign, in a table without a key.
#[test]
fn zeros_of_both_signs_are_two_rows() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    server
        .sql("CREATE DATABASE d; CREATE TABLE d.t (x DOUBLE, y FLOAT); INSERT INTO d.t VALUES (0e0, 0e0)")?;
    server.flush_binary_logs()?;
    server.sql("INSERT INTO d.t VALUES (-0e0, -0e0)")?;
    let log = server.flush_binary_logs()?;
    let script = folder.run(["undo".as_ref(), log.as_os_str()]);
    script.is_done();
    apply(&server, &folder.put("script.sql", &script.stdout));
    assert_eq!(server.sql("SELECT x, y FROM d.t")?.trim(), "0\t0");
    Ok(())
}

/// Found by the model: a script lost the sign, since `-0` is a whole number.
#[test]
fn zeros_keep_their_sign_in_the_script_of_table_at() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, x DOUBLE, y FLOAT)")?;
    server.sql("INSERT INTO d.t VALUES (1, -0e0, -0e0), (2, 0e0, 0e0), (3, -0e0, -0e0)")?;
    let moment = last_gtid(&server)?;
    server.sql("UPDATE d.t SET x = 7, y = 0.1 WHERE id = 3")?;
    let place = place_of(&server);
    let args = ["table-at", "d.t", "--at", &moment, "--server", &place, "--no-defaults", "--user=root"];
    let script = folder.run(args);
    script.is_done();
    server.sql("DROP TABLE d.t")?;
    let path = folder.put("script.sql", &script.stdout);
    let ran = server.client().arg("d").stdin(File::open(path).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let rows = server.sql("SELECT x, y FROM d.t ORDER BY id")?;
    assert_eq!(rows, "-0\t-0\n0\t0\n-0\t-0\n", "{}", script.text());
    Ok(())
}

/// Letters of two and three bytes, among them such whose second byte is a backslash, and such that come back from Unicode as others.
const LETTERS: [(&str, &[&str]); 5] = [
    ("big5", &["a145", "a14e", "a15a", "a1c3", "a1c5", "a1fe", "a240", "a2cc", "a2ce", "a55c", "5c", "7e"]),
    ("sjis", &["815c", "815f", "8160", "8161", "817c", "8191", "81ca", "835c", "5c", "7e", "b1"]),
    ("cp932", &["815f", "8160", "8754", "87e4", "ed40", "eeef", "fa4a", "fa54", "835c", "5c"]),
    ("ujis", &["a1c0", "a1c1", "a1c2", "a1dd", "8fa2b7", "8fa2c3", "8eb1", "5c", "7e"]),
    ("eucjpms", &["a1c0", "a1c1", "a1c2", "ada1", "8fa2b7", "8ff3f3", "8eb1", "5c", "7e"]),
];

/// Issue 44: in a table without a key each text has to be found as the server has it.
#[test]
fn texts_in_character_sets_of_east_asia_are_found() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    let mut sql = String::from("CREATE DATABASE d; USE d;");
    for (charset, letters) in LETTERS {
        sql += &format!(
            "CREATE TABLE {charset} (n INT, v VARCHAR(9) CHARACTER SET {charset}, b TEXT CHARACTER SET {charset});"
        );
        for letter in letters {
            sql += &format!("INSERT INTO {charset} VALUES (0, X'{letter}', X'61{letter}27{letter}');");
        }
    }
    server.sql(&sql)?;
    server.flush_binary_logs()?;
    let before = server.checksum_tables("d")?;
    let changes = LETTERS.map(|(charset, _)| {
        format!("UPDATE {charset} SET n = 1; DELETE FROM {charset} WHERE n = 1 ORDER BY v LIMIT 3;")
    });
    server.sql(&format!("USE d; {}", changes.concat()))?;
    let after = server.checksum_tables("d")?;
    let log = server.flush_binary_logs()?;
    for (verb, state) in [("undo", before), ("redo", after)] {
        let script = folder.run([verb.as_ref(), log.as_os_str()]);
        script.is_done();
        apply(&server, &folder.put("script.sql", &script.stdout));
        assert_eq!(server.checksum_tables("d")?, state, "{verb}");
    }
    Ok(())
}

fn apply(server: &binlogz_testkit::MysqlSandbox, script: &Path) {
    let ran = server.client().stdin(File::open(script).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
