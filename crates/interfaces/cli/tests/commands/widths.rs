//! What people are shown in a pipe fits on a screen: lines of at most 120 characters, and at most 60 of them where a command answers a
//! question. `dump`, `events` and `rows` list what is in the logs.

use binlogz_testkit::{Tool, require_tool};

use crate::common::relay::{Configuration, url};
use crate::common::{Folder, Ran};

const WIDTH_MAX: usize = 120;
const LINES_MAX: usize = 60;

/// A folder with all samples, and an archive of them.
fn folder() -> Folder {
    let folder = Folder::new();
    for number in 1..=9 {
        for of in ["plain", "compressed"] {
            let name = format!("binlog.{number:06}");
            let bytes = folder.sample(of, &name);
            folder.put(&format!("{of}/{name}"), bytes);
        }
    }
    // The last one has GTID sets with tags, which are longer than any line.
    let archived = (1..=8).map(|number| format!("plain/binlog.{number:06}"));
    folder.run(["archive", "create", "--to", "arc"].map(str::to_owned).into_iter().chain(archived)).is_done();
    let targets = "[[archive]]\nname = \"nightly\"\nto = \"arc\"\n";
    folder.put("fleet.toml", targets);
    folder
}

fn widest(ran: &Ran) -> (usize, String) {
    let lines = ran.text().lines().map(|line| (line.chars().count(), line.to_owned()));
    lines.max().unwrap_or_default()
}

#[track_caller]
fn assert_fits(folder: &Folder, args: &[&str], lines_max: usize) {
    let ran = folder.run(args);
    assert_ne!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
    let (width, line) = widest(&ran);
    assert!(width > 0 && width <= WIDTH_MAX, "{args:?}: {width} characters: {line}");
    let lines = ran.text().lines().count();
    assert!(lines <= lines_max, "{args:?}: {lines} lines:\n{}", ran.text());
}

#[test]
fn answers_fit_on_a_screen() {
    let folder = folder();
    let all: Vec<String> = ["plain", "compressed"]
        .iter()
        .flat_map(|of| (1..=9).map(move |number| format!("{of}/binlog.{number:06}")))
        .collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let of_all = |command: &[&'static str]| [command, &all].concat();
    for args in [
        of_all(&["stats"]),
        [&["stats", "--by", "file"], &all[..9]].concat(),
        of_all(&["stats", "--by", "table"]),
        of_all(&["stats", "--by", "transaction"]),
        of_all(&["verify"]),
        of_all(&["advise"]),
        of_all(&["incident"]),
        of_all(&["incident", "--start-datetime", "2000-01-01"]),
        vec!["fold", "--force", "--to", "folded", "plain/binlog.000005"],
        vec!["compress", "--force", "--to", "smaller", "plain/binlog.000009"],
        vec!["archive", "list", "arc"],
        vec!["archive", "list", "--archives", "arc"],
        vec!["archive", "check", "arc"],
        vec!["fleet", "--targets", "fleet.toml"],
    ] {
        assert_fits(&folder, &args, LINES_MAX);
    }
    for log in all {
        assert_fits(&folder, &["stats", log], LINES_MAX);
        assert_fits(&folder, &["verify", log], LINES_MAX);
        // Each is long.
        assert_fits(&folder, &["stats", "--all", log], usize::MAX);
        assert_fits(&folder, &["events", log], usize::MAX);
    }
    assert_fits(&folder, &["advise", "--details", "plain/binlog.000009"], usize::MAX);
}

#[test]
fn wide_lines_have_everything() {
    let folder = folder();
    let log = "plain/binlog.000001";
    let whole = folder.run(["events", "--wide", log]);
    assert!(widest(&whole).0 > WIDTH_MAX && whole.text().contains("Server_id"));
    let short = folder.run(["events", log]);
    assert_eq!(short.text().lines().count(), whole.text().lines().count());
    assert!(short.text().contains(" …\n") && !short.text().contains("Server_id"));
    let list =
        |options: &[&str]| folder.run(["archive", "list", "arc"].iter().chain(options)).text().to_owned();
    let (short, whole) = (list(&[]), list(&["--wide"]));
    let heading =
        |text: &str| text.lines().nth(1).unwrap().split("  ").filter(|word| !word.is_empty()).count();
    assert_eq!((heading(&short), heading(&whole)), (5, 6), "{short}{whole}");
    let table = folder.run(["stats", "--by", "file", "--wide", log]);
    assert!(widest(&table).0 > WIDTH_MAX, "{}", table.text());
}

/// Lines to paste are whole, and a fingerprint is one word.
fn is_to_read(line: &str) -> bool {
    let line = line.trim_start();
    let statements =
        ["SELECT ", "SET ", "STOP ", "UPDATE ", "INSERT ", "CREATE ", "GRANT ", "START ", "CHANGE "];
    line.contains(' ') && !statements.iter().any(|word| line.starts_with(word))
}

#[test]
fn answers_of_servers_and_relays_fit_on_a_screen() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().option("binlog-row-metadata", "FULL").compression(3).start().unwrap();
    source.sql("CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY)").unwrap();
    let configuration = Configuration::of([url(&source)]).archive().account("reader", "");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let (server, http) = (format!("127.0.0.1:{}", source.port()), relay.http.clone());
    for args in [
        vec!["doctor", "--no-defaults", "--user=root", &server],
        vec!["doctor", "--advise", "--no-defaults", "--user=root", &server],
        vec!["relay", "status", "--http", &http],
        vec!["relay", "doctor", &http],
    ] {
        let ran = folder.run(&args);
        assert_ne!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        let lines: Vec<_> = ran.text().lines().collect();
        let wide = lines.iter().find(|line| is_to_read(line) && line.chars().count() > WIDTH_MAX);
        assert_eq!(wide, None, "{args:?}:\n{}", ran.text());
        assert!((1..=LINES_MAX).contains(&lines.len()), "{args:?}: {} lines:\n{}", lines.len(), ran.text());
    }
}
