//! `incident` on an ordinary server: somebody makes mistakes amid the usual work, and each is among the first lines.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, PROGRAM, Ran};
use crate::ordinary_server::{ALTER, CLINIC, MISTAKES, RENTALS, state};
use crate::round_trip::place_of;
use crate::table_at::last_gtid;

/// DDL that loses data, after the other mistakes.
const LOSSES: [&str; 4] = [
    "TRUNCATE clinic.letters",
    "ALTER TABLE clinic.patients DROP COLUMN born",
    "DROP TABLE clinic.drugs",
    "DROP VIEW clinic.debtors",
];
/// Changes that the list has at the most, by default.
const TOP: usize = 20;

pub(crate) struct Ward<'s> {
    pub(crate) server: &'s MysqlSandbox,
    pub(crate) folder: Folder,
}

impl Ward<'_> {
    /// Tables, and the usual work on them: a row at a time.
    pub(crate) fn new(server: &MysqlSandbox) -> Result<Ward<'_>> {
        for text in [CLINIC, RENTALS] {
            let mut client = server.client();
            let ran = client.args(["--default-character-set=utf8mb4", "-e", text]).output().unwrap();
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        }
        server.sql(ALTER)?;
        let usual: String = (1..=200)
            .map(|number| format!("UPDATE clinic.visits SET room = {number} % 7 + 50 WHERE id = {number};"))
            .collect();
        server.sql(&usual)?;
        server.flush_binary_logs()?;
        Ok(Ward { server, folder: Folder::new() })
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let account = ["--no-defaults", "--user=root"];
        self.folder
            .binlogz(args.iter().chain(&account))
            .env("TZ", "America/New_York")
            .output()
            .unwrap()
            .into()
    }

    /// Runs a command that was printed, as it was printed.
    pub(crate) fn paste(&self, command: &str) {
        let client = self.server.client();
        let folders =
            [Path::new(PROGRAM), Path::new(client.get_program())].map(|program| program.parent().unwrap());
        let path =
            std::env::join_paths(folders.into_iter().chain([Path::new("/usr/bin"), Path::new("/bin")]))
                .unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("set -e; {command}")]).current_dir(self.folder.path("")).env("PATH", path);
        let ran = shell.output().unwrap();
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    /// Makes the mistakes; the GTID of each.
    fn mistakes(&self) -> Result<Vec<(&'static str, String)>> {
        let statements = MISTAKES.iter().map(|mistake| mistake.statement).chain(LOSSES);
        let made = statements.map(|statement| {
            self.server.sql(statement)?;
            Ok((statement, last_gtid(self.server)?))
        });
        made.collect()
    }
}

/// The command that is printed for a purpose, which was checked to work.
pub(crate) fn printed(ran: &Ran, purpose: &str) -> String {
    printed_as(ran, purpose, "checked")
}

/// The command that is printed for a purpose, with what is said of it.
pub(crate) fn printed_as(ran: &Ran, purpose: &str, check: &str) -> String {
    fits_a_screen(ran);
    let mut lines = ran.text().lines().skip_while(|line| !line.starts_with(purpose));
    assert_eq!(lines.next(), Some(&*format!("{purpose} ({check}):")), "{}", ran.text());
    let mut command = String::new();
    for line in lines {
        command += line;
        command.push('\n');
        if !line.ends_with('\\') {
            break;
        }
    }
    command
}

pub(crate) fn fits_a_screen(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{} {}", ran.text(), ran.stderr);
    assert!(ran.text().lines().count() <= 60, "{}", ran.text());
    // None is cut in a pipe.
    assert!(ran.text().lines().all(|line| !line.ends_with('…')), "{}", ran.text());
}

/// Each mistake has a line; none is too wide, and there are not too many.
fn are_listed(ran: &Ran, mistakes: &[(&str, String)]) {
    fits_a_screen(ran);
    let lines = ran.text().lines();
    let numbered: Vec<_> = lines.filter(|line| !line.starts_with("    ")).skip(1).take(TOP).collect();
    for (statement, gtid) in mistakes {
        let wanted = format!(" {gtid} ");
        assert!(numbered.iter().any(|line| line.contains(&wanted)), "{statement}: {gtid}\n{}", ran.text());
    }
}

/// The mistakes but those of a statement, if it is unusual only for what follows from it.
fn without<'m>(mistakes: &[(&'m str, String)], front: &str, is_alone: bool) -> Vec<(&'m str, String)> {
    let told = mistakes.iter().filter(|(statement, _)| !is_alone || !statement.starts_with(front));
    told.cloned().collect()
}

fn lists_all(server: &MysqlSandbox, logs_cascades: bool) -> Result<()> {
    let ward = Ward::new(server)?;
    let mistakes = ward.mistakes()?;
    let place = place_of(server);
    let from_server = ward.run(&["incident", "--server", &place]);
    // Rows that follow a changed key are in no log of 8.0, and can't be counted without the values of the key.
    let told = without(&mistakes, "UPDATE clinic.wards", !logs_cascades);
    are_listed(&from_server, &told);
    assert_eq!(from_server.text().contains("by foreign key"), logs_cascades, "{}", from_server.text());
    assert_eq!(from_server.text().contains("rows below the log"), !logs_cascades, "{}", from_server.text());
    // Files have no foreign keys.
    let told = without(&told, "DELETE FROM clinic.wards", !logs_cascades);
    // The last of them is in use.
    let logs = server.binlogs()?;
    let paths = logs.iter().map(|log| log.to_str().unwrap());
    let args: Vec<_> = ["incident"].into_iter().chain(paths).collect();
    are_listed(&ward.run(&args), &told);
    let folder = logs[0].parent().unwrap().to_str().unwrap();
    let of_folder = ward.run(&["incident", "--format", "json", "--top", "100", folder]);
    assert_eq!(of_folder.code, Some(0), "{}", of_folder.stderr);
    for (statement, gtid) in &told {
        assert!(of_folder.text().contains(gtid), "{statement}: {gtid}\n{}", of_folder.text());
    }
    Ok(())
}

