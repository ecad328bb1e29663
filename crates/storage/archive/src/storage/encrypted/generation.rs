//! The generation of an encrypted manifest: how often it was replaced. It only grows, so we notice an older manifest that
//! somebody puts back in place of a newer one. Such a manifest is authentic, but would bring removed logs back, or hide
//! archived ones.
//!
//! ```text
//! objects/manifest-generation   the generation that was stored last, encrypted as an object: for every reader of the archive
//! KEYFILE.generation-HASH       the highest generation seen, beside the owner's key, where the key comes from a file: one for each
//!                               archive, told apart by its place and its data key
//! ```
//!
//! Limits. If the whole archive is put back, manifest and generation, only the count beside the key shows it. That needs
//! a key file in a folder that may be written. Without one, or on a machine that has not seen the newer manifest, an
//! archive that was put back as a whole can't be told from the archive as it was then. The last replacement alone is not
//! noticed if its run was killed before it stored the generation.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use binlogz_atomic_file::{AtomicFile, ExistingFile};

use super::chunks::{DecryptedObject, Sealer};
use super::keys::{DataKey, hex};
use super::read_whole;
use crate::error::{Error, Result};
use crate::storage::ArchiveStorage;

/// The object's name. It is no segment, so `prune` leaves it alone.
const OBJECT: &str = "manifest-generation";
/// Bytes of a number in decimal digits, and a line's end.
const SIZE_MAX: u64 = 32;
/// Authenticated with what tells archives apart.
const PURPOSE: &[u8] = b"binlogz archive place";
/// The mode of the record beside the key.
const MODE: u32 = 0o600;

/// Where generations of one archive are written down.
pub(super) struct Generations<'a> {
    pub(super) inner: &'a dyn ArchiveStorage,
    pub(super) data_key: &'a DataKey,
    /// The record beside the key.
    pub(super) beside_key: Option<PathBuf>,
}

/// The file beside this key in which the highest generation of the archive at this place is kept.
pub(super) fn beside(key_file: &Path, data_key: &DataKey, place: &str) -> Result<PathBuf> {
    let told_apart: [u8; 8] = data_key.derived(place.as_bytes(), PURPOSE)?;
    let mut name = key_file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".generation-{}", hex(&told_apart)));
    Ok(key_file.with_file_name(name))
}

impl Generations<'_> {
    /// Refuses a generation before the last one that is known.
    pub(super) fn check(&self, generation: u64) -> Result<()> {
        for (known, of) in [(self.beside_key()?, &self.beside_key), (self.in_archive()?, &None)] {
            if generation < known {
                let remedy = match of {
                    Some(path) => format!("remove {}", path.display()),
                    None => format!("delete the archive's object {OBJECT}"),
                };
                return Err(Error::unexpected(
                    "generation of the encrypted manifest",
                    format_args!("{generation}: an older manifest was put back"),
                    format_args!(
                        "{known} or later, which was there before; if it was put back on purpose, {remedy}"
                    ),
                ));
            }
        }
        self.note_beside_key(generation);
        Ok(())
    }

    /// Writes down the generation that was stored.
    pub(super) fn note(&self, generation: u64) -> Result<()> {
        self.note_beside_key(generation);
        self.inner.put(OBJECT, &mut |out| {
            let mut sealer = Sealer::new(self.data_key, OBJECT, out)?;
            writeln!(sealer, "{generation}").map_err(Error::writing)?;
            sealer.finish()
        })
    }

    fn in_archive(&self) -> Result<u64> {
        let object = match self.inner.get(OBJECT) {
            Ok(object) => object,
            Err(error) if error.is_not_found() => return Ok(0),
            Err(error) => return Err(error),
        };
        let opened = DecryptedObject::new(self.data_key, OBJECT, object)?;
        let text = if opened.plain_bytes() > SIZE_MAX { Vec::new() } else { read_whole(&opened)? };
        number(&text).ok_or_else(|| Error::damaged("object manifest-generation", "no number", "one"))
    }

    fn beside_key(&self) -> Result<u64> {
        let Some(path) = &self.beside_key else { return Ok(0) };
        match fs::read(path) {
            Ok(text) => number(&text).ok_or_else(|| {
                Error::unexpected(path.display().to_string(), "no number", "the generation of a manifest")
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(Error::io(format!("read {}", path.display()))(error)),
        }
    }

    /// A folder that can't be written keeps no record: the one in the archive is left.
    fn note_beside_key(&self, generation: u64) {
        let Some(path) = &self.beside_key else { return };
        if self.beside_key().is_ok_and(|known| known >= generation) {
            return;
        }
        let _ = AtomicFile::begin(path, MODE).and_then(|mut file| {
            writeln!(file, "{generation}")?;
            file.finish(ExistingFile::Replace)
        });
    }
}

fn number(text: &[u8]) -> Option<u64> {
    str::from_utf8(text).ok()?.strip_suffix('\n')?.parse().ok()
}
