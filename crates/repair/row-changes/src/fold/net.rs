//! Net changes of rows: of each key, the row before its first change and after its last. Beyond a bound of memory they go to sorted
//! runs, which are merged in the end; a key is in each run once.
//!
//! A key is the table's number, so that the rows of a table come together, and the values of the row's key. Of a table without a known
//! key it is the image, of which is counted how many there are more.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::io;
use std::ops::Range;

use binlogz_payload::Spool;

use crate::record::{FoldSide, FoldSides, NetImage, NetRow, RecordReader, broken};

/// Bytes of an entry besides its key and its images.
const ENTRY_SIZE: usize = 200;
/// Bytes of a table's number before a key.
const TABLE_SIZE: usize = 4;

/// Two changes of one row that can't follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contradiction {
    pub(super) table: u32,
}

/// Why net changes could not be told.
#[derive(Debug)]
pub(super) enum NetTrouble {
    Contradiction(Contradiction),
    Io(io::Error),
}

impl From<io::Error> for NetTrouble {
    fn from(error: io::Error) -> Self {
        NetTrouble::Io(error)
    }
}

/// The net change of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NetChange<'n> {
    Insert(&'n [u8]),
    /// No unique key has another value.
    Update(&'n [u8], &'n [u8]),
    /// The key is the same, but a unique key has another value, or may have: a delete, and an insert.
    Split(&'n [u8], &'n [u8]),
    Delete(&'n [u8]),
}

/// Takes the net changes of a table's rows.
pub(super) type TakeNet<'t> = dyn FnMut(u32, NetChange<'_>) -> io::Result<()> + 't;

/// Net changes of rows, so far.
#[derive(Debug)]
pub(super) struct NetChanges {
    rows: HashMap<Box<[u8]>, NetRow>,
    /// The key that is looked up.
    key: Vec<u8>,
    /// Bytes that the rows take, about.
    memory: usize,
    memory_max: usize,
    runs: Spool,
    run_places: Vec<Range<u64>>,
    /// The tables of which a row got another key, or has none and was updated: of its two changes neither tells the other.
    rekeyed: BTreeSet<u32>,
}

impl NetChanges {
    pub(super) fn new(memory_max: usize) -> Self {
        NetChanges {
            rows: HashMap::new(),
            key: Vec::new(),
            memory: 0,
            memory_max,
            runs: Spool::on_disk(),
            run_places: Vec::new(),
            rekeyed: BTreeSet::new(),
        }
    }

    /// Takes the tables of which an update came to two changes of different keys.
    pub(super) fn take_rekeyed(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.rekeyed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.run_places.is_empty()
    }

    /// A row was changed.
    pub(super) fn change(
        &mut self,
        (table, has_key): (u32, bool),
        sides: FoldSides<'_>,
    ) -> Result<(), NetTrouble> {
        let [before, after] = sides;
        if before.zip(after).is_some_and(|(before, after)| !has_key || before.key != after.key) {
            self.rekeyed.insert(table);
        }
        match (has_key, before, after) {
            (false, before, after) => {
                before.into_iter().for_each(|side| self.count(table, side.image, -1));
                after.into_iter().for_each(|side| self.count(table, side.image, 1));
            }
            (true, Some(before), Some(after)) if before.key != after.key => {
                self.follow(table, before.key, [Some(before), None])?;
                self.follow(table, after.key, [None, Some(after)])?;
            }
            (true, before, after) => {
                let key = before.or(after).map_or(&[][..], |side| side.key);
                self.follow(table, key, [before, after])?;
            }
        }
        if self.memory > self.memory_max {
            self.spill()?;
        }
        Ok(())
    }

    fn count(&mut self, table: u32, image: &[u8], copies: i64) {
        let key = key_of(table, image);
        let size = key.len() + ENTRY_SIZE;
        match self.rows.entry(key) {
            Entry::Vacant(place) => {
                place.insert(NetRow { copies, ..NetRow::default() });
                self.memory += size;
            }
            Entry::Occupied(mut place) => {
                place.get_mut().copies += copies;
                if place.get().copies == 0 {
                    place.remove();
                    self.memory = self.memory.saturating_sub(size);
                }
            }
        }
    }

