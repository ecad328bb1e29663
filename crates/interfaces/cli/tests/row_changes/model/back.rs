//! `undo` in its three forms from the end to a snapshot, and `redo` after it: the tables are as they were at the snapshot, and then as at
//! the end. The same of one table, and of one transaction with all others after it.

use std::collections::BTreeMap;

use binlogz_testkit::Result;

use super::costs::timed;
use super::snapshot::{TableRows, difference, following_columns};
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
    world.has_triggers = world.random.below(2) == 0;
    if !world.has_triggers {
        drop_triggers(world)?;
    }
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
            return Ok(verdicts);
        }
    }
    verdicts.push(("undo --table", one_table(world)?));
    let end = &world.snapshots[world.snapshots.len() - 1].tables;
    if different(end, &world.rows()?).is_some() {
        return Ok(verdicts);
    }
    // Neither leaves the tables as they were.
    if world.random.below(2) == 0 && !world.is_mariadb {
        verdicts.push(("undo --gtids", one_transaction(world)?));
    } else {
        verdicts.push(("undo in part", partly(world)?));
    }
    Ok(verdicts)
}

/// Triggers make scripts and `--apply` refuse: of half of the seeds they are dropped.
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

/// `--table` of a table: it alone goes back, and comes again. Columns that refer to its key follow it by ON UPDATE CASCADE.
fn one_table(world: &mut World<'_>) -> Result<Verdict> {
    let last = world.snapshots.len() - 1;
    let names: Vec<String> = world.snapshots[last].tables.keys().cloned().collect();
    if names.is_empty() {
        return Ok(Verdict::Refused("DDL left no table".to_owned()));
    }
    let table = names[world.random.below(names.len())].clone();
    there_and_back_alone(world, &table)
}

/// [`one_table`] of each table.
pub(super) fn each_table(world: &mut World<'_>) -> Result<Vec<(Check, Verdict)>> {
    world.has_triggers = false;
    drop_triggers(world)?;
    let last = world.snapshots.len() - 1;
    let names: Vec<String> = world.snapshots[last].tables.keys().cloned().collect();
    let mut verdicts = Vec::new();
    for table in &names {
        verdicts.push(("undo --table", there_and_back_alone(world, table)?));
        let end = &world.snapshots[last].tables;
        if different(end, &world.rows()?).is_some() {
            break;
        }
    }
    Ok(verdicts)
}

fn there_and_back_alone(world: &mut World<'_>, table: &str) -> Result<Verdict> {
    let last = world.snapshots.len() - 1;
    let option = format!("--table={}.{table}", world.database);
    for (verb, target) in [("undo", last - 1), ("redo", last)] {
        let ran = match run(world, verb, last - 1, UndoForm::Script, &[&option]) {
            Ok(ran) => ran,
            // Rows of other tables may protect these: the server's foreign keys say so. A trigger would run.
            Err(what) if is_guarded(world, &what) => {
                return Ok(Verdict::Refused(format!("{verb} {option}: {what}")));
            }
            Err(what) => return Ok(Verdict::Different(format!("{verb} {option}: {what}"))),
        };
        if !is_whole(&ran) {
            return Ok(Verdict::Refused(format!("{verb} {option}: {}", reason(&ran))));
        }
        let mut expected = world.snapshots[last].tables.clone();
        match world.snapshots[target].tables.get(table) {
            Some(state) => expected.insert(table.to_owned(), state.clone()),
            None => expected.remove(table),
        };
        // The server takes its keys' changes back in what refers to them, and makes them again.
        let following = if verb == "undo" {
            following_columns(world.server, &world.database, table)?
        } else {
            Vec::new()
        };
        for (child, column) in &following {
            expected.entry(child.clone()).and_modify(|state| state.forget(column));
        }
        if let Some(difference) = different(&expected, &world.rows()?) {
            return Ok(Verdict::Different(format!("{verb} {option}: {difference}")));
        }
    }
    Ok(Verdict::Equal)
}

/// Whether the server refused a statement for a foreign key, or the script ended at a cascade or before a table with triggers.
fn is_guarded(world: &World<'_>, error: &str) -> bool {
    ["foreign key constraint fails", "rows refer to it", "foreign keys refer to"]
        .iter()
        .any(|words| error.contains(words))
        || world.has_triggers && error.contains("has the trigger")
}

/// `--gtids` of one transaction, then of all others since the snapshot before the end; then everything is made again.
fn one_transaction(world: &mut World<'_>) -> Result<Verdict> {
    let last = world.snapshots.len() - 1;
    let [first, end] = [last - 1, last].map(|number| {
        let (uuid, number) = world.snapshots[number].gtid.split_once(':').unwrap();
        (uuid.to_owned(), number.parse::<u64>().unwrap())
    });
    if end.1 - first.1 < 2 || world.snapshots[last].is_after_ddl {
        return Ok(Verdict::Refused("too few transactions".into()));
    }
    let uuid = end.0;
    let chosen = first.1 + 1 + world.random.below((end.1 - first.1) as usize) as u64;
    let mut others = uuid.clone();
    for (from, to) in [(first.1 + 1, chosen - 1), (chosen + 1, end.1)] {
        if from <= to {
            others += &format!(":{from}-{to}");
        }
    }
    for gtids in [format!("{uuid}:{chosen}"), others] {
        let option = format!("--gtids={gtids}");
        let ran = match run(world, "undo", last - 1, UndoForm::Script, &[&option]) {
            Ok(ran) => ran,
            Err(what) if is_guarded(world, &what) => {
                return Ok(Verdict::Refused(format!("{option}: {what}")));
            }
            Err(what) => return Ok(Verdict::Different(format!("{option}: {what}"))),
        };
        if ran.code != Some(0) {
            return Ok(Verdict::Refused(format!("{option}: {}", reason(&ran))));
        }
    }
    Ok(match different(&world.snapshots[last - 1].tables, &world.rows()?) {
        Some(difference) => Verdict::Different(format!("{uuid}:{chosen} and then the others: {difference}")),
        None => Verdict::Equal,
    })
}

