//! `binlogz sql serve`: options and arguments.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::Parser;

use super::sql::MEMORY;
use super::sql_inputs::{BaseArgs, SqlInputArgs};
use crate::help::{EXAMPLES_FIRST, HELP_WIDTH};
use crate::units::above_zero;

/// The port of --listen by default.
pub const PORT: u16 = 31337;
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);
/// Each reads logs with some 100 MiB of its own.
const QUERIES: NonZeroUsize = NonZeroUsize::new(8).unwrap();
const IDLE_MINUTES: NonZeroU64 = NonZeroU64::new(30).unwrap();
/// Ten minutes.
const TIMEOUT_SECONDS: NonZeroU64 = NonZeroU64::new(600).unwrap();

const EXAMPLES: &str = "Examples:
  binlogz sql serve /var/lib/mysql/binlog.0*
  binlogz sql serve --mysql 127.0.0.1:3307 archive
  binlogz sql serve --listen 0.0.0.0:31337 --tls-dir tls --accounts accounts.toml s3://bucket/archive

Exit codes: 0 ended by Ctrl-C or SIGTERM, 2 bad usage, bad input or I/O trouble.";

/// Let other programs ask logs in SQL, over Arrow Flight SQL and MySQL's protocol
///
/// JDBC, ADBC and what is built on them connect: DBeaver, Grafana, Python, R, Go; with --mysql any client of MySQL. They can only
/// read. The logs are those that there are at the start.
#[derive(Debug, Parser)]
#[command(name = "binlogz-sql serve", bin_name = "binlogz sql serve", version, max_term_width = HELP_WIDTH, after_help = EXAMPLES, help_template = EXAMPLES_FIRST)]
pub struct ServeArgs {
    /// Address and port to listen on for Flight SQL; port 0: any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = LOOPBACK)]
    pub listen: SocketAddr,
    /// Listen for MySQL's clients too, at this address and port; 3306 is MySQL's own
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub mysql: Option<SocketAddr>,
    /// Accounts that may log in: a file of tables named account, each with user and password_file or password_env, and exits for a policy
    #[arg(long, value_name = "FILE.toml")]
    pub accounts: Option<PathBuf>,
    /// One who may log in, with the password of --password-file, of BINLOGZ_SQL_PASSWORD, or as asked at the terminal
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// A file with the password of --user, which others can't read
    #[arg(long, value_name = "FILE", requires = "user")]
    pub password_file: Option<PathBuf>,
    /// Leave out and mask the tables and columns that this policy names, for all accounts without a policy of their own
    #[arg(long, value_name = "FILE.toml")]
    pub exits: Option<PathBuf>,
    /// Certificate for TLS, as PEM
    #[arg(long, value_name = "FILE.pem", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate, as PEM
    #[arg(long, value_name = "FILE.pem", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// TLS with a certificate of its own, made once and kept in this folder as sql-cert.pem
    #[arg(long, value_name = "DIR", conflicts_with = "tls_cert")]
    pub tls_dir: Option<PathBuf>,
    /// Name or address by which clients reach it, for its own certificate; may be repeated
    #[arg(long, value_name = "HOST", requires = "tls_dir")]
    pub tls_name: Vec<String>,
    /// Listen beyond this machine without TLS or without passwords
    #[arg(long)]
    pub insecure: bool,
    /// Answer queries without the changes that can't be read, and with NULL for columns that aren't known; standard error names these
    ///
    /// Otherwise a query that meets some is an error, since its client doesn't see standard error.
    #[arg(long)]
    pub over_unread: bool,
    /// Memory of all queries, in MiB; what sorts, joins and groups can't hold goes to temporary files, and a query beyond that ends
    #[arg(long, value_name = "MIB", default_value_t = MEMORY, value_parser = above_zero)]
    pub memory: NonZeroUsize,
    /// Queries that run at once; others wait
    #[arg(long, value_name = "N", default_value_t = QUERIES, value_parser = above_zero)]
    pub queries: NonZeroUsize,
    /// Seconds after which a query is ended
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT_SECONDS)]
    pub timeout: NonZeroU64,
    /// Minutes after which a session, or a query whose rows nobody takes, ends
    #[arg(long, value_name = "MINUTES", default_value_t = IDLE_MINUTES)]
    pub idle: NonZeroU64,
    /// How the logs are read.
    #[command(flatten)]
    pub inputs: SqlInputArgs,
    /// Where tables are known as they were.
    #[command(flatten)]
    pub base: BaseArgs,
    /// Binary logs, archives, logs in archives
    #[arg(value_name = "INPUT", required = true)]
    pub arguments: Vec<OsString>,
}
