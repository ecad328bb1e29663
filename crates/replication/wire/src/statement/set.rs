//! SET: variables, the session's character set, the characteristics of transactions.
//!
//! ```text
//! SET target = expression, …            target: @name, [GLOBAL | PERSIST | SESSION] name, @@[global.]name
//! SET NAMES | CHARACTER SET | CHARSET  name [COLLATE name] | DEFAULT
//! SET any of both, …
//! SET [GLOBAL | SESSION] TRANSACTION  ISOLATION LEVEL … | READ ONLY | READ WRITE, …
//! ```

use super::token::Token;
use super::{Expression, Parser, Scope, Statement};

/// The target of an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssignmentTarget {
    /// `@name`, in lower case.
    UserVariable(String),
    /// A system variable of the session, in lower case.
    Session(String),
    /// A system variable of the whole server, in lower case.
    Global(String),
    /// A system variable of the whole server, kept across restarts, in lower case.
    Persist(String),
}

/// The settings of SET TRANSACTION.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewTransactions {
    /// Without a scope, the next transaction only.
    pub scope: Scope,
    /// The isolation level, as the variable of that name spells it: `READ-COMMITTED`.
    pub isolation: Option<String>,
    /// Whether they may only read.
    pub read_only: Option<bool>,
}

impl Parser<'_> {
    /// Parses the words after SET.
    pub(super) fn set(&mut self) -> Option<Statement> {
        let before = self.tokens;
        let scope = self.scope();
        if self.is_keyword("TRANSACTION") {
            return self.new_transactions(scope).map(Statement::SetTransaction);
        }
        self.tokens = before;
        let mut parts = Vec::new();
        loop {
            match self.names() {
                Some(names) => parts.push(names),
                None => {
                    let assignment = self.assignment()?;
                    match parts.last_mut() {
                        Some(Statement::Set(assignments)) => assignments.push(assignment),
                        _ => parts.push(Statement::Set(vec![assignment])),
                    }
                }
            }
            if !self.symbol(',') {
                break;
            }
        }
        // The usual ones are of one kind.
        if parts.len() == 1 { parts.pop() } else { Some(Statement::SetEach(parts)) }
    }

    fn assignment(&mut self) -> Option<(AssignmentTarget, Expression)> {
        let target = self.target()?;
        self.symbol(':');
        if !self.symbol('=') {
            return None;
        }
        let value = match (self.quoted_or_not(true)?, &target) {
            (Expression::Text(text), AssignmentTarget::UserVariable(_) | AssignmentTarget::Session(_)) => {
                Expression::Literal(text)
            }
            (value, _) => value,
        };
        Some((target, value))
    }

    fn target(&mut self) -> Option<AssignmentTarget> {
        let (first, rest) = self.tokens.split_first()?;
        match &first.token {
            Token::UserVariable(name) => {
                self.tokens = rest;
                Some(AssignmentTarget::UserVariable(name.clone()))
            }
            Token::SystemMark => {
                self.tokens = rest;
                let (scope, name) = self.system_variable()?;
                Some(match scope.as_str() {
                    "global" => AssignmentTarget::Global(name),
                    "persist" | "persist_only" => AssignmentTarget::Persist(name),
                    _ => AssignmentTarget::Session(name),
                })
            }
            _ if self.is_keyword("GLOBAL") => {
                self.name().map(|name| AssignmentTarget::Global(name.to_ascii_lowercase()))
            }
            _ if self.is_keyword("PERSIST") || self.is_keyword("PERSIST_ONLY") => {
                self.name().map(|name| AssignmentTarget::Persist(name.to_ascii_lowercase()))
            }
            _ => {
                let _ = self.is_keyword("SESSION") || self.is_keyword("LOCAL");
                self.name().map(|name| AssignmentTarget::Session(name.to_ascii_lowercase()))
            }
        }
    }

    /// Parses NAMES or CHARACTER SET and the words after them, if they are next; otherwise nothing is taken.
    fn names(&mut self) -> Option<Statement> {
        let before = self.tokens;
        let names = self.named();
        if names.is_none() {
            self.tokens = before;
        }
        names
    }

    fn named(&mut self) -> Option<Statement> {
        if !self.is_keyword("NAMES") && !self.is_keyword("CHARSET") {
            (self.is_keyword("CHARACTER") && self.is_keyword("SET")).then_some(())?;
        }
        if self.is_keyword("DEFAULT") {
            return Some(Statement::SetNames { character_set: None, collation: None });
        }
        let character_set = Some(self.name()?);
        let collation = if self.is_keyword("COLLATE") { Some(self.name()?) } else { None };
        Some(Statement::SetNames { character_set, collation })
    }

    /// Parses the words after SET TRANSACTION.
    fn new_transactions(&mut self, scope: Scope) -> Option<NewTransactions> {
        let mut wanted = NewTransactions { scope, ..NewTransactions::default() };
        loop {
            match self.keyword()?.as_str() {
                "ISOLATION" if self.is_keyword("LEVEL") => {
                    let first = self.keyword()?;
                    wanted.isolation = Some(match first.as_str() {
                        "REPEATABLE" if self.is_keyword("READ") => "REPEATABLE-READ".into(),
                        "READ" if self.is_keyword("COMMITTED") => "READ-COMMITTED".into(),
                        "READ" if self.is_keyword("UNCOMMITTED") => "READ-UNCOMMITTED".into(),
                        "SERIALIZABLE" => first,
                        _ => return None,
                    });
                }
                "READ" => wanted.read_only = Some(self.only_or_write()?),
                _ => return None,
            }
            if !self.symbol(',') {
                return Some(wanted);
            }
        }
    }

    /// The word after READ: whether it is ONLY, not WRITE.
    pub(super) fn only_or_write(&mut self) -> Option<bool> {
        if self.is_keyword("ONLY") { Some(true) } else { self.is_keyword("WRITE").then_some(false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_set_up_their_sessions() {
        let names = |character_set: &str, collation: Option<&str>| Statement::SetNames {
            character_set: Some(character_set.into()),
            collation: collation.map(str::to_owned),
        };
        let transactions = |scope, isolation: Option<&str>, read_only| {
            let isolation = isolation.map(str::to_owned);
            Statement::SetTransaction(NewTransactions { scope, isolation, read_only })
        };
        let sql_mode = || Expression::SystemVariable(Scope::Any, "sql_mode".into());
        for (text, expected) in [
            ("SET NAMES utf8mb4", names("utf8mb4", None)),
            ("set names 'latin1' collate 'latin1_bin'", names("latin1", Some("latin1_bin"))),
            ("SET NAMES DEFAULT", Statement::SetNames { character_set: None, collation: None }),
            ("SET CHARACTER SET utf8", names("utf8", None)),
            ("/*!40101 SET NAMES binary */", names("binary", None)),
            (
                "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
                transactions(Scope::Session, Some("REPEATABLE-READ"), None),
            ),
            (
                "SET TRANSACTION READ ONLY, ISOLATION LEVEL READ COMMITTED",
                transactions(Scope::Any, Some("READ-COMMITTED"), Some(true)),
            ),
            (
                "SET sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')",
                Statement::Set(vec![(
                    AssignmentTarget::Session("sql_mode".into()),
                    Expression::Concat(vec![sql_mode(), Expression::Literal(",STRICT_TRANS_TABLES".into())]),
                )]),
            ),
            (
                "SET @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), ',NO_AUTO_VALUE_ON_ZERO')",
                Statement::Set(vec![(
                    AssignmentTarget::Session("sql_mode".into()),
                    Expression::Concat(vec![
                        sql_mode(),
                        Expression::Literal(",STRICT_ALL_TABLES".into()),
                        Expression::Literal(",NO_AUTO_VALUE_ON_ZERO".into()),
                    ]),
                )]),
            ),
            (
                "SET character = 1",
                Statement::Set(vec![(
                    AssignmentTarget::Session("character".into()),
                    Expression::Literal("1".into()),
                )]),
            ),
            (
                "SET NAMES utf8mb4 COLLATE utf8mb4_bin, autocommit = 1, @a := 2, CHARACTER SET DEFAULT, names = 3",
                Statement::SetEach(vec![
                    names("utf8mb4", Some("utf8mb4_bin")),
                    Statement::Set(vec![
                        (AssignmentTarget::Session("autocommit".into()), Expression::Literal("1".into())),
                        (AssignmentTarget::UserVariable("a".into()), Expression::Literal("2".into())),
                    ]),
                    Statement::SetNames { character_set: None, collation: None },
                    Statement::Set(vec![(
                        AssignmentTarget::Session("names".into()),
                        Expression::Literal("3".into()),
                    )]),
                ]),
            ),
        ] {
            assert_eq!(Statement::parse(text), Some(expected), "{text}");
        }
        for text in [
            "SET NAMES",
            "SET NAMES utf8 COLLATE",
            "SET NAMES utf8,",
            "SET autocommit = 1, NAMES",
            "SET NAMES utf8, TRANSACTION READ ONLY",
            "SET autocommit = 1, CHARACTER utf8",
            "SET TRANSACTION",
            "SET TRANSACTION ISOLATION LEVEL READ",
            "SET TRANSACTION READ ONLY,",
            "SET a = CONCAT(",
            "SET a = CONCAT(1",
            "SET a = CONCAT(CONCAT(1)",
            "SET a = CONCAT(CONCAT(1)))",
            "SET a = CONCAT(CONCAT())",
            "/*!40101 SET NAMES binary",
        ] {
            assert_eq!(Statement::parse(text), None, "{text}");
        }
        let deep = "CONCAT(".repeat(4_990);
        assert_eq!(Statement::parse(&format!("SET a = {deep}")), None);
        assert_eq!(Statement::parse(&format!("SELECT {deep}1, 2")), None);
    }
}
