//! A session: one transaction at a time, with variables of its own.

use std::sync::Arc;

use binlogz_binlog::event::{CompressionType, POST_HEADER_LENGTHS};
use binlogz_binlog::event::{
    RowsEvent, TableMapEvent, TransactionPayloadEvent, XaId, XaPrepareEvent, XidEvent,
};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{EventHeader, EventType, HeaderFlags};
use binlogz_payload::{CompressionLevel, Expander};
use binlogz_variables::{Rights, Variable, VariableError, VariableScope, VariableValue, Warning};

use crate::cache::{self, Cache, NewEvent};
use crate::error::{Error, Result};
use crate::gtids::{GtidNext, Gtids};
use crate::log_state::now_seconds;
use crate::prepared::{PreparedTransaction, TransactionForm};
use crate::shared::EngineShared;
use crate::stored_variables::SessionVariables;
use crate::ticket::{CommittedTransaction, Ticket};
use crate::timer::CommitStage;

/// A session. It may move between threads; sessions commit side by side.
///
/// An event is appended to the open transaction; without [`Session::begin`] it opens one. A transaction of
/// rows gets its `BEGIN` before the first of them, and its end, if it has none yet, at [`Session::commit`].
#[derive(Debug)]
pub struct Session {
    shared: Arc<EngineShared>,
    rights: Rights,
    variables: SessionVariables,
    cache: Cache,
    begun: bool,
    gtid_next: GtidNext,
    server_id: u32,
    original_commit_timestamp: Option<u64>,
    original_server_version: Option<u32>,
    xid: u64,
    prepared: PreparedTransaction,
    scratch: Vec<u8>,
    expander: Option<Expander>,
    ticket: Arc<Ticket>,
}

impl Session {
    pub(crate) fn new(shared: Arc<EngineShared>, rights: Rights) -> Self {
        let mut cache = Cache::default();
        cache.clear();
        Session {
            rights,
            variables: shared.globals.for_session(),
            cache,
            begun: false,
            gtid_next: GtidNext::Automatic(None),
            server_id: shared.server_id,
            original_commit_timestamp: None,
            original_server_version: None,
            xid: 0,
            prepared: PreparedTransaction::default(),
            scratch: Vec::new(),
            expander: None,
            ticket: Arc::default(),
            shared,
        }
    }

    /// Sets a variable by the server's rules: `SET SESSION` or `SET GLOBAL`.
    ///
    /// # Errors
    ///
    /// The server's errors, with its numbers.
    pub fn set(
        &mut self,
        scope: VariableScope,
        name: &str,
        value: VariableValue<'_>,
    ) -> Result<Option<Warning>> {
        if scope == VariableScope::Global {
            return self.shared.set_global(name, value, self.rights, self.in_transaction());
        }
        let variable = Variable::find(name)?;
        let (value, warning) = variable.check_set(scope, value, self.rights, self.in_transaction())?;
        let value = value.unwrap_or_else(|| self.shared.globals.load(variable.id));
        self.variables.store(variable.id, value);
        Ok(warning)
    }

    /// A session variable's value, as text.
    pub fn get(&self, name: &str) -> Result<String> {
        let variable = Variable::find(name)?;
        let value = self.variables.load(variable.id).ok_or_else(|| VariableError::global_only(variable))?;
        Ok(variable.show(value))
    }

    /// The GTID of the next transaction; afterwards it is automatic again.
    pub fn set_gtid_next(&mut self, next: GtidNext) -> Result<()> {
        if self.in_transaction() {
            return Err(Error::misuse("gtid_next", "a transaction is open", "none"));
        }
        Gtids::check_next(self.shared.gtid_mode, next)?;
        self.gtid_next = next;
        Ok(())
    }

    /// Commits on behalf of another server, as a replica does: with its server id, and its commit time and
    /// version.
    ///
    /// # Errors
    ///
    /// A timestamp above 55 bits, a version above 31: they don't fit in events.
    pub fn set_original(
        &mut self,
        server_id: u32,
        commit_timestamp: Option<u64>,
        version: Option<u32>,
    ) -> Result<()> {
        if let Some(timestamp) = commit_timestamp.filter(|timestamp| timestamp >> 55 != 0) {
            return Err(Error::misuse("original commit timestamp", timestamp, "at most 55 bits"));
        }
        if let Some(version) = version.filter(|version| version >> 31 != 0) {
            return Err(Error::misuse("original server version", version, "at most 31 bits"));
        }
        self.server_id = server_id;
        self.original_commit_timestamp = commit_timestamp;
        self.original_server_version = version;
        Ok(())
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.begun || !self.cache.is_empty()
    }

    /// Opens a transaction. Nothing is logged before its first change.
    pub fn begin(&mut self) -> Result<()> {
        if self.in_transaction() {
            return Err(Error::misuse("begin", "a transaction is open", "commit or rollback first"));
        }
        self.begun = true;
        Ok(())
    }

