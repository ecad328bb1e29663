//! MySQL's protocol: the mysql client and PyMySQL ask what `binlogz sql` answers; prepared statements by their packets; clients
//! that break the protocol, take nothing or come by the hundreds.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use binlogz_testkit::{Tool, mutate, require_tool};
use binlogz_wire::packet::message_from;

use crate::common::{Ran, SHAPES, erased_archive, root, schema, sql};
use crate::processor::{assert_quiet_soon, wait_until_busy};

const PASSWORD: &str = "s3cret";
/// An answer that takes longer doesn't come.
const PATIENCE: Duration = Duration::from_secs(60);

/// More rows than any answer here.
const ROWS_MAX: usize = 100_000;

/// Statements in MySQL's dialect, and the same in the query engine's.
const SAME: [(&str, &str); 30] = [
    ("SELECT COUNT(*) FROM changes", "SELECT count(*) FROM changes"),
    (
        "select `operation`, count(*) AS N from changes group by operation order by 1",
        "SELECT operation, count(*) FROM changes GROUP BY 1 ORDER BY 1",
    ),
    (
        "SELECT gtid FROM transactions ORDER BY gtid LIMIT 2, 3",
        "SELECT gtid FROM transactions ORDER BY gtid LIMIT 3 OFFSET 2",
    ),
    ("SELECT sum(after.salary) FROM employees.salaries", "SELECT sum(after.salary) FROM employees.salaries"),
    (
        "SELECT max(`after`.`Salary`) FROM `employees`.`salaries`",
        "SELECT max(after.salary) FROM employees.salaries",
    ),
    (
        "SELECT IF(operation = 'update', 1, 0) x, COUNT(*) FROM changes GROUP BY x ORDER BY x",
        "SELECT CASE WHEN operation = 'update' THEN 1 ELSE 0 END, count(*) FROM changes GROUP BY 1 ORDER BY 1",
    ),
    (
        "SELECT IFNULL(`key`->>'$.emp_no', 'none') k, count(*) FROM changes GROUP BY k ORDER BY k LIMIT 5",
        "SELECT coalesce(json_value(key, '$.emp_no'), 'none'), count(*) FROM changes GROUP BY 1 ORDER BY 1 LIMIT 5",
    ),
    (
        "SELECT DATE_FORMAT(committed_at, '%Y-%m-%d %H:%i:%s') m FROM transactions ORDER BY m LIMIT 3",
        "SELECT to_char(committed_at, '%Y-%m-%d %H:%M:%S') m FROM transactions ORDER BY m LIMIT 3",
    ),
    ("SELECT UNIX_TIMESTAMP('2024-02-29 01:02:03.000004')", "SELECT '1709168523.000004'"),
    ("SELECT CONCAT(gtid, ':', NULL) IS NULL, CONCAT('a', 1) FROM transactions LIMIT 1", "SELECT 1, 'a1'"),
    ("SELECT CONCAT_WS('-', 1, NULL, 'b')", "SELECT '1-b'"),
    ("SELECT HEX('abc'), HEX(255), LENGTH('é'), CHAR_LENGTH('é')", "SELECT '616263', 'FF', 2, 1"),
    (
        "SELECT GROUP_CONCAT(DISTINCT operation ORDER BY operation SEPARATOR '|') FROM changes",
        "SELECT string_agg(DISTINCT operation, '|' ORDER BY operation) FROM changes",
    ),
    ("SELECT 10 DIV 3 + 1, 7 / 2, 5 % 3, 1 / 0", "SELECT 4, '3.5000', 2, NULL"),
    ("SELECT 1 = 1 OR 1 = 2 && 1 = 2", "SELECT 1"),
    ("SELECT NULL <=> NULL, 1 <=> NULL", "SELECT 1, 0"),
    (
        "SELECT YEAR(d), MONTH(d), DAY(d), HOUR(d), DAYOFWEEK(d), WEEKDAY(d) FROM (SELECT CAST('2024-02-29 13:14:15' AS DATETIME) d) t",
        "SELECT 2024, 2, 29, 13, 5, 3",
    ),
    ("SELECT FROM_UNIXTIME(1700000000, '%Y-%m-%d %T')", "SELECT '2023-11-14 22:13:20'"),
    (
        "SELECT DATE('2024-02-29'), DATEDIFF('2024-03-01', '2024-02-28'), TIMESTAMPDIFF(HOUR, '2024-02-29', '2024-03-01')",
        "SELECT '2024-02-29', 2, 24",
    ),
    (
        "SELECT CAST(18446744073709551615 AS UNSIGNED), CAST('-5' AS SIGNED), CAST(1 AS DECIMAL(10,2))",
        "SELECT '18446744073709551615', -5, '1.00'",
    ),
    ("SELECT 0.1, 1e20, 1.5e-7, TRUE", "SELECT '0.1', '1e20', '1.5e-7', 1"),
    ("SELECT LEAST(2, 1), GREATEST(1, NULL), LOCATE('b', 'abc'), INSTR('abc', 'c')", "SELECT 1, NULL, 2, 3"),
    (
        "SELECT t.gtid FROM transactions t JOIN changes c USING (gtid) GROUP BY t.gtid ORDER BY count(*) DESC, t.gtid LIMIT 1",
        "SELECT t.gtid FROM transactions t JOIN changes c USING (gtid) GROUP BY t.gtid ORDER BY count(*) DESC, t.gtid LIMIT 1",
    ),
    (
        "WITH w AS (SELECT `schema` AS S FROM changes) SELECT s, count(*) FROM W GROUP BY S ORDER BY s",
        "SELECT schema, count(*) FROM changes GROUP BY 1 ORDER BY 1",
    ),
    (
        "SELECT operation AS o FROM changes HAVING o = 'delete' LIMIT 1",
        "SELECT operation FROM changes WHERE operation = 'delete' LIMIT 1",
    ),
    (
        "SELECT log, count(*) FROM binlog.events GROUP BY log ORDER BY log DESC",
        "SELECT log, count(*) FROM events GROUP BY log ORDER BY log DESC",
    ),
    ("SELECT \"a'b\", 'a\\'b', 'a''b' FROM DUAL", "SELECT 'a''b' a, 'a''b' b, 'a''b' c"),
    ("SELECT 'x' UNION SELECT 'y' ORDER BY 1", "SELECT 'x' UNION SELECT 'y' ORDER BY 1"),
    (
        "SELECT COUNT(*) FROM employees.salaries WHERE committed_at >= '2020-01-01' AND operation <> 'delete'",
        "SELECT count(*) FROM employees.salaries WHERE committed_at >= '2020-01-01' AND operation <> 'delete'",
    ),
    (
        "SELECT COUNT(DISTINCT gtid), MIN(`position`), MAX(Server_Id) FROM changes",
        "SELECT count(DISTINCT gtid), min(position), max(server_id) FROM changes",
    ),
];

