//! Which parts of archived logs have to be read to work out rows with certain values, or a table's columns.
//!
//! ```text
//! a part is read that            because
//! may have statements, or        the table may have been changed by one, its columns or a foreign key; so may rows of which
//! what isn't understood          nothing is known
//! may have the moment            it divides the transactions. Not where that is a GTID, or a set of them which the archive's directory shows
//!                                to be all that came before, and no part of the log before it is read: then only for the other reasons
//! may have changes of a parent   foreign keys may have carried them on to the table
//! may have a wanted row,         the first change of its key after the moment has the row as it was
//! before or after a change
//! ```
//!
//! A row that had a wanted value at the moment either has it still, and the server is asked for it, or was changed since: the first of its
//! changes has that value before it. A row that has got a wanted value since was given it by a change that has it after it. So all other
//! parts can be passed over, but for what they may have prepared (XA): then the logs are read once more as a whole. Values are looked for as the archive's index has
//! them, texts in any case; the rows that are found are compared again.

use std::collections::BTreeSet;

use binlogz_archive::format::Key;
use binlogz_archive::format::contents::KeyProbe;
use binlogz_archive::part::{BlockRun, TableRows};
use binlogz_binlog::gtid::GtidSet;
use binlogz_query::{BaseBlocks, BaseValue, BaseWish, KeyedRows, WholeLogs};
use binlogz_row_changes::{ColumnValue, ColumnValues, PastMoment, TableMoment, TouchedKeys, WantedKeyValues};

use super::BaseTrouble;

/// The values that a wish names, as those who work out tables take them; `None`: no row is wanted.
pub(super) fn wanted_values(wish: &BaseWish) -> Option<Vec<ColumnValues>> {
    match wish {
        BaseWish::All => Some(Vec::new()),
        BaseWish::Columns => None,
        BaseWish::Meeting(conditions) => {
            let each = conditions.iter().map(|condition| ColumnValues {
                column: condition.column.clone(),
                values: condition.values.iter().map(column_value).collect(),
            });
            Some(each.collect())
        }
    }
}

fn column_value(value: &BaseValue) -> ColumnValue {
    match value {
        BaseValue::Number(number) => ColumnValue::Number(*number),
        BaseValue::Text(text) => ColumnValue::Text(text.clone()),
    }
}

fn probe(value: &ColumnValue) -> KeyProbe {
    match value {
        ColumnValue::Number(number) => KeyProbe { numbers: Some((*number, *number)), text: None },
        ColumnValue::Text(text) => KeyProbe { numbers: None, text: Some(Key::of_bytes(text.as_bytes())) },
    }
}

/// The parts of a log that are read.
#[derive(Debug, Default)]
pub(super) struct ChosenParts {
    /// Where they begin.
    pub(super) starts: BTreeSet<u64>,
    /// The transactions of the others.
    pub(super) passed_over: GtidSet,
    /// If the moment is in a part that is passed over, and no part before it is read: a time that is no later than that of the first
    /// transaction after it, in microseconds since 1970.
    pub(super) begins_later: Option<u64>,
    blocks_read: usize,
    blocks_skipped: usize,
    blocks_searched: usize,
}

impl ChosenParts {
    /// The blocks that they have; `is_whole`: they are given with all others.
    pub(super) fn blocks(&self, is_whole: bool) -> BaseBlocks {
        let all = self.blocks_read + self.blocks_skipped;
        BaseBlocks {
            read: if is_whole { all } else { self.blocks_read },
            skipped: if is_whole { 0 } else { self.blocks_skipped },
            searched: self.blocks_searched,
        }
    }
}

/// A part of a log that may be read.
struct PartChoice {
    start: u64,
    blocks: usize,
    gtids: GtidSet,
    need: PartNeed,
    /// If the moment divides it: a time that is no later than that of the first transaction after it, in microseconds since 1970.
    divided: Option<i64>,
}

/// Why a part is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartNeed {
    /// It isn't.
    Nothing,
    /// The archive's index says that it may have a wanted row.
    MaybeRow,
    Certain,
}

/// Chooses parts of archived logs, in their order.
pub(super) struct ArchiveLookup<'b> {
    moment: &'b PastMoment,
    rows: WantedKeys,
    /// Whether transactions of the parts to come are certainly after the moment.
    is_past: bool,
    /// Whether one of the parts so far may have the moment.
    may_be_past: bool,
    /// If the part is passed over that has the moment: a time that is no later than that of the first transaction after it, in microseconds
    /// since 1970.
    later: Option<i64>,
}

/// The changed rows that matter.
enum WantedKeys {
    /// All of the table's.
    All,
    /// None.
    Nothing,
    /// Rows that have, in each column at these places, one of its values, before or after the change.
    OfColumns(Vec<(usize, Vec<KeyProbe>)>),
}

