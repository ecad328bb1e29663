//! `undo --all --until`: the live tables go back to a snapshot, and from there to the last one by the same way.

use binlogz_testkit::Result;

use super::back::different;
use super::world::{World, reason};
use super::{Check, Verdict};

pub(super) fn check(world: &mut World<'_>) -> Result<Vec<(Check, Verdict)>> {
    let last = world.snapshots.len() - 1;
    let mut verdicts = Vec::new();
    for number in [world.random.below(world.snapshots.len()), last] {
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
    }
    Ok(verdicts)
}
