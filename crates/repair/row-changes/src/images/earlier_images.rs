//! The rows of tables as they are at a place of the logs, as far as their images tell: by their keys, an image of each in a spool. In
//! memory is about 60 bytes for each row.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::io;

use binlogz_binlog::row::CellContent;

use crate::digest::Digests;
use crate::record::{CellSpool, ImageCells, SpooledImage};
use crate::table::Structure;

/// Memory for images; the rest goes to a temporary file.
const IMAGES_MEMORY: usize = 16 << 20;
/// Rows that are held, of all tables together.
const ROWS_MAX: usize = 1 << 20;

/// A digest of the row's key.
pub(super) type KeyDigest = u128;

/// The number of a followed row: counted from the first, in the order in which they come up, whatever their keys are later.
pub(super) type RowNumber = u64;

/// The rows of tables at a place of the logs.
pub(super) struct EarlierImages {
    images: CellSpool,
    pub(super) tables: Vec<EarlierRows>,
    count: usize,
}

/// The rows of a table.
pub(super) struct EarlierRows {
    pub(super) database: String,
    pub(super) table: String,
    /// The columns that the table's last images had.
    pub(super) structure: Option<Structure>,
    rows: HashMap<KeyDigest, ImageSpan>,
    /// The event, in words, since which earlier images of the table count no longer; `None`: they count.
    lost_since: Option<String>,
    /// Whether there were more rows than are held.
    is_full: bool,
}

/// Where a row's image is.
#[derive(Debug, Clone, Copy)]
struct ImageSpan {
    cells: SpooledImage,
    row: RowNumber,
    /// Whether the INSERT of the row was seen, so that what isn't known is what that left out.
    is_inserted: bool,
}

/// A row's image as it was kept.
pub(super) struct EarlierImage {
    /// The image's cells, encoded for [`read_cells`](crate::record::read_cells).
    pub(super) cells: Vec<u8>,
    /// Offset of the image in the spool of all images: those that were kept later have a higher one.
    pub(super) start: u64,
    pub(super) row: RowNumber,
    pub(super) is_inserted: bool,
}

impl EarlierImages {
    pub(super) fn new() -> Self {
        EarlierImages { images: CellSpool::new(IMAGES_MEMORY), tables: Vec::new(), count: 0 }
    }

    /// The number of a table, which is new or not.
    pub(super) fn table(&mut self, database: &str, table: &str) -> usize {
        let is_it = |own: &EarlierRows| own.database == database && own.table == table;
        self.tables.iter().position(is_it).unwrap_or_else(|| {
            self.tables.push(EarlierRows {
                database: database.to_owned(),
                table: table.to_owned(),
                structure: None,
                rows: HashMap::new(),
                lost_since: None,
                is_full: false,
            });
            self.tables.len() - 1
        })
    }

    /// Forgets the images of a table; `since` says in words why they count no longer.
    pub(super) fn lose(&mut self, table: usize, since: &str) {
        if let Some(rows) = self.tables.get_mut(table) {
            self.count -= rows.rows.len();
            rows.rows = HashMap::new();
            rows.structure = None;
            rows.lost_since = Some(since.to_owned());
        }
    }

    /// The end of all images that were kept: what is kept from now on begins here or later.
    pub(super) fn end(&self) -> u64 {
        self.images.end()
    }

    pub(super) fn load(&self, table: usize, key: KeyDigest) -> io::Result<Option<EarlierImage>> {
        let span = self.tables.get(table).and_then(|rows| rows.rows.get(&key));
        let Some(&ImageSpan { cells, row, is_inserted }) = span else { return Ok(None) };
        Ok(Some(EarlierImage { cells: self.images.load(cells)?, start: cells.start, row, is_inserted }))
    }

