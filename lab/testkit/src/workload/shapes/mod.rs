//! Shapes of data that the five workloads don't have: JSON documents, UUID keys with blobs, tables of 100
//! columns; [ten more](WorkloadShape::MORE), and [six after those](WorkloadShape::LATER). From fixed seeds, loaded into a real server;
//! one binlog file each.

mod applications;
mod chat;
mod cms;
mod events;
mod graph;
mod ledger;
mod sessions;
mod tracks;
mod words;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{WorkloadSetting, sandbox, scaled};
use crate::random::Random;
use crate::{IoContext, MysqlSandbox, Result, Tool, cache};

/// Part of the cache key: raised when a shape changes.
const RECIPE: u32 = 1;
/// Part of the cache key of the ten more shapes: raised when one of them changes.
const RECIPE_MORE: u32 = 1;
/// Part of the cache key of the six later shapes: raised when one of them changes.
const RECIPE_LATER: u32 = 2;

const SEED: u64 = 20_260_201;

/// Rows of a multi-row INSERT.
const ROWS: u32 = 40;

/// Columns of each type in the wide table, of which there are five.
const COLUMNS: usize = 20;

/// One of the three, of the ten more, or of the six later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadShape {
    /// Orders as JSON documents of about 500 bytes: loaded, then changed one by one.
    Documents,
    /// Blobs of 200 to 8,000 bytes under random binary UUIDs, half of them hardly compressible; one a transaction.
    Blobs,
    /// A table of 100 columns, of which most stay NULL or at their default: loaded, then changed one by one.
    Wide,
    /// A queue table: insert, update, delete, in tiny transactions.
    Queue,
    /// Orders and their items, decimals, text in many languages.
    Shop,
    /// 200 columns of ten types, sparse updates, FULL images.
    Mixed,
    /// Statements beside their rows (`binlog_rows_query_log_events`).
    RowsQuery,
    /// UUIDs of version 7 as keys, MINIMAL images.
    Uuids,
    /// Devices, `DATETIME(6)` and doubles.
    Measurements,
    /// Addresses, user agents, JSON of 1 to 4 KB as text.
    Audit,
    /// Statement format.
    Statements,
    /// 2,000 tables of twelve definitions in 50 schemas, with partitions and DDL.
    Tables,
    /// JSON documents changed in parts (`PARTIAL_JSON`), and geometry.
    PartialJson,
    /// Positions of vehicles as POINT, beside floats and doubles.
    Tracks,
    /// Messages in ten languages and seven scripts; some are edited.
    Chat,
    /// Edges of a graph that grows.
    Edges,
    /// Double-entry bookings, whose balances a trigger keeps.
    Ledger,
    /// Long texts that are edited in place.
    Cms,
    /// Sessions of a web site.
    Sessions,
}

impl WorkloadShape {
    /// The first three.
    pub const ALL: [WorkloadShape; 3] = [WorkloadShape::Documents, WorkloadShape::Blobs, WorkloadShape::Wide];

    /// Ten more, which archives are measured with.
    pub const MORE: [WorkloadShape; 10] = [
        WorkloadShape::Queue,
        WorkloadShape::Shop,
        WorkloadShape::Mixed,
        WorkloadShape::RowsQuery,
        WorkloadShape::Uuids,
        WorkloadShape::Measurements,
        WorkloadShape::Audit,
        WorkloadShape::Statements,
        WorkloadShape::Tables,
        WorkloadShape::PartialJson,
    ];

    /// Six that came after the archive was tuned to the others.
    pub const LATER: [WorkloadShape; 6] = [
        WorkloadShape::Tracks,
        WorkloadShape::Chat,
        WorkloadShape::Edges,
        WorkloadShape::Ledger,
        WorkloadShape::Cms,
        WorkloadShape::Sessions,
    ];

