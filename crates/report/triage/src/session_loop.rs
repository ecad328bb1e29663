//! Loops: one session that changes rows of a table one by one, each in a transaction of its own, as an application or an archiver does.
//! Each of these transactions is as small as the usual ones; together they are a mass change.
//!
//! A loop may begin in one batch and go on in later ones. So a batch keeps all that may be part of one, and those that are too short are only
//! left out once it is known what came before.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use binlogz_stats::{RowCounts, TableName};

use crate::largest::{OperationOnTable, ROWS_MIN};
use crate::transaction::TriagedTransaction;

/// Transactions that a loop has.
const TRANSACTIONS_MIN: u64 = 500;
/// Its transactions follow one another within this many microseconds. Logs before 8.0 have whole seconds.
const PAUSE_MAX: u64 = 2_000_000;
/// And on average within this many: a session that waits for people is slower.
const INTERVAL_MAX: u64 = 50_000;
/// A loop over more than half of logs of at least so many microseconds is a job that always runs.
const STEADY_MIN: u64 = 600_000_000;
/// Sessions and tables that are followed at once.
const SESSIONS_MAX: usize = 4096;

/// Transactions that may be of one loop.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SessionOnTable {
    server_id: u32,
    thread_id: u32,
    table: Arc<TableName>,
    is_delete: bool,
}

impl SessionOnTable {
    /// `None`: it can't be part of a loop.
    fn of(transaction: &TriagedTransaction) -> Option<Self> {
        let thread_id = transaction.thread_id?;
        let is_other =
            transaction.unusual.is_some() || transaction.is_rolled_back || transaction.others.total() > 0;
        let own =
            transaction.tables.iter().map(|table| (&table.name, own(&table.rows, &table.by_foreign_key)));
        let mut changed = own.clone().filter(|(_, rows)| rows.deletes + rows.updates > 0);
        let (table, rows) = changed.next()?;
        let count = rows.deletes + rows.updates;
        // A trigger may write down each change.
        let inserted: u64 = own.map(|(_, rows)| rows.inserts).sum();
        let is_mixed = rows.deletes.min(rows.updates) > 0 || rows.inserts > 0 || changed.next().is_some();
        if is_other || is_mixed || count >= ROWS_MIN || inserted > count {
            return None;
        }
        let server_id = transaction.server_id;
        let table = Arc::clone(table);
        Some(SessionOnTable { server_id, thread_id, table, is_delete: rows.deletes > 0 })
    }

    fn operation(&self) -> OperationOnTable {
        match self.is_delete {
            true => OperationOnTable::DeleteLoop(Arc::clone(&self.table)),
            false => OperationOnTable::UpdateLoop(Arc::clone(&self.table)),
        }
    }
}

/// The rows that no foreign key changed.
fn own(rows: &RowCounts, by_foreign_key: &RowCounts) -> RowCounts {
    RowCounts {
        inserts: rows.inserts.saturating_sub(by_foreign_key.inserts),
        updates: rows.updates.saturating_sub(by_foreign_key.updates),
        deletes: rows.deletes.saturating_sub(by_foreign_key.deletes),
    }
}

/// A loop that has ended.
pub(crate) struct EndedLoop {
    pub(crate) operation: OperationOnTable,
    pub(crate) rows: u64,
    /// The first transaction, with the rows of all.
    pub(crate) transaction: TriagedTransaction,
}

/// The loops of sessions, as far as they are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionLoops {
    /// Of each, what is separated by pauses, in the order of the log.
    sessions: HashMap<SessionOnTable, Vec<TriagedTransaction>>,
}

impl SessionLoops {
    /// Takes a transaction, after all others.
    pub(crate) fn take(&mut self, transaction: TriagedTransaction) {
        if let Some(session) = SessionOnTable::of(&transaction) {
            add(self.sessions.entry(session).or_default(), transaction);
        }
    }

    /// Adds those of a later part; the loops that have ended.
    pub(crate) fn join(&mut self, later: SessionLoops) -> Vec<EndedLoop> {
        let mut ended = Vec::new();
        for (session, transactions) in later.sessions {
            if self.sessions.len() >= SESSIONS_MAX && !self.sessions.contains_key(&session) {
                let time = transactions.last().map_or(0, TriagedTransaction::end_time);
                self.leave_ended(time, &mut ended);
                if self.sessions.len() >= SESSIONS_MAX {
                    continue;
                }
            }
            let known = self.sessions.entry(session.clone()).or_default();
            transactions.into_iter().for_each(|transaction| add(known, transaction));
            let open = known.pop();
            ended.extend(known.drain(..).filter_map(|transaction| ended_loop(&session, transaction)));
            known.extend(open);
        }
        ended
    }

    /// Leaves out what has ended by this time; if that is nothing, what has a single transaction.
    fn leave_ended(&mut self, time: u64, ended: &mut Vec<EndedLoop>) {
        let sessions = mem::take(&mut self.sessions);
        let goes_on = |last: &TriagedTransaction| last.end_time().saturating_add(PAUSE_MAX) >= time;
        for (session, transactions) in sessions {
            match transactions.last().is_some_and(|last| goes_on(last) && last.repeated.is_some()) {
                true => drop(self.sessions.insert(session, transactions)),
                false => ended.extend(
                    transactions.into_iter().filter_map(|transaction| ended_loop(&session, transaction)),
                ),
            }
        }
    }

