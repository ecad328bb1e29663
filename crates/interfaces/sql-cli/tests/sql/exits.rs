//! Whatever leaves by `--exits` is searched for planted values of every column type: data sets of `export`, answers and errors of `sql`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use binlogz_testkit::{MariadbSandbox, Result, SandboxServer, Tool, require_tool};
use datafusion::arrow::ipc::writer::StreamWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{Ran, archive_of, sql};
use crate::export::{files, rows};
use crate::planted::{KEY, assert_clean, contains, needles, planted_log, policies, policy_of_all};

/// A log with planted values.
pub(crate) struct PlantedLog {
    pub(crate) name: &'static str,
    pub(crate) log: PathBuf,
    /// Values of its rows, as the log has them.
    needles: BTreeSet<Vec<u8>>,
    /// What becomes of the column with JSON.
    json: &'static str,
}

impl PlantedLog {
    pub(crate) fn of(
        name: &'static str,
        server: &SandboxServer,
        settings: &str,
        [json_type, json]: [&'static str; 2],
    ) -> Result<Self> {
        let log = planted_log(server, settings, json_type)?;
        let bytes = fs::read(&log).unwrap();
        assert!(contains(&bytes, b"planted"));
        Ok(PlantedLog { name, log, needles: needles(&bytes), json })
    }

    /// Fails if one of the planted values is there.
    #[track_caller]
    pub(crate) fn assert_not_in(&self, what: &str, bytes: &[u8]) {
        assert_clean(what, bytes);
        let leak = self.needles.iter().find(|needle| bytes.windows(needle.len()).any(|at| at == *needle));
        assert_eq!(leak, None, "{what}");
    }
}

/// Runs over logs of MySQL and MariaDB, with each policy or with one for each: a folder has the policy, `exits.toml`.
pub(crate) fn with_each_log(has_each_policy: bool, search: fn(&str, &PlantedLog, &Path)) -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let _ = require_tool!(Tool::Mariadb);
    let mysql = mysql.sandbox().start()?;
    let mariadb = MariadbSandbox::start(&[("binlog-format", "ROW"), ("binlog-annotate-row-events", "ON")])?;
    let document = ["JSON", r#"{ mask = "json", paths = { "$.plan" = "keep", "$.who" = "hash" } }"#];
    // JSON is text in MariaDB.
    let text = ["LONGTEXT", "\"hash\""];
    let notes = "SET GLOBAL binlog_rows_query_log_events = ON";
    let logs = [
        ("9.7.4 FULL", &*mysql, format!("{notes}, GLOBAL binlog_row_metadata = FULL"), document),
        ("9.7.4 MINIMAL", &*mysql, format!("{notes}, GLOBAL binlog_row_metadata = MINIMAL"), document),
        ("10.11 FULL", &*mariadb, "SET GLOBAL binlog_row_metadata = FULL".to_owned(), text),
        ("10.11", &*mariadb, "SET GLOBAL binlog_row_metadata = NO_LOG".to_owned(), text),
    ];
    for (number, (name, server, settings, json)) in logs.into_iter().enumerate() {
        let planted = PlantedLog::of(name, server, &settings, json)?;
        for (place, (policy, rules)) in policies(planted.json).into_iter().enumerate() {
            if !has_each_policy && place != number % 3 {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            put_policy(folder.path(), &policy_of_all(&rules));
            search(&format!("{name} {policy}"), &planted, folder.path());
        }
    }
    Ok(())
}

/// Puts a policy, and its key.
pub(crate) fn put_policy(folder: &Path, policy: &str) {
    fs::write(folder.join("exits.toml"), policy).unwrap();
    let key = folder.join("key");
    fs::write(&key, KEY).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
}

fn export(folder: &Path, to: &str, log: &Path, options: &[&str]) -> Ran {
    let mut command = sql(["export", "--to", to, "--exits", "exits.toml"]);
    command.args(options).arg(log).current_dir(folder).output().unwrap().into()
}

/// The rows of a Parquet file, with their values as Arrow has them.
fn arrow_bytes(path: &Path) -> Vec<u8> {
    let file = File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batches: Vec<_> = reader.map(|batch| batch.unwrap()).collect();
    let mut stream = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| stream.write(batch).unwrap());
    stream.into_inner().unwrap()
}

#[track_caller]
fn assert_masked(what: &str, ran: &Ran) {
    assert!(matches!(ran.code, Some(0 | 1)), "{what}: {ran:?}");
    let told = &ran.error;
    assert!(told.contains(" rows masked") && !told.contains(" 0 rows masked"), "{what}: {told}");
}

/// The files of a folder and those below it.
fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(all_files(&path)) } else { found.push(path) }
    }
    found
}

