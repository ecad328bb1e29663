//! The file of `component_keyring_file`: JSON, the keys in hexadecimal.
//!
//! ```text
//! { "version": "1.0",
//!   "elements": [ { "user": "", "data_id": "MySQLReplicationKey_…_1", "data_type": "AES",
//!                   "data": "D9B5…", "extension": [] }, … ] }
//! ```

use serde::Deserialize;

use super::Keyring;
use crate::error::{Error, Result};

const VERSION: &str = "1.0";

#[derive(Deserialize)]
struct File {
    version: String,
    elements: Vec<Element>,
}

#[derive(Deserialize)]
struct Element {
    user: String,
    data_id: String,
    data_type: String,
    data: String,
}

pub(super) fn parse(bytes: &[u8], keyring: &mut Keyring) -> Result<()> {
    let file: File = serde_json::from_slice(bytes)?;
    if file.version != VERSION {
        return Err(binlogz_binlog::Error::invalid(
            "keyring",
            "version",
            format!("{:?}", file.version),
            "\"1.0\"",
        )
        .into());
    }
    for Element { user, data_id, data_type, data } in file.elements {
        let Some(data) = from_hex(&data) else {
            let found = "has bytes that are no hexadecimal digits, or half a byte".to_owned();
            return Err(Error::KeyringEntry { id: data_id, found, expected: "pairs of digits" });
        };
        keyring.add(&data_id, &user, &data_type, data);
    }
    Ok(())
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use binlogz_testkit::{corpus, mutate};

    use super::*;

    fn error_of(text: &str) -> String {
        Keyring::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn the_servers_file_has_its_key() {
        let keyring = Keyring::open(&corpus::encrypted().keyring).unwrap();
        let key = keyring.current_key(Some("fd0d4f88-e54d-11f1-a6c4-02fc00000001")).unwrap();
        assert_eq!(key.id(), "MySQLReplicationKey_fd0d4f88-e54d-11f1-a6c4-02fc00000001_1");
        assert_eq!(key.value()[..4], [0xd9, 0xb5, 0x40, 0xb1]);
    }

    #[test]
    fn what_is_wrong_with_the_json_is_told() {
        assert_eq!(error_of("{"), "keyring: EOF while parsing an object at line 1 column 1");
        let config = r#"{"path": "keyring.json", "read_only": false}"#;
        assert_eq!(error_of(config), "keyring: missing field `version` at line 1 column 44");
        let version = r#"{"version": "2.0", "elements": []}"#;
        assert_eq!(error_of(version), "keyring: version is \"2.0\", expected \"1.0\"");
        for data in ["0g", "000", "é"] {
            let entry =
                format!(r#"{{"user":"","data_id":"k","data_type":"AES","data":"{data}","extension":[]}}"#);
            assert_eq!(
                error_of(&format!(r#"{{"version":"1.0","elements":[{entry}]}}"#)),
                "keyring: entry k has bytes that are no hexadecimal digits, or half a byte, expected pairs \
                 of digits"
            );
        }
    }

    #[test]
    fn cut_and_mutated_files_never_panic() {
        let file = std::fs::read(corpus::encrypted().keyring).unwrap();
        for size in 1..file.trim_ascii_end().len() {
            assert!(Keyring::parse(&file[..size]).is_err(), "cut at {size}");
        }
        let seed = mutate::seed();
        for index in 0..10_000 {
            let (bytes, _) = mutate::mutate(&file, seed, index);
            if let Ok(keyring) = Keyring::parse(&bytes) {
                let _ = keyring.current_key(None);
            }
        }
    }
}
