//! Payloads that another libzstd made: MySQL 8.0.33's, with and without the program that has it.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Folder, Ran};
use binlogz_binlog::event::CompressionType;
use binlogz_testkit::builder::{LogBuilder, PayloadBody, Release, inner_transaction};
use binlogz_testkit::random::Random;
use binlogz_testkit::{Result, Tool, require_tool};
use serde_json::Value;

const LOG: &str = "binlog.000004";

/// binlogz with the program that has libzstd 1.5.0, or without it.
fn binlogz(folder: &Folder, helper: Option<&Path>, args: &[&str]) -> Command {
    let mut command = folder.binlogz(args);
    let none = folder.path("no-such-folder");
    command.env("PATH", helper.map_or(none, |helper| helper.join("bin")));
    command
}

fn succeeds(folder: &Folder, helper: Option<&Path>, args: &[&str]) {
    let ran = binlogz(folder, helper, args).output().unwrap();
    assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// The program with libzstd 1.5.0, built on the first use.
fn helper() -> PathBuf {
    helper_of("1.5.0")
}

fn helper_of(version: &str) -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/get-tool.sh");
    let built = Command::new(script).arg(format!("zstd-{version}")).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    String::from_utf8(built.stdout).unwrap().trim().into()
}

fn manifest(folder: &Folder, archive: &str) -> String {
    String::from_utf8(folder.read(&format!("{archive}/manifest.json"))).unwrap()
}

#[test]
fn payloads_of_libzstd_1_5_0_are_archived_as_their_transactions_and_come_back() {
    let helper = helper();
    let helper = Some(helper.as_path());
    let folder = Folder::with_sample("plain", LOG);
    std::fs::create_dir(folder.path("made")).unwrap();
    let make = ["compress", "--as", "mysql-8.0.33", "--output", "made/", LOG];
    succeeds(&folder, helper, &make);
    let log = folder.read(&format!("made/{LOG}"));
    let made = format!("made/{LOG}");

    let create = ["archive", "create", "--to", "arc", made.as_str()];
    succeeds(&folder, helper, &create);
    let found = manifest(&folder, "arc");
    for line in [
        "\"payload_codec\": \"libzstd 1.5.0, unsized, flushed\"",
        "\"payload_level\": 3",
        "\"payloads_kept\": 0",
    ] {
        assert!(found.contains(line), "{line}: {found}");
    }
    let restore = ["archive", "restore", "--to", "back", "arc"];
    // Without the library: an error that names the program, and nothing half-written.
    let ran = binlogz(&folder, None, &restore).output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("binlogz-zstd-1-5-0 is neither beside binlogz nor on the PATH"), "{stderr}");
    assert!(!folder.path(&format!("back/{LOG}")).exists());
    succeeds(&folder, helper, &restore);
    assert!(folder.read(&format!("back/{LOG}")) == log);

    // Created without it: what the linked library makes too is expanded, the rest stays; both come back.
    let create = ["archive", "create", "--to", "without", made.as_str()];
    succeeds(&folder, None, &create);
    let found = manifest(&folder, "without");
    assert!(
        found.contains("libzstd 1.5.7, unsized, flushed") || found.contains("\"payload_codec\": null"),
        "{found}"
    );
    let restore = ["archive", "restore", "--to", "back-too", "without"];
    succeeds(&folder, None, &restore);
    assert!(folder.read(&format!("back-too/{LOG}")) == log);
}

