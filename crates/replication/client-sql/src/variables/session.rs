//! A client's own state: the variables that it set, its default database, its transaction.

use std::collections::BTreeMap;
use std::ops::Deref;

use binlogz_wire::session::{STATUS_AUTOCOMMIT, STATUS_IN_TRANSACTION};
use binlogz_wire::statement::TransactionStatement;

use crate::statement_answer::{Refusal, StatementAnswer, cell};
use crate::variables::source::{Collation, SourceVariables};

const UNKNOWN_CHARACTER_SET: (u16, [u8; 5]) = (1115, *b"42000");
const UNKNOWN_COLLATION: (u16, [u8; 5]) = (1273, *b"HY000");
const COLLATION_MISMATCH: (u16, [u8; 5]) = (1253, *b"42000");
/// The variables that SET NAMES sets.
const CHARACTER_SETS: [&str; 3] =
    ["character_set_client", "character_set_connection", "character_set_results"];
const COLLATION: &str = "collation_connection";

/// `@name`: values that a client set, and the rest of its session.
#[derive(Debug, Default)]
pub struct ClientVariables {
    pub(super) values: BTreeMap<String, Option<String>>,
    /// The lines of SHOW WARNINGS: level, number and text.
    pub(crate) warnings: Vec<(&'static str, u16, String)>,
    /// The system variables that it set for its session.
    pub(super) session: BTreeMap<String, SessionValue>,
    /// The client's identity and connection.
    pub client: ClientFacts,
    /// Whether it switched off that each statement is a transaction of its own.
    without_autocommit: bool,
    in_transaction: bool,
}

/// A system variable's value in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionValue {
    pub(super) shown: String,
    pub(super) selected: Option<String>,
}

impl SessionValue {
    pub(super) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        SessionValue { shown: text.clone(), selected: Some(text) }
    }
}

/// A client's identity, and its connection.
#[derive(Debug, Default)]
pub struct ClientFacts {
    /// The name of its account.
    pub user: String,
    /// The address from which it is connected.
    pub host: String,
    /// The number of its connection.
    pub connection: u32,
    /// The relay's port.
    pub port: u16,
    /// The session's default database.
    pub database: Option<String>,
    /// The number of the collation that it named at login.
    pub collation: u8,
}

impl Deref for ClientVariables {
    type Target = BTreeMap<String, Option<String>>;

    fn deref(&self) -> &Self::Target {
        &self.values
    }
}

