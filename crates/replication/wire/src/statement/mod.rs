//! The statements that replicas, mysqlbinlog and change-data-capture clients send to a source, understood by
//! their structure: spelling, white space, comments and the order of assignments don't matter.
//!
//! ```text
//! SELECT expression [[AS] name], … [LIMIT n] · SELECT … FROM …: see `table`
//! SET target = expression, …            target: @name, [GLOBAL | PERSIST | SESSION] name, @@[global.]name
//! SET NAMES …, … · SET [SESSION] TRANSACTION …: see `set`
//! BEGIN · START TRANSACTION … · COMMIT · ROLLBACK · USE name: see `transaction`
//! SHOW [GLOBAL | SESSION] VARIABLES [LIKE text | WHERE Variable_name = text …]: see `shown_variables`
//! SHOW BINARY LOGS | MASTER LOGS · SHOW BINARY LOG STATUS | MASTER STATUS · SHOW REPLICAS | SLAVE HOSTS
//! SHOW WARNINGS [LIMIT n]
//! SHOW BINLOG EVENTS [IN text] [FROM n] [LIMIT [n,] n] · SHOW REPLICA | SLAVE STATUS [FOR CHANNEL text]
//! PURGE BINARY LOGS TO text | BEFORE text · FLUSH BINARY LOGS · START | STOP REPLICA [IO_THREAD]: see `admin`
//!
//! expression: @name · @@[global.]name · text · number · function() · CONCAT(expression, …) · in SET also a word
//! ```
//!
//! The statements are taken from the general log of 9.7.4 and from the clients' sources. This is only the
//! grammar: the server evaluates the expressions.

mod admin;
mod like;
mod parser;
mod set;
mod shown_variables;
mod table;
#[cfg(test)]
mod tests;
mod token;
mod transaction;

pub use admin::AdminStatement;
pub use like::is_like;
use parser::Parser;
pub use set::{AssignmentTarget, NewTransactions};
pub use shown_variables::{NamePattern, ShownVariables};
pub use table::{StatementTable, TableQuery};
use token::{PlacedToken, Token, tokens};
pub use transaction::TransactionStatement;

/// A statement that a source may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// Values, and their column names.
    Select(Vec<(Expression, String)>),
    /// Rows of a table.
    SelectFrom(TableQuery),
    /// Assignments.
    Set(Vec<(AssignmentTarget, Expression)>),
    /// The session's character set and collation.
    SetNames {
        /// The character set; `None` means the server's default.
        character_set: Option<String>,
        /// The collation; by default the character set's own.
        collation: Option<String>,
    },
    /// Assignments and character sets in one statement, in its order: [`Statement::Set`] and [`Statement::SetNames`].
    SetEach(Vec<Statement>),
    /// The characteristics of transactions.
    SetTransaction(NewTransactions),
    /// The start or end of a transaction.
    Transaction(TransactionStatement),
    /// The default database of later statements.
    Use(String),
    /// System variables.
    ShowVariables(ShownVariables),
    /// The files of the binary log.
    ShowBinaryLogs,
    /// Where the binary log ends.
    ShowBinaryLogStatus,
    /// The registered replicas.
    ShowReplicas(ReplicationWords),
    /// The events of a file of the binary log.
    ShowBinlogEvents(EventsWanted),
    /// The state of receiving.
    ShowReplicaStatus(ReplicationWords),
    /// The warnings of the last statement.
    ShowWarnings,
    /// A statement that changes the server's state.
    Admin(AdminStatement),
}

/// The words in which a statement about replication is said, and its answer's columns are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicationWords {
    /// Source and replica, since 8.0.22.
    Current,
    /// Those of before.
    Older,
}

/// The events that SHOW BINLOG EVENTS is to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsWanted {
    /// The file; by default the first.
    pub file: Option<String>,
    /// The offset in the file to start from.
    pub from: Option<u64>,
    /// The number of events to skip.
    pub skip: u64,
    /// The largest number of events to show.
    pub count: Option<u64>,
}