    /// The keys of these rows, as far as they are in the table, in the order of their numbers.
    pub(super) fn keys_of(&self, table: usize, rows: &BTreeSet<RowNumber>) -> Vec<KeyDigest> {
        let spans = self.tables.get(table).into_iter().flat_map(|table| &table.rows);
        let of_rows = spans.filter(|(_, span)| rows.contains(&span.row));
        let mut keys: Vec<_> = of_rows.map(|(key, span)| (span.row, *key)).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }

    pub(super) fn remove(&mut self, table: usize, key: KeyDigest) {
        let removed = self.tables.get_mut(table).and_then(|rows| rows.rows.remove(&key));
        self.count -= usize::from(removed.is_some());
    }

    /// Keeps a row's image, unless there are too many. `false`: the key was there already.
    pub(super) fn put(
        &mut self,
        table: usize,
        key: KeyDigest,
        cells: &ImageCells<'_>,
        (row, is_inserted): (RowNumber, bool),
    ) -> io::Result<bool> {
        let Some(rows) = self.tables.get_mut(table) else { return Ok(true) };
        let entry = rows.rows.entry(key);
        let is_there = matches!(entry, Entry::Occupied(_));
        if !is_there && self.count >= ROWS_MAX {
            rows.is_full = true;
            return Ok(true);
        }
        entry.insert_entry(ImageSpan { cells: self.images.put(cells)?, row, is_inserted });
        self.count += usize::from(!is_there);
        Ok(!is_there)
    }

    /// The reason, in words, for which no earlier image tells the columns of a table's row.
    pub(super) fn why_unknown(&self, table: usize) -> String {
        let rows = self.tables.get(table);
        match rows.and_then(|rows| rows.lost_since.as_ref()) {
            _ if rows.is_some_and(|rows| rows.is_full) => {
                format!("more than {ROWS_MAX} rows have images, and those of the others aren't kept")
            }
            Some(since) => format!("its earlier images count no longer since {since}"),
            None => NO_EARLIER_IMAGE.to_owned(),
        }
    }
}

/// The digest of a row's key; `None`: the cells lack it.
pub(super) fn key_digest(
    digests: &Digests,
    table: usize,
    key: &[usize],
    cells: &ImageCells<'_>,
) -> Option<KeyDigest> {
    let value = |index: &usize| match cells.get(*index) {
        Some(Some(CellContent::Value(bytes))) => Some(*bytes),
        _ => None,
    };
    let values: Option<Vec<_>> = key.iter().map(value).collect();
    Some(digests.of((table, values?)))
}

/// The reason for which a column isn't known if nothing was lost: no image had it.
const NO_EARLIER_IMAGE: &str = "no earlier image of the row in the given logs tells the rest";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_image_of_a_key_is_found_until_it_is_lost() {
        let mut images = EarlierImages::new();
        let table = images.table("s", "t");
        assert_eq!((images.table("s", "u"), images.table("s", "t")), (1, table));
        let cells = |text| vec![Some(CellContent::Value(text)), None];
        let one = cells(b"1");
        let two = cells(b"2");
        assert!(images.put(table, 7, &one, (1, true)).unwrap());
        assert!(!images.put(table, 7, &two, (2, false)).unwrap());
        let found = images.load(table, 7).unwrap().unwrap();
        assert_eq!(crate::record::read_cells(&found.cells).unwrap(), two);
        assert_eq!((found.row, found.is_inserted, images.count), (2, false, 1));
        assert_eq!(images.keys_of(table, &BTreeSet::from([1, 2])), [7]);
        assert!(images.keys_of(table, &BTreeSet::from([1])).is_empty());
        assert!(images.load(1, 7).unwrap().is_none());
        assert_eq!(images.why_unknown(table), NO_EARLIER_IMAGE);
        images.lose(table, "then");
        assert!(images.load(table, 7).unwrap().is_none());
        assert_eq!(images.why_unknown(table), "its earlier images count no longer since then");
        images.put(table, 7, &one, (1, true)).unwrap();
        images.remove(table, 7);
        images.remove(table, 7);
        assert_eq!(images.count, 0);
    }
}
