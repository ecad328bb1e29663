//! `recover --fold`: the server gets one net change for each row; `--explain` says what both ways would take, and `--fold=auto` takes one.
//!
//! `--fold=auto` replays whatever can't be folded. Until the choice is made, nothing is changed on the server.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_figures::counted;
use binlogz_relay::EndedLogs;
use binlogz_replay::{
    CrossedIncidents, EmbeddedSourceOptions, FoldedRange, GivenNumber, RecoveredLogs, Recovery, ReplayedLogs,
};
use binlogz_row_changes::{FoldSummary, LargestNumber, rights_lacking_on_all};
use clap::{Args, ValueEnum};

use super::estimate::FoldEstimate;
use super::{PROGRAM_NAME, Recover};
use crate::Exit;
use crate::cmd::closed_logs::line;
use crate::cmd::row_changes::{
    RangeToRecover, ServerLogging, TRANSACTION_ROWS, is_schema_server, what_became,
};
use crate::failure::{CommandFailure, Result};
use crate::log_path::LogPath;
use crate::server_args::with_place;

/// The folder of the folded log until it is whole, and the one that the source serves.
const FOLDED: &str = "folded";
const SERVED: &str = "served";
/// Why a folded range is gone on with.
const EARLIER_FOLD: &str = "an earlier run with --fold is not done";
/// The folded log's name, as one of a server's logs.
const FOLDED_LOG: &str = "folded.000001";
/// What the account needs on all tables: to see them, and for ALTER TABLE.
const COUNTER_RIGHTS: [&str; 4] = ["SELECT", "INSERT", "CREATE", "ALTER"];

#[derive(Debug, Args)]
#[command(next_help_heading = "Folding")]
pub(super) struct FoldArgs {
    /// Apply one net change for each row in place of all; until the end the server's tables are those of no moment
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "always",
        conflicts_with_all = [
            "verify", "over_incidents", "replicate_do_db", "replicate_ignore_db", "replicate_do_table", "replicate_ignore_table",
            "replicate_wild_do_table", "replicate_wild_ignore_table", "rewrite_db"
        ]
    )]
    fold: Option<FoldWhen>,
    /// Say what replay and fold would take, and change nothing
    #[arg(long, conflicts_with_all = ["verify", "check", "over_incidents"])]
    explain: bool,
    /// For --fold: keys and foreign keys, as they are at the end of the logs, as fold takes them
    #[arg(long, value_name = "FILE.sql|SERVER")]
    schema: Option<String>,
    /// For --fold: the most rows of a transaction, unless there are too few GTIDs
    #[arg(long, value_name = "N", default_value_t = TRANSACTION_ROWS, hide_short_help = true)]
    transaction_rows: NonZeroU64,
}

/// When logs are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FoldWhen {
    /// Fail where it can't be done
    Always,
    /// Where it is clearly faster; else replay
    Auto,
}

impl FoldArgs {
    /// Whether logs are folded, be it to count.
    pub(super) fn is_on(&self) -> bool {
        self.fold.is_some() || self.explain
    }

    /// Whether nothing but a folded log is to be applied.
    pub(super) fn is_certain(&self) -> bool {
        self.fold == Some(FoldWhen::Always)
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.schema.is_some() && !self.is_on() {
            return Err(CommandFailure::of(&"--schema", "is for --fold alone, which isn't given"));
        }
        Ok(())
    }
}

/// The folder of a run has others in it, so that the source finds one log alone in its own.
struct FoldFolders<'f> {
    run: &'f Path,
}

impl FoldFolders<'_> {
    fn make(&self, name: &str) -> Result<PathBuf> {
        let path = self.run.join(name);
        fs::create_dir_all(&path).map_err(|error| CommandFailure::writing(&path.display(), &error))?;
        Ok(path)
    }

    /// Takes folders away, with what is in them.
    fn remove(&self, names: &[&str]) -> Result<()> {
        for path in names.iter().map(|name| self.run.join(name)).filter(|path| path.exists()) {
            fs::remove_dir_all(&path).map_err(|error| CommandFailure::writing(&path.display(), &error))?;
        }
        Ok(())
    }
}

/// The logs to fold, with what the server had of them.
#[derive(Clone, Copy)]
pub(super) struct LogsToFold<'l> {
    pub(super) ended: &'l EndedLogs,
    pub(super) before: &'l GtidSet,
    /// The folder of the run.
    pub(super) folder: &'l Path,
}

/// A folded log, ready to be applied.
pub(super) struct PreparedFold {
    folded: FoldedRange,
    summary: FoldSummary,
    /// The last transaction that it stands for.
    last: Gtid,
}

/// How a run goes on.
pub(super) enum FoldStep {
    /// It is over.
    Ended(Exit),
    Apply(Box<PreparedFold>),
    Replay,
}

