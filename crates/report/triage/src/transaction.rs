//! A transaction as it is told: its rows by table and operation, its session, its statement; put together from its events, of which
//! a batch may hold only some.

use std::mem;
use std::sync::Arc;

use binlogz_binlog::Error as BinlogError;
use binlogz_binlog::event::{AnyGtidEvent, QueryEvent, RowsKind, StatusVariable};
use binlogz_binlog::gtid::Gtid;
use binlogz_flow::events::Event;
use binlogz_stats::{RowCounts, TableName};

use crate::statement::UnusualStatement;

/// Tables of a transaction that are named; rows of others are counted together.
const TABLES_MAX: usize = 64;
/// Bytes of a statement that are kept.
const STATEMENT_MAX: usize = 1024;
const MICROSECONDS: u64 = 1_000_000;

/// How a transaction is named: by its GTID, or by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionName {
    /// Its GTID.
    Gtid(Gtid),
    /// Where it begins.
    Place {
        /// Which of the logs, counted from 0.
        log: usize,
        /// The offset there, in bytes.
        offset: u64,
    },
}

impl TransactionName {
    /// Whether it names this transaction.
    pub(crate) fn is_of(self, transaction: &TriagedTransaction) -> bool {
        match self {
            TransactionName::Gtid(gtid) => transaction.gtid == Some(gtid),
            TransactionName::Place { log, offset } => (transaction.log, transaction.offset) == (log, offset),
        }
    }
}

/// Transactions of one session, one after the other, that did the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedTransactions {
    /// How many.
    pub transactions: u64,
    /// The time of the last one, as that of a transaction.
    pub until: u64,
    /// The GTID of the last one.
    pub last_gtid: Option<Gtid>,
}

/// A transaction that may be unusual.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TriagedTransaction {
    /// Which of the logs it is in, counted from 0.
    pub log: usize,
    /// Where it begins there, in bytes.
    pub offset: u64,
    /// `None`: it has none, or its begin is not in the log.
    pub gtid: Option<Gtid>,
    /// When it was committed, or begun if the log doesn't say: microseconds since 1970.
    pub time: u64,
    /// Whether the time is that of the commit.
    pub is_commit_time: bool,
    /// The `server_id` of the server that ran it.
    pub server_id: u32,
    /// The session on that server, as SHOW PROCESSLIST calls it.
    pub thread_id: Option<u32>,
    /// User and host, where a statement was logged with them (statements with CURRENT_USER).
    pub account: Option<(String, String)>,
    /// The rows of each table, the first 64.
    pub tables: Vec<TableChanges>,
    /// Rows of further tables.
    pub others: RowCounts,
    /// Rows of other tables that went or changed by foreign keys below the log, by an estimate from a server's tables.
    pub rows_below: u64,
    /// Bytes of its events as they are stored, with headers and checksums.
    pub bytes: u64,
    /// Whether it ended with ROLLBACK.
    pub is_rolled_back: bool,
    /// What a statement of it does, if that is unusual.
    pub unusual: Option<UnusualStatement>,
    /// The statement that changed most of its rows, as far as it is logged; the front of a long one.
    pub statement: Option<Box<str>>,
    /// Others like it that came after it: then rows and bytes are those of all, and the rest is of the first one.
    pub repeated: Option<RepeatedTransactions>,
}

/// Changed rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableChanges {
    /// The table.
    pub name: Arc<TableName>,
    /// All changed rows.
    pub rows: RowCounts,
    /// Those of them that a foreign key changed, as servers since 9.6 say.
    pub by_foreign_key: RowCounts,
    /// How many rows the table has now, by a server's estimate. No log tells it.
    pub rows_now: Option<u64>,
}

impl TriagedTransaction {
    /// All rows.
    pub fn rows(&self) -> RowCounts {
        let mut all = self.others;
        self.tables.iter().for_each(|table| all.add(&table.rows));
        all
    }

    /// The time of the last one, if it was repeated, or its own.
    pub fn end_time(&self) -> u64 {
        self.repeated.as_ref().map_or(self.time, |repeated| repeated.until)
    }

