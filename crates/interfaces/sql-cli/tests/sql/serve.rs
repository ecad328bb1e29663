//! Serving: a real client of Flight SQL, logins, TLS, statements that may not run, queries that are stopped.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use binlogz_testkit::tool::InstalledTool;
use binlogz_testkit::{Tool, require_tool};

use crate::common::{Ran, SHAPES, root, schema, sql};
use crate::processor::assert_quiet_soon;

/// A server over the plain samples, ended with the test.
struct Serving {
    child: Child,
    uri: String,
    temporary: tempfile::TempDir,
}

impl Serving {
    fn start(options: &[&str], password: Option<&str>) -> Self {
        Serving::over(&SHAPES.plain, schema().as_os_str(), options, password)
    }

    /// A server over these logs, with a schema.
    fn over(logs: &[PathBuf], schema: &OsStr, options: &[&str], password: Option<&str>) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut command = sql(["serve", "--listen", "127.0.0.1:0", "--schema"]);
        command.arg(schema).args(options).args(logs).env("TMPDIR", temporary.path());
        if let Some(password) = password {
            command.args(["--user", "reader"]).env("BINLOGZ_SQL_PASSWORD", password);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let uri = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Serving { child, uri, temporary }
    }

    /// Runs the client; returns its output.
    #[track_caller]
    fn client(
        &self,
        python: &InstalledTool,
        what: &str,
        login: [&str; 2],
        certificate: Option<PathBuf>,
    ) -> String {
        let script = root().join("crates/interfaces/sql-cli/tests/sql/flight.py");
        let roots = certificate.map_or_else(String::new, |path| path.display().to_string());
        let mut command = python.command("python");
        let output = command.arg(script).args([what, &self.uri]).args(login).arg(roots).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{out}\n{}", String::from_utf8_lossy(&output.stderr));
        out
    }

