//! Replicas of all versions, each of which follows the relay from its beginning.

use std::thread::sleep;
use std::time::{Duration, Instant};

use binlogz_testkit::random::Random;
use binlogz_testkit::{MariadbSandbox, Mysql56Sandbox, MysqlSandbox, Result, SandboxServer, Tool};

use super::ONE_WORKER;
use crate::common::relay::Relay;
use crate::xa::ROWS;

/// Fourteen replicas may share two cores.
const PATIENCE: Duration = Duration::from_secs(900);
const POLL: Duration = Duration::from_millis(100);
const FIRST_FILE: &str = "binlog-u.000001";

pub(super) struct Followers {
    pub(super) all: Vec<XaFollower>,
}

impl Followers {
    pub(super) fn of(tools: &[(Tool, bool)], relay: &Relay) -> Followers {
        let start = |(tool, by_gtid): &(Tool, bool)| {
            let follower = XaFollower::start(*tool, *by_gtid);
            follower.follow(relay.port, FIRST_FILE);
            follower
        };
        Followers { all: tools.iter().map(start).collect() }
    }

    pub(super) fn any(&self, random: &mut Random) -> usize {
        random.below(self.all.len())
    }

    pub(super) fn with(&self, weakness: Weakness) -> impl Iterator<Item = &XaFollower> {
        self.all.iter().filter(move |follower| follower.weakness == weakness)
    }

    pub(super) fn by_position(&self) -> impl Iterator<Item = &XaFollower> {
        self.all.iter().filter(|follower| !follower.by_gtid)
    }

