//! The rows of other tables that a chosen row refers to by its foreign keys, and later changes of such rows.
//!
//! ```text
//! references      for each: 1 whether the row after the change has it (0, 1), 4 the foreign key's number, 1 whether the digest is known
//!                 (0, 1), 16 digest of the values
//! parent changed  4 the foreign key's number, 1 operation (0 update, 1 delete), 1 and 16 the digest as above
//! ```

use std::io;

use binlogz_binlog::put::PutFields;

use super::fields::{RecordFields, broken};
use crate::choose::Operation;

/// A row's reference to a parent's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowReference {
    /// Whether the row has it after its change, and not before.
    pub(crate) is_after: bool,
    pub(crate) key: u32,
    /// The digest of the key's number and the values; `None`: they aren't known.
    pub(crate) digest: Option<u128>,
}

/// A change of a parent's row that foreign keys carried on below the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CarriedParent {
    pub(crate) key: u32,
    pub(crate) operation: Operation,
    /// The digest of what rows of the child have that refer to the row, as in [`RowReference`].
    pub(crate) digest: Option<u128>,
}

fn put_digest(out: &mut Vec<u8>, digest: Option<u128>) {
    out.put_u8(u8::from(digest.is_some()));
    out.put(&digest.unwrap_or_default().to_le_bytes());
}

fn take_digest(fields: &mut RecordFields<'_>) -> io::Result<Option<u128>> {
    let is_known = fields.u8()?;
    let digest = fields.u128()?;
    match is_known {
        0 => Ok(None),
        1 => Ok(Some(digest)),
        _ => Err(broken()),
    }
}

impl RowReference {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(u8::from(self.is_after));
        out.put_u32(self.key);
        put_digest(out, self.digest);
    }

    /// Takes all that a record has.
    pub(super) fn take_all(mut fields: RecordFields<'_>) -> io::Result<Vec<Self>> {
        let mut all = Vec::new();
        while !fields.is_empty() {
            let is_after = fields.u8()? == 1;
            all.push(RowReference { is_after, key: fields.u32()?, digest: take_digest(&mut fields)? });
        }
        Ok(all)
    }
}

impl CarriedParent {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.key);
        out.put_u8(u8::from(self.operation == Operation::Delete));
        put_digest(out, self.digest);
    }

    pub(super) fn take(mut fields: RecordFields<'_>) -> io::Result<Self> {
        let key = fields.u32()?;
        let operation = if fields.u8()? == 1 { Operation::Delete } else { Operation::Update };
        let digest = take_digest(&mut fields)?;
        fields.finish()?;
        Ok(CarriedParent { key, operation, digest })
    }
}
