//! `binlogz export --follow`: exports a server's new transactions every so often, until a signal ends it. If the server
//! goes away, it tries again with growing pauses, and says so once.

use std::borrow::Cow;
use std::thread;
use std::time::{Duration, Instant};

use binlogz_cli_common::companions::export::{AT_ONCE, FollowArgs};
use binlogz_cli_common::companions::sql_inputs::SqlServerArgs;
use binlogz_query::Error;
use binlogz_query::export::follow::{FollowError, RECEIVED_MAX, ReceivedPart};
use binlogz_query::export::{Exporter, TableExport};
use binlogz_row_changes::ServerSchemaError;
use binlogz_source::ConnectOptions;

use crate::complain;
use crate::schema::SchemaPlace;
use crate::server::connect_options;
use crate::told::{tell, warn};

/// The first pause before a server is asked again that went away, and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
const MIB: u64 = 1 << 20;
// The help says what is received.
const _: () = assert!(AT_ONCE * MIB == RECEIVED_MAX);

/// Follows the server. A signal ends the process; the runs exported until then count.
pub(crate) fn run(
    args: &FollowArgs,
    export: &TableExport,
    in_bytes: bool,
    server: &SqlServerArgs,
    schema: Option<&SchemaPlace>,
) -> Result<(), Error> {
    let connect = connect_options(server, args.follow.as_deref().unwrap_or_default())?;
    let mut exporter = export.begin()?;
    let interval = Duration::from_secs(args.interval);
    let mut away: Option<AwayServer> = None;
    let mut was_reached = false;
    loop {
        let looked = Instant::now();
        match look(args, &connect, &mut exporter, in_bytes, schema) {
            Ok(has_more) => {
                was_reached = true;
                if let Some(away) = away.take() {
                    complain(&format!(
                        "the server is there again after {} s",
                        away.since.elapsed().as_secs()
                    ));
                }
                if !has_more {
                    thread::sleep(interval.saturating_sub(looked.elapsed()));
                }
            }
            // A wrong name, account or option is told at once.
            Err(FollowError::Source(error)) if was_reached && may_come_back(&error) => {
                let away = away.get_or_insert_with(|| {
                    complain(&format!("warning: {error}; asking again until it is there"));
                    AwayServer { since: looked, pause: PAUSE_MIN }
                });
                thread::sleep(away.pause);
                away.pause = (away.pause * 2).min(PAUSE_MAX);
            }
            Err(FollowError::Source(error)) => return Err(Error::Log(error.to_string())),
            Err(FollowError::Other(error)) => return Err(error),
        }
    }
}

/// Exports the new transactions; returns whether the server may have more now.
fn look(
    args: &FollowArgs,
    connect: &ConnectOptions,
    exporter: &mut Exporter<'_>,
    in_bytes: bool,
    schema: Option<&SchemaPlace>,
) -> Result<bool, FollowError> {
    let part = ReceivedPart::receive(connect, exporter.gtids()?, args.at_once.saturating_mul(MIB))?;
    let has_more = part.has_more;
    // After the transactions: it has the tables that they made.
    let schema = match schema.filter(|_| !part.is_empty()) {
        Some(schema) => described(schema, exporter.tables())?,
        None => None,
    };
    let exported = part.export(exporter, schema.as_deref(), complain)?;
    match exported.run {
        Some(_) => tell(&exported, false, in_bytes)?,
        None => warn(&exported),
    }
    // A part without anything new would be received again and again.
    Ok(has_more && exported.run.is_some())
}

/// The CREATE TABLE statements that --schema has of these tables, or of all; `None`: its server has none of them yet.
fn described<'s>(
    schema: &'s SchemaPlace,
    tables: Option<&[(String, String)]>,
) -> Result<Option<Cow<'s, str>>, FollowError> {
    match schema.text(tables) {
        Ok(text) => Ok(Some(text)),
        Err(ServerSchemaError::NoTables { .. }) => Ok(None),
        Err(ServerSchemaError::Source(error)) => Err(FollowError::Source(error)),
        Err(error) => Err(Error::Log(error.to_string()).into()),
    }
}

/// A server that went away.
struct AwayServer {
    since: Instant,
    pause: Duration,
}

/// Errors of a server that is busy or shuts down: too many connections, shutdown, interrupted, killed.
const PASSING: [u16; 4] = [1040, 1053, 1317, 3169];

/// Whether the server may answer later: the connection failed, or it is busy. A server that refuses refuses again.
fn may_come_back(error: &binlogz_source::Error) -> bool {
    use binlogz_source::Error as Source;
    use binlogz_source::wire::Error as Wire;
    match error {
        Source::Connect { .. } | Source::Io { .. } | Source::Tls { .. } => true,
        Source::Wire { source: Wire::Timeout { .. }, .. } => true,
        Source::Wire { source: Wire::Server { error, .. }, .. } => PASSING.contains(&error.code),
        _ => false,
    }
}
