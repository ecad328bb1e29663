//! Other ways to replicate through the relay: semi-synchronous replicas, and one replica of two sources.

use std::time::Duration;

use binlogz_testkit::{MysqlSandbox, Result, Tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, reserved_port, url};
use crate::newer::{reader, started};
use crate::replicas::{Followed, Replica, wanted, ways};
use crate::table::{Table, Verdict};
use crate::{BEGINNING, HASH, Rows, patience};

/// A source that waits for its semi-synchronous replica, the relay, which waits for one of its own.
struct SemiSync {
    source: MysqlSandbox,
    folder: Folder,
    configuration: Configuration,
    relay: Relay,
}

impl SemiSync {
    fn start() -> Result<SemiSync> {
        let source = Tool::Mysql.find()?.sandbox().compression(3).start()?;
        source.sql(
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';
             SET GLOBAL rpl_semi_sync_source_timeout = 120000",
        )?;
        source.sql(BEGINNING)?;
        Rows::write(&source);
        let folder = Folder::new();
        let configuration = Configuration::of([url(&source)])
            .source("semi_sync = true\nwait_for_replicas = 1\nwait_timeout_ms = 120000")
            .listen("semi_sync = true")
            .account("reader", "")
            .ports(reserved_port(), reserved_port());
        let mut relay = configuration.start(&folder);
        relay.has_all_of(&source);
        Ok(SemiSync { source, folder, configuration, relay })
    }

    /// How often a commit did (`yes`), or did not (`no`), have an acknowledgement.
    fn commits(&self, word: &str) -> Result<u64> {
        let status = self.source.sql(&format!("SHOW STATUS LIKE 'Rpl_semi_sync_source_{word}_tx'"))?;
        Ok(status.split_whitespace().last().and_then(|count| count.parse().ok()).unwrap_or(0))
    }

    /// Rows are committed when the replica has them, while the relay is killed and begun again.
    fn verdict(&mut self, replica: &Replica, by_gtid: bool) -> Result<Verdict> {
        replica.follow(reader(&self.relay), by_gtid)?;
        if let Some(verdict) = replica.wait_for_rows(HASH, &self.source.sql(HASH)?, patience()) {
            return Ok(verdict);
        }
        self.source.sql("SET GLOBAL rpl_semi_sync_source_enabled = ON")?;
        std::thread::scope(|scope| {
            let writes = scope.spawn(|| (0..5).for_each(|_| Rows::write(&self.source)));
            std::thread::sleep(Duration::from_millis(200));
            self.relay.kill();
            self.relay = self.configuration.start(&self.folder);
            writes.join().unwrap();
        });
        if let Some(verdict) = replica.wait_for_rows(HASH, &self.source.sql(HASH)?, patience()) {
            return Ok(verdict);
        }
        let status = self.relay.status();
        let acknowledged = status["replicas"][0]["acknowledgements"].as_u64().unwrap_or(0);
        let [with, without] = [self.commits("yes")?, self.commits("no")?];
        Ok(match without == 0 && with > 0 && acknowledged > 0 {
            true => Verdict::Works,
            false => Verdict::Differs(format!(
                "{without} of {} transactions were committed without an acknowledgement, the replica sent {acknowledged}",
                with + without
            )),
        })
    }
}

/// Turns acknowledgements on; `false`: this version's packages have no plugin for it.
fn acknowledges(replica: &Replica, tool: Tool) -> Result<bool> {
    let statements = match (replica, tool) {
        (Replica::Mysql(_), _) => {
            "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'; SET GLOBAL rpl_semi_sync_replica_enabled = ON"
        }
        (Replica::Mysql56(_), _) | (_, Tool::Mariadb101 | Tool::Mariadb102) => return Ok(false),
        (Replica::Mariadb(_), _) => "SET GLOBAL rpl_semi_sync_slave_enabled = ON",
    };
    replica.server().sql(statements).map(|_| true)
}

fn semi_sync(tool: Tool, by_gtid: bool) -> Result<Verdict> {
    let replica = Replica::start(tool)?;
    match acknowledges(&replica, tool)? {
        true => SemiSync::start()?.verdict(&replica, by_gtid),
        false => Ok(Verdict::NotTried("there is no plugin for it here".into())),
    }
}

/// Two sources, of which one relay keeps the logs.
struct TwoSources {
    sources: [MysqlSandbox; 2],
    folder: Folder,
    configuration: Configuration,
    relay: Relay,
}

