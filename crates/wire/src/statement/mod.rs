//! The statements that replicas, mysqlbinlog and change-data-capture clients say to a source, understood
//! by their structure: spelling, blanks, comments and the order of assignments don't matter.
//!
//! ```text
//! SELECT expression [[AS] name], … [LIMIT n] · SELECT … FROM …: see `table`
//! SET target = expression, …            target: @name, [GLOBAL | PERSIST | SESSION] name, @@[global.]name
//! SET NAMES …
//! SHOW [GLOBAL | SESSION] VARIABLES [LIKE text | WHERE Variable_name = text]
//! SHOW BINARY LOGS | MASTER LOGS · SHOW BINARY LOG STATUS | MASTER STATUS · SHOW REPLICAS | SLAVE HOSTS
//! SHOW WARNINGS [LIMIT n]
//! SHOW BINLOG EVENTS [IN text] [FROM n] [LIMIT [n,] n] · SHOW REPLICA | SLAVE STATUS [FOR CHANNEL text]
//! PURGE BINARY LOGS TO text | BEFORE text · FLUSH BINARY LOGS · START | STOP REPLICA [IO_THREAD]: see `admin`
//!
//! expression: @name · @@[global.]name · text · number · function() · in SET also a word
//! ```
//!
//! Which statements these are was seen in the general log of 9.7.4 and read in the clients' sources. What
//! an expression is worth is the server's business; here is nothing but the grammar.

mod admin;
mod like;
mod parser;
mod table;
#[cfg(test)]
mod tests;
mod token;

pub use admin::AdminStatement;
pub use like::is_like;
use parser::Parser;
pub use table::{TableName, TableQuery};
use token::{Placed, Token, tokens};

/// A statement that a source may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// Values, and what their columns are called.
    Select(Vec<(Expression, String)>),
    /// Rows of a table.
    SelectFrom(TableQuery),
    /// Assignments.
    Set(Vec<(Target, Expression)>),
    /// The character set of the session: nothing here depends on it.
    SetNames,
    /// System variables whose names fit a pattern of LIKE; all of them without one.
    ShowVariables(Option<String>),
    /// The files of the binary log.
    ShowBinaryLogs,
    /// Where the binary log ends.
    ShowBinaryLogStatus,
    /// The replicas that made themselves known.
    ShowReplicas,
    /// The events of a file of the binary log.
    ShowBinlogEvents(EventsWanted),
    /// How the receiving is.
    ShowReplicaStatus,
    /// What the last statement had to say beside its answer.
    ShowWarnings,
    /// Something that changes what the server does.
    Admin(AdminStatement),
}

/// Which events SHOW BINLOG EVENTS is to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsWanted {
    /// Of which file; by default the first.
    pub file: Option<String>,
    /// From where in it on.
    pub from: Option<u64>,
    /// How many are passed over.
    pub skip: u64,
    /// How many at the most.
    pub count: Option<u64>,
}

/// Something that has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// `@name`, in lower case.
    UserVariable(String),
    /// `@@name`, in lower case.
    SystemVariable(String),
    /// `name()`, in lower case.
    Function(String),
    /// A text, a number, or a bare word such as ON.
    Literal(String),
    /// A text in quotes that is assigned to a variable of the server: those tell it from a number.
    Text(String),
    /// NULL.
    Null,
}

/// What a value is assigned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `@name`, in lower case.
    UserVariable(String),
    /// A system variable of the session, in lower case.
    Session(String),
    /// A system variable of the whole server, in lower case.
    Global(String),
    /// The same, to be kept for the next start too.
    Persist(String),
}

impl Statement {
    /// Reads a statement; `None`: it is none of these.
    pub fn parse(text: &str) -> Option<Statement> {
        let tokens = tokens(text)?;
        let mut parser = Parser { text, tokens: &tokens };
        let statement = parser.statement()?;
        parser.symbol(';');
        parser.tokens.is_empty().then_some(statement)
    }
}

