//! Begins a log from existing files: a backup of the source's binary logs, or its data directory.
//!
//! ```text
//! each file    every event read, its checksum compared │ copied │ synced │ named
//! at the end   the index, which makes them a log
//! ```
//!
//! The last file may be torn or still in use: it is cut as after a crash, and we ask the source for the rest. When the
//! source is reached, its file must begin as the stored one does.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use binlogz_atomic_file::{AtomicFile, ExistingFile};
use binlogz_binlog::{EventReader, MAGIC};
use binlogz_store::{LogNames, storage};

use crate::error::{Error, Result};

/// Copies the files, unless the log exists already. Returns the prefix of the files' names.
pub(crate) fn seed(directory: &Path, files: &[PathBuf]) -> Result<Option<String>> {
    if files.is_empty() {
        return Ok(None);
    }
    let (base, names) = names(files)?;
    let index = directory.join(format!("{base}.index"));
    if index.exists() {
        return Ok(Some(base));
    }
    let mut text = String::new();
    for (place, (name, file)) in names.iter().enumerate() {
        copy(file, &directory.join(name), place + 1 == names.len())?;
        text += &format!("./{name}\n");
    }
    binlogz_atomic_file::write(&index, storage::FILE_MODE, ExistingFile::Replace, text.as_bytes())
        .map_err(Error::io(format!("write {}", index.display())))?;
    Ok(Some(base))
}

/// The file names in order, without a gap.
fn names(files: &[PathBuf]) -> Result<(String, Vec<(String, &PathBuf)>)> {
    let unfit =
        |file: &Path, expected: &str| Error::Refused(format!("seed {}: expected {expected}", file.display()));
    let mut base: Option<LogNames> = None;
    let mut found = Vec::new();
    let mut base_name = String::new();
    for file in files {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let names = match &base {
            Some(names) => names,
            None => {
                base_name = name.rsplit_once('.').map(|(base, _)| base.to_owned()).unwrap_or_default();
                base.insert(LogNames::new(&base_name)?)
            }
        };
        let number =
            names.number(&name).ok_or_else(|| unfit(file, "files of one log, named as by the server"))?;
        found.push((number, name, file));
    }
    found.sort();
    for (one, next) in found.iter().zip(found.iter().skip(1)) {
        if next.0 != one.0.next() {
            return Err(unfit(next.2, "the file behind the one before it"));
        }
    }
    Ok((base_name, found.into_iter().map(|(_, name, file)| (name, file)).collect()))
}

fn copy(from: &Path, to: &Path, is_last: bool) -> Result<()> {
    let reading = || format!("seed {}", from.display());
    let input = File::open(from).map_err(Error::io(reading()))?;
    let writing = || Error::io(format!("write {}", to.display()));
    let mut out = BufWriter::new(AtomicFile::begin(to, storage::FILE_MODE).map_err(writing())?);
    out.write_all(&MAGIC).map_err(writing())?;
    let mut events = EventReader::new(BufReader::new(input));
    loop {
        let error = match events.next_event() {
            Ok(Some((_, frame))) => {
                out.write_all(frame.bytes()).map_err(writing())?;
                continue;
            }
            Ok(None) => break,
            Err(error) => error,
        };
        // What the last file lost comes from the source.
        if !(is_last && events.in_use() && error.is_truncation()) {
            return Err(Error::Refused(format!("seed {} {error}", from.display())));
        }
        break;
    }
    let out = out.into_inner().map_err(|error| writing()(error.into_error()))?;
    // A file left by an earlier attempt without an index is no log.
    out.finish(ExistingFile::Replace).map_err(writing())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn copied_files_have_the_modes_of_the_stores_own() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("binlog.000001");
        fs::write(&from, fs::read(binlogz_testkit::corpus::path("binlog.000001")).unwrap()).unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o644)).unwrap();
        let to = folder.path().join("kept");
        fs::create_dir(&to).unwrap();
        assert_eq!(seed(&to, &[from]).unwrap().as_deref(), Some("binlog"));
        for name in ["binlog.000001", "binlog.index"] {
            let mode = fs::metadata(to.join(name)).unwrap().permissions().mode() & 0o7777;
            assert_eq!((mode & !0o640, mode & 0o600), (0, 0o600), "{name}: {mode:o}");
        }
    }
}
