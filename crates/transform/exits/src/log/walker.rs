//! Which event of a log leaves, and in which form.
//!
//! | event | leaves |
//! |---|---|
//! | format description, previous GTIDs, rotate, stop, checkpoints | as it is |
//! | GTID | with the length of the masked transaction; of MariaDB's XA with a hash in the place of its name |
//! | statement | as `statement` says; without the account that ran it |
//! | values and files of statements, statements beside rows | no |
//! | table map, rows | as the policy says |
//! | XID | as it is; of XA with a hash in the place of its name |
//! | incident | without its message |
//! | data of Group Replication, ignorable events | no |
//! | unknown | no, and it is counted as a change that is missing |

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use binlogz_binlog::event::{
    CompressedEvent, FormatDescription, IncidentEvent, PostHeaderLengths, QueryEvent, RotateEvent, RowsEvent,
    RowsFlags, StatusVariable, StatusVariables, TableMapEvent, TransactionPayloadHeader, XaId,
    XaPrepareEvent,
};
use binlogz_binlog::row::{RowDecoder, TableSchema, TableSchemas, count_rows};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{
    Boundary, ChecksumAlgorithm, Error as BinlogError, EventClass, EventHeader, EventType, HeaderFlags,
    TransactionBoundaryParser,
};
use binlogz_flow::{EventSpan, LogStart, Walker};
use binlogz_payload::Spool;
use binlogz_payload::rewritten::format_description::withdraw_payloads;
use binlogz_schema::{CompletedTable, RecordedStatement, TableHistory, TablesSoFar};

use super::open_tables::{DelayedEvent, OpenTables, RowsFate};
use super::run::ExitRun;
use super::sink::{LogSink, SinkFailure};
use super::transaction::{MaskedTransaction, NotWritten};
use crate::counts::{ExitCounts, LeftOut};
use crate::error::ExitError;
use crate::policy::TableExit;
use crate::statement::control::{hashed_xa_id, masked_mariadb_gtid, xa_text};
use crate::statement::{LoggedStatement, StatementVerdict, judge};
use crate::table::map_event::{MapContent, rewritten};
use crate::table::plan::{NoPlan, TablePlan, shown};
use crate::table::rows::RowMasker;

/// Tables whose plans are remembered: more than a transaction usually has.
const PLANS_MAX: usize = 64;
/// The first bytes of an event that are made room for before any arrive: sizes may lie.
const BODY_RESERVED_MAX: usize = 1 << 20;

/// Masks a log event by event.
pub(super) struct LogMasker {
    run: Arc<ExitRun>,
    sink: LogSink,
    /// The sequence number after which logical clocks count.
    clock: i64,
    lengths: PostHeaderLengths,
    parser: TransactionBoundaryParser,
    transaction: Option<MaskedTransaction>,
    place: EventSpan,
    header: Option<EventHeader>,
    body: Vec<u8>,
    schemas: TableSchemas,
    decoder: RowDecoder,
    tables: OpenTables,
    plans: Vec<RememberedPlan>,
    counts: ExitCounts,
    /// Rules of which there were no rows so far.
    unmet: Vec<usize>,
    /// Whether there were rows of a table that isn't left out.
    has_leaving: bool,
    failed: Option<ExitError>,
}

/// A plan that was made of a map, as long as statements leave the table alone.
struct RememberedPlan {
    map: Arc<TableSchema>,
    era: usize,
    made: MadePlan,
}

/// A table with what is known of it, and its plan; `Err`: why it can't be masked.
#[derive(Clone)]
struct MadePlan {
    completed: Arc<CompletedTable>,
    plan: Option<Result<Arc<TablePlan>, Arc<str>>>,
}

impl LogMasker {
    pub(super) fn new(run: Arc<ExitRun>, sink: LogSink) -> Self {
        let unmet = run.policy.rule_numbers().collect();
        LogMasker {
            run,
            sink,
            clock: 0,
            lengths: PostHeaderLengths::default(),
            parser: TransactionBoundaryParser::new(),
            transaction: None,
            place: EventSpan { offset: 0, end: 0, payload_end_log_pos: None },
            header: None,
            body: Vec::new(),
            schemas: TableSchemas::new(),
            decoder: RowDecoder::new(),
            tables: OpenTables::default(),
            plans: Vec::new(),
            counts: ExitCounts::default(),
            unmet,
            has_leaving: false,
            failed: None,
        }
    }

