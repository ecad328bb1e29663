//! The presets, as data: the experiments of each.

pub(crate) mod experiment;
pub(crate) mod options;

use binlogz_sandbox::workload::{Workload, scaled};

use experiment::{COMPRESSION, CellSetting, CellStep, ENCRYPTION, Experiment, LEVEL, SysbenchTables, Work};
use options::ExperimentOptions;

/// A preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// The savings of compression and encryption, by workload.
    Space,
    /// The savings and costs of levels.
    Levels,
    /// Small and large updates.
    Updates,
    /// Reads, which write no log, and writes, with many connections.
    PointSelect,
    /// Inserts by connections and flush policy.
    Insert,
    /// The bytes that a reader of the binary log receives while a large table is updated.
    Network,
    /// Which replicas can follow a source that compresses.
    Replicas,
    /// All presets.
    All,
}

/// The levels that the study of 2020 took.
const LEVELS: [u8; 5] = [1, 3, 11, 19, 22];

impl Preset {
    /// The preset's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Space => "space",
            Preset::Levels => "levels",
            Preset::Updates => "updates",
            Preset::PointSelect => "point-select",
            Preset::Insert => "insert",
            Preset::Network => "network",
            Preset::Replicas => "replicas",
            Preset::All => "all",
        }
    }

    /// Whether it sets replicas up.
    pub(crate) fn has_replicas(self) -> bool {
        matches!(self, Preset::Replicas | Preset::All)
    }

    /// The experiments that it runs on the tested server.
    pub(crate) fn experiments(self, options: &ExperimentOptions) -> Vec<Experiment> {
        let scale = options.scale;
        let insert = || insert(scale, &options.threads);
        match self {
            Preset::Space => vec![space()],
            Preset::Levels => vec![levels()],
            Preset::Updates => vec![updates()],
            Preset::PointSelect => vec![point_select(scale)],
            Preset::Insert => vec![insert()],
            Preset::Network => vec![network()],
            Preset::Replicas => Vec::new(),
            Preset::All => vec![space(), levels(), updates(), point_select(scale), insert(), network()],
        }
    }
}

fn space() -> Experiment {
    let on = [(COMPRESSION, "ON"), (LEVEL, "3")];
    let plain = CellSetting {
        zstd_levels: &[3],
        ..CellSetting::new("plain", &[(COMPRESSION, "OFF"), (ENCRYPTION, "OFF")])
    };
    Experiment {
        name: "space",
        settings: vec![
            plain,
            CellSetting::new("compressed", &[on[0], on[1], (ENCRYPTION, "OFF")]),
            CellSetting::new("encrypted", &[(COMPRESSION, "OFF"), (ENCRYPTION, "ON")]),
            CellSetting::new("encrypted and compressed", &[on[0], on[1], (ENCRYPTION, "ON")]),
        ],
        steps: vec![
            CellStep::measured("load employees", Work::Workload(Workload::Employees)),
            CellStep::measured("bulk update", Work::Workload(Workload::BulkUpdate)),
            CellStep::measured("sysbench prepare", Work::Workload(Workload::SysbenchPrepare)),
            CellStep::measured("sysbench run", Work::Workload(Workload::SysbenchRun)),
            CellStep::measured("single-row delete", Work::Workload(Workload::Delete)),
        ],
        keeps_data: false,
    }
}

fn levels() -> Experiment {
    let plain = CellSetting { zstd_levels: &LEVELS, ..CellSetting::off() };
    Experiment {
        name: "levels",
        settings: std::iter::once(plain).chain(LEVELS.map(CellSetting::level)).collect(),
        steps: vec![
            CellStep::measured("load", Work::Workload(Workload::Employees)),
            CellStep::preparing("prepare", Work::Workload(Workload::SysbenchPrepare)),
            CellStep::measured("OLTP", Work::Workload(Workload::SysbenchRun)),
        ],
        keeps_data: false,
    }
}

fn updates() -> Experiment {
    Experiment {
        name: "updates",
        settings: vec![CellSetting::off(), CellSetting::level(3), CellSetting::level(22)],
        steps: vec![
            CellStep::preparing("prepare", Work::LargeTable),
            CellStep::measured("one row", Work::RowUpdates),
            CellStep::measured("1,001 rows", Work::RangeUpdates),
        ],
        keeps_data: false,
    }
}

