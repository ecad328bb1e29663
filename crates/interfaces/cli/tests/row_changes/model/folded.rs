//! `fold`: a server that had the tables of the beginning and gets the folded log has the rows of the last snapshot.

use std::fs::File;

use binlogz_testkit::Result;

use super::back::different;
use super::costs::timed;
use super::snapshot;
use super::world::{World, reason};
use super::{Check, Verdict};
use crate::round_trip::through_mysqlbinlog;

pub(super) fn check(world: &mut World<'_>) -> Result<Vec<(Check, Verdict)>> {
    let Some(target) = world.folded else { return Ok(Vec::new()) };
    // As on the source, statements that the server refuses are left out.
    let created = world.created.clone();
    let created = File::open(world.note("created", "sql", created)).unwrap();
    let mut client = target.client();
    client.arg("--force").stdin(created);
    timed("sessions", || client.output().unwrap());
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
            timed("mysqlbinlog | mysql", || through_mysqlbinlog(target, &world.folder.path("folded")))?;
            let found = snapshot::rows(target, &world.database)?;
            let last = world.snapshots.last().unwrap();
            match different(&last.tables, &found) {
                None => Verdict::Equal,
                Some(what) => Verdict::Different(what),
            }
        }
        _ => Verdict::Refused(reason(&ran)),
    };
    target.drop_database(&world.database)?;
    Ok(vec![("fold", verdict)])
}
