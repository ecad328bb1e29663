//! `verify` finds nothing wrong in real logs, and finds the errors in damaged ones.

use std::path::Path;
use std::sync::Arc;

use binlogz_binlog::checksum::crc32;
use binlogz_flow::{Input, LogVerdict, verify};
use binlogz_testkit::corpus;

fn check(bytes: &[u8], workers: usize) -> Result<LogVerdict, String> {
    verify(Input::Places(Arc::new(bytes.to_vec())), workers, &mut |_| {}).map_err(|error| error.to_string())
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab/testkit/corpus/mysql-9.7.4");
    std::fs::read(folder.join(name)).unwrap()
}

#[test]
fn real_logs_have_no_problems() {
    for file in corpus::binlogs().into_iter().chain(corpus::samples()) {
        let bytes = std::fs::read(&file.path).unwrap();
        let verdict = check(&bytes, 2).unwrap();
        assert_eq!(verdict.problems(), [], "{}", file.path.display());
        assert_eq!(verdict.bytes, bytes.len() as u64, "{}", file.path.display());
        assert_eq!(check(&bytes, 1).unwrap().findings, verdict.findings);
    }
}

#[test]
fn the_events_of_payloads_are_counted() {
    // binlog.000002 holds two transactions of 38 MB.
    let verdict = check(&fixture("binlog.000002"), 2).unwrap();
    assert!(verdict.findings.rows > 100, "{:?}", verdict.findings);
    assert!(verdict.findings.payloads > 2);
}

#[test]
fn a_wrong_length_behind_a_right_checksum_is_a_problem() {
    let mut bytes = fixture("binlog.000001");
    // The first GTID event comes after format description and previous GTIDs; its transaction length is the
    // byte after post-header (42) and one timestamp (7).
    let previous = u32::from_le_bytes(bytes[4 + 13..4 + 17].try_into().unwrap()) as usize;
    let gtid = u32::from_le_bytes(bytes[previous + 13..previous + 17].try_into().unwrap()) as usize;
    assert_eq!(bytes[gtid + 4], 33);
    let size = u32::from_le_bytes(bytes[gtid + 9..gtid + 13].try_into().unwrap()) as usize;
    bytes[gtid + 19 + 42 + 7] ^= 1;
    let crc = crc32(&bytes[gtid..gtid + size - 4]);
    bytes[gtid + size - 4..gtid + size].copy_from_slice(&crc.to_le_bytes());
    let verdict = check(&bytes, 2).unwrap();
    let [problem] = verdict.problems() else { panic!("{:?}", verdict.problems()) };
    assert!(
        problem.to_string().starts_with(&format!("at {gtid}: Gtid event: transaction length is ")),
        "{problem}"
    );
}

#[test]
fn a_flipped_bit_is_an_error_with_its_place() {
    let mut bytes = fixture("binlog.000001");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    let error = check(&bytes, 2).unwrap_err();
    assert!(error.starts_with("at "), "{error}");
}
