//! The rollout plan of one server: commands to review, in order, and the way back. Nothing here is run.

use std::collections::BTreeMap;

use binlogz_figures::counted;
use binlogz_payload::ServerGeneration;
use binlogz_payload::switch::{self, COMPRESSION, LEVEL, NEXT_FILE, RESTART_APPLIER, STATISTICS};

use crate::facts::{GlobalSettings, HolderKind, ServerFacts};
use crate::report::{ConsumerFinding, Finding, FindingVerdict, PlanStep, Reads};

/// The server's default level, which costs little.
const LEVEL_DEFAULT: u32 = 3;

/// The plan of a server that has the feature.
pub(crate) fn plan(facts: &ServerFacts, findings: &[Finding], level: Option<u8>) -> Vec<PlanStep> {
    let consumers: Vec<_> = findings.iter().filter_map(|finding| finding.consumer.as_ref()).collect();
    let is_on = facts.settings.is_on(&[COMPRESSION]);
    let mut steps = Vec::new();
    steps.extend(before(findings));
    if !is_on {
        steps.extend(replicas_first(&consumers));
        steps.push(turn_on(facts, level));
        steps.push(recycle(facts));
    }
    steps.push(watch(facts));
    steps.push(back(facts, &consumers));
    steps
}

/// Obstacles.
fn before(findings: &[Finding]) -> Option<PlanStep> {
    let mut lines = Vec::new();
    for finding in findings {
        match (&finding.consumer, &finding.missing_grant) {
            (Some(consumer), _) if consumer.reads != Reads::Yes => lines.push(format!(
                "-- {}: {}; {}",
                finding.subject.as_deref().unwrap_or_default(),
                consumer.name,
                finding.remedy
            )),
            (None, Some(_)) if finding.what == "consumers" && finding.verdict > FindingVerdict::Warn => {
                lines.push(format!("-- {}", finding.remedy))
            }
            _ => {}
        }
    }
    (!lines.is_empty())
        .then(|| PlanStep { title: "first make every consumer able to read it".to_owned(), lines })
}

