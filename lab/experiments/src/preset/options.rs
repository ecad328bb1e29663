//! The options of a run, kept with its results.

use serde::{Deserialize, Serialize};

/// The options of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentOptions {
    /// The preset.
    pub preset: String,
    /// The scale; 1 gives the studies' own sizes.
    pub scale: f64,
    /// Times that each setting is measured.
    pub repeat: u32,
    /// Seconds of a step that has no end of its own.
    pub time_s: f64,
    /// The seed for the order of settings and for the data.
    pub seed: u64,
    /// Numbers of connections for `insert`; empty: the study's.
    #[serde(default)]
    pub threads: Vec<u32>,
}