    /// Ends it as Ctrl-C does.
    #[track_caller]
    fn end(mut self) {
        assert!(
            Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap().success()
        );
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        assert_eq!(fs::read_dir(self.temporary.path()).unwrap().count(), 0);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_client_asks_over_tls() {
    let python = require_tool!(Tool::FlightSql);
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(&["--tls-dir", folder.path().to_str().unwrap()], Some("s3cret"));
    let certificate = folder.path().join("sql-cert.pem");
    let out = serving.client(python, "all", ["reader", "s3cret"], Some(certificate));
    let lines: Vec<_> = out.lines().collect();
    let count = |statement: &str| {
        crate::common::ask(statement, &SHAPES.plain).ok().lines().nth(1).unwrap().to_owned()
    };
    let all = count("SELECT count(*) FROM changes");
    assert!(lines[0].contains("wrong user or password"), "{out}");
    assert_eq!(lines[1], "binlogz");
    assert_eq!(lines[2], "['TABLE']");
    assert!(lines.contains(&"binlogz binlog ['changes', 'events', 'transactions']"), "{out}");
    assert!(out.contains("'salaries'"), "{out}");
    // Tools ask for tables by one name or the other.
    let listed =
        |kind: &str| lines.iter().find_map(|line| line.strip_prefix(kind)?.parse::<u32>().ok()).unwrap();
    assert!(
        listed("TABLE ") > 3 && listed("TABLE ") == listed("BASE TABLE ") && listed("VIEW ") == 0,
        "{out}"
    );
    assert!(lines.contains(&"pyarrow.Field<salary: int32>"), "{out}");
    let updates = count("SELECT count(*) FROM changes WHERE operation = 'update'");
    assert!(lines.contains(&format!("[({updates},)]").as_str()), "{updates}: {out}");
    assert!(out.contains("[(\"' OR 1 = 1 --!\",)]"), "{out}");
    assert!(lines.contains(&all.as_str()) && lines.contains(&"300000"), "{out}");
    for expected in [
        "Expected",
        "nothing",
        "there are 2 statements, expected one",
        "parameter $1 has no value",
        "COPY is not possible",
        "CreateExternalTable is not possible",
        "SET is not possible",
        "VIEW is not possible",
        "only read",
        "one in the other",
    ] {
        assert!(out.to_lowercase().contains(&expected.to_lowercase()), "{expected}: {out}");
    }
    assert!(lines.last().unwrap().contains("True 4"), "{out}");
    serving.end();
}

#[test]
fn rows_of_a_log_that_grows_have_the_columns_of_their_place() {
    let python = require_tool!(Tool::FlightSql);
    let server = require_tool!(Tool::Mysql).sandbox().start().unwrap();
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, paid INT, owed INT)").unwrap();
    server.flush_binary_logs().unwrap();
    server.sql("INSERT INTO shop.t VALUES (1, 100, 5)").unwrap();
    // The one that the server writes.
    let log = server.binlogs().unwrap().pop().unwrap();
    let place = format!("root@{}", server.socket().display());
    let serving = Serving::over(&[log], place.as_ref(), &[], None);
    assert_eq!(serving.client(python, "moved", ["", ""], None), "[(1, 100, 5)]\n");
    server
        .sql("ALTER TABLE shop.t MODIFY owed INT AFTER id; INSERT INTO shop.t (id, owed, paid) VALUES (2, 6, 200)")
        .unwrap();
    assert_eq!(serving.client(python, "moved", ["", ""], None), "[(1, 100, 5), (2, 200, 6)]\n");
    serving.end();
}

#[test]
fn columns_that_are_not_known_are_an_error_for_the_client() {
    let python = require_tool!(Tool::FlightSql);
    let server = require_tool!(Tool::Mysql).sandbox().start().unwrap();
    // The log that makes the table is missing.
    let logs = &crate::tables_then::moved(&server).unwrap()[1..];
    let place = format!("root@{}", server.socket().display());
    let serving = Serving::over(logs, place.as_ref(), &[], None);
    let told = serving.client(python, "unknown", ["", ""], None);
    assert!(told.contains("shop.t: ") && told.contains("ALTER TABLE t MODIFY owed INT AFTER id"), "{told}");
    assert!(told.ends_with("\n[(2,)]\n"), "{told}");
    serving.end();
    let serving = Serving::over(logs, place.as_ref(), &["--over-unread"], None);
    let answered = serving.client(python, "unknown", ["", ""], None);
    assert_eq!(answered, "[(None, 6), (100, None)]\nno error\n[(2,)]\n");
    serving.end();
}

#[test]
fn queries_are_stopped_and_bounded() {
    let python = require_tool!(Tool::FlightSql);
    let serving = Serving::start(&["--memory", "1"], None);
    let out = serving.client(python, "endless", ["", ""], None);
    assert!(out.contains("soon") && out.ends_with("[(1,)]\n"), "{out}");
    assert_quiet_soon(serving.child.id(), "a query that was stopped");
    let out = serving.client(python, "memory", ["", ""], None);
    assert!(out.contains("needs more than the 1 MiB of --memory"), "{out}");
    assert!(out.to_lowercase().contains("cannot cast string 'x'") && out.ends_with("[(1,)]\n"), "{out}");
    serving.end();
}

#[test]
fn it_is_not_open_to_a_network_by_mistake() {
    let run = |args: &[&str]| Ran::from(sql(args).output().unwrap()).failure();
    let log = SHAPES.plain[0].to_str().unwrap();
    let line = run(&["serve", "--listen", "0.0.0.0:0", log]);
    assert!(
        line.starts_with("0.0.0.0:0: is reached from other machines without TLS and passwords"),
        "{line}"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let line = run(&["serve", "--listen", "[::]:0", "--tls-dir", path, log]);
    assert!(line.contains("without passwords"), "{line}");
    let line = run(&["serve", "--user", "reader", log]);
    assert!(line.ends_with("no password, expected --password-file or BINLOGZ_SQL_PASSWORD"), "{line}");
    let secret = folder.path().join("secret");
    fs::write(&secret, "s3cret\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let line = run(&["serve", "--user", "reader", "--password-file", secret.to_str().unwrap(), log]);
    assert!(line.ends_with("others may read or write it: chmod o-rw"), "{line}");
    let accounts = folder.path().join("accounts.toml");
    fs::write(&accounts, "[[account]]\nuser = \"a\"\npassword = \"in the open\"\n").unwrap();
    let line = run(&["serve", "--accounts", accounts.to_str().unwrap(), log]);
    assert!(line.contains("accounts.toml") && line.contains("password"), "{line}");
    fs::write(&accounts, "account = []\n").unwrap();
    let line = run(&["serve", "--accounts", accounts.to_str().unwrap(), log]);
    assert!(line.ends_with("has no account, so everybody could ask"), "{line}");
    fs::set_permissions(&accounts, fs::Permissions::from_mode(0o646)).unwrap();
    let line = run(&["serve", "--accounts", accounts.to_str().unwrap(), log]);
    assert!(line.ends_with("others may write it: chmod o-w"), "{line}");
    let ran = Ran::from(sql(["serve", log]).env("BINLOGZ_SQL_PASSWORD", "s3cret").output().unwrap());
    assert!(ran.failure().ends_with("Expected --user, or --accounts"));
    let (certificate, key) = (folder.path().join("sql-cert.pem"), folder.path().join("sql-key.pem"));
    for path in [&certificate, &key] {
        fs::write(path, "none").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let [certificate, key] = [certificate, key].map(|path| path.to_str().unwrap().to_owned());
    let line = run(&["serve", "--tls-cert", &certificate, "--tls-key", &key, log]);
    let found = format!("{key}: its mode is 0644: others may use it, expected 0600: chmod 600 {key}");
    assert!(line.ends_with(&found), "{line}");
}

/// The password file was written on Windows.
#[test]
fn a_password_has_no_end_of_line() {
    let folder = tempfile::tempdir().unwrap();
    let (secret, log) = (folder.path().join("secret"), SHAPES.plain[0].to_str().unwrap());
    fs::write(&secret, "s3\rcret\r\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let run = |args: &[&str]| Ran::from(sql(args).output().unwrap()).failure();
    let line = run(&["serve", "--user", "reader", "--password-file", secret.to_str().unwrap(), log]);
    assert!(line.ends_with("expected one line with a password"), "{line}");
}
