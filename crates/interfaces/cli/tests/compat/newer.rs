//! A newer source writes what a replica may not know: through a relay that chooses the form, each replica has every row in the
//! end, or an error that says why not. The replica is killed on the way.
//!
//! ```text
//! newer.rs      statements and events, each from a source of its own, of which only its relay stays
//! large.rs      a transaction of hundreds of megabytes, the relay and the replica killed in its middle
//! failover.rs   the source killed and started again, and another server in its place
//! ```

pub(crate) mod failover;
pub(crate) mod large;

use binlogz_testkit::{Result, Tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, url};
use crate::patience;
use crate::replicas::{Followed, Replica, wanted, ways};
use crate::table::{Table, Verdict};

/// Something that not every replica knows.
struct Novelty {
    name: &'static str,
    /// A further option of the source.
    option: Option<(&'static str, &'static str)>,
    /// Statements after [`BEFORE`].
    statements: &'static str,
    /// Rows by which a replica is compared with the source, beside those of `compat.t`.
    question: &'static str,
}

const BEFORE: &str = "\
CREATE DATABASE compat;
CREATE TABLE compat.t (id INT PRIMARY KEY, word VARCHAR(40));
INSERT INTO compat.t VALUES (1, 'before ßé😀');
USE compat;
";
const AFTER: &str = "\nINSERT INTO compat.t VALUES (100, 'after');";
const ROWS: &str = "SELECT id, HEX(word) FROM compat.t ORDER BY id;";
const JSON: &str = "SELECT id, CAST(doc AS CHAR) FROM compat.j ORDER BY id;";

const NOVELTIES: [Novelty; 9] = [
    Novelty {
        name: "XA transactions",
        option: None,
        statements: "\
            XA START 'a'; INSERT INTO t VALUES (2, 'committed'); XA END 'a'; XA PREPARE 'a';
            FLUSH BINARY LOGS;
            XA START 'b'; INSERT INTO t VALUES (3, 'rolled back'); XA END 'b'; XA PREPARE 'b';
            XA COMMIT 'a'; XA ROLLBACK 'b';
            XA START 'c'; INSERT INTO t VALUES (4, 'in one phase'); XA END 'c'; XA COMMIT 'c' ONE PHASE;",
        question: "",
    },
    Novelty {
        name: "JSON",
        option: None,
        statements: "\
            CREATE TABLE j (id INT PRIMARY KEY, doc JSON);
            INSERT INTO j VALUES (1, '{\"a\": [1, 2.5, null, \"x\"]}');
            UPDATE j SET doc = JSON_SET(doc, '$.a[0]', 7);",
        question: JSON,
    },
    Novelty {
        name: "parts of JSON",
        option: Some(("binlog-row-value-options", "PARTIAL_JSON")),
        statements: "\
            CREATE TABLE j (id INT PRIMARY KEY, doc JSON);
            INSERT INTO j VALUES (1, JSON_OBJECT('a', 1, 'long', REPEAT('x', 1000)));
            UPDATE j SET doc = JSON_SET(doc, '$.a', 7);",
        question: JSON,
    },
    Novelty {
        name: "accounts",
        option: None,
        statements: "\
            CREATE USER later@'%' IDENTIFIED WITH caching_sha2_password BY 'secret'; CREATE ROLE readers;
            GRANT SELECT ON *.* TO readers; GRANT readers TO later@'%'; GRANT BINLOG_ADMIN ON *.* TO later@'%';
            ALTER USER later@'%' ACCOUNT LOCK; SET PASSWORD FOR later@'%' = 'other'; DROP USER later@'%'; DROP ROLE readers;",
        question: "",
    },
    Novelty {
        name: "GTIDs with tags",
        option: None,
        statements: "SET GTID_NEXT = 'AUTOMATIC:tagged'; INSERT INTO t VALUES (2, 'tagged'); SET GTID_NEXT = 'AUTOMATIC';",
        question: "",
    },
    Novelty {
        name: "CREATE TABLE … SELECT",
        option: None,
        statements: "CREATE TABLE copied (PRIMARY KEY (id)) AS SELECT * FROM t;",
        question: "SELECT id, HEX(word) FROM compat.copied ORDER BY id;",
    },
    Novelty {
        name: "VECTOR",
        option: None,
        statements: "CREATE TABLE v (id INT PRIMARY KEY, place VECTOR(3)); INSERT INTO v VALUES (1, STRING_TO_VECTOR('[1,2,3]'));",
        question: "SELECT id, HEX(place) FROM compat.v ORDER BY id;",
    },
    Novelty {
        name: "changes as statements",
        option: None,
        statements: "SET SESSION binlog_format = STATEMENT; SET @word = 'ß'; INSERT INTO t VALUES (2, @word), (3, 'Đ');
            UPDATE t SET word = CONCAT(word, '!') WHERE word = _utf8mb4'đ' COLLATE utf8mb4_hr_0900_ai_ci; SET SESSION binlog_format = ROW;",
        question: "",
    },
    Novelty {
        name: "`binlog_checksum=NONE`",
        option: Some(("binlog-checksum", "NONE")),
        statements: "",
        question: "",
    },
];

