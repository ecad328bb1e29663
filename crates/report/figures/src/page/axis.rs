//! The axis below a chart of lines: where each value stands, and which places are named. Times get round ones, as many as
//! there is room for, none of them twice.

use std::fmt::{self, Display};
use std::io::{self, Write};

use super::clock::{ClockDigits, write_time};
use super::text::{EscapedText, Share};

/// The places of a chart's values, from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChartAxis {
    /// Names at equal distances.
    Names(Vec<String>),
    /// Seconds since 1970, the earliest first: distances are as long as the time between them.
    Times(Vec<u64>),
}

/// Names with more letters leave room only for the first and the last on a phone.
const NAME_MAX: usize = 6;
/// Places that are named below a chart.
const TICKS_MAX: usize = 5;
/// Seconds between two ticks of a time axis. Those of an hour and less divide a day, so that ticks are round in each zone.
const STEPS: [u64; 18] =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];
const MINUTE: u64 = 60;
/// A tick this near to an end has its text inside the chart.
const END: f64 = 0.08;

/// A named place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AxisTick {
    /// Between 0, at the left, and 1.
    pub(super) share: f64,
    pub(super) text: TickText,
}

/// The text of a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TickText {
    Name(String),
    Time(u64, ClockDigits),
}

impl ChartAxis {
    pub(super) fn len(&self) -> usize {
        match self {
            ChartAxis::Names(names) => names.len(),
            ChartAxis::Times(times) => times.len(),
        }
    }

    pub(super) fn has_times(&self) -> bool {
        matches!(self, ChartAxis::Times(_))
    }

    /// Where each value stands: between 0, at the left, and 1. A value alone stands in the middle.
    pub(super) fn shares(&self) -> Vec<f64> {
        let last = self.len().saturating_sub(1);
        match self.span() {
            Some((first, span, times)) => {
                times.iter().map(|time| (time - first) as f64 / span as f64).collect()
            }
            None if last == 0 => vec![0.5; self.len()],
            None => (0..=last).map(|place| place as f64 / last as f64).collect(),
        }
    }

    /// The first time, the seconds from there to the last, and all times; `None` for names, and where the clock stood still or went back.
    fn span(&self) -> Option<(u64, u64, &[u64])> {
        let ChartAxis::Times(times) = self else { return None };
        let first = *times.first()?;
        let last = *times.last()?;
        (times.is_sorted() && last > first).then(|| (first, last - first, times.as_slice()))
    }

    /// What stands at a place, for a text on its own.
    pub(super) fn said(&self, place: usize) -> String {
        match self {
            ChartAxis::Names(names) => names.get(place).cloned().unwrap_or_default(),
            ChartAxis::Times(times) => times
                .get(place)
                .map_or_else(String::new, |time| format!("{} UTC", ClockDigits::Seconds.text(*time))),
        }
    }

    /// The places that are named, each with a text of its own.
    pub(super) fn ticks(&self) -> Vec<AxisTick> {
        match (self, self.span()) {
            (ChartAxis::Names(names), _) => named(names),
            (ChartAxis::Times(_), Some((first, span, _))) => round_times(first, span),
            (ChartAxis::Times(times), None) => {
                let time = times.last().map(|time| TickText::Time(*time, ClockDigits::Seconds));
                time.map(|text| AxisTick { share: 0.5, text }).into_iter().collect()
            }
        }
    }

    /// Writes the ticks, and of times their zone.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let ticks = self.ticks();
        let is_long = ticks.iter().any(|tick| tick.text.to_string().chars().count() > NAME_MAX);
        if self.has_times() {
            write!(out, "<div class=\"zone\">UTC</div>")?;
        }
        write!(out, "<div class=\"under{}\">", if is_long { " long" } else { "" })?;
        for tick in ticks {
            let end = match tick.share {
                share if share < END => " class=\"begin\"",
                share if share > 1.0 - END => " class=\"end\"",
                _ => "",
            };
            write!(out, "<span{end} style=\"left:{}\">", Share(tick.share))?;
            match &tick.text {
                TickText::Name(name) => write!(out, "{}", EscapedText(name))?,
                TickText::Time(time, digits) => write_time(*time, *digits, out)?,
            }
            write!(out, "</span>")?;
        }
        write!(out, "</div>")
    }
}

