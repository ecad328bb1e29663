//! Statements that a cluster runs: a scheduler and two executors in this process, the real program as the client.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, SystemTime};

use binlogz_archive::create::{CreateOutcome, Creator};
use binlogz_archive::storage::{self, ArchiveStorage};
use binlogz_archive::{Level, input, merge};
use binlogz_cluster::datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use binlogz_cluster::standalone::Standalone;
use binlogz_cluster::{ClusterClient, LogicalCodec, PhysicalCodec, quoted};
use binlogz_query::engine::statements;
use binlogz_query::print::{RowPrinter, RowsFormat};
use binlogz_query::{Error, Logs, QueryEngine, QueryOptions, Site};
use binlogz_testkit::builder::{LogBuilder, Release, transaction_events};
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::SessionContext;

use crate::common::{Ran, SHAPES, archive_of, root, schema, sql};

/// Some of queries.sql; scripts/soak/cluster.sh runs all of them.
const QUERIES: &str = r#"
SELECT schema, "table", operation, count(*) AS rows FROM changes GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
SELECT gtid, inserted + updated + deleted AS rows, tables FROM transactions ORDER BY rows DESC, gtid LIMIT 5;
SELECT count(*) FROM (SELECT gtid, count(*) AS rows FROM changes GROUP BY gtid) c JOIN transactions t ON t.gtid = c.gtid
  WHERE c.rows <> t.inserted + t.updated + t.deleted;
SELECT operation, count(*), sum(after.salary), min(after.salary), max(before.salary) FROM employees.salaries
  GROUP BY operation ORDER BY operation;
SELECT operation, count(*), min(after.id), max(before.id) FROM sbtest.sbtest1
  WHERE after.id BETWEEN 10 AND 20 OR before.id IN (7, 8, 9, 1000) GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM mix.prefixed WHERE after.a = 'key' OR after.a = 'nobody';
SELECT gtid, rows, sum(rows) OVER (ORDER BY gtid) AS running FROM
  (SELECT gtid, count(*) AS rows FROM changes WHERE schema = 'sbtest' GROUP BY gtid) ORDER BY gtid LIMIT 5;
SELECT hex(CAST(json_value(after, '$.last_name') AS BYTEA)) AS name FROM changes
  WHERE schema = 'employees' AND "table" = 'employees' ORDER BY 1 LIMIT 3;
SELECT count(*) FROM transactions t
  WHERE gtid_in((SELECT max(gtid) FROM transactions WHERE log = 'binlog.000002'), gtid);
SELECT event_type, count(*) FROM events WHERE logged_at > TIMESTAMP '2000-01-01 00:00:00' GROUP BY 1 ORDER BY 1;
SELECT 'salaries' AS name, count(*) FROM employees.salaries
  UNION ALL SELECT 'titles', count(*) FROM employees.titles ORDER BY 1;
"#;

/// Two executors, and the lines that each of them printed.
struct Cluster {
    standalone: Standalone,
    told: [Arc<Mutex<Vec<String>>>; 2],
}

static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    let told: [Arc<Mutex<Vec<String>>>; 2] = Default::default();
    let sites =
        told.clone().map(|told| Site::new(None, move |line| told.lock().unwrap().push(line.to_owned())));
    Cluster { standalone: Standalone::start(sites, 2).unwrap(), told }
});

impl Cluster {
    /// The program as its client.
    fn sql(&self) -> Command {
        sql([
            "--format",
            "csv",
            "--task-size",
            "1",
            "--partitions",
            "2",
            "--cluster",
            &self.standalone.scheduler(),
        ])
    }
}

#[test]
fn a_cluster_gives_the_same() {
    let run = |mut command: Command, input: &[PathBuf]| -> String {
        Ran::from(command.arg("--schema").arg(schema()).arg(QUERIES).args(input).output().unwrap()).ok()
    };
    let here = run(sql(["--format", "csv"]), &SHAPES.plain);
    assert_eq!(run(CLUSTER.sql(), std::slice::from_ref(&SHAPES.archive)), here);
    for told in &CLUSTER.told {
        assert!(told.lock().unwrap().iter().any(|line| line.starts_with("read ")), "{told:?}");
    }
}

/// Databases and tables whose names need quotes.
const QUOTED: [[&str; 2]; 5] = [
    ["Shop", "Orders"],
    ["my-shop", "order items"],
    ["shop", "a\"b`c"],
    ["v1.2", "Price.List"],
    ["SELECT", "2 čaje"],
];

/// A log in which each of these tables gets three rows.
fn quoted_log(path: &Path) {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for [database, table] in QUOTED {
        let mut events = transaction_events(&[b"1", b"2", table.as_bytes()]);
        let (_, body) = &mut events[1];
        let names = b"\x04shop\0\x04item\0";
        let at = body.windows(names.len()).position(|bytes| bytes == names).unwrap();
        let named = |name: &str| [&[u8::try_from(name.len()).unwrap()][..], name.as_bytes(), &[0]].concat();
        body.splice(at..at + names.len(), [named(database), named(table)].concat());
        log.transaction_of(&events);
    }
    std::fs::write(path, log.bytes()).unwrap();
}

