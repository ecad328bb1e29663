//! The state of the relay, so that nobody takes one state for another: a word, a colour, a sentence, and what to do about
//! it.

use binlogz_figures::{PageStep, Tone};

use super::{duration, size};
use crate::receive::control::Phase;
use crate::watch::condition::{self, BEHIND_SECONDS};
use crate::watch::http::entrance::ReplicaEntrance;
use crate::watch::status::{ReplicaStatus, SourceReport};

/// How the relay is.
#[derive(Debug)]
pub(super) struct RelayState {
    pub(super) tone: Tone,
    pub(super) word: &'static str,
    pub(super) lead: String,
    pub(super) reasons: Vec<String>,
    pub(super) steps: Vec<PageStep>,
}

pub(super) fn of(status: &SourceReport, entrance: Option<&ReplicaEntrance>) -> RelayState {
    let source = &status.source;
    // The phase changes with each attempt.
    let since = duration(source.down_seconds.unwrap_or(source.phase_seconds));
    let server = &source.server;
    let (tone, word) = condition::of(status);
    let lead = match source.phase {
        Phase::Connecting => format!("Connecting to {server}"),
        Phase::Receiving => format!("Following {server}"),
        Phase::Waiting => format!("{server} can't be followed; it will be tried again"),
        Phase::Stopped => "Receiving was stopped".to_owned(),
        Phase::Failed => "Receiving has failed: somebody must decide or repair something".to_owned(),
    };
    let mut reasons = vec![format!("{} for {since}", source.phase.name())];
    reasons.extend(status.troubles.iter().cloned());
    // Troubles say it already, with more words around.
    let is_new = |error: &&String| !reasons.iter().any(|reason| reason.contains(error.as_str()));
    let error = source.error.as_ref().filter(is_new).cloned();
    reasons.extend(error);
    match &status.log {
        Some(log) => reasons.push(format!(
            "durable up to {} at {}; that and nothing beyond it is served",
            log.durable.file, log.durable.position
        )),
        None => reasons.push("nothing of the source's log is here yet".to_owned()),
    }
    if let Some(last) = status.replicas.iter().max_by_key(|replica| replica.lag_bytes) {
        reasons.push(match last.lag_bytes {
            0 => "every replica was sent all of it".to_owned(),
            bytes => format!("replica {} lacks {} of it", last.server_id, size(bytes)),
        });
    }
    let mut steps = steps(status);
    // Trouble first.
    if steps.is_empty() && status.replicas.is_empty() && status.bytes.served == 0 {
        steps.extend(entrance.zip(status.log.as_ref()).map(|(entrance, log)| entrance.step(log)));
    }
    RelayState { tone, word, lead, reasons, steps }
}

/// How a replica is. One that has all of a log that nobody adds to is not live.
pub(super) fn of_replica(status: &SourceReport, replica: &ReplicaStatus) -> (Tone, &'static str) {
    let is_live = status.source.phase == Phase::Receiving;
    match replica.lag_seconds {
        Some(lag) if lag >= BEHIND_SECONDS => (Tone::Warning, "Behind"),
        Some(0) if !is_live => (Tone::Neutral, "Has all"),
        Some(_) if is_live => (Tone::Good, "Live"),
        Some(_) => (Tone::Neutral, "Catching up"),
        None => (Tone::Neutral, "Beginning"),
    }
}

/// The next steps, if there are any.
fn steps(status: &SourceReport) -> Vec<PageStep> {
    let step = |what: &str, paste: &str| PageStep { what: what.to_owned(), paste: paste.to_owned() };
    let mut steps = Vec::new();
    if !status.damage.is_empty() {
        steps.push(step(
            "A stored file is damaged. The relay takes what is damaged from the archive or the source: keep the source reachable and \
             its old files in place. What precedes the damage is served.",
            "",
        ));
    }
    if status
        .archive
        .as_ref()
        .and_then(|archive| archive.check.as_ref())
        .is_some_and(|check| check.damaged_logs > 0)
    {
        steps.push(step(
            "Something in the archive is damaged or missing. Bring it back from a copy of the archive; a log that is still at the source, \
             or here, can be archived again:",
            "binlogz archive create --verify --to ARCHIVE LOG",
        ));
    }
    if status.duties.iter().any(|duty| !duty.up) {
        steps.push(step(
            "A part of the relay is not at work. If that lasts, restart the relay; what is durable is kept.",
            "",
        ));
    }
    match status.source.phase {
        Phase::Failed => steps.push(step(
            "Remove the cause that stands above: a full disk needs room, for example. The relay then goes on by itself, \
             within 30 seconds after a disk's failure. Another source's log waits for your decision. This tries at once, at \
             the relay, with an account that has admin = true:",
            "START REPLICA;",
        )),
        Phase::Waiting => {
            steps.push(step("Is the server up, and does this machine reach it?", &ping(&status.source.server)));
            steps.push(step(
                "If it is up but refuses, the error above says what: an account, a right, purged files. The relay tries again \
                 by itself; meanwhile replicas are served what is durable.",
                "",
            ));
        }
        Phase::Stopped => {
            steps.push(step("Somebody ran STOP REPLICA at the relay. This goes on receiving:", "START REPLICA;"));
        }
        Phase::Connecting | Phase::Receiving if !status.is_healthy() && steps.is_empty() => steps.push(step(
            "Look at the disk and the limits of this machine: the line above says what is missing.",
            "df -h\njournalctl --dmesg --since=-1h",
        )),
        Phase::Connecting | Phase::Receiving => {}
    }
    steps
}

/// A command that asks whether the server answers.
fn ping(server: &str) -> String {
    match server.rsplit_once(':') {
        Some((host, port)) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            format!("mysqladmin --host={host} --port={port} ping")
        }
        None => "mysqladmin ping".to_owned(),
    }
}
