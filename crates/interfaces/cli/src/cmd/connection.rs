//! `binlogz connection`: a topic of the help, with all options of a connection.

use std::io::{self, Write};

use clap::Args;

use crate::Exit;
use crate::failure::{CommandFailure, Result};
use crate::help;
use crate::server_args::ServerArgs;

/// How to reach a server: the options of a connection, for every command that asks one
///
/// They are those of the mysql client, by the same names. Option files are read first (`[client]` and `[binlogz]` of my.cnf,
/// then the login file), then the command line, then SERVER itself. A password comes from an option file, a login path,
/// MYSQL_PWD, or -p, which asks for it.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, override_usage = "binlogz <COMMAND> [OPTIONS]")]
pub(crate) struct ConnectionArgs {
    #[command(flatten)]
    options: ServerArgs,
}

impl ConnectionArgs {
    pub(super) fn run(self) -> Result<Exit> {
        // Only its help is of use, whatever was given with it.
        drop(self.options);
        let mut all = crate::command();
        all.build();
        let text = all.find_subcommand_mut(help::TOPIC).map(|topic| topic.render_long_help().to_string());
        let written = io::stdout().write_all(text.unwrap_or_default().as_bytes());
        written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        Ok(Exit::Done)
    }
}
