//! Changes of chosen rows below the log by later transactions that weren't chosen: foreign keys carried on what these did to the rows that
//! the chosen ones refer to. A script doesn't find its rows then.

use std::collections::{BTreeMap, HashMap};

use binlogz_figures::counted;

use crate::choose::Operation;
use crate::pass::NamedReach;
use crate::record::{CarriedParent, RowReference};

/// References of chosen rows that are held.
const REFERENCES_MAX: usize = 1 << 20;

/// The references of chosen rows as they are at a place of the logs, and changes of what they refer to that may have been carried on to them.
#[derive(Debug, Default)]
pub(super) struct LaterBelow {
    keys: NamedReach,
    /// How many chosen rows refer to a row, by the key's number and the digest of its values.
    referring: HashMap<(u32, u128), u64>,
    /// By key: how many chosen rows refer to a row that isn't known.
    unknown: HashMap<u32, u64>,
    /// Whether there were more references than are held.
    is_full: bool,
    /// By the key of the chosen table and the one whose parent's rows were changed: how many of these, and the place of the first.
    possible: BTreeMap<(u32, u32), (u64, String)>,
}

/// Chosen rows that a key changed for certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CarriedRowsBelow {
    pub(super) table: String,
    /// The key, in words.
    pub(super) key: String,
    pub(super) rows: u64,
}

impl LaterBelow {
    /// Follows rows by these keys.
    pub(super) fn of(keys: NamedReach) -> Self {
        LaterBelow { keys, ..LaterBelow::default() }
    }

    /// A chosen row was changed, and refers to these rows before and after that.
    pub(super) fn take(&mut self, references: &[RowReference]) {
        for RowReference { is_after, key, digest } in references {
            let Some(digest) = digest else {
                *self.unknown.entry(*key).or_default() += 1;
                continue;
            };
            let place = (*key, *digest);
            if *is_after {
                if self.referring.len() >= REFERENCES_MAX && !self.referring.contains_key(&place) {
                    self.is_full = true;
                    continue;
                }
                *self.referring.entry(place).or_default() += 1;
            } else if let Some(count) = self.referring.get_mut(&place) {
                *count -= 1;
                if *count == 0 {
                    self.referring.remove(&place);
                }
            }
        }
    }

    /// A row to which others refer was changed below the log; the chosen rows that it took with it for certain.
    pub(super) fn change(&mut self, change: &CarriedParent, place: &str) -> Option<CarriedRowsBelow> {
        let CarriedParent { key, operation, digest } = *change;
        let rows = digest.and_then(|digest| self.referring.remove(&(key, digest)));
        let is_possible = match digest {
            _ if self.keys.is_lost(key) => self.has_any(),
            Some(_) => rows.is_none() && (self.is_full || self.unknown.contains_key(&key)),
            None => self.refers(key),
        };
        if is_possible {
            self.possibly((key, key), place);
        }
        self.further(key, operation, place);
        let named = self.keys.key(key)?;
        Some(CarriedRowsBelow { table: named.child.clone(), key: named.name.clone(), rows: rows? })
    }

    /// Rows in between that the change may have been carried on to are in no log.
    fn further(&mut self, key: u32, operation: Operation, place: &str) {
        let ends: Vec<u32> = self.keys.further(key, operation).filter(|end| self.refers(*end)).collect();
        ends.into_iter().for_each(|end| self.possibly((end, key), place));
    }

    fn possibly(&mut self, keys: (u32, u32), place: &str) {
        self.possible.entry(keys).or_insert_with(|| (0, place.to_owned())).0 += 1;
    }

    /// Whether a chosen row refers to another one by this key, or may do so.
    fn refers(&self, key: u32) -> bool {
        self.is_full || self.unknown.contains_key(&key) || self.referring.keys().any(|(own, _)| *own == key)
    }

    fn has_any(&self) -> bool {
        self.is_full || !self.unknown.is_empty() || !self.referring.is_empty()
    }

    /// The number of changes that may have been carried on.
    pub(super) fn count(&self) -> u64 {
        self.possible.values().map(|(count, _)| count).sum()
    }

    /// Names the changes that may have been carried on, line by line.
    pub(super) fn notes(&self) -> Vec<String> {
        let line = |((end, key), (count, place)): (&(u32, u32), &(u64, String))| {
            let named = self.keys.key(*end)?;
            let parent = &self.keys.key(*key)?.parent;
            Some(format!(
                "rows of {} may have been changed later below the log, which this would lose, through {}, with {} of {parent}; the first: \
                 {place}",
                named.child,
                named.name,
                counted(*count, "rows")
            ))
        };
        self.possible.iter().filter_map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use binlogz_schema::SchemaFile;

    use super::*;
    use crate::choose::Direction;
    use crate::pass::CarryingKeys;

    /// Keys by number: `ba`, of b to a, and `cb`, of the chosen c to b.
    fn below() -> LaterBelow {
        let statements = "USE s; CREATE TABLE a (id INT PRIMARY KEY);
            CREATE TABLE b (id INT PRIMARY KEY, a INT, CONSTRAINT ba FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE);
            CREATE TABLE c (id INT PRIMARY KEY, b INT, CONSTRAINT cb FOREIGN KEY (b) REFERENCES b (id) ON DELETE CASCADE);";
        let schema = SchemaFile::parse(statements).unwrap();
        let tables = [("s".to_owned(), "c".to_owned())];
        LaterBelow::of(CarryingKeys::new(&schema, &tables, Some(Direction::Undo)).named_reach())
    }

    fn deleted(key: u32, digest: Option<u128>) -> CarriedParent {
        CarriedParent { key, operation: Operation::Delete, digest }
    }

    fn reference(is_after: bool, digest: Option<u128>) -> RowReference {
        RowReference { is_after, key: 1, digest }
    }

    #[test]
    fn rows_go_with_the_one_that_they_refer_to_last() {
        let mut below = below();
        below.take(&[reference(true, Some(7))]);
        below.take(&[reference(true, Some(7))]);
        below.take(&[reference(false, Some(7)), reference(true, Some(8))]);
        assert_eq!(below.change(&deleted(1, Some(6)), "x"), None);
        let carried = below.change(&deleted(1, Some(7)), "x").unwrap();
        assert_eq!(
            carried,
            CarriedRowsBelow { table: "s.c".to_owned(), key: "foreign key cb".to_owned(), rows: 1 }
        );
        assert_eq!(below.change(&deleted(1, Some(7)), "x"), None, "it is named already");
        assert_eq!((below.count(), below.notes().len()), (0, 0));
    }

    #[test]
    fn what_is_not_known_for_certain_is_named_as_possible() {
        let mut below = below();
        assert_eq!(below.change(&deleted(0, None), "x"), None);
        assert_eq!(below.count(), 0, "no chosen row refers to any");
        below.take(&[reference(true, Some(7))]);
        assert_eq!(below.change(&deleted(0, Some(1)), "first"), None);
        assert_eq!(below.change(&deleted(0, Some(2)), "second"), None);
        assert_eq!(
            below.notes(),
            [
                "rows of s.c may have been changed later below the log, which this would lose, through foreign key cb, with 2 rows of s.a; the \
                 first: first"
            ]
        );
        below.take(&[reference(true, None)]);
        assert_eq!(below.change(&deleted(1, Some(9)), "third"), None);
        assert_eq!(below.change(&deleted(1, None), "fourth"), None);
        assert_eq!((below.count(), below.notes().len()), (4, 2));
    }
}
