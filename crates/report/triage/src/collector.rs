//! Tells the transactions of a batch.

use std::sync::Arc;

use binlogz_binlog::event::{QueryEvent, RowsEvent, RowsFlags, RowsQueryEvent};
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::row::{RowDecoder, TableSchema};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{Boundary, Error as BinlogError, EventType};
use binlogz_flow::Error;
use binlogz_flow::events::{BatchItem, Event, EventBatch, TableEvent, WorkerTables};
use binlogz_stats::TableName;

use crate::figures::{BatchTriage, TriageFigures, TriageWindow};
use crate::transaction::OpenTransaction;

/// A worker's teller, used for all its batches.
#[derive(Debug)]
pub struct TriageCollector {
    window: TriageWindow,
    sought: Option<Gtid>,
    tables: WorkerTables,
    decoder: RowDecoder,
    /// The table of the previous event, and its name.
    named: Option<(Arc<TableSchema>, Arc<TableName>)>,
}

/// The transactions of a batch as they go by.
struct PassingBatch {
    batch: BatchTriage,
    /// The open transaction, and whether it began before the batch.
    open: Option<(OpenTransaction, bool)>,
}

impl TriageCollector {
    /// A teller of the transactions in this window; it is one of so many workers.
    pub fn new(window: TriageWindow, workers: usize) -> Self {
        let (tables, decoder) = (WorkerTables::one_of(workers), RowDecoder::new());
        TriageCollector { window, sought: None, tables, decoder, named: None }
    }

    /// Looks for this transaction, too.
    #[must_use]
    pub fn seeking(self, gtid: Gtid) -> Self {
        TriageCollector { sought: Some(gtid), ..self }
    }

    /// Takes all events of a batch. Unreadable bytes fail the batch.
    pub fn collect(&mut self, batch: &mut EventBatch<'_>) -> BatchTriage {
        let mut whole = TriageFigures::new(self.window);
        if let Some(gtid) = self.sought {
            whole.seek(gtid);
        }
        let of_batch = BatchTriage { log: batch.log().number, head: None, whole, tail: None };
        let mut passing = PassingBatch { batch: of_batch, open: None };
        if let Err(error) = self.tables.begin(batch) {
            batch.fail(error);
        }
        while let Some(item) = batch.next_item() {
            let taken = match item {
                BatchItem::PayloadEnd(_) => {
                    passing.end();
                    continue;
                }
                BatchItem::Event(event) => self.event(&event, &mut passing),
            };
            if let Err(error) = taken {
                batch.fail(error);
                break;
            }
        }
        passing.finish()
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, passing: &mut PassingBatch) -> Result<(), Error> {
        if event.is_inside_payload() {
            return self.content(event, passing.transaction());
        }
        match event.placement.boundary {
            // Rows and statements without BEGIN are in no transaction.
            Boundary::Outside => {
                let mut alone = OpenTransaction::begin(event).map_err(|error| event.error(error))?;
                self.content(event, &mut alone)?;
                if alone.has_changes() {
                    passing.batch.whole.take(alone);
                }
                return Ok(());
            }
            Boundary::Begin | Boundary::Single => passing.begin(event)?,
            Boundary::BeginAgain => {
                passing.end();
                passing.begin(event)?;
            }
            Boundary::Inside | Boundary::End => passing.transaction().event(event),
        }
        self.content(event, passing.transaction())?;
        // A payload ends with what is inside.
        let is_payload = event.header.event_type == EventType::TRANSACTION_PAYLOAD;
        if matches!(event.placement.boundary, Boundary::End | Boundary::Single) && !is_payload {
            passing.end();
        }
        Ok(())
    }

    /// Takes what an event tells of its transaction.
    fn content(&mut self, event: &Event<'_>, open: &mut OpenTransaction) -> Result<(), Error> {
        let event_type = event.header.event_type;
        if event_type == EventType::QUERY {
            let query = QueryEvent::decode(event.body).map_err(|error| event.error(error))?;
            open.session(event.body);
            match StatementKind::of(query.statement) {
                StatementKind::Other => open.query(&query),
                StatementKind::Rollback | StatementKind::XaRollback => open.transaction.is_rolled_back = true,
                StatementKind::Begin
                | StatementKind::Commit
                | StatementKind::RollbackTo
                | StatementKind::Savepoint
                | StatementKind::XaStart
                | StatementKind::XaEnd
                | StatementKind::XaPrepare
                | StatementKind::XaCommit => {}
            }
            return Ok(());
        }
        if event_type == EventType::ROWS_QUERY {
            let statement = RowsQueryEvent::decode(event.body).map_err(|error| event.error(error))?.statement;
            open.statement(statement);
            return Ok(());
        }
        if event_type == EventType::MARIADB_ANNOTATE_ROWS {
            open.statement(event.body);
            return Ok(());
        }
        self.table_event(event, open)
    }

    /// Takes a table map or row event.
    #[inline]
    fn table_event(&mut self, event: &Event<'_>, open: &mut OpenTransaction) -> Result<(), Error> {
        let (schema, rows) = match self.tables.event(event)? {
            None | Some(TableEvent::Map(_)) => return Ok(()),
            Some(TableEvent::Rows(schema, rows)) => (schema, rows),
        };
        let name = self.name(&schema);
        match self.rows(&schema, &rows) {
            Ok(number) => {
                let by_foreign_key = rows.flags.contains(RowsFlags::USE_SQL_FOREIGN_KEY)
                    && rows.flags.contains(RowsFlags::NO_FOREIGN_KEY_CHECKS);
                open.rows(&name, rows.kind(), number, by_foreign_key);
            }
            Err(error) => event.unread(&schema, &error),
        }
        Ok(())
    }

    /// The number of rows in an event. Those of the 5.1 betas only their own server can read.
    fn rows(&mut self, schema: &TableSchema, event: &RowsEvent<'_>) -> Result<u64, BinlogError> {
        let pre_ga = EventType::PRE_GA_WRITE_ROWS..=EventType::PRE_GA_DELETE_ROWS;
        if pre_ga.contains(&event.event_type) { Ok(0) } else { self.decoder.count(schema, event) }
    }

    /// A table's name; events of a table come in runs.
    fn name(&mut self, schema: &Arc<TableSchema>) -> Arc<TableName> {
        match &self.named {
            Some((known, name)) if Arc::ptr_eq(known, schema) => Arc::clone(name),
            _ => {
                let (database, table) = (schema.database.clone(), schema.table.clone());
                let name = Arc::new(TableName { database, table });
                self.named = Some((Arc::clone(schema), Arc::clone(&name)));
                name
            }
        }
    }
}

impl PassingBatch {
    /// The open transaction: one that began before the batch, if none began in it.
    #[inline]
    fn transaction(&mut self) -> &mut OpenTransaction {
        &mut self.open.get_or_insert_with(|| (OpenTransaction::default(), true)).0
    }

    fn begin(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let open = OpenTransaction::begin(event).map_err(|error| event.error(error))?;
        self.open = Some((open, false));
        Ok(())
    }

    /// Ends the open transaction.
    fn end(&mut self) {
        match self.open.take() {
            Some((open, false)) => self.batch.whole.take(open),
            Some((open, true)) => self.batch.head = Some((open, true)),
            None => self.batch.head = Some((OpenTransaction::default(), true)),
        }
    }

    fn finish(mut self) -> BatchTriage {
        match self.open.take() {
            Some((open, false)) => self.batch.tail = Some(open),
            Some((open, true)) => self.batch.head = Some((open, false)),
            None => {}
        }
        self.batch
    }
}