fn replicas_first(consumers: &[&ConsumerFinding]) -> Option<PlanStep> {
    let replicas = consumers.iter().filter(|consumer| consumer.server_uuid.is_some());
    let mut lines: Vec<_> = replicas
        .map(|replica| {
            format!(
                "-- {} {} from {}, server_uuid {}",
                replica.name,
                replica.version.as_deref().unwrap_or("of unknown version"),
                replica.address.as_deref().unwrap_or("?"),
                replica.server_uuid.as_deref().unwrap_or("?")
            )
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    lines.extend(switch::turn_on(None::<u8>));
    lines.push(RESTART_APPLIER.to_owned());
    lines.push("-- then look at each with doctor too: its own consumers read its own log".to_owned());
    Some(PlanStep {
        title: "replicas first, one after the other, a backup-only one before all".to_owned(),
        lines,
    })
}

fn turn_on(facts: &ServerFacts, level: Option<u8>) -> PlanStep {
    let mut lines = switch_on(&facts.settings, facts.generation(), level);
    if is_replica(facts) {
        lines.push(RESTART_APPLIER.to_owned());
    }
    PlanStep { title: "then this server".to_owned(), lines }
}

fn switch_on(settings: &GlobalSettings, generation: ServerGeneration, level: Option<u8>) -> Vec<String> {
    let level =
        level.map(u64::from).or_else(|| settings.number(&[LEVEL])).unwrap_or(u64::from(LEVEL_DEFAULT));
    match generation.only_level() {
        None => switch::turn_on(Some(level)),
        Some(only) => {
            let note = format!("-- at level {only}: in this release no other can be set");
            [note].into_iter().chain(switch::turn_on(None::<u8>)).collect()
        }
    }
}

fn is_replica(facts: &ServerFacts) -> bool {
    facts.channels.known().is_some_and(|channels| !channels.is_empty())
}

/// Threads that continue writing as before until they reconnect.
fn recycle(facts: &ServerFacts) -> PlanStep {
    let mut lines = Vec::new();
    match facts.holders.known() {
        Some(holders) => {
            let mut sessions: BTreeMap<&str, u64> = BTreeMap::new();
            let of_switch = holders.iter().filter(|holder| holder.variable == COMPRESSION);
            for holder in of_switch.filter(|holder| holder.kind == HolderKind::Session) {
                *sessions.entry(holder.user.as_str()).or_default() += holder.count;
            }
            lines.extend(
                sessions
                    .iter()
                    .map(|(user, count)| format!("-- {user}: {} now", counted(*count, "sessions"))),
            );
            if sessions.is_empty() {
                lines.push("-- no other session now".to_owned());
            }
        }
        None => lines.push("-- sessions are not visible to this account".to_owned()),
    }
    lines.push(
        "SELECT t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.NAME FROM performance_schema.variables_by_thread v \
         JOIN performance_schema.threads t USING (THREAD_ID) \
         WHERE v.VARIABLE_NAME = 'binlog_transaction_compression' AND v.VARIABLE_VALUE = 'OFF' \
         AND t.PROCESSLIST_COMMAND NOT LIKE 'Binlog Dump%';"
            .to_owned(),
    );
    PlanStep { title: "recycle connection pools until this is empty".to_owned(), lines }
}

fn watch(facts: &ServerFacts) -> PlanStep {
    let mut lines = vec![
        STATISTICS.to_owned(),
        "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT / 1e12 AS seconds \
         FROM performance_schema.events_stages_summary_global_by_event_name \
         WHERE EVENT_NAME LIKE 'stage/sql/%ompressing transaction changes%';"
            .to_owned(),
        "-- on replicas: SHOW REPLICA STATUS; Last_IO_Error, Last_SQL_Error, Seconds_Behind_Source"
            .to_owned(),
        "-- of every other consumer: that rows still arrive, not only that its position advances".to_owned(),
    ];
    if is_replica(facts) {
        lines.push("-- this server is a replica: its own SHOW REPLICA STATUS too".to_owned());
    }
    PlanStep { title: "watch".to_owned(), lines }
}

fn back(facts: &ServerFacts, consumers: &[&ConsumerFinding]) -> PlanStep {
    let mut lines = vec![switch::turn_off()];
    if is_replica(facts) || consumers.iter().any(|consumer| consumer.server_uuid.is_some()) {
        lines.push(format!("{RESTART_APPLIER} -- on every replica that has it on"));
    }
    lines.push("-- recycle connection pools as above, then:".to_owned());
    lines.push(NEXT_FILE.to_owned());
    lines.push(
        "SELECT LAST_TRANSACTION_ID, LAST_TRANSACTION_TIMESTAMP \
         FROM performance_schema.binary_log_transaction_compression_stats \
         WHERE LOG_TYPE = 'BINARY' AND COMPRESSION_TYPE = 'ZSTD';"
            .to_owned(),
    );
    let last = facts.statistics.known().into_iter().flatten();
    for row in last.filter(|row| row.log == "BINARY" && row.compression == "ZSTD") {
        lines.push(format!("-- now that is {} at {}", row.last_transaction, row.last_timestamp));
    }
    lines.push(
        "-- compressed logs stay as they are: a consumer that can't read them is safe again after that GTID, which \
         is in the file before the one that FLUSH began or in an earlier one (binlogz stats FILE counts payloads); \
         files with payloads go with PURGE BINARY LOGS or binlog_expire_logs_seconds"
            .to_owned(),
    );
    PlanStep { title: "the way back".to_owned(), lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_set_only_where_it_has_an_effect() {
        let settings = GlobalSettings::of(&[(LEVEL, "6")]);
        let on = "SET PERSIST binlog_transaction_compression = ON;";
        let lines = switch_on(&settings, ServerGeneration::Sized, None);
        assert_eq!(lines, ["SET PERSIST binlog_transaction_compression_level_zstd = 6;", on]);
        let lines = switch_on(&settings, ServerGeneration::Sized, Some(1));
        assert_eq!(lines, ["SET PERSIST binlog_transaction_compression_level_zstd = 1;", on]);
        let lines = switch_on(&settings, ServerGeneration::Flushed, Some(1));
        assert_eq!(lines, ["-- at level 3: in this release no other can be set", on]);
    }
}
