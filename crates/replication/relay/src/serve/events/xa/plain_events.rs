//! The events of a plain transaction, each as large as the event of an XA transaction whose place it takes.
//!
//! ```text
//! XA START     BEGIN      filled up with a status variable that no server knows: servers read none from there on
//! XA END       COMMIT     filled up likewise, in an empty transaction; in one with rows a filler of `fitting`
//! XA_prepare   XID        filled up with zeros after its number, of which servers read no more; in an empty one a filler
//! ```
//!
//! So every event begins and ends where the original does, and a client may stop between any two.
//! (Facts of MySQL 5.6.24's and MariaDB 10.11's `Query_log_event` and `Xid_log_event`.)

use binlogz_binlog::event::{QueryEvent, StatusVariables};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventFrame, EventHeader, EventType, HeaderFlags};

/// Servers have none of this number, and skip it with all that follow.
const UNKNOWN_VARIABLE: u8 = 255;
/// A query event's fields before the variables, and the NUL after the database.
const QUERY_FIXED_SIZE: usize = 14;
/// The number of an XID event.
const XID_SIZE: usize = 8;

/// BEGIN in the place of a statement; `None`: there is no room.
pub(in crate::serve) fn begin(replaced: &EventFrame<'_>, checksum: ChecksumAlgorithm) -> Option<Vec<u8>> {
    statement(b"BEGIN", replaced, checksum)
}

/// COMMIT in the place of a statement; `None`: there is no room.
pub(in crate::serve) fn commit(replaced: &EventFrame<'_>, checksum: ChecksumAlgorithm) -> Option<Vec<u8>> {
    statement(b"COMMIT", replaced, checksum)
}

/// The end of a transaction with rows in the place of an event; `None`: there is no room.
pub(in crate::serve) fn xid(replaced: &EventFrame<'_>, checksum: ChecksumAlgorithm) -> Option<Vec<u8>> {
    let header = replaced.header();
    let size = (header.event_size as usize).checked_sub(HEADER_SIZE + checksum.size())?;
    // Any number does: servers use their own.
    let mut body = vec![0; size];
    body.get_mut(..XID_SIZE)?.copy_from_slice(&u64::from(header.end_log_pos).to_le_bytes());
    let header = EventHeader { event_type: EventType::XID, flags: HeaderFlags::default(), ..*header };
    Some(encode_event(header, &body, checksum))
}

fn statement(text: &[u8], replaced: &EventFrame<'_>, checksum: ChecksumAlgorithm) -> Option<Vec<u8>> {
    let header = replaced.header();
    let needed = HEADER_SIZE + QUERY_FIXED_SIZE + text.len() + checksum.size();
    let padding = (header.event_size as usize).checked_sub(needed)?;
    let mut variables = vec![0; padding];
    if let Some(first) = variables.first_mut() {
        *first = UNKNOWN_VARIABLE;
    }
    let query = QueryEvent {
        thread_id: 0,
        exec_time: 0,
        error_code: 0,
        status_variables: StatusVariables(&variables),
        database: b"",
        statement: text,
    };
    let header = EventHeader { event_type: EventType::QUERY, flags: HeaderFlags::SUPPRESS_USE, ..*header };
    Some(encode_event(header, &query.encode().ok()?, checksum))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    type Making = fn(&EventFrame<'_>, ChecksumAlgorithm) -> Option<Vec<u8>>;

    #[test]
    fn an_event_is_as_large_as_the_one_whose_place_it_takes() {
        let all: [(Making, usize, EventType); 3] = [
            (begin, HEADER_SIZE + 14 + 5, EventType::QUERY),
            (commit, HEADER_SIZE + 14 + 6, EventType::QUERY),
            (xid, HEADER_SIZE + 8, EventType::XID),
        ];
        for checksum in [ChecksumAlgorithm::CRC32, ChecksumAlgorithm::NONE] {
            for (make, least, event_type) in all {
                for size in least - 3..least + 300 {
                    let header = EventHeader {
                        timestamp: 7,
                        event_type: EventType::XA_PREPARE,
                        server_id: 3,
                        event_size: 0,
                        end_log_pos: 4711,
                        flags: HeaderFlags::default(),
                    };
                    let replaced = encode_event(header, &vec![1; size - HEADER_SIZE], checksum);
                    let frame = EventFrame::from_bytes(&replaced, checksum.size()).unwrap();
                    let Some(made) = make(&frame, checksum) else {
                        assert!(size < least, "{size}");
                        continue;
                    };
                    let made = EventFrame::from_bytes(&made, checksum.size()).unwrap();
                    let flags = made.header().flags;
                    assert_eq!(*made.header(), EventHeader { event_type, flags, ..*frame.header() });
                    assert!(made.stored_checksum().is_none_or(|stored| stored == made.computed_checksum()));
                    if event_type == EventType::QUERY {
                        let query = QueryEvent::decode(made.body()).unwrap();
                        assert!([&b"BEGIN"[..], b"COMMIT"].contains(&query.statement));
                    }
                }
            }
        }
    }
}