/// Statements that each thread of oltp_write_only prepares for each table: 115,200 at scale 1, while a server takes
/// 16,382 by default.
const STATEMENTS_OF_A_TABLE: u64 = 4;
/// The highest value of that variable.
const PREPARED_MAX: u64 = 1 << 20;
/// Room for observers.
const BESIDE: u64 = 500;

/// 120 tables of 100,000 rows and 240 threads; fewer at smaller scales.
fn point_select(scale: f64) -> Experiment {
    let tables = SysbenchTables { count: scaled(120.0, scale), rows: scaled(100_000.0, scale.sqrt()) };
    let threads = scaled(240.0, scale).max(4);
    let timed = |script| Work::Timed { script, tables, threads, rate: None };
    let prepared = u64::from(threads) * u64::from(tables.count) * STATEMENTS_OF_A_TABLE + BESIDE;
    let room = [connections(threads), ("max_prepared_stmt_count", prepared.min(PREPARED_MAX).to_string())];
    Experiment {
        name: "point-select",
        settings: vec![CellSetting::off().with(&room), CellSetting::level(3).with(&room)],
        steps: vec![
            CellStep::preparing("prepare", Work::Tables(tables)),
            CellStep::measured("point select", timed("oltp_point_select")),
            CellStep::measured("write only", timed("oltp_write_only")),
        ],
        keeps_data: true,
    }
}

/// Connections of the study of inserts.
const THREADS: [u32; 12] = [1, 4, 5, 6, 10, 50, 100, 200, 500, 1000, 5000, 5500];
/// At least this many connections are tried at any scale.
const THREADS_MIN: f64 = 4.0;
/// The study's question: clients that each insert a row a second.
const CLIENTS: f64 = 1000.0;

/// The step of the open-loop question.
pub(crate) const OPEN_LOOP: &str = "one row a second each";

/// Room for this many connections, and for observers.
fn connections(threads: u32) -> (&'static str, String) {
    ("max_connections", (u64::from(threads) + BESIDE).to_string())
}

/// The step with this many connections.
pub(crate) fn insert_step(threads: u32) -> String {
    format!("{threads} threads")
}

/// With the study's numbers of connections, as far as the scale goes, or with `asked`.
fn insert(scale: f64, asked: &[u32]) -> Experiment {
    let tables = SysbenchTables { count: 1, rows: scaled(200_000.0, scale) };
    let work = |threads, rate| Work::Timed { script: "oltp_insert", tables, threads, rate };
    let most = THREADS.into_iter().max().unwrap_or_default();
    let threads_max = (f64::from(most) * scale).max(THREADS_MIN);
    let threads = match asked {
        [] => THREADS.into_iter().filter(|threads| f64::from(*threads) <= threads_max).collect(),
        asked => asked.to_vec(),
    };
    let clients = open_loop_clients(scale);
    let room = connections(threads.iter().copied().fold(clients, u32::max));
    let settings =
        [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1"), ("2", "0"), ("2", "1")].map(|(flush, sync)| {
            let variables =
                [(COMPRESSION, "OFF"), ("innodb_flush_log_at_trx_commit", flush), ("sync_binlog", sync)];
            CellSetting::new(&format!("flush {flush}, sync {sync}"), &variables)
                .with(std::slice::from_ref(&room))
        });
    let mut steps = vec![CellStep::preparing("prepare", Work::Tables(tables))];
    for threads in threads {
        steps.push(CellStep { name: insert_step(threads).into(), measured: true, work: work(threads, None) });
    }
    steps.push(CellStep::measured(OPEN_LOOP, work(clients, Some(clients))));
    Experiment { name: "insert", settings: settings.into(), steps, keeps_data: false }
}

/// The number of clients that each insert a row a second.
pub(crate) fn open_loop_clients(scale: f64) -> u32 {
    scaled(CLIENTS, scale).max(2)
}

fn network() -> Experiment {
    let one =
        |name: &str, setting: CellSetting| CellSetting { name: name.to_owned(), cores: Some(1), ..setting };
    let all = |name: &str, setting: CellSetting| CellSetting { name: name.to_owned(), ..setting };
    Experiment {
        name: "network",
        settings: vec![
            one("1 core, off", CellSetting::off()),
            one("1 core, on", CellSetting::level(3)),
            all("all cores, off", CellSetting::off()),
            all("all cores, on", CellSetting::level(3)),
        ],
        steps: vec![
            CellStep::preparing("prepare", Work::TextTable),
            CellStep::measured("update loop", Work::UpdateLoop),
        ],
        keeps_data: false,
    }
}
