//! Changes of chosen rows that came later and weren't chosen: a script that takes the chosen ones back would lose them, or not
//! find its rows. Rows are known by their keys; those of tables without one, by all their columns, also those that their images lack.

use std::collections::HashSet;

use binlogz_figures::counted;

use super::later_below::LaterBelow;
use crate::pass::FollowedTransaction;
use crate::record::{CarriedParent, RowKeys, RowReference};

/// Keys of chosen rows that are held.
const KEYS_MAX: usize = 1 << 20;
/// Later transactions that are named.
const NAMED_MAX: usize = 1000;

/// The later changes of chosen rows, gathered while the logs are read.
#[derive(Debug, Default)]
pub(super) struct LaterChanges {
    chosen: HashSet<u128>,
    /// Whether there are more chosen rows than are held.
    is_full: bool,
    named: Vec<LaterChange>,
    /// Changes that are not among the named ones.
    more: u64,
    /// Changes of which it isn't known whether their row was chosen.
    unknown: u64,
    /// Changes that no log has.
    pub(super) below: LaterBelow,
}

/// The later changes of chosen rows of a table by one transaction.
#[derive(Debug)]
struct LaterChange {
    number: u64,
    /// GTID, log and offset.
    place: String,
    table: String,
    /// The foreign key that made it below the log, in words.
    key: Option<String>,
    rows: u64,
}

impl LaterChanges {
    /// A change of a row has passed, chosen or not. `whole` has its digests where they are of columns that its images lack.
    pub(super) fn take(
        &mut self,
        transaction: &FollowedTransaction,
        keys: &RowKeys<'_>,
        whole: Option<&[u128]>,
        is_chosen: bool,
    ) {
        // A row that isn't followed has no more than its images.
        let whole = whole.filter(|whole| whole.len() >= keys.digests.len());
        let mut digests = whole.unwrap_or(&keys.digests).iter();
        if is_chosen {
            for key in digests {
                if self.chosen.len() < KEYS_MAX {
                    self.chosen.insert(*key);
                } else {
                    self.is_full |= !self.chosen.contains(key);
                }
            }
        } else if digests.any(|key| self.chosen.contains(key)) {
            self.name(transaction, &keys.table.shown(), None, 1);
        } else if self.is_full {
            self.unknown += 1;
        }
    }

    /// A chosen row was changed, and refers to these rows before and after that.
    pub(super) fn refer(&mut self, references: &[RowReference]) {
        self.below.take(references);
    }

    /// A row that others refer to was changed below the log by a transaction that isn't chosen.
    pub(super) fn change_below(&mut self, transaction: &FollowedTransaction, change: &CarriedParent) {
        if let Some(carried) = self.below.change(change, &place_of(transaction)) {
            self.name(transaction, &carried.table, Some(&carried.key), carried.rows);
        }
    }

    fn name(&mut self, transaction: &FollowedTransaction, table: &str, key: Option<&str>, rows: u64) {
        let number = transaction.number;
        if let Some(last) = self
            .named
            .iter_mut()
            .rev()
            .take_while(|last| last.number == number)
            .find(|last| last.table == table && last.key.as_deref() == key)
        {
            last.rows += rows;
            return;
        }
        if self.named.len() >= NAMED_MAX {
            self.more += rows;
            return;
        }
        let place = place_of(transaction);
        let key = key.map(str::to_owned);
        self.named.push(LaterChange { number, place, table: table.to_owned(), key, rows });
    }

    /// The number of later changes, with those of which it isn't known whether they are later.
    pub(super) fn count(&self) -> u64 {
        self.named.iter().map(|named| named.rows).sum::<u64>() + self.more + self.unknown + self.below.count()
    }

    /// Names them, line by line.
    pub(super) fn notes(&self) -> Vec<String> {
        let named = |LaterChange { place, table, key, rows, .. }: &LaterChange| {
            let by = key.as_ref().map(|key| format!(", below the log through {key}")).unwrap_or_default();
            format!(
                "changed again later, which this would lose: {} of {table} by {place}{by}",
                counted(*rows, "rows")
            )
        };
        let more = (self.more > 0).then(|| {
            format!("changed again later, which this would lose: {} more", counted(self.more, "rows"))
        });
        let unknown = (self.unknown > 0).then(|| {
            format!(
                "of {} that were changed later it isn't known whether they are among these: more than {KEYS_MAX} keys were chosen",
                counted(self.unknown, "rows")
            )
        });
        self.named.iter().map(named).chain(more).chain(unknown).chain(self.below.notes()).collect()
    }
}

/// The GTID, log and offset of a transaction.
fn place_of(transaction: &FollowedTransaction) -> String {
    let gtid = transaction.gtid.as_deref().unwrap_or("a transaction without GTID");
    format!("{gtid}, {} at {}", transaction.log, transaction.offset)
}
