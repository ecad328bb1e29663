//! Asks the source whether it has the transactions that a client has and the relay lacks.
//!
//! A client that followed the source before may be ahead of the relay. Then the source has the client's transactions, and
//! the relay will have them soon. If the source lacks them, the client's and the source's histories differ, and the
//! client must not be served. `serve` decides; this file only asks.

use std::time::Instant;

use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_binlog::{EventType, MAGIC};
use binlogz_relay_log::{Form, LineageLog};
use binlogz_source::{ConnectOptions, Connection, DumpOptions, RemoteLog};
use binlogz_wire::ServerError;

use crate::error::{Error, Result};
use crate::receive::continuity;
use crate::receive::intake::Intake;
use crate::receive::mariadb;
use crate::receive::receiver::LogEnd;

/// A relay's name for itself, as the source's `version_comment`.
const RELAY: &str = "binlogz relay";

/// The GTIDs that a server has executed or is about to commit.
#[derive(Debug)]
pub(crate) struct ServersGtids {
    pub(crate) server: ServerUuid,
    /// Whether it is a relay, which may itself be behind its source.
    pub(crate) is_relay: bool,
    pub(crate) gtids: GtidSet,
}

/// Whether the source's log reaches as far as a client says that it has read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It does, or has more than is stored here.
    Further,
    /// It ends before that.
    Ends,
}

impl Intake {
    /// The GTIDs of the server that is followed or tried. The error says why there is no answer.
    pub(crate) fn gtids_of_source(&self, until: Instant) -> Result<ServersGtids, String> {
        let server = self.servers.current().map_err(|error| error.to_string())?;
        self.questions.ask(server, until, ask_gtids)
    }

    /// Whether the source's log reaches an offset of the last stored file, which lies after the end of what is stored
    /// here. In the received form the source is asked for the place itself. Other forms have places of their own, so
    /// there it is asked whether it has more than is stored here. The error says why there is no answer.
    pub(crate) fn reach_of_source(
        &self,
        kept: &LineageLog,
        form: Form,
        (name, offset): (String, u64),
        until: Instant,
    ) -> Result<Reach, String> {
        let server = self.servers.current().map_err(|error| error.to_string())?;
        let source = kept.source;
        if form == Form::Received {
            return self.questions.ask(server, until, move |server| {
                check_identity(server, source)?;
                has_offset(server, &name, offset)
            });
        }
        let end = LogEnd::of(self, kept).map_err(|error| error.to_string())?;
        let Some(LogEnd { position, .. }) = end else { return Ok(Reach::Further) };
        let name = kept.store.names().log(position.file);
        self.questions.ask(server, until, move |server| {
            check_identity(server, source)?;
            has_more(server, &name, position.offset)
        })
    }
}

impl Intake {
    /// Whether the source has a file of its log. The error says why there is no answer.
    pub(crate) fn source_has_file(
        &self,
        kept: &LineageLog,
        name: &str,
        until: Instant,
    ) -> Result<bool, String> {
        let server = self.servers.current().map_err(|error| error.to_string())?;
        let (source, name) = (kept.source, name.to_owned());
        self.questions.ask(server, until, move |server| {
            check_identity(server, source)?;
            has_file(server, &name)
        })
    }
}

/// The answer's first row as texts.
fn row(connection: &mut Connection, statement: &str) -> Result<Vec<String>> {
    let rows = connection.query(statement)?;
    let text = |cell: Option<Vec<u8>>| String::from_utf8_lossy(&cell.unwrap_or_default()).into_owned();
    Ok(rows.into_iter().next().unwrap_or_default().into_iter().map(text).collect())
}

