//! What stands in the place of an event that is left out, as large as that one.
//!
//! ```text
//! rows, table maps      an event of type Ignorable (28) with the flag IGNORABLE; that of a table map has the table's name
//! a statement that is   Query: BEGIN · filler · Query: COMMIT, so that its GTID is there; what is too small for a filler becomes
//! a transaction         the database of the first of them, which neither uses. After MariaDB's GTID event no BEGIN, since it is one.
//!                       If the statement was about tables, the filler names them; XID, which is shorter, takes the place of
//!                       COMMIT if that makes room for the names
//! ```

use binlogz_binlog::checksum::Crc32;
use binlogz_binlog::event::{LeftOutStatement, QueryEvent, StatusVariables};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, HeaderFlags};

/// Zeros that are written at once.
const ZEROS_SIZE: usize = 64 << 10;
static ZEROS: [u8; ZEROS_SIZE] = [0; ZEROS_SIZE];
/// Post-header of a Query event, and the NUL after the name of its database.
const QUERY_FIXED_SIZE: usize = 14;
/// The number of a transaction, which an XID event has.
const XID_SIZE: usize = 8;

/// Gives the bytes of a filler to `write`, in pieces. Its body begins with `front`, if there is room for it.
pub(super) fn write<E>(
    replaced: &EventHeader,
    front: &[u8],
    checksum: ChecksumAlgorithm,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let flags = HeaderFlags(replaced.flags.0 | HeaderFlags::IGNORABLE.0);
    let header = EventHeader { event_type: EventType::IGNORABLE, flags, ..*replaced }.encode();
    let body_size = (replaced.event_size as usize).saturating_sub(HEADER_SIZE + checksum.size());
    let mark: &[u8] = if front.len() <= body_size { front } else { &[] };
    let mut crc = Crc32::new();
    for bytes in [&header[..], mark] {
        crc.update(bytes);
        write(bytes)?;
    }
    let mut left = body_size - mark.len();
    while left > 0 {
        let zeros = ZEROS.get(..left).unwrap_or(&ZEROS);
        crc.update(zeros);
        write(zeros)?;
        left -= zeros.len();
    }
    match checksum == ChecksumAlgorithm::NONE {
        true => Ok(()),
        false => write(&crc.finish().to_le_bytes()),
    }
}

/// The events of an empty transaction in the place of a statement; `None`: there is no room. `begins`: BEGIN is one of them.
/// `mark`: what the filler is to say of the statement's tables; the names give way to a mark without, if they have no room.
pub(super) fn empty_transaction(
    replaced: &EventHeader,
    begins: bool,
    mark: Option<&[u8]>,
    checksum: ChecksumAlgorithm,
) -> Option<Vec<u8>> {
    let Some(mark) = mark else {
        return ended_by(EmptyTransactionEnd::Commit, replaced, begins, &[], checksum);
    };
    let endings: &[EmptyTransactionEnd] = if begins {
        &[EmptyTransactionEnd::Commit, EmptyTransactionEnd::Xid]
    } else {
        &[EmptyTransactionEnd::Commit]
    };
    [mark, &LeftOutStatement::UNNAMED]
        .iter()
        .flat_map(|mark| endings.iter().map(move |ending| (*ending, *mark)))
        .find_map(|(ending, mark)| ended_by(ending, replaced, begins, mark, checksum))
}

/// The last event of an empty transaction.
#[derive(Debug, Clone, Copy)]
enum EmptyTransactionEnd {
    Commit,
    Xid,
}