#[test]
fn names_that_need_quotes_are_sent() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("binlog.000001");
    quoted_log(&log);
    let mut tables = String::new();
    for [database, table] in QUOTED.map(|names| names.map(|name| name.replace('`', "``"))) {
        tables += &format!("CREATE TABLE `{database}`.`{table}` (v BLOB);\n");
    }
    let schema = folder.path().join("schema.sql");
    std::fs::write(&schema, tables).unwrap();
    let run = |mut command: Command, query: &str| -> Ran {
        command.arg("--schema").arg(&schema).arg(query).arg(&log).output().unwrap().into()
    };
    for query in QUOTED_QUERIES.split_terminator(";\n") {
        let here = run(sql(["--format", "csv"]), query).ok();
        assert!(here.lines().count() > 1, "{query}: {here}");
        let there = run(CLUSTER.sql(), query);
        assert_eq!((there.error.as_str(), there.out.as_str()), ("", here.as_str()), "{query}");
    }
}

/// Tables and aliases; joins, subqueries, groups, windows, sets of rows; names of results that name tables.
const QUOTED_QUERIES: &str = r#"
SELECT after.v AS v, operation FROM "Shop"."Orders" ORDER BY 1;
SELECT count(*), max("Shop"."Orders".gtid), min("Shop"."Orders".key) FROM "Shop"."Orders";
SELECT "Shop"."Orders".after.v AS v, "my-shop"."order items".operation FROM "Shop"."Orders"
  JOIN "my-shop"."order items" ON "Shop"."Orders".after.v = "my-shop"."order items".after.v ORDER BY 1;
SELECT o.after.v AS v, count(i.operation) FROM "v1.2"."Price.List" o
  LEFT JOIN shop."a""b`c" i ON o.after.v = i.after.v AND i.operation = 'insert' GROUP BY 1 ORDER BY 1;
SELECT operation, count(*) FROM "SELECT"."2 čaje" AS "My Tea" JOIN "Shop"."Orders" AS "ORDERS" USING (operation)
  GROUP BY operation;
SELECT after.v AS v FROM "Shop"."Orders" WHERE after.v IN (SELECT after.v FROM "my-shop"."order items") ORDER BY 1;
SELECT count(*) FROM "v1.2"."Price.List" "a.b" WHERE NOT EXISTS
  (SELECT 1 FROM shop."a""b`c" "x y" WHERE "x y".gtid = "a.b".gtid);
SELECT count(*) FROM "Shop"."Orders" WHERE after.v < (SELECT max(after.v) FROM "SELECT"."2 čaje");
WITH "Both Tables" AS (SELECT after.v AS "The V" FROM "Shop"."Orders" UNION ALL SELECT after.v FROM "my-shop"."order items")
  SELECT "Both Tables"."The V" AS "The V, twice", count(*) FROM "Both Tables" GROUP BY 1 ORDER BY 1;
SELECT "A ""B""".after.v AS v, row_number() OVER (PARTITION BY "A ""B""".operation ORDER BY "A ""B""".after.v)
  FROM shop."a""b`c" AS "A ""B""" ORDER BY 2;
SELECT DISTINCT "C D".operation, "C D".changed FROM "my-shop"."order items" "C D" WHERE "C D".before IS NULL;
SELECT "E-F".operation, unnest([1, 2]) AS number FROM "Shop"."Orders" AS "E-F" ORDER BY 2 LIMIT 3;
SELECT "Tables".table_name FROM information_schema.tables AS "Tables" WHERE "Tables".table_schema = 'Shop';
"#;

/// A client whose tasks read parts of the logs of an archive. It divides them now, and plans with that.
fn divided(archive: &Path, temporary: &Path) -> QueryEngine {
    let client =
        ClusterClient { scheduler: CLUSTER.standalone.scheduler(), partition_size: 1, shuffle_partitions: 2 };
    let logs = Logs::new(vec![archive.to_owned()], None, |_| {}).unwrap();
    let logs = logs.with_schema(std::fs::read_to_string(schema()).unwrap()).unwrap();
    let options = QueryOptions { memory: 1 << 30, jobs: 2, temporary: temporary.to_owned() };
    client.engine(logs, &options).unwrap()
}

