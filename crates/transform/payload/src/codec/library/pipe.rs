//! The pipes to a helper program. A read or write that takes too long fails, so that a helper that hangs ends the wait
//! for it.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

/// A pipe at which nothing waits longer than this.
pub(super) struct PatientPipe<P> {
    pipe: P,
    patience: Duration,
}

impl<P: AsFd> PatientPipe<P> {
    /// Our end alone no longer blocks: the helper's is another open file.
    pub(super) fn new(pipe: P, patience: Duration) -> io::Result<Self> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(PatientPipe { pipe, patience })
    }

    fn wait(&self, wanted: PollFlags) -> io::Result<()> {
        let until = Instant::now() + self.patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.pipe, wanted)], Some(&timeout)) {
                Ok(0) if left.is_zero() => return Err(io::ErrorKind::TimedOut.into()),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn patiently<T>(
        &mut self,
        wanted: PollFlags,
        mut attempt: impl FnMut(&mut P) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match attempt(&mut self.pipe) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(wanted)?,
                done => return done,
            }
        }
    }
}

impl<P: Read + AsFd> Read for PatientPipe<P> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.patiently(PollFlags::IN, |pipe| pipe.read(bytes))
    }
}

impl<P: Write + AsFd> Write for PatientPipe<P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(PollFlags::OUT, |pipe| pipe.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pipe.flush()
    }
}
