//! `binlogz verify`: is a log as a server writes it, to the last byte? Or, with `--same` ([`same`]), do two sequences of
//! logs mean the same?

mod same;

use std::io::{self, Write};
use std::num::NonZeroUsize;

use binlogz_binlog::printable;
use binlogz_encryption::Keyring;
use binlogz_figures::FigureFormat::Table;
use binlogz_figures::{Section, TableCell, counted};
use binlogz_flow::{LogVerdict, verify};
use clap::Args;
use serde::Serialize;

use super::workers;
use crate::Exit;
use crate::failure::{CommandFailure, Result, complain, warn_cut};
use crate::format::ReportFormat;
use crate::keyring::KeyringArg;
use crate::log_path::{LogPath, resolve};
use crate::progress::WorkProgress;
use crate::report::CutReport;
use crate::terminal::TableArgs;
use crate::units;

/// Check every byte of binary logs, or compare what two sequences of logs mean
///
/// Reads every event, those in payloads included: frames, checksums, fields, rows, transaction lengths and
/// positions, the order of events.
///
/// With --same, compares two sequences of logs: the same transactions with the same events, however they are
/// compressed and divided into files. Reports the first difference.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// Compare the logs before -- with those after it
    #[arg(long, requires = "against")]
    same: bool,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero, conflicts_with = "same")]
    jobs: Option<NonZeroUsize>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    keyring: KeyringArg,
    /// Binary logs or relay logs; - is standard input
    #[arg(required = true, value_name = "FILE|-")]
    files: Vec<LogPath>,
    /// The logs to compare with
    #[arg(last = true, requires = "same", value_name = "FILE|-")]
    against: Vec<LogPath>,
}

const EXAMPLES: &str = "Examples:
  binlogz verify binlog.0000*
  binlogz verify --same binlog.000041 binlog.000042 -- small/binlog.000041 small/binlog.000042

Exit code 1: a log can be read, but holds what no server writes; the logs differ.
Exit code 2: a log can't be read: bytes are missing, or a checksum is wrong.";

impl Verify {
    pub(super) fn run(mut self) -> Result<Exit> {
        let keyring = self.keyring.open()?;
        if self.same {
            resolve(&mut self.against)?;
            resolve(&mut self.files)?;
            return same::run([&self.files, &self.against], keyring.as_ref(), self.format);
        }
        resolve(&mut self.files)?;
        let workers = workers(self.jobs);
        let mut answers = Vec::new();
        let mut exit = Exit::Done;
        for (log, number) in self.files.iter().zip(1..) {
            let name = log.to_string();
            match check(log, (number, self.files.len()), keyring.as_ref(), workers) {
                Ok(verdict) => {
                    if verdict.findings.problem_count > 0 {
                        exit = exit.max(Exit::Negative);
                    }
                    if let Some(cut) = verdict.cut {
                        warn_cut(log, cut, "");
                    }
                    if self.format == ReportFormat::Text {
                        print(|out| write_problems(&name, &verdict, out))?;
                    }
                    answers.push(Answer::of(name, &verdict));
                }
                Err(CommandFailure::Line(line)) => {
                    complain(&line);
                    exit = Exit::Trouble;
                    answers.push(Answer { file: name, error: Some(line), ..Answer::default() });
                }
                Err(closed) => return Err(closed),
            }
        }
        match self.format {
            ReportFormat::Json => print(|out| {
                writeln!(out, "{}", serde_json::to_string_pretty(&Document { files: &answers })?)
            })?,
            // Each log that could not be read was named already.
            ReportFormat::Text if answers.iter().all(|answer| answer.error.is_some()) => {}
            ReportFormat::Text => {
                let table = Table(self.table.layout());
                print(|mut out| table.write(&[section(&answers)], &mut out))?;
            }
        }
        Ok(exit)
    }
}

fn check(
    log: &LogPath,
    number: (usize, usize),
    keyring: Option<&Keyring>,
    workers: usize,
) -> Result<LogVerdict> {
    let size = log.size()?;
    let input = log.open(keyring)?;
    let progress = WorkProgress::of(log, size, number);
    let input = progress.watch(input);
    let verdict = verify(input, workers, &mut |bytes| progress.at(bytes));
    verdict.map_err(|error| CommandFailure::reading(log, &error))
}

/// Writes to standard output.
fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = io::stdout().lock();
    write(&mut out)
        .and_then(|()| out.flush())
        .map_err(|error| CommandFailure::writing(&"standard output", &error))
}

fn write_problems(name: &str, verdict: &LogVerdict, out: &mut dyn Write) -> io::Result<()> {
    let name = printable(name);
    let findings = &verdict.findings;
    for problem in verdict.problems() {
        writeln!(out, "{name} {}", printable(&problem.to_string()))?;
    }
    match findings.problem_count - findings.problems.len() as u64 {
        0 => Ok(()),
        more => writeln!(out, "{name}: {}", counted(more, "more problems")),
    }
}

/// A row for each log.
fn section(answers: &[Answer]) -> Section {
    let row =
        |answer: &Answer| -> Vec<TableCell> {
            let counts = [answer.bytes, answer.events, answer.rows, answer.transactions, answer.payloads]
                .map(|count| match answer.error {
                    Some(_) => TableCell::Null,
                    None => count.into(),
                });
            let cells = [answer.file.as_str().into(), answer.in_words().into()];
            cells.into_iter().chain(counts).collect()
        };
    Section {
        name: "files",
        title: "Verified",
        columns: &["file", "answer", "bytes", "events", "rows", "transactions", "compressed"],
        rows: answers.iter().map(row).collect(),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    files: &'a [Answer],
}

/// The result for a log, for machines.
#[derive(Default, Serialize)]
struct Answer {
    file: String,
    ok: bool,
    /// Why the log can't be read.
    error: Option<String>,
    bytes: u64,
    events: u64,
    rows: u64,
    transactions: u64,
    payloads: u64,
    not_decoded: u64,
    ends_inside_transaction: bool,
    cut: Option<CutReport>,
    problem_count: u64,
    problems: Vec<ProblemReport>,
}

#[derive(Serialize)]
struct ProblemReport {
    offset: u64,
    event_type: String,
    what: String,
}

impl Answer {
    /// The verdict in a word, with other facts that should be known.
    fn in_words(&self) -> String {
        let answer = match (&self.error, self.ok) {
            (Some(_), _) => "can't be read",
            (None, true) => "ok",
            (None, false) => "bad",
        };
        let cut = self.ends_inside_transaction.then(|| ", ends inside a transaction".to_owned());
        let too_large = (self.not_decoded > 0)
            .then(|| format!(", {} too large to decode", counted(self.not_decoded, "events")));
        [Some(answer.to_owned()), cut, too_large].into_iter().flatten().collect()
    }

    fn of(file: String, verdict: &LogVerdict) -> Self {
        let findings = &verdict.findings;
        let problem = |problem: &binlogz_payload::verify::Problem| ProblemReport {
            offset: problem.offset,
            event_type: problem.event_type.to_string(),
            what: problem.what.clone(),
        };
        Answer {
            file,
            ok: findings.problem_count == 0,
            error: None,
            bytes: verdict.bytes,
            events: findings.events,
            rows: findings.rows,
            transactions: findings.transactions,
            payloads: findings.payloads,
            not_decoded: findings.not_decoded,
            ends_inside_transaction: findings.ends_inside_transaction,
            cut: verdict.cut.map(CutReport::from),
            problem_count: findings.problem_count,
            problems: verdict.problems().iter().map(problem).collect(),
        }
    }
}
