//! What a changed row of a parent did with its children, in the order of the log.
//!
//! ```text
//! kind of the record  0 the parent's row met a constraint; 1 a child
//! size field
//!   32 place        log, offset, index in the payload (u64::MAX: in none), row, of the parent's row: u64 each
//!    4 constraint
//!      of a child: 4 layout · 1 flags · n what the renderer wrote
//! ```

use std::io;

use binlogz_payload::Spool;

use super::fields::{RecordFields, broken};
use super::frame::put;

/// Where a row stands: log, offset of the event or its payload, index in the payload, row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowPlace {
    pub(crate) log: u64,
    pub(crate) offset: u64,
    pub(crate) inside: u64,
    pub(crate) row: u64,
}

/// The effect of a parent's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EffectRecord<'b> {
    pub(crate) place: RowPlace,
    pub(crate) constraint: usize,
    /// Layout, flags, text. `None`: the row met the constraint.
    pub(crate) child: Option<(usize, u8, &'b [u8])>,
}

impl<'b> EffectRecord<'b> {
    pub(crate) fn read(kind: u8, content: &'b [u8]) -> io::Result<Self> {
        let mut fields = RecordFields::of(content);
        let log = fields.u64()?;
        let offset = fields.u64()?;
        let inside = fields.u64()?;
        let row = fields.u64()?;
        let place = RowPlace { log, offset, inside, row };
        let constraint = fields.u32()? as usize;
        let child = match kind {
            0 => None,
            1 => Some((fields.u32()? as usize, fields.u8()?, fields.rest())),
            _ => return Err(broken()),
        };
        Ok(EffectRecord { place, constraint, child })
    }

    pub(crate) fn put(&self, spool: &mut Spool) -> io::Result<()> {
        let RowPlace { log, offset, inside, row } = self.place;
        let place = [log, offset, inside, row].map(u64::to_le_bytes);
        let constraint = (self.constraint as u32).to_le_bytes();
        match self.child {
            None => put(spool, 0, &[place.as_flattened(), &constraint]),
            Some((layout, flags, text)) => {
                let layout = (layout as u32).to_le_bytes();
                put(spool, 1, &[place.as_flattened(), &constraint, &layout, &[flags], text])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use binlogz_payload::SpoolMemory;

    use super::super::frame::RecordReader;
    use super::*;

    #[test]
    fn effects_come_back() {
        let place = RowPlace { log: 1, offset: 1 << 40, inside: u64::MAX, row: 3 };
        let met = EffectRecord { place, constraint: 4, child: None };
        let effects = [met, EffectRecord { child: Some((5, 6, b"text")), ..met }];
        let mut spool = Spool::new(&SpoolMemory::new(1 << 10), Vec::new());
        effects.iter().for_each(|effect| effect.put(&mut spool).unwrap());
        let mut reader = RecordReader::new(spool.reader(0..spool.size()));
        for effect in effects {
            let (kind, content) = reader.next().unwrap().unwrap();
            assert_eq!(EffectRecord::read(kind, content).unwrap(), effect);
            EffectRecord::read(2, content).unwrap_err();
        }
        assert!(reader.is_at_end().unwrap());
    }
}
