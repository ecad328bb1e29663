//! `binlogz fleet`: all relays, archives and servers that a file names, in one table, page or document, the worst first.
//!
//! ```text
//! targets → ask (several at once, each with a limit) → row, joined and sorted → table · JSON · page · prometheus
//!                                                                     again and again: serve, with a history
//! ```

mod serve;

use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use binlogz_binlog::printable;
use binlogz_figures::FigureFormat::Table;
use binlogz_figures::wrapped;
use binlogz_fleet::{FleetDocument, RoundOptions, ask_all, joined, page, prometheus, targets};
use clap::Args;

use super::archive::json;
use crate::Exit;
use crate::failure::{CommandFailure, Result, warn};
use crate::format::WatchedFormat;
use crate::output;
use crate::pager;
use crate::terminal::TableArgs;
use crate::time;
use crate::units;

/// Show all relays, archives and servers that a file names: one table, the worst first
///
/// A row for each source of a relay, for each archive and for each server: its state, its lag, what is durable and archived, the last
/// restorable moment, gaps, and replicas that can't read compressed transactions. A target that doesn't answer in time is a row too,
/// with the cause. With --listen it asks again and again, and serves the page, the JSON document and metrics.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Fleet {
    /// The file that names them: tables `[[relay]]` with http = "HOST:PORT", `[[archive]]` with to = "s3://BUCKET/PREFIX" or a folder, and
    /// `[[server]]` with server = "HOST:PORT" and defaults_file = "FILE"
    #[arg(long, value_name = "FILE")]
    targets: PathBuf,
    /// Time for each: 10s, 1m, or a number of seconds
    #[arg(long, value_name = "TIME", default_value = LIMIT, value_parser = units::duration_or_seconds)]
    timeout: Duration,
    /// Output format
    #[arg(long, value_enum, default_value_t = WatchedFormat::Text)]
    format: WatchedFormat,
    /// Also write a page for a browser
    #[arg(long, value_name = "FLEET.html")]
    html: Option<PathBuf>,
    /// Replace that file if it is there
    #[arg(long, requires = "html")]
    force: bool,
    /// Serve the page, /status.json and /metrics there until it is stopped: ADDRESS:PORT, or a port on this machine. Without a password
    #[arg(long, value_name = "ADDRESS", value_parser = serve::listen_at, conflicts_with_all = ["format", "html"])]
    listen: Option<SocketAddr>,
    /// Ask all targets so often; servers every five minutes at most
    #[arg(long, value_name = "TIME", requires = "listen", default_value = EVERY, value_parser = units::duration_or_seconds)]
    every: Duration,
    /// A name under which browsers may ask for the page, besides addresses and localhost; may be given several times
    #[arg(long, value_name = "NAME", requires = "listen")]
    host: Vec<String>,
    #[command(flatten)]
    table: TableArgs,
}

const EXAMPLES: &str = "Examples:
  binlogz fleet --targets fleet.toml
  binlogz fleet --targets fleet.toml --html /var/www/fleet.html --force
  binlogz fleet --targets fleet.toml --format prometheus > fleet.prom
  binlogz fleet --targets fleet.toml --listen 3309

Exit codes: 0 nothing is red; 1 a row is red: a target can't be asked, a source is down, something needs a person; 2 bad usage.";

/// The limit for a target's answer: longer than any healthy target takes.
const LIMIT: &str = "10s";
/// As often as Prometheus usually asks.
const EVERY: &str = "1m";

impl Fleet {
    pub(super) fn run(self) -> Result<Exit> {
        let page = self.html.clone().map(|path| output::target(path, &[], self.force)).transpose()?;
        let targets =
            targets::read(&self.targets).map_err(|error| CommandFailure::Line(error.to_string()))?;
        if let Some(address) = self.listen {
            let Fleet { targets: path, timeout: limit, every, host: hosts, .. } = self;
            let options = RoundOptions { targets: path, limit, every, warn };
            return serve::serve(address, options, &hosts, targets).map(|()| Exit::Done);
        }
        let rows = joined(ask_all(targets, self.timeout, warn));
        let document = FleetDocument::of(&rows);
        if let Some(page) = &page {
            let mut out = BufWriter::new(page.create()?);
            let written = page::write(&rows, Duration::ZERO, &mut out)
                .and_then(|()| out.into_inner().map_err(|error| error.into_error()));
            written.map_err(|error| CommandFailure::writing(page, &error))?.finish()?;
        }
        match self.format {
            WatchedFormat::Text => {
                let table = page::text_table(&rows, time::shown);
                pager::show(|out| {
                    Table(self.table.layout()).write(&[table], out)?;
                    // Relays and their clients chose some of it.
                    let lines = page::findings(&rows)
                        .map(|line| wrapped(&printable(&line), "", "  ", self.table.layout().width));
                    lines.zip(0..).try_for_each(|(line, number)| {
                        let blank = if number == 0 { "\n" } else { "" };
                        writeln!(out, "{blank}{line}")
                    })
                })?;
            }
            WatchedFormat::Json => json::print(&document)?,
            WatchedFormat::Prometheus => {
                let written = io::stdout().lock().write_all(prometheus::text(&rows).as_bytes());
                written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
            }
        }
        Ok(if document.healthy { Exit::Done } else { Exit::Negative })
    }
}
