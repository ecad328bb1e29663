//! Real logs of MySQL and MariaDB through policies: what leaves is a log, and has none of the values that may not leave.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_binlog::event::{FormatDescription, PostHeaderLengths, QueryEvent, transaction_length};
use binlogz_binlog::row::{CellContent, RowImage};
use binlogz_binlog::{Boundary, EventReader, EventType, Framing, TransactionBoundaryParser};
use binlogz_exits::{ExitCounts, ExitPolicy, MaskedLogs, TransactionMasker};
use binlogz_flow::{Input, LogContext, Rewrite, Rewriter, RowChanges};
use binlogz_payload::{Spool, SpoolMemory};
use binlogz_schema::{TablesOfLogs, TablesSoFar};

/// Values shorter than this are found by accident.
const NEEDLE_SIZE: usize = 6;
/// Values of the logs that are names as well, or words of statements that leave.
const NAMES: [&[u8]; 1] = [b"SYSTEM"];

fn logs() -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab/testkit/corpus");
    let folders =
        ["cases", "mariadb-10.11", "mysql-9.7.4"].map(|folder| fs::read_dir(corpus.join(folder)).unwrap());
    let mut logs: Vec<_> = folders.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    // The rest is no log, or an encrypted one.
    logs.retain(|path| fs::read(path).unwrap().starts_with(b"\xfebin"));
    // Those with transactions of many megabytes are for laws of compression.
    logs.retain(|path| !["binlog.000002", "levels.000002"].contains(&&*name_of(path)));
    logs.sort();
    assert!(logs.len() > 15, "{logs:?}");
    logs
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn policy(text: &str) -> ExitPolicy {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, "a key of the tests, which is no secret").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let path = folder.path().join("exits.toml");
    fs::write(&path, format!("key_file = \"key\"\n{text}")).unwrap();
    ExitPolicy::read(&path).unwrap()
}

/// The masked form of a log, or why there is none.
fn masked(log: Vec<u8>, text: &str) -> (Result<Vec<u8>, String>, ExitCounts) {
    let exits = MaskedLogs::new(policy(text), TablesOfLogs::forward(None));
    let Input::Stream(mut stream) = exits.log("log", Input::Places(Arc::new(log))).unwrap() else {
        panic!("a stream");
    };
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes).map(|_| bytes).map_err(|error| error.to_string());
    if let Err(error) = &read {
        assert!(!error.contains("broke off"), "{error}");
    }
    (read, exits.counts())
}

/// The log with its payloads expanded.
fn expanded(log: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Rewriter::new(Rewrite::Expand).run(Input::Places(Arc::new(log.to_vec())), &mut bytes).unwrap();
    bytes
}

/// Positions, checksums and lengths of transactions are right; how many transactions it has.
fn check(name: &str, log: &[u8]) -> u64 {
    let mut reader = EventReader::new(log);
    let mut parser = TransactionBoundaryParser::new();
    let (mut transactions, mut told, mut size) = (0, None, 0);
    while let Some((offset, event)) = reader.next_event().unwrap_or_else(|error| panic!("{name}: {error}")) {
        let header = event.header();
        let end = offset + u64::from(header.event_size);
        assert!(
            header.end_log_pos == 0 || u64::from(header.end_log_pos) == end,
            "{name} at {offset}: {header:?}"
        );
        let boundary = parser.feed(header, event.body()).boundary;
        if matches!(boundary, Boundary::Begin | Boundary::Single) {
            (told, size) = (None, 0);
            transactions += 1;
        }
        if event.event_type().is_gtid() {
            told = transaction_length(&event).unwrap();
        }
        size += u64::from(header.event_size);
        if matches!(boundary, Boundary::End) {
            assert!(told.is_none_or(|told| told == size), "{name} at {offset}: {told:?} {size}");
        }
    }
    assert!(!parser.is_open(), "{name}");
    transactions
}

