//! Advice on every real log: exact sizes equal those of the files that compress writes, with any number of
//! threads.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use binlogz_advise::{Advice, Commits, ExactMeter, SampleEnd, SampleMeter, Sampler};
use binlogz_figures::{Section, TableCell};
use binlogz_flow::measure::measure;
use binlogz_flow::{Input, Rewrite, RewriteSummary, Rewriter};
use binlogz_payload::{CompressOptions, CompressionLevel, ServerGeneration};
use binlogz_testkit::workload::{WorkloadSetting, shape_binlogs};
use binlogz_testkit::{RealBinlog, SampleCompression, real};
use binlogz_testkit::{Tool, require_tool};

fn levels(levels: &[i64]) -> Vec<CompressionLevel> {
    levels.iter().map(|level| CompressionLevel::clamped(*level)).collect()
}

fn exact(log: &RealBinlog, levels: &[CompressionLevel], workers: usize) -> Advice {
    exact_with(log, levels, workers, &Arc::default())
}

fn exact_with(
    log: &RealBinlog,
    levels: &[CompressionLevel],
    workers: usize,
    commits: &Arc<Commits>,
) -> Advice {
    let mut advice = Advice::new(levels, 1, ServerGeneration::default());
    let input = Input::open(&log.path).unwrap();
    let summary = measure(
        input,
        workers,
        &|| false,
        || Ok(ExactMeter::new(levels, ServerGeneration::default(), commits)?),
        |piece| {
            advice.add_piece(&piece);
            Ok(())
        },
        &mut |_| {},
    );
    summary.unwrap_or_else(|error| panic!("{}: {error}", log.name));
    advice
}

fn sampled(log: &RealBinlog, levels: &[CompressionLevel], workers: usize, seed: u64) -> Advice {
    let mut advice = Advice::new(levels, 1, ServerGeneration::default());
    let sampler = Arc::new(Sampler::new(seed, 64 << 20));
    let commits = Arc::new(Commits::default());
    measure(
        Input::open(&log.path).unwrap(),
        workers,
        &|| false,
        || Ok(SampleMeter::new(&sampler, 0, &commits)?),
        |piece| {
            advice.add_piece(&piece);
            Ok(())
        },
        &mut |_| {},
    )
    .unwrap_or_else(|error| panic!("{}: {error}", log.name));
    // A deadline that is never reached: the run ends because the sample is large enough.
    let deadline = Instant::now() + Duration::from_secs(600);
    advice
        .measure_sample(
            &Arc::into_inner(sampler).unwrap().into_drawn(),
            workers,
            until(deadline),
            &mut |_| {},
        )
        .unwrap();
    advice
}

/// Until the sample is large enough, or this moment.
fn until(deadline: Instant) -> SampleEnd {
    SampleEnd { answered: deadline, last: deadline }
}

fn rewritten(log: &RealBinlog, how: Rewrite) -> RewriteSummary {
    Rewriter::new(how).workers(2).run(Input::open(&log.path).unwrap(), std::io::sink()).unwrap()
}

fn section<'a>(sections: &'a [Section], name: &str) -> &'a Section {
    sections.iter().find(|section| section.name == name).unwrap()
}

fn column(section: &Section, name: &str) -> Vec<TableCell> {
    let place = section.columns.iter().position(|column| *column == name).unwrap();
    section.rows.iter().map(|row| row[place].clone()).collect()
}

fn numbers(section: &Section, name: &str) -> Vec<i128> {
    let number = |cell| match cell {
        TableCell::Number(number) => number,
        other => panic!("{name}: {other:?}"),
    };
    column(section, name).into_iter().map(number).collect()
}

/// Everything but times.
fn without_times(sections: Vec<Section>) -> Vec<Section> {
    let mut kept = sections;
    kept.retain(|section| !["recommendation", "reasons"].contains(&section.name));
    for section in &mut kept {
        for (place, column) in section.columns.iter().enumerate() {
            if column.contains("_us")
                || column.starts_with("us_")
                || column.contains("_s_")
                || *column == "core_percent"
            {
                section.rows.iter_mut().for_each(|row| row[place] = TableCell::Null);
            }
        }
    }
    kept
}

#[test]
fn exact_sizes_are_those_of_the_files_that_compress_writes() {
    let mut compressed = 0;
    for log in real::every_binlog() {
        let asked = levels(&[1, 3]);
        let sections = exact(&log, &asked, 2).sections();
        let sizes = numbers(section(&sections, "levels"), "bytes");
        for (level, size) in asked.iter().zip(sizes) {
            let options = CompressOptions { level: *level, ..CompressOptions::default() };
            let summary = rewritten(&log, Rewrite::Recompress(options));
            assert_eq!(size, summary.bytes_written.into(), "{} at level {level}", log.name);
            if rewritten(&log, Rewrite::Expand).tally.changed == 0 {
                let summary = rewritten(&log, Rewrite::Compress(options));
                assert_eq!(size, summary.bytes_written.into(), "{} at level {level}", log.name);
            }
            let transactions = numbers(section(&sections, "summary"), "eligible_transactions");
            assert_eq!(transactions, [summary.tally.changed.into()], "{}", log.name);
            let reasons = section(&sections, "not_compressed");
            let left: Vec<_> =
                column(reasons, "reason").into_iter().zip(numbers(reasons, "transactions")).collect();
            let expected: Vec<_> = summary
                .tally
                .left()
                .map(|(reason, count)| (reason.name().into(), i128::from(count)))
                .collect();
            assert_eq!(left, expected, "{}", log.name);
            compressed += summary.tally.changed;
        }
    }
    assert!(compressed > 1000, "{compressed} transactions were compressed");
}