/// The log of a source that is gone.
struct StoredLog {
    relay: Relay,
    _folder: Folder,
    question: String,
    answer: String,
}

impl StoredLog {
    fn of(novelty: &Novelty) -> Result<StoredLog> {
        let builder = Tool::Mysql.find()?.sandbox().compression(3);
        let source = match novelty.option {
            Some((name, value)) => builder.option(name, value),
            None => builder,
        };
        let source = source.start()?;
        source.sql(&[BEFORE, novelty.statements, AFTER].concat())?;
        let folder = Folder::new();
        let mut relay = Configuration::of([url(&source)]).account("reader", "").start(&folder);
        relay.has_all_of(&source);
        let question = [novelty.question, ROWS].concat();
        let answer = source.sql(&question)?;
        Ok(StoredLog { relay, _folder: folder, question, answer })
    }

    /// How a replica fares that is killed once it has begun.
    fn verdict(&self, replica: &mut Replica, by_gtid: bool) -> Result<Verdict> {
        replica.forget()?;
        replica.follow(reader(&self.relay), by_gtid)?;
        if let Some(verdict) = replica.wait_for_rows(&self.question, &self.answer, patience()) {
            return Ok(verdict);
        }
        replica.server_mut().kill();
        replica.server_mut().start()?;
        replica.server().sql(replica.begin())?;
        Ok(replica.wait_for_rows(&self.question, &self.answer, patience()).unwrap_or(Verdict::Works))
    }
}

/// A relay as an account sees it whose form the relay chooses.
pub(crate) fn reader(relay: &Relay) -> Followed {
    Followed {
        host: "127.0.0.1",
        port: relay.port,
        user: "reader",
        password: "secret",
        first_file: "binlog-u.000001",
        tls: false,
    }
}

/// A replica of this version, or why there is none.
pub(crate) fn started(tool: Tool) -> std::result::Result<Replica, Verdict> {
    Replica::start(tool)
        .or_else(|_| Replica::start(tool))
        .map_err(|error| Verdict::NotTried(error.to_string()))
}

pub(crate) fn table() -> Table {
    let logs: Vec<_> = NOVELTIES.iter().map(|novelty| StoredLog::of(novelty).unwrap()).collect();
    let mut table = Table::new(
        "What a replica may not know",
        "MySQL 9.7 writes it, and the relay is left to choose what each replica gets. Every row compared; the replica is killed once it has \
         them. An error that names the reason, before or in place of the first row that would be missing, is as good.",
        NOVELTIES.iter().map(|novelty| novelty.name.to_owned()).collect(),
    )
    .strict();
    for tool in wanted() {
        let mut replica = match started(tool) {
            Ok(replica) => replica,
            Err(verdict) => {
                table.row(tool.name(), vec![verdict; NOVELTIES.len()]);
                continue;
            }
        };
        for by_gtid in ways(tool) {
            let fared = |log: &StoredLog| {
                let verdict = log.verdict(&mut replica, *by_gtid);
                verdict.unwrap_or_else(|error| Verdict::NotTried(error.to_string()))
            };
            let cells = logs.iter().map(fared).collect();
            table.row(replica.title(*by_gtid), cells);
        }
    }
    table
}