fn answers(engine: &QueryEngine, queries: &str) -> Result<String, Error> {
    let mut out = Vec::new();
    for statement in statements(queries).unwrap() {
        let mut printer = RowPrinter::new(RowsFormat::Csv, &mut out);
        engine.run(statement, &mut printer)?;
        printer.finish()?;
    }
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn parts_of_logs_give_each_row_once() {
    let folder = tempfile::tempdir().unwrap();
    // Counts, limits, a join, a table's own columns.
    let queries: String = QUERIES.split_inclusive(';').take(4).collect();
    // Logs with payloads: where their blocks begin has to be told.
    let payloads = folder.path().join("payloads");
    archive_of(&SHAPES.compressed, &payloads);
    for (archive, logs) in [(&SHAPES.archive, &SHAPES.plain), (&payloads, &SHAPES.compressed)] {
        let mut here = sql(["--format", "csv", "--schema"]);
        here.arg(schema()).arg(&queries).args(logs);
        let engine = divided(archive, folder.path());
        let there = answers(&engine, &queries).unwrap();
        engine.close();
        assert_eq!(there, Ran::from(here.output().unwrap()).ok(), "{}", archive.display());
    }
    for archive in [&SHAPES.archive, &payloads] {
        let log = archive.join("binlog.000002").display().to_string();
        let told = CLUSTER.told.iter().flat_map(|told| told.lock().unwrap().clone());
        let parts: BTreeSet<_> =
            told.flat_map(|line| line.split(", ").map(str::to_owned).collect::<Vec<_>>()).collect();
        let of_log = |line: &&String| line.contains(&format!("{log} from ")) && line.contains(" to ");
        assert!(parts.iter().filter(of_log).count() > 1, "{log}: {parts:#?}");
    }
}

/// Blocks begin elsewhere after a merge, so parts that were cut before would lack rows, or have them twice.
#[test]
fn an_archive_that_was_packed_anew_since_the_plan_ends_the_query() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    // Each by a run of its own: in objects of their own, which a merge joins.
    SHAPES.plain.iter().for_each(|log| archive_of(std::slice::from_ref(log), &archive));
    let count = "SELECT count(*) FROM changes WHERE key IS NOT NULL";
    let before = divided(&archive, folder.path());
    let expected = answers(&before, count).unwrap();

    let options =
        merge::MergeOptions { level: Level::Fast, workers: 1, grace: Duration::ZERO, now: SystemTime::now() };
    let merged = merge::merge(&storage::at(&archive).unwrap(), options, &mut |_| {}).unwrap();
    assert!(merged.before.len() > merged.after.len(), "{merged:?}");
    input::forget(&archive);
    let error = answers(&before, count).unwrap_err().to_string();
    before.close();
    let log = archive.join("binlog.0000").display().to_string();
    assert!(error.contains(&log), "{error}");
    assert!(error.ends_with("was packed anew since the query was planned: repeat the query"), "{error}");

    let after = divided(&archive, folder.path());
    assert_eq!(answers(&after, count).unwrap(), expected);
    after.close();
}

#[test]
fn a_cluster_says_what_it_cannot_read() {
    let failure =
        |input: &str| Ran::from(CLUSTER.sql().args(["SELECT 1", input]).output().unwrap()).failure();
    assert_eq!(
        failure("-"),
        "standard input: a pipe, which executors can't read; expected a file, an archive, or a log in one"
    );
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("binlog.000010");
    std::fs::write(&damaged, "no log").unwrap();
    let failed = CLUSTER.sql().arg("SELECT count(*) FROM changes").arg(&damaged).output().unwrap();
    let line = Ran::from(failed).failure();
    assert!(line.contains(&format!("{}", damaged.display())), "{line}");
    assert!(line.starts_with(&format!("{}: not a binary log", damaged.display())), "{line}");
    let nobody =
        sql(["--cluster", "127.0.0.1:1", "SELECT count(*) FROM changes"]).arg(&SHAPES.plain[1]).output();
    let line = Ran::from(nobody.unwrap()).failure();
    assert!(line.starts_with("scheduler 127.0.0.1:1: Connection refused"), "{line}");
}

/// Texts that must not be in a plan: a password, and the key of the archive.
const SECRETS: [&str; 2] = [
    "VerySecretAccessKey0123456789abcdefghijkl",
    "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2",
];