/// A server over the plain samples, ended with the test.
struct MysqlServing {
    child: Child,
    address: String,
    _temporary: tempfile::TempDir,
}

impl MysqlServing {
    fn start(options: &[&str], password: Option<&str>) -> Self {
        Self::over(&SHAPES.plain, options, password)
    }

    fn over(logs: &[PathBuf], options: &[&str], password: Option<&str>) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut command = sql(["serve", "--listen", "127.0.0.1:0", "--mysql", "127.0.0.1:0", "--schema"]);
        command.arg(schema()).args(options).args(logs).env("TMPDIR", temporary.path());
        if let Some(password) = password {
            command.args(["--user", "reader"]).env("BINLOGZ_SQL_PASSWORD", password);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines
            .map_while(Result::ok)
            .find_map(|line| line.split_once("on mysql://").map(|(_, address)| address.to_owned()));
        MysqlServing {
            child,
            address: address.expect("it listens for MySQL's clients"),
            _temporary: temporary,
        }
    }

    fn port(&self) -> &str {
        self.address.rsplit_once(':').unwrap().1
    }

    /// A client that speaks in packets, logged in.
    fn raw(&self) -> RawClient {
        let mut client = RawClient::greeted(&self.address);
        client.log_in();
        client
    }
}

impl Drop for MysqlServing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that is one packet after the other.
struct RawClient {
    stream: TcpStream,
    /// The connection's number.
    number: u32,
}

impl RawClient {
    fn greeted(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = RawClient { stream, number: 0 };
        let greeting = client.packet().unwrap();
        let version = greeting.iter().skip(1).position(|byte| *byte == 0).unwrap() + 2;
        client.number = u32::from_le_bytes(greeting[version..version + 4].try_into().unwrap());
        client
    }

