//! The header of an encrypted log: which master key opens it, and the file's password.
//!
//! ```text
//!   0  magic                    4   fd 62 69 6e
//!   4  version                  1   1
//!   5  fields, in any order:
//!        1  key id              1 + n   length, then "MySQLReplicationKey_<server_uuid>_<seqno>"
//!        2  encrypted password  32      wrapped with that key
//!        3  iv                  16      of the wrapping
//!        0  end
//!      zeros up to
//! 512  the plain log, encrypted; its offset 0 is here
//! ```
//!
//! (`Rpl_encryption_header_v1` in the server.) A key rotation rewrites the header and leaves the rest of the
//! file as it is. The `cipher` module interprets the fields.

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::PutFields;
use binlogz_binlog::{Error as BinlogError, MAGIC_ENCRYPTED};

use crate::error::{Result, hex};

/// Bytes of the header; the encrypted log begins after it.
pub const HEADER_SIZE: usize = 512;

pub(crate) const PASSWORD_SIZE: usize = 32;
pub(crate) const IV_SIZE: usize = 16;

/// The only version there is.
const VERSION: u8 = 1;

const FIELD_END: u8 = 0;
const FIELD_KEY_ID: u8 = 1;
const FIELD_ENCRYPTED_PASSWORD: u8 = 2;
const FIELD_IV: u8 = 3;

// The longest key id fits.
const _: () =
    assert!(MAGIC_ENCRYPTED.len() + 1 + 2 + u8::MAX as usize + 1 + PASSWORD_SIZE + 1 + IV_SIZE < HEADER_SIZE);

const WHAT: &str = "encryption header";

/// The header's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptionHeader {
    /// The name of the master key in the keyring; at most 255 bytes.
    pub key_id: String,
    /// The file's password, encrypted with the master key.
    pub encrypted_password: [u8; PASSWORD_SIZE],
    /// The initialisation vector of that encryption.
    pub iv: [u8; IV_SIZE],
}

impl EncryptionHeader {
    /// Reads the first [`HEADER_SIZE`] bytes of a log; ignores what follows.
    ///
    /// # Errors
    ///
    /// Another magic or version, an unknown field, a header that is cut, a field that is missing:
    /// with the offset at which the field begins.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let header = bytes.get(..HEADER_SIZE).unwrap_or(bytes);
        let mut cursor = Cursor::new(header, WHAT);
        let mut fields = Fields::default();
        check_start(&mut cursor).map_err(|error| error.at(0, None))?;
        loop {
            let offset = (header.len() - cursor.remaining()) as u64;
            let at_field = |error: BinlogError| error.at(offset, None);
            if fields.read_one(&mut cursor).map_err(at_field)? == FIELD_END {
                return Ok(fields.all_there().map_err(at_field)?);
            }
        }
    }

    /// Writes the header's [`HEADER_SIZE`] bytes, the fields in the server's order.
    ///
    /// # Errors
    ///
    /// A key id above 255 bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let too_long = |_| BinlogError::invalid(WHAT, "key id length", self.key_id.len(), "at most 255");
        let mut bytes = Vec::with_capacity(HEADER_SIZE);
        bytes.put(&MAGIC_ENCRYPTED);
        bytes.put_u8(VERSION);
        bytes.put_u8(FIELD_KEY_ID);
        bytes.put_u8(u8::try_from(self.key_id.len()).map_err(too_long)?);
        bytes.put(self.key_id.as_bytes());
        bytes.put_u8(FIELD_ENCRYPTED_PASSWORD);
        bytes.put(&self.encrypted_password);
        bytes.put_u8(FIELD_IV);
        bytes.put(&self.iv);
        bytes.resize(HEADER_SIZE, FIELD_END);
        Ok(bytes)
    }
}