#[test]
fn advice_for_mysql_8_0_33_has_the_sizes_that_it_would_write() {
    let helper = helper();
    let folder = Folder::with_sample("plain", LOG);
    let make = ["compress", "--as", "mysql-8.0.33", "--output", "made.log", LOG];
    succeeds(&folder, Some(&helper), &make);
    let advice = |helper, more: &[&str]| -> Value {
        let ran =
            binlogz(&folder, helper, &[&["advise", "--exact", "--format=json", LOG], more].concat()).output();
        let ran = Ran::from(ran.unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        serde_json::from_slice(&ran.stdout).unwrap()
    };
    let as_8_0_33 = ["--as", "mysql-8.0.33"];
    let report = advice(Some(&helper), &as_8_0_33);
    let [level] = report["levels"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!(level["level"], 3);
    assert_eq!(level["bytes"], folder.read("made.log").len());
    let text = report["recommendation"][0]["text"].as_str().unwrap();
    assert!(!text.contains("level"), "{text}");
    let reasons = report["reasons"].to_string();
    assert!(reasons.contains("whatever is set") && !reasons.contains("not installed"), "{reasons}");

    // Without the server's libzstd the sizes hardly differ, and the advice says so.
    let other = advice(None, &as_8_0_33);
    assert!(other["reasons"].to_string().contains("binlogz-zstd-1-5-0 is not installed"), "{other}");
    let [exact, near] = [&report, &other].map(|report| report["levels"][0]["bytes"].as_f64().unwrap());
    assert!((exact - near).abs() < exact / 1000.0, "{exact} {near}");
    assert!(advice(None, &[])["levels"].as_array().unwrap().len() > 1);

    // A log of 8.0.33 says so itself.
    let mut log = folder.read(LOG);
    log[25..32].copy_from_slice(b"8.0.33\0");
    folder.put("old.log", &log);
    let ran = folder.run(["advise", "--levels=3,6", "old.log"]);
    let expected = "binlogz: --levels has 6, but this server always compresses at level 3; --as mysql-9.7 predicts what a \
        newer one would write\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), expected));
    let ran = folder.run(["advise", "--as=8.0.33", LOG]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("expected a name such as mysql-8.0.33"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_level_that_the_server_does_not_have_is_refused() {
    let folder = Folder::with_sample("plain", LOG);
    let ran = folder.run(["compress", "--as", "mysql-8.0.33", "--level", "5", "--output", "made/", LOG]);
    let expected = "binlogz: --level is 5, but mysql-8.0.33 always compresses at level 3\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), expected));
}

/// Frames as a helper makes them at level 19 with their content's size, by its protocol (`library/protocol.rs`).
fn frames(helper: &Path, version: &str, contents: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let program = helper.join("bin").join(format!("binlogz-zstd-{}", version.replace('.', "-")));
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut requests, mut replies) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut reply = || {
        let mut front = [0; 5];
        replies.read_exact(&mut front).unwrap();
        let mut bytes = vec![0; u32::from_le_bytes(front[1..].try_into().unwrap()) as usize];
        replies.read_exact(&mut bytes).unwrap();
        assert_eq!(front[0], 0, "{}", String::from_utf8_lossy(&bytes));
        bytes
    };
    assert_eq!(reply(), version.as_bytes());
    let mut ask = |operation: u8, bytes: &[u8]| {
        let size = (bytes.len() as u32).to_le_bytes();
        requests.write_all(&[&[operation], &size[..], bytes].concat()).unwrap();
        reply()
    };
    let mut frame = |content: &Vec<u8>| {
        let begin = [&[19, 0], &(content.len() as u64).to_le_bytes()[..]].concat();
        [ask(1, &begin), ask(2, content), ask(4, &[])].concat()
    };
    let made = contents.iter().map(&mut frame).collect();
    drop((requests, replies));
    child.wait().unwrap();
    made
}

#[test]
#[ignore = "builds three more versions of libzstd: scripts/soak/old-servers.sh"]
fn payloads_that_one_version_of_libzstd_alone_makes_are_archived_and_come_back() {
    const VERSIONS: [&str; 4] = ["1.5.0", "1.5.2", "1.5.5", "1.5.6"];
    let helpers = VERSIONS.map(helper_of);
    let path = std::env::join_paths(helpers.iter().map(|helper| helper.join("bin"))).unwrap();
    // Words of a vocabulary and noise in turn, each transaction of several blocks: there all versions differ, the linked
    // one too.
    let mut random = Random::new(7);
    let words: Vec<String> = (0..300).map(|_| format!("{:x} ", random.below(1 << 24))).collect();
    let mut text = || {
        let mut text = String::new();
        for _ in 0..8 {
            text.extend((0..5000).map(|_| words[random.below(300)].as_str()));
            text.extend((0..20_000).map(|_| char::from(33 + random.below(90) as u8)));
        }
        text
    };
    let contents: Vec<_> = (0..3).map(|_| inner_transaction(&[text().as_bytes()])).collect();
    let made: Vec<_> =
        helpers.iter().zip(VERSIONS).map(|(helper, version)| frames(helper, version, &contents)).collect();
    for (number, version) in VERSIONS.into_iter().enumerate() {
        let others = made.iter().enumerate().filter(|(other, _)| *other != number);
        assert!(others.clone().all(|(_, other)| *other != made[number]), "{version} alone makes these");
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        for (content, frame) in contents.iter().zip(&made[number]) {
            log.payload(&PayloadBody::of(CompressionType::ZSTD, Some(content.len() as u64), frame.clone()));
        }
        let folder = Folder::new();
        folder.put("log.000001", log.bytes());
        for args in [["create", "--to", "arc", "log.000001"], ["restore", "--to", "back", "arc"]] {
            let mut command = folder.binlogz([&["archive"], &args[..]].concat());
            let ran = command.env("PATH", &path).output().unwrap();
            assert!(ran.status.success(), "{version}: {}", String::from_utf8_lossy(&ran.stderr));
        }
        let found = manifest(&folder, "arc");
        for line in [
            format!("\"payload_codec\": \"libzstd {version}\""),
            "\"payload_level\": 19".to_owned(),
            "\"payloads_kept\": 0".to_owned(),
        ] {
            assert!(found.contains(&line), "{line}: {found}");
        }
        assert!(folder.read("back/log.000001") == log.bytes(), "{version}");
    }
}

/// Transactions in the server's log.
const TRANSACTIONS: u32 = 10_000;
/// Levels that are set one after the other; none has an effect.
const LEVELS: [u32; 4] = [1, 3, 10, 19];
const TRANSACTIONS_A_LEVEL: u32 = TRANSACTIONS / LEVELS.len() as u32;

/// Law 2 for MySQL 8.0.33, over everything that the server wrote: small transactions, and some of several zstd blocks.
#[test]
#[ignore = "needs MySQL 8.0.33, a download of 550 MB: scripts/soak/old-servers.sh"]
fn what_mysql_8_0_33_wrote_is_written_again_and_archived_as_its_transactions() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql80);
    let helper = helper();
    let helper = Some(helper.as_path());
    let server = mysql.sandbox().compression(19).start()?;
    let mut random = Random::new(1);
    let mut statements =
        String::from("CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, name TEXT, n DOUBLE);\n");
    for id in 0..TRANSACTIONS {
        if id % TRANSACTIONS_A_LEVEL == 0 {
            let level = LEVELS[(id / TRANSACTIONS_A_LEVEL) as usize];
            writeln!(statements, "SET SESSION binlog_transaction_compression_level_zstd = {level};").unwrap();
        }
        let times = 1 + random.below(40);
        writeln!(statements, "INSERT INTO t VALUES ({id}, REPEAT(MD5({id}), {times}), {id} / 7);").unwrap();
    }
    for _ in 0..5 {
        statements.push_str("UPDATE t SET n = n + 1, name = CONCAT(name, SHA1(id)) WHERE id % 3 = 0;\n");
    }
    statements.push_str("FLUSH LOGS;\n");
    server.sql(&statements)?;
    let folder = Folder::new();
    let log = std::fs::read(server.datadir().join("binlog.000001")).unwrap();
    folder.put("server/binlog.000001", &log);

    succeeds(&folder, helper, &["expand", "--output", "plain.log", "server/binlog.000001"]);
    succeeds(&folder, helper, &["compress", "--as", "mysql-8.0.33", "--output", "again.log", "plain.log"]);
    assert!(folder.read("again.log") == log, "law 2");

    for (archive, from) in [("compressed", "server/binlog.000001"), ("twin", "plain.log")] {
        succeeds(&folder, helper, &["archive", "create", "--to", archive, from]);
    }
    let found = manifest(&folder, "compressed");
    assert!(
        found.contains("libzstd 1.5.0, unsized, flushed") && found.contains("\"payloads_kept\": 0"),
        "{found}"
    );
    let [compressed, twin] =
        ["compressed", "twin"].map(|archive| folder.segment(archive).metadata().unwrap().len());
    println!("{} bytes, archived {compressed}, the twin {twin}", log.len());
    assert!(compressed * 100 <= twin * 105, "{compressed} beside {twin}");
    succeeds(&folder, helper, &["archive", "restore", "--to", "back", "compressed"]);
    assert!(folder.read("back/binlog.000001") == log);
    Ok(())
}
