//! The relay checks what it has archived, by a schedule.

use std::fs;
use std::os::unix::fs::FileExt;

use crate::common::Folder;
use crate::common::relay::{Configuration, url};
use binlogz_testkit::{Tool, require_tool};

#[test]
fn a_damaged_object_makes_health_page_metrics_and_status_red_until_it_is_whole() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let mut relay = Configuration::of([url(&source)]).archive().archive_keys("check = \"1s\"").start(&folder);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (body TEXT)").unwrap();
    source.sql("INSERT INTO d.t VALUES (REPEAT(SHA2('one', 512), 300)); FLUSH BINARY LOGS").unwrap();
    relay.has_all_of(&source);
    relay.wait_for("check", |relay| {
        let metrics = relay.get("/metrics").1;
        let is_checked = |line: &str| line.starts_with("binlogz_relay_archive_check_age_seconds ");
        metrics.lines().any(is_checked).then_some(())
    });
    assert_eq!(relay.metric("binlogz_relay_archive_damaged_logs"), 0.0);
    assert_eq!(relay.metric("binlogz_relay_duty_up{duty=\"check\"}"), 1.0);

    let object = folder.segment("arc");
    let whole = fs::read(&object).unwrap();
    let file = fs::File::options().write(true).open(&object).unwrap();
    let at = whole.len() / 2;
    file.write_all_at(&[whole[at] ^ 1], at as u64).unwrap();
    let why = relay.wait_for("red health", |relay| {
        let (code, why) = relay.get("/healthz");
        (code == 503).then_some(why)
    });
    assert!(why.contains("arc is not whole: binlog.000001: "), "{why}");
    assert_eq!(relay.metric("binlogz_relay_archive_damaged_logs"), 1.0);
    assert!(relay.get("/").1.contains("is not whole: binlog.000001: "));
    let shown = folder.run(["relay", "status", &format!("--http={}", relay.http)]);
    let text = shown.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.code == Some(1) && text.contains("1 log damaged or missing"), "{text}");
    let said = relay.said();
    let is_told = |line: &&str| {
        line.contains("\"error\"")
            && line.contains("binlog.000001: ")
            && line.contains("found by checking the archive")
    };
    assert_eq!(said.lines().filter(is_told).count(), 1, "{said}");
    // Whoever asks the archive itself knows it too.
    let listed = folder.run(["archive", "list", "arc"]);
    assert!(listed.text().contains("damaged, 1 problem"), "{}", listed.text());

    file.write_all_at(&whole[at..=at], at as u64).unwrap();
    relay.wait_for("green health", |relay| (relay.get("/healthz").0 == 200).then_some(()));
    // Health is green at once; the line is written when the state is stored.
    relay.wait_for("line", |relay| relay.said().contains("binlog.000001 is whole again").then_some(()));
    assert_eq!(relay.metric("binlogz_relay_archive_damaged_logs"), 0.0);
}