/// A script that isn't whole: the tables that it doesn't name are as they were at the snapshot, and so are the rows of those it names
/// that have nothing to do with what it leaves.
fn partly(world: &mut World<'_>) -> Result<Verdict> {
    let from = world.random.below(world.snapshots.len() - 1);
    let place = world.place();
    let (chosen, logs) = world.since(from, false);
    let chosen: Vec<&str> = chosen.iter().map(String::as_str).collect();
    let ran = world.command(&[&["undo", "--schema", &*place], &*chosen].concat(), &logs);
    if !matches!(ran.code, Some(0 | 1)) || ran.stdout.is_empty() {
        return Ok(Verdict::Refused(reason(&ran)));
    }
    let client = world.script("partly", &ran.stdout, &[]);
    if !client.status.success() {
        return Ok(Verdict::Refused(format!(
            "the script stops: {}",
            String::from_utf8_lossy(&client.stderr)
        )));
    }
    let text = format!("{}{}", ran.text(), ran.stderr);
    let named: Vec<&str> = text.lines().filter(|line| is_named(line)).collect();
    let now = world.rows()?;
    for (table, expected) in &world.snapshots[from].tables {
        if named
            .iter()
            .any(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == table))
        {
            continue;
        }
        let Some(found) = now.get(table) else {
            return Ok(Verdict::Different(format!(
                "undo from snapshot {from}: {table} is gone and isn't named"
            )));
        };
        if let Some(difference) = difference(expected, found) {
            return Ok(Verdict::Different(format!(
                "undo from snapshot {from}: {table} isn't named: {difference}"
            )));
        }
    }
    Ok(Verdict::Equal)
}

/// Whether a line names what isn't undone.
fn is_named(line: &str) -> bool {
    line.contains("not undone") || line.starts_with("binlogz:")
}

fn there_and_back(world: &mut World<'_>, from: usize, form: UndoForm) -> Result<Verdict> {
    let last = world.snapshots.len() - 1;
    for (verb, target) in [("undo", from), ("redo", last)] {
        let ran = match run(world, verb, from, form, &[]) {
            Ok(ran) => ran,
            Err(what)
                if form != UndoForm::Apply
                    && (what.contains("rows refer to it")
                        || world.has_triggers && what.contains("trigger")) =>
            {
                return Ok(Verdict::Refused(format!("{verb} from snapshot {from}: {what}")));
            }
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
                Some(difference) => {
                    Verdict::Different(format!("refused, and changed something: {reason}: {difference}"))
                }
                None => Verdict::Refused(reason),
            });
        }
    }
    Ok(Verdict::Equal)
}

/// Whether everything of the chosen tables was written; rows of others may have been changed together with them.
fn is_whole(ran: &Ran) -> bool {
    let is_of_others = |line: &str| line.contains("changed rows of other tables together with those chosen");
    match ran.code {
        Some(0) => true,
        Some(1) => {
            ran.text().ends_with("; 0 rows and 0 statements not undone\n")
                && ran.stderr.lines().all(is_of_others)
        }
        _ => false,
    }
}

/// The first table that differs.
pub(super) fn different(
    expected: &BTreeMap<String, TableRows>,
    found: &BTreeMap<String, TableRows>,
) -> Option<String> {
    expected.iter().find_map(|(table, expected)| match found.get(table) {
        Some(found) => difference(expected, found).map(|difference| format!("{table}: {difference}")),
        None => Some(format!("{table} is gone")),
    })
}

/// Runs the command over the logs from a snapshot on, and what it wrote on the server if it wrote everything.
fn run(
    world: &mut World<'_>,
    verb: &str,
    from: usize,
    form: UndoForm,
    more: &[&str],
) -> std::result::Result<Ran, String> {
    let place = world.place();
    let has_gtids = more.iter().any(|option| option.starts_with("--gtids"));
    let (chosen, logs) = world.since(from, has_gtids);
    let batch = (1 + world.random.below(BATCH_MAX)).to_string();
    let output = world.folder.path("out.binlog");
    let mut args = [&[verb], &*chosen.iter().map(String::as_str).collect::<Vec<_>>(), more].concat();
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
    if ran.code != Some(0) && form == UndoForm::Apply {
        return Err(format!("its dry run was whole, and --execute isn't: {}", reason(&ran)));
    }
    if !is_whole(&ran) || form == UndoForm::Apply {
        return Ok(ran);
    }
    let mut script = ran.stdout.clone();
    if form == UndoForm::Log {
        let (program, options) = match world.is_mariadb {
            true => ("mariadb-binlog", &["--no-defaults", "--verify-binlog-checksum"][..]),
            false => ("mysqlbinlog", &["--no-defaults", "--verify-binlog-checksum", "--skip-gtids"][..]),
        };
        let options = options.iter().map(AsRef::as_ref).chain([output.as_os_str()]);
        let printed = timed(program, || world.server.installed().run(program, options))
            .map_err(|error| error.to_string())?;
        if !printed.status.success() {
            return Err(String::from_utf8_lossy(&printed.stderr).into_owned());
        }
        script = printed.stdout;
    }
    let client = world.script(verb, &script, &[]);
    match client.status.success() {
        true => Ok(ran),
        false => Err(format!("the script fails: {}", String::from_utf8_lossy(&client.stderr))),
    }
}
