//! Maxwell, which writes to the host that it reads from, and so needs a relay that passes that on.

use binlogz_testkit::{Result, Tool};

use super::client::{By, Client};
use crate::common::Folder;
use crate::common::relay::{Configuration, url};
use crate::replicas::Followed;
use crate::table::{Table, Verdict};
use crate::{BEGINNING, FORWARDED, RIGHTS, Rows};

/// A host of Maxwell's: its heading, and the keys of the relay and of the account; none: the source itself.
type Host = (&'static str, Option<[&'static str; 2]>);

const HOSTS: [Host; 4] = [
    ("the source itself", None),
    ("relay, `auto`, `forward_sql`", Some(["forward_sql = true", ""])),
    (
        "relay, `auto`, `forward_sql`, `read_only = \"source\"`",
        Some(["forward_sql = true\nread_only = \"source\"", ""]),
    ),
    (
        "relay, `reads = \"maxwell-1\"`, `forward_sql`, `read_only = \"source\"`",
        Some(["forward_sql = true\nread_only = \"source\"", PROFILE]),
    ),
];
/// As in the guide: its own tables are not for itself.
const PROFILE: &str = "\
reads = \"maxwell-1\"
ignore_tables = [\"maxwell.bootstrap\", \"maxwell.columns\", \"maxwell.databases\", \"maxwell.schemas\", \"maxwell.tables\"]";

/// How it fares with a source of its own, which has its tables already: it stops where it meets their CREATE TABLE again.
fn verdict(keys: Option<[&str; 2]>) -> Result<Verdict> {
    let source =
        Tool::Mysql.find()?.sandbox().compression(3).option("binlog-row-metadata", "FULL").start()?;
    source
        .sql(&format!("{BEGINNING}{RIGHTS} repl@'127.0.0.1'; GRANT ALL ON maxwell.* TO repl@'127.0.0.1'"))?;
    source.flush_binary_logs()?;
    Rows::write(&source);
    let Some([listen, account]) = keys else {
        let followed = Followed { first_file: "binlog.000002", ..Followed::source(&source) };
        return Ok(super::verdict(Client::Maxwell, &source, followed, By::Position));
    };
    let folder = Folder::new();
    let mut relay = Configuration::of([url(&source)])
        .listen(listen)
        .account("reader", format!("{account}\n{FORWARDED}"))
        .start(&folder);
    relay.has_all_of(&source);
    let followed = Followed { first_file: "binlog-u.000002", ..crate::newer::reader(&relay) };
    Ok(super::verdict(Client::Maxwell, &source, followed, By::Position))
}

pub(crate) fn table() -> Table {
    let mut table = Table::new(
        "Maxwell with one host",
        "It keeps its own tables where it reads. Each column has a source of its own, whose tables exist before the first row; else as above.",
        HOSTS.map(|(heading, _)| heading.to_owned()).into(),
    );
    let cell = |keys| verdict(keys).unwrap_or_else(|error| Verdict::NotTried(error.to_string()));
    table.row(Client::Maxwell.name(), HOSTS.map(|(_, keys)| cell(keys)).into());
    table
}
