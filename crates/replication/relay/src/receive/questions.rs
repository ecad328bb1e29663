//! Asks the source whether it has the transactions that a client has and the relay lacks.
//!
//! ```text
//! client's thread ─ turn, one of a few ─ thread ─ connection of its own to the source ─ answer, or the deadline
//! ```
//!
//! A client that followed the source before may be ahead of the relay. Then the source has the client's transactions, and
//! the relay will have them soon. If the source lacks them, the client's and the source's histories differ, and the
//! client must not be served. `serve` decides; this file only asks. A thread of its own asks, so that a client never
//! waits longer than it should, not even for a name server.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_binlog::EventType;
use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_source::{ConnectOptions, Connection, DumpOptions, RemoteLog};
use binlogz_wire::ServerError;

use crate::error::{Error, Result};
use crate::form::Form;
use crate::lock::lock;
use crate::log::lineages::LineageLog;
use crate::receive::continuity::BEHIND_THE_END;
use crate::receive::intake::Intake;
use crate::receive::receiver::LogEnd;

/// Questions that the source is asked at a time, each over a connection of its own.
const AT_A_TIME: usize = 4;
/// A relay's name for itself, as the source's `version_comment`.
const RELAY: &str = "binlogz relay";

/// Limits how many questions are asked at a time.
#[derive(Debug, Default)]
pub(crate) struct QuestionLimit {
    asking: Mutex<usize>,
    asked: Condvar,
}

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

/// A turn at asking, until dropped.
struct QuestionTurn(Arc<QuestionLimit>);

impl Drop for QuestionTurn {
    fn drop(&mut self) {
        *lock(&self.0.asking) -= 1;
        self.0.asked.notify_one();
    }
}

impl QuestionLimit {
    /// Waits for a turn; `None` after the deadline.
    fn turn(self: &Arc<Self>, until: Instant) -> Option<QuestionTurn> {
        let mut asking = lock(&self.asking);
        while *asking >= AT_A_TIME {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            asking = self.asked.wait_timeout(asking, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *asking += 1;
        Some(QuestionTurn(Arc::clone(self)))
    }

    /// Asks a server something in a thread of its own. The error says why there is no answer.
    fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        server: &ConnectOptions,
        until: Instant,
        question: impl FnOnce(&ConnectOptions) -> Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let too_late = || format!("{} has not answered in time", server.server());
        let turn = self.turn(until).ok_or_else(too_late)?;
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let mut options = server.clone();
        options.timeouts.login = left;
        options.timeouts.answer = left;
        options.timeouts.silence = Some(left);
        let (tell, told) = mpsc::channel();
        let ask = move || {
            let _turn = turn;
            // Nobody listens after the deadline.
            let _ = tell.send(question(&options));
        };
        let started = thread::Builder::new().name("question".into()).spawn(ask);
        started.map_err(|error| Error::thread("question")(error).to_string())?;
        match told.recv_timeout(left) {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(RecvTimeoutError::Timeout) => Err(too_late()),
            Err(RecvTimeoutError::Disconnected) => Err("the thread that asked the source panicked".into()),
        }
    }
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
    let (server, comment, executed) = (next(), next(), next());
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
    let found: ServerUuid =
        row(&mut Connection::open(server)?, "SELECT @@GLOBAL.server_uuid")?.concat().parse()?;
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
        error.code == ServerError::SOURCE_FATAL_ERROR_READING_BINLOG && error.message.contains(BEHIND_THE_END)
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

    #[test]
    fn a_server_that_does_not_answer_is_waited_for_until_the_deadline() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut server = ConnectOptions::new("binlogz");
        server.host = Some("127.0.0.1".into());
        server.port = Some(listener.local_addr().unwrap().port());
        let questions = Arc::<QuestionLimit>::default();
        let until = Instant::now() + Duration::from_millis(50);
        let error = questions.ask(&server, until, ask_gtids).unwrap_err();
        assert!(Instant::now() >= until, "{error}");
        assert!(error.contains("127.0.0.1"), "{error}");
        // Nobody waits longer for a turn, and every turn is given back.
        let turns: Vec<_> = (0..AT_A_TIME).filter_map(|_| questions.turn(Instant::now())).collect();
        assert!(turns.len() <= AT_A_TIME && questions.turn(Instant::now()).is_none());
        drop(turns);
        assert!(questions.turn(Instant::now() + Duration::from_secs(60)).is_some());
    }
}