impl Display for TickText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TickText::Name(name) => f.write_str(name),
            TickText::Time(time, digits) => f.write_str(&digits.text(*time)),
        }
    }
}

/// Some of the names, the first and the last among them.
fn named(names: &[String]) -> Vec<AxisTick> {
    let last = names.len().saturating_sub(1);
    let steps = last.clamp(1, TICKS_MAX - 1);
    let mut places: Vec<usize> = (0..=steps).map(|step| last * step / steps).collect();
    places.dedup();
    let named = places.into_iter().filter_map(|place| Some((place, names.get(place)?.clone())));
    named
        .map(|(place, name)| AxisTick {
            share: if last == 0 { 0.5 } else { place as f64 / last as f64 },
            text: TickText::Name(name),
        })
        .collect()
}

/// Times at a round distance from each other.
fn round_times(first: u64, span: u64) -> Vec<AxisTick> {
    let last = first.saturating_add(span);
    let days = span.div_ceil(86_400).next_power_of_two() * 86_400;
    let fits = |step: &u64| (last / step + 1).saturating_sub(first.div_ceil(*step)) <= TICKS_MAX as u64;
    let step = STEPS.into_iter().find(fits).unwrap_or(days);
    let digits = if step < MINUTE { ClockDigits::Seconds } else { ClockDigits::Minutes };
    let times = (first.div_ceil(step)..=last / step).map(|number| number * step);
    times
        .map(|time| AxisTick {
            share: (time - first) as f64 / span as f64,
            text: TickText::Time(time, digits),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &ChartAxis) -> Vec<String> {
        axis.ticks().into_iter().map(|tick| tick.text.to_string()).collect()
    }

    fn every_ten_seconds(from: u64, count: u64) -> ChartAxis {
        ChartAxis::Times((0..count).map(|number| from + number * 10).collect())
    }

    #[test]
    fn an_hour_has_round_ticks() {
        // 17:31:07
        let hour = every_ten_seconds(1_700_069_467, 360);
        assert_eq!(texts(&hour), ["17:45", "18:00", "18:15", "18:30"]);
        let first = &hour.ticks()[0];
        assert!((first.share - 833.0 / 3590.0).abs() < 1e-9, "{first:?}");
    }

    #[test]
    fn no_tick_stands_there_twice() {
        for count in 1..=360 {
            for from in [1_700_069_467, 1_700_006_399, 0] {
                let texts = texts(&every_ten_seconds(from, count));
                let mut distinct = texts.clone();
                distinct.dedup();
                assert!(texts == distinct && (1..=TICKS_MAX).contains(&texts.len()), "{count}: {texts:?}");
            }
        }
        assert_eq!(
            texts(&every_ten_seconds(1_700_069_467, 3)),
            ["17:31:10", "17:31:15", "17:31:20", "17:31:25"]
        );
        assert_eq!(texts(&every_ten_seconds(1_700_069_467, 1)), ["17:31:07"]);
    }

    #[test]
    fn values_stand_as_far_apart_as_their_times() {
        let axis = ChartAxis::Times(vec![100, 110, 140]);
        assert_eq!(axis.shares(), [0.0, 0.25, 1.0]);
        // A clock that was put back.
        assert_eq!(ChartAxis::Times(vec![100, 90, 95]).shares(), [0.0, 0.5, 1.0]);
        assert_eq!(ChartAxis::Times(vec![100]).shares(), [0.5]);
        assert!(ChartAxis::Times(vec![]).shares().is_empty() && ChartAxis::Times(vec![]).ticks().is_empty());
    }

    #[test]
    fn of_many_names_some_are_shown() {
        let names = ChartAxis::Names((0..13).map(|number| format!("n{number}")).collect());
        assert_eq!(texts(&names), ["n0", "n3", "n6", "n9", "n12"]);
        assert_eq!(texts(&ChartAxis::Names(vec!["one".to_owned()])), ["one"]);
    }
}