/// Values of rows and statements that are long enough to be found.
fn needles(log: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut needles = BTreeSet::new();
    for change in RowChanges::new(Input::Places(Arc::new(log.to_vec()))) {
        let Ok(change) = change else { break };
        let row = change.row();
        for image in [row.before, row.after].into_iter().flatten() {
            for cell in image.cells() {
                if let CellContent::Value(bytes) = cell.content {
                    needles.insert(bytes.to_vec());
                }
            }
        }
    }
    let plain = expanded(log);
    let mut reader = EventReader::new(plain.as_slice());
    while let Ok(Some((_, event))) = reader.next_event() {
        let statement = match event.event_type() {
            EventType::QUERY => QueryEvent::decode(event.body()).unwrap().statement,
            EventType::ROWS_QUERY | EventType::MARIADB_ANNOTATE_ROWS => event.body(),
            EventType::XA_PREPARE => event.body().get(13..).unwrap(),
            _ => continue,
        };
        let quoted = statement.split(|byte| *byte == b'\'').skip(1).step_by(2);
        needles.extend(quoted.map(<[u8]>::to_vec));
    }
    needles.retain(|needle| {
        // Small numbers are everywhere.
        let told = needle.iter().filter(|byte| !matches!(byte, 0 | 0xff | b' ')).count();
        told >= NEEDLE_SIZE && !NAMES.contains(&needle.as_slice())
    });
    needles.into_iter().map(|needle| needle.get(..needle.len().min(64)).unwrap().to_vec()).collect()
}