impl<'b> ArchiveLookup<'b> {
    pub(super) fn new(wish: &BaseWish, (moment, keys): (&'b PastMoment, &TouchedKeys<'_>)) -> Self {
        let rows = match wanted_values(wish) {
            Some(_) if *wish == BaseWish::All => WantedKeys::All,
            None => WantedKeys::Nothing,
            Some(_) if !keys.looks_for_rows() => WantedKeys::Nothing,
            Some(values) => {
                let of_key = |values: &ColumnValues| {
                    Some((keys.key_place(values)?, values.values.iter().map(probe).collect()))
                };
                let columns: Vec<_> = values.iter().filter_map(of_key).collect();
                if columns.is_empty() { WantedKeys::All } else { WantedKeys::OfColumns(columns) }
            }
        };
        ArchiveLookup { moment, rows, is_past: keys.is_past_moment(), may_be_past: false, later: None }
    }

    /// If the part was passed over that has the moment: a time that is no later than that of the first transaction after it.
    pub(super) fn later(&self) -> Option<u64> {
        self.later.and_then(|time| u64::try_from(time).ok())
    }

    /// The values of keys that rows must have to matter; none: all rows do.
    pub(super) fn wanted_key_values(&self) -> Vec<WantedKeyValues> {
        let WantedKeys::OfColumns(columns) = &self.rows else { return Vec::new() };
        let wanted = columns.iter().cloned().map(|(column, probes)| WantedKeyValues {
            column,
            may_be: Box::new(move |cell| probes.iter().any(|probe| probe.may_be(cell))),
        });
        wanted.collect()
    }

    /// The parts of a log that are read; `None`: all of it is.
    pub(super) fn choose(
        &mut self,
        logs: &dyn WholeLogs,
        index: usize,
        keys: &TouchedKeys<'_>,
    ) -> Result<Option<ChosenParts>, BaseTrouble> {
        if matches!(self.rows, WantedKeys::All) {
            return Ok(None);
        }
        self.is_past |= keys.is_past_moment();
        let mut parts = Vec::new();
        let mut own = BTreeSet::new();
        let is_divided = logs.each_part(index, &mut |run| {
            let place = self.place(run);
            let need = self.need((run, place), keys, &mut own);
            let commits =
                run.commits().filter(|_| place == PlaceOfPart::Divided && need != PartNeed::Certain);
            parts.push(PartChoice {
                start: run.start(),
                blocks: run.block_count(),
                gtids: run.gtids.clone(),
                need,
                divided: commits.map(|(first, _)| micros(first)),
            });
        })?;
        if !is_divided {
            return Ok(None);
        }
        let mut chosen = ChosenParts::default();
        let looked_for = parts.iter().filter(|part| part.need == PartNeed::MaybeRow);
        let mut found: BTreeSet<u64> = looked_for.map(|part| part.start).collect();
        if let (WantedKeys::OfColumns(columns), [(database, table)]) =
            (&self.rows, own.into_iter().collect::<Vec<_>>().as_slice())
        {
            for (column, probes) in columns {
                if found.is_empty() {
                    break;
                }
                let wanted =
                    KeyedRows { table: (database.as_str(), table.as_str()), column: *column, probes };
                let (left, blocks) = logs.parts_with(index, &found, &wanted)?;
                found = left;
                chosen.blocks_searched += blocks;
            }
        }
        for part in parts {
            let is_read = part.need == PartNeed::Certain
                || found.contains(&part.start)
                || part.divided.is_some() && !self.can_pass_moment(&chosen, logs, (index, part.start))?;
            if is_read {
                chosen.starts.insert(part.start);
                chosen.blocks_read += part.blocks;
            } else {
                chosen.passed_over.union(&part.gtids);
                chosen.blocks_skipped += part.blocks;
                if part.divided.is_some() {
                    self.later = part.divided;
                    chosen.begins_later = self.later().filter(|_| chosen.starts.is_empty());
                }
            }
        }
        Ok(Some(chosen))
    }

    /// Whether a part can be passed over that has the moment: for certain, so the server executed just the transactions before it, and
    /// whatever is read of the log is after it.
    fn can_pass_moment(
        &self,
        chosen: &ChosenParts,
        logs: &dyn WholeLogs,
        (index, start): (usize, u64),
    ) -> Result<bool, BaseTrouble> {
        // Where no rows are wanted it doesn't matter which of its transactions come after the moment.
        if matches!(self.rows, WantedKeys::Nothing) {
            return Ok(true);
        }
        if !chosen.starts.is_empty() {
            return Ok(false);
        }
        let PastMoment::Executed(set) = self.moment else { return Ok(true) };
        let order = logs.gtids_in_order(index, start)?;
        Ok(order.is_some_and(|order| {
            let mut later = order.iter().skip_while(|gtid| set.contains(gtid));
            !later.any(|gtid| set.contains(gtid))
        }))
    }

