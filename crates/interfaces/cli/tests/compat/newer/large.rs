//! A transaction of hundreds of megabytes that the source compressed: the relay is killed while a replica receives it, then the replica.

use std::thread::sleep;
use std::time::{Duration, Instant};

use binlogz_testkit::{Result, Tool, setting};

use super::{reader, started};
use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, reserved_port, url};
use crate::replicas::{Replica, wanted, ways};
use crate::table::{Table, Verdict};

const PATIENCE: Duration = Duration::from_secs(900);
const POLL: Duration = Duration::from_millis(50);
/// A tenth of a megabyte each.
const ROW: usize = 100_000;
const HASH: &str = "SELECT COUNT(*), SUM(CRC32(body)), SUM(LENGTH(body)) FROM compat.t";

/// The relay, and what is to be known of its source.
struct LargeLog {
    configuration: Configuration,
    folder: Folder,
    relay: Relay,
    megabytes: usize,
    answer: String,
}

impl LargeLog {
    /// Waits until a replica has stored so many bytes of what it receives; `false`: it has applied them all before.
    fn receives(&self, replica: &Replica, bytes: usize) -> Result<bool> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let status = replica.server().replica_status()?;
            let space = status.get("Relay_Log_Space").and_then(|space| space.parse::<usize>().ok());
            if space.is_some_and(|space| space > bytes) {
                return Ok(replica.server().sql(HASH).is_ok_and(|found| found != self.answer));
            }
            sleep(POLL);
        }
        Ok(false)
    }

    /// A third of what a replica receives: one that can read it compressed gets it so.
    fn third(&self, tool: Tool) -> usize {
        let bytes = match tool {
            Tool::Mysql | Tool::Mysql80 => {
                let kept = std::fs::metadata(self.folder.path("kept/binlog.000001")).unwrap();
                usize::try_from(kept.len()).unwrap()
            }
            _ => self.megabytes * 1_000_000,
        };
        bytes / 3
    }

    fn verdict(&mut self, replica: &mut Replica, third: usize, by_gtid: bool) -> Result<Verdict> {
        replica.follow(reader(&self.relay), by_gtid)?;
        let mut is_in_its_middle = self.receives(replica, third)?;
        self.relay.kill();
        self.relay = self.configuration.start(&self.folder);
        is_in_its_middle &= self.receives(replica, 2 * third)?;
        replica.server_mut().kill();
        replica.server_mut().start()?;
        replica.server().sql(replica.begin())?;
        let verdict = replica.wait_for_rows(HASH, &self.answer, PATIENCE);
        let verdict = verdict.unwrap_or(Verdict::Works);
        Ok(match is_in_its_middle {
            true => verdict,
            false => Verdict::NotTried(format!("it had received all before a kill: {verdict}")),
        })
    }
}

pub(crate) fn table() -> Table {
    let megabytes = setting("COMPAT_LARGE_MB", 300);
    let mut table = Table::new(
        "A large transaction",
        "The source compressed it, and each replica that can't read it so gets it expanded. While one receives it, the relay is killed, then \
         the replica; both are started again. Every row compared. 300 MB, or what `COMPAT_LARGE_MB` says.",
        vec![format!("{megabytes} MB, relay `auto`")],
    )
    .strict();
    let source = Tool::Mysql.find().unwrap().sandbox().compression(3).start().unwrap();
    let row =
        |id: usize| format!("INSERT INTO compat.t VALUES ({id}, REPEAT(SHA2({id}, 256), {ROW} / 64));\n");
    let rows: String = (0..megabytes * 10).map(row).collect();
    let make = "CREATE DATABASE compat; CREATE TABLE compat.t (id INT PRIMARY KEY, body MEDIUMTEXT);";
    source.sql(&format!("{make} BEGIN;\n{rows}COMMIT;")).unwrap();
    let folder = Folder::new();
    let configuration =
        Configuration::of([url(&source)]).account("reader", "").ports(reserved_port(), reserved_port());
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let answer = source.sql(HASH).unwrap();
    let mut log = LargeLog { configuration, folder, relay, megabytes, answer };
    for tool in wanted() {
        for by_gtid in ways(tool) {
            match started(tool) {
                Ok(mut replica) => {
                    let third = log.third(tool);
                    let verdict = log.verdict(&mut replica, third, *by_gtid);
                    let cell = verdict.unwrap_or_else(|error| Verdict::NotTried(error.to_string()));
                    table.row(replica.title(*by_gtid), vec![cell]);
                }
                Err(verdict) => table.row(tool.name(), vec![verdict]),
            }
        }
    }
    table
}
