//! Runs commands that users name: the key command, and the one that prints credentials. A command that hangs is ended
//! after a while.

use std::io::{self, Read};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a command may take: longer than a key service over a slow line takes with its own retries, or a person to
/// type a passphrase.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a command of the shell, and returns its output. It stays in this process's group, so that it may ask at the terminal.
///
/// # Errors
///
/// The command can't be started, or has not ended in time: then it is killed, and we don't wait for the processes that it
/// has started.
pub(super) fn output(command: &str, patience: Duration) -> io::Result<Output> {
    let until = Instant::now() + patience;
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (send, printed) = mpsc::channel();
    let out = child.stdout.take();
    let err = child.stderr.take();
    for (is_output, pipe) in [
        (true, out.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
        (false, err.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
    ] {
        let mut pipe = pipe.ok_or_else(|| io::Error::other("no pipe"))?;
        let send = send.clone();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = pipe.read_to_end(&mut bytes).map(|_| bytes);
            // Nobody waits any more after a deadline.
            let _ = send.send((is_output, read));
        });
    }
    drop(send);
    let mut stdout = Vec::new();
    let mut stderr = Vec::new();
    loop {
        match printed.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok((true, read)) => stdout = read?,
            Ok((false, read)) => stderr = read?,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                child.wait()?;
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("it has not ended within {} s, and was killed", patience.as_secs()),
                ));
            }
        }
    }
    // Its pipes are closed, which a command that goes on could have done itself.
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return Ok(Output { status, stdout, stderr });
        }
        thread::sleep(Duration::from_millis(1));
    }
    child.kill()?;
    Ok(Output { status: child.wait()?, stdout, stderr })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_hangs_is_killed_and_not_waited_for() {
        let printed = output("echo key; echo said >&2", PATIENCE).unwrap();
        assert_eq!((printed.stdout.as_slice(), printed.stderr.as_slice()), (&b"key\n"[..], &b"said\n"[..]));
        for hangs in ["exec sleep 60", "sleep 60 & sleep 60", "exec >&- 2>&-; exec sleep 60"] {
            let began = Instant::now();
            let ended = output(hangs, Duration::from_millis(300));
            let is_told = match &ended {
                Ok(output) => !output.status.success(),
                Err(error) => error.kind() == io::ErrorKind::TimedOut,
            };
            assert!(is_told && began.elapsed() < Duration::from_secs(50), "{hangs}: {ended:?}");
        }
    }
}