    /// Appends an event.
    ///
    /// # Errors
    ///
    /// [`Error::CacheFull`]; an event after the end of its transaction.
    pub fn append(&mut self, event: NewEvent<'_>) -> Result<()> {
        let is_change = event.event_type.is_rows()
            || matches!(event.event_type, EventType::TABLE_MAP | EventType::ROWS_QUERY);
        if is_change && self.cache.is_empty() {
            self.control(b"BEGIN")?;
        }
        self.cache.append(self.server_id, event, self.shared.max_cache_size)
    }

    fn append_now(&mut self, event_type: EventType, flags: HeaderFlags, body: &[u8]) -> Result<()> {
        self.append(NewEvent { event_type, timestamp: now_seconds(), flags, body })
    }

    /// Transaction control, as the server logs it.
    fn control(&mut self, statement: &[u8]) -> Result<()> {
        let body = cache::statement(b"", statement)?;
        self.append_now(EventType::QUERY, HeaderFlags::SUPPRESS_USE, &body)
    }

    /// Appends a statement: DDL, or a change that is logged as text.
    pub fn statement(&mut self, database: &str, statement: &str) -> Result<()> {
        if self.begun && self.cache.is_empty() {
            self.control(b"BEGIN")?;
        }
        let body = cache::statement(database.as_bytes(), statement.as_bytes())?;
        self.append_now(EventType::QUERY, HeaderFlags::default(), &body)
    }

    /// Appends a table map, which the rows after it need.
    pub fn table_map(&mut self, table: &TableMapEvent<'_>) -> Result<()> {
        let body = table.encode(post_header_length(EventType::TABLE_MAP))?;
        self.append_now(EventType::TABLE_MAP, HeaderFlags::default(), &body)
    }

    /// Appends changes of rows.
    pub fn rows(&mut self, rows: &RowsEvent<'_>) -> Result<()> {
        let body = rows.encode(post_header_length(rows.event_type))?;
        self.append_now(rows.event_type, HeaderFlags::default(), &body)
    }

    /// Appends all events of a payload that another server compressed, as its applier does. This session
    /// decides whether they are compressed again.
    ///
    /// # Errors
    ///
    /// A payload that is damaged; what [`Session::append`] refuses.
    pub fn append_payload(&mut self, payload: &TransactionPayloadEvent<'_>) -> Result<()> {
        let mut events = Vec::new();
        let max = self.shared.max_cache_size;
        match payload.header.compression_type() {
            CompressionType::NONE => events.extend_from_slice(payload.payload),
            _ => {
                let shared = Arc::clone(&self.shared);
                let expander = match &mut self.expander {
                    Some(expander) => expander,
                    none => none.insert(Expander::new()?),
                };
                shared.timer(CommitStage::Decompressing).time(|| {
                    expander.begin()?;
                    expander.push(payload.payload, |piece| match events.len() + piece.len() <= max {
                        true => {
                            events.extend_from_slice(piece);
                            Ok(())
                        }
                        false => Err(Error::CacheFull { max }),
                    })?;
                    Ok::<(), Error>(expander.finish()?)
                })?;
            }
        }
        let mut rest = events.as_slice();
        while !rest.is_empty() {
            let header = EventHeader::decode(rest)?;
            let event = rest
                .split_at_checked(header.event_size as usize)
                .filter(|(event, _)| event.len() >= HEADER_SIZE && !header.event_type.is_gtid());
            let Some((event, behind)) = event.filter(|_| header.event_type != EventType::TRANSACTION_PAYLOAD)
            else {
                return Err(Error::misuse(
                    "payload",
                    "bytes that are no event of a transaction",
                    "whole events",
                ));
            };
            let EventHeader { event_type, timestamp, flags, .. } = header;
            self.append(NewEvent {
                event_type,
                timestamp,
                flags,
                body: event.get(HEADER_SIZE..).unwrap_or_default(),
            })?;
            rest = behind;
        }
        Ok(())
    }

    /// The transaction changed a non-transactional table: it is not compressed, and rolling it back logs it.
    pub fn mark_non_transactional(&mut self) {
        self.cache.set_non_transactional();
    }

    /// `SAVEPOINT`: logged, unless nothing was changed before.
    pub fn savepoint(&mut self, name: &str) -> Result<()> {
        if !self.cache.is_empty() {
            self.control(format!("SAVEPOINT `{}`", name.replace('`', "``")).as_bytes())?;
        }
        self.begun = true;
        self.cache.set_savepoint(name.as_bytes());
        Ok(())
    }

