//! What is run, as data: an experiment is settings × steps, and each setting is repeated.
//!
//! A cell is one setting, once: its steps run in their order on a server set so, since most of them need what those
//! before them have made. Steps that are not measured run without compression: they only prepare.

use std::borrow::Cow;

use binlogz_sandbox::workload::{Workload, scaled};

use crate::results::Options;

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// What compression and encryption save, by workload.
    Space,
    /// What levels save and cost.
    Levels,
    /// Small and large updates.
    Updates,
    /// Reads, which write no log, and writes, with many connections.
    PointSelect,
    /// Inserts by connections and flush policy.
    Insert,
    /// What a reader of the binary log receives while a large table is updated.
    Network,
    /// Who can follow a source that compresses.
    Replicas,
    /// All of them.
    All,
}

/// Settings × steps.
#[derive(Debug, Clone)]
pub(crate) struct Experiment {
    /// As in `--preset` and results.json.
    pub(crate) name: &'static str,
    pub(crate) settings: Vec<Setting>,
    pub(crate) steps: Vec<Step>,
    /// Whether a setting may be measured on the data that another one was: rates may, sizes not.
    pub(crate) keeps_data: bool,
}

/// How the server is set, and what is measured beside it.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) name: String,
    /// Global variables; those of other settings are as the server had them.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Levels at which zstd compresses the whole binlog files of each step, once.
    pub(crate) zstd_levels: &'static [u8],
    /// Processors that the server may use; `None`: all. For private servers alone.
    pub(crate) cores: Option<usize>,
}

/// Something to do.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) name: Cow<'static, str>,
    pub(crate) measured: bool,
    pub(crate) work: Work,
}

/// What puts load on the server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// One of the five.
    Workload(Workload),
    /// sysbench's one table of 1.1 million rows at scale 1.
    LargeTable,
    /// Single-row updates of it, 5,000 at scale 1.
    RowUpdates,
    /// Updates of 1,001 rows of it each, as many.
    RangeUpdates,
    /// A table with a column of text, 500,000 rows at scale 1.
    TextTable,
    /// Updates of all its rows, over and over for the time of a timed step.
    UpdateLoop,
    /// sysbench's tables.
    Tables(Tables),
    /// A script of sysbench's on them, for the time of a timed step.
    Timed {
        script: &'static str,
        tables: Tables,
        threads: u32,
        /// Transactions a second that are asked for; `None`: as many as it can.
        rate: Option<u32>,
    },
}

/// Tables of sysbench's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tables {
    pub(crate) count: u32,
    pub(crate) rows: u32,
}

/// Schemas that the workloads make. Their names are in the binlog, and so in its size: others would not compare.
pub(crate) const SCHEMAS: [&str; 2] = ["sbtest", "employees"];

pub(crate) const COMPRESSION: &str = "binlog_transaction_compression";
pub(crate) const LEVEL: &str = "binlog_transaction_compression_level_zstd";
const ENCRYPTION: &str = "binlog_encryption";

/// The levels that the study of 2020 took.
const LEVELS: [u8; 5] = [1, 3, 11, 19, 22];

impl Preset {
    /// Its name on the command line.
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