    /// Ends the log; `failed`: why it could not be read on; `is_whole`: it was read to its end.
    pub(super) fn finish(mut self, failed: Option<String>, is_whole: bool) {
        if self.transaction.is_some() && failed.is_none() && self.failed.is_none() {
            self.counts.unmasked("transactions that aren't whole at the end of a log", 1);
        }
        let failed = self.failed.map(|error| error.to_string()).or(failed);
        let rules = self.run.policy.rule_numbers();
        let met: Vec<usize> = rules.filter(|number| !self.unmet.contains(number)).collect();
        let mut progress = self.run.progress.lock();
        progress.ended += usize::from(is_whole && failed.is_none());
        progress.met.meet_tables(met);
        progress.met.has_leaving |= self.has_leaving;
        let all = &mut progress.counts;
        all.transactions += self.counts.transactions;
        all.masked_rows += self.counts.masked_rows;
        all.left_out_rows += self.counts.left_out_rows;
        for (what, count) in self.counts.left_out {
            *all.left_out.entry(what).or_default() += count;
        }
        for (why, count) in &self.counts.unmasked {
            all.unmasked(why, *count);
        }
        drop(progress);
        self.sink.finish(failed);
    }

    /// Reads events that are laid out like this, in the middle of a log.
    pub(super) fn resume(&mut self, lengths: PostHeaderLengths) {
        self.lengths = lengths;
    }

    /// Writes the next events to this spool; their logical clocks count after the transaction with the sequence number `clock`.
    pub(super) fn begin_part(&mut self, spool: Spool, clock: i64) {
        self.sink.write_to(spool);
        self.clock = clock;
    }

