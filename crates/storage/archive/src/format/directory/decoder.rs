//! Reads the directory of a block. The byte table is in [`super`].

use binlogz_binlog::gtid::{Gtid, ServerUuid, Tag, Tsid};

use super::{COMPRESSIBLE, DirectoryGroup, DirectoryGroups, EACH, OPEN, PACKED, REASONS_BEGIN, damaged};
use crate::codec::numbers;
use crate::codec::varint::Taker;
use crate::error::Result;
use crate::format::BlockEntry;
use crate::format::contents::ListedTable;
use crate::log::directory::{
    BlockDirectory, DirectoryColumns, DirectoryTable, GtidSource, PartEnding, REASONS, ShapeRows,
    TransactionShape,
};

/// Reads the directory of a block. Lengths lie: no count is above what the block has room for.
pub(super) struct DirectoryDecoder<'a> {
    pub(super) entry: &'a BlockEntry,
    /// Events that the block has room for.
    pub(super) count_max: usize,
}

impl DirectoryDecoder<'_> {
    pub(super) fn decode(
        &self,
        bytes: &[u8],
        tables: &[ListedTable],
        wanted: DirectoryGroups,
    ) -> Result<BlockDirectory> {
        let mut from = Taker::new(bytes);
        let flags = from.byte()?;
        let groups = DirectoryGroups(from.byte()?);
        if flags > 1 || !DirectoryGroups::ALL.has(groups) || !groups.has(DirectoryGroups::SHAPES) {
            return Err(damaged(format!("flags {flags} and groups {}", groups.0), "those of its version"));
        }
        let count = from.at_most(self.count_max as u64, "count of transactions")?;
        let mut directory = BlockDirectory { continues: flags == 1, ..BlockDirectory::default() };
        if directory.continues != self.entry.continues || (directory.continues && count == 0) {
            return Err(damaged("another begin", "that of the block"));
        }
        for _ in 0..from.at_most(self.count_max as u64, "count of tables")? {
            let number = from.number()?;
            let table = usize::try_from(number).ok().and_then(|number| tables.get(number));
            let table = table.ok_or_else(|| damaged(format!("table {number}"), "one of the contents"))?;
            directory
                .tables
                .push(DirectoryTable { database: table.database.clone(), table: table.table.clone() });
        }
        for group in DirectoryGroup::ALL {
            if !groups.has(group.alone()) {
                continue;
            }
            let mut columns = Taker::new(from.bytes()?);
            if group == DirectoryGroup::Shapes || wanted.has(group.alone()) {
                self.group(group, &mut columns, count, &mut directory)?;
                nothing_left(&columns)?;
            }
        }
        nothing_left(&from)?;
        Ok(directory)
    }

    fn group(
        &self,
        group: DirectoryGroup,
        from: &mut Taker<'_>,
        count: usize,
        directory: &mut BlockDirectory,
    ) -> Result<()> {
        let columns = &mut directory.columns;
        match group {
            DirectoryGroup::Shapes => return self.shapes(from, count, directory),
            DirectoryGroup::Gtids => return self.gtids(from, count, directory),
            DirectoryGroup::Servers => columns.server_id = within(column(from, count)?, u32::MAX.into())?,
            DirectoryGroup::Logged => {
                columns.logged_at = within(summed(from_first(from, count)?), u32::MAX.into())?;
            }
            DirectoryGroup::Sizes => self.sizes(from, count, columns)?,
            DirectoryGroup::Threads => {
                columns.thread = within(column(from, count)?, i64::from(u32::MAX) + 1)?;
            }
            DirectoryGroup::Times => {
                columns.applied_at = within(summed(from_first(from, count)?), i64::MAX)?;
                let first = column(from, count)?.into_iter().zip(&columns.applied_at);
                let first = first.map(|(step, here)| here.wrapping_add(step)).collect();
                columns.committed_at = within(first, i64::MAX)?;
            }
        }
        Ok(())
    }

    fn shapes(&self, from: &mut Taker<'_>, count: usize, directory: &mut BlockDirectory) -> Result<()> {
        let shapes = from.at_most(count as u64, "count of shapes")?;
        let size = self.entry.size as i64;
        let events = within(column(from, shapes)?, self.count_max as i64)?;
        let overhead = within(column(from, shapes)?, size)?;
        let endings = column(from, shapes)?;
        let counts = within(column(from, shapes)?, self.count_max as i64)?;
        let rows = counts.iter().fold(0usize, |sum, &count| sum.saturating_add(count as usize));
        let tables = within(self.at_most(from, rows)?, directory.tables.len() as i64 - 1)?;
        // A row without columns has no bytes, but its event has.
        let kinds = [
            within(self.at_most(from, rows)?, size)?,
            within(self.at_most(from, rows)?, size)?,
            within(self.at_most(from, rows)?, size)?,
        ];
        let [inserted, updated, deleted] = &kinds;
        let mut of_tables = tables.iter().zip(inserted).zip(updated).zip(deleted);
        for (((events, overhead), ending), count) in events.iter().zip(overhead).zip(endings).zip(counts) {
            let rows =
                of_tables.by_ref().take(count as usize).map(|(((table, inserted), updated), deleted)| {
                    let counts = [inserted, updated, deleted].map(|count| *count as u64);
                    ShapeRows { table: *table as u32, counts }
                });
            directory.shapes.push(TransactionShape {
                events: *events as u64,
                overhead: overhead as u64,
                ending: ending_of(ending)?,
                rows: rows.collect(),
            });
        }
        directory.columns.shape = within(column(from, count)?, shapes as i64 - 1)?;
        self.check_events(directory)?;
        let last = directory.columns.shape.split_last().map_or(&[][..], |(_, before)| before);
        let is_open = |shape: &i64| {
            directory.shapes.get(*shape as usize).is_some_and(|shape| shape.ending == PartEnding::Open)
        };
        match last.iter().any(is_open) {
            true => Err(damaged("a transaction that is open before another", "that its end comes first")),
            false => Ok(()),
        }
    }

    /// Many transactions may have one shape, but all their events and tables are in the block.
    fn check_events(&self, directory: &BlockDirectory) -> Result<()> {
        let in_shape = |shape: &i64| {
            let shape = directory.shapes.get(*shape as usize);
            shape.map_or(0, |shape| shape.events.max(shape.rows.len() as u64))
        };
        let all = directory.columns.shape.iter().map(in_shape).fold(0, u64::saturating_add);
        match all <= self.count_max as u64 {
            true => Ok(()),
            false => {
                Err(damaged(format!("{all} events of transactions"), "as many as the block has room for"))
            }
        }
    }

    /// A column of `count` numbers, of which the block has room for so many.
    fn at_most(&self, from: &mut Taker<'_>, count: usize) -> Result<Vec<i64>> {
        if count > self.count_max {
            return Err(damaged(
                format!("{count} tables of transactions"),
                "as many as the block has events",
            ));
        }
        column(from, count)
    }

    fn gtids(&self, from: &mut Taker<'_>, count: usize, directory: &mut BlockDirectory) -> Result<()> {
        directory.sources = take_sources(from, count)?;
        let source = within(column(from, count)?, directory.sources.len() as i64 - 1)?;
        let gno = summed(from_first(from, count)?);
        for (source, gno) in source.iter().zip(&gno) {
            if let Some(GtidSource::Server(tsid)) = directory.sources.get(*source as usize) {
                Gtid::new(*tsid, *gno as u64)?;
            }
        }
        directory.columns.source = source;
        directory.columns.gno = gno;
        Ok(())
    }

    fn sizes(&self, from: &mut Taker<'_>, count: usize, columns: &mut DirectoryColumns) -> Result<()> {
        let BlockEntry { offset, size, .. } = *self.entry;
        columns.bytes = within(column(from, count)?, size as i64)?;
        let mut end = offset;
        let block_end = offset.saturating_add(size);
        for (gap, &bytes) in from_first(from, count)?.into_iter().zip(&columns.bytes) {
            let position = u64::try_from(gap).ok().and_then(|gap| end.checked_add(gap));
            let next = position.and_then(|position| position.checked_add(bytes as u64));
            let (Some(position), Some(next)) = (position, next.filter(|next| *next <= block_end)) else {
                return Err(damaged("a transaction outside of its block", "one within it"));
            };
            let position = i64::try_from(position);
            columns.position.push(position.map_err(|_| damaged("a position above 2^63", "one below"))?);
            end = next;
        }
        Ok(())
    }
}

