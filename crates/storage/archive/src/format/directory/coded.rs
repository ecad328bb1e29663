//! Codes the directory of a block. The byte table is in [`super`].

use binlogz_binlog::gtid::{Tag, Tsid};

use super::{COMPRESSIBLE, DirectoryGroup, DirectoryGroups, EACH, OPEN, PACKED, REASONS_BEGIN};
use crate::codec::varint;
use crate::codec::{Level, numbers};
use crate::error::Result;
use crate::log::directory::{
    BlockDirectory, DirectoryColumns, DirectoryTable, GtidSource, PartEnding, REASONS, ShapeRows,
    TransactionShape,
};

/// A block's directory, its columns coded.
#[derive(Debug)]
pub(crate) struct CodedDirectory {
    continues: bool,
    count: usize,
    tables: Vec<DirectoryTable>,
    /// In the order of [`DirectoryGroup::ALL`].
    groups: [Vec<u8>; DirectoryGroup::ALL.len()],
}

impl CodedDirectory {
    /// Codes the directory of a block that begins at `offset` in its log.
    pub(crate) fn of(directory: &BlockDirectory, offset: u64) -> Result<Self> {
        let BlockDirectory { continues, tables, sources, shapes, columns } = directory;
        let DirectoryColumns { shape, source, gno, position, bytes, applied_at, committed_at, .. } = columns;
        let mut gaps = Vec::with_capacity(position.len());
        let mut end = offset as i64;
        for (position, bytes) in position.iter().zip(bytes) {
            gaps.push(position.wrapping_sub(end));
            end = position.wrapping_add(*bytes);
        }
        let mut sizes = coded(&[bytes])?;
        put_from_first(&mut sizes, &gaps)?;
        let mut times = Vec::new();
        put_from_first(&mut times, &steps(applied_at))?;
        let first: Vec<i64> =
            committed_at.iter().zip(applied_at).map(|(first, here)| first.wrapping_sub(*here)).collect();
        put_columns(&mut times, &[&first])?;
        let mut gtids = Vec::new();
        put_sources(&mut gtids, sources);
        put_columns(&mut gtids, &[source])?;
        put_from_first(&mut gtids, &steps(gno))?;
        let mut logged = Vec::new();
        put_from_first(&mut logged, &steps(&columns.logged_at))?;
        let groups = [
            coded_shapes(shapes, shape)?,
            gtids,
            coded(&[&columns.server_id])?,
            logged,
            sizes,
            coded(&[&columns.thread])?,
            times,
        ];
        Ok(CodedDirectory { continues: *continues, count: directory.len(), tables: tables.clone(), groups })
    }

    /// The bytes to store, at most `room`; none: there is no room, or a table has no number.
    pub(crate) fn told(self, room: u64, number: &dyn Fn(&DirectoryTable) -> Option<u32>) -> Vec<u8> {
        let mut front = vec![u8::from(self.continues), 0];
        varint::put(&mut front, self.count as u64);
        varint::put(&mut front, self.tables.len() as u64);
        for table in &self.tables {
            let Some(number) = number(table) else { return Vec::new() };
            varint::put(&mut front, number.into());
        }
        let mut groups = DirectoryGroups::default();
        for (group, bytes) in DirectoryGroup::ALL.into_iter().zip(&self.groups) {
            let before = front.len();
            varint::put_bytes(&mut front, bytes);
            match front.len() as u64 <= room {
                true => groups = groups.with(group.alone()),
                false => front.truncate(before),
            }
        }
        if let Some(place) = front.get_mut(1) {
            *place = groups.0;
        }
        let has_shapes = groups.has(DirectoryGroups::SHAPES);
        if has_shapes && front.len() as u64 <= room { front } else { Vec::new() }
    }
}

/// Each value minus the one before.
fn steps(values: &[i64]) -> Vec<i64> {
    let before = std::iter::once(&0).chain(values);
    values.iter().zip(before).map(|(value, before)| value.wrapping_sub(*before)).collect()
}

/// Codes a column as numbers.rs does, or, where that is smaller, number by number.
fn put_column(out: &mut Vec<u8>, numbers: &[i64]) -> Result<()> {
    let mut each = Vec::new();
    numbers.iter().for_each(|number| varint::put_signed(&mut each, *number));
    let mut packed = Vec::new();
    numbers::pack_alone(numbers, Level::Default, &mut packed)?;
    let (code, bytes) = if each.len() < packed.len() { (EACH, each) } else { (PACKED, packed) };
    out.push(code);
    out.extend(bytes);
    Ok(())
}

/// The first number alone, then a column of the others, which often are all the same.
fn put_from_first(out: &mut Vec<u8>, numbers: &[i64]) -> Result<()> {
    let (first, others) = numbers.split_first().unwrap_or((&0, &[]));
    varint::put_signed(out, *first);
    put_column(out, others)
}

fn put_columns(out: &mut Vec<u8>, columns: &[&[i64]]) -> Result<()> {
    columns.iter().try_for_each(|column| put_column(out, column))
}

fn coded(columns: &[&[i64]]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    put_columns(&mut out, columns)?;
    Ok(out)
}

fn coded_shapes(shapes: &[TransactionShape], shape: &[i64]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    varint::put(&mut out, shapes.len() as u64);
    let of_shapes = |value: &dyn Fn(&TransactionShape) -> i64| shapes.iter().map(value).collect::<Vec<_>>();
    let events = of_shapes(&|shape| shape.events as i64);
    let overhead = of_shapes(&|shape| shape.overhead as i64);
    let endings = of_shapes(&|shape| code_of(shape.ending));
    let counts = of_shapes(&|shape| shape.rows.len() as i64);
    let rows: Vec<&ShapeRows> = shapes.iter().flat_map(|shape| &shape.rows).collect();
    let tables: Vec<i64> = rows.iter().map(|rows| rows.table.into()).collect();
    let of_kind = |kind: usize| -> Vec<i64> {
        rows.iter().map(|rows| rows.counts.get(kind).map_or(0, |&count| count as i64)).collect()
    };
    let columns = [events, overhead, endings, counts, tables, of_kind(0), of_kind(1), of_kind(2)];
    columns.iter().try_for_each(|column| put_column(&mut out, column))?;
    put_column(&mut out, shape)?;
    Ok(out)
}

pub(super) fn code_of(ending: PartEnding) -> i64 {
    match ending {
        PartEnding::Open => OPEN,
        PartEnding::Compressible => COMPRESSIBLE,
        PartEnding::Plain(reason) => {
            let place = REASONS.iter().position(|known| *known == reason);
            // The walk tells none that isn't among them; a reader would refuse it.
            place.map_or(i64::MAX, |place| REASONS_BEGIN + place as i64)
        }
    }
}

fn put_sources(out: &mut Vec<u8>, sources: &[GtidSource]) {
    varint::put(out, sources.len() as u64);
    for source in sources {
        match source {
            GtidSource::Missing => out.push(0),
            GtidSource::Anonymous => out.push(1),
            GtidSource::Server(Tsid { uuid, tag }) => {
                out.push(2);
                out.extend_from_slice(&uuid.0);
                varint::put_bytes(out, tag.as_ref().map(Tag::as_bytes).unwrap_or_default());
            }
        }
    }
}
