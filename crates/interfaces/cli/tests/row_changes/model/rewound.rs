//! `undo --all --until`: the live tables go back to a snapshot, and from there to the last one by the same way. Then `table-at` is asked for
//! each table at the first of these moments: the two never disagree.

use std::collections::BTreeMap;

use binlogz_testkit::Result;

use super::back::different;
use super::snapshot::{self, TableRows};
use super::world::{World, reason};
use super::{Check, Verdict};

pub(super) fn check(world: &mut World<'_>) -> Result<Vec<(Check, Verdict)>> {
    let last = world.snapshots.len() - 1;
    let first = world.random.below(world.snapshots.len());
    let mut verdicts = Vec::new();
    let mut of_first = None;
    for number in [first, last] {
        let gtid = world.snapshots[number].gtid.clone();
        let (place, tables) = (world.place(), format!("{}.*", world.database));
        let batch = format!("--batch={}", 1 + world.random.below(40));
        let front = ["undo", "--all", "--until", &gtid, "--table", &tables, "--server", &place];
        let options = [&front[..], &["--apply", &place, "--execute", &batch]].concat();
        let ran = world.command(&options, &[]);
        let found = world.rows()?;
        let verdict = match (ran.code, different(&world.snapshots[number].tables, &found)) {
            (Some(0), None) => Verdict::Equal,
            (Some(0), Some(what)) => Verdict::Different(format!("snapshot {number} ({gtid}): {what}")),
            (_, _) => Verdict::Refused(format!("snapshot {number}: {}", reason(&ran))),
        };
        verdicts.push(("rewind", verdict));
        if ran.code == Some(0) && of_first.is_none() {
            of_first = Some((gtid, found));
        }
    }
    if let Some((gtid, found)) = of_first {
        let at = tables_at(world, &gtid)?;
        verdicts.push((
            "rewind beside table-at",
            match different(&at, &found) {
                Some(what) => Verdict::Different(format!("{gtid}: {what}")),
                None if at.is_empty() => Verdict::Refused("table-at tells no table".to_owned()),
                None => Verdict::Equal,
            },
        ));
    }
    Ok(verdicts)
}

/// The tables that `table-at` can tell, as it tells them.
fn tables_at(world: &mut World<'_>, gtid: &str) -> Result<BTreeMap<String, TableRows>> {
    let (past, place) = (format!("r{}", world.seed), world.place());
    world.server.sql(&format!("CREATE DATABASE {past}"))?;
    let names: Vec<String> = world.rows()?.into_keys().collect();
    for table in names {
        let (of, into) = (format!("{}.{table}", world.database), format!("{past}.{table}"));
        world.command(&["table-at", &of, "--at", gtid, "--server", &place, "--into", &into], &[]);
    }
    let at = snapshot::rows(world.server, &past)?;
    world.server.drop_database(&past)?;
    Ok(at)
}
