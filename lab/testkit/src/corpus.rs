//! The real files that the repository ships: the frozen corpus of 9.7.4 and the samples. No server is needed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::real_binlog::{RealBinlog, SampleCompression};

/// Names, and how they were written; `corpus/README.md` describes each.
const FILES: [(&str, SampleCompression); 9] = [
    ("binlog.000001", SampleCompression::Mixed),
    ("binlog.000002", SampleCompression::Mixed),
    ("binlog.000003", SampleCompression::Mixed),
    ("binlog.000004", SampleCompression::Mixed),
    ("binlog.000005", SampleCompression::Mixed),
    ("binlog.000006", SampleCompression::Off),
    ("levels.000001", SampleCompression::Off),
    ("levels.000002", SampleCompression::Mixed),
    ("levels.000003", SampleCompression::Mixed),
];
const RELAY_LOGS: [&str; 2] = ["relay.000012", "relay.000013"];

/// The frozen corpus and the samples; encrypted files apart.
pub fn binlogs() -> Vec<RealBinlog> {
    let file = |name: &str, compression, relay_log| RealBinlog {
        name: format!("corpus/{name}"),
        path: path(name),
        compression,
        relay_log,
    };
    let mut files: Vec<_> = FILES.iter().map(|&(name, compression)| file(name, compression, false)).collect();
    files.extend(RELAY_LOGS.iter().map(|name| file(name, SampleCompression::Mixed, true)));
    files.extend(samples());
    files
}

/// The path of a file of the frozen corpus.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/mysql-9.7.4").join(name)
}

/// A small log that was read wrongly once; `corpus/README.md` describes each.
pub fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/cases").join(name)
}

/// A log of MariaDB 10.11; `corpus/README.md` describes each.
///
/// # Panics
/// If the checkout lacks it.
pub fn mariadb(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/mariadb-10.11").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()))
}

/// The files of `samples/`, plain and compressed.
///
/// # Panics
/// If the checkout has none.
pub fn samples() -> Vec<RealBinlog> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let mut files = Vec::new();
    for (folder, compression) in
        [("plain", SampleCompression::Off), ("compressed", SampleCompression::Level(3))]
    {
        let dir = root.join(folder);
        let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("read {}: {error}", dir.display()));
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        files.extend(names.iter().map(|name| RealBinlog {
            name: format!("samples/{folder}/{}", name.to_string_lossy()),
            path: dir.join(name),
            compression,
            relay_log: false,
        }));
    }
    files
}

/// An encrypted binlog, its keyring file, and its plain bytes.
#[derive(Clone, Debug)]
pub struct EncryptedSample {
    /// The file as the server wrote it.
    pub encrypted: PathBuf,
    /// The keyring component's file, with its key.
    pub keyring: PathBuf,
    /// The plaintext.
    pub plain: PathBuf,
}

/// The encrypted binlog of the frozen corpus.
pub fn encrypted() -> EncryptedSample {
    EncryptedSample {
        encrypted: path("encrypted-binlog.000001"),
        keyring: path("keyring.json"),
        plain: path("encrypted-binlog.000001.plain"),
    }
}

#[cfg(test)]
mod tests {
    use super::{binlogs, encrypted};

    #[test]
    fn every_file_is_there_and_a_binlog() {
        let files = binlogs();
        assert_eq!(files.len(), 9 + 2 + 2 * 9);
        for file in files {
            assert!(file.read().starts_with(b"\xfebin"), "{}", file.name);
        }
        let read = |path| std::fs::read(path).expect("in the checkout");
        let encrypted = encrypted();
        assert!(read(encrypted.encrypted).starts_with(b"\xfdbin"));
        assert!(read(encrypted.plain).starts_with(b"\xfebin"));
        assert!(read(encrypted.keyring).starts_with(b"{"));
    }
}
