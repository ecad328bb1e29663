//! `--raw`: the files of a server's log, byte for byte, under their own names; with `--rewrite-db`, events
//! that name a database are written with its new name.
//!
//! Received bytes are written when nothing more is waiting, so that other programs can read the files under
//! `--stop-never`. Each file is synced when it is complete, and the last one when the run ends, for whatever
//! reason. A file whose bytes stop arriving ends after its last whole event.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use binlogz_binlog::MAGIC;
use binlogz_payload::Error as PayloadError;
use binlogz_print::met::MetRequests;
use binlogz_print::mysqlbinlog::Renamer;
use binlogz_source::{ConnectOptions, RemoteFile, RemoteFiles};

use super::options::DumpSettings;
use super::{FAILED, remote, unmet};
use crate::failure::{CommandFailure, Result};
use crate::output::create_printed;

/// Bytes that are written at a time: small events cost no system call each.
const WRITE_SIZE: usize = 1 << 20;

/// Copies the logs that were asked for; the exit code.
pub(super) fn run(options: &DumpSettings) -> Result<u8> {
    let connect = remote::connect(options)?;
    let mut met = MetRequests::default();
    let mut logs = options.logs.iter().enumerate();
    logs.try_for_each(|(number, log)| copy_log(options, &connect, log, number, &mut met))?;
    let unmet = met.unmet_renames(&renames(options));
    Ok(if unmet::tell(options, &unmet) { FAILED } else { 0 })
}

fn copy_log(
    options: &DumpSettings,
    connect: &ConnectOptions,
    log: &Path,
    number: usize,
    met: &mut MetRequests,
) -> Result<()> {
    let dump = remote::dump_options(options, log, number);
    let mut files = RemoteFiles::open(connect, dump).map_err(|error| remote::failure(&error, false))?;
    loop {
        let Some(name) = remote::next_file(&mut files, options, log)? else { return Ok(()) };
        let path = path(options.result_file.as_deref(), &name)?;
        let Some(mut file) = files.current_file() else { return Ok(()) };
        let renamer = renamer(options)?;
        met.add_names(RawFile::create(path, renamer)?.copy(&mut file)?);
    }
}

/// Where a file goes: the prefix, which may name a directory, and its name.
fn path(prefix: Option<&Path>, name: &[u8]) -> Result<PathBuf> {
    // It comes from the server.
    if name.is_empty() || name.contains(&b'/') || name.contains(&0) || name == b".." || name == b"." {
        return Err(CommandFailure::Line("Invalid log file name in rotate event.".into()));
    }
    let mut path = OsString::from(prefix.unwrap_or(Path::new("")));
    path.push(OsStr::from_bytes(name));
    Ok(path.into())
}

/// A file that is being written.
struct RawFile {
    path: PathBuf,
    file: BufWriter<File>,
    written: u64,
    /// Where the last whole event ends.
    whole: u64,
    /// Bytes of the server's file that came, and where the event begins there that they belong to.
    received: u64,
    event_begin: u64,
    /// `--rewrite-db`.
    renamer: Option<Renamer>,
}

/// Old and new names of databases.
fn renames(options: &DumpSettings) -> Vec<(Vec<u8>, Vec<u8>)> {
    options.rewrite_db.iter().map(|rule| (rule.from.clone(), rule.to.clone())).collect()
}

/// The renamer of databases, if some are to be renamed.
fn renamer(options: &DumpSettings) -> Result<Option<Renamer>> {
    if options.rewrite_db.is_empty() {
        return Ok(None);
    }
    Renamer::new(renames(options)).map(Some).map_err(|error| CommandFailure::Line(error.to_string()))
}

impl RawFile {
    fn create(path: PathBuf, renamer: Option<Renamer>) -> Result<Self> {
        let created = create_printed(&path);
        let file = created.map_err(|error| {
            CommandFailure::Line(format!("Could not create log file '{}': {error}", path.display()))
        })?;
        let file = BufWriter::with_capacity(WRITE_SIZE, file);
        Ok(RawFile { path, file, written: 0, whole: 0, received: 0, event_begin: 0, renamer })
    }

    /// Copies the received bytes; returns which names occurred.
    fn copy(mut self, from: &mut RemoteFile<'_>) -> Result<MetRequests> {
        let copied = self.copy_pieces(from);
        let finished = self.finish();
        copied.and(finished)?;
        Ok(self.renamer.map(|renamer| renamer.met()).unwrap_or_default())
    }

    fn copy_pieces(&mut self, from: &mut RemoteFile<'_>) -> Result<()> {
        loop {
            let piece = from.next_piece().map_err(|error| remote::failure(&error, true))?;
            let Some(piece) = piece else { return Ok(()) };
            let count = piece.bytes.len();
            let ends_event = piece.ends_event;
            // The magic is no event.
            let written = match &mut self.renamer {
                Some(renamer) if self.received >= MAGIC.len() as u64 => {
                    let mut out = CountedOutput { out: &mut self.file, written: &mut self.written };
                    match renamer.push(piece.bytes, ends_event, &mut out) {
                        Err(PayloadError::Io(error)) => Err(error),
                        Err(error) => return Err(self.unreadable(&error)),
                        Ok(()) => Ok(()),
                    }
                }
                _ => {
                    self.written += count as u64;
                    self.file.write_all(piece.bytes)
                }
            };
            self.received += count as u64;
            from.consume(count);
            if ends_event {
                self.whole = self.written;
                self.event_begin = self.received;
            }
            let written = match from.is_drained() {
                true => written.and_then(|()| self.file.flush()),
                false => written,
            };
            written.map_err(|error| self.trouble(&error))?;
        }
    }

    /// Makes it durable, without the beginning of an event that never came whole.
    fn finish(&mut self) -> Result<()> {
        let flushed = self.file.flush().and_then(|()| {
            let file = self.file.get_ref();
            if self.written > self.whole {
                file.set_len(self.whole)?;
            }
            sync(file)
        });
        flushed.map_err(|error| self.trouble(&error))
    }

    /// An event that could not be looked at.
    fn unreadable(&self, error: &PayloadError) -> CommandFailure {
        let name = self.path.display();
        let at = self.written;
        CommandFailure::Line(format!(
            "--rewrite-db: {name} at {at}, {} in the server's file: {error}",
            self.event_begin
        ))
    }

    fn trouble(&self, error: &io::Error) -> CommandFailure {
        CommandFailure::Line(format!("Could not write into log file '{}': {error}", self.path.display()))
    }
}

/// Counts the bytes written.
struct CountedOutput<'a> {
    out: &'a mut BufWriter<File>,
    written: &'a mut u64,
}

impl Write for CountedOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write_all(bytes)?;
        *self.written += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Outputs that can't be synced, such as pipes, are not an error.
fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_copied_log_is_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("binlog.000001");
        let file = RawFile::create(path.clone(), None).unwrap();
        let mode = file.file.get_ref().metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode & !0o600, mode & 0o600), (0, 0o600), "{mode:o}");
    }
}
