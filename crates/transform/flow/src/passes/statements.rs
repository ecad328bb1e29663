//! The statements of a log, on all cores: they say what tables were at the time of their rows.
//!
//! Statements that begin or end transactions are left out. What the others do to tables is [`TableHistory`]'s to know.

use binlogz_binlog::event::QueryEvent;
use binlogz_binlog::statement::StatementKind;
use binlogz_schema::{HistoryPlace, RecordedStatement, TableHistory};

use crate::error::Error;
use crate::events::{self, BatchItem, EventBatch, RunSummary};
use crate::read::input::Input;

/// The events of statements in a batch: their offsets and bodies.
type StatementBodies = Vec<(u64, Box<[u8]>)>;

/// Records the statements of a log, whose number among all logs is this.
///
/// # Errors
///
/// A log that can't be read.
pub fn record_statements(
    input: Input,
    workers: usize,
    log: u64,
    history: &mut TableHistory,
) -> Result<RunSummary, Error> {
    let sink = |statements: StatementBodies| {
        for (offset, body) in statements {
            // It was read before.
            let Ok(query) = QueryEvent::decode(&body) else { continue };
            let database = String::from_utf8_lossy(query.database);
            let text = String::from_utf8_lossy(query.statement);
            let place = HistoryPlace { log, offset };
            history.record(&RecordedStatement::of_query(place, &query, (&database, &text)));
        }
        Ok(())
    };
    events::run(input, workers, || Ok(()), |(), batch| Ok(statements_of(batch)), sink, &mut |_| {})
}

/// What can't be read fails the batch.
fn statements_of(batch: &mut EventBatch<'_>) -> StatementBodies {
    let mut statements = StatementBodies::new();
    let mut failed = None;
    // In payloads there is no DDL: the server doesn't compress it.
    batch.leave_payloads();
    while let Some(item) = batch.next_item() {
        let BatchItem::Event(event) = item else { continue };
        if !event.header.event_type.class().may_change_tables() || event.is_inside_payload() {
            continue;
        }
        match QueryEvent::decode(event.body) {
            Ok(query) if StatementKind::of(query.statement) != StatementKind::Other => {}
            Ok(query) if TableHistory::is_of_rows(query.statement) || query.is_alter_without_effect() => {}
            Ok(_) => statements.push((event.position.offset, event.body.into())),
            Err(error) => {
                failed = Some(event.error(error));
                break;
            }
        }
    }
    if let Some(error) = failed {
        batch.fail(error);
    }
    statements
}
