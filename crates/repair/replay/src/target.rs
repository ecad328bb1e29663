//! A server, such as the one that is brought forward: its connection, its transactions and its settings.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::GtidSet;
use binlogz_inspect::Version;
use binlogz_source::{AnswerFields, ConnectOptions, Connection, Error as ServerError};

use crate::error::{ReplayError, Result};
use crate::listener::ReplayListener;
use crate::version_words::VersionWords;

/// The replication channel by which a server is brought forward.
pub const RECOVERY_CHANNEL: &str = "binlogz_recover";
/// The replication channel that marks a server to which a folded range is applied; it is never started.
pub const FOLD_CHANNEL: &str = "binlogz_fold";
/// Names the lock that keeps two runs from one server; the server drops it with the connection.
const LOCK: &str = "binlogz_recover";

/// How long a lost server may stay away: it may have to recover from a crash first.
const AWAY_MAX: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(250);
/// A statement such as STOP REPLICA waits for the transaction that is being applied.
const ANSWER_MAX: Duration = Duration::from_secs(3600);

/// A connected server.
pub struct TargetServer {
    pub(crate) options: ConnectOptions,
    connection: Connection,
    pub(crate) words: VersionWords,
    pub(crate) version: String,
    pub(crate) name: String,
    /// Whether it was lost, and did not come back.
    pub(crate) is_away: bool,
    pub(crate) listener: Arc<dyn ReplayListener>,
}

/// Schemas that each server has of its own.
pub(crate) const OWN_SCHEMAS: &str = "'mysql', 'sys', 'information_schema', 'performance_schema'";

/// A server's account of itself.
#[derive(Debug)]
pub(crate) struct TargetFacts {
    pub(crate) server_id: u32,
    pub(crate) gtid_mode: String,
    pub(crate) executed: GtidSet,
    pub(crate) workers: u32,
    pub(crate) keeps_order: bool,
    /// Other channels whose threads run.
    pub(crate) other_channels: Vec<String>,
}

impl TargetServer {
    /// Connects to a server.
    ///
    /// # Errors
    ///
    /// It can't be reached; it is MariaDB, or a MySQL without replication channels.
    pub fn connect(mut options: ConnectOptions, listener: Arc<dyn ReplayListener>) -> Result<TargetServer> {
        options.timeouts.answer = ANSWER_MAX;
        let name = options.server();
        let mut connection = open(&options)?;
        let version = connection.first_row("SELECT @@GLOBAL.version")?.text(0)?.to_owned();
        let refused = |why: &str| Err(ReplayError::unfit(&name, format!("is version {version}: {why}")));
        let number = match Version::parse(&version) {
            Some(number) if !version.contains("MariaDB") => number,
            _ => return refused("only MySQL can be recovered so: MariaDB's GTIDs are others"),
        };
        if Version::parse("5.7.6").is_some_and(|oldest| number < oldest) {
            return refused("expected 5.7.6 or later, which have replication channels");
        }
        Ok(TargetServer {
            words: VersionWords::of(&number),
            options,
            connection,
            version,
            name,
            is_away: false,
            listener,
        })
    }

    /// Makes sure that no other run is at work on this server.
    ///
    /// # Errors
    ///
    /// There is one.
    pub fn lock(&mut self) -> Result<()> {
        match self.takes_lock(0)? {
            true => Ok(()),
            false => Err(ReplayError::unfit(&self.name, "another binlogz recover is at work on this server")),
        }
    }

    /// Whether the lock is this session's, after so many seconds at most.
    fn takes_lock(&mut self, seconds: u64) -> Result<bool, ServerError> {
        self.first_row(&format!("SELECT GET_LOCK('{LOCK}', {seconds})"))?.is_on(0)
    }

    /// Runs a statement; its rows as text, NULL as nothing.
    pub(crate) fn ask(&mut self, statement: &str) -> Result<Vec<Vec<String>>, ServerError> {
        let rows = self.connection.query(statement)?;
        let text = |cell: Option<Vec<u8>>| String::from_utf8_lossy(&cell.unwrap_or_default()).into_owned();
        Ok(rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }

    /// Runs a statement that must succeed.
    pub(crate) fn run(&mut self, statement: &str) -> Result<(), TargetTrouble> {
        Ok(self.ask(statement).map(drop)?)
    }

    /// Does something, again if the connection is lost: the server may have been restarted.
    pub(crate) fn patiently<T>(
        &mut self,
        mut act: impl FnMut(&mut TargetServer) -> Result<T, TargetTrouble>,
    ) -> Result<T> {
        loop {
            match act(self) {
                Ok(done) => return Ok(done),
                Err(TargetTrouble::Final(failure)) => return Err(failure),
                Err(TargetTrouble::Lost(error)) => self.find_again(&error)?,
            }
        }
    }

    /// Connects again after the connection was lost.
    pub(crate) fn find_again(&mut self, lost: &ServerError) -> Result<()> {
        self.listener.warn(&format!("{lost}; connecting again"));
        let until = Instant::now() + AWAY_MAX;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match open(&self.options) {
                Ok(connection) => {
                    self.connection = connection;
                    // The server may not have noticed yet that the earlier connection is gone.
                    match self.takes_lock(left.as_secs()).map_err(TargetTrouble::from) {
                        Ok(true) => return Ok(()),
                        Ok(false) => {
                            let why = "another session has the lock of binlogz recover";
                            return Err(ReplayError::unfit(&self.name, why));
                        }
                        Err(TargetTrouble::Final(failure)) => return Err(failure),
                        Err(TargetTrouble::Lost(_)) => {}
                    }
                }
                Err(error) if left.is_zero() => {
                    self.is_away = true;
                    return Err(ReplayError::unfit(
                        &self.name,
                        format!(
                            "the server did not come back within {} s: {error}. If it has a channel {RECOVERY_CHANNEL}, that \
                             is left as it is: the same command goes on from there",
                            AWAY_MAX.as_secs()
                        ),
                    ));
                }
                Err(_) => {}
            }
            thread::sleep(POLL);
        }
    }

