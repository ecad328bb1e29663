//! The figures that people are shown first: a table of the levels with what each saves and adds, and what was looked at.

use binlogz_figures::{Section, TableCell, counted, grouped, human_size, utc};

use crate::Advice;

const SUMMARY_LEVELS: &[&str] = &[
    "level",
    "bytes",
    "saved_bytes",
    "saved_percent",
    "half_width_percent",
    "typical_commit_us",
    "slow_commit_us",
    "core_percent",
];

/// Nanoseconds in a microsecond.
const MICROSECOND: f64 = 1e3;

/// The characters of a time to the minute.
const TO_THE_MINUTE: usize = 16;

impl Advice {
    /// The levels beside no compression.
    pub fn levels_summary(&self) -> Section {
        let plain = self.plain_bytes();
        let mut off = vec![TableCell::from("off"), plain.into()];
        off.resize(SUMMARY_LEVELS.len(), TableCell::Null);
        let rows = (0..self.levels.len()).map(|place| {
            let bytes = self.compressed_bytes(place);
            let times = self.commit_times(place);
            let [typical, slow] =
                [0.5, 0.99].map(|share| TableCell::decimal(times.quantile(share) / MICROSECOND, 1));
            let half_width = self.half_width_points(place);
            vec![
                self.levels.get(place).map(ToString::to_string).into(),
                bytes.into(),
                (plain as i64 - bytes as i64).into(),
                TableCell::decimal(self.saved_percent(place), 1),
                (half_width > 0.0).then(|| TableCell::decimal(half_width, 1)).into(),
                typical,
                slow,
                self.core_percent(place).map(|core| TableCell::decimal(core, 2)).into(),
            ]
        });
        let rows = std::iter::once(off).chain(rows).collect();
        let title =
            "What each level saves, and adds to the typical commit and to the second slowest of a hundred";
        Section { name: "levels_summary", title, columns: SUMMARY_LEVELS, rows }
    }

    /// What was looked at, on one line.
    pub fn looked_at(&self) -> String {
        let files = counted(self.files, "files");
        let transactions = counted(self.figures.transactions(), "transactions");
        let time = self.figures.commits.map(|(first, last)| {
            let [first, last] = [first, last].map(utc);
            let [first, last] = [&first, &last].map(|time| time.get(..TO_THE_MINUTE).unwrap_or(time));
            format!(", {first} to {last} UTC")
        });
        let measured = match &self.sampled {
            Some(sampled) if !self.is_exact() => format!("{} of them compressed", grouped(sampled.units)),
            _ => "all compressed".to_owned(),
        };
        let read = human_size(self.bytes_read);
        let time = time.unwrap_or_default();
        format!("Looked at: {files}, {read}, {transactions}{time}, {measured}. More: --details")
    }
}
