//! The demo's servers, its relay and its load. Everything ends with the process: guards end the servers, the relay, and
//! their folders.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use binlogz_cli_common::failure::{CommandFailure, Result};
use binlogz_cli_common::program::companion;
use binlogz_sandbox::{Error, MariadbSandbox, MysqlSandbox, Tool};

/// Prints a line; a pipe without a reader ends the demo.
macro_rules! say {
    ($($line:tt)*) => {
        writeln!(io::stdout(), $($line)*).map_err(|error| CommandFailure::writing(&"standard output", &error))?
    };
}
pub(super) use say;

/// Two busy cores, and more.
const PATIENCE: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(100);
/// The order that is deleted and comes back.
const ORDER_42: &str = "SELECT id, customer FROM shop.orders WHERE id = 42";
/// Between two orders that come in.
const LOAD_PAUSE: Duration = Duration::from_millis(200);

/// Ends the relay and removes the folder once this process is gone, however it ended: only it holds the other end of the input.
const GUARD: &str = r#"
    dir=$1; shift
    "$@" >"$dir/relay.log" 2>&1 </dev/null & relay=$!
    while read -r _; do :; done
    kill -TERM "$relay" 2>/dev/null
    wait "$relay"
    rm -rf "$dir"
"#;

/// A shell that waits for nothing but the end of this process, then removes the folder.
const FOLDER_GUARD: &str = r#"while read -r _; do :; done; rm -rf "$1""#;

/// All that the demo has.
pub(super) struct Scene {
    // Dropped in this order: who reads ends before whom it reads from, and the folder last.
    load: Option<Load>,
    mariadb: Option<MariadbSandbox>,
    relay: Option<GuardedShell>,
    source: Option<Arc<MysqlSandbox>>,
    relay_port: u16,
    status: String,
    deleted: String,
    dir: PathBuf,
    _folder: GuardedShell,
}

/// A shell that does its work when its input ends.
struct GuardedShell(Child);

impl GuardedShell {
    fn spawn(command: &mut Command) -> Result<Self> {
        let command =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().map(GuardedShell).map_err(|error| CommandFailure::of(&"sh", error))
    }
}

impl Drop for GuardedShell {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It ends by itself; a failure leaves nothing to wait for.
        let _ = self.0.wait();
    }
}

/// Orders that come in.
struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its panic would be told by the hook; there is nothing more to do about it here.
            let _ = thread.join();
        }
    }
}

impl Scene {
    pub(super) fn new() -> Result<Self> {
        let dir = env::temp_dir().join(format!("binlogz-demo-{}", std::process::id()));
        fs::create_dir(&dir).map_err(|error| CommandFailure::of(&dir.display(), error))?;
        let mut guard = Command::new("sh");
        guard.args(["-c", FOLDER_GUARD, "guard"]).arg(&dir);
        let folder = GuardedShell::spawn(&mut guard)?;
        Ok(Scene {
            load: None,
            mariadb: None,
            relay: None,
            source: None,
            relay_port: 0,
            status: String::new(),
            deleted: String::new(),
            dir,
            _folder: folder,
        })
    }

    fn source(&self) -> Result<&Arc<MysqlSandbox>> {
        self.source.as_ref().ok_or_else(|| CommandFailure::Line("the demo has no source yet".to_owned()))
    }

    fn mariadb(&self) -> Result<&MariadbSandbox> {
        self.mariadb.as_ref().ok_or_else(|| CommandFailure::Line("the demo has no replica yet".to_owned()))
    }

    pub(super) fn start_source(&mut self) -> Result<()> {
        let mysql = Tool::Mysql.find().map_err(trouble)?;
        let source =
            mysql.sandbox().compression(3).readable_by_mariadb().option("binlog-row-metadata", "FULL");
        let source = source.start().map_err(trouble)?;
        say!("   MySQL {} listens on 127.0.0.1:{}", mysql.version(), source.port());
        self.source = Some(Arc::new(source));
        Ok(())
    }

    pub(super) fn on_source(&self, sql: &str) -> Result<String> {
        self.source()?.sql(sql).map_err(trouble)
    }

    /// Path of the source's binary log.
    pub(super) fn log(&self) -> String {
        let datadir = self.source.as_ref().map(|source| source.datadir()).unwrap_or_default();
        datadir.join("binlog.000001").display().to_string()
    }

