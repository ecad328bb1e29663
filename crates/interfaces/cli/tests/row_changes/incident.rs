//! `incident` on an ordinary server: somebody makes mistakes amid the usual work, and each is among the first lines.

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::ordinary_server::{ALTER, CLINIC, MISTAKES, RENTALS};
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

struct Ward<'s> {
    server: &'s MysqlSandbox,
    folder: Folder,
}

impl Ward<'_> {
    /// Tables, and the usual work on them: a row at a time.
    fn new(server: &MysqlSandbox) -> Result<Ward<'_>> {
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

    fn run(&self, args: &[&str]) -> Ran {
        let account = ["--no-defaults", "--user=root"];
        self.folder
            .binlogz(args.iter().chain(&account))
            .env("TZ", "America/New_York")
            .output()
            .unwrap()
            .into()
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

/// Each mistake has a line; none is too wide, and there are not too many.
fn are_listed(ran: &Ran, mistakes: &[(&str, String)]) {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<_> = ran.text().lines().collect();
    assert!(lines.len() <= 60, "{}", ran.text());
    assert!(lines.iter().all(|line| line.chars().count() <= 120), "{}", ran.text());
    let numbered: Vec<_> = lines.iter().filter(|line| !line.starts_with("    ")).skip(1).take(TOP).collect();
    for (statement, gtid) in mistakes {
        let wanted = format!(" {gtid} ");
        assert!(numbered.iter().any(|line| line.contains(&wanted)), "{statement}: {gtid}\n{}", ran.text());
    }
}

fn lists_all(server: &MysqlSandbox, logs_cascades: bool) -> Result<()> {
    let ward = Ward::new(server)?;
    let mistakes = ward.mistakes()?;
    let place = place_of(server);
    let from_server = ward.run(&["incident", "--server", &place]);
    are_listed(&from_server, &mistakes);
    assert_eq!(from_server.text().contains("by foreign key"), logs_cascades, "{}", from_server.text());
    // The last of them is in use.
    let logs = server.binlogs()?;
    let paths = logs.iter().map(|log| log.to_str().unwrap());
    let args: Vec<_> = ["incident"].into_iter().chain(paths).collect();
    are_listed(&ward.run(&args), &mistakes);
    let folder = logs[0].parent().unwrap().to_str().unwrap();
    let of_folder = ward.run(&["incident", "--format", "json", "--top", "100", folder]);
    assert_eq!(of_folder.code, Some(0), "{}", of_folder.stderr);
    for (statement, gtid) in &mistakes {
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
