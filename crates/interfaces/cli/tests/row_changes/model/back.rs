//! `undo` in its three forms from the end to a snapshot, and `redo` after it: the tables are as they were at the snapshot, and then as at
//! the end.

use std::collections::BTreeMap;
use std::fs::File;

use binlogz_testkit::Result;

use super::snapshot::{TableRows, difference};
use super::world::{World, reason};
use super::{Check, Verdict};
use crate::common::Ran;

/// How changes are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UndoForm {
    Script,
    Log,
    Apply,
}

/// The most rows that are in a transaction of `--apply`, and one more.
const BATCH_MAX: usize = 40;

pub(super) fn check(world: &mut World<'_>) -> Result<Vec<(Check, Verdict)>> {
    let mut verdicts = Vec::new();
    drop_triggers(world)?;
    // --apply comes first: to a table without a key it makes no change that the server's later logs have, too.
    for (check, form) in [
        ("undo --apply", UndoForm::Apply),
        ("undo", UndoForm::Script),
        ("undo --format binlog", UndoForm::Log),
    ] {
        // The last phase as often as all others.
        let last = world.snapshots.len() - 2;
        let from = if world.random.below(2) == 0 { last } else { world.random.below(last + 1) };
        verdicts.push((check, there_and_back(world, from, form)?));
        // What came next would begin elsewhere.
        let end = &world.snapshots[last + 1].tables;
        if different(end, &world.rows()?).is_some() {
            break;
        }
    }
    Ok(verdicts)
}

/// Triggers make scripts and `--apply` refuse; other tests show that.
fn drop_triggers(world: &World<'_>) -> Result<()> {
    let database = &world.database;
    let triggers = world.server.sql(&format!(
        "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = '{database}'"
    ))?;
    for trigger in triggers.lines() {
        world.server.sql(&format!("DROP TRIGGER {database}.{trigger}"))?;
    }
    Ok(())
}

fn there_and_back(world: &mut World<'_>, from: usize, form: UndoForm) -> Result<Verdict> {
    let last = world.snapshots.len() - 1;
    for (verb, target) in [("undo", from), ("redo", last)] {
        let ran = match run(world, verb, from, form) {
            Ok(ran) => ran,
            Err(what) => return Ok(Verdict::Different(format!("{verb} from snapshot {from}: {what}"))),
        };
        let now = world.rows()?;
        let expected = &world.snapshots[target].tables;
        let difference = different(expected, &now);
        if ran.code == Some(0) {
            if let Some(difference) = difference {
                return Ok(Verdict::Different(format!("{verb} from snapshot {from}: {difference}")));
            }
        } else {
            let reason = format!("{verb} from snapshot {from}: {}", reason(&ran));
            // Only what was undone whole is made again, so nothing else may have changed anything.
            let unchanged = &world.snapshots[if verb == "undo" { last } else { from }].tables;
            return Ok(match different(unchanged, &now) {
                Some(difference) if form != UndoForm::Apply => {
                    Verdict::Different(format!("refused, and changed something: {reason}: {difference}"))
                }
                Some(_) | None => Verdict::Refused(reason),
            });
        }
    }
    Ok(Verdict::Equal)
}

/// The first table that differs.
fn different(expected: &BTreeMap<String, TableRows>, found: &BTreeMap<String, TableRows>) -> Option<String> {
    expected.iter().find_map(|(table, expected)| match found.get(table) {
        Some(found) => difference(expected, found).map(|difference| format!("{table}: {difference}")),
        None => Some(format!("{table} is gone")),
    })
}

/// Runs the command over the logs from a snapshot on, and what it wrote on the server if it wrote everything.
fn run(world: &mut World<'_>, verb: &str, from: usize, form: UndoForm) -> std::result::Result<Ran, String> {
    let (place, snapshot) = (world.place(), &world.snapshots[from]);
    let position = snapshot.position.to_string();
    let logs = world.logs[snapshot.log..].to_vec();
    let batch = (1 + world.random.below(BATCH_MAX)).to_string();
    let output = world.folder.path("out.binlog");
    let mut args = vec![verb, "--start-position", &position];
    // Otherwise DDL is named, and that's all.
    if world.has_ddl_after(from) && world.random.below(4) > 0 {
        args.extend(["--operation", "insert", "--operation", "update", "--operation", "delete"]);
    }
    match form {
        UndoForm::Script => args.extend(["--schema", &place]),
        UndoForm::Apply => args.extend(["--apply", &place, "--batch", &batch]),
        UndoForm::Log => args.extend(["--schema", &place, "--format", "binlog", "--force", "--output"]),
    }
    if form == UndoForm::Log {
        args.extend(output.to_str());
    }
    if form == UndoForm::Apply {
        // Its dry run tells conflicts that come of other causes than somebody's changes.
        let dry = world.command(&args, &logs);
        if dry.code != Some(0) {
            return Ok(dry);
        }
        args.push("--execute");
    }
    let ran = world.command(&args, &logs);
    if ran.code != Some(0) || form == UndoForm::Apply {
        return Ok(ran);
    }
    let mut script = ran.stdout.clone();
    if form == UndoForm::Log {
        let options = ["--no-defaults", "--verify-binlog-checksum", "--skip-gtids"].map(AsRef::as_ref);
        let printed = world
            .server
            .installed()
            .run("mysqlbinlog", options.into_iter().chain([output.as_os_str()]))
            .map_err(|error| error.to_string())?;
        if !printed.status.success() {
            return Err(String::from_utf8_lossy(&printed.stderr).into_owned());
        }
        script = printed.stdout;
    }
    let path = world.note(verb, "sql", &script);
    let client = world.server.client().stdin(File::open(path).unwrap()).output().unwrap();
    match client.status.success() {
        true => Ok(ran),
        false => Err(format!("the script fails: {}", String::from_utf8_lossy(&client.stderr))),
    }
}
