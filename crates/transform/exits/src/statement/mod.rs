//! Statements: which may leave, and in what words.
//!
//! | statement | leaves |
//! |---|---|
//! | BEGIN, COMMIT, ROLLBACK | as it is |
//! | SAVEPOINT, XA | with a number or a hash in the place of its name ([`control`]) |
//! | CREATE, ALTER, DROP, RENAME, TRUNCATE TABLE, indexes, databases | without comments; of a table with masked columns only without values that may be theirs ([`definition`]) |
//! | views, triggers, routines, accounts | no |
//! | anything else | no, and it is counted as a change that is missing |

pub(crate) mod control;
mod definition;
mod words;

use crate::counts::LeftOut;
use crate::policy::{ExitPolicy, TableExit};
use crate::table::plan::shown;
use definition::{DefinitionForm, checked_definition};
use words::{LoggedWords, TableWord};

/// What becomes of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StatementVerdict {
    /// It leaves in these words.
    Pass(String),
    /// It is left out, as the policy says, or because it changes no rows.
    LeaveOut(LeftOut),
    /// It is left out, and what it changes is missing: why.
    Unmasked(String),
    /// The policy doesn't say what is to become of what it makes.
    Refused(String),
}

/// A statement and what its session takes it for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedStatement<'s> {
    pub(crate) text: &'s [u8],
    pub(crate) database: &'s str,
    /// ANSI_QUOTES.
    pub(crate) quotes_names: bool,
    /// NO_BACKSLASH_ESCAPES.
    pub(crate) keeps_backslashes: bool,
}

const OF_ROWS: &str = "statements that change rows can't be masked (binlog_format=ROW logs rows)";
const UNREAD: &str = "statements that can't be read for certain";

/// Judges a statement that is no transaction control.
pub(crate) fn judge(policy: &ExitPolicy, statement: &LoggedStatement<'_>) -> StatementVerdict {
    let words = std::str::from_utf8(statement.text)
        .ok()
        .filter(|text| !(statement.keeps_backslashes && text.contains('\\')))
        .and_then(LoggedWords::of)
        .and_then(|words| if statement.quotes_names { words.quoting_names() } else { Some(words) });
    let Some(words) = words else { return StatementVerdict::Unmasked(UNREAD.to_owned()) };
    let judge = StatementJudge { policy, database: statement.database };
    judge.statement(words).unwrap_or_else(|| StatementVerdict::Unmasked(UNREAD.to_owned()))
}

struct StatementJudge<'p> {
    policy: &'p ExitPolicy,
    database: &'p str,
}

