//! Commands that look for rows or times read only the blocks of an archive that can have them, and say the same as over
//! the logs themselves.

use std::fs;

use binlogz_archive::format::Manifest;
use binlogz_archive::{restore, storage};

use crate::common::{Folder, Ran};

const LOGS: [&str; 7] = [
    "binlog.000001",
    "binlog.000002",
    "binlog.000003",
    "binlog.000004",
    "binlog.000005",
    "binlog.000006",
    "binlog.000007",
];

/// A folder with logs and an archive of them, a block for each.
fn archived(kind: &str) -> Folder {
    let folder = Folder::new();
    LOGS.iter().for_each(|name| drop(folder.sample(kind, name)));
    folder.run(["archive", "create", "--to", "arc"].iter().chain(&LOGS)).is_done();
    folder
}

/// Over the logs and over the archive.
#[track_caller]
fn same(folder: &Folder, command: &[&str]) -> usize {
    let of = |logs: &[&str]| folder.run(command.iter().chain(logs));
    let (of_files, of_archive) = (of(&LOGS), of(&["arc"]));
    assert_eq!(of_archive.code, of_files.code, "{command:?}: {}", of_archive.stderr);
    // Each run makes files of its own for LOAD DATA.
    let shown = |ran: &Ran| -> Vec<String> {
        let text = String::from_utf8_lossy(&ran.stdout);
        let lines = text.lines().filter(|line| !line.contains("SQL_LOAD_MB"));
        // JSON lines begin with the log as it was named.
        lines.map(|line| line.replacen(r#"{"log":"arc/"#, r#"{"log":""#, 1)).collect()
    };
    assert!(shown(&of_archive) == shown(&of_files), "{command:?}");
    of_files.stdout.len()
}

#[test]
fn an_archive_says_what_its_logs_say() {
    let mut seed = 88_172_645_463_325_252_u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let tables = ["sbtest.sbtest1", "sbtest.sbtest2", "employees.salaries", "mix.blobs", "no.table"];
    for kind in ["plain", "compressed"] {
        let folder = archived(kind);
        let mut found = 0;
        for _ in 0..7 {
            let table = tables[random(5) as usize];
            let id = random(400);
            let condition = match random(6) {
                0 => format!("@1 = {id}"),
                1 => format!("@1 IN ({id}, '{}')", id + 7),
                2 => format!("@1 BETWEEN {id} AND {}.5", id + 3),
                3 => format!("@1 > {id} AND @2 < 150"),
                4 => format!("@1 = {id} OR @2 = 120"),
                _ => "@1 = 10001".to_owned(),
            };
            let operation = ["insert", "update", "delete"][random(3) as usize];
            found += same(&folder, &["rows", table, "--where", &condition, "--format", "json"]);
            same(&folder, &["undo", "--table", table, "--where", &condition, "--operation", operation]);
        }
        assert!(found > 0, "{kind}: nothing was looked for that is there");
        same(&folder, &["redo", "--stop-datetime", "2026-11-21T04:37:38Z"]);
        for time in ["2026-11-21T04:37:37Z", "2026-11-21T04:37:38Z", "2026-11-21T04:37:39Z"] {
            let dump = ["dump", "--no-defaults", "-v", "--local-load=.", "--start-datetime", time];
            same(&folder, &dump);
        }
        let gtids = format!("--include-gtids=49fc2641-e565-11f1-8b9c-02fc00000001:{}", 1 + random(40));
        let chosen = [
            &["--table=sbtest.sbtest2"][..],
            &["--table=no.table"],
            &["--database=employees"],
            &["--database=no"],
            &["--table=mix.blobs", "--database=mix"],
            &["--start-datetime=2026-11-21T04:37:44Z", "--table=employees.salaries"],
            &["--stop-datetime=2026-11-21T04:37:44Z", "--table=mix.blobs"],
            &["--start-datetime=2026-11-21T04:37:44Z"],
            &[&gtids],
            &[&gtids, "--table=sbtest.sbtest1"],
        ];
        for _ in 0..3 {
            let chosen = chosen[random(10) as usize];
            same(&folder, &[&["dump", "--no-defaults", "--format=jsonl"], chosen].concat());
        }
        // Every transaction's begin and end is in the text.
        same(&folder, &["dump", "--no-defaults", "-v", "--local-load=.", "--table=sbtest.sbtest2"]);
    }
}

/// Where a block is read that isn't needed, its damage is an error.
#[test]
fn blocks_without_the_row_are_not_read() {
    ["plain", "compressed"].into_iter().for_each(needed_blocks_are_read);
}

fn needed_blocks_are_read(kind: &str) {
    let folder = archived(kind);
    let expected = folder.run(["rows", "employees.salaries", "--where", "@1 = 10001", "arc"]);
    assert_eq!(expected.code, Some(0), "{}", expected.stderr);
    let lines = ["dump", "--no-defaults", "--format=jsonl", "--table=employees.salaries", "arc"];
    let expected_lines = folder.run(lines);
    expected_lines.is_done();
    let place = folder.path("arc");
    let archive = storage::at(&place).unwrap();
    let manifest = Manifest::read(&archive).unwrap().unwrap();
    let name = &manifest.files[0].objects[0];
    let object = restore::open(&archive, name).unwrap();
    let contents = object.contents().unwrap().unwrap();
    let path = place.join("objects").join(name);
    let mut bytes = fs::read(&path).unwrap();
    let salaries = contents.tables.iter().position(|table| table.table == b"salaries").unwrap() as u32;
    let (mut needed, mut with_statements): (Vec<u32>, Vec<u32>) = Default::default();
    for (number, block) in (0..).zip(&contents.blocks) {
        let has_rows = block.tables.iter().any(|rows| rows.table == salaries);
        for (is, numbers) in [(has_rows, &mut needed), (block.has_statements, &mut with_statements)] {
            if is {
                numbers.push(number);
                numbers.extend(&object.index.blocks[number as usize].references);
            }
        }
    }
    let mut damaged = 0;
    let mut damage = |is: &dyn Fn(u32) -> bool| {
        for (number, block) in (0..).zip(&object.index.blocks) {
            if !needed.contains(&number) && is(number) {
                bytes[(block.at + block.packed_size / 2) as usize] ^= 1;
                damaged += 1;
            }
        }
        fs::write(&path, &bytes).unwrap();
        damaged
    };
    // Statements tell what columns are called, so those are read, too.
    assert!(damage(&|number| !with_statements.contains(&number)) > 0, "{needed:?}, {with_statements:?}");
    let ran = folder.run(lines);
    ran.is_done();
    assert!(ran.stdout == expected_lines.stdout);
    let text = ["rows", "employees.salaries", "--where", "@1 = 10001", "arc"];
    let ran = folder.run(text);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout == expected.stdout);
    assert!(damage(&|number| with_statements.contains(&number)) >= 3, "{needed:?}");
    let ran = folder.run(text);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("is damaged (checksum differs)"), "{}", ran.stderr);
    let none = folder.run(["rows", "no.table", "arc"]);
    assert_eq!(
        (none.code, none.stderr.as_str()),
        (Some(1), "binlogz: warning: no such row was changed in these logs\n")
    );
    assert_eq!(folder.run(["rows", "sbtest.sbtest1", "arc"]).code, Some(2));
    assert_eq!(folder.run(["archive", "check", "arc"]).code, Some(1));
}
