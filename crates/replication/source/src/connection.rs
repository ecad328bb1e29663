//! Asks a server simple questions: statements and their rows.

use std::time::Duration;

use binlogz_wire::command::{Command, SET_OPTION};
use binlogz_wire::passage::AnswerPassage;
use binlogz_wire::result_set::{AnswerColumn, ResultRow, ServerAnswer};
use binlogz_wire::session::{ClientSession, ClientStep, ServerGreeting};

use crate::answer_fields::AnswerFields;
use crate::connect_options::ConnectOptions;
use crate::error::{Error, Result};
use crate::link::{Link, ReceiveResult};

/// A connection that is logged in.
#[derive(Debug)]
pub struct Connection {
    link: Link,
    session: ClientSession,
    options: ConnectOptions,
}

impl Connection {
    /// Connects and logs in.
    pub fn open(options: &ConnectOptions) -> Result<Self> {
        let login = options.login()?;
        let link = Link::connect(options)?;
        let session = ClientSession::new(login, options.timeouts, link.now());
        let mut connection = Connection { link, session, options: options.clone() };
        connection.advance()?;
        Ok(connection)
    }

    /// The server's greeting.
    pub fn greeting(&self) -> Option<&ServerGreeting> {
        self.session.greeting()
    }

    /// Whether anyone on the way can listen, or change the messages: neither TLS nor a Unix socket.
    pub fn is_open_to_others(&self) -> bool {
        self.link.is_open_to_others()
    }

    /// Runs a statement; returns its rows, or none if it has none.
    ///
    /// # Errors
    ///
    /// The server's refusal is [`binlogz_wire::Error::Server`]; the connection is still usable then.
    pub fn query(&mut self, statement: &str) -> Result<Vec<ResultRow>> {
        self.ask(statement.as_bytes(), format!("asking {statement}"))
    }

    /// Runs a statement that answers at least one row; returns that.
    ///
    /// # Errors
    ///
    /// As [`Connection::query`]; there is no row.
    pub fn first_row(&mut self, statement: &str) -> Result<AnswerFields> {
        let rows = self.query(statement)?;
        AnswerFields::first_of(&self.options.server(), statement, rows)
    }

    /// Gives the session an SQL mode in which texts and names are what our literals say, whatever the server's own mode is: with
    /// NO_BACKSLASH_ESCAPES a doubled backslash would be two, with ANSI_QUOTES servers show names in double quotes.
    ///
    /// # Errors
    ///
    /// As [`Connection::query`]; the session kept such a mode, as one that a proxy shares may.
    pub fn plain_sql_mode(&mut self) -> Result<()> {
        self.query("SET SESSION sql_mode = ''")?;
        let mode = self.first_row("SELECT @@SESSION.sql_mode")?;
        match ["NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"]
            .iter()
            .any(|name| mode.text(0).is_ok_and(|text| text.contains(name)))
        {
            true => Err(mode.unexpected(0, "a mode without NO_BACKSLASH_ESCAPES and ANSI_QUOTES")),
            false => Ok(()),
        }
    }

    /// Runs a statement and hands its rows to `each` as they come, some at a time; it returns whether to go on. If not, or
    /// after an error, the connection is no longer usable.
    ///
    /// # Errors
    ///
    /// As [`Connection::query`].
    pub fn query_each(
        &mut self,
        statement: &str,
        each: &mut dyn FnMut(Vec<ResultRow>) -> bool,
    ) -> Result<()> {
        let doing = format!("asking {statement}");
        let asked = self.session.ask(&Command::Query(statement.as_bytes()), doing.as_str(), self.link.now());
        asked.map_err(|error| self.link.wire_error(error))?;
        match self.advance_with(Some(each))? {
            Some(ServerAnswer::Refused(error)) => {
                Err(self.link.wire_error(binlogz_wire::Error::Server { doing, error }))
            }
            _ => Ok(()),
        }
    }

    /// Runs a statement without rows, which errors don't repeat: it may be long. Returns how many rows it changed.
    ///
    /// # Errors
    ///
    /// As [`Connection::query`].
    pub fn execute(&mut self, statement: &[u8]) -> Result<u64> {
        self.ask(statement, "running a statement".to_owned())?;
        Ok(self.session.affected_rows())
    }

    /// Lets one message have several statements, for [`Connection::execute_all`].
    ///
    /// # Errors
    ///
    /// As [`Connection::query`].
    pub fn allow_several_statements(&mut self) -> Result<()> {
        let command = Command::Other { code: SET_OPTION, parameters: &MULTI_STATEMENTS_ON };
        self.ask_for(&command, "allowing several statements at once".to_owned()).map(drop)
    }

    /// Runs statements without rows, divided by semicolons, in one round trip. Appends to `changed` how many rows each of them
    /// changed. The server stops at the first that fails.
    ///
    /// # Errors
    ///
    /// As [`Connection::query`]: the refusal of the statement after those in `changed`.
    pub fn execute_all(&mut self, statements: &[u8], changed: &mut Vec<u64>) -> Result<()> {
        self.ask(statements, "running statements".to_owned())?;
        changed.push(self.session.affected_rows());
        while self.session.has_more_answers() {
            let doing = self.session.doing().to_owned();
            self.answer(doing)?;
            changed.push(self.session.affected_rows());
        }
        Ok(())
    }

