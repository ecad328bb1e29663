//! A chart of lines: values over time, or over anything that has an order. Small ones without an axis stand beside names.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::axis::ChartAxis;
use super::bars::Series;
use super::text::EscapedText;
use super::unit::FigureUnit;

/// Lines over one axis.
#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
    /// The unit of all values.
    pub unit: FigureUnit,
    /// Each value's place on the axis, from left to right.
    pub at: ChartAxis,
    /// The lines.
    pub lines: Vec<ChartLine>,
    /// Whether the area below the first line is filled.
    pub is_filled: bool,
    /// Whether each value has a dot.
    pub has_dots: bool,
    /// The end of the axis, at least.
    pub full: f64,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLine {
    /// The line's name and colour.
    pub series: Series,
    /// A value at each place; `None`: not known, and the line has a gap.
    pub values: Vec<Option<f64>>,
}

/// The drawing's own units; the browser stretches them.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 200.0;
/// Places that tell their values when they are pointed at.
const SLOTS_MAX: usize = 72;
/// Values of a small line.
const SPARK_VALUES_MAX: usize = 90;
/// Ways to draw a line: solid, dashes, dots and so on. Of lines that have the same values each can be seen through the next one.
const STROKES: usize = 5;

impl LineChart {
    pub(super) fn write(&self, title: &str, out: &mut impl Write) -> io::Result<()> {
        self.write_legend(out)?;
        let values = self.lines.iter().flat_map(|line| line.values.iter().flatten());
        let top =
            nice(values.copied().filter(|value| value.is_finite()).fold(self.full, f64::max), self.unit);
        writeln!(out, "<div class=\"plot\"><div class=\"scale\">")?;
        for share in [1.0, 0.5, 0.0] {
            write!(out, "<span>{}</span>", EscapedText(&self.unit.text(top * share)))?;
        }
        write!(
            out,
            "</div><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
            EscapedText(&format!("{title}: {}", self.said()))
        )?;
        for share in [0.0, 0.5, 1.0] {
            let y = HEIGHT * share;
            write!(out, "<path class=\"rule\" d=\"M0 {y}H{WIDTH}\"/>")?;
        }
        if self.at.has_times() {
            for tick in self.at.ticks() {
                write!(out, "<path class=\"rule\" d=\"M{:.1} 0V{HEIGHT}\"/>", tick.share * WIDTH)?;
            }
        }
        let shares = self.at.shares();
        for (place, line) in self.lines.iter().enumerate() {
            let class = line.series.paint.class();
            let stroke = stroke(place);
            if self.is_filled && place == 0 {
                write!(
                    out,
                    "<path class=\"area {class}\" d=\"{}\"/>",
                    path(&shares, &line.values, top, true)
                )?;
            }
            write!(
                out,
                "<path class=\"curve {class} {stroke}\" d=\"{}\"/>",
                path(&shares, &line.values, top, false)
            )?;
            if self.has_dots {
                write!(out, "<path class=\"points {class}\" d=\"{}\"/>", points(&shares, &line.values, top))?;
            }
        }
        self.write_slots(&shares, out)?;
        write!(out, "</svg>")?;
        self.at.write(out)?;
        writeln!(out, "</div>")
    }

    /// How each line is drawn, and over time its last value: lines that lie on each other are told apart here, too.
    fn write_legend(&self, out: &mut impl Write) -> io::Result<()> {
        if self.lines.len() < 2 {
            return Ok(());
        }
        write!(out, "<ul class=\"legend\">")?;
        for (place, ChartLine { series, values }) in self.lines.iter().enumerate() {
            let class = series.paint.class();
            let stroke = stroke(place);
            write!(out, "<li><i class=\"stroke {class} {stroke}\"></i>{}", EscapedText(&series.label))?;
            let last = values.iter().rev().flatten().next().filter(|_| self.at.has_times());
            if let Some(last) = last {
                write!(out, " <b>{}</b>", EscapedText(&self.unit.text(*last)))?;
            }
            write!(out, "</li>")?;
        }
        writeln!(out, "</ul>")
    }

    /// Columns without colour that say what was when.
    fn write_slots(&self, shares: &[f64], out: &mut impl Write) -> io::Result<()> {
        let step = shares.len().div_ceil(SLOTS_MAX).max(1);
        let width = WIDTH / shares.len().max(1) as f64 * step as f64;
        for (place, share) in shares.iter().enumerate().step_by(step) {
            let mut said = self.at.said(place);
            for line in &self.lines {
                let text = match line.values.get(place).copied().flatten() {
                    Some(value) => self.unit.text(value),
                    None => "not known".to_owned(),
                };
                // Writing to a string can't fail.
                let _ = write!(said, "\n{}: {text}", line.series.label);
            }
            let x = (share * WIDTH - width / 2.0).clamp(0.0, WIDTH);
            let lines: Vec<_> = said.split('\n').map(|line| EscapedText(line).to_string()).collect();
            write!(
                out,
                "<rect class=\"slot\" x=\"{x:.1}\" y=\"0\" width=\"{width:.1}\" height=\"{HEIGHT}\"><title>{}</title></rect>",
                lines.join("\n")
            )?;
        }
        Ok(())
    }

    /// The last value and the largest of each line.
    fn said(&self) -> String {
        let said = self.lines.iter().map(|line| {
            let known = || line.values.iter().flatten().copied();
            let now = line
                .values
                .last()
                .copied()
                .flatten()
                .map_or("not known".to_owned(), |now| self.unit.text(now));
            let most = known().fold(0.0, f64::max);
            format!("{} now {now}, at most {}", line.series.label, self.unit.text(most))
        });
        said.collect::<Vec<_>>().join("; ")
    }
}

