//! How many transactions `sql_replica_skip_counter` skips, in a log with compression and in one without.
//!
//! The counter counts events. A transaction of two INSERTs is seven of them (GTID, BEGIN, two table maps, two
//! of rows, Xid), a compressed one is two: GTID and payload. It can't be set with GTIDs on, so both servers
//! run without them.

use binlogz_sandbox::{ReplicaStart, Tool};

use crate::error::{Error, Result};
use crate::measure::replicas::MeasuredReplica;
use crate::safety::stop::RunStopper;

/// Set to the next transaction, to a payload, to one event more, to all events of a plain transaction and one more.
const COUNTERS: [u32; 5] = [1, 2, 3, 7, 8];
const TRANSACTIONS: u64 = 5;
/// Rows long enough to make compression worthwhile.
const TABLE: &str = "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(200))";

/// Sets source and replica up twice; a row for each value of the counter.
pub(crate) fn examine(stopper: &RunStopper, tell: &mut dyn FnMut(&str)) -> Result<Vec<MeasuredReplica>> {
    let mut skipped = Vec::new();
    for level in [None, Some(3)] {
        if stopper.is_stopped() {
            return Err(Error::Interrupted);
        }
        tell(if level.is_some() { "skip counter" } else { "skip counter without compression" });
        skipped.push(skipped_by_counter(level)?);
    }
    let [plain, compressed] = skipped.as_slice() else { return Ok(Vec::new()) };
    let version = Tool::Mysql.find()?.version();
    let rows = COUNTERS.iter().zip(plain).zip(compressed).map(|((counter, plain), compressed)| MeasuredReplica {
        replica: format!("mysqld {version}"),
        follows: "source".to_owned(),
        with: format!("sql_replica_skip_counter={counter}"),
        outcome: "skips".to_owned(),
        rows_percent: Some((TRANSACTIONS - compressed) as f64 / TRANSACTIONS as f64 * 100.0),
        said: Some(format!(
            "{compressed} of {TRANSACTIONS} compressed transactions were skipped, {plain} of a log without compression"
        )),
    });
    Ok(rows.collect())
}

/// Transactions that did not arrive, by counter.
fn skipped_by_counter(level: Option<u32>) -> Result<Vec<u64>> {
    let server = || Tool::Mysql.find().map(|mysql| mysql.sandbox().option("gtid-mode", "OFF"));
    let source = match level {
        Some(level) => server()?.compression(level).start()?,
        None => server()?.start()?,
    };
    source.sql(TABLE)?;
    let (file, offset) = source.position()?;
    for transaction in 1..=TRANSACTIONS {
        let [id, other] = [transaction, transaction + TRANSACTIONS];
        let row = |id: u64| format!("INSERT INTO shop.orders VALUES ({id}, REPEAT('apples ', 20));");
        source.sql(&format!("BEGIN; {} {} COMMIT;", row(id), row(other)))?;
    }
    let replica = server()?.start()?;
    replica.sql(TABLE)?;
    let mut skipped = Vec::new();
    for counter in COUNTERS {
        replica.sql("STOP REPLICA; RESET REPLICA ALL; TRUNCATE shop.orders")?;
        replica.sql(&format!("SET GLOBAL sql_replica_skip_counter = {counter}"))?;
        replica.replicate_from_port(source.port(), ReplicaStart::Position(file.clone(), offset))?;
        replica.wait_for_source(&source)?;
        let arrived = replica.sql("SELECT COUNT(*) DIV 2 FROM shop.orders")?;
        skipped.push(TRANSACTIONS - arrived.trim().parse().unwrap_or(0));
    }
    Ok(skipped)
}
