//! A moment to which something goes back, as it is given: a time or a GTID.

use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_binlog::gtid::Gtid;
use binlogz_row_changes::TableMoment;

use super::heads::LogsBegin;
use crate::failure::{CommandFailure, Result};
use crate::time::{self, GivenTime};

/// A moment, as it was given.
#[derive(Debug, Clone)]
pub(super) struct GivenMoment {
    pub(super) text: String,
    pub(super) moment: TableMoment,
}

pub(super) fn moment(text: &str) -> Result<GivenMoment, String> {
    let moment = match (text.parse::<Gtid>(), text.parse::<GivenTime>()) {
        (Ok(gtid), _) => TableMoment::After(gtid),
        (_, Ok(time)) => TableMoment::Before(time.microseconds()),
        (_, Err(error)) => return Err(format!("{error}; or a GTID, as UUID:23")),
    };
    Ok(GivenMoment { text: text.to_owned(), moment })
}

impl GivenMoment {
    /// Checks that it isn't in the future.
    pub(super) fn check(&self, option: &str) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        match self.moment {
            TableMoment::Before(end) if end > i64::try_from(now).unwrap_or(i64::MAX) => {
                Err(CommandFailure::of(&option, format_args!("{}: is in the future", self.text)))
            }
            TableMoment::Before(_) | TableMoment::After(_) => Ok(()),
        }
    }

    /// Checks that logs which begin here have all that came after the moment: earlier logs may have changed rows after it, unless there were
    /// none.
    pub(super) fn check_begin(&self, option: &str, begin: &LogsBegin) -> Result<(), String> {
        let LogsBegin { head, is_first } = begin;
        match self.moment {
            TableMoment::After(gtid) if head.previous.contains(&gtid) => {
                Err(format!("{option} {}", TableMoment::absence(&gtid, &head.previous)))
            }
            TableMoment::After(_) => Ok(()),
            // Of its second it isn't known what came before it, as before RESET.
            TableMoment::Before(end)
                if *is_first && (head.was_there_at(end) || head.begins_after(self.moment)) =>
            {
                Ok(())
            }
            TableMoment::Before(_) if head.is_before(self.moment) => Ok(()),
            TableMoment::Before(_) => Err(self.not_reached(option, begin)),
        }
    }

    fn not_reached(&self, option: &str, LogsBegin { head, is_first }: &LogsBegin) -> String {
        let (text, begin) = (&self.text, time::shown(head.created));
        match head.begins_after(self.moment) {
            false if *is_first => format!(
                "{option} {text}: the first log begins within this second, at {begin}: whether before the moment isn't known"
            ),
            true => format!("{option} {text}: the logs begin later, at {begin}"),
            false => format!(
                "{option} {text}: the logs begin at {begin}, but have no transaction of before the moment: changes that came between may be in an \
                 earlier log, which isn't there"
            ),
        }
    }
}
