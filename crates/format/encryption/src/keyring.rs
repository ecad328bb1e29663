//! The master keys of a keyring file.
//!
//! A server generates one when encryption is first turned on and at each
//! `ALTER INSTANCE ROTATE BINLOG MASTER KEY`, and keeps them without a user under these names
//! (type AES):
//!
//! ```text
//! MySQLReplicationKey_<server_uuid>_<seqno>       32 bytes, a master key; seqno counts from 1
//! MySQLReplicationKey_<server_uuid>               16 bytes, seqno of the current one: u32, zeros
//! MySQLReplicationKey_<server_uuid>_new           the same, of the next one, while a rotation runs
//! MySQLReplicationKey_<server_uuid>_old           the same, of the one before, while a rotation runs
//! MySQLReplicationKey_<server_uuid>_last_purged   the same: up to there the keys were removed
//! ```
//!
//! A rotation ends by removing all keys except the current one, since the server has rewritten the headers of
//! its own logs by then. Copies of logs elsewhere need a copy of the old keyring.
//!
//! Two file formats: [`component`] and [`plugin`].

mod component;
mod plugin;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};

/// Bytes of a master key.
pub const KEY_SIZE: usize = 32;

/// The largest keyring that is read, in bytes. A server's holds a few keys of some hundred bytes each; a user that names
/// a log instead should get an error early.
const KEYRING_SIZE_MAX: u64 = 16 << 20;

const KEY_ID_PREFIX: &str = "MySQLReplicationKey_";
const KEY_TYPE: &str = "AES";
const SEQNO_SIZE: usize = 16;

/// How many key names an error lists.
const LISTED_MAX: usize = 8;

/// The keys of a keyring file that belong to binary logs.
#[derive(Default)]
pub struct Keyring {
    entries: BTreeMap<String, Entry>,
}

struct Entry {
    key_type: String,
    data: Vec<u8>,
}

/// A key that opens and makes encrypted logs.
pub struct MasterKey {
    id: String,
    value: [u8; KEY_SIZE],
}

impl MasterKey {
    /// The name under which the keyring has it, and the log's header names it.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn value(&self) -> &[u8; KEY_SIZE] {
        &self.value
    }
}

impl Keyring {
    /// Reads a keyring file of either format.
    ///
    /// # Errors
    ///
    /// The errors of [`Keyring::parse`]; a file that can't be read or is too large to be a keyring.
    pub fn open(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        File::open(path)?.take(KEYRING_SIZE_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > KEYRING_SIZE_MAX {
            return Err(Error::KeyringTooLarge { max: KEYRING_SIZE_MAX });
        }
        Keyring::parse(&bytes)
    }

    /// Reads the bytes of a keyring file. An empty file is an empty keyring, in either format.
    ///
    /// # Errors
    ///
    /// Bytes that are neither format, or that break the rules of theirs.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut keyring = Keyring::default();
        if plugin::is_plugin(bytes) {
            plugin::parse(bytes, &mut keyring)?;
        } else if bytes.trim_ascii_start().first() == Some(&b'{') {
            component::parse(bytes, &mut keyring)?;
        } else if !bytes.is_empty() {
            let start: String = String::from_utf8_lossy(bytes).chars().take(24).collect();
            return Err(Error::NoKeyring { found: format!("{start:?}") });
        }
        Ok(keyring)
    }

    /// Takes in an entry of the file. Keys of users and of other parts of the server are left out.
    fn add(&mut self, id: &str, user: &str, key_type: &str, data: Vec<u8>) {
        if user.is_empty() && id.starts_with(KEY_ID_PREFIX) {
            self.entries.insert(id.to_owned(), Entry { key_type: key_type.to_owned(), data });
        }
    }

    /// The key of this name, which a log's header gives.
    ///
    /// # Errors
    ///
    /// A key that is not there, or is no AES key of 32 bytes.
    pub(crate) fn master_key(&self, id: &str) -> Result<MasterKey> {
        match self.entry::<KEY_SIZE>(id, "an AES key of 32 bytes")? {
            Some(value) => Ok(MasterKey { id: id.to_owned(), value: *value }),
            None => Err(Error::NoKey {
                id: id.to_owned(),
                present: self.present(),
                purged: self.was_purged(id).unwrap_or_default(),
            }),
        }
    }

    /// The key that this server encrypts new logs with. Without a server, the key of the only server in the
    /// keyring.
    ///
    /// # Errors
    ///
    /// No current key, several servers, or an entry that is not what its name says.
    pub fn current_key(&self, server_uuid: Option<&str>) -> Result<MasterKey> {
        let servers = self.servers();
        let server = match server_uuid {
            Some(server) => Some(server),
            None if servers.len() > 1 => {
                let servers: Vec<_> = servers.into_iter().collect();
                return Err(Error::SeveralServers { servers: servers.join(", ") });
            }
            None => servers.first().copied(),
        };
        if let Some(server) = server {
            // An interrupted rotation continues at the server's next start: then `_new` is the current key,
            // if it was made already, and the previous one is removed.
            for suffix in ["_new", "", "_old"] {
                let Some(seqno) = self.seqno(&format!("{KEY_ID_PREFIX}{server}{suffix}"))? else { continue };
                let id = format!("{KEY_ID_PREFIX}{server}_{seqno}");
                if self.entries.contains_key(&id) {
                    return self.master_key(&id);
                }
            }
        }
        let server = server.map_or_else(|| "any server".to_owned(), |uuid| format!("server {uuid}"));
        Err(Error::NoCurrentKey { server, present: self.present() })
    }

