//! `binlogz fold`: a binary log with one net change for each row.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;

use binlogz_archive::Scratch;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_encryption::Keyring;
use binlogz_figures::counted;
use binlogz_flow::{Input, Rewrite, Rewriter};
use binlogz_payload::{CompressOptions, CompressionLevel};
use binlogz_row_changes::{FoldAim, FoldOptions, FoldSummary, FoldTables, RowSelection, TableMoment};
use clap::Args;
use serde::Serialize;

use super::PROGRAM_NAME;
use super::folding::{FoldedLogs, LogFold, SchemaOfAll};
use super::inputs::{InputArgs, RecoverLog, follow_one_another};
use super::schema::SchemaArg;
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, complain};
use crate::format::ReportFormat;
use crate::keyring::KeyringArg;
use crate::output::{Destination, OutputTarget};
use crate::server_args::ServerArgs;
use crate::terminal;
use crate::time::GivenTime;
use crate::units;

/// Fold binary logs into one with the same effect: one net change for each row
///
/// Statements, XA transactions and rows whose images lack columns go through as they are, in their place. The folded log has no GTIDs: the
/// report has those of the range.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct FoldCommand {
    /// Write the folded log to this file, which appears once it is whole
    #[arg(long, short = 'o', value_name = "FILE|-", alias = "output")]
    to: Destination,
    /// Replace a file that exists; never one that a server's *.index beside it lists
    #[arg(long)]
    force: bool,
    /// Compress each transaction, with this zstd level, 1 to 22
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
    compress: Option<CompressionLevel>,
    /// The most rows of a transaction that is written; one has at most some 4 MiB
    #[arg(long, value_name = "N", default_value_t = TRANSACTION_ROWS)]
    transaction_rows: NonZeroU64,
    /// Leave these transactions out: the server that the log is for has them
    #[arg(long, value_name = "SET")]
    exclude_gtids: Option<GtidSet>,
    /// Stop after this transaction
    #[arg(long, value_name = "GTID", conflicts_with = "until_datetime")]
    until_gtid: Option<Gtid>,
    /// Stop before the first transaction that was committed at this time or later: '2026-11-22 23:10', 23:10, -1h …
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, alias = "stop-datetime")]
    until_datetime: Option<GivenTime>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero, hide_short_help = true)]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    schema: SchemaArg,
    #[command(flatten)]
    keyring: KeyringArg,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// Rows of a transaction: few enough that a replica's lag and its locks stay short.
pub(in crate::cmd) const TRANSACTION_ROWS: NonZeroU64 = NonZeroU64::new(5000).unwrap();

const EXAMPLES: &str = "Examples:
  binlogz fold --to folded binlog.0000*
  binlogz fold --to folded --exclude-gtids 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5000 /backup/db1
  binlogz fold --to folded --until-datetime '2026-11-22 23:10' --schema db1:3306 binlog.0000*
  mysqlbinlog --skip-gtids folded | mysql

Exit codes: 0 done, 1 the logs don't have the moment, or changes that can't be read, 2 trouble.";

impl FoldCommand {
    pub(in crate::cmd) fn run(self) -> Result<Exit> {
        let target = self.to.target(&self.input.files, self.force)?;
        let log_server = self.input.server(&self.server)?;
        if self.server.names_a_place() && log_server.is_none() && !self.schema.is_server() {
            return Err(CommandFailure::Line(
                "a server is given, but neither --server nor --schema needs one".to_owned(),
            ));
        }
        let logs = self.input.all_logs(log_server.as_ref())?;
        let keyring = self.keyring.open()?;
        follow_one_another(&logs, keyring.as_ref())?;
        let tables = self.tables(&logs, keyring.as_ref())?;
        let fold_run = LogFold {
            logs: &logs,
            keyring: keyring.as_ref(),
            tables: tables.as_ref(),
            workers: workers(self.jobs),
        };
        let mut output = target.create_log(None)?;
        let folded = match self.compress {
            None => fold_run.run(self.options(), &mut output, &target)?,
            Some(level) => {
                let temporary = |error: io::Error| CommandFailure::of(&"temporary file", error);
                let mut plain = Scratch::new().map_err(temporary)?;
                let folded = fold_run.run(self.options(), &mut plain, &"temporary file")?;
                let options = CompressOptions { level, ..CompressOptions::default() };
                let input = Input::Places(Arc::new(plain));
                let rewritten =
                    Rewriter::new(Rewrite::Compress(options)).run(input, BufWriter::new(&mut output));
                rewritten.map_err(|error| CommandFailure::rewriting(&"temporary file", &target, &error))?;
                folded
            }
        };
        let Some(FoldedLogs { summary, .. }) = folded else { return Ok(Exit::Negative) };
        if !self.has_met_moment(&summary) {
            return Ok(Exit::Negative);
        }
        output.finish()?;
        self.report(&summary, &target)?;
        Ok(Exit::Done)
    }

