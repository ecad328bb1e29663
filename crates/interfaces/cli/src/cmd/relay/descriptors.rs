//! Open files of the process: raises the limit as far as allowed, and limits the clients accordingly.
//!
//! Systems start a process with a soft limit of 1,024, for programs that use select(2), and a hard one far
//! above. A relay needs several for each client; without a free one it can't begin the next file of its log.

use binlogz_relay::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one; how many descriptors there are then.
fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok() {
        return maximum.unwrap_or(u64::MAX);
    }
    current.unwrap_or(u64::MAX)
}

/// The number of clients, up to `wanted`, for which the process may have descriptors.
pub(super) fn within(wanted: Limits, sources: usize) -> Limits {
    wanted.within(raise(), sources)
}

/// The number of clients, up to `wanted`, for which the process may have descriptors. Warns if that is fewer.
pub(in crate::cmd) fn limit(wanted: Limits, sources: usize) -> Limits {
    let descriptors = raise();
    let limits = wanted.within(descriptors, sources);
    if limits != wanted {
        let Limits { connections_max, logging_in_max, .. } = limits;
        tracing::warn!(
            "{} clients, and {} logging in, may need {} descriptors, and the process may open {descriptors} \
             (RLIMIT_NOFILE): {connections_max} clients are served, and {logging_in_max} may be logging in",
            wanted.connections_max,
            wanted.logging_in_max,
            wanted.descriptors(sources)
        );
    }
    limits
}
