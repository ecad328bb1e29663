//! Runs work that may hang for ever in a thread of its own, and waits for it no longer than it may take.

use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, bounded};

use crate::error::{Error, Result};
use crate::telemetry::{Telemetry, duties};

/// How often to look whether the source is still wanted.
const TICK: Duration = Duration::from_millis(100);

/// One piece of work at a time.
#[derive(Debug, Default)]
pub(super) struct PatientThread {
    /// The thread that was given up, until it ends.
    hanging: Option<JoinHandle<()>>,
}

impl PatientThread {
    /// Runs `work`. As long as a thread that was given up has not ended, nothing else is begun: what it waits for would hang again.
    ///
    /// # Errors
    ///
    /// It has not ended in time; no thread can be had; it panicked; the source is no longer wanted.
    pub(super) fn run<T: Send + 'static>(
        &mut self,
        telemetry: &Telemetry,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.hanging.take_if(|thread| thread.is_finished());
        if self.hanging.is_some() {
            return Err(late("what was given up before has not ended yet"));
        }
        let (sender, result) = bounded(1);
        let run = move || {
            // Nobody waits for it any more if it took too long.
            let _ = sender.send(work());
        };
        let spawned = thread::Builder::new().name(duties::CHECK.to_owned()).spawn(run);
        let thread = spawned.map_err(Error::thread(duties::CHECK))?;
        let until = Instant::now() + patience;
        loop {
            match result.recv_timeout(TICK) {
                Ok(done) => return Ok(done),
                Err(RecvTimeoutError::Disconnected) => {
                    let message = "its thread has ended".to_owned();
                    return Err(Error::Panicked { name: duties::CHECK, message });
                }
                Err(RecvTimeoutError::Timeout) if telemetry.ending.has_begun() => {
                    return Err(late("the source is no longer wanted"));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.hanging = Some(thread);
                    return Err(late(&format!("it has not ended within {patience:?}, and is given up")));
                }
            }
        }
    }
}

fn late(why: &str) -> Error {
    Error::io("look at the archive")(io::Error::new(io::ErrorKind::TimedOut, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_hangs_is_given_up_and_nothing_is_begun_until_it_ends() {
        let telemetry = Telemetry::new("");
        let mut patient = PatientThread::default();
        assert_eq!(patient.run(&telemetry, Duration::from_secs(60), || 7).unwrap(), 7);
        let (end, wait) = bounded::<()>(0);
        let hang = move || {
            let _ = wait.recv();
        };
        let given_up = patient.run(&telemetry, Duration::from_millis(10), hang).unwrap_err().to_string();
        assert!(given_up.contains("has not ended within 10ms"), "{given_up}");
        let refused = patient.run(&telemetry, Duration::from_secs(60), || 7).unwrap_err().to_string();
        assert!(refused.contains("given up before has not ended yet"), "{refused}");
        drop(end);
        let mut done = patient.run(&telemetry, Duration::from_secs(60), || 7);
        while done.is_err() {
            thread::sleep(TICK);
            done = patient.run(&telemetry, Duration::from_secs(60), || 7);
        }
        let panicked = patient.run(&telemetry, Duration::from_secs(60), || -> u8 { panic!("no") });
        assert!(panicked.unwrap_err().is_bug());
    }
}
