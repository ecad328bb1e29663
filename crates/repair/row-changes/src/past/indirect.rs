//! Statements logged as text that name other tables, and may have changed the table through a view, a trigger, a stored function
//! or a foreign key: the log has no rows of that.
//!
//! The server tells which tables lead to no other ([`IsolatedTables`]), and statements that only change those are harmless. If the
//! logs also define or drop a view, a trigger, a function or a foreign key, today's server can't tell, and they are refused as well.

use std::collections::HashSet;
use std::sync::Arc;

use crate::pass::{StatementWords, changed_tables};

/// The end of each reason.
const GO_ON: &str = "--over-statements goes on as if it had not";

/// Tables whose changes change no other table, as a server knows them.
#[derive(Debug, Default, Clone)]
pub(super) struct IsolatedTables {
    /// Databases and tables without triggers, in small letters.
    pub(super) tables: Arc<HashSet<(String, String)>>,
    /// The tables from which foreign keys lead to the table, and the table itself.
    pub(super) leading: HashSet<(String, String)>,
    /// Stored functions and, where there are any, views, which may call them; in small letters. `None`: they aren't known.
    pub(super) programs: Option<Arc<HashSet<String>>>,
}

/// Statements logged as text that change other tables by name.
#[derive(Debug)]
pub(super) struct IndirectStatements {
    isolated: IsolatedTables,
    /// Whether those that may have changed the table are only counted.
    are_passed: bool,
    passed: u64,
    harmless_count: u64,
    /// The first that only changes isolated tables.
    harmless: Option<String>,
    /// The first that defines what leads from one table to another.
    definition: Option<String>,
}

impl IndirectStatements {
    pub(super) fn new(isolated: IsolatedTables, are_passed: bool) -> Self {
        IndirectStatements {
            isolated,
            are_passed,
            passed: 0,
            harmless_count: 0,
            harmless: None,
            definition: None,
        }
    }

    /// The number of statements that were passed over and may have changed the table.
    pub(super) fn passed(&self) -> u64 {
        self.passed + if self.definition.is_some() { self.harmless_count } else { 0 }
    }

    /// Takes a statement that doesn't name the table as one that it changes; `shown` is the statement and its place. Returns
    /// the reason if the table can't be told any more.
    pub(super) fn take(
        &mut self,
        text: &str,
        words: &StatementWords,
        current: &str,
        shown: &str,
    ) -> Option<String> {
        if words.leaves_rows_alone() {
            return None;
        }
        if words.is_ddl() {
            if words.leads_elsewhere() {
                self.definition.get_or_insert_with(|| shown.to_owned());
            }
            if !words.fills_table() || !self.may_run_programs(words) {
                return self.both();
            }
        } else if self.is_isolated(text, words, current) {
            self.harmless_count += 1;
            self.harmless.get_or_insert_with(|| shown.to_owned());
            return self.both();
        }
        if self.are_passed {
            self.passed += 1;
            return None;
        }
        Some(format!(
            "{shown}: this statement names other tables, and may have changed the table through a view, a trigger, a stored \
             function or a foreign key; {GO_ON}"
        ))
    }

    fn is_isolated(&self, text: &str, words: &StatementWords, current: &str) -> bool {
        let is_isolated = |(database, table): (Option<String>, String)| {
            let database = database.unwrap_or_else(|| current.to_lowercase());
            let name = (database, table);
            self.isolated.tables.contains(&name) && !self.isolated.leading.contains(&name)
        };
        let tables = changed_tables(text);
        tables.is_some_and(|tables| tables.into_iter().all(is_isolated)) && !self.may_run_programs(words)
    }

    /// Whether a stored function may run in a statement.
    fn may_run_programs(&self, words: &StatementWords) -> bool {
        self.isolated.programs.as_ref().is_none_or(|programs| words.names_any(programs))
    }

    fn both(&self) -> Option<String> {
        let (Some(harmless), Some(definition)) = (&self.harmless, &self.definition) else { return None };
        (!self.are_passed).then(|| {
            format!(
                "{harmless}: whether this statement changed the table through a view, a trigger, a stored function or a foreign key \
                 can't be told, for they were changed by {definition}; {GO_ON}"
            )
        })
    }
}
