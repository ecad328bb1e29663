//! The history of tables against a server: random DDL, and after each statement the server's own columns beside those that
//! the history tells of that place. It may not know, but it may not be wrong.
//!
//! `SEED=N` begins at N, `BINLOGZ_HISTORIES` says how many seeds, `BINLOGZ_HISTORY_STATEMENTS` how many statements each has.

use std::collections::BTreeMap;

use binlogz_row_changes::{ServerTables, server_schema};
use binlogz_schema::{HistoryPlace, RecordedStatement, SchemaFile, TableHistory, TableThen};
use binlogz_source::ConnectOptions;
use binlogz_testkit::random::Random;
use binlogz_testkit::{MysqlSandbox, Result, Tool, mutate, require_tool, setting};

const TABLES: [&str; 7] = ["t0", "t1", "t2", "`t 3`", "shop.t0", "other.t0", "other.`t4`"];
const COLUMNS: [&str; 8] = ["a", "b", "`c c`", "d", "E", "first", "after", "h"];
const TYPES: [&str; 12] = [
    "INT",
    "INTEGER UNSIGNED NOT NULL DEFAULT 7",
    "BIGINT",
    "VARCHAR(20) COMMENT 'FIRST, AFTER (b'",
    "ENUM('a','after b','c,d)') DEFAULT 'a'",
    "DECIMAL(10, 2)",
    "DOUBLE PRECISION",
    "TEXT CHARACTER SET latin1",
    "DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)",
    "JSON",
    "BOOL",
    "INT UNIQUE",
];

/// With fewer answers the share of those that the history knows is that of a sample.
const SAMPLE_MIN: usize = 1_000;

/// Columns of all tables, by database and table.
type Columns = BTreeMap<(String, String), Vec<String>>;

struct Generator {
    random: Random,
}

impl Generator {
    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.random.below(words.len())]
    }

    fn percent(&mut self, share: usize) -> bool {
        self.random.below(100) < share
    }

    fn table(&mut self) -> &'static str {
        self.one_of(&TABLES)
    }

    /// A column of the table, or perhaps one that it doesn't have, in any letters.
    fn column(&mut self, columns: &[String]) -> String {
        let name = match columns.is_empty() || self.percent(10) {
            true => self.one_of(&COLUMNS).to_owned(),
            false => format!("`{}`", columns[self.random.below(columns.len())]),
        };
        if self.percent(10) { name.to_uppercase() } else { name }
    }

    fn definition(&mut self) -> String {
        let generated = self.percent(5);
        let column = self.one_of(&COLUMNS);
        match generated {
            true => format!("{column} INT AS (1 + 2) VIRTUAL"),
            false => format!("{column} {}", self.one_of(&TYPES)),
        }
    }

    fn target(&mut self, columns: &[String]) -> String {
        match self.random.below(4) {
            0 => " FIRST".to_owned(),
            1 => format!(" AFTER {}", self.column(columns)),
            _ => String::new(),
        }
    }

    fn action(&mut self, columns: &[String]) -> String {
        match self.random.below(22) {
            0..5 => {
                let word = self.one_of(&["ADD", "ADD COLUMN"]);
                format!("{word} {}{}", self.definition(), self.target(columns))
            }
            5 => format!("ADD ({}, {})", self.definition(), self.definition()),
            6..9 => {
                let word = self.one_of(&["DROP", "DROP COLUMN"]);
                format!("{word} {}", self.column(columns))
            }
            9..12 => {
                let (column, kind) = (self.column(columns), self.one_of(&TYPES));
                format!("MODIFY {column} {kind}{}", self.target(columns))
            }
            12..15 => {
                let word = self.one_of(&["CHANGE", "CHANGE COLUMN"]);
                format!("{word} {} {}{}", self.column(columns), self.definition(), self.target(columns))
            }
            15..19 => {
                format!("RENAME COLUMN {} TO {}", self.column(columns), self.one_of(&COLUMNS))
            }
            19 => format!("ADD UNIQUE KEY u{} ({})", self.random.below(9), self.column(columns)),
            20 => self
                .one_of(&["ENGINE=InnoDB", "COMMENT 'x, DROP a'", "FORCE", "ROW_FORMAT=DYNAMIC"])
                .to_owned(),
            _ => format!("RENAME {}{}", self.one_of(&["", "TO ", "AS "]), self.table()),
        }
    }

    fn statement(&mut self, columns: &Columns) -> String {
        let table = self.table();
        let (database, name) = table.split_once('.').unwrap_or(("shop", table));
        let key = (database.to_owned(), name.replace('`', ""));
        let own = columns.get(&key).cloned().unwrap_or_default();
        match self.random.below(100) {
            0..18 => {
                let word = self.one_of(&["CREATE TABLE", "CREATE TABLE", "CREATE TABLE IF NOT EXISTS"]);
                let definitions: Vec<_> = (0..=self.random.below(5)).map(|_| self.definition()).collect();
                let key = self.one_of(&["", "", ", KEY k (h)", ", CONSTRAINT c CHECK (a > 0)"]);
                format!("{word} {table} ({}{key})", definitions.join(", "))
            }
            18..24 => format!("CREATE TABLE {table} LIKE {}", self.table()),
            24..27 => format!("CREATE TABLE {table} AS SELECT *, 1 AS h FROM {}", self.table()),
            27..32 => {
                let word = self.one_of(&["DROP TABLE", "DROP TABLE IF EXISTS"]);
                format!("{word} {table}{}", if self.percent(20) { ", t1" } else { "" })
            }
            32..40 => {
                let (from, to) = (self.table(), self.table());
                match self.random.below(3) {
                    0 => format!("RENAME TABLE {from} TO {to}"),
                    1 => format!("RENAME TABLE {from} TO shop.tmp, {to} TO {from}, shop.tmp TO {to}"),
                    _ => format!("RENAME TABLE {from} TO {to}, {table} TO {from}"),
                }
            }
            40..44 => format!("TRUNCATE TABLE {table}"),
            44 => format!("CREATE UNIQUE INDEX i{} ON {table} ({})", self.random.below(9), self.column(&own)),
            45 => format!("CREATE TEMPORARY TABLE {table} (x INT)"),
            46 => format!("ALTER TABLE parts EXCHANGE PARTITION p WITH TABLE {table}"),
            47 => "DROP DATABASE other".to_owned(),
            48 => format!("CREATE OR REPLACE VIEW v AS SELECT * FROM {table}"),
            _ => {
                let actions: Vec<_> = (0..=self.random.below(3)).map(|_| self.action(&own)).collect();
                format!("ALTER TABLE {table} {}", actions.join(", "))
            }
        }
    }
}

