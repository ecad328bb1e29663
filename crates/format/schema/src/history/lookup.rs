//! Answers of a history: the table that had a name at a place of the logs, and where its columns are now.

use super::{
    Change, ColumnsNow, HistoryName, HistoryPlace, KeptColumn, NamePeriod, TableHistory, TableThen, TurnId,
    TurningPoint, VersionId,
};
use crate::alter::{AlterAction, ColumnFate};
use crate::tokens::is_same_name;

impl TableHistory {
    /// Whether a statement after this place may have changed the table of this name.
    pub fn touches(&self, since: HistoryPlace, database: &str, table: &str) -> bool {
        let name = (database.to_lowercase(), table.to_lowercase());
        let is_later = |turn: TurnId| self.turns.get(turn).is_some_and(|turn| turn.place > since);
        let mut periods = self.names.get(&name).into_iter().flatten();
        periods.any(|(turn, _)| turn.is_some_and(is_later))
            || self.sweeps.iter().any(|(turn, sweep)| is_later(*turn) && sweep.touches(&name))
    }

    /// How many statements before a place may have changed tables: as long as it is the same, so are all tables.
    pub fn statements_before(&self, place: HistoryPlace) -> usize {
        self.turns.partition_point(|turn| turn.place < place)
    }

    /// Whether both have the same statements.
    pub fn has_statements_of(&self, other: &TableHistory) -> bool {
        self.turns == other.turns
    }

