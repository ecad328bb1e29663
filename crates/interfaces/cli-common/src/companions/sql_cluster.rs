//! `binlogz sql --cluster`, of builds with clusters.

use std::num::{NonZeroU64, NonZeroUsize};

use clap::Args;

use crate::units::above_zero;

/// The default of --task-size, in MiB.
pub const TASK_SIZE: NonZeroU64 = NonZeroU64::new(64).unwrap();
/// The default of --partitions.
pub const PARTITIONS: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// Where statements run.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// Let the cluster of this scheduler run the statements; its executors open each INPUT themselves
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub cluster: Option<(String, u16)>,
    /// MiB of logs that a task of the cluster reads; only logs of archives are divided
    #[arg(long, value_name = "MIB", default_value_t = TASK_SIZE, requires = "cluster")]
    pub task_size: NonZeroU64,
    /// Partitions of joins and groups in the cluster
    #[arg(long, value_name = "N", default_value_t = PARTITIONS, value_parser = above_zero, requires = "cluster")]
    pub partitions: NonZeroUsize,
}

/// Reads `HOST:PORT`.
///
/// # Errors
///
/// A text that is none, and what was expected.
pub fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    match parts {
        Some((host, port)) if !host.is_empty() => Ok((host.to_owned(), port)),
        _ => Err("expected HOST:PORT".to_owned()),
    }
}
