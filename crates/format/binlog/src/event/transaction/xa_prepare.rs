//! Ends the first phase of an XA transaction, or the whole of it (`XA COMMIT … ONE PHASE`).
//!
//! ```text
//! offset size field
//!      0    1 one_phase
//!      1    4 format_id
//!      5    4 gtrid_length   at most 64
//!      9    4 bqual_length   at most 64
//!     13    n gtrid
//!   13+n    m bqual
//! ```
//!
//! (Facts of MySQL 9.7.4's `XA_prepare_event`.)

use std::fmt;

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::narrow;
use crate::frame::decode_whole;
use crate::put::PutFields;

const WHAT: &str = "xa prepare event";
/// The most bytes of each part of an XA identifier (`MAXGTRIDSIZE`, `MAXBQUALSIZE` in X/Open XA).
const PART_SIZE_MAX: u32 = 64;

/// An XA transaction's identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct XaId<'a> {
    /// Says how the parts are to be read; 1 by default.
    pub format_id: u32,
    /// The global transaction identifier.
    pub gtrid: &'a [u8],
    /// The branch qualifier.
    pub bqual: &'a [u8],
}

impl fmt::Display for XaId<'_> {
    /// Writes the id as the server spells it in statements and mysqlbinlog prints it: `X'6162',X'',1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("X'")?;
        self.gtrid.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("',X'")?;
        self.bqual.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "',{}", self.format_id)
    }
}

/// A decoded XA prepare event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XaPrepareEvent<'a> {
    /// Whether the transaction is committed at once.
    pub one_phase: bool,
    /// Which transaction.
    pub xa_id: XaId<'a>,
}

impl<'a> XaPrepareEvent<'a> {
    /// Reads a body without its checksum.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, WHAT, |cursor| {
            let one_phase = match cursor.u8("one phase")? {
                0 => false,
                1 => true,
                other => return Err(Error::invalid(WHAT, "one phase", other, "0 or 1")),
            };
            let format_id = cursor.u32("format id")?;
            let gtrid_length = part_length(cursor, "gtrid length")?;
            let bqual_length = part_length(cursor, "bqual length")?;
            let gtrid = cursor.bytes(gtrid_length, "gtrid")?;
            let bqual = cursor.bytes(bqual_length, "bqual")?;
            Ok(XaPrepareEvent { one_phase, xa_id: XaId { format_id, gtrid, bqual } })
        })
    }

    /// The body as it stands in a file, without the checksum.
    ///
    /// # Errors
    ///
    /// A part of 4 GiB or more: its length does not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let XaId { format_id, gtrid, bqual } = self.xa_id;
        let mut body = Vec::with_capacity(13 + gtrid.len() + bqual.len());
        body.put_u8(u8::from(self.one_phase));
        body.put_u32(format_id);
        body.put_u32(narrow(gtrid.len(), WHAT, "gtrid length", "at most 64 bytes")?);
        body.put_u32(narrow(bqual.len(), WHAT, "bqual length", "at most 64 bytes")?);
        body.put(gtrid);
        body.put(bqual);
        Ok(body)
    }
}

fn part_length(cursor: &mut Cursor<'_>, field: &'static str) -> Result<usize> {
    match cursor.u32(field)? {
        length @ 0..=PART_SIZE_MAX => Ok(length as usize),
        length => Err(Error::invalid(WHAT, field, length, "at most 64 bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> XaPrepareEvent<'static> {
        XaPrepareEvent { one_phase: true, xa_id: XaId { format_id: 1, gtrid: b"ab", bqual: b"c" } }
    }

    #[test]
    fn both_directions_agree() {
        let body = event().encode().unwrap();
        assert_eq!(body, b"\x01\x01\0\0\0\x02\0\0\0\x01\0\0\0abc");
        assert_eq!(XaPrepareEvent::decode(&body).unwrap(), event());
        assert_eq!(event().xa_id.to_string(), "X'6162',X'63',1");
        for length in 0..body.len() {
            assert!(XaPrepareEvent::decode(&body[..length]).is_err(), "{length}");
        }
        assert!(XaPrepareEvent::decode(&[&body[..], b"x"].concat()).is_err());
    }

    #[test]
    fn parts_are_bounded() {
        let mut body = event().encode().unwrap();
        body[5] = 65;
        let error = XaPrepareEvent::decode(&body).unwrap_err();
        assert_eq!(error.to_string(), "xa prepare event: gtrid length is 65, expected at most 64 bytes");
        body[0] = 2;
        assert!(XaPrepareEvent::decode(&body).is_err());
    }
}
