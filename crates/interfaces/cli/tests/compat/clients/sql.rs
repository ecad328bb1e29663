//! Clients that only ask in SQL: what programs do when they connect, step by step.
//!
//! ```text
//! client PORT USER PASSWORD
//! version VERSION      of a client that is whatever Debian has
//! done STEP
//! failed STEP: ERROR
//! ```

use std::process::Command;

use binlogz_testkit::{MysqlSandbox, Result, Tool};

use super::client::{FOLDER, got, node, python};
use super::{IN_ONE_FORM, in_one_form};
use crate::Relays;
use crate::replicas::Followed;
use crate::table::{Table, Verdict};

/// A client's name, and how it is run.
type Client = (&'static str, fn() -> Result<Command>);

const CLIENTS: [Client; 9] = [
    ("Connector/J 9.4.0 (Java)", || Ok(Command::new(got("compat-java")?.join("bin/jdbc")))),
    ("MariaDB Connector/J 3.5.11 (Java)", || {
        let mut command = Command::new(got("compat-java")?.join("bin/jdbc"));
        command.env("AS", "mariadb");
        Ok(command)
    }),
    ("PyMySQL (Python)", || python("python_plain.py")),
    ("mysql-connector-python (Python)", || {
        let mut command = python("python_plain.py")?;
        command.env("AS", "connector");
        Ok(command)
    }),
    ("mysql2 (Node)", || node("mysql2", "3.24.6", "mysql2.mjs")),
    ("mysqladmin 9.7.4", || {
        let mut command = Command::new(format!("{FOLDER}/mysqladmin.sh"));
        command.env("MYSQLADMIN", Tool::Mysql.find()?.command("mysqladmin").get_program());
        Ok(command)
    }),
    ("mydumper", || {
        let mut command = Command::new(format!("{FOLDER}/mydumper.sh"));
        command.env("MYDUMPER", got("mydumper")?.join("bin/mydumper"));
        Ok(command)
    }),
    ("percona-toolkit (Perl)", || {
        let mut command = Command::new(format!("{FOLDER}/percona_toolkit.sh"));
        command.env("PERCONA_TOOLKIT", got("percona-toolkit")?.join("bin"));
        Ok(command)
    }),
    ("mysqld_exporter (Go)", || {
        let mut command = Command::new(format!("{FOLDER}/mysqld_exporter.sh"));
        command.env("MYSQLD_EXPORTER", got("mysqld-exporter")?.join("bin/mysqld_exporter"));
        Ok(command)
    }),
];

/// How a client fares, and the version that it tells.
fn verdict((_, command): Client, followed: Followed) -> Result<(Verdict, Option<String>)> {
    let mut command = command()?;
    command.args([&followed.port.to_string(), followed.user, followed.password]);
    let output = command.output().unwrap();
    let [printed, complaint] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let failed: Vec<_> = printed.lines().filter_map(|line| line.strip_prefix("failed ")).collect();
    let version = printed.lines().find_map(|line| line.strip_prefix("version ")).map(str::to_owned);
    let verdict = match failed.split_first() {
        None if printed.contains("done ") && output.status.success() => Verdict::Works,
        None => Verdict::Stops(complaint.lines().last().unwrap_or("it ends without a word").to_owned()),
        Some((first, [])) => Verdict::Stops((*first).to_owned()),
        Some((first, others)) => Verdict::Stops(format!("{first}; {} other steps", others.len())),
    };
    Ok((verdict, version))
}

pub(crate) fn table(source: &MysqlSandbox, relays: &mut Relays) -> Table {
    let mut table = Table::new(
        "Clients that ask in SQL",
        "What programs do when they connect: settings, statuses, transactions without content, a database, its columns, a \
         prepared statement; metrics; a dump with its position; replicas, and checksums of tables.",
        IN_ONE_FORM.map(str::to_owned).into(),
    );
    // percona-toolkit's own.
    source
        .sql(
            "CREATE DATABASE IF NOT EXISTS percona; GRANT ALL ON percona.* TO repl@'127.0.0.1';
             GRANT PROCESS, SESSION_VARIABLES_ADMIN ON *.* TO repl@'127.0.0.1'",
        )
        .unwrap();
    let wanted = std::env::var("BINLOGZ_COMPAT_CLIENTS").unwrap_or_default();
    for client in CLIENTS.into_iter().filter(|(name, _)| name.contains(&wanted)) {
        let mut name = client.0.to_owned();
        let cells = in_one_form(source, relays).map(|followed| match verdict(client, followed) {
            Ok((verdict, None)) => verdict,
            Ok((verdict, Some(version))) => {
                name = match client.0.split_once(' ') {
                    Some((program, more)) => format!("{program} {version} {more}"),
                    None => format!("{} {version}", client.0),
                };
                verdict
            }
            Err(error) => Verdict::NotTried(error.to_string()),
        });
        table.row(name, cells.into());
    }
    table
}
