//! `binlogz recover`: point-in-time recovery, applied by the server itself, in parallel.
//!
//! ```text
//! logs ─ closed_logs ─ embedded source ── channel binlogz_recover ── the server's own applier
//! ```
//!
//! * `target` is the server: the transactions it has, and what its version calls things;
//! * `embedded` is the source inside this process, which ends where recovery is to end;
//! * `channel` attaches the server to it, and detaches it again with its settings as they were;
//! * `incidents` finds where the logs themselves lack changes;
//! * `follow` watches until it has everything;
//! * `errors` are those that ended the server's threads;
//! * `verify` makes a drill of it, on a private server; `definitions` are compared in it.

mod channel;
mod definitions;
mod embedded;
mod errors;
mod follow;
mod incidents;
mod target;
mod verify;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::printable;
use binlogz_figures::wrapped;
use binlogz_relay::EndedLogs;
use binlogz_source::ConnectOptions;
use clap::{Args, ValueEnum};

use super::closed_logs::{self, DiskArgs, StopArgs};
use crate::Exit;
use crate::failure::{CommandFailure, Result, complain, warn};
use crate::format::ReportFormat;
use crate::interrupt;
use crate::keyring::KeyringArg;
use crate::server_args::{ServerArgs, with_place};
use crate::terminal;
use channel::{ApplierThreads, SavedSettings};
use follow::Goal;
use incidents::RecoveredLogs;
use target::{TargetFacts, TargetServer, TargetTrouble};

/// The replication channel's name.
const CHANNEL: &str = "binlogz_recover";
/// This command's name for itself at servers.
const PROGRAM_NAME: &str = "binlogz recover";
/// A statement such as STOP REPLICA waits for the transaction that is being applied.
const ANSWER_MAX: Duration = Duration::from_secs(3600);

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
        let say = |line: &str| if self.format == ReportFormat::Json { Ok(()) } else { say(line) };
        let stop = self.stop.stop()?;
        let filters = self.filters.clauses()?;
        closed_logs::are_there(&self.from)?;
        let mut target = TargetServer::connect(server)?;
        target.lock()?;
        let folder = self.disk.folder()?;
        let Some(ended) = closed_logs::open(&self.from, &self.keyring, &stop, folder.path())? else {
            return Ok(Exit::Negative);
        };
        let (first, last) = ended.logs().range();
        say(&format!("{}: {first} to {last}, up to {}", ended.logs().place(), closed_logs::reach(&ended)))?;
        let facts = target.facts(CHANNEL)?;
        let left = channel::left(&mut target)?;
        let lacks = check(&target, &facts, &ended)?;
        channel::check_rights(&mut target)?;
        let persists = !filters.is_empty();
        if persists && !target.words.can_stay_stopped {
            return Err(CommandFailure::of(
                &target.name,
                format_args!(
                    "is version {}: filters need 8.0.24 or later, which can be kept from applying without them after a \
                     restart",
                    target.version
                ),
            ));
        }
        say(&format!("{}: lacks {} of {} transactions", target.name, lacks.count(), ended.gtids.count()))?;
        let logs = RecoveredLogs { from: &self.from, ended: &ended, folder: folder.path() };
        let incidents = incidents::crossed(&logs, &self.keyring, &facts.executed)?;
        let exit = incidents.exit;
        if exit != Exit::Done && !self.over_incidents {
            complain(&format!(
                "{}: nothing is changed: the logs lack changes before that moment; --over-incidents goes on without those \
                 changes",
                target.name
            ));
            return Ok(exit);
        }
        if self.check {
            if left.is_some() {
                say(&format!(
                    "{}: an earlier run left its channel {CHANNEL}; the next one goes on from there",
                    target.name
                ))?;
            }
            return Ok(exit);
        }
        let before = match left {
            Some(left) => SavedSettings { persisted: left.persisted || persists, ..left },
            None => SavedSettings::of(&facts, persists && !is_persisted(&mut target)?),
        };
        if lacks.is_empty() {
            if left.is_some() {
                target.patiently(|target| channel::detach(target, &before))?;
            }
            say(&format!("{}: has everything already", target.name))?;
            return Ok(Exit::Done);
        }
        let applying = ApplierThreads {
            workers: self.workers,
            keeps_order: self.preserve_commit_order.map(|order| order == OnOff::On),
            filters,
        };
        let bring_back = self.disk.bring_back();
        let source =
            embedded::start(&target, &ended, &folder, bring_back, &before, self.listen, self.over_incidents)?;
        let ending = undo_at_a_signal(&target, before);
        let begun = Instant::now();
        let lacking = u64::try_from(lacks.count()).unwrap_or(u64::MAX);
        let goal = Goal {
            gtids: &ended.gtids,
            source: &source,
            before: &before,
            applying: &applying,
            lacks: lacking,
        };
        let passed = incidents.pass_over(&mut target);
        let followed = passed.and_then(|()| follow::follow(&mut target, &goal));
        // From here on a signal waits until the server is detached.
        let _ended = ending.lock().unwrap_or_else(PoisonError::into_inner);
        if target.is_away {
            return followed.map(|()| Exit::Trouble);
        }
        let detached = target.patiently(|target| channel::detach(target, &before));
        if let (Err(_), Err(CommandFailure::Line(also))) = (&followed, &detached) {
            warn(&format!("the server keeps the channel {CHANNEL}, which the next run removes: {also}"));
        }
        followed.and(detached)?;
        let seconds = begun.elapsed().as_secs_f64();
        say(&format!(
            "{}: applied {} transactions in {seconds:.1} s, {:.0} a second",
            target.name,
            lacks.count(),
            lacks.count() as f64 / seconds.max(0.001)
        ))?;
        Ok(exit)
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
        options.timeouts.answer = ANSWER_MAX;
        Ok(options)
    }
}

