//! What can be known of each version: forward from CREATE TABLE and backward from the tables of now, until no more follows.

use super::{Change, HistoryPlace, Succession, TableHistory, Version, VersionId};
use crate::schema_file::SchemaFile;
use crate::table::DefinedTable;

impl TableHistory {
    /// Finds what can be known, with the tables as they are after all statements.
    pub fn settle(&mut self, now: SchemaFile) {
        self.settle_at(now, None);
    }

    /// Finds what can be known, with the tables as they are at a place of the logs; `None`: at the end.
    pub fn settle_at(&mut self, now: SchemaFile, now_at: Option<HistoryPlace>) {
        (self.now, self.now_at) = (now, now_at);
        let now_at = now_at.unwrap_or(HistoryPlace::END);
        let last: Vec<(VersionId, DefinedTable)> = self
            .names
            .keys()
            .filter_map(|name| {
                let mut spelled = self.spellings.get(name)?.iter().chain([name]);
                let table = spelled
                    .find_map(|(database, table)| self.now.table(database.as_bytes(), table.as_bytes()))?;
                let (_, version) = self.version_at(now_at, name)?;
                Some((version?, table.clone()))
            })
            .collect();
        for (id, table) in last {
            self.learn(id, Some(table.clone()));
            // The server's own words rather than those of the statement.
            if let Some(version) = self.versions.get_mut(id).filter(|version| !version.is_disputed) {
                version.table = Some(table);
            }
        }
        // Forward and backward, as long as it tells more.
        while self.go_through() {}
        // A table that is gone by the statements can't be one of now: the schema is older than they are.
        let gone = self.names.keys().filter(|name @ (database, table)| {
            let is_gone = self.version_at(now_at, name).is_some_and(|(_, version)| version.is_none());
            is_gone && self.now.table(database.as_bytes(), table.as_bytes()).is_some()
        });
        for name in gone.cloned().collect::<Vec<_>>() {
            self.dispute(&name);
        }
        // By the server's settings these are one table or two.
        let both_cases = self.spellings.iter().filter(|(_, spelled)| spelled.len() > 1);
        for name in both_cases.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.dispute(&name);
        }
        self.spread(|version| &mut version.is_disputed);
        self.spread(|version| &mut version.has_disputed_defaults);
        for version in self.versions.iter_mut().filter(|version| version.has_disputed_defaults) {
            version.table.iter_mut().for_each(|table| table.forget_defaults(|_| true));
        }
    }

    /// Derives each version from its neighbours; `true`: something new is known.
    fn go_through(&mut self) -> bool {
        let mut is_new = false;
        for number in 0..self.successions.len() {
            let Some(Succession { from, to, change, .. }) = self.successions.get(number) else { continue };
            let to = *to;
            let table = self.versions.get(*from).and_then(|from| from.table.as_ref());
            let after = table.and_then(|table| match change {
                Change::Altered(actions) => table.altered(actions),
                Change::Like => Some(table.like(&table.name)),
                Change::OtherRows => Some(table.clone()),
                Change::Unclear => None,
            });
            let should_follow = matches!(change, Change::Altered(_));
            if should_follow && table.is_some() && after.is_none() {
                // It can't have been done to this table.
                self.dispute_version(to);
            }
            is_new |= self.learn(to, after);
        }
        for number in (0..self.successions.len()).rev() {
            let Some(Succession { from, to, change, .. }) = self.successions.get(number) else { continue };
            let from = *from;
            let table = self.versions.get(*to).and_then(|to| to.table.as_ref());
            let before = table.and_then(|table| match change {
                Change::Altered(actions) => table.before(actions),
                Change::Like => Some(table.like(&table.name)),
                Change::OtherRows => Some(table.clone()),
                Change::Unclear => None,
            });
            is_new |= self.learn(from, before);
        }
        is_new
    }

    /// A version is this table; `true`: that is new.
    fn learn(&mut self, id: VersionId, table: Option<DefinedTable>) -> bool {
        let (Some(version), Some(table)) = (self.versions.get_mut(id), table) else { return false };
        match &mut version.table {
            None => {
                version.table = Some(table);
                true
            }
            Some(known) => {
                version.is_disputed |= !known.has_columns_of(&table);
                version.has_disputed_defaults |= !known.learn_defaults(&table);
                false
            }
        }
    }

    /// A table that is disputed anywhere is so in all its versions: which side is wrong isn't known.
    fn spread(&mut self, flag: fn(&mut Version) -> &mut bool) {
        let mut neighbours: Vec<Vec<VersionId>> = vec![Vec::new(); self.versions.len()];
        let followed = self.successions.iter().filter(|one| !matches!(one.change, Change::Unclear));
        for Succession { from, to, .. } in followed {
            for (one, other) in [(from, to), (to, from)] {
                if let Some(neighbours) = neighbours.get_mut(*one) {
                    neighbours.push(*other);
                }
            }
        }
        let disputed =
            self.versions.iter_mut().enumerate().filter_map(|(id, version)| flag(version).then_some(id));
        let mut to_visit: Vec<VersionId> = disputed.collect();
        while let Some(id) = to_visit.pop() {
            for neighbour in neighbours.get_mut(id).map(std::mem::take).unwrap_or_default() {
                let is_disputed =
                    self.versions.get_mut(neighbour).map(flag).filter(|is_disputed| !**is_disputed);
                if let Some(is_disputed) = is_disputed {
                    *is_disputed = true;
                    to_visit.push(neighbour);
                }
            }
        }
    }
}
