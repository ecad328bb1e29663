//! An archive whose storage can't read it: bytes are encrypted before they are stored, and decrypted when they are read.
//! Any other storage can be beneath. [`chunks`] has the bytes of an object, [`header`] those before the manifest,
//! [`keys`] the keys.
//!
//! The manifest says whether an archive is encrypted. A plain archive is read and written unchanged, so every archive is
//! opened through this storage.
//!
//! Names, sizes and times of objects stay visible. [`generation`] notices an older manifest that was put back.

mod chunks;
mod generation;
mod header;
mod keys;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

pub use keys::{KEY_FILE, KeySource};

use self::chunks::{DecryptedObject, Sealer, plain_size};
use self::generation::Generations;
use self::header::{Header, is_encrypted};
use self::keys::{DataKey, OwnersKey};
use crate::error::{Error, Result};
use crate::storage::{ArchiveStorage, COPY, ListedObject, ManifestBytes, ReadRange};

/// A storage, and the key of the objects in it.
pub struct EncryptedStorage<S> {
    inner: S,
    source: Option<KeySource>,
    /// Where the archive is, if that is known.
    place: Option<String>,
    state: Mutex<ArchiveFacts>,
}

/// Everything learnt about an archive so far.
#[derive(Default)]
struct ArchiveFacts {
    owner: Option<Arc<OwnersKey>>,
    known: ArchiveEncryption,
    /// The manifest that was read or written last, plain and as it is stored: it is replaced under the condition that it
    /// is still there.
    read: Option<(ManifestBytes, ManifestBytes)>,
    /// Whether objects were stored under a data key that no manifest has yet.
    stored: bool,
}

/// Whether an archive is encrypted.
#[derive(Default, Clone)]
enum ArchiveEncryption {
    #[default]
    Nothing,
    Plain,
    /// The archive is encrypted: its manifest's header, and the data key.
    Key(Header, DataKey),
    /// The archive is new, and this run's.
    New(Header, DataKey),
}

impl<S: ArchiveStorage> EncryptedStorage<S> {
    /// The archive in `inner`; a new one is encrypted if there is a key.
    pub fn new(inner: S, source: Option<KeySource>) -> Self {
        EncryptedStorage { inner, source, place: None, state: Mutex::default() }
    }

    /// Names the place of the archive, so that the count of its manifests is kept beside the key, too.
    #[must_use]
    pub fn at(self, place: impl Into<String>) -> Self {
        EncryptedStorage { place: Some(place.into()), ..self }
    }

    /// Access to the generations of the manifest that were noted: in storage, and beside a key that is in a file.
    fn generations<'a>(&'a self, data_key: &'a DataKey) -> Result<Generations<'a>> {
        let beside_key: Option<PathBuf> = match (&self.source, &self.place) {
            (Some(KeySource::File(path)), Some(place)) => Some(generation::beside(path, data_key, place)?),
            _ => None,
        };
        Ok(Generations { inner: &self.inner, data_key, beside_key })
    }

    /// Has another owner's key open the archive from now on, and the former one no longer. Objects stay as they are. A
    /// reader that has the former key and an earlier copy of the manifest can still read.
    ///
    /// # Errors
    ///
    /// An archive that is not encrypted; one of the keys can't be had; another run changed the manifest meanwhile.
    pub fn change_key(&self, to: &KeySource) -> Result<()> {
        let Some(before) = self.inner.manifest()? else {
            return Err(Error::unexpected("manifest", "none", "an encrypted archive"));
        };
        let plain = self.open(&before)?;
        let ArchiveEncryption::Key(former, data_key) = self.state.lock().known.clone() else {
            return Err(Error::unexpected("archive", "not encrypted", "an encrypted one"));
        };
        let header = Header::new(&to.key()?, &data_key)?.after(former.generation());
        let anew = Arc::new(sealed(&header, &data_key, &plain)?);
        self.inner.put_manifest(&anew, Some(&before))?;
        self.generations(&data_key)?.note(header.generation())?;
        self.put_copy(&header, &data_key, &plain)?;
        let mut state = self.state.lock();
        state.owner = None;
        state.known = ArchiveEncryption::Nothing;
        state.read = None;
        Ok(())
    }

    /// The owner's key; `None`: none was given.
    fn owner(&self) -> Result<Option<Arc<OwnersKey>>> {
        let mut state = self.state.lock();
        if state.owner.is_none()
            && let Some(source) = &self.source
        {
            state.owner = Some(Arc::new(source.key()?));
        }
        Ok(state.owner.clone())
    }

