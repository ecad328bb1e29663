//! The client's answer to the greeting, and the request for TLS that may come before it.
//!
//! ```text
//! size field
//!    4 capabilities
//!    4 packet_size_max
//!    1 collation
//!   23 filler         0; MariaDB: 19 zeros and 4 bytes of capabilities of its own
//!                     the request for TLS ends here
//!    + user           NUL
//!    + proof          LEI length and bytes; one byte of length without PLUGIN_AUTH_LENENC_DATA
//!    + database       NUL; with CONNECT_WITH_DB
//!    + plugin         NUL; with PLUGIN_AUTH. Some clients announce a plugin and end here: the name is then empty
//!    + attributes     with CONNECT_ATTRS: LEI size of all, then name and value, LEI length and bytes each
//!    1 zstd_level     with ZSTD_COMPRESSION
//! ```

use binlogz_binlog::Result;
use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::{PutFields, lei_size};

use crate::capabilities::Capabilities;
use crate::fields::{
    put_lei_text, put_nul_text, put_short_text, take_lei_text, take_nul_text, take_short_text,
};

const WHAT: &str = "handshake response";
const FILLER_SIZE: usize = 23;

/// The fixed start of the answer; sent alone it asks for TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SslRequest {
    /// The capabilities that client and server share.
    pub capabilities: Capabilities,
    /// The largest packet that the client accepts, in bytes.
    pub packet_size_max: u32,
    /// The collation of the client's texts.
    pub collation: u8,
    /// Filler bytes; see the table above.
    pub filler: [u8; FILLER_SIZE],
}

impl SslRequest {
    /// Reads the message.
    pub fn decode(message: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, WHAT);
        let request = Self::take(&mut cursor)?;
        cursor.finish()?;
        Ok(request)
    }

    /// Whether a message asks for TLS: the flag tells, as at the server, and bytes after the front are ignored.
    pub(crate) fn asks_for_tls(message: &[u8]) -> bool {
        let request = SslRequest::take(&mut Cursor::new(message, WHAT));
        request.is_ok_and(|request| request.capabilities.contains(Capabilities::SSL))
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.capabilities.0);
        out.put_u32(self.packet_size_max);
        out.put_u8(self.collation);
        out.put(&self.filler);
    }

    fn take(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(SslRequest {
            capabilities: Capabilities(cursor.u32("capabilities")?),
            packet_size_max: cursor.u32("packet size max")?,
            collation: cursor.u8("collation")?,
            filler: cursor.array("filler")?,
        })
    }
}

/// The client's identity and proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeResponse<'a> {
    /// The fixed start of the answer.
    pub head: SslRequest,
    /// The account's name.
    pub user: &'a [u8],
    /// The plugin's proof that the client knows the password.
    pub proof: &'a [u8],
    /// The default database.
    pub database: Option<&'a [u8]>,
    /// The plugin that made the proof.
    pub plugin: Option<&'a [u8]>,
    /// Names and values with which the client describes itself.
    pub attributes: Vec<(&'a [u8], &'a [u8])>,
    /// The level at which packets are to be compressed.
    pub zstd_level: Option<u8>,
}

impl<'a> HandshakeResponse<'a> {
    /// Reads the message. Bytes after the last field are ignored.
    pub fn decode(message: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, WHAT);
        let head = SslRequest::take(&mut cursor)?;
        let has = |capability| head.capabilities.contains(capability);
        let user = take_nul_text(&mut cursor, "user")?;
        let proof = if has(Capabilities::PLUGIN_AUTH_LENENC_DATA) {
            take_lei_text(&mut cursor, "proof")?
        } else {
            take_short_text(&mut cursor, "proof")?
        };
        let database =
            has(Capabilities::CONNECT_WITH_DB).then(|| take_nul_text(&mut cursor, "database")).transpose()?;
        // As the server does: @vlasky/mysql announces a plugin and names none.
        let takes_plugin = has(Capabilities::PLUGIN_AUTH) && !cursor.is_empty();
        let plugin = match takes_plugin {
            true => Some(take_nul_text(&mut cursor, "plugin")?),
            false => has(Capabilities::PLUGIN_AUTH).then_some(b"".as_slice()),
        };
        let attributes = if has(Capabilities::CONNECT_ATTRS) {
            decode_attributes(take_lei_text(&mut cursor, "attributes")?)
        } else {
            Vec::new()
        };
        let zstd_level = has(Capabilities::ZSTD_COMPRESSION).then(|| cursor.u8("zstd level")).transpose()?;
        // What follows is ignored, as by the server: Connector/J 5.1.49 sends 27 NULs.
        Ok(HandshakeResponse { head, user, proof, database, plugin, attributes, zstd_level })
    }

    /// Appends the message. Fields that [`SslRequest::capabilities`] does not announce are left out.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let has = |capability| self.head.capabilities.contains(capability);
        self.head.encode(out);
        put_nul_text(out, self.user);
        if has(Capabilities::PLUGIN_AUTH_LENENC_DATA) {
            put_lei_text(out, self.proof);
        } else {
            put_short_text(out, self.proof);
        }
        if has(Capabilities::CONNECT_WITH_DB) {
            put_nul_text(out, self.database.unwrap_or_default());
        }
        if has(Capabilities::PLUGIN_AUTH) {
            put_nul_text(out, self.plugin.unwrap_or_default());
        }
        if has(Capabilities::CONNECT_ATTRS) {
            let size = |text: &[u8]| lei_size(text.len() as u64) + text.len();
            let total: usize = self.attributes.iter().map(|(name, value)| size(name) + size(value)).sum();
            out.put_lei(total as u64);
            for (name, value) in &self.attributes {
                put_lei_text(out, name);
                put_lei_text(out, value);
            }
        }
        if has(Capabilities::ZSTD_COMPRESSION) {
            out.put_u8(self.zstd_level.unwrap_or_default());
        }
    }
}

