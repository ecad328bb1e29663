//! Geometries as their coordinates: columns of doubles, beside what remains of each value, which mostly is the same in all rows.
//!
//! A value is what MySQL stores: the SRID in four bytes, then well-known binary: byte order 1, a type, counts, and pairs of doubles.
//!
//! ```text
//! key     varint  0, or how many columns back the column of numbers is by which coordinates may be coded
//! kinds   varint  count of the different values without coordinates
//!         column  these, coded plain, as text or as shapes
//!         numbers which of them each value has
//! x       numbers the first coordinate of each pair, as the bits of a double
//! y       numbers the second ones
//! ```

use super::{Dictionary, StringList, check_size, pack_different, pass_different, unpack_different};
use crate::codec::Level;
use crate::codec::numbers::{self, EarlierColumns};
use crate::codec::varint::{self, Taker};
use crate::error::{Error, Result};

const SRID_SIZE: usize = 4;
const COORDINATE_SIZE: usize = 8;
const PAIR_SIZE: usize = 2 * COORDINATE_SIZE;
/// Collections in collections.
const DEPTH_MAX: usize = 8;
/// The only byte order that MySQL stores.
const LOW_BYTE_FIRST: u8 = 1;

const POINT: u32 = 1;
const LINE: u32 = 2;
const POLYGON: u32 = 3;
const MULTIPOINT: u32 = 4;
const COLLECTION: u32 = 7;

/// A column of geometries, taken apart.
pub(super) struct Geometries {
    kinds: Dictionary,
    x: Vec<i64>,
    y: Vec<i64>,
}

/// A walk over the parts of a geometry.
trait GeometryWalk {
    /// Bytes that are no coordinates.
    fn structure(&mut self, size: usize) -> Option<&[u8]>;
    /// Pairs of coordinates.
    fn pairs(&mut self, count: usize) -> Option<()>;
}

/// Walks over a geometry from its SRID on. `None`: it is none.
fn walk_over(walk: &mut impl GeometryWalk) -> Option<()> {
    walk.structure(SRID_SIZE)?;
    walk_over_one(walk, 0)
}

fn walk_over_one(walk: &mut impl GeometryWalk, depth: usize) -> Option<()> {
    let order = walk.structure(1)?.first().copied()?;
    if order != LOW_BYTE_FIRST || depth > DEPTH_MAX {
        return None;
    }
    match number(walk)? {
        POINT => walk.pairs(1),
        LINE => pairs_of(walk),
        POLYGON => (0..number(walk)?).try_for_each(|_| pairs_of(walk)),
        MULTIPOINT..=COLLECTION => (0..number(walk)?).try_for_each(|_| walk_over_one(walk, depth + 1)),
        _ => None,
    }
}

fn pairs_of(walk: &mut impl GeometryWalk) -> Option<()> {
    let count = number(walk)?;
    walk.pairs(count as usize)
}

fn number(walk: &mut impl GeometryWalk) -> Option<u32> {
    walk.structure(4)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Takes geometries apart.
struct GeometrySplitter<'a> {
    rest: &'a [u8],
    kind: Vec<u8>,
    x: &'a mut Vec<i64>,
    y: &'a mut Vec<i64>,
}

impl GeometryWalk for GeometrySplitter<'_> {
    fn structure(&mut self, size: usize) -> Option<&[u8]> {
        let (bytes, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        self.kind.extend_from_slice(bytes);
        Some(bytes)
    }

    fn pairs(&mut self, count: usize) -> Option<()> {
        let (bytes, rest) = self.rest.split_at_checked(count.checked_mul(PAIR_SIZE)?)?;
        self.rest = rest;
        for pair in bytes.as_chunks::<PAIR_SIZE>().0 {
            let (x, y) = pair.split_at(COORDINATE_SIZE);
            self.x.push(i64::from_le_bytes(*x.first_chunk()?));
            self.y.push(i64::from_le_bytes(*y.first_chunk()?));
        }
        Some(())
    }
}

/// Puts geometries together.
struct GeometryJoiner<'a> {
    kind: &'a [u8],
    x: std::slice::Iter<'a, i64>,
    y: std::slice::Iter<'a, i64>,
    out: Vec<u8>,
}

impl GeometryWalk for GeometryJoiner<'_> {
    fn structure(&mut self, size: usize) -> Option<&[u8]> {
        let (bytes, rest) = self.kind.split_at_checked(size)?;
        self.kind = rest;
        self.out.extend_from_slice(bytes);
        Some(bytes)
    }

    fn pairs(&mut self, count: usize) -> Option<()> {
        if count > self.x.len().min(self.y.len()) {
            return None;
        }
        for (x, y) in self.x.by_ref().zip(self.y.by_ref()).take(count) {
            self.out.extend_from_slice(&x.to_le_bytes());
            self.out.extend_from_slice(&y.to_le_bytes());
        }
        Some(())
    }
}