impl Recover {
    /// Everything of the logs that the server had before the first run.
    pub(super) fn had_before(&self, recovery: &Recovery<'_>, folder: &Path) -> Result<GtidSet> {
        let Some(mark) = recovery.mark() else { return Ok(recovery.executed().clone()) };
        let folder = FoldFolders { run: folder }.make("before")?;
        let logs = ReplayedLogs::named(&self.from).map_err(line)?;
        let before = logs.before(self.keyring.open()?, mark.first, &folder).map_err(line)?;
        if !before.is_subset(recovery.executed()) {
            return Err(CommandFailure::of(
                &recovery.server(),
                format_args!(
                    "lacks transactions before {}, from which on an earlier run with --fold is bringing it forward: these are other logs, or \
                     another server",
                    mark.first
                ),
            ));
        }
        Ok(before)
    }

    /// Folds what the server lacks; says what that would take, or which way is taken. `no_fold`: why a folded log can't be applied.
    pub(super) fn fold_first(
        &self,
        recovery: &Recovery<'_>,
        no_fold: Option<String>,
        logs: LogsToFold<'_>,
    ) -> Result<FoldStep> {
        if self.folding.explain {
            return self.explain(recovery, no_fold, logs).map(FoldStep::Ended);
        }
        if !self.folding.is_certain() && recovery.mark().is_none() {
            return self.choose(recovery, no_fold, logs);
        }
        let Some((log, summary)) = self.fold_to_file(logs)? else {
            return Ok(FoldStep::Ended(Exit::Negative));
        };
        self.say_all(&what_became(&summary))?;
        Ok(FoldStep::Apply(Box::new(prepared(&log, summary, logs)?)))
    }

    /// Says what both ways would take, and which one `--fold=auto` takes.
    fn explain(
        &self,
        recovery: &Recovery<'_>,
        no_fold: Option<String>,
        logs: LogsToFold<'_>,
    ) -> Result<Exit> {
        let Some(summary) = self.fold_into(&mut io::sink(), &"nothing", logs)? else {
            return Ok(Exit::Negative);
        };
        self.say_all(&what_became(&summary))?;
        let estimate = FoldEstimate::of(&summary);
        self.say_all(&estimate.ways())?;
        let is_folded = match (recovery.mark(), no_fold.or_else(|| begun(recovery))) {
            (Some(_), _) => Ok(EARLIER_FOLD.to_owned()),
            (None, Some(why)) => Err(why),
            (None, None) if estimate.favours_fold() => Ok(estimate.reason()),
            (None, None) => Err(estimate.reason()),
        };
        self.say(&match is_folded {
            Ok(why) => format!("--fold=auto would fold: {why}"),
            Err(why) => format!("--fold=auto would replay: {why}"),
        })?;
        self.say(estimate.foundation())?;
        Ok(Exit::Done)
    }

    /// Takes one of the two ways, and says why.
    fn choose(
        &self,
        recovery: &Recovery<'_>,
        no_fold: Option<String>,
        logs: LogsToFold<'_>,
    ) -> Result<FoldStep> {
        let server = recovery.server();
        let chosen = match no_fold.or_else(|| begun(recovery)) {
            Some(why) => Err(why),
            None => match self.fold_if_faster(logs) {
                Err(CommandFailure::Line(why)) => Err(format!("the logs can't be folded: {why}")),
                Err(CommandFailure::ClosedPipe) => return Err(CommandFailure::ClosedPipe),
                Ok(chosen) => chosen,
            },
        };
        match chosen {
            Ok((prepared, why)) => {
                self.say(&format!("{server}: folds: {why}"))?;
                self.say_all(&what_became(&prepared.summary))?;
                Ok(FoldStep::Apply(prepared))
            }
            Err(why) => {
                // The source of a replay finds its logs alone.
                FoldFolders { run: logs.folder }.remove(&[FOLDED, SERVED])?;
                self.say(&format!("{server}: replays: {why}"))?;
                Ok(FoldStep::Replay)
            }
        }
    }

    /// The folded log, if it is clearly faster to apply; in both cases why.
    fn fold_if_faster(&self, logs: LogsToFold<'_>) -> Result<Result<(Box<PreparedFold>, String), String>> {
        let Some((log, summary)) = self.fold_to_file(logs)? else {
            return Ok(Err("the logs have changes that can't be read, and so not be folded".to_owned()));
        };
        let estimate = FoldEstimate::of(&summary);
        let why = estimate.reason();
        if !estimate.favours_fold() {
            return Ok(Err(why));
        }
        Ok(Ok((Box::new(prepared(&log, summary, logs)?), why)))
    }

    /// Applies a folded log.
    pub(super) fn apply_folded(
        &self,
        recovery: Recovery<'_>,
        prepared: &PreparedFold,
        (crossed, folder): (&CrossedIncidents, &Path),
    ) -> Result<Exit> {
        let PreparedFold { folded, summary, last } = prepared;
        let server = recovery.server().to_owned();
        super::log_warnings()?;
        let served = FoldFolders { run: folder }.make(SERVED)?;
        let source = EmbeddedSourceOptions {
            folder: &served,
            bring_back: self.disk.bring_back(),
            listen: self.listen,
            over_incidents: false,
        };
        let unlogged = self.name_unlogged()?;
        let running = recovery.begin_fold(folded, source).map_err(line)?;
        let exit = self.follow(running, (&server, folded.count()), crossed)?;
        self.say(&format!(
            "{server}: has all {} up to {last}",
            counted(summary.transactions, "transactions")
        ))?;
        Ok(exit.max(unlogged))
    }

