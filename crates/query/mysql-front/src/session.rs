//! The state of a client's session that goes to a worker with its statement.
//!
//! ```text
//! 1  purpose            what the answer is for
//! 4  connection         its number, little-endian
//! 1  is encrypted
//! 8  most rows          sql_select_limit
//!    user · database · address · the names and values of changed variables, each after its size of 4 bytes
//! ```

use binlogz_query_server::sized;
use bytes::{Buf, BufMut, Bytes};

/// The purpose of a statement's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AnswerPurpose {
    /// A list that is made beside other queries, if the statement asks for one: see `worker`.
    Listing,
    /// The columns and parameters of a prepared statement.
    Prepare,
    /// Rows as text.
    #[default]
    Text,
    /// Rows in the form of prepared statements.
    Binary,
}

impl AnswerPurpose {
    const ALL: [AnswerPurpose; 4] =
        [AnswerPurpose::Listing, AnswerPurpose::Prepare, AnswerPurpose::Text, AnswerPurpose::Binary];
}

/// A client's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MysqlSession {
    pub(crate) purpose: AnswerPurpose,
    pub(crate) connection: u32,
    pub(crate) is_encrypted: bool,
    /// The most rows of an answer.
    pub(crate) rows_max: u64,
    pub(crate) user: String,
    /// The default database; empty: none.
    pub(crate) database: String,
    /// The client's address.
    pub(crate) address: String,
    /// Variables that the client has set, by name.
    pub(crate) changed: Vec<(String, String)>,
}

impl MysqlSession {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        out.put_u8(self.purpose as u8);
        out.put_u32_le(self.connection);
        out.put_u8(u8::from(self.is_encrypted));
        out.put_u64_le(self.rows_max);
        let names = [&self.user, &self.database, &self.address];
        let changed = self.changed.iter().flat_map(|(name, value)| [name, value]);
        for text in names.into_iter().chain(changed) {
            out.put_u32_le(u32::try_from(text.len()).unwrap_or(0));
            out.put_slice(text.as_bytes());
        }
        out.into()
    }

    /// Reads what [`MysqlSession::encode`] wrote; `None`: something else did.
    pub(crate) fn decode(mut bytes: Bytes) -> Option<Self> {
        let purpose = bytes.try_get_u8().ok()?;
        let purpose = AnswerPurpose::ALL.into_iter().find(|known| *known as u8 == purpose)?;
        let connection = bytes.try_get_u32_le().ok()?;
        let is_encrypted = bytes.try_get_u8().ok()? != 0;
        let rows_max = bytes.try_get_u64_le().ok()?;
        let user = text(&mut bytes)?;
        let database = text(&mut bytes)?;
        let address = text(&mut bytes)?;
        let mut changed = Vec::new();
        while !bytes.is_empty() {
            changed.push((text(&mut bytes)?, text(&mut bytes)?));
        }
        Some(MysqlSession { purpose, connection, is_encrypted, rows_max, user, database, address, changed })
    }
}

fn text(bytes: &mut Bytes) -> Option<String> {
    String::from_utf8(sized(bytes)?.to_vec()).ok()
}

/// Appends a message after its size, for those who pass on messages without knowing them.
pub(crate) fn put_message(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.put_u32_le(0);
    write(out);
    let size = u32::try_from(out.len() - begin - 4).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(begin..begin + 4) {
        place.copy_from_slice(&size.to_le_bytes());
    }
}

/// A session for tests.
#[cfg(test)]
pub(crate) fn for_tests() -> MysqlSession {
    MysqlSession {
        purpose: AnswerPurpose::Binary,
        connection: 7,
        is_encrypted: true,
        rows_max: u64::MAX,
        user: "reader".to_owned(),
        database: "shop".to_owned(),
        address: "127.0.0.1".to_owned(),
        changed: vec![("sql_mode".to_owned(), String::new())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_comes_back_and_every_cut_is_seen() {
        let session = for_tests();
        let bytes = session.encode();
        assert_eq!(MysqlSession::decode(bytes.clone()), Some(session));
        let whole = bytes.len() - 16;
        for size in (0..bytes.len()).filter(|size| *size != whole) {
            assert_eq!(MysqlSession::decode(bytes.slice(..size)), None, "{size}");
        }
    }
}
