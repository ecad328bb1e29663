//! The encrypted log of MySQL 8.0.14 that the server's own test suite ships (Debian's `mysql-testsuite`,
//! `std_data` folder), with its keyring: a file of the keyring_file plugin.
//!
//! They are the server's and not part of this tree: `BINLOGZ_STD_DATA` names a folder that holds
//! them.

use std::fs;
use std::path::{Path, PathBuf};

use binlogz_binlog::EventReader;
use binlogz_binlog::event::FormatDescription;
use binlogz_encryption::{DecryptingReader, EncryptionHeader, Keyring};
use binlogz_testkit::tool::std_data;

const LOG: &str = "rpl_nogtid_encryption_master-bin.000002";
const KEYRING: &str = "rpl_nogtid_encryption_keyring_master";
const OTHER_KEYRING: &str = "plugin_keyring_file_data";

#[test]
#[ignore = "needs the logs of the server's test suite: scripts/soak/std-data.sh"]
fn a_log_of_8_0_opens_with_a_keyring_of_the_plugin() {
    let folder = std_data();
    let path = |name| find(&folder, name).unwrap_or_else(|| panic!("{} has no {name}", folder.display()));
    let log = fs::read(path(LOG)).unwrap();
    let header = EncryptionHeader::decode(&log).unwrap();
    assert_eq!(header.encode().unwrap(), log[..512]);
    let keyring = Keyring::open(&path(KEYRING)).unwrap();
    assert_eq!(keyring.current_key(None).unwrap().id(), header.key_id);
    let mut reader = EventReader::new(DecryptingReader::new(log.as_slice(), &keyring).unwrap());
    let (_, first) = reader.next_event().unwrap().unwrap();
    assert!(FormatDescription::decode_frame(&first).unwrap().server_version().starts_with("8.0."));
    // Its server was killed while it wrote.
    let end = loop {
        match reader.next_event() {
            Ok(event) => assert!(event.is_some(), "it ends behind an event"),
            Err(error) => break error,
        }
    };
    assert!(end.is_truncation() && reader.in_use(), "{end}");
    assert_eq!(end.offset(), Some(987));
    // Keys of users only.
    assert!(Keyring::open(&path(OTHER_KEYRING)).unwrap().servers().is_empty());
}

/// A file of this name in the folder or below it.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let found = files.into_iter().find(|path| path.ends_with(name));
    found.or_else(|| folders.iter().find_map(|folder| find(folder, name)))
}