/// The class of the way in which the line of this place is drawn.
fn stroke(place: usize) -> String {
    format!("d{}", place % STROKES)
}

/// A small line without axis.
pub(super) fn write_spark(
    values: &[Option<f64>],
    full: f64,
    title: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let values = &peaks(values);
    let shares = ChartAxis::Names(vec![String::new(); values.len()]).shares();
    let known = values.iter().flatten().copied();
    let top = known.fold(full, f64::max).max(f64::MIN_POSITIVE);
    write!(
        out,
        "<svg class=\"spark\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{0}\">\
         <title>{0}</title><path class=\"rule\" d=\"M0 {HEIGHT}H{WIDTH}\"/>",
        EscapedText(title)
    )?;
    write!(
        out,
        "<path class=\"area p1\" d=\"{}\"/><path class=\"curve p1\" d=\"{}\"/></svg>",
        path(&shares, values, top, true),
        path(&shares, values, top, false)
    )
}

/// As many values as a small line can show: the largest of each few.
fn peaks(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let few = values.len().div_ceil(SPARK_VALUES_MAX).max(1);
    let largest = |few: &[Option<f64>]| {
        few.iter().flatten().copied().filter(|value| value.is_finite()).reduce(f64::max)
    };
    values.chunks(few).map(largest).collect()
}

fn y_of(value: f64, top: f64) -> f64 {
    HEIGHT * (1.0 - (value / top).clamp(0.0, 1.0))
}

/// The values at these places as an SVG path, or as the area below it; a gap where one is not known.
fn path(shares: &[f64], values: &[Option<f64>], top: f64, is_area: bool) -> String {
    let mut text = String::new();
    let mut began: Option<f64> = None;
    let mut before = 0.0;
    for (share, value) in shares.iter().zip(values) {
        let x = share * WIDTH;
        match (value.filter(|value| value.is_finite()), began) {
            (Some(value), None) => {
                let y = y_of(value, top);
                // A value alone is a dot: a line of no length with round ends.
                let _ = match is_area {
                    true => write!(text, "M{x:.1} {HEIGHT}V{y:.1}"),
                    false => write!(text, "M{x:.1} {y:.1}h0"),
                };
                (began, before) = (Some(x), x);
            }
            (Some(value), Some(_)) => {
                let _ = write!(text, "L{x:.1} {:.1}", y_of(value, top));
                before = x;
            }
            (None, Some(_)) => {
                if is_area {
                    let _ = write!(text, "L{before:.1} {HEIGHT}Z");
                }
                began = None;
            }
            (None, None) => {}
        }
    }
    if is_area && began.is_some() {
        let _ = write!(text, "L{before:.1} {HEIGHT}Z");
    }
    text
}

/// The values at these places as dots.
fn points(shares: &[f64], values: &[Option<f64>], top: f64) -> String {
    let mut text = String::new();
    for (share, value) in shares.iter().zip(values) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            let _ = write!(text, "M{:.1} {:.1}h0", share * WIDTH, y_of(value, top));
        }
    }
    text
}

/// The next number above this whose half reads well too.
fn nice(number: f64, unit: FigureUnit) -> f64 {
    if number <= 0.0 {
        return match unit {
            // There is no half a byte.
            FigureUnit::Bytes | FigureUnit::BytesPerSecond => 1024.0,
            FigureUnit::Percent | FigureUnit::Seconds | FigureUnit::Count => 1.0,
        };
    }
    // Sizes read well in powers of two, times in minutes.
    let base: f64 = match unit {
        FigureUnit::Bytes | FigureUnit::BytesPerSecond => {
            1024f64.powf((number.max(1.0).ln() / 1024f64.ln()).floor())
        }
        FigureUnit::Seconds if number > 7200.0 => 3600.0,
        FigureUnit::Seconds if number > 120.0 => 60.0,
        _ => 1.0,
    };
    let number = number / base;
    let power = 10f64.powf(number.log10().floor());
    let step = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0].into_iter().find(|step| step * power >= number * 0.999_999);
    step.unwrap_or(10.0) * power * base
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_gap_where_nothing_is_known() {
        let values = [Some(0.0), Some(1.0), None, Some(0.5)];
        let shares = [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0];
        assert_eq!(path(&shares, &values, 1.0, false), "M0.0 200.0h0L333.3 0.0M1000.0 100.0h0");
        assert_eq!(
            path(&shares, &values, 1.0, true),
            "M0.0 200V200.0L333.3 0.0L333.3 200ZM1000.0 200V100.0L1000.0 200Z"
        );
    }

    #[test]
    fn a_small_line_keeps_its_peaks() {
        let mut values = vec![Some(0.0); 360];
        (values[7], values[8]) = (Some(9.0), None);
        values[100..110].fill(None);
        let peaks = peaks(&values);
        assert_eq!((peaks.len(), peaks[1], peaks[2], peaks[26]), (90, Some(9.0), Some(0.0), None));
    }

    #[test]
    fn an_axis_ends_at_a_number_that_reads_well() {
        for (number, unit, top) in [
            (0.0, FigureUnit::Count, 1.0),
            (0.0, FigureUnit::Bytes, 1024.0),
            (7.0, FigureUnit::Count, 8.0),
            (100.0, FigureUnit::Percent, 100.0),
            (1300.0, FigureUnit::Bytes, 2048.0),
            (61.0, FigureUnit::Seconds, 80.0),
            (130.0, FigureUnit::Seconds, 240.0),
        ] {
            assert_eq!(nice(number, unit), top, "{number}");
        }
    }
}
