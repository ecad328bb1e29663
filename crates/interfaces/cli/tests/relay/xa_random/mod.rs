//! Random XA and plain transactions, prepared across rotations, restarts and failovers: replicas of every version have the source's rows
//! in the end. `make test` does it briefly with some versions, `scripts/soak/xa.sh` with all of them.
//!
//! ```text
//! work.rs        statements of the source
//! followers.rs   replicas, and how each is told where to begin
//! ```
//!
//! `SEED=N` repeats a run's statements and events.

mod followers;
mod work;

use binlogz_testkit::random::Random;
use binlogz_testkit::{InstalledTool, MysqlSandbox, Tool, mutate, require_tool, setting};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, reserved_port, url};
use crate::xa::{ROWS, TABLES};
use followers::{Followers, Weakness, XaFollower};
use work::Work;

/// Of `make test`: versions that get XA transactions as plain ones, by GTID and by position, and one that knows them.
const SOME: [(Tool, bool); 5] = [
    (Tool::Mysql56, true),
    (Tool::Mysql56, false),
    (Tool::Mariadb, false),
    (Tool::Mariadb114, false),
    (Tool::Mysql, true),
];
/// All that can be had, and whether they follow by GTID. MySQL 5.5 knows neither checksums nor Previous_gtids, and is told so.
const ALL: [(Tool, bool); 14] = [
    (Tool::Mysql, true),
    (Tool::Mysql, false),
    (Tool::Mysql80, true),
    (Tool::Mysql80, false),
    (Tool::Mysql56, true),
    (Tool::Mysql56, false),
    (Tool::Mysql5614, true),
    (Tool::Mysql5614, false),
    (Tool::Mariadb118, false),
    (Tool::Mariadb114, false),
    (Tool::Mariadb, false),
    (Tool::Mariadb105, false),
    (Tool::Mariadb102, false),
    (Tool::Mariadb101, false),
];

/// Several may begin an XA transaction before an earlier one of its name is committed: they tell rows apart, not names.
const ONE_WORKER: (&str, &str) = ("replica-parallel-workers", "1");

/// On a busy machine a source is gone for longer than ten attempts, a second each.
const TRIES_LONG: &str =
    "STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_RETRY_COUNT = 1000; START REPLICA";

/// What happens after a round of statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interruption {
    RelayKilled,
    SourceRestarted,
    FailOver,
    ReplicationStopped,
    ReplicaRestarted,
    None,
}

impl Interruption {
    /// Each of them at first, then at random; a failover comes once more, in the middle.
    fn after(round: usize, rounds: usize, random: &mut Random) -> Interruption {
        const FIRST: [Interruption; 5] = [
            Interruption::RelayKilled,
            Interruption::SourceRestarted,
            Interruption::FailOver,
            Interruption::ReplicaRestarted,
            Interruption::ReplicationStopped,
        ];
        let chosen = random.below(8);
        match (FIRST.get(round), chosen) {
            (Some(first), _) => *first,
            (None, _) if round == rounds / 2 => Interruption::FailOver,
            (None, 0 | 1) => Interruption::RelayKilled,
            (None, 2) => Interruption::SourceRestarted,
            (None, 3 | 4) => Interruption::ReplicationStopped,
            (None, 5) => Interruption::ReplicaRestarted,
            (None, _) => Interruption::None,
        }
    }
}

/// Whether the relay may follow a server. A source that is stopped comes back: the relay is not to go over to its replica meanwhile, as it
/// would, since then positions lead nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Account {
    Locked,
    Unlocked,
}

impl Account {
    fn of(self, server: &MysqlSandbox) {
        let word = if self == Account::Locked { "LOCK" } else { "UNLOCK" };
        let statements = format!("SET sql_log_bin = 0; ALTER USER repl@'127.0.0.1' ACCOUNT {word}");
        server.sql(&statements).unwrap();
    }
}

/// A source with a replica that may take its place, their relay, and the replicas of that.
struct Run {
    mysql: &'static InstalledTool,
    checksum: String,
    folder: Folder,
    source: MysqlSandbox,
    standby: MysqlSandbox,
    configuration: Configuration,
    relay: Relay,
    followers: Followers,
    /// Numbers of rows by which all before is known to be there: less than those of all others.
    marker: i32,
}