/// The attributes, up to one that is not whole: a server takes those before it and lets the client in.
pub(crate) fn decode_attributes(bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut cursor = Cursor::new(bytes, WHAT);
    let mut attributes = Vec::new();
    while !cursor.is_empty() {
        let name = take_lei_text(&mut cursor, "attribute name");
        let Ok(attribute) = name.and_then(|name| Ok((name, take_lei_text(&mut cursor, "attribute value")?)))
        else {
            break;
        };
        attributes.push(attribute);
    }
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_cuts_are_errors_and_more_is_ignored, assert_every_cut_is_an_error};

    fn response(capabilities: Capabilities) -> HandshakeResponse<'static> {
        HandshakeResponse {
            head: SslRequest {
                capabilities,
                packet_size_max: 1 << 24,
                collation: 255,
                filler: [0; FILLER_SIZE],
            },
            user: b"repl",
            proof: b"\x01\x02\x03",
            database: None,
            plugin: None,
            attributes: Vec::new(),
            zstd_level: None,
        }
    }

    #[test]
    fn both_directions_agree() {
        let all = Capabilities::PLUGIN_AUTH
            | Capabilities::PLUGIN_AUTH_LENENC_DATA
            | Capabilities::CONNECT_ATTRS
            | Capabilities::CONNECT_WITH_DB
            | Capabilities::ZSTD_COMPRESSION;
        let full = HandshakeResponse {
            proof: &[7; 300],
            database: Some(b"shop"),
            plugin: Some(b"sha256_password"),
            attributes: vec![(b"_client_name", b"binlogz"), (b"", b"")],
            zstd_level: Some(3),
            ..response(all)
        };
        for response in [full, response(Capabilities::PROTOCOL_41)] {
            let mut bytes = Vec::new();
            response.encode(&mut bytes);
            assert_eq!(HandshakeResponse::decode(&bytes).unwrap(), response);
            assert_cuts_are_errors_and_more_is_ignored(&bytes, |bytes| {
                HandshakeResponse::decode(bytes).map(drop)
            });
        }
    }

    #[test]
    fn a_plugin_that_is_announced_may_have_no_name() {
        let mut bytes = Vec::new();
        response(Capabilities::PROTOCOL_41 | Capabilities::PLUGIN_AUTH).encode(&mut bytes);
        assert_eq!(bytes.pop(), Some(0), "the name's end");
        let response = HandshakeResponse::decode(&bytes).unwrap();
        assert_eq!((response.user, response.plugin), (b"repl".as_slice(), Some(b"".as_slice())));
        // A name without its NUL is not a name.
        bytes.extend_from_slice(b"mysql_native_password");
        assert!(HandshakeResponse::decode(&bytes).is_err());
    }

    #[test]
    fn what_follows_the_last_field_is_ignored() {
        // Behind the packet's header.
        let recorded = include_bytes!("../tests/data/handshake-5.1.49.bin").get(4..).unwrap();
        let response = HandshakeResponse::decode(recorded).unwrap();
        assert_eq!(response.user, b"cdc");
        assert_eq!(
            response.attributes.last(),
            Some(&(b"_client_name".as_slice(), b"MySQL Connector Java".as_slice()))
        );
        assert!(recorded.ends_with(&[0; 27]));
        // An attribute that is not whole ends the attributes, not the login.
        let mut cut = recorded.to_vec();
        let size = cut.iter().position(|byte| *byte == 0x7d).unwrap();
        cut[size] -= 3;
        let cut = HandshakeResponse::decode(&cut).unwrap();
        assert_eq!((cut.attributes.len(), cut.user), (4, b"cdc".as_slice()));
    }

    #[test]
    fn the_request_for_tls_is_the_front_alone() {
        let request = response(Capabilities::SSL).head;
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        assert_eq!(bytes.len(), 32);
        assert_eq!(SslRequest::decode(&bytes).unwrap(), request);
        assert_every_cut_is_an_error(&bytes, |bytes| SslRequest::decode(bytes).map(drop));
    }
}
