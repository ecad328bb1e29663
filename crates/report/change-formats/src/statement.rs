//! The kind of a statement and its table, from its first words: for canal, which names them in addition to the
//! statement's text.

/// A kind, by canal's name for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CanalKind {
    Create,
    Alter,
    Erase,
    Truncate,
    Rename,
    CreateIndex,
    DropIndex,
    Insert,
    Update,
    Delete,
    Other,
}

impl CanalKind {
    /// canal's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CanalKind::Create => "CREATE",
            CanalKind::Alter => "ALTER",
            CanalKind::Erase => "ERASE",
            CanalKind::Truncate => "TRUNCATE",
            CanalKind::Rename => "RENAME",
            CanalKind::CreateIndex => "CINDEX",
            CanalKind::DropIndex => "DINDEX",
            CanalKind::Insert => "INSERT",
            CanalKind::Update => "UPDATE",
            CanalKind::Delete => "DELETE",
            CanalKind::Other => "QUERY",
        }
    }

    /// Whether it changes rows, in a log of statements.
    pub(crate) fn changes_rows(self) -> bool {
        matches!(self, CanalKind::Insert | CanalKind::Update | CanalKind::Delete)
    }
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangeStatement {
    pub(crate) kind: CanalKind,
    /// The database that the statement itself names.
    pub(crate) database: Option<String>,
    pub(crate) table: Option<String>,
}

impl ChangeStatement {
    /// Reads a statement's first words.
    pub(crate) fn of(text: &str) -> Self {
        let mut words = Words(text);
        let kind = words.kind();
        let (database, table) = match kind {
            CanalKind::Other | CanalKind::Insert | CanalKind::Update | CanalKind::Delete => (None, None),
            _ => words.table(),
        };
        ChangeStatement { kind, database, table }
    }
}

/// Words, names in backticks and single characters, one after the other.
struct Words<'t>(&'t str);

impl<'t> Words<'t> {
    fn skip(&mut self) {
        loop {
            self.0 = self.0.trim_start();
            let rest = match self.0 {
                // A server takes the text in a comment of this kind as part of the statement.
                text if text.starts_with("/*!") => {
                    text.get(3..).map(|text| text.trim_start_matches(|c: char| c.is_ascii_digit()))
                }
                text if text.starts_with("*/") => text.get(2..),
                text if text.starts_with("/*") => text.split_once("*/").map(|(_, rest)| rest),
                text if text.starts_with("-- ") || text.starts_with('#') => {
                    text.split_once('\n').map(|(_, rest)| rest)
                }
                _ => return,
            };
            self.0 = rest.unwrap_or("");
        }
    }

    fn next(&mut self) -> Option<&'t str> {
        self.skip();
        let is_of_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let first = self.0.chars().next()?;
        let size = match first {
            '`' => {
                let mut end = 1;
                loop {
                    end += self.0.get(end..)?.find('`')? + 1;
                    if !self.0.get(end..).is_some_and(|rest| rest.starts_with('`')) {
                        break end;
                    }
                    end += 1;
                }
            }
            _ if is_of_word(first) => self.0.find(|c| !is_of_word(c)).unwrap_or(self.0.len()),
            other => other.len_utf8(),
        };
        let (word, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(word)
    }

    /// Takes a keyword if it is next.
    fn takes(&mut self, keyword: &str) -> bool {
        let before = self.0;
        let is = self.next().is_some_and(|word| word.eq_ignore_ascii_case(keyword));
        if !is {
            self.0 = before;
        }
        is
    }

    fn takes_any(&mut self, keywords: &[&str]) {
        while keywords.iter().any(|keyword| self.takes(keyword)) {}
    }

    /// Takes the words before the table's name.
    fn kind(&mut self) -> CanalKind {
        let Some(first) = self.next() else { return CanalKind::Other };
        match first.to_ascii_uppercase().as_str() {
            "CREATE" => {
                self.takes_any(&["OR", "REPLACE", "TEMPORARY", "UNIQUE", "FULLTEXT", "SPATIAL"]);
                if self.takes("TABLE") {
                    self.takes_any(&["IF", "NOT", "EXISTS"]);
                    CanalKind::Create
                } else if self.takes("INDEX") {
                    self.skip_to_on();
                    CanalKind::CreateIndex
                } else {
                    CanalKind::Other
                }
            }
            "DROP" => {
                self.takes("TEMPORARY");
                if self.takes("TABLE") || self.takes("TABLES") {
                    self.takes_any(&["IF", "EXISTS"]);
                    CanalKind::Erase
                } else if self.takes("INDEX") {
                    self.skip_to_on();
                    CanalKind::DropIndex
                } else {
                    CanalKind::Other
                }
            }
            "ALTER" => {
                self.takes_any(&["ONLINE", "IGNORE"]);
                if self.takes("TABLE") { CanalKind::Alter } else { CanalKind::Other }
            }
            "TRUNCATE" => {
                self.takes("TABLE");
                CanalKind::Truncate
            }
            "RENAME" => {
                if !self.takes("TABLE") && !self.takes("TABLES") {
                    return CanalKind::Other;
                }
                // The new name counts.
                while self.next().is_some_and(|word| !word.eq_ignore_ascii_case("TO")) {}
                CanalKind::Rename
            }
            "INSERT" | "REPLACE" => CanalKind::Insert,
            "UPDATE" => CanalKind::Update,
            "DELETE" => CanalKind::Delete,
            _ => CanalKind::Other,
        }
    }

    fn skip_to_on(&mut self) {
        while self.next().is_some_and(|word| !word.eq_ignore_ascii_case("ON")) {}
    }

    fn table(&mut self) -> (Option<String>, Option<String>) {
        let name = |word: Option<&str>| {
            let word = word?;
            let quoted = word.strip_prefix('`').and_then(|word| word.strip_suffix('`'));
            Some(quoted.map_or_else(|| word.to_owned(), |name| name.replace("``", "`")))
        };
        let first = name(self.next());
        if self.takes(".") { (first, name(self.next())) } else { (None, first) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_tables() {
        for (text, kind, database, table) in [
            ("CREATE TABLE IF NOT EXISTS `a b`.`c``d` (x INT)", CanalKind::Create, Some("a b"), Some("c`d")),
            ("/* x */ create temporary table t(x int)", CanalKind::Create, None, Some("t")),
            ("CREATE UNIQUE INDEX i ON shop . t (a)", CanalKind::CreateIndex, Some("shop"), Some("t")),
            ("DROP INDEX `i` ON t", CanalKind::DropIndex, None, Some("t")),
            ("DROP TABLE IF EXISTS a, b", CanalKind::Erase, None, Some("a")),
            ("ALTER TABLE a ADD COLUMN b INT", CanalKind::Alter, None, Some("a")),
            ("TRUNCATE t", CanalKind::Truncate, None, Some("t")),
            ("RENAME TABLE a TO b.c", CanalKind::Rename, Some("b"), Some("c")),
            ("CREATE DATABASE d", CanalKind::Other, None, None),
            ("-- c\nINSERT INTO t VALUES (1)", CanalKind::Insert, None, None),
            ("DROP TABLE /*!80000 IF EXISTS */ t", CanalKind::Erase, None, Some("t")),
            ("CREATE TABLE `open", CanalKind::Create, None, None),
            ("", CanalKind::Other, None, None),
        ] {
            let expected = ChangeStatement {
                kind,
                database: database.map(str::to_owned),
                table: table.map(str::to_owned),
            };
            assert_eq!(ChangeStatement::of(text), expected, "{text}");
        }
    }
}
