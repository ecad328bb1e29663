//! Asks a server small things: statements and their rows.

use binlogz_wire::command::Command;
use binlogz_wire::result_set::{Answer, Row};
use binlogz_wire::session::{ClientSession, ClientStep, ServerGreeting};

use crate::connect_options::ConnectOptions;
use crate::error::Result;
use crate::link::{Link, Received};

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

    /// What the server told of itself first.
    pub fn greeting(&self) -> Option<&ServerGreeting> {
        self.session.greeting()
    }

    /// Whether anyone on the way can listen, or change what is sent: neither TLS nor a Unix socket.
    pub fn is_open_to_others(&self) -> bool {
        self.link.is_open_to_others()
    }

    /// Runs a statement; gives its rows, none for one that has none.
    ///
    /// # Errors
    ///
    /// The server's refusal is [`binlogz_wire::Error::Server`]; the connection is still of use then.
    pub fn query(&mut self, statement: &str) -> Result<Vec<Row>> {
        let doing = format!("asking {statement}");
        let now = self.link.now();
        let asked = self.session.ask(&Command::Query(statement.as_bytes()), doing.as_str(), now);
        asked.map_err(|error| self.link.wire_error(error))?;
        match self.advance()? {
            Some(Answer::Rows(rows)) => Ok(rows),
            Some(Answer::Ok) | None => Ok(Vec::new()),
            Some(Answer::Refused(error)) => {
                Err(self.link.wire_error(binlogz_wire::Error::Server { doing, error }))
            }
        }
    }

    /// Goes on until logged in, or until there is an answer.
    fn advance(&mut self) -> Result<Option<Answer>> {
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
                    if self.link.receive(self.session.deadline(), self.session.doing())? == Received::End {
                        return Err(self.link.wire_error(self.session.closed()));
                    }
                }
                ClientStep::StartTls => {
                    self.link.start_tls(&self.options, self.session.deadline())?;
                    self.session.tls_started().map_err(|error| self.link.wire_error(error))?;
                }
                ClientStep::LoggedIn => return Ok(None),
                ClientStep::Answer(answer) => return Ok(Some(answer)),
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Without a goodbye the server would count an aborted client. If it fails, the connection was gone.
        if self.session.quit(self.link.now()).is_ok() {
            let _ = self.link.send(self.session.pending(), "leaving");
        }
    }
}
