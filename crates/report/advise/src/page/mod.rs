//! The advice as a page: the answer, the statements to paste, charts, tables.

mod charts;
mod steps;

use std::io::{self, Write};

use binlogz_figures::{FigureUnit, Page, TableCell, Tile};

use super::Advice;

/// Rows of the charts by table, and of the tables below: more would be unreadable.
const TOP: usize = 12;

impl Advice {
    /// Writes the page; `logs` names the measured logs, `server` the server that they were read from.
    ///
    /// # Errors
    ///
    /// An error from `out`.
    pub fn write_page(&self, logs: &str, server: Option<&str>, out: &mut impl Write) -> io::Result<()> {
        let recommendation = self.recommendation();
        let of_server = server.map_or_else(String::new, |server| format!(" of {server}"));
        Page {
            title: &format!("What compressing the binary log{of_server} would save, and cost"),
            subtitle: logs,
            as_of: None,
            state: None,
            lead: &capitalised(&recommendation.to_string()),
            reasons: &recommendation.reasons,
            steps: &steps::steps(&recommendation, server),
            tiles: &self.tiles(),
            charts: &self.charts(),
            tables: &self.shown(TOP),
            figures: &self.sections(),
        }
        .write(out)
    }

    /// What was measured and what it would cost. The answer above says the saving.
    fn tiles(&self) -> Vec<Tile> {
        let place = self.recommended_place();
        let percent = |value| FigureUnit::Percent.text(value);
        let mut tiles = vec![
            Tile::new(
                FigureUnit::Bytes.text(self.plain_bytes() as f64),
                "of log measured, as if it were plain",
            ),
            Tile::new(TableCell::from(self.figures.transactions()).for_people(), "transactions"),
        ];
        let times = self.commit_times(place);
        let [typical, slow] = [0.5, 0.99].map(|share| FigureUnit::Seconds.text(times.quantile(share) / 1e9));
        tiles.push(Tile::new(format!("+{typical}"), format!("to the typical commit, p99 +{slow}")));
        tiles.extend(
            self.core_percent(place)
                .map(|core| Tile::new(percent(core), "of a core for compressing, at this rate")),
        );
        tiles
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
