//! Asks all targets again and again, and keeps the last answers.
//!
//! The file of targets is read before each round: a change counts from the next one on. A file that can't be read leaves the
//! targets as they were, with a row that says so.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::ask::ask_all;
use crate::findings;
use crate::history::RowHistory;
use crate::row::{FleetRow, FleetRowKind, joined};
use crate::targets::{self, FleetTarget};

/// Servers are asked no more often: doctor's answers change slowly, and its questions cost them something.
const SERVERS_EVERY: Duration = Duration::from_secs(300);
/// How many rounds may be missed before the last one is too old.
const ROUNDS_MISSED: u32 = 3;

/// Whom to ask, and how often.
#[derive(Debug, Clone)]
pub struct RoundOptions {
    /// The file of targets.
    pub targets: PathBuf,
    /// Time for each target.
    pub limit: Duration,
    /// The time between the beginnings of two rounds.
    pub every: Duration,
    /// Hears of records that can't be read and are passed over.
    pub warn: fn(&str),
}

/// The answers of one round.
#[derive(Debug)]
pub struct FleetRound {
    /// A row for each source, archive and server, the worst first.
    pub rows: Vec<FleetRow>,
    /// When it ended.
    pub ended: Instant,
    /// How long it took.
    pub seconds: f64,
}

/// Rounds without end, of which the latest is kept.
#[derive(Debug)]
pub struct FleetRounds {
    options: RoundOptions,
    latest: Mutex<Option<FleetRound>>,
}

impl FleetRounds {
    /// No round has begun as yet.
    pub fn new(options: RoundOptions) -> FleetRounds {
        FleetRounds { options, latest: Mutex::default() }
    }

    /// The latest round; none before the first has ended. The next round waits while this is held.
    pub fn latest(&self) -> MutexGuard<'_, Option<FleetRound>> {
        self.latest.lock()
    }

    /// How old the latest round may be: an older one says that something hangs.
    pub fn age_max(&self) -> Duration {
        (self.options.every + self.options.limit) * ROUNDS_MISSED
    }

    /// Asks for ever; these targets first.
    pub fn run(&self, mut targets: Vec<FleetTarget>) {
        let options = &self.options;
        let mut history = RowHistory::default();
        let mut servers: Option<(Instant, Vec<FleetRow>)> = None;
        loop {
            let begin = Instant::now();
            let trouble = match targets::read(&options.targets) {
                Ok(now) => {
                    targets = now;
                    None
                }
                Err(error) => Some(error.to_string()),
            };
            let are_servers_due = servers.as_ref().is_none_or(|(at, _)| at.elapsed() >= SERVERS_EVERY);
            let (of_servers, others) = targets.iter().cloned().partition(FleetTarget::is_server);
            let asked = if are_servers_due { [others, of_servers].concat() } else { others };
            let mut rows = ask_all(asked, options.limit, options.warn);
            match &servers {
                Some((_, before)) if !are_servers_due => rows.extend(before.iter().cloned()),
                _ => {
                    let of_servers =
                        rows.iter().filter(|row| row.kind == FleetRowKind::Server).cloned().collect();
                    servers = Some((begin, of_servers));
                }
            }
            rows.extend(trouble.map(|why| FleetRow::of_file(&options.targets.display().to_string(), why)));
            history.add(&mut rows, findings::now());
            let seconds = begin.elapsed().as_secs_f64();
            *self.latest() = Some(FleetRound { rows: joined(rows), ended: Instant::now(), seconds });
            thread::sleep(options.every.saturating_sub(begin.elapsed()));
        }
    }
}