/// The end of the binary log, and all columns.
fn state(server: &MysqlSandbox) -> Result<(u64, Columns)> {
    let text = server.sql(
        "SET SESSION information_schema_stats_expiry = 0; SHOW BINARY LOG STATUS; SELECT table_schema, table_name, column_name FROM \
         information_schema.columns JOIN information_schema.tables USING (table_schema, table_name) WHERE table_schema IN ('shop', \
         'other') AND table_type = 'BASE TABLE' ORDER BY table_schema, table_name, ordinal_position",
    )?;
    let (mut end, mut columns) = (0, Columns::new());
    for line in text.lines() {
        let fields: Vec<_> = line.split('\t').collect();
        match fields[..] {
            [database @ ("shop" | "other"), table, column] => {
                columns.entry((database.into(), table.into())).or_default().push(column.into());
            }
            [_, position, ..] => end = position.parse().unwrap_or(end),
            _ => {}
        }
    }
    Ok((end, columns))
}

/// The statements in a log: offset, default database, text.
fn statements(server: &MysqlSandbox, log: &str) -> Result<Vec<(u64, String, String)>> {
    let text = server.sql(&format!("SHOW BINLOG EVENTS IN '{log}'"))?;
    let events = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let queries = events.filter(|event| event.get(2) == Some(&"Query"));
    Ok(queries
        .map(|event| {
            let text = event[5].replace("\\n", "\n").replace("\\\\", "\\");
            let text = text.split(" /* xid=").next().unwrap_or_default().to_owned();
            let used = text.strip_prefix("use `").and_then(|rest| rest.split_once("`; "));
            let (database, text) = used.unwrap_or(("", &text));
            (event[1].parse().unwrap(), database.to_owned(), text.to_owned())
        })
        .collect())
}

