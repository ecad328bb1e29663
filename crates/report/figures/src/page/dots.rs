//! A chart of dots on a logarithmic scale, one row for each thing measured: for times from microseconds to seconds.

use std::io::{self, Write};

use super::bars::{Series, write_legend};
use super::text::{EscapedText, Share};
use super::unit::FigureUnit;

/// Rows of dots.
#[derive(Debug, Clone, PartialEq)]
pub struct Dots {
    /// The unit of all values.
    pub unit: FigureUnit,
    /// The meaning of the colours.
    pub series: Vec<Series>,
    /// The rows.
    pub rows: Vec<DotRow>,
}

/// The values of one thing.
#[derive(Debug, Clone, PartialEq)]
pub struct DotRow {
    /// The row's name.
    pub label: String,
    /// Whether it is the one that counts.
    pub is_chosen: bool,
    /// A value of each series.
    pub values: Vec<Option<f64>>,
}

impl Dots {
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write_legend(&self.series, out)?;
        let values = || self.rows.iter().flat_map(|row| row.values.iter().flatten().copied());
        let known = || values().filter(|value| value.is_finite() && *value > 0.0);
        let low = known().fold(f64::INFINITY, f64::min);
        let high = known().fold(0.0, f64::max);
        let scale = Scale::of(low, high);
        writeln!(out, "<div class=\"dots\" role=\"list\">")?;
        for row in &self.rows {
            let chosen = if row.is_chosen { " chosen" } else { "" };
            write!(
                out,
                "<div class=\"row{chosen}\" role=\"listitem\"><div class=\"name\">{}</div><div class=\"field\">",
                EscapedText(&row.label)
            )?;
            for tick in scale.ticks() {
                write!(out, "<span class=\"tick\" style=\"left:{}\"></span>", Share(scale.place(tick)))?;
            }
            let pairs = || self.series.iter().zip(&row.values);
            for (series, value) in pairs() {
                let Some(value) = value else { continue };
                write!(
                    out,
                    "<span class=\"dot {}\" style=\"left:{}\" data-value=\"{value}\" title=\"{} {}\"></span>",
                    series.paint.class(),
                    Share(scale.place(*value)),
                    EscapedText(&series.label),
                    EscapedText(&self.unit.text(*value))
                )?;
            }
            write!(out, "</div><div class=\"values\">")?;
            for (series, value) in pairs() {
                let Some(value) = value else { continue };
                let class = series.paint.class();
                write!(
                    out,
                    "<span><i class=\"{class}\"></i>{}</span>",
                    EscapedText(&self.unit.text(*value))
                )?;
            }
            writeln!(out, "</div></div>")?;
        }
        write!(out, "<div class=\"row axis\"><div class=\"name\"></div><div class=\"field\">")?;
        for tick in scale.ticks() {
            let text = self.unit.text(tick);
            write!(out, "<span style=\"left:{}\">{}</span>", Share(scale.place(tick)), EscapedText(&text))?;
        }
        writeln!(out, "</div><div class=\"values\"></div></div></div>")
    }
}

/// From a power of ten to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scale {
    from: i32,
    to: i32,
}

/// Powers of ten between two ticks are left out beyond this many: their texts would touch.
const TICKS_MAX: i32 = 5;

impl Scale {
    fn of(low: f64, high: f64) -> Scale {
        if high <= 0.0 {
            return Scale { from: 0, to: 1 };
        }
        let from = low.log10().floor() as i32;
        let to = high.log10().ceil() as i32;
        Scale { from, to: to.max(from + 1) }
    }

    fn place(self, value: f64) -> f64 {
        (value.max(f64::MIN_POSITIVE).log10() - f64::from(self.from)) / f64::from(self.to - self.from)
    }

    fn ticks(self) -> impl Iterator<Item = f64> {
        let step = (self.to - self.from + TICKS_MAX - 1) / TICKS_MAX;
        (self.from..=self.to).step_by(step.max(1) as usize).map(|power| 10f64.powi(power))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_holds_its_values() {
        assert_eq!(Scale::of(0.000_027, 0.017_9), Scale { from: -5, to: -1 });
        assert_eq!(Scale::of(1.0, 1.0), Scale { from: 0, to: 1 });
        assert_eq!(Scale::of(f64::INFINITY, 0.0), Scale { from: 0, to: 1 });
        let scale = Scale { from: -6, to: 0 };
        assert_eq!((scale.place(1e-6), scale.place(1.0)), (0.0, 1.0));
        assert_eq!(scale.ticks().count(), 4);
    }
}
