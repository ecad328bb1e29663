//! `binlogz bench commit`: how many transactions a second a binary log takes, without a server around it.
//!
//! The study of inserts by connections and flush policy, without a server: the engine commits to a log of its
//! own on the user's disk. [`measure`] runs one cell, [`plot`] draws the curves.

mod measure;
mod plot;

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use binlogz_cli_common::Exit;
use binlogz_cli_common::companions::commit::{CommitArgs, CommitLevel};
use binlogz_cli_common::failure::{CommandFailure, Result};
use binlogz_cli_common::format::TableFormat;
use binlogz_cli_common::terminal::SizesArg;
use binlogz_figures::{Section, TableCell as Figure};

use measure::{CommitResults, CommitSettings};

pub(in crate::bench) fn run(args: CommitArgs) -> Result<Exit> {
    let time = args.time;
    let failed = |error| CommandFailure::of(&args.dir.display(), error);
    let bare = measure::bare_loop(&args.dir, args.size, time).map_err(failed)?;
    let mut rows = Vec::new();
    for policy in args.policies.iter().copied() {
        for CommitLevel(level) in args.levels.iter().copied() {
            for committers in args.committers.iter().copied() {
                let cell = CommitSettings { policy, level, committers };
                let measured = measure::run(&args.dir, cell, args.size, time).map_err(failed)?;
                rows.push((cell, measured));
            }
        }
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let written = tell(&args, &bare, &rows, &mut out).and_then(|()| out.flush());
    written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
    Ok(Exit::Done)
}

fn tell(
    args: &CommitArgs,
    bare: &CommitResults,
    rows: &[(CommitSettings, CommitResults)],
    out: &mut impl Write,
) -> io::Result<()> {
    let section = section(bare, rows);
    args.format.writer(SizesArg::default().layout()).write(&[section], out)?;
    match args.format {
        TableFormat::Table => plot::write(rows, out),
        TableFormat::Json | TableFormat::Csv => Ok(()),
    }
}

fn section(bare: &CommitResults, rows: &[(CommitSettings, CommitResults)]) -> Section {
    let bare_row = vec![
        "bare loop".into(),
        Figure::Null,
        1u64.into(),
        whole(bare.commits_per_second()),
        Figure::decimal(1.0, 2),
        Figure::decimal(1.0, 3),
        micros(bare.percentile(0.5)),
        micros(bare.percentile(0.99)),
        micros(bare.max()),
        bare.bytes_per_commit().into(),
        Figure::Null,
    ];
    let row = |(cell, measured): &(CommitSettings, CommitResults)| {
        vec![
            format!("{}", cell.policy).into(),
            cell.compression().into(),
            u64::from(cell.committers).into(),
            whole(measured.commits_per_second()),
            Figure::decimal(measured.commits_per_second() / bare.commits_per_second().max(1e-9), 2),
            Figure::decimal(measured.syncs_per_commit(), 3),
            micros(measured.percentile(0.5)),
            micros(measured.percentile(0.99)),
            micros(measured.max()),
            measured.bytes_per_commit().into(),
            cell.published().map_or(Figure::Null, whole),
        ]
    };
    Section {
        name: "commits",
        title: "Commits to the log alone (published: MySQL's inserts by study 2, on a hard disk with 4 cores)",
        columns: &[
            "flush_log_at_commit",
            "level",
            "committers",
            "commits_per_second",
            "of_bare_loop",
            "syncs_per_commit",
            "p50_us",
            "p99_us",
            "max_us",
            "bytes_per_commit",
            "published",
        ],
        rows: std::iter::once(bare_row).chain(rows.iter().map(row)).collect(),
    }
}

fn micros(time: Duration) -> Figure {
    whole(time.as_secs_f64() * 1e6)
}

fn whole(figure: f64) -> Figure {
    Figure::Number(figure.round() as i128)
}
