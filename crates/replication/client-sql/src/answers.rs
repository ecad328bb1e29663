//! Dispatches each statement to its answer.
//!
//! Each statement gets an [`StatementAnswer`]. All answers come from the stored logs and variables, so they don't depend on
//! whether the source can be reached.

use binlogz_variables::Rights;
use binlogz_wire::statement::{AssignmentTarget, Expression, Statement, TableQuery};

use crate::asked_relay::AskedRelay;
use crate::lock::lock;
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
        Statement::ShowReplicas => listings::replicas(&relay.replicas(), &system_variables(relay)?),
        Statement::ShowReplicaStatus => replica_status(&relay.replica_status()?),
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
    set::set(&mut lock(relay.compression()), rights, asker.variables, system, assignments)
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
    compression_stats::select(&lock(relay.compression_stats()), query)
}
