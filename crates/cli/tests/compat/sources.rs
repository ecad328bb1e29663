//! Servers as the relay's source: MySQL 9.7 follows it in the uncompressed form, and the server itself beside that.

use std::time::{Duration, Instant};

use binlogz_testkit::{MariadbSandbox, Mysql56Sandbox, Result, Server, Tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, reserved_port};
use crate::replicas::{Followed, Replica};
use crate::table::{Table, Verdict};
use crate::{BEGINNING, PATIENCE, source};

/// How a replica fares that follows a relay of this server; if the relay does not follow it, what the relay says.
fn through_a_relay(server: &Server) -> Result<Verdict> {
    server.sql(&BEGINNING.replace("utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci"))?;
    let folder = Folder::new();
    let configuration = Configuration::of([format!("mysql://repl@127.0.0.1:{}", server.port())])
        .account("uncompressed", "form = \"uncompressed\"")
        .ports(reserved_port(), reserved_port());
    let relay = configuration.launch(&folder);
    let until = Instant::now() + PATIENCE;
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let messages = relay.messages();
        if messages.iter().any(|message| message.ends_with(" begins")) {
            let mut replica = Replica::start(Tool::Mysql)?;
            return replica.verdict(server, Followed::of("uncompressed", &relay), true);
        }
        let said = relay.said();
        let is_trouble = |line: &&str| !line.contains("\"level\":\"info\"");
        if let Some(place) = said.lines().position(|line| is_trouble(&line)) {
            return Ok(Verdict::Stops(messages.into_iter().nth(place).unwrap_or_default()));
        }
        if Instant::now() > until {
            return Ok(Verdict::Differs("the relay neither follows it nor says why".into()));
        }
    }
}

/// The server itself, as the relay's source is followed.
fn directly(server: &Server) -> Result<Verdict> {
    let mut replica = Replica::start(Tool::Mysql)?;
    let followed = Followed {
        port: server.port(),
        user: "repl",
        password: "repl",
        first_file: "binlog.000001",
        tls: false,
    };
    replica.verdict(server, followed, true)
}

/// A server with GTIDs and some rows, as 9.7 and the relay may follow it.
fn mysql56() -> Result<Mysql56Sandbox> {
    Mysql56Sandbox::start(&[])
}

/// How a replica fares that follows this server itself.
fn itself(tool: Tool) -> Result<Verdict> {
    let begin = |server: &Server| server.sql(&BEGINNING.replace("utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci"));
    match tool {
        Tool::Mysql | Tool::Mysql80 => directly(&*source(tool)?),
        Tool::Mysql56 => {
            let server = mysql56()?;
            begin(&server)?;
            directly(&server)
        }
        _ => {
            let server = MariadbSandbox::start_version(tool, &[])?;
            begin(&server)?;
            directly(&server)
        }
    }
}

fn followed(tool: Tool) -> Result<Verdict> {
    match tool {
        Tool::Mysql | Tool::Mysql80 => {
            let folder = Folder::new();
            let source = source(tool)?;
            let relay = crate::relay(&folder, &source, "");
            let mut replica = Replica::start(Tool::Mysql)?;
            let uncompressed = Followed::of("uncompressed", &relay);
            replica.verdict(&source, uncompressed, true)
        }
        Tool::Mysql56 => through_a_relay(&*mysql56()?),
        _ => through_a_relay(&*MariadbSandbox::start_version(tool, &[])?),
    }
}

pub(crate) fn table() -> Table {
    let mut table = Table::new(
        "Sources of the relay",
        "MySQL 9.7 follows by GTID: the server itself, and the relay in the uncompressed form. Of servers that the relay does \
         not follow, what it says.",
        ["the source itself", "relay, `uncompressed`"].map(str::to_owned).into(),
    );
    for tool in [Tool::Mysql, Tool::Mysql80, Tool::Mysql56, Tool::Mariadb114, Tool::Mariadb] {
        let version = tool.find().map_or_else(|_| tool.name().to_owned(), |found| found.version().to_owned());
        let name = if tool.name().starts_with("mariadb") { "MariaDB" } else { "MySQL" };
        let verdict =
            |tried: Result<Verdict>| tried.unwrap_or_else(|error| Verdict::NotTried(error.to_string()));
        table.row(format!("{name} {version}"), vec![verdict(itself(tool)), verdict(followed(tool))]);
    }
    table
}
