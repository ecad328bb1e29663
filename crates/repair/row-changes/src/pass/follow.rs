//! Follows the transactions through the records of all batches, in order, and tells a [`ChoiceListener`] of the chosen ones.

use std::io;

use binlogz_binlog::event::{
    AnyGtidEvent, ExecuteLoadQueryEvent, PreviousGtidsEvent, QueryEvent, StatusVariable, XaPrepareEvent,
};
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::statement::StatementKind;
use binlogz_flow::events::UnreadChanges;
use binlogz_payload::Spool;
use binlogz_schema::{HistoryPlace, RecordedStatement, TableHistory};

use super::Error;
use super::carried::CarriedChanges;
use super::order::{Break, LogOrder};
use super::shortened::shortened;
use super::together::ChangesTogether;
use crate::choose::{Condition, Range, RowSelection};
use crate::record::{
    BatchRecord, CarriedParent, EventAt, RecordReader, RecordTable, RowAt, RowImages, RowKeys, RowReference,
};
use crate::table::Structure;

/// A transaction, as far as it has passed.
#[derive(Debug, Clone, Default)]
pub(crate) struct FollowedTransaction {
    /// Counted from 1 over all logs.
    pub(crate) number: u64,
    pub(crate) log: String,
    /// Which of the logs it is, counted from 1.
    pub(crate) log_number: u64,
    pub(crate) offset: u64,
    /// The transaction's GTID, as it is written.
    pub(crate) gtid: Option<String>,
    /// The time of its commit, in microseconds since 1970; in old logs, the time at which it began.
    pub(crate) time: u64,
    pub(crate) thread_id: Option<u32>,
    /// The original text of the current statement, where it was logged.
    pub(crate) statement: Option<Vec<u8>>,
    /// The number of its statements that were logged so far.
    pub(crate) statements: u64,
    /// The identifier of a transaction that is prepared, not committed, as the server spells it.
    pub(crate) prepared: Option<String>,
    pub(crate) id: Option<Gtid>,
    pub(crate) is_chosen: bool,
    /// Whether it is chosen if its session is, which its first statement tells.
    may_be_chosen: bool,
    has_savepoint_rollback: bool,
    is_rolled_back: bool,
}

impl FollowedTransaction {
    /// Names a statement of it that changed a table.
    pub(crate) fn changed_by(&self, statement: &str) -> String {
        let by = self.gtid.as_deref().unwrap_or("a transaction without GTID");
        let FollowedTransaction { log, offset, .. } = self;
        format!("{by}, {log} at {offset}: {}", shortened(statement))
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionEnding {
    /// The changes are there, or will be when the transaction is committed.
    Whole,
    /// ROLLBACK: only changes to tables without transactions are there.
    RolledBack,
    /// ROLLBACK TO SAVEPOINT left changes in the log that aren't in the tables.
    PartlyRolledBack,
    /// The log ends within it.
    Cut,
}

/// A statement that stands in the log as text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatementAt<'b> {
    /// The session's default database.
    pub(crate) database: &'b [u8],
    pub(crate) text: &'b [u8],
    /// Whether it failed, having done a part of its work.
    pub(crate) has_failed: bool,
    /// `sql_mode` as bits, where it is logged.
    pub(crate) sql_mode: u64,
}

/// Bits of `sql_mode`.
const ANSI_QUOTES: u64 = 1 << 2;
const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;

impl StatementAt<'_> {
    /// Adds it to a history of tables.
    pub(crate) fn record(&self, transaction: &FollowedTransaction, history: &mut TableHistory) {
        history.record(&RecordedStatement {
            place: HistoryPlace { log: transaction.log_number, offset: transaction.offset },
            database: &String::from_utf8_lossy(self.database),
            text: &String::from_utf8_lossy(self.text),
            quotes_names: self.sql_mode & ANSI_QUOTES != 0,
            keeps_backslashes: self.sql_mode & NO_BACKSLASH_ESCAPES != 0,
            has_failed: self.has_failed,
        });
    }
}

/// Takes the chosen transactions and rows.
pub(crate) trait ChoiceListener {
    /// A log doesn't follow the one before it. An error ends the pass.
    fn breaks(&mut self, _logs: &Break) -> Result<(), Error> {
        Ok(())
    }

