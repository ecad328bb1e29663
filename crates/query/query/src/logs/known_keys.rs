//! The keys that parts of archived logs were found to have in a column: the next look-up unpacks the columns of those parts alone that may
//! have its key. The first look-up of a process keeps nothing: it may be the only one.

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_archive::format::ColumnKeys;
use parking_lot::Mutex;

/// Memory of the keys. A block of 8 MiB with 45,000 row changes has some 55 KB of them.
const MEMORY_MAX: usize = 48 << 20;

/// A column of a table in a part of an archived log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PartColumn {
    /// The log's number.
    pub(super) log: usize,
    /// Tells apart how the log was packed.
    pub(super) packing: u32,
    /// Where the part begins, and how many blocks it has.
    pub(super) start: u64,
    pub(super) blocks: usize,
    /// Database and name.
    pub(super) table: (String, String),
    /// The place of the column.
    pub(super) column: usize,
}

/// The keys that are known, those that were used last.
#[derive(Debug, Default)]
pub(super) struct KnownKeys(Mutex<RecentKeys>);

#[derive(Debug, Default)]
struct RecentKeys {
    parts: HashMap<PartColumn, (u64, Arc<[ColumnKeys]>)>,
    memory: usize,
    clock: u64,
    /// Whether keys were looked for before.
    has_begun: bool,
}

impl KnownKeys {
    /// A look-up begins; says whether the keys that it finds are kept.
    pub(super) fn begin(&self) -> bool {
        std::mem::replace(&mut self.0.lock().has_begun, true)
    }

    /// The keys of a part, if they are known: one list for each piece of it.
    pub(super) fn get(&self, part: &PartColumn) -> Option<Arc<[ColumnKeys]>> {
        let mut recent = self.0.lock();
        recent.clock += 1;
        let now = recent.clock;
        let (used, keys) = recent.parts.get_mut(part)?;
        *used = now;
        Some(Arc::clone(keys))
    }

    /// Keeps the keys of a part, and drops those that were not used for longest.
    pub(super) fn put(&self, part: PartColumn, keys: Vec<ColumnKeys>) {
        let mut recent = self.0.lock();
        recent.clock += 1;
        let now = recent.clock;
        recent.memory += memory_of(&part, &keys);
        if let Some((_, before)) = recent.parts.insert(part.clone(), (now, keys.into())) {
            recent.memory -= memory_of(&part, &before);
        }
        while recent.memory > MEMORY_MAX {
            let oldest = recent.parts.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(part, _)| part.clone()) else { break };
            if let Some((_, keys)) = recent.parts.remove(&oldest) {
                recent.memory -= memory_of(&oldest, &keys);
            }
        }
    }
}

fn memory_of(part: &PartColumn, keys: &[ColumnKeys]) -> usize {
    let names = part.table.0.capacity() + part.table.1.capacity();
    size_of::<(PartColumn, u64)>() + names + keys.iter().map(ColumnKeys::memory).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: u64) -> PartColumn {
        let table = ("shop".to_owned(), "orders".to_owned());
        PartColumn { log: 0, packing: 1, start: number, blocks: 1, table, column: 0 }
    }

    #[test]
    fn the_first_look_up_keeps_nothing() {
        let known = KnownKeys::default();
        assert!(!known.begin());
        assert!(known.begin());
    }

    #[test]
    fn memory_is_bounded_and_what_was_used_stays() {
        let known = KnownKeys::default();
        let keys = || (0..1000).map(|_| ColumnKeys::default()).collect::<Vec<_>>();
        let each = memory_of(&part(0), &keys());
        let count = (MEMORY_MAX / each) as u64 + 10;
        for number in 0..count {
            known.put(part(number), keys());
            assert!(known.get(&part(0)).is_some());
        }
        assert!(known.get(&part(1)).is_none());
        assert!(known.get(&part(count - 1)).is_some());
        assert!(known.0.lock().memory <= MEMORY_MAX);
        known.put(part(0), keys());
        assert!(known.0.lock().memory <= MEMORY_MAX);
    }
}