    /// What was written since; the events began at `offset`.
    ///
    /// # Errors
    ///
    /// They can't leave, or not all of what they change: why. Then nothing more may be asked of it.
    pub(super) fn end_part(&mut self, offset: u64) -> Result<Spool, ExitError> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        if let Some(why) = self.counts.unmasked.keys().next() {
            return Err(ExitError::Refused { offset, text: format!("can't be masked for certain: {why}") });
        }
        if self.transaction.is_some() {
            return Err(ExitError::Refused { offset, text: "the transaction isn't whole".to_owned() });
        }
        self.sink.take_spool().map_err(|failure| match failure {
            SinkFailure::Spill(error) => ExitError::Spill(error),
            SinkFailure::ReaderGone => ExitError::Spill(std::io::ErrorKind::BrokenPipe.into()),
        })
    }

    /// Goes on, or keeps why it can't.
    fn flow(&mut self, result: Result<(), NotWritten>) -> ControlFlow<()> {
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(NotWritten::ReaderGone) => ControlFlow::Break(()),
            Err(NotWritten::Failed(error)) => {
                self.failed = Some(match error {
                    ExitError::Event(error) => ExitError::Event(
                        error.at(self.place.offset, self.header.map(|header| header.event_type)),
                    ),
                    other => other,
                });
                ControlFlow::Break(())
            }
        }
    }

    fn refused(&self, text: String) -> NotWritten {
        NotWritten::Failed(ExitError::Refused { offset: self.place.offset, text })
    }

    /// Takes a whole event.
    fn event(&mut self, header: &EventHeader, body: &[u8]) -> Result<(), NotWritten> {
        let boundary = self.parser.feed(header, body).boundary;
        match boundary {
            Boundary::BeginAgain => {
                self.end_transaction()?;
                self.transaction = Some(MaskedTransaction::new());
            }
            Boundary::Begin | Boundary::Single => self.transaction = Some(MaskedTransaction::new()),
            Boundary::Outside | Boundary::Inside | Boundary::End => {}
        }
        let ends = matches!(boundary, Boundary::End | Boundary::Single);
        let passed = self.by_class(header, body)?;
        if let Some(open) = self.transaction.as_mut().filter(|_| ends && !passed) {
            open.left_out_end = Some(*header);
        }
        if ends {
            self.end_transaction()?;
        }
        Ok(())
    }

    fn end_transaction(&mut self) -> Result<(), NotWritten> {
        self.flush_rows()?;
        let Some(open) = self.transaction.take() else { return Ok(()) };
        self.counts.transactions += 1;
        open.write(&mut self.sink, self.clock)?;
        self.sink.settle()?;
        Ok(())
    }

    /// `false`: the event is left out.
    fn by_class(&mut self, header: &EventHeader, body: &[u8]) -> Result<bool, NotWritten> {
        match header.event_type.class() {
            EventClass::File | EventClass::FileNote => {
                self.note_next_log(header, body);
                self.put(header, body)
            }
            EventClass::Gtid | EventClass::MariadbGtid => {
                self.tables.clear();
                self.schemas.end_statement();
                // Its flags say whether it takes the place of BEGIN; the parser read them.
                let begins = header.event_type == EventType::MARIADB_GTID && !stands_alone(body);
                let masked = self.masked_gtid(header, body)?;
                match &mut self.transaction {
                    Some(open) => {
                        open.begin_with(header, &masked);
                        open.has_begun |= begins;
                        Ok(true)
                    }
                    None => self.put(header, &masked),
                }
            }
            EventClass::Statement => self.statement(header, body),
            EventClass::CompressedStatement => {
                let (header, body) = expanded(header, body, &self.lengths)?;
                self.statement(&header, &body)
            }
            EventClass::LoadStatement => {
                self.counts.unmasked("LOAD DATA logged as a statement (binlog_format=ROW logs rows)", 1);
                Ok(false)
            }
            EventClass::StatementValue | EventClass::LoadBlock | EventClass::LoadEnd => {
                self.leave_out(LeftOut::StatementValues)
            }
            EventClass::RowsStatement => self.leave_out(LeftOut::RowsStatements),
            EventClass::TableMap => self.table_map(header, body),
            EventClass::Rows => self.rows(header, body),
            EventClass::CompressedRows => self.compressed_rows(header, body),
            EventClass::Commit => self.commit(header, body),
            EventClass::Incident => {
                let IncidentEvent { incident, .. } = IncidentEvent::decode(body)?;
                let event = IncidentEvent { incident, message: b"", inner_checksum: None };
                self.put(header, &event.encode()?)
            }
            EventClass::Heartbeat
            | EventClass::GroupContext
            | EventClass::GroupView
            | EventClass::Ignorable => self.leave_out(LeftOut::Notes),
            EventClass::Unknown if header.flags.contains(HeaderFlags::IGNORABLE) => {
                self.leave_out(LeftOut::Notes)
            }
            EventClass::Unknown | EventClass::Dead | EventClass::Payload => {
                let why = format!("events of type {}, which can't be read", header.event_type.0);
                self.counts.unmasked(&why, 1);
                Ok(false)
            }
        }
    }

    /// The log that comes next goes on with the tables of this one.
    fn note_next_log(&self, header: &EventHeader, body: &[u8]) {
        // A server that begins to send a log names that one, without a time.
        if header.event_type == EventType::ROTATE
            && header.timestamp != 0
            && let Ok(rotate) = RotateEvent::decode(body)
        {
            self.run.progress.lock().so_far.rotate_to(rotate.name);
        }
    }

    /// A GTID event; that of MariaDB may have the name of an XA transaction.
    fn masked_gtid<'b>(&self, header: &EventHeader, body: &'b [u8]) -> Result<Cow<'b, [u8]>, NotWritten> {
        if header.event_type != EventType::MARIADB_GTID {
            return Ok(Cow::Borrowed(body));
        }
        let masked = masked_mariadb_gtid(self.run.policy.key.as_ref(), body);
        masked.map(Cow::Owned).map_err(|why| self.refused(why))
    }

    fn leave_out(&mut self, what: LeftOut) -> Result<bool, NotWritten> {
        self.counts.leave_out(what);
        Ok(false)
    }

    /// Passes an event on, after the rows that wait.
    fn put(&mut self, header: &EventHeader, body: &[u8]) -> Result<bool, NotWritten> {
        self.flush_rows()?;
        self.put_now(header, body)?;
        Ok(true)
    }

    fn put_now(&mut self, header: &EventHeader, body: &[u8]) -> Result<(), NotWritten> {
        match &mut self.transaction {
            Some(open) => open.add((header, body), self.sink.checksum())?,
            None => {
                self.sink.event(header, body)?;
                self.sink.settle()?;
            }
        }
        Ok(())
    }

    fn flush_rows(&mut self) -> Result<(), NotWritten> {
        match self.tables.take_rows() {
            Some(rows) => self.put_now(&rows.header, &rows.body),
            None => Ok(()),
        }
    }

    fn statement(&mut self, header: &EventHeader, body: &[u8]) -> Result<bool, NotWritten> {
        let query = QueryEvent::decode(body)?;
        let kind = StatementKind::of(query.statement);
        let text = match kind {
            StatementKind::Begin => {
                if let Some(open) = &mut self.transaction {
                    open.has_begun = true;
                }
                "BEGIN".to_owned()
            }
            StatementKind::Commit => "COMMIT".to_owned(),
            StatementKind::Rollback => "ROLLBACK".to_owned(),
            StatementKind::Savepoint | StatementKind::RollbackTo => {
                let named = self.transaction.as_mut().map(|open| open.savepoints.text(kind, query.statement));
                match named {
                    Some(Ok(text)) => text,
                    Some(Err(why)) => return Err(self.refused(why)),
                    None => return Ok(false),
                }
            }
            StatementKind::XaStart
            | StatementKind::XaEnd
            | StatementKind::XaPrepare
            | StatementKind::XaCommit
            | StatementKind::XaRollback => {
                if let Some(open) = self.transaction.as_mut().filter(|_| kind == StatementKind::XaStart) {
                    open.has_begun = true;
                }
                xa_text(self.run.policy.key.as_ref(), query.statement).map_err(|why| self.refused(why))?
            }
            StatementKind::Other => {
                self.record(&query);
                match self.judged(&query)? {
                    Some(text) => text,
                    None => return Ok(false),
                }
            }
        };
        let status_variables = without_account(&query.status_variables)?;
        let status_variables = StatusVariables(&status_variables);
        let statement = text.trim().as_bytes();
        let masked = QueryEvent { status_variables, statement, ..query }.encode()?;
        self.put(header, &masked)
    }

    /// The text of a statement that leaves.
    fn judged(&mut self, query: &QueryEvent<'_>) -> Result<Option<String>, NotWritten> {
        let database = String::from_utf8_lossy(query.database);
        let recorded = RecordedStatement::of_query(Default::default(), query, (&database, ""));
        let statement = LoggedStatement {
            text: query.statement,
            database: &database,
            quotes_names: recorded.quotes_names,
            keeps_backslashes: recorded.keeps_backslashes,
        };
        match judge(&self.run.policy, &statement) {
            StatementVerdict::Pass(text) => Ok(Some(text)),
            StatementVerdict::LeaveOut(what) => {
                self.counts.leave_out(what);
                Ok(None)
            }
            StatementVerdict::Unmasked(why) => {
                self.counts.unmasked(&why, 1);
                Ok(None)
            }
            StatementVerdict::Refused(why) => Err(self.refused(why)),
        }
    }

    /// Notes what a statement makes of tables.
    fn record(&mut self, query: &QueryEvent<'_>) {
        let mut progress = self.run.progress.lock();
        let place = progress.so_far.place(self.place.offset);
        if self.run.tables.records(place) {
            record_statement(&mut progress.so_far, self.place.offset, query);
        }
    }

    fn commit(&mut self, header: &EventHeader, body: &[u8]) -> Result<bool, NotWritten> {
        if header.event_type == EventType::XID {
            return self.put(header, body);
        }
        let event = XaPrepareEvent::decode(body)?;
        let masked = self.masked_prepare(&event)?;
        self.put(header, &masked)
    }

    fn masked_prepare(&self, event: &XaPrepareEvent<'_>) -> Result<Vec<u8>, NotWritten> {
        let hash =
            hashed_xa_id(self.run.policy.key.as_ref(), &event.xa_id).map_err(|why| self.refused(why))?;
        let xa_id = XaId { gtrid: &hash, bqual: b"", ..event.xa_id };
        Ok(XaPrepareEvent { xa_id, ..*event }.encode()?)
    }

    /// A statement's first table after the last one's rows ended.
    fn begin_statement(&mut self) {
        if self.tables.has_ended {
            self.tables.clear();
            self.schemas.end_statement();
        }
    }

    fn table_map(&mut self, header: &EventHeader, body: &[u8]) -> Result<bool, NotWritten> {
        self.begin_statement();
        let post_header_length = self.lengths.of(EventType::TABLE_MAP);
        let map = TableMapEvent::decode(body, post_header_length)?;
        let policy = &self.run.policy;
        self.unmet.retain(|&number| !policy.is_of(number, map.database, map.table));
        let exit = policy.table(map.database, map.table);
        self.has_leaving |= exit != TableExit::LeaveOut;
        let schema = match &exit {
            TableExit::Keep if !self.run.completes => None,
            TableExit::Keep | TableExit::LeaveOut | TableExit::Masked(_) => {
                Some(self.schemas.note(body, &self.lengths))
            }
        };
        let (fate, masked) = match (exit, schema) {
            (TableExit::LeaveOut, schema) => (RowsFate::LeaveOut(schema.and_then(Result::ok)), None),
            (TableExit::Keep, Some(Ok(schema))) => {
                let made = self.made_plan(&schema, None)?;
                let family = self.lengths.family();
                let content = MapContent { plan: None, completed: Some(&made.completed), family };
                (RowsFate::Keep, Some(rewritten(&map, &content, post_header_length)?))
            }
            (TableExit::Keep, None | Some(Err(_))) => (RowsFate::Keep, Some(body.to_vec())),
            (TableExit::Masked(_), None | Some(Err(_))) => {
                let why =
                    format!("{}: rows, since its table map can't be read", shown(map.database, map.table));
                (RowsFate::Unmasked(why.into(), None), None)
            }
            (TableExit::Masked(rules), Some(Ok(schema))) => self.masked_map(&map, &schema, &rules)?,
        };
        let waiting = masked.map(|body| DelayedEvent { header: *header, body });
        if !self.tables.add(map.table_id, fate, waiting) {
            return Err(self.refused("the table maps of a statement have more than 64 MiB".to_owned()));
        }
        Ok(true)
    }

    fn masked_map(
        &mut self,
        map: &TableMapEvent<'_>,
        schema: &Arc<TableSchema>,
        rules: &[usize],
    ) -> Result<(RowsFate, Option<Vec<u8>>), NotWritten> {
        let made = self.made_plan(schema, Some(rules))?;
        let plan = match made.plan {
            Some(Ok(plan)) => plan,
            Some(Err(why)) => return Ok((RowsFate::Unmasked(why, Some(Arc::clone(schema))), None)),
            None => return Ok((RowsFate::LeaveOut(Some(Arc::clone(schema))), None)),
        };
        let completed = self.run.completes.then_some(&*made.completed);
        let content = MapContent { plan: Some(&plan), completed, family: self.lengths.family() };
        let body = rewritten(map, &content, self.lengths.of(EventType::TABLE_MAP))?;
        Ok((RowsFate::Mask(plan), Some(body)))
    }

    /// The table of a map with what is known of it, and its plan by these rules.
    fn made_plan(&mut self, map: &Arc<TableSchema>, rules: Option<&[usize]>) -> Result<MadePlan, NotWritten> {
        let run = Arc::clone(&self.run);
        let mut progress = run.progress.lock();
        let place = progress.so_far.place(self.place.offset);
        let era = run.tables.era(place, &progress.so_far);
        let is_it = |remembered: &&RememberedPlan| Arc::ptr_eq(&remembered.map, map) && remembered.era == era;
        if let Some(remembered) = self.plans.iter().rev().find(is_it) {
            return Ok(remembered.made.clone());
        }
        let completed = Arc::new(run.tables.complete(map, place, &progress.so_far));
        let plan = match rules {
            None => None,
            Some(rules) => match TablePlan::of(&run.policy, rules, &completed) {
                Ok(plan) => {
                    plan.weak_keys.iter().for_each(|key| progress.counts.weak_key(key));
                    progress.met.meet_columns(&run.policy, rules, plan.column_names());
                    Some(Ok(Arc::new(plan)))
                }
                Err(NoPlan::Nameless) => Some(Err(nameless(map, completed.problem.as_deref()).into())),
                Err(NoPlan::Refused(why)) => return Err(self.refused(why)),
            },
        };
        drop(progress);
        let made = MadePlan { completed, plan };
        if self.plans.len() >= PLANS_MAX {
            self.plans.clear();
        }
        self.plans.push(RememberedPlan { map: Arc::clone(map), era, made: made.clone() });
        Ok(made)
    }

    fn compressed_rows(&mut self, header: &EventHeader, body: &[u8]) -> Result<bool, NotWritten> {
        let expanded_type = header.event_type.mariadb_expanded().unwrap_or(header.event_type);
        let front = RowsEvent::decode_front(expanded_type, body, self.lengths.of(expanded_type))?;
        if matches!(self.tables.fate(front.0), Some(RowsFate::Keep)) {
            return self.take_rows((header, body), front.1, true);
        }
        let (header, body) = expanded(header, body, &self.lengths)?;
        self.rows(&header, &body)
    }

    fn rows(&mut self, header: &EventHeader, body: &[u8]) -> Result<bool, NotWritten> {
        let event_type = header.event_type;
        let length = self.lengths.of(event_type);
        let (table_id, flags) = RowsEvent::decode_front(event_type, body, length)?;
        match self.tables.fate(table_id) {
            None => Err(NotWritten::Failed(ExitError::Event(BinlogError::invalid(
                "rows event",
                "table id",
                table_id,
                "one that a table map of the statement gave",
            )))),
            Some(RowsFate::Keep) => self.take_rows((header, body), flags, true),
            Some(RowsFate::LeaveOut(schema)) => {
                self.counts.left_out_rows += self.rows_in(schema.as_deref(), event_type, body);
                self.take_rows((header, body), flags, false)
            }
            Some(RowsFate::Unmasked(why, schema)) => {
                let count = self.rows_in(schema.as_deref(), event_type, body);
                self.counts.unmasked(&why, count);
                self.take_rows((header, body), flags, false)
            }
            Some(RowsFate::Mask(plan)) => self.masked_rows(&plan, header, body),
        }
    }

    /// The rows of an event, as far as they can be counted.
    fn rows_in(&self, schema: Option<&TableSchema>, event_type: EventType, body: &[u8]) -> u64 {
        let event = RowsEvent::decode(event_type, body, self.lengths.of(event_type)).ok();
        event.zip(schema).and_then(|(event, schema)| count_rows(schema, &event).ok()).unwrap_or(1)
    }

    /// Takes rows that leave as they are, or rows that are left out.
    fn take_rows(
        &mut self,
        (header, body): (&EventHeader, &[u8]),
        flags: RowsFlags,
        leave: bool,
    ) -> Result<bool, NotWritten> {
        if leave {
            self.put_rows(*header, body.to_vec())?;
        }
        if flags.contains(RowsFlags::STMT_END) {
            self.end_statement()?;
        }
        Ok(leave)
    }

    fn put_rows(&mut self, header: EventHeader, body: Vec<u8>) -> Result<(), NotWritten> {
        self.flush_rows()?;
        for map in self.tables.take_maps() {
            self.put_now(&map.header, &map.body)?;
        }
        self.tables.put_rows(DelayedEvent { header, body });
        Ok(())
    }

    fn end_statement(&mut self) -> Result<(), NotWritten> {
        self.tables.end_with_rows(&self.lengths);
        self.tables.has_ended = true;
        self.flush_rows()
    }

    fn masked_rows(
        &mut self,
        plan: &TablePlan,
        header: &EventHeader,
        body: &[u8],
    ) -> Result<bool, NotWritten> {
        let length = self.lengths.of(header.event_type);
        let event = RowsEvent::decode(header.event_type, body, length)?;
        let masker = RowMasker { plan, key: self.run.policy.key.as_ref() };
        // The error would tell what it found.
        let Ok(masked) = masker.event(&event, &mut self.decoder) else {
            let count = self.rows_in(Some(&plan.schema), header.event_type, body);
            self.counts.unmasked(&format!("{}: rows that can't be read", plan.shown), count);
            return self.take_rows((header, body), event.flags, false);
        };
        self.counts.masked_rows += masked.masked;
        self.counts.left_out_rows += masked.left_out;
        if masked.unknown_documents > 0 {
            let why = format!(
                "{}: JSON columns changed in part, of which the log has no document (binlog_row_image=FULL logs it)",
                plan.shown
            );
            self.counts.unmasked(&why, masked.unknown_documents);
        }
        let ends = event.flags.contains(RowsFlags::STMT_END);
        let flags = RowsFlags(event.flags.0 & !(RowsFlags::STMT_END.0 | RowsFlags::COMPLETE_ROWS.0));
        for part in &masked.parts {
            let event = RowsEvent { flags, ..part.event(&event) };
            let body = event.encode(length)?;
            self.put_rows(*header, body)?;
        }
        if ends {
            self.end_statement()?;
        }
        Ok(!masked.parts.is_empty())
    }
}

