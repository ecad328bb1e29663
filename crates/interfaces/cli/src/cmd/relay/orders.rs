//! Lets a running relay be told to read its configuration again: by SIGHUP, or through a socket in its directory, which
//! also reports the result.
//!
//! ```text
//! relay reload ─ connects ─ DIR/relay.sock ─ "done" or "failed", and a line of what was done or is wrong ─ end
//! ```

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use binlogz_relay::{Relay, RelayOptions, ReloadResult};
use binlogz_relay_config::{ConfigError, LogSettings, RelayConfig};
use parking_lot::Mutex;

use crate::failure::warn;
use crate::{interrupt, log};

/// The socket's name in the relay's directory.
const SOCKET: &str = "relay.sock";
/// A relay opens and closes sources before it answers.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause after a failed accept.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);
/// More than any answer.
const ANSWER_SIZE_MAX: u64 = 1 << 20;
const DONE: &str = "done";
const FAILED: &str = "failed";

/// Reads the configuration again whenever it is asked to. Without the socket, a line says so, and SIGHUP alone does it.
pub(super) fn obey(
    directory: &Path,
    config: PathBuf,
    relay: &Arc<Relay>,
    log: LogSettings,
    levels: log::Levels,
) {
    let its = Arc::clone(relay);
    let known = Arc::new(Mutex::new(log));
    let reload = move || {
        let reloaded = reload(&config, &its, &known, &levels);
        match &reloaded {
            Ok(said) => tracing::info!("reloaded {}: {said}", config.display()),
            Err(error) => tracing::error!("{error}; nothing was changed"),
        }
        reloaded
    };
    let on_hang_up = reload.clone();
    interrupt::on_hang_up(move || drop(on_hang_up()));
    let path = directory.join(SOCKET);
    let listening = listen(&path).and_then(|listener| {
        thread::Builder::new().name("orders".into()).spawn(move || accept(&listener, &reload))
    });
    if let Err(error) = listening {
        tracing::warn!("{}: {error}; `relay reload` can't reach this relay, SIGHUP can", path.display());
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    // The relay has its directory to itself: a socket that is there was left by one that was killed.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn accept(listener: &UnixListener, reload: &impl Fn() -> Result<String, String>) {
    for stream in listener.incoming() {
        match stream {
            Ok(mut stream) => {
                let (word, line) = match reload() {
                    Ok(said) => (DONE, said),
                    Err(error) => (FAILED, error),
                };
                // If nobody waits for the answer any more, the log has it.
                let _ = stream.write_all(format!("{word}\n{line}\n").as_bytes());
            }
            Err(_) => thread::sleep(ACCEPT_RETRY),
        }
    }
}

fn reload(
    config: &Path,
    relay: &Relay,
    known: &Mutex<LogSettings>,
    levels: &log::Levels,
) -> Result<String, String> {
    let (mut options, log) = read(config).map_err(|error| error.to_string())?;
    // Its message was printed at the start.
    options.limits = options.limits.within_descriptors(options.sources.len());
    let mut reloaded = relay.reload(options).map_err(|error| error.to_string())?;
    let mut known = known.lock();
    let is_other_level = known.levels != log.levels;
    if known.format != log.format {
        reloaded.after_restart.push("format of [log]");
    }
    levels.set(log.levels.clone());
    known.levels = log.levels;
    Ok(in_words(&reloaded, is_other_level))
}

/// The options and the log of a configuration; warnings are told.
fn read(path: &Path) -> Result<(RelayOptions, LogSettings), ConfigError> {
    let config = RelayConfig::read(path)?;
    let log = config.log.settings()?;
    let mut warnings = Vec::new();
    let options = config.resolve(&mut warnings);
    warnings.iter().for_each(|warning| warn(warning));
    Ok((options?, log))
}

fn in_words(reloaded: &ReloadResult, is_other_level: bool) -> String {
    let ReloadResult { sources, accounts, rates, after_restart } = reloaded;
    let mut said = Vec::new();
    for (what, names) in
        [("added", &sources.added), ("changed", &sources.changed), ("removed", &sources.removed)]
    {
        if !names.is_empty() {
            said.push(format!("{what} {}", names.join(", ")));
        }
    }
    if *accounts {
        said.push("other accounts".to_owned());
    }
    if *rates {
        said.push("other rates".to_owned());
    }
    if is_other_level {
        said.push("another level of the log".to_owned());
    }
    if !after_restart.is_empty() {
        said.push(format!("only after a restart: {}", after_restart.join(", ")));
    }
    match said.is_empty() {
        true => "nothing is different".to_owned(),
        false => said.join("; "),
    }
}

/// Asks the relay that has this directory to read its configuration again. The error is its own, or says that it could
/// not be asked.
pub(super) fn order(directory: &Path) -> Result<String, String> {
    let path = directory.join(SOCKET);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            format!("{}: {error}; is the relay running?", path.display())
        }
        _ => format!("{}: {error}", path.display()),
    };
    let stream = UnixStream::connect(&path).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut answer = String::new();
    (&stream).take(ANSWER_SIZE_MAX).read_to_string(&mut answer).map_err(failed)?;
    match answer.trim_end().split_once('\n') {
        Some((DONE, said)) => Ok(said.to_owned()),
        Some((FAILED, error)) => Err(error.to_owned()),
        _ => Err(format!("{}: the relay ended before it answered", path.display())),
    }
}
