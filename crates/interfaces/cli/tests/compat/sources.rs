//! Servers as the relay's source: MySQL 9.7 follows the relay in each form, and the server itself for comparison.

use std::time::{Duration, Instant};

use binlogz_testkit::{MariadbSandbox, Mysql56Sandbox, Result, SandboxServer, Tool};

use crate::common::Folder;
use crate::replicas::{Followed, Replica};
use crate::table::{Table, Verdict};
use crate::{BEGINNING, configuration, patience, source};

/// The accounts of the relay, in whose forms 9.7 follows; with `older_collations` it would be as `uncompressed`.
const FORMS: usize = crate::FORMS.len() - 1;

/// The result of a replica that follows the server itself, and of one that follows a relay of it, in each form; if the
/// relay does not follow the server, its message.
fn verdicts(server: &SandboxServer) -> Result<Vec<Verdict>> {
    let mut replica = Replica::start(Tool::Mysql)?;
    let itself = Followed {
        host: "127.0.0.1",
        port: server.port(),
        user: "repl",
        password: "repl",
        first_file: "binlog.000001",
        tls: false,
    };
    let mut verdicts = vec![replica.verdict(server, itself, true)?];
    let folder = Folder::new();
    let relay = configuration(&folder, server, "").launch(&folder);
    let until = Instant::now() + patience();
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let messages = relay.messages();
        if messages.iter().any(|message| message.ends_with(" begins")) {
            for (_, [user, _], _) in &crate::FORMS[..FORMS] {
                verdicts.push(replica.verdict(server, Followed::of(user, &relay), true)?);
            }
            return Ok(verdicts);
        }
        let said = relay.said();
        let is_trouble = |line: &str| !line.contains("\"level\":\"info\"");
        let trouble = match said.lines().position(is_trouble) {
            Some(place) => Verdict::Stops(messages.into_iter().nth(place).unwrap_or_default()),
            None if Instant::now() < until => continue,
            None => Verdict::Differs("the relay neither follows it nor says why".into()),
        };
        verdicts.resize(1 + FORMS, trouble);
        return Ok(verdicts);
    }
}

/// A server with rows.
fn with_rows(server: &SandboxServer) -> Result<&SandboxServer> {
    server.sql(&BEGINNING.replace("utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci"))?;
    Ok(server)
}

fn followed(tool: Tool) -> Result<Vec<Verdict>> {
    match tool {
        Tool::Mysql | Tool::Mysql80 => verdicts(&*source(tool)?),
        Tool::Mysql56 => verdicts(with_rows(&*Mysql56Sandbox::start(&[])?)?),
        _ => verdicts(with_rows(&*MariadbSandbox::start_version(tool, &[])?)?),
    }
}

pub(crate) fn table() -> Table {
    let forms = crate::FORMS[..FORMS].iter().map(|(name, _, _)| format!("relay, {name}"));
    let mut table = Table::new(
        "Sources of the relay",
        "MySQL 9.7 follows by GTID: the server itself, and the relay. Of servers that the relay does not follow, what it says.",
        std::iter::once("the source itself".to_owned()).chain(forms).collect(),
    );
    for tool in [Tool::Mysql, Tool::Mysql80, Tool::Mysql56, Tool::Mariadb114, Tool::Mariadb] {
        let version = tool.find().map_or_else(|_| tool.name().to_owned(), |found| found.version().to_owned());
        let name = if tool.name().starts_with("mariadb") { "MariaDB" } else { "MySQL" };
        let cells =
            followed(tool).unwrap_or_else(|error| vec![Verdict::NotTried(error.to_string()); 1 + FORMS]);
        table.row(format!("{name} {version}"), cells);
    }
    table
}
