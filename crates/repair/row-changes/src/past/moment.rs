//! The moment at which tables are wanted, and which transactions of a log come after it.

use binlogz_binlog::gtid::{Gtid, GtidSet};

/// The moment, in the log, at which a table is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableMoment {
    /// After this transaction, before the next one in the log.
    After(Gtid),
    /// Before the first transaction, in the log's order, that was committed at this time or later, in microseconds since
    /// 1970.
    Before(i64),
}

impl TableMoment {
    /// Says that logs don't have this transaction; `held` are all up to their end.
    pub fn absence(gtid: &Gtid, held: &GtidSet) -> String {
        match held.contains(gtid) {
            true => format!("{gtid}: this transaction stands before the logs"),
            false => format!("{gtid}: this transaction is not in the logs"),
        }
    }
}

/// The moment of tables: a place in the order of the log, or a set of transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PastMoment {
    /// A place in the order of the log.
    InLog(TableMoment),
    /// The moment at which the server had executed just these transactions: all of them, and no other one.
    Executed(GtidSet),
}

impl From<TableMoment> for PastMoment {
    fn from(moment: TableMoment) -> Self {
        PastMoment::InLog(moment)
    }
}

/// Where the log is, against the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MomentPhase {
    Before,
    /// The log is in the last transaction before the moment.
    AtLast,
    After,
}

impl PastMoment {
    /// Where the log is once this transaction begins, which was committed at `time`, in microseconds since 1970.
    ///
    /// # Errors
    ///
    /// Whether it comes before or after a set of transactions can't be told.
    pub(super) fn phase(
        &self,
        now: MomentPhase,
        gtid: Option<&Gtid>,
        time: u64,
    ) -> Result<MomentPhase, String> {
        match (self, now) {
            (PastMoment::Executed(set), _) => phase_of_set(set, now, gtid),
            (PastMoment::InLog(_), MomentPhase::AtLast | MomentPhase::After) => Ok(MomentPhase::After),
            (PastMoment::InLog(TableMoment::After(last)), MomentPhase::Before) => {
                Ok(if gtid == Some(last) { MomentPhase::AtLast } else { MomentPhase::Before })
            }
            (PastMoment::InLog(TableMoment::Before(end)), MomentPhase::Before) => {
                let is_later = i64::try_from(time).unwrap_or(i64::MAX) >= *end;
                Ok(if is_later { MomentPhase::After } else { MomentPhase::Before })
            }
        }
    }

    /// The reason for which logs don't have the moment: they have the transactions `held`, and end in this phase. `None`: they have
    /// it.
    pub(super) fn unmet(&self, held: &GtidSet, now: MomentPhase) -> Option<String> {
        match self {
            PastMoment::InLog(TableMoment::After(gtid)) if now == MomentPhase::Before => {
                Some(format!("--at {}", TableMoment::absence(gtid, held)))
            }
            PastMoment::InLog(_) => None,
            PastMoment::Executed(set) => {
                let mut missing = set.clone();
                missing.subtract(held);
                (!missing.is_empty()).then(|| {
                    format!("these transactions of the moment are not in the logs: {}", missing.brief())
                })
            }
        }
    }

    /// The reason for which the moment is before the beginning of a log, which follows these transactions; `None`: it isn't.
    pub(super) fn begun_too_late(&self, previous: &GtidSet) -> Option<String> {
        let PastMoment::Executed(set) = self else { return None };
        let mut others = previous.clone();
        others.subtract(set);
        (!others.is_empty()).then(|| {
            format!(
                "the logs begin after the moment: before them came {}, which it doesn't have",
                others.brief()
            )
        })
    }
}

fn phase_of_set(set: &GtidSet, now: MomentPhase, gtid: Option<&Gtid>) -> Result<MomentPhase, String> {
    let Some(gtid) = gtid else {
        let line = "a transaction has no GTID: whether it is one of those of the moment can't be told";
        return Err(line.to_owned());
    };
    match (set.contains(gtid), now) {
        (true, MomentPhase::Before) => Ok(MomentPhase::Before),
        (true, MomentPhase::AtLast | MomentPhase::After) => Err(format!(
            "{gtid} is one of the transactions of the moment, and the log has others before it that aren't: the server never had just these"
        )),
        (false, _) => Ok(MomentPhase::After),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn gtid(number: u64) -> Gtid {
        format!("{SERVER}:{number}").parse().unwrap()
    }

    fn set(numbers: &str) -> GtidSet {
        format!("{SERVER}:{numbers}").parse().unwrap()
    }

    #[test]
    fn a_set_is_a_moment_where_the_log_has_all_of_it_before_anything_else() {
        let moment = PastMoment::Executed(set("1-3"));
        let (before, after) = (MomentPhase::Before, MomentPhase::After);
        assert_eq!(moment.phase(before, Some(&gtid(3)), 0), Ok(before));
        assert_eq!(moment.phase(before, Some(&gtid(4)), 0), Ok(after));
        assert_eq!(moment.phase(after, Some(&gtid(5)), 0), Ok(after));
        let said = moment.phase(after, Some(&gtid(2)), 0).unwrap_err();
        assert!(said.starts_with(&format!("{SERVER}:2 is one of the transactions")), "{said}");
        assert!(moment.phase(before, None, 0).is_err());
        assert_eq!(moment.unmet(&set("1-7"), before), None);
        assert!(moment.unmet(&set("1-2"), before).unwrap().ends_with(&format!("{SERVER}:3")));
        assert_eq!(moment.begun_too_late(&set("1-2")), None);
        assert!(moment.begun_too_late(&set("1-4")).unwrap().contains(&format!("{SERVER}:4")));
    }

    #[test]
    fn a_place_in_the_log_divides_it_once() {
        let after = PastMoment::from(TableMoment::After(gtid(2)));
        let (before, last, later) = (MomentPhase::Before, MomentPhase::AtLast, MomentPhase::After);
        assert_eq!(after.phase(before, Some(&gtid(1)), 9), Ok(before));
        assert_eq!(after.phase(before, Some(&gtid(2)), 9), Ok(last));
        assert_eq!(after.phase(last, Some(&gtid(9)), 9), Ok(later));
        assert!(after.unmet(&set("1"), before).unwrap().ends_with("is not in the logs"));
        let time = PastMoment::from(TableMoment::Before(10));
        assert_eq!(time.phase(before, None, 9), Ok(before));
        assert_eq!(time.phase(before, None, 10), Ok(later));
        assert_eq!(time.phase(later, None, 3), Ok(later));
    }
}