/// An empty transaction with such an end; `None`: there is no room, or none for the mark.
fn ended_by(
    ending: EmptyTransactionEnd,
    replaced: &EventHeader,
    begins: bool,
    mark: &[u8],
    checksum: ChecksumAlgorithm,
) -> Option<Vec<u8>> {
    let begin_size = if begins { size_of(b"BEGIN", checksum) } else { 0 };
    let commit_size = match ending {
        EmptyTransactionEnd::Commit => size_of(b"COMMIT", checksum),
        EmptyTransactionEnd::Xid => (HEADER_SIZE + XID_SIZE + checksum.size()) as u32,
    };
    let rest = replaced.event_size.checked_sub(begin_size + commit_size)?;
    let is_filler = rest >= (HEADER_SIZE + checksum.size()) as u32;
    let (padding, filler_size) = if is_filler { (0, rest) } else { (rest, 0) };
    let room = (filler_size as usize).saturating_sub(HEADER_SIZE + checksum.size());
    if mark.len() > room {
        return None;
    }
    let mut bytes = Vec::with_capacity(replaced.event_size as usize);
    let commit_at = replaced.end_log_pos.wrapping_sub(commit_size + if begins { 0 } else { padding });
    if begins {
        let begin_end = commit_at.wrapping_sub(filler_size);
        bytes.extend(statement(b"BEGIN", padding, (replaced, begin_end), checksum)?);
    }
    if is_filler {
        let header = EventHeader { event_size: filler_size, end_log_pos: commit_at, ..*replaced };
        bytes.extend(filler_of(header, mark, checksum));
    }
    let commit_padding = if begins { 0 } else { padding };
    bytes.extend(match ending {
        EmptyTransactionEnd::Commit => {
            statement(b"COMMIT", commit_padding, (replaced, replaced.end_log_pos), checksum)?
        }
        EmptyTransactionEnd::Xid => {
            let header =
                EventHeader { event_type: EventType::XID, flags: HeaderFlags::default(), ..*replaced };
            encode_event(header, &[0; XID_SIZE], checksum)
        }
    });
    Some(bytes)
}

/// BEGIN and a filler in the place of a statement that begins a transaction; `None`: there is no room.
pub(super) fn begin(replaced: &EventHeader, checksum: ChecksumAlgorithm) -> Option<Vec<u8>> {
    let rest = replaced.event_size.checked_sub(size_of(b"BEGIN", checksum))?;
    let is_filler = rest >= (HEADER_SIZE + checksum.size()) as u32;
    let (padding, filler_size) = if is_filler { (0, rest) } else { (rest, 0) };
    let begin_end = replaced.end_log_pos.wrapping_sub(filler_size);
    let mut bytes = statement(b"BEGIN", padding, (replaced, begin_end), checksum)?;
    if is_filler {
        bytes.extend(filler_of(EventHeader { event_size: filler_size, ..*replaced }, &[], checksum));
    }
    Some(bytes)
}

/// A filler with this header but its type.
fn filler_of(header: EventHeader, mark: &[u8], checksum: ChecksumAlgorithm) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(header.event_size as usize);
    let written: Result<(), std::convert::Infallible> = write(&header, mark, checksum, |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    let Ok(()) = written;
    bytes
}

/// The size of a statement without settings and database.
fn size_of(text: &[u8], checksum: ChecksumAlgorithm) -> u32 {
    (HEADER_SIZE + QUERY_FIXED_SIZE + text.len() + checksum.size()) as u32
}

