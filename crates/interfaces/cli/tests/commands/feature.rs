//! Each command when all is well.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use crate::common::help::listed;
use crate::common::{Folder, sample};
use binlogz_testkit::corpus;

#[test]
fn compress_and_expand_keep_file_names_in_a_folder() {
    let folder = Folder::new();
    let originals = ["binlog.000004", "binlog.000009"].map(|name| (name, folder.sample("plain", name)));
    fs::create_dir(folder.path("small")).unwrap();
    fs::create_dir(folder.path("back")).unwrap();
    folder.run(["compress", "--output", "small", "binlog.000004", "binlog.000009"]).is(
        0,
        "\
Compressed
  file           bytes before  bytes after  saved %  transactions  compressed
  binlog.000004      77.0 KiB     34.0 KiB     55.8            45          45
  binlog.000009       7.2 KiB      5.7 KiB     20.4            22          14
  total              84.2 KiB     39.7 KiB     52.8            67          59

Transactions left as they are
  transactions  reason
             3  statements, not rows
             5  no row event
",
        "",
    );
    folder.run(["expand", "--bytes", "--output", "back", "small/binlog.000004", "small/binlog.000009"]).is(
        0,
        "\
Expanded
  file                 bytes before  bytes after  grown %  transactions  expanded
  small/binlog.000004        34,825       78,812    126.3            45        45
  small/binlog.000009         5,857        7,361     25.7            22        14
  total                      40,682       86,173    111.8            67        59
",
        "",
    );
    for (name, original) in originals {
        assert!(folder.read(&format!("back/{name}")) == original, "{name}");
    }
    assert_eq!(folder.names(), ["back", "binlog.000004", "binlog.000009", "small"]);
}

#[test]
fn decompress_is_expand_and_a_file_is_an_output() {
    let folder = Folder::with_sample("compressed", "binlog.000009");
    let ran = folder.run(["decompress", "-o", "plain", "binlog.000009"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(folder.read("plain").len(), 7357);
}

#[test]
fn the_report_is_json_for_machines() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    folder.run(["compress", "--format", "json", "--output", "small", "binlog.000009", "--level=19"]).is(
        0,
        r#"{
  "command": "compress",
  "files": [
    {
      "file": "binlog.000009",
      "output": "small",
      "bytes_read": 7361,
      "bytes_written": 5717,
      "transactions": 22,
      "changed": 14,
      "uncompressed_bytes": 4122,
      "compressed_bytes": 2268,
      "left": {
        "no_rows": 5,
        "not_row_format": 3
      },
      "cut": null,
      "lost": []
    }
  ],
  "failed": [],
  "total": {
    "files": 1,
    "bytes_read": 7361,
    "bytes_written": 5717,
    "transactions": 22,
    "changed": 14,
    "uncompressed_bytes": 4122,
    "compressed_bytes": 2268,
    "left": {
      "no_rows": 5,
      "not_row_format": 3
    }
  }
}
"#,
        "",
    );
}

