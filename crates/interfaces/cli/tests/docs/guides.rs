//! The guides' commands work: a page's marked blocks are run one after the other, in an empty folder.
//!
//! ````text
//! ```sh test       run in a folder that has the samples
//! ```sh server     run beside a real source, with a replica: the page's db1, /var/lib/mysql and port 3307 become its own
//! ```sh triggers   run beside an ordinary server, as server and other tags (`ordinary.rs`), where the block before it can't do it
//! ```sh tour       run in one folder after the other blocks; what it prints is the block that follows. UPDATE_DOCS=1 writes it
//! ````

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Instant;

use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

use crate::common::Folder;
use crate::pages::{read, root};

/// The marked blocks of a page: tag and commands.
pub(crate) fn blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("\n```sh ").skip(1).filter_map(|rest| {
        let (tag, rest) = rest.split_once('\n')?;
        Some((tag, rest.split("\n```").next()?))
    })
}

/// The blocks of a page that are to be run, as one script.
pub(crate) fn script(text: &str) -> String {
    let run = blocks(text).filter(|(tag, _)| ["test", "server"].contains(tag));
    run.map(|(_, block)| block).collect::<Vec<_>>().join("\n")
}

/// The output of a page's commands; a failure shows it.
#[track_caller]
pub(crate) fn run(page: &str, script: &str, variables: &[(&str, &str)]) -> String {
    assert!(!script.is_empty(), "{page} has nothing to run");
    let folder = Folder::new();
    std::os::unix::fs::symlink(root().join("samples"), folder.path("samples")).unwrap();
    let binlogz = std::path::Path::new(env!("CARGO_BIN_EXE_binlogz"));
    let path = format!("{}:{}", binlogz.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script]).current_dir(folder.path(""));
    command.env("PATH", path).env("TZ", "UTC").env("HOME", folder.path(""));
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{page}: {}\n{script}\n{text}\n{error}", output.status);
    text.into_owned()
}

#[test]
fn months_of_logs_in_an_archive() {
    let page = "docs/guides/archive-to-s3.md";
    run(page, &script(&read(page)), &[]);
}

#[test]
fn one_look_at_a_fleet() {
    let page = "docs/guides/fleet.md";
    let said = run(page, &script(&read(page)), &[]);
    assert!(said.contains("Whole"), "{said}");
}

/// Between the output of two blocks of a tour.
const MARK: &str = "=== of the next block";

/// A tour with the present output of its commands.
fn toured(page: &str, text: &str) -> String {
    let mut parts = text.split("\n```sh tour\n");
    let before = parts.next().unwrap();
    let parts: Vec<_> = parts
        .map(|part| {
            let (commands, rest) = part.split_once("\n```\n\n```text\n").unwrap();
            let after = rest.strip_prefix("```\n").or_else(|| Some(rest.split_once("\n```\n")?.1));
            (commands, after.unwrap())
        })
        .collect();
    let script = parts.iter().map(|(commands, _)| format!("{commands}\necho '{MARK}'\n")).collect::<String>();
    let said = run(page, &script, &[]);
    let outputs: Vec<_> = said.split(&format!("{MARK}\n")).collect();
    assert_eq!(outputs.len(), parts.len() + 1, "{said}");
    let blocks = parts.iter().zip(outputs).map(|((commands, after), output)| {
        assert!(!output.is_empty(), "{page}: {commands} prints nothing");
        format!("\n```sh tour\n{commands}\n```\n\n```text\n{output}```\n{after}")
    });
    std::iter::once(before.to_owned()).chain(blocks).collect()
}

/// The commands that a script calls: `stats`, `archive list`.
fn named(script: &str) -> impl Iterator<Item = String> {
    script.split("binlogz ").skip(1).map(|rest| {
        let mut words = rest.split_whitespace();
        let name = words.next().unwrap_or_default();
        let below = if name == "archive" { words.next() } else { None };
        below.map_or(name.to_owned(), |below| format!("{name} {below}"))
    })
}

/// Panics unless a tour shows what its commands print, or writes it with UPDATE_DOCS.
#[track_caller]
fn shows_real_output(page: &str) {
    let text = read(page);
    let anew = toured(page, &text);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(root().join(page), anew).unwrap();
    } else if anew != text {
        let differs = anew.lines().zip(text.lines()).find(|(anew, text)| anew != text);
        panic!("{page}: {differs:?}: UPDATE_DOCS=1 cargo test -p binlogz --test docs output");
    }
}