impl StatementJudge<'_> {
    /// `None`: it can't be read.
    fn statement(&self, mut words: LoggedWords) -> Option<StatementVerdict> {
        let other = Some(StatementVerdict::LeaveOut(LeftOut::OtherStatements));
        match words.take_word()?.as_str() {
            "CREATE" => {
                if words.takes("OR") {
                    words.takes("REPLACE");
                }
                words.takes("TEMPORARY");
                match words.take_word().as_deref() {
                    Some("TABLE") => self.create(words),
                    Some("SEQUENCE") => {
                        words.takes_all(&["IF", "NOT", "EXISTS"]);
                        self.of_table(words, DefinitionForm::Change)
                    }
                    Some("DATABASE" | "SCHEMA") => database(words),
                    Some("UNIQUE" | "FULLTEXT" | "SPATIAL" | "INDEX") => self.index(words),
                    Some("ONLINE" | "OFFLINE") => self.index(words),
                    _ => other,
                }
            }
            "ALTER" => {
                while words.takes("ONLINE") || words.takes("OFFLINE") || words.takes("IGNORE") {}
                match words.take_word().as_deref() {
                    Some("TABLE" | "SEQUENCE") => {
                        words.takes_all(&["IF", "EXISTS"]);
                        self.of_table(words, DefinitionForm::Change)
                    }
                    Some("DATABASE" | "SCHEMA") => database(words),
                    _ => other,
                }
            }
            "DROP" => {
                let temporary = if words.takes("TEMPORARY") { "TEMPORARY " } else { "" };
                match words.take_word().as_deref() {
                    Some(kind @ ("TABLE" | "TABLES" | "SEQUENCE")) => {
                        self.drop(words, &format!("DROP {temporary}{kind}"))
                    }
                    Some("INDEX") => self.index(words),
                    Some("DATABASE" | "SCHEMA") => database(words),
                    _ => other,
                }
            }
            "RENAME" => match words.take_word().as_deref() {
                Some("TABLE" | "TABLES") => self.rename(words),
                _ => other,
            },
            "TRUNCATE" => {
                words.takes("TABLE");
                self.of_table(words, DefinitionForm::Change)
            }
            "SET" if words.takes("STATEMENT") => Some(StatementVerdict::Unmasked(OF_ROWS.to_owned())),
            "SET" | "GRANT" | "REVOKE" | "FLUSH" | "ANALYZE" | "OPTIMIZE" | "REPAIR" | "CHECK"
            | "INSTALL" | "UNINSTALL" => other,
            _ => Some(StatementVerdict::Unmasked(OF_ROWS.to_owned())),
        }
    }

    fn create(&self, mut words: LoggedWords) -> Option<StatementVerdict> {
        words.takes_all(&["IF", "NOT", "EXISTS"]);
        if words.has_word("SELECT") || words.gives_rows() {
            return Some(StatementVerdict::Unmasked(OF_ROWS.to_owned()));
        }
        self.of_table(words, DefinitionForm::Create)
    }

    fn index(&self, mut words: LoggedWords) -> Option<StatementVerdict> {
        words.skip_to("ON")?;
        self.of_table(words, DefinitionForm::Index)
    }

    /// What becomes of the table of a name.
    fn exit(&self, table: &TableWord) -> TableExit {
        let database = table.database.as_deref().unwrap_or(self.database);
        self.policy.table(database.as_bytes(), table.name.as_bytes())
    }

    fn shown(&self, table: &TableWord) -> String {
        let database = table.database.as_deref().unwrap_or(self.database);
        shown(database.as_bytes(), table.name.as_bytes())
    }

    /// A statement about the table that is named next.
    fn of_table(&self, mut words: LoggedWords, form: DefinitionForm) -> Option<StatementVerdict> {
        let table = words.take_table()?;
        // The account of a FEDERATED table stands there.
        if words.has_word("CONNECTION") {
            let shown = self.shown(&table);
            return Some(StatementVerdict::Unmasked(format!("{shown}: statements with CONNECTION")));
        }
        let own = self.exit(&table);
        if let Some(other) = self.names_another(&words, &own) {
            return Some(self.refused(&table, &other));
        }
        Some(match own {
            TableExit::LeaveOut => StatementVerdict::LeaveOut(LeftOut::TableStatements),
            TableExit::Keep => StatementVerdict::Pass(words.text()),
            TableExit::Masked(rules) => match checked_definition(self.policy, &rules, words, form) {
                Ok(text) => StatementVerdict::Pass(text),
                Err(why) => why.verdict(self.policy, &rules, &self.shown(&table)),
            },
        })
    }

    /// The table that an ALTER gives the name or the rows of this one to, if other rules are for it.
    fn names_another(&self, words: &LoggedWords, own: &TableExit) -> Option<TableWord> {
        words.tables_of_rename().into_iter().find(|table| self.exit(table) != *own)
    }

    fn refused(&self, table: &TableWord, other: &TableWord) -> StatementVerdict {
        StatementVerdict::Refused(format!(
            "{} becomes {}, for which the policy has other rules, expected the same for both names",
            self.shown(table),
            self.shown(other)
        ))
    }

    fn rename(&self, mut words: LoggedWords) -> Option<StatementVerdict> {
        words.takes_all(&["IF", "EXISTS"]);
        let mut exits = Vec::new();
        loop {
            let from = words.take_table()?;
            if !words.takes("TO") {
                return None;
            }
            let to = words.take_table()?;
            let exit = self.exit(&from);
            if exit != self.exit(&to) {
                return Some(self.refused(&from, &to));
            }
            exits.push(exit);
            if !words.takes_comma() {
                break;
            }
        }
        let left_out = exits.iter().filter(|exit| **exit == TableExit::LeaveOut).count();
        Some(match left_out {
            0 => StatementVerdict::Pass(words.text()),
            count if count == exits.len() => StatementVerdict::LeaveOut(LeftOut::TableStatements),
            _ => StatementVerdict::Refused(
                "RENAME TABLE names tables that are left out and others, expected one kind".to_owned(),
            ),
        })
    }

    /// `front`: the words before the names.
    fn drop(&self, mut words: LoggedWords, front: &str) -> Option<StatementVerdict> {
        let is_conditional = words.takes_all(&["IF", "EXISTS"]);
        let mut tables = Vec::new();
        let mut count = 0;
        loop {
            let table = words.take_table()?;
            count += 1;
            if self.exit(&table) != TableExit::LeaveOut {
                tables.push(table.quoted());
            }
            if !words.takes_comma() {
                break;
            }
        }
        if tables.is_empty() {
            return Some(StatementVerdict::LeaveOut(LeftOut::TableStatements));
        }
        if tables.len() == count {
            return Some(StatementVerdict::Pass(words.text()));
        }
        let conditional = if is_conditional { "IF EXISTS " } else { "" };
        Some(StatementVerdict::Pass(format!("{front} {conditional}{}", tables.join(","))))
    }
}

/// A statement about a database: its only text says whether it is encrypted.
fn database(words: LoggedWords) -> Option<StatementVerdict> {
    let is_plain = words.texts_follow(&["ENCRYPTION"]);
    Some(match is_plain {
        true => StatementVerdict::Pass(words.text()),
        false => StatementVerdict::Unmasked("statements about databases with texts in them".to_owned()),
    })
}

#[cfg(test)]
mod tests;
