//! Repeats the public experiments on binary log transaction compression, on any server, and shows the results with the
//! published figures.
//!
//! ```text
//! preset/   what is run, as data: settings × steps, repeated
//! server/   where: a server of the user's, or a private one, and how it is asked
//! safety/   whether it may be loaded at all, how it was, and how it gets back there, also when a run is interrupted
//! load/     puts load on it, and times what the client sees
//! measure/  what that cost: counters, bytes on the network, whole files by zstd; which replicas can follow
//! results   results.json, rewritten after each cell
//! run/      goes through the cells: plans, sets, loads, measures, drops, keeps
//! report/   medians, tables, plots and conclusions, as CSV and one HTML page, and beside another run
//! ```
//!
//! Each imports only from those above it. Nothing is printed here.

mod error;
mod files;
mod load;
mod measure;
mod preset;
mod report;
mod results;
mod run;
mod safety;
mod server;

pub use error::{Error, Result};
pub use preset::Preset;
pub use preset::options::ExperimentOptions;
pub use report::compare::compare;
pub use report::published;
pub use report::write_report;
pub use results::Results;
pub use run::{ExperimentProgress, Experimenter};
pub use safety::guard::Allow;
pub use safety::stop::RunStopper;
pub use server::tested::TestedServer;
