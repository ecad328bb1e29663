//! `table-at`: a table at the moment of a snapshot has the rows that it had then.

use std::fs::File;

use binlogz_testkit::Result;

use super::snapshot::{self, TableRows, difference};
use super::world::{World, reason};
use super::{Check, Verdict};

/// How many pairs of a table and a snapshot are looked at.
const PAIRS: usize = 2;

pub(super) fn check(world: &mut World<'_>) -> Result<Vec<(Check, Verdict)>> {
    let mut verdicts = Vec::new();
    let names: Vec<String> = world.rows()?.into_keys().collect();
    for _ in 0..PAIRS {
        let snapshot = world.random.below(world.snapshots.len());
        let table = names[world.random.below(names.len())].clone();
        let is_into = world.random.below(2) == 0;
        verdicts.push(("table-at", at(world, snapshot, &table, is_into, None)?));
    }
    if let Some(dump) = world.dump.clone() {
        let snapshot = 1 + world.random.below(world.snapshots.len() - 1);
        let names: Vec<String> = world.snapshots[0].tables.keys().cloned().collect();
        let table = names[world.random.below(names.len())].clone();
        verdicts.push(("table-at --dump", at(world, snapshot, &table, false, dump.to_str())?));
    }
    Ok(verdicts)
}

/// From the live table, or forward from a dump.
fn at(
    world: &mut World<'_>,
    number: usize,
    table: &str,
    is_into: bool,
    dump: Option<&str>,
) -> Result<Verdict> {
    let scratch = format!("s{}", world.seed);
    let (name, place) = (format!("{}.{table}", world.database), world.place());
    let gtid = world.snapshots[number].gtid.clone();
    let what = format!("{table} at snapshot {number} ({gtid})");
    world.server.sql(&format!("CREATE DATABASE {scratch}"))?;
    let into = format!("{scratch}.{table}");
    let mut args = vec!["table-at", &name, "--at", &gtid];
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
    let mut verdict = None;
    if ran.code != Some(0) {
        verdict = Some(Verdict::Refused(format!("{what}: {}", reason(&ran))));
    } else if !is_into {
        let path = world.folder.put("past.sql", &ran.stdout);
        let client = world.server.client().arg(&scratch).stdin(File::open(path).unwrap()).output().unwrap();
        if !client.status.success() {
            let error = String::from_utf8_lossy(&client.stderr).into_owned();
            verdict = Some(Verdict::Different(format!("{what}: the script fails: {error}")));
        }
    }
    let verdict = match verdict {
        Some(verdict) => verdict,
        None => {
            let mut found = snapshot::rows(world.server, &scratch)?;
            let expected = world.snapshots[number].tables.get(table);
            if let (Some(expected), Some(found)) = (expected, found.get(table))
                && (&expected.columns, &expected.types) != (&found.columns, &found.types)
            {
                let columns = (&expected.columns, &found.columns);
                let line = format!("{what}: the columns were {:?}, not {:?}", columns.0, columns.1);
                drop_scratch(world, &scratch)?;
                return Ok(Verdict::Different(line));
            }
            if let Some(found) = found.get_mut(table).filter(|_| !is_into) {
                forget_what_texts_lose(found, dump.is_some());
            }
            match (expected, found.get(table)) {
                (Some(expected), Some(found)) => match difference(expected, found) {
                    None => Verdict::Equal,
                    Some(difference) => Verdict::Different(format!("{what}: {difference}")),
                },
                (None, _) => Verdict::Different(format!("{what}: there was no such table")),
                (_, None) => Verdict::Different(format!("{what}: nothing was made")),
            }
        }
    };
    drop_scratch(world, &scratch)?;
    Ok(verdict)
}

fn drop_scratch(world: &World<'_>, scratch: &str) -> Result<()> {
    world.server.sql(&format!("SET foreign_key_checks = 0; DROP DATABASE {scratch}")).map(drop)
}

/// A script loses what JSON text can't say, and mysqldump the last digits of a FLOAT: they aren't compared.
fn forget_what_texts_lose(table: &mut TableRows, is_of_dump: bool) {
    for (name, data_type) in table.columns.iter_mut().zip(&table.types) {
        if data_type == "json" || is_of_dump && data_type == "float" {
            name.push_str(" as text");
        }
    }
}