    /// Logs in without a password.
    fn log_in(&mut self) {
        // PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH.
        let mut response = 0x0008_8200_u32.to_le_bytes().to_vec();
        response.extend((1_u32 << 24).to_le_bytes());
        response.push(45);
        response.extend([0; 23]);
        response.extend(b"anybody\0\0caching_sha2_password\0");
        self.stream.write_all(&message_from(1, |out| out.extend(&response))).unwrap();
        assert_eq!(self.packet().unwrap()[0], 0, "logged in");
    }

    fn send(&mut self, command: u8, parameters: &[u8]) {
        let message = message_from(0, |out| {
            out.push(command);
            out.extend(parameters);
        });
        self.stream.write_all(&message).unwrap();
    }

    /// The payload of the next packet; `None`: the connection has ended.
    fn packet(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).ok()?;
        let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        Some(payload)
    }

    /// The packets of an answer of rows, without definitions; or the number of its error.
    fn rows(&mut self) -> Result<Vec<Vec<u8>>, u16> {
        let first = self.packet().unwrap();
        if first[0] == 0xff {
            return Err(u16::from_le_bytes([first[1], first[2]]));
        }
        let mut rows = Vec::new();
        let mut ends = 0;
        while ends < 2 {
            assert!(rows.len() < ROWS_MAX, "the answer has no end");
            let packet = self.packet().unwrap();
            match packet.as_slice() {
                [0xff, low, high, ..] => return Err(u16::from_le_bytes([*low, *high])),
                [0xfe, rest @ ..] if rest.len() < 8 => ends += 1,
                _ if ends == 1 => rows.push(packet),
                _ => {}
            }
        }
        Ok(rows)
    }

    fn ask(&mut self, statement: &str) -> Result<Vec<Vec<u8>>, u16> {
        self.send(3, statement.as_bytes());
        self.rows()
    }
}

/// Stands between the answers of several statements.
const MARK: &str = "-----";

/// The rows of statements of the query engine, as tab-separated values.
#[track_caller]
fn engine(statements: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("statements.sql");
    fs::write(&file, statements.join(&format!(";\nSELECT '{MARK}' m;\n"))).unwrap();
    let mut command = sql(["--format", "tsv", "--schema"]);
    command.arg(schema()).arg("--file").arg(file).args(&SHAPES.plain);
    let out = Ran::from(command.output().unwrap()).ok();
    // Each has a heading.
    let mark = format!("m\n{MARK}\n");
    let answers = out.split(&mark).map(|answer| answer.split_once('\n').unwrap().1);
    let answers: Vec<_> = answers.map(str::to_owned).collect();
    assert_eq!(answers.len(), statements.len(), "{out}");
    answers
}

/// How many rows a table has, under a condition.
#[track_caller]
fn count(from: &str) -> String {
    engine(&[&format!("SELECT count(*) FROM {from}")]).pop().unwrap()
}

