//! `binlogz recover`: point-in-time recovery, applied by the server itself, in parallel.
//!
//! This file checks the options, leads through the steps and tells of them; `verify` makes a drill of it, `folded` applies net changes, or
//! chooses by an `estimate`.

mod estimate;
mod folded;
mod verify;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::printable;
use binlogz_figures::wrapped;
use binlogz_relay::EndedLogs;
use binlogz_relay_config::{LogFormat, LogSettings, levels};
use binlogz_replay::{
    ApplierThreads, CrossedIncidents, EmbeddedSourceOptions, IncidentWalk, RECOVERY_CHANNEL, RecoveredLogs,
    Recovery, RecoveryDetacher, ReplicationFilters, RunningRecovery, TargetServer, check_paths,
};
use binlogz_source::ConnectOptions;
use clap::{Args, ValueEnum};

use folded::{FoldArgs, FoldStep, LogsToFold};

use super::closed_logs::{self, DiskArgs, StderrListener, StopArgs, line};
use super::workers;
use crate::Exit;
use crate::failure::{CommandFailure, Result, complain, name_unread};
use crate::format::ReportFormat;
use crate::interrupt;
use crate::keyring::KeyringArg;
use crate::log;
use crate::log_path::LogPath;
use crate::progress::WorkProgress;
use crate::server_args::{ServerArgs, with_place};
use crate::terminal;

/// This command's name for itself at servers.
const PROGRAM_NAME: &str = "binlogz recover";

/// Bring a server forward to a moment, from an archive or binary logs
///
/// The server is attached, as a replica, to a source inside this command, which serves the logs and ends at the moment: the
/// server applies them itself, with parallel workers. Then it is detached, and every setting is as before; also after Ctrl-C.
/// A run that was killed, or whose server was, is continued by the same command. The server needs GTID_MODE=ON, and has to
/// hold everything that came before the first log, as after restoring a backup that knows its GTIDs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct Recover {
    /// The archive (its folder, or s3://BUCKET/PREFIX), or binary logs of one server
    #[arg(long, required = true, num_args = 1.., value_name = "ARCHIVE|FILE")]
    from: Vec<PathBuf>,
    /// The server: `mysql://[USER@]HOST[:PORT]`, `HOST[:PORT]` or a socket's path [default: what the options name]
    #[arg(long, value_name = "SERVER", conflicts_with = "verify")]
    to: Option<String>,
    #[command(flatten)]
    stop: StopArgs,
    /// Check everything, say what would be done, and change nothing
    #[arg(long)]
    check: bool,
    /// A restore drill: restore into a private server, and compare CHECKSUM TABLE of every table, and all definitions, with the
    /// live source at the same GTIDs. Exit code 0: all are equal, 1: not
    #[arg(long, requires = "source", conflicts_with_all = ["check", "stop"])]
    verify: bool,
    /// The live source for --verify
    #[arg(long, value_name = "SERVER", requires = "verify")]
    source: Option<String>,
    /// A dump to restore first for --verify: SQL, as mysqldump writes it
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "verify")]
    dump: Vec<PathBuf>,
    /// How --verify tells what it found
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// Apply with this many workers [default: as the server has it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), hide_short_help = true)]
    workers: Option<u32>,
    /// Whether transactions commit in the log's order [default: as the server has it]
    #[arg(long, value_enum, value_name = "WHEN", hide_short_help = true)]
    preserve_commit_order: Option<OnOff>,
    /// Go on over incidents, where the server says that its log lacks changes; the server here will lack them too
    #[arg(long, hide_short_help = true)]
    over_incidents: bool,
    /// Go on although the server has transactions that follow ones it lacks: workers committed in another order
    #[arg(long, hide_short_help = true, conflicts_with_all = ["fold", "explain"])]
    over_gaps: bool,
    #[command(flatten)]
    folding: FoldArgs,
    #[command(flatten)]
    filters: Filters,
    /// Where the source inside this command listens, for the server to connect to [default: the address of this machine that
    /// leads to the server, any port]
    #[arg(long, value_name = "ADDRESS:PORT", hide_short_help = true)]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    disk: DiskArgs,
    #[command(flatten)]
    keyring: KeyringArg,
    #[command(flatten)]
    connection: ServerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnOff {
    /// In the log's order
    On,
    /// In any order
    Off,
}

