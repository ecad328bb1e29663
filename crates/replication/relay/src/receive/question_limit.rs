//! Asks a server something, for a client that waits for the answer, a few questions at a time.
//!
//! ```text
//! client's thread ─ turn, one of a few ─ thread ─ connection of its own to the source ─ answer, or the deadline
//! ```
//!
//! A thread of its own asks, so that a client never waits longer than it should, not even for a name server.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_source::ConnectOptions;

use crate::error::{Error, Result};

/// Questions that the source is asked at a time, each over a connection of its own.
const AT_A_TIME: usize = 4;

/// Limits how many questions are asked at a time.
#[derive(Debug, Default)]
pub(crate) struct QuestionLimit {
    asking: Mutex<usize>,
    asked: Condvar,
}

/// A turn at asking, until dropped.
struct QuestionTurn(Arc<QuestionLimit>);

impl Drop for QuestionTurn {
    fn drop(&mut self) {
        *self.0.asking.lock() -= 1;
        self.0.asked.notify_one();
    }
}

impl QuestionLimit {
    /// Waits for a turn; `None` after the deadline.
    fn turn(self: &Arc<Self>, until: Instant) -> Option<QuestionTurn> {
        let mut asking = self.asking.lock();
        while *asking >= AT_A_TIME {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.asked.wait_for(&mut asking, left);
        }
        *asking += 1;
        Some(QuestionTurn(Arc::clone(self)))
    }

    /// Asks a server something in a thread of its own. The error says why there is no answer.
    pub(super) fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        server: &ConnectOptions,
        until: Instant,
        question: impl FnOnce(&ConnectOptions) -> Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let too_late = || format!("{} has not answered in time", server.server());
        let turn = self.turn(until).ok_or_else(too_late)?;
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let mut options = server.clone();
        options.timeouts.login = left;
        options.timeouts.answer = left;
        options.timeouts.silence = Some(left);
        let (tell, told) = mpsc::channel();
        let ask = move || {
            let _turn = turn;
            // Nobody listens after the deadline.
            let _ = tell.send(question(&options));
        };
        let started = thread::Builder::new().name("question".into()).spawn(ask);
        started.map_err(|error| Error::thread("question")(error).to_string())?;
        match told.recv_timeout(left) {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(RecvTimeoutError::Timeout) => Err(too_late()),
            Err(RecvTimeoutError::Disconnected) => Err("the thread that asked the source panicked".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use binlogz_source::Connection;

    use super::*;

    #[test]
    fn a_server_that_does_not_answer_is_waited_for_until_the_deadline() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut server = ConnectOptions::new("binlogz");
        server.host = Some("127.0.0.1".into());
        server.port = Some(listener.local_addr().unwrap().port());
        let questions = Arc::<QuestionLimit>::default();
        let until = Instant::now() + Duration::from_millis(50);
        let error =
            questions.ask(&server, until, |server| Ok(Connection::open(server).map(drop)?)).unwrap_err();
        assert!(Instant::now() >= until, "{error}");
        assert!(error.contains("127.0.0.1"), "{error}");
        // Nobody waits longer for a turn, and every turn is given back.
        let turns: Vec<_> = (0..AT_A_TIME).filter_map(|_| questions.turn(Instant::now())).collect();
        assert!(turns.len() <= AT_A_TIME && questions.turn(Instant::now()).is_none());
        drop(turns);
        assert!(questions.turn(Instant::now() + Duration::from_secs(60)).is_some());
    }
}