    fn follow(&mut self, table: u32, key: &[u8], [first, last]: FoldSides<'_>) -> Result<(), NetTrouble> {
        self.key.clear();
        self.key.extend_from_slice(&front_of(table));
        self.key.extend_from_slice(key);
        let key_size = self.key.len();
        let Some(row) = self.rows.get_mut(self.key.as_slice()) else {
            let row = NetRow { first: first.map(kept), last: last.map(kept), copies: 0 };
            self.memory += key_size + size_of(&row);
            self.rows.insert(self.key.as_slice().into(), row);
            return Ok(());
        };
        if bytes_of(&row.last) != first.map(|side| side.image) {
            return Err(NetTrouble::Contradiction(Contradiction { table }));
        }
        self.memory = self.memory.saturating_sub(size_of(row));
        row.set_last(last);
        if is_nothing(row) {
            self.memory = self.memory.saturating_sub(key_size);
            self.rows.remove(self.key.as_slice());
        } else {
            self.memory += size_of(row);
        }
        Ok(())
    }

    /// Writes a run of all rows, in the order of their keys.
    fn spill(&mut self) -> io::Result<()> {
        let start = self.runs.size();
        for (key, row) in self.take_sorted() {
            row.put(&key, &mut self.runs)?;
        }
        self.run_places.push(start..self.runs.size());
        Ok(())
    }

    fn take_sorted(&mut self) -> Vec<(Box<[u8]>, NetRow)> {
        self.memory = 0;
        let mut rows: Vec<_> = std::mem::take(&mut self.rows).into_iter().collect();
        rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        rows
    }

    /// Tells all net changes, table by table, in the order of their keys; none are left.
    pub(super) fn finish(&mut self, take: &mut TakeNet<'_>) -> Result<(), NetTrouble> {
        if self.run_places.is_empty() {
            for (key, row) in self.take_sorted() {
                tell(&key, &row, take)?;
            }
            return Ok(());
        }
        self.spill()?;
        let runs = std::mem::replace(&mut self.runs, Spool::on_disk());
        let places = std::mem::take(&mut self.run_places);
        merge(&runs, places, take)
    }
}

/// Goes through all runs at once, in the order of keys and, for one key, in that of the runs.
fn merge(runs: &Spool, places: Vec<Range<u64>>, take: &mut TakeNet<'_>) -> Result<(), NetTrouble> {
    let mut readers: Vec<_> = places.into_iter().map(|place| RecordReader::new(runs.reader(place))).collect();
    let mut heads: RunHeads = BinaryHeap::new();
    let mut rows: Vec<Option<NetRow>> = Vec::new();
    for (run, reader) in readers.iter_mut().enumerate() {
        rows.push(next_row(reader, run, &mut heads)?);
    }
    let mut open: Option<(Box<[u8]>, NetRow)> = None;
    while let Some(Reverse((key, run))) = heads.pop() {
        let row = rows.get_mut(run).and_then(Option::take).ok_or_else(broken)?;
        let reader = readers.get_mut(run).ok_or_else(broken)?;
        let next = next_row(reader, run, &mut heads)?;
        if let Some(place) = rows.get_mut(run) {
            *place = next;
        }
        open = Some(match open.take() {
            Some((own, mut before)) if own == key => {
                if !before.is_followed_by(row) {
                    return Err(NetTrouble::Contradiction(Contradiction { table: table_of(&key).0 }));
                }
                (own, before)
            }
            Some((own, before)) => {
                tell(&own, &before, take)?;
                (key, row)
            }
            None => (key, row),
        });
    }
    if let Some((key, row)) = open {
        tell(&key, &row, take)?;
    }
    Ok(())
}

/// The next key of each run, the first in order at the top.
type RunHeads = BinaryHeap<Reverse<(Box<[u8]>, usize)>>;

/// The next row of a run, whose key then stands among the heads.
fn next_row<R: io::Read>(
    reader: &mut RecordReader<R>,
    run: usize,
    heads: &mut RunHeads,
) -> io::Result<Option<NetRow>> {
    let Some((_, content)) = reader.next()? else { return Ok(None) };
    let (key, row) = NetRow::read(content)?;
    heads.push(Reverse((key, run)));
    Ok(Some(row))
}

fn tell(key: &[u8], row: &NetRow, take: &mut TakeNet<'_>) -> io::Result<()> {
    let (table, image) = table_of(key);
    for _ in 0..row.copies.unsigned_abs() {
        let copy = if row.copies > 0 { NetChange::Insert(image) } else { NetChange::Delete(image) };
        take(table, copy)?;
    }
    match (&row.first, &row.last) {
        (None, None) => Ok(()),
        (None, Some(last)) => take(table, NetChange::Insert(&last.bytes)),
        (Some(first), None) => take(table, NetChange::Delete(&first.bytes)),
        (Some(first), Some(last)) if first.bytes == last.bytes => Ok(()),
        (Some(first), Some(last)) if first.digest != 0 && first.digest == last.digest => {
            take(table, NetChange::Update(&first.bytes, &last.bytes))
        }
        (Some(first), Some(last)) => take(table, NetChange::Split(&first.bytes, &last.bytes)),
    }
}

