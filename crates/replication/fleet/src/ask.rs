//! Asks all targets at once, each for a limited time. A target that hangs doesn't hold up the others: its thread may hang
//! on, and its row says so.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_archive::coverage::{Coverage, coverage};
use binlogz_archive::existing;
use binlogz_archive::last_check::LastChecks;
use binlogz_archive::storage::Manner;

use crate::findings;
use crate::relay_document::RelayDocument;
use crate::relay_http;
use crate::row::{FleetRow, FleetRowKind, of_relay};
use crate::server;
use crate::targets::{ArchiveLimits, FleetTarget, TargetAddress};

/// Asked at a time: they mostly wait.
const PARALLEL: usize = 32;
/// Time beyond the limit for a target that gives up by itself, to say why.
const GRACE: Duration = Duration::from_millis(500);

/// A question.
#[derive(Debug, Clone)]
enum Question {
    Target(FleetTarget),
    /// One of the archives of a target.
    Archive {
        target: FleetTarget,
        place: PathBuf,
    },
}

enum Answer {
    Rows(Vec<FleetRow>),
    More(Vec<Question>),
}

/// Asks them; no longer than the limit for each, and for all as long if there are not many that hang. `warn` hears of records that
/// can't be read and are passed over.
pub fn ask_all(targets: Vec<FleetTarget>, limit: Duration, warn: fn(&str)) -> Vec<FleetRow> {
    let questions = targets.into_iter().map(Question::Target).collect();
    ask(questions, limit, move |question, limit| answer(question, limit, warn))
}

/// A question under way: its number, itself, and until when there is patience for it.
type PendingQuestion = (usize, Question, Instant);

fn ask(
    mut waiting: VecDeque<Question>,
    limit: Duration,
    answer: impl Fn(&Question, Duration) -> Answer + Copy + Send + 'static,
) -> Vec<FleetRow> {
    let (sender, receiver) = mpsc::channel();
    let mut rows = Vec::new();
    let mut asked = Vec::<PendingQuestion>::new();
    let mut number = 0;
    loop {
        while asked.len() < PARALLEL
            && let Some(question) = waiting.pop_front()
        {
            number += 1;
            let its = question.clone();
            let its_sender = sender.clone();
            let its_number = number;
            let run = move || {
                // Nobody listens any more if it is late.
                let _ = its_sender.send((its_number, answer(&its, limit)));
            };
            match thread::Builder::new().name("fleet".to_owned()).spawn(run) {
                Ok(_) => asked.push((number, question, Instant::now() + limit + GRACE)),
                Err(error) => rows.push(question.unanswered(format!("start a thread: {error}"))),
            }
        }
        let Some(until) = asked.iter().map(|(_, _, until)| *until).min() else { return rows };
        match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok((number, answer)) => {
                // A late answer is to a question that was given up.
                let Some(place) = asked.iter().position(|(asked, ..)| *asked == number) else { continue };
                asked.swap_remove(place);
                match answer {
                    Answer::Rows(more) => rows.extend(more),
                    Answer::More(more) => waiting.extend(more),
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let now = Instant::now();
                asked.retain(|(_, question, until)| {
                    let is_late = now >= *until;
                    if is_late {
                        rows.push(question.unanswered(format!("no answer within {} s", limit.as_secs_f64())));
                    }
                    !is_late
                });
            }
        }
    }
}

impl Question {
    fn unanswered(&self, why: String) -> FleetRow {
        match self {
            Question::Target(FleetTarget { name, place: TargetAddress::Relay(_) }) => {
                FleetRow::unreachable(name, FleetRowKind::Relay, None, why)
            }
            Question::Target(FleetTarget { name, place: TargetAddress::Archives { to, .. } }) => {
                FleetRow::unreachable(name, FleetRowKind::Archive, Some(to.display().to_string()), why)
            }
            Question::Target(FleetTarget { name, place: TargetAddress::Server(server) }) => {
                FleetRow::unreachable(name, FleetRowKind::Server, Some(server.place.clone()), why)
            }
            Question::Archive { target, place } => FleetRow::unreachable(
                &target.name,
                FleetRowKind::Archive,
                Some(place.display().to_string()),
                why,
            ),
        }
    }
}