#[test]
fn the_mysql_client_is_answered_as_binlogz_sql_answers() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = tempfile::tempdir().unwrap();
    let serving = MysqlServing::start(&["--tls-dir", folder.path().to_str().unwrap()], Some(PASSWORD));
    let ca = format!("--ssl-ca={}", folder.path().join("sql-cert.pem").display());
    let run = |user: &str, password: &str, options: &[&str], statement: &str| {
        let mut command: Command = mysql.command("mysql");
        command.args([
            "--no-defaults",
            "-h127.0.0.1",
            "-P",
            serving.port(),
            "-u",
            user,
            "--batch",
            "--skip-column-names",
        ]);
        command.args(options).args(["-e", statement]).env("MYSQL_PWD", password);
        let output = command.output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let statements: Vec<_> = SAME.iter().map(|(statement, _)| *statement).collect();
    let statements = statements.join(&format!(";\nSELECT '{MARK}';\n"));
    let (out, error) = run("reader", PASSWORD, &[&ca, "--ssl-mode=VERIFY_CA"], &statements);
    assert_eq!(error, "", "{out}");
    let answers: Vec<_> = out.split(&format!("{MARK}\n")).collect();
    let expected = engine(&SAME.map(|(_, statement)| statement));
    assert_eq!(answers.len(), expected.len());
    for (((statement, _), answer), expected) in SAME.iter().zip(answers).zip(expected) {
        // Truth in MySQL's notation.
        assert_eq!(answer, expected.replace("true", "1").replace("false", "0"), "{statement}");
    }
    let changes = count("changes");
    for options in
        [&["--ssl-mode=DISABLED"][..], &["--compression-algorithms=zlib"], &["--compression-algorithms=zstd"]]
    {
        let (out, error) = run("reader", PASSWORD, options, "SELECT count(*) FROM changes");
        assert_eq!((out, error), (changes.clone(), String::new()), "{options:?}");
    }
    for (user, password) in [("reader", "wrong"), ("reader", ""), ("nobody", PASSWORD)] {
        let (out, error) = run(user, password, &[], "SELECT 1");
        assert!(
            out.is_empty() && error.contains("ERROR 1045 (28000): Access denied for user"),
            "{user}: {out}{error}"
        );
    }
    for (statement, expected) in [
        ("DELETE FROM employees.salaries", "ERROR 1290 (HY000)"),
        ("SELECT nothing FROM changes", "ERROR 1054 (42S22) at line 1: Unknown column 'nothing'"),
        ("SELECT 1 FROM nothing", "ERROR 1146 (42S02) at line 1: Table 'binlog.nothing' doesn't exist"),
        ("USE nowhere", "ERROR 1049 (42000)"),
        (
            "SELEC 1",
            "ERROR 1064 (42000) at line 1: You have an error in your SQL syntax; check it near 'SELEC 1' at line 1",
        ),
        ("SELECT nothing(1)", "ERROR 1305 (42000) at line 1: FUNCTION nothing does not exist"),
        ("SET NAMES latin1", "ERROR 1115 (42000)"),
        ("SET NAMES utf8mb4 COLLATE latin1_bin", "ERROR 1273 (HY000)"),
        ("SET time_zone = 'Asia/Tokyo'", "ERROR 1298 (HY000)"),
        ("SELECT @@nothing", "ERROR 1193 (HY000)"),
        ("KILL 4000000000", "ERROR 1094 (HY000)"),
    ] {
        let (out, error) = run("reader", PASSWORD, &[], statement);
        assert!(out.is_empty() && error.starts_with(expected), "{statement}: {out}{error}");
    }
    let (out, error) = run(
        "reader",
        PASSWORD,
        &["-D", "employees"],
        "SET NAMES utf8mb4, @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), ',NO_AUTO_VALUE_ON_ZERO'), autocommit = 0; BEGIN; SHOW TABLES LIKE 'S%'; DESCRIBE salaries; SELECT DATABASE(), @@autocommit; COMMIT; \
         USE binlog; SHOW DATABASES WHERE `Database` LIKE 'e%'; SHOW VARIABLES LIKE 'autocommit'",
    );
    assert_eq!(error, "");
    assert!(out.starts_with("salaries\nlog\tlongtext\tYES\t\tNULL\t\nposition\tbigint unsigned\t"), "{out}");
    assert!(
        out.ends_with("\nafter\tjson\tYES\t\tNULL\t\nemployees\t0\nemployees\nautocommit\tOFF\n"),
        "{out}"
    );
}

#[test]
fn pymysql_reads_values_as_mysql_sends_them() {
    let python = require_tool!(Tool::Cdc);
    let folder = tempfile::tempdir().unwrap();
    let serving = MysqlServing::start(&["--tls-dir", folder.path().to_str().unwrap()], Some(PASSWORD));
    let script = root().join("crates/interfaces/sql-cli/tests/sql/mysql.py");
    let certificate = folder.path().join("sql-cert.pem");
    let output = python
        .command("python")
        .arg(script)
        .args([serving.port(), "reader", PASSWORD])
        .arg(certificate)
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{out}\n{}", String::from_utf8_lossy(&output.stderr));
    let changes = count("changes");
    let updates = count("changes WHERE operation = 'update'");
    let expected = format!(
        "(1, None, 'é', b'\\x00\\xff', Decimal('-1.50'), 1e+20, datetime.date(2024, 2, 29))\n\
         (datetime.datetime(2024, 2, 29, 1, 2, 3), datetime.datetime(2024, 2, 29, 1, 2, 3, 4), 18446744073709551615)\n\
         (({},),)\n{}rows {}denied 1045\nnative 1\nrefused 1290\nkilled\n",
        updates.trim(),
        "{'emp_no': 10001, 'salary': 40000, 'from_date': '1989-09-05', 'to_date': '1990-09-05'}\n",
        changes
    );
    assert_eq!(out, expected);
}