    /// The tables of the logs: the logs are read for their statements.
    fn tables(&self, logs: &[RecoverLog], keyring: Option<&Keyring>) -> Result<Option<FoldTables>> {
        if let Some(pipe) = logs.iter().find(|log| log.is_pipe()) {
            if self.schema.is_given() {
                return Err(CommandFailure::of(
                    pipe,
                    "is a pipe, expected a file or an archive: with --schema logs are read twice",
                ));
            }
            return Ok(None);
        }
        let log_server = self.input.server(&self.server)?;
        let options = || self.server.connect_options(PROGRAM_NAME);
        let known = SchemaOfAll::read(&self.schema, &options, (None, log_server.as_ref()))?;
        known.tables(logs, keyring, workers(self.jobs)).map(Some)
    }

    fn options(&self) -> FoldOptions {
        let after = self.until_gtid.map(TableMoment::After);
        let before = self.until_datetime.map(|time| TableMoment::Before(time.microseconds()));
        FoldOptions {
            excluded: self.exclude_gtids.clone().unwrap_or_default(),
            since: None,
            until: after.or(before),
            selection: RowSelection::default(),
            aim: FoldAim::Apply,
            transaction_rows: self.transaction_rows,
            previous: None,
        }
    }

    /// Whether the logs have the moment to stop at; if not, that is told.
    fn has_met_moment(&self, summary: &FoldSummary) -> bool {
        let is_met = summary.has_met_moment;
        match (self.until_gtid, self.until_datetime) {
            (Some(gtid), _) if !is_met => {
                complain(&format!("--until-gtid {gtid}: this transaction is not in the logs"));
                false
            }
            (None, Some(_)) if !is_met => {
                complain(
                    "the logs end before the moment: no transaction in them was committed then or later",
                );
                false
            }
            _ => true,
        }
    }

    fn report(&self, summary: &FoldSummary, target: &OutputTarget) -> Result<()> {
        let text = match self.format {
            ReportFormat::Text => terminal::within_width(&text_of(summary)),
            ReportFormat::Json => {
                let text = serde_json::to_string_pretty(&FoldJson::of(summary));
                text.map_err(|error| CommandFailure::Line(error.to_string()))? + "\n"
            }
        };
        let (mut out, name): (Box<dyn Write>, _) = match target {
            OutputTarget::Stdout => (Box::new(io::stderr()), "standard error"),
            OutputTarget::Device(_) | OutputTarget::File { .. } => {
                (Box::new(io::stdout()), "standard output")
            }
        };
        out.write_all(text.as_bytes()).map_err(|error| CommandFailure::writing(&name, &error))
    }
}

/// The report for machines; fields are only ever added.
#[derive(Debug, Serialize)]
struct FoldJson {
    transactions: u64,
    excluded_transactions: u64,
    folded_changes: u64,
    written_transactions: u64,
    inserted_rows: u64,
    updated_rows: u64,
    deleted_rows: u64,
    passed: Vec<PassedJson>,
    gtids: String,
}

#[derive(Debug, Serialize)]
struct PassedJson {
    reason: &'static str,
    transactions: u64,
    first: String,
}

impl FoldJson {
    fn of(summary: &FoldSummary) -> Self {
        let passed = summary.borders.iter().map(|border| PassedJson {
            reason: border.reason(),
            transactions: border.count,
            first: border.first.clone(),
        });
        FoldJson {
            transactions: summary.transactions,
            excluded_transactions: summary.excluded,
            folded_changes: summary.changes,
            written_transactions: summary.written,
            inserted_rows: summary.inserted,
            updated_rows: summary.updated,
            deleted_rows: summary.deleted,
            passed: passed.collect(),
            gtids: summary.gtids.to_string(),
        }
    }
}

/// What became of the transactions, and which of them stay as they are: a line each.
pub(in crate::cmd) fn what_became(summary: &FoldSummary) -> Vec<String> {
    let FoldSummary { inserted, updated, deleted, .. } = *summary;
    let rows = inserted + updated + deleted;
    let mut lines = vec![format!(
        "{} with {} became {} with {}: {inserted} inserted, {updated} updated, {deleted} deleted",
        counted(summary.transactions, "transactions"),
        counted(summary.changes, "row changes"),
        counted(summary.written, "transactions"),
        counted(rows, "net changes"),
    )];
    if summary.excluded > 0 {
        lines.push(format!("left out: {}", counted(summary.excluded, "transactions")));
    }
    for border in &summary.borders {
        let count = counted(border.count, "transactions");
        lines.push(format!("as they were: {count} {}, first {}", border.reason(), border.first));
    }
    lines
}

fn text_of(summary: &FoldSummary) -> String {
    let mut text = what_became(summary).join("\n") + "\n";
    // Writing to a string can't fail.
    if !summary.gtids.is_empty() {
        // Servers take spaces in a set, and a terminal's line can be broken there.
        let _ = writeln!(text, "gtid_purged: {}", summary.gtids.to_string().replace(',', ", "));
    }
    text
}
