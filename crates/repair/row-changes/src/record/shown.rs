//! A row that is shown once its transaction has ended.
//!
//! ```text
//! size field
//!    8 parts_end  where the parts of its text end that were passed on before, in a spool of their own
//!    4 size
//!    n place      how its place is shown
//!    n text       the rest of its text
//! ```

use std::io::{self, BufReader, Read, Take};

use binlogz_payload::Spool;

use super::frame::{RecordReader, put};

/// The rest of a record, which the caller reads.
type RecordRest<'r, R> = Take<&'r mut BufReader<R>>;

/// A row that is shown, without its text.
pub(crate) struct ShownRow {
    pub(crate) parts_end: u64,
    pub(crate) place: Vec<u8>,
}

impl ShownRow {
    pub(crate) fn put(&self, spool: &mut Spool, text: &[u8]) -> io::Result<()> {
        let size = (self.place.len() as u32).to_le_bytes();
        put(spool, 0, &[&self.parts_end.to_le_bytes(), &size, &self.place, text])
    }

    /// The next row. Its text isn't held: the caller has to read it to its end.
    pub(crate) fn next<R: Read>(
        records: &mut RecordReader<R>,
    ) -> io::Result<Option<(Self, RecordRest<'_, R>)>> {
        let Some(mut content) = records.next_content()? else { return Ok(None) };
        let mut parts_end = [0; 8];
        let mut size = [0; 4];
        content.read_exact(&mut parts_end)?;
        content.read_exact(&mut size)?;
        let mut place = vec![0; u32::from_le_bytes(size) as usize];
        content.read_exact(&mut place)?;
        Ok(Some((ShownRow { parts_end: u64::from_le_bytes(parts_end), place }, content)))
    }
}

#[cfg(test)]
mod tests {
    use binlogz_payload::SpoolMemory;

    use super::*;

    #[test]
    fn rows_come_back_with_their_texts_to_be_read() {
        let mut spool = Spool::new(&SpoolMemory::new(1 << 10), Vec::new());
        for (parts_end, place, text) in [(0, "4#0", "one"), (1 << 40, "9#1", "")] {
            ShownRow { parts_end, place: place.into() }.put(&mut spool, text.as_bytes()).unwrap();
        }
        let mut records = RecordReader::new(spool.reader(0..spool.size()));
        for (end, place, text) in [(0, "4#0", "one"), (1 << 40, "9#1", "")] {
            let (row, mut rest) = ShownRow::next(&mut records).unwrap().unwrap();
            assert_eq!((row.parts_end, &*row.place), (end, place.as_bytes()));
            let mut read = String::new();
            rest.read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
        assert!(ShownRow::next(&mut records).unwrap().is_none());
    }
}
