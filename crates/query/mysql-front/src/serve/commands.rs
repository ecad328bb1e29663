//! Carries out each command of MySQL's protocol: statements, prepared statements, KILL, changes of the user.

use std::future::Future;

use binlogz_query::Names;
use binlogz_query_server::{AskedStatement, RowMessages, StatementRefusal};
use binlogz_wire::ServerError;
use binlogz_wire::command::{
    FIELD_LIST, PROCESS_INFO, RESET_CONNECTION, STATEMENT_CLOSE, STATEMENT_EXECUTE, STATEMENT_LONG_DATA,
    STATEMENT_RESET,
};
use binlogz_wire::session::ReplicaRequest;
use binlogz_wire::statement::first_word;
use bytes::Bytes;
use futures_util::StreamExt;

use super::answers::{ListingAnswer, PreparedAnswer, messages};
use super::connection::{ClientResult, ConnectionEnd, MysqlConnection};
use super::local;
use super::prepared::prepared_ok;
use crate::dialect::is_write;
use crate::errors::{
    ACCESS_DENIED, INVALID_TEXT, NOT_SUPPORTED, OPTION_PREVENTS, READ_ONLY, UNKNOWN_COMMAND,
    UNKNOWN_DATABASE, UNKNOWN_THREAD, error, of_refusal, refused,
};
use crate::session::AnswerPurpose;
use crate::system;
use crate::variables::FrontVariables;
use crate::worker::MYSQL;

/// Words of statements whose answers are lists.
const LISTS: [&str; 4] = ["SHOW", "DESCRIBE", "DESC", "EXPLAIN"];
/// Databases that are read without logs.
const SYSTEM: [&str; 2] = ["information_schema", "performance_schema"];

impl MysqlConnection {
    /// Answers a command.
    pub(super) async fn request(&mut self, request: ReplicaRequest) -> ClientResult {
        let message = self.session.take_command();
        match request {
            ReplicaRequest::Quit => return Err(ConnectionEnd::Left),
            ReplicaRequest::Ping => self.session.ok(),
            ReplicaRequest::Statement(_) => match text_of(&message) {
                Ok(text) => return self.statement(&text).await,
                Err(refused) => self.session.refuse(&refused),
            },
            ReplicaRequest::UseDatabase(database) => self.use_database(&database).await,
            ReplicaRequest::Statistics => {
                let line = format!("Threads: {}  Questions: not counted", self.shared.clients.count());
                self.session.line(&line);
            }
            ReplicaRequest::Kill(number) => self.kill(number, true),
            ReplicaRequest::Prepare(_) => match text_of(&message) {
                Ok(text) => return self.prepare(&text).await,
                Err(refused) => self.session.refuse(&refused),
            },
            ReplicaRequest::ChangeUser(user) => {
                self.forget();
                self.database.clear();
                let accounts = self.accounts();
                self.step = Some(self.session.change_user(user, accounts));
            }
            // Whether several statements may come at once: none does.
            ReplicaRequest::SetOption(Some(0 | 1)) => self.session.end_of_rows(),
            ReplicaRequest::SetOption(_) => self.unknown(),
            ReplicaRequest::Register { .. } | ReplicaRequest::Dump(_) => {
                let message =
                    "This server answers SQL; a binary log comes from its source or from binlogz relay";
                self.session.refuse(&error(ACCESS_DENIED, message));
            }
            ReplicaRequest::Other(code) => return self.other(code, &message).await,
        }
        Ok(())
    }

    async fn other(&mut self, code: u8, message: &[u8]) -> ClientResult {
        match code {
            RESET_CONNECTION => {
                self.forget();
                self.session.ok();
            }
            PROCESS_INFO => return self.statement("SHOW PROCESSLIST").await,
            STATEMENT_EXECUTE => match self.prepared.execute(message) {
                Ok((text, values)) => return self.execute(text, values).await,
                Err(refused) => self.session.refuse(&refused),
            },
            STATEMENT_LONG_DATA => self.prepared.add_long(message),
            STATEMENT_CLOSE => self.prepared.close(message),
            STATEMENT_RESET => match self.prepared.reset(message) {
                Ok(()) => self.session.ok(),
                Err(refused) => self.session.refuse(&refused),
            },
            // The mysql client asks for the columns of all tables so that it can complete their names.
            FIELD_LIST => self.session.end_of_rows(),
            _ => self.unknown(),
        }
        Ok(())
    }

