//! Tells which step of an XA transaction a transaction of the log is, from its first and last bytes.
//!
//! ```text
//! GTID · XA START X'71',X'',1 · … · XA_prepare   prepared, or in one phase: the last event says which
//! GTID · XA COMMIT X'71',X'',1                   decided
//! GTID · XA ROLLBACK X'71',X'',1
//! ```
//!
//! The name of the transaction is compared as servers spell it in all of these.

use binlogz_binlog::event::{QueryEvent, XaPrepareEvent};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{ChecksumAlgorithm, EventFrame, EventHeader, EventType};

use super::{STATEMENT_SIZE_MAX, may_be};

/// Bytes of a transaction's front that tell: a GTID event, and a statement.
const FRONT_SIZE: usize = STATEMENT_SIZE_MAX as usize + 4096;
/// No event that ends an XA transaction is larger: header, fields, two names of 64 bytes, checksum.
const TAIL_SIZE: usize = HEADER_SIZE + 13 + 128 + 4;

/// A step of an XA transaction, which is given by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum XaStep {
    /// Its rows are there, and it isn't decided.
    Prepare(String),
    /// Its rows are there, and it is committed.
    OnePhase,
    /// It was prepared, and is committed.
    Commit(String),
    /// It was prepared, and is rolled back.
    Rollback(String),
}

/// How a transaction's events are made plain for a client that doesn't know XA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum XaRendering {
    /// An empty transaction: its rows come later, or never.
    Empty,
    /// A transaction with the rows.
    Plain,
}

impl XaStep {
    /// How the step is made plain where it stands.
    pub(crate) fn rendering(&self) -> XaRendering {
        match self {
            XaStep::OnePhase => XaRendering::Plain,
            XaStep::Prepare(_) | XaStep::Commit(_) | XaStep::Rollback(_) => XaRendering::Empty,
        }
    }
}

/// The first and the last bytes of a transaction.
#[derive(Debug, Default)]
pub(crate) struct TransactionEnds {
    front: Vec<u8>,
    tail: Vec<u8>,
}

impl TransactionEnds {
    /// How many bytes at its begin and at its end are enough.
    pub(crate) const SIZES: (usize, usize) = (FRONT_SIZE, TAIL_SIZE);

    /// A transaction that is in memory.
    pub(crate) fn of(transaction: &[u8]) -> Self {
        let mut ends = TransactionEnds::default();
        ends.feed(transaction);
        ends
    }

    /// Takes the next bytes of the transaction.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let room = FRONT_SIZE.saturating_sub(self.front.len());
        self.front.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        let last = bytes.len().checked_sub(TAIL_SIZE).and_then(|from| bytes.get(from..)).unwrap_or(bytes);
        let surplus = (self.tail.len() + last.len()).saturating_sub(TAIL_SIZE);
        self.tail.drain(..surplus.min(self.tail.len()));
        self.tail.extend_from_slice(last);
    }

    /// The step that the transaction is, if it is one of XA. Its checksums are not compared.
    pub(crate) fn step(&self, checksum: ChecksumAlgorithm) -> Option<XaStep> {
        let first = EventHeader::decode(&self.front).ok()?;
        let begin = if first.event_type.is_gtid() { first.event_size as usize } else { 0 };
        let rest = self.front.get(begin..)?;
        let header = EventHeader::decode(rest).ok().filter(may_be)?;
        let event = rest.get(..header.event_size as usize)?;
        let frame = EventFrame::from_bytes(event, checksum.size()).ok()?;
        let statement = QueryEvent::decode(frame.body()).ok()?.statement;
        let name = name_of(statement)?;
        match StatementKind::of(statement) {
            StatementKind::XaStart => self.step_of_rows(name, checksum),
            StatementKind::XaCommit => Some(XaStep::Commit(name)),
            StatementKind::XaRollback => Some(XaStep::Rollback(name)),
            StatementKind::Begin
            | StatementKind::Commit
            | StatementKind::Rollback
            | StatementKind::RollbackTo
            | StatementKind::Savepoint
            | StatementKind::XaEnd
            | StatementKind::XaPrepare
            | StatementKind::Other => None,
        }
    }

    /// The step of a transaction with this name that has rows: its last event says which.
    fn step_of_rows(&self, name: String, checksum: ChecksumAlgorithm) -> Option<XaStep> {
        let size = HEADER_SIZE + 13 + names_size(&name)? + checksum.size();
        let event = self.tail.get(self.tail.len().checked_sub(size)?..)?;
        let frame = EventFrame::from_bytes(event, checksum.size()).ok()?;
        if frame.event_type() != EventType::XA_PREPARE {
            return None;
        }
        let prepare = XaPrepareEvent::decode(frame.body()).ok()?;
        if prepare.xa_id.to_string() != name {
            return None;
        }
        Some(if prepare.one_phase { XaStep::OnePhase } else { XaStep::Prepare(name) })
    }
}