    /// The table that stood under a name at a place of the logs, which has no statement of its own.
    pub fn at(&self, place: HistoryPlace, database: &str, table: &str) -> TableThen<'_> {
        let name = (database.to_lowercase(), table.to_lowercase());
        let is_spelled = |(own, name): &(String, String)| own == database && name == table;
        // By the server's settings a name that differs in case is this one or another.
        let differs = self.spellings.get(&name).is_some_and(|spelled| !spelled.iter().any(is_spelled));
        let Some((since, version)) = self.version_at(place, &name).filter(|_| !differs) else {
            let other = self.names.get(&name).into_iter().flatten().filter_map(|(turn, _)| *turn);
            let other = other.filter_map(|turn| self.turns.get(turn)).find(|turn| turn.place > place);
            if let Some(turn) = self.swept_after(place, &name).or(other) {
                return TableThen::UnknownSince(turn);
            }
            let now = self.now.table(database.as_bytes(), table.as_bytes());
            return now.map_or(TableThen::NotTold, TableThen::Known);
        };
        let unknown = |turn: Option<TurnId>| {
            let turn = turn.and_then(|turn| self.turns.get(turn));
            turn.map_or(TableThen::NotTold, TableThen::UnknownSince)
        };
        // It has rows, so it can't be gone.
        let Some(version) = version else {
            let first = || self.names.get(&name)?.iter().find_map(|(turn, _)| *turn);
            return unknown(since.or_else(first));
        };
        let Some(known) = self.versions.get(version) else { return TableThen::NotTold };
        match &known.table {
            _ if known.is_disputed => {
                let later = || self.names.get(&name)?.iter().rev().find_map(|(turn, _)| *turn);
                let turn = self.last_turn(version).or(known.dropped_by).or_else(later);
                let turn = turn.and_then(|turn| self.turns.get(turn));
                turn.map_or(TableThen::NotTold, TableThen::Disagrees)
            }
            Some(table) => TableThen::Known(table),
            None => unknown(self.why_unknown(version)),
        }
    }

    /// Finds, in the tables of now, the columns of the table that had a name at a place of the logs.
    pub fn columns_now(&self, place: HistoryPlace, database: &str, table: &str) -> ColumnsNow<'_> {
        let name = (database.to_lowercase(), table.to_lowercase());
        let TableThen::Known(then) = self.at(place, database, table) else { return ColumnsNow::Unknown };
        let mut names: Vec<_> = then.columns.iter().map(|column| Some((&*column.name, true))).collect();
        let gone = |turn: TurnId| self.turns.get(turn).map_or(ColumnsNow::Unknown, ColumnsNow::GoneSince);
        let mut now = then;
        if let Some((_, version)) = self.version_at(place, &name) {
            let Some(mut id) = version else { return ColumnsNow::Unknown };
            while let Some(version) = self.versions.get(id) {
                if let Some(turn) = version.dropped_by {
                    return gone(turn);
                }
                let Some(next) = version.next.and_then(|next| self.successions.get(next)) else { break };
                let Change::Altered(actions) = &next.change else { return gone(next.by) };
                for column in &mut names {
                    *column = column.and_then(|(name, was_same)| match AlterAction::fate(actions, name) {
                        ColumnFate::Dropped => None,
                        ColumnFate::Kept { name, is_same } => Some((name, was_same && is_same)),
                    });
                }
                id = next.to;
            }
            match self.names.get(&name).and_then(|versions| versions.last()) {
                Some((_, Some(last))) if *last == id => {}
                Some((Some(turn), _)) => return gone(*turn),
                _ => return ColumnsNow::Unknown,
            }
            let Some(last) = self.versions.get(id).and_then(|version| version.table.as_ref()) else {
                return ColumnsNow::Unknown;
            };
            now = last;
        }
        let mut columns = Vec::new();
        for (name, then) in names.into_iter().zip(&then.columns) {
            let Some((name, is_same)) = name else {
                columns.push(None);
                continue;
            };
            let Some(column) = now.columns.iter().find(|column| is_same_name(&column.name, name)) else {
                return ColumnsNow::Unknown;
            };
            let facts = column.facts.as_ref().zip(then.facts.as_ref());
            let takes_values = is_same || facts.is_some_and(|(now, then)| now.takes_values_of(then));
            columns.push(Some(KeptColumn { now: column, takes_values }));
        }
        ColumnsNow::Kept { now, columns }
    }

    pub(super) fn version_at(&self, place: HistoryPlace, name: &HistoryName) -> Option<NamePeriod> {
        period_at(self.names.get(name)?, |turn| self.turns.get(turn).is_some_and(|turn| turn.place < place))
    }

    /// A statement between a place and the tables of now that may have changed a table which none of them names.
    pub(super) fn swept_after(&self, place: HistoryPlace, name: &HistoryName) -> Option<&TurningPoint> {
        let turns = self.sweeps.iter().filter(|(_, sweep)| sweep.touches(name));
        let now_at = self.now_at.unwrap_or(HistoryPlace::END);
        let first = place.min(now_at);
        let last = place.max(now_at);
        let mut turns = turns.filter_map(|(turn, _)| self.turns.get(*turn));
        turns.find(|turn| turn.place > first && turn.place < last)
    }

    /// The first statement after which a version, or one that came of it, isn't followed.
    pub(super) fn why_unknown(&self, mut id: VersionId) -> Option<TurnId> {
        loop {
            let version = self.versions.get(id)?;
            let Some(next) = version.next.and_then(|next| self.successions.get(next)) else {
                return version.dropped_by.or(version.made_by);
            };
            if self.versions.get(next.to)?.table.is_some() || matches!(next.change, Change::Unclear) {
                return Some(next.by);
            }
            id = next.to;
        }
    }

    /// The last statement that changed a table.
    pub(super) fn last_turn(&self, mut id: VersionId) -> Option<TurnId> {
        let mut last = self.versions.get(id)?.made_by;
        while let Some(next) = self.versions.get(id)?.next.and_then(|next| self.successions.get(next)) {
            last = Some(next.by);
            id = next.to;
        }
        last
    }
}

/// The last of a name's periods that began before a place. They are in the order of the logs.
pub(super) fn period_at(
    periods: &[NamePeriod],
    mut is_before: impl FnMut(TurnId) -> bool,
) -> Option<NamePeriod> {
    let count = periods.partition_point(|(turn, _)| turn.is_none_or(&mut is_before));
    periods.get(count.checked_sub(1)?).copied()
}
