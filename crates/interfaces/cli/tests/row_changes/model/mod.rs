//! The model: random tables, DDL and changes on a server with default or other settings, and the server's own tables at several
//! places of its log. `undo` in its three forms and with `--all`, `redo`, `table-at`, `rows`, `recover` and `fold` must lead to one of these states, or say that they
//! don't know.
//!
//! `MODEL_SEEDS` says how many seeds, `SEED` is the first, `MODEL_SERVER=8.0` takes MySQL 8.0.33, `mariadb` MariaDB 10.11; `scripts/soak/row-changes-model.sh` runs 1,000. `MODEL_ONLY=fold` checks `fold` alone, `rewind` only `undo --all`, `table` `undo --table` of each table; `MODEL_PROGRAM=FILE` takes the commands of another build. With `MODEL_KEEP=FOLDER` the
//! workload and what the commands said of a seed stays there.

mod back;
mod changes;
mod costs;
mod ddl;
mod folded;
mod kinds;
mod life;
mod past;
mod recovered;
mod rewound;
mod session;
mod snapshot;
mod tables;
mod world;

use std::collections::BTreeMap;
use std::time::Instant;

use binlogz_testkit::{InstalledTool, MariadbSandbox, Result, Tool, require_tool, setting};

use session::ModelSession;
use world::{ModelServer, World};

const SEEDS: u64 = 16;
/// The GTID of the last transaction of a server that has its own alone.
const LAST_GTID: &str = "SELECT CONCAT(@@server_uuid, ':', REGEXP_SUBSTR(@@GLOBAL.gtid_executed, '[0-9]+$'))";
/// Characters of a refusal's reason that are printed.
const REASON_LENGTH_MAX: usize = 300;

/// What a check found.
pub(crate) enum Verdict {
    /// The command led to the state that the server had.
    Equal,
    /// The command said that it can't, and why.
    Refused(String),
    /// The command claims a state that the server didn't have.
    Different(String),
}

impl Verdict {
    fn place(&self) -> usize {
        match self {
            Verdict::Equal => 0,
            Verdict::Refused(_) => 1,
            Verdict::Different(_) => 2,
        }
    }
}

/// The name of a check.
type Check = &'static str;

#[test]
fn row_changes_lead_to_states_that_the_server_had() -> Result<()> {
    match std::env::var("MODEL_SERVER").as_deref() {
        Err(_) => {
            let mysql = require_tool!(Tool::Mysql);
            of_mysql(mysql)
        }
        Ok("8.0") => {
            let mysql = require_tool!(Tool::Mysql80);
            of_mysql(mysql)
        }
        Ok("mariadb") => {
            require_tool!(Tool::Mariadb);
            let server = MariadbSandbox::start(&[("binlog-format", "ROW")])?;
            let server = ModelSession::new(&server);
            holds_for_all_seeds(ModelServer {
                server: &server,
                target: None,
                folded: None,
                last_gtid: &|| server.sql("SELECT @@GLOBAL.gtid_binlog_pos"),
            })
        }
        Ok(other) => panic!("MODEL_SERVER is {other:?}, expected 8.0 or mariadb, or nothing for 9.7"),
    }
}

fn of_mysql(mysql: &'static InstalledTool) -> Result<()> {
    let (server, target) = (mysql.sandbox().start()?, mysql.sandbox().start()?);
    let folded = mysql.sandbox().start()?;
    recovered::prepare(&target, &server)?;
    let (server, target, folded) =
        (ModelSession::new(&server), ModelSession::new(&target), ModelSession::new(&folded));
    holds_for_all_seeds(ModelServer {
        server: &server,
        target: Some(&target),
        folded: Some(&folded),
        last_gtid: &|| server.sql(LAST_GTID),
    })
}

fn holds_for_all_seeds(server: ModelServer<'_>) -> Result<()> {
    let (first, count) = (setting("SEED", 1), setting("MODEL_SEEDS", SEEDS));
    let mut counts: BTreeMap<Check, (usize, usize)> = BTreeMap::new();
    let mut differences = Vec::new();
    for seed in first..first + count {
        let begin = Instant::now();
        let mut sums = [0; 3];
        for (check, verdict) in verdicts(server, seed)? {
            sums[verdict.place()] += 1;
            let (equal, refused) = counts.entry(check).or_default();
            match verdict {
                Verdict::Equal => *equal += 1,
                Verdict::Refused(reason) => {
                    *refused += 1;
                    let reason: String = reason.chars().take(REASON_LENGTH_MAX).collect();
                    println!("SEED={seed}: {check}: refused: {reason}");
                }
                Verdict::Different(what) => {
                    println!("SEED={seed}: {check}: DIFFERENT: {what}");
                    differences.push(format!("SEED={seed}: {check}: {what}"));
                }
            }
        }
        let [equal, refused, different] = sums;
        let seconds = begin.elapsed().as_secs_f64();
        println!("SEED={seed}: {equal} equal, {refused} refused, {different} different, in {seconds:.1} s");
    }
    for (check, (equal, refused)) in &counts {
        println!("{check}: {equal} equal, {refused} refused");
    }
    costs::print(count);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    for (check, (equal, refused)) in counts {
        // A seed or two may have nothing to compare. DDL since the moment, which most of these have, isn't taken back by a rewind.
        let refused_max = if check == "rewind" { 100 * equal } else { 4 * equal };
        assert!(refused <= refused_max || count < SEEDS, "{check}: {equal} equal, {refused} refused");
    }
    Ok(())
}

/// Everything that is checked for one seed.
fn verdicts(server: ModelServer<'_>, seed: u64) -> Result<Vec<(Check, Verdict)>> {
    let mut world = World::new(server, seed)?;
    let mut verdicts = Vec::new();
    if std::env::var("MODEL_ONLY").as_deref() == Ok("fold") {
        verdicts.extend(folded::check(&mut world)?);
        world.end()?;
        return Ok(verdicts);
    }
    if std::env::var("MODEL_ONLY").as_deref() == Ok("rewind") {
        verdicts.extend(rewound::check(&mut world)?);
        world.end()?;
        return Ok(verdicts);
    }
    if std::env::var("MODEL_ONLY").as_deref() == Ok("table") {
        verdicts.extend(back::each_table(&mut world)?);
        world.end()?;
        return Ok(verdicts);
    }
    verdicts.extend(life::check(&mut world)?);
    // It asks for GTIDs as MySQL has them.
    if !world.is_mariadb {
        verdicts.extend(past::check(&mut world)?);
    }
    verdicts.extend(recovered::check(&mut world)?);
    verdicts.extend(folded::check(&mut world)?);
    verdicts.extend(back::check(&mut world)?);
    if !world.is_mariadb {
        verdicts.push(("table-at of several", past::check_several(&mut world)?));
        verdicts.extend(rewound::check(&mut world)?);
    }
    world.end()?;
    Ok(verdicts)
}
