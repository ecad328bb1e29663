//! Takes the commands that the relay does not answer itself to the source (`forward_sql`).

use binlogz_client_sql::{
    ClientVariables, StatementAnswer, StatementRoute, asks_read_only, may_be_prepared, route, tells_position,
};
use binlogz_relay_log::LineageLog;
use binlogz_wire::ServerError;
use binlogz_wire::command::{
    FIELD_LIST, PROCESS_INFO, REFRESH, RESET_CONNECTION, STATEMENT_CLOSE, STATEMENT_EXECUTE, STATEMENT_FETCH,
    STATEMENT_LONG_DATA, STATEMENT_RESET,
};
use binlogz_wire::session::{ReplicaRequest, ReplicaSession};
use binlogz_wire::statement::Statement;

use super::Client;
use crate::error::Result;
use crate::serve::connections::transport::{DumpConnection as _, Transport};
use crate::serve::sending::sender::broken;
use crate::serve::upstream::{ForwardedCommand, Upstream};

/// The outcome of a request.
pub(super) enum ForwardOutcome {
    /// It is the relay's to answer.
    Here,
    /// The client has its answer, or it is pending.
    Answered,
    /// The connection must end once the pending bytes are sent.
    Over,
}

/// The parts of a client's session.
pub(super) struct SessionParts<'s> {
    pub(super) variables: &'s mut ClientVariables,
    pub(super) session: &'s mut ReplicaSession,
    pub(super) transport: &'s mut Transport,
}

impl Client<'_> {
    /// Answers a request that needs the source.
    pub(super) fn forward(
        &self,
        upstream: &mut Upstream,
        kept: &LineageLog,
        parts: &mut SessionParts<'_>,
        request: &ReplicaRequest,
    ) -> Result<ForwardOutcome> {
        let command = parts.session.take_command();
        let is_open = upstream.used().is_open;
        match request {
            ReplicaRequest::Statement(text) => self.statement(upstream, kept, parts, text, &command),
            ReplicaRequest::UseDatabase(name) if is_open => {
                self.use_database(upstream, parts, name, &command)
            }
            ReplicaRequest::Prepare(text) => match may_be_prepared(text) {
                true => self.send(upstream, parts, &command),
                false => {
                    parts.session.refuse(&ServerError {
                        code: 1295,
                        sqlstate: Some(*b"HY000"),
                        message: "This command is not supported in the prepared statement protocol yet"
                            .into(),
                    });
                    Ok(ForwardOutcome::Answered)
                }
            },
            ReplicaRequest::Other(FIELD_LIST | REFRESH | PROCESS_INFO) | ReplicaRequest::SetOption(_) => {
                self.send(upstream, parts, &command)
            }
            ReplicaRequest::Other(
                STATEMENT_EXECUTE | STATEMENT_FETCH | STATEMENT_RESET | STATEMENT_CLOSE | STATEMENT_LONG_DATA,
            ) if is_open => self.send(upstream, parts, &command),
            ReplicaRequest::Other(STATEMENT_CLOSE | STATEMENT_LONG_DATA) => Ok(ForwardOutcome::Answered),
            ReplicaRequest::Other(STATEMENT_EXECUTE | STATEMENT_FETCH | STATEMENT_RESET) => {
                parts.session.refuse(&ServerError {
                    code: 1243,
                    sqlstate: Some(*b"HY000"),
                    message: "Unknown prepared statement handler given to the relay".into(),
                });
                Ok(ForwardOutcome::Answered)
            }
            ReplicaRequest::Other(RESET_CONNECTION) => {
                upstream.reset();
                Ok(ForwardOutcome::Here)
            }
            _ => Ok(ForwardOutcome::Here),
        }
    }

    fn statement(
        &self,
        upstream: &mut Upstream,
        kept: &LineageLog,
        parts: &mut SessionParts<'_>,
        text: &str,
        command: &[u8],
    ) -> Result<ForwardOutcome> {
        let statement = Statement::parse(text);
        // The value that the relay has of it is as old as its own connection.
        if upstream.tells_read_only() && statement.as_ref().is_some_and(asks_read_only) {
            return self.send(upstream, parts, command);
        }
        match route(text, statement.as_ref(), upstream.used()) {
            StatementRoute::Here => {
                if statement.as_ref().is_some_and(tells_position)
                    && let Err(refusal) = upstream.join()
                {
                    parts.session.refuse(&refusal);
                    return Ok(ForwardOutcome::Answered);
                }
                if statement != Some(Statement::ShowWarnings) {
                    upstream.did_not_answer();
                }
                Ok(ForwardOutcome::Here)
            }
            StatementRoute::There => match &statement {
                Some(Statement::Use(name)) => self.use_database(upstream, parts, name, command),
                _ => self.send(upstream, parts, command),
            },
            StatementRoute::Both => {
                let answer = self.answer(kept, parts.variables, statement.as_ref())?;
                if matches!(answer, StatementAnswer::Done { .. }) {
                    if upstream.used().is_open {
                        return self.send(upstream, parts, command);
                    }
                    if let Err(refusal) = upstream.remember(text) {
                        parts.session.refuse(&refusal);
                        return Ok(ForwardOutcome::Answered);
                    }
                }
                parts.session.set_status(parts.variables.status());
                answer.give(parts.session);
                Ok(ForwardOutcome::Answered)
            }
            StatementRoute::Refused(refusal) => {
                StatementAnswer::refused(refusal).give(parts.session);
                Ok(ForwardOutcome::Answered)
            }
        }
    }

    fn use_database(
        &self,
        upstream: &mut Upstream,
        parts: &mut SessionParts<'_>,
        name: &str,
        command: &[u8],
    ) -> Result<ForwardOutcome> {
        let before = parts.variables.client.database.replace(name.to_owned());
        let outcome = self.send_and_look(upstream, parts, command)?;
        if !matches!(outcome, (ForwardOutcome::Answered, false)) {
            parts.variables.client.database = before;
        }
        Ok(outcome.0)
    }

    fn send(
        &self,
        upstream: &mut Upstream,
        parts: &mut SessionParts<'_>,
        command: &[u8],
    ) -> Result<ForwardOutcome> {
        Ok(self.send_and_look(upstream, parts, command)?.0)
    }

    /// Sends a command to the source and its answer to the client. The second value: it was refused.
    fn send_and_look(
        &self,
        upstream: &mut Upstream,
        parts: &mut SessionParts<'_>,
        command: &[u8],
    ) -> Result<(ForwardOutcome, bool)> {
        let SessionParts { variables, session, transport } = parts;
        // Answers to what the client sent before, without waiting for them.
        transport.send(session.pending()).map_err(broken)?;
        session.sent(session.pending().len());
        let Some(entered) = &self.known.account else { return Ok((ForwardOutcome::Over, true)) };
        Ok(match upstream.forward(command, &variables.client, entered.account(), transport)? {
            ForwardedCommand::Answered(answer) => {
                variables.clear_warnings();
                if let Some(status) = answer.status() {
                    variables.follow(status);
                }
                (ForwardOutcome::Answered, answer.is_refused())
            }
            ForwardedCommand::Refused(refusal) => {
                session.refuse(&refusal);
                (ForwardOutcome::Answered, true)
            }
            ForwardedCommand::Lost(refusal) => {
                session.refuse(&refusal);
                (ForwardOutcome::Over, true)
            }
        })
    }
}