    /// Whether it also gets statements after the end of the chosen range.
    fn wants_statements_after(&self) -> bool {
        false
    }

    /// A log tells all transactions before it.
    fn follows(&mut self, _previous: &GtidSet) {}

    /// A transaction begins, chosen or not; `time` as in [`FollowedTransaction`].
    fn begin(&mut self, _gtid: Option<&Gtid>, _time: u64) {}

    /// The rows after this are of this table.
    fn table(&mut self, _database: &[u8], _table: &[u8], _structure: Structure) -> io::Result<()> {
        Ok(())
    }

    /// The table map of the table of the last rows, if the renderer needs it.
    fn table_map(&mut self, _map: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// A part of the text of the row that comes next, if the renderer has parts.
    fn row_part(&mut self, _text: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// The row that comes next lacks columns that it would need.
    fn lacking(&mut self) {}

    /// Whether the row that comes next meets the condition, for which its own images don't have enough; `why` says so.
    fn decide(&mut self, _condition: Option<&Condition>, why: &str) -> Result<bool, Error> {
        Err(Error::Refused(why.to_owned()))
    }

    /// A row.
    fn row(&mut self, _transaction: &FollowedTransaction, _row: &RowAt<'_>) -> io::Result<()> {
        Ok(())
    }

    /// The images after this are of the table of this map, which stands at this place.
    fn images_table(&mut self, _place: HistoryPlace, _map: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    /// The operation and the images of a row of a followed table, chosen or not; a chosen row follows.
    fn image(&mut self, _change: RowImages<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Images of a followed table can't be read, or of all of them.
    fn lost_images(&mut self, _table: Option<(&str, &str)>, _why: &str) {}

    /// A row was changed, on account of which foreign keys may have changed others that aren't in the log.
    fn keys_below(&mut self) {}

    /// The statement of the images that come, as MariaDB notes it, where tables are followed; empty if it isn't known.
    fn annotation(&mut self, _statement: &[u8]) {}

    /// The keys of a row's change, chosen or not, where the renderer has digests; a chosen row follows.
    fn keys(&mut self, _transaction: &FollowedTransaction, _keys: &RowKeys<'_>, _is_chosen: bool) {}

    /// The rows that the row refers to whose keys come next, where the renderer follows them.
    fn references(&mut self, _references: Vec<RowReference>) {}

    /// A row that others refer to was changed below the log by a transaction that isn't chosen.
    fn parent_changed(&mut self, _transaction: &FollowedTransaction, _change: &CarriedParent) {}

    /// A statement that is no transaction control. It is told of those that weren't chosen too.
    fn statement(
        &mut self,
        _transaction: &FollowedTransaction,
        _statement: StatementAt<'_>,
    ) -> io::Result<()> {
        Ok(())
    }

    /// A prepared transaction was committed or rolled back, chosen or not.
    fn decided(&mut self, _xid: &str, _is_committed: bool) {}

    /// The end of any transaction, before [`ChoiceListener::end`].
    fn passed(&mut self, _transaction: &FollowedTransaction, _ending: TransactionEnding) {}

    /// The end of a chosen transaction.
    fn end(&mut self, transaction: &FollowedTransaction, ending: TransactionEnding) -> io::Result<()>;
}

/// Follows the transactions of all logs, in order, and tells the listener of the chosen ones.
pub(crate) struct Follower<L> {
    pub(crate) listener: L,
    log: String,
    pub(super) log_number: u64,
    range: Range,
    order: LogOrder,
    open: Option<FollowedTransaction>,
    count: u64,
    /// Whether the chosen range is over: nothing more is chosen.
    pub(crate) is_over: bool,
    /// Whether a transaction was chosen at all.
    pub(crate) has_chosen: bool,
    /// Which of the tables that were named had rows in chosen transactions, by place.
    pub(crate) tables_met: Vec<bool>,
    /// Changes that foreign keys carried on below the log in chosen transactions, where these were asked for.
    pub(crate) carried: CarriedChanges,
    /// Rows of tables that aren't chosen, which statements of chosen rows changed too.
    pub(crate) together: ChangesTogether,
    /// The place of the current table.
    table: Option<usize>,
    /// Whether the listener takes the row that comes next, if it was asked.
    decision: Option<bool>,
}

impl<L: ChoiceListener> Follower<L> {
    pub(crate) fn new(listener: L) -> Self {
        Follower {
            listener,
            log: String::new(),
            log_number: 0,
            range: Range::WHOLE,
            order: LogOrder::default(),
            open: None,
            count: 0,
            is_over: false,
            has_chosen: false,
            tables_met: Vec::new(),
            carried: CarriedChanges::default(),
            together: ChangesTogether::default(),
            table: None,
            decision: None,
        }
    }

    pub(super) fn begin_log(&mut self, name: &str, range: Range) {
        name.clone_into(&mut self.log);
        self.log_number += 1;
        self.range = range;
        self.order.begin_log(name);
        self.carried.begin_log(name);
    }

    /// Transactions that the coming log holds, though they may not be seen.
    pub(crate) fn pass_over(&mut self, gtids: &GtidSet) {
        self.order.pass_over(gtids);
    }

    /// Logs that come from here on needn't follow those before, and nothing of them is chosen.
    pub(crate) fn read_only_statements(&mut self) -> io::Result<()> {
        self.is_over = true;
        self.order = LogOrder::default();
        self.finish()
    }

    /// Ends the pass: no more logs come.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        self.carried.end(true);
        self.together.end(true);
        self.listener.passed(&open, TransactionEnding::Cut);
        if open.is_chosen { self.listener.end(&open, TransactionEnding::Cut) } else { Ok(()) }
    }

    /// Takes the records of a batch. Changes of it that can't be read stand anywhere among them.
    pub(super) fn take_batch(
        &mut self,
        records: &Spool,
        selection: &RowSelection,
        unread: &UnreadChanges,
    ) -> Result<(), Error> {
        self.lose_unread(unread);
        self.take(records, selection)?;
        self.lose_unread(unread);
        Ok(())
    }

    fn lose_unread(&mut self, unread: &UnreadChanges) {
        for lost in unread.iter() {
            self.listener.lost_images(lost.table, &format!("{} {lost}", self.log));
        }
        if unread.unnamed() > 0 {
            self.listener.lost_images(None, &format!("events of {} can't be read", self.log));
        }
    }

    /// Takes the records of a batch.
    fn take(&mut self, records: &Spool, selection: &RowSelection) -> Result<(), Error> {
        let mut reader = RecordReader::new(records.reader(0..records.size()));
        while let Some((kind, content)) = reader.next()? {
            self.record(BatchRecord::read(kind, content)?, selection)?;
        }
        Ok(())
    }

    fn record(&mut self, record: BatchRecord<'_>, selection: &RowSelection) -> Result<(), Error> {
        match record {
            BatchRecord::Begin(event) => self.begin(event, selection)?,
            BatchRecord::Query(event) => self.query(&QueryEvent::decode(event.body)?, selection)?,
            BatchRecord::LoadQuery(event) => {
                self.query(&ExecuteLoadQueryEvent::decode(event.body)?.query, selection)?;
            }
            BatchRecord::XaPrepare(event) => self.xa_prepare(&XaPrepareEvent::decode(event.body)?),
            BatchRecord::RowsQuery(text) => self.rows_query(text),
            BatchRecord::Table(structure, RecordTable { database, table }) => {
                self.tables_met.resize(selection.tables.len(), false);
                self.table = selection.place_of(database, table);
                self.listener.table(database, table, structure)?;
            }
            BatchRecord::TableMap(map) => self.listener.table_map(map)?,
            BatchRecord::Lacking if self.takes_row() => self.listener.lacking(),
            BatchRecord::Lacking => {}
            BatchRecord::Undecided(why) => {
                let condition = selection.condition.as_ref();
                let why = String::from_utf8_lossy(why);
                self.decision = Some(self.is_in_chosen() && self.listener.decide(condition, &why)?);
            }
            BatchRecord::ImagesTable(offset, map) => {
                self.listener.images_table(HistoryPlace { log: self.log_number, offset }, map)?;
            }
            BatchRecord::Image(images) => {
                self.decision = None;
                self.listener.image(images)?;
            }
            BatchRecord::LostImages(table, why) => {
                let (database, name) = table.names();
                let line = format!("{}: {}", self.log, String::from_utf8_lossy(why));
                self.listener.lost_images(Some((&database, &name)), &line);
            }
            BatchRecord::KeysBelow => self.listener.keys_below(),
            BatchRecord::Annotation(statement) => self.listener.annotation(statement),
            BatchRecord::Carried(key, offset, inside) => {
                if self.is_in_chosen() {
                    self.carried.add(key, || place_of(&self.log, offset, inside));
                }
            }
            BatchRecord::Together(count, offset, inside, table) => {
                if self.is_in_chosen() {
                    self.together.add(table.shown(), count, || place_of(&self.log, offset, inside));
                }
            }
            BatchRecord::StatementEnd => self.together.end_statement(),
            BatchRecord::Row(row) => self.row(&row)?,
            BatchRecord::RowPart(text) if self.takes_row() => self.listener.row_part(text)?,
            BatchRecord::RowPart(_) => {}
            BatchRecord::Keys(keys) => {
                if let Some(open) = &self.open {
                    let is_chosen = keys.is_chosen && open.is_chosen && self.decision != Some(false);
                    self.listener.keys(open, &keys, is_chosen);
                }
            }
            BatchRecord::References(references) => self.listener.references(references),
            BatchRecord::ParentChanged(change) => {
                if let Some(open) = self.open.as_ref().filter(|open| !open.is_chosen) {
                    self.listener.parent_changed(open, &change);
                }
            }
            BatchRecord::End => self.end()?,
            BatchRecord::PreviousGtids(body) => self.previous(&PreviousGtidsEvent::decode(body)?.gtid_set)?,
            BatchRecord::Rotate(name) => self.order.rotate(name),
        }
        Ok(())
    }

    fn xa_prepare(&mut self, prepare: &XaPrepareEvent<'_>) {
        if let Some(open) = self.open.as_mut().filter(|_| !prepare.one_phase) {
            open.prepared = Some(prepare.xa_id.to_string());
        }
    }

    fn rows_query(&mut self, text: &[u8]) {
        if let Some(open) = &mut self.open {
            open.statement = Some(text.to_vec());
            open.statements += 1;
        }
    }

    fn row(&mut self, row: &RowAt<'_>) -> io::Result<()> {
        let is_left = self.decision.take() == Some(false);
        let Some(open) = self.open.as_ref().filter(|open| open.is_chosen && !is_left) else { return Ok(()) };
        let met = self.table.and_then(|place| self.tables_met.get_mut(place));
        met.into_iter().for_each(|met| *met = true);
        self.together.chosen_row();
        self.listener.row(open, row)
    }

    fn previous(&mut self, previous: &GtidSet) -> Result<(), Error> {
        self.listener.follows(previous);
        match self.order.previous(previous) {
            Some(logs) => self.listener.breaks(&logs),
            None => Ok(()),
        }
    }

    /// Whether the open transaction is chosen.
    fn is_in_chosen(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_chosen)
    }

    /// Whether the listener gets the row that comes next.
    fn takes_row(&self) -> bool {
        self.is_in_chosen() && self.decision != Some(false)
    }

    fn begin(&mut self, event: EventAt<'_>, selection: &RowSelection) -> Result<(), Error> {
        // It was cut off, as by a crash: what the log has of it was never committed.
        self.finish()?;
        let gtid_event = AnyGtidEvent::decode(event.body, event.event_type)?;
        let gtid = gtid_event.as_ref().and_then(AnyGtidEvent::gtid);
        let committed = gtid_event.as_ref().and_then(AnyGtidEvent::commit_timestamps);
        let time = committed
            .map(|times| times.original.unwrap_or(times.immediate))
            .filter(|time| *time > 0)
            .unwrap_or(u64::from(event.timestamp) * 1_000_000);
        if event.offset >= self.range.stop || gtid.is_some() && gtid == selection.stop_before_gtid {
            if !self.listener.wants_statements_after() {
                return Err(Error::Io(early_end()));
            }
            self.is_over = true;
        }
        let committed = i64::try_from(time).unwrap_or(i64::MAX);
        let may_be_chosen = !self.is_over
            && event.offset >= self.range.start
            && selection.start_time.is_none_or(|start| committed >= start)
            && selection.stop_time.is_none_or(|stop| committed < stop)
            && selection
                .gtids
                .as_ref()
                .is_none_or(|set| gtid.as_ref().is_some_and(|gtid| set.contains(gtid)));
        let is_chosen = may_be_chosen && selection.thread_ids.is_empty();
        self.order.begin(gtid.as_ref());
        self.listener.begin(gtid.as_ref(), time);
        self.count += 1;
        self.has_chosen |= is_chosen;
        self.open = Some(FollowedTransaction {
            number: self.count,
            log: self.log.clone(),
            log_number: self.log_number,
            offset: event.offset,
            gtid: gtid.map(|gtid| gtid.to_string()),
            id: gtid,
            time,
            is_chosen,
            may_be_chosen,
            ..FollowedTransaction::default()
        });
        Ok(())
    }

    fn query(&mut self, query: &QueryEvent<'_>, selection: &RowSelection) -> Result<(), Error> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.thread_id.is_none() {
            open.thread_id = Some(query.thread_id);
            if !selection.thread_ids.is_empty() {
                open.is_chosen = open.may_be_chosen && selection.thread_ids.contains(&query.thread_id);
                self.has_chosen |= open.is_chosen;
            }
        }
        match StatementKind::of(query.statement) {
            StatementKind::Rollback => open.is_rolled_back = true,
            StatementKind::RollbackTo => open.has_savepoint_rollback = true,
            kind @ (StatementKind::XaCommit | StatementKind::XaRollback) => {
                let text = String::from_utf8_lossy(query.statement);
                let xid = text.splitn(3, ' ').nth(2).unwrap_or_default();
                let xid = xid.strip_suffix(" ONE PHASE").unwrap_or(xid);
                self.listener.decided(xid, kind == StatementKind::XaCommit);
            }
            StatementKind::Other if query.is_alter_without_effect() => {}
            StatementKind::Other => {
                let sql_mode = query.status_variables.iter().find_map(|variable| match variable {
                    Ok(StatusVariable::SqlMode(mode)) => Some(mode),
                    _ => None,
                });
                let statement = StatementAt {
                    database: query.database,
                    text: query.statement,
                    has_failed: query.error_code != 0,
                    sql_mode: sql_mode.unwrap_or(0),
                };
                self.listener.statement(open, statement)?;
            }
            StatementKind::Begin
            | StatementKind::Commit
            | StatementKind::Savepoint
            | StatementKind::XaStart
            | StatementKind::XaEnd
            | StatementKind::XaPrepare => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        let open = self.open.take();
        if let Some(open) = &open {
            self.order.end(open.id.as_ref());
        }
        if let Some(open) = open {
            let ending = match (open.is_rolled_back, open.has_savepoint_rollback) {
                (true, _) => TransactionEnding::RolledBack,
                (false, true) => TransactionEnding::PartlyRolledBack,
                (false, false) => TransactionEnding::Whole,
            };
            self.carried.end(open.is_rolled_back);
            self.together.end(open.is_rolled_back);
            self.listener.passed(&open, ending);
            if open.is_chosen {
                self.listener.end(&open, ending)?;
            }
        }
        Ok(())
    }
}

/// A place as messages name it.
fn place_of(log: &str, offset: u64, inside: Option<u64>) -> String {
    let inside = inside.map(|index| format!("+{index}")).unwrap_or_default();
    format!("{log} at {offset}{inside}")
}

/// The way out when nothing more was asked for.
#[derive(Debug, thiserror::Error)]
#[error("nothing more was asked for")]
struct EarlyEnd;

/// The error by which a listener ends a pass: nothing more is needed of it.
pub(crate) fn early_end() -> io::Error {
    io::Error::other(EarlyEnd)
}

/// Whether an error is the way out.
pub(super) fn is_end(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<EarlyEnd>())
}
