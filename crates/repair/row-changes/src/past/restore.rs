//! Tables as they were, worked out once: the live tables, the logs since the moment, and the server's session that joins both.
//!
//! ```text
//! names of the moment → live tables → the caller reads the logs → touched keys, handed to the session → LiveTable::write …
//!        ↑____________________ statements after the moment: once more ____________________|
//! ```
//!
//! Statements that changed tables after the moment are only known when the logs were read: then they are read again.

use std::sync::Arc;

use binlogz_source::ConnectOptions;

use super::PastError;
use super::live::LiveTable;
use super::logged_databases::LoggedDatabases;
use super::logged_statements::LoggedStatements;
use super::moment::PastMoment;
use super::routes::TableRoutes;
use super::session::PastSession;
use super::touched::{TouchedKeys, TouchedOutcome};
use super::touched_rows::TouchedRows;

/// How often tables may change while the logs are read.
const ATTEMPTS: usize = 5;

/// A database and a table of it.
type TableName = (String, String);

/// The caller's part of restoring tables: it says which tables, and reads the logs.
pub trait RestoreSteps {
    /// The caller's error, which also holds those of this module.
    type Failure: From<PastError>;

    /// The tables, by the names that they had at the moment, as far as the statements that are known tell.
    ///
    /// # Errors
    ///
    /// Tables that can't be told.
    fn names(
        &self,
        session: &mut PastSession,
        logged: Option<&LoggedStatements>,
    ) -> Result<Vec<TableName>, PastError>;

    /// Whether the statements in the logs may tell other names.
    fn may_have_others(&self) -> bool;

    /// A part of a message that suggests the table of `there` that `missing` is likely to mean.
    fn likely(&self, missing: &str, there: Vec<String>) -> Option<String>;

    /// The tables are known: what is to be done with the server before the logs are read. It has to hold the session's snapshot, or make
    /// copies.
    ///
    /// # Errors
    ///
    /// The errors of what the caller does here.
    fn begin(&mut self, session: &mut PastSession, live: &[LiveTable]) -> Result<(), Self::Failure>;

    /// Whether GTIDs are to tell that the logs reach to what the server has now: they aren't the server's own alone.
    fn needs_gtids(&self) -> bool;

    /// Reads all logs that may have changes after the moment.
    ///
    /// # Errors
    ///
    /// Logs that can't be read.
    fn read(&mut self, keys: &mut TouchedKeys<'_>) -> Result<(), Self::Failure>;
}

/// Tables as they were: the session has what the logs tell, and writes them.
#[derive(Debug)]
pub struct RestoredTables {
    /// The session.
    pub session: PastSession,
    /// The tables.
    pub tables: Vec<LiveTable>,
    /// The rows that were changed after the moment, by table.
    pub touched: Vec<TouchedRows>,
    /// The changes that aren't certain, by table.
    pub doubts: Vec<CascadeDoubts>,
    /// The number of statements that were passed over and may have changed a table.
    pub passed_statements: u64,
}

/// Doubts about a table: foreign keys may have changed its rows below the log since the moment, or the log lacks statements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CascadeDoubts {
    /// A table that a foreign key refers to and which the account may not see.
    pub hidden_parent: Option<String>,
    /// The statement because of which it isn't known what foreign keys there were.
    pub statement: Option<String>,
    /// The first change that was carried on.
    pub first: Option<String>,
    /// A parent whose changes the server doesn't log, nor what foreign keys make of them.
    pub unlogged_parent: Option<String>,
    /// When a statement that isn't in the logs made or altered the table.
    pub remade: Option<String>,
    /// Why it isn't known which databases the server logs.
    pub unknown_logging: Option<String>,
    /// Which statements the server's logs may lack.
    pub unlogged_statements: Option<String>,
}

