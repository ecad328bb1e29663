//! The policy: which tables and columns may leave, and how their values are masked. [`mod@file`] reads it.

mod file;
mod json_rule;
mod met;

use std::path::Path;

pub(crate) use json_rule::{JsonExit, JsonRule};
pub(crate) use met::MetRules;
use ring::digest::{SHA256, digest};

use crate::error::PolicyError;
use crate::secret::MaskKey;

/// What may leave.
#[derive(Debug)]
pub struct ExitPolicy {
    /// The file, for messages.
    file: String,
    text: String,
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
    /// Whether logs needn't have such a table.
    is_optional: bool,
    /// The columns by which it is partitioned; empty: not told.
    partition_columns: Vec<String>,
    columns: Vec<ColumnRule>,
    /// What becomes of columns that no rule names.
    others: Option<(ColumnExit, usize)>,
}

/// The rule of a column.
#[derive(Debug)]
struct ColumnRule {
    name: String,
    exit: ColumnExit,
    /// Whether the table doesn't always have it.
    is_optional: bool,
    line: usize,
}

/// What the policy says of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnVerdict<'p> {
    pub(crate) exit: &'p ColumnExit,
    /// The line that says so; 0: none does.
    pub(crate) line: usize,
    /// Whether a rule names the column.
    pub(crate) is_named: bool,
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

impl ExitPolicy {
    /// Reads a policy. The path of a key is relative to the policy's folder.
    ///
    /// # Errors
    ///
    /// A file that can't be read or isn't a policy, a key that others may read.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        file::read(path)
    }

    /// Names the policy and its key: the same for the same ones.
    pub fn digest(&self) -> String {
        let digest = match &self.key {
            Some(key) => key.digest(&[b"policy", self.text.as_bytes()]).to_vec(),
            None => digest(&SHA256, self.text.as_bytes()).as_ref().to_vec(),
        };
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
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
        let has_changes = rules.iter().any(|(_, rule)| rule.hides());
        match (rules.is_empty(), has_changes) {
            (true, _) if self.leaves_others_out => TableExit::LeaveOut,
            (_, false) => TableExit::Keep,
            (_, true) => TableExit::Masked(rules.iter().map(|(number, _)| *number).collect()),
        }
    }

    fn rules<'p>(&'p self, numbers: &[usize]) -> impl Iterator<Item = &'p TableRule> {
        numbers.iter().filter_map(move |&number| self.rules.get(number))
    }

    /// What becomes of a column by these rules.
    pub(crate) fn column(&self, rules: &[usize], name: &[u8]) -> ColumnVerdict<'_> {
        let name = String::from_utf8_lossy(name).to_lowercase();
        let named = self.rules(rules).find_map(|rule| {
            let column = rule.columns.iter().find(|column| matches(&column.name, &name))?;
            Some(ColumnVerdict { exit: &column.exit, line: column.line, is_named: true })
        });
        if let Some(named) = named {
            return named;
        }
        let others = self.rules(rules).find_map(|rule| rule.others.as_ref());
        let (exit, line) = others.map_or((&ColumnExit::Keep, 0), |(exit, line)| (exit, *line));
        ColumnVerdict { exit, line, is_named: false }
    }

    /// What is wrong with the first column that these rules name, without a pattern, and that the table doesn't have, though it isn't
    /// optional. What it is to hide would leave under its right name.
    pub(crate) fn missing_column(&self, rules: &[usize], has: impl Fn(&str) -> bool) -> Option<String> {
        let exact = self.rules(rules).filter(|rule| rule.is_exact());
        let mut columns = exact.flat_map(|rule| rule.columns.iter().map(move |column| (rule, column)));
        let (rule, column) = columns
            .find(|(_, column)| !column.is_optional && !column.name.contains('*') && !has(&column.name))?;
        Some(format!(
            "{} line {}: {}.{} has no column {}, expected one of its columns, or optional = true",
            self.file, column.line, rule.database, rule.table, column.name
        ))
    }

    /// Whether the columns by which a table is partitioned are told, and may all leave.
    pub(crate) fn keeps_partition_columns(&self, rules: &[usize]) -> bool {
        let mut columns = self.rules(rules).flat_map(|rule| &rule.partition_columns).peekable();
        columns.peek().is_some()
            && columns.all(|name| *self.column(rules, name.as_bytes()).exit == ColumnExit::Keep)
    }

    /// The numbers of all rules.
    pub(crate) fn rule_numbers(&self) -> std::ops::Range<usize> {
        0..self.rules.len()
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

impl TableRule {
    /// Whether anything of its tables doesn't leave as it is.
    fn hides(&self) -> bool {
        let columns = self.columns.iter().map(|column| &column.exit);
        let mut exits = columns.chain(self.others.iter().map(|(exit, _)| exit));
        self.leaves_out || exits.any(|exit| *exit != ColumnExit::Keep)
    }

    /// Whether it names one table, without a pattern.
    fn is_exact(&self) -> bool {
        !self.database.contains('*') && !self.table.contains('*')
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
