//! Records conversations with real servers for `tests/recorded.rs`: `record-sessions DIRECTORY`.
//!
//! A file has a line for each turn, in hexadecimal: `C` and the bytes of the client, or `S` and the bytes of the server.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a tool of ours: a panic tells enough

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use binlogz_testkit::{MariadbSandbox, Tool};
use binlogz_wire::session::{ReceiveOptions, SourceSession, SourceStep};

#[path = "../../../../crates/replication/wire/tests/common/mod.rs"]
mod common;

const ACCOUNTS: &str = "\
CREATE USER sha2@'%' IDENTIFIED WITH caching_sha2_password BY 'sha2';
CREATE USER sha256@'%' IDENTIFIED WITH sha256_password BY 'sha256';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO sha2@'%', sha256@'%';
RESET BINARY LOGS AND GTIDS;
";
const CHANGES: &str = "\
CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(100));
INSERT INTO shop.item VALUES (1, 'tea'), (2, 'coffee');
FLUSH BINARY LOGS;
";
const MYSQL_CHANGES: &str = "\
SET binlog_transaction_compression = ON; SET GTID_NEXT = 'AUTOMATIC:tag_1';
UPDATE shop.item SET name = 'cocoa' WHERE id = 1;
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: record-sessions DIRECTORY")?;
    let directory = Path::new(&directory);
    let mysql = Tool::Mysql.find()?.sandbox().start()?;
    mysql.sql(ACCOUNTS)?;
    mysql.sql(CHANGES)?;
    mysql.sql(MYSQL_CHANGES)?;
    let mariadb = MariadbSandbox::start(&[])?;
    mariadb
        .sql("GRANT REPLICATION SLAVE ON *.* TO native@'127.0.0.1' IDENTIFIED BY 'native'; RESET MASTER;")?;
    mariadb.sql(CHANGES)?;
    for session in common::SESSIONS {
        let port = if session.mariadb { mariadb.port() } else { mysql.port() };
        if session.forgets_passwords {
            mysql.sql("FLUSH NO_WRITE_TO_BINLOG PRIVILEGES")?;
        }
        let turns = record(port, common::options(session))?;
        fs::write(directory.join(session.name), turns)?;
    }
    Ok(())
}

fn record(port: u16, options: ReceiveOptions) -> Result<String, Box<dyn std::error::Error>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut session = SourceSession::new(options, Duration::ZERO);
    let mut turns = String::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(turns);
        }
        turns += &common::turn('S', &buffer[..count]);
        let mut input = &buffer[..count];
        loop {
            let step = session.poll(&mut input, Duration::ZERO);
            if !session.pending().is_empty() {
                turns += &common::turn('C', session.pending());
                stream.write_all(session.pending())?;
                session.sent(session.pending().len());
            }
            match step {
                Ok(SourceStep::Event) => {}
                Ok(SourceStep::NeedInput) => break,
                Ok(SourceStep::End | SourceStep::StartTls) | Err(_) => return Ok(turns),
            }
        }
    }
}
