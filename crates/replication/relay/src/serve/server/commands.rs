//! The relay's own answers to a client's commands. Statements are parsed here and answered by `binlogz_client_sql`; what needs the
//! source is `forwarding`'s.

use std::net::SocketAddr;

use binlogz_client_sql::{
    AskingClient, ClientFacts, ClientVariables, RegisteredReplica, StatementAnswer, WITH_FORWARDING,
};
use binlogz_relay_log::LineageLog;
use binlogz_wire::ServerError;
use binlogz_wire::command::{
    DEBUG, PROCESS_INFO, RESET_CONNECTION, STATEMENT_CLOSE, STATEMENT_EXECUTE, STATEMENT_FETCH,
    STATEMENT_LONG_DATA, STATEMENT_RESET,
};
use binlogz_wire::result_set::{ResultKind, ResultRow};
use binlogz_wire::session::{ReplicaRequest, ReplicaSession, ReplyColumn};
use binlogz_wire::statement::Statement;

use super::dump::KnownClient;
use super::{Client, announced};
use crate::error::Result;
use crate::statements::AskedLog;

/// The columns of COM_PROCESS_INFO.
const PROCESSES: [ReplyColumn<'static>; 8] = [
    ReplyColumn { name: "Id", kind: ResultKind::INTEGER },
    ReplyColumn { name: "User", kind: ResultKind::TEXT },
    ReplyColumn { name: "Host", kind: ResultKind::TEXT },
    ReplyColumn { name: "db", kind: ResultKind::TEXT },
    ReplyColumn { name: "Command", kind: ResultKind::TEXT },
    ReplyColumn { name: "Time", kind: ResultKind::INTEGER },
    ReplyColumn { name: "State", kind: ResultKind::TEXT },
    ReplyColumn { name: "Info", kind: ResultKind::TEXT },
];

/// An error as a server sends it: its number, SQLSTATE and text.
fn refusal(code: u16, sqlstate: [u8; 5], line: &str) -> ServerError {
    ServerError { code, sqlstate: Some(sqlstate), message: line.to_owned() }
}

