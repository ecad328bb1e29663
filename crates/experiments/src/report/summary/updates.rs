//! Small and large updates.

use binlogz_figures::{Cell, Chart, Section, Series};

use super::Summary;
use super::figures::Repeats;
use crate::report::published::published;
use crate::results::Results;

const SETTINGS: [&str; 3] = ["off", "level 3", "level 22"];
const STEPS: [&str; 2] = ["one row", "1,001 rows"];

pub(super) fn summary(results: &Results) -> Summary {
    let study = &published().updates;
    let (mut rows, mut plot, mut conclusions) = (Vec::new(), Vec::new(), Vec::new());
    for step in STEPS {
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
                Cell::Number(bytes.round() as i128),
                of_off.map_or(Cell::Null, |percent| Cell::decimal(percent, 1)),
                Cell::decimal(seconds, 3),
                times.map_or(Cell::Null, |times| Cell::decimal(times, 2)),
                repeats.cpu().map_or(Cell::Null, |cpu| Cell::decimal(cpu, 2)),
                known.map_or(Cell::Null, |known| known.bytes.into()),
                known.map_or(Cell::Null, |known| Cell::decimal(known.seconds, 3)),
                known
                    .and_then(|known| known.slip.as_deref())
                    .map_or(Cell::Null, |slip| format!("slip: {slip}").into()),
            ]);
            plot.push(vec![
                step.into(),
                setting.into(),
                Cell::Number(bytes.round() as i128),
                Cell::decimal(seconds, 3),
            ]);
            if setting != "off"
                && let (Some(of_off), Some(times)) = (of_off, times)
            {
                conclusions.push(format!(
                    "Updates of {step} at {setting}: {of_off:.1} % of the bytes without compression, in {times:.2} × the time."
                ));
            }
        }
    }
    conclusions.push(format!("Published figures: {}. {}", study.source, study.note));
    Summary {
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
        plots: vec![Section {
            name: "updates_plot",
            title: "Updates",
            columns: &["updates", "setting", "bytes", "seconds"],
            rows: plot,
        }],
        charts: vec![Chart {
            title: "Updates",
            note: "Bytes and seconds of the same updates; one row each, and 1,001 rows each.".to_owned(),
            section: "updates_plot",
            level: None,
            x: &["updates", "setting"],
            x_unit: None,
            axis: "",
            series: vec![Series::bytes("bytes", "bytes"), Series::seconds()],
            top: 8,
        }],
        conclusions,
    }
}
