//! `--require-row-format`: refuses events that a log in row format can't hold.

use binlogz_binlog::event::QueryEvent;
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{EventClass, EventHeader};

/// The error in an event, in mysqlbinlog's words.
pub(super) fn check(header: &EventHeader, body: &[u8]) -> Option<String> {
    let class = header.event_type.class();
    let refused = class.is_load_or_value() || class == EventClass::Statement && is_refused(body);
    refused.then(|| "Event being written violates the --require-row-format parameter constraints.".to_owned())
}

/// Changes of data and of temporary tables, as statements.
fn is_refused(body: &[u8]) -> bool {
    let Ok(query) = QueryEvent::decode(body) else { return false };
    if StatementKind::of(query.statement) != StatementKind::Other {
        return false;
    }
    let word =
        |word: &[u8]| query.statement.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    [&b"INSERT"[..], b"UPDATE", b"DELETE", b"REPLACE", b"LOAD "].iter().any(|it| word(it))
        || word(b"CREATE TEMPORARY")
        || word(b"DROP TEMPORARY")
}
