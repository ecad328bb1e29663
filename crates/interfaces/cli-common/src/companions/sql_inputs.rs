//! Options that `sql`, `sql serve` and `export` have in common: how logs are read and described, and what is told of the work.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use crate::units::{above_zero, workers};

/// How logs are read.
#[derive(Debug, Args)]
pub struct SqlInputArgs {
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = above_zero)]
    pub jobs: Option<NonZeroUsize>,
    /// Read encrypted logs with the keys of this keyring file
    #[arg(long, value_name = "FILE")]
    pub keyring: Option<PathBuf>,
    /// What describes the tables.
    #[command(flatten)]
    pub schema: SchemaArgs,
}

/// What describes the tables of the logs.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Take column names and keys, where the logs lack them, from a file of CREATE TABLE statements or from a server
    ///
    /// As mysqldump --no-data --databases writes it. A server is USER@HOST:PORT, a socket or mysql://…; option files of MySQL's programs
    /// say more: groups client and binlogz. Without it such columns are "@1", "@2".
    #[arg(long, value_name = "FILE.sql|SERVER")]
    pub schema: Option<String>,
    /// How to reach that server.
    #[command(flatten)]
    pub server: SqlServerArgs,
}

/// Where tables are known as they were.
#[derive(Debug, Args)]
pub struct BaseArgs {
    /// Take the rows of tables from this server: "shop"."orders" is the table at the end of the logs, AS OF at another moment
    ///
    /// As binlogz table-at works it out, by the server's own logs; INPUTs serve for those that it has purged.
    #[arg(long, value_name = "SERVER")]
    pub base: Option<String>,
    /// Of a base with binlog-do-db or binlog-ignore-db, take all DDL for logged
    ///
    /// With binlog-ignore-db=mysql, ALTER TABLE after USE mysql isn't; AS OF is an error there without this.
    #[arg(long, requires = "base")]
    pub base_ddl_logged: bool,
}

/// How to reach a server.
#[derive(Debug, Args)]
pub struct SqlServerArgs {
    /// Of a server, read only this option file
    #[arg(long, value_name = "FILE")]
    pub defaults_file: Option<PathBuf>,
    /// Of a server, read this option file after the global ones
    #[arg(long, value_name = "FILE")]
    pub defaults_extra_file: Option<PathBuf>,
    /// Of a server, the login path of mysql_config_editor to use
    #[arg(long, value_name = "NAME")]
    pub login_path: Option<String>,
}

/// How much is told of the work.
#[derive(Debug, Args)]
pub struct SqlProgressArgs {
    /// Show no progress; there is none where standard error is no terminal
    #[arg(long)]
    pub quiet: bool,
    /// Say on standard error how much was read, and how long it took
    #[arg(long, short)]
    pub verbose: bool,
}

impl SqlInputArgs {
    /// How many threads work at once.
    pub fn jobs(&self) -> usize {
        workers(self.jobs)
    }
}

impl SqlServerArgs {
    /// The option that was given, if one was.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (self.defaults_file.is_some(), "--defaults-file"),
            (self.defaults_extra_file.is_some(), "--defaults-extra-file"),
            (self.login_path.is_some(), "--login-path"),
        ];
        given.into_iter().find_map(|(is_given, name)| is_given.then_some(name))
    }
}
