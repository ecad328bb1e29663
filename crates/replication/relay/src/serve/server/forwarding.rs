//! Takes the commands that the relay does not answer itself to the source (`forward_sql`).

use binlogz_wire::ServerError;
use binlogz_wire::command::{
    FIELD_LIST, PROCESS_INFO, REFRESH, RESET_CONNECTION, STATEMENT_CLOSE, STATEMENT_EXECUTE, STATEMENT_FETCH,
    STATEMENT_LONG_DATA, STATEMENT_RESET,
};
use binlogz_wire::session::{ReplicaSession, Request};
use binlogz_wire::statement::Statement;

use super::Client;
use crate::error::Result;
use crate::log::lineages::Lineage;
use crate::serve::sender::broken;
use crate::serve::transport::{Connection as _, Transport};
use crate::serve::upstream::{Forwarded, Upstream};
use crate::statements::answers::Answer;
use crate::statements::routing::{Route, may_be_prepared, route, tells_position};
use crate::statements::variables::Variables;

/// The outcome of a request.
pub(super) enum Outcome {
    /// It is the relay's to answer.
    Here,
    /// The client has its answer, or it is pending.
    Answered,
    /// The connection must end once the pending bytes are sent.
    Over,
}

/// The parts of a client's session.
pub(super) struct Parts<'s> {
    pub(super) variables: &'s mut Variables,
    pub(super) session: &'s mut ReplicaSession,
    pub(super) transport: &'s mut Transport,
}

impl Client<'_> {
    /// Answers a request that needs the source.
    pub(super) fn forward(
        &self,
        upstream: &mut Upstream,
        kept: &Lineage,
        parts: &mut Parts<'_>,
        request: &Request,
    ) -> Result<Outcome> {
        let command = parts.session.take_command();
        let is_open = upstream.used().is_open;
        match request {
            Request::Statement(text) => self.statement(upstream, kept, parts, text, &command),
            Request::UseDatabase(name) if is_open => self.use_database(upstream, parts, name, &command),
            Request::Prepare(text) => match may_be_prepared(text) {
                true => self.send(upstream, parts, &command),
                false => {
                    parts.session.refuse(&ServerError {
                        code: 1295,
                        sqlstate: Some(*b"HY000"),
                        message: "This command is not supported in the prepared statement protocol yet"
                            .into(),
                    });
                    Ok(Outcome::Answered)
                }
            },
            Request::Other(FIELD_LIST | REFRESH | PROCESS_INFO) | Request::SetOption(_) => {
                self.send(upstream, parts, &command)
            }
            Request::Other(
                STATEMENT_EXECUTE | STATEMENT_FETCH | STATEMENT_RESET | STATEMENT_CLOSE | STATEMENT_LONG_DATA,
            ) if is_open => self.send(upstream, parts, &command),
            Request::Other(STATEMENT_CLOSE | STATEMENT_LONG_DATA) => Ok(Outcome::Answered),
            Request::Other(STATEMENT_EXECUTE | STATEMENT_FETCH | STATEMENT_RESET) => {
                parts.session.refuse(&ServerError {
                    code: 1243,
                    sqlstate: Some(*b"HY000"),
                    message: "Unknown prepared statement handler given to the relay".into(),
                });
                Ok(Outcome::Answered)
            }
            Request::Other(RESET_CONNECTION) => {
                upstream.reset();
                Ok(Outcome::Here)
            }
            _ => Ok(Outcome::Here),
        }
    }

    fn statement(
        &self,
        upstream: &mut Upstream,
        kept: &Lineage,
        parts: &mut Parts<'_>,
        text: &str,
        command: &[u8],
    ) -> Result<Outcome> {
        let statement = Statement::parse(text);
        match route(text, statement.as_ref(), upstream.used()) {
            Route::Here => {
                if statement.as_ref().is_some_and(tells_position)
                    && let Err(refusal) = upstream.join()
                {
                    parts.session.refuse(&refusal);
                    return Ok(Outcome::Answered);
                }
                if statement != Some(Statement::ShowWarnings) {
                    upstream.did_not_answer();
                }
                Ok(Outcome::Here)
            }
            Route::There => match &statement {
                Some(Statement::Use(name)) => self.use_database(upstream, parts, name, command),
                _ => self.send(upstream, parts, command),
            },
            Route::Both => {
                let answer = self.answer(kept, parts.variables, statement.as_ref())?;
                if matches!(answer, Answer::Done { .. }) {
                    if upstream.used().is_open {
                        return self.send(upstream, parts, command);
                    }
                    if let Err(refusal) = upstream.remember(text) {
                        parts.session.refuse(&refusal);
                        return Ok(Outcome::Answered);
                    }
                }
                parts.session.set_status(parts.variables.status());
                answer.give(parts.session);
                Ok(Outcome::Answered)
            }
            Route::Refused(refusal) => {
                Answer::refused(refusal).give(parts.session);
                Ok(Outcome::Answered)
            }
        }
    }

    fn use_database(
        &self,
        upstream: &mut Upstream,
        parts: &mut Parts<'_>,
        name: &str,
        command: &[u8],
    ) -> Result<Outcome> {
        let before = parts.variables.client.database.replace(name.to_owned());
        let outcome = self.send_and_look(upstream, parts, command)?;
        if !matches!(outcome, (Outcome::Answered, false)) {
            parts.variables.client.database = before;
        }
        Ok(outcome.0)
    }

    fn send(&self, upstream: &mut Upstream, parts: &mut Parts<'_>, command: &[u8]) -> Result<Outcome> {
        Ok(self.send_and_look(upstream, parts, command)?.0)
    }

    /// Sends a command to the source and its answer to the client. The second value: it was refused.
    fn send_and_look(
        &self,
        upstream: &mut Upstream,
        parts: &mut Parts<'_>,
        command: &[u8],
    ) -> Result<(Outcome, bool)> {
        let Parts { variables, session, transport } = parts;
        // Answers to what the client sent before, without waiting for them.
        transport.send(session.pending()).map_err(broken)?;
        session.sent(session.pending().len());
        let Some(entered) = &self.known.account else { return Ok((Outcome::Over, true)) };
        Ok(match upstream.forward(command, &variables.client, entered.account(), transport)? {
            Forwarded::Answered(answer) => {
                variables.warnings.clear();
                if let Some(status) = answer.status() {
                    variables.follow(status);
                }
                (Outcome::Answered, answer.is_refused())
            }
            Forwarded::Refused(refusal) => {
                session.refuse(&refusal);
                (Outcome::Answered, true)
            }
            Forwarded::Lost(refusal) => {
                session.refuse(&refusal);
                (Outcome::Over, true)
            }
        })
    }
}
