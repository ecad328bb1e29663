//! The advice as a page with charts.

use std::io::{self, Write};

use binlogz_figures::{Cell, Chart, Page, Series, Unit};

use super::Advice;

/// Rows of a chart, and of the tables below: more would be unreadable.
const TOP: usize = 12;

/// Four days of hours.
const HOURS: usize = 96;

impl Advice {
    /// Writes the page; `name` says what was measured.
    ///
    /// # Errors
    ///
    /// What `out` fails with.
    pub fn write_page(&self, name: &str, out: &mut impl Write) -> io::Result<()> {
        let recommendation = self.recommendation();
        let figures = self.sections();
        let tables = self.shown(TOP);
        let lead = capitalised(&recommendation.to_string());
        Page {
            title: "What compressing the binary log would save, and cost",
            subtitle: name,
            lead: &lead,
            reasons: &recommendation.reasons,
            tiles: &self.tiles(),
            charts: &self.charts(),
            tables: &tables,
            figures: &figures,
        }
        .write(out)
    }

    fn tiles(&self) -> Vec<(String, String)> {
        let place = self.recommended_place();
        let level = self.levels.get(place).copied().unwrap_or_default();
        let percent = |value| format!("{value:.1} %");
        let mut tiles = vec![
            (percent(self.saved_percent(place)), format!("of the log saved at level {level}")),
            (size(self.plain_bytes()), "of log measured".to_owned()),
            (Cell::from(self.figures.transactions()).for_people(), "transactions".to_owned()),
        ];
        tiles.extend(
            self.core_percent(place).map(|core| (percent(core), "of a core for compressing".to_owned())),
        );
        if let Some(half_width) = self.half_width_percent(place) {
            tiles.push((format!("± {half_width:.2} %"), "of the size, from a sample".to_owned()));
        }
        tiles
    }

    fn charts(&self) -> Vec<Chart> {
        let level = self.levels.get(self.recommended_place()).map(|level| level.get());
        let at_level = level.map_or_else(String::new, |level| format!(" at level {level}"));
        let bar = |label, column, unit| Series { label, column, unit, line: false, logarithmic: false };
        let line = |label, column, unit, logarithmic| Series { label, column, unit, line: true, logarithmic };
        let sizes = || {
            vec![
                bar("without compression", "plain_bytes", Unit::Bytes),
                bar("compressed", "bytes", Unit::Bytes),
            ]
        };
        let mut charts = vec![
            Chart {
                title: "Size by level",
                note: "What the server would have written.".to_owned(),
                section: "levels",
                level: None,
                x: &["level"],
                x_unit: None,
                axis: "",
                series: vec![bar("size", "bytes", Unit::Bytes)],
                top: 22,
            },
            Chart {
                title: "Saving against processor time",
                note: "Where the line climbs and the bars do not, a level costs more than it brings."
                    .to_owned(),
                section: "levels",
                level: None,
                x: &["level"],
                x_unit: None,
                axis: "saved",
                series: vec![
                    bar("saved", "saved_percent", Unit::Percent),
                    line("processor time for a GB", "compress_s_per_gb", Unit::Seconds, true),
                ],
                top: 22,
            },
            Chart {
                title: "By size of transaction",
                note: format!("Who profits, and what it adds to a commit{at_level}."),
                section: "sizes",
                level,
                x: &["size_from", "size_to"],
                x_unit: Some(Unit::Bytes),
                axis: "saved",
                series: vec![
                    bar("saved", "saved_percent", Unit::Percent),
                    line("time for a transaction", "us_per_transaction", Unit::Microseconds, true),
                ],
                top: 22,
            },
            Chart {
                title: "By table",
                note: format!("The largest tables, before and after{at_level}."),
                section: "tables",
                level,
                x: &["database", "table"],
                x_unit: None,
                axis: "",
                series: sizes(),
                top: TOP,
            },
        ];
        if self.figures.hours.len() > 1 {
            charts.push(Chart {
                title: "By hour",
                note: format!("Bytes written in each hour, before and after{at_level}."),
                section: "hours",
                level,
                x: &["hour"],
                x_unit: None,
                axis: "",
                series: sizes(),
                top: HOURS,
            });
        }
        if self.whole_files.len() > 1 {
            charts.push(Chart {
                title: "The same files by zstd as a whole",
                note: "What is lost by compressing each transaction alone.".to_owned(),
                section: "whole_file",
                level: None,
                x: &["level"],
                x_unit: None,
                axis: "",
                series: vec![bar("zstd FILE", "bytes", Unit::Bytes)],
                top: 2,
            });
        }
        charts
    }
}

/// A size in the largest unit that fits: 980 bytes, 4.2 kB, 62 MB.
fn size(bytes: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.into_iter().find(|(unit, _)| bytes as f64 >= *unit) {
        Some((unit, name)) => {
            let count = bytes as f64 / unit;
            format!("{count:.*} {name}", usize::from(count < 9.95))
        }
        None => format!("{bytes} bytes"),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_never_nothing() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1.0 kB"),
            (9_960, "10 kB"),
            (443_210, "443 kB"),
            (62_230_624, "62 MB"),
            (1_079_105_544, "1.1 GB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
