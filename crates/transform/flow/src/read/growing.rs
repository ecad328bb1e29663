//! A log that a server still writes, read as it grows; it ends once there is a next one.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use binlogz_binlog::reader::not_a_log;
use binlogz_binlog::{MAGIC, MAGIC_ENCRYPTED};
use binlogz_payload::Error as PayloadError;

use super::input::Live;
use crate::error::Error;

/// How often a log that has no more is looked at: no one waits much longer for a change.
const POLL: Duration = Duration::from_millis(50);

/// A log that a server still writes, read as it grows. It ends once there is a next log.
#[derive(Debug)]
pub struct GrowingLog {
    file: File,
    path: PathBuf,
    offset: u64,
}

impl GrowingLog {
    /// Opens a log. A file that begins as none would never become one.
    ///
    /// # Errors
    ///
    /// A file that can't be read, or that is no log.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(PayloadError::Io)?;
        let mut front = [0; MAGIC.len()];
        let count = file.read_at(&mut front, 0).map_err(PayloadError::Io)?;
        let front = front.get(..count).unwrap_or_default();
        if !MAGIC.starts_with(front) && !MAGIC_ENCRYPTED.starts_with(front) {
            return Err(not_a_log(front).into());
        }
        Ok(GrowingLog { file, path: path.to_owned(), offset: 0 })
    }

    /// A log that is shorter than before is another one.
    fn size(&self) -> io::Result<u64> {
        let size = self.file.metadata()?.len();
        match size < self.offset {
            true => {
                Err(io::Error::other(format!("shrank to {size} bytes, of which {} were read", self.offset)))
            }
            false => Ok(size),
        }
    }
}

/// The log after this one, if it is there: servers number them.
pub fn next_log(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (base, number) = name.rsplit_once('.')?;
    let next = number.parse::<u64>().ok()?.checked_add(1)?;
    let width = number.len();
    let next = path.with_file_name(format!("{base}.{next:0width$}"));
    next.is_file().then_some(next)
}

impl Read for GrowingLog {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // A log has its last byte before there is a next one.
            let has_next = next_log(&self.path).is_some();
            let size = self.file.read(buffer)?;
            if size > 0 || has_next {
                self.offset += size as u64;
                return Ok(size);
            }
            self.size()?;
            thread::sleep(POLL);
        }
    }
}

impl Live for GrowingLog {
    fn is_drained(&self) -> bool {
        self.size().map_or(true, |size| size <= self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_numbered() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert_eq!(next_log(&path("binlog.000009")), None);
        std::fs::write(path("binlog.000010"), b"").unwrap();
        assert_eq!(next_log(&path("binlog.000009")), Some(path("binlog.000010")));
        for other in ["binlog", "binlog.x", "binlog.999999"] {
            assert_eq!(next_log(&path(other)), None, "{other}");
        }
    }

    #[test]
    fn bytes_come_as_they_are_written_until_there_is_a_next_log() {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.000001");
        let mut writer = File::create(&path).unwrap();
        writer.write_all(&MAGIC).unwrap();
        let Ok(mut log) = GrowingLog::open(&path) else { panic!("a log is opened") };
        let mut buffer = [0; 16];
        assert_eq!(log.read(&mut buffer).unwrap(), MAGIC.len());
        assert!(log.is_drained());
        let reader = thread::spawn(move || {
            let mut rest = Vec::new();
            log.read_to_end(&mut rest).unwrap();
            rest
        });
        thread::sleep(2 * POLL);
        writer.write_all(b"two").unwrap();
        thread::sleep(2 * POLL);
        writer.write_all(b"three").unwrap();
        File::create(folder.path().join("b.000002")).unwrap();
        assert_eq!(reader.join().unwrap(), b"twothree");
    }
}