fn answer(question: &Question, limit: Duration, warn: fn(&str)) -> Answer {
    let told = match question {
        Question::Target(FleetTarget { name, place: TargetAddress::Relay(http) }) => {
            relay(http, limit).map(|relay| Answer::Rows(of_relay(name, &relay, findings::now())))
        }
        Question::Target(FleetTarget { name, place: TargetAddress::Server(server) }) => {
            Ok(Answer::Rows(vec![server::ask(name, server)]))
        }
        Question::Target(target @ FleetTarget { place: TargetAddress::Archives { to, .. }, .. }) => {
            existing::archives_at(to, Some(limit))
                .map(|places| {
                    let question = |place| Question::Archive { target: target.clone(), place };
                    Answer::More(places.into_iter().map(question).collect())
                })
                .map_err(|error| format!("{}: {error}", to.display()))
        }
        Question::Archive { target, place } => coverage_of(place, limit, warn)
            .map(|(covered, checks)| {
                let limits = match target.place {
                    TargetAddress::Archives { limits, .. } => limits,
                    TargetAddress::Relay(_) | TargetAddress::Server(_) => ArchiveLimits::default(),
                };
                let at = place.display().to_string();
                let now = findings::now();
                Answer::Rows(vec![FleetRow::of_archive(&target.name, &at, &covered, &checks, limits, now)])
            })
            .map_err(|error| format!("{}: {error}", place.display())),
    };
    told.unwrap_or_else(|why| Answer::Rows(vec![question.unanswered(why)]))
}

/// An archive's coverage, and its last checks. A record of checks that can't be read is empty, and a warning says so.
fn coverage_of(
    place: &Path,
    limit: Duration,
    warn: fn(&str),
) -> binlogz_archive::Result<(Coverage, LastChecks)> {
    let (storage, manifest) = existing::open(place, &Manner { limit: Some(limit), ..Manner::default() })?;
    let checks = LastChecks::read(&storage).unwrap_or_else(|error| {
        warn(&format!("{}: {error}", place.display()));
        LastChecks::default()
    });
    Ok((coverage(&manifest)?, checks))
}

/// The first address that answers.
fn relay(place: &str, limit: Duration) -> Result<RelayDocument, String> {
    let until = Instant::now() + limit;
    let mut failed = String::new();
    for address in relay_http::addresses(place).map_err(|error| format!("{place}: {error}"))? {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match relay_http::status(address, "?history", left) {
            Ok(text) => {
                return RelayDocument::read(&text).map_err(|error| format!("http://{address}/: {error}"));
            }
            Err(error) => failed = format!("http://{address}/: {error}"),
        }
    }
    Err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_hang_delay_nobody_beyond_the_limit() {
        let target = |name: String| {
            Question::Target(FleetTarget { name, place: TargetAddress::Relay("a:1".to_owned()) })
        };
        // More than are asked at a time, and the first of them hang.
        let questions: VecDeque<_> = (0..3 * PARALLEL).map(|number| target(format!("{number:03}"))).collect();
        let answer = |question: &Question, _| {
            let Question::Target(FleetTarget { name, .. }) = question else { panic!("{question:?}") };
            if name.as_str() < "004" {
                loop {
                    thread::park();
                }
            }
            Answer::Rows(vec![FleetRow { target: name.clone(), ..FleetRow::default() }])
        };
        let mut rows = ask(questions, Duration::from_millis(1500), answer);
        rows.sort_by(|a, b| a.target.cmp(&b.target));
        let hung: Vec<_> =
            rows.iter().filter(|row| row.state == "Unreachable").map(|row| &row.target).collect();
        assert_eq!(
            (rows.len(), hung),
            (3 * PARALLEL, ["000", "001", "002", "003"].map(String::from).iter().collect())
        );
        assert_eq!(rows[0].findings, ["no answer within 1.5 s"]);
    }
}
