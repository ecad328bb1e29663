//! The keys that rows have in one column, for a program that looks for keys again and again: once it has gone through the column, it needn't
//! unpack it for a key that isn't there.

use binlogz_binlog::row::Cell;

use super::contents::KeyProbe;
use super::keys::{Filter, Key};

/// Bits of a filter: one other key in 256 passes.
const BITS: u8 = 8;
/// The hash from which those of the keys go on: all are of one table.
const SEED: u64 = 0;

/// The keys that rows have in a column. A "no" is certain, a "yes" is sometimes wrong.
#[derive(Debug, Default)]
pub struct ColumnKeys {
    /// `None`: there are none.
    filter: Option<Filter>,
    has_numbers: bool,
    has_texts: bool,
    /// Whether a value has no key, so that it may be any.
    has_others: bool,
}

/// Gathers the keys of rows.
#[derive(Debug, Default)]
pub struct ColumnKeysBuilder {
    keys: ColumnKeys,
    hashes: Vec<u64>,
}

impl ColumnKeysBuilder {
    /// Takes the value of a row.
    pub fn add(&mut self, cell: &Cell<'_>) {
        let Some(keys) = Key::of_cell(cell) else { return self.add_other() };
        for key in [keys.first, keys.second].into_iter().flatten() {
            match key {
                Key::Number(_) => self.keys.has_numbers = true,
                Key::Text(_) => self.keys.has_texts = true,
            }
            let hash = key.hash(SEED);
            // Most rows follow others of their key.
            if self.hashes.last() != Some(&hash) {
                self.hashes.push(hash);
            }
        }
    }

    /// Takes a row whose value isn't known.
    pub fn add_other(&mut self) {
        self.keys.has_others = true;
    }

    /// Ends it.
    pub fn build(mut self) -> ColumnKeys {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        if !self.keys.has_others && !self.hashes.is_empty() {
            self.keys.filter = Some(Filter::with_bits(&self.hashes, BITS));
        }
        self.keys
    }
}

impl ColumnKeys {
    /// Whether a row may have one of these keys. The probes are narrow ([`KeyProbe::is_narrow`]).
    pub fn may_have(&self, probes: &[KeyProbe]) -> bool {
        if self.has_others {
            return true;
        }
        let Some(filter) = &self.filter else { return false };
        let mut hashes = Vec::new();
        for KeyProbe { numbers, text } in probes {
            if numbers.is_none() && self.has_numbers || text.is_none() && self.has_texts {
                return true;
            }
            if let Some((first, last)) = numbers
                && self.has_numbers
            {
                hashes.extend((*first..=*last).map(|number| Key::Number(number).hash(SEED)));
            }
            hashes.extend(text.iter().filter(|_| self.has_texts).map(|text| text.hash(SEED)));
        }
        !hashes.is_empty() && filter.may_have(&hashes)
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        size_of::<ColumnKeys>() + self.filter.as_ref().map_or(0, Filter::memory)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may panic

    use binlogz_binlog::event::ColumnType;
    use binlogz_binlog::row::{CellContent, ColumnKind, ColumnSchema};

    use super::*;

    fn bigint() -> ColumnSchema {
        ColumnSchema {
            kind: ColumnKind::BigInt { unsigned: false },
            column_type: ColumnType::LONGLONG,
            metadata: 0,
            nullable: true,
            unsigned: Some(false),
            collation: None,
            name: None,
            members: None,
            geometry_type: None,
            dimensionality: None,
            visible: None,
            primary_key: None,
        }
    }

    fn number(value: i128) -> KeyProbe {
        KeyProbe { numbers: Some((value, value)), text: None }
    }

    fn text(value: &str) -> KeyProbe {
        KeyProbe { numbers: None, text: Some(Key::of_bytes(value.as_bytes())) }
    }

    fn keys_of(column: &ColumnSchema, values: &[Vec<u8>]) -> ColumnKeys {
        let mut keys = ColumnKeysBuilder::default();
        for value in values {
            keys.add(&Cell { index: 0, column, content: CellContent::Value(value) });
        }
        keys.add(&Cell { index: 0, column, content: CellContent::Null });
        keys.build()
    }

    #[test]
    fn numbers_that_are_there_are_found_and_few_others() {
        let column = bigint();
        let values: Vec<_> = (0..5_000_i64).map(|value| (value * 3).to_le_bytes().to_vec()).collect();
        let keys = keys_of(&column, &values);
        assert!((0..5_000).all(|value| keys.may_have(&[number(value * 3)])));
        let others = (0..5_000).filter(|value| keys.may_have(&[number(value * 3 + 1)])).count();
        assert!(others < 60, "{others}");
        assert!(keys.may_have(&[KeyProbe { numbers: Some((4, 6)), text: None }]));
        assert!(keys.may_have(&[text("x")]), "a text may be any number");
        assert!(keys.memory() < 8_000, "{}", keys.memory());
    }

    #[test]
    fn without_keys_nothing_is_there_and_what_has_none_may_be_anything() {
        let column = bigint();
        assert!(!keys_of(&column, &[]).may_have(&[number(1)]));
        let mut keys = ColumnKeysBuilder::default();
        keys.add_other();
        assert!(keys.build().may_have(&[number(1)]));
    }
}
