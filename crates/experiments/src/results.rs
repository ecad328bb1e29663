//! Results as they are kept: `results.json`, written anew after each cell, so that a run can be taken up again.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, IoContext, Result};
use crate::machine::{Machine, Server};
use crate::measure::Cost;
use crate::replicas::Replica;
use crate::work::Seen;
use crate::zstd::WholeFiles;

/// The file, in the folder of a run.
pub(crate) const FILE: &str = "results.json";

/// Raised when fields change their meaning.
const FORMAT: u32 = 1;

/// How a run was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// The preset.
    pub preset: String,
    /// 1: the studies' own sizes.
    pub scale: f64,
    /// Times that each setting is measured.
    pub repeat: u32,
    /// Seconds of a step that could go on for ever.
    pub time_s: f64,
    /// Of the order of settings, and of the data.
    pub seed: u64,
    /// Numbers of connections of `insert`, instead of the study's.
    #[serde(default)]
    pub threads: Vec<u32>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// This document's.
    pub format: u32,
    /// The release that made it.
    pub binlogz: String,
    /// Whether cells are missing.
    pub partial: bool,
    /// Why, where it is known.
    pub ended_by: Option<String>,
    /// When it was begun, in UTC.
    pub started: String,
    /// When its last cell ended.
    pub ended: String,
    /// How it was asked for.
    pub options: Options,
    /// Where binlogz ran.
    pub machine: Machine,
    /// What was measured.
    pub server: Server,
    /// Settings that this server refused, and why.
    pub refused: Vec<RefusedSetting>,
    /// What was measured, in the order of time.
    pub cells: Vec<Cell>,
    /// Who followed a source that compresses.
    pub replicas: Vec<Replica>,
}

/// A setting that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedSetting {
    /// The experiment.
    pub experiment: String,
    /// The setting.
    pub setting: String,
    /// What the server said.
    pub reason: String,
}

/// One setting, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The experiment.
    pub experiment: String,
    /// The setting.
    pub setting: String,
    /// Which time, from 1 on.
    pub repeat: u32,
    /// When it was begun, in UTC.
    pub started: String,
    /// The steps that were measured.
    pub steps: Vec<Measured>,
}

/// One step of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The step.
    pub step: String,
    /// What the client saw.
    #[serde(flatten)]
    pub seen: Seen,
    /// What it cost the server.
    #[serde(flatten)]
    pub cost: Cost,
    /// Sessions of others at its end.
    pub other_sessions: u64,
    /// Bytes that a reader of the binary log received, where there was one.
    pub wire_bytes: Option<u64>,
    /// Its binary log files by zstd as a whole, where that was asked for.
    pub zstd: Vec<WholeFiles>,
}

/// The time as results have it.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S").to_string()
}

impl Results {
    pub(crate) fn new(options: Options, machine: Machine, server: Server) -> Results {
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
    /// A file that is no such document.
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
    /// A disk that is full, for example; what was there before is still there.
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

/// Writes a file beside its place, syncs it and moves it there.
pub(crate) fn write_whole(path: &Path, text: &[u8]) -> Result<()> {
    let temporary = path.with_extension("tmp");
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&temporary, path)).at("write", path)
}