    pub(super) fn names(&self) -> String {
        self.all.iter().map(|follower| follower.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

enum Server {
    Mysql(MysqlSandbox),
    Old(Mysql56Sandbox),
    Mariadb(MariadbSandbox),
}

impl Server {
    fn start(tool: Tool) -> Result<Server> {
        let recovers = ("relay-log-recovery", "ON");
        Ok(match tool {
            Tool::Mysql | Tool::Mysql80 => {
                let builder = tool.find()?.sandbox().option("skip-replica-start", "ON");
                let builder = builder.option(ONE_WORKER.0, ONE_WORKER.1);
                Server::Mysql(builder.option(recovers.0, recovers.1).start()?)
            }
            Tool::Mysql56 | Tool::Mysql5614 => Server::Old(Mysql56Sandbox::start_version(tool, &[recovers])?),
            _ => {
                let options = [("binlog-format", "ROW"), recovers];
                Server::Mariadb(MariadbSandbox::start_version(tool, &options)?)
            }
        })
    }
}

/// A fault of a replica's own, whatever its source: it must have applied everything before it is interrupted in this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weakness {
    None,
    /// MySQL 5.6.14 by GTID (bugs 69758 and 69943 of MySQL): it counts a transaction as received from its GTID event on, so one that a
    /// broken connection cut is never asked for again, and half of it may be committed under the next one's GTID.
    CutTransaction,
}

/// A replica, and how it follows.
pub(super) struct XaFollower {
    name: String,
    pub(super) weakness: Weakness,
    pub(super) by_gtid: bool,
    server: Server,
}

impl XaFollower {
    /// Whether there is such a server; says `SKIPPED` aloud if not.
    pub(super) fn can_be_had(tool: Tool) -> bool {
        let found = tool.find();
        if let Err(error) = &found {
            binlogz_testkit::tool::skip(&error.to_string());
        }
        found.is_ok()
    }

    fn start(tool: Tool, by_gtid: bool) -> XaFollower {
        // Many servers start, and a busy machine may take too long once.
        let server = Server::start(tool).or_else(|_| Server::start(tool)).unwrap();
        let kind = if matches!(server, Server::Mariadb(_)) { "MariaDB" } else { "MySQL" };
        let way = if by_gtid { "GTID" } else { "position" };
        let weakness = match tool {
            Tool::Mysql5614 if by_gtid => Weakness::CutTransaction,
            _ => Weakness::None,
        };
        let mut follower = XaFollower { name: String::new(), weakness, by_gtid, server };
        follower.name = format!("{kind} {} by {way}", follower.server().installed().version());
        follower
    }

    fn server(&self) -> &SandboxServer {
        match &self.server {
            Server::Mysql(server) => server,
            Server::Old(server) => server,
            Server::Mariadb(server) => server,
        }
    }

    fn server_mut(&mut self) -> &mut SandboxServer {
        match &mut self.server {
            Server::Mysql(server) => server,
            Server::Old(server) => server,
            Server::Mariadb(server) => server,
        }
    }

    fn is_new(&self) -> bool {
        matches!(self.server, Server::Mysql(_))
    }

    /// Follows the relay from the beginning of a file on, or by GTID.
    fn follow(&self, port: u16, file: &str) {
        let word = if self.is_new() { "SOURCE" } else { "MASTER" };
        let begin = match (&self.server, self.by_gtid) {
            (_, true) => format!("{word}_AUTO_POSITION=1"),
            (Server::Mariadb(_), false) => {
                format!("MASTER_SSL=0, MASTER_USE_GTID=no, MASTER_LOG_FILE='{file}', MASTER_LOG_POS=4")
            }
            (_, false) => format!("{word}_LOG_FILE='{file}', {word}_LOG_POS=4"),
        };
        let change = match self.is_new() {
            true => {
                "CHANGE REPLICATION SOURCE TO SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, SOURCE_RETRY_COUNT=1000,"
            }
            false => "CHANGE MASTER TO",
        };
        let who = format!(
            "{word}_HOST='127.0.0.1', {word}_PORT={port}, {word}_USER='reader', {word}_PASSWORD='secret'"
        );
        let [_, begins] = self.words();
        let statements = format!("{change} {who}, {word}_CONNECT_RETRY=1, {begin}; {begins}");
        self.server().sql(&statements).unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// Statements that end and begin replication.
    fn words(&self) -> [&'static str; 2] {
        if self.is_new() { ["STOP REPLICA", "START REPLICA"] } else { ["STOP SLAVE", "START SLAVE"] }
    }

    pub(super) fn stop_and_start(&self) {
        let [stop, start] = self.words();
        self.server().sql(&format!("{stop}; {start}")).unwrap();
    }

    /// Kills it, if it knows by GTIDs what it has applied; others may do a transaction twice after a crash, and are shut down.
    pub(super) fn restart(&mut self) {
        let is_killed = self.by_gtid;
        let server = self.server_mut();
        match is_killed {
            true => server.kill(),
            false => server.stop().unwrap(),
        }
        server.start().unwrap();
        let [_, start] = self.words();
        self.server().sql(start).unwrap();
    }

    /// The errors of its threads.
    fn errors(&self) -> String {
        let status = self.server().replica_status().unwrap();
        ["Last_IO_Error", "Last_SQL_Error"]
            .map(|field| status.get(field).cloned().unwrap_or_default())
            .join("")
    }

    /// Waits until it has these rows.
    pub(super) fn has_rows(&self, expected: &str, relay: &Relay) {
        self.wait_for("rows", relay, |follower| {
            let errors = follower.errors();
            let has_stopped = ["1236", "rror '", "failed executing", "read failure", "GTID_NEXT"]
                .iter()
                .any(|words| errors.contains(words));
            assert!(!has_stopped, "{}: {errors}\n{}", follower.name, relay.said());
            follower.server().sql(ROWS).is_ok_and(|rows| rows == expected).then_some(())
        });
    }

    /// After a failover it is told that its file is of the log before, and with which one to begin.
    pub(super) fn begins_anew(&self, relay: &Relay) {
        let file = self.wait_for("word of another log", relay, |follower| {
            let errors = follower.errors();
            let (_, file) = errors.split_once("that was kept before this one")?.1.split_once("or with ")?;
            Some(file.trim_end_matches(['\'', '.']).to_owned())
        });
        let [stop, _] = self.words();
        self.server().sql(stop).unwrap();
        self.follow(relay.port, &file);
    }

    /// A replica by GTID has all of them, of transactions without rows too.
    pub(super) fn has_gtids(&self, all: &str) {
        match &self.server {
            Server::Old(server) if self.by_gtid => server.wait_for_gtids(all).unwrap(),
            Server::Mysql(server) if self.by_gtid => {
                let until = Instant::now() + PATIENCE;
                while server.gtid_executed().unwrap() != all {
                    assert!(Instant::now() < until, "{}: {}", self.name, server.gtid_executed().unwrap());
                    sleep(POLL);
                }
            }
            _ => {}
        }
    }

    fn wait_for<T>(&self, what: &str, relay: &Relay, found: impl Fn(&XaFollower) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            let status = || self.server().replica_status();
            assert!(Instant::now() < until, "{}: no {what}: {:?}\n{}", self.name, status(), relay.said());
            sleep(POLL);
        }
    }
}