impl NetRow {
    /// The row has this image now. The bytes of one before it are used again, if they are as many.
    fn set_last(&mut self, last: Option<FoldSide<'_>>) {
        match (&mut self.last, last) {
            (Some(own), Some(side)) if own.bytes.len() == side.image.len() => {
                own.bytes.copy_from_slice(side.image);
                own.digest = side.digest;
            }
            _ => self.last = last.map(kept),
        }
    }

    /// Adds what came after it; `false`: that can't be.
    fn is_followed_by(&mut self, later: NetRow) -> bool {
        self.copies += later.copies;
        let follows = bytes_of(&self.last) == bytes_of(&later.first);
        self.last = later.last;
        follows
    }
}

fn kept(side: FoldSide<'_>) -> NetImage {
    NetImage { digest: side.digest, bytes: side.image.into() }
}

fn is_nothing(row: &NetRow) -> bool {
    row.copies == 0 && bytes_of(&row.first) == bytes_of(&row.last)
}

fn bytes_of(image: &Option<NetImage>) -> Option<&[u8]> {
    image.as_ref().map(|image| &*image.bytes)
}

fn size_of(row: &NetRow) -> usize {
    let images = [&row.first, &row.last].into_iter().flatten();
    ENTRY_SIZE + images.map(|image| image.bytes.len()).sum::<usize>()
}

fn key_of(table: u32, key: &[u8]) -> Box<[u8]> {
    [&front_of(table), key].concat().into()
}

/// A table's number before a key, the highest byte first: tables come in their order.
fn front_of(table: u32) -> [u8; TABLE_SIZE] {
    table.swap_bytes().to_le_bytes()
}