    /// The server_uuids of the servers that the keyring has keys of.
    pub fn servers(&self) -> BTreeSet<&str> {
        let names = self.entries.keys().filter_map(|id| id.strip_prefix(KEY_ID_PREFIX));
        names.filter_map(|name| name.split('_').next()).collect()
    }

    /// An entry's bytes, if it is there: `expected` describes a right entry, for errors.
    fn entry<const N: usize>(&self, id: &str, expected: &'static str) -> Result<Option<&[u8; N]>> {
        let Some(entry) = self.entries.get(id) else { return Ok(None) };
        let found = match entry.data.first_chunk::<N>() {
            _ if entry.key_type != KEY_TYPE => format!("has type {:?}", entry.key_type),
            Some(data) if entry.data.len() == N => return Ok(Some(data)),
            _ => format!("has {} bytes", entry.data.len()),
        };
        Err(Error::KeyringEntry { id: id.to_owned(), found, expected })
    }

    fn seqno(&self, id: &str) -> Result<Option<u32>> {
        let entry = self.entry::<SEQNO_SIZE>(id, "a sequence number in 16 bytes of type AES")?;
        Ok(entry.and_then(|data| data.first_chunk().copied().map(u32::from_le_bytes)))
    }

    /// Whether a rotation has removed this key.
    fn was_purged(&self, id: &str) -> Option<bool> {
        let (server, seqno) = id.rsplit_once('_')?;
        let last_purged = self.seqno(&format!("{server}_last_purged")).ok()??;
        Some(seqno.parse::<u32>().ok()? <= last_purged)
    }

    /// The names of the keys, for errors.
    fn present(&self) -> String {
        let is_key = |id: &&String| id.rsplit('_').next().is_some_and(|seqno| seqno.parse::<u32>().is_ok());
        let keys: Vec<&str> = self.entries.keys().filter(is_key).map(String::as_str).collect();
        match keys.get(..LISTED_MAX) {
            _ if keys.is_empty() => "no key of a binary log".to_owned(),
            Some(listed) if listed.len() < keys.len() => {
                format!("{} and {} more", listed.join(", "), keys.len() - listed.len())
            }
            _ => keys.join(", "),
        }
    }
}

/// Names only: keys are secret.
impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyring").field(&self.entries.keys()).finish()
    }
}

