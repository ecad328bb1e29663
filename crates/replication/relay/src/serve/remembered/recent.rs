//! A map that remembers which of its keys were used last, so that the oldest can go when there are too many.

use std::collections::HashMap;
use std::hash::Hash;

/// Values by key, in the order of their last use.
#[derive(Debug, Clone)]
pub(crate) struct Recent<K, V> {
    /// Each with the time of its last use.
    entries: HashMap<K, (u64, V)>,
    now: u64,
}

impl<K: Hash + Eq, V> Recent<K, V> {
    pub(crate) fn new() -> Self {
        Recent { entries: HashMap::new(), now: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The value of a key, without counting as a use.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// The value of a key, which becomes the most recently used.
    pub(crate) fn touch(&mut self, key: &K) -> Option<&V> {
        self.now += 1;
        let (used, value) = self.entries.get_mut(key)?;
        *used = self.now;
        Some(value)
    }

    /// Inserts a value; its key becomes the most recently used.
    pub(crate) fn put(&mut self, key: K, value: V) {
        self.now += 1;
        self.entries.insert(key, (self.now, value));
    }

    pub(crate) fn remove(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Removes the least recently used until no more than this many are left.
    pub(crate) fn shrink(&mut self, count_max: usize) {
        let too_many = self.len().saturating_sub(count_max);
        if too_many == 0 {
            return;
        }
        let mut uses: Vec<u64> = self.entries.values().map(|(used, _)| *used).collect();
        let (_, last_removed, _) = uses.select_nth_unstable(too_many - 1);
        let last_removed = *last_removed;
        self.entries.retain(|_, (used, _)| *used > last_removed);
    }

    /// All entries, the least recently used first.
    pub(crate) fn in_order(&self) -> Vec<(&K, &V)> {
        let mut entries: Vec<_> =
            self.entries.iter().map(|(key, (used, value))| (used, key, value)).collect();
        entries.sort_unstable_by_key(|(used, ..)| **used);
        entries.into_iter().map(|(_, key, value)| (key, value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_last_use() {
        let mut recent = Recent::new();
        for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
            recent.put(key, value);
        }
        assert_eq!(recent.touch(&"a"), Some(&1));
        assert_eq!(recent.get(&"b"), Some(&2));
        assert_eq!(recent.touch(&"x"), None);
        recent.put("c", 4);
        assert_eq!(recent.in_order(), [(&"b", &2), (&"a", &1), (&"c", &4)]);
        let mut shrunk = recent.clone();
        shrunk.shrink(3);
        assert_eq!(shrunk.len(), 3);
        shrunk.shrink(1);
        assert_eq!(shrunk.in_order(), [(&"c", &4)]);
        shrunk.shrink(0);
        assert_eq!(shrunk.len(), 0);
        recent.remove(&"a");
        assert_eq!((recent.len(), recent.get(&"a")), (2, None));
    }
}