    /// Adds a later one, or several, that did the same.
    pub(crate) fn repeat(&mut self, later: TriagedTransaction) {
        let until = later.time;
        let last_gtid = later.gtid;
        let more = later.repeated.unwrap_or(RepeatedTransactions { transactions: 1, until, last_gtid });
        let before = self.repeated.as_ref().map_or(1, |repeated| repeated.transactions);
        self.repeated =
            Some(RepeatedTransactions { transactions: before.saturating_add(more.transactions), ..more });
        self.bytes = self.bytes.saturating_add(later.bytes);
        self.others.add(&later.others);
        self.rows_below = self.rows_below.saturating_add(later.rows_below);
        self.add_tables(later.tables);
    }

    fn add_tables(&mut self, tables: Vec<TableChanges>) {
        for table in tables {
            match self.table(&table.name) {
                Some(known) => {
                    known.rows.add(&table.rows);
                    known.by_foreign_key.add(&table.by_foreign_key);
                }
                None => self.others.add(&table.rows),
            }
        }
    }

    fn table(&mut self, name: &Arc<TableName>) -> Option<&mut TableChanges> {
        // Events of a table come in runs.
        let is_last = self.tables.last().is_some_and(|last| Arc::ptr_eq(&last.name, name));
        let place = match is_last {
            true => Some(self.tables.len() - 1),
            false => self.tables.iter().position(|table| table.name == *name),
        };
        if let Some(place) = place {
            return self.tables.get_mut(place);
        }
        if self.tables.len() >= TABLES_MAX {
            return None;
        }
        let rows = RowCounts::default();
        let by_foreign_key = RowCounts::default();
        self.tables.push(TableChanges { name: Arc::clone(name), rows, by_foreign_key, rows_now: None });
        self.tables.last_mut()
    }
}

/// A statement as logged, and how many rows came of it.
#[derive(Debug, Clone, Default)]
struct StatementRows {
    text: Option<Box<str>>,
    rows: u64,
}

/// A transaction, or the part of it in one batch, while its events go by.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenTransaction {
    pub(crate) transaction: TriagedTransaction,
    /// Whether its first event is among these.
    has_begin: bool,
    /// Rows before the first statement of this part: they belong to the last one of the part before.
    leading_rows: u64,
    /// The statement with the most rows so far, and the one that is open.
    largest: StatementRows,
    open: Option<StatementRows>,
}

impl OpenTransaction {
    /// Takes its first event.
    ///
    /// # Errors
    ///
    /// A GTID event that can't be read.
    pub(crate) fn begin(event: &Event<'_>) -> Result<Self, BinlogError> {
        let gtid = match &event.frame {
            Some(frame) => AnyGtidEvent::decode_frame(frame)?,
            None => None,
        };
        let committed = gtid.as_ref().and_then(|gtid| Some(gtid.commit_timestamps()?.immediate));
        let transaction = TriagedTransaction {
            offset: event.position.offset,
            gtid: gtid.as_ref().and_then(AnyGtidEvent::gtid),
            time: committed.unwrap_or(u64::from(event.header.timestamp) * MICROSECONDS),
            is_commit_time: committed.is_some(),
            server_id: event.header.server_id,
            bytes: u64::from(event.header.event_size),
            ..TriagedTransaction::default()
        };
        Ok(OpenTransaction { transaction, has_begin: true, ..OpenTransaction::default() })
    }

