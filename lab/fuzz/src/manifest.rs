//! A manifest with its parts, in memory: writing a manifest that was read gives the same manifest back.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::storage::{ArchiveStorage, ListedObject, LogName, ManifestBytes, ObjectName, ReadRange};
use binlogz_archive::{Error, Result};

use super::{Part, pair, unpair};

/// Objects, and the manifest under the empty name.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

impl Memory {
    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ArchiveStorage for Memory {
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        self.objects().insert(name.to_owned(), bytes);
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>> {
        let missing = || Error::writing(std::io::ErrorKind::NotFound.into());
        let bytes = self.objects().get(name).cloned().ok_or_else(missing)?;
        Ok(Box::new(Part { at: 0, bytes }))
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.objects().remove(name);
        Ok(())
    }

    fn stored(&self) -> Result<Vec<ListedObject>> {
        Ok(Vec::new())
    }

    fn manifest(&self) -> Result<Option<ManifestBytes>> {
        Ok(self.objects().get("").cloned().map(Arc::new))
    }

    fn put_manifest(&self, manifest: &ManifestBytes, _: Option<&[u8]>) -> Result<()> {
        self.objects().insert(String::new(), manifest.to_vec());
        Ok(())
    }
}

/// The manifest itself, then the one object that its part may name.
pub fn archive_manifest(bytes: &[u8]) {
    let (head, part) = unpair(bytes);
    let memory = Memory::default();
    memory.objects().insert(String::new(), head.to_vec());
    // Whatever it is called.
    let names = String::from_utf8_lossy(head);
    for name in names.split('"').filter(|word| word.starts_with("manifest-part-")) {
        memory.objects().insert(name.to_owned(), part.to_vec());
    }
    let Ok(Some(mut manifest)) = Manifest::read(&memory) else { return };
    let files = manifest.files.clone();
    manifest.write(&memory).expect("memory");
    let again = Manifest::read(&memory).expect("it was just written").expect("it is there");
    // It is in order once it was read.
    assert!(again.files == files);
}

/// One in a piece, and one with a part.
pub fn seeds() -> Vec<Vec<u8>> {
    let entry = |number: usize| FileEntry {
        name: LogName::new(format!("b.{number:06}")).expect("a name"),
        objects: vec![ObjectName::new("segment-0.binlogz").expect("a name")],
        size: 1,
        sha256: String::new(),
        source_sha256: None,
        packed_size: 1,
        payload_level: None,
        payload_codec: None,
        payloads_kept: 0,
        previous_gtids: String::new(),
        gtids: String::new(),
        times: Some((1, 2)),
        mode: None,
        active_size: None,
        erasures: Vec::new(),
    };
    let seed = |count: usize| {
        let memory = Memory::default();
        let mut manifest = Manifest::default();
        manifest.files = (0..count).map(entry).collect();
        manifest.write(&memory).expect("memory");
        let objects = memory.objects();
        let part = objects.iter().find(|(name, _)| name.starts_with("manifest-part-"));
        pair(objects.get("").expect("it was written"), part.map_or(b"".as_slice(), |(_, part)| part))
    };
    vec![seed(3), seed(300)]
}
