//! Dispatches each statement to its answer.
//!
//! Each statement gets an [`StatementAnswer`]. All answers come from the stored logs and variables, so they don't depend on
//! whether the source can be reached.

use binlogz_variables::Rights;
use binlogz_wire::statement::{AssignmentTarget, Expression, Statement, TableQuery};

use crate::error::Result;
use crate::form::Form;
use crate::lock::lock;
use crate::log::lineage_log::LineageLog;
use crate::statements::Statements;
use crate::statements::replica_status::replica_status;
use crate::statements::statement_answer::{NOT_SUPPORTED, StatementAnswer, WITH_FORWARDING};
use crate::statements::variables::{System, Variables, evaluate, set};
use crate::statements::{admin, compression_stats, listings, variables};

/// The client that asks.
pub(crate) struct AskingClient<'a> {
    /// The variables that it has set.
    pub(crate) variables: &'a mut Variables,
    /// Whether its account may control the relay.
    pub(crate) may_administer: bool,
    /// The form that its statements use if they name no file.
    pub(crate) form: &'a dyn Fn(&Variables) -> Result<Form>,
}

/// Answers a statement.
pub(crate) fn answer<'a>(
    statements: &Statements,
    kept: &LineageLog,
    asker: &mut AskingClient<'_>,
    statement: &'a Statement,
) -> Result<StatementAnswer<'a>> {
    if *statement != Statement::ShowWarnings {
        asker.variables.warnings.clear();
    }
    let system = || System::of(statements, kept);
    let form = || (asker.form)(asker.variables);
    let forms = statements.intake.conversions.of(kept);
    Ok(match statement {
        Statement::Select(items) => evaluate::select(items, asker.variables, &system()?),
        Statement::SelectFrom(query) => select_from(statements, query),
        Statement::Set(assignments) => set(statements, asker, &system()?, assignments),
        Statement::SetNames { .. } => set_names(statements, asker, statement),
        Statement::SetEach(parts) => set_each(statements, asker, &system()?, parts),
        Statement::SetTransaction(wanted) => set::set_transaction(asker.variables, &system()?, wanted),
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
        Statement::ShowVariables(pattern) => variables::show(pattern, asker.variables, &system()?),
        Statement::ShowBinaryLogs => listings::binary_logs(forms, form()?)?,
        Statement::ShowBinaryLogStatus => listings::binary_log_status(forms, form()?)?,
        Statement::ShowBinlogEvents(wanted) => listings::binlog_events(forms, form, wanted)?,
        Statement::ShowReplicas => listings::replicas(&statements.registry.replicas(), &system()?),
        Statement::ShowReplicaStatus => replica_status(statements, kept)?,
        Statement::Admin(_) if !asker.may_administer => admin::denied(),
        Statement::Admin(wanted) => admin::answer(statements, kept, asker.variables, wanted),
    })
}

/// The answer to a statement that can't be parsed.
pub(crate) fn unknown() -> StatementAnswer<'static> {
    StatementAnswer::refused((
        NOT_SUPPORTED,
        format!("the relay does not know this statement{WITH_FORWARDING}"),
    ))
}

fn set(
    statements: &Statements,
    asker: &mut AskingClient<'_>,
    system: &System,
    assignments: &[(AssignmentTarget, Expression)],
) -> StatementAnswer<'static> {
    let rights = if asker.may_administer { Rights::ALL } else { Rights::NONE };
    set::set(&mut lock(&statements.intake.compression), rights, asker.variables, system, assignments)
}

fn set_names(
    statements: &Statements,
    asker: &mut AskingClient<'_>,
    names: &Statement,
) -> StatementAnswer<'static> {
    let Statement::SetNames { character_set, collation } = names else { return unknown() };
    let source = statements.intake.source_variables.get();
    let names = (character_set.as_deref(), collation.as_deref());
    match asker.variables.set_names(source.as_deref(), names.0, names.1) {
        Ok(()) => StatementAnswer::DONE,
        Err(refusal) => StatementAnswer::refused(refusal),
    }
}

/// Does one after the other, up to the first that is refused.
fn set_each(
    statements: &Statements,
    asker: &mut AskingClient<'_>,
    system: &System,
    parts: &[Statement],
) -> StatementAnswer<'static> {
    let mut last = StatementAnswer::DONE;
    for part in parts {
        last = match part {
            Statement::Set(assignments) => set(statements, asker, system, assignments),
            names => set_names(statements, asker, names),
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

fn select_from<'a>(statements: &Statements, query: &'a TableQuery) -> StatementAnswer<'a> {
    if !compression_stats::is_named(&query.from) {
        return StatementAnswer::refused((
            NOT_SUPPORTED,
            format!("the relay has no table {}{WITH_FORWARDING}", query.from),
        ));
    }
    compression_stats::select(&lock(&statements.intake.compression_stats), query)
}