/// The server's own filters, by their names, for this channel alone.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters, as for mysqld; transactions that are left out count as applied")]
struct Filters {
    /// Only this database
    #[arg(long, value_name = "DATABASE", hide_short_help = true)]
    replicate_do_db: Vec<String>,
    /// All but this database
    #[arg(long, value_name = "DATABASE", hide_short_help = true)]
    replicate_ignore_db: Vec<String>,
    /// Only this table
    #[arg(long, value_name = "DATABASE.TABLE", hide_short_help = true)]
    replicate_do_table: Vec<String>,
    /// All but this table
    #[arg(long, value_name = "DATABASE.TABLE", hide_short_help = true)]
    replicate_ignore_table: Vec<String>,
    /// Only tables that are like this, with % and _
    #[arg(long, value_name = "PATTERN", hide_short_help = true)]
    replicate_wild_do_table: Vec<String>,
    /// All but tables that are like this
    #[arg(long, value_name = "PATTERN", hide_short_help = true)]
    replicate_wild_ignore_table: Vec<String>,
    /// Apply changes of one database to another
    #[arg(long, value_name = "FROM->TO", hide_short_help = true)]
    rewrite_db: Vec<String>,
}

const EXAMPLES: &str = "Examples:
  binlogz recover --from /backup/db1 --to root@db2 --check
  binlogz recover --from /backup/db1 --to root@db2 --until-datetime '2026-11-22 10:42:00'
  binlogz recover --verify --from /backup/db1 --dump sunday.sql --source monitor@db1 --format json
  binlogz recover --from binlog.0000* --to root@db2 --stop-before-gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23

Exit codes: 0 the server is there, 1 the logs don't have that moment or lack changes before it, 2 a check failed, or trouble.";

impl Recover {
    pub(super) fn run(self) -> Result<Exit> {
        match &self.source {
            Some(source) => self.verify(source),
            None => self.recover(self.server()?),
        }
    }

    /// Brings a server forward.
    fn recover(&self, server: ConnectOptions) -> Result<Exit> {
        self.folding.check()?;
        let stop = self.stop.stop()?;
        let threads = ApplierThreads {
            workers: self.workers,
            keeps_order: self.preserve_commit_order.map(|order| order == OnOff::On),
            filters: self.filters.filters()?,
        };
        check_paths(&self.from).map_err(line)?;
        let mut target = TargetServer::connect(server, StderrListener::shared()).map_err(line)?;
        target.lock().map_err(line)?;
        let folder = self.disk.folder()?;
        let Some(ended) = closed_logs::open(&self.from, &self.keyring, &stop, folder.path())? else {
            return Ok(Exit::Negative);
        };
        let (first, last) = ended.logs().range();
        self.say(&format!(
            "{}: {first} to {last}, up to {}",
            ended.logs().place(),
            closed_logs::reach(&ended)
        ))?;
        let (mut recovery, no_fold) = self.checked(target, &ended, threads)?;
        let before = self.had_before(&recovery, folder.path())?;
        self.say(&format!(
            "{}: lacks {} of {} transactions",
            recovery.server(),
            recovery.lacks().count(),
            ended.gtids.count()
        ))?;
        let incidents = self.crossed(&ended, folder.path(), &before)?;
        self.check_gap(&recovery, &incidents.crossed)?;
        let exit = tell_incidents(&incidents);
        if exit != Exit::Done && !self.over_incidents {
            complain(&format!(
                "{}: nothing is changed: the logs lack changes before that moment; --over-incidents goes on without those \
                 changes",
                recovery.server()
            ));
            return Ok(exit);
        }
        if self.check {
            self.say_begun(&recovery)?;
            return Ok(exit);
        }
        if recovery.lacks().is_empty() && recovery.mark().is_none() {
            recovery.clean_up().map_err(line)?;
            self.say(&format!("{}: has everything already", recovery.server()))?;
            return Ok(Exit::Done);
        }
        if self.folding.is_on() {
            let logs = LogsToFold { ended: &ended, before: &before, folder: folder.path() };
            match self.fold_first(&recovery, no_fold, logs)? {
                FoldStep::Ended(exit) => return Ok(exit),
                FoldStep::Apply(prepared) => {
                    return self.apply_folded(recovery, &prepared, (&incidents.crossed, folder.path()));
                }
                FoldStep::Replay => {}
            }
        }
        let source = EmbeddedSourceOptions {
            folder: folder.path(),
            bring_back: self.disk.bring_back(),
            listen: self.listen,
            over_incidents: self.over_incidents,
        };
        Ok(self.apply(recovery, source, &incidents.crossed)?.max(exit))
    }

