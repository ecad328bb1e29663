//! Finds whether XA transactions that were prepared in the logs were committed. All logs are looked at when the first of them is met, for XA
//! COMMIT and XA ROLLBACK alone: of an archive, only blocks that may have some.

use binlogz_flow::passes::xa::{XaDecision, xa_decisions};
use binlogz_schema::HistoryPlace;

use super::inputs::{Logs, XaDecisions};
use crate::error::LogError;

impl Logs {
    /// Whether the transaction that was prepared under an identifier at a place was committed later; `None`: the logs don't
    /// tell.
    ///
    /// # Errors
    ///
    /// Logs that can't be read.
    pub(crate) fn is_xa_committed(&self, xid: &str, place: HistoryPlace) -> Result<Option<bool>, LogError> {
        let decisions = self.decided_once(|| self.read_decisions().map_err(|LogError(line)| line))?;
        let of_xid = decisions.get(xid).map(Vec::as_slice).unwrap_or_default();
        Ok(of_xid.iter().find(|(decided, _)| *decided > place).map(|(_, is_commit)| *is_commit))
    }

    fn read_decisions(&self) -> Result<XaDecisions, LogError> {
        let _pass = self.pass(|_| true);
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let mut decisions = XaDecisions::new();
        for index in 0..self.len() {
            let input = self.open(index, &mut |run| run.may_end_xa())?;
            let take = |XaDecision { xid, is_commit, offset }| {
                decisions.entry(xid).or_default().push((Logs::place(index, offset), is_commit));
            };
            // Events that can't be read are named where they are asked for.
            drop(xa_decisions(input, workers, take).map_err(|error| self.error(index, &error))?);
        }
        Ok(decisions)
    }
}