    /// `ROLLBACK TO SAVEPOINT`: removes everything after it, or logs the statement if non-transactional
    /// changes prevent that.
    pub fn rollback_to(&mut self, name: &str) -> Result<()> {
        if self.cache.is_non_transactional() {
            return self.control(format!("ROLLBACK TO `{}`", name.replace('`', "``")).as_bytes());
        }
        self.cache.rollback_to(name.as_bytes())
    }

    /// `RELEASE SAVEPOINT`: not logged.
    pub fn release_savepoint(&mut self, name: &str) -> Result<()> {
        self.cache.release_savepoint(name.as_bytes())
    }

    /// `XA START`: opens a transaction that ends with [`Session::xa_prepare`].
    pub fn xa_start(&mut self, xa_id: XaId<'_>) -> Result<()> {
        self.begin()?;
        self.control(format!("XA START {xa_id}").as_bytes())
    }

    /// `XA END` and `XA PREPARE`, or with `one_phase` `XA COMMIT … ONE PHASE`: to be followed by
    /// [`Session::commit`], which puts it into the log.
    pub fn xa_prepare(&mut self, xa_id: XaId<'_>, one_phase: bool) -> Result<()> {
        self.control(format!("XA END {xa_id}").as_bytes())?;
        let body = XaPrepareEvent { one_phase, xa_id }.encode()?;
        self.append_now(EventType::XA_PREPARE, HeaderFlags::default(), &body)
    }

    /// `XA COMMIT` of a prepared transaction: a transaction of its own.
    pub fn xa_commit(&mut self, xa_id: XaId<'_>) -> Result<CommittedTransaction> {
        self.control(format!("XA COMMIT {xa_id}").as_bytes())?;
        self.commit()
    }

    /// `XA ROLLBACK` of a prepared transaction: a transaction of its own.
    pub fn xa_rollback(&mut self, xa_id: XaId<'_>) -> Result<CommittedTransaction> {
        self.control(format!("XA ROLLBACK {xa_id}").as_bytes())?;
        self.commit()
    }

    /// Commits. When it returns, the transaction is as durable as `flush_log_at_commit` and `sync_binlog`
    /// promise. Whatever happened, no transaction is open afterwards.
    ///
    /// # Errors
    ///
    /// A log that can't be written; a GTID that is taken; a transaction that has no end.
    pub fn commit(&mut self) -> Result<CommittedTransaction> {
        let committed = self.end_and_commit();
        self.clear();
        committed
    }

    /// Rolls back. Only non-transactional changes are logged, with a `ROLLBACK` after them.
    pub fn rollback(&mut self) -> Result<Option<CommittedTransaction>> {
        if self.cache.is_non_transactional() && self.cache.is_open() && !self.cache.is_empty() {
            let ended = self.control(b"ROLLBACK").and_then(|()| self.commit_cache());
            self.clear();
            return ended.map(Some);
        }
        self.clear();
        Ok(None)
    }

    fn clear(&mut self) {
        self.cache.clear();
        self.begun = false;
        self.gtid_next = GtidNext::Automatic(None);
    }

    fn end_and_commit(&mut self) -> Result<CommittedTransaction> {
        if self.cache.is_empty() {
            if !matches!(self.gtid_next, GtidNext::Given(_)) {
                return Ok(CommittedTransaction { gtid: None, outcome: TransactionForm::Empty, end: None });
            }
            // A given GTID is logged even if the transaction changes nothing.
            self.control(b"BEGIN")?;
            self.control(b"COMMIT")?;
        } else if self.cache.is_open() && self.cache.is_non_transactional() {
            self.control(b"COMMIT")?;
        } else if self.cache.is_open() {
            self.xid += 1;
            self.append_now(EventType::XID, HeaderFlags::default(), &XidEvent { xid: self.xid }.encode())?;
        }
        self.commit_cache()
    }

    fn commit_cache(&mut self) -> Result<CommittedTransaction> {
        if self.cache.is_open() {
            return Err(Error::misuse("commit", "a transaction without its last event", "a whole one"));
        }
        let shared = Arc::clone(&self.shared);
        let prepared = &mut self.prepared;
        prepared.last_committed = shared.pipeline.last_committed();
        prepared.gtid_next = self.gtid_next;
        prepared.original_commit_timestamp = self.original_commit_timestamp;
        prepared.original_server_version = self.original_server_version;
        let level = self.variables.compression();
        let mut take = |level: Option<CompressionLevel>| {
            prepared.take(&self.cache, level, &shared.compressors, &mut self.scratch)
        };
        match level {
            None => take(None)?,
            Some(level) => shared.timer(CommitStage::Compressing).time(|| take(Some(level)))?,
        }
        self.ticket.hand_in(prepared);
        shared.pipeline.commit(&self.ticket);
        self.ticket.outcome()
    }
}

fn post_header_length(event_type: EventType) -> u8 {
    let index = usize::from(event_type.0).saturating_sub(1);
    POST_HEADER_LENGTHS.get(index).copied().unwrap_or(0)
}
