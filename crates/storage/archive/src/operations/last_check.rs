//! When an archive was last checked, how, and with which findings. A check writes this down, so that a reader of the
//! manifest knows how far it can be believed. A manifest says what was stored; only a check has seen that it is still
//! there.
//!
//! ```text
//! objects/last-check.json    {"checks":[…],"crc32":…}: a check of each depth at most, the deepest first, and the CRC-32 of "checks"
//! ```
//!
//! A check replaces earlier ones that looked no deeper. One that looked deeper stays: the damage it found is not mended
//! because somebody looked less closely since.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::format::Manifest;
use crate::operations::create::seconds;
use crate::operations::presence::CheckDepth;
use crate::storage::{ArchiveStorage, LAST_CHECK, LogName};

/// The largest record: a few hundred bytes in fact.
const SIZE_MAX: u64 = 64 << 10;

/// One check of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRecord {
    /// When the check began, in seconds since 1970.
    pub time: u64,
    /// How much it looked at.
    pub depth: CheckDepth,
    /// How many logs the archive had.
    pub logs: u64,
    /// The last of these logs; later ones were compared when they were stored, and not since.
    pub last_log: Option<LogName>,
    /// How many things were found damaged or missing; gaps between logs are not among them, the manifest tells those.
    pub problems: u64,
}

/// All that is known of checks of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastChecks(Vec<CheckRecord>);

#[derive(Serialize, Deserialize)]
struct AsStored {
    checks: Vec<CheckRecord>,
    crc32: u32,
}

impl LastChecks {
    /// Reads what checks have written down; nothing if there was none.
    ///
    /// # Errors
    ///
    /// Storage that fails, a damaged record.
    pub fn read(storage: &dyn ArchiveStorage) -> Result<LastChecks> {
        let object = match storage.get(LAST_CHECK) {
            Ok(object) => object,
            Err(error) if error.is_not_found() => return Ok(LastChecks::default()),
            Err(error) => return Err(error),
        };
        let size = object.size()?;
        if size > SIZE_MAX {
            return Err(damaged(format!("{size} bytes")));
        }
        let stored: AsStored = serde_json::from_slice(&object.read(0, size as usize)?)
            .map_err(|error| damaged(error.to_string()))?;
        match checksum(&stored.checks)? == stored.crc32 {
            true => Ok(LastChecks(stored.checks)),
            false => Err(damaged("another checksum".into())),
        }
    }

    /// The last check that looked deepest; `None`: the archive was never checked.
    pub fn deepest(&self) -> Option<&CheckRecord> {
        self.0.first()
    }

    /// The last check of all; `None`: the archive was never checked.
    pub fn newest(&self) -> Option<&CheckRecord> {
        self.0.iter().max_by_key(|check| check.time)
    }

    /// The check that found something which no check has seen mended since.
    pub fn damage(&self) -> Option<&CheckRecord> {
        self.0.iter().find(|check| check.problems > 0)
    }

    fn with(mut self, check: CheckRecord) -> LastChecks {
        self.0.retain(|before| before.depth > check.depth);
        self.0.push(check);
        self
    }
}

/// Writes down that an archive was checked. It is durable when this returns.
///
/// # Errors
///
/// Storage that takes no objects.
pub fn note(
    storage: &dyn ArchiveStorage,
    manifest: &Manifest,
    depth: CheckDepth,
    problems: u64,
    began: SystemTime,
) -> Result<()> {
    let last_log = manifest.files.last().map(|file| file.name.clone());
    let check =
        CheckRecord { time: seconds(began), depth, logs: manifest.files.len() as u64, last_log, problems };
    // A record that is damaged says nothing, and is replaced.
    let before = match LastChecks::read(storage) {
        Err(error @ Error::Io { .. }) => return Err(error),
        before => before.unwrap_or_default(),
    };
    let LastChecks(checks) = before.with(check);
    let bytes = serde_json::to_vec(&AsStored { crc32: checksum(&checks)?, checks })?;
    storage.put(LAST_CHECK, &mut |out| out.write_all(&bytes).map_err(Error::writing))
}

fn checksum(checks: &[CheckRecord]) -> Result<u32> {
    Ok(crc32fast::hash(&serde_json::to_vec(checks)?))
}

fn damaged(found: String) -> Error {
    Error::damaged("record of the last check", found, "what a check wrote: check the archive again")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(time: u64, depth: CheckDepth, problems: u64) -> CheckRecord {
        CheckRecord { time, depth, logs: 3, last_log: None, problems }
    }

    #[test]
    fn what_a_deeper_check_found_stays_until_one_as_deep_finds_nothing() {
        let found = LastChecks::default().with(check(1, CheckDepth::Content, 2));
        let looked = found.with(check(2, CheckDepth::Presence, 0));
        assert_eq!(looked.damage().map(|check| check.time), Some(1));
        assert_eq!((looked.deepest().unwrap().time, looked.newest().unwrap().time), (1, 2));
        let hashed = looked.with(check(3, CheckDepth::Hash, 0));
        assert_eq!((hashed.0.len(), hashed.damage().is_some()), (2, true));
        let mended = hashed.with(check(4, CheckDepth::Content, 0));
        assert_eq!((mended.0.len(), mended.damage()), (1, None));
    }
}