fn say(line: &str) -> Result<()> {
    let line = wrapped(&printable(line), "", "  ", terminal::width());
    let written = writeln!(io::stdout().lock(), "{line}");
    written.map_err(|error| CommandFailure::writing(&"standard output", &error))
}

/// Whether skip_replica_start is persisted already; then it stays.
fn is_persisted(target: &mut TargetServer) -> Result<bool> {
    let count = target.one(
        "SELECT COUNT(*) FROM performance_schema.persisted_variables WHERE VARIABLE_NAME = 'skip_replica_start'",
    )?;
    Ok(count != "0")
}

/// Checks that the logs continue the server's transactions, and that the server can apply them. Returns the transactions
/// that it lacks.
fn check(target: &TargetServer, facts: &TargetFacts, ended: &EndedLogs) -> Result<GtidSet> {
    let unfit = |why: String| Err(CommandFailure::of(&target.name, why));
    if facts.gtid_mode != "ON" {
        return unfit(format!(
            "gtid_mode is {}, expected ON: without GTIDs nobody knows which transactions the server has. Replay by position \
             with binlogz dump FILE … | mysql",
            facts.gtid_mode
        ));
    }
    if let Some(log) = &ended.with_anonymous {
        return unfit(format!(
            "{log} has transactions without GTIDs: which of them the server has can't be known. Replay by position with \
             binlogz dump FILE … | mysql"
        ));
    }
    if !facts.other_channels.is_empty() {
        let names: Vec<_> = facts.other_channels.iter().map(|name| format!("{name:?}")).collect();
        return unfit(format!(
            "follows another source at present (channel {}): stop that first",
            names.join(", ")
        ));
    }
    if ended.gtids.has_tags() && !target.words.knows_tags {
        return unfit(format!(
            "is version {}: the logs have GTIDs with tags, which need 8.3",
            target.version
        ));
    }
    let mut ahead = ended.after.clone();
    ahead.intersect(&facts.executed);
    if !ahead.is_empty() {
        return unfit(format!(
            "is past that moment: it has {} of the transactions after it, {}; restore an earlier backup",
            ahead.count(),
            ahead.brief()
        ));
    }
    let mut lacks = ended.gtids.clone();
    lacks.subtract(&facts.executed);
    let mut gap = ended.before.clone();
    gap.subtract(&facts.executed);
    if !gap.is_empty() {
        return unfit(format!(
            "lacks {} transactions that came before {}, the first log here: {}; restore a backup that has them, or add the \
             earlier logs",
            gap.count(),
            ended.logs().range().0,
            gap.brief()
        ));
    }
    let major = |version: &str| version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major(&ended.server_version) > major(&target.version) {
        warn(&format!(
            "{}: is version {}, and the logs are of {}: MySQL does not promise that an older server can apply them",
            target.name, target.version, ended.server_version
        ));
    }
    Ok(lacks)
}

