//! A running client, and its output so far.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use binlogz_testkit::Result;

use super::client::{By, Client};
use crate::patience;
use crate::replicas::Followed;
use crate::table::Verdict;

/// Killed when dropped.
pub(crate) struct Running {
    process: Child,
    lines: Receiver<String>,
    complaints: Receiver<String>,
}

impl Running {
    /// Starts a client. `state`: a folder for its own files.
    pub(crate) fn start(
        client: Client,
        followed: Followed,
        by: By,
        place: &str,
        state: &Path,
    ) -> Result<Running> {
        let Followed { port, user, password, tls, .. } = followed;
        let mut command = client.command()?;
        let [by, _] = by.names();
        command.args([&port.to_string(), user, password, by, place]).env("STATE", state).env("TZ", "UTC");
        if tls {
            command.env("TLS", "1");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = collected(process.stdout.take().unwrap());
        let complaints = collected(process.stderr.take().unwrap());
        Ok(Running { process, lines, complaints })
    }

    fn why_it_ended(&self) -> String {
        // Its last words are still under way.
        let mut said = Vec::new();
        while let Ok(line) = self.complaints.recv_timeout(patience()) {
            said.push(line);
        }
        let with = |word: &str| said.iter().rfind(|line| line.contains(word));
        let error = with("rror").or_else(|| with("xception: ")).or(said.last());
        error.cloned().unwrap_or("it ends without a word".into())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn collected(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(std::result::Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}

/// Rows by their `id`, as `mysql --batch` prints them.
pub(crate) type Rows = BTreeMap<u64, String>;

/// The rows that a client has delivered, over all of its runs.
#[derive(Default)]
pub(crate) struct Seen {
    /// Up to `place`.
    rows: Rows,
    /// After it: it delivers them again if it is killed now.
    unfinished: Vec<(u64, String)>,
    pub(crate) place: String,
    twice: usize,
    differing: Option<String>,
}

impl Seen {
    /// Takes lines until the rows fulfil a condition at a place after which the client can go on; if they don't, why.
    pub(crate) fn until(
        &mut self,
        running: &mut Running,
        done: impl Fn(&Rows) -> bool,
    ) -> std::result::Result<(), Verdict> {
        let mut progress = Instant::now();
        loop {
            match running.lines.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => match line.split_once(' ') {
                    Some(("row", row)) => {
                        let id = row.split('\t').next().and_then(|id| id.parse().ok()).unwrap_or(0);
                        self.unfinished.push((id, row.to_owned()));
                        progress = Instant::now();
                    }
                    Some(("at", place)) => {
                        place.clone_into(&mut self.place);
                        self.finish();
                        if done(&self.rows) {
                            return Ok(());
                        }
                    }
                    _ => {}
                },
                Err(_) if running.process.try_wait().unwrap().is_some() => {
                    return Err(Verdict::Stops(running.why_it_ended()));
                }
                Err(_) => {}
            }
            if progress.elapsed() > patience() {
                return Err(Verdict::Differs(format!("it stays at {} rows", self.rows.len())));
            }
        }
    }

    fn finish(&mut self) {
        for (id, row) in self.unfinished.drain(..) {
            if self.rows.insert(id, row).is_some() {
                self.twice += 1;
            }
        }
    }

    /// The client was killed: it goes on at the last place.
    pub(crate) fn killed(&mut self) {
        self.unfinished.clear();
    }

    pub(crate) fn count(&self) -> usize {
        self.rows.len()
    }

    /// Compares the rows it printed with the source's.
    pub(crate) fn verdict(mut self, source: &Rows) -> Verdict {
        for (id, row) in source {
            match self.rows.get(id) {
                Some(found) if found == row => {}
                Some(found) => {
                    self.differing.get_or_insert_with(|| format!("a row is {found:?} and not {row:?}"));
                }
                None => {
                    self.differing.get_or_insert_with(|| format!("row {id} is missing"));
                }
            }
        }
        match (self.twice, self.differing) {
            (0, None) => Verdict::Works,
            (_, Some(difference)) => Verdict::Differs(difference),
            (count, None) => Verdict::Differs(format!("{count} rows twice (of {})", self.rows.len())),
        }
    }
}