#[test]
fn what_was_measured_does_not_depend_on_the_number_of_threads() {
    let logs = real::every_binlog();
    let asked = levels(&[1, 3]);
    for log in logs.iter().filter(|log| log.name.contains("plain") || log.name.contains("level3")) {
        let expected = without_times(exact(log, &asked, 1).sections());
        for workers in [2, 5] {
            assert_eq!(without_times(exact(log, &asked, workers).sections()), expected, "{}", log.name);
        }
    }
}

#[test]
fn parts_add_up() {
    for log in real::every_binlog() {
        let sections = exact(&log, &levels(&[3]), 2).sections();
        let summary = section(&sections, "summary");
        let plain = rewritten(&log, Rewrite::Expand).bytes_written;
        let found = numbers(summary, "plain_bytes")[0];
        // The format description that expand takes back is counted as it was read.
        assert!((found - i128::from(plain)).abs() <= 2, "{}: {found}, {plain}", log.name);
        let classes: i128 = numbers(section(&sections, "sizes"), "transactions").iter().sum();
        let left: i128 = numbers(section(&sections, "not_compressed"), "transactions").iter().sum();
        assert_eq!(numbers(summary, "transactions"), [classes + left], "{}", log.name);
        let hours = section(&sections, "hours");
        let [in_hours, in_classes] = [hours, section(&sections, "sizes")]
            .map(|section| numbers(section, "bytes").iter().sum::<i128>());
        let stays: i128 = numbers(section(&sections, "not_compressed"), "bytes").iter().sum();
        assert_eq!(in_hours, in_classes + stays, "{}", log.name);
        let tables = section(&sections, "tables");
        let inside: i128 = numbers(tables, "plain_bytes").iter().sum();
        assert!(inside <= found, "{}: {inside} of {found}", log.name);
    }
}

/// A size's error is within its stated margin, and at most 3 %; a seed gives the same sample with any number
/// of threads.
#[test]
fn a_sample_says_what_all_would() {
    let asked = levels(&[1, 3]);
    let (mut told, mut right, mut partial) = (0, 0, 0);
    for log in real::every_binlog() {
        let truth = exact(&log, &asked, 2).sections();
        let truth = numbers(section(&truth, "levels"), "bytes");
        for seed in [1, 2] {
            let sections = without_times(sampled(&log, &asked, 2, seed).sections());
            if seed == 1 {
                // Twelve workers cut the log in other places.
                for workers in [1, 12] {
                    let others = without_times(sampled(&log, &asked, workers, seed).sections());
                    assert_eq!(sections, others, "{}, {workers} threads", log.name);
                }
            }
            let summary = section(&sections, "summary");
            let all = numbers(summary, "eligible_transactions") == numbers(summary, "sampled_transactions");
            partial += u32::from(!all);
            let found = section(&sections, "levels");
            let half_widths = column(found, "half_width_percent").into_iter().map(|cell| match cell {
                TableCell::Decimal(units, 2) => units as f64 / 100.0,
                other => panic!("{other:?}"),
            });
            for ((bytes, half_width), truth) in
                numbers(found, "bytes").into_iter().zip(half_widths).zip(&truth)
            {
                let error = 100.0 * (bytes - truth).abs() as f64 / *truth as f64;
                assert!(error < 3.0 && half_width <= 3.0, "{}: {error} % off, says {half_width} %", log.name);
                let exact = half_width == 0.0 && all;
                assert!(!exact || bytes == *truth, "{}: {bytes}, expected {truth}", log.name);
                told += 1;
                // Reported figures are rounded.
                right += u32::from(error <= half_width + 0.01);
            }
        }
    }
    assert!(partial >= 8, "only {partial} logs were sampled in part");
    assert!(right * 10 >= told * 9, "{right} of {told} within what they say");
}