/// Notes what a statement at this offset makes of tables; it neither begins nor ends a transaction.
pub(super) fn record_statement(tables: &mut TablesSoFar, offset: u64, query: &QueryEvent<'_>) {
    if TableHistory::is_of_rows(query.statement) || query.is_alter_without_effect() {
        return;
    }
    let [database, text] = [query.database, query.statement].map(String::from_utf8_lossy);
    tables.record(&RecordedStatement::of_query(tables.place(offset), query, (&database, &text)));
}

/// Why the rows of a table without names are left out.
fn nameless(map: &TableSchema, problem: Option<&str>) -> String {
    let table = shown(&map.database, &map.table);
    match problem {
        Some(problem) => format!("{table}: rows, since the names of its columns aren't known: {problem}"),
        None => format!(
            "{table}: rows, since the names of its columns aren't known (--schema or binlog_row_metadata=FULL tells them)"
        ),
    }
}

/// Whether a GTID event of MariaDB is followed by a single statement, without COMMIT.
fn stands_alone(body: &[u8]) -> bool {
    body.get(12).is_some_and(|flags| flags & 1 != 0)
}

/// A compressed event of MariaDB as the plain one.
fn expanded(
    header: &EventHeader,
    body: &[u8],
    lengths: &PostHeaderLengths,
) -> Result<(EventHeader, Vec<u8>), BinlogError> {
    let compressed = CompressedEvent::decode(header.event_type, body, lengths)?;
    let mut expanded = Vec::new();
    compressed.expand(&mut expanded)?;
    Ok((EventHeader { event_type: compressed.expanded_type, ..*header }, expanded))
}

