//! `binlogz demo`: its options.

use clap::Args;

const EXAMPLES: &str = "Examples:
  make demo
  binlogz demo --once

It needs a MySQL and a MariaDB of its own: `make demo` fetches them into a cache.
MYSQL_BASEDIR=FOLDER names a MySQL that is installed.";

/// See what binlogz does, on private servers: a replica that stops, the relay that heals it, an undo, an archive, a restore
///
/// Starts a MySQL source with compression on and a MariaDB replica, below the temporary folder and on ports of their own. Each step
/// prints the command that it runs. At the end the relay's status page stays up, under load, until Ctrl-C; then nothing of it is left.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// Without pauses, and end after the last step
    #[arg(long)]
    pub once: bool,
}
