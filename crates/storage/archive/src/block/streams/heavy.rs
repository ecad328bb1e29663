//! Columns of strings that take long to unpack, since PPMd coded them: the cores that no other block needs take them side by side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

use super::{StreamColumn, too_much};
use crate::codec::strings::{self, StringList};
use crate::codec::varint::Taker;
use crate::error::Result;

/// From so many bytes of PPMd's code on, some milliseconds, a column is heavy.
pub(super) const HEAVY_MIN: usize = 16 << 10;

/// Heavy columns, not unpacked yet.
#[derive(Debug, Default)]
pub(super) struct HeavyColumns<'a> {
    columns: Vec<HeavyColumn<'a>>,
}

#[derive(Debug)]
struct HeavyColumn<'a> {
    column: StreamColumn,
    code: Taker<'a>,
    /// The size of PPMd's code.
    packed: usize,
}

impl<'a> HeavyColumns<'a> {
    pub(super) fn push(&mut self, column: StreamColumn, code: Taker<'a>, packed: usize) {
        self.columns.push(HeavyColumn { column, code, packed });
    }

    /// Unpacks them by so many threads, the calling one among them; they may take `memory` bytes, in a block of `size`.
    pub(super) fn unpack(
        mut self,
        threads: usize,
        size: usize,
        memory: &mut usize,
    ) -> Result<Vec<(StreamColumn, StringList)>> {
        // The largest first, so that none is left when the others are done.
        self.columns.sort_by_key(|column| std::cmp::Reverse(column.packed));
        let run =
            HeavyRun { columns: &self.columns, next: AtomicUsize::new(0), size, memory: Mutex::new(*memory) };
        let mut taken = thread::scope(|scope| {
            let helpers = threads.min(self.columns.len()).saturating_sub(1);
            let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(|| run.take_all())).collect();
            let mut taken = run.take_all();
            for helper in helpers {
                match helper.join() {
                    Ok(more) => taken.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            taken
        });
        *memory = *run.memory.lock();
        // The first error is the same by any number of threads.
        taken.sort_by_key(|(place, _)| *place);
        let columns = self.columns.iter().map(|column| column.column);
        columns.zip(taken).map(|(column, (_, strings))| Ok((column, strings?))).collect()
    }
}

/// Heavy columns under way.
struct HeavyRun<'a> {
    columns: &'a [HeavyColumn<'a>],
    next: AtomicUsize,
    size: usize,
    /// Memory that columns may still take.
    memory: Mutex<usize>,
}

impl HeavyRun<'_> {
    /// Takes columns until there are none; each with its place.
    fn take_all(&self) -> Vec<(usize, Result<StringList>)> {
        let mut taken = Vec::new();
        loop {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(column) = self.columns.get(place) else { return taken };
            taken.push((place, self.take(column.code)));
        }
    }

    fn take(&self, mut code: Taker<'_>) -> Result<StringList> {
        let left = *self.memory.lock();
        let strings = strings::unpack(&mut code, &[], (left / 8).min(self.size), left.min(self.size))?;
        let used = strings.len() * 8 + strings.size() + super::STREAM_COST;
        let mut memory = self.memory.lock();
        *memory = memory.checked_sub(used).ok_or_else(|| too_much(used))?;
        Ok(strings)
    }
}
