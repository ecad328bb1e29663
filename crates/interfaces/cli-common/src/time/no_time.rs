//! Why a text is no moment.

use std::error::Error;
use std::fmt;

/// Why a text is no moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTime {
    /// It is not written as one.
    Text,
    /// There is no such date.
    Date {
        /// The year, of four digits.
        year: u32,
        /// The month, from 1.
        month: u32,
        /// The day of the month.
        day: u32,
    },
    /// It is finer than microseconds.
    TooFine,
    /// It begins with `-`, and no duration follows.
    Ago,
    /// Clocks show it twice: the time as it can be given instead, first and second.
    Twice(String, String),
    /// Clocks never show it: what they show instead before and after.
    Never(String),
    /// It ends with a word that isn't the zone's name at that time.
    ZoneName(String),
    /// A date and then what may be an hour or an offset.
    HourOrOffset,
    /// To mysqlbinlog it is a date with an hour, otherwise a time of today.
    DateOrClock,
}

impl Error for NoTime {}

impl fmt::Display for NoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTime::Text => write!(
                f,
                "expected a time such as '2026-11-27 10:42:17.5', 2026-11-27, 10:42, 'yesterday 10:42', -1h, now or @SECONDS: local \
                 time, unless UTC, Z or an offset such as +01:00 ends it"
            ),
            NoTime::TooFine => write!(f, "expected at most six digits after the second"),
            NoTime::Date { year, month, day } => write!(f, "there is no {year:04}-{month:02}-{day:02}"),
            NoTime::Ago => {
                write!(f, "expected a time before now such as -30s, -1h30m or -2d after the minus")
            }
            NoTime::Twice(first, second) => {
                write!(f, "clocks show it twice, as they are put back: write '{first}' or '{second}'")
            }
            NoTime::Never(change) => write!(f, "clocks skip it: they are put forward {change}"),
            NoTime::ZoneName(name) => write!(
                f,
                "{name:?} is not what the time zone here is called then: write UTC, or an offset such as +01:00"
            ),
            NoTime::HourOrOffset => {
                write!(f, "may end with an hour or an offset: write the time of day too, as in 00:00+01:00")
            }
            NoTime::DateOrClock => {
                write!(
                    f,
                    "is a date with an hour to mysqlbinlog, and a time of today to others: write the date too"
                )
            }
        }
    }
}