    /// The shape's name in file names and tables.
    pub fn name(self) -> &'static str {
        match self {
            WorkloadShape::Documents => "documents",
            WorkloadShape::Blobs => "blobs",
            WorkloadShape::Wide => "wide",
            WorkloadShape::Queue => "queue",
            WorkloadShape::Shop => "shop",
            WorkloadShape::Mixed => "mixed",
            WorkloadShape::RowsQuery => "rows-query",
            WorkloadShape::Uuids => "uuids",
            WorkloadShape::Measurements => "measurements",
            WorkloadShape::Audit => "audit",
            WorkloadShape::Statements => "statements",
            WorkloadShape::Tables => "tables",
            WorkloadShape::PartialJson => "partial-json",
            WorkloadShape::Tracks => "tracks",
            WorkloadShape::Chat => "chat",
            WorkloadShape::Edges => "edges",
            WorkloadShape::Ledger => "ledger",
            WorkloadShape::Cms => "cms",
            WorkloadShape::Sessions => "sessions",
        }
    }

    /// The seed that its data is drawn from: one for the first three, one for each of the others.
    pub fn seed(self) -> u64 {
        let mut own = WorkloadShape::MORE.iter().chain(&WorkloadShape::LATER);
        let number = own.position(|&shape| shape == self);
        SEED + number.map_or(0, |number| 1 + number as u64)
    }

    /// Runs it on a server, at a scale: some 40 MB of plain binlog at scale 1.
    pub fn run(self, server: &MysqlSandbox, scale: f64) -> Result<()> {
        let mut random = Random::new(self.seed());
        server.run_client(|out| match self {
            WorkloadShape::Documents => documents(out, &mut random, scaled(40_000.0, scale)),
            WorkloadShape::Blobs => blobs(out, &mut random, scaled(10_000.0, scale)),
            WorkloadShape::Wide => wide(out, &mut random, scaled(40_000.0, scale)),
            WorkloadShape::Queue => applications::queue(out, &mut random, scaled(40_000.0, scale)),
            WorkloadShape::Shop => applications::shop(out, &mut random, scaled(50_000.0, scale)),
            WorkloadShape::Mixed => events::mixed(out, &mut random, scaled(6_000.0, scale)),
            WorkloadShape::RowsQuery => events::rows_query(out, &mut random, scaled(35_000.0, scale)),
            WorkloadShape::Uuids => applications::uuids(out, &mut random, scaled(70_000.0, scale)),
            WorkloadShape::Measurements => {
                applications::measurements(out, &mut random, scaled(900_000.0, scale))
            }
            WorkloadShape::Audit => applications::audit(out, &mut random, scaled(28_000.0, scale)),
            WorkloadShape::Statements => events::statements(out, &mut random, scaled(100_000.0, scale)),
            WorkloadShape::Tables => {
                // All 2,000 from a fifth of the scale on.
                let tables = scaled(10_000.0, scale).min(2000);
                applications::tables(out, &mut random, tables, scaled(120_000.0, scale))
            }
            WorkloadShape::PartialJson => events::partial_json(out, &mut random, scaled(7_500.0, scale)),
            WorkloadShape::Tracks => tracks::tracks(out, &mut random, scaled(500_000.0, scale)),
            WorkloadShape::Chat => chat::chat(out, &mut random, scaled(100_000.0, scale)),
            WorkloadShape::Edges => graph::edges(out, &mut random, scaled(90_000.0, scale)),
            WorkloadShape::Ledger => ledger::ledger(out, &mut random, scaled(40_000.0, scale)),
            WorkloadShape::Cms => cms::cms(out, &mut random, scaled(7_000.0, scale)),
            WorkloadShape::Sessions => sessions::sessions(out, &mut random, scaled(60_000.0, scale)),
        })?;
        Ok(())
    }
}

fn documents(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(out, "CREATE DATABASE documents; CREATE TABLE documents.orders(id INT PRIMARY KEY, doc JSON);")?;
    let cities = ["Lisbon", "Lagos", "Lima", "Lahore", "London", "Luanda"];
    multi_row(out, "documents.orders", count, |out, id| {
        let city = cities[random.below(cities.len())];
        write!(
            out,
            "({id},'{{\"order\":{id},\"status\":\"new\",\"customer\":{{\"id\":{},",
            random.below(50_000)
        )?;
        write!(
            out,
            "\"city\":\"{city}\",\"mail\":\"user{}@example.org\"}},\"items\":[",
            random.below(50_000)
        )?;
        for item in 0..1 + random.below(6) {
            let comma = if item == 0 { "" } else { "," };
            let sku = random.below(9000);
            let price = random.below(99_999);
            write!(
                out,
                "{comma}{{\"sku\":\"A-{sku:05}\",\"count\":{},\"cents\":{price}}}",
                1 + random.below(5)
            )?;
        }
        write!(out, "]}}')")
    })?;
    for _ in 0..count / 2 {
        let id = 1 + random.below(count as usize);
        writeln!(
            out,
            "UPDATE documents.orders SET doc = JSON_SET(doc, '$.status', 'sent') WHERE id = {id} LIMIT 1;"
        )?;
    }
    Ok(())
}

fn blobs(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE blobs; CREATE TABLE blobs.file(id BINARY(16) PRIMARY KEY, owner BINARY(16), data BLOB);"
    )?;
    for number in 0..count {
        let [id, owner] = [(); 2].map(|()| format!("{:016x}{:016x}", random.bits(), random.bits()));
        write!(out, "INSERT INTO blobs.file VALUES (0x{id},0x{owner},0x")?;
        let words = 25 + random.below(975);
        let vocabulary: Vec<u64> = (0..16).map(|_| random.bits()).collect();
        for _ in 0..words {
            // Noise, or words of a small vocabulary.
            let word = if number % 2 == 0 { random.bits() } else { vocabulary[random.below(16)] };
            write!(out, "{word:016x}")?;
        }
        writeln!(out, ");")?;
    }
    Ok(())
}