fn search_export(what: &str, planted: &PlantedLog, folder: &Path) {
    let archive = folder.join("archive");
    archive_of(std::slice::from_ref(&planted.log), &archive);
    for (to, input) in [("of-log", &planted.log), ("of-archive", &archive)] {
        let what = format!("{what} {to}");
        let ran = export(folder, to, input, &[]);
        assert_masked(&what, &ran);
        planted.assert_not_in(&what, ran.out.as_bytes());
        planted.assert_not_in(&what, ran.error.as_bytes());
        let there = files(&folder.join(to));
        assert!(rows(&there).len() > 10, "{what}");
        for path in all_files(&folder.join(to)) {
            planted.assert_not_in(&what, &fs::read(&path).unwrap());
        }
        for path in there {
            planted.assert_not_in(&what, format!("{:?}", rows(std::slice::from_ref(&path))).as_bytes());
            planted.assert_not_in(&what, &arrow_bytes(&path));
        }
        // MySQL's transactions are known by their GTIDs; without them, masked positions don't tell which are new.
        let again = export(folder, to, input, &[]);
        match planted.name.starts_with("9.7") {
            true => assert_eq!(again.out, "nothing is new\n", "{what}: {}", again.error),
            false => {
                let refused = again.failure();
                assert!(
                    refused.contains("was exported before, and has transactions without GTID"),
                    "{refused}"
                );
            }
        }
    }
}

#[test]
fn nothing_planted_is_exported() -> Result<()> {
    with_each_log(true, search_export)
}

/// Statements of which all that they can show is shown: tables, plans, listings, values in errors, tables as they were.
pub(crate) const SHOWING: [&str; 26] = [
    "SELECT * FROM transactions",
    "SELECT * FROM changes",
    "SELECT * FROM events",
    "SELECT * FROM shop.everything",
    "SELECT * FROM shop.orders",
    "SHOW TABLES",
    "DESCRIBE shop.everything",
    "SELECT gtid, count(*) FROM changes GROUP BY gtid",
    "SELECT statement, count(*) FROM transactions GROUP BY statement",
    "EXPLAIN ANALYZE SELECT count(*) FROM changes WHERE operation = 'insert'",
    "SELECT * FROM information_schema.columns",
    "SELECT * FROM information_schema.tables",
    "EXPLAIN SELECT * FROM shop.everything WHERE after.v = 'x'",
    "EXPLAIN ANALYZE SELECT count(*) FROM shop.everything WHERE after.id > 5",
    "SELECT CAST(after.v AS BIGINT) FROM shop.everything",
    "SELECT CAST(after.tx AS DATE) FROM shop.everything",
    "SELECT after.l * after.l * after.l FROM shop.everything",
    "SELECT after.id + 9223372036854775000 FROM shop.everything",
    "SELECT min(after.v), max(after.v), min(after.dt), max(after.i), min(after.id), max(after.id) FROM shop.everything",
    "SELECT a.after, b.before FROM changes a, changes b WHERE a.`key` = b.`key`",
    "SELECT * FROM shop.everything AS OF '2026-01-01 00:00'",
    "SELECT * FROM table_diff('shop', 'everything', '2000-01-01', '2030-01-01')",
    "SELECT * FROM table_changes('shop', 'everything')",
    "SELECT planned FROM shop.everything",
    "SELECT after.nothing FROM shop.everything",
    "SELECT * FROM shop.nothing",
];

/// So many of them, from the first on, succeed whatever a policy leaves of the columns.
const WITHOUT_ERRORS: usize = 12;
/// Conditions from this one on name no column of a table.
pub(crate) const OF_ANY_COLUMNS: usize = 7;

/// Conditions that true values meet, each of which finds rows in unmasked logs with names of columns.
pub(crate) const TRUE_VALUES: [&str; 10] = [
    "shop.everything WHERE after.v = 'planted varchar'",
    "shop.everything WHERE after.i = 987654321",
    "shop.everything WHERE after.dt = '1961-07-23'",
    "shop.everything WHERE after.id = 9876543211",
    "shop.everything WHERE before.id = 9876543212",
    "shop.everything WHERE after.dt BETWEEN '1961-07-01' AND '1961-07-31'",
    "shop.orders WHERE after.parent = 9876543211",
    "changes WHERE after LIKE '%planted%'",
    "changes WHERE `key` LIKE '%9876543211%'",
    "transactions WHERE statement LIKE '%planted%'",
];