    fn ask(&mut self, statement: &[u8], doing: String) -> Result<Vec<ResultRow>> {
        self.ask_for(&Command::Query(statement), doing)
    }

    fn ask_for(&mut self, command: &Command<'_>, doing: String) -> Result<Vec<ResultRow>> {
        let asked = self.session.ask(command, doing.as_str(), self.link.now());
        asked.map_err(|error| self.link.wire_error(error))?;
        self.answer(doing)
    }

    /// Waits for the next answer.
    fn answer(&mut self, doing: String) -> Result<Vec<ResultRow>> {
        match self.advance()? {
            Some(ServerAnswer::Rows(rows)) => Ok(rows),
            Some(ServerAnswer::Ok) | None => Ok(Vec::new()),
            Some(ServerAnswer::Refused(error)) => {
                Err(self.link.wire_error(binlogz_wire::Error::Server { doing, error }))
            }
        }
    }

    /// The columns of the last answer; none if it had no rows.
    pub fn columns(&self) -> &[AnswerColumn] {
        self.session.columns()
    }

    /// Forwards another client's command, and passes the bytes of the answer on as they are, packet numbers included.
    ///
    /// There is no deadline: a statement may take long. Now and then `on` is asked whether somebody still waits.
    ///
    /// # Errors
    ///
    /// The connection broke, the answer is none, or nobody waits for it any more.
    pub fn forward(&mut self, command: &[u8], on: &mut impl PassOn) -> Result<AnswerPassage, ForwardError> {
        const DOING: &str = "forwarding a client's command";
        let asked = self.session.forward(command, DOING, self.link.now());
        asked.map_err(|error| self.link.wire_error(error))?;
        self.link.send(self.session.pending(), DOING)?;
        self.session.sent(self.session.pending().len());
        loop {
            let (count, answer) =
                self.session.pass(self.link.input()).map_err(|error| self.link.wire_error(error))?;
            self.link.take(count);
            on.pass(self.link.taken(count)).map_err(ForwardError::Client)?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
            let look = self.link.now() + LOOK_PERIOD;
            if self.link.receive(Some(look), DOING)? == ReceiveResult::End {
                return Err(self.link.wire_error(self.session.closed()).into());
            }
            if self.link.input().is_empty() && !on.is_awaited() {
                return Err(ForwardError::Client(std::io::ErrorKind::ConnectionAborted.into()));
            }
        }
    }

    /// Continues until logged in, or until there is an answer.
    fn advance(&mut self) -> Result<Option<ServerAnswer>> {
        self.advance_with(None)
    }

    /// Continues until logged in, or until there is an answer, with rows handed on as they come. `None` also if no more
    /// are wanted.
    fn advance_with(&mut self, mut each: Option<EachRows<'_>>) -> Result<Option<ServerAnswer>> {
        loop {
            let input = self.link.input();
            let mut rest = input;
            let step = self.session.poll(&mut rest, self.link.now());
            let count = input.len() - rest.len();
            self.link.take(count);
            let step = step.map_err(|error| self.link.wire_error(error))?;
            self.link.compress_with(self.session.compression());
            let pending = self.session.pending().len();
            if pending > 0 {
                self.link.send(self.session.pending(), self.session.doing())?;
                self.session.sent(pending);
            }
            match step {
                ClientStep::NeedInput => {
                    if let Some(each) = &mut each {
                        let rows = self.session.take_rows(self.link.now());
                        if !rows.is_empty() && !each(rows) {
                            return Ok(None);
                        }
                        // Handing on may take long: that is not the server's.
                        let _ = self.session.take_rows(self.link.now());
                    }
                    if self.link.receive(self.session.deadline(), self.session.doing())? == ReceiveResult::End
                    {
                        return Err(self.link.wire_error(self.session.closed()));
                    }
                }
                ClientStep::StartTls => {
                    self.link.start_tls(&self.options, self.session.deadline())?;
                    self.session.tls_started().map_err(|error| self.link.wire_error(error))?;
                }
                ClientStep::LoggedIn => return Ok(None),
                ClientStep::Answer(ServerAnswer::Rows(rows)) if each.is_some() => {
                    if let Some(each) = &mut each {
                        each(rows);
                    }
                    return Ok(None);
                }
                ClientStep::Answer(answer) => return Ok(Some(answer)),
            }
        }
    }
}

/// The parameter of COM_SET_OPTION, MYSQL_OPTION_MULTI_STATEMENTS_ON.
const MULTI_STATEMENTS_ON: [u8; 2] = 0_u16.to_le_bytes();

/// Takes rows; returns whether more are wanted.
type EachRows<'r> = &'r mut dyn FnMut(Vec<ResultRow>) -> bool;

/// How often we look whether the client still waits for the answer.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Where a forwarded command's answer goes.
pub trait PassOn {
    /// Passes bytes on.
    fn pass(&mut self, bytes: &[u8]) -> std::io::Result<()>;

    /// Whether somebody still waits for the answer.
    fn is_awaited(&mut self) -> bool;
}

/// Why an answer did not pass.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The connection to the server failed.
    #[error(transparent)]
    Server(#[from] Error),
    /// The client is gone.
    #[error("the client that waits for it is gone: {0}")]
    Client(std::io::Error),
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Without a goodbye the server would count an aborted client. If it fails, the connection was gone
        // anyway.
        if self.session.quit(self.link.now()).is_ok() {
            let _ = self.link.send(self.session.pending(), "leaving");
        }
    }
}