#[test]
fn the_level_has_an_effect_and_recompress_changes_it() {
    let folder = Folder::with_sample("plain", "binlog.000002");
    let mut sizes = Vec::new();
    for level in ["1", "3", "9", "19", "22"] {
        let output = format!("level{level}");
        let ran = folder.run(["compress", "--level", level, "--output", &output, "binlog.000002"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        sizes.push(folder.read(&output).len());
        let ran = folder.run([
            "compress",
            "--recompress",
            "--level",
            level,
            "--force",
            "--output",
            "again",
            "level1",
        ]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(folder.read("again") == folder.read(&output), "level {level}");
    }
    let distinct: std::collections::BTreeSet<_> = sizes.iter().collect();
    assert!(distinct.len() >= 4 && sizes[0] > sizes[3], "{sizes:?}");
    let ran = folder.run(["compress", "--level", "22", "--output", "left", "level1"]);
    assert!(
        ran.text()
            .ends_with("left as they are\n  transactions  reason\n             1  already compressed\n"),
        "{}",
        ran.text()
    );
    assert!(folder.read("left") == folder.read("level1"));
}

#[test]
fn any_number_of_jobs_gives_the_same_bytes() {
    let folder = Folder::with_sample("plain", "binlog.000001");
    for jobs in ["1", "2", "7"] {
        let ran = folder.run(["compress", "--jobs", jobs, "--output", jobs, "binlog.000001"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(folder.read(jobs) == folder.read("1"));
    }
}

#[test]
fn positions_map_old_places_to_new_ones() {
    let folder = Folder::with_sample("plain", "binlog.000005");
    folder.sample("plain", "binlog.000009");
    fs::create_dir(folder.path("small")).unwrap();
    let ran = folder.run([
        "compress",
        "--positions",
        "map.tsv",
        "--output",
        "small",
        "binlog.000005",
        "binlog.000009",
    ]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let map = String::from_utf8(folder.read("map.tsv")).unwrap();
    let mut lines = map.lines();
    assert_eq!(lines.next(), Some("file\tgtid\told_start\told_end\tnew_start\tnew_end"));
    let lines: Vec<Vec<_>> = lines.map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), 300 + 22);
    for line in lines {
        let [file, gtid, old_start, _, new_start, new_end] = line[..] else { panic!("{line:?}") };
        let row = |file: &str, from: &str| {
            let ran = folder.run(["events", "--format", "tsv", "--limit", "1", "--from", from, file]);
            let text = ran.text().lines().nth(1).expect("a row").to_string();
            text.split('\t').skip(2).map(String::from).collect::<Vec<_>>()
        };
        // 322 transactions, of which every twentieth will do.
        if old_start.parse::<u64>().unwrap() % 20 != 0 {
            continue;
        }
        let small = format!("small/{file}");
        let (old, new) = (row(file, old_start), row(&small, new_start));
        assert_eq!((&old[0], &old[3]), (&new[0], &new[3]));
        assert!(old[3].ends_with(&format!("'{gtid}'")), "{old:?}");
        let next = folder.run(["events", "--format", "tsv", "--limit", "1", "--from", new_end, &small]);
        assert_eq!((next.code, next.stderr.as_str()), (Some(0), ""));
    }
}

#[test]
fn an_output_has_the_permissions_and_the_time_of_its_input() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    let file = fs::File::options().write(true).open(folder.path("binlog.000009")).unwrap();
    file.set_modified(time).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o640)).unwrap();
    folder.run(["compress", "--output", "small", "binlog.000009"]);
    let metadata = fs::metadata(folder.path("small")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o640);
    assert_eq!(metadata.modified().unwrap(), time);
}

#[test]
fn what_holds_rows_is_not_for_everybody() {
    let folder = Folder::new();
    let log = fs::read(corpus::path("binlog.000004")).unwrap();
    folder.put("binlog.000004", &log);
    let mode = |name: &str| fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o7777;
    // A umask may only take more away.
    let check = |name: &str, most: u32| {
        assert_eq!((mode(name) & !most, mode(name) & 0o600), (0, 0o600), "{name}: {:o}", mode(name));
    };
    fs::create_dir(folder.path("load")).unwrap();
    folder.run(["dump", "--local-load=load", "--result-file=text", "binlog.000004"]).is_done();
    folder.run(["dump", "--format=jsonl", "--result-file=lines", "binlog.000004"]).is_done();
    let loads: Vec<_> =
        fs::read_dir(folder.path("load")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!loads.is_empty());
    for name in loads {
        check(&format!("load/{}", name.to_str().unwrap()), 0o600);
    }
    check("text", 0o600);
    check("lines", 0o600);
    // An existing file keeps its mode: somebody wanted it so.
    fs::set_permissions(folder.path("text"), fs::Permissions::from_mode(0o644)).unwrap();
    folder.run(["dump", "--local-load=load", "--result-file=text", "binlog.000004"]).is_done();
    assert_eq!(mode("text"), 0o644);
    // A log made of a pipe has mysqld's mode, of a file that file's.
    folder.run_with(["compress", "--output", "piped", "-"], &log).is_done();
    check("piped", 0o640);
    fs::set_permissions(folder.path("binlog.000004"), fs::Permissions::from_mode(0o600)).unwrap();
    folder.run(["expand", "--output", "expanded", "binlog.000004"]).is_done();
    check("expanded", 0o600);
}

#[test]
fn verify_tells_what_it_checked() {
    let folder = Folder::with_sample("compressed", "binlog.000009");
    folder.put("relay.000012", fs::read(corpus::path("relay.000012")).unwrap());
    folder.run(["verify", "binlog.000009", "relay.000012"]).is(
        0,
        "\
Verified
  file           answer    bytes  events  rows  transactions  compressed
  binlog.000009  ok      5.7 KiB     113    16            22          14
  relay.000012   ok      4.2 KiB      50     7             8           7
",
        "",
    );
    folder.run(["verify", "--format", "json", "binlog.000009"]).is(
        0,
        r#"{
  "files": [
    {
      "file": "binlog.000009",
      "ok": true,
      "error": null,
      "bytes": 5865,
      "events": 113,
      "rows": 16,
      "transactions": 22,
      "payloads": 14,
      "not_decoded": 0,
      "ends_inside_transaction": false,
      "cut": null,
      "problem_count": 0,
      "problems": []
    }
  ]
}
"#,
        "",
    );
}

