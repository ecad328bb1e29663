//! XA transactions, for clients that can't follow them: each step of one is told from its bytes, and gets a place in the log
//! as those clients see it.
//!
//! ```text
//! the source's log                                             such a client
//! GTID · XA START X'…',X'',1 · rows · XA END … · XA_prepare    GTID · BEGIN · fillers · COMMIT · filler
//! GTID · XA COMMIT …                                           a file of its own (`file_name`): GTID · BEGIN · the rows · XID
//! GTID · XA ROLLBACK …                                         GTID · BEGIN · filler · COMMIT
//! GTID · XA START … · rows · XA END … · XA_prepare, one phase  GTID · BEGIN · rows · filler · XID
//! ```
//!
//! MariaDB takes XA_prepare for the end of a transaction and commits it: if the source rolls it back, the rows stay on
//! the replica. MySQL before 5.7 does not know the event.
//!
//! Nothing is held in memory. At XA COMMIT the prepared transaction is found again in the stored log (`prepared`,
//! `search`), which is read from there and numbered anew (`renumbered`). `steps` tells the steps, `plain_events` makes the events in their
//! places.

mod file_name;
mod plain_events;
mod prepared;
mod renumbered;
mod search;
mod steps;

use binlogz_binlog::event::QueryEvent;
use binlogz_binlog::{EventFrame, EventHeader, EventType};

pub(crate) use file_name::{FIRST_POSITION, XaFileName};
pub(super) use plain_events::{begin, commit, xid};
pub(crate) use prepared::{PreparedPlace, PreparedTransactions};
pub(crate) use renumbered::RenumberedEvents;
pub(crate) use search::{PreparedSearch, StepReader, search, stored_bytes};
pub(crate) use steps::{TransactionEnds, XaRendering, XaStep};

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
