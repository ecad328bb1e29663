//! Small and large updates.

use binlogz_figures::{FigureUnit, Paint, Section, TableCell};

use super::figures::Repeats;
use super::{ExperimentSummary, bar_row, card, percent_bars, share};
use crate::report::published::published;
use crate::results::Results;

const SETTINGS: [&str; 3] = ["off", "level 3", "level 22"];
const STEPS: [&str; 2] = ["one row", "1,001 rows"];

pub(super) fn summary(results: &Results) -> ExperimentSummary {
    let study = &published().updates;
    let mut rows = Vec::new();
    let mut plot = Vec::new();
    let mut conclusions = Vec::new();
    let mut sizes = Vec::new();
    let mut times_taken = Vec::new();
    let mut headlines = Vec::new();
    for step in STEPS {
        let published_off = study.rows.iter().find(|row| row.updates == step && row.setting == "off");
        let off = Repeats::of(results, "updates", "off", step);
        for setting in SETTINGS {
            let repeats = Repeats::of(results, "updates", setting, step);
            let (Some(bytes), Some(seconds)) = (repeats.bytes(), repeats.seconds()) else { continue };
            let of_off = off.bytes().map(|off| bytes / off * 100.0);
            let times = off.seconds().map(|off| seconds / off);
            let known = study.rows.iter().find(|row| row.updates == step && row.setting == setting);
            rows.push(vec![
                step.into(),
                setting.into(),
                TableCell::Number(bytes.round() as i128),
                of_off.map_or(TableCell::Null, |percent| TableCell::decimal(percent, 1)),
                TableCell::decimal(seconds, 3),
                times.map_or(TableCell::Null, |times| TableCell::decimal(times, 2)),
                repeats.cpu().map_or(TableCell::Null, |cpu| TableCell::decimal(cpu, 2)),
                known.map_or(TableCell::Null, |known| known.bytes.into()),
                known.map_or(TableCell::Null, |known| TableCell::decimal(known.seconds, 3)),
                known
                    .and_then(|known| known.slip.as_deref())
                    .map_or(TableCell::Null, |slip| format!("slip: {slip}").into()),
            ]);
            let label = format!("{step}, {setting}");
            let seconds_of =
                |seconds: Option<f64>, of, series| share(series, seconds, of, FigureUnit::Seconds);
            sizes.push(bar_row(
                &label,
                "",
                [
                    share(0, Some(bytes), off.bytes(), FigureUnit::Bytes),
                    share(
                        1,
                        known.map(|known| known.bytes as f64),
                        published_off.map(|off| off.bytes as f64),
                        FigureUnit::Bytes,
                    ),
                ],
            ));
            times_taken.push(bar_row(
                &label,
                "",
                [
                    seconds_of(Some(seconds), off.seconds(), 0),
                    seconds_of(known.map(|known| known.seconds), published_off.map(|off| off.seconds), 1),
                ],
            ));
            plot.push(vec![
                step.into(),
                setting.into(),
                TableCell::Number(bytes.round() as i128),
                TableCell::decimal(seconds, 3),
            ]);
            if setting != "off"
                && let (Some(of_off), Some(times)) = (of_off, times)
            {
                if step == STEPS[1] {
                    headlines.push(format!(
                        "Updates of {step} at {setting} need {of_off:.0} % of the bytes, in {times:.1} × the time"
                    ));
                }
                conclusions.push(format!(
                    "Updates of {step} at {setting}: {of_off:.1} % of the bytes without compression, in {times:.2} × the time."
                ));
            }
        }
    }
    conclusions.push(format!("Published figures: {}. {}", study.source, study.note));
    ExperimentSummary {
        tables: vec![Section {
            name: "updates",
            title: "Updates: bytes of binary log (all files of a run) and seconds",
            columns: &[
                "updates",
                "setting",
                "bytes",
                "of_off_percent",
                "seconds",
                "times_off",
                "server_cpu_s",
                "published_bytes",
                "published_seconds",
                "note",
            ],
            rows,
        }],
        grids: Vec::new(),
        plots: vec![Section {
            name: "updates_plot",
            title: "Updates",
            columns: &["updates", "setting", "bytes", "seconds"],
            rows: plot,
        }],
        charts: vec![
            card(
                "Updates: size in percent of the log without compression",
                "One row in each statement, and 1,001. The study's log without compression is its last file alone in the \
                 second case, so that its percentages are too high there.",
                percent_bars(&[("here", Paint::First), ("published", Paint::Elsewhere)], sizes),
            ),
            card(
                "Updates: time in percent of that without compression",
                "",
                percent_bars(&[("here", Paint::Second), ("published", Paint::Elsewhere)], times_taken),
            ),
        ],
        headlines,
        conclusions,
    }
}
