//! Statements that control the relay, from any mysql client whose account has the right.
//!
//! `SET @binlogz_force = 1` before a PURGE also removes what connected replicas still read.

use binlogz_payload::statistics::CompressionTable;
use binlogz_wire::ServerError;
use binlogz_wire::statement::AdminStatement;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::asked_relay::AskedRelay;
use crate::compression_stats;
use crate::statement_answer::StatementAnswer;
use crate::variables::ClientVariables;

/// Set by a client that wants to force a purge.
const FORCE: &str = "binlogz_force";

/// The answer to FLUSH BINARY LOGS.
const FLUSH_AT_SOURCE: &str =
    "The relay's files are the source's: FLUSH BINARY LOGS there begins a new file here too";

/// ER_SPECIFIC_ACCESS_DENIED_ERROR.
pub(crate) fn denied() -> StatementAnswer<'static> {
    let message = "Access denied; you need (at least one of) the admin right in the relay's configuration for this \
                   operation";
    StatementAnswer::refused(((ServerError::SPECIFIC_ACCESS_DENIED, *b"42000"), message.into()))
}

/// Executes the statement, and answers.
pub(crate) fn answer(
    relay: &impl AskedRelay,
    variables: &ClientVariables,
    statement: &AdminStatement,
) -> StatementAnswer<'static> {
    let force = variables.get(FORCE).is_some_and(|value| value.as_deref() == Some("1"));
    let done = match statement {
        AdminStatement::PurgeTo(name) => relay.purge_to(name, force).map_err(|why| (1373, why)),
        AdminStatement::PurgeBefore(time) => match seconds(time) {
            Some(time) => relay.purge_before(time, force).map_err(|why| (1378, why)),
            None => Err((1525, format!("Incorrect DATETIME value: '{time}'"))),
        },
        // A file of the relay's own would not be one of the source's, whose names, bytes and positions it keeps.
        AdminStatement::FlushBinaryLogs => Err((1105, FLUSH_AT_SOURCE.into())),
        AdminStatement::StartReplica => {
            relay.start_replica();
            Ok(())
        }
        AdminStatement::StopReplica => {
            relay.stop_replica();
            Ok(())
        }
        AdminStatement::Truncate(name) if compression_stats::is_named(name) => {
            *relay.compression_stats().lock() = CompressionTable::default();
            Ok(())
        }
        AdminStatement::Truncate(name) => Err((1235, format!("the relay has no table {name} to empty"))),
    };
    let Err((code, message)) = done else { return StatementAnswer::DONE };
    StatementAnswer::refused(((code, *b"HY000"), message))
}

/// A time as MySQL writes it, in this machine's time zone, in seconds since 1970.
fn seconds(text: &str) -> Option<u64> {
    let time: DateTime = text.trim().parse().ok()?;
    let zoned = time.to_zoned(TimeZone::system()).ok()?;
    u64::try_from(zoned.timestamp().as_second()).ok()
}
