//! Ends a dump before XA transactions that its replica would not apply as the source did.
//!
//! ```text
//! GTID · XA START X'…',X'',1 · rows · XA END … · XA_prepare       prepared: whether it comes to be is not known yet
//! GTID · XA COMMIT …  or  GTID · XA ROLLBACK …                     later, anywhere
//! ```
//!
//! MariaDB takes XA_prepare for the end of a transaction and commits it: if the source rolls it back, the rows stay on
//! the replica. MySQL before 5.7 does not know the event.

use binlogz_binlog::event::QueryEvent;
use binlogz_binlog::{EventFrame, EventHeader, EventType};

/// Servers write these statements themselves: two names of 64 bytes in hexadecimal, and the session's settings.
const STATEMENT_SIZE_MAX: u32 = 16 << 10;

/// Whether a statement may be of an XA transaction.
pub(super) fn may_be(header: &EventHeader) -> bool {
    header.event_type == EventType::QUERY && header.event_size <= STATEMENT_SIZE_MAX
}

/// Whether a statement is of an XA transaction.
pub(super) fn is(statement: &EventFrame<'_>) -> bool {
    QueryEvent::decode(statement.body()).is_ok_and(|query| {
        query.statement.first_chunk().is_some_and(|front: &[u8; 3]| front.eq_ignore_ascii_case(b"XA "))
    })
}

/// Why a dump ends there.
pub(super) fn refusal(kind: &str, position: u64) -> String {
    format!(
        "the transaction at {position} is an XA transaction, which {kind} can't follow: it would keep rows that the source may \
         roll back. Let the source finish it without XA, or build the replica anew behind it"
    )
}