/// An expression that has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// `@name`, in lower case.
    UserVariable(String),
    /// `@@name`, in lower case.
    SystemVariable(Scope, String),
    /// `name()`, in lower case.
    Function(String),
    /// `CONCAT(expression, …)`, none of which is one.
    Concat(Vec<Expression>),
    /// A text, a number, or a bare word such as ON.
    Literal(String),
    /// A quoted text, where one must tell it from a number: in SELECT, and in SET of a variable of the server.
    Text(String),
    /// NULL.
    Null,
}

/// Which of a system variable's values is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The session's if there is one, else the whole server's.
    #[default]
    Any,
    /// The session's.
    Session,
    /// The whole server's.
    Global,
}

impl Statement {
    /// Reads a statement; `None` if it is none of these.
    pub fn parse(text: &str) -> Option<Statement> {
        let tokens = tokens(text)?;
        let mut parser = Parser { text, tokens: &tokens };
        let statement = parser.statement()?;
        parser.symbol(';');
        parser.tokens.is_empty().then_some(statement)
    }
}

/// Whether one of these words, in lower case, is in a statement, as a name or in a text. So is one that can't be taken
/// apart.
pub fn mentions(text: &str, words: &[&str]) -> bool {
    let Some(tokens) = tokens(text) else {
        let text = text.to_ascii_lowercase();
        return words.iter().any(|word| text.contains(word));
    };
    tokens.iter().any(|placed| {
        let (Token::Word(found, _) | Token::Literal(found)) = &placed.token else { return false };
        words.iter().any(|word| found.eq_ignore_ascii_case(word))
    })
}

/// Whether one of these system variables, in lower case, is in a statement. So is one that can't be taken apart.
pub fn mentions_variable(text: &str, names: &[&str]) -> bool {
    let Some(tokens) = tokens(text) else { return mentions(text, names) };
    let mut parser = Parser { text, tokens: &tokens };
    while let Some((first, rest)) = parser.tokens.split_first() {
        parser.tokens = rest;
        if first.token == Token::SystemMark
            && parser.system_variable().is_some_and(|(_, name)| names.contains(&name.as_str()))
        {
            return true;
        }
    }
    false
}

/// A statement's first word, in capitals.
pub fn first_word(text: &str) -> Option<String> {
    let tokens = tokens(text)?;
    Parser { text, tokens: &tokens }.keyword()
}

