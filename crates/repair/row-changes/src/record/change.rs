//! A row's change by its images, for those who follow rows.
//!
//! ```text
//! size field
//!    1 operation  0 insert, 1 update, 2 delete
//!      images     before and after the change, as far as there are, see cells.rs
//! ```

use std::io;

use binlogz_binlog::put::PutFields;

use super::cells::{ImageCells, push_cells, take_cells};
use super::fields::{RecordFields, broken};
use crate::choose::Operation;

/// A row's operation and its images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowImages<'b> {
    pub(crate) operation: Operation,
    pub(crate) before: Option<ImageCells<'b>>,
    pub(crate) after: Option<ImageCells<'b>>,
}

impl<'b> RowImages<'b> {
    pub(crate) fn read(bytes: &'b [u8]) -> io::Result<Self> {
        let mut fields = RecordFields::of(bytes);
        let operation = match fields.u8()? {
            0 => Operation::Insert,
            1 => Operation::Update,
            2 => Operation::Delete,
            _ => return Err(broken()),
        };
        let first = take_cells(&mut fields)?;
        let second = if fields.is_empty() { None } else { Some(take_cells(&mut fields)?) };
        fields.finish()?;
        let (before, after) = match operation {
            Operation::Insert => (None, Some(first)),
            Operation::Update => (Some(first), second),
            Operation::Delete => (Some(first), None),
        };
        Ok(RowImages { operation, before, after })
    }

    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        out.put_u8(match self.operation {
            Operation::Insert => 0,
            Operation::Update => 1,
            Operation::Delete => 2,
        });
        [&self.before, &self.after].into_iter().flatten().for_each(|cells| push_cells(out, cells));
    }
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::row::CellContent;

    use super::*;

    #[test]
    fn images_come_back_with_their_operation_and_cut_ones_do_not() {
        let one = || Some(vec![Some(CellContent::Value(b"1")), None]);
        let two = || Some(vec![Some(CellContent::Null), Some(CellContent::Value(b"2"))]);
        for (operation, before, after) in [
            (Operation::Insert, None, one()),
            (Operation::Update, one(), two()),
            (Operation::Delete, two(), None),
        ] {
            let images = RowImages { operation, before, after };
            let mut bytes = Vec::new();
            images.push(&mut bytes);
            assert_eq!(RowImages::read(&bytes).unwrap(), images);
            bytes.pop();
            RowImages::read(&bytes).unwrap_err();
        }
        RowImages::read(&[3, 0, 0]).unwrap_err();
    }
}
