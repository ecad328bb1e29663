//! The columns of a row image as bytes.
//!
//! ```text
//! size field
//!    2 columns
//!      for each: 1 kind (0 absent, 1 NULL, 2 a value, 3 differences of a JSON document) · of the last two 4 size, n bytes
//! ```

use binlogz_binlog::put::PutFields;
use binlogz_binlog::row::{CellContent, RowImage};

/// `None`: the image doesn't have the column.
pub(crate) type ImageCells<'a> = Vec<Option<CellContent<'a>>>;

/// The cells of an image. A JSON document that was logged as differences counts as absent.
pub(crate) fn cells_of<'a>(image: &RowImage<'_, 'a>, columns: usize) -> ImageCells<'a> {
    let known = |content: &CellContent<'_>| !matches!(content, CellContent::JsonDiffs(_));
    (0..columns).map(|index| image.cell(index).map(|cell| cell.content).filter(known)).collect()
}

/// The cells of an image, differences among them.
pub(crate) fn cells_with_differences<'a>(image: &RowImage<'_, 'a>, columns: usize) -> ImageCells<'a> {
    (0..columns).map(|index| image.cell(index).map(|cell| cell.content)).collect()
}

pub(crate) fn push_cells(out: &mut Vec<u8>, cells: &ImageCells<'_>) {
    out.put_u16(cells.len() as u16);
    for cell in cells {
        match cell {
            None => out.put_u8(0),
            Some(CellContent::Null) => out.put_u8(1),
            Some(CellContent::Value(bytes)) => {
                out.put_u8(2);
                out.put_u32(bytes.len() as u32);
                out.put(bytes);
            }
            Some(CellContent::JsonDiffs(bytes)) => {
                out.put_u8(3);
                out.put_u32(bytes.len() as u32);
                out.put(bytes);
            }
        }
    }
}

/// The cells, and what follows them.
pub(crate) fn read_cells(bytes: &[u8]) -> Option<(ImageCells<'_>, &[u8])> {
    let (count, mut rest) = bytes.split_first_chunk()?;
    let mut cells = ImageCells::new();
    for _ in 0..u16::from_le_bytes(*count) {
        let (kind, after) = rest.split_first()?;
        rest = after;
        cells.push(match kind {
            0 => None,
            1 => Some(CellContent::Null),
            kind => {
                let (size, after) = rest.split_first_chunk()?;
                let (value, after) = after.split_at_checked(u32::from_le_bytes(*size) as usize)?;
                rest = after;
                Some(if *kind == 2 { CellContent::Value(value) } else { CellContent::JsonDiffs(value) })
            }
        });
    }
    Some((cells, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_back() {
        let cells = vec![
            None,
            Some(CellContent::Null),
            Some(CellContent::Value(b"")),
            Some(CellContent::Value(b"x")),
            Some(CellContent::JsonDiffs(b"\0\x01$")),
        ];
        let mut bytes = Vec::new();
        push_cells(&mut bytes, &cells);
        bytes.push(7);
        assert_eq!(read_cells(&bytes), Some((cells, &[7][..])));
        for end in 0..bytes.len() - 1 {
            assert_eq!(read_cells(&bytes[..end]), None, "{end}");
        }
    }
}