/// A statement as the engine's dialect quotes names.
pub(crate) fn quoted(statement: &str) -> String {
    statement.replace('`', "\"")
}

fn ask_masked(folder: &Path, format: &str, statement: &str, input: &Path) -> Ran {
    let mut command = sql(["--exits", "exits.toml", "--format", format, &quoted(statement)]);
    let output = command.arg(input).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), out: text(&output.stdout), error: text(&output.stderr) }
}

fn search_sql(what: &str, planted: &PlantedLog, folder: &Path) {
    let archive = folder.join("archive");
    archive_of(std::slice::from_ref(&planted.log), &archive);
    let input = if what.contains("FULL") { &archive } else { &planted.log };
    let (whole, errors) = SHOWING.split_at(WITHOUT_ERRORS);
    // Values of a column that is left out aren't shown by any error; the served ones are all of them.
    for statement in &errors[2..5] {
        let ran = ask_masked(folder, "json", statement, input);
        planted.assert_not_in(&format!("{what}: {statement}"), ran.out.as_bytes());
        planted.assert_not_in(&format!("{what}: {statement}"), ran.error.as_bytes());
    }
    let file = folder.join("all.sql");
    for (format, statements) in [("json", whole), ("csv", &whole[..4]), ("arrow", &whole[..4])] {
        fs::write(&file, quoted(&statements.join(";\n"))).unwrap();
        let mut command = sql(["--exits", "exits.toml", "--format", format, "--file", "all.sql"]);
        let output = command.arg(input).current_dir(folder).output().unwrap();
        planted.assert_not_in(&format!("{what} {format}"), &output.stdout);
        planted.assert_not_in(&format!("{what} {format}"), &output.stderr);
        assert!(output.stdout.len() > 5000, "{what} {format}: {}", output.stdout.len());
    }
    let counts = TRUE_VALUES.map(|from| format!("SELECT count(*) AS n FROM {from}"));
    let rest = ask_masked(folder, "csv", &counts[OF_ANY_COLUMNS..].join("; "), input);
    assert_eq!(rest.out, "n\n0\n".repeat(counts.len() - OF_ANY_COLUMNS), "{what}: {}", rest.error);
}

#[test]
fn nothing_planted_is_in_answers() -> Result<()> {
    with_each_log(true, search_sql)
}

/// A name with a typing error hides nothing: nothing is exported, whether it is a column's or a table's.
#[test]
fn a_policy_that_does_not_fit_exports_nothing() -> Result<()> {
    let server = require_tool!(Tool::Mysql).sandbox().start()?;
    let settings = "SET GLOBAL binlog_row_metadata = FULL";
    let planted = PlantedLog::of("9.7.4", &server, settings, ["JSON", ""])?;
    for (policy, expected) in [
        (
            "key_file = \"key\"\n[[table]]\nname = \"shop.everything\"\ncolumns.vv = \"null\"",
            "shop.everything has no column vv",
        ),
        (
            "key_file = \"key\"\n[[table]]\nname = \"shop.everythin\"\ncolumns.v = \"null\"",
            "no rows of shop.everythin (line 3)",
        ),
        (
            "key_file = \"key\"\n[[table]]\nname = \"shop.e*\"\ncolumns.vv = \"null\"",
            "no rows of column vv of shop.e* (line 4)",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        put_policy(folder.path(), policy);
        for options in [&[][..], &["--dry-run"]] {
            let refused = export(folder.path(), "lake", &planted.log, options).failure();
            assert!(refused.contains(expected), "{policy}: {refused}");
            let there = folder.path().join("lake");
            assert!(!there.exists() || files(&there).is_empty(), "{policy}");
        }
        let column = policy.replace("\"null\"", "{ mask = \"null\", optional = true }");
        let optional = column.replace("columns.", "optional = true\ncolumns.");
        put_policy(folder.path(), &optional);
        let ran = export(folder.path(), "lake", &planted.log, &["--dry-run"]);
        assert!(ran.out.starts_with("new: "), "{optional}: {ran:?}");
    }
    Ok(())
}