const NAMES: [&str; 2] = ["one", "two"];
/// Two names of one host: MariaDB refuses a second connection to the same host and port, whatever its account.
const HOSTS: [&str; 2] = ["127.0.0.1", "127.1"];

impl TwoSources {
    fn start() -> Result<TwoSources> {
        let start = || Tool::Mysql.find()?.sandbox().compression(3).start();
        let sources = [start()?, start()?];
        sources[0].sql(BEGINNING)?;
        sources[1].sql("CREATE DATABASE compat2; CREATE TABLE compat2.t (id INT PRIMARY KEY AUTO_INCREMENT, word VARCHAR(40))")?;
        let folder = Folder::new();
        let tables = NAMES.iter().zip(&sources).map(|(name, source)| {
            format!(
                "[[source]]\nname = \"{name}\"\nservers = [\"{}\"]\npassword_file = \"source.password\"\n",
                url(source)
            )
        });
        let configuration = Configuration::of_several(tables.collect::<String>())
            .account("reader_one", "source = \"one\"")
            .account("reader_two", "source = \"two\"")
            .ports(reserved_port(), reserved_port());
        let relay = configuration.start(&folder);
        Ok(TwoSources { sources, folder, configuration, relay })
    }

    fn write(&self) -> Result<()> {
        Rows::write(&self.sources[0]);
        self.sources[1].sql(&"INSERT INTO compat2.t (word) VALUES ('ßé😀');".repeat(Rows::SINGLE)).map(drop)
    }

    /// Waits until a replica has the rows of both.
    fn has_all(&self, replica: &Replica) -> Result<Option<Verdict>> {
        const OF_TWO: &str = "SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, HEX(word)))) FROM compat2.t";
        for (source, question) in self.sources.iter().zip([HASH, OF_TWO]) {
            if let Some(verdict) = replica.wait_for_rows(question, &source.sql(question)?, patience()) {
                return Ok(Some(verdict));
            }
        }
        Ok(None)
    }

    fn verdict(mut self, replica: &mut Replica, by_gtid: bool) -> Result<Verdict> {
        self.write()?;
        let users = ["reader_one", "reader_two"];
        for ((name, user), host) in NAMES.into_iter().zip(users).zip(HOSTS) {
            let followed = Followed { host, user, ..reader(&self.relay) };
            replica.follow_as(followed, by_gtid, Some(name))?;
        }
        if let Some(verdict) = self.has_all(replica)? {
            return Ok(verdict);
        }
        replica.server_mut().kill();
        self.write()?;
        replica.server_mut().start()?;
        let begin = if matches!(replica, Replica::Mariadb(_)) { "START ALL SLAVES" } else { "START REPLICA" };
        replica.server().sql(begin)?;
        if let Some(verdict) = self.has_all(replica)? {
            return Ok(verdict.prefixed("after a kill"));
        }
        self.relay.kill();
        self.write()?;
        self.relay = self.configuration.start(&self.folder);
        let verdict = self.has_all(replica)?.unwrap_or(Verdict::Works);
        Ok(verdict.prefixed("after a restart of the relay"))
    }
}

fn two_channels(tool: Tool, by_gtid: bool) -> Result<Verdict> {
    let mut replica = Replica::start(tool)?;
    match replica {
        Replica::Mysql56(_) => Ok(Verdict::NotTried("it follows one source".into())),
        Replica::Mysql(_) | Replica::Mariadb(_) => TwoSources::start()?.verdict(&mut replica, by_gtid),
    }
}

pub(crate) fn table() -> Table {
    let mut table = Table::new(
        "Acknowledgements and channels",
        "Through the relay, which is left to choose. Semi-synchronous: the source commits when the replica has acknowledged to the relay, which \
         is killed while rows are written; no commit went without. Two channels: a replica of two sources by one relay; the replica is \
         killed, then the relay. Every row compared.",
        ["semi-synchronous", "two channels"].map(str::to_owned).into(),
    )
    .strict();
    for tool in wanted() {
        for by_gtid in ways(tool) {
            let title = match started(tool) {
                Ok(replica) => replica.title(*by_gtid),
                Err(_) => tool.name().to_owned(),
            };
            let cells = [semi_sync, two_channels]
                .map(|way| way(tool, *by_gtid).unwrap_or_else(|error| Verdict::NotTried(error.to_string())));
            table.row(title, cells.into());
        }
    }
    table
}
