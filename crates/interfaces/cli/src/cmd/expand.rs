//! `binlogz expand`: turns payloads into transactions, as if they had never been compressed.

use binlogz_flow::Rewrite;
use clap::Args;

use super::rewrite::RewriteArgs;
use crate::Exit;
use crate::failure::Result;
use crate::report::Verb;

/// Expand the compressed transactions of binary logs
///
/// The output has no Transaction_payload events, so servers before 8.0.20, MariaDB and CDC clients can
/// read it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Expand {
    #[command(flatten)]
    rewrite: RewriteArgs,
}

const EXAMPLES: &str = "Examples:
  binlogz expand --output plain/ binlog.0000*
  binlogz expand --output - binlog.000042 | mysqlbinlog -

A file that fails is reported and left out; the others are done, and the exit code is 2.";

impl Expand {
    pub(super) fn run(self) -> Result<Exit> {
        self.rewrite.run(Verb::Expand, Rewrite::Expand, None)
    }
}
