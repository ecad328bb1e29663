//! Which replicas can follow a source that compresses, and which rows the others skip.

mod following;
mod skip_counter;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::safety::stop::RunStopper;

/// A replica that followed, or tried to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredReplica {
    /// The replica's product and version.
    pub replica: String,
    /// The stream it follows: the source, or the relay in a form.
    pub follows: String,
    /// Settings of the replica.
    pub with: String,
    /// `works`, `stops`, `loses rows`, `skips`, or `not to be had`.
    pub outcome: String,
    /// The percentage of the source's rows that it has.
    pub rows_percent: Option<f64>,
    /// The replica's message.
    pub said: Option<String>,
}

/// Sets all replicas up, one after the other.
pub(crate) fn examine(stopper: &RunStopper, tell: &mut dyn FnMut(&str)) -> Result<Vec<MeasuredReplica>> {
    let mut replicas = following::examine(stopper, tell)?;
    replicas.extend(skip_counter::examine(stopper, tell)?);
    Ok(replicas)
}
