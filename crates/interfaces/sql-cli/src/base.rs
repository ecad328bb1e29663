//! `--base`: a server's tables as they were, worked out as `binlogz table-at` does.
//!
//! ```text
//! live table ─ restore ─ the server's own logs since the moment                       → a log of inserts, for the query engine
//!                      ─ INPUTs, where the server has purged some of them, then its own
//! ```
//!
//! What `table-at` would only warn of is an error here: the rows are exact, or there are none. `logs` says which logs are read; `lookup`
//! which parts of archived ones, where only rows with certain values are wanted, or the table's columns.

mod logs;
mod lookup;

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_cli_common::companions::sql_inputs::{BaseArgs, SqlServerArgs};
use binlogz_cli_common::time::GivenTime;
use binlogz_flow::events::{RunSummary, UnreadChanges};
use binlogz_flow::{Input, NotInSequence};
use binlogz_query::{BaseBlocks, BaseMoment, BaseRows, BaseTable, BaseWish, Error, TableBase, WholeLogs};
use binlogz_row_changes::{
    CascadeDoubts, EmptyTables, HeadError, LOG_BEGIN, LiveTable, LoggedStatements, PastError, PastMoment,
    PastSession, RestoreSteps, RestoredTables, ServerLogs, TableMoment, TouchedKeys, restore,
};
use binlogz_source::ConnectOptions;

use crate::server::connect_options;
use logs::LogsSinceMoment;
use lookup::{ArchiveLookup, wanted_values};

/// Bytes of logs that have no parts which can be passed over: if there are more, all rows are read, and kept for the next statement.
const UNDIVIDED_MAX: u64 = 64 << 20;

/// A server whose tables are asked for.
#[derive(Debug)]
pub(crate) struct ServerBase {
    connect: ConnectOptions,
    workers: usize,
    /// Whether all DDL of its tables is taken for logged.
    is_ddl_logged: bool,
}

/// Why a table at a moment can't be told.
#[derive(Debug)]
struct BaseTrouble {
    line: String,
    /// Whether the line says that there is no such table.
    is_absent: bool,
    /// Whether parts of logs were passed over without which it can't be told.
    lacks_parts: bool,
}

impl From<PastError> for BaseTrouble {
    fn from(error: PastError) -> Self {
        BaseTrouble { is_absent: matches!(error, PastError::Absent(_)), ..said(error.to_string()) }
    }
}

impl From<HeadError> for BaseTrouble {
    fn from(error: HeadError) -> Self {
        said(error.to_string())
    }
}

impl From<Error> for BaseTrouble {
    fn from(error: Error) -> Self {
        said(error.to_string())
    }
}

impl From<NotInSequence> for BaseTrouble {
    fn from(error: NotInSequence) -> Self {
        said(error.to_string())
    }
}

impl From<binlogz_source::Error> for BaseTrouble {
    fn from(error: binlogz_source::Error) -> Self {
        said(error.to_string())
    }
}

impl ServerBase {
    /// The base of the options, if they name one.
    pub(crate) fn open(
        args: &BaseArgs,
        server: &SqlServerArgs,
        workers: usize,
    ) -> Result<Option<ServerBase>, Error> {
        let Some(place) = &args.base else { return Ok(None) };
        let connect = connect_options(server, place)?;
        Ok(Some(ServerBase { connect, workers, is_ddl_logged: args.base_ddl_logged }))
    }

    fn session(&self) -> Result<PastSession, PastError> {
        PastSession::open(&self.connect)
    }

    fn line(&self, trouble: BaseTrouble) -> String {
        // The option of `table-at` is the clause here.
        let line = trouble.line.replacen("--at ", "AS OF ", 1);
        let server = self.connect.server();
        if line.contains(&server) { line } else { format!("{server}: {line}") }
    }

