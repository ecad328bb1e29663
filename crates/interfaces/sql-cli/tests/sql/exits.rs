//! Whatever leaves by `--exits` is searched for planted values of every column type: data sets of `export` and what runs print.

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
    fn of(
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

/// Runs over logs of MySQL and MariaDB, with each policy: a folder with the policy `exits.toml`.
fn with_each_log(search: fn(&str, &PlantedLog, &Path)) -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let _ = require_tool!(Tool::Mariadb);
    let mysql = mysql.sandbox().start()?;
    let mariadb = MariadbSandbox::start(&[("binlog-format", "ROW"), ("binlog-annotate-row-events", "ON")])?;
    let document = ["JSON", r#"{ mask = "json", paths = { "$.plan" = "keep", "$.who" = "hash" } }"#];
    // JSON is text in MariaDB.
    let text = ["LONGTEXT", "\"hash\""];
    let notes = "SET GLOBAL binlog_rows_query_log_events = ON";
    for (name, server, settings, json) in [
        ("9.7.4 FULL", &*mysql, format!("{notes}, GLOBAL binlog_row_metadata = FULL"), document),
        ("9.7.4 MINIMAL", &*mysql, format!("{notes}, GLOBAL binlog_row_metadata = MINIMAL"), document),
        ("10.11 FULL", &*mariadb, "SET GLOBAL binlog_row_metadata = FULL".to_owned(), text),
        ("10.11", &*mariadb, "SET GLOBAL binlog_row_metadata = NO_LOG".to_owned(), text),
    ] {
        let planted = PlantedLog::of(name, server, &settings, json)?;
        for (policy, rules) in policies(planted.json) {
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
    with_each_log(search_export)
}

/// A name with a typing error hides nothing: nothing is exported, whether it is a column's or a table's.
#[test]
fn a_policy_that_does_not_fit_exports_nothing() -> Result<()> {
    let server = require_tool!(Tool::Mysql).sandbox().start()?;
    let settings = "SET GLOBAL binlog_row_metadata = FULL";
    let planted = PlantedLog::of("9.7.4", &server, settings, ["JSON", ""])?;
    for (policy, expected) in [
        ("[[table]]\nname = \"shop.everything\"\ncolumns.vv = \"null\"", "shop.everything has no column vv"),
        ("[[table]]\nname = \"shop.everythin\"\ncolumns.v = \"null\"", "no rows of shop.everythin (line 1)"),
        ("[[table]]\nname = \"shop.e*\"\ncolumns.vv = \"null\"", "no rows of column vv of shop.e* (line 3)"),
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
