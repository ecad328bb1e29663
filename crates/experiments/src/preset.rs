//! What is run, as data: an experiment is settings × steps, and each setting is repeated.
//!
//! A cell is one setting, once: its steps run in their order on a server set so, since most of them need what those
//! before them have made. Steps that are not measured run without compression: they only prepare.

use binlogz_sandbox::workload::Workload;

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// What compression and encryption save, by workload.
    Space,
    /// What levels save and cost.
    Levels,
    /// Small and large updates.
    Updates,
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
}

/// How the server is set, and what is measured beside it.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) name: String,
    /// Global variables; those of other settings are as the server had them.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Levels at which zstd compresses the whole binlog files of each step, once.
    pub(crate) zstd_levels: &'static [u8],
}

/// Something to do.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
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
            Preset::All => "all",
        }
    }

    pub(crate) fn experiments(self) -> Vec<Experiment> {
        match self {
            Preset::Space => vec![space()],
            Preset::Levels => vec![levels()],
            Preset::Updates => vec![updates()],
            Preset::All => vec![space(), levels(), updates()],
        }
    }
}

impl Setting {
    fn new(name: &str, variables: &[(&'static str, &str)]) -> Setting {
        let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Setting { name: name.to_owned(), variables, zstd_levels: &[] }
    }

    fn off() -> Setting {
        Setting::new("off", &[(COMPRESSION, "OFF")])
    }

    fn level(level: u8) -> Setting {
        Setting::new(&format!("level {level}"), &[(COMPRESSION, "ON"), (LEVEL, &level.to_string())])
    }
}

impl Step {
    fn measured(name: &'static str, work: Work) -> Step {
        Step { name, measured: true, work }
    }

    fn preparing(name: &'static str, work: Work) -> Step {
        Step { name, measured: false, work }
    }
}

impl Work {
    /// Whether it is sysbench's.
    pub(crate) fn needs_sysbench(self) -> bool {
        match self {
            Work::Workload(workload) => {
                matches!(workload, Workload::SysbenchPrepare | Workload::SysbenchRun)
            }
            Work::LargeTable => true,
            Work::RowUpdates | Work::RangeUpdates => false,
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
    }
}