#[test]
fn prepared_statements_take_values_and_give_binary_rows() {
    let serving = MysqlServing::start(&[], None);
    let mut client = serving.raw();
    client.send(
        0x16,
        b"SELECT operation, count(*) FROM changes WHERE operation = ? AND position > ? GROUP BY operation",
    );
    let ok = client.packet().unwrap();
    assert_eq!(ok[5..9], [2, 0, 2, 0], "columns, parameters");
    (0..6).for_each(|_| drop(client.packet().unwrap()));
    let execute = |types: &[u8], text: &[u8], number: i64| {
        let mut parameters = ok[1..5].to_vec();
        parameters.extend([0, 1, 0, 0, 0, 0]);
        parameters.push(u8::from(!types.is_empty()));
        parameters.extend(types);
        parameters.push(text.len() as u8);
        parameters.extend(text);
        parameters.extend(number.to_le_bytes());
        parameters
    };
    let row = |operation: &str| {
        let count: i64 = count(&format!("changes WHERE operation = '{operation}'")).trim().parse().unwrap();
        let mut row = vec![0, 0, operation.len() as u8];
        row.extend(operation.as_bytes());
        row.extend(count.to_le_bytes());
        row
    };
    client.send(0x17, &execute(&[254, 0, 8, 0], b"update", 0));
    assert_eq!(client.rows(), Ok(vec![row("update")]));
    // The types of before.
    client.send(0x17, &execute(&[], b"insert", 0));
    assert_eq!(client.rows(), Ok(vec![row("insert")]));
    // A value in parts.
    for part in [b"up".as_slice(), b"date"] {
        client.send(0x18, &[&ok[1..5], &[0, 0], part].concat());
    }
    let mut parameters = execute(&[], b"", 0);
    parameters.remove(11);
    client.send(0x17, &parameters);
    assert_eq!(client.rows(), Ok(vec![row("update")]));
    // Values that end early, and a statement that was closed.
    client.send(0x17, &execute(&[], b"update", 0)[..15]);
    assert_eq!(client.rows(), Err(1210));
    client.send(0x1a, &ok[1..5]);
    assert_eq!(client.packet().unwrap()[0], 0, "reset");
    client.send(0x19, &ok[1..5]);
    client.send(0x17, &execute(&[], b"update", 0));
    assert_eq!(client.rows(), Err(1243));
    client.send(0x16, b"SELECT nothing FROM changes");
    assert_eq!(client.packet().unwrap()[1..3], 1054_u16.to_le_bytes());
    client.send(0x0e, b"");
    assert_eq!(client.packet().unwrap()[0], 0, "ping");
    client.send(0x1f, b"");
    assert_eq!(client.packet().unwrap()[0], 0, "reset connection");
}

/// Rows without an end.
const TALKING: &str =
    "SELECT repeat('x', 1000) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b";

#[test]
fn a_client_that_takes_nothing_holds_up_nobody_and_can_be_ended() {
    let serving = MysqlServing::start(&["--queries", "2"], None);
    let mut silent = serving.raw();
    silent.send(3, TALKING.as_bytes());
    silent.packet().unwrap();
    let mut other = serving.raw();
    for _ in 0..3 {
        assert_eq!(other.ask("SELECT count(*) FROM transactions").unwrap().len(), 1);
    }
    // Its query is stopped as soon as it takes rows again.
    assert!(other.ask(&format!("SELECT 1 FROM changes LIMIT 1; KILL {}", silent.number)).is_err());
    other.send(3, format!("KILL QUERY {}", silent.number).as_bytes());
    assert_eq!(other.packet().unwrap()[0], 0);
    assert_eq!(silent.rows(), Err(1317));
    assert_eq!(silent.ask("SELECT count(*) FROM transactions").unwrap().len(), 1);
    silent.send(3, TALKING.as_bytes());
    silent.packet().unwrap();
    other.send(3, format!("KILL {}", silent.number).as_bytes());
    assert_eq!(other.packet().unwrap()[0], 0);
    let begun = Instant::now();
    while silent.packet().is_some() {
        assert!(begun.elapsed() < PATIENCE, "it is still sent rows");
    }
    // A client that leaves gives its place back: there are two.
    for _ in 0..4 {
        let mut leaving = serving.raw();
        leaving.send(3, TALKING.as_bytes());
        leaving.packet().unwrap();
        leaving.stream.shutdown(Shutdown::Both).unwrap();
    }
    assert_eq!(other.ask("SELECT count(*) FROM transactions").unwrap().len(), 1);
}