impl Geometries {
    /// `None`: some value is no geometry, or none has coordinates.
    pub(super) fn of(strings: &StringList) -> Option<Geometries> {
        let mut kinds = StringList::new();
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for string in strings.iter() {
            let mut splitter = GeometrySplitter { rest: string, kind: Vec::new(), x: &mut x, y: &mut y };
            walk_over(&mut splitter)?;
            if !splitter.rest.is_empty() {
                return None;
            }
            kinds.push(&splitter.kind);
        }
        let kinds = Dictionary::up_to(&kinds, strings.len())?;
        (!x.is_empty()).then_some(Geometries { kinds, x, y })
    }

    /// Appends their code, without the code's number.
    pub(super) fn pack(&self, before: &EarlierColumns<'_>, level: Level, out: &mut Vec<u8>) -> Result<()> {
        let key = numbers::key_of(&self.x, before)?;
        let keys = EarlierColumns::of(key.and_then(|back| before.back(back)));
        varint::put(out, key.unwrap_or_default() as u64);
        varint::put(out, self.kinds.entries.len() as u64);
        pack_different(&self.kinds.entries, level, out)?;
        numbers::pack_alone(&self.kinds.indexes, level, out)?;
        numbers::pack(&self.x, &keys, level, out)?;
        numbers::pack(&self.y, &keys, level, out)
    }

    /// Passes over a column of them.
    pub(super) fn pass(from: &mut Taker<'_>, bytes_max: usize) -> Result<()> {
        from.number()?;
        from.number()?;
        let code = from.byte()?;
        pass_different(from, code, bytes_max)?;
        (0..3).try_for_each(|_| numbers::pass(from))
    }