fn check_start(cursor: &mut Cursor<'_>) -> Result<(), BinlogError> {
    let size = cursor.remaining();
    let magic: [u8; 4] = cursor.array("magic")?;
    if magic != MAGIC_ENCRYPTED {
        return Err(BinlogError::invalid(WHAT, "magic", hex(&magic), "fd 62 69 6e"));
    }
    if size < HEADER_SIZE {
        let needed = HEADER_SIZE as u64;
        let left = size as u64;
        return Err(BinlogError::Short { what: WHAT, field: "all of it", needed, left });
    }
    match cursor.u8("version")? {
        VERSION => Ok(()),
        other => Err(BinlogError::invalid(WHAT, "version", other, "1")),
    }
}

/// The fields read so far. As in the server, the last of two wins.
#[derive(Default)]
struct Fields<'a> {
    key_id: &'a [u8],
    encrypted_password: Option<[u8; PASSWORD_SIZE]>,
    iv: Option<[u8; IV_SIZE]>,
}

impl<'a> Fields<'a> {
    /// Reads a field; gives its type.
    fn read_one(&mut self, cursor: &mut Cursor<'a>) -> Result<u8, BinlogError> {
        let field = cursor.u8("field type")?;
        match field {
            FIELD_END => {}
            FIELD_KEY_ID => {
                let size = cursor.u8("key id length")?;
                self.key_id = cursor.bytes(usize::from(size), "key id")?;
            }
            FIELD_ENCRYPTED_PASSWORD => self.encrypted_password = Some(cursor.array("encrypted password")?),
            FIELD_IV => self.iv = Some(cursor.array("iv")?),
            other => return Err(BinlogError::invalid(WHAT, "field type", other, "1, 2, 3 or 0")),
        }
        Ok(field)
    }

