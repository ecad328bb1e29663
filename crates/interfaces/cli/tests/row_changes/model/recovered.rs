//! `recover`: a server that follows the source's logs up to the moment of a snapshot has the rows that the source had then.

use std::path::PathBuf;

use binlogz_testkit::{MysqlSandbox, Result};

use super::back::different;
use super::session::ModelSession;
use super::snapshot;
use super::world::{World, reason};
use super::{Check, Verdict};

/// Every so many seeds: the target server goes through those in between on its way.
pub(super) const EACH: u64 = 4;
/// Both statements that forget all transactions, of this version and of earlier ones.
const RESETS: [&str; 2] = ["RESET BINARY LOGS AND GTIDS", "RESET MASTER"];

/// Makes a fresh server one that has what the source, which is fresh too, has.
pub(super) fn prepare(target: &MysqlSandbox, source: &MysqlSandbox) -> Result<()> {
    assert!(RESETS.iter().any(|statement| target.sql(statement).is_ok()));
    target.sql(&format!("SET GLOBAL gtid_purged = '{}'", source.gtid_executed()?.trim())).map(drop)
}

/// Has the target leave out all that the source has and it lacks: seeds have databases of their own.
pub(super) fn pass_over(target: &ModelSession<'_>, source: &ModelSession<'_>) -> Result<()> {
    let executed = source.sql("SELECT @@GLOBAL.gtid_executed")?;
    let executed = executed.trim().replace("\\n", "");
    target
        .sql(&format!(
            "SET GLOBAL gtid_purged = CONCAT('+', GTID_SUBTRACT('{executed}', @@GLOBAL.gtid_executed))"
        ))
        .map(drop)
}

pub(super) fn check(world: &mut World<'_>) -> Result<Vec<(Check, Verdict)>> {
    let Some(target) = world.target.filter(|_| world.seed.is_multiple_of(EACH)) else {
        return Ok(Vec::new());
    };
    let last = world.snapshots.len() - 1;
    let mut verdicts = Vec::new();
    for number in [world.random.below(last), last] {
        let gtid = world.snapshots[number].gtid.clone();
        let place = format!("root@{}", target.socket().display());
        let mut from = vec![PathBuf::from("--from")];
        from.extend(world.server.binlogs()?);
        // The one in use.
        from.pop();
        let mut args = vec!["recover", "--to", &place, "--until-gtid", &gtid];
        let rows = format!("--transaction-rows={}", 1 + world.random.below(40));
        let schema = format!("--schema={}", world.place());
        let is_folded = world.random.below(2) == 0;
        if is_folded {
            args.extend(["--fold", &rows]);
            // Tables of a schema are those of the end.
            args.extend([&*schema].iter().filter(|_| number == last));
        }
        let check = if is_folded { "recover --fold" } else { "recover" };
        let ran = world.command(&args, &from);
        if ran.code != Some(0) {
            // Replicas may refuse what their source logged, such as a change that breaks a foreign key. The target skips what it lacks, so
            // that the next seeds can be compared.
            verdicts.push((check, Verdict::Refused(format!("snapshot {number}: {}", reason(&ran)))));
            // The mark of a server on which a folded range was begun.
            let _ = target
                .sql("STOP REPLICA FOR CHANNEL 'binlogz_fold'; RESET REPLICA ALL FOR CHANNEL 'binlogz_fold'");
            pass_over(target, world.server)?;
            break;
        }
        let found = snapshot::rows(target, &world.database)?;
        let verdict = match different(&world.snapshots[number].tables, &found) {
            None => Verdict::Equal,
            // Since 9.6 a replica loses the rows that refer to a replaced row, which its source keeps.
            Some(what) if world.has_replaced => Verdict::Refused(format!("a REPLACE was replicated: {what}")),
            Some(what) => Verdict::Different(format!("snapshot {number} ({gtid}): {what}")),
        };
        verdicts.push((check, verdict));
    }
    Ok(verdicts)
}