    /// The key that encrypts the archive, or will once it is there; `None`: it isn't encrypted.
    fn key(&self) -> Result<Option<(Header, DataKey)>> {
        let known = self.state.lock().known.clone();
        match known {
            ArchiveEncryption::Plain => return Ok(None),
            ArchiveEncryption::Key(header, key) | ArchiveEncryption::New(header, key) => {
                return Ok(Some((header, key)));
            }
            ArchiveEncryption::Nothing => {}
        }
        if self.manifest()?.is_some() {
            return match self.state.lock().known.clone() {
                ArchiveEncryption::Key(header, key) | ArchiveEncryption::New(header, key) => {
                    Ok(Some((header, key)))
                }
                ArchiveEncryption::Plain | ArchiveEncryption::Nothing => Ok(None),
            };
        }
        let Some(owner) = self.owner()? else { return Ok(None) };
        let key = DataKey::new()?;
        let header = Header::new(&owner, &key)?;
        self.state.lock().known = ArchiveEncryption::New(header.clone(), key.clone());
        Ok(Some((header, key)))
    }

    /// The plaintext of a stored manifest, from which the keys become known.
    fn open(&self, stored: &[u8]) -> Result<Vec<u8>> {
        if !is_encrypted(stored) {
            self.note_plain()?;
            return Ok(stored.to_vec());
        }
        let is_new = self.has_stored_anew();
        let (header, sealed) = Header::split(stored)?;
        let key = self.data_key(&header)?;
        if is_new && !matches!(&self.state.lock().known, ArchiveEncryption::New(_, new) if *new == key) {
            // Another run made the archive meanwhile, with another key: what this run has stored can't be in it.
            return Err(Error::Changed);
        }
        let name = header.sealed_name();
        let plain = read_whole(&DecryptedObject::new(&key, &name, Box::new(Bytes(sealed.to_vec())))?)?;
        self.generations(&key)?.check(header.generation())?;
        self.state.lock().known = ArchiveEncryption::Key(header, key);
        Ok(plain)
    }

    /// Notes that the archive is not encrypted.
    fn note_plain(&self) -> Result<()> {
        if self.has_stored_anew() {
            return Err(Error::Changed);
        }
        self.state.lock().known = ArchiveEncryption::Plain;
        Ok(())
    }

    /// Whether this run has stored objects under a data key of its own.
    fn has_stored_anew(&self) -> bool {
        let state = self.state.lock();
        matches!(state.known, ArchiveEncryption::New(..)) && state.stored
    }

    fn data_key(&self, header: &Header) -> Result<DataKey> {
        if let ArchiveEncryption::Key(known, key) = &self.state.lock().known
            && known.has_keys_of(header)
        {
            return Ok(key.clone());
        }
        let Some(owner) = self.owner()? else { return Err(Error::Locked { key: header.key.clone() }) };
        if owner.name() != header.key {
            let found = self.source.as_ref().map(|source| format!("{} ({source})", owner.name()));
            let expected = format!("{}, which the archive is encrypted with", header.key);
            return Err(Error::unexpected("key", found.unwrap_or_default(), expected));
        }
        header.data_key(&owner)
    }

    fn put_copy(&self, header: &Header, key: &DataKey, plain: &[u8]) -> Result<()> {
        let copy = sealed(header, key, plain)?;
        self.inner.put(COPY, &mut |out| out.write_all(&copy).map_err(Error::writing))
    }
}

/// An encrypted manifest.
fn sealed(header: &Header, key: &DataKey, plain: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = header.bytes()?;
    let mut sealer = Sealer::new(key, &header.sealed_name(), &mut bytes)?;
    sealer.write_all(plain).map_err(Error::writing)?;
    sealer.finish()?;
    Ok(bytes)
}