/// The beginnings of needles that a log has anywhere.
fn beginnings(bytes: &[u8]) -> HashSet<&[u8]> {
    bytes.windows(NEEDLE_SIZE).collect()
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

const EVERY: &str = "[[table]]\nname = \"*.*\"\n";
/// Columns of most primary keys, which can't be left out.
const KEYS: &str = "columns.id = \"hash\"\ncolumns.a = \"hash\"\n";

/// Policies by which no value of any row may leave.
fn closed_policies() -> [(&'static str, String); 6] {
    [
        ("no tables", format!("{EVERY}leave_out = true")),
        ("no tables by default", "tables = \"leave-out\"".to_owned()),
        ("no columns", format!("{EVERY}{KEYS}other_columns = \"leave-out\"")),
        (
            "hash",
            format!(
                "{EVERY}other_columns = \"hash\"\ncolumns.y = \"leave-out\"\ncolumns.q = \"leave-out\"\ncolumns.r = \"leave-out\""
            ),
        ),
        ("null", format!("{EVERY}{KEYS}other_columns = \"null\"")),
        ("a pattern", format!("{EVERY}{KEYS}columns.\"*\" = \"leave-out\"")),
    ]
}

#[test]
fn what_leaves_is_a_log_without_the_values_that_may_not() {
    let mut refused = BTreeMap::new();
    let mut found = 0;
    for path in logs() {
        let name = name_of(&path);
        let log = fs::read(&path).unwrap();
        let needles = needles(&log);
        found += needles.len();
        for (which, text) in closed_policies() {
            let shown = format!("{name}, {which}");
            let (leaves, counts) = masked(log.clone(), &text);
            let leaves = match leaves {
                Ok(leaves) => leaves,
                Err(why) => {
                    assert!(why.contains("expected") && why.contains("exits.toml line"), "{shown}: {why}");
                    *refused.entry(which).or_insert(0) += 1;
                    continue;
                }
            };
            assert_eq!(check(&shown, &leaves), counts.transactions, "{shown}");
            let begun = beginnings(&leaves);
            let leaks = needles.iter().filter(|needle| begun.contains(&needle[..NEEDLE_SIZE]));
            let leaks: Vec<_> = leaks.filter(|needle| contains(&leaves, needle)).collect();
            let leaks: Vec<_> = leaks.iter().map(|leak| leak.escape_ascii().to_string()).collect();
            assert!(leaks.is_empty(), "{shown}: {leaks:?} {counts:?}");
            assert_eq!(masked(log.clone(), &text).0.unwrap(), leaves, "{shown}");
        }
    }
    println!("{found} values; refused: {refused:?}");
    assert!(found > 100, "{found}");
    assert!(refused.values().sum::<usize>() < 25, "{refused:?}");
}

#[test]
fn tables_that_are_kept_leave_with_all_their_rows() {
    for path in logs() {
        let name = name_of(&path);
        let log = fs::read(&path).unwrap();
        let (leaves, counts) = masked(log.clone(), "");
        let leaves = leaves.unwrap();
        check(&name, &leaves);
        assert_eq!(changes(&leaves), changes(&log), "{name}: {counts:?}");
    }
}

/// A typing error in a name hides nothing, so it is told.
#[test]
fn tables_and_columns_that_are_nowhere_are_told() {
    let (mut tables, mut columns) = (0, 0);
    for path in logs() {
        let log = fs::read(&path).unwrap();
        let Some(change) = RowChanges::new(Input::Places(Arc::new(log.clone()))).find_map(Result::ok) else {
            continue;
        };
        let name = change.table_name();
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'));
        if !is_plain || name.matches('.').count() != 1 {
            continue;
        }
        let rules = format!("[[table]]\nname = \"{name}\"\n[[table]]\nname = \"no.where\"\n");
        let (_, counts) = masked(log.clone(), &rules);
        assert_eq!(counts.unmet_tables, ["no.where (line 5)"], "{name}");
        let (_, counts) = masked(log.clone(), &format!("{rules}columns.a = \"null\""));
        assert_eq!(counts.unmet_masks, ["no.where (line 5)"], "{name}");
        let (leaves, counts) = masked(log.clone(), EVERY);
        assert!(leaves.is_ok() && counts.unmet_tables.is_empty() && counts.unmet_masks.is_empty(), "{name}");
        let (leaves, counts) = masked(log.clone(), &format!("{EVERY}columns.nowhere = \"null\""));
        if leaves.is_ok() && counts.unmasked.is_empty() {
            assert_eq!(counts.unmet_masks, ["column nowhere of *.* (line 4)"], "{name}");
        }
        let rule = format!("[[table]]\nname = \"{name}\"\ncolumns.nowhere");
        let (leaves, counts) =
            masked(log.clone(), &format!("{rule} = {{ mask = \"null\", optional = true }}"));
        tables += usize::from(counts.unmet_tables.is_empty());
        if let Err(why) = leaves {
            // It is renamed.
            assert!(why.contains("expected the same for both names"), "{why}");
            continue;
        }
        // Either the table is known, or its rows are left out.
        let (leaves, counts) = masked(log, &format!("{rule} = \"null\""));
        match leaves {
            Ok(_) => assert!(!counts.unmasked.is_empty(), "{name}"),
            Err(why) => {
                assert!(why.contains("has no column nowhere, expected one of its columns"), "{why}");
                columns += 1;
            }
        }
    }
    assert!(tables > 0 && columns > 0, "{tables} {columns}");
}

/// What a column is called may follow from the logs before: they are masked in their order, or not at all.
#[test]
fn logs_are_masked_after_those_before_them() {
    let log = fs::read(&logs()[0]).unwrap();
    let exits = MaskedLogs::new(policy(""), TablesOfLogs::forward(None));
    let open = |number: usize| exits.log_at(number, "log", Input::Places(Arc::new(log.clone())));
    let read = |input: Input| {
        let Input::Stream(mut stream) = input else { panic!("a stream") };
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    };
    assert!(open(1).unwrap_err().to_string().contains("logs before it"));
    let whole = read(open(0).unwrap());
    assert_eq!(read(open(1).unwrap()), whole);
    // Another reading begins within this one.
    let nested = open(0).unwrap();
    assert_eq!(read(open(2).unwrap()), whole);
    assert_eq!(read(nested), whole);
    assert_eq!(read(open(1).unwrap()), whole);
    assert_eq!(exits.counts().transactions, 3 * check("log", &whole));
    let exits = MaskedLogs::new(policy(""), TablesOfLogs::forward(None));
    let broken = exits.log_at(0, "log", Input::Places(Arc::new(b"no log".to_vec()))).unwrap();
    let Input::Stream(mut broken) = broken else { panic!("a stream") };
    assert!(broken.read_to_end(&mut Vec::new()).is_err());
    assert!(exits.log_at(1, "log", Input::Places(Arc::new(log))).is_err());
}

/// The rows of a log: table, kind and both images.
fn changes(log: &[u8]) -> Vec<String> {
    let changes = RowChanges::new(Input::Places(Arc::new(log.to_vec()))).map_while(Result::ok);
    let shown = |image: Option<RowImage<'_, '_>>| {
        image.map(|image| {
            image.cells().map(|cell| (cell.index, format!("{:?}", cell.content))).collect::<Vec<_>>()
        })
    };
    changes
        .map(|change| {
            let row = change.row();
            format!(
                "{} {:?} {:?} {:?}",
                change.table_name(),
                change.kind,
                shown(row.before),
                shown(row.after)
            )
        })
        .collect()
}

/// By a hash, different values of a column stay different and equal ones equal, in both images.
#[test]
fn hashes_hold_joins() {
    let mut columns = 0;
    for path in logs() {
        let name = name_of(&path);
        let log = fs::read(&path).unwrap();
        let text = format!(
            "{EVERY}other_columns = \"hash\"\ncolumns.y = \"keep\"\ncolumns.r = \"keep\"\ncolumns.q = \"keep\""
        );
        let (leaves, counts) = masked(log.clone(), &text);
        let Ok(leaves) = leaves else { continue };
        if !counts.unmasked.is_empty() {
            continue;
        }
        let mut pairs: BTreeMap<(String, usize), BTreeMap<Vec<u8>, Vec<u8>>> = BTreeMap::new();
        let [own, hashed] = [&log, &leaves]
            .map(|log| RowChanges::new(Input::Places(Arc::new(log.clone()))).map_while(Result::ok));
        for (own, hashed) in own.zip(hashed) {
            assert_eq!((own.table_name(), own.kind), (hashed.table_name(), hashed.kind), "{name}");
            let (of_own, of_hashed) = (own.row(), hashed.row());
            for (image, masked) in [(of_own.before, of_hashed.before), (of_own.after, of_hashed.after)] {
                let (Some(image), Some(masked)) = (image, masked) else { continue };
                for cell in image.cells() {
                    let masked = masked.cell(cell.index).unwrap();
                    match (cell.content, masked.content) {
                        (CellContent::Null, CellContent::Null) => {}
                        (CellContent::Value(own_bytes), CellContent::Value(bytes)) => {
                            masked.value().unwrap();
                            let column = pairs.entry((own.table_name(), cell.index)).or_default();
                            let first = column.entry(own_bytes.to_vec()).or_insert_with(|| bytes.to_vec());
                            assert_eq!(first, bytes, "{name}");
                        }
                        (CellContent::JsonDiffs(_), CellContent::Value(_)) => {}
                        other => panic!("{name}: {other:?}"),
                    }
                }
            }
        }
        for ((table, index), column) in pairs {
            let masked: BTreeSet<_> = column.values().collect();
            // Texts of a few characters have few hashes.
            let is_short = column.values().any(|bytes| bytes.len() < 8) && masked.len() > 100;
            assert!(masked.len() == column.len() || is_short, "{name}: {table} {index}");
            columns += 1;
        }
    }
    assert!(columns > 20, "{columns}");
}

/// Damage is an error or goes through; nothing panics, whatever lengths say. Checksums are taken off, so that it arrives.
#[test]
fn damage_is_no_panic() {
    let text = format!(
        "{EVERY}other_columns = \"hash\"\ncolumns.b = \"leave-out\"\ncolumns.x = {{ mask = \"json\", paths = {{ \"$.a\" = \"hash\" }} }}\ncolumns.y = \"null\""
    );
    let mut read = 0;
    for path in logs() {
        let log = without_checksums(&expanded(&fs::read(&path).unwrap()));
        if log.len() > 8000 {
            continue;
        }
        for place in (130..log.len()).step_by(97) {
            let mut damaged = log.clone();
            damaged[place] ^= 1 << (place % 8);
            read += usize::from(masked(damaged, &text).0.is_ok());
        }
        let cut = log.get(..log.len() * 2 / 3).unwrap();
        let (leaves, _) = masked(cut.to_vec(), &text);
        assert!(leaves.is_ok() || !leaves.unwrap_err().is_empty());
    }
    assert!(read > 0);
}

/// The same log, written by a server with binlog_checksum=NONE.
fn without_checksums(log: &[u8]) -> Vec<u8> {
    let mut plain = log.get(..4).unwrap().to_vec();
    let mut reader = EventReader::new(log);
    let mut has_any = false;
    while let Ok(Some((_, event))) = reader.next_event() {
        if event.event_type() == EventType::FORMAT_DESCRIPTION {
            let description = FormatDescription::decode_frame(&event).unwrap();
            has_any = description.has_checksum();
            let described = FormatDescription {
                checksum_algorithm: binlogz_binlog::ChecksumAlgorithm::NONE,
                ..description
            };
            let crc32 = binlogz_binlog::ChecksumAlgorithm::CRC32;
            plain.extend(binlogz_binlog::frame::encode_event(*event.header(), &described.encode(), crc32));
            continue;
        }
        let none = binlogz_binlog::ChecksumAlgorithm::NONE;
        plain.extend(binlogz_binlog::frame::encode_event(*event.header(), event.body(), none));
    }
    assert!(has_any || !plain.is_empty());
    plain
}

/// The transactions of a log, masked one by one, from this position on: by a masker that goes on, or by another one for each (`anew`).
fn one_by_one(log: &[u8], text: &str, position: u64, anew: bool) -> Result<Vec<u8>, String> {
    let policy = Arc::new(policy(text));
    let mut tables = TablesSoFar::default();
    tables.begin_log(b"log");
    let head = Framing::new().next_frame(&log[4..]).unwrap().unwrap().verify().unwrap();
    let description = FormatDescription::decode_frame(&head).unwrap();
    let mut reader = EventReader::new(log);
    reader.next_event().unwrap();
    let post_header_lengths = PostHeaderLengths::from(&description);
    let context = LogContext { framing: Framing::of(&description), post_header_lengths, relay_log: false };
    let mut masker = TransactionMasker::new(&policy, tables, context, position).unwrap();
    let mut parser = TransactionBoundaryParser::new();
    let (mut masked, mut group, mut begin) = (Vec::new(), Vec::new(), None);
    while let Some((offset, event)) = reader.next_event().unwrap() {
        begin.get_or_insert(offset);
        group.extend_from_slice(event.bytes());
        parser.feed(event.header(), event.body());
        if parser.is_open() {
            continue;
        }
        let spool = Spool::new(&SpoolMemory::new(1 << 20), Vec::new());
        let spool = masker
            .mask(group.as_slice(), begin.take().unwrap(), 0, spool)
            .map_err(|error| error.to_string())?;
        spool.reader(0..spool.size()).read_to_end(&mut masked).unwrap();
        group.clear();
        if anew {
            masker =
                TransactionMasker::new(&policy, masker.tables(), context, position + masked.len() as u64)
                    .unwrap();
        }
    }
    Ok(masked)
}

#[test]
fn transactions_one_by_one_are_those_of_the_log_that_is_masked_whole() {
    let text = "[[table]]\nname = \"*.*\"\noptional = true\nother_columns = \"hash\"";
    let (mut same, mut refused) = (0, 0);
    for path in logs() {
        let log = fs::read(&path).unwrap();
        let descriptions = {
            let mut reader = EventReader::new(log.as_slice());
            let mut count = 0;
            while let Ok(Some((_, event))) = reader.next_event() {
                count += usize::from(event.event_type() == EventType::FORMAT_DESCRIPTION);
            }
            count
        };
        let (whole, counts) = masked(log.clone(), text);
        let Some(whole) = whole.ok().filter(|_| descriptions == 1 && counts.cuts.is_empty()) else {
            continue;
        };
        let head = 4 + u32::from_le_bytes(whole[4 + 9..4 + 13].try_into().unwrap()) as usize;
        for anew in [false, true] {
            let shown = path.display();
            match one_by_one(&log, text, head as u64, anew) {
                Ok(masked) => {
                    assert!(counts.unmasked.is_empty(), "{shown}: {counts:?}");
                    assert!(
                        masked == whole[head..],
                        "{shown}: {} and {} bytes",
                        masked.len(),
                        whole.len() - head
                    );
                    same += 1;
                }
                Err(error) => {
                    assert!(!counts.unmasked.is_empty(), "{shown}: {error}");
                    assert!(error.contains("can't be masked for certain: "), "{shown}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(same > 5 && refused > 1, "{same} {refused}");
}
