//! Session state and settings shared by scheduler and executors.

use std::sync::Arc;

use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::{default_config_producer, default_session_builder};
use binlogz_query::{aggregates, functions};
use datafusion::common::Result;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::prelude::SessionConfig;

use crate::Error;

/// How often an executor tells that it lives.
pub(crate) const HEARTBEAT_SECONDS: u64 = 5;
/// A session that knows our functions.
pub(crate) fn new(config: SessionConfig) -> Result<SessionState> {
    let mut state = default_session_builder(config)?;
    for function in functions() {
        state.register_udf(Arc::new(function))?;
    }
    for function in aggregates() {
        state.register_udaf(Arc::new(function))?;
    }
    Ok(state)
}

/// DataFusion's functions, and ours.
pub(crate) fn registry() -> std::result::Result<BallistaFunctionRegistry, Error> {
    let state = new(default_config_producer());
    state.map(|state| (&state).into()).map_err(|error| Error::of("functions", &error))
}
