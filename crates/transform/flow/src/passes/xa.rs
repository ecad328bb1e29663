//! XA COMMIT and XA ROLLBACK of a log, on all cores: they decide over transactions that were prepared before, perhaps in
//! another log.

use binlogz_binlog::EventType;
use binlogz_binlog::event::QueryEvent;
use binlogz_binlog::statement::StatementKind;

use crate::error::Error;
use crate::events::{self, BatchItem, EventBatch, RunSummary};
use crate::read::input::Input;

/// The decision over a prepared transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XaDecision {
    /// The transaction's identifier as statements spell it: `X'6162',X'',1`.
    pub xid: String,
    /// Whether it is committed.
    pub is_commit: bool,
    /// Where the statement's event begins in the log.
    pub offset: u64,
}

impl XaDecision {
    /// The decision that a statement is; `None`: it is another one.
    pub fn of(statement: &[u8], offset: u64) -> Option<Self> {
        let kind = StatementKind::of(statement);
        if !matches!(kind, StatementKind::XaCommit | StatementKind::XaRollback) {
            return None;
        }
        let text = String::from_utf8_lossy(statement);
        let xid = text.splitn(3, ' ').nth(2).unwrap_or_default();
        let xid = xid.strip_suffix(" ONE PHASE").unwrap_or(xid).to_owned();
        Some(XaDecision { xid, is_commit: kind == StatementKind::XaCommit, offset })
    }
}

/// Passes on the decisions of a log, in its order.
///
/// # Errors
///
/// A log that can't be read.
pub fn xa_decisions(
    input: Input,
    workers: usize,
    mut take: impl FnMut(XaDecision),
) -> Result<RunSummary, Error> {
    let sink = |decisions: Vec<XaDecision>| {
        decisions.into_iter().for_each(&mut take);
        Ok(())
    };
    events::run(input, workers, || Ok(()), |(), batch| Ok(decisions_of(batch)), sink, &mut |_| {})
}

/// What can't be read fails the batch.
fn decisions_of(batch: &mut EventBatch<'_>) -> Vec<XaDecision> {
    let mut decisions = Vec::new();
    let mut failed = None;
    // A decision is a transaction of its own, which has no rows to compress.
    batch.leave_payloads();
    while let Some(item) = batch.next_item() {
        let BatchItem::Event(event) = item else { continue };
        if event.header.event_type != EventType::QUERY || event.is_inside_payload() {
            continue;
        }
        match QueryEvent::decode(event.body) {
            Ok(query) => decisions.extend(XaDecision::of(query.statement, event.position.offset)),
            Err(error) => {
                failed = Some(event.error(error));
                break;
            }
        }
    }
    if let Some(error) = failed {
        batch.fail(error);
    }
    decisions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_names_its_transaction() {
        let told = |text: &str| XaDecision::of(text.as_bytes(), 4).map(|told| (told.xid, told.is_commit));
        let xid = "X'6162',X'',1".to_owned();
        assert_eq!(told("XA COMMIT X'6162',X'',1"), Some((xid.clone(), true)));
        assert_eq!(told("XA COMMIT X'6162',X'',1 ONE PHASE"), Some((xid.clone(), true)));
        assert_eq!(told("XA ROLLBACK X'6162',X'',1"), Some((xid, false)));
        assert_eq!(told("XA END X'6162',X'',1"), None);
        assert_eq!(told("COMMIT"), None);
    }
}
