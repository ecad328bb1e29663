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
mod table;
mod token;

pub use admin::AdminStatement;
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

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Placed],
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

    fn number(&mut self) -> Option<u64> {
        self.literal()?.parse().ok()
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

    fn keyword(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        let Token::Word(word, false) = &first.token else { return None };
        self.tokens = rest;
        Some(word.to_ascii_uppercase())
    }

    fn is_keyword(&mut self, keyword: &str) -> bool {
        let before = self.tokens;
        let found = self.keyword().is_some_and(|word| word == keyword);
        if !found {
            self.tokens = before;
        }
        found
    }

    fn symbol(&mut self, symbol: char) -> bool {
        match self.tokens.split_first() {
            Some((first, rest)) if first.token == Token::Symbol(symbol) => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }

    fn name(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        let (Token::Word(name, _) | Token::Literal(name)) = &first.token else { return None };
        self.tokens = rest;
        Some(name.clone())
    }

    fn literal(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        let Token::Literal(text) = &first.token else { return None };
        self.tokens = rest;
        Some(text.clone())
    }
}

/// Whether a name fits a pattern of LIKE: `%` is any text, `_` any letter, `\` takes the next one as it is.
pub fn is_like(name: &str, pattern: &str) -> bool {
    let name = name.as_bytes();
    // Which beginnings of the name fit the pattern so far, by their lengths.
    let mut fits: Vec<bool> = (0..=name.len()).map(|length| length == 0).collect();
    let mut pattern = pattern.bytes();
    while let Some(letter) = pattern.next() {
        if letter == b'%' {
            let mut any = false;
            for slot in &mut fits {
                any |= *slot;
                *slot = any;
            }
            continue;
        }
        let (letter, any) = match letter {
            b'\\' => (pattern.next().unwrap_or(letter), false),
            _ => (letter, letter == b'_'),
        };
        let longer =
            fits.iter().zip(name).map(|(fit, next)| *fit && (any || next.eq_ignore_ascii_case(&letter)));
        fits = std::iter::once(false).chain(longer).collect();
    }
    fits.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, value: Expression) -> (Target, Expression) {
        (Target::UserVariable(name.into()), value)
    }

    #[test]
    fn what_replicas_say() {
        let literal = |text: &str| Expression::Literal(text.into());
        let system = |name: &str| Expression::SystemVariable(name.into());
        for (text, expected) in [
            (
                "SELECT UNIX_TIMESTAMP()",
                Statement::Select(vec![(
                    Expression::Function("unix_timestamp".into()),
                    "UNIX_TIMESTAMP()".into(),
                )]),
            ),
            (
                "select @@GLOBAL.SERVER_ID",
                Statement::Select(vec![(system("server_id"), "@@GLOBAL.SERVER_ID".into())]),
            ),
            (
                "SET @master_heartbeat_period = 30000000000, @source_heartbeat_period= 30000000000;",
                Statement::Set(vec![
                    user("master_heartbeat_period", literal("30000000000")),
                    user("source_heartbeat_period", literal("30000000000")),
                ]),
            ),
            (
                "/* a proxy's */ set\n@source_binlog_checksum:=@@global.binlog_checksum -- why",
                Statement::Set(vec![user("source_binlog_checksum", system("binlog_checksum"))]),
            ),
            (
                "SET @`Slave_UUID` = 'it''s \\'me\\''",
                Statement::Set(vec![user("slave_uuid", literal("it's 'me'"))]),
            ),
            ("SET NAMES 'utf8mb4' COLLATE utf8mb4_bin", Statement::SetNames),
            (
                "SET SESSION net_write_timeout=600, autocommit = ON",
                Statement::Set(vec![
                    (Target::Session("net_write_timeout".into()), literal("600")),
                    (Target::Session("autocommit".into()), literal("ON")),
                ]),
            ),
            (
                "SET @@global.binlog_format = NULL",
                Statement::Set(vec![(Target::Global("binlog_format".into()), Expression::Null)]),
            ),
            (
                "SET GLOBAL a = '5', PERSIST b = 5, @@persist_only.c = ON, GLOBAL d = -5",
                Statement::Set(vec![
                    (Target::Global("a".into()), Expression::Text("5".into())),
                    (Target::Persist("b".into()), literal("5")),
                    (Target::Persist("c".into()), literal("ON")),
                    (Target::Global("d".into()), literal("-5")),
                ]),
            ),
            ("SHOW WARNINGS", Statement::ShowWarnings),
            ("show warnings limit 64", Statement::ShowWarnings),
            (
                "SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'",
                Statement::ShowVariables(Some("BINLOG_CHECKSUM".into())),
            ),
            (
                "SHOW VARIABLES WHERE Variable_name='server_id'",
                Statement::ShowVariables(Some("server_id".into())),
            ),
            ("SHOW MASTER STATUS", Statement::ShowBinaryLogStatus),
            ("show binary log status", Statement::ShowBinaryLogStatus),
            ("SHOW BINARY LOGS", Statement::ShowBinaryLogs),
            ("SHOW SLAVE HOSTS", Statement::ShowReplicas),
            ("SHOW BINLOG EVENTS", Statement::ShowBinlogEvents(EventsWanted::default())),
            (
                "show binlog events in 'binlog.000002' from 158 limit 3, 7;",
                Statement::ShowBinlogEvents(EventsWanted {
                    file: Some("binlog.000002".into()),
                    from: Some(158),
                    skip: 3,
                    count: Some(7),
                }),
            ),
            (
                "SHOW BINLOG EVENTS LIMIT 7 OFFSET 3",
                Statement::ShowBinlogEvents(EventsWanted {
                    skip: 3,
                    count: Some(7),
                    ..EventsWanted::default()
                }),
            ),
            ("SHOW REPLICA STATUS", Statement::ShowReplicaStatus),
            ("SHOW SLAVE STATUS FOR CHANNEL ''", Statement::ShowReplicaStatus),
            (
                "SELECT @@version_comment AS v, VERSION() LIMIT 1",
                Statement::Select(vec![
                    (system("version_comment"), "v".into()),
                    (Expression::Function("version".into()), "VERSION()".into()),
                ]),
            ),
        ] {
            assert_eq!(Statement::parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_nobody_should_say() {
        for text in [
            "",
            ";",
            "SELECT",
            "SELECT 1 FROM t",
            "SELECT @@",
            "SET @a",
            "SET @a = ",
            "SET @a = (SELECT 1)",
            "DROP TABLE t",
            "SHOW TABLES",
            "SELECT 'open",
            "/* open",
            "SELECT 1; DROP TABLE t",
            "SELECT sleep(9)",
            "SELECT $$",
            "SHOW BINARY",
            "SHOW BINLOG",
            "SHOW BINLOG EVENTS FROM x",
            "SHOW BINLOG EVENTS LIMIT 1,",
            "SHOW REPLICA STATUS FOR CHANNEL 'other'",
            "SET = 1",
            "@",
            "SELECT 1 AS",
            "`",
        ] {
            assert_eq!(Statement::parse(text), None, "{text}");
        }
    }

    #[test]
    fn names_fit_patterns() {
        for (name, pattern, fits) in [
            ("server_id", "SERVER_ID", true),
            ("server_id", "server%", true),
            ("server_id", "%id", true),
            ("server_id", "server\\_id", true),
            ("serverxid", "server\\_id", false),
            ("serverxid", "server_id", true),
            ("server_id", "server", false),
            ("", "%", true),
        ] {
            assert_eq!(is_like(name, pattern), fits, "{name} LIKE {pattern}");
        }
        assert!(!is_like(&"a".repeat(64), &("%a".repeat(5000) + "b")), "and it takes no time");
    }
}