/// The name only: the key is secret.
impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MasterKey").field(&self.id).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "fd0d4f88-e54d-11f1-a6c4-02fc00000001";

    /// A keyring with these entries of one server: suffix, and the seqno or, of a key, its bytes.
    fn keyring(seqnos: &[(&str, u32)], keys: &[u8]) -> Keyring {
        let mut keyring = Keyring::default();
        for (suffix, seqno) in seqnos {
            let mut data = seqno.to_le_bytes().to_vec();
            data.resize(SEQNO_SIZE, 0);
            keyring.add(&format!("{KEY_ID_PREFIX}{SERVER}{suffix}"), "", KEY_TYPE, data);
        }
        for key in keys {
            keyring.add(&format!("{KEY_ID_PREFIX}{SERVER}_{key}"), "", KEY_TYPE, vec![*key; KEY_SIZE]);
        }
        keyring
    }

    fn current(seqnos: &[(&str, u32)], keys: &[u8]) -> u8 {
        keyring(seqnos, keys).current_key(None).unwrap().value()[0]
    }

    #[test]
    fn the_current_key_is_that_of_the_servers_next_start() {
        assert_eq!(current(&[("", 2)], &[1, 2]), 2);
        // A rotation from 2 to 3, cut short after each of its steps.
        assert_eq!(current(&[("", 2), ("_old", 2)], &[2]), 2);
        assert_eq!(current(&[("", 2), ("_old", 2), ("_new", 3)], &[2]), 2);
        assert_eq!(current(&[("", 2), ("_old", 2), ("_new", 3)], &[2, 3]), 3);
        assert_eq!(current(&[("_old", 2), ("_new", 3)], &[2, 3]), 3);
        assert_eq!(current(&[("", 3), ("_old", 2), ("_new", 3)], &[2, 3]), 3);
        assert_eq!(current(&[("", 3), ("_new", 3), ("_last_purged", 2)], &[3]), 3);
        // A rotation that failed while the server went on: the entry is restored from the old one.
        assert_eq!(current(&[("_old", 2)], &[2]), 2);
    }

    #[test]
    fn without_a_current_key_the_error_says_what_is_there() {
        let error = keyring(&[], &[7]).current_key(None).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "the keyring has no current key of server {SERVER}, it has MySQLReplicationKey_{SERVER}_7"
            )
        );
        let error = Keyring::default().current_key(None).unwrap_err().to_string();
        assert_eq!(error, "the keyring has no current key of any server, it has no key of a binary log");
    }

    #[test]
    fn of_several_servers_one_must_be_chosen() {
        let mut keyring = keyring(&[("", 1)], &[1]);
        keyring.add("MySQLReplicationKey_another_5", "", KEY_TYPE, vec![5; KEY_SIZE]);
        keyring.add("MySQLReplicationKey_another", "", KEY_TYPE, 5u128.to_le_bytes().to_vec());
        let error = keyring.current_key(None).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("the keyring has keys of several servers, one must be chosen: another, {SERVER}")
        );
        assert_eq!(keyring.current_key(Some("another")).unwrap().value()[0], 5);
        assert!(matches!(keyring.current_key(Some("third")), Err(Error::NoCurrentKey { .. })));
    }

    #[test]
    fn a_key_that_is_not_there_is_told_with_those_that_are() {
        let error = |keyring: &Keyring, seqno| {
            let id = format!("MySQLReplicationKey_u_{seqno}");
            keyring.master_key(&id).unwrap_err().to_string()
        };
        let mut keyring = Keyring::default();
        assert_eq!(
            error(&keyring, 1),
            "key MySQLReplicationKey_u_1 is not in the keyring, which has no key of a binary log"
        );
        keyring.add("MySQLReplicationKey_u_4", "", KEY_TYPE, vec![4; KEY_SIZE]);
        keyring.add("MySQLReplicationKey_u_last_purged", "", KEY_TYPE, 3u128.to_le_bytes().to_vec());
        assert_eq!(
            error(&keyring, 3),
            "key MySQLReplicationKey_u_3 is not in the keyring, which has MySQLReplicationKey_u_4: \
             the server removed it at a key rotation, a keyring from before is needed"
        );
        assert!(error(&keyring, 5).ends_with("has MySQLReplicationKey_u_4"), "5 was never purged");
        for seqno in 10..20 {
            keyring.add(&format!("MySQLReplicationKey_u_{seqno}"), "", KEY_TYPE, vec![4; KEY_SIZE]);
        }
        assert!(error(&keyring, 5).ends_with("_16, MySQLReplicationKey_u_17 and 3 more"));
    }

    #[test]
    fn entries_that_are_not_what_their_name_says_are_errors() {
        let mut keyring = keyring(&[], &[]);
        keyring.add("MySQLReplicationKey_u_1", "", KEY_TYPE, vec![0; 31]);
        keyring.add("MySQLReplicationKey_u_2", "", "RSA", vec![0; KEY_SIZE]);
        keyring.add("MySQLReplicationKey_u", "", KEY_TYPE, vec![0; 4]);
        assert_eq!(
            keyring.master_key("MySQLReplicationKey_u_1").unwrap_err().to_string(),
            "keyring: entry MySQLReplicationKey_u_1 has 31 bytes, expected an AES key of 32 bytes"
        );
        assert_eq!(
            keyring.master_key("MySQLReplicationKey_u_2").unwrap_err().to_string(),
            "keyring: entry MySQLReplicationKey_u_2 has type \"RSA\", expected an AES key of 32 bytes"
        );
        assert_eq!(
            keyring.current_key(None).unwrap_err().to_string(),
            "keyring: entry MySQLReplicationKey_u has 4 bytes, expected a sequence number in 16 bytes of \
             type AES"
        );
    }

    #[test]
    fn keys_of_users_and_other_parts_of_the_server_are_left_out() {
        let mut keyring = keyring(&[], &[]);
        keyring.add("MySQLReplicationKey_u_1", "root@localhost", KEY_TYPE, vec![0; KEY_SIZE]);
        keyring.add("INNODBKey-u-1", "", KEY_TYPE, vec![0; KEY_SIZE]);
        assert!(keyring.servers().is_empty());
        assert!(keyring.master_key("INNODBKey-u-1").is_err());
    }

    #[test]
    fn an_empty_file_is_an_empty_keyring_and_other_files_are_none() {
        assert!(Keyring::parse(b"").unwrap().servers().is_empty());
        let error = |bytes: &[u8]| Keyring::parse(bytes).unwrap_err().to_string();
        assert!(
            error(b"\xfebin and more").starts_with("not a keyring: it begins with \"\u{fffd}bin and more\"")
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        File::create(&path).unwrap().set_len(KEYRING_SIZE_MAX + 1).unwrap();
        let error = Keyring::open(&path).unwrap_err().to_string();
        assert_eq!(error, "not a keyring: it is larger than 16777216 bytes");
    }

    #[test]
    fn debug_output_has_no_secrets() {
        let keyring = keyring(&[("", 200)], &[200]);
        let shown = format!("{keyring:?} {:?}", keyring.current_key(None).unwrap());
        assert!(shown.contains("_200\""), "{shown}");
        assert!(!shown.contains("[200"), "{shown}");
    }
}