/// How many of the tables at all these places the history knows; none of them may have other columns.
fn compare(history: &TableHistory, states: &[(u64, String, Columns)], seed: u64) -> (usize, usize) {
    let (mut known, mut asked) = (0, 0);
    for (offset, statement, columns) in states {
        for ((database, table), columns) in columns {
            asked += 1;
            let place = HistoryPlace { log: 1, offset: *offset };
            match history.at(place, database, table) {
                TableThen::Known(then) => {
                    // A statement that renames a column may spell its old name in other letters than the server does.
                    let small = |name: &String| name.to_lowercase();
                    let names: Vec<_> = then.columns.iter().map(|column| small(&column.name)).collect();
                    assert_eq!(
                        names,
                        columns.iter().map(small).collect::<Vec<_>>(),
                        "SEED={seed}: {database}.{table} after {statement} at {offset}"
                    );
                    known += 1;
                }
                // The server did it, so it can be done.
                TableThen::Disagrees(turn) => {
                    panic!(
                        "SEED={seed}: {database}.{table} {columns:?} after {statement} at {offset}: {turn:?}"
                    )
                }
                TableThen::UnknownSince(_) | TableThen::NotTold => {}
            }
        }
    }
    (known, asked)
}

fn recorded(statements: &[(u64, String, String)], from: u64) -> TableHistory {
    let mut history = TableHistory::default();
    for (offset, database, text) in statements.iter().filter(|(offset, ..)| *offset >= from) {
        history.record(&RecordedStatement {
            place: HistoryPlace { log: 1, offset: *offset },
            database,
            text,
            quotes_names: false,
            keeps_backslashes: false,
            has_failed: false,
        });
    }
    history
}

#[test]
fn what_the_history_knows_of_tables_is_what_the_server_had() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let first = mutate::seed();
    let count: u64 = setting("BINLOGZ_HISTORIES", 1);
    let length: usize = setting("BINLOGZ_HISTORY_STATEMENTS", 60);
    let connect = ConnectOptions {
        user: Some("root".into()),
        socket: Some(server.socket()),
        ..ConnectOptions::new("binlogz")
    };
    let mut shares = [(0, 0); 3];
    for seed in first..first + count {
        server.sql(
            "DROP DATABASE IF EXISTS shop; DROP DATABASE IF EXISTS other; CREATE DATABASE shop; CREATE DATABASE other; USE shop;
             CREATE TABLE parts (a INT, b INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (100));
             CREATE TABLE t0 (a INT, b INT); CREATE TABLE t1 (a INT, b INT, d INT); CREATE TABLE other.t0 (h INT)",
        )?;
        let log = server.flush_binary_logs()?;
        let name: u64 = log.extension().and_then(|number| number.to_str()).unwrap().parse().unwrap();
        let name = format!("binlog.{:06}", name + 1);
        let mut generator = Generator { random: Random::new(seed) };
        let (_, mut columns) = state(&server)?;
        let mut states = Vec::new();
        while states.len() < length {
            let statement = generator.statement(&columns);
            if statement.starts_with("DROP DATABASE") {
                server.sql("DROP DATABASE other; CREATE DATABASE other")?;
            } else if server.sql(&format!("USE shop; {statement}")).is_err() {
                continue;
            }
            let (end, after) = state(&server)?;
            columns = after;
            states.push((end, statement, columns.clone()));
        }
        let all = statements(&server, &name)?;
        let now = || SchemaFile::parse(&server_schema(&connect, ServerTables::All).unwrap()).unwrap();
        // Forward from CREATE TABLE alone, backward from now, both, and both from the middle of the log on.
        let mut forward = recorded(&all, 0);
        forward.settle(SchemaFile::default());
        let mut both = recorded(&all, 0);
        both.settle(now());
        let half = states[length / 2].0;
        let mut later = recorded(&all, half);
        later.settle(now());
        let later_states: Vec<_> = states.iter().filter(|(end, ..)| *end >= half).cloned().collect();
        for (share, (known, asked)) in shares.iter_mut().zip([
            compare(&forward, &states, seed),
            compare(&both, &states, seed),
            compare(&later, &later_states, seed),
        ]) {
            *share = (share.0 + known, share.1 + asked);
        }
    }
    println!("known: forward {:?}, with now {:?}, from the middle {:?}", shares[0], shares[1], shares[2]);
    for ((known, asked), percent) in shares.into_iter().zip([50, 60, 40]) {
        // A few tables whose beginning isn't in the log may be most of a short one.
        let enough = if asked < SAMPLE_MIN { 1 } else { asked * percent / 100 };
        assert!(known >= enough, "SEED={first}: {shares:?}");
    }
    Ok(())
}
