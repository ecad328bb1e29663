//! Parts of logs that several processes read at the same time: whole logs, or of an archived one the blocks that begin in a
//! range of its bytes. A block belongs to the part in which it begins, so who divides a log need not know where that is.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use binlogz_archive::input::{self, ArchivedLog};
use binlogz_archive::part::BlockRun;
use binlogz_archive::storage;
use binlogz_flow::Input;
use pyo3::prelude::*;

use crate::broken;
use crate::interrupt::interruptible;
use crate::selection::{BlockSelection, plain};

/// A smaller part of a log costs more to hand out than to read.
const PART_SIZE_MIN: u64 = 32 << 10;

/// A part as Python is told of it: the log's path; bytes of the part; its blocks: where the first and the one after the last begin, and
/// how the log is packed; the log's GTIDs, and those of the logs before it, where an archive tells them.
type ToldPart = (String, u64, Option<(u64, u64, u32)>, Option<ToldGtids>);
type ToldGtids = (String, String);
/// A part as Python asks for it: the log's path, its blocks, and the bytes of the log in which the events begin that are read.
pub(crate) type AskedPart = (PathBuf, Option<(u64, u64, u32)>, Option<(u64, u64)>);

/// A part of a log.
#[derive(Debug)]
pub(crate) struct LogPart {
    pub(crate) path: PathBuf,
    /// `None`: the whole log.
    blocks: Option<ArchivedBlocks>,
    /// The bytes of the log in which the events with rows begin that are read; `None`: all.
    pub(crate) offsets: Option<Range<u64>>,
}

/// Blocks of an archived log.
#[derive(Debug)]
struct ArchivedBlocks {
    /// Where they begin.
    starts: Range<u64>,
    /// How the log was packed when it was divided. After a merge blocks begin elsewhere: then no part fits another.
    packing: u32,
}

impl LogPart {
    /// A whole log.
    pub(crate) fn whole(path: PathBuf) -> Self {
        LogPart { path, blocks: None, offsets: None }
    }

    pub(crate) fn asked((path, blocks, offsets): AskedPart) -> Self {
        let blocks = blocks.map(|(start, end, packing)| ArchivedBlocks { starts: start..end, packing });
        LogPart { path, blocks, offsets: offsets.map(|(start, end)| start..end) }
    }

    /// Opens it without the blocks that can't have what is wanted.
    pub(crate) fn open(&self, wanted: Option<&BlockSelection>) -> io::Result<Input> {
        self.open_once(wanted).or_else(|_| {
            // A process that reads parts lives long: the archive may have changed since it was opened.
            self.path.parent().into_iter().for_each(input::forget);
            self.open_once(wanted)
        })
    }

    fn open_once(&self, wanted: Option<&BlockSelection>) -> io::Result<Input> {
        let Some(archived) = input::find(&self.path)? else {
            return match self.blocks {
                Some(_) => Err(io::Error::other("is in no archive any more: ask again")),
                None => Input::open(&self.path),
            };
        };
        if let Some(blocks) = &self.blocks
            && (archived.packing() != blocks.packing || !archived.divides()?)
        {
            return Err(io::Error::other("was packed anew since it was divided: ask again"));
        }
        match (&self.blocks, wanted) {
            (None, None) => Ok(archived.input()),
            _ => archived
                .input_of(&mut |run| self.has(run) && wanted.is_none_or(|wanted| wanted.may_be_in(run))),
        }
    }

    /// Whether these blocks are its own.
    fn has(&self, run: &BlockRun<'_>) -> bool {
        self.blocks.as_ref().is_none_or(|blocks| blocks.starts.contains(&run.start()))
    }
}

/// The logs that paths name, divided into parts of about so many bytes; those of an archive as they are now.
#[pyfunction]
pub(crate) fn divide(py: Python<'_>, paths: Vec<PathBuf>, part_size: u64) -> PyResult<Vec<ToldPart>> {
    interruptible(py, move |interrupted| {
        paths.iter().for_each(|path| input::forget(path));
        let logs = input::expand(paths).map_err(|error| error.to_string())?;
        let mut parts = Vec::new();
        for path in logs {
            interrupted.check().map_err(|error| error.to_string())?;
            let divided = divide_log(&path, part_size.max(PART_SIZE_MIN));
            parts.extend(divided.map_err(|error| format!("{}: {error}", path.display()))?);
        }
        Ok::<_, String>(parts)
    })?
    .map_err(broken)
}

fn told_gtids(archived: &ArchivedLog) -> io::Result<Option<ToldGtids>> {
    let facts = archived.facts(String::new())?;
    Ok(facts.gtids.zip(facts.previous).map(|(own, before)| (plain(&own), plain(&before))))
}

/// The whole path of a log, as text: Python's own paths make one slash of two, also those of a bucket's place.
pub(crate) fn whole_path(path: &Path) -> io::Result<String> {
    let whole = match storage::in_object_storage(path) {
        Some(_) => path.to_owned(),
        None => std::path::absolute(path)?,
    };
    let no_text = |_| io::Error::other("the path is no UTF-8, so other processes can't be told of it");
    whole.into_os_string().into_string().map_err(no_text)
}

fn divide_log(path: &Path, part_size: u64) -> io::Result<Vec<ToldPart>> {
    let whole = whole_path(path)?;
    let Some(archived) = input::find(path)? else {
        return Ok(vec![(whole, path.metadata()?.len(), None, None)]);
    };
    let gtids = told_gtids(&archived)?;
    let size = archived.size();
    if size <= part_size || !archived.divides()? {
        return Ok(vec![(whole, size, None, gtids)]);
    }
    let packing = archived.packing();
    // A remainder of less than half a part joins the last one.
    let count = ((size.saturating_add(part_size / 2)) / part_size).max(1);
    let part = |number: u64| {
        let start = number * part_size;
        // The log may be longer as it is packed, without payloads.
        let end = if number + 1 == count { u64::MAX } else { start + part_size };
        (whole.clone(), end.min(size).saturating_sub(start), Some((start, end, packing)), gtids.clone())
    };
    Ok((0..count).map(part).collect())
}