impl ClientVariables {
    pub(crate) fn show_warnings(&self) -> StatementAnswer<'static> {
        let warnings = self.warnings.iter();
        let rows =
            warnings.map(|(level, code, message)| vec![cell(level), cell(code), cell(message)]).collect();
        StatementAnswer::rows(&[("Level", false), ("Code", true), ("Message", false)], rows)
    }

    /// Forgets the warnings: another server has answered.
    pub fn clear_warnings(&mut self) {
        self.warnings.clear();
    }

    /// A client has logged in.
    pub fn log_in(&mut self, client: ClientFacts, source: Option<&SourceVariables>) {
        let collation = client.collation;
        self.client = client;
        let Some(source) = source else { return };
        let autocommit = source.variables.get("autocommit");
        self.without_autocommit = autocommit.is_some_and(|variable| variable.shown == "OFF");
        if let Some(collation) = source.collation(collation) {
            self.set_collation(collation);
        }
    }

    /// The status flags of answers.
    pub fn status(&self) -> u16 {
        let autocommit = if self.without_autocommit { 0 } else { STATUS_AUTOCOMMIT };
        autocommit | if self.in_transaction { STATUS_IN_TRANSACTION } else { 0 }
    }

    /// Whether a transaction was begun that has not ended.
    pub(crate) fn transaction(&mut self, statement: TransactionStatement) {
        self.in_transaction = match statement {
            TransactionStatement::Begin => true,
            TransactionStatement::End { chain } => chain,
        };
    }

    /// The status flags that the source answered with.
    pub fn follow(&mut self, status: u16) {
        self.without_autocommit = status & STATUS_AUTOCOMMIT == 0;
        self.in_transaction = status & STATUS_IN_TRANSACTION != 0;
    }

    pub(super) fn set_autocommit(&mut self, on: bool) {
        self.without_autocommit = !on;
        // Switching it on ends the transaction.
        self.in_transaction &= !on;
    }

    /// SET NAMES.
    pub(crate) fn set_names(
        &mut self,
        source: Option<&SourceVariables>,
        character_set: Option<&str>,
        collation: Option<&str>,
    ) -> Result<(), Refusal> {
        // As long as the source was never reached, any name will do.
        let Some(source) = source.filter(|source| !source.collations.is_empty()) else { return Ok(()) };
        let Some(character_set) = character_set else {
            for name in CHARACTER_SETS.into_iter().chain([COLLATION]) {
                self.session.remove(name);
            }
            return Ok(());
        };
        let is_same = |known: &str, named: &str| {
            // 8.0 renamed utf8.
            let older = known.replacen("utf8mb3", "utf8", 1);
            let newer =
                if known.starts_with("utf8mb") { known.into() } else { known.replacen("utf8", "utf8mb3", 1) };
            [known, &older, &newer].iter().any(|known| known.eq_ignore_ascii_case(named))
        };
        let of_set = |one: &&Collation| is_same(&one.character_set, character_set);
        if !source.collations.iter().any(|one| of_set(&one)) {
            return Err((UNKNOWN_CHARACTER_SET, format!("Unknown character set: '{character_set}'")));
        }
        let found = match collation {
            None => source.collations.iter().filter(of_set).find(|one| one.is_default),
            Some(named) => {
                let found = source.collations.iter().find(|one| is_same(&one.name, named));
                let Some(found) = found else {
                    return Err((UNKNOWN_COLLATION, format!("Unknown collation: '{named}'")));
                };
                if !of_set(&found) {
                    let message =
                        format!("COLLATION '{named}' is not valid for CHARACTER SET '{character_set}'");
                    return Err((COLLATION_MISMATCH, message));
                }
                Some(found)
            }
        };
        if let Some(found) = found {
            self.set_collation(found);
        }
        Ok(())
    }

    fn set_collation(&mut self, collation: &Collation) {
        for name in CHARACTER_SETS {
            self.session.insert(name.into(), SessionValue::text(&collation.character_set));
        }
        self.session.insert(COLLATION.into(), SessionValue::text(&collation.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> SourceVariables {
        let collation = |id, name: &str, character_set: &str, is_default| Collation {
            id,
            name: name.into(),
            character_set: character_set.into(),
            is_default,
        };
        SourceVariables {
            collations: vec![
                collation(33, "utf8mb3_general_ci", "utf8mb3", true),
                collation(255, "utf8mb4_0900_ai_ci", "utf8mb4", true),
                collation(46, "utf8mb4_bin", "utf8mb4", false),
            ],
            ..SourceVariables::default()
        }
    }

    #[test]
    fn the_names_of_the_session_are_those_of_login_until_they_are_set() {
        let source = source();
        let mut variables = ClientVariables::default();
        let value = |variables: &ClientVariables, name: &str| {
            variables.session.get(name).map(|value| value.shown.clone())
        };
        variables.log_in(ClientFacts { collation: 46, ..ClientFacts::default() }, Some(&source));
        assert_eq!(value(&variables, COLLATION).as_deref(), Some("utf8mb4_bin"));
        assert_eq!(value(&variables, "character_set_client").as_deref(), Some("utf8mb4"));
        variables.set_names(Some(&source), Some("utf8"), None).unwrap();
        assert_eq!(value(&variables, COLLATION).as_deref(), Some("utf8mb3_general_ci"));
        variables.set_names(Some(&source), Some("UTF8MB4"), None).unwrap();
        assert_eq!(value(&variables, COLLATION).as_deref(), Some("utf8mb4_0900_ai_ci"));
        for (character_set, collation, code) in
            [("latin9", None, 1115), ("utf8mb4", Some("x_bin"), 1273), ("utf8", Some("utf8mb4_bin"), 1253)]
        {
            let refused = variables.set_names(Some(&source), Some(character_set), collation).unwrap_err();
            assert_eq!(refused.0.0, code, "{refused:?}");
        }
        variables.set_names(Some(&source), None, None).unwrap();
        assert_eq!(value(&variables, COLLATION), None);
        variables.set_names(None, Some("anything"), None).unwrap();
    }

    #[test]
    fn transactions_show_in_the_status() {
        let mut variables = ClientVariables::default();
        let mut statuses = vec![variables.status()];
        for statement in [
            TransactionStatement::Begin,
            TransactionStatement::End { chain: true },
            TransactionStatement::End { chain: false },
        ] {
            variables.transaction(statement);
            statuses.push(variables.status());
        }
        variables.set_autocommit(false);
        variables.transaction(TransactionStatement::Begin);
        statuses.push(variables.status());
        variables.set_autocommit(true);
        statuses.push(variables.status());
        assert_eq!(statuses, [2, 3, 3, 2, 1, 2]);
    }
}
