//! A log with a damaged byte that is then archived: it is refused, or comes back with the damage visible,
//! whole or transaction by transaction. A changed event never comes back with a valid checksum.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use binlogz_archive::create::Creator;
use binlogz_archive::format::Manifest;
use binlogz_archive::selection::TransactionSelection;
use binlogz_archive::storage::{ArchiveStorage, ListedObject, ManifestBytes, ReadRange};
use binlogz_archive::{Error, Result, restore};
use binlogz_binlog::{ChecksumAlgorithm, EventFrame, EventHeader, Framing, UnverifiedFrame};
use binlogz_testkit::builder::{LogBuilder, PayloadBody, Release, inner_transaction};

const NAME: &str = "binlog.000001";

/// An archive in memory.
#[derive(Default)]
struct InMemory {
    objects: Mutex<HashMap<String, Vec<u8>>>,
    manifest: Mutex<Option<ManifestBytes>>,
}

impl ArchiveStorage for InMemory {
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        self.objects.lock().unwrap().insert(name.to_owned(), bytes);
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>> {
        let missing = || Error::writing(std::io::ErrorKind::NotFound.into());
        Ok(Box::new(Bytes(self.objects.lock().unwrap().get(name).ok_or_else(missing)?.clone())))
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.objects.lock().unwrap().remove(name);
        Ok(())
    }

    fn stored(&self) -> Result<Vec<ListedObject>> {
        let objects = self.objects.lock().unwrap();
        Ok(objects
            .iter()
            .map(|(name, bytes)| ListedObject {
                name: name.clone(),
                size: bytes.len() as u64,
                at: SystemTime::now(),
            })
            .collect())
    }

    fn manifest(&self) -> Result<Option<ManifestBytes>> {
        Ok(self.manifest.lock().unwrap().clone())
    }

    fn put_manifest(&self, manifest: &ManifestBytes, _: Option<&[u8]>) -> Result<()> {
        *self.manifest.lock().unwrap() = Some(Arc::clone(manifest));
        Ok(())
    }
}

struct Bytes(Vec<u8>);

impl ReadRange for Bytes {
    fn size(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>> {
        let missing = || Error::writing(std::io::ErrorKind::UnexpectedEof.into());
        let begin = offset as usize;
        self.0.get(begin..begin + size).map(<[u8]>::to_vec).ok_or_else(missing)
    }
}

/// Where restored transactions go.
#[derive(Clone, Default)]
struct Out(Arc<Mutex<Vec<u8>>>);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Archives a log, and restores it whole and by its transactions. `None` if it is refused.
fn archived(log: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let storage = InMemory::default();
    let mut told = |_: &_| {};
    let mut creator = Creator::new(&storage, 1, &mut told).unwrap();
    creator.add(NAME, Arc::new(log.to_vec())).ok()?;
    creator.finish().ok()?;
    let manifest = Manifest::read(&storage).unwrap().unwrap();
    let file = &manifest.files[0];
    let mut whole = Vec::new();
    restore::whole(&storage, file, &mut whole, 1).unwrap();
    let selection =
        TransactionSelection { gtids: Some(file.gtid_set().unwrap()), ..TransactionSelection::default() };
    let chosen = Out::default();
    let mut out = || Ok(Box::new(chosen.clone()) as Box<dyn Write>);
    // Damage may also make the selection itself fail.
    let restored = restore::chosen(&storage, file, &selection, 1, &mut out);
    let chosen = restored.map(|_| chosen.0.lock().unwrap().clone());
    Some((whole, chosen.unwrap_or_default()))
}

fn events<'a>(log: &'a [u8], begin: usize, mut tell: impl FnMut(UnverifiedFrame<'a>)) {
    let framing = Framing::with_checksum(ChecksumAlgorithm::CRC32);
    let mut rest = log.get(begin..).unwrap_or_default();
    while let Ok(Some(frame)) = framing.next_frame(rest) {
        rest = &rest[frame.header().event_size as usize..];
        tell(frame);
    }
}

/// An event without what depends on its position.
fn anywhere(frame: &EventFrame<'_>) -> Vec<u8> {
    let header = EventHeader { event_size: 0, end_log_pos: 0, ..*frame.header() };
    [&header.encode(), frame.body()].concat()
}

#[test]
fn a_flipped_byte_never_comes_back_with_a_valid_checksum() {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let begin = log.offset() as usize;
    log.transaction(&[&[1; 40], b"more"]).payload(&PayloadBody::zstd(&inner_transaction(&[&[2; 60]])));
    log.transaction(&[&[3; 20]]);
    let log = log.take();
    let (whole, chosen) = archived(&log).unwrap();
    assert_eq!(whole, log);
    let mut genuine = HashSet::new();
    for log in [&whole, &chosen] {
        events(log, begin, |frame| {
            genuine.insert(anywhere(&frame.verify().unwrap()));
        });
    }
    let (mut back, mut to_be_seen) = (0, 0);
    for at in begin..log.len() {
        let mut bad = log.clone();
        bad[at] ^= 1 << (at % 8);
        let Some((whole, chosen)) = archived(&bad) else { continue };
        back += 1;
        assert_eq!(whole, bad, "byte {at}");
        events(&chosen, begin, |frame| match frame.verify() {
            Ok(frame) => {
                let header = frame.header();
                assert!(
                    genuine.contains(&anywhere(&frame)),
                    "byte {at}: damage with a valid checksum: {header:?}"
                );
            }
            Err(_) => to_be_seen += 1,
        });
    }
    println!("{back} of {} came back, {to_be_seen} damaged events among what was chosen", log.len() - begin);
    assert!(back > 0 && to_be_seen > 0);
}