    fn rows(
        &self,
        table: (&str, &str),
        (moment, wish): (&PastMoment, &BaseWish),
        logs: &dyn WholeLogs,
        out: &mut dyn Write,
    ) -> Result<BaseRows, BaseTrouble> {
        let since = LogsSinceMoment::find(&self.connect, moment, logs)?;
        // What has to be read anyway tells all rows, for the next statement too.
        let wish = if since.undivided_size > UNDIVIDED_MAX { &BaseWish::All } else { wish };
        let mut steps =
            BaseSteps { base: self, table, moment, wish, logs, since, blocks: BaseBlocks::default() };
        let restored = match restore(&self.connect, (moment, false), &mut steps) {
            Err(trouble) if trouble.lacks_parts => {
                steps.wish = &BaseWish::All;
                restore(&self.connect, (moment, false), &mut steps)
            }
            restored => restored,
        };
        let RestoredTables { mut session, mut tables, doubts, .. } = restored?;
        if let Some(line) = doubts.into_iter().find_map(|doubts| self.doubt(doubts)) {
            return Err(said(line));
        }
        let BaseSteps { wish, blocks, .. } = steps;
        let values = wanted_values(wish);
        if *wish != BaseWish::All {
            tables.iter_mut().for_each(|table| table.restrict(values.as_deref()));
        }
        LiveTable::write_log(&tables, &mut session, EmptyTables::Mapped, out)?;
        let key = tables.first().and_then(LiveTable::key_names).unwrap_or_default();
        Ok(BaseRows {
            are_all: *wish == BaseWish::All,
            blocks,
            columns: tables.iter().flat_map(|table| table.stored_columns()).map(str::to_owned).collect(),
            key: key.into_iter().map(|(now, then)| (now.to_owned(), then.to_owned())).collect(),
        })
    }
}

impl ServerBase {
    /// A doubt about a table that its user hasn't taken away.
    fn doubt(&self, doubts: CascadeDoubts) -> Option<String> {
        let statements = doubts.unlogged_statements.clone().filter(|_| !self.is_ddl_logged);
        let others = CascadeDoubts { unlogged_statements: None, ..doubts };
        let first = others.lines().next();
        first.or_else(|| {
            statements.map(|line| format!("{line}; --base-ddl-logged takes it that there were none"))
        })
    }
}

fn said(line: impl Into<String>) -> BaseTrouble {
    BaseTrouble { line: line.into(), is_absent: false, lacks_parts: false }
}

impl TableBase for ServerBase {
    fn moment(&self, text: &str) -> Result<BaseMoment, String> {
        if let Ok(gtid) = text.parse::<Gtid>() {
            return Ok(BaseMoment::After(gtid));
        }
        let gtids: Option<GtidSet> =
            text.contains(':').then(|| text.replace(['\n', ' '], "")).and_then(|text| text.parse().ok());
        if let Some(gtids) = gtids.filter(|gtids| !gtids.is_empty()) {
            return Ok(BaseMoment::Executed(gtids));
        }
        let time = GivenTime::against_now(text);
        let time =
            time.map_err(|error| format!("{error}; or a GTID, as UUID:23, or a GTID set, as UUID:1-23"))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        match time.microseconds() > i64::try_from(now).unwrap_or(i64::MAX) {
            true => Err("is in the future".to_owned()),
            false => Ok(BaseMoment::Before(time.microseconds())),
        }
    }

    fn write_maps(&self, out: &mut dyn Write) -> Result<Vec<BaseTable>, String> {
        let told = self.session().and_then(|mut session| session.write_maps(out));
        let told = told.map_err(|error| self.line(error.into()))?;
        let tables = told.into_iter().map(|table| BaseTable {
            database: table.database,
            name: table.table,
            columns: table.stored,
        });
        Ok(tables.collect())
    }

    fn write_rows(
        &self,
        table: (&str, &str),
        (moment, wish): (&BaseMoment, &BaseWish),
        logs: &dyn WholeLogs,
        out: &mut dyn Write,
    ) -> Result<Option<BaseRows>, String> {
        let moment = match moment {
            BaseMoment::Before(time) => PastMoment::InLog(TableMoment::Before(*time)),
            BaseMoment::After(gtid) => PastMoment::InLog(TableMoment::After(*gtid)),
            BaseMoment::Executed(gtids) => PastMoment::Executed(gtids.clone()),
        };
        match self.rows(table, (&moment, wish), logs, out) {
            Ok(rows) => Ok(Some(rows)),
            Err(trouble) if trouble.is_absent => Ok(None),
            Err(trouble) => Err(self.line(trouble)),
        }
    }
}