    fn say_all(&self, lines: &[String]) -> Result<()> {
        lines.iter().try_for_each(|told| self.say(told))
    }

    /// Says what the logs lack, where the server of `--schema` doesn't log all databases. Negative, if it doesn't.
    fn name_unlogged(&self) -> Result<Exit> {
        let Some(place) = self.folding.schema.as_deref().filter(|place| is_schema_server(place)) else {
            return Ok(Exit::Done);
        };
        let options = self.connection.connect_options(PROGRAM_NAME)?;
        let connect = with_place(&options, place).map_err(CommandFailure::Line)?;
        let logging = ServerLogging::of(&connect)?;
        Ok(logging.name_others("changes in the others aren't in its logs").max(logging.name_doubt()))
    }

    /// Why the account can't set all counters at the end: without its rights they would be left as they are.
    pub(super) fn account_lacks(&self) -> Result<Option<String>> {
        let server = self.server()?;
        let lacking = rights_lacking_on_all(&server, &COUNTER_RIGHTS)
            .map_err(|error| CommandFailure::of_server(&server.server(), error))?;
        let why = format!(
            "the account has no {} on *.*, expected {}, by which AUTO_INCREMENT counters are set",
            lacking.join(", "),
            COUNTER_RIGHTS.join(", ")
        );
        Ok((!lacking.is_empty()).then_some(why))
    }

    /// Writes the folded log to a file; `None`: the logs have changes that can't be read, which was told.
    fn fold_to_file(&self, logs: LogsToFold<'_>) -> Result<Option<(PathBuf, FoldSummary)>> {
        let log = FoldFolders { run: logs.folder }.make(FOLDED)?.join(FOLDED_LOG);
        let place = log.display();
        let mut file = File::create(&log).map_err(|error| CommandFailure::writing(&place, &error))?;
        let folded = self.fold_into(&mut file, &place, logs)?;
        Ok(folded.map(|summary| (log, summary)))
    }

    /// Folds the logs; `None`: they have changes that can't be read, which was told.
    fn fold_into(
        &self,
        out: &mut impl Write,
        place: &dyn Display,
        LogsToFold { ended, before, folder }: LogsToFold<'_>,
    ) -> Result<Option<FoldSummary>> {
        let keyring = self.keyring.open()?;
        let logs = RecoveredLogs { from: &self.from, ended, folder };
        let to_read = logs.to_read(before).map_err(line)?;
        let mut own = ended.gtids.clone();
        own.intersect(before);
        let range = RangeToRecover {
            logs: to_read.into_iter().map(|log| LogPath::File(log.path)).collect(),
            keyring: keyring.as_ref(),
            schema: self.folding.schema.clone(),
            before: own,
            transaction_rows: self.folding.transaction_rows,
        };
        range.fold(&|| self.connection.connect_options(PROGRAM_NAME), out, place)
    }
}

/// Why a run without --fold goes on so, if there was one.
fn begun(recovery: &Recovery<'_>) -> Option<String> {
    let is_replay = recovery.is_begun() && recovery.mark().is_none();
    is_replay.then(|| "an earlier run that replays is not done".to_owned())
}

/// Checks a folded log that was written to a file, and makes it ready.
fn prepared(log: &Path, summary: FoldSummary, logs: LogsToFold<'_>) -> Result<PreparedFold> {
    let LogsToFold { ended, before, folder } = logs;
    let mut range = ended.gtids.clone();
    range.subtract(before);
    let ends = ends_of(&summary, &range).map_err(|why| CommandFailure::of(&ended.logs().place(), why))?;
    let served = FoldFolders { run: folder }.make(SERVED)?;
    let numbers = summary.numbers.iter().map(given).collect();
    let folded = FoldedRange::new(log, &served, (range, ends), numbers).map_err(line)?;
    if folded.count() != u128::from(summary.written) {
        let why = format!("has {} transactions, expected {}", folded.count(), summary.written);
        return Err(CommandFailure::of(&FOLDED_LOG, why));
    }
    Ok(PreparedFold { folded, summary, last: ends.1 })
}

/// The first and the last transaction of the range, all of which must have been folded.
fn ends_of(summary: &FoldSummary, range: &GtidSet) -> std::result::Result<(Gtid, Gtid), String> {
    match (summary.first, summary.last) {
        (Some(first), Some(last)) if summary.gtids == *range && summary.cut.is_none() => Ok((first, last)),
        _ => Err(format!(
            "the logs have {}, expected {}: some are missing",
            summary.gtids.brief(),
            range.brief()
        )),
    }
}

fn given(number: &LargestNumber) -> GivenNumber {
    let LargestNumber { database, table, column, signed, unsigned } = number.clone();
    GivenNumber { database, table, column, signed, unsigned }
}
