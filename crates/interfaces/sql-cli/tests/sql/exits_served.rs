//! Accounts of `sql serve` with a policy: all bytes that the server sends them, by Flight SQL and by MySQL's protocol, are searched for
//! planted values; conditions meet masked values alone; other accounts see the logs as they are, meanwhile.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use arrow_flight::sql::CommandGetTables;
use arrow_flight::sql::client::FlightSqlServiceClient;
use binlogz_testkit::tool::{self, InstalledTool, Tool};
use binlogz_testkit::{Result, require_tool};
use futures_util::StreamExt;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};

use crate::common::{Ran, archive_of, sql};
use crate::exits::{PlantedLog, SHOWING, TRUE_VALUES, put_policy, quoted, with_each_log};
use crate::planted::contains;

const ACCOUNTS: &str = "[[account]]\nuser = \"open\"\npassword_env = \"OPEN_PASSWORD\"\n\
    [[account]]\nuser = \"masked\"\npassword_env = \"MASKED_PASSWORD\"\nexits = \"exits.toml\"\n";

/// The bytes that a server sent through it.
#[derive(Clone)]
struct Recorder {
    port: u16,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Recorder {
    /// Stands before a server at this address.
    fn before(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let recorder = Recorder { port: listener.local_addr().unwrap().port(), sent: Arc::default() };
        let (sent, address) = (Arc::clone(&recorder.sent), address.to_owned());
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&address).unwrap());
                let (asks, asked) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || pass_on(asks, asked, &mut |_| {}));
                let sent = Arc::clone(&sent);
                thread::spawn(move || {
                    pass_on(server, client, &mut |bytes| sent.lock().unwrap().extend(bytes))
                });
            }
        });
        recorder
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.sent.lock().unwrap())
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, note: &mut dyn FnMut(&[u8])) {
    let mut chunk = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        note(&chunk[..count]);
        if to.write_all(&chunk[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// A server with two accounts, ended with the test.
struct MaskingServer {
    child: Child,
    flight: Recorder,
    mysql: Recorder,
    temporary: tempfile::TempDir,
}

/// The command of such a server.
fn command(folder: &Path, log: &Path, options: &[&str], temporary: &Path) -> std::process::Command {
    fs::write(folder.join("accounts.toml"), ACCOUNTS).unwrap();
    let mut command =
        sql(["serve", "--listen", "127.0.0.1:0", "--mysql", "127.0.0.1:0", "--accounts", "accounts.toml"]);
    command.args(options).arg(log).current_dir(folder).env("TMPDIR", temporary);
    command.env("OPEN_PASSWORD", "s3cret").env("MASKED_PASSWORD", "hidden");
    command
}

impl MaskingServer {
    fn start(folder: &Path, log: &Path) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut command = command(folder, log, &["--over-unread"], temporary.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(std::io::Result::ok);
        let mut address = |scheme: &str| {
            lines.find_map(|line| Some(line.split_once(&format!("on {scheme}://"))?.1.to_owned())).unwrap()
        };
        let (first, second) = (address("grpc"), address("mysql"));
        MaskingServer { child, flight: Recorder::before(&first), mysql: Recorder::before(&second), temporary }
    }

    /// Runs statements by the mysql client; errors stand between the answers.
    fn by_mysql(&self, mysql: &InstalledTool, user: &str, statements: &[String]) -> String {
        let password = if user == "open" { "s3cret" } else { "hidden" };
        let mut command = mysql.command("mysql");
        let port = self.mysql.port.to_string();
        command.args([
            "--no-defaults",
            "-h127.0.0.1",
            "-P",
            &port,
            "-u",
            user,
            "--batch",
            "--force",
            "--skip-column-names",
        ]);
        command.args(["--ssl-mode=DISABLED", "-e", &statements.join(";\n")]).env("MYSQL_PWD", password);
        let output = command.output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    async fn flight_client(&self, user: &str) -> FlightSqlServiceClient<Channel> {
        let password = if user == "open" { "s3cret" } else { "hidden" };
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{}", self.flight.port)).unwrap();
        let mut client = FlightSqlServiceClient::new(endpoint.connect().await.unwrap());
        client.handshake(user, password).await.unwrap();
        client
    }

    /// Runs statements by Flight SQL, and lists tables with their columns; returns how many rows came.
    async fn by_flight(&self, user: &str, statements: &[String]) -> usize {
        let mut client = self.flight_client(user).await;
        let mut rows = 0;
        for statement in statements {
            let Ok(info) = client.execute(statement.clone(), None).await else { continue };
            rows += fetched(&mut client, info).await;
        }
        let all = CommandGetTables { include_schema: true, ..CommandGetTables::default() };
        let info = client.get_tables(all).await.unwrap();
        rows + fetched(&mut client, info).await
    }

    /// Fails if a value is in files of the server.
    fn assert_no_file_has(&self, planted: &PlantedLog, what: &str) {
        let mut folders = vec![self.temporary.path().to_owned()];
        let mut files: Vec<PathBuf> = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        assert!(files.len() >= 2, "{what}: {files:?}");
        files.iter().for_each(|path| planted.assert_not_in(what, &fs::read(path).unwrap()));
    }
}

async fn fetched(client: &mut FlightSqlServiceClient<Channel>, info: arrow_flight::FlightInfo) -> usize {
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let Ok(mut stream) = client.do_get(ticket).await else { return 0 };
    let mut rows = 0;
    while let Some(Ok(batch)) = stream.next().await {
        rows += batch.num_rows();
    }
    rows
}

impl Drop for MaskingServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn search_served(what: &str, planted: &PlantedLog, folder: &Path) {
    let mysql = tool::require(Tool::Mysql).unwrap();
    let archive = folder.join("archive");
    archive_of(std::slice::from_ref(&planted.log), &archive);
    let log = if what.contains("FULL") { &archive } else { &planted.log };
    let serving = MaskingServer::start(folder, log);
    let runtime = Runtime::new().unwrap();
    let counts = TRUE_VALUES.map(|from| format!("SELECT count(*) FROM {from}"));
    let by_engine = SHOWING.map(quoted);
    for round in 0..2 {
        let what = format!("{what}, round {round}");
        // The search finds what there is: this account may see it, by the same server.
        let shown = serving.by_mysql(mysql, "open", &["SELECT * FROM changes".to_owned()]);
        assert!(shown.contains("planted"), "{what}: {shown}");
        assert!(contains(&serving.mysql.take(), b"planted"), "{what}");
        runtime.block_on(serving.by_flight("open", &by_engine[..4]));
        assert!(contains(&serving.flight.take(), b"planted"), "{what}");

        let shown = serving.by_mysql(mysql, "masked", &SHOWING.map(str::to_owned));
        assert!(shown.lines().count() > 50, "{what}: {shown}");
        planted.assert_not_in(&what, &serving.mysql.take());
        let rows = runtime.block_on(serving.by_flight("masked", &by_engine));
        assert!(rows > 50, "{what}: {rows}");
        planted.assert_not_in(&what, &serving.flight.take());
        let counted = serving.by_mysql(mysql, "masked", &counts);
        // A column that is left out is an error.
        let is_nothing = |line: &str| line == "0" || line.starts_with("ERROR ");
        assert!(counted.lines().all(is_nothing) && counted.contains("0\n0\n0\n"), "{what}: {counted}");
        serving.mysql.take();
        let found = serving.by_mysql(mysql, "open", &counts);
        let is_found = |line: &str| line.parse::<u64>().is_ok_and(|count| count > 0);
        assert!(!what.contains("9.7.4 FULL") || found.lines().all(is_found), "{what}: {found}");
        serving.mysql.take();
    }
    serving.assert_no_file_has(planted, what);
}

#[test]
fn nothing_planted_is_served() -> Result<()> {
    with_each_log(false, search_served)
}

#[test]
#[ignore = "minutes: scripts/soak/exits.sh runs it"]
fn nothing_planted_is_served_by_any_policy() -> Result<()> {
    with_each_log(true, search_served)
}

/// A base has rows as they are: accounts with a policy have none.
#[test]
fn a_base_is_for_accounts_without_a_policy() {
    let folder = tempfile::tempdir().unwrap();
    put_policy(folder.path(), "[[table]]\nname = \"shop.everything\"\nleave_out = true");
    let temporary = tempfile::tempdir().unwrap();
    let options = ["--exits", "exits.toml", "--base", "root@127.0.0.1:1"];
    let log = crate::common::SHAPES.plain[0].clone();
    let ran: Ran = command(folder.path(), &log, &options, temporary.path()).output().unwrap().into();
    assert_eq!(ran.failure(), "--base: its rows are for accounts without a policy, expected one of them");
}

/// Changes that can't be masked for certain are missing from all answers, so serving without them has to be asked for. A mistyped name in a policy is refused.
#[test]
fn a_policy_that_does_not_fit_serves_nothing() -> Result<()> {
    let server = require_tool!(Tool::Mysql).sandbox().start()?;
    let planted = PlantedLog::of("9.7.4", &server, "SET GLOBAL binlog_row_metadata = FULL", ["JSON", ""])?;
    for (rules, expected) in [
        (
            "name = \"shop.*\"\nother_columns = \"hash\"\ncolumns.g = \"leave-out\"\ncolumns.j = \"null\"",
            "--over-unread serves the others",
        ),
        ("name = \"shop.everything\"\ncolumns.vv = \"null\"", "shop.everything has no column vv"),
        ("name = \"shop.everythin\"\ncolumns.v = \"null\"", "no rows of shop.everythin (line 3)"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        put_policy(folder.path(), &format!("key_file = \"key\"\n[[table]]\n{rules}"));
        let temporary = tempfile::tempdir().unwrap();
        let ran: Ran = command(folder.path(), &planted.log, &[], temporary.path()).output().unwrap().into();
        assert!(ran.code == Some(2) && ran.out.is_empty(), "{rules}: {ran:?}");
        assert!(ran.error.contains(expected), "{rules}: {}", ran.error);
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "{rules}");
    }
    Ok(())
}
