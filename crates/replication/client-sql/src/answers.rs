//! Dispatches each statement to its answer.
//!
//! Each statement gets an [`StatementAnswer`]. All answers come from the stored logs and variables, so they don't depend on
//! whether the source can be reached.

use binlogz_variables::Rights;
use binlogz_wire::statement::{AssignmentTarget, Expression, Statement, TableQuery};

use crate::asked_relay::AskedRelay;
use crate::replica_status::replica_status;
use crate::statement_answer::{NOT_SUPPORTED, StatementAnswer, WITH_FORWARDING};
use crate::variables::{ClientVariables, SystemVariables, evaluate, set};
use crate::{admin, compression_stats, listings, variables};

/// The client that asks.
#[derive(Debug)]
pub struct AskingClient<'a> {
    /// The variables that it has set.
    pub variables: &'a mut ClientVariables,
    /// Whether its account may control the relay.
    pub may_administer: bool,
}

/// Answers a statement.
///
/// # Errors
///
/// The relay's own, if it can't read what the answer has to know.
pub fn answer<'a, R: AskedRelay>(
    relay: &R,
    asker: &mut AskingClient<'_>,
    statement: &'a Statement,
) -> Result<StatementAnswer<'a>, R::Error> {
    if *statement != Statement::ShowWarnings {
        asker.variables.warnings.clear();
    }
    Ok(match statement {
        Statement::Select(items) => evaluate::select(items, asker.variables, &system_variables(relay)?),
        Statement::SelectFrom(query) => select_from(relay, query),
        Statement::Set(assignments) => set(relay, asker, &system_variables(relay)?, assignments),
        Statement::SetNames { .. } => set_names(relay, asker, statement),
        Statement::SetEach(parts) => set_each(relay, asker, &system_variables(relay)?, parts),
        Statement::SetTransaction(wanted) => {
            set::set_transaction(asker.variables, &system_variables(relay)?, wanted)
        }
        Statement::Transaction(wanted) => {
            asker.variables.transaction(*wanted);
            StatementAnswer::DONE
        }
        // There are no databases: any name will do.
        Statement::Use(name) => {
            asker.variables.client.database = Some(name.clone());
            StatementAnswer::DONE
        }
        Statement::ShowWarnings => asker.variables.show_warnings(),
        Statement::ShowVariables(pattern) => {
            variables::show(pattern, asker.variables, &system_variables(relay)?)
        }
        Statement::ShowBinaryLogs => listings::binary_logs(&relay.logs(asker.variables)?),
        Statement::ShowBinaryLogStatus => listings::binary_log_status(relay.log_status(asker.variables)?),
        Statement::ShowBinlogEvents(wanted) => {
            listings::binlog_events(relay.events(asker.variables, wanted)?)
        }
        Statement::ShowReplicas(words) => {
            listings::replicas(&relay.replicas(), &system_variables(relay)?, *words)
        }
        Statement::ShowReplicaStatus(words) => replica_status(&relay.replica_status()?, *words),
        Statement::Admin(_) if !asker.may_administer => admin::denied(),
        Statement::Admin(wanted) => admin::answer(relay, asker.variables, wanted),
    })
}

/// The answer to a statement that can't be parsed.
pub fn unknown_statement() -> StatementAnswer<'static> {
    StatementAnswer::refused((
        NOT_SUPPORTED,
        format!("the relay does not know this statement{WITH_FORWARDING}"),
    ))
}

/// All system variables, now.
fn system_variables<R: AskedRelay>(relay: &R) -> Result<SystemVariables, R::Error> {
    let source = relay.source_variables();
    Ok(SystemVariables::new(source, relay.own_variables()?.as_ref()))
}

fn set(
    relay: &impl AskedRelay,
    asker: &mut AskingClient<'_>,
    system: &SystemVariables,
    assignments: &[(AssignmentTarget, Expression)],
) -> StatementAnswer<'static> {
    let rights = if asker.may_administer { Rights::ALL } else { Rights::NONE };
    set::set(&mut relay.compression().lock(), rights, asker.variables, system, assignments)
}

fn set_names(
    relay: &impl AskedRelay,
    asker: &mut AskingClient<'_>,
    names: &Statement,
) -> StatementAnswer<'static> {
    let Statement::SetNames { character_set, collation } = names else { return unknown_statement() };
    let source = relay.source_variables();
    let names = (character_set.as_deref(), collation.as_deref());
    match asker.variables.set_names(source.as_deref(), names.0, names.1) {
        Ok(()) => StatementAnswer::DONE,
        Err(refusal) => StatementAnswer::refused(refusal),
    }
}

/// Does one after the other, up to the first that is refused.
fn set_each(
    relay: &impl AskedRelay,
    asker: &mut AskingClient<'_>,
    system: &SystemVariables,
    parts: &[Statement],
) -> StatementAnswer<'static> {
    let mut last = StatementAnswer::DONE;
    for part in parts {
        last = match part {
            Statement::Set(assignments) => set(relay, asker, system, assignments),
            names => set_names(relay, asker, names),
        };
        if matches!(last, StatementAnswer::Refused(_)) {
            break;
        }
    }
    match last {
        StatementAnswer::Done { .. } => {
            StatementAnswer::Done { warnings: asker.variables.warnings.len() as u16 }
        }
        refused => refused,
    }
}