impl<S: ArchiveStorage> ArchiveStorage for EncryptedStorage<S> {
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        let Some((header, key)) = self.key()? else { return self.inner.put(name, write) };
        if name == COPY {
            let mut plain = Vec::new();
            write(&mut plain)?;
            return self.put_copy(&header, &key, &plain);
        }
        self.state.lock().stored = true;
        self.inner.put(name, &mut |out| {
            let mut sealer = Sealer::new(&key, name, out)?;
            write(&mut sealer)?;
            sealer.finish()
        })
    }

    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>> {
        if name == COPY {
            let stored = read_whole(self.inner.get(name)?.as_ref())?;
            return Ok(Box::new(Bytes(self.open(&stored)?)));
        }
        match self.key()? {
            Some((_, key)) => Ok(Box::new(DecryptedObject::new(&key, name, self.inner.get(name)?)?)),
            None => self.inner.get(name),
        }
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.inner.delete(name)
    }

    fn delete_all(&self, names: &[&str]) -> Vec<(String, Error)> {
        self.inner.delete_all(names)
    }

    fn stored(&self) -> Result<Vec<ListedObject>> {
        let mut stored = self.inner.stored()?;
        if self.key()?.is_some() {
            for object in &mut stored {
                object.size = plain_size(object.size);
            }
        }
        Ok(stored)
    }

    fn manifest(&self) -> Result<Option<ManifestBytes>> {
        let Some(stored) = self.inner.manifest()? else { return Ok(None) };
        // It may be large: it is neither copied nor hashed.
        if !is_encrypted(&stored) {
            self.note_plain()?;
            return Ok(Some(stored));
        }
        let read = self.state.lock().read.clone();
        if let Some((plain, _)) = read.filter(|(_, same)| *same == stored) {
            return Ok(Some(plain));
        }
        let plain = match self.open(&stored) {
            // Nothing can be made of it; the manifest has a copy.
            Err(Error::Damaged { .. }) => return Ok(Some(stored)),
            opened => Arc::new(opened?),
        };
        self.state.lock().read = Some((Arc::clone(&plain), stored));
        Ok(Some(plain))
    }

    fn put_manifest(&self, manifest: &ManifestBytes, replaces: Option<&[u8]>) -> Result<()> {
        let Some((header, key)) = self.key()? else { return self.inner.put_manifest(manifest, replaces) };
        let read = self.state.lock().read.take();
        let before = match (replaces, read) {
            (None, _) => None,
            (Some(plain), Some((read, stored))) if read.as_slice() == plain => Some(stored),
            // A manifest that can't be read is replaced as it is stored.
            (Some(replaced), _) => match self.inner.manifest()? {
                Some(stored) if stored.as_slice() == replaced => Some(stored),
                Some(stored) if self.open(&stored)? == replaced => Some(stored),
                _ => return Err(Error::Changed),
            },
        };
        // The generation of the one that is replaced, which need not be the one that was read last.
        let replaced = before.as_ref().and_then(|before| Some(Header::split(before).ok()?.0.generation()));
        let header = header.after(replaced.unwrap_or(header.generation()));
        let stored = Arc::new(sealed(&header, &key, manifest)?);
        self.inner.put_manifest(&stored, before.as_ref().map(|before| before.as_slice()))?;
        self.generations(&key)?.note(header.generation())?;
        let mut state = self.state.lock();
        state.known = ArchiveEncryption::Key(header, key);
        state.read = Some((Arc::clone(manifest), stored));
        Ok(())
    }

    fn copy_manifest(&self, manifest: &[u8]) -> Result<()> {
        if self.key()?.is_none() {
            return self.inner.copy_manifest(manifest);
        }
        let read = self.state.lock().read.clone();
        match read.filter(|(plain, _)| plain.as_slice() == manifest) {
            Some((_, stored)) => self.inner.copy_manifest(&stored),
            None => self.put(COPY, &mut |out| out.write_all(manifest).map_err(Error::writing)),
        }
    }

    fn has_copy_of(&self, manifest: &[u8]) -> bool {
        if self.key().is_ok_and(|key| key.is_none()) {
            return self.inner.has_copy_of(manifest);
        }
        let read = self.state.lock().read.clone();
        read.is_some_and(|(plain, stored)| plain.as_slice() == manifest && self.inner.has_copy_of(&stored))
    }

    fn alone(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.inner.alone(work)
    }

    fn is_encrypted(&self) -> Result<bool> {
        Ok(self.key()?.is_some())
    }
}

/// Bytes that are held.
struct Bytes(Vec<u8>);

impl ReadRange for Bytes {
    fn size(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>> {
        let end = offset.saturating_add(size as u64);
        let range = self.0.get(offset as usize..end as usize);
        let found = || Error::unexpected("object", format!("{} bytes long", self.0.len()), format!("{end}"));
        range.map(<[u8]>::to_vec).ok_or_else(found)
    }
}

fn read_whole(object: &dyn ReadRange) -> Result<Vec<u8>> {
    object.read(0, object.size()? as usize)
}