    /// Takes a column of `count` of them.
    pub(super) fn unpack(
        from: &mut Taker<'_>,
        before: &[&[i64]],
        count: usize,
        bytes_max: usize,
    ) -> Result<StringList> {
        let key = match from.at_most(before.len() as u64, "key of coordinates")? {
            0 => None,
            back => before.iter().rev().nth(back - 1).copied(),
        };
        let kinds_count = from.at_most(count as u64, "count of kinds")?;
        let code = from.byte()?;
        let kinds = unpack_different(from, code, kinds_count, bytes_max)?;
        let which = numbers::unpack(from, &[], count)?;
        let x = numbers::unpack(from, key.as_slice(), bytes_max / PAIR_SIZE)?;
        let y = numbers::unpack(from, key.as_slice(), x.len())?;
        let mut joiner = GeometryJoiner { kind: &[], x: x.iter(), y: y.iter(), out: Vec::new() };
        let mut ends = Vec::with_capacity(count);
        for place in which {
            let kind = usize::try_from(place).ok().and_then(|place| kinds.get(place));
            joiner.kind =
                kind.ok_or_else(|| Error::damaged("geometries", format!("kind {place}"), "one of them"))?;
            if walk_over(&mut joiner).is_none() || !joiner.kind.is_empty() {
                return Err(Error::damaged("geometry", "a value that is none", "well-known binary"));
            }
            check_size(joiner.out.len(), bytes_max)?;
            ends.push(joiner.out.len());
        }
        match joiner.x.len().max(joiner.y.len()) {
            0 => Ok(StringList { bytes: joiner.out, ends }),
            left => Err(Error::damaged("geometries", format!("{left} coordinates left over"), "none")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{pack, pass, unpack};
    use super::*;

    fn value(srid: u32, parts: &[&[u8]]) -> Vec<u8> {
        [&srid.to_le_bytes()[..], &parts.concat()].concat()
    }

    fn head(kind: u32) -> Vec<u8> {
        [&[LOW_BYTE_FIRST][..], &kind.to_le_bytes()].concat()
    }

    fn pairs(pairs: &[(f64, f64)]) -> Vec<u8> {
        pairs.iter().flat_map(|(x, y)| [x.to_le_bytes(), y.to_le_bytes()].concat()).collect()
    }

    fn count(count: u32) -> Vec<u8> {
        count.to_le_bytes().to_vec()
    }

    fn point(x: f64, y: f64) -> Vec<u8> {
        value(4326, &[&head(POINT), &pairs(&[(x, y)])])
    }

    fn list(values: &[Vec<u8>]) -> StringList {
        let mut strings = StringList::new();
        values.iter().for_each(|value| strings.push(value));
        strings
    }

    /// The code of values beside this column of keys; they come back at every level.
    fn round(values: &[Vec<u8>], keys: &[i64]) -> Vec<u8> {
        let strings = list(values);
        let codes = [Level::Fast, Level::Max, Level::Default].map(|level| {
            let mut packed = Vec::new();
            pack(&strings, &EarlierColumns::of([keys]), level, &mut packed).unwrap();
            let mut from = Taker::new(&packed);
            assert!(unpack(&mut from, &[keys], strings.len(), strings.size()).unwrap() == strings);
            assert_eq!(from.left(), 0);
            let mut from = Taker::new(&packed);
            pass(&mut from, strings.size()).unwrap();
            assert_eq!(from.left(), 0);
            packed
        });
        let [_, _, packed] = codes;
        packed
    }

    fn every_kind() -> Vec<Vec<u8>> {
        let ring = [count(3), pairs(&[(0.0, 0.0), (1.5, 0.0), (0.0, 2.5)])].concat();
        let some = [point(13.4, 52.5), point(-0.0, f64::NAN)];
        let of_collection = [&head(POINT)[..], &pairs(&[(7.0, 8.0)])].concat();
        let mut values = vec![
            value(0, &[&head(LINE), &count(2), &pairs(&[(1.0, 2.0), (3.0, 4.0)])]),
            value(0, &[&head(POLYGON), &count(2), &ring, &ring]),
            value(0, &[&head(MULTIPOINT), &count(1), &of_collection]),
            value(0, &[&head(COLLECTION), &count(2), &of_collection, &head(LINE), &count(0)]),
            value(0, &[&head(COLLECTION), &count(0)]),
        ];
        values.extend(some);
        values
    }

    fn repeated(values: &[Vec<u8>], times: usize) -> Vec<Vec<u8>> {
        (0..times).flat_map(|_| values.to_vec()).collect()
    }

    #[test]
    fn geometries_of_every_kind_come_back() {
        let values = every_kind();
        assert!(Geometries::of(&list(&values)).is_some());
        round(&values, &[]);
        round(&repeated(&values, 100), &[]);
    }

    #[test]
    fn what_is_no_geometry_is_coded_as_other_strings() {
        let whole = point(13.4, 52.5);
        let longer = [&whole[..], b"x"].concat();
        let mut other_order = whole.clone();
        other_order[SRID_SIZE] = 0;
        let mut other_kind = whole.clone();
        other_kind[SRID_SIZE + 1] = 8;
        let mut deep = point(1.0, 2.0).split_off(SRID_SIZE);
        for _ in 0..=DEPTH_MAX {
            deep = [head(COLLECTION), count(1), deep].concat();
        }
        let deep = value(0, &[&deep]);
        let empty = value(0, &[&head(COLLECTION), &count(0)]);
        for bad in [whole[..24].to_vec(), longer, other_order, other_kind, deep, b"text".to_vec(), Vec::new()]
        {
            let values = [whole.clone(), bad];
            assert!(Geometries::of(&list(&values)).is_none(), "{values:?}");
            round(&values, &[]);
        }
        assert!(Geometries::of(&list(&[empty])).is_none());
    }

    #[test]
    fn positions_of_vehicles_take_what_their_steps_take() {
        let mut places: Vec<(i64, i64)> =
            (0..50).map(|n| (13_400_000 + n * 977, 52_500_000 - n * 1313)).collect();
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % below) as i64
        };
        let mut vehicles = Vec::new();
        let mut values = Vec::new();
        for _ in 0..4000 {
            let vehicle = random(50);
            let place = &mut places[vehicle as usize];
            place.0 += random(200) - 100;
            place.1 += random(200) - 100;
            vehicles.push(vehicle);
            values.push(point(place.0 as f64 / 1e6, place.1 as f64 / 1e6));
        }
        // Steps of 200 values are eight bits.
        let packed = round(&values, &vehicles);
        assert!(packed.len() < 2 * 4000 + 1000, "{}", packed.len());
        let alone = round(&values, &[]);
        assert!(alone.len() > packed.len() * 3 / 2, "{}", alone.len());
        // Half of them stand still.
        let still: Vec<Vec<u8>> =
            values.iter().step_by(2).flat_map(|value| [value.clone(), value.clone()]).collect();
        round(&still, &vehicles);
    }

    #[test]
    fn coordinates_that_are_missing_or_left_over_are_refused() {
        let line = value(0, &[&head(LINE), &count(2), &pairs(&[(1.0, 2.0), (3.0, 4.0)])]);
        for (x, y, is_whole) in [(2, 2, true), (1, 1, false), (2, 1, false), (1, 2, false), (3, 3, false)] {
            let mut geometries = Geometries::of(&list(std::slice::from_ref(&line))).unwrap();
            geometries.x.resize(x, 7);
            geometries.y.resize(y, 7);
            let mut packed = vec![1, super::super::GEOMETRIES];
            geometries.pack(&EarlierColumns::default(), Level::Default, &mut packed).unwrap();
            let back = unpack(&mut Taker::new(&packed), &[], 1, 1000);
            assert_eq!(back.is_ok(), is_whole, "{x} {y}");
        }
    }

    #[test]
    fn damaged_geometries_are_errors_or_others_and_never_a_panic() {
        let values = repeated(&every_kind(), 20);
        let keys: Vec<i64> = (0..values.len() as i64).map(|row| row % 7).collect();
        let strings = list(&values);
        let packed = round(&values, &keys);
        let size = strings.size();
        for length in 0..packed.len() {
            assert!(
                unpack(&mut Taker::new(&packed[..length]), &[&keys], values.len(), size).is_err(),
                "{length}"
            );
        }
        for at in 0..packed.len() {
            for flip in [1, 0x55, 0x80, 0xff] {
                let mut bad = packed.clone();
                bad[at] ^= flip;
                let _ = unpack(&mut Taker::new(&bad), &[&keys], values.len(), size);
                let _ = pass(&mut Taker::new(&bad), size);
            }
        }
        assert!(unpack(&mut Taker::new(&packed), &[&keys], values.len(), size - 1).is_err());
    }
}
