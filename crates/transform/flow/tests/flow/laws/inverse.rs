//! Law 1: expand undoes compress, to the byte.

use binlogz_flow::Rewrite;
use binlogz_testkit::{Result, SampleCompression, Tool, corpus, mixed, real, require_tool};

use super::support::{compress, compression, expand, options, places, rewritten, run, same};

fn holds(name: &str, log: &[u8], level: u32) {
    let plain = expand(log);
    same(name, "expand of what has no payload", &expand(&plain), &plain);
    let (compressed, summary) = run(places(&plain), compression(level), 2).expect("it was just written");
    same(name, &format!("plain, to level {level} and back"), &expand(&compressed), &plain);
    same(name, &format!("to level {level} and back"), &expand(&compress(log, level)), &plain);
    if summary.tally.changed == 0 {
        same(name, "compress with nothing to compress", &compressed, &plain);
    }
}

#[test]
fn every_real_log_comes_back() {
    for file in real::every_binlog() {
        let log = file.read();
        holds(&file.name, &log, 3);
        if file.compression == SampleCompression::Off {
            same(&file.name, "expand of a plain log", &expand(&log), &log);
        }
    }
}

#[test]
fn the_level_makes_no_difference() {
    for file in corpus::binlogs() {
        // Tens of megabytes take a minute at level 19.
        let large = ["corpus/binlog.000002", "corpus/levels.000002"].contains(&file.name.as_str());
        let levels: &[u32] = if large { &[1] } else { &[1, 9, 19, 22] };
        for &level in levels {
            holds(&file.name, &file.read(), level);
        }
    }
}

#[test]
fn compressing_makes_most_logs_of_the_corpus_smaller() {
    let (mut before, mut after) = (0, 0);
    for file in corpus::samples() {
        let plain = expand(&file.read());
        let (compressed, summary) = run(places(&plain), compression(3), 2).expect("a sample");
        assert!(summary.tally.changed > 0 || plain.len() < 1000, "{}", file.name);
        before += plain.len();
        after += compressed.len();
    }
    assert!(after * 2 < before, "{before} bytes became {after}");
}

#[test]
fn recompressing_is_expanding_and_compressing() {
    for file in corpus::binlogs() {
        let log = file.read();
        let recompressed = rewritten(&log, Rewrite::Recompress(options(5)));
        same(&file.name, "recompress", &recompressed, &compress(&expand(&log), 5));
    }
}

#[test]
fn a_transaction_of_100_mb_comes_back() -> Result<()> {
    require_tool!(Tool::Mysql);
    let file = mixed::big_transaction(SampleCompression::Off)?;
    let log = file.read();
    for level in [1, 3] {
        let (compressed, summary) = run(places(&log), compression(level), 2).expect("a real log");
        assert!(compressed.len() * 5 < log.len());
        assert_eq!(summary.tally.changed, 3);
        same(&file.name, &format!("to level {level} and back"), &expand(&compressed), &log);
    }
    Ok(())
}
