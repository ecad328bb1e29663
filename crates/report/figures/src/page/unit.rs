//! Numbers with their units, for people.

use crate::{grouped, human_size};

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureUnit {
    /// Bytes, shown in KiB, MiB and so on.
    Bytes,
    /// Bytes in a second.
    BytesPerSecond,
    /// Percent.
    Percent,
    /// Seconds.
    Seconds,
    /// Anything else.
    Count,
}

impl FigureUnit {
    /// A number in this unit, to three digits or so.
    pub fn text(self, number: f64) -> String {
        match self {
            FigureUnit::Bytes => human_size(number.max(0.0).round() as u64),
            FigureUnit::BytesPerSecond => format!("{}/s", human_size(number.max(0.0).round() as u64)),
            FigureUnit::Percent => format!("{number:.1} %"),
            FigureUnit::Seconds => seconds(number),
            FigureUnit::Count if number.abs() < 10.0 && number.fract() != 0.0 => format!("{number:.1}"),
            FigureUnit::Count => grouped(number.max(0.0).round() as u64),
        }
    }
}

/// A time: `85 µs`, `1.2 ms`, `12 s`, `3 min`, `5 h`, `12 days`.
fn seconds(seconds: f64) -> String {
    match seconds {
        ..=0.0 => "0 s".to_owned(),
        0.0..0.000_999_5 => digits(seconds * 1e6, "µs"),
        0.0..0.999_5 => digits(seconds * 1e3, "ms"),
        0.0..119.5 => digits(seconds, "s"),
        0.0..7200.0 => format!("{:.0} min", (seconds / 60.0).floor()),
        0.0..172_800.0 => format!("{:.0} h", (seconds / 3600.0).floor()),
        _ => format!("{:.0} days", (seconds / 86_400.0).floor()),
    }
}

/// A decimal place below ten, unless it is nought.
fn digits(number: f64, unit: &str) -> String {
    let is_whole = (number - number.round()).abs() < 0.05;
    let places = usize::from(number < 9.95 && !is_whole);
    format!("{number:.places$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        for (unit, number, text) in [
            (FigureUnit::Bytes, 603_927.0, "589.8 KiB"),
            (FigureUnit::BytesPerSecond, 0.0, "0 B/s"),
            (FigureUnit::Percent, 41.68, "41.7 %"),
            (FigureUnit::Seconds, 0.0, "0 s"),
            (FigureUnit::Seconds, 0.000_021_4, "21 µs"),
            (FigureUnit::Seconds, 0.000_001_2, "1.2 µs"),
            (FigureUnit::Seconds, 0.001_119, "1.1 ms"),
            (FigureUnit::Seconds, 0.017_9, "18 ms"),
            (FigureUnit::Seconds, 5.0, "5 s"),
            (FigureUnit::Seconds, 119.0, "119 s"),
            (FigureUnit::Seconds, 180.0, "3 min"),
            (FigureUnit::Seconds, 7200.0, "2 h"),
            (FigureUnit::Seconds, 200_000.0, "2 days"),
            (FigureUnit::Count, 1_234_567.0, "1,234,567"),
            (FigureUnit::Count, 3.5, "3.5"),
        ] {
            assert_eq!(unit.text(number), text);
        }
    }
}
