//! Archives as input: naming an archive means all its logs, and `ARCHIVE/LOG` means one of them. Every
//! command that reads logs gets them here: [`expand`] replaces archives by such names, and [`find`] opens the
//! log that has one.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::storage::{self, Storage};
use binlogz_archive::{Error, restore};
use binlogz_binlog::gtid::GtidSet;
use binlogz_flow::Input;

use crate::failure::{Failure, Result};

/// The number of pieces that may be restored before they are read.
const PIECE_SIZE: usize = 1 << 20;
const PIECES_MAX: usize = 4;
/// Blocks unpacked at once: each takes up to 200 MiB.
const WORKERS: usize = 2;

/// A log in an archive.
pub(crate) struct Archived {
    storage: Box<dyn Storage>,
    entry: FileEntry,
}

/// Replaces archives by their logs, in the order they were archived; `-` and files stay.
pub(crate) fn expand(paths: impl IntoIterator<Item = PathBuf>) -> Result<Vec<PathBuf>> {
    let mut expanded = Vec::new();
    for path in paths {
        let archive = if may_be_archive(&path) { manifest(&path)? } else { None };
        match archive {
            Some((_, manifest)) => expanded.extend(manifest.files.iter().map(|file| path.join(&file.name))),
            None => expanded.push(path),
        }
    }
    Ok(expanded)
}

/// The archived log that a path names; `None`: it names none.
pub(crate) fn find(path: &Path) -> io::Result<Option<Archived>> {
    let (Some(archive), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    if !may_be_archive(archive) || (storage::in_object_storage(path).is_none() && path.exists()) {
        return Ok(None);
    }
    let found = open(archive).map_err(io::Error::other)?;
    let Some((storage, manifest)) = found else {
        return match storage::in_object_storage(path) {
            Some(_) => Err(io::Error::new(io::ErrorKind::NotFound, "is neither an archive nor a log in one")),
            None => Ok(None),
        };
    };
    match manifest.files.into_iter().find(|file| *file.name == *name) {
        Some(entry) => Ok(Some(Archived { storage, entry })),
        None => Err(io::Error::new(io::ErrorKind::NotFound, "is not in the archive")),
    }
}

fn may_be_archive(path: &Path) -> bool {
    storage::in_object_storage(path).is_some() || path.join("manifest.json").is_file()
}

/// An existing archive.
type Opened = (Box<dyn Storage>, Manifest);

fn manifest(path: &Path) -> Result<Option<Opened>> {
    open(path).map_err(|error| Failure::of(&path.display(), error))
}

fn open(path: &Path) -> Result<Option<Opened>, Error> {
    let storage = storage::at(path)?;
    let manifest = Manifest::read(&storage)?;
    Ok(manifest.map(|manifest| (storage, manifest)))
}

impl Archived {
    /// Bytes of the log.
    pub(crate) fn size(&self) -> u64 {
        self.entry.size
    }

    /// Its transactions, as its archive's manifest has them.
    pub(crate) fn gtids(&self) -> Option<GtidSet> {
        self.entry.gtid_set().ok()
    }

    /// The log as it was, restored while it is read.
    pub(crate) fn input(self) -> Input {
        let (sender, receiver) = sync_channel(PIECES_MAX);
        thread::spawn(move || {
            let mut out = Pieces { sender, piece: Vec::new() };
            let restored = restore::whole(&self.storage, &self.entry, &mut out, WORKERS)
                .and_then(|()| out.flush().map_err(Error::writing));
            // The reader may have gone.
            let _ = out
                .sender
                .send(restored.map_or_else(|error| Piece::Failed(error.to_string()), |()| Piece::End));
        });
        Input::Stream(Box::new(Restored { receiver, piece: io::Cursor::default(), ended: false }))
    }
}

enum Piece {
    Bytes(Vec<u8>),
    Failed(String),
    End,
}

/// Passes written bytes on to the reader.
struct Pieces {
    sender: SyncSender<Piece>,
    piece: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_SIZE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        self.sender.send(Piece::Bytes(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

struct Restored {
    receiver: Receiver<Piece>,
    piece: io::Cursor<Vec<u8>>,
    ended: bool,
}

impl Read for Restored {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.piece.read(buffer)?;
            if count > 0 || self.ended || buffer.is_empty() {
                return Ok(count);
            }
            match self.receiver.recv() {
                Ok(Piece::Bytes(bytes)) => self.piece = io::Cursor::new(bytes),
                Ok(Piece::End) => self.ended = true,
                Ok(Piece::Failed(problem)) => return Err(io::Error::other(problem)),
                Err(_) => return Err(io::Error::other("restoring it ended half-way")),
            }
        }
    }
}
