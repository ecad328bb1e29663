//! An experiment is settings × steps, and each setting is repeated.
//!
//! A cell is one setting, once. Its steps run in order on a server with that setting, since most of them need
//! the results of earlier ones. Steps that are not measured run without compression: they only prepare.

use std::borrow::Cow;

use binlogz_sandbox::workload::Workload;

/// Settings × steps.
#[derive(Debug, Clone)]
pub(crate) struct Experiment {
    /// As in `--preset` and results.json.
    pub(crate) name: &'static str,
    pub(crate) settings: Vec<CellSetting>,
    pub(crate) steps: Vec<CellStep>,
    /// Whether a setting may be measured on the data of another one: rates may, sizes may not.
    pub(crate) keeps_data: bool,
}

/// The server's settings, and further measurements under them.
#[derive(Debug, Clone)]
pub(crate) struct CellSetting {
    pub(crate) name: String,
    /// Global variables. Variables that only other settings have keep the server's own values.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Levels at which zstd compresses the whole binlog files of each step, once.
    pub(crate) zstd_levels: &'static [u8],
    /// Processors that the server may use; `None`: all. Only for private servers.
    pub(crate) cores: Option<usize>,
}

/// A step of a cell.
#[derive(Debug, Clone)]
pub(crate) struct CellStep {
    pub(crate) name: Cow<'static, str>,
    pub(crate) measured: bool,
    pub(crate) work: Work,
}

/// The load on the server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// One of the five workloads.
    Workload(Workload),
    /// sysbench's one table of 1.1 million rows at scale 1.
    LargeTable,
    /// Single-row updates of it, 5,000 at scale 1.
    RowUpdates,
    /// As many updates, each of 1,001 of its rows.
    RangeUpdates,
    /// A table with a column of text, 500,000 rows at scale 1.
    TextTable,
    /// Updates of all its rows, over and over for the time of a timed step.
    UpdateLoop,
    /// sysbench's tables.
    Tables(SysbenchTables),
    /// A sysbench script on them, for the time of a timed step.
    Timed {
        script: &'static str,
        tables: SysbenchTables,
        threads: u32,
        /// The requested transactions a second; `None`: as many as possible.
        rate: Option<u32>,
    },
}

/// The tables of sysbench.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SysbenchTables {
    pub(crate) count: u32,
    pub(crate) rows: u32,
}

/// Schemas that the workloads make. Their names are part of the binlog's size, so other names would not
/// give comparable figures.
pub(crate) const SCHEMAS: [&str; 2] = ["sbtest", "employees"];

pub(crate) use binlogz_payload::switch::{COMPRESSION, LEVEL};
pub(crate) const ENCRYPTION: &str = "binlog_encryption";

impl CellSetting {
    pub(crate) fn new(name: &str, variables: &[(&'static str, &str)]) -> CellSetting {
        let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        CellSetting { name: name.to_owned(), variables, zstd_levels: &[], cores: None }
    }

    pub(crate) fn off() -> CellSetting {
        CellSetting::new("off", &[(COMPRESSION, "OFF")])
    }

    pub(crate) fn level(level: u8) -> CellSetting {
        CellSetting::new(&format!("level {level}"), &[(COMPRESSION, "ON"), (LEVEL, &level.to_string())])
    }

    pub(crate) fn with(mut self, variables: &[(&'static str, String)]) -> CellSetting {
        self.variables.extend_from_slice(variables);
        self
    }

    /// The server's compression level; `None`: it does not compress.
    pub(crate) fn level_of_compression(&self) -> Option<u8> {
        let value =
            |name: &str| self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        match value(COMPRESSION)?.as_str() {
            "ON" => value(LEVEL)?.parse().ok(),
            _ => None,
        }
    }
}

impl CellStep {
    pub(crate) fn measured(name: &'static str, work: Work) -> CellStep {
        CellStep { name: Cow::Borrowed(name), measured: true, work }
    }

    pub(crate) fn preparing(name: &'static str, work: Work) -> CellStep {
        CellStep { name: Cow::Borrowed(name), measured: false, work }
    }
}

impl Work {
    /// Whether it needs sysbench.
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
