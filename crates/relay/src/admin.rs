//! Statements that change what the relay does, from any mysql client whose account may.
//!
//! `SET @binlogz_force = 1` before a PURGE also removes what connected replicas still read.

use binlogz_payload::statistics::CompressionTable;
use binlogz_wire::ServerError;
use binlogz_wire::session::ReplicaSession;
use binlogz_wire::statement::AdminStatement;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::compression_stats;
use crate::error::{Error, Result};
use crate::lineages::Kept;
use crate::relay::{Relay, lock};
use crate::retention;
use crate::variables::Variables;

/// Set by a client that means it.
const FORCE: &str = "binlogz_force";

/// Who wants a new file is told where to get it.
const FLUSH_AT_SOURCE: &str =
    "The relay's files are the source's: FLUSH BINARY LOGS there begins a new file here too";

/// Does it, and answers.
pub(crate) fn answer(
    relay: &Relay,
    kept: &Kept,
    may: bool,
    variables: &Variables,
    session: &mut ReplicaSession,
    statement: &AdminStatement,
) -> Result<()> {
    let refusal =
        |code, sqlstate: &[u8; 5], message| ServerError { code, sqlstate: Some(*sqlstate), message };
    if !may {
        let message = "Access denied; you need (at least one of) the admin right in the relay's configuration for \
                       this operation";
        session.refuse(&refusal(ServerError::SPECIFIC_ACCESS_DENIED, b"42000", message.into()));
        return Ok(());
    }
    let force = variables.get(FORCE).is_some_and(|value| value.as_deref() == Some("1"));
    let done = match statement {
        AdminStatement::PurgeTo(name) => {
            retention::purge_to(relay, kept, name, force).map_err(|error| (1373, error))
        }
        AdminStatement::PurgeBefore(time) => match seconds(time) {
            Some(time) => retention::purge_before(relay, kept, time, force).map_err(|error| (1378, error)),
            None => Err((1525, Error::Refused(format!("Incorrect DATETIME value: '{time}'")))),
        },
        // A file of the relay's own would not be one of the source's, whose names, bytes and positions it keeps.
        AdminStatement::FlushBinaryLogs => Err((1105, Error::Refused(FLUSH_AT_SOURCE.into()))),
        AdminStatement::StartReplica => {
            relay.control.start();
            Ok(())
        }
        AdminStatement::StopReplica => {
            relay.control.stop();
            Ok(())
        }
        AdminStatement::Truncate(name) if compression_stats::is_named(name) => {
            *lock(&relay.compression_stats) = CompressionTable::default();
            Ok(())
        }
        AdminStatement::Truncate(name) => {
            Err((1235, Error::Refused(format!("the relay has no table {name} to empty"))))
        }
    };
    match done {
        Ok(()) => session.ok(),
        Err((code, error)) => {
            let message = error.to_string();
            if !matches!(error, Error::Refused(_)) {
                relay.complain(&error, &message);
            }
            session.refuse(&refusal(code, b"HY000", message));
        }
    }
    Ok(())
}

/// A time as MySQL writes it, in this machine's time zone, in seconds since 1970.
fn seconds(text: &str) -> Option<u64> {
    let time: DateTime = text.trim().parse().ok()?;
    let zoned = time.to_zoned(TimeZone::system()).ok()?;
    u64::try_from(zoned.timestamp().as_second()).ok()
}
