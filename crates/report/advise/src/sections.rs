//! Lays the figures out as tables. docs/reference/advise.md describes each column.

use binlogz_figures::{Section, TableCell};
use binlogz_payload::Ineligible;
use binlogz_stats::size_class::SizeClass;

use crate::{Advice, per, saved_percent};

const SUMMARY: &[&str] = &[
    "files",
    "bytes_read",
    "plain_bytes",
    "transactions",
    "eligible_transactions",
    "compressed_transactions",
    "first_commit",
    "last_commit",
    "measured",
    "sampled_transactions",
    "sampled_bytes",
    "seed",
    "unread_bytes",
];

const LEVELS: &[&str] = &[
    "level",
    "bytes",
    "half_width_percent",
    "saved_bytes",
    "saved_percent",
    "compress_s_per_gb",
    "p50_us",
    "p95_us",
    "p99_us",
    "expand_s_per_gb",
];

const WHOLE_FILE: &[&str] = &["level", "measured", "bytes", "saved_percent", "lost_percent"];

const SIZES: &[&str] = &[
    "level",
    "size_from",
    "size_to",
    "transactions",
    "plain_bytes",
    "bytes",
    "saved_percent",
    "us_per_transaction",
];

const TABLES: &[&str] =
    &["level", "database", "table", "transactions", "plain_bytes", "bytes", "saved_percent"];

const HOURS: &[&str] = &["level", "hour", "transactions", "plain_bytes", "bytes", "saved_percent"];

const NOT_COMPRESSED: &[&str] = &["reason", "description", "transactions", "bytes"];

const PER_DAY: &[&str] =
    &["level", "disk_bytes", "disk_saved_bytes", "network_bytes", "network_saved_bytes", "core_percent"];

const RECOMMENDATION: &[&str] = &["verdict", "level", "text"];

const REASONS: &[&str] = &["reason"];

const SECONDS_PER_DAY: f64 = 86_400.0;

const MICROSECONDS: f64 = 1e3;

impl Advice {
    /// All tables. Tables that are also by level have their levels' rows one after the other.
    pub fn sections(&self) -> Vec<Section> {
        vec![
            self.recommendation_section(),
            self.reasons(),
            self.summary(),
            self.levels_section(),
            self.whole_file(),
            self.per_day(),
            self.not_compressed(),
            self.sizes(),
            self.tables(),
            self.hours(),
        ]
    }

    /// The tables for people: those by level and something else are shown at the recommended level only, with the first
    /// `top` tables and hours; empty tables are left out.
    pub fn shown(&self, top: usize) -> Vec<Section> {
        let place = self.recommended_place();
        let level = self.levels.get(place).map(|level| TableCell::from(u64::from(level.get())));
        let mut sections = self.sections();
        sections.retain(|section| {
            !section.rows.is_empty() && !["recommendation", "reasons"].contains(&section.name)
        });
        for section in &mut sections {
            if ["sizes", "tables", "hours"].contains(&section.name) {
                section.rows.retain(|row| row.first() == level.as_ref());
                section.columns = section.columns.get(1..).unwrap_or_default();
                section.rows.iter_mut().for_each(|row| drop(row.remove(0)));
            }
            if section.name == "tables" || section.name == "hours" {
                section.rows.truncate(top);
            }
        }
        sections
    }

    fn places(&self) -> impl Iterator<Item = (usize, TableCell)> {
        self.levels.iter().enumerate().map(|(place, level)| (place, u64::from(level.get()).into()))
    }

    fn summary(&self) -> Section {
        let commits = self.figures.commits;
        let row = vec![
            self.files.into(),
            self.bytes_read.into(),
            self.plain_bytes().into(),
            self.figures.transactions().into(),
            self.figures.eligible().into(),
            self.payloads.into(),
            commits.map(|(first, _)| TableCell::moment(first)).into(),
            commits.map(|(_, last)| TableCell::moment(last)).into(),
            if self.sampled.is_some() { "sampled" } else { "exact" }.into(),
            self.sampled.as_ref().map(|sampled| sampled.units).into(),
            self.sampled.as_ref().map(|sampled| sampled.bytes).into(),
            self.sampled.as_ref().map(|sampled| sampled.seed).into(),
            self.bytes_unread.into(),
        ];
        Section { name: "summary", title: "What was looked at", columns: SUMMARY, rows: vec![row] }
    }

    fn levels_section(&self) -> Section {
        let rows = self.places().map(|(place, level)| {
            let plain = self.plain_bytes();
            let bytes = self.compressed_bytes(place);
            let times = self.commit_times(place);
            let mut cells = vec![
                level,
                bytes.into(),
                self.half_width_percent(place).map(|percent| TableCell::decimal(percent, 2)).into(),
                (plain as i64 - bytes as i64).into(),
                TableCell::decimal(self.saved_percent(place), 2),
                TableCell::decimal(self.compress_seconds_per_gb(place), 3),
            ];
            let quantiles = [0.5, 0.95, 0.99].map(|share| times.quantile(share));
            cells.extend(quantiles.map(|time| TableCell::decimal(time / MICROSECONDS, 1)));
            cells.push(TableCell::decimal(self.expand_seconds_per_gb(place), 3));
            cells
        });
        Section { name: "levels", title: "By level", columns: LEVELS, rows: rows.collect() }
    }

