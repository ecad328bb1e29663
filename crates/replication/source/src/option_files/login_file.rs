//! `~/.mylogin.cnf`, as `mysql_config_editor` writes it: an option file with encrypted lines, preceded by the
//! key. That only keeps passwords from being read over a shoulder.
//!
//! ```text
//! size field
//!    4 unused
//!   20 key        its bytes 16 to 19 are XORed into the first four: AES-128
//!   then for each line
//!    4 size
//!    n line       AES-128 in ECB mode, padded by 1 to 16 bytes that hold their number
//! ```

use aes::Aes128;
use aes::cipher::{BlockDecrypt, KeyInit};
use binlogz_binlog::cursor::Cursor;

const UNUSED_SIZE: usize = 4;
const KEY_SIZE: usize = 20;
const AES_KEY_SIZE: usize = 16;
const BLOCK_SIZE: usize = 16;

/// The lines of the file.
pub(super) fn decrypt(file: &[u8]) -> Result<Vec<u8>, String> {
    let mut cursor = Cursor::new(file, "login file");
    let text = |error: binlogz_binlog::Error| error.to_string();
    cursor.bytes(UNUSED_SIZE, "unused").map_err(text)?;
    let long_key: [u8; KEY_SIZE] = cursor.array("key").map_err(text)?;
    let mut key = [0; AES_KEY_SIZE];
    for part in long_key.chunks(AES_KEY_SIZE) {
        key.iter_mut().zip(part).for_each(|(key, byte)| *key ^= byte);
    }
    let cipher = Aes128::new(&key.into());
    let mut plain = Vec::with_capacity(file.len());
    while !cursor.is_empty() {
        let size = cursor.u32("line size").map_err(text)?;
        let line = cursor.bytes_u64(u64::from(size), "line").map_err(text)?;
        plain.extend(decrypt_line(&cipher, line)?);
    }
    Ok(plain)
}

fn decrypt_line(cipher: &Aes128, line: &[u8]) -> Result<Vec<u8>, String> {
    let (blocks, []) = line.as_chunks::<BLOCK_SIZE>() else {
        return Err(format!("line has {} bytes, expected whole blocks of 16", line.len()));
    };
    let mut plain = Vec::with_capacity(line.len());
    for block in blocks {
        let mut block = (*block).into();
        cipher.decrypt_block(&mut block);
        plain.extend_from_slice(&block);
    }
    match plain.last() {
        Some(&padding @ 1..=16) => plain.truncate(plain.len() - usize::from(padding)),
        _ => return Err("line does not decrypt".into()),
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by mysql_config_editor of MySQL 9.7.4: `set --login-path=foo --user=me --host=h1 --password`, `secret`.
    const FILE: &[u8] = include_bytes!("../../tests/mylogin.cnf");

    #[test]
    fn a_real_file_is_read() {
        let text = decrypt(FILE).expect("a login file");
        let text = String::from_utf8_lossy(&text);
        assert_eq!(text, "[foo]\nuser = \"me\"\npassword = \"secret\"\nhost = \"h1\"\n");
    }

    #[test]
    fn damage_is_an_error_and_no_panic() {
        for length in 1..UNUSED_SIZE + KEY_SIZE {
            assert!(decrypt(&FILE[..length]).is_err());
        }
        let error = decrypt(&FILE[..FILE.len() - 1]).expect_err("cut");
        assert_eq!(error, "login file: line needs 16 bytes, 15 are left");
        for index in 0..FILE.len() {
            let mut damaged = FILE.to_vec();
            damaged[index] ^= 0x55;
            let _ = decrypt(&damaged);
        }
    }
}
