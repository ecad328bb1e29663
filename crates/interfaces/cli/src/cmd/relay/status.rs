//! `relay status`: asks a running relay over its HTTP port.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use binlogz_binlog::printable;
use binlogz_figures::{FigureUnit, counted, wrapped};
use clap::Args;
use serde_json::Value;

use super::http;
use crate::Exit;
use crate::failure::{CommandFailure, Result};
use crate::format::ReportFormat;
use crate::terminal::{self, SizesArg};

/// As wide as the words at the head of the lines.
const INDENT: &str = "          ";

/// The relay is on this machine or near it.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Show the state of a running relay; exit code 1 when its source is down, or when it needs a decision or repair.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RelayStatusCommand {
    /// The relay's configuration, for its http address.
    #[arg(long, value_name = "FILE", default_value = "relay.toml")]
    config: PathBuf,
    /// Ask this address instead.
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Of a relay with several sources: show this one alone.
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    #[command(flatten)]
    sizes: SizesArg,
}

const EXAMPLES: &str = "Examples:
  binlogz relay status --config /etc/binlogz/relay.toml
  binlogz relay status --http 127.0.0.1:3308 --format json";

impl RelayStatusCommand {
    pub(super) fn run(self) -> Result<Exit> {
        let query = self.source.as_ref().map_or(String::new(), |source| format!("?source={source}"));
        let (address, body) = http::ask(self.http.as_deref(), &self.config, &query, PATIENCE)?;
        let failed =
            |error: &dyn std::fmt::Display| CommandFailure::of(&format_args!("http://{address}/"), error);
        let document: Value = serde_json::from_str(&body).map_err(|error| failed(&error))?;
        let shown = match self.format {
            ReportFormat::Json => body,
            ReportFormat::Text => match document.get("sources").and_then(Value::as_array) {
                Some(sources) => several(&document, sources, self.sizes),
                None => printed(text(&document, self.sizes)),
            },
        };
        let written = io::stdout().write_all(shown.as_bytes());
        written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        let is_healthy = document.get("troubles").and_then(Value::as_array).is_some_and(Vec::is_empty);
        let sources = document.get("sources").and_then(Value::as_array);
        let is_cut_off = is_cut_off(&document) || sources.is_some_and(|all| all.iter().any(is_cut_off));
        Ok(if is_healthy && !is_cut_off { Exit::Done } else { Exit::Negative })
    }
}

/// Whether the relay has no connection to its source, and was not told to stop.
fn is_cut_off(status: &Value) -> bool {
    matches!(status.pointer("/source/phase").and_then(Value::as_str), Some("connecting" | "waiting"))
}

/// All sources: for each a line, and its problems.
fn several(status: &Value, sources: &[Value], sizes: SizesArg) -> String {
    let mut lines = Vec::new();
    for source in sources {
        let name = source["name"].as_str().unwrap_or_default();
        // The first line says how the source is; the others are shown with --source.
        let shown = match source["failure"].as_str() {
            Some(failure) => vec![format!("source    is not served: {failure}")],
            None => text(source, sizes),
        };
        let replicas = source["replicas"].as_array().map_or(0, Vec::len);
        let replicas = format!(", {}", counted(replicas as u64, "replicas"));
        lines.extend(shown.into_iter().filter_map(|line| {
            let (kind, rest) = line.split_once(' ')?;
            match kind {
                "source" => Some(format!("source    {name}: {}{replicas}", rest.trim_start())),
                "trouble" => Some(format!("trouble   {name}: {}", rest.trim_start())),
                _ => None,
            }
        }));
    }
    let duties = status["duties"].as_array().into_iter().flatten();
    for duty in duties.filter(|duty| duty["up"] == false) {
        lines.push(format!("trouble   the duty {} is not done: {}", duty["name"], duty["failure"]));
    }
    lines.push(clients(status));
    lines.extend(fingerprint(status));
    printed(lines)
}

fn clients(status: &Value) -> String {
    let clients = &status["clients"];
    format!(
        "clients   {} logged in, {} logging in, {} turned away",
        clients["logged_in"], clients["logging_in"], clients["turned_away"]
    )
}

/// The limits, if there are any.
fn rates(status: &Value, sizes: SizesArg) -> Option<String> {
    let rates = &status["rates"];
    let rates = [(&rates["receive"], "received"), (&rates["archive"], "read for the archive")];
    let said: Vec<_> = rates
        .into_iter()
        .filter_map(|(rate, what)| {
            let limits = [(&rate["limit"], ""), (&rate["shared_limit"], " of all sources")];
            let limits: Vec<_> = limits
                .into_iter()
                .filter_map(|(limit, whose)| Some(format!("{}{whose}", sizes.in_words(limit.as_u64()?))))
                .collect();
            let waited = rate["waited_seconds"].as_f64().unwrap_or_default();
            let now = if rate["is_waiting"] == true { ", and waits now" } else { "" };
            (!limits.is_empty()).then(|| {
                format!("at most {} {what} a second (waited {waited:.0} s{now})", limits.join(" and "))
            })
        })
        .collect();
    (!said.is_empty()).then(|| format!("rates     {}", said.join("; ")))
}

