//! A table's way from a place of the logs to now: the names that it had, and where each of its columns stood in each of its versions.
//!
//! A place is one between statements. Only what the statements tell exactly is followed: a table whose rows were taken, or a column that may have got other values by a
//! statement, is named with that statement.

use super::{Change, HistoryName, HistoryPlace, TableHistory, TableThen, TurnId, TurningPoint, VersionId};
use crate::alter::{AlterAction, ColumnFate};
use crate::schema_file::SchemaFile;
use crate::table::{DefinedColumn, DefinedTable};
use crate::tokens::is_same_name;

/// Why there is no way from the table that had a name at a place of the logs to one of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTableWay<'h> {
    /// There was none: this statement made the one that had the name later.
    MadeBy(&'h TurningPoint),
    /// This statement dropped it, or gave it other rows.
    LostBy(&'h TurningPoint),
    /// This statement changed the table in a way that doesn't tell what it was before.
    UnknownBefore(&'h TurningPoint),
    /// Neither the logs nor the tables of now have it.
    NotTold,
}

/// The way of one table.
#[derive(Debug, Clone)]
pub struct TableWay<'h> {
    /// The table at the place at which the way begins.
    pub then: &'h DefinedTable,
    /// The table as it is now.
    pub now: &'h DefinedTable,
    /// The columns that the table had at that place, in their order.
    pub columns: Vec<WayColumn<'h>>,
    /// Whether a statement on its way may have changed its keys, defaults or options.
    pub is_altered: bool,
    history: &'h TableHistory,
    /// Empty: no statement names it.
    versions: Vec<VersionId>,
    name: HistoryName,
}

/// A column on a table's way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayColumn<'h> {
    /// The column as it was.
    pub then: &'h DefinedColumn,
    /// The column's place in each version of the table; `None` from the statement on that dropped it.
    places: Vec<Option<usize>>,
    /// The first statement that dropped it or may have given it other values or another type.
    pub changed_by: Option<&'h TurningPoint>,
}

impl WayColumn<'_> {
    /// The column's place in the table as it is now.
    pub fn place_now(&self) -> Option<usize> {
        self.place_in(self.places.len().checked_sub(1)?)
    }

    /// The column's place in a version of the table.
    pub fn place_in(&self, version: usize) -> Option<usize> {
        self.places.get(version).copied().flatten()
    }
}

impl TableWay<'_> {
    /// How many versions of the table there are on its way.
    pub fn version_count(&self) -> usize {
        self.versions.len().max(1)
    }

    /// Which version of the table stood under a name at a place; `None`: another table, or none.
    pub fn version_at(&self, place: HistoryPlace, database: &str, table: &str) -> Option<usize> {
        let name = (database.to_lowercase(), table.to_lowercase());
        if self.versions.is_empty() {
            return (name == self.name).then_some(0);
        }
        let (_, id) = self.history.version_at(place, &name)?;
        self.versions.iter().position(|own| Some(*own) == id)
    }

    /// Whether another table had a name at a place that is gone since: this one may have taken over what referred to that one by its name.
    pub fn may_replace(&self, place: HistoryPlace, database: &str, table: &str) -> bool {
        matches!(self.history.names_since(place, database, table), Err(NoTableWay::LostBy(_)))
    }

    /// The columns that are a key in all versions of the table, by their places then, if these are a key of the table of now.
    pub fn key_of(&self, now: &[usize]) -> Option<Vec<usize>> {
        let place_then = |place: &usize| {
            let column = self.columns.iter().position(|column| column.place_now() == Some(*place))?;
            self.columns.get(column)?.changed_by.is_none().then_some(column)
        };
        let key = now.iter().map(place_then).collect::<Option<Vec<_>>>()?;
        let is_key = |(version, id): (usize, &VersionId)| {
            let places: Option<Vec<usize>> =
                key.iter().map(|column| self.columns.get(*column)?.place_in(version)).collect();
            let table = self.history.versions.get(*id).and_then(|version| version.table.as_ref());
            places.zip(table).is_some_and(|(places, table)| {
                table
                    .keys
                    .iter()
                    .any(|own| own.len() == places.len() && places.iter().all(|place| own.contains(place)))
            })
        };
        self.versions.iter().enumerate().all(is_key).then_some(key)
    }
}

/// Names of a table, by database and name, and whether statements changed it.
type NamesOfNow = (Vec<(String, String)>, bool);