    fn unknown(&mut self) {
        self.session.refuse(&error(UNKNOWN_COMMAND, "Unknown command"));
    }

    /// The session is what it was after login.
    fn forget(&mut self) {
        self.variables = FrontVariables::of_new_session(self.shared.idle);
        self.prepared.clear();
    }

    /// Answers a statement.
    async fn statement(&mut self, text: &str) -> ClientResult {
        let word = first_word(text).unwrap_or_default();
        if word == "KILL" {
            match local::killed(text) {
                Some((number, is_connection)) => self.kill(number, is_connection),
                None => self.session.refuse(&of_refusal(refused(
                    NOT_SUPPORTED,
                    "KILL [QUERY | CONNECTION] number is possible",
                ))),
            }
            return Ok(());
        }
        if self.answer_locally(text).await {
            return Ok(());
        }
        self.has_notes = false;
        if word == "SET" {
            // A form of it that isn't understood.
            let message =
                "This form of SET is not supported: SET name = value, SET NAMES and SET TRANSACTION are";
            self.session.refuse(&error(NOT_SUPPORTED, message));
            return Ok(());
        }
        if is_write(&word) {
            self.session.refuse(&error(OPTION_PREVENTS, READ_ONLY));
            return Ok(());
        }
        let lower = text.to_ascii_lowercase();
        let may_list = LISTS.contains(&word.as_str())
            || SYSTEM.iter().any(|database| lower.contains(database))
            || system::is_database(&self.database);
        if may_list && self.list(text).await? {
            return Ok(());
        }
        self.query(text.to_owned(), Bytes::new(), AnswerPurpose::Text).await
    }

    async fn execute(&mut self, text: String, values: Bytes) -> ClientResult {
        self.query(text, values, AnswerPurpose::Binary).await
    }

    fn asked(&self, purpose: AnswerPurpose, statement: String, values: Bytes) -> AskedStatement {
        let session = self.told(purpose).encode();
        AskedStatement { protocol: MYSQL, session, statement, values, ..AskedStatement::default() }
    }

    /// Answers a statement that lists what there is; false: it asks for something else.
    async fn list(&mut self, text: &str) -> ClientResult<bool> {
        let asked = self.asked(AnswerPurpose::Listing, text.to_owned(), Bytes::new());
        match self.planned(asked).await? {
            Ok(plan) => match ListingAnswer::of(&plan) {
                Some(listing) => {
                    listing.send(&mut self.session);
                    Ok(true)
                }
                None => Ok(false),
            },
            Err(refusal) => {
                self.session.refuse(&of_refusal(refusal));
                Ok(true)
            }
        }
    }

    /// Prepares a statement.
    async fn prepare(&mut self, text: &str) -> ClientResult {
        let asked = self.asked(AnswerPurpose::Prepare, text.to_owned(), Bytes::new());
        let answer = match self.planned(asked).await? {
            Ok(plan) => PreparedAnswer::of(plan).map_err(of_refusal),
            Err(refusal) => Err(of_refusal(refusal)),
        };
        let kept = answer.and_then(|answer| Ok((self.prepared.keep(text, answer.parameters)?, answer)));
        match kept {
            Ok((number, answer)) => {
                self.session.pass_on(&prepared_ok(number, answer.columns, answer.parameters));
                answer.send(&mut self.session);
            }
            Err(refused) => self.session.refuse(&refused),
        }
        Ok(())
    }

    /// Has a worker plan a statement. The client may leave or be stopped meanwhile.
    async fn planned(&mut self, asked: AskedStatement) -> ClientResult<Result<Bytes, StatementRefusal>> {
        let Some(client) = self.client.clone() else { return Err(ConnectionEnd::Protocol) };
        client.begins().await;
        let workers = self.shared.workers.clone();
        let account = self.account().to_owned();
        let planned = self.meanwhile(async move { workers.plan(&account, asked).await }).await;
        client.ends();
        planned
    }

