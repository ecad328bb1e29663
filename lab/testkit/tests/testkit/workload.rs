//! The five workloads run on a real server and come out with the sizes that their scale promises.

use binlogz_testkit::workload::{self, Workload, WorkloadSetting};
use binlogz_testkit::{Result, Tool, real, require_tool};

#[test]
fn sizes_follow_the_scale_and_compression_shrinks_them() -> Result<()> {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    // Bytes at scale 1 that the public figures were measured with.
    let published =
        [62_228_935, 74_434_532, 76_367_782, 26_190_242, 47_300_242].map(|bytes: u64| bytes / 100);
    let plain = workload::binlogs(real::SMALL_SCALE, &WorkloadSetting::plain())?;
    let compressed = workload::binlogs(real::SMALL_SCALE, &WorkloadSetting::level(3))?;
    assert_eq!(plain.len(), Workload::ALL.len());
    for ((plain, compressed), published) in plain.iter().zip(&compressed).zip(published) {
        let name = plain.workload.name();
        assert!(plain.bytes.abs_diff(published) < published / 100, "{name}: {} bytes", plain.bytes);
        assert!(compressed.bytes < plain.bytes * 9 / 10, "{name}: {} bytes compressed", compressed.bytes);
    }
    Ok(())
}

#[test]
fn every_binlog_comes_under_a_name_of_its_own() {
    let files = real::every_binlog();
    let mut names: Vec<_> = files.iter().map(|file| &file.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), files.len());
    for file in &files {
        assert!(file.read().starts_with(b"\xfebin"), "{}", file.name);
    }
}
