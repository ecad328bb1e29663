//! The possible number of connections: raises the limits that we control, and names the others.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::server::session::ServerSession;

/// Files and sockets that a process needs in addition to its connections.
const BESIDE: u64 = 100;

/// Enough for all presets at scale 10.
const WANTED: u64 = 65_535;

/// How many connections each side can have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connections {
    /// Open files that sysbench, a child of this process, may have.
    client: u64,
    /// Open files of the server, which are its connections, tables and logs.
    server: u64,
}

/// Raises this process's limit as far as permitted, and asks the server for its own.
pub(crate) fn connections(session: &mut ServerSession) -> Connections {
    let limit = getrlimit(Resource::Nofile);
    let to = |most: Option<u64>| {
        setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).map(|()| most)
    };
    // Beyond the hard limit only an administrator may.
    let wanted = limit.maximum.map(|most| most.max(WANTED));
    let client = to(wanted).or_else(|_| to(limit.maximum)).unwrap_or(limit.current);
    let server = session.number("SELECT @@GLOBAL.open_files_limit").ok().flatten();
    Connections { client: client.unwrap_or(u64::MAX), server: server.unwrap_or(u64::MAX) }
}

impl Connections {
    /// The limit that rules out this many connections, if there is one.
    pub(crate) fn against(&self, connections: u32) -> Option<String> {
        let needed = u64::from(connections) + BESIDE;
        if self.client < needed {
            return Some(format!("needs {needed} open files here, the limit is {} (ulimit -n)", self.client));
        }
        (self.server < needed).then(|| {
            format!("needs {needed} open files of the server, its open_files_limit is {}", self.server)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Connections;

    #[test]
    fn the_limit_is_named() {
        let limits = Connections { client: 1024, server: 5000 };
        assert_eq!(limits.against(500), None);
        let said = limits.against(1000).unwrap();
        assert!(said.contains("1100 open files here, the limit is 1024"), "{said}");
        let limits = Connections { client: 10_000, server: 5000 };
        assert!(limits.against(5000).unwrap().contains("open_files_limit is 5000"));
    }
}