    fn all_there(self) -> Result<EncryptionHeader, BinlogError> {
        let missing = |field| BinlogError::invalid(WHAT, field, "missing", "a field");
        let no_text = |_| BinlogError::invalid(WHAT, "key id", hex(self.key_id), "text in UTF-8");
        if self.key_id.is_empty() {
            return Err(missing("key id"));
        }
        Ok(EncryptionHeader {
            key_id: str::from_utf8(self.key_id).map_err(no_text)?.to_owned(),
            encrypted_password: self.encrypted_password.ok_or_else(|| missing("encrypted password"))?,
            iv: self.iv.ok_or_else(|| missing("iv"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use binlogz_testkit::{corpus, mutate};

    use super::*;
    use crate::cipher::FileCipher;
    use crate::error::Error;
    use crate::keyring::Keyring;
    use binlogz_binlog::MAGIC;

    fn fixture() -> (Vec<u8>, Keyring) {
        let files = corpus::encrypted();
        let log = std::fs::read(files.encrypted).unwrap();
        (log, Keyring::open(&files.keyring).unwrap())
    }

    fn error_of(start: &[u8]) -> String {
        FileCipher::open(start, &fixture().1).unwrap_err().to_string()
    }

    #[test]
    fn the_servers_header_encodes_back_into_its_bytes() {
        let (log, _) = fixture();
        let header = EncryptionHeader::decode(&log).unwrap();
        assert_eq!(header.key_id, "MySQLReplicationKey_fd0d4f88-e54d-11f1-a6c4-02fc00000001_1");
        assert_eq!(header.encode().unwrap(), log[..HEADER_SIZE]);
    }

    #[test]
    fn a_new_header_opens_with_its_key_only() {
        let (log, keyring) = fixture();
        let key = keyring.current_key(None).unwrap();
        let (cipher, header) = FileCipher::create(&key).unwrap();
        let (_, other) = FileCipher::create(&key).unwrap();
        assert_ne!(header, other, "each file has a password of its own");
        let mut start = header.encode().unwrap();
        start.extend_from_slice(&MAGIC);
        cipher.apply(&mut start[HEADER_SIZE..], 0);
        FileCipher::open(&start, &keyring).unwrap();
        start[HEADER_SIZE..].copy_from_slice(&log[HEADER_SIZE..HEADER_SIZE + 4]);
        assert!(matches!(FileCipher::open(&start, &keyring), Err(Error::WrongKey { .. })));
    }

    #[test]
    fn the_longest_key_id_fits_and_no_longer_one() {
        let (log, _) = fixture();
        let mut header = EncryptionHeader::decode(&log).unwrap();
        header.key_id = "k".repeat(255);
        assert_eq!(EncryptionHeader::decode(&header.encode().unwrap()).unwrap(), header);
        header.key_id.push('k');
        let error = header.encode().unwrap_err().to_string();
        assert_eq!(error, "encryption header: key id length is 256, expected at most 255");
    }

    #[test]
    fn a_header_cut_at_any_byte_is_an_error() {
        let (log, keyring) = fixture();
        for size in 0..HEADER_SIZE {
            let error = FileCipher::open(&log[..size], &keyring).unwrap_err().to_string();
            let expected = if size < 4 {
                format!("at 0: encryption header: magic needs 4 bytes, {size} are left")
            } else {
                format!("at 0: encryption header: all of it needs 512 bytes, {size} are left")
            };
            assert_eq!(error, expected);
        }
        // A log that ends after its header, or inside the magic, is cut; that is not an error here.
        for size in HEADER_SIZE..HEADER_SIZE + 5 {
            FileCipher::open(&log[..size], &keyring).unwrap();
        }
    }

    #[test]
    fn fields_that_are_wrong_are_named() {
        let (log, _) = fixture();
        let start = log[..FileCipher::START_SIZE].to_vec();
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut changed = start.clone();
            change(&mut changed);
            error_of(&changed)
        };
        assert_eq!(
            with(&|start| start[0] = 0xfe),
            "at 0: encryption header: magic is fe 62 69 6e, expected fd 62 69 6e"
        );
        assert_eq!(with(&|start| start[4] = 2), "at 0: encryption header: version is 2, expected 1");
        assert_eq!(
            with(&|start| start[5] = 4),
            "at 5: encryption header: field type is 4, expected 1, 2, 3 or 0"
        );
        assert_eq!(
            with(&|start| start[5] = 0),
            "at 5: encryption header: key id is missing, expected a field"
        );
        let no_text = format!("key id is {}, expected text in UTF-8", hex(&[&[0xff], &log[8..65]].concat()));
        assert_eq!(with(&|start| start[7] = 0xff), format!("at 115: encryption header: {no_text}"));
        // After the key id come password (65) and IV (98).
        assert_eq!(
            with(&|start| start[65] = 0),
            "at 65: encryption header: encrypted password is missing, expected a field"
        );
        assert_eq!(with(&|start| start[98] = 0), "at 98: encryption header: iv is missing, expected a field");
        assert_eq!(
            with(&|start| start[115..HEADER_SIZE].fill(FIELD_IV)),
            "at 506: encryption header: iv needs 16 bytes, 5 are left"
        );
        assert_eq!(
            with(&|start| start[HEADER_SIZE] ^= 1),
            "decrypted with key MySQLReplicationKey_fd0d4f88-e54d-11f1-a6c4-02fc00000001_1 the log begins \
             with ff 62 69 6e, expected fe 62 69 6e: the keyring has another key of this name, or the \
             encryption header is damaged"
        );
    }

    #[test]
    fn mutated_headers_never_panic() {
        let (log, keyring) = fixture();
        let seed = mutate::seed();
        let mut opened = 0;
        for index in 0..20_000 {
            let (start, _) = mutate::mutate(&log[..FileCipher::START_SIZE], seed, index);
            opened += u32::from(FileCipher::open(&start, &keyring).is_ok());
        }
        // Only where the damage is after the fields: the loop went through all of the code.
        assert!((1..20_000).contains(&opened), "{opened} opened");
    }
}
