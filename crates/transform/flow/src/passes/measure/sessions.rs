//! Compresses small transactions the way a server's committing threads do.
//!
//! A transaction compressed right after another finds code, tables and branch predictors warm. A server's
//! session compresses one, then waits for its client and for the disk while its core sleeps or serves other
//! sessions. The next one costs it 1.3 to 2.6 times the processor time
//! (lab/book/advise.md, "Small transactions").

use std::hint::black_box;
use std::time::Duration;

use binlogz_payload::{CompressionLevel, Compressor, Error};

use super::clock::CpuClock;

/// Between two transactions of a session: about what a client takes to send the next one.
const WAIT: Duration = Duration::from_micros(300);

/// Bytes of other memory changed while another session has its turn: the pages of its statements.
const OTHER_WORK: usize = 16 << 20;

/// Bytes that the processor fetches at a time.
const CACHE_LINE: usize = 64;

/// Sessions that have a context of their own; more share them.
const SESSIONS: usize = 8;

/// Sessions of a server.
#[derive(Debug)]
pub struct ServerSessions {
    level: CompressionLevel,
    clock: CpuClock,
    contexts: [Option<Compressor>; SESSIONS],
    last: Option<u32>,
    other: Vec<u8>,
    payload: Vec<u8>,
}

impl ServerSessions {
    /// Sessions that have not compressed anything yet.
    pub fn new(level: CompressionLevel) -> Self {
        ServerSessions {
            level,
            clock: CpuClock::default(),
            contexts: Default::default(),
            last: None,
            other: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// Switches the sessions to another level.
    pub fn set_level(&mut self, level: CompressionLevel) {
        if self.level != level {
            (self.level, self.contexts) = (level, Default::default());
        }
    }

    /// Nanoseconds of processor time for compressing a transaction in the session that commits it, selected
    /// by the number of its thread.
    ///
    /// # Errors
    ///
    /// An error from zstd; no memory for a context.
    pub fn committing(&mut self, session: u32, transaction: &[u8]) -> Result<u64, Error> {
        let Some(context) = self.contexts.get_mut(session as usize % SESSIONS) else { return Ok(0) };
        let context = match context {
            Some(context) => context,
            // A session's first transaction also pays for the memory.
            None => {
                let context = context.insert(Compressor::new(self.level)?);
                timed(self.clock, context, transaction, &mut self.payload)?;
                context
            }
        };
        std::thread::sleep(WAIT);
        if self.last.replace(session).is_some_and(|last| last != session) {
            self.other.resize(OTHER_WORK, 0);
            for line in self.other.chunks_exact_mut(CACHE_LINE) {
                line.iter_mut().take(1).for_each(|byte| *byte = byte.wrapping_add(1));
            }
            black_box(&self.other);
        }
        timed(self.clock, context, transaction, &mut self.payload)
    }
}

fn timed(
    clock: CpuClock,
    context: &mut Compressor,
    transaction: &[u8],
    payload: &mut Vec<u8>,
) -> Result<u64, Error> {
    payload.clear();
    let (done, time) = clock.time(|| context.compress(transaction, payload));
    done?;
    Ok(time)
}
