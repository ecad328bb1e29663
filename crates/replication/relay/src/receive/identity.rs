//! The relay's own server uuid, as its source sees it. Created once and stored beside the log.
//!
//! ```text
//! relay.uuid
//! 2410447f-e54d-11f1-848d-02fc00000001
//! check 7d4b1f02                        CRC-32 of the uuid's text, since 0.3; a file without it gets it at the next start
//! ```

use binlogz_binlog::checksum::crc32;
use binlogz_binlog::gtid::ServerUuid;
use binlogz_relay_log::{Error as LogError, is_member, small_file};
use binlogz_store::{Storage, storage};

use crate::error::{Error, Result};

const NAME: &str = "relay.uuid";
/// The start of the line with the checksum of the uuid's line.
const CHECK: &str = "check ";
/// Larger than the file can be.
const SIZE_MAX: u64 = 4096;

/// The relay's uuid, created if there is none yet. A file that can't be opened doesn't count as missing: with another
/// uuid the source would see another replica.
pub(crate) fn own_uuid(storage: &dyn Storage) -> Result<ServerUuid> {
    if let Some(text) = small_file(storage, NAME, SIZE_MAX)? {
        let mut lines = text.trim().lines();
        let uuid: Option<ServerUuid> = lines.next().and_then(|uuid| uuid.parse().ok());
        let members: Vec<&str> = lines.collect();
        let uuid = uuid.filter(|_| members.iter().all(|line| is_member(line)));
        let uuid = uuid.ok_or_else(|| LogError::damaged(NAME, text.trim(), "a server uuid"))?;
        match members.iter().find_map(|line| line.strip_prefix(CHECK)) {
            Some(check) if check == check_of(uuid) => {}
            // One bit more or less, and it would be another replica's: nobody would notice.
            Some(_) => {
                return Err(LogError::damaged(NAME, text.trim(), "a server uuid and its own check").into());
            }
            None => write(storage, uuid, &members)?,
        }
        return Ok(uuid);
    }
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Io { doing: "random numbers".into(), source: error.into() })?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default().to_owned();
    let text = [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-");
    let uuid = text.parse().map_err(LogError::Binlog)?;
    write(storage, uuid, &[])?;
    Ok(uuid)
}

/// Written atomically: after a crash, half of a uuid would be refused.
fn write(storage: &dyn Storage, uuid: ServerUuid, members: &[&str]) -> Result<()> {
    let mut text = format!("{uuid}\n{CHECK}{}\n", check_of(uuid));
    members.iter().for_each(|line| text += &format!("{line}\n"));
    storage::replace(storage, NAME, text.as_bytes()).map_err(Error::io(format!("write {NAME}")))
}

fn check_of(uuid: ServerUuid) -> String {
    format!("{:08x}", crc32(uuid.to_string().as_bytes()))
}

/// A server id derived from a uuid: never 0, which would mean a reader that does not wait.
pub(crate) fn server_id_of(uuid: ServerUuid) -> u32 {
    let sum = uuid
        .to_string()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    sum.max(1)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use binlogz_store::{MemoryStorage, StorageFile};

    use super::*;

    /// A directory in which every open fails with this error.
    #[derive(Debug)]
    struct Closed(MemoryStorage, io::ErrorKind);

    impl Storage for Closed {
        fn list(&self) -> io::Result<Vec<String>> {
            self.0.list()
        }

        fn open(&self, name: &str, create: bool) -> io::Result<Arc<dyn StorageFile>> {
            if create { self.0.open(name, create) } else { Err(self.1.into()) }
        }

        fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            self.0.rename(from, to)
        }

        fn remove(&self, name: &str) -> io::Result<()> {
            self.0.remove(name)
        }

        fn sync_names(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_flipped_bit_makes_another_uuid_of_it() {
        let storage = MemoryStorage::new();
        let uuid = own_uuid(&storage).unwrap();
        let text = small_file(&storage, NAME, SIZE_MAX).unwrap().unwrap();
        assert_eq!(text.lines().count(), 2);
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            storage::replace(&storage, NAME, &bytes).unwrap();
            match own_uuid(&storage) {
                Ok(found) => assert_eq!(found, uuid, "bit {bit}"),
                Err(error) => {
                    assert!(matches!(error, Error::Log(LogError::Damaged { .. })), "bit {bit}: {error}")
                }
            }
        }
        // A file from an earlier version gets its check, and keeps the other lines in it.
        storage::replace(&storage, NAME, format!("{uuid}\nlater 1\n").as_bytes()).unwrap();
        assert_eq!(own_uuid(&storage).unwrap(), uuid);
        let expected = format!("{text}later 1\n");
        assert_eq!(small_file(&storage, NAME, SIZE_MAX).unwrap().unwrap(), expected);
    }

    #[test]
    fn only_a_relay_without_a_uuid_gets_one() {
        let storage = MemoryStorage::new();
        let uuid = own_uuid(&storage).unwrap();
        assert_eq!(own_uuid(&storage).unwrap(), uuid);
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::Other] {
            let error = own_uuid(&Closed(storage.clone(), kind)).unwrap_err().to_string();
            assert!(error.starts_with("read relay.uuid: "), "{error}");
            assert_eq!(own_uuid(&storage).unwrap(), uuid, "{kind}");
        }
        storage::replace(&storage, NAME, format!("{uuid}\nlater 1\n").as_bytes()).unwrap();
        assert_eq!(own_uuid(&storage).unwrap(), uuid, "what another release adds is passed over");
        for bad in ["", "half-of-a-uuid\n", &format!("{uuid}\n{uuid}\n"), &"\u{1b}[2J".repeat(1000)] {
            storage::replace(&storage, NAME, bad.as_bytes()).unwrap();
            let error = own_uuid(&storage).unwrap_err();
            assert!(matches!(error, Error::Log(LogError::Damaged { .. })), "{error}");
            assert!(
                error.to_string().contains("relay.uuid") && !error.to_string().contains('\u{1b}'),
                "{error}"
            );
        }
        storage::replace(&storage, NAME, &[b'x'; 5000]).unwrap();
        assert!(own_uuid(&storage).unwrap_err().to_string().contains("5000 bytes, expected at most 4096"));
    }
}