/// Wherever the time for reading ends, the interval holds the compressed size of all logs. Nothing is recommended for
/// logs of which a part was not read: that part may be of another kind.
#[test]
fn logs_that_were_not_read_are_in_the_interval() {
    let asked = levels(&[1, 3]);
    let logs = real::every_binlog();
    let logs: Vec<_> = logs.iter().filter(|log| log.name.contains("plain")).take(6).collect();
    let truth: Vec<_> = logs.iter().map(|log| by_level(&exact(log, &asked, 2), "bytes")).collect();
    let truth = [0, 1].map(|level: usize| truth.iter().map(|sizes| sizes[level]).sum::<f64>());
    let (mut partly, mut wholly) = (0, 0);
    for pieces in [0, 1, 2, 3, 5, 8, 13, usize::MAX] {
        let mut advice = Advice::new(&asked, 1, ServerGeneration::default());
        let sampler = Arc::new(Sampler::new(1, 64 << 20));
        let (commits, asked_for) = (Arc::new(Commits::default()), AtomicUsize::new(0));
        for (number, log) in logs.iter().enumerate() {
            let mut of_log = Advice::new(&asked, 1, ServerGeneration::default());
            let summary = measure(
                Input::open(&log.path).unwrap(),
                2,
                &|| asked_for.fetch_add(1, Ordering::Relaxed) >= pieces,
                || Ok(SampleMeter::new(&sampler, number as u64, &commits)?),
                |piece| {
                    of_log.add_piece(&piece);
                    Ok(())
                },
                &mut |_| {},
            )
            .unwrap();
            of_log.leave_out(Some(log.read().len() as u64 - summary.bytes_read));
            advice.add(&of_log);
        }
        let deadline = Instant::now() + Duration::from_secs(600);
        advice
            .measure_sample(&Arc::into_inner(sampler).unwrap().into_drawn(), 2, until(deadline), &mut |_| {})
            .unwrap();
        let sections = advice.sections();
        let unread = numbers(section(&sections, "summary"), "unread_bytes")[0];
        let half_widths = by_level(&advice, "half_width_percent");
        for ((bytes, percent), truth) in by_level(&advice, "bytes").into_iter().zip(half_widths).zip(truth) {
            let off = (bytes - truth).abs();
            // Nothing read at all is off by 100 % of nothing, and said to be off by more.
            let half_width = (percent + 0.01) / 100.0 * bytes.max(1.0);
            assert!(off <= half_width, "{pieces} pieces: {bytes} ± {percent} %, expected {truth}");
        }
        let verdict = column(section(&sections, "recommendation"), "verdict");
        partly += u32::from(unread > 0);
        wholly += u32::from(unread == 0);
        let read = numbers(section(&sections, "summary"), "bytes_read")[0];
        assert!(unread <= read / 10 || verdict == ["cant_tell".into()], "{pieces} pieces: {verdict:?}");
    }
    assert!(partly >= 4 && wholly >= 1, "{partly} runs read a part, {wholly} all");
}

/// The slowdown of commits changes only times, and never makes them shorter.
#[test]
fn commits_take_as_long_as_what_was_measured_or_longer() {
    let asked = levels(&[1, 3]);
    let logs = real::every_binlog();
    for log in logs.iter().filter(|log| log.name.contains("level1")) {
        let commits = Arc::new(Commits::default());
        let mut advice = exact_with(log, &asked, 2, &commits);
        let [before, compressed] = ["compress_s_per_gb", "bytes"].map(|name| by_level(&advice, name));
        advice.measure_commits(&commits, false, Duration::from_millis(20)).unwrap();
        let after = by_level(&advice, "compress_s_per_gb");
        assert!(after.iter().zip(&before).all(|(after, before)| after >= before), "{before:?}, {after:?}");
        assert_eq!(by_level(&advice, "bytes"), compressed, "{}", log.name);
    }
}

fn by_level(advice: &Advice, name: &str) -> Vec<f64> {
    let number = |cell| match cell {
        TableCell::Number(number) => number as f64,
        TableCell::Decimal(units, places) => units as f64 / 10f64.powi(places.into()),
        other => panic!("{other:?}"),
    };
    column(section(&advice.sections(), "levels"), name).into_iter().map(number).collect()
}

/// JSON documents, UUID keys with blobs, tables of 100 columns: exact sizes are the server's own.
#[test]
fn other_shapes_are_measured_as_the_server_writes_them() {
    require_tool!(Tool::Mysql);
    const LEVEL: u32 = 3;
    let asked = levels(&[i64::from(LEVEL)]);
    for shape in shape_binlogs(0.02, &WorkloadSetting::level(LEVEL)).unwrap() {
        let log = RealBinlog {
            name: shape.shape.name().to_owned(),
            path: shape.path,
            compression: SampleCompression::Level(LEVEL),
            relay_log: false,
        };
        let truth = exact(&log, &asked, 2).sections();
        assert_eq!(numbers(section(&truth, "levels"), "bytes"), [i128::from(shape.bytes)], "{}", log.name);
        let summary = section(&truth, "summary");
        assert!(numbers(summary, "eligible_transactions")[0] > 20, "{}", log.name);
        let found = sampled(&log, &asked, 2, 1).sections();
        let found = numbers(section(&found, "levels"), "bytes")[0] as f64;
        assert!((found / shape.bytes as f64 - 1.0).abs() < 0.03, "{}: {found}", log.name);
    }
}
