//! The file of the `keyring_file` plugin, which MySQL 8.0 had and 8.4 no longer has.
//!
//! ```text
//!   0  version     24   "Keyring file version:2.0"
//!  24  keys             each, all sizes u64:
//!        size       8   of all of the key, padding included
//!        sizes  4 × 8   of id, type, user, data
//!        id, type, user, data
//!        padding        to a multiple of 8
//!      end          3   "EOF"
//!      digest      32   SHA-256 of the keys
//! ```
//!
//! The data is XORed with a fixed string, which protects nothing. Files of 32-bit and of big-endian servers
//! have other sizes and are refused.

use binlogz_binlog::Error as BinlogError;
use binlogz_binlog::cursor::Cursor;
use sha2::{Digest, Sha256};

use super::Keyring;
use crate::error::{Error, Result};

const VERSION: &[u8] = b"Keyring file version:2.0";
const ANY_VERSION: &[u8] = b"Keyring file version:";
const END: &[u8] = b"EOF";
const DIGEST_SIZE: usize = 32;
const OBFUSCATION: &[u8] = b"*305=Ljt0*!@$Hnm(*-9-w;:";

/// Keys are padded to a multiple of this.
const ALIGNMENT: usize = 8;

const WHAT: &str = "keyring";

pub(super) fn is_plugin(bytes: &[u8]) -> bool {
    bytes.starts_with(ANY_VERSION)
}

pub(super) fn parse(bytes: &[u8], keyring: &mut Keyring) -> Result<()> {
    let Some(behind_version) = bytes.strip_prefix(VERSION) else {
        let version = bytes.get(ANY_VERSION.len()..).unwrap_or_default();
        let version: String = String::from_utf8_lossy(version).chars().take(3).collect();
        return Err(BinlogError::invalid(WHAT, "version", version, "2.0").into());
    };
    let keys_and_digest = behind_version.split_last_chunk::<DIGEST_SIZE>();
    let keys = keys_and_digest.and_then(|(keys, digest)| Some((keys.strip_suffix(END)?, digest)));
    let Some((keys, digest)) = keys else {
        return Err(BinlogError::invalid(WHAT, "end", "missing", "\"EOF\" and a digest").into());
    };
    if Sha256::digest(keys).as_slice() != digest {
        return Err(Error::KeyringDigest);
    }
    let mut cursor = Cursor::new(keys, WHAT);
    while !cursor.is_empty() {
        let offset = bytes.len() - behind_version.len() + keys.len() - cursor.remaining();
        parse_key(&mut cursor, keyring).map_err(|error| error.at(offset as u64, None))?;
    }
    Ok(())
}

fn parse_key(cursor: &mut Cursor<'_>, keyring: &mut Keyring) -> Result<(), BinlogError> {
    let size = cursor.u64("key size")?;
    let mut key = Cursor::new(cursor.bytes_u64(size.saturating_sub(8), "key")?, WHAT);
    let id_size = key.u64("id size")?;
    let type_size = key.u64("type size")?;
    let user_size = key.u64("user size")?;
    let data_size = key.u64("data size")?;
    let id = String::from_utf8_lossy(key.bytes_u64(id_size, "id")?);
    let key_type = String::from_utf8_lossy(key.bytes_u64(type_size, "type")?);
    let user = String::from_utf8_lossy(key.bytes_u64(user_size, "user")?);
    let data = key.bytes_u64(data_size, "data")?;
    let data = data.iter().zip(OBFUSCATION.iter().cycle()).map(|(byte, hidden)| byte ^ hidden);
    keyring.add(&id, &user, &key_type, data.collect());
    match key.remaining() {
        0..ALIGNMENT => Ok(()),
        count => Err(BinlogError::LeftOver { what: WHAT, count: count as u64 }),
    }
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::put::PutFields;
    use binlogz_testkit::mutate;

    use super::*;

    /// A file as the plugin writes it, with what `damage` does to its keys before they are signed.
    fn file(keys: &[(&str, &str, &str, &[u8])], damage: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut pods = Vec::new();
        for (id, key_type, user, data) in keys {
            let mut pod = Vec::new();
            for size in [id.len(), key_type.len(), user.len(), data.len()] {
                pod.put_u64(size as u64);
            }
            pod.put(id.as_bytes());
            pod.put(key_type.as_bytes());
            pod.put(user.as_bytes());
            pod.extend(data.iter().zip(OBFUSCATION.iter().cycle()).map(|(byte, hidden)| byte ^ hidden));
            pod.resize(pod.len().next_multiple_of(ALIGNMENT), 0);
            pods.put_u64(8 + pod.len() as u64);
            pods.put(&pod);
        }
        damage(&mut pods);
        sign(&pods)
    }

    fn sign(keys: &[u8]) -> Vec<u8> {
        [VERSION, keys, END, Sha256::digest(keys).as_slice()].concat()
    }

    const KEYS: [(&str, &str, &str, &[u8]); 3] = [
        ("key1", "AES", "root@localhost", b"sixteen bytes of"),
        ("MySQLReplicationKey_u", "AES", "", b"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        ("MySQLReplicationKey_u_1", "AES", "", b"thirty-two bytes of a master key"),
    ];

    fn error_of(bytes: &[u8]) -> String {
        Keyring::parse(bytes).unwrap_err().to_string()
    }

    #[test]
    fn its_keys_are_read() {
        let keyring = Keyring::parse(&file(&KEYS, |_| {})).unwrap();
        let key = keyring.current_key(None).unwrap();
        assert_eq!((key.id(), key.value().as_slice()), (KEYS[2].0, KEYS[2].3));
        assert!(Keyring::parse(&sign(&[])).unwrap().servers().is_empty());
    }

    #[test]
    fn what_is_wrong_with_it_is_told() {
        let good = file(&KEYS, |_| {});
        let mut version = good.clone();
        version[21] = b'1';
        assert_eq!(error_of(&version), "keyring: version is 1.0, expected 2.0");
        let mut key = good.clone();
        key[100] ^= 1;
        assert_eq!(error_of(&key), "keyring: its SHA-256 digest does not match its keys");
        assert_eq!(
            error_of(&good[..good.len() - 1]),
            "keyring: end is missing, expected \"EOF\" and a digest"
        );
        let lying = file(&KEYS, |keys| keys[8] = 0xff);
        assert_eq!(error_of(&lying), "at 24: keyring: id needs 255 bytes, 40 are left");
        let big_endian = file(&KEYS, |keys| keys[..8].reverse());
        assert_eq!(
            error_of(&big_endian),
            "at 24: keyring: key needs 5764607523034234872 bytes, 256 are left"
        );
        let too_long = file(&KEYS[..1], |keys| {
            keys.extend([0; 8]);
            keys[0] += 8;
        });
        assert_eq!(error_of(&too_long), "at 24: keyring: 11 bytes left over after the last field");
    }

    #[test]
    fn cut_and_mutated_files_never_panic() {
        let good = file(&KEYS, |_| {});
        for size in 1..good.len() {
            assert!(Keyring::parse(&good[..size]).is_err(), "cut at {size}");
        }
        let keys = &good[VERSION.len()..good.len() - END.len() - DIGEST_SIZE];
        let seed = mutate::seed();
        let mut read = 0;
        for index in 0..10_000 {
            // Signed again: else the digest would catch them all.
            let (keys, _) = mutate::mutate(keys, seed, index);
            read += u32::from(Keyring::parse(&sign(&keys)).is_ok());
        }
        assert!((1..10_000).contains(&read), "{read} read");
    }
}
