//! Open files of the process: raises the limit as far as allowed, and limits the clients accordingly.
//!
//! Systems start a process with a soft limit of 1,024, for programs that use select(2), and a hard one far
//! above. A relay needs several for each client; without a free one it can't begin the next file of its log.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::admission::Limits;

/// Raises the soft limit to the hard one; how many descriptors there are then.
fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok() {
        return maximum.unwrap_or(u64::MAX);
    }
    current.unwrap_or(u64::MAX)
}

impl Limits {
    /// As many clients, up to these, as the process may have descriptors for. Raises the process's soft limit.
    #[must_use]
    pub fn within_descriptors(self, sources: usize) -> Limits {
        self.within(raise(), sources)
    }

    /// As [`Limits::within_descriptors`]; warns if there are fewer.
    #[must_use]
    pub fn limited_by_descriptors(self, sources: usize) -> Limits {
        let descriptors = raise();
        let limits = self.within(descriptors, sources);
        if limits != self {
            let Limits { connections_max, logging_in_max, .. } = limits;
            tracing::warn!(
                "{} clients, and {} logging in, may need {} descriptors, and the process may open {descriptors} \
                 (RLIMIT_NOFILE): {connections_max} clients are served, and {logging_in_max} may be logging in",
                self.connections_max,
                self.logging_in_max,
                self.descriptors(sources)
            );
        }
        limits
    }
}