    /// Checks the server for the ways that may be taken. The other value says why a folded log can't be applied, where that isn't an error.
    fn checked<'l>(
        &self,
        target: TargetServer,
        ended: &'l EndedLogs,
        threads: ApplierThreads,
    ) -> Result<(Recovery<'l>, Option<String>)> {
        if !self.folding.is_on() {
            return Ok((Recovery::check(target, ended, threads).map_err(line)?, None));
        }
        let (recovery, no_fold) = Recovery::check_either(target, ended, threads).map_err(line)?;
        let no_fold = match no_fold {
            None => self.account_lacks()?,
            why => why,
        };
        match no_fold {
            Some(why) if self.folding.is_certain() || recovery.mark().is_some() => {
                Err(CommandFailure::of_server(recovery.server(), why))
            }
            no_fold => Ok((recovery, no_fold)),
        }
    }

    /// Says what an earlier run left.
    fn say_begun(&self, recovery: &Recovery<'_>) -> Result<()> {
        let server = recovery.server();
        if let Some(mark) = recovery.mark() {
            self.say(&format!(
                "{server}: an earlier run with --fold is not done: its tables are those of no moment until the next one has brought it to {}",
                mark.last
            ))?;
        }
        if recovery.is_begun() {
            self.say(&format!(
                "{server}: an earlier run left its channel {RECOVERY_CHANNEL}; the next one goes on from there"
            ))?;
        }
        Ok(())
    }

    /// Refuses a server whose tables may be those of no moment, though no channel tells so. A folded log is checked where it is made.
    fn check_gap(&self, recovery: &Recovery<'_>, walked: &CrossedIncidents) -> Result<()> {
        let is_folded = self.folding.is_certain() || recovery.mark().is_some();
        let is_allowed = self.over_gaps || is_folded || recovery.is_begun();
        let Some((lacking, had)) = walked.gap().filter(|_| !is_allowed) else { return Ok(()) };
        Err(CommandFailure::of(
            &recovery.server(),
            format_args!(
                "has {had} and lacks {lacking}, which came before it in the logs, expected one that has everything up to a transaction and \
                 nothing later. If it, or the server that its dump is of, was left by an interrupted run with --fold, its tables are those of no moment: \
                 restore the backup again. If parallel workers committed in another order than the logs, --over-gaps goes on"
            ),
        ))
    }

    /// Applies the transactions that the server lacks.
    fn apply(
        &self,
        recovery: Recovery<'_>,
        source: EmbeddedSourceOptions<'_>,
        incidents: &CrossedIncidents,
    ) -> Result<Exit> {
        let server = recovery.server().to_owned();
        let lacks = recovery.lacks().count();
        log_warnings()?;
        let running = recovery.begin(source).map_err(line)?;
        self.follow(running, (&server, lacks), incidents)
    }

    /// Lets the server apply so many transactions. Negative: counters of tables aren't known, which is told.
    fn follow(
        &self,
        mut running: RunningRecovery<'_>,
        (server, lacks): (&str, u128),
        incidents: &CrossedIncidents,
    ) -> Result<Exit> {
        detach_at_a_signal(server, running.detacher());
        let begun = Instant::now();
        let followed = running.pass_over(incidents).and_then(|()| {
            let all = u64::try_from(lacks).unwrap_or(u64::MAX);
            let progress = WorkProgress::counting("apply", "transactions", all);
            running.follow(&mut |applied| progress.at(applied))
        });
        let without_counter = running.end(followed).map_err(line)?;
        let seconds = begun.elapsed().as_secs_f64();
        self.say(&format!(
            "{server}: applied {lacks} transactions in {seconds:.1} s, {:.0} a second",
            lacks as f64 / seconds.max(0.001)
        ))?;
        for table in &without_counter {
            complain(&format!(
                "{server}: AUTO_INCREMENT counter of {table}: numbers of rows that are gone may be given again, expected a column of whole numbers"
            ));
        }
        Ok(if without_counter.is_empty() { Exit::Done } else { Exit::Negative })
    }

    /// The incidents between what the server has executed and the end of the logs.
    fn crossed(&self, ended: &EndedLogs, folder: &Path, executed: &GtidSet) -> Result<NamedIncidents> {
        let keyring = self.keyring.open()?;
        let mut walk = IncidentWalk::new(executed);
        let logs = RecoveredLogs { from: &self.from, ended, folder };
        let to_read = logs.to_read(executed).map_err(line)?;
        for (number, log) in to_read.iter().enumerate() {
            let shown = LogPath::File(log.shown.clone());
            let path = LogPath::File(log.path.clone());
            let progress = WorkProgress::of(&shown, path.size()?, (number + 1, to_read.len()));
            let input = progress.watch(path.open(keyring.as_ref())?);
            walk.read(number as u64, input, workers(None), &mut |bytes| progress.at(bytes))
                .map_err(|error| CommandFailure::reading(&shown, &error))?;
        }
        let logs = to_read.into_iter().map(|log| log.shown).collect();
        Ok(NamedIncidents { crossed: walk.ended(), logs })
    }

    /// Tells people of a step.
    fn say(&self, line: &str) -> Result<()> {
        if self.format == ReportFormat::Json { Ok(()) } else { say(line) }
    }

    fn server(&self) -> Result<ConnectOptions> {
        let mut options = self.connection.connect_options(PROGRAM_NAME)?;
        if let Some(server) = &self.to {
            options = with_place(&options, server).map_err(|error| CommandFailure::of(&"--to", error))?;
        } else if !self.connection.names_a_place() {
            return Err(CommandFailure::of(
                &"--to",
                "names no server, expected mysql://[USER@]HOST[:PORT] or a socket's path",
            ));
        }
        Ok(options)
    }
}