fn archive(status: &Value) -> Option<String> {
    let archive = &status["archive"];
    let to = archive["to"].as_str()?;
    let last = archive["last_file"].as_str().unwrap_or("nothing since the start");
    let waiting = counted(archive["waiting_files"].as_u64().unwrap_or_default(), "closed files");
    let failing = archive["failing_seconds"].as_u64();
    let failing = failing.map_or(String::new(), |long| format!(", failing for {long} s"));
    let check = &archive["check"];
    let age = check["age_seconds"].as_u64();
    let age = age.map_or(String::new(), |age| {
        format!(", all checked, or new, since {} ago", FigureUnit::Seconds.text(age as f64))
    });
    let damaged = match check["damaged_logs"].as_u64() {
        None | Some(0) => String::new(),
        Some(count) => format!(", {} damaged or missing", counted(count, "logs")),
    };
    let selection = archive["selection"].as_str();
    let selection = selection.map_or(String::new(), |tables| format!(" (a selection of tables: {tables})"));
    Some(format!(
        "archive   {to}{selection}: the last is {last}, {waiting} not there yet{failing}{age}{damaged}"
    ))
}

/// How closed files are read to find damage.
fn scrub(status: &Value, sizes: SizesArg) -> Option<String> {
    let scrub = &status["scrub"];
    let rate = sizes.in_words(scrub["rate"].as_u64()?);
    let age = FigureUnit::Seconds.text(scrub["age_seconds"].as_u64()? as f64);
    Some(format!(
        "scrub     at most {rate} a second; all closed files were read, or are new, since {age} ago"
    ))
}

/// Counts what was withheld from a replica, because it can't read it or because its account leaves it out, and what it got
/// in another way.
fn left_out(replica: &Value) -> String {
    let counts = [
        ("left_out_account_statements", "statements about accounts", "left out"),
        ("left_out_rows_events", "events with rows", "left out"),
        ("prepared_xa_transactions", "XA transactions", "prepared"),
        ("translated_xa_transactions", "XA transactions", "translated"),
    ];
    let told = counts.into_iter().filter_map(|(key, what, done)| {
        let count = replica[key].as_u64().filter(|count| *count > 0)?;
        Some(format!(", {} {done}", counted(count, what)))
    });
    told.collect()
}

fn fingerprint(status: &Value) -> Option<String> {
    status["tls_fingerprint"].as_str().map(|fingerprint| format!("tls       SHA-256 {fingerprint}"))
}

fn printed(lines: Vec<String>) -> String {
    // Clients and the source chose some of it.
    let shown = |line: &String| {
        wrapped(&printable(line), "", INDENT, Some(terminal::width().unwrap_or(terminal::PIPE_WIDTH))) + "\n"
    };
    lines.iter().map(shown).collect()
}

/// The status of one source: a line for each thing.
fn text(status: &Value, sizes: SizesArg) -> Vec<String> {
    let size =
        |bytes: &Value| bytes.as_u64().map_or_else(|| bytes.to_string(), |bytes| sizes.in_words(bytes));
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let place = |value: &Value| format!("{} at {}", plain(&value["file"]), value["position"]);
    let lag = |value: &Value| match value.as_u64() {
        Some(seconds) => format!("{seconds} s behind"),
        None => "lag not known".to_owned(),
    };
    let source = &status["source"];
    let log = &status["log"];
    let bytes = &status["bytes"];
    let mut lines = vec![format!(
        "source    {}{} {} for {} s, {}",
        plain(&source["server"]),
        if is_cut_off(status) { " is down:" } else { "" },
        plain(&source["phase"]),
        source["down_seconds"].as_u64().map_or_else(|| source["phase_seconds"].clone(), Value::from),
        lag(&source["lag_seconds"])
    )];
    for trouble in status["troubles"].as_array().into_iter().flatten() {
        lines.push(format!("trouble   {}", plain(trouble)));
    }
    match log.is_null() {
        true => lines.push("log       nothing is here yet".to_owned()),
        false => {
            lines.push(format!(
                "log       {}, {}, from {}",
                counted(log["files"].as_u64().unwrap_or_default(), "files"),
                size(&log["bytes"]),
                plain(&log["first_file"])
            ));
            lines.push(format!("received  {}", place(&log["written"])));
            lines.push(format!("durable   {}", place(&log["durable"])));
            lines.push(format!("gtids     {}", plain(&log["gtid_executed"]).replace(",\n", ",")));
        }
    }
    lines.push(format!(
        "bytes     {} received, {} stored, {} served",
        size(&bytes["received"]),
        size(&bytes["stored"]),
        size(&bytes["served"])
    ));
    lines.extend(archive(status));
    lines.extend(scrub(status, sizes));
    lines.extend(rates(status, sizes));
    lines.push(clients(status));
    lines.extend(fingerprint(status));
    for replica in status["replicas"].as_array().into_iter().flatten() {
        lines.push(format!(
            "replica   {} ({} from {}), {}, {}: {}, {}, {} to send{}{}",
            replica["server_id"],
            plain(&replica["user"]),
            plain(&replica["address"]),
            plain(&replica["profile"]),
            plain(&replica["form"]),
            place(&replica["place"]),
            lag(&replica["lag_seconds"]),
            size(&replica["lag_bytes"]),
            match &replica["acknowledged"] {
                Value::Null => String::new(),
                acknowledged => format!(", acknowledged {}", place(acknowledged)),
            },
            left_out(replica)
        ));
    }
    for error in status["last_errors"].as_array().into_iter().flatten().take(5) {
        lines.push(format!("error     {}: {}", plain(&error["kind"]), plain(&error["text"])));
    }
    lines
}
