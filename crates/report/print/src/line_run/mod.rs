//! Logs as lines: all cores make them, and they are written in order.
//!
//! ```text
//! log → flow::events::run_in_turns → a LinePrinter (workers) → LineBatch (in order) → LineOutput
//!                                                                        → Offsets: what was handed over
//! ```
//!
//! The caller opens logs and output, and tells of trouble.

mod batch;
mod offsets;
mod output;
mod run;

pub use offsets::{Offsets, OffsetsError, OffsetsTrouble};
pub use output::{LineCompletion, LineOutput};
pub use run::{LineRun, LineRunError, LineRunSettings, LogAsLines};
