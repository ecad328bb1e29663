//! Repeats the public experiments on binary log transaction compression, on any server, beside the published figures.
//!
//! ```text
//! preset.rs      what is run, as data; experiment.rs: settings × steps, repeated
//! server.rs      where: a server of the user's, or a private one; session.rs asks it, sysbench.rs loads it
//! guard.rs       whether it may be loaded at all; limits.rs how many connections it can have
//! plan.rs        the cells in their order, with estimates; space.rs whether there is room for them
//! restore.rs     how it was, and how it gets back there; stop.rs does that also when the run is interrupted
//!   │
//! run.rs         run/cells.rs: each cell: set, load (work.rs), measure (measure.rs, consumer.rs), drop, keep
//!   │            replicas.rs: who can follow a source that compresses; skip_counter.rs: what they skip
//!   │ results.rs results.json, after each cell
//! summary/       medians, tables, plots, conclusions; published.rs has the figures of the studies
//!   │
//! report.rs      CSV and one HTML page;  compare.rs sets two results side by side
//! ```
//!
//! Nothing is printed here.

#![deny(clippy::indexing_slicing, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used))]

mod compare;
mod consumer;
mod error;
mod experiment;
mod guard;
mod limits;
mod machine;
mod measure;
mod plan;
mod preset;
pub mod published;
mod replicas;
mod report;
mod restore;
mod results;
mod run;
mod server;
mod session;
mod skip_counter;
mod space;
mod stop;
mod summary;
mod sysbench;
mod work;
mod zstd;

pub use compare::compare;
pub use error::{Error, Result};
pub use guard::Allow;
pub use preset::Preset;
pub use report::write_report;
pub use results::{Options, Results};
pub use run::{Experimenter, Progress};
pub use server::TestedServer;
pub use stop::Stopper;