fn wide(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    let kinds =
        [("i", "INT"), ("d", "DECIMAL(12,2)"), ("s", "VARCHAR(40)"), ("t", "DATETIME"), ("f", "DOUBLE")];
    let names: Vec<String> =
        kinds.iter().flat_map(|(prefix, _)| (0..COLUMNS).map(move |n| format!("{prefix}{n}"))).collect();
    let columns: Vec<String> =
        names.iter().enumerate().map(|(n, name)| format!("{name} {}", kinds[n / COLUMNS].1)).collect();
    writeln!(
        out,
        "CREATE DATABASE wide; CREATE TABLE wide.facts(id INT PRIMARY KEY, {});",
        columns.join(", ")
    )?;
    let mut value = |kind: usize| match kind {
        _ if random.below(3) == 0 => "NULL".to_owned(),
        0 => random.below(1000).to_string(),
        1 => format!("{}.{:02}", random.below(10_000), random.below(100)),
        2 => format!("'state {}'", random.below(30)),
        3 => format!("'2026-{:02}-{:02} 12:00:00'", 1 + random.below(12), 1 + random.below(28)),
        _ => format!("{}.5", random.below(500)),
    };
    multi_row(out, "wide.facts", count, |out, id| {
        write!(out, "({id}")?;
        (0..names.len()).try_for_each(|n| write!(out, ",{}", value(n / COLUMNS)))?;
        write!(out, ")")
    })?;
    for id in 1..=count / 2 {
        let column = value(0);
        writeln!(out, "UPDATE wide.facts SET i{} = {column} WHERE id = {id};", id as usize % COLUMNS)?;
    }
    Ok(())
}

fn multi_row(
    out: &mut dyn Write,
    table: &str,
    count: u32,
    mut row: impl FnMut(&mut dyn Write, u32) -> io::Result<()>,
) -> io::Result<()> {
    for id in 1..=count {
        let first = id % ROWS == 1;
        if first {
            write!(out, "INSERT INTO {table} VALUES ")?;
        } else {
            write!(out, ",")?;
        }
        row(out, id)?;
        if id % ROWS == 0 || id == count {
            writeln!(out, ";")?;
        }
    }
    Ok(())
}

/// The binlog of one shape.
#[derive(Clone, Debug)]
pub struct ShapeBinlog {
    /// Which it is.
    pub shape: WorkloadShape,
    /// The file, in the cache: to be read, not changed.
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// The first three shapes' binlogs at a scale and setting, made on a real server the first time.
pub fn shape_binlogs(scale: f64, setting: &WorkloadSetting) -> Result<Vec<ShapeBinlog>> {
    binlogs_of(&WorkloadShape::ALL, &format!("shapes-{RECIPE}"), scale, setting)
}

/// The binlogs of the [ten more](WorkloadShape::MORE) shapes at a scale, under one setting.
pub fn more_shape_binlogs(scale: f64, setting: &WorkloadSetting) -> Result<Vec<ShapeBinlog>> {
    binlogs_of(&WorkloadShape::MORE, &format!("more-shapes-{RECIPE_MORE}"), scale, setting)
}

/// The binlogs of the [six later](WorkloadShape::LATER) shapes at a scale, under one setting.
pub fn later_shape_binlogs(scale: f64, setting: &WorkloadSetting) -> Result<Vec<ShapeBinlog>> {
    binlogs_of(&WorkloadShape::LATER, &format!("later-shapes-{RECIPE_LATER}"), scale, setting)
}

fn binlogs_of(
    shapes: &[WorkloadShape],
    recipe: &str,
    scale: f64,
    setting: &WorkloadSetting,
) -> Result<Vec<ShapeBinlog>> {
    let mysql = Tool::Mysql.find()?;
    let key = format!("{recipe}/mysql-{}/scale-{scale}/{setting}", mysql.version());
    let dir = cache::entry(&key, |dir| run_all(shapes, scale, setting, dir))?;
    let found = shapes.iter().map(|&shape| {
        let path = dir.join(file_name(shape));
        let bytes = fs::metadata(&path).at("read", &path)?.len();
        Ok(ShapeBinlog { shape, path, bytes })
    });
    found.collect()
}

fn file_name(shape: WorkloadShape) -> String {
    format!("{}.000001", shape.name())
}

fn run_all(shapes: &[WorkloadShape], scale: f64, setting: &WorkloadSetting, dir: &Path) -> Result<()> {
    let server = sandbox(setting)?;
    server.sql("FLUSH BINARY LOGS")?; // its first file says when it was started: the others don't
    for shape in shapes {
        shape.run(&server, scale)?;
        let closed = server.flush_binary_logs()?;
        let kept = dir.join(file_name(*shape));
        fs::copy(&closed, &kept).at("copy", &closed)?;
    }
    Ok(())
}