/// The settings of a statement, without the account that ran it and without those that aren't known.
fn without_account(variables: &StatusVariables<'_>) -> Result<Vec<u8>, BinlogError> {
    let mut bytes = Vec::new();
    for variable in variables.iter() {
        let variable = variable?;
        if !matches!(variable, StatusVariable::Invoker { .. } | StatusVariable::Unknown(_)) {
            variable.encode(&mut bytes)?;
        }
    }
    Ok(bytes)
}

impl Walker for LogMasker {
    fn format_description(&mut self, start: &LogStart) -> ControlFlow<()> {
        let result = self.start(start);
        self.flow(result)
    }

    fn payload(
        &mut self,
        _: EventSpan,
        _: &EventHeader,
        _: &TransactionPayloadHeader<'_>,
    ) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn begin(&mut self, place: EventSpan, header: &EventHeader) -> ControlFlow<()> {
        self.place = place;
        self.header = Some(*header);
        self.body.clear();
        self.body.shrink_to(BODY_RESERVED_MAX);
        ControlFlow::Continue(())
    }

    fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.body.extend_from_slice(bytes);
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        let Some(header) = self.header else { return ControlFlow::Continue(()) };
        let body = std::mem::take(&mut self.body);
        let result = self.event(&header, &body);
        self.body = body;
        self.flow(result)
    }
}

impl LogMasker {
    /// A log begins, or goes on with another format description.
    fn start(&mut self, start: &LogStart) -> Result<(), NotWritten> {
        self.lengths = start.context.post_header_lengths;
        let frame = start.frame()?;
        let event = withdraw_payloads(&frame, &start.description)
            .map_err(|error| ExitError::Log(binlogz_flow::Error::from(error)))?;
        let event = event.unwrap_or_else(|| start.event.clone());
        let server_id = frame.header().server_id;
        self.run.progress.lock().so_far.take_server(server_id, self.place.offset);
        let own_checksum = match FormatDescription::checksum_size(&event)? {
            0 => ChecksumAlgorithm::NONE,
            _ => ChecksumAlgorithm::CRC32,
        };
        self.sink.start(start.magic, event, start.context.framing.checksum(), own_checksum)?;
        Ok(())
    }
}
