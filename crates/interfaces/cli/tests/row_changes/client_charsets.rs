//! Scripts are read alike by clients of every character set, whatever texts were planted in rows, names and statements.

use std::fs::File;

use binlogz_testkit::{Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::round_trip::place_of;

/// In gbk, sjis or big5 the last byte of each is the first half of a character, to which a backslash would be the second.
const LETTERS: [&str; 6] = ["、", "é", "日", "ソ", "😀", "ß"];

#[test]
fn planted_texts_run_in_no_client() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql
        .sandbox()
        .option("binlog_row_metadata", "FULL")
        .option("binlog_rows_query_log_events", "ON")
        .start()?;
    let folder = Folder::new();
    let planted = |letter: &str| {
        [
            format!("{letter}\\'; DROP TABLE shop.victim; -- "),
            format!("{letter}'; DROP TABLE shop.victim; -- "),
            format!("{letter}\n'; DROP TABLE shop.victim; -- "),
            format!("\\{letter}\\\\'"),
        ]
    };
    let rows: Vec<String> = LETTERS
        .iter()
        .flat_map(|letter| planted(letter))
        .enumerate()
        .map(|(id, text)| {
            let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
            let text = format!("_utf8mb4 X'{hex}'");
            format!("({id}, {text}, {text}, JSON_OBJECT('k', {text}))")
        })
        .collect();
    server.sql(&format!(
        "CREATE DATABASE shop; USE shop; SET NAMES utf8mb4; CREATE TABLE victim (id INT); INSERT INTO victim VALUES (1);
         CREATE TABLE notes (id INT PRIMARY KEY, text VARCHAR(200), `名、` TEXT, doc JSON); INSERT INTO notes VALUES {}",
        rows.join(", ")
    ))?;
    server.flush_binary_logs()?;
    let before = server.checksum_tables("shop")?;
    server.sql("DO SLEEP(1.1); USE shop; SET NAMES utf8mb4; UPDATE notes SET text = CONCAT(text, '、\\\\'), doc = NULL WHERE id % 2 = 0; DELETE FROM notes /* 、\\'; DROP TABLE victim; */")?;
    let log = server.flush_binary_logs()?;
    let after = server.checksum_tables("shop")?;
    let run = |script: &Ran, charset: &str, database: &str| {
        let path = folder.put("script.sql", &script.stdout);
        let charset = format!("--default-character-set={charset}");
        let arguments = [&charset, "--force", database];
        let ran = server.client().args(arguments).stdin(File::open(path).unwrap()).output().unwrap();
        (ran.status.success(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let [undo, redo] = ["undo", "redo"].map(|verb| {
        let script = folder.run([verb.as_ref(), log.as_os_str()]);
        script.is_done();
        script
    });
    for charset in ["gbk", "sjis", "big5", "utf8mb4"] {
        assert_eq!(run(&undo, charset, "shop"), (true, String::new()), "{charset}");
        assert_eq!(server.checksum_tables("shop")?, before, "{charset}");
        let place = place_of(&server);
        let now = folder.run([
            "table-at",
            "--no-defaults",
            "--user=root",
            "shop.notes",
            "--server",
            &place,
            "--at",
            &format!("@{}", server.sql("SELECT UNIX_TIMESTAMP(NOW(6))")?.trim()),
        ]);
        now.is_done();
        server.sql(
            "DROP DATABASE IF EXISTS scratch; CREATE DATABASE scratch; CREATE TABLE scratch.victim (id INT)",
        )?;
        assert_eq!(run(&now, charset, "scratch"), (true, String::new()), "{charset}");
        let count = |database: &str| server.sql(&format!("CHECKSUM TABLE {database}.notes"));
        let sums = ["shop", "scratch"]
            .map(|database| count(database).unwrap().split_whitespace().last().unwrap().to_owned());
        assert_eq!(sums[0], sums[1], "{charset}");
        assert_eq!(run(&redo, charset, "shop"), (true, String::new()), "{charset}");
        assert_eq!(server.checksum_tables("shop")?, after, "{charset}");
    }
    Ok(())
}
