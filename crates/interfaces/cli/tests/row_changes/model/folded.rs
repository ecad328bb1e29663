//! `fold`: a server that had the tables of the beginning and gets the folded log has the rows of the last snapshot.

use std::fs::File;
use std::path::Path;

use binlogz_testkit::{Result, SandboxServer};

use super::back::different;
use super::costs::timed;
use super::snapshot;
use super::world::{World, reason};
use super::{Check, Verdict};
use crate::round_trip::applied_by_mysqlbinlog;

pub(super) fn check(world: &mut World<'_>) -> Result<Vec<(Check, Verdict)>> {
    let Some(target) = world.folded else { return Ok(Vec::new()) };
    let created = world.created.clone();
    let created = world.note("created", "sql", created);
    begin(target, &created);
    let mut options = vec!["fold".to_owned(), "--force".to_owned(), "--to=folded".to_owned()];
    if world.random.below(2) == 0 {
        options.push(format!("--transaction-rows={}", 1 + world.random.below(40)));
    }
    // Where a server doesn't log what foreign keys do, only a schema tells that they did nothing.
    let has_schema = world.random.below(4) > 0;
    if has_schema {
        options.push(format!("--schema={}", world.place()));
    }
    if world.random.below(2) == 0 {
        options.push("--compress".to_owned());
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let logs = world.logs.clone();
    let ran = world.command(&options, &logs);
    let verdict = match ran.code {
        Some(0) => {
            println!("SEED={}: fold: {}", world.seed, ran.text().lines().next().unwrap_or_default());
            let folded = world.folder.path("folded");
            match timed("mysqlbinlog | mysql", || applied_by_mysqlbinlog(target, &[&folded]))? {
                Ok(()) => {
                    let found = snapshot::rows(target, &world.database)?;
                    let last = world.snapshots.last().unwrap();
                    different(&last.tables, &found).map_or(Verdict::Equal, Verdict::Different)
                }
                Err(what) => {
                    target.drop_database(&world.database)?;
                    begin(target, &created);
                    let logs: Vec<&Path> = logs.iter().map(AsRef::as_ref).collect();
                    match applied_by_mysqlbinlog(target, &logs)? {
                        Ok(()) => Verdict::Different(what),
                        Err(own) => Verdict::Refused(format!("the server takes its own logs no more: {own}")),
                    }
                }
            }
        }
        _ => Verdict::Refused(reason(&ran)),
    };
    target.drop_database(&world.database)?;
    Ok(vec![("fold", verdict)])
}

/// Makes the tables of the beginning. As on the source, statements that the server refuses are left out.
fn begin(target: &SandboxServer, created: &Path) {
    let mut client = target.client();
    client.arg("--force").stdin(File::open(created).unwrap());
    timed("sessions", || client.output().unwrap());
}
