//! How progress bars look, as templates of the crate indicatif: the same in each program.

use std::time::Duration;

/// How often a bar moves whose work can't be counted.
pub const TICK: Duration = Duration::from_millis(200);

/// Work of a known size: how far, how fast, how much longer.
pub const OF_SIZE: &str = "{prefix} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";

/// A sign of life.
pub const OF_UNKNOWN_TIME: &str = "{prefix} {spinner} {elapsed}";
