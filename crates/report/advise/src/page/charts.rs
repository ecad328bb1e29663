//! The charts of the advice's page: the bytes saved, the costs, and the tables that profit.

use binlogz_figures::{
    Bar, BarRow, Bars, Card, Chart, ChartAxis, ChartLine, DotRow, Dots, FigureUnit, LineChart, Paint, Series,
    TableCell, counted, human_size,
};
use binlogz_stats::size_class::SizeClass;

use super::TOP;
use crate::{Advice, per, saved_percent};

/// Four weeks of hours.
const HOURS_MAX: usize = 24 * 28;

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

impl Advice {
    pub(super) fn charts(&self) -> Vec<Card> {
        let place = self.recommended_place();
        let mut cards = vec![self.sizes_by_level(), self.processor_by_level(), self.commits_by_level()];
        cards.extend(self.by_size(place));
        cards.extend(self.whole_files_beside(place));
        cards.extend(self.by_table(place));
        cards.extend(self.by_hour(place));
        cards
    }

    /// The sentence about the level that the charts are of.
    fn at_level(&self, place: usize) -> String {
        self.levels.get(place).map_or_else(String::new, |level| format!(" at level {level}"))
    }

    fn label(&self, place: usize) -> String {
        self.levels.get(place).map_or_else(String::new, |level| format!("level {level}"))
    }

    fn sizes_by_level(&self) -> Card {
        let plain = self.plain_bytes() as f64;
        let mut rows = vec![row("off", "", vec![Bar { more: "100 %".to_owned(), ..Bar::new(0, plain) }])];
        for place in 0..self.levels.len() {
            let bytes = self.compressed_bytes(place) as f64;
            let half = self.half_width_percent(place).map(|percent| bytes * percent / 100.0);
            let share = 100.0 * per(bytes, plain);
            let off = half.map_or_else(String::new, |half| format!(" ± {:.1}", 100.0 * per(half, plain)));
            let bar = Bar {
                interval: half.map(|half| (bytes - half, bytes + half)),
                more: format!("{share:.1}{off} %"),
                ..Bar::new(1, bytes)
            };
            rows.push(BarRow {
                is_chosen: place == self.recommended_place(),
                ..row(&self.label(place), "", vec![bar])
            });
        }
        let note = match self.sampled {
            Some(_) => {
                "What the server would write. The bracket says how far a size may be off: it comes from a sample."
            }
            None => "What the server would write, to the byte.",
        };
        let series = vec![
            Series::new("without compression", Paint::Quiet),
            Series::new("with compression", Paint::First),
        ];
        card(
            "Size of the log by level",
            note,
            Chart::Bars(Bars { unit: FigureUnit::Bytes, series, rows, full: 0.0 }),
        )
    }

    fn processor_by_level(&self) -> Card {
        let rows = (0..self.levels.len()).map(|place| {
            let core =
                self.core_percent(place).map(|core| format!("{} of a core", FigureUnit::Percent.text(core)));
            let bar =
                Bar { more: core.unwrap_or_default(), ..Bar::new(0, self.compress_seconds_per_gb(place)) };
            BarRow { is_chosen: place == self.recommended_place(), ..row(&self.label(place), "", vec![bar]) }
        });
        let rows = std::iter::once(row("off", "", vec![Bar::new(0, 0.0)])).chain(rows).collect();
        let series = vec![Series::new("processor time", Paint::Second)];
        card(
            "What a level costs",
            "Processor time for compressing a gigabyte of log. Where this grows and the saving does not, a level costs \
             more than it brings.",
            Chart::Bars(Bars { unit: FigureUnit::Seconds, series, rows, full: 0.0 }),
        )
    }

    fn commits_by_level(&self) -> Card {
        let rows = (0..self.levels.len()).map(|place| {
            let times = self.commit_times(place);
            let values = [0.5, 0.95, 0.99].map(|share| {
                let time = times.quantile(share) / SECOND;
                (time > 0.0).then_some(time)
            });
            DotRow {
                label: self.label(place),
                is_chosen: place == self.recommended_place(),
                values: values.into(),
            }
        });
        let series = [("p50", Paint::First), ("p95", Paint::Second), ("p99", Paint::Fourth)]
            .map(|(label, paint)| Series::new(label, paint))
            .into();
        Card {
            is_wide: true,
            ..card(
                "What it adds to a commit",
                "50, 95 and 99 of 100 transactions take no longer than this. Each line of the scale is ten times the one \
                 before.",
                Chart::Dots(Dots { unit: FigureUnit::Seconds, series, rows: rows.collect() }),
            )
        }
    }