    /// Takes another event of the log, for its size.
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        self.transaction.bytes += u64::from(event.header.event_size);
    }

    /// Takes the session of BEGIN.
    pub(crate) fn session(&mut self, query_body: &[u8]) {
        // The first field of a query event.
        let thread_id = query_body.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        self.transaction.thread_id = self.transaction.thread_id.or(thread_id.filter(|id| *id != 0));
    }

    /// Takes a statement that is no transaction control.
    pub(crate) fn query(&mut self, query: &QueryEvent<'_>) {
        self.statement(query.statement);
        if query.error_code != 0 || query.is_alter_without_effect() {
            return;
        }
        if self.transaction.unusual.is_none() {
            self.transaction.unusual = UnusualStatement::of(query.statement, query.database);
            if self.transaction.unusual.is_some()
                && let Some(open) = &mut self.open
            {
                // Its rows are in no log: no other statement is the one to show.
                open.rows = u64::MAX;
            }
        }
        for variable in query.status_variables.iter() {
            if let Ok(StatusVariable::Invoker { user, host }) = variable {
                let [user, host] = [user, host].map(|text| String::from_utf8_lossy(text).into_owned());
                self.transaction.account = Some((user, host));
            }
        }
    }

    /// Takes the text of a statement whose rows follow.
    pub(crate) fn statement(&mut self, text: &[u8]) {
        self.close_statement();
        let text = String::from_utf8_lossy(text.get(..STATEMENT_MAX).unwrap_or(text));
        self.open = Some(StatementRows { text: Some(text.into()), rows: 0 });
    }

    /// Takes rows.
    pub(crate) fn rows(&mut self, name: &Arc<TableName>, kind: RowsKind, number: u64, by_foreign_key: bool) {
        match &mut self.open {
            Some(open) => open.rows = open.rows.saturating_add(number),
            None => self.leading_rows += number,
        }
        let transaction = &mut self.transaction;
        match transaction.table(name) {
            Some(table) => {
                table.rows.count(kind, number);
                if by_foreign_key {
                    table.by_foreign_key.count(kind, number);
                }
            }
            None => transaction.others.count(kind, number),
        }
    }

    /// Whether it changes rows or tables.
    pub(crate) fn has_changes(&self) -> bool {
        !self.transaction.tables.is_empty() || self.transaction.unusual.is_some()
    }

    fn close_statement(&mut self) {
        if let Some(open) = self.open.take()
            && (self.largest.text.is_none() || open.rows > self.largest.rows)
        {
            self.largest = open;
        }
    }

    /// Adds the part of it in a later batch.
    pub(crate) fn join(&mut self, later: OpenTransaction) {
        match &mut self.open {
            Some(open) => open.rows = open.rows.saturating_add(later.leading_rows),
            None => self.leading_rows += later.leading_rows,
        }
        if later.largest.text.is_some() || later.open.is_some() {
            self.close_statement();
            if later.largest.rows > self.largest.rows || self.largest.text.is_none() {
                self.largest = later.largest;
            }
            self.open = later.open;
        }
        let own = &mut self.transaction;
        let more = later.transaction;
        own.bytes += more.bytes;
        own.thread_id = own.thread_id.or(more.thread_id);
        own.is_rolled_back |= more.is_rolled_back;
        own.others.add(&more.others);
        own.account = own.account.take().or(more.account);
        own.unusual = own.unusual.take().or(more.unusual);
        own.add_tables(more.tables);
    }

    /// The transaction once it has ended; `None` if its begin is in none of the logs.
    pub(crate) fn end(mut self) -> Option<TriagedTransaction> {
        self.close_statement();
        self.transaction.statement = mem::take(&mut self.largest).text;
        self.has_begin.then_some(self.transaction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &str) -> Arc<TableName> {
        Arc::new(TableName { database: b"d"[..].into(), table: table.as_bytes().into() })
    }

    #[test]
    fn parts_join_as_if_the_batch_had_been_one() {
        let mut whole = OpenTransaction { has_begin: true, ..OpenTransaction::default() };
        let mut parts = [whole.clone(), OpenTransaction::default(), OpenTransaction::default()];
        let rows = [(0, "a", 3), (0, "b", 1), (1, "a", 4), (1, "c", 2), (2, "a", 1)];
        whole.statement(b"small");
        parts[0].statement(b"small");
        whole.rows(&name("x"), RowsKind::Delete, 6, false);
        parts[0].rows(&name("x"), RowsKind::Delete, 6, false);
        whole.statement(b"large");
        parts[0].statement(b"large");
        for (part, table, number) in rows {
            whole.rows(&name(table), RowsKind::Delete, number, table == "b");
            parts[part].rows(&name(table), RowsKind::Delete, number, table == "b");
        }
        let [mut first, second, third] = parts;
        first.join(second);
        first.join(third);
        let joined = first.end().unwrap();
        let whole = whole.end().unwrap();
        assert_eq!(joined, whole);
        assert_eq!(joined.statement.as_deref(), Some("large"));
        assert_eq!(joined.rows().deletes, 17);
    }

    #[test]
    fn tables_without_room_are_counted_together() {
        let mut open = OpenTransaction { has_begin: true, ..OpenTransaction::default() };
        for number in 0..100 {
            open.rows(&name(&format!("t{number}")), RowsKind::Update, 2, false);
        }
        let ended = open.end().unwrap();
        assert_eq!((ended.tables.len(), ended.others.updates, ended.rows().updates), (64, 72, 200));
    }
}