impl CascadeDoubts {
    /// The doubts in words, a line for each.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let hidden = self.hidden_parent.as_ref().map(|parent| {
            format!(
                "a foreign key refers to {parent}, which the account may not see: whether rows of the table were changed below \
                 the log through it isn't known"
            )
        });
        let statement = self.statement.as_ref().map(|statement| {
            format!(
                "this statement after the moment changed foreign keys that led to the table, or a table that they refer to: whether rows of the \
                 table were changed below the log before it isn't known: {statement}"
            )
        });
        let first = self.first.as_ref().map(|first| {
            format!(
                "rows that foreign keys changed below the log are as they are now; since the moment, a change may have been \
                 carried on like that first by {first}"
            )
        });
        let unlogged_parent = self.unlogged_parent.as_ref().map(|parent| {
            format!("rows that foreign keys changed below the log with those of {parent} are as they are now")
        });
        let remade = self.remade.as_ref().map(|time| {
            format!(
                "a statement that isn't in the logs made or altered it at {time}, after the moment: its rows and columns before that aren't \
                 known"
            )
        });
        let of_logging = [&self.unknown_logging, &self.unlogged_statements].map(Clone::clone);
        [hidden, statement, first, unlogged_parent, remade].into_iter().chain(of_logging).flatten()
    }
}

/// Works out tables as they were at a moment.
///
/// # Errors
///
/// The errors of the caller's steps; a server that can't be asked; tables that can't be told from these logs.
pub fn restore<S: RestoreSteps>(
    connect: &ConnectOptions,
    (moment, passes_statements): (&PastMoment, bool),
    steps: &mut S,
) -> Result<RestoredTables, S::Failure> {
    let mut logged = None;
    for _ in 0..ATTEMPTS {
        match attempt(connect, (moment, passes_statements), steps, logged.take())? {
            RestoreAttempt::Done(tables) => return Ok(*tables),
            RestoreAttempt::Altered(statements) => logged = Some(statements),
        }
    }
    let line = "statements change the tables faster than the logs can be read: try again";
    Err(PastError::Refused(line.to_owned()).into())
}

/// How an attempt ended.
enum RestoreAttempt {
    Done(Box<RestoredTables>),
    /// These statements, which the logs have, changed the tables: another attempt follows them by these.
    Altered(Box<LoggedStatements>),
}

/// Goes through the logs once, with the statements in them if they are known.
fn attempt<S: RestoreSteps>(
    connect: &ConnectOptions,
    (moment, passes_statements): (&PastMoment, bool),
    steps: &mut S,
    logged: Option<Box<LoggedStatements>>,
) -> Result<RestoreAttempt, S::Failure> {
    let mut session = PastSession::open(connect)?;
    let opened = match open_all(&mut session, steps, logged.as_deref()) {
        // Perhaps a table has another name now, or came into its database later.
        Err(PastError::Refused(_) | PastError::Keyless(_)) if logged.is_none() && steps.may_have_others() => {
            None
        }
        opened => opened?,
    };
    let Some((names, mut live)) = opened else {
        return look_for_statements(moment, &mut session, steps);
    };
    live.iter().try_for_each(|table| table.check_partitions(&mut session))?;
    if let Some(mut logged) = logged {
        LiveTable::settle(&live, &mut session, &mut logged)?;
        let logged: Arc<LoggedStatements> = Arc::from(logged);
        for (table, (database, name)) in live.iter_mut().zip(&names) {
            table.follow(&logged, (database, name))?;
        }
    }
    let logged_databases = session.logged_databases()?;
    live.iter().try_for_each(|table| check_logged(table, &logged_databases))?;
    live.iter().try_for_each(|table| table.make_temporary(&mut session))?;
    steps.begin(&mut session, &live)?;
    // Asked first: a trigger or a foreign key dropped after this is in the logs that are needed.
    let routes = TableRoutes::of(&mut session)?;
    let needed = session.executed(steps.needs_gtids())?;
    let mut keys = TouchedKeys::new(&live, &routes, moment.clone(), passes_statements);
    steps.read(&mut keys)?;
    let doubts = PassDoubts::of(&keys, &logged_databases);
    let passed_statements = keys.passed_statements();
    let (touched, met) = match keys.finish(&needed)? {
        TouchedOutcome::Rows(touched, met) => (touched, met),
        TouchedOutcome::Altered(logged) => return Ok(RestoreAttempt::Altered(logged)),
    };
    // A database may have had others.
    if steps.names(&mut session, Some(&met))? != names {
        return Ok(RestoreAttempt::Altered(met));
    }
    for table in &live {
        if !table.is_unchanged(&mut session)? {
            let (database, name) = table.asked();
            let line = format!("{database}.{name}: was changed by a statement while it was read: try again");
            return Err(PastError::Refused(line).into());
        }
    }
    let doubts = doubts.of_tables(session.logs_cascades()?, &logged_databases);
    for (table, touched) in live.iter().zip(&touched) {
        table.take_back(&mut session, touched)?;
    }
    Ok(RestoreAttempt::Done(Box::new(RestoredTables {
        session,
        tables: live,
        touched,
        doubts,
        passed_statements,
    })))
}

