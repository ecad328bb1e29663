//! Commands that ask a server or a relay, on terminals of 80 and 120 columns.

use std::path::Path;
use std::process::Command;

use binlogz_testkit::{Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, url};
use crate::terminal::without_codes;

#[test]
fn answers_of_servers_and_relays_are_no_wider_than_the_terminal() {
    let mysql = require_tool!(Tool::Mysql);
    if !Path::new("/usr/bin/script").exists() {
        eprintln!("SKIPPED: script is not here, which makes a terminal");
        return;
    }
    let folder = Folder::new();
    let source = mysql.sandbox().option("binlog-row-metadata", "FULL").compression(3).start().unwrap();
    let rows =
        "INSERT INTO shop.a_table_with_a_long_name (note) VALUES (REPEAT('some words ', 50)); ".repeat(60);
    source
        .sql(&format!(
            "CREATE DATABASE shop; CREATE TABLE shop.a_table_with_a_long_name (id INT PRIMARY KEY AUTO_INCREMENT, note TEXT, \
             another_column_with_a_long_name INT DEFAULT 7); {rows} DELETE FROM shop.a_table_with_a_long_name WHERE id > 50"
        ))
        .unwrap();
    source.flush_binary_logs().unwrap();
    let configuration = Configuration::of([url(&source)]).archive().account("reader", "");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    folder.put("fleet.toml", format!("[[relay]]\nname = \"orders\"\nhttp = \"{}\"\n", relay.http));
    let gtids = source.gtid_executed().unwrap();
    let (uuid, _) = gtids.trim().split_once(':').unwrap();
    let (server, http) = (format!("127.0.0.1:{}", source.port()), &relay.http);
    let log = source.datadir().join("binlog.000001").display().to_string();
    folder.run(["archive", "create", "--to", "kept", &log]).is_done();
    let account = "--no-defaults --user=root";
    // Of each, something that it must say.
    let runs = [
        (format!("doctor {account} --advise --budget 1s {server}"), "What it saves and costs"),
        (format!("doctor {account} {server}"), "binlog_transaction_compression"),
        (format!("advise {account} --budget 1s {server}"), "Recommendation"),
        (format!("stats --by table {log}"), "a_table_with_a_long_name"),
        (
            format!("table-at shop.a_table_with_a_long_name --at {uuid}:40 {account} --server {server}"),
            "INSERT",
        ),
        (format!("recover --check --from kept --to {server} {account}"), "binlog.000001"),
        (format!("relay status --http {http}"), "source"),
        // How full this machine's disk is, it may say too.
        (format!("relay doctor {http}"), "\n"),
        ("relay check-config".to_owned(), "serves reader"),
        ("relay reload".to_owned(), "nothing is different"),
        ("fleet --targets fleet.toml".to_owned(), "orders"),
    ];
    let line = |(command, _): &(String, &str)| {
        format!("echo '@@ {command}'; binlogz {command} </dev/null 2>/dev/null\n")
    };
    let binary = Path::new(env!("CARGO_BIN_EXE_binlogz")).parent().unwrap().display().to_string();
    folder.put("all.sh", format!("PATH={binary}:$PATH\n{}", runs.iter().map(line).collect::<String>()));
    for columns in [80, 120] {
        let mut script = Command::new("script");
        let shell = format!("stty cols {columns} rows 50; sh all.sh");
        script.args(["--quiet", "--return", "--command", &shell, "/dev/null"]).current_dir(folder.path(""));
        script.env_remove("COLUMNS").env("SHELL", "/bin/sh").env("BINLOGZ_PAGER", "cat").env("TERM", "xterm");
        script.env("MYSQL_PWD", "");
        let output = script.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let parts: Vec<_> = text.split("@@ ").skip(1).collect();
        assert_eq!(parts.len(), runs.len(), "{text}");
        for (part, (command, expected)) in parts.iter().zip(&runs) {
            let (_, part) = part.split_once('\n').unwrap();
            assert!(part.contains(expected), "{command}: {expected:?} is not in\n{part}");
            // Statements to paste are not broken; a line that is drawn again is a bar.
            let is_sql = |line: &str| {
                ["SELECT ", "SET ", "STOP ", "UPDATE ", "INSERT ", "CREATE "]
                    .iter()
                    .any(|word| line.trim_start().starts_with(word))
            };
            let is_script = command.starts_with("table-at");
            let lines = part.lines().filter(|line| !is_script && !is_sql(line));
            for line in lines.flat_map(|line| line.split('\r')).map(without_codes) {
                // A fingerprint is one word.
                let is_word = !line.trim_start().contains(' ');
                assert!(
                    is_word || line.chars().count() <= columns,
                    "{columns} columns, {command}: {line:?}\n{part}"
                );
            }
        }
    }
}