    fn whole_file(&self) -> Section {
        let plain = self.plain_bytes();
        let rows = self.whole_files.iter().map(|whole| {
            let place = self.levels.iter().position(|level| *level == whole.level);
            let lost = place.map(|place| saved_percent(plain, whole.bytes) - self.saved_percent(place));
            vec![
                u64::from(whole.level.get()).into(),
                if whole.exact { "exact" } else { "sampled" }.into(),
                whole.bytes.into(),
                TableCell::decimal(saved_percent(plain, whole.bytes), 2),
                lost.map(|lost| TableCell::decimal(lost, 2)).into(),
            ]
        });
        let title = "The files as a whole, by zstd, and what is lost by compressing each transaction alone";
        Section { name: "whole_file", title, columns: WHOLE_FILE, rows: rows.collect() }
    }

    fn sizes(&self) -> Section {
        let mut rows = Vec::new();
        for (place, level) in self.places() {
            for (number, class) in self.figures.classes.iter().enumerate() {
                let Some(figures) = class.levels.get(place).filter(|_| class.transactions > 0) else {
                    continue;
                };
                let SizeClass { from, to } = SizeClass::numbered(number);
                let slowdown = self.slowdown(place, number);
                let time = per(figures.compress as f64 * slowdown, class.transactions as f64) / MICROSECONDS;
                let mut cells = vec![level.clone(), from.into(), to.into(), class.transactions.into()];
                cells.extend(size_cells(class.plain, figures.size));
                cells.push(TableCell::decimal(time, 1));
                rows.push(cells);
            }
        }
        Section { name: "sizes", title: "By size of transaction", columns: SIZES, rows }
    }

    fn tables(&self) -> Section {
        let tables = self.figures.tables.largest_first();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut rows = Vec::new();
        for (place, level) in self.places() {
            for (name, figures) in &tables {
                let share = figures.shares.get(place).copied().unwrap_or(0);
                let mut cells = vec![
                    level.clone(),
                    name.map(|name| text(&name.database)).into(),
                    name.map(|name| text(&name.table)).into(),
                    figures.transactions.into(),
                ];
                cells.extend(size_cells(figures.total(), share.saturating_add(1 << 15) >> 16));
                rows.push(cells);
            }
        }
        Section { name: "tables", title: "By table", columns: TABLES, rows }
    }

    fn hours(&self) -> Section {
        let mut rows = Vec::new();
        for (place, level) in self.places() {
            for (hour, figures) in &self.figures.hours {
                let plain = figures.left + figures.plain.iter().sum::<u64>();
                let size = figures.left + figures.levels.get(place).copied().unwrap_or(0);
                let mut cells = vec![level.clone(), TableCell::hour(*hour), figures.transactions.into()];
                cells.extend(size_cells(plain, size));
                rows.push(cells);
            }
        }
        Section { name: "hours", title: "By hour", columns: HOURS, rows }
    }

    fn not_compressed(&self) -> Section {
        let left = Ineligible::ALL.into_iter().zip(self.figures.left);
        let rows = left.filter(|(_, left)| left.transactions > 0).map(|(reason, left)| {
            vec![reason.name().into(), reason.to_string().into(), left.transactions.into(), left.bytes.into()]
        });
        Section {
            name: "not_compressed",
            title: "Transactions that would stay as they are",
            columns: NOT_COMPRESSED,
            rows: rows.collect(),
        }
    }

    fn per_day(&self) -> Section {
        let days = self.seconds().map(|seconds| seconds / SECONDS_PER_DAY);
        let rows = self.places().filter_map(|(place, level)| {
            let daily = |bytes: u64| (bytes as f64 / days?).round().to_string().parse::<u64>().ok();
            let plain = daily(self.plain_bytes())?;
            let bytes = daily(self.compressed_bytes(place))?;
            let saved = plain as i64 - bytes as i64;
            let replicas = u64::from(self.replicas);
            Some(vec![
                level,
                bytes.into(),
                saved.into(),
                (bytes * replicas).into(),
                (saved * i64::from(self.replicas)).into(),
                TableCell::decimal(self.core_percent(place)?, 2),
            ])
        });
        Section { name: "per_day", title: "A day at this rate", columns: PER_DAY, rows: rows.collect() }
    }

    fn recommendation_section(&self) -> Section {
        let recommendation = self.recommendation();
        let row = vec![
            recommendation.verdict.name().into(),
            recommendation.level.map(|level| u64::from(level.get())).into(),
            recommendation.to_string().into(),
        ];
        Section { name: "recommendation", title: "Recommendation", columns: RECOMMENDATION, rows: vec![row] }
    }

    fn reasons(&self) -> Section {
        let rows = self.recommendation().reasons.into_iter().map(|reason| vec![reason.into()]);
        Section { name: "reasons", title: "Reasons", columns: REASONS, rows: rows.collect() }
    }
}

/// Bytes before and after, and the saving.
fn size_cells(plain: u64, size: u64) -> [TableCell; 3] {
    [plain.into(), size.into(), TableCell::decimal(saved_percent(plain, size), 2)]
}
