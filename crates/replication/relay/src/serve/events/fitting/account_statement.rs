//! Statements about accounts, and the empty transaction that stands in the place of one.
//!
//! ```text
//! GTID · Query: CREATE USER …                  the source's log
//! GTID · Query: BEGIN · filler · Query: COMMIT  the same bytes for a client that can't run it; the filler fills the rest
//! ```
//!
//! Servers since 8.0 log plugins, roles and clauses in these statements that older ones and MariaDB don't know, so a
//! replica of those would stop. Even one that it could parse fails there, since the account is not there either.

use binlogz_binlog::event::{QueryEvent, StatusVariables};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventFrame, EventHeader, EventType, HeaderFlags};

use super::filler;
use crate::serve::events::older_collations::first_words;
use crate::serve::events::profiles::FillerKind;

/// No such statement is longer: larger ones are not looked at.
pub(super) const SIZE_MAX: u32 = 1 << 20;
/// The first version whose statements older servers can't run.
pub(super) const FIRST_UNREADABLE: u32 = 80_000;

/// Whether a statement makes, changes or drops accounts, roles or their rights.
pub(super) fn is_one(statement: &[u8]) -> bool {
    let words = first_words(statement);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    matches!(
        words.as_slice(),
        ["CREATE" | "ALTER" | "DROP" | "RENAME", "USER", ..]
            | ["CREATE" | "DROP", "ROLE", ..]
            | ["GRANT" | "REVOKE", ..]
            | ["SET", "PASSWORD", ..]
            | ["SET", "DEFAULT", "ROLE"]
    )
}

/// The events of an empty transaction as large as this statement, which end where it ends; `None`: there is no room.
pub(super) fn empty_transaction(
    event: &EventFrame<'_>,
    fillers: FillerKind,
    checksum: ChecksumAlgorithm,
) -> Option<Vec<Vec<u8>>> {
    let header = event.header();
    let begin_size = size_of(b"BEGIN", checksum);
    let commit_size = size_of(b"COMMIT", checksum);
    let rest = header.event_size.checked_sub(begin_size + commit_size)?;
    // What is too small for an event of its own becomes a part of the first one: BEGIN uses no database.
    let (padding, filler_size) = match rest < filler::SIZE_MIN {
        true => (rest, 0),
        false => (0, rest),
    };
    let commit_at = header.end_log_pos.wrapping_sub(commit_size);
    let begin = statement(b"BEGIN", padding, header, commit_at.wrapping_sub(filler_size), checksum)?;
    let commit = statement(b"COMMIT", 0, header, header.end_log_pos, checksum)?;
    let filler_header = EventHeader { event_size: filler_size, end_log_pos: commit_at, ..*header };
    let filler = (filler_size > 0).then(|| filler::whole(&filler_header, fillers, checksum));
    Some([Some(begin), filler, Some(commit)].into_iter().flatten().collect())
}

/// The size of a statement without settings and database.
fn size_of(statement: &[u8], checksum: ChecksumAlgorithm) -> u32 {
    const FIXED: usize = 14;
    (HEADER_SIZE + FIXED + statement.len() + checksum.size()) as u32
}

fn statement(
    text: &[u8],
    padding: u32,
    header: &EventHeader,
    end_log_pos: u32,
    checksum: ChecksumAlgorithm,
) -> Option<Vec<u8>> {
    let database = vec![b'_'; padding as usize];
    let query = QueryEvent {
        thread_id: 0,
        exec_time: 0,
        error_code: 0,
        status_variables: StatusVariables(&[]),
        database: &database,
        statement: text,
    };
    let header = EventHeader {
        event_type: EventType::QUERY,
        end_log_pos,
        flags: HeaderFlags::SUPPRESS_USE,
        ..*header
    };
    Some(encode_event(header, &query.encode().ok()?, checksum))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn statements_about_accounts_are_told_by_their_first_words() {
        for statement in [
            "CREATE USER 'a'@'%' IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$'",
            "create /* x */ user if not exists a",
            "/* app */ ALTER USER a ACCOUNT LOCK",
            "DROP USER a",
            "RENAME USER a TO b",
            "CREATE ROLE r",
            "DROP ROLE r",
            "GRANT SELECT ON a.* TO b",
            "GRANT r TO a",
            "REVOKE ALL ON *.* FROM a",
            "SET PASSWORD FOR a = 'x'",
            "SET DEFAULT ROLE r TO a",
            "/*!80000 GRANT r TO a */",
        ] {
            assert!(is_one(statement.as_bytes()), "{statement}");
        }
        for statement in [
            "CREATE TABLE user (a INT)",
            "DROP TABLE role",
            "ALTER TABLE user ADD b INT",
            "SET @a = 1",
            "INSERT INTO t VALUES ('GRANT')",
            "`GRANT`",
            "BEGIN",
            "FLUSH PRIVILEGES",
            "",
        ] {
            assert!(!is_one(statement.as_bytes()), "{statement}");
        }
    }

    #[test]
    fn an_empty_transaction_is_as_large_as_the_statement() {
        for checksum in [ChecksumAlgorithm::CRC32, ChecksumAlgorithm::NONE] {
            let least = size_of(b"BEGIN", checksum) + size_of(b"COMMIT", checksum);
            for size in least - 3..least + 300 {
                let header = EventHeader {
                    timestamp: 7,
                    event_type: EventType::QUERY,
                    server_id: 1,
                    event_size: 0,
                    end_log_pos: 5_000,
                    flags: HeaderFlags::default(),
                };
                let body = vec![0; size as usize - HEADER_SIZE - checksum.size()];
                let event = encode_event(header, &body, checksum);
                let frame = EventFrame::from_bytes(&event, checksum.size()).unwrap();
                let Some(events) = empty_transaction(&frame, FillerKind::Ignorable, checksum) else {
                    assert!(size < least, "{size}");
                    continue;
                };
                assert_eq!(events.iter().map(Vec::len).sum::<usize>(), size as usize, "{size}");
                let mut at = 5_000 - size;
                let mut statements = Vec::new();
                for event in &events {
                    let frame = EventFrame::from_bytes(event, checksum.size()).unwrap();
                    assert_eq!(frame.header().event_size as usize, event.len());
                    assert!(frame.stored_checksum().is_none_or(|stored| stored == frame.computed_checksum()));
                    at += frame.header().event_size;
                    assert_eq!(frame.header().end_log_pos, at);
                    match frame.event_type() {
                        EventType::QUERY => {
                            statements.push(QueryEvent::decode(frame.body()).unwrap().statement)
                        }
                        filler => assert_eq!(filler, EventType::IGNORABLE),
                    }
                }
                assert_eq!(statements, [&b"BEGIN"[..], b"COMMIT"]);
            }
        }
    }
}
