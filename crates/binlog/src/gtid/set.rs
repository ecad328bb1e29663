//! A set of GTIDs and its algebra.

use std::collections::BTreeMap;

use crate::gtid::{Gtid, GtidInterval, Tsid, interval};

/// A set of GTIDs: for each [`Tsid`] a sorted list of intervals.
///
/// `{}` prints it on one line, `{:#}` with a line for each uuid, as the server prints
/// `@@gtid_executed`. Parsing takes both; see `text.rs`. The binary form is in `encoding.rs`.
#[derive(Clone, PartialEq, Eq, Default, Hash)]
pub struct GtidSet {
    /// No list is empty.
    pub(super) lists: BTreeMap<Tsid, Vec<GtidInterval>>,
}

impl GtidSet {
    /// The empty set.
    pub const fn new() -> Self {
        GtidSet { lists: BTreeMap::new() }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// How many GTIDs there are. 128 bits, because each [`Tsid`] may have 2^63 of them.
    pub fn count(&self) -> u128 {
        self.lists.values().flatten().map(|interval| u128::from(interval.count())).sum()
    }

    /// Whether any GTID of the set has a tag.
    pub fn has_tags(&self) -> bool {
        self.lists.keys().any(|tsid| tsid.tag.is_some())
    }

    /// Whether the set holds a GTID.
    pub fn contains(&self, gtid: &Gtid) -> bool {
        self.intervals(&gtid.tsid()).is_some_and(|list| interval::contains(list, gtid.gno()))
    }

    /// The intervals of one [`Tsid`], sorted.
    pub fn intervals(&self, tsid: &Tsid) -> Option<&[GtidInterval]> {
        self.lists.get(tsid).map(Vec::as_slice)
    }

    /// Every [`Tsid`] with its intervals, in the server's order.
    pub fn iter(&self) -> impl Iterator<Item = (&Tsid, &[GtidInterval])> {
        self.lists.iter().map(|(tsid, list)| (tsid, list.as_slice()))
    }

    /// Adds a GTID. The next number of a [`Tsid`] only moves the end of its last interval.
    pub fn add(&mut self, gtid: Gtid) {
        // gno < GNO_END, so its interval is one that `GtidInterval::new` takes.
        if let Ok(interval) = GtidInterval::new(gtid.gno(), gtid.gno() + 1) {
            self.add_interval(gtid.tsid(), interval);
        }
    }

    /// Adds an interval of one [`Tsid`].
    pub fn add_interval(&mut self, tsid: Tsid, interval: GtidInterval) {
        interval::add(self.lists.entry(tsid).or_default(), interval);
    }

    /// Adds all GTIDs of another set.
    pub fn union(&mut self, other: &GtidSet) {
        for (tsid, list) in &other.lists {
            let mine = self.lists.entry(*tsid).or_default();
            for interval in list {
                interval::add(mine, *interval);
            }
        }
    }

    /// Removes all GTIDs of another set.
    pub fn subtract(&mut self, other: &GtidSet) {
        self.lists.retain(|tsid, list| {
            if let Some(removed) = other.lists.get(tsid) {
                *list = interval::subtract(list, removed);
            }
            !list.is_empty()
        });
    }

    /// Keeps only the GTIDs that another set holds too.
    pub fn intersect(&mut self, other: &GtidSet) {
        self.lists.retain(|tsid, list| {
            *list = other.lists.get(tsid).map_or_else(Vec::new, |kept| interval::intersect(list, kept));
            !list.is_empty()
        });
    }

    /// Whether another set holds all GTIDs of this one.
    pub fn is_subset(&self, of: &GtidSet) -> bool {
        self.lists
            .iter()
            .all(|(tsid, list)| of.lists.get(tsid).is_some_and(|other| interval::is_subset(list, other)))
    }

    /// Whether the two sets have no GTID in common.
    pub fn is_disjoint(&self, other: &GtidSet) -> bool {
        self.lists.iter().all(|(tsid, list)| {
            other.lists.get(tsid).is_none_or(|theirs| interval::intersect(list, theirs).is_empty())
        })
    }
}

impl FromIterator<Gtid> for GtidSet {
    fn from_iter<I: IntoIterator<Item = Gtid>>(gtids: I) -> Self {
        let mut set = GtidSet::new();
        set.extend(gtids);
        set
    }
}

impl Extend<Gtid> for GtidSet {
    fn extend<I: IntoIterator<Item = Gtid>>(&mut self, gtids: I) {
        gtids.into_iter().for_each(|gtid| self.add(gtid));
    }
}
