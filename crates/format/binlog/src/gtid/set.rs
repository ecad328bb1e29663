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
            interval::union(self.lists.entry(*tsid).or_default(), list);
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

/// Collects a set whose intervals arrive in any order, with any repetitions, and sorts them once at the end.
/// A peer chooses the order, so inserting each in its place could take quadratic time.
#[derive(Default)]
pub(super) struct GtidSetCollector {
    lists: BTreeMap<Tsid, Vec<GtidInterval>>,
}

impl GtidSetCollector {
    /// Adds an interval of one [`Tsid`].
    pub(super) fn add(&mut self, tsid: Tsid, interval: GtidInterval) {
        interval::push(self.lists.entry(tsid).or_default(), interval);
    }

    /// The set of everything added.
    pub(super) fn finish(self) -> GtidSet {
        let mut lists = self.lists;
        lists.values_mut().for_each(interval::normalise);
        GtidSet { lists }
    }
}

impl FromIterator<Gtid> for GtidSet {
    fn from_iter<I: IntoIterator<Item = Gtid>>(gtids: I) -> Self {
        let mut set = GtidSetCollector::default();
        for gtid in gtids {
            // gno < GNO_END, so its interval is one that `GtidInterval::new` takes.
            if let Ok(interval) = GtidInterval::new(gtid.gno(), gtid.gno() + 1) {
                set.add(gtid.tsid(), interval);
            }
        }
        set.finish()
    }
}

impl Extend<Gtid> for GtidSet {
    fn extend<I: IntoIterator<Item = Gtid>>(&mut self, gtids: I) {
        gtids.into_iter().for_each(|gtid| self.add(gtid));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::gtid::GtidSetFormat;

    const A: &str = "1410447f-e54d-11f1-848d-02fc00000001";

    fn gtid(text: &str) -> Gtid {
        text.parse().unwrap()
    }

    #[test]
    fn the_next_number_extends_the_last_interval() {
        let mut set: GtidSet = (1..=1000).map(|gno| gtid(&format!("{A}:{gno}"))).collect();
        assert_eq!(set.to_string(), format!("{A}:1-1000"));
        set.add(gtid(&format!("{A}:tag:1")));
        set.add(gtid(&format!("{A}:1002")));
        assert_eq!(set.to_string(), format!("{A}:1-1000:1002:tag:1"));
        assert_eq!(set.count(), 1002);
        set.add(gtid(&format!("{A}:1001")));
        assert_eq!(set.to_string(), format!("{A}:1-1002:tag:1"));
    }

    #[test]
    fn counts_do_not_overflow() {
        let mut set = GtidSet::new();
        for last in 1..=4 {
            let uuid = format!("{A}:1-9223372036854775806").replace("01:", &format!("0{last}:"));
            set.union(&uuid.parse().unwrap());
        }
        assert_eq!(set.count(), 4 * (i64::MAX as u128 - 1));
    }

    #[test]
    fn the_empty_set_is_a_subset_of_all() {
        let some: GtidSet = format!("{A}:1").parse().unwrap();
        assert!(GtidSet::new().is_subset(&GtidSet::new()));
        assert!(GtidSet::new().is_subset(&some) && !some.is_subset(&GtidSet::new()));
        assert!(GtidSet::new().is_disjoint(&some) && some.is_disjoint(&GtidSet::new()));
    }

    /// Marsaglia's xorshift64: enough to pick numbers, and the same everywhere.
    struct Random(u64);

    impl Random {
        /// Seeded by `SEED`, or by this default. A failing test prints it.
        fn new() -> Self {
            let seed =
                std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x6274_6964).max(1);
            println!("SEED={seed}");
            Random(seed)
        }

        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % end
        }
    }

    /// The naive set that the real one is compared with.
    type Model = BTreeSet<Gtid>;

    /// A set and its model: few tsids and small numbers, so that intervals touch and overlap.
    fn random_set(random: &mut Random) -> (GtidSet, Model) {
        let mut set = GtidSet::new();
        let mut model = Model::new();
        for _ in 0..random.below(12) {
            let tail = ["", ":a", ":b"][random.below(3) as usize];
            let tsid: Tsid =
                format!("{}{tail}", A.replace("01", ["01", "02"][random.below(2) as usize])).parse().unwrap();
            let start = 1 + random.below(40);
            let end = start + 1 + random.below(10);
            set.add_interval(tsid, GtidInterval::new(start, end).unwrap());
            model.extend((start..end).map(|gno| Gtid::new(tsid, gno).unwrap()));
        }
        (set, model)
    }

    /// The set holds what the model holds, in its normal form.
    fn check(set: &GtidSet, model: &Model) {
        let mut listed = Model::new();
        for (tsid, intervals) in set.iter() {
            assert!(!intervals.is_empty());
            assert!(intervals.windows(2).all(|pair| pair[0].end() < pair[1].start()), "{set}");
            for interval in intervals {
                listed.extend((interval.start()..interval.end()).map(|gno| Gtid::new(*tsid, gno).unwrap()));
            }
        }
        assert_eq!(&listed, model);
        assert_eq!(set.count(), model.len() as u128);
        assert_eq!(set.is_empty(), model.is_empty());
        assert_eq!(&model.iter().copied().collect::<GtidSet>(), set);
    }

    #[test]
    fn the_algebra_agrees_with_a_naive_set() {
        let mut random = Random::new();
        for _ in 0..2_000 {
            let ((a, model_a), (b, model_b)) = (random_set(&mut random), random_set(&mut random));
            check(&a, &model_a);
            assert_eq!(a.is_subset(&b), model_a.is_subset(&model_b), "{a} in {b}");
            assert_eq!(a.is_disjoint(&b), model_a.is_disjoint(&model_b), "{a} and {b}");
            for gtid in &model_b {
                assert_eq!(a.contains(gtid), model_a.contains(gtid), "{gtid} in {a}");
            }

            let mut union = a.clone();
            union.union(&b);
            check(&union, &(&model_a | &model_b));
            let mut difference = a.clone();
            difference.subtract(&b);
            check(&difference, &(&model_a - &model_b));
            let mut intersection = a.clone();
            intersection.intersect(&b);
            check(&intersection, &(&model_a & &model_b));

            assert!(a.is_subset(&union) && difference.is_disjoint(&b));
            intersection.union(&difference);
            assert_eq!(intersection, a);

            assert_eq!(union.to_string().parse::<GtidSet>().unwrap(), union);
            assert_eq!(format!("{union:#}").parse::<GtidSet>().unwrap(), union);
            let mut bytes = Vec::new();
            union.encode(GtidSetFormat::Tagged, &mut bytes);
            assert_eq!(GtidSet::decode(&bytes).unwrap().0, union);
        }
    }
}