/// Detaches the server when a signal ends the process. The thread that holds the lock has done so already.
fn undo_at_a_signal(target: &TargetServer, before: SavedSettings) -> Arc<Mutex<()>> {
    let ending = Arc::new(Mutex::new(()));
    let (options, name, its) = (target.options.clone(), target.name.clone(), Arc::clone(&ending));
    interrupt::before_the_end(move || {
        let alone = its.lock().unwrap_or_else(PoisonError::into_inner);
        let detached =
            TargetServer::connect(options).and_then(|mut target| match channel::left(&mut target)? {
                Some(_) => channel::detach(&mut target, &before).map_err(TargetTrouble::failure),
                None => Ok(()),
            });
        match detached {
            Ok(()) => {
                complain(&format!("{name}: interrupted, and detached; the same command goes on from there"))
            }
            Err(CommandFailure::Line(why)) => complain(&format!(
                "{name}: interrupted; the server keeps the channel {CHANNEL}, which the next run removes: {why}"
            )),
            Err(CommandFailure::ClosedPipe) => {}
        }
        // The other thread sees its channel vanish, and must not tell that as an error.
        std::mem::forget(alone);
    });
    ending
}

impl Filters {
    /// The filters as CHANGE REPLICATION FILTER takes them.
    fn clauses(&self) -> Result<Vec<String>> {
        let name = |name: &str| format!("`{}`", name.replace('`', "``"));
        let table = |option: &'static str, text: &String| match text.split_once('.') {
            Some((database, table)) => Ok(format!("{}.{}", name(database), name(table))),
            None => Err(CommandFailure::of(&option, format_args!("{text:?}, expected DATABASE.TABLE"))),
        };
        let tables = |option, texts: &[String]| -> Result<Vec<String>> {
            texts.iter().map(|text| table(option, text)).collect()
        };
        let names = |texts: &[String]| texts.iter().map(|text| name(text)).collect::<Vec<_>>();
        let quoted = |texts: &[String]| texts.iter().map(|text| target::quoted(text)).collect::<Vec<_>>();
        let rewrite = |text: &String| match text.split_once("->") {
            Some((from, to)) if !from.is_empty() && !to.is_empty() => {
                Ok(format!("({}, {})", name(from.trim()), name(to.trim())))
            }
            _ => Err(CommandFailure::of(&"--rewrite-db", format_args!("{text:?}, expected FROM->TO"))),
        };
        let rewrites = self.rewrite_db.iter().map(rewrite).collect::<Result<Vec<_>>>()?;
        let all = [
            ("REPLICATE_DO_DB", names(&self.replicate_do_db)),
            ("REPLICATE_IGNORE_DB", names(&self.replicate_ignore_db)),
            ("REPLICATE_DO_TABLE", tables("--replicate-do-table", &self.replicate_do_table)?),
            ("REPLICATE_IGNORE_TABLE", tables("--replicate-ignore-table", &self.replicate_ignore_table)?),
            ("REPLICATE_WILD_DO_TABLE", quoted(&self.replicate_wild_do_table)),
            ("REPLICATE_WILD_IGNORE_TABLE", quoted(&self.replicate_wild_ignore_table)),
            ("REPLICATE_REWRITE_DB", rewrites),
        ];
        let given = all.into_iter().filter(|(_, values)| !values.is_empty());
        Ok(given.map(|(clause, values)| format!("{clause} = ({})", values.join(", "))).collect())
    }
}