    /// Why a part is read; `own` gets the names under which it may have wanted rows.
    fn need(
        &self,
        (run, place): (&BlockRun<'_>, PlaceOfPart),
        keys: &TouchedKeys<'_>,
        own: &mut BTreeSet<(String, String)>,
    ) -> PartNeed {
        let is_around = match place {
            PlaceOfPart::Around => true,
            PlaceOfPart::Divided => run.commits().is_none(),
            PlaceOfPart::Before | PlaceOfPart::After => false,
        };
        let is_certain = is_around
            || run.may_have_statements()
            || run.may_have_loose()
            || run.may_end_xa()
            || run.may_have_rows(&|rows| may_carry_on(&rows, keys));
        if is_certain {
            return PartNeed::Certain;
        }
        if place == PlaceOfPart::Before || !run.may_have_rows(&|rows| self.may_be_wanted(&rows, keys)) {
            return PartNeed::Nothing;
        }
        let rows = run.rows().unwrap_or_default();
        let names = rows.iter().map(|rows| (&*rows.name.database, &*rows.name.table));
        let names = names.filter(|(database, table)| keys.has_table(database, table));
        own.extend(names.map(|(database, table)| {
            let [database, table] = [database, table].map(|name| String::from_utf8_lossy(name).into_owned());
            (database, table)
        }));
        PartNeed::MaybeRow
    }

    fn may_be_wanted(&self, rows: &TableRows<'_>, keys: &TouchedKeys<'_>) -> bool {
        let counts = rows.rows;
        if [counts.inserted, counts.updated, counts.deleted] == [0; 3]
            || !keys.has_table(&rows.name.database, &rows.name.table)
        {
            return false;
        }
        match &self.rows {
            WantedKeys::All => true,
            WantedKeys::Nothing => false,
            WantedKeys::OfColumns(columns) => {
                // Of other columns the archive has no keys.
                let own = rows.name.key.as_ref().map(|key| key.index);
                columns.iter().all(|(place, probes)| own != Some(*place) || rows.may_have(probes))
            }
        }
    }

    /// Where a part is against the moment. It is read unless that is certain.
    fn place(&mut self, run: &BlockRun<'_>) -> PlaceOfPart {
        match self.moment {
            PastMoment::InLog(_) if self.is_past => PlaceOfPart::After,
            PastMoment::InLog(TableMoment::After(gtid)) => {
                self.is_past = run.gtids.contains(gtid);
                if self.is_past { PlaceOfPart::Divided } else { PlaceOfPart::Before }
            }
            PastMoment::InLog(TableMoment::Before(end)) => {
                let commits = run.commits();
                // The first transaction that is later may be in a part before: then these are after it, whatever their times are.
                if let Some((_, last)) = commits
                    && micros(last.saturating_add(1)) <= *end
                    && !self.may_be_past
                {
                    return PlaceOfPart::Before;
                }
                self.may_be_past = true;
                let Some((first, _)) = commits else { return PlaceOfPart::Around };
                // Each transaction in it is later, and it has some: whoever reads it knows that the moment has passed.
                self.is_past = micros(first) >= *end && !run.gtids.is_empty();
                PlaceOfPart::Around
            }
            PastMoment::Executed(_) if run.may_lack_gtids() => PlaceOfPart::Around,
            PastMoment::Executed(set) if self.is_past => {
                if run.gtids.is_disjoint(set) {
                    PlaceOfPart::After
                } else {
                    PlaceOfPart::Around
                }
            }
            PastMoment::Executed(set) => {
                self.is_past = !run.gtids.is_subset(set);
                if self.is_past { PlaceOfPart::Divided } else { PlaceOfPart::Before }
            }
        }
    }
}

/// A part of a log against the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceOfPart {
    Before,
    /// The moment may be in it.
    Around,
    /// The moment, a transaction or a set of them, is in it, or where it begins.
    Divided,
    After,
}

/// Microseconds of seconds.
fn micros(seconds: u64) -> i64 {
    i64::try_from(seconds.saturating_mul(1_000_000)).unwrap_or(i64::MAX)
}

/// Whether foreign keys may carry changes of these rows on to the table.
fn may_carry_on(rows: &TableRows<'_>, keys: &TouchedKeys<'_>) -> bool {
    [rows.rows.updated, rows.rows.deleted] != [0; 2] && keys.has_parent(&rows.name.database, &rows.name.table)
}
