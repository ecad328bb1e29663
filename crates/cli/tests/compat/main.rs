//! The compatibility matrix: which servers and clients follow a MySQL source, directly and through the relay in each form.
//!
//! ```text
//! replicas.rs   servers as replicas: every row compared, the replica killed and started again in between
//! sources.rs    servers as the relay's source
//! clients/      change-data-capture clients: every row compared, the client killed and begun again in between
//! table.rs      what a cell says, and the page
//! ```
//!
//! `make compat` runs it: minutes to an hour, and servers that `make test` does not ask for. `PARTS` names the parts to run.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod clients;
#[path = "../common/mod.rs"]
mod common;
mod replicas;
mod sources;
mod table;

use std::time::Duration;

use binlogz_testkit::{MysqlSandbox, Server, Tool};

use common::Folder;
use common::relay::{Configuration, Relay, url};
use table::{Page, Table};

/// How long a replica or client that says nothing may take for what is written in milliseconds.
const PATIENCE: Duration = Duration::from_secs(40);

/// What every cell begins with: DDL, small transactions, a larger one, in the default collation of 9.7.
const BEGINNING: &str = "\
CREATE DATABASE compat;
CREATE TABLE compat.t (id INT PRIMARY KEY AUTO_INCREMENT, word VARCHAR(40), price DECIMAL(10,2), at DATETIME,
    KEY (word)) COLLATE utf8mb4_0900_ai_ci;
";
/// A hash of all rows, in words that 5.6 and MariaDB know.
const HASH: &str = "SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id, HEX(word), price, at))) FROM compat.t";

/// Rows that a source writes at a time: transactions of one row, and one of many.
struct Rows;

impl Rows {
    const SINGLE: usize = 20;
    const TOGETHER: usize = 200;

    fn write(source: &Server) {
        let one = "INSERT INTO compat.t (word, price, at) VALUES ('ßé😀', 1.5, '2026-11-22 01:02:03');";
        let many: Vec<_> = (0..Self::TOGETHER).map(|row| format!("('word {row}', {row}, NULL)")).collect();
        let many = format!("INSERT INTO compat.t (word, price, at) VALUES {};", many.join(", "));
        source.sql(&format!("SET NAMES utf8mb4; {}{many}", one.repeat(Self::SINGLE))).unwrap();
    }
}

/// A source with the defaults of its version, that compresses what it can.
fn source(tool: Tool) -> binlogz_testkit::Result<MysqlSandbox> {
    let source = tool.find()?.sandbox().compression(3).option("binlog-row-metadata", "FULL").start()?;
    source.sql(BEGINNING)?;
    Rows::write(&source);
    Ok(source)
}

/// What a client's account needs at the source: the relay's own needs only the first two.
const RIGHTS: &str = "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT, RELOAD, SHOW DATABASES ON *.* TO";

/// A relay that has all of a source; an account for each form. `listen`: further keys of `[listen]`.
fn relay(folder: &Folder, source: &MysqlSandbox, listen: &str) -> Relay {
    let configuration = Configuration::of([url(source)]);
    let configuration =
        FORMS.into_iter().fold(configuration, |configuration, (_, [own, forwarded], keys)| {
            configuration.account(own, keys).account(forwarded, format!("{keys}\n{FORWARDED}"))
        });
    let certificate = match certificate(folder) {
        true => "ssl_cert = \"relay.pem\"\nssl_key = \"relay.key\"",
        false => "",
    };
    let mut relay = configuration.listen(format!("{certificate}\n{listen}")).start(folder);
    relay.has_all_of(source);
    relay
}

/// What an account may be given, with the names of two accounts that have it: of one that stays at the relay, and of one whose
/// SQL goes on to the source with an account of another name.
const FORMS: [(&str, [&str; 2], &str); 5] = [
    ("`auto`", ["auto", "forwarded_auto"], "form = \"auto\""),
    ("`received`", ["received", "forwarded_received"], "form = \"received\""),
    ("`compressed`", ["compressed", "forwarded_compressed"], "form = \"compressed\""),
    ("`uncompressed`", ["uncompressed", "forwarded_uncompressed"], "form = \"uncompressed\""),
    ("`older_collations`", ["older", "forwarded_older"], "older_collations = true"),
];
const FORWARDED: &str = "source_user = \"repl\"\nsource_password_file = \"source.password\"";

/// The relays of one source.
struct Relays {
    usual: Relay,
    /// What it does not answer goes to the source.
    forwarding: Relay,
}

/// Makes `relay.pem` and `relay.key`.
fn certificate(folder: &Folder) -> bool {
    let Ok(openssl) = Tool::Openssl.find() else { return false };
    let arguments =
        "req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=relay -keyout relay.key -out relay.pem";
    let mut command = openssl.command("openssl");
    command.args(arguments.split(' ')).current_dir(folder.path("")).output().unwrap().status.success()
}

/// The parts of the matrix, by name.
const PARTS: [(&str, Part); 6] = [
    ("replicas", Part::BesideARelay(replicas::table)),
    ("clients", Part::BesideARelay(clients::table)),
    ("forwarding", Part::BesideARelay(clients::table_of_forwarding)),
    ("tls", Part::BesideARelay(clients::table_of_tls)),
    ("sql", Part::BesideARelay(clients::sql::table)),
    ("sources", Part::Alone(sources::table)),
];

#[derive(Clone, Copy)]
enum Part {
    /// With a source of its own, and relays that follow it.
    BesideARelay(fn(&MysqlSandbox, &Relays) -> Table),
    Alone(fn() -> Table),
}

impl Part {
    fn run(self) -> Table {
        match self {
            Part::Alone(table) => table(),
            Part::BesideARelay(table) => {
                let folders = [Folder::new(), Folder::new()];
                let source = source(Tool::Mysql).unwrap();
                source.sql(&format!("{RIGHTS} repl@'127.0.0.1'")).unwrap();
                let usual = relay(&folders[0], &source, "");
                let forwarding = relay(&folders[1], &source, "forward_sql = true");
                table(&source, &Relays { usual, forwarding })
            }
        }
    }
}

#[test]
#[ignore = "make compat: minutes to an hour, and servers that make test does not ask for"]
fn the_matrix() {
    // As in `PARTS="clients sql" make compat`.
    let wanted = std::env::var("PARTS").unwrap_or_default();
    let wanted: Vec<_> = wanted.split_whitespace().collect();
    for name in &wanted {
        assert!(PARTS.iter().any(|(part, _)| part == name), "no part is called {name}");
    }
    let parts = PARTS.iter().filter(|(name, _)| wanted.is_empty() || wanted.contains(name));
    let mut page = Page::read();
    std::thread::scope(|scope| {
        let running: Vec<_> = parts.map(|(_, part)| scope.spawn(|| part.run())).collect();
        let mut failed = false;
        for table in running {
            match table.join() {
                Ok(table) => page.add(table),
                Err(_) => failed = true,
            }
            // A run that is ended has what it has.
            page.write();
        }
        assert!(!failed, "a part of the matrix could not be run");
    });
}
