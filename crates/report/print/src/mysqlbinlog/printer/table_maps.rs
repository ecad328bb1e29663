//! The text of a table map. Most table maps repeat one that was just shown, byte by byte: we keep its text and use it
//! again.

use binlogz_binlog::Result;
use binlogz_binlog::event::{TableId, TableMapEvent, TableMapFlags};

use crate::mysqlbinlog::write::quote::push_identifier;
use crate::number::push_unsigned;

/// Tables whose text is kept, by the low bits of their numbers: a power of two.
const KEPT: usize = 16;

/// Longer table maps are not kept.
const BODY_MAX: usize = 4 << 10;

/// The texts of the last tables.
#[derive(Debug, Default)]
pub(super) struct TableMapTexts {
    kept: [TableMapText; KEPT],
}

/// The text shown of a table map.
#[derive(Debug)]
pub(super) struct TableMapText {
    /// The event's body; empty if its text can't be reused.
    body: Vec<u8>,
    /// The post-header length in its log.
    post_header_length: u8,
    pub(super) table_id: TableId,
    /// The table's first column is a generated invisible primary key.
    pub(super) has_generated_key: bool,
    /// The rest of the line that begins with the event's time.
    pub(super) line: Vec<u8>,
}

impl TableMapTexts {
    /// Where the text of a table map is, for [`TableMapTexts::at`].
    ///
    /// # Errors
    ///
    /// A table map that can't be read.
    pub(super) fn find(&mut self, body: &[u8], post_header_length: u8) -> Result<usize> {
        // The table's number comes first.
        let place = body.first().map_or(0, |low| usize::from(*low) % KEPT);
        let Some(text) = self.kept.get_mut(place) else { return Ok(place) };
        let is_same = text.body == body && text.post_header_length == post_header_length;
        if !is_same || body.is_empty() {
            text.body.clear();
            text.post_header_length = post_header_length;
            text.show(&TableMapEvent::decode(body, post_header_length)?);
            if body.len() <= BODY_MAX {
                text.body.extend_from_slice(body);
            }
        }
        Ok(place)
    }

    /// The text at a place.
    pub(super) fn at(&self, place: usize) -> &TableMapText {
        let [first, ..] = &self.kept;
        self.kept.get(place).unwrap_or(first)
    }
}

impl Default for TableMapText {
    fn default() -> Self {
        TableMapText {
            body: Vec::new(),
            post_header_length: 0,
            table_id: TableId(0),
            has_generated_key: false,
            line: Vec::new(),
        }
    }
}

impl TableMapText {
    fn show(&mut self, map: &TableMapEvent<'_>) {
        self.table_id = map.table_id;
        self.has_generated_key = map.flags.contains(TableMapFlags::GENERATED_INVISIBLE_PRIMARY_KEY);
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(b"\tTable_map: ");
        push_identifier(line, map.database);
        line.push(b'.');
        push_identifier(line, map.table);
        line.extend_from_slice(b" mapped to number ");
        push_unsigned(line, map.table_id.0);
        line.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number, flags, database, table, no columns.
    fn body(number: u8, table: &[u8]) -> Vec<u8> {
        let length = table.len() as u8;
        [&[number, 0, 0, 0, 0, 0, 1, 0, 1, b'd', 0, length][..], table, &[0, 0, 0, 0]].concat()
    }

    #[test]
    fn a_number_may_be_anothers_table() {
        let mut texts = TableMapTexts::default();
        for (number, table) in [(7, b"one"), (7, b"one"), (7, b"two"), (23, b"one"), (7, b"two")] {
            let place = texts.find(&body(number, table), 8).unwrap();
            let line = format!("\tTable_map: `d`.`{}` mapped to number {number}\n", table.escape_ascii());
            assert_eq!(
                texts.at(place).line.escape_ascii().to_string(),
                line.as_bytes().escape_ascii().to_string()
            );
        }
        let cut = &body(7, b"two")[..12];
        assert!(texts.find(cut, 8).is_err());
        // The old text is not used for the table map that can't be read.
        assert!(texts.find(cut, 8).is_err());
    }
}