/// No row, for ever.
const SILENT: &str = "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b WHERE a.value + b.value = 1";

#[test]
fn a_query_that_was_stopped_or_whose_client_left_uses_no_processor() {
    let serving = MysqlServing::start(&[], None);
    let process = serving.child.id();
    let mut other = serving.raw();
    let analyzed = format!("EXPLAIN ANALYZE {SILENT}");
    for statement in [SILENT, &analyzed] {
        let mut asking = serving.raw();
        asking.send(3, statement.as_bytes());
        wait_until_busy(process);
        other.send(3, format!("KILL QUERY {}", asking.number).as_bytes());
        assert_eq!(other.packet().unwrap()[0], 0);
        assert_eq!(asking.rows(), Err(1317), "{statement}");
        assert_quiet_soon(process, &format!("KILL QUERY of {statement}"));
        asking.send(3, statement.as_bytes());
        wait_until_busy(process);
        asking.stream.shutdown(Shutdown::Both).unwrap();
        assert_quiet_soon(process, &format!("the client of {statement} left"));
    }
    assert_eq!(other.ask("SELECT count(*) FROM transactions").unwrap().len(), 1);
}

#[test]
fn hostile_clients_keep_nobody_out() {
    let serving = MysqlServing::start(&[], None);
    let mut honest = serving.raw();
    // A thousand that say nothing, half of them after the greeting.
    let silent: Vec<_> = (0..1000).filter_map(|_| TcpStream::connect(&serving.address).ok()).collect();
    assert!(silent.len() > 900);
    assert_eq!(
        honest.ask("SELECT count(*) FROM transactions").unwrap().len(),
        1,
        "one that was there before"
    );
    let mut late = serving.raw();
    assert_eq!(late.ask("SELECT count(*) FROM transactions").unwrap().len(), 1, "one that came after them");
    // Too much before the login.
    let mut large = RawClient::greeted(&serving.address);
    let _ = large.stream.write_all(&[0xff, 0xff, 0xff, 1]);
    let _ = large.stream.write_all(&vec![b'x'; 1 << 20]);
    assert_eq!(large.packet(), None);
    // Too much at once after it.
    let statement = vec![b' '; (16 << 20) + 100];
    let mut message = Vec::new();
    for (sequence, chunk) in statement.chunks(0xff_ffff).enumerate() {
        message.extend(&(chunk.len() as u32).to_le_bytes()[..3]);
        message.push(sequence as u8);
        message.extend(chunk);
    }
    late.stream.write_all(&message).unwrap();
    assert_eq!(late.packet().unwrap()[1..3], 1153_u16.to_le_bytes());
    assert_eq!(late.ask("SELECT 1"), Ok(vec![b"\x011".to_vec()]));
    // Any bytes.
    let seed = mutate::seed();
    let good = message_from(0, |out| out.extend(b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\xfe\0\x03abc"));
    for round in 0..200 {
        let mut client = serving.raw();
        client.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let _ = client.stream.write_all(&mutate::mutate(&good, seed, round).0);
        let _ = client.packet();
    }
    drop(silent);
    assert_eq!(honest.ask("SELECT count(*) FROM transactions").unwrap().len(), 1);
}

/// Values that were erased from an archive are missing in answers, which have that as a note.
#[test]
fn answers_from_an_erased_archive_have_a_warning() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = tempfile::tempdir().unwrap();
    let archive = erased_archive(folder.path());
    let serving = MysqlServing::over(&[archive], &[], None);
    let asked = |statements: &str| {
        let mut command: Command = mysql.command("mysql");
        command.args(["--no-defaults", "-h127.0.0.1", "-P", serving.port(), "-u", "anybody", "--batch"]);
        let output =
            command.args(["--show-warnings", "--skip-column-names", "-e", statements]).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let note = "1 log is not byte for byte its server's: values were erased since ";
    let out = asked("SELECT count(*) FROM changes");
    assert!(out.contains(&format!("Note (Code 1105): {note}")) && !out.contains("employees"), "{out}");
    let out = asked("SELECT count(*) FROM changes; SHOW WARNINGS; SHOW WARNINGS");
    assert_eq!(out.matches(&format!("Note\t1105\t{note}")).count(), 2, "{out}");
    // What the server answers by itself says nothing of the logs.
    let out = asked("SELECT count(*) FROM changes; SELECT @@autocommit; SHOW WARNINGS");
    assert!(!out.contains("Note\t"), "{out}");
}
