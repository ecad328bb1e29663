//! COM_CHANGE_USER: a client becomes another account on its connection. The server answers as to a login.
//!
//! ```text
//! size field
//!    1 command     11
//!    + user        NUL
//!    + proof       one byte of length and bytes; without SECURE_CONNECTION up to a NUL
//!    + database    NUL
//!    2 collation   this field and those after it may be left out
//!    + plugin      NUL; with PLUGIN_AUTH
//!    + attributes  with CONNECT_ATTRS: LEI size of all, then name and value, LEI length and bytes each
//! ```
//!
//! The capabilities that the client named at login decide which fields there are. libmysqlclient sends an empty proof and
//! waits for a switch of the plugin; other clients prove themselves with the greeting's nonce at once. (Facts of MySQL
//! 9.7.4's `parse_com_change_user_packet`.)

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::PutFields;
use binlogz_binlog::{Error, Result};

use crate::capabilities::Capabilities;
use crate::fields::{
    put_lei_text, put_nul_text, put_short_text, take_lei_text, take_nul_text, take_short_text,
};
use crate::handshake_response::decode_attributes;

const WHAT: &str = "change of user";
/// COM_CHANGE_USER.
pub(crate) const CHANGE_USER: u8 = 0x11;

/// The account that a client wants to be from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// The account's name.
    pub user: &'a [u8],
    /// The plugin's proof that the client knows the password; empty if it waits for a nonce.
    pub proof: &'a [u8],
    /// The default database.
    pub database: &'a [u8],
    /// The number of the session's collation.
    pub collation: Option<u16>,
    /// The plugin that made the proof.
    pub plugin: &'a [u8],
    /// Names and values with which the client describes itself.
    pub attributes: Option<Vec<(&'a [u8], &'a [u8])>>,
}

impl<'a> ChangeUser<'a> {
    /// Reads the message of a client with these capabilities. Bytes after the last field are ignored, as by the server.
    pub fn decode(message: &'a [u8], capabilities: Capabilities) -> Result<Self> {
        let mut cursor = Cursor::new(message, WHAT);
        let command = cursor.u8("command")?;
        if command != CHANGE_USER {
            return Err(Error::invalid(WHAT, "command", format!("{command:#04x}"), "0x11"));
        }
        let user = take_nul_text(&mut cursor, "user")?;
        let proof = match capabilities.contains(Capabilities::SECURE_CONNECTION) {
            true => take_short_text(&mut cursor, "proof")?,
            false => take_nul_text(&mut cursor, "proof")?,
        };
        let database = take_nul_text(&mut cursor, "database")?;
        let collation = (cursor.peek().len() >= 2).then(|| cursor.u16("collation")).transpose()?;
        let has = |capability, cursor: &Cursor<'_>| capabilities.contains(capability) && !cursor.is_empty();
        let plugin = match has(Capabilities::PLUGIN_AUTH, &cursor) {
            true => take_nul_text(&mut cursor, "plugin")?,
            false => b"".as_slice(),
        };
        let attributes = match has(Capabilities::CONNECT_ATTRS, &cursor) {
            true => Some(decode_attributes(take_lei_text(&mut cursor, "attributes")?)),
            false => None,
        };
        Ok(ChangeUser { user, proof, database, collation, plugin, attributes })
    }

    /// Appends the message of a client with all capabilities.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(CHANGE_USER);
        put_nul_text(out, self.user);
        put_short_text(out, self.proof);
        put_nul_text(out, self.database);
        let Some(collation) = self.collation else { return };
        out.put_u16(collation);
        put_nul_text(out, self.plugin);
        let Some(attributes) = &self.attributes else { return };
        let mut all = Vec::new();
        for (name, value) in attributes {
            put_lei_text(&mut all, name);
            put_lei_text(&mut all, value);
        }
        put_lei_text(out, &all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree_and_fields_at_the_end_may_be_missing() {
        let full = ChangeUser {
            user: b"repl",
            proof: &[7; 20],
            database: b"shop",
            collation: Some(255),
            plugin: b"mysql_native_password",
            attributes: Some(vec![(b"_client_name", b"libmysql")]),
        };
        let without = ChangeUser { attributes: None, ..full.clone() };
        let short = ChangeUser { collation: None, plugin: b"", ..without.clone() };
        let all = Capabilities(u32::MAX);
        for change in [full, without, short] {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            assert_eq!(ChangeUser::decode(&bytes, all).unwrap(), change);
            for end in 0..30 {
                assert!(ChangeUser::decode(bytes.get(..end).unwrap(), all).is_err(), "cut at {end}");
            }
        }
        // Before plugins, and before the proof had a length.
        let old = ChangeUser::decode(b"\x11repl\0hash\0shop\0", Capabilities::PROTOCOL_41).unwrap();
        assert_eq!((old.proof, old.database), (b"hash".as_slice(), b"shop".as_slice()));
    }
}
