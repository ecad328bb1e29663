//! What a log with some tables only may lack or have too much of, since its log doesn't tell.

use std::collections::BTreeMap;

/// Names that are told; there may be thousands of them.
const NAMES_MAX: usize = 20;

/// A statement of which it isn't known what it does to the chosen tables. It stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DoubtfulStatement {
    /// It may change rows of any tables, or can't be read.
    Rows,
    /// It names chosen tables and others.
    BothKinds,
    /// It gives chosen tables foreign keys to others.
    Parents,
    /// It is about others, and an empty transaction is larger.
    NoRoom,
    /// It is about others, and events with its values stand before it: an empty transaction would begin after them.
    AfterValues,
    /// Of a prepared transaction no rows stay, and the log doesn't end it (`empty_xa`).
    EmptyXa,
}

impl DoubtfulStatement {
    /// What such statements do.
    fn in_words(self) -> &'static str {
        match self {
            DoubtfulStatement::Rows => {
                "may change rows of any tables: they stay, with all that is in them (binlog_format=ROW logs rows)"
            }
            DoubtfulStatement::BothKinds => {
                "name chosen tables and others: they stay, though rows that a chosen table got from another are missing"
            }
            DoubtfulStatement::Parents => {
                "give chosen tables foreign keys to others: they stay; servers without the others refuse them, and rows may be missing that \
                 ON DELETE or ON UPDATE changed"
            }
            DoubtfulStatement::NoRoom => {
                "are about other tables: they stay, having no room for an empty transaction"
            }
            DoubtfulStatement::AfterValues => {
                "are about other tables: they stay, since events with their values stand before them"
            }
            DoubtfulStatement::EmptyXa => {
                "prepare XA transactions of which no rows stay, and which end in a later log: they stay; MariaDB refuses their COMMIT or \
                 ROLLBACK (error 1402), MySQL has no GTID of their ROLLBACK"
            }
        }
    }
}

/// What isn't known for certain about a log with some tables only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelectionDoubts {
    /// How many statements of each kind there are, and where the first stands.
    statements: BTreeMap<DoubtfulStatement, (u64, u64)>,
    /// Tables with rows whose names fit a pattern in other letters only, upper or lower case, and whether their rows stay.
    other_case: BTreeMap<String, bool>,
}

impl SelectionDoubts {
    pub(super) fn note_statement(&mut self, kind: DoubtfulStatement, offset: u64) {
        self.statements.entry(kind).or_insert((0, offset)).0 += 1;
    }

    pub(super) fn note_other_case(&mut self, [database, table]: [&[u8]; 2], stays: bool) {
        if self.other_case.len() < NAMES_MAX {
            let names = [database, table].map(String::from_utf8_lossy);
            self.other_case.insert(names.join("."), stays);
        }
    }

    /// Whether all is known.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty() && self.other_case.is_empty()
    }

    /// A line for each.
    pub fn lines(&self) -> Vec<String> {
        let statements = self.statements.iter().map(|(kind, (count, offset))| {
            let noun = if *count == 1 { "statement" } else { "statements" };
            format!("{count} {noun}, the first at {offset}, {}", kind.in_words())
        });
        let cases = self.other_case.iter().map(|(table, stays)| {
            let fate = if *stays { "stay" } else { "were left out" };
            format!("rows of {table} {fate}: its name differs from a pattern in upper and lower case")
        });
        statements.chain(cases).collect()
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn doubts_are_counted_and_told() {
        let mut doubts = SelectionDoubts::default();
        assert!(doubts.is_empty() && doubts.lines().is_empty());
        for offset in [300, 700] {
            doubts.note_statement(DoubtfulStatement::Rows, offset);
            doubts.note_other_case([b"Shop", b"t"], false);
        }
        doubts.note_statement(DoubtfulStatement::BothKinds, 900);
        let lines = doubts.lines();
        assert!(!doubts.is_empty() && lines.len() == 3);
        assert!(lines[0].starts_with("2 statements, the first at 300, may change rows"), "{lines:?}");
        assert!(lines[1].starts_with("1 statement, the first at 900, name chosen"), "{lines:?}");
        assert!(lines[2].starts_with("rows of Shop.t were left out"), "{lines:?}");
        doubts.note_other_case([b"shop", b"secrets"], true);
        assert!(doubts.lines()[3].starts_with("rows of shop.secrets stay: its name differs"));
        (0..30).for_each(|number: u8| {
            doubts.note_other_case([b"d", &[b'a' + number % 26, b'0' + number / 26]], false);
        });
        assert_eq!(doubts.lines().len(), 2 + NAMES_MAX);
    }
}