impl Run {
    fn start(mysql: &'static InstalledTool, tools: &[(Tool, bool)], checksum: &str) -> Run {
        let [source, standby] = [(), ()].map(|()| server(mysql, checksum, reserved_port()));
        source.sql(TABLES).unwrap();
        standby.replicate_from(&source).unwrap();
        standby.sql(TRIES_LONG).unwrap();
        Account::Locked.of(&standby);
        let folder = Folder::new();
        let configuration = Configuration::of([url(&source), url(&standby)])
            .account("reader", "")
            .ports(reserved_port(), reserved_port());
        let mut relay = configuration.start(&folder);
        relay.has_all_of(&source);
        let followers = Followers::of(tools, &relay);
        Run {
            mysql,
            checksum: checksum.to_owned(),
            folder,
            source,
            standby,
            configuration,
            relay,
            followers,
            marker: 0,
        }
    }

    fn interrupt(&mut self, interruption: Interruption, random: &mut Random) {
        match interruption {
            Interruption::RelayKilled => {
                self.settle(|followers| followers.with(Weakness::CutTransaction).collect());
                self.relay.kill();
                self.relay = self.configuration.start(&self.folder);
            }
            Interruption::SourceRestarted => {
                // Killed, 9.7.4 has forgotten a prepared transaction now and then.
                self.source.stop().unwrap();
                self.source.start().unwrap();
            }
            Interruption::FailOver => self.fail_over(),
            Interruption::ReplicationStopped => {
                let chosen = self.choose(random);
                self.followers.all[chosen].stop_and_start();
            }
            Interruption::ReplicaRestarted => {
                let chosen = self.choose(random);
                self.followers.all[chosen].restart();
            }
            Interruption::None => {}
        }
    }

    /// A replica to stop, which has applied everything if it must have.
    fn choose(&mut self, random: &mut Random) -> usize {
        let chosen = self.followers.any(random);
        if self.followers.all[chosen].weakness != Weakness::None {
            self.settle(|followers| vec![&followers.all[chosen]]);
        }
        chosen
    }

    /// Waits until these replicas have applied everything.
    fn settle<'a>(&'a mut self, chosen: impl FnOnce(&'a Followers) -> Vec<&'a XaFollower>) {
        self.mark();
        let all = self.source.sql(ROWS).unwrap();
        chosen(&self.followers).into_iter().for_each(|follower| follower.has_rows(&all, &self.relay));
    }

    /// The source dies, and its replica takes its place. Positions lead nowhere in another server's log, so replicas by position have all of
    /// the log before, are told so, and begin where the error says.
    fn fail_over(&mut self) {
        self.mark();
        self.relay.has_all_of(&self.source);
        self.standby.wait_for_source(&self.source).unwrap();
        let all = self.source.sql(ROWS).unwrap();
        self.followers.by_position().for_each(|follower| follower.has_rows(&all, &self.relay));
        self.standby.flush_binary_logs().unwrap();
        self.source.kill();
        self.standby.sql("STOP REPLICA; RESET REPLICA ALL").unwrap();
        std::mem::swap(&mut self.source, &mut self.standby);
        Account::Unlocked.of(&self.source);
        self.mark();
        self.relay.has_gtids_of(&self.source);
        self.followers.by_position().for_each(|follower| follower.begins_anew(&self.relay));
        // A new one, at the address of the former source.
        self.standby = server(self.mysql, &self.checksum, self.standby.port());
        Account::Locked.of(&self.standby);
        self.standby.replicate_from(&self.source).unwrap();
        self.standby.sql(TRIES_LONG).unwrap();
    }

    /// Writes a row after all others.
    fn mark(&mut self) {
        self.marker -= 1;
        self.source.sql(&format!("INSERT INTO x.other VALUES ({}, 0)", self.marker)).unwrap();
    }
}

