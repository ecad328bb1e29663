//! The effects of changed parents on their children, in the order of the log, until the script asks for them.
//!
//! ```text
//! size field
//!    4 size         of what follows
//!   32 place        log, offset, index in the payload (u64::MAX: in none), row, of the parent's row: u64 each
//!    4 constraint
//!    1 kind         0 a parent's row met the constraint; 1 a child
//!      of a child: 4 layout · 1 flags · n what the renderer wrote
//! ```

use std::io::{self, BufReader, Read};

use binlogz_figures::counted;
use binlogz_payload::{Spool, SpoolMemory};

use super::family::{Constraint, Family};
use crate::pass::{FollowedTransaction, RowAt, RowFlags, broken};
use crate::table::Structure;

/// Memory for effects; the rest goes to a temporary file.
const EFFECTS_MEMORY: usize = 8 << 20;

/// Where a row stands: log, offset of the event or its payload, index in the payload, row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowPlace {
    log: u64,
    offset: u64,
    inside: u64,
    row: u64,
}

impl RowPlace {
    pub(crate) fn of(transaction: &FollowedTransaction, row: &RowAt<'_>) -> Self {
        let inside = row.inside.unwrap_or(u64::MAX);
        RowPlace { log: transaction.log_number, offset: row.offset, inside, row: row.row }
    }
}

/// A table's layout in the log, which a child's rows are written with.
#[derive(Debug, Clone)]
pub(super) struct CascadeLayout {
    pub(super) database: Vec<u8>,
    pub(super) table: Vec<u8>,
    pub(super) structure: Structure,
    pub(super) map: Vec<u8>,
}

/// Effects in the making.
pub(super) struct Effects(Spool);

impl Effects {
    pub(super) fn new() -> Self {
        Effects(Spool::new(&SpoolMemory::new(EFFECTS_MEMORY), Vec::new()))
    }

    /// A parent's row met a constraint.
    pub(super) fn meet(&mut self, place: RowPlace, constraint: usize) -> io::Result<()> {
        self.put(place, constraint, &[&[0]])
    }

    /// A child's row, as it was rendered.
    pub(super) fn child(
        &mut self,
        (place, constraint): (RowPlace, usize),
        layout: usize,
        (flags, text): (u8, &[u8]),
    ) -> io::Result<()> {
        self.put(place, constraint, &[&[1], &(layout as u32).to_le_bytes(), &[flags], text])
    }

    fn put(&mut self, place: RowPlace, constraint: usize, parts: &[&[u8]]) -> io::Result<()> {
        let RowPlace { log, offset, inside, row } = place;
        let size = PLACE_SIZE + 4 + parts.iter().map(|part| part.len()).sum::<usize>();
        let size = u32::try_from(size).map_err(|_| io::Error::other("a row takes more than 4 GiB"))?;
        self.0.append(&size.to_le_bytes())?;
        for number in [log, offset, inside, row] {
            self.0.append(&number.to_le_bytes())?;
        }
        self.0.append(&(constraint as u32).to_le_bytes())?;
        parts.iter().try_for_each(|part| self.0.append(part))
    }
}

const PLACE_SIZE: usize = 32;

/// How much is known about the effects of a constraint.
#[derive(Debug, Clone, Default)]
pub(super) struct ConstraintKnowledge {
    /// The child was created in the logs, so each of its rows stands there.
    pub(super) is_whole: bool,
    /// Why rows can't be found that stand in the logs.
    pub(super) gaps: Vec<String>,
}

/// A child's row that goes with a parent's.
pub(crate) struct Child<'c> {
    pub(crate) database: &'c [u8],
    pub(crate) table: &'c [u8],
    pub(crate) structure: Structure,
    pub(crate) map: &'c [u8],
    pub(crate) flags: RowFlags,
    /// The renderer's text.
    pub(crate) text: &'c [u8],
    /// The constraint that did it, for people.
    pub(crate) constraint: String,
}

/// All effects, read along with the log.
pub(crate) struct Cascades {
    reader: BufReader<SpoolBytes>,
    /// The next effect, if it was read.
    next: Option<Vec<u8>>,
    layouts: Vec<CascadeLayout>,
    constraints: Vec<Constraint>,
    known: Vec<ConstraintKnowledge>,
    /// For each constraint: how many chosen parents' rows met it, and how many children were found.
    tallies: Vec<(u64, u64)>,
}