/// The name in `XA START X'71',X'',1`.
fn name_of(statement: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(statement).ok()?;
    text.splitn(3, ' ').nth(2).map(|name| name.trim_end().to_owned())
}

/// The bytes of both parts of a name that is spelled `X'71',X'',1`.
fn names_size(name: &str) -> Option<usize> {
    let mut parts = name.split(',');
    let mut size = 0;
    for _ in 0..2 {
        let digits = parts.next()?.strip_prefix("X'")?.strip_suffix('\'')?;
        size += digits.len() / 2;
    }
    Some(size)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_binlog::event::{StatusVariables, XaId};

    use super::*;
    use crate::serve::events::event_in_tests::event_with;

    fn statement(text: &str, checksum: ChecksumAlgorithm) -> Vec<u8> {
        let query = QueryEvent {
            thread_id: 1,
            exec_time: 0,
            error_code: 0,
            status_variables: StatusVariables(&[]),
            database: b"",
            statement: text.as_bytes(),
        };
        event_with(EventType::QUERY, &query.encode().unwrap(), checksum)
    }

    fn prepare(gtrid: &[u8], bqual: &[u8], one_phase: bool, checksum: ChecksumAlgorithm) -> Vec<u8> {
        let xa_id = XaId { format_id: 1, gtrid, bqual };
        let body = XaPrepareEvent { one_phase, xa_id }.encode().unwrap();
        event_with(EventType::XA_PREPARE, &body, checksum)
    }

    /// The step that a transaction is, whatever the pieces in which it comes.
    fn step(events: &[Vec<u8>], checksum: ChecksumAlgorithm) -> Option<XaStep> {
        let gtid = event_with(EventType::GTID, &[7; 42], checksum);
        let whole = [&gtid, events.concat().as_slice()].concat();
        let expected = TransactionEnds::of(&whole).step(checksum);
        for size in [1, 7, 100, 5000] {
            let mut ends = TransactionEnds::default();
            whole.chunks(size).for_each(|piece| ends.feed(piece));
            assert_eq!(ends.step(checksum), expected);
        }
        expected
    }

    #[test]
    fn steps_are_told_from_the_ends_of_a_transaction() {
        for checksum in [ChecksumAlgorithm::CRC32, ChecksumAlgorithm::NONE] {
            let long = [b'a'; 64];
            let long_name = format!("X'{0}',X'{0}',1", "61".repeat(64));
            for (gtrid, bqual, name) in
                [(&b"q1"[..], &b""[..], "X'7131',X'',1"), (&long[..], &long[..], &long_name)]
            {
                let start = statement(&format!("XA START {name}"), checksum);
                let rows = event_with(EventType::WRITE_ROWS, &[7; 70_000], checksum);
                let end = statement(&format!("XA END {name}"), checksum);
                let with_last =
                    |last: Vec<u8>| step(&[start.clone(), rows.clone(), end.clone(), last], checksum);
                let named = name.to_owned();
                assert_eq!(
                    with_last(prepare(gtrid, bqual, false, checksum)),
                    Some(XaStep::Prepare(named.clone()))
                );
                assert_eq!(with_last(prepare(gtrid, bqual, true, checksum)), Some(XaStep::OnePhase));
                assert_eq!(
                    with_last(prepare(b"zz", bqual, true, checksum)),
                    None,
                    "another transaction's end"
                );
                let decided =
                    |word: &str| step(&[statement(&format!("XA {word} {name}"), checksum)], checksum);
                assert_eq!(decided("COMMIT"), Some(XaStep::Commit(named.clone())));
                assert_eq!(decided("ROLLBACK"), Some(XaStep::Rollback(named)));
                assert_eq!(decided("END"), None);
            }
            for text in ["BEGIN", "COMMIT", "CREATE TABLE xa (a INT)", "XA COMMIT", ""] {
                assert_eq!(step(&[statement(text, checksum)], checksum), None, "{text}");
            }
        }
    }

    #[test]
    fn what_is_cut_is_no_step() {
        let checksum = ChecksumAlgorithm::CRC32;
        let whole = [
            event_with(EventType::GTID, &[7; 42], checksum),
            statement("XA START X'7131',X'',1", checksum),
            prepare(b"q1", b"", false, checksum),
        ]
        .concat();
        assert!(TransactionEnds::of(&whole).step(checksum).is_some());
        for size in 0..whole.len() {
            assert_eq!(TransactionEnds::of(&whole[..size]).step(checksum), None, "{size}");
        }
    }
}