#[test]
fn the_tour_shows_the_real_output_of_its_commands() {
    let page = "docs/tour.md";
    let text = read(page);
    assert!(text.matches("```sh tour").count() > 5, "{text}");
    let shown: BTreeSet<_> =
        text.split("```").filter_map(|block| block.strip_prefix("sh tour\n")).flat_map(named).collect();
    assert!(
        shown.len() == 11 && text.contains("\nEleven commands "),
        "{page} counts its commands: {shown:?}"
    );
    shows_real_output(page);
}

#[test]
fn the_readmes_show_the_real_output_of_three_commands() {
    // The other languages have the same blocks: `translations` compares them.
    let pages: &[_] = match std::env::var_os("UPDATE_DOCS") {
        Some(_) => &["README.md", "README.zh.md", "README.ja.md"],
        None => &["README.md"],
    };
    for page in pages {
        assert_eq!(read(page).matches("```sh tour").count(), 3, "{page}");
        shows_real_output(page);
    }
}

#[test]
fn blocks_that_are_not_marked_are_not_run() {
    let page =
        "\n```sh\nfalse\n```\n\n```sh test\ntrue\n```\n\n```text\nfalse\n```\n\n```sh server\ntrue 2\n```\n";
    assert_eq!(script(page), "true\ntrue 2");
}

/// A shop, whose order 42 somebody deleted.
pub(crate) const SHOP: &str = "\
CREATE USER monitor@'%' IDENTIFIED BY 'repl';
GRANT PROCESS, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO monitor@'%';
GRANT SELECT ON performance_schema.* TO monitor@'%';
CREATE USER admin@'%' IDENTIFIED BY 'repl';
GRANT ALL ON *.* TO admin@'%' WITH GRANT OPTION;
GRANT SELECT, INSERT, UPDATE, LOCK TABLES, PROCESS, RELOAD ON *.* TO repl@'127.0.0.1';
CREATE DATABASE shop;
CREATE TABLE shop.orders (id INT PRIMARY KEY, customer VARCHAR(40), total DECIMAL(8,2), note TEXT);
CREATE TABLE shop.visits (id INT PRIMARY KEY AUTO_INCREMENT, page VARCHAR(200));
";

/// The statements of a working day: enough for a recommendation.
pub(crate) fn day() -> String {
    let mut statements = String::from("USE shop;\n");
    for id in 1..=60 {
        let note = format!("order {id} of this customer, to be delivered; ").repeat(20);
        statements += &format!("INSERT INTO orders VALUES ({id}, 'customer {id}', {id}.50, '{note}');\n");
        statements += "INSERT INTO visits (page) VALUES (REPEAT('/index.html?a=b&', 10));\n";
    }
    statements += "SET SESSION binlog_transaction_compression = ON;\n";
    statements += "UPDATE orders SET note = CONCAT(note, 'paid') WHERE id BETWEEN 20 AND 50;\n";
    statements += "DELETE FROM orders WHERE id = 42;\n";
    statements + "INSERT INTO visits (page) VALUES ('/after the delete'), ('/and more');\n"
}

/// The lines put before a page's commands to run them beside a source.
const BEFORE: &str = r#"
relay=
trap '[ -z "$relay" ] || kill "$relay"' EXIT
# In a terminal of its own for people: here until it listens, on a port that the system gives.
binlogz_relay_run() {
    # A configuration names its ports.
    [ "$1" = --config ] || set -- "$@" --listen 127.0.0.1:0 --http 127.0.0.1:0
    command binlogz relay run "$@" 2>relay.log &
    relay=$!
    until said listening relay_port && said status http_port && grep -q receiving relay.log; do
        kill -0 "$relay" && [ $SECONDS -lt 300 ] || { cat relay.log >&2; exit 1; }
        sleep 0.1
    done
    # By then the relay has received the existing log: a client may ask for it.
    until command binlogz relay status --http "127.0.0.1:$http_port" | grep -q '0 s behind'; do
        [ $SECONDS -lt 300 ] || { cat relay.log >&2; exit 1; }
        sleep 0.1
    done
}
# Puts the port of such a line of the relay into a variable.
said() {
    local port
    port=$(sed -n "s|.*$1 on .*127\.0\.0\.1:\([0-9]*\).*|\1|p" relay.log)
    [ -n "$port" ] && printf -v "$2" %s "$port"
}
# No is an answer too: how busy this machine is decides some of them.
binlogz_doctor() { command binlogz doctor "$@" || [ $? -eq 1 ]; }
"#;