impl Parser<'_> {
    fn statement(&mut self) -> Option<Statement> {
        match self.keyword()?.as_str() {
            "SELECT" => self.select_from().or_else(|| self.select()),
            "SET" => self.set(),
            "SHOW" => self.show(),
            first => self.admin(first).map(Statement::Admin),
        }
    }

    fn select(&mut self) -> Option<Statement> {
        let mut items = Vec::new();
        loop {
            let begin = self.tokens.first()?.begin;
            let before = self.tokens;
            // A bare word would be a column.
            let expression = self.expression(false)?;
            let end = before.get(before.len() - self.tokens.len() - 1)?.end;
            let alias = if self.is_keyword("AS") {
                Some(self.name()?)
            } else {
                match self.tokens.first() {
                    Some(Placed { token: Token::Word(word, _), .. })
                        if !word.eq_ignore_ascii_case("LIMIT") =>
                    {
                        Some(self.name()?)
                    }
                    _ => None,
                }
            };
            items.push((expression, alias.unwrap_or(self.text.get(begin..end)?.to_owned())));
            if !self.symbol(',') {
                break;
            }
        }
        if self.is_keyword("LIMIT") {
            self.literal()?;
        }
        Some(Statement::Select(items))
    }

    fn set(&mut self) -> Option<Statement> {
        if self.is_keyword("NAMES") {
            self.name()?;
            if self.is_keyword("COLLATE") {
                self.name()?;
            }
            return Some(Statement::SetNames);
        }
        let mut assignments = Vec::new();
        loop {
            let target = self.target()?;
            self.symbol(':');
            if !self.symbol('=') {
                return None;
            }
            let first = self.tokens.first()?;
            let is_quoted = self.text.get(first.begin..).is_some_and(|text| text.starts_with(['\'', '"']));
            let value = match (self.expression(true)?, &target) {
                (Expression::Literal(text), Target::Global(_)) if is_quoted => Expression::Text(text),
                (value, _) => value,
            };
            assignments.push((target, value));
            if !self.symbol(',') {
                return Some(Statement::Set(assignments));
            }
        }
    }

    fn target(&mut self) -> Option<Target> {
        let (first, rest) = self.tokens.split_first()?;
        match &first.token {
            Token::UserVariable(name) => {
                self.tokens = rest;
                Some(Target::UserVariable(name.clone()))
            }
            Token::SystemMark => {
                self.tokens = rest;
                let (scope, name) = self.system_variable()?;
                Some(match scope.as_str() {
                    "global" => Target::Global(name),
                    "persist" | "persist_only" => Target::Persist(name),
                    _ => Target::Session(name),
                })
            }
            _ if self.is_keyword("GLOBAL") => {
                self.name().map(|name| Target::Global(name.to_ascii_lowercase()))
            }
            _ if self.is_keyword("PERSIST") || self.is_keyword("PERSIST_ONLY") => {
                self.name().map(|name| Target::Persist(name.to_ascii_lowercase()))
            }
            _ => {
                let _ = self.is_keyword("SESSION") || self.is_keyword("LOCAL");
                self.name().map(|name| Target::Session(name.to_ascii_lowercase()))
            }
        }
    }

    fn show(&mut self) -> Option<Statement> {
        let _ = self.is_keyword("GLOBAL") || self.is_keyword("SESSION");
        match self.keyword()?.as_str() {
            "VARIABLES" if self.is_keyword("LIKE") => Some(Statement::ShowVariables(Some(self.literal()?))),
            "VARIABLES" if self.is_keyword("WHERE") => {
                let named = self.is_keyword("VARIABLE_NAME");
                let compared = self.symbol('=') || self.is_keyword("LIKE");
                (named && compared).then_some(())?;
                Some(Statement::ShowVariables(Some(self.literal()?)))
            }
            "VARIABLES" => Some(Statement::ShowVariables(None)),
            "WARNINGS" => {
                if self.is_keyword("LIMIT") {
                    self.number()?;
                }
                Some(Statement::ShowWarnings)
            }
            "BINARY" if self.is_keyword("LOGS") => Some(Statement::ShowBinaryLogs),
            "BINARY" => {
                let status = self.is_keyword("LOG") && self.is_keyword("STATUS");
                status.then_some(Statement::ShowBinaryLogStatus)
            }
            "MASTER" if self.is_keyword("LOGS") => Some(Statement::ShowBinaryLogs),
            "MASTER" => self.is_keyword("STATUS").then_some(Statement::ShowBinaryLogStatus),
            "BINLOG" => self.is_keyword("EVENTS").then(|| self.binlog_events())?,
            "REPLICAS" => Some(Statement::ShowReplicas),
            "REPLICA" => self.replica_status(),
            "SLAVE" if self.is_keyword("HOSTS") => Some(Statement::ShowReplicas),
            "SLAVE" => self.replica_status(),
            _ => None,
        }
    }

    fn binlog_events(&mut self) -> Option<Statement> {
        let mut wanted = EventsWanted::default();
        if self.is_keyword("IN") {
            wanted.file = Some(self.literal()?);
        }
        if self.is_keyword("FROM") {
            wanted.from = Some(self.number()?);
        }
        if self.is_keyword("LIMIT") {
            let first = self.number()?;
            if self.symbol(',') {
                (wanted.skip, wanted.count) = (first, Some(self.number()?));
            } else {
                wanted.count = Some(first);
                if self.is_keyword("OFFSET") {
                    wanted.skip = self.number()?;
                }
            }
        }
        Some(Statement::ShowBinlogEvents(wanted))
    }

    fn replica_status(&mut self) -> Option<Statement> {
        self.is_keyword("STATUS").then_some(())?;
        if self.is_keyword("FOR") {
            self.is_keyword("CHANNEL").then_some(())?;
            // There is one channel, whose name is empty.
            self.literal().filter(String::is_empty)?;
        }
        Some(Statement::ShowReplicaStatus)
    }

    fn expression(&mut self, bare_words: bool) -> Option<Expression> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(match &first.token {
            Token::UserVariable(name) => Expression::UserVariable(name.clone()),
            Token::SystemMark => Expression::SystemVariable(self.system_variable()?.1),
            Token::Literal(text) => Expression::Literal(text.clone()),
            Token::Word(name, false) if self.symbol('(') => {
                self.symbol(')').then(|| Expression::Function(name.to_ascii_lowercase()))?
            }
            Token::Word(word, false) if word.eq_ignore_ascii_case("NULL") => Expression::Null,
            Token::Word(word, _) if bare_words => Expression::Literal(word.clone()),
            Token::Symbol('-') => Expression::Literal(format!("-{}", self.literal()?)),
            Token::Word(..) | Token::Symbol(_) => return None,
        })
    }

    /// What follows `@@`: the scope, if one is named, and the variable's name.
    fn system_variable(&mut self) -> Option<(String, String)> {
        let name = self.name()?.to_ascii_lowercase();
        let is_scope = ["global", "session", "local", "persist", "persist_only"].contains(&name.as_str());
        if !is_scope || !self.symbol('.') {
            return Some((String::new(), name));
        }
        Some((name, self.name()?.to_ascii_lowercase()))
    }
}
