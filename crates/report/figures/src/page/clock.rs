//! Moments on a page: UTC, drawn when the page is written. A script adds the time of the reader's own zone, which only the browser knows.

use std::io::{self, Write};

use crate::utc_second;

/// The page's only script. A policy names it by [`SCRIPT_HASH`], so no other one runs.
pub(super) const SCRIPT: &str = include_str!("zone.js");
/// SHA-256 of [`SCRIPT`] in base64: a test says what it has to be.
pub(super) const SCRIPT_HASH: &str = "YQrebyMThjTzgC6o+TrlgCl/sM5J9+0Onpk60360axk=";

/// How much of a time is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClockDigits {
    /// `17:31`
    Minutes,
    /// `17:31:07`
    Seconds,
    /// `2023-11-15 17:31:07 UTC`
    Date,
}

impl ClockDigits {
    /// A time in UTC.
    pub(super) fn text(self, time: u64) -> String {
        let of_day = time % 86_400;
        let hours = of_day / 3600;
        let minutes = of_day / 60 % 60;
        let seconds = of_day % 60;
        match self {
            ClockDigits::Minutes => format!("{hours:02}:{minutes:02}"),
            ClockDigits::Seconds => format!("{hours:02}:{minutes:02}:{seconds:02}"),
            ClockDigits::Date => utc_second(u32::try_from(time).unwrap_or(u32::MAX)),
        }
    }
}

/// Writes seconds since 1970 as an element that the script completes.
pub(super) fn write_time(time: u64, digits: ClockDigits, out: &mut impl Write) -> io::Result<()> {
    let class = match digits {
        ClockDigits::Minutes => "minutes",
        ClockDigits::Seconds => "seconds",
        ClockDigits::Date => "date",
    };
    write!(out, "<time class=\"{class}\" data-at=\"{time}\">{}</time>", digits.text(time))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    /// RFC 4648, section 4.
    fn base64(bytes: &[u8]) -> String {
        bytes.chunks(3).flat_map(four_letters).collect()
    }

    /// Up to three bytes.
    fn four_letters(bytes: &[u8]) -> [char; 4] {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let bits =
            (0..3).fold(0, |bits, place| bits << 8 | u32::from(bytes.get(place).copied().unwrap_or(0)));
        [0, 1, 2, 3].map(|place| match place <= bytes.len() {
            true => char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]),
            false => '=',
        })
    }

    #[test]
    fn the_policy_names_the_script_that_is_there() {
        assert_eq!(base64(b"ab"), "YWI=");
        assert_eq!(base64(&Sha256::digest(SCRIPT)), SCRIPT_HASH);
        // Nothing in it ends its element.
        assert!(!SCRIPT.contains("</"));
    }

    #[test]
    fn a_moment_is_utc() {
        assert_eq!(ClockDigits::Minutes.text(1_700_069_467), "17:31");
        assert_eq!(ClockDigits::Seconds.text(1_700_069_467), "17:31:07");
        assert_eq!(ClockDigits::Date.text(1_700_069_467), "2023-11-15 17:31:07 UTC");
    }
}
