//! Changes of chosen rows that came later and weren't chosen: a script that takes the chosen ones back would lose them, or not
//! find its rows. Rows are known by their keys; those of tables without one, by all their columns, also those that their images lack.

use std::collections::HashSet;

use binlogz_figures::counted;

use crate::pass::FollowedTransaction;
use crate::record::RowKeys;

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
}

/// The later changes of chosen rows of a table by one transaction.
#[derive(Debug)]
struct LaterChange {
    number: u64,
    /// GTID, log and offset.
    place: String,
    table: String,
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
            self.name(transaction, &keys.table.shown());
        } else if self.is_full {
            self.unknown += 1;
        }
    }

    fn name(&mut self, transaction: &FollowedTransaction, table: &str) {
        let number = transaction.number;
        if let Some(last) = self
            .named
            .iter_mut()
            .rev()
            .take_while(|last| last.number == number)
            .find(|last| last.table == table)
        {
            last.rows += 1;
            return;
        }
        if self.named.len() >= NAMED_MAX {
            self.more += 1;
            return;
        }
        let gtid = transaction.gtid.as_deref().unwrap_or("a transaction without GTID");
        let place = format!("{gtid}, {} at {}", transaction.log, transaction.offset);
        self.named.push(LaterChange { number, place, table: table.to_owned(), rows: 1 });
    }

    /// The number of later changes, with those of which it isn't known whether they are later.
    pub(super) fn count(&self) -> u64 {
        self.named.iter().map(|named| named.rows).sum::<u64>() + self.more + self.unknown
    }

    /// Names them, line by line.
    pub(super) fn notes(&self) -> Vec<String> {
        let named = |LaterChange { place, table, rows, .. }: &LaterChange| {
            format!(
                "changed again later, which this would lose: {} of {table} by {place}",
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
        self.named.iter().map(named).chain(more).chain(unknown).collect()
    }
}
