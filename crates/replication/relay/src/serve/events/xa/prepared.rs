//! The transactions that were prepared and aren't decided, as far as a dump has gone: where each stands in the stored logs.

use std::collections::HashMap;

use binlogz_store::FileNumber;

use super::XaStep;

/// More of them are forgotten, and searched for when they are needed.
const COUNT_MAX: usize = 65_536;

/// Where a prepared transaction begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PreparedPlace {
    /// The number of the stored log.
    pub(crate) lineage: u64,
    /// The stored file.
    pub(crate) file: FileNumber,
    /// The offset in the stored file.
    pub(crate) offset: u64,
}

/// Prepared transactions by their names.
#[derive(Debug, Default)]
pub(crate) struct PreparedTransactions {
    places: HashMap<String, PreparedPlace>,
}

impl PreparedTransactions {
    /// Takes the next step of the log, which begins there.
    pub(crate) fn step(&mut self, step: &XaStep, place: PreparedPlace) {
        match step {
            XaStep::Prepare(name) => {
                if self.places.len() >= COUNT_MAX {
                    self.places.clear();
                }
                self.places.insert(name.clone(), place);
            }
            XaStep::Commit(name) | XaStep::Rollback(name) => {
                self.places.remove(name);
            }
            XaStep::OnePhase => {}
        }
    }

    /// Where a transaction was prepared, if the dump came by there.
    pub(crate) fn place(&self, name: &str) -> Option<PreparedPlace> {
        self.places.get(name).copied()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.places.len() as u64
    }

    /// The first file of a log that is needed for them.
    pub(crate) fn oldest_file(&self, lineage: u64) -> Option<FileNumber> {
        self.places.values().filter(|place| place.lineage == lineage).map(|place| place.file).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_prepared_until_it_is_decided() {
        let place = |file: u64| PreparedPlace { lineage: 1, file: FileNumber(file), offset: 4 };
        let mut prepared = PreparedTransactions::default();
        prepared.step(&XaStep::Prepare("a".into()), place(1));
        prepared.step(&XaStep::Prepare("b".into()), place(2));
        prepared.step(&XaStep::OnePhase, place(3));
        assert_eq!((prepared.place("a"), prepared.oldest_file(1)), (Some(place(1)), Some(FileNumber(1))));
        assert_eq!(prepared.oldest_file(2), None);
        prepared.step(&XaStep::Commit("a".into()), place(3));
        assert_eq!((prepared.place("a"), prepared.oldest_file(1)), (None, Some(FileNumber(2))));
        prepared.step(&XaStep::Rollback("b".into()), place(3));
        assert_eq!((prepared.count(), prepared.oldest_file(1)), (0, None));
        // The name is used again.
        prepared.step(&XaStep::Prepare("a".into()), place(4));
        assert_eq!(prepared.place("a"), Some(place(4)));
    }

    #[test]
    fn they_are_bounded() {
        let mut prepared = PreparedTransactions::default();
        for number in 0..COUNT_MAX as u64 + 10 {
            let place = PreparedPlace { lineage: 1, file: FileNumber(1), offset: number };
            prepared.step(&XaStep::Prepare(number.to_string()), place);
        }
        assert_eq!(prepared.count(), 10);
    }
}