#[test]
fn events_are_listed_as_a_table() {
    let folder = Folder::with_sample("compressed", "binlog.000009");
    folder.run(["events", "--wide", "--from", "413", "--limit", "4", "binlog.000009"]).is(
        0,
        "  Log_name              Pos  Event_type              Server_id  End_log_pos  Info
  binlog.000009         413  Gtid                            1          492  SET @@SESSION.GTID_NEXT= '49fc2641-e565-11f1-8b9c-02fc00000001:467'
  binlog.000009         492  Transaction_payload             1          722  compression='ZSTD', decompressed_size=399 bytes
  binlog.000009         722  Query                           1          722  XA START X'74776f',X'',1
  binlog.000009         722  Table_map                       1          722  table_id: 168 (mix.xa)
",
        "",
    );
    folder.run(["events", "--from", "413", "--limit", "2", "binlog.000009"]).is(
        0,
        "         Pos  Event_type             End_log_pos  Info
         413  Gtid                           492  SET @@SESSION.GTID_NEXT= '49fc2641-e565-11f1-8b9c-02fc00000001:467'
         492  Transaction_payload            722  compression='ZSTD', decompressed_size=399 bytes
",
        "",
    );
    folder.run(["events", "--format", "json", "--from", "492", "--limit", "2", "binlog.000009"]).is(
        0,
        r#"{"log_name":"binlog.000009","pos":492,"event_type":"Transaction_payload","server_id":1,"end_log_pos":722,"info":"compression='ZSTD', decompressed_size=399 bytes"}
{"log_name":"binlog.000009","pos":722,"event_type":"Query","server_id":1,"end_log_pos":722,"info":"XA START X'74776f',X'',1"}
"#,
        "",
    );
}

#[test]
fn events_are_what_the_server_printed() {
    for name in ["written", "crafted"] {
        let folder = Folder::new();
        let recorded = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../format/binlog/tests/show_events")
            .join(name);
        folder.put("log", fs::read(recorded.with_extension("binlog")).unwrap());
        let ran = folder.run(["events", "--format", "tsv", "log"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let expected = fs::read(recorded.with_extension("tsv")).unwrap();
        let mut rows = ran.stdout.split_inclusive(|byte| *byte == b'\n');
        assert_eq!(rows.next().unwrap(), b"Log_name\tPos\tEvent_type\tServer_id\tEnd_log_pos\tInfo\n");
        for (row, expected) in rows.by_ref().zip(expected.split_inclusive(|byte| *byte == b'\n')) {
            let row = String::from_utf8_lossy(row.strip_prefix(b"log\t").unwrap());
            assert_eq!(row, String::from_utf8_lossy(expected), "{name}");
        }
        assert_eq!(rows.next(), None);
        assert_eq!(
            ran.stdout.iter().filter(|byte| **byte == b'\n').count(),
            1 + expected.iter().filter(|byte| **byte == b'\n').count()
        );
    }
}

#[test]
fn a_log_in_use_is_done_up_to_its_cut_with_a_warning() {
    let folder = Folder::new();
    let mut log = sample("plain", "binlog.000004");
    // The flag IN_USE of the format description, which no checksum covers.
    log[21] |= 1;
    log.truncate(40_000);
    folder.put("live", &log);
    let warning = "binlogz: warning: live at 39808: the log is in use and ends inside an event, of which 192 bytes are \
                   there";
    folder.run(["compress", "--output", "small", "live"]).is(
        0,
        "\
Compressed
  file  bytes before  bytes after  saved %  transactions  compressed
  live      38.9 KiB     17.9 KiB     53.8            23          22

Transactions left as they are
  transactions  reason
             1  cut off at the end of the log
",
        &format!("{warning}; they are left out\n"),
    );
    let ran = folder.run(["verify", "live"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), format!("{warning}\n").as_str()));
    let ran = folder.run(["verify", "--same", "live", "--", "small"]);
    ran.is(0, "same: 23 transactions, 249 events\n", &format!("{warning}; they are not compared\n"));
    let ran = folder.run(["events", "live"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), format!("{warning}\n").as_str()));
}

