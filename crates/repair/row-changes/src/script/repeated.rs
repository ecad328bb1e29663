//! Changes of rows without a key that were made, or taken back, already.
//!
//! Of equal rows nothing tells one from the other: a change that is applied a second time takes an equal row of somebody else,
//! or adds one. So later changes that did the same to an equal row, as the log has them, are looked for: the
//! change that is to be applied may be among them.
//!
//! ```text
//! a change from a row    it takes away that row
//! a change from nothing  it adds its row
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use binlogz_binlog::row::{CellContent, Row, RowImage};

use crate::choose::Direction;
use crate::digest::Digests;
use crate::pass::FollowedTransaction;
use crate::record::RowKeys;
use crate::table::WrittenTable;

/// Rows whose changes are held.
const ROWS_MAX: usize = 1 << 20;

/// The digest of a row's change as it is to be applied, and as it was made; nothing of a table with a key, where the row itself
/// tells, or of images that lack columns.
pub(super) fn digests_of(
    digests: &Digests,
    table: &WrittenTable,
    row: &Row<'_, '_>,
    direction: Direction,
) -> Option<[u128; 2]> {
    if table.key.is_some() {
        return None;
    }
    let back = digest(digests, table, row.after, row.before)?;
    let again = digest(digests, table, row.before, row.after)?;
    Some(if direction == Direction::Undo { [back, again] } else { [again, again] })
}

fn digest(
    digests: &Digests,
    table: &WrittenTable,
    from: Option<RowImage<'_, '_>>,
    to: Option<RowImage<'_, '_>>,
) -> Option<u128> {
    let image = from.or(to)?;
    let cells: Option<Vec<_>> = (0..table.columns.len())
        .map(|index| match image.cell(index)?.content {
            CellContent::Null => Some(None),
            CellContent::Value(bytes) => Some(Some(bytes)),
            CellContent::JsonDiffs(_) => None,
        })
        .collect();
    Some(digests.of((from.is_some(), &table.schema.database, &table.schema.table, cells?)))
}

/// A change that is to be applied, by the order in which different ones came: the same in each run over the same logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ChangeNumber(pub(super) u32);

impl ChangeNumber {
    /// A row of a table with a key.
    pub(super) const KEYED: ChangeNumber = ChangeNumber(u32::MAX);
    /// The number of every change beyond those that are held.
    const BEYOND: ChangeNumber = ChangeNumber(u32::MAX - 1);
}

/// The later changes that did what is to be applied, gathered while the logs are read.
#[derive(Debug, Default)]
pub(super) struct RepeatedChanges {
    chosen: HashMap<u128, ChangeNumber>,
    /// Where the last of them is.
    found: HashMap<ChangeNumber, String>,
    /// The reason for which not all later changes are known.
    unknown: Option<String>,
}

impl RepeatedChanges {
    /// A change of a row has passed, chosen or not.
    pub(super) fn take(
        &mut self,
        transaction: &FollowedTransaction,
        keys: &RowKeys<'_>,
        is_chosen: bool,
    ) -> ChangeNumber {
        let &[applied, made] = keys.digests.as_slice() else { return ChangeNumber::KEYED };
        if !is_chosen {
            if let Some(number) = self.chosen.get(&made) {
                let gtid = transaction.gtid.as_deref().unwrap_or("a transaction without GTID");
                let place = format!("{gtid}, {} at {}", transaction.log, transaction.offset);
                self.found.insert(*number, place);
            }
            return ChangeNumber::KEYED;
        }
        let next = self.chosen.len();
        match self.chosen.entry(applied) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) if next < ROWS_MAX => *entry.insert(ChangeNumber(next as u32)),
            Entry::Vacant(_) => ChangeNumber::BEYOND,
        }
    }

    /// Notes that some later changes can't be read, and why.
    pub(super) fn unknown(&mut self, why: &str) {
        self.unknown.get_or_insert_with(|| why.to_owned());
    }

    /// The reason for which it isn't known whether a change was made already; `None`: it is known.
    pub(super) fn why(&self, change: ChangeNumber) -> Option<String> {
        if change == ChangeNumber::KEYED {
            return None;
        }
        let without = "its table has no key, so whether this was done already can't be told";
        if let Some(place) = self.found.get(&change) {
            return Some(format!("{without}: an equal row was changed in the same way by {place}"));
        }
        let full =
            || (change == ChangeNumber::BEYOND).then(|| format!("more than {ROWS_MAX} such rows are chosen"));
        self.unknown.clone().or_else(full).map(|why| format!("{without}: {why}"))
    }
}