/// Takes a column of so many numbers.
fn column(from: &mut Taker<'_>, count: usize) -> Result<Vec<i64>> {
    let numbers = match from.byte()? {
        EACH => (0..count).map(|_| from.signed()).collect::<Result<Vec<_>>>()?,
        PACKED => numbers::unpack(from, &[], count)?,
        other => return Err(damaged(format!("column of code {other}"), "0 or 1")),
    };
    match numbers.len() == count {
        true => Ok(numbers),
        false => Err(damaged(format!("a column of {} numbers", numbers.len()), "one for each transaction")),
    }
}

/// The numbers, if all are from 0 to `max`.
fn within(numbers: Vec<i64>, max: i64) -> Result<Vec<i64>> {
    match numbers.iter().find(|number| !(0..=max).contains(*number)) {
        Some(number) => Err(damaged(format!("the number {number}"), "one within its bounds")),
        None => Ok(numbers),
    }
}

fn nothing_left(from: &Taker<'_>) -> Result<()> {
    match from.left() {
        0 => Ok(()),
        left => Err(damaged(format!("{left} bytes too many"), "none")),
    }
}

pub(super) fn ending_of(code: i64) -> Result<PartEnding> {
    match code {
        OPEN => Ok(PartEnding::Open),
        COMPRESSIBLE => Ok(PartEnding::Compressible),
        reason => {
            let place = usize::try_from(reason.wrapping_sub(REASONS_BEGIN)).ok();
            let reason = place.and_then(|place| REASONS.get(place)).copied();
            reason.map(PartEnding::Plain).ok_or_else(|| damaged(format!("ending {code}"), "0 to 13"))
        }
    }
}