    /// Runs binlogz in the demo's folder, and shows the command and its output.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<()> {
        say!("\n$ binlogz {}", arguments.join(" "));
        self.shown(self.binlogz(arguments))
    }

    fn binlogz(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(companion("binlogz"));
        command.args(arguments).current_dir(&self.dir).env("MYSQL_PWD", "repl");
        command
    }

    /// Runs a command to its end; its output goes to the user.
    fn shown(&self, mut command: Command) -> Result<()> {
        let status = command.status().map_err(no_binlogz)?;
        match status.success() {
            true => Ok(()),
            false => Err(CommandFailure::Line(format!("demo: the command ended with {status}"))),
        }
    }

    pub(super) fn replica_stops(&mut self) -> Result<()> {
        let mariadb = MariadbSandbox::start(&[]).map_err(trouble)?;
        let port = self.source()?.port();
        say!("\nmariadb> CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, …; START SLAVE;");
        mariadb.replicate_from_port(port, "binlog.000001", 4).map_err(trouble)?;
        let said = wait("MariaDB's error", || {
            let status = mariadb.replica_status().map_err(trouble)?;
            let error = |name: &str| status.get(name).filter(|error| !error.is_empty()).cloned();
            Ok(error("Last_SQL_Error").or_else(|| error("Last_IO_Error")))
        })?;
        // It goes on with what else could be the reason.
        let said = said.split(". ").next().unwrap_or_default();
        say!("mariadb> SHOW SLAVE STATUS\n  Last_Error: {said}.");
        self.mariadb = Some(mariadb);
        Ok(())
    }

    pub(super) fn start_relay(&mut self) -> Result<()> {
        let source = format!("mysql://repl@127.0.0.1:{}", self.source()?.port());
        let arguments = ["relay", "run", "--source", &source, "--dir", "relay"];
        let arguments: Vec<_> =
            arguments.into_iter().chain(["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]).collect();
        say!("\n$ binlogz {}", arguments.join(" "));
        let relay = self.binlogz(&arguments);
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "relay"]).arg(&self.dir).arg(relay.get_program()).args(relay.get_args());
        guard.current_dir(&self.dir).env("MYSQL_PWD", "repl");
        self.relay = Some(GuardedShell::spawn(&mut guard)?);
        let log = self.dir.join("relay.log");
        let said = |what: &str| {
            let log = fs::read_to_string(&log).unwrap_or_default();
            let line = log.lines().find_map(|line| line.split_once(what))?.1.trim_end_matches('/').to_owned();
            Some(line)
        };
        let port = wait("port of the relay", || Ok(said("listening on 127.0.0.1:")))?;
        self.relay_port =
            port.parse().map_err(|_| CommandFailure::Line(format!("demo: {port:?} is no port")))?;
        self.status = wait("status page", || Ok(said("status on http://")))?;
        say!("{}", fs::read_to_string(&log).unwrap_or_default().trim_end());
        Ok(())
    }

    pub(super) fn status_page(&self) -> String {
        format!("http://{}/", self.status)
    }

    pub(super) fn replica_follows_relay(&self) -> Result<()> {
        let mariadb = self.mariadb()?;
        let port = self.relay_port;
        say!("\nmariadb> STOP SLAVE; DROP DATABASE shop;    -- it begins again, from the relay's first file");
        say!(
            "mariadb> CHANGE MASTER TO MASTER_PORT={port}, MASTER_LOG_FILE='binlog-u.000001', …; START SLAVE;"
        );
        mariadb.sql("STOP SLAVE; RESET SLAVE ALL; DROP DATABASE IF EXISTS shop").map_err(trouble)?;
        mariadb.replicate_from_port(port, "binlog-u.000001", 4).map_err(trouble)?;
        self.replica_catches_up()?;
        let count = mariadb.sql("SELECT COUNT(*) FROM shop.orders").map_err(trouble)?;
        say!("mariadb> SELECT COUNT(*) FROM shop.orders\n  {}", count.trim());
        Ok(())
    }

    /// Waits until the replica has the rows that the source has now.
    pub(super) fn replica_catches_up(&self) -> Result<()> {
        let last = "SELECT MAX(id) FROM shop.orders";
        let last_of_source: u64 = number(&self.on_source(last)?);
        wait("rows in MariaDB", || {
            let mariadb = self.mariadb()?;
            // There is no such table before it has followed so far.
            let here = mariadb.sql(last).map_or(0, |here| number(&here));
            Ok((here >= last_of_source).then_some(()))
        })
    }

    pub(super) fn start_load(&mut self) -> Result<()> {
        let source = Arc::clone(self.source()?);
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let order =
            "INSERT INTO shop.orders (customer, note) VALUES ('one more', REPEAT('on its way; ', 40))";
        self.on_source(order)?;
        let thread = thread::spawn(move || {
            // A source that has gone is told of by the next step.
            while !asked.load(Ordering::Relaxed) && source.sql(order).is_ok() {
                thread::sleep(LOAD_PAUSE);
            }
        });
        self.load = Some(Load { stop, thread: Some(thread) });
        Ok(())
    }

    pub(super) fn relay_status(&self) -> Result<()> {
        say!("   The page: {}", self.status_page());
        self.run(&["relay", "status", "--http", &self.status])
    }

    pub(super) fn accident(&mut self) -> Result<()> {
        say!("\nmysql> DELETE FROM orders WHERE id = 42;");
        self.on_source("DELETE FROM shop.orders WHERE id = 42; FLUSH BINARY LOGS")?;
        let log = self.log();
        say!("\n$ binlogz dump --format jsonl --table=shop.orders {log} | grep '\"type\":\"delete\"'");
        let changes = self.printed(&["dump", "--format", "jsonl", "--table=shop.orders", &log])?;
        let text = String::from_utf8_lossy(&changes);
        let line = text.lines().find(|line| line.contains("\"type\":\"delete\"")).unwrap_or_default();
        say!("{line}");
        let gtid = line.split_once("\"gtid\":\"").and_then(|(_, rest)| rest.split_once('"'));
        self.deleted = gtid.map(|(gtid, _)| gtid.to_owned()).unwrap_or_default();
        say!("   Its GTID, thread, time and the whole row.");
        Ok(())
    }

    /// Puts the deleted row back at the source.
    pub(super) fn undo(&self) -> Result<()> {
        let source = self.source()?;
        let log = self.log();
        let chosen = format!("--gtids={}", self.deleted);
        say!("\n$ binlogz undo {chosen} {log} > undo.sql");
        let sql = self.printed(&["undo", &chosen, &log])?;
        say!("$ grep -e '^--' -e '^INSERT' undo.sql");
        let is_shown = |line: &&str| line.starts_with("--") || line.starts_with("INSERT");
        for line in String::from_utf8_lossy(&sql).lines().filter(is_shown) {
            say!("{line}");
        }
        say!("$ mysql -P {} < undo.sql", source.port());
        source.run_client(|client| client.write_all(&sql)).map_err(trouble)?;
        say_order("mysql", &self.on_source(ORDER_42)?)
    }

    /// Waits until order 42 is at the replica too.
    pub(super) fn replica_has_order(&self) -> Result<()> {
        // An order that came in after the deletion: the row that is found then is not the one from before it.
        self.replica_catches_up()?;
        let row = wait("order 42 in MariaDB", || {
            let row = self.mariadb()?.sql(ORDER_42).map_err(trouble)?;
            Ok((!row.trim().is_empty()).then_some(row))
        })?;
        say_order("mariadb", &row)
    }

    /// Runs binlogz to its end, and returns its output.
    fn printed(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let output = self.binlogz(arguments).output().map_err(no_binlogz)?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(CommandFailure::Line(String::from_utf8_lossy(&output.stderr).trim_end().to_owned())),
        }
    }

    /// The first of the source's logs, which is closed.
    pub(super) fn closed_log(&self) -> Result<String> {
        Ok(self.log())
    }

    pub(super) fn restore(&mut self) -> Result<()> {
        let empty = Tool::Mysql.find().and_then(|mysql| mysql.sandbox().start()).map_err(trouble)?;
        let stop = format!("--stop-before-gtid={}", self.deleted);
        say!("\n$ binlogz dump {stop} archive | mysql -P {}", empty.port());
        let sql = self.printed(&["dump", &stop, "archive"])?;
        empty.run_client(|client| client.write_all(&sql)).map_err(trouble)?;
        say_order("mysql", &empty.sql(ORDER_42).map_err(trouble)?)
    }
}

/// Why the commands that the demo shows can't run.
fn no_binlogz(error: io::Error) -> CommandFailure {
    CommandFailure::of(
        &"demo",
        match error.kind() {
            io::ErrorKind::NotFound => {
                "it runs binlogz, which is neither beside binlogz-bench nor on PATH".to_owned()
            }
            _ => format!("binlogz: {error}"),
        },
    )
}

fn say_order(client: &str, row: &str) -> Result<()> {
    say!("{client}> {ORDER_42}\n  {}", row.trim());
    Ok(())
}

/// Asks again and again until there is an answer.
fn wait<T>(what: &str, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if Instant::now() > deadline {
            return Err(CommandFailure::Line(format!("demo: no {what} within {} s", PATIENCE.as_secs())));
        }
        thread::sleep(POLL);
    }
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or(0)
}

fn trouble(error: Error) -> CommandFailure {
    CommandFailure::Line(match error {
        Error::Unavailable(why) => format!(
            "the demo needs a MySQL and a MariaDB of its own, which `make demo` in the sources of binlogz fetches ({why})"
        ),
        error => error.to_string(),
    })
}