#[test]
fn salvage_keeps_what_is_whole_and_tells_what_is_not() {
    let folder = Folder::new();
    let mut log = sample("plain", "binlog.000004");
    log[20_000] ^= 1;
    folder.put("damaged", &log);
    folder
        .run(["compress", "--output", "small", "damaged"])
        .fails("damaged at 19636: UpdateRows event: checksum is 0xed18ac24, the bytes give 0xd0a940f8");
    let ran = folder.run(["compress", "--salvage", "--output", "small", "damaged"]);
    ran.is(
        1,
        "\
Compressed
  file     bytes before  bytes after  saved %  transactions  compressed
  damaged      75.3 KiB     33.2 KiB     55.8            44          44
",
        "binlogz: warning: damaged at 19636: UpdateRows event: checksum is 0xed18ac24, the bytes give 0xd0a940f8; \
         the bytes from 19404 to 21150 are left out, with transaction 468dfa6d-e565-11f1-89b6-02fc00000001:36\n",
    );
    folder.run(["verify", "small"]).is(
        0,
        "\
Verified
  file   answer     bytes  events  rows  transactions  compressed
  small  ok      33.2 KiB     531   176            44          44
",
        "",
    );
    let ran =
        folder.run(["compress", "--salvage", "--format", "json", "--force", "--output", "small", "damaged"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.text().contains(
            r#""lost": [
        {
          "start": 19404,
          "end": 21150,
          "damage": 19636,
          "gtid": "468dfa6d-e565-11f1-89b6-02fc00000001:36","#
        ),
        "{}",
        ran.text()
    );
}

#[test]
fn same_logs_are_the_same_and_others_differ_at_their_first_event() {
    let folder = Folder::with_sample("plain", "binlog.000004");
    folder.sample("plain", "binlog.000005");
    fs::create_dir(folder.path("small")).unwrap();
    folder.run(["compress", "--output", "small", "binlog.000004", "binlog.000005"]);
    let joined = [folder.read("small/binlog.000004"), folder.read("binlog.000005")].concat();
    folder.put("joined", joined);
    folder.run(["verify", "--same", "binlog.000004", "binlog.000005", "--", "joined"]).is(
        0,
        "same: 345 transactions, 1,995 events\n",
        "",
    );
    folder.run(["verify", "--same", "small/binlog.000004", "--", "binlog.000005"]).is(
        1,
        "\
different: the GTIDs differ, after 0 equal events
  small/binlog.000004 at 198: Gtid event of transaction 468dfa6d-e565-11f1-89b6-02fc00000001:25, timestamp \
         1795235858, server id 1, flags 0x0000, body of 54 bytes
  binlog.000005 at 198: Gtid event of transaction 468dfa6d-e565-11f1-89b6-02fc00000001:70, timestamp 1795235858, \
         server id 1, flags 0x0000, body of 54 bytes
",
        "",
    );
    let ran = folder.run(["verify", "--same", "--format", "json", "joined", "--", "binlog.000004"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.text().starts_with(
            r#"{
  "same": false,
  "transactions": 45,
  "events": 495,
  "difference": {
    "what": "one side has no more events",
    "found": [
      {
        "file": "joined","#
        ),
        "{}",
        ran.text()
    );
}

#[test]
fn help_and_manual_pages_name_every_command() {
    let folder = Folder::new();
    let commands = ["compress", "expand", "verify", "events"];
    let help = folder.run(["--help"]);
    let man = folder.run(["man"]);
    for command in commands {
        assert!(help.text().contains(&format!("\n  {command} ")), "{}", help.text());
        assert!(man.text().contains(command));
        let page = folder.run(["man", command]);
        assert!(page.text().contains(".SH OPTIONS"), "{}", page.text());
        for shell in ["bash", "zsh", "fish"] {
            assert!(folder.run(["completions", shell]).text().contains(command));
        }
    }
    folder.run(["man", "dance"]).fails("dance: is no command of binlogz");
    folder.run(["man", "relay", "dance"]).fails("dance: is no command of relay");
}

/// Subcommands of separate programs, which may not be built. No list of commands has `sql serve`.
const BELOW_COMPANIONS: [&str; 11] = [
    "sql-serve",
    "bench-commit",
    "bench-space",
    "bench-levels",
    "bench-updates",
    "bench-point-select",
    "bench-insert",
    "bench-network",
    "bench-replicas",
    "bench-all",
    "bench-compare",
];

/// Commands, by the names of their pages, that the help of each lists.
fn pages(folder: &Folder, command: &[&str], pages: &mut Vec<String>) {
    pages.push(format!("{}.1", [&["binlogz"], command].concat().join("-")));
    if ["sql", "export", "bench", "demo"].iter().any(|companion| command == [*companion]) {
        return;
    }
    let help = folder.run([command, &["--help"]].concat());
    // A topic is no command.
    for name in listed(help.text()).iter().filter(|name| *name != "connection") {
        self::pages(folder, &[command, &[name.as_str()]].concat(), pages);
    }
}

#[test]
fn every_command_that_the_help_lists_has_a_manual_page() {
    let folder = Folder::new();
    fs::create_dir(folder.path("man")).unwrap();
    folder.run(["man", "--to", "man"]).is_done();
    let mut expected = Vec::new();
    pages(&folder, &[], &mut expected);
    expected.extend(BELOW_COMPANIONS.map(|name| format!("binlogz-{name}.1")));
    for name in
        ["binlogz-man.1", "binlogz-completions.1", "binlogz-relay-check-config.1", "binlogz-archive-cat.1"]
    {
        assert!(expected.iter().any(|page| page == name), "{expected:?}");
    }
    let entries = fs::read_dir(folder.path("man")).unwrap();
    let mut written: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    written.sort();
    expected.sort();
    assert_eq!(written, expected);
    let page = folder.run(["man", "relay", "run"]);
    assert_eq!(page.text().as_bytes(), folder.read("man/binlogz-relay-run.1"));
    assert!(page.text().contains(".SH SYNOPSIS") && page.text().contains("semi\\-sync"), "{}", page.text());
    for (command, said) in [
        (&["sql"][..], "\\-\\-schema"),
        (&["export"], "\\-\\-partition"),
        (&["bench", "space"], "yes\\-load\\-this\\-server"),
        (&["bench", "compare"], "folder of the first run"),
    ] {
        let page = folder.run([&["man"], command].concat());
        assert!(page.text().contains(said), "{command:?}: {}", page.text());
    }
    folder.run(["man", "--to", "man"]).fails("man/binlogz.1: exists already; --force replaces it");
    folder.run(["man", "--to", "man", "--force"]).is_done();
}

#[test]
fn names_that_others_chose_do_not_write_to_the_terminal() {
    const NAME: &str = "a\u{1b}[2J\u{9b}31m\u{202e}.000009";
    let folder = Folder::new();
    folder.put(NAME, sample("plain", "binlog.000009"));
    folder.put("bad\u{1b}[2J", b"no log");
    fs::create_dir(folder.path("out")).unwrap();
    let mut commands = vec![vec!["verify", NAME], vec!["events", NAME], vec!["advise", NAME]];
    commands.push(vec!["verify", "--same", NAME, "--", "bad\u{1b}[2J"]);
    commands.push(vec!["verify", "--same", NAME, "--", NAME]);
    commands
        .extend(["table", "file", "transaction", "size", "hour"].map(|by| vec!["stats", "--by", by, NAME]));
    commands.push(vec!["compress", "--output", "out", NAME]);
    commands.push(vec!["compress", "--output", "out", NAME]);
    commands.push(vec!["expand", "--force", "--output", "out", NAME]);
    commands.push(vec!["archive", "create", "--to", "arc", NAME]);
    commands.extend(["list", "check"].map(|verb| vec!["archive", verb, "arc"]));
    for command in ["verify", "events", "advise", "stats", "dump"] {
        commands.push(vec![command, "bad\u{1b}[2J"]);
        commands.push(vec![command, "missing\u{1b}[2J"]);
    }
    for command in commands {
        let ran = folder.run(&command);
        for text in [ran.text(), &ran.stderr] {
            let acts = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
            assert_eq!(acts, None, "{command:?}: {}", text.escape_debug());
        }
        assert!(!ran.text().is_empty() || !ran.stderr.is_empty(), "{command:?}");
    }
}

#[test]
fn every_test_that_the_invariants_name_is_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = std::fs::read_to_string(root.join("lab/invariants.md")).unwrap();
    let (mut file, mut count) = (String::new(), 0);
    for name in
        page.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('`').skip(1).step_by(2))
    {
        let Some((path, test)) =
            name.split_once("::").filter(|(path, _)| path.is_empty() || path.ends_with(".rs"))
        else {
            continue;
        };
        if !path.is_empty() {
            file = std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        assert!(file.contains(&format!("fn {test}(")), "{name} is not there");
        count += 1;
    }
    assert!(count > 60, "{count}");
}

/// The walks of ARCHITECTURE.md.
const WALKS: [&str; 7] = [
    "Compress a file",
    "Serve `uncompressed` from a compressed store",
    "Restore one GTID",
    "Print a log with `dump`",
    "Take a DELETE back with `undo`",
    "Ask in SQL",
    "Bring a server forward with `recover`",
];

#[test]
fn every_step_of_the_walks_is_a_file_that_is_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for heading in WALKS {
        let (_, walk) =
            page.split_once(&format!("### {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
        let walk = walk.lines().take_while(|line| !line.starts_with('#'));
        let steps: Vec<_> =
            walk.filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).collect();
        assert!(steps.len() > 5, "{heading}: {} steps", steps.len());
        for step in steps {
            let mut paths =
                step.split('`').skip(1).step_by(2).filter(|name| name.starts_with("crates/")).peekable();
            assert!(paths.peek().is_some(), "{heading}: no file in {step}");
            for path in paths {
                assert!(root.join(path).is_file(), "{heading}: {path} is not there");
            }
        }
    }
}

#[test]
fn a_format_for_people_is_called_text_or_table_in_every_command() {
    let folder = Folder::new();
    let mut reports = 0;
    for command in crate::terminal::commands(&folder).iter().filter(|command| *command != "dump") {
        let with = |args: &[&str]| folder.run(command.split(' ').chain(args.iter().copied()));
        let help = with(&["--help"]);
        let is_report = help.text().lines().any(|line| line.contains("- text:") || line.contains("- table:"));
        if !is_report {
            continue;
        }
        reports += 1;
        for format in ["text", "table", "json"] {
            let told = with(&["--format", format, "--help"]);
            assert!(told.code == Some(0) && told.stderr.is_empty(), "{command} --format {format}: {told:?}");
        }
        assert_eq!(with(&["--format", "nonsense", "--help"]).code, Some(2), "{command}");
    }
    assert!(reports > 14, "{reports}");
    folder.sample("plain", "binlog.000009");
    let [text, table] =
        ["text", "table"].map(|format| folder.run(["stats", "--format", format, "binlog.000009"]));
    text.is_done();
    assert_eq!(text.text(), table.text());
}
