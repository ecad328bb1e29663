//! The policy: which tables and columns may leave, and how their values are masked. [`mod@file`] reads it.

mod file;
mod json_rule;

use std::path::Path;

pub(crate) use json_rule::{JsonExit, JsonRule};

use crate::error::PolicyError;
use crate::secret::MaskKey;

/// What may leave.
#[derive(Debug)]
pub struct ExitPolicy {
    /// The file, for messages.
    file: String,
    pub(crate) key: Option<MaskKey>,
    /// Whether tables that no rule names are left out.
    leaves_others_out: bool,
    rules: Vec<TableRule>,
}

/// The rule of the tables that a pattern names.
#[derive(Debug)]
struct TableRule {
    database: String,
    table: String,
    line: usize,
    leaves_out: bool,
    columns: Vec<ColumnRule>,
    /// What becomes of columns that no rule names.
    others: Option<(ColumnExit, usize)>,
}

/// The rule of a column.
#[derive(Debug)]
struct ColumnRule {
    name: String,
    exit: ColumnExit,
    line: usize,
}

/// What becomes of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ColumnExit {
    /// It leaves as it is.
    Keep,
    /// Images don't have it.
    LeaveOut,
    /// Its values are replaced.
    Mask(ColumnMask),
}

/// How values are replaced.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ColumnMask {
    /// By a keyed hash, or a keyed permutation where the type has few values.
    Hash {
        /// Texts that differ only in case have one hash.
        ignores_case: bool,
    },
    /// By NULL.
    Null,
    /// By this value, as text.
    Fixed(String),
    /// All characters but some at the beginning and at the end.
    Partial { first: usize, last: usize },
    /// By the first moment of its year.
    Year,
    /// A document of which only some places may leave.
    Json(JsonRule),
}

/// What becomes of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableExit {
    /// It leaves as it is.
    Keep,
    /// Nothing of it leaves.
    LeaveOut,
    /// Columns are masked: by the rules of these numbers, the first one that names a column.
    Masked(Vec<usize>),
}

/// A place in the policy: the rule of a table, and of one of its columns.
pub(crate) type RulePlace = (usize, usize);

impl ExitPolicy {
    /// Reads a policy. The path of a key is relative to the policy's folder.
    ///
    /// # Errors
    ///
    /// A file that can't be read or isn't a policy, a key that others may read.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        file::read(path)
    }

    /// What becomes of the table of this name. Names are compared in any case, so that no spelling gets around a rule.
    pub(crate) fn table(&self, database: &[u8], table: &[u8]) -> TableExit {
        let [database, table] = [database, table].map(|name| String::from_utf8_lossy(name).to_lowercase());
        let is_named = |(_, rule): &(usize, &TableRule)| {
            matches(&rule.database, &database) && matches(&rule.table, &table)
        };
        let rules: Vec<_> = self.rules.iter().enumerate().filter(is_named).collect();
        if rules.iter().any(|(_, rule)| rule.leaves_out) {
            return TableExit::LeaveOut;
        }
        let changes = |exit: &ColumnExit| *exit != ColumnExit::Keep;
        let has_changes = rules.iter().any(|(_, rule)| {
            rule.columns.iter().any(|column| changes(&column.exit))
                || rule.others.as_ref().is_some_and(|(exit, _)| changes(exit))
        });
        match (rules.is_empty(), has_changes) {
            (true, _) if self.leaves_others_out => TableExit::LeaveOut,
            (_, false) => TableExit::Keep,
            (_, true) => TableExit::Masked(rules.iter().map(|(number, _)| *number).collect()),
        }
    }

    /// What becomes of a column by these rules; the line that says so, and the rule's place if it names the column.
    pub(crate) fn column(&self, rules: &[usize], name: &[u8]) -> (&ColumnExit, usize, Option<RulePlace>) {
        let name = String::from_utf8_lossy(name).to_lowercase();
        let rules = || rules.iter().filter_map(|&number| Some((number, self.rules.get(number)?)));
        let named = rules().find_map(|(number, rule)| {
            let place = rule.columns.iter().position(|column| matches(&column.name, &name))?;
            let column = rule.columns.get(place)?;
            Some((&column.exit, column.line, Some((number, place))))
        });
        let other =
            || rules().find_map(|(_, rule)| rule.others.as_ref().map(|(exit, line)| (exit, *line, None)));
        named.or_else(other).unwrap_or((&ColumnExit::Keep, 0, None))
    }

    /// The columns that a rule names exactly, of a table that it names exactly; each with its place, and how to show it.
    pub(crate) fn exact_columns(&self, rules: &[usize]) -> Vec<(RulePlace, String)> {
        let mut columns = Vec::new();
        for &number in rules {
            let Some(rule) = self.rules.get(number) else { continue };
            if rule.database.contains('*') || rule.table.contains('*') {
                continue;
            }
            for (place, column) in rule.columns.iter().enumerate() {
                if !column.name.contains('*') {
                    let shown = format!(
                        "{} line {}: {}.{} has no column {}",
                        self.file, column.line, rule.database, rule.table, column.name
                    );
                    columns.push(((number, place), shown));
                }
            }
        }
        columns
    }

    /// The rules that name a table exactly, and how to show each.
    pub(crate) fn exact_tables(&self) -> impl Iterator<Item = (usize, String)> + '_ {
        let rules = self.rules.iter().enumerate();
        let exact = rules.filter(|(_, rule)| !rule.database.contains('*') && !rule.table.contains('*'));
        exact.map(|(number, rule)| (number, format!("{}.{} (line {})", rule.database, rule.table, rule.line)))
    }

    /// Whether the rule of a number names this table.
    pub(crate) fn is_of(&self, number: usize, database: &[u8], table: &[u8]) -> bool {
        let [database, table] = [database, table].map(|name| String::from_utf8_lossy(name).to_lowercase());
        self.rules
            .get(number)
            .is_some_and(|rule| matches(&rule.database, &database) && matches(&rule.table, &table))
    }

    /// A place in the policy's file.
    pub(crate) fn shown(&self, line: usize) -> String {
        format!("{} line {line}", self.file)
    }

    /// The line of the first of these rules.
    pub(crate) fn line_of(&self, rules: &[usize]) -> usize {
        rules.first().and_then(|&number| self.rules.get(number)).map_or(0, |rule| rule.line)
    }
}

/// Whether a name is one of a pattern, in which `*` stands for any characters. Both are in small letters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((front, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(front) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let Some(back) = parts.pop() else { return true };
    for part in parts {
        let Some(place) = left.find(part) else { return false };
        left = left.get(place + part.len()..).unwrap_or_default();
    }
    left.ends_with(back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_what_they_say() {
        for (pattern, name, is_named) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("*", "", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches(pattern, name), is_named, "{pattern} {name}");
        }
    }
}