#[test]
fn mistakes_are_in_the_first_lines_on_an_ordinary_server() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("default-time-zone", "-05:00").start()?;
    lists_all(&server, true)
}

#[test]
#[ignore = "MySQL 8.0.33 is 550 MB: scripts/soak/undo.sh runs it"]
fn mistakes_are_in_the_first_lines_on_an_ordinary_8_0() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql80);
    let server = mysql.sandbox().option("default-time-zone", "-05:00").start()?;
    lists_all(&server, false)
}

#[test]
fn the_printed_command_brings_the_rows_back() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("default-time-zone", "-05:00").start()?;
    let (ward, place) = (Ward::new(&server)?, place_of(&server));
    // One whose children go with it, and one on a table with triggers.
    for number in [0, 6] {
        let statement = MISTAKES[number].statement;
        let before = state(&server)?;
        server.sql(statement)?;
        let gtid = last_gtid(&server)?;
        let shown = ward.run(&["incident", &gtid, "--server", &place]);
        ward.paste(&printed(&shown, "take it back"));
        assert_eq!(state(&server)?, before, "{statement}: {}", shown.text());
    }
    Ok(())
}

#[test]
fn the_account_of_a_session_that_still_lives_is_told() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let (ward, place) = (Ward::new(&server)?, place_of(&server));
    // The server tells its start to the second; of the first two no session is certain.
    server.sql("DO SLEEP(3); UPDATE clinic.patients SET owed = 1")?;
    let gone = last_gtid(&server)?;
    let mut living =
        server.client().arg("--unbuffered").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = living.stdin.take().unwrap();
    input.write_all(b"DELETE FROM clinic.drugs; SELECT 'deleted';\n").unwrap();
    let mut line = String::new();
    BufReader::new(living.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "deleted\n");
    let lives = last_gtid(&server).unwrap();
    let listed = ward.run(&["incident", "--server", &place]);
    fits_a_screen(&listed);
    for (gtid, is_told) in [(&lives, true), (&gone, false)] {
        let told = listed.text().lines().find(|line| line.contains(&format!(" {gtid} "))).unwrap_or_default();
        assert_eq!(told.contains(" root@localhost "), is_told, "{gtid}: {}", listed.text());
    }
    let shown = ward.run(&["incident", &lives, "--server", &place]);
    assert!(shown.text().contains(" root@localhost,"), "{}", shown.text());
    drop(input);
    living.wait().unwrap();
    Ok(())
}

#[test]
fn what_came_after_on_the_same_rows_is_told() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("default-time-zone", "-05:00").start()?;
    let (ward, place) = (Ward::new(&server)?, place_of(&server));
    server.sql("UPDATE clinic.patients SET owed = 0 WHERE id < 40")?;
    let gtid = last_gtid(&server)?;
    server.sql(
        "UPDATE clinic.patients SET owed = 1 WHERE id = 9; UPDATE clinic.patients SET owed = 1 WHERE id = 90",
    )?;
    let shown = ward.run(&["incident", &gtid, "--server", &place]);
    let after: Vec<_> = shown.text().lines().skip_while(|line| !line.starts_with("After it,")).collect();
    assert!(after[1].starts_with("  1 row of clinic.patients by "), "{}", shown.text());
    assert!(after[2].is_empty(), "{}", shown.text());
    assert!(shown.text().contains("take it back (checked, and does not do all):"), "{}", shown.text());
    assert!(shown.text().contains("UPDATE clinic.patients (10 of "), "{}", shown.text());
    Ok(())
}

#[test]
fn the_printed_commands_lead_to_the_moment_before() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("default-time-zone", "-05:00").start()?;
    let restored = mysql.sandbox().option("default-time-zone", "-05:00").start()?;
    let ward = Ward::new(&server)?;
    let before = state(&server)?;
    server.sql("UPDATE clinic.wards SET name = CONCAT(name, '!')")?;
    let gtid = last_gtid(&server)?;
    server.sql("UPDATE clinic.wards SET name = 'later'")?;
    server.flush_binary_logs()?;
    let (place, to) = (place_of(&server), place_of(&restored));
    let logs = server.binlogs()?;
    let logs = logs.iter().map(|log| log.to_str().unwrap());
    let args: Vec<_> = ["incident", &gtid, "--schema", &place, "--to", &to].into_iter().chain(logs).collect();
    let shown = ward.run(&args);
    ward.paste(&printed(&shown, "its tables as they were before it"));
    ward.paste(&printed(&shown, "a restored server, brought forward to before it"));
    assert_eq!(state(&restored)?.1, before.1, "{}", shown.text());
    server.sql("CREATE DATABASE scratch")?;
    let script = std::fs::File::open(ward.folder.path("before.sql")).unwrap();
    let loaded = server.client().arg("scratch").stdin(script).output().unwrap();
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    let rows = "SELECT GROUP_CONCAT(id, name, kind ORDER BY id) FROM";
    assert_eq!(server.sql(&format!("{rows} scratch.wards"))?, restored.sql(&format!("{rows} clinic.wards"))?);
    Ok(())
}
