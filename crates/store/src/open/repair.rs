//! Fills a hole of a damaged file, in place, with bytes from another copy of the log.
//!
//! ```text
//! copy of the damaged file, synced │ bytes of the hole, synced │ the file is checked again
//! ```
//!
//! After a crash at any point the file is as damaged as before, or less: nothing counts as whole unless
//! recovery found it whole. The new bytes replace the old ones in place, so all positions stay the same.

use std::io::{self, Read};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::files::copies;
use crate::files::log_file::LogFile;
use crate::lock::lock;
use crate::open::store::BinlogStore;
use crate::recovery::damage::{Damage, Hole};
use crate::recovery::recover::{RecoveryReport, recover_last};

const CHUNK_SIZE: usize = 256 << 10;

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The copy of the damaged file.
    pub kept_as: String,
    /// The file's contents now; there may be more damage elsewhere in it.
    pub report: RecoveryReport,
}

impl BinlogStore {
    /// Writes these bytes, which must be exactly as many as the hole has, into the first hole of the damaged
    /// file. If no damage remains, the log takes writes again.
    ///
    /// # Errors
    ///
    /// Nothing is damaged; the bytes are not as many, or don't close the hole; the disk fails.
    pub fn repair(&self, bytes: &mut dyn Read) -> Result<Repaired> {
        let mut active = lock(&self.active);
        let shared = &self.shared;
        shared.latch.check()?;
        let damage = shared.damage();
        let Some((damage, hole)) = damage.as_ref().and_then(|damage| Some((damage, damage.holes.first()?)))
        else {
            return Err(Error::Misuse {
                what: "repair",
                found: "no damage".into(),
                expected: "a damaged log",
            });
        };
        let log = self.open_log(damage.file)?;
        let storage = shared.place.storage.as_ref();
        let kept_as = copies::keep_damaged(storage, &log, hole.from)
            .map_err(Error::io("keep a copy of the damaged", &log.name))?;
        fill(&log, hole, bytes)?;
        let mut report = RecoveryReport::default();
        let last = recover_last(&shared.place, &shared.watermark, damage.file, &mut report)?;
        let still = report.damage.as_ref().and_then(|damage| damage.hole_at(hole.from)).is_some();
        if still {
            let found = report.damage.as_ref().map(Damage::to_string).unwrap_or_default();
            return Err(Error::unfit(&log.name, found, "a file that the repair made whole"));
        }
        if let Some(end) = report.end {
            if report.damage.is_none() {
                shared.note_durable(end, true)?;
            }
            shared.positions.set_both(end);
            if let Some((log, _)) = last {
                active.resume(shared, log, end);
            }
        }
        *lock(&shared.damage) = report.damage.clone().map(Arc::new);
        Ok(Repaired { kept_as, report })
    }
}

fn fill(log: &LogFile, hole: &Hole, bytes: &mut dyn Read) -> Result<()> {
    let (mut chunk, mut scratch) = (vec![0; CHUNK_SIZE], Vec::new());
    let mut offset = hole.from;
    loop {
        let count = match bytes.read(&mut chunk) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io("read what repairs", &log.name)(error)),
        };
        let end = offset + count as u64;
        if end > hole.to || (count == 0 && end < hole.to) {
            return Err(Error::Misuse {
                what: "repair",
                found: format!("bytes up to {end}"),
                expected: "as many bytes as the hole has",
            });
        }
        if count == 0 {
            return log.sync();
        }
        log.write_at(offset, chunk.get(..count).unwrap_or_default(), &mut scratch)?;
        offset = end;
    }
}
