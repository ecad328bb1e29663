//! The relay's files, read without the relay's own code: a reader that shared its mistakes would not see them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use binlogz_binlog::gtid::{Gtid, GtidSet, ServerUuid, Tsid, UUID_SIZE};

pub(crate) const MAGIC_SIZE: usize = 4;
const HEADER_SIZE: usize = 19;
const EVENT_TYPE_AT: usize = 4;
const EVENT_SIZE_AT: usize = 9;
/// Where the lowest byte of the format description's flags stands, whose lowest bit says that a file is in use.
pub(crate) const FLAGS_AT: usize = MAGIC_SIZE + 17;

const QUERY: u8 = 2;
const STOP: u8 = 3;
const ROTATE: u8 = 4;
const XID: u8 = 16;
const GTID: u8 = 33;
const PAYLOAD: u8 = 40;

/// The files that the index names, in its order.
pub(crate) fn files(kept: &Path) -> Vec<PathBuf> {
    let index = fs::read_to_string(kept.join("binlog.index")).unwrap_or_default();
    index.lines().map(|line| kept.join(line.trim_start_matches("./"))).collect()
}

/// The GTIDs of the transactions that stand whole in these files. A file whose framing is broken counts up to there.
pub(crate) fn gtids(files: &[PathBuf]) -> GtidSet {
    let mut all = GtidSet::default();
    for file in files {
        whole_transactions(&fs::read(file).unwrap_or_default(), &mut all);
    }
    all
}

fn whole_transactions(log: &[u8], all: &mut GtidSet) {
    let mut rest = log.get(MAGIC_SIZE..).unwrap_or_default();
    let mut open = None;
    let mut last = 0;
    while let Some(size) = rest.get(EVENT_SIZE_AT..).and_then(|size| size.first_chunk()) {
        let size = u32::from_le_bytes(*size) as usize;
        let Some(event) = rest.get(..size).filter(|_| size >= HEADER_SIZE) else { break };
        rest = &rest[size..];
        last = event[EVENT_TYPE_AT];
        if last == GTID
            && let Some(before) = std::mem::replace(&mut open, gtid(event))
        {
            all.add(before);
        }
    }
    if let Some(gtid) = open.filter(|_| [QUERY, STOP, ROTATE, XID, PAYLOAD].contains(&last)) {
        all.add(gtid);
    }
}

/// One flags byte, the uuid, the number.
fn gtid(event: &[u8]) -> Option<Gtid> {
    let body = event.get(HEADER_SIZE + 1..)?;
    let uuid = *body.first_chunk()?;
    let number = u64::from_le_bytes(*body.get(UUID_SIZE..)?.first_chunk()?);
    Gtid::new(Tsid::from(ServerUuid(uuid)), number).ok()
}

/// Files with their bytes, to see later that none was cut.
pub(crate) struct Snapshot(BTreeMap<PathBuf, Vec<u8>>);

impl Snapshot {
    pub(crate) fn of(file: &Path) -> Snapshot {
        Snapshot(BTreeMap::from([(file.to_owned(), fs::read(file).unwrap())]))
    }

    /// The first file whose bytes stand nowhere below the folder any more, under whatever name.
    pub(crate) fn lost_from(&self, folder: &Path) -> Option<&Path> {
        let mut kept = Vec::new();
        all_files(folder, &mut kept);
        let stands = |bytes: &[u8]| {
            kept.iter().any(|path| {
                let now = fs::read(path).unwrap_or_default();
                now.len() >= bytes.len()
                    && now[..FLAGS_AT] == bytes[..FLAGS_AT]
                    && now[FLAGS_AT + 1..bytes.len()] == bytes[FLAGS_AT + 1..]
            })
        };
        self.0.iter().find(|(_, bytes)| bytes.len() > FLAGS_AT && !stands(bytes)).map(|(path, _)| &**path)
    }
}

fn all_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => all_files(&path, files),
            path => files.push(path),
        }
    }
}

/// A bit that was flipped in a stored file.
#[derive(Debug)]
pub(crate) struct Flip {
    pub(crate) file: PathBuf,
    pub(crate) offset: usize,
    original: u8,
    /// The bytes around the flipped bit: another file at the same place has other bytes.
    around: Vec<u8>,
}

impl Flip {
    const AROUND: usize = 40;

    fn range(offset: usize, size: usize) -> std::ops::Range<usize> {
        offset.saturating_sub(Self::AROUND)..(offset + Self::AROUND).min(size)
    }

    /// Flips it, in place: a process that has the file open sees it.
    pub(crate) fn bit(file: &Path, offset: usize, bit: u32) -> Flip {
        let mut bytes = fs::read(file).unwrap();
        let original = bytes[offset];
        bytes[offset] ^= 1 << bit;
        write_byte(file, offset, bytes[offset]);
        let around = bytes[Self::range(offset, bytes.len())].to_vec();
        Flip { file: file.to_owned(), offset, original, around }
    }

    /// Whether the file still is damaged there.
    pub(crate) fn is_there(&self) -> bool {
        let bytes = fs::read(&self.file).unwrap_or_default();
        bytes.get(Self::range(self.offset, bytes.len())) == Some(&self.around[..])
    }

    /// As a backup would bring it back, where it still is damaged. The relay must not run.
    pub(crate) fn undo(&self) -> bool {
        let is_damaged = self.is_there();
        if is_damaged {
            write_byte(&self.file, self.offset, self.original);
        }
        is_damaged
    }
}

fn write_byte(file: &Path, offset: usize, byte: u8) {
    use std::os::unix::fs::FileExt;
    fs::File::options().write(true).open(file).unwrap().write_all_at(&[byte], offset as u64).unwrap();
}
