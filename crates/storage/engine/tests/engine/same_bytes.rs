//! Each log of a server goes through the engine under the server's settings, and comes out with mysqld's bytes.

use std::collections::BTreeMap;

use binlogz_testkit::workload::{self, WorkloadSetting};
use binlogz_testkit::{RealBinlog, SampleCompression, real};

use crate::replay::{assert_same, replay, statistics_of};

/// How the files of a run were written, and their bytes.
type Run = (SampleCompression, Vec<Vec<u8>>);

/// Logs of 9.7 that were written under one setting, by run: the files of a run belong together.
fn runs() -> BTreeMap<String, Run> {
    let mut runs = BTreeMap::new();
    let wanted = |file: &RealBinlog| {
        // Relay logs are not written by the commit path; two settings in one log are two sessions' business.
        !file.relay_log && file.compression != SampleCompression::Mixed
    };
    for file in real::every_binlog().into_iter().filter(wanted) {
        // "RUN/source/binlog.000001" belongs to its run, "workloads/SETTING/NAME" is one of its own.
        let run = match file.name.rsplit_once("/binlog.") {
            Some((run, _)) => run.to_owned(),
            None => file.name.clone(),
        };
        let bytes = file.read();
        runs.entry(run).or_insert_with(|| (file.compression, Vec::new())).1.push(bytes);
    }
    runs.extend(scaled_workloads());
    runs
}

/// The five workloads at the scale that BINLOGZ_SCALE gives: scripts/soak/engine.sh asks for 1, the published size.
fn scaled_workloads() -> Vec<(String, Run)> {
    let Some(scale) = std::env::var("BINLOGZ_SCALE").ok().and_then(|scale| scale.parse().ok()) else {
        return Vec::new();
    };
    let settings = [(WorkloadSetting::plain(), SampleCompression::Off)]
        .into_iter()
        .chain([1, 3, 19].map(|level| (WorkloadSetting::level(level), SampleCompression::Level(level))));
    let mut runs = Vec::new();
    for (setting, compression) in settings {
        for binlog in workload::binlogs(scale, &setting).unwrap() {
            let name = format!("scale {scale}, {setting}, {}", binlog.workload.name());
            runs.push((name, (compression, vec![std::fs::read(&binlog.path).unwrap()])));
        }
    }
    runs
}

#[test]
fn a_servers_transactions_give_the_servers_log() {
    let (mut events, mut compressed) = (0, 0);
    for (name, (compression, files)) in runs() {
        let level = match compression {
            SampleCompression::Level(level) => Some(level),
            _ => None,
        };
        let ours = replay(&files, &files, level);
        events += assert_same(&name, &files, &ours.files);
        assert_eq!(ours.statistics, statistics_of(&files), "{name}: statistics");
        if level == Some(3) {
            // By way of the plain log: the transactions as the server would have logged them without compression.
            let plain = replay(&files, &files, None);
            let again = replay(&files, &plain.files[..files.len()], level);
            assert_same(&format!("{name}, from plain"), &files, &again.files);
            compressed += 1;
        }
    }
    println!("{events} events compared, {compressed} logs also by way of plain");
}
