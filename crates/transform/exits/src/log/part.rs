//! Transactions of a log that are masked one by one, from any place of it on: for readers that begin anywhere, again and again.
//!
//! What a transaction becomes depends on its bytes, the policy and the tables as the statements before it define them; so whoever has
//! these gets the same bytes. Nothing is left out for want of certainty, as in a log that is masked whole: that is an error.

use std::io::Read;
use std::sync::Arc;

use binlogz_binlog::event::QueryEvent;
use binlogz_binlog::statement::StatementKind;
use binlogz_flow::{EventsWalk, LogContext};
use binlogz_payload::Spool;
use binlogz_schema::{TablesOfLogs, TablesSoFar};

use super::run::ExitRun;
use super::sink::LogSink;
use super::walker::{LogMasker, record_statement};
use crate::error::ExitError;
use crate::policy::ExitPolicy;

/// Masks transactions that follow one another.
pub struct TransactionMasker {
    masker: LogMasker,
    walk: EventsWalk,
    context: LogContext,
    run: Arc<ExitRun>,
}

impl TransactionMasker {
    /// Begins at a position of the masked log. `tables`: as the statements before that define them.
    ///
    /// # Errors
    ///
    /// There is no memory for a decompressor.
    pub fn new(
        policy: &Arc<ExitPolicy>,
        tables: TablesSoFar,
        context: LogContext,
        position: u64,
    ) -> Result<Self, ExitError> {
        let known = TablesOfLogs::forward(None).for_masks();
        let run = Arc::new(ExitRun::new(Arc::clone(policy), Arc::new(known), false));
        run.progress.lock().so_far = tables;
        let mut masker =
            LogMasker::new(Arc::clone(&run), LogSink::resume(context.framing.checksum(), position));
        masker.resume(context.post_header_lengths);
        Ok(TransactionMasker { masker, walk: EventsWalk::new()?, context, run })
    }

    /// Masks a transaction, or an event between two, which begins at this offset of the log; `spool`, which is empty, gets the masked
    /// bytes. Logical clocks count after the transaction with the sequence number `clock`.
    ///
    /// # Errors
    ///
    /// Bytes that can't be read, or changes that can't be masked for certain. Then nothing more may be masked with this.
    pub fn mask(
        &mut self,
        events: impl Read,
        offset: u64,
        clock: i64,
        spool: Spool,
    ) -> Result<Spool, ExitError> {
        self.masker.begin_part(spool, clock);
        self.walk.read(events, offset, self.context, &mut self.masker)?;
        self.masker.end_part(offset)
    }

    /// The tables after what was masked.
    pub fn tables(&self) -> TablesSoFar {
        self.run.progress.lock().so_far.clone()
    }
}

impl std::fmt::Debug for TransactionMasker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransactionMasker").finish_non_exhaustive()
    }
}

/// Notes what the statement of an event at this offset makes of tables, as [`TransactionMasker`] does.
///
/// # Errors
///
/// A body that is no statement's.
pub fn note_statement(tables: &mut TablesSoFar, offset: u64, body: &[u8]) -> Result<(), ExitError> {
    let query = QueryEvent::decode(body)?;
    if StatementKind::of(query.statement) == StatementKind::Other {
        record_statement(tables, offset, &query);
    }
    Ok(())
}
