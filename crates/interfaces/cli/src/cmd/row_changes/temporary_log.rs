//! A log that only this run has, in a temporary file.

use std::sync::Arc;

use binlogz_archive::Scratch;
use binlogz_flow::Input;

/// A log in a temporary file.
pub(in crate::cmd) struct TemporaryLog {
    bytes: Arc<Scratch>,
    name: String,
}

impl TemporaryLog {
    /// The whole log that a file has, under a name for people.
    pub(super) fn new(bytes: Scratch, name: String) -> Self {
        TemporaryLog { bytes: Arc::new(bytes), name }
    }

    pub(super) fn open(&self) -> Input {
        let bytes = Arc::clone(&self.bytes);
        Input::Places(bytes)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}
