//! The tables whose rows are kept, or sent to an account.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Patterns of tables: `DATABASE.TABLE`, where `*` in either part stands for any letters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(try_from = "PatternTexts", into = "PatternTexts")]
pub struct TableChoice {
    only: Vec<TablePattern>,
    ignored: Vec<TablePattern>,
}

/// A choice as it is written: the words of the relay's configuration.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternTexts {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tables: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ignore_tables: Vec<String>,
}

impl TryFrom<PatternTexts> for TableChoice {
    type Error = UnfitPattern;

    fn try_from(texts: PatternTexts) -> Result<Self, UnfitPattern> {
        TableChoice::new(&texts.tables, &texts.ignore_tables)
    }
}

impl From<TableChoice> for PatternTexts {
    fn from(choice: TableChoice) -> PatternTexts {
        let texts = |patterns: &[TablePattern]| patterns.iter().map(TablePattern::to_string).collect();
        PatternTexts { tables: texts(&choice.only), ignore_tables: texts(&choice.ignored) }
    }
}

/// In words: `shop.*, without shop.log_*`.
impl fmt::Display for TableChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = |patterns: &[TablePattern]| {
            patterns.iter().map(TablePattern::to_string).collect::<Vec<_>>().join(", ")
        };
        match (self.only.is_empty(), self.ignored.is_empty()) {
            (true, true) => f.write_str("all tables"),
            (true, false) => write!(f, "all tables without {}", texts(&self.ignored)),
            (false, true) => f.write_str(&texts(&self.only)),
            (false, false) => write!(f, "{}, without {}", texts(&self.only), texts(&self.ignored)),
        }
    }
}

/// One pattern. Names are compared as they stand in the log, with upper and lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct TablePattern {
    database: String,
    table: String,
}

impl fmt::Display for TablePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

/// A pattern that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfitPattern(String);

impl fmt::Display for UnfitPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, expected DATABASE.TABLE, where * stands for any letters", self.0)
    }
}

impl std::error::Error for UnfitPattern {}

impl TableChoice {
    /// The tables that one of `only` fits, all if there are none, without those that one of `ignored` fits.
    ///
    /// # Errors
    ///
    /// A pattern that is not `DATABASE.TABLE`.
    pub fn new(only: &[String], ignored: &[String]) -> Result<Self, UnfitPattern> {
        Ok(TableChoice { only: TablePattern::all(only)?, ignored: TablePattern::all(ignored)? })
    }

    /// Whether every table is chosen.
    pub fn is_all(&self) -> bool {
        self.only.is_empty() && self.ignored.is_empty()
    }

    /// Whether a table is chosen.
    pub fn has(&self, database: &[u8], table: &[u8]) -> bool {
        let fits = |pattern: &TablePattern| {
            is_match(pattern.database.as_bytes(), database) && is_match(pattern.table.as_bytes(), table)
        };
        (self.only.is_empty() || self.only.iter().any(fits)) && !self.ignored.iter().any(fits)
    }

    /// Whether a table of this database may be chosen.
    pub fn has_some_of(&self, database: &[u8]) -> bool {
        let is_ignored = self.ignored.iter().any(|pattern| pattern.is_of(database) && pattern.table == "*");
        (self.only.is_empty() || self.only.iter().any(|pattern| pattern.is_of(database))) && !is_ignored
    }

    /// The tables that patterns name without `*`: those that are expected to be there.
    pub fn named(&self) -> impl Iterator<Item = String> {
        self.only.iter().filter(|pattern| pattern.is_name()).map(TablePattern::to_string)
    }

    /// The same patterns in small letters, in which servers with `lower_case_table_names=1` store names.
    #[must_use]
    pub fn in_small_letters(&self) -> TableChoice {
        let only = self.only.iter().map(TablePattern::in_small_letters).collect();
        TableChoice { only, ignored: self.ignored.iter().map(TablePattern::in_small_letters).collect() }
    }
}

impl TablePattern {
    fn is_name(&self) -> bool {
        !self.database.contains('*') && !self.table.contains('*')
    }

    fn is_of(&self, database: &[u8]) -> bool {
        is_match(self.database.as_bytes(), database)
    }

    fn in_small_letters(&self) -> Self {
        TablePattern { database: self.database.to_lowercase(), table: self.table.to_lowercase() }
    }

    fn all(texts: &[String]) -> Result<Vec<Self>, UnfitPattern> {
        texts.iter().map(|text| TablePattern::parse(text)).collect()
    }

    fn parse(text: &str) -> Result<Self, UnfitPattern> {
        match text.split_once('.') {
            Some((database, table)) if !database.is_empty() && !table.is_empty() => {
                Ok(TablePattern { database: database.to_owned(), table: table.to_owned() })
            }
            _ => Err(UnfitPattern(text.to_owned())),
        }
    }
}