    /// Says that nothing more comes.
    pub(crate) fn end(&mut self) -> Vec<EndedLoop> {
        let sessions = mem::take(&mut self.sessions).into_iter();
        let ended = sessions.flat_map(|(session, transactions)| {
            let all = transactions.into_iter();
            all.filter_map(|transaction| ended_loop(&session, transaction)).collect::<Vec<_>>()
        });
        ended.collect()
    }

    /// Says that all are of the log with this number.
    pub(crate) fn set_log(&mut self, log: usize) {
        self.sessions.values_mut().flatten().for_each(|transaction| transaction.log = log);
    }
}

/// Adds a transaction, or several that are one loop, to what it continues or after it.
fn add(known: &mut Vec<TriagedTransaction>, transaction: TriagedTransaction) {
    match known.last_mut() {
        Some(last) if transaction.time.saturating_sub(last.end_time()) <= PAUSE_MAX => {
            last.repeat(transaction)
        }
        Some(_) | None => known.push(transaction),
    }
}

/// What is a loop of these transactions.
fn ended_loop(session: &SessionOnTable, transaction: TriagedTransaction) -> Option<EndedLoop> {
    let count = transaction.repeated.as_ref().map_or(1, |repeated| repeated.transactions);
    let time = transaction.end_time().saturating_sub(transaction.time);
    if count < TRANSACTIONS_MIN || time / count > INTERVAL_MAX {
        return None;
    }
    let rows = transaction.rows();
    let rows = if session.is_delete { rows.deletes } else { rows.updates };
    Some(EndedLoop { operation: session.operation(), rows, transaction })
}

/// Whether a loop goes on through most of the logs, which are of these times.
pub(crate) fn is_steady(transaction: &TriagedTransaction, (first, last): (u64, u64)) -> bool {
    let logs = last.saturating_sub(first);
    let own = transaction.end_time().saturating_sub(transaction.time);
    logs >= STEADY_MIN && own.saturating_mul(2) > logs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::TableChanges;

    fn deleted(thread: u32, time: u64) -> TriagedTransaction {
        let name = Arc::new(TableName { database: b"shop"[..].into(), table: b"items"[..].into() });
        let rows = RowCounts { deletes: 1, ..RowCounts::default() };
        TriagedTransaction {
            offset: time,
            time,
            thread_id: Some(thread),
            tables: vec![TableChanges { name, rows, by_foreign_key: RowCounts::default(), rows_now: None }],
            ..TriagedTransaction::default()
        }
    }

    fn told(ended: &[EndedLoop]) -> Vec<(u64, u64, u64)> {
        let told =
            ended.iter().map(|ended| (ended.transaction.time, ended.transaction.end_time(), ended.rows));
        let mut told: Vec<_> = told.collect();
        told.sort_unstable();
        told
    }

    /// A transaction each millisecond, of two sessions; after a pause the first goes on.
    fn times() -> Vec<(u32, u64)> {
        let first = (0..1200).map(|number| (1, number * 1000));
        let other = (0..400).map(|number| (2, number * 3000 + 1));
        let again = (0..600).map(|number| (1, 5_000_000 + number * 1000));
        let mut times: Vec<_> = first.chain(other).chain(again).collect();
        times.sort_by_key(|(_, time)| *time);
        times
    }

    #[test]
    fn a_loop_is_the_same_however_batches_cut_it() {
        for size in [1, 7, 300, 5000] {
            let mut loops = SessionLoops::default();
            let mut ended = Vec::new();
            for batch in times().chunks(size) {
                let mut later = SessionLoops::default();
                batch.iter().for_each(|(thread, time)| later.take(deleted(*thread, *time)));
                ended.extend(loops.join(later));
            }
            ended.extend(loops.end());
            let expected = [(0, 1_199_000, 1200), (5_000_000, 5_599_000, 600)];
            assert_eq!(told(&ended), expected, "batches of {size}");
        }
    }

    #[test]
    fn what_is_slow_or_mixed_is_no_loop() {
        let mut loops = SessionLoops::default();
        (0..2000).for_each(|number| loops.take(deleted(1, number * (INTERVAL_MAX + 1000))));
        for number in 0..2000 {
            let mut mixed = deleted(2, number);
            mixed.tables[0].rows.updates = 1;
            loops.take(mixed);
            let mut large = deleted(3, number);
            large.tables[0].rows.deletes = ROWS_MIN;
            loops.take(large);
        }
        assert_eq!(told(&loops.end()), []);
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let mut loops = SessionLoops::default();
        let mut ended = Vec::new();
        for number in 0..20_000_u32 {
            let mut later = SessionLoops::default();
            later.take(deleted(number + 2, u64::from(number)));
            later.take(deleted(1, u64::from(number)));
            ended.extend(loops.join(later));
        }
        assert!(loops.sessions.len() <= SESSIONS_MAX, "{}", loops.sessions.len());
        ended.extend(loops.end());
        assert_eq!(told(&ended), [(0, 19_999, 20_000)]);
    }

    #[test]
    fn a_loop_over_all_of_long_logs_is_a_job() {
        let mut long = deleted(1, 0);
        long.repeat(deleted(1, 400_000_000));
        assert!(is_steady(&long, (0, 700_000_000)));
        assert!(!is_steady(&long, (0, 900_000_000)));
        assert!(!is_steady(&long, (0, 500_000_000)));
    }
}
