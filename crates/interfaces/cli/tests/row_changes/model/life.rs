//! `rows`: between two snapshots without DDL, its changes lead from the rows of one to those of the other.

use binlogz_testkit::Result;
use serde_json::Value;

use super::snapshot::TableRows;
use super::world::{Snapshot, World, reason};
use super::{Check, Verdict};

/// Types whose values have the same text in both forms.
const COMPARED: [&str; 9] =
    ["int", "bigint", "tinyint", "smallint", "mediumint", "decimal", "date", "year", "time"];

pub(super) fn check(world: &mut World<'_>) -> Result<Vec<(Check, Verdict)>> {
    let mut verdicts = Vec::new();
    if !world.has_full_images {
        return Ok(verdicts);
    }
    let mut tables: Vec<String> =
        world.snapshots.iter().flat_map(|snapshot| snapshot.tables.keys().cloned()).collect();
    tables.sort();
    tables.dedup();
    for table in tables {
        verdicts.push(("rows", of_table(world, &table)));
    }
    Ok(verdicts)
}

fn of_table(world: &mut World<'_>, table: &str) -> Verdict {
    let name = format!("{}.{table}", world.database);
    let place = world.place();
    let position = world.snapshots[0].position.to_string();
    let first = world.snapshots[0].log;
    let logs = world.logs[first..].to_vec();
    let ran = world.command(
        &["rows", &name, "--format", "json", "--schema", &place, "--start-position", &position],
        &logs,
    );
    let is_none = !ran.stderr.is_empty()
        && ran.stderr.lines().all(|line| {
            line.ends_with(": no such row was changed in these logs")
                || line.contains(": no such table is in these logs; there ")
        });
    if ran.code != Some(0) && !is_none {
        return Verdict::Refused(format!("{table}: {}", reason(&ran)));
    }
    let changes: Vec<Value> = ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut rest = &changes[..];
    for (before, after) in world.snapshots.iter().zip(&world.snapshots[1..]) {
        let count = rest.iter().take_while(|change| is_before(world, change, after)).count();
        let (phase, later) = rest.split_at(count);
        rest = later;
        if after.is_after_ddl {
            continue;
        }
        let (Some(before), Some(after)) = (before.tables.get(table), after.tables.get(table)) else {
            continue;
        };
        if let Some(what) = replayed(before, after, phase) {
            return Verdict::Different(format!("{table}: {what}"));
        }
    }
    Verdict::Equal
}

/// Whether a change is before the snapshot.
fn is_before(world: &World<'_>, change: &Value, snapshot: &Snapshot) -> bool {
    let log = change["log"].as_str().unwrap();
    let log = world.logs.iter().position(|path| path.to_str().is_some_and(|path| path.ends_with(log)));
    let position = change["position"].as_u64().unwrap();
    (log.unwrap(), position) < (snapshot.log, snapshot.position)
}

/// The changes made on the rows of `before`; what differs from `after` then.
fn replayed(before: &TableRows, after: &TableRows, changes: &[Value]) -> Option<String> {
    let places: Vec<usize> =
        (0..before.columns.len()).filter(|place| COMPARED.contains(&&*before.types[*place])).collect();
    let [mut rows, mut expected] = [before, after].map(|state| {
        let rows = state.rows.iter();
        rows.map(|row| places.iter().map(|place| row[*place].clone()).collect::<Vec<_>>()).collect::<Vec<_>>()
    });
    for change in changes {
        for (image, is_added) in [("before", false), ("after", true)] {
            let Some(image) = change[image].as_object() else { continue };
            let mut row = Vec::new();
            for place in &places {
                let Some(value) = image.get(&before.columns[*place]) else {
                    return Some(format!("{change} lacks {}", before.columns[*place]));
                };
                row.push(match value {
                    Value::Null => "NULL".to_owned(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
            }
            if is_added {
                rows.push(row);
            } else {
                let Some(place) = rows.iter().position(|other| *other == row) else {
                    return Some(format!("{change}: {row:?} is not among {rows:?}"));
                };
                rows.remove(place);
            }
        }
    }
    rows.sort();
    expected.sort();
    (rows != expected).then(|| format!("replayed {rows:?}, the server had {expected:?}"))
}
