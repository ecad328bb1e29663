//! A log in its forms.

use binlogz_relay_log::LineageLog;

use crate::conversions::Conversions;

/// A log, with what all its readers share.
#[derive(Debug, Clone, Copy)]
pub struct Forms<'a> {
    /// The log.
    pub kept: &'a LineageLog,
    /// The converters and blocks.
    pub conversions: &'a Conversions,
}

impl Conversions {
    /// The forms of a log.
    pub fn of<'a>(&'a self, kept: &'a LineageLog) -> Forms<'a> {
        Forms { kept, conversions: self }
    }
}
