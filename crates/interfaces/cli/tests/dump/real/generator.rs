//! Makes logs on real servers: every column type with values at its bounds, with a key, with the column in the key, and without one, under every
//! row image and row metadata, in transactions of random sizes. Tests of two programs read them.

use std::fmt::Write as _;
use std::path::PathBuf;

use binlogz_testkit::random::Random;
use binlogz_testkit::{Result, SandboxServer, setting};

use super::types::{self, Flavour, Kind};

/// How rows are logged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logging {
    pub(super) image: &'static str,
    /// Empty: the server has no such setting.
    pub(super) metadata: &'static str,
    pub(super) compressed: bool,
}

/// A table with a column of a kind.
pub(super) struct Table {
    pub(super) name: String,
    pub(super) kind: Kind,
    definition: String,
    /// How many of its rows were inserted, updated and deleted.
    pub(super) changes: [u64; 3],
}

pub(super) fn is_whole() -> bool {
    std::env::var("REAL_LOGS").is_ok_and(|value| value == "all")
}

fn seed() -> u64 {
    let seed = setting("SEED", u64::from(std::process::id()));
    println!("SEED={seed}");
    seed
}

/// The settings of a server, of which a short run takes some.
fn loggings(flavour: Flavour, seed: u64) -> Vec<Logging> {
    let images = ["FULL", "MINIMAL", "NOBLOB"];
    let metadata: &[&str] = match flavour {
        Flavour::Mysql56 => &[""],
        Flavour::Mysql80 | Flavour::Mysql97 => &["MINIMAL", "FULL"],
        Flavour::Mariadb => &["NO_LOG", "MINIMAL", "FULL"],
    };
    let compressed: &[bool] = if flavour == Flavour::Mysql56 { &[false] } else { &[false, true] };
    let mut all = Vec::new();
    for &compressed in compressed {
        for &metadata in metadata {
            all.extend(images.map(|image| Logging { image, metadata, compressed }));
        }
    }
    if is_whole() {
        return all;
    }
    let mut random = Random::new(seed);
    let other = random.below(all.len());
    let is_whole_image =
        |logging: &Logging| logging.image == "FULL" && Some(&logging.metadata) == metadata.last();
    let chosen = match flavour {
        Flavour::Mysql56 => vec![other],
        // Whole images once, with all metadata there are; and one other of all settings.
        Flavour::Mysql80 | Flavour::Mysql97 => vec![all.iter().position(is_whole_image).unwrap_or(0), other],
        // The second half is compressed.
        Flavour::Mariadb => vec![all.len() / 2 + other / 2],
    };
    chosen.into_iter().map(|index| all[index]).collect()
}

/// A log with changes of every column type.
pub(super) struct RealLog {
    pub(super) logging: Logging,
    pub(super) path: PathBuf,
    pub(super) database: String,
    pub(super) tables: Vec<Table>,
    /// The tables as the server writes them.
    pub(super) schema: String,
}

/// Makes a log under each setting, and passes it to its readers.
pub(super) fn each_log(
    server: &SandboxServer,
    flavour: Flavour,
    mut read: impl FnMut(&RealLog, &mut Random) -> Result<()>,
) -> Result<()> {
    let seed = seed();
    for (number, logging) in loggings(flavour, seed).into_iter().enumerate() {
        println!("{flavour:?} {logging:?}");
        let random = &mut Random::new(seed + number as u64);
        let log = one_log(server, flavour, logging, format!("d{number}"), random)?;
        read(&log, random)?;
        server.sql(&format!("DROP DATABASE {}", log.database))?;
    }
    Ok(())
}

fn one_log(
    server: &SandboxServer,
    flavour: Flavour,
    logging: Logging,
    database: String,
    random: &mut Random,
) -> Result<RealLog> {
    let mut tables = tables(flavour);
    let mut definitions = format!("SET sql_mode = ''; CREATE DATABASE {database}; USE {database};\n");
    tables.iter().for_each(|table| definitions.push_str(&table.definition));
    server.sql(&definitions)?;
    server.flush_binary_logs()?;
    server.sql(&settings(flavour, logging))?;
    change(server, &database, &mut tables, random)?;
    let path = server.flush_binary_logs()?;
    let schema = schema(server, &database, &tables)?;
    Ok(RealLog { logging, path, database, tables, schema })
}