fn statement(
    text: &[u8],
    padding: u32,
    (replaced, end_log_pos): (&EventHeader, u32),
    checksum: ChecksumAlgorithm,
) -> Option<Vec<u8>> {
    let database = vec![b'_'; padding as usize];
    let query = QueryEvent {
        thread_id: 0,
        exec_time: 0,
        error_code: 0,
        status_variables: StatusVariables(b""),
        database: &database,
        statement: text,
    };
    let flags = HeaderFlags::SUPPRESS_USE;
    let header = EventHeader { event_type: EventType::QUERY, end_log_pos, flags, ..*replaced };
    Some(encode_event(header, &query.encode().ok()?, checksum))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_binlog::EventFrame;

    use super::*;

    /// What fills the place of a statement of that size.
    type Filling = fn(&EventHeader, ChecksumAlgorithm) -> Option<Vec<u8>>;

    /// The events in the place of a statement: their texts, `_` for a filler.
    fn shown(size: u32, fill: Filling, checksum: ChecksumAlgorithm) -> Option<Vec<String>> {
        let replaced = EventHeader {
            timestamp: 7,
            event_type: EventType::QUERY,
            server_id: 1,
            event_size: size,
            end_log_pos: 5_000,
            flags: HeaderFlags::default(),
        };
        let bytes = fill(&replaced, checksum)?;
        assert_eq!(bytes.len(), size as usize);
        let mut rest = &bytes[..];
        let mut end = 5_000 - size;
        let mut shown = Vec::new();
        while !rest.is_empty() {
            let event_size = EventHeader::decode(rest).unwrap().event_size;
            let (event, after) = rest.split_at(event_size as usize);
            let frame = EventFrame::from_bytes(event, checksum.size()).unwrap();
            assert!(frame.stored_checksum().is_none_or(|stored| stored == frame.computed_checksum()));
            end += event_size;
            assert_eq!(frame.header().end_log_pos, end);
            shown.push(match frame.event_type() {
                EventType::QUERY => {
                    let query = QueryEvent::decode(frame.body()).unwrap();
                    String::from_utf8_lossy(query.statement).into_owned()
                }
                EventType::XID => "Xid".to_owned(),
                filler => {
                    assert_eq!(filler, EventType::IGNORABLE);
                    match LeftOutStatement::decode(frame.body()) {
                        None => "_".to_owned(),
                        Some(LeftOutStatement { tables }) => tables.first().map_or("-".to_owned(), |table| {
                            [table.database, table.table].map(String::from_utf8_lossy).join(".")
                        }),
                    }
                }
            });
            rest = after;
        }
        Some(shown)
    }

    #[test]
    fn a_filler_names_the_tables_where_there_is_room_and_says_else_that_there_are_some() {
        const MARK: &[u8] = b"shop\xfelines";
        let fill: Filling = |replaced, checksum| empty_transaction(replaced, true, Some(MARK), checksum);
        // BEGIN and XID, the header and checksum of a filler, and one byte.
        let least = 42 + 31 + 23 + 1;
        assert_eq!(shown(least - 1, fill, ChecksumAlgorithm::CRC32), None);
        for (room, expected) in [
            (1, ["BEGIN", "-", "Xid"]),
            (9, ["BEGIN", "-", "Xid"]),
            (10, ["BEGIN", "shop.lines", "Xid"]),
            (21, ["BEGIN", "shop.lines", "Xid"]),
            // COMMIT is 12 bytes larger.
            (22, ["BEGIN", "shop.lines", "COMMIT"]),
            (80, ["BEGIN", "shop.lines", "COMMIT"]),
        ] {
            assert_eq!(shown(least - 1 + room, fill, ChecksumAlgorithm::CRC32).unwrap(), expected, "{room}");
        }
        let fill: Filling = |replaced, checksum| empty_transaction(replaced, false, Some(MARK), checksum);
        assert_eq!(shown(43 + 23, fill, ChecksumAlgorithm::CRC32), None);
        assert_eq!(shown(43 + 24, fill, ChecksumAlgorithm::CRC32).unwrap(), ["-", "COMMIT"]);
        assert_eq!(shown(43 + 33, fill, ChecksumAlgorithm::CRC32).unwrap(), ["shop.lines", "COMMIT"]);
    }

    #[test]
    fn an_empty_transaction_is_as_large_as_the_statement() {
        for checksum in [ChecksumAlgorithm::CRC32, ChecksumAlgorithm::NONE] {
            let own = checksum.size() as u32;
            let fillings: [(Filling, u32, [&str; 2]); 3] = [
                (
                    |replaced, checksum| empty_transaction(replaced, true, None, checksum),
                    77 + 2 * own,
                    ["BEGIN", "COMMIT"],
                ),
                (
                    |replaced, checksum| empty_transaction(replaced, false, None, checksum),
                    39 + own,
                    ["", "COMMIT"],
                ),
                (begin, 38 + own, ["BEGIN", ""]),
            ];
            for (fill, least, [first, last]) in fillings {
                assert_eq!(shown(least - 1, fill, checksum), None);
                for size in least..least + 200 {
                    let filler = if size - least >= 19 + own { "_" } else { "" };
                    let expected: Vec<_> =
                        [first, filler, last].into_iter().filter(|text| !text.is_empty()).collect();
                    assert_eq!(shown(size, fill, checksum).unwrap(), expected, "{size}");
                }
            }
        }
    }
}
