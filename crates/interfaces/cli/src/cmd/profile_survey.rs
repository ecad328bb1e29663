//! Surveys the last hour of a server's log, or of a relay's files, for events that clients of a profile would not be sent unchanged.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use binlogz_binlog::EventHeader;
use binlogz_binlog::event::TransactionPayloadHeader;
use binlogz_encryption::Keyring;
use binlogz_flow::{EventSpan, Input, LogStart, Walker, walk};
use binlogz_inspect::{SurveyedLog, SurveyedThing};
use binlogz_relay::{LogSurvey, ReaderProfile, SurveyFinding, SurveyPlace};
use binlogz_source::{ConnectOptions, Connection};

use super::advise::{SampledServerLog, all_logs};
use crate::failure::{CommandFailure, Result};

/// How far back is looked.
pub(super) const BACK: Duration = Duration::from_secs(3600);

/// The profile of this name, as an option's value.
pub(super) fn profile(name: &str) -> Result<&'static ReaderProfile, String> {
    ReaderProfile::of_name(name).ok_or_else(|| {
        let names: Vec<_> = ReaderProfile::all().iter().map(|profile| profile.name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Looks at a server's log.
///
/// # Errors
///
/// The server can't be asked, or its log can't be read.
pub(super) fn of_server(
    options: &ConnectOptions,
    profiles: &[&'static ReaderProfile],
    budget: Duration,
    rate_max: Option<u64>,
) -> Result<SurveyedLog> {
    let since = server_time(options)?.saturating_sub(BACK.as_secs());
    let mut survey = LogSurvey::new(profiles, seconds(since), Instant::now() + budget);
    let logs = all_logs(options.clone(), rate_max)?;
    for log in logs_since(&logs, seconds(since))? {
        survey.begin_log(log.name());
        walk(log.open()?, &mut survey).map_err(|error| CommandFailure::of(log, error))?;
        if survey.stopped_at().is_some() {
            break;
        }
    }
    Ok(surveyed(profiles, survey))
}

/// Looks at the files of a relay's folder.
///
/// # Errors
///
/// They can't be read.
pub(super) fn of_folder(
    folder: &Path,
    keyring: Option<&Keyring>,
    profiles: &[&'static ReaderProfile],
    budget: Duration,
) -> Result<SurveyedLog> {
    let since = SystemTime::now().checked_sub(BACK).unwrap_or(UNIX_EPOCH);
    let from = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut survey = LogSurvey::new(profiles, seconds(from), Instant::now() + budget);
    for path in files_since(folder, since)? {
        let input = match Input::open(&path) {
            Ok(input) => input,
            // It was purged meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(CommandFailure::of(&path.display(), error)),
        };
        let input = match keyring {
            Some(keyring) => input
                .decrypted(keyring)
                .map_err(|error| CommandFailure::with_encryption(&path.display(), &error))?,
            None => input,
        };
        survey.begin_log(&path.file_name().unwrap_or_default().to_string_lossy());
        walk(input, &mut survey).map_err(|error| CommandFailure::of(&path.display(), error))?;
        if survey.stopped_at().is_some() {
            break;
        }
    }
    Ok(surveyed(profiles, survey))
}

fn surveyed(profiles: &[&'static ReaderProfile], survey: LogSurvey) -> SurveyedLog {
    SurveyedLog {
        seconds: BACK.as_secs(),
        transactions: survey.transactions(),
        stopped_at: survey.stopped_at().map(|SurveyPlace { log, offset, .. }| format!("{log} {offset}")),
        profiles: profiles.iter().map(|profile| profile.name.to_owned()).collect(),
        findings: survey.findings().into_iter().map(thing).collect(),
    }
}

fn thing(finding: SurveyFinding) -> SurveyedThing {
    SurveyedThing {
        profile: finding.profile.to_owned(),
        treatment: finding.treatment.word().to_owned(),
        thing: finding.thing.to_owned(),
        transactions: finding.transactions,
        log: finding.first.log,
        position: finding.first.offset,
        gtid: finding.first.gtid,
        why: finding.why,
    }
}

/// Times of events have 32 bits.
fn seconds(since: u64) -> u32 {
    u32::try_from(since).unwrap_or(u32::MAX)
}

/// The server's own time, in seconds since 1970.
fn server_time(options: &ConnectOptions) -> Result<u64> {
    let rows = Connection::open(options)
        .and_then(|mut connection| connection.query("SELECT UNIX_TIMESTAMP()"))
        .map_err(|error| CommandFailure::of_server(&options.server(), error))?;
    let cell = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&cell).into_owned();
    text.parse().map_err(|_| {
        CommandFailure::of(&options.server(), format_args!("UNIX_TIMESTAMP() is {text:?}, expected seconds"))
    })
}

/// The logs that have what was written since then: all after the last one that begins before.
fn logs_since(logs: &[SampledServerLog], since: u32) -> Result<&[SampledServerLog]> {
    let mut first = 0;
    for (number, log) in logs.iter().enumerate().rev() {
        if begins_at(log)?.is_some_and(|time| time <= since) {
            first = number;
            break;
        }
    }
    Ok(logs.get(first..).unwrap_or_default())
}

/// When a log begins; `None`: it has no event yet.
fn begins_at(log: &SampledServerLog) -> Result<Option<u32>> {
    let mut beginning = LogBeginning::default();
    walk(log.open()?, &mut beginning).map_err(|error| CommandFailure::of(log, error))?;
    Ok(beginning.time)
}

/// The time of a log's format description.
#[derive(Default)]
struct LogBeginning {
    time: Option<u32>,
}

impl Walker for LogBeginning {
    fn format_description(&mut self, start: &LogStart) -> ControlFlow<()> {
        self.time = start.frame().ok().map(|frame| frame.header().timestamp);
        ControlFlow::Break(())
    }

    fn payload(
        &mut self,
        _: EventSpan,
        _: &EventHeader,
        _: &TransactionPayloadHeader<'_>,
    ) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn begin(&mut self, _: EventSpan, _: &EventHeader) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn body(&mut self, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// The logs in a relay's folder that were written to since then, the oldest first.
fn files_since(folder: &Path, since: SystemTime) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for (lineage, place) in lineages(folder)? {
        let entries = fs::read_dir(&place).map_err(|error| CommandFailure::of(&place.display(), error))?;
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(number) = number_of(&name) else { continue };
            let written = entry.metadata().and_then(|metadata| metadata.modified());
            if written.is_ok_and(|time| time >= since) {
                files.push((lineage, number, entry.path()));
            }
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(.., path)| path).collect())
}

/// The folder of each log in a relay's: its own first, then `lineage-2` and so on.
fn lineages(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let entries = fs::read_dir(folder).map_err(|error| CommandFailure::of(&folder.display(), error))?;
    let later = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        let number = name.to_str()?.strip_prefix("lineage-")?.parse().ok()?;
        Some((number, entry.path()))
    });
    let mut all: Vec<_> = std::iter::once((1, folder.to_owned())).chain(later).collect();
    all.sort();
    Ok(all)
}

/// The number at the end of a log's name, as in `binlog.000007`.
fn number_of(name: &str) -> Option<u64> {
    const DIGITS_MIN: usize = 6;
    let (base, digits) = name.rsplit_once('.')?;
    let is_number = digits.len() >= DIGITS_MIN && digits.bytes().all(|digit| digit.is_ascii_digit());
    (is_number && !base.is_empty()).then(|| digits.parse().ok())?
}