impl Client<'_> {
    /// The relay's own answer to a statement; `None` can't be parsed.
    pub(super) fn answer<'s>(
        &self,
        kept: &LineageLog,
        variables: &mut ClientVariables,
        statement: Option<&'s Statement>,
    ) -> Result<StatementAnswer<'s>> {
        let Some(statement) = statement else { return Ok(binlogz_client_sql::unknown_statement()) };
        let form = |variables: &ClientVariables| self.known.form(kept, variables);
        let may_administer = self.known.account.as_ref().is_some_and(|entered| entered.account().admin);
        let exits = self.known.exits();
        let log = AskedLog { statements: &self.known.server.statements, kept, exits, form: &form };
        binlogz_client_sql::answer(&log, &mut AskingClient { variables, may_administer }, statement)
    }

    /// Answers COM_PROCESS_INFO as for an account without the privilege PROCESS: the connections of its own.
    fn processes(&self, variables: &ClientVariables, session: &mut ReplicaSession) {
        let KnownClient { server, connection, peer, .. } = &self.known;
        let user = self.known.user();
        let row = |connection: u32,
                   peer: &SocketAddr,
                   database: Option<&str>,
                   command: &str,
                   state: &str|
         -> ResultRow {
            let texts = [
                Some(connection.to_string()),
                Some(user.to_owned()),
                Some(peer.to_string()),
                database.map(str::to_owned),
                Some(command.to_owned()),
                Some("0".to_owned()),
                Some(state.to_owned()),
                None,
            ];
            texts.into_iter().map(|text| text.map(String::into_bytes)).collect()
        };
        let dumps = server.dumps.seen();
        let own = dumps.iter().filter(|dump| dump.reader.user == user);
        let mut rows: Vec<ResultRow> =
            own.map(|dump| row(dump.connection, &dump.reader.peer, None, "Binlog Dump", "")).collect();
        let database = variables.client.database.as_deref();
        rows.push(row(*connection, peer, database, "Processlist", "init"));
        session.rows(&PROCESSES, &rows);
    }

    /// Forgets the session, as COM_RESET_CONNECTION asks; the client stays logged in, with its default schema.
    fn reset_connection(&self, variables: &mut ClientVariables, session: &mut ReplicaSession) {
        let client = std::mem::take(&mut variables.client);
        *variables = ClientVariables::default();
        let source = self.known.server.statements.intake.source_variables.get();
        let database = session.database().map(str::to_owned);
        variables.log_in(ClientFacts { database, ..client }, source.as_deref());
        session.set_status(variables.status());
        session.ok();
    }

    /// The line that answers COM_STATISTICS.
    fn statistics(&self) -> String {
        format!(
            "Uptime: {}  Threads: {}  Questions: 0  Slow queries: 0  Opens: 0  Flush tables: 0  \
             OpenConnection tables: 0  Queries per second avg: 0.000",
            self.begun.elapsed().as_secs(),
            self.door.gate.counts().logged_in
        )
    }

    /// Answers a command that the relay can answer without its source.
    pub(super) fn request(
        &self,
        kept: &LineageLog,
        variables: &mut ClientVariables,
        session: &mut ReplicaSession,
        request: ReplicaRequest,
    ) -> Result<()> {
        match request {
            ReplicaRequest::Ping => session.ok(),
            ReplicaRequest::Statement(text) => {
                let statement = Statement::parse(&text);
                let answer = self.answer(kept, variables, statement.as_ref())?;
                session.set_status(variables.status());
                answer.give(session);
            }
            ReplicaRequest::Register { server_id, host, port } => {
                let uuid = announced::replica_uuid(variables).unwrap_or_default();
                self.known
                    .server
                    .registry
                    .register(self.known.connection, RegisteredReplica { server_id, host, port, uuid });
                session.ok();
            }
            // There are no databases: any name will do.
            ReplicaRequest::UseDatabase(name) => {
                variables.client.database = Some(name);
                session.ok();
            }
            ReplicaRequest::Statistics => session.line(&self.statistics()),
            ReplicaRequest::Kill(connection) => {
                session.refuse(&refusal(1094, *b"HY000", &format!("Unknown thread id: {connection}")));
            }
            ReplicaRequest::Prepare(_) => session.refuse(&refusal(
                1295,
                *b"HY000",
                &format!(
                    "This command is not supported in the prepared statement protocol yet: the relay prepares no \
                     statements{WITH_FORWARDING}"
                ),
            )),
            ReplicaRequest::Other(RESET_CONNECTION) => self.reset_connection(variables, session),
            // Several statements never come at once: each that is sent so is refused by itself.
            ReplicaRequest::SetOption(Some(0 | 1)) => session.end_of_rows(),
            ReplicaRequest::Other(PROCESS_INFO) => self.processes(variables, session),
            ReplicaRequest::Other(DEBUG) => session.refuse(&refusal(
                ServerError::SPECIFIC_ACCESS_DENIED,
                *b"42000",
                "Access denied; you need (at least one of) the SUPER privilege(s) for this operation",
            )),
            // They have no answer: one would be taken for the next command's.
            ReplicaRequest::Other(STATEMENT_CLOSE | STATEMENT_LONG_DATA) => {}
            ReplicaRequest::Other(STATEMENT_EXECUTE | STATEMENT_FETCH | STATEMENT_RESET) => {
                let line = "Unknown prepared statement handler given to the relay";
                session.refuse(&refusal(1243, *b"HY000", line));
            }
            ReplicaRequest::SetOption(_) => session.refuse(&refusal(1047, *b"08S01", "Unknown command")),
            ReplicaRequest::Other(code) => {
                session.refuse(&refusal(1047, *b"08S01", &format!("Unknown command {code:#04x}")));
            }
            ReplicaRequest::Quit | ReplicaRequest::Dump(_) | ReplicaRequest::ChangeUser(_) => {}
        }
        Ok(())
    }
}
