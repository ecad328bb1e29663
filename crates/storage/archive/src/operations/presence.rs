//! Checks that the objects of logs are there, before anything relies on them: a manifest alone proves nothing. Takes
//! entries of the manifest, and says for each log what is wrong with its objects, as far as was looked. [`super::check`]
//! looks at everything.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::format::ends::read_end;
use crate::format::version::VERSION_HEADERS;
use crate::format::{FileEntry, Index};
use crate::operations::digest::of_object;
use crate::operations::restore;
use crate::storage::{ArchiveStorage, ObjectName, name_tells};

/// How much of an archive is looked at to say that it is whole; a later one includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckDepth {
    /// Each object is there with its whole size, and the index at its end has all blocks of its logs. Blocks are not read.
    Presence,
    /// All bytes of each object are read and compared with the SHA-256 that its name tells.
    Hash,
    /// Every block is unpacked, and every log compared with its SHA-256.
    Content,
}

impl CheckDepth {
    /// The name of the depth, in text and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            CheckDepth::Presence => "presence",
            CheckDepth::Hash => "hash",
            CheckDepth::Content => "content",
        }
    }
}

/// Looks at the objects of logs, at each object once.
pub struct Inspector<'s> {
    storage: &'s dyn ArchiveStorage,
    depth: CheckDepth,
    /// Indexes, with the versions of their objects.
    seen: HashMap<ObjectName, Result<(Index, u32), String>>,
}

impl std::fmt::Debug for Inspector<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspector").field("depth", &self.depth).finish_non_exhaustive()
    }
}

impl<'s> Inspector<'s> {
    /// Looks as deep as this; [`CheckDepth::Content`] is what [`super::check::check`] does, and counts as [`CheckDepth::Hash`] here.
    pub fn new(storage: &'s dyn ArchiveStorage, depth: CheckDepth) -> Self {
        Inspector { storage, depth, seen: HashMap::new() }
    }

    pub(crate) fn depth(&mut self, depth: CheckDepth) {
        self.depth = depth;
        self.seen.clear();
    }

    /// The problem with the objects of a log; `None`: none, as far as was looked.
    ///
    /// # Errors
    ///
    /// Storage that can't be asked: then nothing is known.
    pub fn problem(&mut self, file: &FileEntry) -> Result<Option<String>> {
        let mut packed_size = 0u64;
        let mut is_told = true;
        for object in &file.objects {
            if !self.seen.contains_key(object) {
                let looked = self.look(object)?;
                self.seen.insert(object.clone(), looked);
            }
            match self.seen.get(object) {
                Some(Ok((index, version))) => {
                    // Before, it was told otherwise.
                    is_told &= *version >= VERSION_HEADERS;
                    let Some(log) = index.log(&file.name) else {
                        return Ok(Some(format!("{object} does not hold it")));
                    };
                    let blocks = index.blocks.iter().filter(|block| block.log == log);
                    packed_size =
                        blocks.fold(packed_size, |sum, block| sum.saturating_add(block.packed_size));
                }
                Some(Err(why)) => return Ok(Some(why.clone())),
                None => {}
            }
        }
        let expected = file.packed_size;
        Ok((is_told && packed_size != expected)
            .then(|| format!("its objects hold {packed_size} bytes of it, expected {expected}")))
    }

    /// An object's index, or what is wrong with the object.
    fn look(&self, object: &ObjectName) -> Result<Result<(Index, u32), String>> {
        let index = self.storage.get(object).and_then(|bytes| {
            let (index, version) = read_end(bytes.as_ref())?;
            let size = bytes.size()?;
            let is_within = |at: u64, packed: u64| at.checked_add(packed).is_some_and(|end| end <= size);
            match index.blocks.iter().all(|block| is_within(block.at, block.packed_size)) {
                true => Ok((index, version)),
                false => Err(Error::unexpected("size", size, "room for all its blocks")),
            }
        });
        let looked = index.and_then(|index| {
            if self.depth >= CheckDepth::Hash {
                let (sha256, _) = of_object(self.storage, object)?;
                match name_tells(object, &sha256) {
                    Some(true) => {}
                    Some(false) => return Err(Error::unexpected("SHA-256", sha256, "that in its name")),
                    // Its blocks have checksums of their own.
                    None => restore::open(self.storage, object)?.read_all()?,
                }
            }
            Ok(index)
        });
        match looked {
            Ok(index) => Ok(Ok(index)),
            Err(error) if error.is_trouble() => Err(error),
            Err(error) if error.is_of_storage() => Ok(Err(format!("{object} is missing"))),
            Err(error) => Ok(Err(format!("{object} is damaged: {error}"))),
        }
    }
}

/// Compares these logs with a listing of the objects: the first log whose objects are not all there, or too small for
/// their contents, and why; `None`: there is none. It takes one request for a thousand objects, and reads none of them.
///
/// # Errors
///
/// Storage that can't be listed.
pub fn missing<'f>(
    storage: &dyn ArchiveStorage,
    files: impl IntoIterator<Item = &'f FileEntry>,
) -> Result<Option<(&'f FileEntry, String)>> {
    let stored = storage.stored()?;
    let sizes: HashMap<&str, u64> = stored.iter().map(|object| (object.name.as_str(), object.size)).collect();
    // Of a log in several objects it isn't told how much is in each.
    let mut held: HashMap<&str, u64> = HashMap::new();
    for file in files {
        for object in &file.objects {
            let Some(size) = sizes.get(object.as_str()) else {
                return Ok(Some((file, format!("{object} is missing"))));
            };
            let held = held.entry(object.as_str()).or_default();
            *held = held.saturating_add(if file.objects.len() == 1 { file.packed_size } else { 0 });
            if size < held {
                return Ok(Some((file, format!("{object} has {size} bytes, expected at least {held}"))));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deeper_check_includes_those_before_it() {
        assert!(CheckDepth::Presence < CheckDepth::Hash && CheckDepth::Hash < CheckDepth::Content);
        for depth in [CheckDepth::Presence, CheckDepth::Hash, CheckDepth::Content] {
            assert_eq!(serde_json::to_string(&depth).unwrap(), format!("\"{}\"", depth.name()));
        }
    }
}