    fn by_size(&self, place: usize) -> Option<Card> {
        let mut rows = Vec::new();
        for (number, class) in self.figures.classes.iter().enumerate() {
            let Some(figures) = class.levels.get(place).filter(|_| class.transactions > 0) else { continue };
            let SizeClass { from, to } = SizeClass::numbered(number);
            let label = match to {
                Some(to) => format!("{} to {}", human_size(from), human_size(to)),
                None => format!("{} and more", human_size(from)),
            };
            let time = per(figures.compress as f64 * self.slowdown(place, number), class.transactions as f64);
            let count = counted(class.transactions, "transactions");
            let detail = format!("{count}, +{} each", FigureUnit::Seconds.text(time / SECOND));
            // A class that would grow has no bar to draw, and its number says so.
            rows.push(row(&label, &detail, vec![Bar::new(0, saved_percent(class.plain, figures.size))]));
        }
        let chart = Bars {
            unit: FigureUnit::Percent,
            series: vec![Series::new("saved", Paint::First)],
            rows,
            full: 100.0,
        };
        let note =
            format!("Who profits{}: the part of their bytes that transactions save.", self.at_level(place));
        (!chart.rows.is_empty()).then(|| card("Saved by size of transaction", &note, Chart::Bars(chart)))
    }

    fn by_table(&self, place: usize) -> Option<Card> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let rows = self.figures.tables.largest_first().into_iter().take(TOP).map(|(name, figures)| {
            let share = figures.shares.get(place).copied().unwrap_or(0);
            let plain = figures.total();
            let bytes = share.saturating_add(1 << 15) >> 16;
            let saved = saved_percent(plain, bytes);
            let name = name.map_or_else(
                || "not of a table".to_owned(),
                |name| format!("{}.{}", text(&name.database), text(&name.table)),
            );
            row(
                &name,
                &format!("saves {saved:.1} %"),
                vec![Bar::new(0, plain as f64), Bar::new(1, bytes as f64)],
            )
        });
        let series = vec![
            Series::new("without compression", Paint::Quiet),
            Series::new("with compression", Paint::First),
        ];
        let chart = Bars { unit: FigureUnit::Bytes, series, rows: rows.collect(), full: 0.0 };
        let note = format!("The largest tables, before and after{}.", self.at_level(place));
        (!chart.rows.is_empty())
            .then(|| Card { is_wide: true, ..card("By table", &note, Chart::Bars(chart)) })
    }

    fn by_hour(&self, place: usize) -> Option<Card> {
        let skipped = self.figures.hours.len().saturating_sub(HOURS_MAX);
        let mut at = Vec::new();
        let mut plain = Vec::new();
        let mut bytes = Vec::new();
        for (hour, figures) in self.figures.hours.iter().skip(skipped) {
            at.push(TableCell::hour(*hour).for_people());
            plain.push(Some((figures.left + figures.plain.iter().sum::<u64>()) as f64));
            let size = figures.left + figures.levels.get(place).copied().unwrap_or(0);
            bytes.push(Some(size as f64));
        }
        if at.len() < 2 {
            return None;
        }
        let lines = vec![
            ChartLine { series: Series::new("without compression", Paint::Quiet), values: plain },
            ChartLine { series: Series::new("with compression", Paint::First), values: bytes },
        ];
        let chart = LineChart {
            unit: FigureUnit::Bytes,
            at: ChartAxis::Names(at),
            lines,
            is_filled: true,
            has_dots: false,
            full: 0.0,
        };
        let note = format!("Bytes written in each hour, before and after{}.", self.at_level(place));
        Some(Card { is_wide: true, ..card("By hour", &note, Chart::Lines(chart)) })
    }

    fn whole_files_beside(&self, recommended: usize) -> Option<Card> {
        let plain = self.plain_bytes();
        let mut rows =
            vec![row("off", "", vec![Bar { more: "100 %".to_owned(), ..Bar::new(0, plain as f64) }])];
        let mut add = |label: String, series, bytes: u64, is_chosen| {
            let more = format!("{:.1} %", 100.0 * per(bytes as f64, plain as f64));
            let bar = Bar { more, ..Bar::new(series, bytes as f64) };
            rows.push(BarRow { is_chosen, ..row(&label, "", vec![bar]) });
        };
        for whole in &self.whole_files {
            if let Some(place) = self.levels.iter().position(|level| *level == whole.level) {
                let label = format!("by transaction, level {}", whole.level);
                add(label, 1, self.compressed_bytes(place), place == recommended);
            }
            add(format!("whole files, zstd -{}", whole.level), 2, whole.bytes, false);
        }
        let series = vec![
            Series::new("without compression", Paint::Quiet),
            Series::new("each transaction alone", Paint::First),
            Series::new("files as a whole", Paint::Third),
        ];
        let chart = Bars { unit: FigureUnit::Bytes, series, rows, full: 0.0 };
        (!self.whole_files.is_empty()).then(|| {
            card(
                "The same files as a whole",
                "What is lost by compressing each transaction alone. binlogz archive packs across transactions.",
                Chart::Bars(chart),
            )
        })
    }
}

fn card(title: &str, note: &str, chart: Chart) -> Card {
    Card { title: title.to_owned(), note: note.to_owned(), is_wide: false, chart }
}

fn row(label: &str, detail: &str, bars: Vec<Bar>) -> BarRow {
    BarRow { label: label.to_owned(), detail: detail.to_owned(), is_chosen: false, bars }
}