/// A server that others find again after its restart.
fn server(mysql: &'static InstalledTool, checksum: &str, port: u16) -> MysqlSandbox {
    let builder = mysql.sandbox().compression(3).option("max-allowed-packet", "64M");
    let builder = builder.option("binlog-checksum", checksum).option(ONE_WORKER.0, ONE_WORKER.1);
    let mut server = builder.start().unwrap();
    server.stop().unwrap();
    server.choose_port(port);
    server.start().unwrap();
    server
}

/// Random transactions in rounds, after each of which someone goes and comes back.
fn random_transactions(tools: &[(Tool, bool)], checksum: &str, count: usize, rounds: usize) {
    let mysql = require_tool!(Tool::Mysql);
    let seed = mutate::seed();
    let mut random = Random::new(seed);
    let mut run = Run::start(mysql, tools, checksum);
    let mut work = Work::default();
    let mut interruptions = Vec::new();
    for round in 0..rounds {
        let mut sql = format!("SET SESSION binlog_transaction_compression = {};\n", random.below(2));
        (0..count / rounds).for_each(|_| work.step(&mut random, &mut sql));
        run.source.sql(&sql).unwrap_or_else(|error| panic!("SEED={seed} round {round}: {error}"));
        let interruption = Interruption::after(round, rounds, &mut random);
        println!("round {round}: {interruption:?}");
        interruptions.push(interruption);
        run.interrupt(interruption, &mut random);
    }
    // One stays prepared: nobody has its rows.
    let mut sql = String::new();
    let names: Vec<usize> = work.prepared.keys().copied().skip(1).collect();
    names.into_iter().for_each(|name| work.decide(name, random.below(2) == 0, &mut sql));
    run.source.sql(&sql).unwrap();
    run.mark();
    let all = run.source.sql(ROWS).unwrap();
    run.followers.all.iter().for_each(|follower| follower.has_rows(&all, &run.relay));
    let gtids = run.source.gtid_executed().unwrap();
    run.followers.all.iter().for_each(|follower| follower.has_gtids(&gtids));

    let [plain, one_phase, committed, rolled_back] = work.counts;
    let times = |wanted| interruptions.iter().filter(|interruption| **interruption == wanted).count();
    println!(
        "SEED={seed}: {plain} plain transactions and {one_phase} XA ones in one phase, {committed} committed, {rolled_back} rolled \
         back; relay killed {} times, source restarted {}, failovers {}, replicas restarted {}; {} rows equal in all of {}",
        times(Interruption::RelayKilled),
        times(Interruption::SourceRestarted),
        times(Interruption::FailOver),
        times(Interruption::ReplicaRestarted),
        all.lines().count(),
        run.followers.names()
    );
}

#[test]
fn replicas_have_the_rows_of_what_was_committed_through_restarts_and_a_failover() {
    for (tool, _) in SOME {
        require_tool!(tool);
    }
    random_transactions(&SOME, "CRC32", setting("RELAY_XA_STEPS", 60), setting("RELAY_XA_ROUNDS", 4));
}

#[test]
fn so_they_have_from_a_source_without_checksums() {
    for (tool, _) in SOME {
        require_tool!(tool);
    }
    random_transactions(&SOME[..3], "NONE", setting("RELAY_XA_STEPS", 60), setting("RELAY_XA_ROUNDS", 4));
}

/// `scripts/soak/xa.sh`.
#[test]
#[ignore = "takes minutes"]
fn a_thousand_transactions_with_xa_to_every_replica() {
    let checksum = std::env::var("RELAY_XA_CHECKSUM").unwrap_or_else(|_| "CRC32".into());
    let named = std::env::var("RELAY_XA_REPLICAS").unwrap_or_default();
    let is_wanted = |tool: Tool| named.is_empty() || named.split(' ').any(|name| name == tool.name());
    let wanted = ALL.into_iter().filter(|(tool, _)| is_wanted(*tool) && XaFollower::can_be_had(*tool));
    let found: Vec<_> = wanted.collect();
    random_transactions(&found, &checksum, setting("RELAY_XA_STEPS", 1800), setting("RELAY_XA_ROUNDS", 60));
}
