//! The source is killed while replicas of the relay are connected: it comes back, and later another server takes its place.

use binlogz_testkit::{MysqlSandbox, Tool};

use super::{reader, started};
use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, reserved_port, url};
use crate::replicas::{Replica, wanted, ways};
use crate::table::{Table, Verdict};
use crate::{BEGINNING, HASH, Rows, patience};

/// Replicas at a time, beside two sources.
const AT_A_TIME: usize = 5;

/// A replica, and how it has fared so far.
struct Attached {
    title: String,
    replica: Result<Replica, Verdict>,
    cells: Vec<Verdict>,
}

impl Attached {
    fn to(relay: &Relay, tool: Tool, by_gtid: bool) -> Attached {
        let replica = started(tool).and_then(|replica| {
            let followed = replica.follow(reader(relay), by_gtid);
            followed.map_err(|error| Verdict::NotTried(error.to_string()))?;
            Ok(replica)
        });
        let title = replica.as_ref().map_or(tool.name().to_owned(), |replica| replica.title(by_gtid));
        Attached { title, replica, cells: Vec::new() }
    }

    /// Notes whether it has the rows of this server.
    fn fares(&mut self, server: &MysqlSandbox) {
        let earlier = self.cells.iter().find(|verdict| !matches!(verdict, Verdict::Works)).cloned();
        let verdict = match (&self.replica, earlier) {
            (Err(verdict), _) => verdict.clone(),
            (Ok(_), Some(_)) => Verdict::NotTried("it had stopped".into()),
            (Ok(replica), None) => {
                let answer = server.sql(HASH).unwrap();
                replica.wait_for_rows(HASH, &answer, patience()).unwrap_or(Verdict::Works)
            }
        };
        self.cells.push(verdict);
    }
}

/// The rows of the table for these replicas.
fn fared(batch: &[(Tool, bool)]) -> Vec<Attached> {
    let mysql = Tool::Mysql.find().unwrap();
    let mut first = mysql.sandbox().compression(3).start().unwrap();
    // Where others find it again.
    first.stop().unwrap();
    first.choose_port(reserved_port());
    first.start().unwrap();
    let second = mysql.sandbox().compression(3).start().unwrap();
    second.replicate_from(&first).unwrap();
    first.sql(BEGINNING).unwrap();
    Rows::write(&first);
    let folder = Folder::new();
    let mut relay = Configuration::of([url(&first), url(&second)]).account("reader", "").start(&folder);
    relay.has_all_of(&first);
    let mut attached: Vec<_> =
        batch.iter().map(|(tool, by_gtid)| Attached::to(&relay, *tool, *by_gtid)).collect();
    attached.iter_mut().for_each(|replica| replica.fares(&first));
    first.kill();
    first.start().unwrap();
    Rows::write(&first);
    attached.iter_mut().for_each(|replica| replica.fares(&first));

    second.wait_for_source(&first).unwrap();
    first.kill();
    second.sql("STOP REPLICA; RESET REPLICA ALL").unwrap();
    Rows::write(&second);
    relay.has_gtids_of(&second);
    attached.iter_mut().for_each(|replica| replica.fares(&second));
    attached
}

pub(crate) fn table() -> Table {
    let mut table = Table::new(
        "Another server takes the source's place",
        "The replicas are connected to the relay, left to choose, while its source is killed. It is started again; later it is killed for good, \
         and its own replica is written to. Every row compared.",
        ["before", "the source is back", "another server, whose log has the same file names"].map(str::to_owned).into(),
    )
    .strict();
    let all: Vec<_> =
        wanted().into_iter().flat_map(|tool| ways(tool).iter().map(move |way| (tool, *way))).collect();
    for batch in all.chunks(AT_A_TIME) {
        for attached in fared(batch) {
            table.row(attached.title, attached.cells);
        }
    }
    table
}