impl TableHistory {
    /// The databases and tables by whose names a table went from a place on that had this name then, as statements spell them. The last
    /// one is that of now.
    ///
    /// # Errors
    ///
    /// The table isn't there now, or statements can't be followed.
    pub fn names_since(
        &self,
        place: HistoryPlace,
        database: &str,
        table: &str,
    ) -> Result<Vec<(String, String)>, NoTableWay<'_>> {
        let name = (database.to_lowercase(), table.to_lowercase());
        let asked = (database.to_owned(), table.to_owned());
        let Some(versions) = self.versions_since(place, &name)? else { return Ok(vec![asked]) };
        let last = versions.last().copied();
        let mut names = vec![asked.clone()];
        let mut name_now = None;
        for (other, periods) in &self.names {
            if !periods.iter().any(|(_, id)| id.is_some_and(|id| versions.contains(&id))) {
                continue;
            }
            let spelled = self.spellings.get(other);
            let spelled = spelled.and_then(|spelled| spelled.iter().next()).unwrap_or(other).clone();
            let is_asked = *other == name;
            if periods.last().is_some_and(|(_, id)| id.is_some() && *id == last) {
                name_now = Some(if is_asked { asked.clone() } else { spelled.clone() });
            }
            if !is_asked {
                names.push(spelled);
            }
        }
        let Some(now) = name_now else { return Err(self.unknown_of(versions.last().copied(), &name)) };
        names.retain(|other| *other != now);
        names.sort();
        names.push(now);
        Ok(names)
    }

    /// The names since a place of the table that has this name now, as statements spell them, that of now the last; and whether
    /// statements changed it since then, or made it.
    ///
    /// # Errors
    ///
    /// What it was isn't known since this statement.
    pub fn names_of_now(
        &self,
        place: HistoryPlace,
        database: &str,
        table: &str,
    ) -> Result<NamesOfNow, &TurningPoint> {
        let name = (database.to_lowercase(), table.to_lowercase());
        let now = (database.to_owned(), table.to_owned());
        let Some(periods) = self.names.get(&name) else {
            return self.swept_after(place, &name).map_or(Ok((vec![now], false)), Err);
        };
        let mut versions = Vec::from_iter(periods.last().and_then(|(_, version)| *version));
        while let Some(id) = versions.last().copied() {
            let made_by = self.versions.get(id).and_then(|version| self.turns.get(version.made_by?));
            let step = self.successions.iter().find(|step| step.to == id);
            let (Some(turn), Some(step)) = (made_by.filter(|turn| turn.place > place), step) else { break };
            match step.change {
                Change::Altered(_) | Change::OtherRows => versions.push(step.from),
                // It was made like another one.
                Change::Like => break,
                Change::Unclear => return Err(turn),
            }
        }
        let first = versions.last().and_then(|id| self.versions.get(*id)?.made_by);
        let is_younger = first.and_then(|turn| self.turns.get(turn)).is_some_and(|turn| turn.place > place);
        let mut names = Vec::new();
        for (other, periods) in self.names.iter().filter(|(other, _)| **other != name) {
            if periods.iter().any(|(_, id)| id.is_some_and(|id| versions.contains(&id))) {
                let spelled = self.spellings.get(other).into_iter().flatten();
                names.extend(spelled.cloned());
            }
        }
        names.sort();
        names.push(now);
        Ok((names, versions.len() > 1 || is_younger))
    }

    /// The tables of a database at a place, as far as statements name them: those that were there, and those that weren't.
    ///
    /// # Errors
    ///
    /// A later statement may have taken tables away without naming each.
    pub fn tables_at(
        &self,
        place: HistoryPlace,
        database: &str,
    ) -> Result<(Vec<String>, Vec<String>), NoTableWay<'_>> {
        let database = database.to_lowercase();
        let is_later = |turn: TurnId| self.turns.get(turn).filter(|turn| turn.place > place);
        let taking = self.sweeps.iter().filter(|(_, sweep)| sweep.may_take_tables_of(&database));
        if let Some(turn) = taking.filter_map(|(turn, _)| is_later(*turn)).next() {
            return Err(NoTableWay::UnknownBefore(turn));
        }
        let mut there = Vec::new();
        let mut gone = Vec::new();
        for name in self.names.keys().filter(|(own, _)| *own == database) {
            let spelled = self.spellings.get(name).and_then(|spelled| spelled.iter().next()).unwrap_or(name);
            match self.version_at(place, name) {
                Some((_, None)) => gone.push(spelled.1.clone()),
                Some((_, Some(_))) | None => there.push(spelled.1.clone()),
            }
        }
        Ok((there, gone))
    }

    /// The tables after all statements, as far as these tell them.
    pub fn told_at_end(&self) -> SchemaFile {
        let mut told = SchemaFile::default();
        for name in self.names.keys() {
            let (database, table) =
                self.spellings.get(name).and_then(|spelled| spelled.iter().next()).unwrap_or(name);
            if let TableThen::Known(known) = self.at(HistoryPlace::END, database, table) {
                told.put(Some(database.clone()), DefinedTable { name: table.clone(), ..known.clone() });
            }
        }
        told
    }

    /// The way of the table that had this name at a place, from there to now.
    ///
    /// # Errors
    ///
    /// The table isn't there now, or statements can't be followed.
    pub fn since(
        &self,
        place: HistoryPlace,
        database: &str,
        table: &str,
    ) -> Result<TableWay<'_>, NoTableWay<'_>> {
        let name = (database.to_lowercase(), table.to_lowercase());
        let versions = self.versions_since(place, &name)?;
        let then = match self.at(place, database, table) {
            TableThen::Known(then) => then,
            TableThen::UnknownSince(turn) | TableThen::Disagrees(turn) => {
                return Err(NoTableWay::UnknownBefore(turn));
            }
            TableThen::NotTold => return Err(NoTableWay::NotTold),
        };
        let mut way = TableWay {
            then,
            now: then,
            columns: Vec::new(),
            is_altered: false,
            history: self,
            versions: versions.unwrap_or_default(),
            name: name.clone(),
        };
        let column = |(place, then)| WayColumn { then, places: vec![Some(place)], changed_by: None };
        way.columns = then.columns.iter().enumerate().map(column).collect();
        for pair in way.versions.clone().windows(2) {
            let [from, to] = pair else { continue };
            let step = self.versions.get(*from).and_then(|from| self.successions.get(from.next?));
            let tables =
                [from, to].map(|id| self.versions.get(*id).and_then(|version| version.table.as_ref()));
            let (Some(step), [Some(before), Some(after)]) = (step, tables) else {
                return Err(self.unknown_of(Some(*to), &name));
            };
            let (Change::Altered(actions), Some(turn)) = (&step.change, self.turns.get(step.by)) else {
                return Err(self.unknown_of(Some(*to), &name));
            };
            way.is_altered |= actions.iter().any(|action| !matches!(action, AlterAction::RenameTable(..)));
            way.now = after;
            for column in &mut way.columns {
                column.go(actions, (before, after), turn);
            }
        }
        if let Some(first) = way.columns.iter().find(|column| !column.can_be_null_as_now(way.now, then)) {
            let by = first.changed_by.or_else(|| self.first_turn(&way.versions));
            return Err(by.map_or(NoTableWay::NotTold, NoTableWay::UnknownBefore));
        }
        Ok(way)
    }

    /// The versions of the table that had a name at a place, from then to now; `None`: no statement names it.
    fn versions_since(
        &self,
        place: HistoryPlace,
        name: &HistoryName,
    ) -> Result<Option<Vec<VersionId>>, NoTableWay<'_>> {
        let turn = |turn: TurnId| self.turns.get(turn);
        let Some((_, version)) = self.version_at(place, name) else {
            return match self.swept_after(place, name) {
                Some(turn) => Err(NoTableWay::UnknownBefore(turn)),
                None => Ok(None),
            };
        };
        let Some(mut id) = version else {
            let periods = self.names.get(name).into_iter().flatten();
            let made = periods
                .filter(|(_, version)| version.is_some())
                .filter_map(|(by, _)| turn((*by)?))
                .into_iter()
                .find(|turn| turn.place > place);
            return Err(made.map_or(NoTableWay::NotTold, NoTableWay::MadeBy));
        };
        let mut versions = Vec::new();
        let lost = |by: TurnId| turn(by).map_or(NoTableWay::NotTold, NoTableWay::LostBy);
        let unclear = |by: TurnId| turn(by).map_or(NoTableWay::NotTold, NoTableWay::UnknownBefore);
        while let Some(version) = self.versions.get(id) {
            versions.push(id);
            if version.is_disputed {
                return Err(self.unknown_of(Some(id), name));
            }
            if let Some(by) = version.dropped_by {
                return Err(lost(by));
            }
            let Some(next) = version.next.and_then(|next| self.successions.get(next)) else { break };
            match &next.change {
                Change::Altered(actions) if actions.contains(&AlterAction::MayLoseRows) => {
                    return Err(lost(next.by));
                }
                Change::Altered(_) => id = next.to,
                Change::OtherRows => return Err(lost(next.by)),
                Change::Like | Change::Unclear => return Err(unclear(next.by)),
            }
        }
        // Perhaps it made the table: nothing before it says that there was one.
        let first = versions.first().and_then(|id| self.versions.get(*id));
        let is_made = first.is_some_and(|first| first.made_by.is_some());
        let perhaps = self.conditional.iter().find(|(by, made)| {
            let place_then = turn(*by).map(|turn| turn.place).filter(|then| *then > place);
            let version = place_then.and_then(|place| self.version_at(place, made)).and_then(|(_, id)| id);
            version.is_some_and(|id| versions.contains(&id))
        });
        match perhaps.filter(|_| !is_made) {
            Some((by, _)) => Err(unclear(*by)),
            None => Ok(Some(versions)),
        }
    }

    /// Whether both have the same statements about tables of these names.
    pub fn has_statements_on(&self, names: &[(String, String)], other: &TableHistory) -> bool {
        names.iter().all(|(database, table)| {
            let name = (database.to_lowercase(), table.to_lowercase());
            self.turns_of(&name) == other.turns_of(&name)
        })
    }

    /// The statements that may concern a table of this name.
    fn turns_of(&self, name: &HistoryName) -> Vec<&TurningPoint> {
        let periods = self.names.get(name).into_iter().flatten().filter_map(|(turn, _)| *turn);
        let conditional = self.conditional.iter().filter(|(_, made)| made == name).map(|(turn, _)| *turn);
        let sweeps = self.sweeps.iter().filter(|(_, sweep)| sweep.touches(name)).map(|(turn, _)| *turn);
        let mut turns: Vec<TurnId> = periods.chain(conditional).chain(sweeps).collect();
        turns.sort_unstable();
        turns.dedup();
        turns.into_iter().filter_map(|turn| self.turns.get(turn)).collect()
    }

    fn first_turn(&self, versions: &[VersionId]) -> Option<&TurningPoint> {
        let next = versions.iter().find_map(|id| self.versions.get(*id)?.next)?;
        self.turns.get(self.successions.get(next)?.by)
    }

    /// The answer that a table isn't known, by the last statement about it.
    fn unknown_of(&self, version: Option<VersionId>, name: &HistoryName) -> NoTableWay<'_> {
        let last = || self.names.get(name)?.iter().rev().find_map(|(turn, _)| *turn);
        let turn = version.and_then(|id| self.last_turn(id)).or_else(last);
        let turn = turn.and_then(|turn| self.turns.get(turn));
        turn.map_or(NoTableWay::NotTold, NoTableWay::UnknownBefore)
    }
}