impl Parser<'_> {
    fn statement(&mut self) -> Option<Statement> {
        match self.keyword()?.as_str() {
            "SELECT" => self.select_from().or_else(|| self.select()),
            "SET" => self.set(),
            "SHOW" => self.show(),
            "USE" => self.name().map(Statement::Use),
            first if self.is_transaction(first) => self.transaction(first).map(Statement::Transaction),
            first => self.admin(first).map(Statement::Admin),
        }
    }

    fn select(&mut self) -> Option<Statement> {
        let mut items = Vec::new();
        loop {
            let begin = self.tokens.first()?.begin;
            let before = self.tokens;
            // A bare word would be a column.
            let expression = self.quoted_or_not(false)?;
            let end = before.get(before.len() - self.tokens.len() - 1)?.end;
            let alias = if self.is_keyword("AS") {
                Some(self.name()?)
            } else {
                match self.tokens.first() {
                    Some(PlacedToken { token: Token::Word(word, _), .. })
                        if !word.eq_ignore_ascii_case("LIMIT") =>
                    {
                        Some(self.name()?)
                    }
                    _ => None,
                }
            };
            let name = match (alias, &expression) {
                (Some(alias), _) => alias,
                // The column of a text is called by it, without the quotes.
                (None, Expression::Text(text)) => text.clone(),
                (None, _) => self.text.get(begin..end)?.to_owned(),
            };
            items.push((expression, name));
            if !self.symbol(',') {
                break;
            }
        }
        if self.is_keyword("LIMIT") {
            self.literal()?;
        }
        Some(Statement::Select(items))
    }

    fn show(&mut self) -> Option<Statement> {
        let scope = self.scope();
        match self.keyword()?.as_str() {
            "VARIABLES" => self.shown_variables(scope).map(Statement::ShowVariables),
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
            "REPLICAS" => Some(Statement::ShowReplicas(ReplicationWords::Current)),
            "REPLICA" => self.replica_status(ReplicationWords::Current),
            "SLAVE" if self.is_keyword("HOSTS") => Some(Statement::ShowReplicas(ReplicationWords::Older)),
            "SLAVE" => self.replica_status(ReplicationWords::Older),
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

    fn replica_status(&mut self, words: ReplicationWords) -> Option<Statement> {
        self.is_keyword("STATUS").then_some(())?;
        if self.is_keyword("FOR") {
            self.is_keyword("CHANNEL").then_some(())?;
            // There is one channel, whose name is empty.
            self.literal().filter(String::is_empty)?;
        }
        Some(Statement::ShowReplicaStatus(words))
    }

    fn expression(&mut self, bare_words: bool) -> Option<Expression> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(match &first.token {
            Token::UserVariable(name) => Expression::UserVariable(name.clone()),
            Token::SystemMark => {
                let (scope, name) = self.system_variable()?;
                let scope = match scope.as_str() {
                    "" => Scope::Any,
                    "session" | "local" => Scope::Session,
                    _ => Scope::Global,
                };
                Expression::SystemVariable(scope, name)
            }
            Token::Literal(text) => Expression::Literal(text.clone()),
            Token::Word(name, false) if self.symbol('(') => {
                if name.eq_ignore_ascii_case("CONCAT") {
                    return self.concatenated().map(Expression::Concat);
                }
                self.symbol(')').then(|| Expression::Function(name.to_ascii_lowercase()))?
            }
            Token::Word(word, false) if word.eq_ignore_ascii_case("NULL") => Expression::Null,
            Token::Word(word, false) if word.eq_ignore_ascii_case("CURRENT_USER") => {
                Expression::Function(word.to_ascii_lowercase())
            }
            Token::Word(word, _) if bare_words => Expression::Literal(word.clone()),
            Token::Symbol('-') => Expression::Literal(format!("-{}", self.literal()?)),
            Token::Word(..) | Token::Symbol(_) => return None,
        })
    }

    /// An expression, in which a quoted text is distinguished from a number.
    fn quoted_or_not(&mut self, bare_words: bool) -> Option<Expression> {
        let first = self.tokens.first()?;
        let is_quoted = self.text.get(first.begin..).is_some_and(|text| text.starts_with(['\'', '"']));
        Some(match self.expression(bare_words)? {
            Expression::Literal(text) if is_quoted => Expression::Text(text),
            expression => expression,
        })
    }

    /// The expressions up to the closing parenthesis. Those of a CONCAT among them are its own: the whole is the same, and a statement
    /// may have thousands of parentheses, too many to call itself for each.
    fn concatenated(&mut self) -> Option<Vec<Expression>> {
        let mut parts = Vec::new();
        let mut open = 1_usize;
        loop {
            while self.begins_concat() {
                open += 1;
            }
            parts.push(self.expression(false)?);
            while self.symbol(')') {
                open -= 1;
                if open == 0 {
                    return Some(parts);
                }
            }
            self.symbol(',').then_some(())?;
        }
    }

    /// Takes CONCAT and its parenthesis if they are next.
    fn begins_concat(&mut self) -> bool {
        let [first, second, rest @ ..] = self.tokens else { return false };
        let is_name = matches!(&first.token, Token::Word(name, false) if name.eq_ignore_ascii_case("CONCAT"));
        let is_it = is_name && second.token == Token::Symbol('(');
        if is_it {
            self.tokens = rest;
        }
        is_it
    }

    /// GLOBAL, SESSION or LOCAL, if one is next.
    fn scope(&mut self) -> Scope {
        if self.is_keyword("GLOBAL") {
            Scope::Global
        } else if self.is_keyword("SESSION") || self.is_keyword("LOCAL") {
            Scope::Session
        } else {
            Scope::Any
        }
    }

    /// Parses the words after `@@`: the scope, if one is named, and the variable's name.
    fn system_variable(&mut self) -> Option<(String, String)> {
        let name = self.name()?.to_ascii_lowercase();
        let is_scope = ["global", "session", "local", "persist", "persist_only"].contains(&name.as_str());
        if !is_scope || !self.symbol('.') {
            return Some((String::new(), name));
        }
        Some((name, self.name()?.to_ascii_lowercase()))
    }
}