fn take_sources(from: &mut Taker<'_>, count_max: usize) -> Result<Vec<GtidSource>> {
    let count = from.at_most(count_max as u64, "count of GTID sources")?;
    let mut sources = Vec::new();
    for _ in 0..count {
        sources.push(match from.byte()? {
            0 => GtidSource::Missing,
            1 => GtidSource::Anonymous,
            2 => {
                let uuid = from.take(16)?.first_chunk().copied();
                let uuid = uuid.ok_or_else(|| damaged("a short uuid", "16 bytes"))?;
                let tag =
                    str::from_utf8(from.bytes()?).map_err(|_| damaged("a tag that is no text", "a tag"))?;
                let tag = if tag.is_empty() { None } else { Some(tag.parse::<Tag>()?) };
                GtidSource::Server(Tsid { uuid: ServerUuid(uuid), tag })
            }
            other => return Err(damaged(format!("GTID source {other}"), "0 to 2")),
        });
    }
    Ok(sources)
}

/// The values whose steps these are: each is the sum of those up to it.
fn summed(mut steps: Vec<i64>) -> Vec<i64> {
    let mut sum = 0i64;
    for step in &mut steps {
        sum = sum.wrapping_add(*step);
        *step = sum;
    }
    steps
}

/// So many numbers, of which the first stands before the column of the others.
fn from_first(from: &mut Taker<'_>, count: usize) -> Result<Vec<i64>> {
    let first = from.signed()?;
    let mut numbers = column(from, count.saturating_sub(1))?;
    if count > 0 {
        numbers.insert(0, first);
    }
    Ok(numbers)
}