/// The bytes of a spool, once.
struct SpoolBytes {
    spool: Spool,
    offset: u64,
}

impl Read for SpoolBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.spool.reader(self.offset..self.spool.size()).read(buffer)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Cascades {
    pub(super) fn new(
        effects: Effects,
        family: Family,
        layouts: Vec<CascadeLayout>,
        known: Vec<ConstraintKnowledge>,
    ) -> Self {
        let tallies = vec![(0, 0); family.constraints.len()];
        let reader = BufReader::new(SpoolBytes { spool: effects.0, offset: 0 });
        Cascades { reader, next: None, layouts, constraints: family.constraints, known, tallies }
    }

    /// Calls back with each child of the row at a place, in the order in which they are made again. Places come in the log's
    /// order.
    pub(crate) fn at(
        &mut self,
        place: RowPlace,
        take: &mut dyn FnMut(&Child<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        while let Some(record) = self.take_next()? {
            let effect = Effect::read(&record).ok_or_else(broken)?;
            if effect.place > place {
                self.next = Some(record);
                return Ok(());
            }
            if effect.place < place {
                continue;
            }
            let tally = self.tallies.get_mut(effect.constraint).ok_or_else(broken)?;
            let Some((layout, flags, text)) = effect.child else {
                tally.0 += 1;
                continue;
            };
            tally.1 += 1;
            let layout = self.layouts.get(layout).ok_or_else(broken)?;
            let constraint = self.constraints.get(effect.constraint).ok_or_else(broken)?;
            take(&Child {
                database: &layout.database,
                table: &layout.table,
                structure: layout.structure,
                map: &layout.map,
                flags: RowFlags(flags),
                text,
                constraint: format!("foreign key {} of {}", constraint.name, constraint.child()),
            })?;
        }
        Ok(())
    }

    fn take_next(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(record) = self.next.take() {
            return Ok(Some(record));
        }
        if io::BufRead::fill_buf(&mut self.reader)?.is_empty() {
            return Ok(None);
        }
        let mut size = [0; 4];
        self.reader.read_exact(&mut size)?;
        let mut record = vec![0; u32::from_le_bytes(size) as usize];
        self.reader.read_exact(&mut record)?;
        Ok(Some(record))
    }

    /// The effects that can't be found, a line for each foreign key.
    pub(crate) fn notes(&self) -> Vec<String> {
        let each = self.constraints.iter().zip(&self.known).zip(&self.tallies);
        let met = each
            .filter(|((_, known), (parents, _))| *parents > 0 && (!known.is_whole || !known.gaps.is_empty()));
        met.map(|((constraint, known), (parents, children))| {
            let Constraint { name, .. } = constraint;
            let (child, parent) = (constraint.child(), constraint.parent());
            let mut why = known.gaps.clone();
            if !known.is_whole {
                why.push("rows whose last change stands before these logs".to_owned());
            }
            format!(
                "foreign key {name}: {} of {child} found for {} of {parent}; not found, if there were any: {}",
                counted(*children, "rows"),
                counted(*parents, "rows"),
                why.join(", ")
            )
        })
        .collect()
    }
}

/// An effect as it was kept.
struct Effect<'b> {
    place: RowPlace,
    constraint: usize,
    /// Layout, flags, text.
    child: Option<(usize, u8, &'b [u8])>,
}

impl<'b> Effect<'b> {
    fn read(bytes: &'b [u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut number = || {
            let (number, after) = rest.split_first_chunk()?;
            rest = after;
            Some(u64::from_le_bytes(*number))
        };
        let place = RowPlace { log: number()?, offset: number()?, inside: number()?, row: number()? };
        let (constraint, rest) = rest.split_first_chunk()?;
        let (kind, rest) = rest.split_first()?;
        let child = match kind {
            0 => None,
            _ => {
                let (layout, rest) = rest.split_first_chunk()?;
                let (flags, text) = rest.split_first()?;
                Some((u32::from_le_bytes(*layout) as usize, *flags, text))
            }
        };
        Some(Effect { place, constraint: u32::from_le_bytes(*constraint) as usize, child })
    }
}