    /// What it runs on the tested server.
    pub(crate) fn experiments(self, options: &Options) -> Vec<Experiment> {
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

impl Setting {
    fn new(name: &str, variables: &[(&'static str, &str)]) -> Setting {
        let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Setting { name: name.to_owned(), variables, zstd_levels: &[], cores: None }
    }

    fn off() -> Setting {
        Setting::new("off", &[(COMPRESSION, "OFF")])
    }

    fn level(level: u8) -> Setting {
        Setting::new(&format!("level {level}"), &[(COMPRESSION, "ON"), (LEVEL, &level.to_string())])
    }

    fn with(mut self, variables: &[(&'static str, String)]) -> Setting {
        self.variables.extend_from_slice(variables);
        self
    }

    /// The level at which the server compresses; `None`: it does not.
    pub(crate) fn level_of_compression(&self) -> Option<u8> {
        let value =
            |name: &str| self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        match value(COMPRESSION)?.as_str() {
            "ON" => value(LEVEL)?.parse().ok(),
            _ => None,
        }
    }
}

impl Step {
    fn measured(name: &'static str, work: Work) -> Step {
        Step { name: Cow::Borrowed(name), measured: true, work }
    }

    fn preparing(name: &'static str, work: Work) -> Step {
        Step { name: Cow::Borrowed(name), measured: false, work }
    }
}

impl Work {
    /// Whether it is sysbench's.
    pub(crate) fn needs_sysbench(self) -> bool {
        match self {
            Work::Workload(workload) => {
                matches!(workload, Workload::SysbenchPrepare | Workload::SysbenchRun)
            }
            Work::LargeTable | Work::Tables(_) | Work::Timed { .. } => true,
            Work::RowUpdates | Work::RangeUpdates | Work::TextTable | Work::UpdateLoop => false,
        }
    }

    /// Connections that it makes at once.
    pub(crate) fn connections(self) -> u32 {
        match self {
            Work::Timed { threads, .. } => threads,
            _ => 2,
        }
    }
}

fn space() -> Experiment {
    let on = [(COMPRESSION, "ON"), (LEVEL, "3")];
    let plain =
        Setting { zstd_levels: &[3], ..Setting::new("plain", &[(COMPRESSION, "OFF"), (ENCRYPTION, "OFF")]) };
    Experiment {
        name: "space",
        settings: vec![
            plain,
            Setting::new("compressed", &[on[0], on[1], (ENCRYPTION, "OFF")]),
            Setting::new("encrypted", &[(COMPRESSION, "OFF"), (ENCRYPTION, "ON")]),
            Setting::new("encrypted and compressed", &[on[0], on[1], (ENCRYPTION, "ON")]),
        ],
        steps: vec![
            Step::measured("load employees", Work::Workload(Workload::Employees)),
            Step::measured("bulk update", Work::Workload(Workload::BulkUpdate)),
            Step::measured("sysbench prepare", Work::Workload(Workload::SysbenchPrepare)),
            Step::measured("sysbench run", Work::Workload(Workload::SysbenchRun)),
            Step::measured("single-row delete", Work::Workload(Workload::Delete)),
        ],
        keeps_data: false,
    }
}

fn levels() -> Experiment {
    let plain = Setting { zstd_levels: &LEVELS, ..Setting::off() };
    Experiment {
        name: "levels",
        settings: std::iter::once(plain).chain(LEVELS.map(Setting::level)).collect(),
        steps: vec![
            Step::measured("load", Work::Workload(Workload::Employees)),
            Step::preparing("prepare", Work::Workload(Workload::SysbenchPrepare)),
            Step::measured("OLTP", Work::Workload(Workload::SysbenchRun)),
        ],
        keeps_data: false,
    }
}

fn updates() -> Experiment {
    Experiment {
        name: "updates",
        settings: vec![Setting::off(), Setting::level(3), Setting::level(22)],
        steps: vec![
            Step::preparing("prepare", Work::LargeTable),
            Step::measured("one row", Work::RowUpdates),
            Step::measured("1,001 rows", Work::RangeUpdates),
        ],
        keeps_data: false,
    }
}

/// Statements that each thread of oltp_write_only prepares for each table: 115,200 at scale 1, where a server takes
/// 16,382 unless it is told otherwise.
const STATEMENTS_OF_A_TABLE: u64 = 4;
/// The most that a server can be told.
const PREPARED_MAX: u64 = 1 << 20;
/// Room for whoever looks on.
const BESIDE: u64 = 500;

/// 120 tables of 100,000 rows and 240 threads; fewer at smaller scales.
fn point_select(scale: f64) -> Experiment {
    let tables = Tables { count: scaled(120.0, scale), rows: scaled(100_000.0, scale.sqrt()) };
    let threads = scaled(240.0, scale).max(4);
    let timed = |script| Work::Timed { script, tables, threads, rate: None };
    let prepared = u64::from(threads) * u64::from(tables.count) * STATEMENTS_OF_A_TABLE + BESIDE;
    let room = [connections(threads), ("max_prepared_stmt_count", prepared.min(PREPARED_MAX).to_string())];
    Experiment {
        name: "point-select",
        settings: vec![Setting::off().with(&room), Setting::level(3).with(&room)],
        steps: vec![
            Step::preparing("prepare", Work::Tables(tables)),
            Step::measured("point select", timed("oltp_point_select")),
            Step::measured("write only", timed("oltp_write_only")),
        ],
        keeps_data: true,
    }
}

/// Connections of the study of inserts.
const THREADS: [u32; 12] = [1, 4, 5, 6, 10, 50, 100, 200, 500, 1000, 5000, 5500];
/// However small the scale is, so many connections are tried.
const THREADS_MIN: f64 = 4.0;
/// What the study was made for: clients that insert a row a second each.
const CLIENTS: f64 = 1000.0;

/// The step of the open-loop question.
pub(crate) const OPEN_LOOP: &str = "one row a second each";

/// Room for so many connections, and for whoever looks on.
fn connections(threads: u32) -> (&'static str, String) {
    ("max_connections", (u64::from(threads) + BESIDE).to_string())
}

/// The step with so many connections.
pub(crate) fn insert_step(threads: u32) -> String {
    format!("{threads} threads")
}

/// With the study's numbers of connections, as far as the scale goes, or with `asked`.
fn insert(scale: f64, asked: &[u32]) -> Experiment {
    let tables = Tables { count: 1, rows: scaled(200_000.0, scale) };
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
            Setting::new(&format!("flush {flush}, sync {sync}"), &variables).with(std::slice::from_ref(&room))
        });
    let mut steps = vec![Step::preparing("prepare", Work::Tables(tables))];
    for threads in threads {
        steps.push(Step { name: insert_step(threads).into(), measured: true, work: work(threads, None) });
    }
    steps.push(Step::measured(OPEN_LOOP, work(clients, Some(clients))));
    Experiment { name: "insert", settings: settings.into(), steps, keeps_data: false }
}

/// How many clients insert a row a second each.
pub(crate) fn open_loop_clients(scale: f64) -> u32 {
    scaled(CLIENTS, scale).max(2)
}

fn network() -> Experiment {
    let one = |name: &str, setting: Setting| Setting { name: name.to_owned(), cores: Some(1), ..setting };
    let all = |name: &str, setting: Setting| Setting { name: name.to_owned(), ..setting };
    Experiment {
        name: "network",
        settings: vec![
            one("1 core, off", Setting::off()),
            one("1 core, on", Setting::level(3)),
            all("all cores, off", Setting::off()),
            all("all cores, on", Setting::level(3)),
        ],
        steps: vec![
            Step::preparing("prepare", Work::TextTable),
            Step::measured("update loop", Work::UpdateLoop),
        ],
        keeps_data: false,
    }
}
