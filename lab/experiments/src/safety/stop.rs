//! Ends a run from another thread: kills what loads the server, and restores the server.
//!
//! Every change to the server is made under [`RunStopper::change`], so that nothing is changed after a
//! restoration.

use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use binlogz_source::ConnectOptions;
use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::safety::restore::Restorer;
use crate::server::session::ServerSession;

/// The interval between checks of a program.
const POLL: Duration = Duration::from_millis(10);

/// Ends a run. Clones end the same one.
#[derive(Debug, Clone, Default)]
pub struct RunStopper {
    state: Arc<Mutex<StopState>>,
}

#[derive(Debug, Default)]
struct StopState {
    stopped: bool,
    restorer: Option<Restorer>,
    /// Working sessions, by their ids on the server.
    sessions: Vec<u64>,
    /// The working program.
    child: Option<Child>,
    /// Why the load was ended, if it was: the run ends with that.
    cut_short: Option<String>,
}

impl RunStopper {
    /// Ends the run: when this returns, the server is as it was.
    ///
    /// # Errors
    ///
    /// It is not, and the error says what to run.
    pub fn stop(&self) -> Result<()> {
        let mut state = self.state.lock();
        state.stopped = true;
        if let Some(child) = &mut state.child {
            // It may have ended already.
            let _ = child.kill();
        }
        let sessions = std::mem::take(&mut state.sessions);
        match state.restorer.take() {
            Some(restorer) => restorer.restore(&sessions, &Error::Interrupted),
            None => Ok(()),
        }
    }

    /// Ends only the load. The run then ends for this reason and restores the server itself.
    pub(crate) fn end_load(&self, connect: &ConnectOptions, reason: String) {
        let mut state = self.state.lock();
        state.cut_short.get_or_insert(reason);
        if let Some(child) = &mut state.child {
            // It may have ended already.
            let _ = child.kill();
        }
        let sessions = std::mem::take(&mut state.sessions);
        drop(state);
        if let Ok(mut session) = ServerSession::open(connect) {
            for id in sessions {
                let _ = session.run(&format!("KILL {id}"));
            }
        }
    }

    /// Why the load was ended.
    pub(crate) fn cut_short(&self) -> Option<String> {
        self.state.lock().cut_short.clone()
    }

    /// Restores the server at the end of a run that ended with `cause`, if it did not end well.
    pub(crate) fn restore(&self, cause: &Error) -> Result<()> {
        let mut state = self.state.lock();
        state.sessions.clear();
        match state.restorer.take() {
            Some(restorer) => restorer.restore(&[], cause),
            None => Ok(()),
        }
    }

    /// Registers the settings to restore.
    pub(crate) fn begin(&self, restorer: Restorer) -> Result<()> {
        let mut state = self.running()?;
        state.restorer = Some(restorer);
        Ok(())
    }

    /// Changes the server, unless the run was ended.
    pub(crate) fn change<T>(&self, change: impl FnOnce() -> Result<T>) -> Result<T> {
        let state = self.running()?;
        let changed = change();
        drop(state);
        changed
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// Registers a working session, which is killed when the run is ended.
    pub(crate) fn session_begins(&self, id: u64) -> Result<()> {
        self.running()?.sessions.push(id);
        Ok(())
    }

    pub(crate) fn session_ends(&self, id: u64) {
        self.state.lock().sessions.retain(|known| *known != id);
    }

    /// Waits for a program, which is killed when the run is ended.
    pub(crate) fn wait(&self, start: impl FnOnce() -> Result<Child>) -> Result<ExitStatus> {
        {
            let mut state = self.running()?;
            state.child = Some(start()?);
        }
        loop {
            {
                let mut state = self.running()?;
                let Some(child) = &mut state.child else { return Err(Error::Interrupted) };
                let ended = child.try_wait();
                let ended =
                    ended.map_err(|source| Error::Io { what: "wait for the load".to_owned(), source })?;
                if let Some(status) = ended {
                    state.child = None;
                    return Ok(status);
                }
            }
            sleep(POLL);
        }
    }

    fn running(&self) -> Result<MutexGuard<'_, StopState>> {
        let state = self.state.lock();
        if state.stopped { Err(Error::Interrupted) } else { Ok(state) }
    }
}