    /// The first row of an answer that has one.
    pub(crate) fn first_row(&mut self, statement: &str) -> Result<AnswerFields, ServerError> {
        self.connection.first_row(statement)
    }

    /// The columns of the last answer.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        let named = |column: &binlogz_source::wire::result_set::AnswerColumn| column.name == name.as_bytes();
        self.connection.columns().iter().position(named)
    }

    /// The transactions that the server has executed.
    pub(crate) fn executed(&mut self) -> Result<GtidSet, ServerError> {
        self.first_row("SELECT @@GLOBAL.gtid_executed")?.gtid_set(0)
    }

    /// How many replicas, or other programs, get the server's binary log.
    pub(crate) fn replicas(&mut self) -> Result<u64, ServerError> {
        self.first_row(
            "SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_COMMAND LIKE 'Binlog Dump%'",
        )?
        .parsed(0, "a number")
    }

    pub(crate) fn facts(&mut self) -> Result<TargetFacts> {
        let workers = self.words.variable("parallel_workers");
        let order = self.words.variable("preserve_commit_order");
        let own = self.first_row(&format!(
            "SELECT @@GLOBAL.server_id, @@GLOBAL.gtid_mode, @@GLOBAL.{workers}, @@GLOBAL.{order}"
        ))?;
        // A thread may also be CONNECTING.
        let others = self
            .ask(&format!(
                "SELECT CHANNEL_NAME FROM performance_schema.replication_connection_status \
             WHERE SERVICE_STATE <> 'OFF' AND CHANNEL_NAME NOT IN ('{RECOVERY_CHANNEL}', '{FOLD_CHANNEL}') UNION \
             SELECT CHANNEL_NAME FROM performance_schema.replication_applier_status \
             WHERE SERVICE_STATE <> 'OFF' AND CHANNEL_NAME NOT IN ('{RECOVERY_CHANNEL}', '{FOLD_CHANNEL}')"
            ))?
            .into_iter()
            .flatten()
            .collect();
        Ok(TargetFacts::of(&own, self.executed()?, others)?)
    }
}

/// Opens a session in which texts and names are what [`crate::quoting`] writes, and definitions are shown alike by any server.
fn open(options: &ConnectOptions) -> Result<Connection, ServerError> {
    let mut connection = Connection::open(options)?;
    connection.plain_sql_mode()?;
    Ok(connection)
}

impl TargetFacts {
    /// `own`: server_id, gtid_mode, replica_parallel_workers, replica_preserve_commit_order.
    pub(crate) fn of(
        own: &AnswerFields,
        executed: GtidSet,
        other_channels: Vec<String>,
    ) -> Result<TargetFacts, ServerError> {
        const NUMBER: &str = "a number of 32 bits";
        Ok(TargetFacts {
            server_id: own.parsed(0, NUMBER)?,
            gtid_mode: own.text(1)?.to_owned(),
            executed,
            workers: own.parsed(2, NUMBER)?,
            keeps_order: own.is_on(3)?,
            other_channels,
        })
    }
}

/// Why something on the server failed.
pub(crate) enum TargetTrouble {
    /// The connection is gone; the server may come back.
    Lost(ServerError),
    /// It was refused, or makes no sense.
    Final(ReplayError),
}

impl From<ServerError> for TargetTrouble {
    fn from(error: ServerError) -> TargetTrouble {
        match error.server_error() {
            // The same server would answer the same again.
            None if !matches!(error, ServerError::Answer { .. }) => TargetTrouble::Lost(error),
            _ => TargetTrouble::Final(error.into()),
        }
    }
}

impl TargetTrouble {
    /// For callers that don't wait for the server.
    pub(crate) fn failure(self) -> ReplayError {
        match self {
            TargetTrouble::Lost(error) => error.into(),
            TargetTrouble::Final(failure) => failure,
        }
    }
}