/// An answer is there in two minutes, the relay's start and a restore among it.
const ANSWER_SECONDS_MAX: f64 = 120.0;

/// Beside a real source with its replica, a page's commands print all of this.
#[track_caller]
fn answers(page: &str, expected: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().option("binlog-row-metadata", "FULL").start()?;
    let replica = mysql.sandbox().start()?;
    source.sql(SHOP)?;
    source.sql(&day())?;
    source.flush_binary_logs()?;
    replica.replicate_from(&source)?;
    replica.wait_for_source(&source)?;
    let page = format!("docs/guides/{page}.md");
    let mut script = beside(&source, &script(&read(&page)));
    // An empty server, to restore to.
    let empty = match script.contains("-h db2") {
        true => Some(mysql.sandbox().start()?),
        false => None,
    };
    if let Some(empty) = &empty {
        empty.sql("SET sql_log_bin = 0; CREATE USER restore@'%' IDENTIFIED BY 'repl'; GRANT ALL ON *.* TO restore@'%' WITH GRANT OPTION")?;
        script = script
            .replace("-h db2", &format!("-h 127.0.0.1 -P {}", empty.port()))
            .replace("@db2", &format!("@127.0.0.1:{}", empty.port()));
    }
    let begun = Instant::now();
    let said = run(&page, &script, &[("MYSQL_PWD", "repl")]);
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("{page}: {seconds:.1} s");
    assert!(seconds < ANSWER_SECONDS_MAX, "{page}: its commands take {seconds:.0} s");
    for expected in expected {
        assert!(said.contains(expected), "{page}: {expected:?} is not in\n{said}");
    }
    Ok(())
}

pub(crate) fn beside(source: &MysqlSandbox, script: &str) -> String {
    let port = source.port();
    let bin = source.installed().command("mysql").get_program().to_string_lossy().into_owned();
    let (bin, _) = bin.rsplit_once('/').unwrap();
    let script = script
        .replace("binlogz relay run", "binlogz_relay_run")
        .replace(" --listen 0.0.0.0:3307", "")
        .replace(" --http 127.0.0.1:3308 \\\n", " \\\n")
        .replace("127.0.0.1:3308", "127.0.0.1:$http_port")
        .replace("binlogz doctor", "binlogz_doctor")
        .replace("-P 3307", "-P $relay_port")
        .replace("-h relay", "-h 127.0.0.1")
        .replace("@db1", &format!("@127.0.0.1:{port}"))
        .replace("-h db1", &format!("-h 127.0.0.1 -P {port}"))
        .replace("/var/lib/mysql", &source.datadir().display().to_string());
    format!("{BEFORE}PATH=$PATH:{bin}\n{script}")
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn which_table_fills_my_binlog() -> Outcome {
    answers("which-table", &["shop      orders", "shop      visits", "Largest transactions"])
}

#[test]
fn can_i_turn_compression_on() -> Outcome {
    answers(
        "compression",
        &[
            "Turn compression on at mysql://monitor@",
            "What it breaks:\n  - turning it on breaks no",
            "SET PERSIST",
        ],
    )
}

#[test]
fn who_deleted_row_42() -> Outcome {
    answers(
        "follow-a-delete",
        &["DELETE shop.orders", ", thread ", "  - customer  'customer 42'", "###   @1=42"],
    )
}

#[test]
fn undo_that_delete() -> Outcome {
    answers("undo-a-delete", &["DELETE shop.orders", "0 statements not undone", "42\tcustomer 42\t42.50"])
}

#[test]
fn restore_to_10_42() -> Outcome {
    answers("recover", &["42\tcustomer 42\t42.50", "/after the delete"])
}

#[test]
fn give_my_debezium_a_stream_it_can_read() -> Outcome {
    answers("debezium", &["binlog-u.000001", "59\n", "### DELETE FROM `shop`.`orders`", "receiving"])
}
