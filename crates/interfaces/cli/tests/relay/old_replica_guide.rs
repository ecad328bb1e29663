//! The guide for old replicas, followed word for word: its commands at a shell, its statements at the source and at a replica of each
//! version. Only places, ports and the password are others.

use std::fs::File;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use binlogz_testkit::{MariadbSandbox, Mysql56Sandbox, MysqlSandbox, SandboxServer, Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Running, reserved_port};
use crate::old_replicas::{COLLATIONS, WORDS};

const GUIDE: &str = include_str!("../../../../../docs/guides/old-replica.md");
const PATIENCE: Duration = Duration::from_secs(120);
/// The command that goes on running, "in another terminal".
const RUN: &str = "binlogz relay run";

/// The blocks of a guide with this tag, in order.
fn blocks(tag: &str) -> Vec<String> {
    let begin = format!("\n```{tag}\n");
    let blocks = GUIDE.split(&begin).skip(1);
    blocks.filter_map(|rest| rest.split("\n```").next()).map(str::to_owned).collect()
}

/// Where the guide is followed.
struct Place {
    folder: Folder,
    source: MysqlSandbox,
    port: u16,
    http_port: u16,
}

impl Place {
    fn new(mysql: &'static binlogz_testkit::InstalledTool) -> Place {
        let source = mysql.sandbox().compression(3).start().unwrap();
        Place { folder: Folder::new(), source, port: reserved_port(), http_port: reserved_port() }
    }

    /// The guide's words, but for places, ports and the password.
    fn here(&self, text: &str) -> String {
        text.replace("@db1", &format!("@127.0.0.1:{}", self.source.port()))
            .replace("/var/lib/binlogz", &self.folder.path("store").display().to_string())
            .replace("0.0.0.0:3307", &format!("127.0.0.1:{}", self.port))
            .replace("127.0.0.1:3308", &format!("127.0.0.1:{}", self.http_port))
            .replace("HOST='relay'", "HOST='127.0.0.1'")
            .replace("PORT=3307", &format!("PORT={}", self.port))
            // The sandbox has such an account already, of 127.0.0.1, which goes before that of any host.
            .replace('…', "repl")
    }

    fn shell(&self, commands: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_binlogz")).parent().unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", commands]).current_dir(self.folder.path(""));
        shell.env("PATH", format!("{}:{}", program.display(), std::env::var("PATH").unwrap()));
        shell
    }

    /// What commands print.
    fn told(&self, commands: &str) -> String {
        let output = self.shell(&self.here(commands)).output().unwrap();
        let [text, trouble] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(output.status.success(), "{commands}\n{text}{trouble}");
        text
    }

    /// Runs the commands of the second step; the last one goes on.
    fn relay(&self, commands: &str) -> Running {
        let (before, _) = commands.split_once(RUN).unwrap();
        self.told(before);
        let log = File::create(self.folder.path("relay.log")).unwrap();
        let last = self.here(&commands[before.len()..]);
        let relay = self.shell(&format!("exec {last}")).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let relay = Running(relay);
        self.wait_for("the relay", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
        relay
    }

    fn wait_for(&self, what: &str, is_there: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_there() {
            assert!(Instant::now() < until, "no {what}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn said(&self) -> String {
        String::from_utf8(self.folder.read("relay.log")).unwrap_or_default()
    }

    /// A replica that follows by the guide's statements has these words, and goes on.
    fn brings(&self, name: &str, replica: &SandboxServer, statements: &str, expected: &str) {
        let done = replica.sql(&self.here(statements));
        done.unwrap_or_else(|error| panic!("{name}: {error}"));
        self.wait_for(&format!("rows in {name}"), || {
            let status = replica.replica_status().unwrap();
            for field in ["Last_IO_Error", "Last_SQL_Error"] {
                assert!(status[field].is_empty(), "{name}: {}\n{}", status[field], self.said());
            }
            replica.sql(WORDS).is_ok_and(|rows| rows == expected)
        });
        let status = replica.replica_status().unwrap();
        let running = ["Slave_IO_Running", "Slave_SQL_Running"].map(|thread| status[thread].as_str());
        assert_eq!(running, ["Yes", "Yes"], "{name}: {status:?}");
    }
}

/// Follows the guide with a replica of each of these, and its profile.
fn is_followed_by(replicas: &[(Tool, &str)]) {
    let mysql = require_tool!(Tool::Mysql);
    for (tool, _) in replicas {
        require_tool!(*tool);
    }
    let [account, mariadb_follows, mysql_follows] = blocks("sql").try_into().unwrap();
    let [begin, look] = blocks("sh server").try_into().unwrap();
    let place = Place::new(mysql);
    place.source.sql(&place.here(&account)).unwrap();
    let _relay = place.relay(&begin);
    place.source.sql("CREATE USER later; GRANT SELECT ON *.* TO later").unwrap();
    place.source.sql(COLLATIONS).unwrap();
    let expected = place.source.sql(WORDS).unwrap();
    for (tool, profile) in replicas {
        let is_mariadb = tool.name().starts_with("mariadb");
        let (mariadb, mysql_5_6);
        let (replica, statements): (&SandboxServer, _) = match is_mariadb {
            true => {
                mariadb = MariadbSandbox::start_version(*tool, &[("binlog-format", "ROW")]).unwrap();
                (&mariadb, &mariadb_follows)
            }
            false => {
                mysql_5_6 = Mysql56Sandbox::start_version(*tool, &[]).unwrap();
                (&mysql_5_6, &mysql_follows)
            }
        };
        place.brings(tool.name(), replica, statements, &expected);
        let told = place.told(&look);
        assert!(told.contains(&format!("), {profile}, uncompressed: ")), "{}: {told}", tool.name());
    }
}

#[test]
fn the_guide_for_old_replicas_followed_word_for_word_leaves_them_running() {
    is_followed_by(&[(Tool::Mariadb, "mariadb-10.2"), (Tool::Mysql56, "mysql-5.6")]);
}

#[test]
#[ignore = "eight servers, four of which other tests don't need: scripts/soak/old-servers.sh runs it"]
fn the_guide_for_old_replicas_on_every_old_server() {
    is_followed_by(&[
        (Tool::Mysql5614, "mysql-5.6"),
        (Tool::Mysql56, "mysql-5.6"),
        (Tool::Mariadb101, "mariadb-10.1"),
        (Tool::Mariadb102, "mariadb-10.2"),
        (Tool::Mariadb105, "mariadb-10.2"),
        (Tool::Mariadb, "mariadb-10.2"),
        (Tool::Mariadb114, "mariadb-11.4"),
        (Tool::Mariadb118, "mariadb-11.4"),
    ]);
}
