//! `recover --fold`: the server gets one net change for each row; `--explain` says what that would save.

use std::fs::{self, File};
use std::io;
use std::num::NonZeroU64;
use std::path::Path;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_figures::counted;
use binlogz_relay::EndedLogs;
use binlogz_replay::{
    CrossedIncidents, EmbeddedSourceOptions, FoldedRange, GivenNumber, RecoveredLogs, Recovery, ReplayedLogs,
};
use binlogz_row_changes::{FoldSummary, LargestNumber, rights_lacking_on_all};
use clap::Args;

use super::{PROGRAM_NAME, Recover};
use crate::Exit;
use crate::cmd::closed_logs::line;
use crate::cmd::row_changes::{
    RangeToRecover, ServerLogging, TRANSACTION_ROWS, is_schema_server, what_became,
};
use crate::failure::{CommandFailure, Result};
use crate::log_path::LogPath;
use crate::server_args::with_place;

/// The folded log's name, as one of a server's logs.
const FOLDED_LOG: &str = "folded.000001";
/// A commit costs a server about as much as so many rows in one transaction.
const ROWS_OF_A_COMMIT: u64 = 20;
/// Folding itself takes time: it has to save this factor to be chosen.
const SAVED_MIN: u64 = 2;

/// What the account needs on all tables: to see them, and for ALTER TABLE.
const COUNTER_RIGHTS: [&str; 4] = ["SELECT", "INSERT", "CREATE", "ALTER"];

#[derive(Debug, Args)]
#[command(next_help_heading = "Folding")]
pub(super) struct FoldArgs {
    /// Apply one net change for each row in place of all; until the end the server's tables are those of no moment
    #[arg(
        long,
        conflicts_with_all = [
            "verify", "over_incidents", "replicate_do_db", "replicate_ignore_db", "replicate_do_table", "replicate_ignore_table",
            "replicate_wild_do_table", "replicate_wild_ignore_table", "rewrite_db"
        ]
    )]
    fold: bool,
    /// Say what --fold would save, and change nothing
    #[arg(long, conflicts_with_all = ["verify", "check", "over_incidents"])]
    explain: bool,
    /// For --fold: keys and foreign keys, as they are at the end of the logs, as fold takes them
    #[arg(long, value_name = "FILE.sql|SERVER")]
    schema: Option<String>,
    /// For --fold: the most rows of a transaction, unless there are too few GTIDs
    #[arg(long, value_name = "N", default_value_t = TRANSACTION_ROWS, hide_short_help = true)]
    transaction_rows: NonZeroU64,
}

impl FoldArgs {
    /// Whether logs are folded.
    pub(super) fn is_on(&self) -> bool {
        self.fold || self.explain
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
    fn make(&self, name: &str) -> Result<std::path::PathBuf> {
        let path = self.run.join(name);
        fs::create_dir_all(&path).map_err(|error| CommandFailure::writing(&path.display(), &error))?;
        Ok(path)
    }
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

    /// Folds what the server lacks, and applies that; or says what it would be.
    pub(super) fn recover_folded(
        &self,
        recovery: Recovery<'_>,
        (ended, before, crossed): (&EndedLogs, GtidSet, &CrossedIncidents),
        folder: &Path,
    ) -> Result<Exit> {
        let mut range = ended.gtids.clone();
        range.subtract(&before);
        let folders = FoldFolders { run: folder };
        let log = folders.make("folded")?.join(FOLDED_LOG);
        let Some(summary) = self.fold_into(&log, (ended, &before), folder)? else {
            return Ok(Exit::Negative);
        };
        for told in what_became(&summary) {
            self.say(&told)?;
        }
        if self.folding.explain {
            self.say(&choice(&summary))?;
            return Ok(Exit::Done);
        }
        let ends = ends_of(&summary, &range).map_err(|why| CommandFailure::of(&ended.logs().place(), why))?;
        let served = folders.make("served")?;
        let numbers = summary.numbers.iter().map(given).collect();
        let folded = FoldedRange::new(&log, &served, (range, ends), numbers).map_err(line)?;
        if folded.count() != u128::from(summary.written) {
            let why = format!("has {} transactions, expected {}", folded.count(), summary.written);
            return Err(CommandFailure::of(&FOLDED_LOG, why));
        }
        let server = recovery.server().to_owned();
        super::log_warnings()?;
        let source = EmbeddedSourceOptions {
            folder: &served,
            bring_back: self.disk.bring_back(),
            listen: self.listen,
            over_incidents: false,
        };
        let unlogged = self.name_unlogged()?;
        let running = recovery.begin_fold(&folded, source).map_err(line)?;
        let exit = self.follow(running, (&server, folded.count()), crossed)?;
        self.say(&format!(
            "{server}: has all {} up to {}",
            counted(summary.transactions, "transactions"),
            ends.1
        ))?;
        Ok(exit.max(unlogged))
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

    /// Checks that the account may set all counters at the end; without it they would be left as they are.
    pub(super) fn check_account(&self) -> Result<()> {
        if !self.folding.fold {
            return Ok(());
        }
        let server = self.server()?;
        let lacking = rights_lacking_on_all(&server, &COUNTER_RIGHTS)
            .map_err(|error| CommandFailure::of_server(&server.server(), error))?;
        if lacking.is_empty() {
            return Ok(());
        }
        Err(CommandFailure::of(
            &server.server(),
            format_args!(
                "the account has no {} on *.*, expected {}, by which AUTO_INCREMENT counters are set",
                lacking.join(", "),
                COUNTER_RIGHTS.join(", ")
            ),
        ))
    }

    /// Writes the folded log; `None`: the logs have changes that can't be read, which was told.
    fn fold_into(
        &self,
        log: &Path,
        (ended, before): (&EndedLogs, &GtidSet),
        folder: &Path,
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
        let options = || self.connection.connect_options(PROGRAM_NAME);
        if self.folding.explain {
            return range.fold(&options, &mut io::sink(), &"nothing");
        }
        let place = log.display();
        let mut file = File::create(log).map_err(|error| CommandFailure::writing(&place, &error))?;
        range.fold(&options, &mut file, &place)
    }
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

/// What transactions cost a server, in rows.
fn cost(transactions: u64, rows: u64) -> u64 {
    transactions * ROWS_OF_A_COMMIT + rows
}

/// Which of the two costs less.
fn choice(summary: &FoldSummary) -> String {
    let rows = summary.inserted + summary.updated + summary.deleted;
    let replay = cost(summary.transactions, summary.changes);
    let folded = cost(summary.written, rows).max(1);
    match replay >= folded * SAVED_MIN {
        true => format!("--fold would cost the server about {} times less than without it", replay / folded),
        false => "--fold would save little: without it, the server has a state of the source at every time"
            .to_owned(),
    }
}