    /// Waits for a worker's answer, unless the client leaves, or is stopped.
    async fn meanwhile<T>(
        &mut self,
        answer: impl Future<Output = Result<T, StatementRefusal>>,
    ) -> ClientResult<Result<T, StatementRefusal>> {
        let Some(client) = self.client.clone() else { return Err(ConnectionEnd::Protocol) };
        tokio::select! {
            answer = answer => Ok(answer),
            () = client.stopped() => Ok(Err(local::stopped())),
            () = client.ended() => Err(ConnectionEnd::Left),
            () = self.leaves() => Err(ConnectionEnd::Left),
        }
    }

    /// Runs a query and sends its rows as they come.
    async fn query(&mut self, text: String, values: Bytes, purpose: AnswerPurpose) -> ClientResult {
        let Some(client) = self.client.clone() else { return Err(ConnectionEnd::Protocol) };
        client.begins().await;
        let asked = self.asked(purpose, text, values);
        let workers = self.shared.workers.clone();
        let account = self.account().to_owned();
        let idle = self.shared.idle;
        let ran = async {
            let rows = self.meanwhile(async move { workers.run(&account, asked, idle, ()).await }).await?;
            match rows {
                Ok(rows) => self.send_rows(rows).await,
                Err(refusal) => {
                    self.session.refuse(&of_refusal(refusal));
                    Ok(())
                }
            }
        }
        .await;
        client.ends();
        ran
    }

    async fn send_rows(&mut self, mut rows: RowMessages) -> ClientResult {
        for message in messages(&rows.plan().clone()) {
            self.session.pass_on(message);
        }
        self.session.end_of_rows();
        loop {
            // A client that takes its rows slowly holds up its own query alone.
            self.flush().await?;
            let next = self.meanwhile(next(&mut rows)).await?;
            match next {
                Ok(Some(bytes)) => messages(&bytes).for_each(|row| self.session.pass_on(row)),
                Ok(None) => {
                    self.has_notes = true;
                    let warnings = u16::try_from(self.shared.notes.len()).unwrap_or(u16::MAX);
                    self.session.end_of_rows_with_warnings(warnings);
                    return Ok(());
                }
                Err(refusal) => {
                    self.session.refuse(&of_refusal(refusal));
                    return Ok(());
                }
            }
        }
    }

    /// Sets the default database.
    pub(super) async fn use_database(&mut self, database: &str) {
        match self.known_database(database).await {
            Ok(database) => {
                self.database = database;
                self.session.ok();
            }
            Err(refused) => self.session.refuse(&refused),
        }
    }

    /// The name of a database as statements find it.
    ///
    /// # Errors
    ///
    /// There is none, or the logs can't be read.
    pub(super) async fn known_database(&self, database: &str) -> Result<String, ServerError> {
        if system::is_database(database) {
            return Ok(database.to_ascii_lowercase());
        }
        if database == Names::LOG_SCHEMA {
            return Ok(database.to_owned());
        }
        let queries = self.shared.workers.queries(self.account()).map_err(of_refusal)?;
        let tables = queries.apart(Names::tables).await;
        let tables = tables.map_err(|error| of_refusal(error.into()))?;
        match tables.iter().any(|(known, _)| known == database) {
            true => Ok(database.to_owned()),
            false => Err(error(UNKNOWN_DATABASE, format!("Unknown database '{database}'"))),
        }
    }

    fn kill(&mut self, number: u32, is_connection: bool) {
        match self.shared.clients.kill(number, &self.user, is_connection) {
            true => self.session.ok(),
            false => self.session.refuse(&error(UNKNOWN_THREAD, format!("Unknown thread id: {number}"))),
        }
    }
}

async fn next(rows: &mut RowMessages) -> Result<Option<Bytes>, StatementRefusal> {
    rows.next().await.transpose()
}

/// A command's text.
fn text_of(message: &[u8]) -> Result<String, ServerError> {
    let text = message.get(1..).unwrap_or_default();
    String::from_utf8(text.to_vec()).map_err(|_| error(INVALID_TEXT, "Invalid utf8mb4 character string"))
}