/// The table of a key, and the rest of it.
fn table_of(key: &[u8]) -> (u32, &[u8]) {
    let (table, rest) = key.split_first_chunk::<TABLE_SIZE>().unwrap_or((&[0; TABLE_SIZE], &[]));
    (u32::from_le_bytes(*table).swap_bytes(), rest)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const TABLE: (u32, bool) = (7, true);
    const BAG: (u32, bool) = (8, false);

    fn side(key: &'static str, image: &'static str) -> Option<FoldSide<'static>> {
        side_with(key, image, 1)
    }

    fn side_with(key: &'static str, image: &'static str, digest: u128) -> Option<FoldSide<'static>> {
        Some(FoldSide { digest, key: key.as_bytes(), image: image.as_bytes() })
    }

    fn told(net: &mut NetChanges) -> Vec<String> {
        let mut told = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let done = net.finish(&mut |table, change| {
            told.push(match change {
                NetChange::Insert(row) => format!("{table} +{}", text(row)),
                NetChange::Delete(row) => format!("{table} -{}", text(row)),
                NetChange::Update(before, after) => format!("{table} {}>{}", text(before), text(after)),
                NetChange::Split(before, after) => format!("{table} -{} +{}", text(before), text(after)),
            });
            Ok(())
        });
        done.unwrap();
        assert!(net.is_empty());
        told
    }

    /// With memory for everything, and with a run for each change.
    fn both(changes: &[((u32, bool), FoldSides<'static>)], expected: &[&str]) {
        for memory in [usize::MAX, 0] {
            let mut net = NetChanges::new(memory);
            for (table, sides) in changes {
                net.change(*table, *sides).unwrap();
            }
            assert_eq!(told(&mut net), expected, "memory {memory}");
        }
    }

    #[test]
    fn a_row_has_one_change() {
        let insert = (TABLE, [None, side("k", "a")]);
        let update = (TABLE, [side("k", "a"), side("k", "b")]);
        let back = (TABLE, [side("k", "b"), side("k", "a")]);
        let delete = (TABLE, [side("k", "b"), None]);
        both(&[insert, update], &["7 +b"]);
        both(&[insert, update, delete], &[]);
        both(&[update, back, update], &["7 a>b"]);
        both(&[update, back], &[]);
        both(&[update, delete], &["7 -a"]);
        both(&[delete, insert], &["7 b>a"]);
    }

    #[test]
    fn an_update_of_a_unique_key_is_a_delete_and_an_insert() {
        let changed = (TABLE, [side_with("k", "a", 1), side_with("k", "b", 2)]);
        let unknown = (TABLE, [side_with("k", "a", 0), side_with("k", "b", 0)]);
        both(&[changed], &["7 -a +b"]);
        both(&[unknown], &["7 -a +b"]);
    }

    #[test]
    fn keys_change_and_swap() {
        let away = (TABLE, [side("1", "1a"), side("3", "3a")]);
        let other = (TABLE, [side("2", "2b"), side("1", "1b")]);
        let home = (TABLE, [side("3", "3a"), side("2", "2a")]);
        both(&[away], &["7 -1a", "7 +3a"]);
        both(&[away, other, home], &["7 1a>1b", "7 2b>2a"]);
    }

    #[test]
    fn tables_whose_keys_changed_are_known() {
        let mut net = NetChanges::new(usize::MAX);
        net.change(TABLE, [side_with("k", "a", 1), side_with("k", "b", 2)]).unwrap();
        assert_eq!(net.take_rekeyed(), BTreeSet::new());
        net.change(TABLE, [side("1", "1a"), side("3", "3a")]).unwrap();
        net.change(BAG, [side("", "a"), side("", "b")]).unwrap();
        assert_eq!(net.take_rekeyed(), BTreeSet::from([7, 8]));
        assert_eq!(net.take_rekeyed(), BTreeSet::new());
    }

    #[test]
    fn images_without_a_key_are_counted() {
        let insert = (BAG, [None, side("", "a")]);
        let update = (BAG, [side("", "a"), side("", "b")]);
        let delete = (BAG, [side("", "b"), None]);
        both(&[insert, insert, update], &["8 +a", "8 +b"]);
        both(&[insert, update, delete], &[]);
        both(&[update, update, delete], &["8 -a", "8 -a", "8 +b"]);
    }

    #[test]
    fn changes_that_contradict_are_an_error() {
        for memory in [usize::MAX, 0] {
            let mut net = NetChanges::new(memory);
            net.change(TABLE, [None, side("k", "a")]).unwrap();
            let again = net.change(TABLE, [None, side("k", "b")]);
            let ended = again.and_then(|()| net.finish(&mut |_, _| Ok(())));
            assert!(matches!(ended, Err(NetTrouble::Contradiction(Contradiction { table: 7 }))), "{ended:?}");
        }
    }

    #[test]
    fn two_rows_of_one_key_are_an_error() {
        for memory in [usize::MAX, 0] {
            let mut net = NetChanges::new(memory);
            net.change(TABLE, [side("k", "a"), side("k", "b")]).unwrap();
            let other = net.change(TABLE, [side("k", "c"), side("k", "d")]);
            let ended = other.and_then(|()| net.finish(&mut |_, _| Ok(())));
            assert!(matches!(ended, Err(NetTrouble::Contradiction(Contradiction { table: 7 }))), "{ended:?}");
        }
    }

    #[test]
    fn runs_come_to_the_same_as_memory() {
        let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let images = ["1", "2", "3", "4", "5"];
        for seed in 0..200_u64 {
            let mut random = seed;
            let mut next = |below: usize| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) as usize % below
            };
            let mut rows: BTreeMap<&str, &str> = BTreeMap::new();
            let mut nets = [NetChanges::new(usize::MAX), NetChanges::new(700), NetChanges::new(0)];
            for _ in 0..next(60) {
                let key = keys[next(keys.len())];
                let before = rows.get(key).copied();
                let after = (next(3) > 0).then(|| images[next(images.len())]);
                let sides =
                    [before.and_then(|image| side(key, image)), after.and_then(|image| side(key, image))];
                match after {
                    Some(image) => rows.insert(key, image),
                    None => rows.remove(key),
                };
                if sides.iter().any(Option::is_some) {
                    nets.iter_mut().for_each(|net| net.change(TABLE, sides).unwrap());
                }
            }
            let [one, two, three] = nets.each_mut().map(told);
            assert_eq!(one, two, "seed {seed}");
            assert_eq!(one, three, "seed {seed}");
            let inserted = one.iter().filter_map(|line| line.strip_prefix("7 +")).collect::<Vec<_>>();
            assert_eq!(inserted, rows.values().copied().collect::<Vec<_>>(), "seed {seed}");
        }
    }
}
