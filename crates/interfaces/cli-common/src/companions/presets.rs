//! `binlogz bench PRESET`: the options that all presets have.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::server_args::ServerArgs;
use crate::units;

/// The options that all presets have.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub struct PresetOptions {
    /// The server: `mysql://[USER@]HOST[:PORT]`, `[USER@]HOST[:PORT]`, or a socket: `/PATH`, `unix:/PATH`
    #[arg(value_name = "SERVER", conflicts_with = "sandbox")]
    pub server: Option<String>,
    /// Start a private server for the run, of the MySQL that MYSQL_BASEDIR names or that the tests use
    #[arg(long)]
    pub sandbox: bool,
    /// An option of the private server, as in innodb-buffer-pool-size=1G
    #[arg(long, value_name = "NAME=VALUE", requires = "sandbox", value_parser = name_and_value, hide_short_help = true)]
    pub sandbox_option: Vec<(String, String)>,
    /// Allow the load: the workloads write, replicate, and change global settings until the end of the run
    #[arg(long)]
    pub yes_load_this_server: bool,
    /// Safety checks to override
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',')]
    pub allow: Vec<AllowArg>,
    /// Presets that `all` leaves out
    #[arg(long, value_name = "PRESET,…", value_delimiter = ',', hide_short_help = true)]
    pub skip: Vec<String>,
    /// Measure only this setting, such as 'level 22'; repeatable. Later runs can add others in the same folder
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub setting: Vec<String>,
    /// Numbers of connections for insert, instead of the study's
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=CONNECTIONS_MAX), hide_short_help = true)]
    pub threads: Vec<u32>,
    /// Print what would run and about how long it takes, without connecting to a server
    #[arg(long)]
    pub plan: bool,
    /// Size of the data, where 1 is the studies' own
    #[arg(long, value_name = "0.001…1", default_value_t = 1.0, value_parser = scale)]
    pub scale: f64,
    /// How many times each setting is measured
    #[arg(long, value_name = "N", default_value_t = REPEAT, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Duration of open-ended steps: 10s, 2m, or a number of seconds
    #[arg(long, value_name = "TIME", default_value = TIME, value_parser = time)]
    pub time: Duration,
    /// Seed of the order of settings and of the data
    #[arg(long, value_name = "N", default_value_t = SEED, hide_short_help = true)]
    pub seed: u64,
    /// Folder for results and report; an interrupted run continues there
    #[arg(long = "to", value_name = "DIR", alias = "out")]
    pub out: PathBuf,
    /// How to reach the server.
    #[command(flatten)]
    pub connection: ServerArgs,
}

/// Enough for a median, and to see how far figures lie apart.
const REPEAT: u32 = 3;
/// Long enough for a steady rate.
const TIME: &str = "10s";
/// Any; the same for everyone, so that data and order are.
const SEED: u64 = 7;

/// More than MySQL's own max_connections can be.
const CONNECTIONS_MAX: i64 = 100_000;

const EXAMPLES: &str = "Examples:
  binlogz bench space --sandbox --scale 0.1 --to space
  binlogz bench levels --yes-load-this-server --allow user-schemas --to levels -u root -p db1

DIR/restore.sql holds the settings that were changed until they are restored: at the end, at an error, at Ctrl-C.";

/// A safety check that can be overridden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AllowArg {
    /// Replicas or other readers of the binary log are attached
    Replicas,
    /// Commits wait for a replica's acknowledgement
    SemiSync,
    /// The server has users' schemas
    UserSchemas,
    /// Other sessions are active
    OtherLoad,
    /// The disk may become full
    LittleSpace,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if (0.0001..=10.0).contains(&scale) => Ok(scale),
        _ => Err("expected 0.0001 to 10".to_owned()),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    const RANGE: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(86_400);
    match units::duration_or_seconds(text) {
        Ok(time) if RANGE.contains(&time) => Ok(time),
        _ => Err("expected 0.1 to 86400 seconds".to_owned()),
    }
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| "expected NAME=VALUE".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct PresetLine {
        #[command(flatten)]
        options: PresetOptions,
    }

    /// `--out` was its name before results went `--to` a place in every command.
    #[test]
    fn results_go_where_either_name_says() {
        let out = |name| {
            let line = PresetLine::try_parse_from(["bench", "--sandbox", name, "folder"]);
            line.map(|line| line.options.out).map_err(|error| error.to_string())
        };
        assert_eq!(out("--to"), Ok(PathBuf::from("folder")));
        assert_eq!(out("--out"), out("--to"));
    }
}