impl<'h> WayColumn<'h> {
    /// Goes on over a statement, from one version of the table to the next.
    fn go(
        &mut self,
        actions: &[AlterAction],
        (before, after): (&DefinedTable, &DefinedTable),
        by: &'h TurningPoint,
    ) {
        let place = self.places.last().copied().flatten();
        let Some(column) = place.and_then(|place| before.columns.get(place)) else {
            self.places.push(None);
            return;
        };
        let (next, is_same) = match AlterAction::fate(actions, &column.name) {
            ColumnFate::Dropped => (None, false),
            ColumnFate::Kept { name, is_same } => {
                (after.columns.iter().position(|column| is_same_name(&column.name, name)), is_same)
            }
        };
        self.places.push(next);
        let facts = column.facts.as_ref().zip(next.and_then(|next| after.columns.get(next)?.facts.as_ref()));
        let has_charset = actions.contains(&AlterAction::ChangesCharset);
        let keeps_values = match facts {
            // A text whose definition names no character set has that of the table.
            Some((then, _)) if has_charset && then.is_text() => false,
            Some((then, now)) if !is_same => {
                // NULL may have become another value.
                then.has_values_of(now) && (now.is_nullable || !column_is_nullable(before, column))
            }
            Some(_) => true,
            None => is_same && !has_charset,
        };
        if !keeps_values {
            self.changed_by.get_or_insert(by);
        }
    }

    /// Whether the column of now takes NULL just as that of then did, where both are known.
    fn can_be_null_as_now(&self, now: &DefinedTable, then: &DefinedTable) -> bool {
        let column = self.place_now().and_then(|place| now.columns.get(place));
        self.changed_by.is_some()
            || column
                .is_none_or(|column| column_is_nullable(now, column) == column_is_nullable(then, self.then))
    }
}

/// Whether a column can be NULL, which a primary key forbids.
fn column_is_nullable(table: &DefinedTable, column: &DefinedColumn) -> bool {
    let is_primary = table
        .defined
        .iter()
        .any(|key| key.is_primary && key.columns.iter().any(|name| is_same_name(name, &column.name)));
    !is_primary && column.facts.as_ref().is_none_or(|facts| facts.is_nullable)
}
