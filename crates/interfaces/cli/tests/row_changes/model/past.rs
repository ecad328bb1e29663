//! `table-at`: a table, several or all of a database have the rows at the moment of a snapshot that they had then.

use std::collections::HashSet;

use binlogz_testkit::Result;

use super::snapshot::{self, TableRows, difference};
use super::world::{World, reason};
use super::{Check, Verdict};

/// How many pairs of a table and a snapshot are looked at.
const PAIRS: usize = 2;
/// How many tables are asked for at once.
const SEVERAL: usize = 3;
/// Of how many seeds one asks for the whole database.
const WHOLE_EACH: usize = 4;

pub(super) fn check(world: &mut World<'_>) -> Result<Vec<(Check, Verdict)>> {
    let mut verdicts = Vec::new();
    let names: Vec<String> = world.rows()?.into_keys().collect();
    // DDL may have left no table.
    for _ in 0..if names.is_empty() { 0 } else { PAIRS } {
        let snapshot = world.random.below(world.snapshots.len());
        let table = names[world.random.below(names.len())].clone();
        let is_into = world.random.below(2) == 0;
        verdicts.push(("table-at", at(world, snapshot, &[table], is_into, None)?));
    }
    let names: Vec<String> = world.snapshots[0].tables.keys().cloned().collect();
    if let Some(dump) = world.dump.clone().filter(|_| !names.is_empty()) {
        let snapshot = 1 + world.random.below(world.snapshots.len() - 1);
        let table = names[world.random.below(names.len())].clone();
        verdicts.push(("table-at --dump", at(world, snapshot, &[table], false, dump.to_str())?));
    }
    Ok(verdicts)
}

/// Some tables that have a key, or all of the database.
pub(super) fn check_several(world: &mut World<'_>) -> Result<Verdict> {
    let keyed = world.server.sql(&format!(
        "SELECT DISTINCT table_name FROM information_schema.statistics WHERE table_schema = '{}' AND index_name = 'PRIMARY'",
        world.database
    ))?;
    let mut tables: Vec<String> = keyed.lines().map(str::to_owned).collect();
    if world.random.below(WHOLE_EACH) == 0 || tables.is_empty() {
        tables = vec!["*".to_owned()];
    }
    while tables.len() > SEVERAL {
        tables.swap_remove(world.random.below(tables.len()));
    }
    let snapshot = world.random.below(world.snapshots.len());
    let is_into = world.random.below(2) == 0;
    at(world, snapshot, &tables, is_into, None)
}

/// From the live tables, or forward from a dump.
fn at(
    world: &mut World<'_>,
    number: usize,
    tables: &[String],
    is_into: bool,
    dump: Option<&str>,
) -> Result<Verdict> {
    let (scratch, place) = (format!("s{}", world.seed), world.place());
    let names: Vec<String> = tables.iter().map(|table| format!("{}.{table}", world.database)).collect();
    let gtid = world.snapshots[number].gtid.clone();
    let what = format!("{} at snapshot {number} ({gtid})", tables.join(", "));
    world.server.sql(&format!("CREATE DATABASE {scratch}"))?;
    let into = match tables {
        [table] if table != "*" => format!("{scratch}.{table}"),
        _ => scratch.clone(),
    };
    let mut args = vec!["table-at"];
    args.extend(names.iter().map(String::as_str));
    args.extend(["--at", &gtid]);
    args.extend(["--into", &into].iter().filter(|_| is_into));
    let ran = match dump {
        Some(dump) => {
            args.extend(["--dump", dump]);
            let logs = world.logs.clone();
            world.command(&args, &logs)
        }
        None => {
            args.extend(["--server", &place]);
            world.command(&args, &[])
        }
    };
    let verdict = match ran.code {
        Some(0) if is_into => None,
        Some(0) => {
            let client = world.script("past", &ran.stdout, &[&scratch]);
            let error = String::from_utf8_lossy(&client.stderr).into_owned();
            let tables_then = &world.snapshots[number].tables;
            // EXCHANGE PARTITION WITHOUT VALIDATION can make two rows of one key, which no server takes.
            let is_as_then = error.contains("ERROR 1062") && tables_then.values().any(holds_an_id_twice);
            let said = format!("{what}: the script fails: {error}");
            let verdict = if is_as_then { Verdict::Refused(said) } else { Verdict::Different(said) };
            (!client.status.success()).then_some(verdict)
        }
        _ => Some(Verdict::Refused(format!("{what}: {}", reason(&ran)))),
    };
    let verdict = match verdict {
        Some(verdict) => verdict,
        None => {
            let found = snapshot::rows(world.server, &scratch)?;
            let expected = &world.snapshots[number].tables;
            let of_text = (!is_into).then_some(dump.is_some());
            let all = [expected, &found].map(|tables| tables.keys().cloned().collect::<Vec<_>>());
            let wrong = match tables {
                [table] if table == "*" && all[0] != all[1] => {
                    Some(format!("the tables were {:?}, not {:?}", all[0], all[1]))
                }
                [table] if table == "*" => {
                    all[0].iter().find_map(|table| unlike(expected.get(table), found.get(table), of_text))
                }
                _ => tables.iter().find_map(|table| unlike(expected.get(table), found.get(table), of_text)),
            };
            wrong.map_or(Verdict::Equal, |wrong| Verdict::Different(format!("{what}: {wrong}")))
        }
    };
    world.server.drop_database(&scratch)?;
    Ok(verdict)
}

/// How a table that was made differs from the expected one, if it does. `of_text`: a script made it, and whether from a dump.
fn unlike(expected: Option<&TableRows>, found: Option<&TableRows>, of_text: Option<bool>) -> Option<String> {
    let Some(expected) = expected else { return Some("there was no such table".to_owned()) };
    let Some(found) = found else { return Some("nothing was made".to_owned()) };
    if (&expected.columns, &expected.types) != (&found.columns, &found.types) {
        return Some(format!("the columns were {:?}, not {:?}", expected.columns, found.columns));
    }
    let mut found = found.clone();
    if let Some(is_of_dump) = of_text {
        forget_what_texts_lose(&mut found, is_of_dump);
    }
    difference(expected, &found)
}

fn holds_an_id_twice(table: &TableRows) -> bool {
    let Some(place) = table.columns.iter().position(|column| column == "id") else { return false };
    let ids: HashSet<&str> = table.rows.iter().map(|row| &*row[place]).collect();
    ids.len() < table.rows.len()
}

/// A script loses what JSON text can't say, and mysqldump the last digits of a FLOAT: they aren't compared.
fn forget_what_texts_lose(table: &mut TableRows, is_of_dump: bool) {
    for (name, data_type) in table.columns.iter_mut().zip(&table.types) {
        if data_type == "json" || is_of_dump && data_type == "float" {
            name.push_str(" as text");
        }
    }
}
