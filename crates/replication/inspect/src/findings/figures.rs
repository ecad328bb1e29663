//! Rows of the server's own figures: statistics, stage timings.

use binlogz_figures::counted;

use crate::ask::Fact;
use crate::facts::{BinlogIo, CompressionStage, LogStatistics, ServerFacts};
use crate::report::{Finding, FindingVerdict};

use super::not_known;

/// How the stages are timed.
const ENABLE: &str = "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE \
                      'stage/sql/%ompressing transaction changes%'";

pub(super) fn findings(facts: &ServerFacts) -> Vec<Finding> {
    vec![statistics(&facts.statistics), stages(&facts.stages, &facts.binlog_io)]
}

fn statistics(fact: &Fact<Vec<LogStatistics>>) -> Finding {
    const WHAT: &str = "binary_log_transaction_compression_stats";
    let Some(rows) = fact.known() else { return not_known(WHAT, fact, "not there") };
    let texts: Vec<_> = rows
        .iter()
        .map(|row| {
            let saved = 100.0 - 100.0 * row.compressed_bytes as f64 / (row.uncompressed_bytes.max(1)) as f64;
            let last = format!("the last {} at {}", row.last_transaction, row.last_timestamp);
            let LogStatistics { log, compression, .. } = row;
            let [transactions, bytes] =
                [(row.transactions, "transactions"), (row.uncompressed_bytes, "bytes")]
                    .map(|(number, things)| counted(number, things));
            match compression.as_str() {
                "NONE" => format!("{log} NONE {transactions}, {bytes}, {last}"),
                _ => format!("{log} {compression} {transactions}, {bytes}, {saved:.0} % saved, {last}"),
            }
        })
        .collect();
    match texts.is_empty() {
        true => Finding::ok(WHAT, "empty: no transaction since the start or the last TRUNCATE"),
        false => Finding::ok(WHAT, texts.join("; ")),
    }
}

fn stages(stages: &Fact<Vec<CompressionStage>>, io: &Fact<BinlogIo>) -> Finding {
    const WHAT: &str = "stage_timings";
    let Some(rows) = stages.known() else { return not_known(WHAT, stages, "not there") };
    if rows.is_empty() || rows.iter().any(|stage| !stage.is_timed) {
        return Finding::new(
            WHAT,
            "not timed",
            FindingVerdict::Ok,
            format!(
                "to see what compression costs: {ENABLE}; compressing costs two looks at the clock a transaction, \
                 expanding two for each event inside one"
            ),
        );
    }
    let mut found: Vec<_> = rows
        .iter()
        .map(|stage| {
            let name = stage.name.trim_start_matches("stage/sql/").split(' ').next().unwrap_or_default();
            format!("{name} {}, {:.3} s", counted(stage.count, "times"), seconds(stage.picoseconds))
        })
        .collect();
    match io {
        Fact::Known(io) if io.is_timed => {
            found.push(format!(
                "wait/io/file/sql/binlog {:.3} s for writing and syncing",
                seconds(io.picoseconds)
            ));
        }
        Fact::Known(_) => found.push("wait/io/file/sql/binlog is not timed".to_owned()),
        Fact::Refused(why) => found.push(format!("wait/io/file/sql/binlog is not known: {why}")),
        Fact::NotGranted(_) | Fact::Absent => {}
    }
    Finding::ok(WHAT, found.join("; "))
}

fn seconds(picoseconds: u64) -> f64 {
    picoseconds as f64 / 1e12
}