#[test]
fn plans_come_back_equal_and_hold_no_secret() {
    if std::env::var_os("AWS_SECRET_ACCESS_KEY").is_none_or(|there| there != SECRETS[0]) {
        // The same once more, in an environment that has them.
        let test = "cluster::plans_come_back_equal_and_hold_no_secret";
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", test])
            .env("AWS_ACCESS_KEY_ID", SECRETS[0])
            .env("AWS_SECRET_ACCESS_KEY", SECRETS[0]);
        let command = command.env("BINLOGZ_ARCHIVE_KEY_COMMAND", format!("echo {}", SECRETS[1]));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    let log = root().join("samples/plain/binlog.000002");
    let storage = storage::at(&archive).unwrap();
    let mut told = |_: &CreateOutcome| {};
    let mut creator = Creator::new(&storage, 1, &mut told).unwrap();
    creator.add("binlog.000002", Arc::new(File::open(&log).unwrap())).unwrap();
    creator.finish().unwrap();
    assert!(storage.is_encrypted().unwrap());
    // Nothing is sent.
    let somebody = TcpListener::bind("127.0.0.1:0").unwrap();
    let scheduler = somebody.local_addr().unwrap().to_string();
    let client = ClusterClient { scheduler, partition_size: 1, shuffle_partitions: 2 };
    let logs = Logs::new(vec![archive.clone(), log], None, |_| {}).unwrap();
    let logs = logs.with_schema(std::fs::read_to_string(schema()).unwrap()).unwrap();
    let options = QueryOptions { memory: 1 << 30, jobs: 2, temporary: folder.path().to_owned() };
    let engine = client.engine(logs, &options).unwrap();
    let session = SessionContext::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for statement in statements(PLANS).unwrap() {
        let plan = engine.plan(statement).unwrap();
        let codec = LogicalCodec::default();
        let sent = quoted(plan.clone()).unwrap();
        let bytes = logical_plan_to_bytes_with_extension_codec(&sent, &codec).unwrap();
        has_no_secret(&bytes, &archive);
        let task = session.task_ctx();
        let there = logical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec).unwrap();
        assert_eq!(there.display_indent_schema().to_string(), plan.display_indent_schema().to_string());
        let codec = PhysicalCodec::default();
        let plan = runtime.block_on(session.state().create_physical_plan(&there)).unwrap();
        let bytes = physical_plan_to_bytes_with_extension_codec(Arc::clone(&plan), &codec).unwrap();
        has_no_secret(&bytes, &archive);
        let there = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec).unwrap();
        let shown = |plan: &dyn ExecutionPlan| displayable(plan).indent(true).to_string();
        assert_eq!(shown(there.as_ref()), shown(plan.as_ref()));
        // The archived log in parts, but not for events, and the other log.
        let of_whole_logs = shown(there.as_ref()).contains("PieceScan: partitions=2,");
        assert_eq!(of_whole_logs, bytes.windows(4).any(|at| at == b"info"), "{}", shown(there.as_ref()));
        assert_eq!(physical_plan_to_bytes_with_extension_codec(there, &codec).unwrap(), bytes);
    }
    engine.close();
}

/// As in one process: a scheduler plans with what it was sent.
#[test]
fn a_join_holds_the_table_with_fewer_rows() {
    let folder = tempfile::tempdir().unwrap();
    let engine = divided(&SHAPES.archive, folder.path());
    let session = SessionContext::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for tables in ["changes c JOIN transactions t", "transactions t JOIN changes c"] {
        let join = format!("SELECT count(t.thread_id), count(c.key) FROM {tables} ON t.gtid = c.gtid");
        let plan = engine.plan(statements(&join).unwrap().remove(0)).unwrap();
        let codec = LogicalCodec::default();
        let bytes = logical_plan_to_bytes_with_extension_codec(&plan, &codec).unwrap();
        let there =
            logical_plan_from_bytes_with_extension_codec(&bytes, &session.task_ctx(), &codec).unwrap();
        let plan = runtime.block_on(session.state().create_physical_plan(&there)).unwrap();
        let shown = displayable(plan.as_ref()).indent(true).to_string();
        let held = shown.split("PieceScan").nth(1).unwrap().lines().next().unwrap();
        assert!(held.contains("thread_id") && shown.contains("HashJoinExec"), "{shown}");
    }
    engine.close();
}

const PLANS: &str = r#"
SELECT key, after FROM changes WHERE "table" = 'salaries' AND operation IN ('insert', 'update') LIMIT 7;
SELECT gtid FROM transactions WHERE gtid_in('7ea9cd1f-0000-11ef-8d33-0242ac110002:1-5', gtid)
  AND committed_at BETWEEN TIMESTAMP '2020-01-01 00:00:00' AND TIMESTAMP '2030-01-01 00:00:00';
SELECT info FROM events WHERE log = 'binlog.000002' AND logged_at < TIMESTAMP '2030-01-01 00:00:00';
SELECT after.salary, before FROM employees.salaries WHERE after.emp_no = 10001 OR after.emp_no = 10002;
SELECT count(*) FROM employees.salaries WHERE after['to_date'] > DATE '1990-01-01' AND after.emp_no > 5;
SELECT max("My ""own"" table".after.salary) FROM employees.salaries "My ""own"" table" WHERE operation = 'insert';
"#;

#[track_caller]
fn has_no_secret(plan: &[u8], archive: &Path) {
    let has = |text: &str| plan.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(has(archive.to_str().unwrap()), "the plan names the archive");
    assert!(!SECRETS.into_iter().any(has), "{}", String::from_utf8_lossy(plan));
}
