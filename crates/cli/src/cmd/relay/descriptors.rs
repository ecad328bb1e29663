//! Open files that the process may have: as many as it is allowed, and no more clients than they suffice for.
//!
//! Systems begin a process with a soft limit of 1,024, for programs that use select(2), and a hard one far above. A relay
//! has some for each client; without one left it can't begin the next file of its log.

use binlogz_relay::{Level, Limits};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one; how many descriptors there are then.
fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok() {
        return maximum.unwrap_or(u64::MAX);
    }
    current.unwrap_or(u64::MAX)
}

/// As many clients of `wanted` as the process may have descriptors for; says so if that is fewer.
pub(super) fn limit(wanted: Limits, say: &dyn Fn(Level, &str)) -> Limits {
    let descriptors = raise();
    let limits = wanted.within(descriptors);
    if limits != wanted {
        let Limits { connections_max, logging_in_max, .. } = limits;
        say(
            Level::Info,
            &format!(
                "{} clients, and {} logging in, may need {} descriptors, and the process may open {descriptors} \
                 (RLIMIT_NOFILE): {connections_max} clients are served, and {logging_in_max} may be logging in",
                wanted.connections_max,
                wanted.logging_in_max,
                wanted.descriptors()
            ),
        );
    }
    limits
}