/// The steps of a caller of `restore`: which logs are read to work a table out, and what is refused.
struct BaseSteps<'b> {
    base: &'b ServerBase,
    table: (&'b str, &'b str),
    moment: &'b PastMoment,
    wish: &'b BaseWish,
    logs: &'b dyn WholeLogs,
    since: LogsSinceMoment,
    /// The blocks of archives that were needed.
    blocks: BaseBlocks,
}

impl RestoreSteps for BaseSteps<'_> {
    type Failure = BaseTrouble;

    fn names(
        &self,
        _: &mut PastSession,
        _: Option<&LoggedStatements>,
    ) -> Result<Vec<(String, String)>, PastError> {
        Ok(vec![(self.table.0.to_owned(), self.table.1.to_owned())])
    }

    fn may_have_others(&self) -> bool {
        false
    }

    fn likely(&self, _: &str, _: Vec<String>) -> Option<String> {
        None
    }

    fn begin(&mut self, session: &mut PastSession, live: &[LiveTable]) -> Result<(), BaseTrouble> {
        session.hold()?;
        live.iter().try_for_each(|table| table.keep_columns(session))?;
        Ok(())
    }

    fn needs_gtids(&self) -> bool {
        self.since.has_inputs()
    }

    fn read(&mut self, keys: &mut TouchedKeys<'_>) -> Result<(), BaseTrouble> {
        if let Some(head) = self.since.very_first() {
            keys.begin_with(head);
        }
        let mut lookup = ArchiveLookup::new(self.wish, (self.moment, &*keys));
        keys.look_only_for(lookup.wanted_key_values());
        for index in self.since.inputs() {
            let chosen = lookup.choose(self.logs, index, keys)?;
            let (name, input) = match chosen {
                None => self.logs.whole(index)?,
                Some(chosen) => {
                    keys.pass_over(&chosen.passed_over);
                    if let Some(time) = chosen.begins_later {
                        keys.begin_past_moment(time);
                    }
                    let (name, input, is_whole) = self.logs.parts(index, &chosen.starts)?;
                    self.blocks += chosen.blocks(is_whole);
                    (name, input)
                }
            };
            self.read_log(keys, name, input)?;
            if let Some(time) = lookup.later() {
                keys.pass_moment(time);
            }
        }
        self.read_own(keys, self.since.first_own())?;
        match keys.needs_what_was_passed() {
            true => Err(BaseTrouble { lacks_parts: true, ..said("parts of the logs were passed over") }),
            false => Ok(()),
        }
    }
}

impl BaseSteps<'_> {
    /// Reads the server's own logs from this one on.
    fn read_own(&self, keys: &mut TouchedKeys<'_>, first: &str) -> Result<(), BaseTrouble> {
        let logs = ServerLogs::open(&self.base.connect, first, LOG_BEGIN)?;
        while let Some((name, bytes)) = logs.next_log()? {
            self.read_log(keys, &name, self.logs.for_statement(Input::Stream(bytes)))?;
        }
        Ok(())
    }

    fn read_log(&self, keys: &mut TouchedKeys<'_>, name: &str, input: Input) -> Result<(), BaseTrouble> {
        let ran = keys.read(input, name, self.base.workers, &mut |_| {});
        let RunSummary { read, unread } = ran.map_err(|error| BaseTrouble {
            lacks_parts: keys.needs_what_was_passed(),
            ..said(format!("{name}: {error}"))
        })?;
        if let Some(cut) = read.cut {
            return Err(said(format!("{name} at {}: ends inside an event", cut.offset)));
        }
        self.check_unread(name, unread)
    }

    /// Refuses changes after the moment that could not be read.
    fn check_unread(&self, name: &str, mut unread: UnreadChanges) -> Result<(), BaseTrouble> {
        if let PastMoment::InLog(TableMoment::Before(moment)) = self.moment {
            // Somewhere in the event's second.
            unread.retain(|unread| (i64::from(unread.timestamp) + 1) * 1_000_000 > *moment);
        }
        match unread.iter().next() {
            None if unread.unnamed() == 0 => Ok(()),
            None => {
                Err(said(format!("{name}: events could not be read; the table may have been changed there")))
            }
            Some(first) => Err(said(format!(
                "{name} {first}; the table may have been changed there, so its rows aren't known"
            ))),
        }
    }
}
