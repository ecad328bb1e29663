//! The columns of a row image as bytes.
//!
//! ```text
//! size field
//!    2 columns
//!      for each: 1 kind (0 absent, 1 NULL, 2 a value, 3 differences of a JSON document) · of the last two 4 size, n bytes
//! ```

use std::io::{self, Read};

use binlogz_binlog::put::PutFields;
use binlogz_binlog::row::{CellContent, RowImage};
use binlogz_payload::{Spool, SpoolMemory};

use super::fields::{RecordFields, broken, put_sized};

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

pub(super) fn push_cells(out: &mut Vec<u8>, cells: &ImageCells<'_>) {
    out.put_u16(cells.len() as u16);
    for cell in cells {
        match cell {
            None => out.put_u8(0),
            Some(CellContent::Null) => out.put_u8(1),
            Some(CellContent::Value(bytes)) => {
                out.put_u8(2);
                put_sized(out, bytes);
            }
            Some(CellContent::JsonDiffs(bytes)) => {
                out.put_u8(3);
                put_sized(out, bytes);
            }
        }
    }
}

/// An image as bytes, for [`read_cells`].
pub(crate) fn cell_bytes(cells: &ImageCells<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_cells(&mut bytes, cells);
    bytes
}

/// The cells of an image that was kept.
pub(crate) fn read_cells(bytes: &[u8]) -> io::Result<ImageCells<'_>> {
    let mut fields = RecordFields::of(bytes);
    let cells = take_cells(&mut fields)?;
    fields.finish()?;
    Ok(cells)
}

pub(super) fn take_cells<'b>(fields: &mut RecordFields<'b>) -> io::Result<ImageCells<'b>> {
    let count = fields.u16()?;
    let mut cells = ImageCells::new();
    for _ in 0..count {
        cells.push(match fields.u8()? {
            0 => None,
            1 => Some(CellContent::Null),
            2 => Some(CellContent::Value(fields.sized()?)),
            3 => Some(CellContent::JsonDiffs(fields.sized()?)),
            _ => return Err(broken()),
        });
    }
    Ok(cells)
}

/// Images of rows, in memory up to a bound. Nothing tells one from the other: the caller keeps where they are.
pub(crate) struct CellSpool {
    images: Spool,
    bytes: Vec<u8>,
}

/// The place of an image in a spool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpooledImage {
    /// Images that were kept later begin later.
    pub(crate) start: u64,
    size: u32,
}

impl CellSpool {
    /// Makes an empty spool. Images that exceed this memory, in bytes, go to a temporary file.
    pub(crate) fn new(memory: usize) -> Self {
        CellSpool { images: Spool::new(&SpoolMemory::new(memory), Vec::new()), bytes: Vec::new() }
    }

    /// Offset at which the next image will begin.
    pub(crate) fn end(&self) -> u64 {
        self.images.size()
    }

    pub(crate) fn put(&mut self, cells: &ImageCells<'_>) -> io::Result<SpooledImage> {
        self.bytes.clear();
        push_cells(&mut self.bytes, cells);
        let span = SpooledImage { start: self.images.size(), size: self.bytes.len() as u32 };
        self.images.append(&self.bytes)?;
        Ok(span)
    }

    /// An image, for [`read_cells`].
    pub(crate) fn load(&self, SpooledImage { start, size }: SpooledImage) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(size as usize);
        self.images.reader(start..start + u64::from(size)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
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
        assert_eq!(read_cells(&bytes).unwrap(), cells);
        for end in 0..bytes.len() {
            read_cells(&bytes[..end]).unwrap_err();
        }
        bytes.push(7);
        read_cells(&bytes).unwrap_err();
        read_cells(&[1, 0, 4, 0, 0, 0, 0]).unwrap_err();
        let mut spool = CellSpool::new(1 << 10);
        let spans = [spool.put(&cells).unwrap(), spool.put(&vec![None]).unwrap()];
        assert_eq!(spans[1].start, bytes.len() as u64 - 1);
        assert_eq!(read_cells(&spool.load(spans[0]).unwrap()).unwrap(), cells);
        assert_eq!(read_cells(&spool.load(spans[1]).unwrap()).unwrap(), [None]);
    }
}