fn settings(flavour: Flavour, logging: Logging) -> String {
    let mut sql = format!("SET GLOBAL binlog_row_image = {};", logging.image);
    if !logging.metadata.is_empty() {
        let _ = write!(sql, "SET GLOBAL binlog_row_metadata = {};", logging.metadata);
    }
    let on = if logging.compressed { "ON" } else { "OFF" };
    match flavour {
        Flavour::Mysql56 => {}
        Flavour::Mysql80 | Flavour::Mysql97 => {
            let _ = write!(sql, "SET GLOBAL binlog_transaction_compression = {on};");
        }
        Flavour::Mariadb => {
            let _ = write!(sql, "SET GLOBAL log_bin_compress = {on}, GLOBAL log_bin_compress_min_len = 10;");
        }
    }
    sql
}

/// Tables for each kind of column: with a key of its own, with the column in the key, without a key.
fn tables(flavour: Flavour) -> Vec<Table> {
    let mut tables = Vec::new();
    for (number, kind) in types::of(flavour).into_iter().enumerate() {
        for (letter, key) in [("k", ", PRIMARY KEY (id)"), ("v", ", PRIMARY KEY (v, id)"), ("n", "")] {
            if letter == "v" && !kind.is_key {
                continue;
            }
            let name = format!("t{number:03}{letter}");
            let definition = format!(
                "CREATE TABLE {name} (id INT NOT NULL, v {}, w INT{key}) ENGINE=InnoDB;\n",
                kind.definition
            );
            tables.push(Table { name, kind: kind.clone(), definition, changes: [0; 3] });
        }
    }
    tables
}

/// Makes the changes, in transactions of several tables, and counts them as the server does.
fn change(server: &SandboxServer, database: &str, tables: &mut [Table], random: &mut Random) -> Result<()> {
    // What is still to be done with each table, the last first.
    let mut left: Vec<(usize, Vec<(usize, String)>)> =
        tables.iter().enumerate().map(|(index, table)| (index, statements(table))).collect();
    let mut sql = format!("SET sql_mode = '', time_zone = '+00:00'; USE {database};\n");
    let mut kinds = Vec::new();
    while !left.is_empty() {
        sql.push_str("BEGIN;\n");
        for _ in 0..1 + random.below(12) {
            if left.is_empty() {
                break;
            }
            let chosen = random.below(left.len());
            let Some((kind, statement)) = left[chosen].1.pop() else {
                left.swap_remove(chosen);
                continue;
            };
            let _ = writeln!(sql, "{statement};\nSELECT ROW_COUNT();");
            kinds.push((left[chosen].0, kind));
        }
        sql.push_str("COMMIT;\n");
    }
    let counts = server.sql(&sql)?;
    let counts: Vec<u64> = counts.lines().map(|line| line.parse().expect("a count of rows")).collect();
    assert_eq!(counts.len(), kinds.len());
    for ((table, kind), count) in kinds.into_iter().zip(counts) {
        tables[table].changes[kind] += count;
    }
    Ok(())
}

/// The statements for a table with what each does (0 inserts, 1 updates, 2 deletes), the last first.
fn statements(table: &Table) -> Vec<(usize, String)> {
    let (name, values) = (&table.name, &table.kind.values);
    let mut rows: Vec<String> =
        values.iter().enumerate().map(|(id, value)| format!("({id}, {value}, {id})")).collect();
    let null = if table.name.ends_with('v') { "DEFAULT" } else { "NULL" };
    rows.push(format!("({}, {null}, NULL)", values.len()));
    let (half, rest) = rows.split_at(rows.len() / 2);
    let mut statements = vec![];
    for rows in [half, rest] {
        statements.push((0, format!("INSERT INTO {name} VALUES {}", rows.join(", "))));
    }
    for id in 0..values.len() {
        let value = &values[(id + 1) % values.len()];
        statements.push((1, format!("UPDATE {name} SET v = {value} WHERE id = {id}")));
    }
    statements.push((1, format!("UPDATE {name} SET w = w + 1 WHERE id % 2 = 0 AND w IS NOT NULL")));
    statements.push((2, format!("DELETE FROM {name} WHERE id % 3 = 1")));
    statements.reverse();
    statements
}

/// The tables as the server writes them.
fn schema(server: &SandboxServer, database: &str, tables: &[Table]) -> Result<String> {
    let mut sql = String::new();
    for table in tables {
        let _ = writeln!(sql, "SHOW CREATE TABLE {database}.{};", table.name);
    }
    let mut schema = format!("USE {database};\n");
    for line in server.sql(&sql)?.lines() {
        let (_, definition) = line.split_once('\t').expect("two columns");
        // The client writes line ends and backslashes as letters.
        let _ = writeln!(schema, "{};", definition.replace("\\n", "\n").replace("\\\\", "\\"));
    }
    Ok(schema)
}
