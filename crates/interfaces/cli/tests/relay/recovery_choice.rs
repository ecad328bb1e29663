//! `recover --fold=auto` folds or replays, says why, and comes to the state of the source both ways; `--explain` says so before, and changes nothing.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

use crate::common::{Folder, Ran, wait_for};
use crate::recovery::{Held, PATIENCE, is_free, is_stuck, ran, settings_of, started, wait_until};
use crate::recovery_folded::{FoldStory, SourceState};

const TABLES: &str = "CREATE DATABASE shop; USE shop; CREATE TABLE jobs (id INT AUTO_INCREMENT PRIMARY KEY, state VARCHAR(10));
    CREATE TABLE facts (id INT AUTO_INCREMENT PRIMARY KEY, v INT); CREATE TABLE counters (id INT PRIMARY KEY, n INT);
    INSERT INTO counters VALUES (1, 0), (2, 0), (3, 0);\n";

/// Jobs that are inserted, taken and deleted.
fn queue() -> String {
    let round = |id: u32| {
        format!(
            "INSERT INTO jobs VALUES ({id}, 'new'); UPDATE jobs SET state = 'taken' WHERE id = {id}; DELETE FROM jobs WHERE id = {};\n",
            id.saturating_sub(5)
        )
    };
    (1..=300).map(round).collect()
}

/// A few large transactions of rows that stay.
fn bulk() -> String {
    let rows = vec!["(NULL, 7)"; 500].join(", ");
    format!("INSERT INTO facts VALUES {rows};\n").repeat(10)
}

/// Statements as text.
fn statements() -> String {
    let work = "UPDATE counters SET n = n + 1 WHERE id = 2;\n".repeat(400);
    format!("SET binlog_format = STATEMENT; {work}")
}

/// A source whose logs begin with nothing.
struct ChosenStory {
    folder: Folder,
    logs: Vec<PathBuf>,
    end: SourceState,
}

impl ChosenStory {
    fn new(source: &MysqlSandbox, work: &str) -> ChosenStory {
        source.sql("DROP DATABASE IF EXISTS shop; RESET BINARY LOGS AND GTIDS").unwrap();
        source.sql(&format!("{TABLES}{work}FLUSH BINARY LOGS;")).unwrap();
        let mut logs = source.binlogs().unwrap();
        logs.pop();
        let folder = Folder::new();
        // The next story resets them.
        let copied = |log: &PathBuf| {
            folder.put(log.file_name().unwrap().to_str().unwrap(), std::fs::read(log).unwrap())
        };
        let logs = logs.iter().map(copied).collect();
        ChosenStory { logs, folder, end: SourceState::of(source) }
    }

    fn recover(&self, user: &str, server: &MysqlSandbox, args: &[&str]) -> Command {
        let mut command = self.folder.binlogz(["recover", "--no-defaults", "--work-dir", "."]);
        command.args(args).arg("--to").arg(format!("{user}@{}", server.socket().display()));
        command.arg("--from").args(&self.logs);
        command
    }
}

#[track_caller]
fn says(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Lines may be broken.
    let told = ran.text().split_whitespace().collect::<Vec<_>>().join(" ");
    for words in words {
        assert!(told.contains(words), "{words}: {ran:?}");
    }
}

#[test]
fn a_queue_is_folded_and_what_fold_cannot_shorten_is_replayed() {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().start().unwrap();
    let server = mysql.sandbox().start().unwrap();
    let weak = "CREATE USER weak; GRANT REPLICATION_SLAVE_ADMIN, SYSTEM_VARIABLES_ADMIN ON *.* TO weak; GRANT SELECT, RELOAD, REPLICATION CLIENT ON *.* TO weak";
    server.sql(weak).unwrap();
    let settings = settings_of(&server);
    let cases = [
        ("root", queue(), "fold", "fold takes about "),
        ("root", bulk(), "replay", "which is not clearly faster"),
        ("root", statements(), "replay", "can't be folded, most of them with statements as text"),
        ("weak", queue(), "replay", "the account has no INSERT, CREATE, ALTER on *.*"),
    ];
    for (user, work, way, why) in cases {
        let story = ChosenStory::new(&source, &work);
        server.sql("DROP DATABASE IF EXISTS shop; RESET BINARY LOGS AND GTIDS").unwrap();
        let explained = ran(story.recover(user, &server, &["--explain"]));
        println!("{}", explained.text());
        let would = format!("--fold=auto would {way}: ");
        says(&explained, &["replay: ", "fold: ", &would, why, "Nothing was measured on this server"]);
        assert_eq!(server.gtid_executed().unwrap().trim(), "");
        is_free(&server, &settings);

        let done = ran(story.recover(user, &server, &["--fold=auto"]));
        println!("{}", done.text());
        says(&done, &[&format!(": {way}s: "), why]);
        assert_eq!(done.text().contains("net changes"), way == "fold", "{done:?}");
        assert_eq!(SourceState::of(&server), story.end, "{user} {why}");
        is_free(&server, &settings);
    }

    // A fold that fails.
    let story = ChosenStory::new(&source, &queue());
    server.sql("DROP DATABASE IF EXISTS shop; RESET BINARY LOGS AND GTIDS").unwrap();
    story.folder.put("schema.sql", "CREATE TABLE");
    let done = ran(story.recover("root", &server, &["--fold=auto", "--schema", "schema.sql"]));
    says(&done, &[": replays: the logs can't be folded: ", "schema.sql"]);
    assert_eq!(SourceState::of(&server), story.end);
    is_free(&server, &settings);
}

#[test]
#[allow(clippy::zombie_processes)] // where the test fails, its processes end with the server
fn what_began_as_replay_ends_as_replay() {
    let mysql = require_tool!(Tool::Mysql);
    let story = FoldStory::new(mysql);
    let server = story.restored();
    let settings = settings_of(&server);
    let held = Held::by(&server, &story.holding());
    let mut run = started(story.recover(&server, &["--workers", "1"]));
    is_stuck(&server);
    run.kill().unwrap();
    run.wait().unwrap();
    // As long as the row is held, the server doesn't come to the end by itself.
    let told = story.folder.path("told");
    let mut again = story.recover(&server, &["--fold=auto"]);
    let mut again = again.stdout(File::create(&told).unwrap()).spawn().unwrap();
    let words = "replays: an earlier run that replays is not done";
    wait_until(words, || std::fs::read_to_string(&told).unwrap().contains(words));
    drop(held);
    assert_eq!(wait_for(&mut again, PATIENCE), Some(0));
    assert_eq!(SourceState::of(&server), story.end);
    is_free(&server, &settings);
}
