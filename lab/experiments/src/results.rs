//! Stored results: `results.json`, rewritten after each cell, so that a run can be resumed.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, IoErrorContext, Result};
use crate::files::write_whole;
use crate::load::work::ClientView;
use crate::measure::counters::StepCost;
use crate::measure::replicas::MeasuredReplica;
use crate::measure::zstd::WholeFiles;
use crate::preset::options::ExperimentOptions;
use crate::server::machine::{Machine, ServerMachine};

/// The file, in the folder of a run.
pub(crate) const FILE: &str = "results.json";

/// Raised when fields change their meaning.
const FORMAT: u32 = 1;

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of this document.
    pub format: u32,
    /// The release that made it.
    pub binlogz: String,
    /// Whether cells are missing.
    pub partial: bool,
    /// The reason, if it is known.
    pub ended_by: Option<String>,
    /// When it was begun, in UTC.
    pub started: String,
    /// When its last cell ended.
    pub ended: String,
    /// The options of the run.
    pub options: ExperimentOptions,
    /// Where binlogz ran.
    pub machine: Machine,
    /// The server that was measured.
    pub server: ServerMachine,
    /// Settings that this server refused, and why.
    pub refused: Vec<RefusedSetting>,
    /// The measurements, in the order of time.
    pub cells: Vec<CellResult>,
    /// The replicas that followed a source that compresses.
    pub replicas: Vec<MeasuredReplica>,
}

/// A setting that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedSetting {
    /// The experiment.
    pub experiment: String,
    /// The setting.
    pub setting: String,
    /// The server's words.
    pub reason: String,
}

/// One setting, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The experiment.
    pub experiment: String,
    /// The setting.
    pub setting: String,
    /// The repeat, from 1 on.
    pub repeat: u32,
    /// When it was begun, in UTC.
    pub started: String,
    /// The steps that were measured.
    pub steps: Vec<StepResult>,
}

/// One step of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The step.
    pub step: String,
    /// The client's view.
    #[serde(flatten)]
    pub seen: ClientView,
    /// The cost to the server.
    #[serde(flatten)]
    pub cost: StepCost,
    /// Sessions of others at its end.
    pub other_sessions: u64,
    /// Bytes that a reader of the binary log received, where there was one.
    pub wire_bytes: Option<u64>,
    /// The step's binary log files compressed by zstd as a whole, where that was asked for.
    pub zstd: Vec<WholeFiles>,
}

/// The current time in the format of the results.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S").to_string()
}

impl Results {
    pub(crate) fn new(options: ExperimentOptions, machine: Machine, server: ServerMachine) -> Results {
        Results {
            format: FORMAT,
            binlogz: env!("CARGO_PKG_VERSION").to_owned(),
            partial: true,
            ended_by: None,
            started: now(),
            ended: now(),
            options,
            machine,
            server,
            refused: Vec::new(),
            cells: Vec::new(),
            replicas: Vec::new(),
        }
    }

    /// Reads the results in a folder; `None`: there are none.
    ///
    /// # Errors
    ///
    /// A file that does not hold results.
    pub fn read(folder: &Path) -> Result<Option<Results>> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read(&path).at("read", &path)?;
        let results: Results = serde_json::from_slice(&text)
            .map_err(|error| Error::Refused(format!("{}: no results of bench: {error}", path.display())))?;
        if results.format != FORMAT {
            return Err(Error::Refused(format!(
                "{}: format {}, expected {FORMAT}",
                path.display(),
                results.format
            )));
        }
        Ok(Some(results))
    }

    /// Writes them into a folder, whole or not at all.
    ///
    /// # Errors
    ///
    /// A full disk, for example; the earlier file then remains.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| Error::Io { what: "write results".to_owned(), source: error.into() })?;
        text.push(b'\n');
        write_whole(&folder.join(FILE), &text)
    }

    /// Whether a cell was measured.
    pub(crate) fn has(&self, experiment: &str, setting: &str, repeat: u32) -> bool {
        self.cells
            .iter()
            .any(|cell| cell.experiment == experiment && cell.setting == setting && cell.repeat == repeat)
    }

    /// Whether the server refused a setting.
    pub(crate) fn is_refused(&self, experiment: &str, setting: &str) -> bool {
        self.refused.iter().any(|refused| refused.experiment == experiment && refused.setting == setting)
    }
}