/// Refuses a table that is, or was, in a database that the server doesn't log.
fn check_logged(table: &LiveTable, logged: &LoggedDatabases) -> Result<(), PastError> {
    let since = table.since.iter().flat_map(|since| &since.names).map(|(database, _)| &**database);
    let mut databases = [&*table.database, table.asked().0].into_iter().chain(since);
    let lacking = databases.find_map(|database| logged.lacks(database));
    match lacking {
        Some(why) => {
            let (database, name) = table.asked();
            Err(PastError::Refused(format!("{database}.{name}: {why}, so its rows of then aren't known")))
        }
        None => Ok(()),
    }
}

/// Goes through the logs for their statements alone.
fn look_for_statements<S: RestoreSteps>(
    moment: &PastMoment,
    session: &mut PastSession,
    steps: &mut S,
) -> Result<RestoreAttempt, S::Failure> {
    let needed = session.executed(steps.needs_gtids())?;
    let mut keys = TouchedKeys::of_statements(moment.clone());
    steps.read(&mut keys)?;
    match keys.finish(&needed)? {
        TouchedOutcome::Altered(logged) | TouchedOutcome::Rows(_, logged) => {
            Ok(RestoreAttempt::Altered(logged))
        }
    }
}

/// Doubts that a pass over the logs left, by table.
struct PassDoubts {
    hidden: Vec<Option<String>>,
    statements: Vec<Option<String>>,
    cascades: Vec<Option<String>>,
    unlogged_parents: Vec<Option<String>>,
    remakings: Vec<Option<u64>>,
}

impl PassDoubts {
    fn of(keys: &TouchedKeys<'_>, logged: &LoggedDatabases) -> Self {
        PassDoubts {
            unlogged_parents: keys.unlogged_parents(logged),
            remakings: keys.unlogged_remakings(),
            hidden: keys.hidden_parents(),
            statements: keys.doubtful_keys(),
            cascades: keys.unlogged_cascades(),
        }
    }

    /// A server that logs what foreign keys change leaves no doubt about keys that aren't known.
    fn of_tables(self, logs_cascades: bool, logged: &LoggedDatabases) -> Vec<CascadeDoubts> {
        let unknown = self.hidden.into_iter().zip(self.statements);
        let of_logging = self.unlogged_parents.into_iter().zip(self.remakings);
        let doubts = unknown.zip(self.cascades).zip(of_logging);
        let each = doubts.map(|(((hidden, statement), first), (parent, made))| CascadeDoubts {
            hidden_parent: hidden.filter(|_| !logs_cascades),
            statement: statement.filter(|_| !logs_cascades),
            first,
            unlogged_parent: parent.filter(|_| !logs_cascades),
            remade: made.filter(|_| logged.is_partial()).map(time_of),
            unknown_logging: logged.unknown(),
            unlogged_statements: logged.lacking_statements(),
        });
        each.collect()
    }
}

/// A time in words, in UTC.
fn time_of(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| format!("{seconds} s since 1970"), |time| time.to_string())
}

/// The names of the moment, and their tables.
type OpenedTables = (Vec<TableName>, Vec<LiveTable>);

/// Opens the tables of the moment; `None`: one isn't there, and no statements are known that may tell why.
fn open_all<S: RestoreSteps>(
    session: &mut PastSession,
    steps: &S,
    logged: Option<&LoggedStatements>,
) -> Result<Option<OpenedTables>, PastError> {
    let names = steps.names(session, logged)?;
    let mut live = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let since = logged.map(|logged| logged.names((&name.0, &name.1))).transpose()?;
        let now = since.as_ref().and_then(|names| names.last()).unwrap_or(name);
        match LiveTable::open(session, (&now.0, &now.1), number)? {
            Some(table) => live.push(table),
            None if logged.is_none() => return Ok(None),
            None => {
                let (database, name) = now;
                let line = format!("{database}.{name} is not on the server, or this account may not see it");
                let there = session.tables(database)?.into_iter().map(|table| format!("{database}.{table}"));
                let likely = steps.likely(&format!("{database}.{name}"), there.collect());
                return Err(PastError::Absent(
                    likely.map_or(line.clone(), |likely| format!("{line}; {likely}")),
                ));
            }
        }
    }
    Ok(Some((names, live)))
}