fn select_from<'a>(relay: &impl AskedRelay, query: &'a TableQuery) -> StatementAnswer<'a> {
    if !compression_stats::is_named(&query.from) {
        return StatementAnswer::refused((
            NOT_SUPPORTED,
            format!("the relay has no table {}{WITH_FORWARDING}", query.from),
        ));
    }
    compression_stats::select(&relay.compression_stats().lock(), query)
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use std::sync::Arc;

    use binlogz_binlog::gtid::GtidSet;
    use binlogz_payload::statistics::CompressionTable;
    use binlogz_variables::CompressionVariables;
    use binlogz_wire::result_set::ResultRow;
    use binlogz_wire::statement::EventsWanted;

    use super::*;
    use crate::listings::{ListedLog, LogStatusRow, RegisteredReplica};
    use crate::replica_status::{ReceiverState, ReplicaStatusFacts};
    use crate::variables::source::SourceVariables;
    use crate::variables::system::OwnVariables;

    /// A relay that has one file, or nothing yet, and notes what it is told to do.
    struct FixedRelay {
        is_empty: bool,
        compression: Mutex<CompressionVariables>,
        compression_stats: Mutex<CompressionTable>,
        orders: Mutex<Vec<String>>,
    }

    impl FixedRelay {
        fn new(is_empty: bool) -> Self {
            FixedRelay {
                is_empty,
                compression: Mutex::new(CompressionVariables::new(None)),
                compression_stats: Mutex::default(),
                orders: Mutex::default(),
            }
        }

        fn note(&self, order: String) {
            self.orders.lock().push(order);
        }
    }

    impl AskedRelay for FixedRelay {
        type Error = &'static str;

        fn source_variables(&self) -> Option<Arc<SourceVariables>> {
            None
        }

        fn own_variables(&self) -> Result<Option<OwnVariables>, &'static str> {
            Ok((!self.is_empty).then(|| OwnVariables {
                hostname: "here".into(),
                requires_tls: false,
                read_only_of_source: false,
                listen_semi_sync: false,
                has_gtids: true,
                has_checksums: true,
                gtid_executed: GtidSet::new(),
                gtid_purged: GtidSet::new(),
                log_base: "binlog".into(),
                server_id: 7,
                server_uuid: "2410447f-e54d-11f1-848d-02fc00000001".into(),
                server_version: "9.7.4".into(),
                compression: *self.compression.lock(),
            }))
        }

        fn compression(&self) -> &Mutex<CompressionVariables> {
            &self.compression
        }

        fn compression_stats(&self) -> &Mutex<CompressionTable> {
            &self.compression_stats
        }

        fn logs(&self, _: &ClientVariables) -> Result<Vec<ListedLog>, &'static str> {
            Ok(vec![ListedLog { name: "binlog.000001".into(), size: 157, is_encrypted: true }])
        }

        fn log_status(&self, _: &ClientVariables) -> Result<Option<LogStatusRow>, &'static str> {
            Err("the disk failed")
        }

        fn events(
            &self,
            _: &ClientVariables,
            _: &EventsWanted,
        ) -> Result<Result<Vec<ResultRow>, String>, &'static str> {
            Ok(Err("Could not find target log".into()))
        }

        fn replicas(&self) -> Vec<RegisteredReplica> {
            let uuid = String::new();
            vec![RegisteredReplica { server_id: 9, host: "there".into(), port: 3306, uuid }]
        }

        fn replica_status(&self) -> Result<ReplicaStatusFacts, &'static str> {
            Ok(ReplicaStatusFacts {
                source: "source:3306".into(),
                receiver: ReceiverState::Reconnecting,
                error: Some("no route".into()),
                lag_seconds: None,
                file: "binlog.000001".into(),
                position: 157,
                stored_bytes: 157,
                source_server_id: 7,
                source_uuid: String::new(),
                gtids: GtidSet::new(),
                has_gtids: true,
            })
        }

        fn start_replica(&self) {
            self.note("start".into());
        }

        fn stop_replica(&self) {
            self.note("stop".into());
        }

        fn purge_to(&self, file: &str, force: bool) -> Result<(), String> {
            self.note(format!("purge to {file}, forced: {force}"));
            Ok(())
        }

        fn purge_before(&self, _: u64, _: bool) -> Result<(), String> {
            Err("a replica still reads it".into())
        }
    }

    /// The answer to a statement: its rows, cells apart by spaces, or the code and text of its error.
    fn asked(relay: &FixedRelay, client: &mut ClientVariables, may_administer: bool, text: &str) -> String {
        let statement = Statement::parse(text).unwrap();
        let mut asker = AskingClient { variables: client, may_administer };
        match answer(relay, &mut asker, &statement) {
            Ok(StatementAnswer::Done { warnings }) => format!("done, {warnings}"),
            Ok(StatementAnswer::Refused(error)) => format!("{} {}", error.code, error.message),
            Ok(StatementAnswer::Rows(_, rows)) => {
                let cell = |cell: &Option<Vec<u8>>| {
                    cell.as_deref().map_or("NULL".into(), |cell| String::from_utf8_lossy(cell).into_owned())
                };
                let row = |row: &ResultRow| row.iter().map(cell).collect::<Vec<_>>().join(" ");
                rows.iter().map(row).collect::<Vec<_>>().join("\n")
            }
            Err(error) => error.into(),
        }
    }

    #[test]
    fn answers_are_made_of_what_the_relay_tells() {
        let relay = FixedRelay::new(false);
        let client = &mut ClientVariables::default();
        for (text, expected) in [
            ("SELECT @@server_id, @@GLOBAL.gtid_mode, VERSION(), @@log_bin_basename", "7 ON 9.7.4 binlog"),
            (
                "SELECT @@rpl_semi_sync_source_enabled",
                "1193 Unknown system variable 'rpl_semi_sync_source_enabled'",
            ),
            ("SHOW BINARY LOGS", "binlog.000001 157 Yes"),
            ("SHOW BINARY LOG STATUS", "the disk failed"),
            (
                "SHOW BINLOG EVENTS IN 'x'",
                "1220 Error when executing command SHOW BINLOG EVENTS: Could not find target log",
            ),
            ("SHOW REPLICAS", "9 there 3306 7 "),
            ("SET @a = 'b'", "done, 0"),
            ("SELECT @a", "b"),
        ] {
            assert_eq!(asked(&relay, client, false, text), expected, "{text}");
        }
        let status = asked(&relay, client, false, "SHOW REPLICA STATUS");
        assert!(status.starts_with("Reconnecting after a failed source event read source "), "{status}");
        assert!(status.contains(" 2003 no route "), "{status}");
        let nothing = FixedRelay::new(true);
        let unknown = asked(&nothing, client, false, "SELECT @@server_id");
        assert_eq!(unknown, "1193 Unknown system variable 'server_id'");
    }

    #[test]
    fn the_answer_to_an_older_statement_has_its_columns() {
        let relay = FixedRelay::new(false);
        let columns = |text: &str| -> Vec<String> {
            let statement = Statement::parse(text).unwrap();
            let variables = &mut ClientVariables::default();
            let answer = answer(&relay, &mut AskingClient { variables, may_administer: false }, &statement);
            let Ok(StatementAnswer::Rows(columns, rows)) = answer else { panic!("{text}: {answer:?}") };
            assert!(rows.iter().all(|row| row.len() == columns.len()), "{text}");
            columns.iter().map(|column| column.name.to_owned()).collect()
        };
        let current = columns("SHOW REPLICA STATUS");
        let older = columns("SHOW SLAVE STATUS");
        assert_eq!((current.len(), older.len()), (60, 60));
        for (place, name, older_name) in [
            (0, "Replica_IO_State", "Slave_IO_State"),
            (1, "Source_Host", "Master_Host"),
            (6, "Read_Source_Log_Pos", "Read_Master_Log_Pos"),
            (10, "Replica_IO_Running", "Slave_IO_Running"),
            (12, "Replicate_Do_DB", "Replicate_Do_DB"),
            (32, "Seconds_Behind_Source", "Seconds_Behind_Master"),
            (40, "Source_UUID", "Master_UUID"),
            (58, "Get_Source_public_key", "Get_master_public_key"),
        ] {
            assert_eq!((current[place].as_str(), older[place].as_str()), (name, older_name));
        }
        assert!(!older.iter().any(|name| name.contains("Replica_") || name.contains("Source")), "{older:?}");
        assert_eq!(columns("SHOW SLAVE HOSTS"), ["Server_id", "Host", "Port", "Master_id", "Slave_UUID"]);
        assert_eq!(columns("SHOW REPLICAS"), ["Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"]);
    }

    #[test]
    fn only_clients_with_the_right_control_the_relay() {
        let relay = FixedRelay::new(false);
        let client = &mut ClientVariables::default();
        for text in [
            "STOP REPLICA",
            "PURGE BINARY LOGS TO 'binlog.000002'",
            "SET GLOBAL binlog_transaction_compression = ON",
        ] {
            let refused = asked(&relay, client, false, text);
            assert!(refused.starts_with("1227 Access denied"), "{text}: {refused}");
        }
        assert!(relay.orders.lock().is_empty());
        asked(&relay, client, true, "STOP REPLICA");
        asked(&relay, client, true, "PURGE BINARY LOGS TO 'binlog.000002'");
        asked(&relay, client, true, "SET @binlogz_force = 1");
        asked(&relay, client, true, "PURGE BINARY LOGS TO 'binlog.000003'");
        let expected =
            ["stop", "purge to binlog.000002, forced: false", "purge to binlog.000003, forced: true"];
        assert_eq!(*relay.orders.lock(), expected);
        let refused = asked(&relay, client, true, "PURGE BINARY LOGS BEFORE '2026-01-01 00:00:00'");
        assert_eq!(refused, "1378 a replica still reads it");
    }
}
