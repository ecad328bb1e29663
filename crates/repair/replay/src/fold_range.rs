//! A folded range: the log that is applied in its place, and what then becomes of the server's set of GTIDs.
//!
//! ```text
//! range = given (transactions of the folded log, applied through the channel) + rest (added to gtid_purged once those are applied)
//! ```

use std::path::Path;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_relay::{ClosedLogs, EndedLogs, StopAt};

use crate::error::{ReplayError, Result};
use crate::fold_counters::{self, GivenNumber};
use crate::fold_mark::FoldMark;
use crate::target::{TargetServer, TargetTrouble};

/// A range of transactions in its folded form.
#[derive(Debug)]
pub struct FoldedRange {
    /// The folded log.
    pub(crate) log: EndedLogs,
    /// The transactions of the range.
    range: GtidSet,
    /// Those that the folded log has.
    given: GtidSet,
    pub(crate) mark: FoldMark,
    numbers: Vec<GivenNumber>,
}

impl FoldedRange {
    /// Takes a folded log, which is moved into an empty folder. `range` are the transactions that it stands for, `ends` the first and the last of them,
    /// `numbers` the largest numbers that they gave to columns.
    ///
    /// # Errors
    ///
    /// The log can't be read or moved; it has transactions that are not of the range.
    pub fn new(
        log: &Path,
        folder: &Path,
        (range, ends): (GtidSet, (Gtid, Gtid)),
        numbers: Vec<GivenNumber>,
    ) -> Result<Self> {
        let mark = FoldMark::of(log, ends)?;
        let folded = ClosedLogs::of_files(&[log.to_owned()], None)?.ended(&StopAt::End, folder)?;
        std::fs::remove_file(log).map_err(|error| ReplayError::place(log.display(), error))?;
        let mut given = folded.gtids.clone();
        given.subtract(&folded.before);
        match given.is_subset(&range) {
            true => Ok(FoldedRange { log: folded, range, given, mark, numbers }),
            false => Err(ReplayError::place("the folded log", "has transactions that are not of the range")),
        }
    }

    /// How many transactions the server applies in place of the range.
    pub fn count(&self) -> u128 {
        self.given.count()
    }

    /// Those that are never applied as such.
    fn rest(&self) -> GtidSet {
        let mut rest = self.range.clone();
        rest.subtract(&self.given);
        rest
    }

    /// Checks that a server that has executed these can be brought forward by the folded log.
    ///
    /// # Errors
    ///
    /// Why it can't be, to be read after its name.
    pub(crate) fn check(&self, executed: &GtidSet, mark: Option<&FoldMark>) -> Result<(), String> {
        if let Some(why) = mark.and_then(|mark| mark.difference(&self.mark)) {
            return Err(why);
        }
        // Everything is done but for the mark.
        if self.range.is_subset(executed) {
            return Ok(());
        }
        // Without a mark nothing of it was applied.
        let mut others = if mark.is_some() { self.rest() } else { self.range.clone() };
        others.intersect(executed);
        match (others.is_empty(), mark) {
            (true, _) => Ok(()),
            (false, None) => Err(format!(
                "got {} since it was asked, from the channel of an earlier run: the same command goes on from there",
                others.brief()
            )),
            (false, Some(_)) => Err(format!(
                "has {}, for which others were to be applied: something else brought it forward, restore the backup again",
                others.brief()
            )),
        }
    }

    /// Takes the mark of a server away that has applied nothing.
    pub(crate) fn forget_unbegun(&self, target: &mut TargetServer) -> Result<(), TargetTrouble> {
        if self.range.is_disjoint(&target.executed()?) {
            FoldMark::remove(target)?;
        }
        Ok(())
    }

    /// Gives the server the rest of the range, once it has applied the folded log, and takes its mark away. Returns the tables whose counters aren't
    /// known, as [`fold_counters::set`] names them.
    pub(crate) fn complete(&self, target: &mut TargetServer) -> Result<Vec<String>, TargetTrouble> {
        let executed = target.executed()?;
        self.check(&executed, Some(&self.mark)).map_err(|why| unfit(target, &why))?;
        if !self.given.is_subset(&executed) {
            return Err(unfit(target, "lacks transactions of the folded log"));
        }
        let without_counter = fold_counters::set(target, &self.numbers)?;
        let mut lacking = self.rest();
        lacking.subtract(&executed);
        if !lacking.is_empty() {
            target.run(&format!("SET GLOBAL gtid_purged = '+{lacking}'"))?;
        }
        let executed = target.executed()?;
        if !self.range.is_subset(&executed) {
            let why = format!(
                "gtid_executed is {executed} after gtid_purged was set, expected {} in it",
                self.range
            );
            return Err(unfit(target, &why));
        }
        FoldMark::remove(target)?;
        Ok(without_counter)
    }
}

fn unfit(target: &TargetServer, why: &str) -> TargetTrouble {
    TargetTrouble::Final(ReplayError::unfit(&target.name, why))
}
