//! The rows of children as they are at a place in the log, by their last images.
//!
//! Images are kept in a spool. In memory are only digests: about 100 bytes for each row.

use std::collections::{BTreeSet, HashMap};
use std::io;

use binlogz_binlog::row::CellContent;

use crate::digest::Digests;
use crate::record::{CellSpool, ImageCells, SpooledImage};

/// Memory for images; the rest goes to a temporary file.
const IMAGES_MEMORY: usize = 16 << 20;

/// Tells rows apart: 128 bits, made with numbers that nobody knows before.
pub(super) type RowId = u128;

/// Where the columns of a foreign key stand in its child: the constraint's number, the places.
pub(super) type Reference = (usize, Vec<usize>);

#[derive(Debug, Clone, Copy)]
struct KeptSpan {
    image: SpooledImage,
    /// Rows that are equal, of a table without a key.
    count: u32,
    /// The layout of its image, a number that the caller gave.
    layout: u32,
}

/// The rows of children as they are at a place in the log: a spool with the last image of each, and digests in memory to
/// find it.
pub(super) struct ChildRows {
    images: CellSpool,
    rows: HashMap<RowId, KeptSpan>,
    /// The parents that a row refers to, by a digest of constraint and values.
    references: BTreeSet<(u128, RowId)>,
    digests: Digests,
}

/// A row that was kept.
pub(super) struct CascadeRow {
    pub(super) layout: usize,
    pub(super) count: u32,
    /// The row's cells, encoded for [`read_cells`](crate::record::read_cells).
    pub(super) cells: Vec<u8>,
}

impl ChildRows {
    pub(super) fn new() -> Self {
        ChildRows {
            images: CellSpool::new(IMAGES_MEMORY),
            rows: HashMap::new(),
            references: BTreeSet::new(),
            digests: Digests::default(),
        }
    }

    /// Which row it is, by its key, or by all of its columns without one. `None`: the image lacks some.
    pub(super) fn id(&self, table: usize, key: Option<&[usize]>, cells: &ImageCells<'_>) -> Option<RowId> {
        let all: Vec<usize> = (0..cells.len()).collect();
        let values: Option<Vec<_>> = key
            .unwrap_or(&all)
            .iter()
            .map(|index| match cells.get(*index) {
                Some(Some(CellContent::Value(bytes))) => Some(Some(*bytes)),
                Some(Some(CellContent::Null)) => Some(None),
                _ => None,
            })
            .collect();
        Some(self.digests.of((table, values?)))
    }

    /// The parents that a row refers to, by each constraint.
    fn references_of(&self, references: &[Reference], cells: &ImageCells<'_>) -> Vec<u128> {
        let of = |(constraint, columns): &Reference| {
            values(columns, cells).flatten().map(|values| self.digests.of((*constraint, values.as_slice())))
        };
        references.iter().filter_map(of).collect()
    }

    /// Keeps a row with its image. One of a table without a key may be there already: then there is one more.
    pub(super) fn put(
        &mut self,
        id: RowId,
        (layout, references): (usize, &[Reference]),
        cells: &ImageCells<'_>,
        count: u32,
    ) -> io::Result<()> {
        let image = self.images.put(cells)?;
        let before = self.rows.get(&id).map_or(0, |kept| kept.count);
        let count = before.saturating_add(count);
        self.rows.insert(id, KeptSpan { image, count, layout: layout as u32 });
        for reference in self.references_of(references, cells) {
            self.references.insert((reference, id));
        }
        Ok(())
    }

    pub(super) fn load(&self, id: RowId) -> io::Result<Option<CascadeRow>> {
        let Some(kept) = self.rows.get(&id) else { return Ok(None) };
        let cells = self.images.load(kept.image)?;
        Ok(Some(CascadeRow { layout: kept.layout as usize, count: kept.count, cells }))
    }

    /// Forgets a row, of equal ones all; `cells` is its image.
    pub(super) fn remove(&mut self, id: RowId, references: &[Reference], cells: &ImageCells<'_>) {
        self.rows.remove(&id);
        for reference in self.references_of(references, cells) {
            self.references.remove(&(reference, id));
        }
    }

    /// The rows that refer to these values, in the order of their last changes: digests differ from run to run.
    pub(super) fn children(&self, constraint: usize, values: &[&[u8]]) -> Vec<RowId> {
        let digest = self.digests.of((constraint, values));
        let mut found: Vec<RowId> =
            self.references.range((digest, 0)..=(digest, RowId::MAX)).map(|(_, id)| *id).collect();
        found.sort_by_key(|id| self.rows.get(id).map(|kept| kept.image.start));
        found
    }

    /// Forgets all rows of these layouts.
    pub(super) fn forget(&mut self, is_of: impl Fn(usize) -> bool) {
        self.rows.retain(|_, kept| !is_of(kept.layout as usize));
        let rows = &self.rows;
        self.references.retain(|(_, id)| rows.contains_key(id));
    }
}

/// The values of these columns. `None`: the image lacks one; `Some(None)`: one is NULL, which refers to nothing.
pub(super) fn values<'a>(columns: &[usize], cells: &ImageCells<'a>) -> Option<Option<Vec<&'a [u8]>>> {
    let mut found = Some(Vec::new());
    for index in columns {
        match cells.get(*index) {
            Some(Some(CellContent::Value(bytes))) => {
                if let Some(found) = &mut found {
                    found.push(*bytes);
                }
            }
            Some(Some(CellContent::Null)) => found = None,
            _ => return None,
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(bytes: &[u8]) -> Option<CellContent<'_>> {
        Some(CellContent::Value(bytes))
    }

    #[test]
    fn rows_are_found_by_what_they_refer_to() {
        let mut rows = ChildRows::new();
        let references = [(3, vec![1])];
        let one = vec![value(b"1"), value(b"p")];
        let two = vec![value(b"2"), value(b"p")];
        let null = vec![value(b"3"), Some(CellContent::Null)];
        for cells in [&one, &two, &null] {
            let id = rows.id(0, Some(&[0]), cells).unwrap();
            rows.put(id, (5, &references), cells, 1).unwrap();
        }
        assert_eq!(rows.children(3, &[b"p"]).len(), 2);
        assert_eq!((rows.children(2, &[b"p"]), rows.children(3, &[b""])), (vec![], vec![]));
        let id = rows.id(0, Some(&[0]), &one).unwrap();
        rows.remove(id, &references, &one);
        let left = rows.children(3, &[b"p"]);
        assert_eq!(left, [rows.id(0, Some(&[0]), &two).unwrap()]);
        let kept = rows.load(left[0]).unwrap().unwrap();
        assert_eq!((kept.layout, kept.count), (5, 1));
        assert_eq!(crate::record::read_cells(&kept.cells).unwrap(), two);
        rows.forget(|layout| layout == 5);
        assert_eq!((rows.children(3, &[b"p"]), rows.rows.len()), (vec![], 0));
        assert_eq!(rows.id(0, Some(&[0]), &vec![None, value(b"p")]), None);
        // Without a key equal rows are counted.
        let id = rows.id(0, None, &one).unwrap();
        rows.put(id, (1, &references), &one, 1).unwrap();
        rows.put(id, (1, &references), &one, 1).unwrap();
        assert_eq!(rows.load(id).unwrap().unwrap().count, 2);
    }
}