fn ask_gtids(server: &ConnectOptions) -> Result<ServersGtids> {
    let mut connection = Connection::open(server)?;
    // First those that are being committed: afterwards they would be among the executed ones. A replica that
    // acknowledges semi-synchronously may have them already.
    let owned = match row(&mut connection, "SELECT @@GLOBAL.gtid_owned") {
        Ok(row) => row.concat(),
        Err(Error::Source(error)) if error.server_error().is_some() => String::new(),
        Err(error) => return Err(error),
    };
    let answer =
        row(&mut connection, "SELECT @@GLOBAL.server_uuid, @@version_comment, @@GLOBAL.gtid_executed")?;
    let mut cells = answer.into_iter();
    let mut next = || cells.next().unwrap_or_default();
    let server = next();
    let comment = next();
    let executed = next();
    let mut gtids: GtidSet = executed.replace('\n', "").parse()?;
    gtids.union(&without_owners(&owned).parse()?);
    Ok(ServersGtids { server: server.parse()?, is_relay: comment == RELAY, gtids })
}

/// `UUID:7#42:9#43`, as `gtid_owned` has it, without the threads that own the GTIDs.
fn without_owners(owned: &str) -> String {
    let mut is_owner = false;
    let kept = owned.chars().filter(|letter| {
        is_owner = *letter == '#' || (is_owner && letter.is_ascii_digit());
        !is_owner && !letter.is_whitespace()
    });
    kept.collect()
}

/// Names and offsets mean something only at the server whose log is stored.
fn check_identity(server: &ConnectOptions, source: ServerUuid) -> Result<()> {
    let found = mariadb::uuid_of(&mut Connection::open(server)?)?;
    match found == source {
        true => Ok(()),
        false => Err(Error::Refused(format!("{} is {found}, not {source}", server.server()))),
    }
}

/// Asks for a file from an offset on, as the client would.
fn has_offset(server: &ConnectOptions, name: &str, offset: u64) -> Result<Reach> {
    match RemoteLog::open(server, DumpOptions::to_the_end(name, offset))?.next_piece() {
        Ok(_) => Ok(Reach::Further),
        Err(error) if is_behind_the_end(&error) => Ok(Reach::Ends),
        Err(error) => Err(error.into()),
    }
}

/// Asks for the file's begin.
fn has_file(server: &ConnectOptions, name: &str) -> Result<bool> {
    match RemoteLog::open(server, DumpOptions::to_the_end(name, MAGIC.len() as u64))?.next_piece() {
        Ok(_) => Ok(true),
        Err(error) if continuity::is_of_a_missing_file(&error) => {
            let comment = row(&mut Connection::open(server)?, "SELECT @@version_comment")?.concat();
            match comment == RELAY {
                true => Err(Error::Refused("the relay that is followed lacks it too".into())),
                false => Ok(false),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether the source has anything after this place.
fn has_more(server: &ConnectOptions, name: &str, offset: u64) -> Result<Reach> {
    let mut log = RemoteLog::open(server, DumpOptions::to_the_end(name, offset))?;
    while let Some(piece) = log.next_piece()? {
        // The format description is sent in any case.
        if piece.is_stored() && piece.header.event_type != EventType::FORMAT_DESCRIPTION {
            return Ok(Reach::Further);
        }
    }
    Ok(Reach::Ends)
}

fn is_behind_the_end(error: &binlogz_source::Error) -> bool {
    let refusal = error.server_error();
    refusal.is_some_and(|error| {
        error.code == ServerError::SOURCE_FATAL_ERROR_READING_BINLOG
            && continuity::is_behind_the_end(&error.message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_of_gtids_are_left_out() {
        let uuid = "2410447f-e54d-11f1-848d-02fc00000001";
        let other = "2410447f-e54d-11f1-848d-02fc00000002";
        for (owned, expected) in [
            (String::new(), String::new()),
            (format!("{uuid}:7#42"), format!("{uuid}:7")),
            (format!("{uuid}:7#42:9#43,\n{other}:tag:1#5"), format!("{uuid}:7:9,{other}:tag:1")),
        ] {
            let gtids: GtidSet = without_owners(&owned).parse().unwrap();
            assert_eq!(gtids, expected.parse::<GtidSet>().unwrap(), "{owned}");
        }
    }
}
