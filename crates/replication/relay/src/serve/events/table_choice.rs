//! The tables whose rows an account is sent.

use std::fmt;

/// Patterns of tables: `DATABASE.TABLE`, where `*` in either part stands for any letters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableChoice {
    only: Vec<TablePattern>,
    ignored: Vec<TablePattern>,
}

/// One pattern. Names are compared as they stand in the log, with upper and lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TablePattern {
    database: String,
    table: String,
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
    pub(crate) fn has(&self, database: &[u8], table: &[u8]) -> bool {
        let fits = |pattern: &TablePattern| {
            is_match(pattern.database.as_bytes(), database) && is_match(pattern.table.as_bytes(), table)
        };
        (self.only.is_empty() || self.only.iter().any(fits)) && !self.ignored.iter().any(fits)
    }
}

impl TablePattern {
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
    fn a_pattern_has_two_parts() {
        for text in ["", "shop", ".t", "shop."] {
            let error = choice(&["a.b"], &[text]).unwrap_err().to_string();
            assert_eq!(error, format!("{text:?}, expected DATABASE.TABLE, where * stands for any letters"));
            assert!(choice(&[text], &[]).is_err());
        }
        assert!(choice(&[], &[]).unwrap().is_all() && !choice(&["*.*"], &[]).unwrap().is_all());
    }
}
