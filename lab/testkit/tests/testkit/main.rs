//! The tools of all other tests work: servers, workloads, faults, fuzz targets.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod faults;
mod fuzz_targets;
mod mixed;
mod old_servers;
mod server;
mod workload;