/// Shows the warnings of the source in this process.
fn log_warnings() -> Result<()> {
    let levels = levels("warn").map_err(CommandFailure::Line)?;
    log::install(&LogSettings { format: LogFormat::Text, levels }).map(drop)
}

fn say(line: &str) -> Result<()> {
    let line = wrapped(&printable(line), "", "  ", terminal::width());
    let written = writeln!(io::stdout().lock(), "{line}");
    written.map_err(|error| CommandFailure::writing(&"standard output", &error))
}

/// Crossed incidents, with what to call their logs.
struct NamedIncidents {
    crossed: CrossedIncidents,
    logs: Vec<PathBuf>,
}

/// Names the incidents. Negative: there are some.
fn tell_incidents(incidents: &NamedIncidents) -> Exit {
    let mut exit = Exit::Done;
    for (number, log) in incidents.logs.iter().enumerate() {
        let of_log = incidents.crossed.of_log(number as u64);
        exit = exit.max(name_unread(&log.display(), &of_log, "the server would lack those changes"));
    }
    exit
}

/// Detaches the server when a signal ends the process.
fn detach_at_a_signal(server: &str, detacher: RecoveryDetacher) {
    let server = server.to_owned();
    interrupt::before_the_end(move || match detacher.detach_for_good() {
        Ok(()) => {
            complain(&format!("{server}: interrupted, and detached; the same command goes on from there"))
        }
        Err(why) => complain(&format!(
            "{server}: interrupted; the server keeps the channel {RECOVERY_CHANNEL}, which the next run removes: {why}"
        )),
    });
}

impl Filters {
    /// The filters, with databases and tables apart.
    fn filters(&self) -> Result<ReplicationFilters> {
        let rewrite_db = self.rewrite_db.iter().map(|text| rewriting(text)).collect::<Result<_>>()?;
        Ok(ReplicationFilters {
            do_db: self.replicate_do_db.clone(),
            ignore_db: self.replicate_ignore_db.clone(),
            do_table: tables("--replicate-do-table", &self.replicate_do_table)?,
            ignore_table: tables("--replicate-ignore-table", &self.replicate_ignore_table)?,
            wild_do_table: self.replicate_wild_do_table.clone(),
            wild_ignore_table: self.replicate_wild_ignore_table.clone(),
            rewrite_db,
        })
    }
}

/// Database and table of each.
fn tables(option: &'static str, texts: &[String]) -> Result<Vec<(String, String)>> {
    let parts = |text: &String| match text.split_once('.') {
        Some((database, table)) => Ok((database.to_owned(), table.to_owned())),
        None => Err(CommandFailure::of(&option, format_args!("{text:?}, expected DATABASE.TABLE"))),
    };
    texts.iter().map(parts).collect()
}

fn rewriting(text: &str) -> Result<(String, String)> {
    match text.split_once("->") {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => {
            Ok((from.trim().to_owned(), to.trim().to_owned()))
        }
        _ => Err(CommandFailure::of(&"--rewrite-db", format_args!("{text:?}, expected FROM->TO"))),
    }
}