/// Whether a name fits a pattern: `*` stands for any bytes. Takes at most the product of both lengths.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    let mut at = 0;
    let mut name_at = 0;
    // The last star, and where the name went on after it.
    let mut star: Option<(usize, usize)> = None;
    while name_at < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, name_at));
                at += 1;
            }
            Some(byte) if name.get(name_at) == Some(byte) => (at, name_at) = (at + 1, name_at + 1),
            _ => {
                let Some((star_at, tried)) = star else { return false };
                star = Some((star_at, tried + 1));
                (at, name_at) = (star_at + 1, tried + 1);
            }
        }
    }
    pattern.iter().skip(at).all(|byte| *byte == b'*')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn choice(only: &[&str], ignored: &[&str]) -> Result<TableChoice, UnfitPattern> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        TableChoice::new(&owned(only), &owned(ignored))
    }

    #[test]
    fn tables_are_chosen_by_patterns() {
        let has = |only: &[&str], ignored: &[&str], table: &str| {
            let (database, table) = table.split_once('.').unwrap();
            choice(only, ignored).unwrap().has(database.as_bytes(), table.as_bytes())
        };
        for (only, ignored, table, expected) in [
            (&[][..], &[][..], "shop.orders", true),
            (&["shop.*"], &[], "shop.orders", true),
            (&["shop.*"], &[], "shop2.orders", false),
            (&["sh*.or*s"], &[], "shop.orders", true),
            (&["sh*.or*s"], &[], "shop.orders_old", false),
            (&["*.orders", "a.b"], &[], "a.b", true),
            (&["shop.*"], &["shop.j*", "*.tmp"], "shop.json", false),
            (&["shop.*"], &["shop.j*", "*.tmp"], "shop.tmp", false),
            (&["shop.*"], &["shop.j*", "*.tmp"], "shop.orders", true),
            (&[], &["*.*"], "shop.orders", false),
            (&["shop.a.b"], &[], "shop.a.b", true),
            (&["Shop.*"], &[], "shop.a", false),
            (&["*a*b*.x"], &[], "xaxxbabx.x", true),
            (&["*a*b*.x"], &[], "bxxa.x", false),
        ] {
            assert_eq!(has(only, ignored, table), expected, "{only:?} {ignored:?} {table}");
        }
    }

    #[test]
    fn databases_without_a_chosen_table_are_told() {
        for (only, ignored, database, expected) in [
            (&[][..], &[][..], "shop", true),
            (&["shop.a"], &[], "shop", true),
            (&["shop.a"], &[], "shops", false),
            (&["*.a"], &["sho*.*"], "shop", false),
            (&["*.a"], &["shop.b*"], "shop", true),
            (&[], &["shop.*"], "shop", false),
        ] {
            let choice = choice(only, ignored).unwrap();
            assert_eq!(choice.has_some_of(database.as_bytes()), expected, "{only:?} {ignored:?} {database}");
        }
        let named: Vec<_> = choice(&["a.b", "a.*", "*.b", "c.d.e"], &["x.y"]).unwrap().named().collect();
        assert_eq!(named, ["a.b", "c.d.e"]);
        let choice = choice(&["Shop.A*"], &["SHOP.ab"]).unwrap().in_small_letters();
        assert!(choice.has(b"shop", b"ac") && !choice.has(b"shop", b"ab") && !choice.has(b"Shop", b"AC"));
    }

    #[test]
    fn a_pattern_has_two_parts() {
        for text in ["", "shop", ".t", "shop."] {
            let error = choice(&["a.b"], &[text]).unwrap_err().to_string();
            assert_eq!(error, format!("{text:?}, expected DATABASE.TABLE, where * stands for any letters"));
            assert!(choice(&[text], &[]).is_err());
        }
        assert!(choice(&[], &[]).unwrap().is_all() && !choice(&["*.*"], &[]).unwrap().is_all());
    }

    #[test]
    fn a_choice_is_written_as_patterns_and_in_words() {
        for (only, ignored, json, words) in [
            (&[][..], &[][..], "{}", "all tables"),
            (&["shop.*", "a.b.c"], &[], r#"{"tables":["shop.*","a.b.c"]}"#, "shop.*, a.b.c"),
            (&[], &["*.tmp"], r#"{"ignore_tables":["*.tmp"]}"#, "all tables without *.tmp"),
            (&["a.*"], &["a.b"], r#"{"tables":["a.*"],"ignore_tables":["a.b"]}"#, "a.*, without a.b"),
        ] {
            let choice = choice(only, ignored).unwrap();
            assert_eq!(
                (serde_json::to_string(&choice).unwrap().as_str(), choice.to_string().as_str()),
                (json, words)
            );
            assert_eq!(serde_json::from_str::<TableChoice>(json).unwrap(), choice);
        }
        for json in [r#"{"tables":["shop"]}"#, r#"{"others":[]}"#] {
            assert!(serde_json::from_str::<TableChoice>(json).is_err(), "{json}");
        }
    }
}
