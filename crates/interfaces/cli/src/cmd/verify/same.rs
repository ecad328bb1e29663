//! `binlogz verify --same A… -- B…`: do two sequences of logs mean the same?

use std::fmt;
use std::io::{self, Write};

use binlogz_binlog::printable;
use binlogz_encryption::Keyring;
use binlogz_figures::{counted, grouped};
use binlogz_flow::same::{Difference, FoundEvent};
use binlogz_flow::{Comparison, same};
use serde::Serialize;

use super::print;
use crate::Exit;
use crate::failure::{CommandFailure, Result, warn_cut};
use crate::format::ReportFormat;
use crate::log_path::{LogPath, check_stdin_once};
use crate::progress::WorkProgress;

/// Compares the logs of both sides and prints the first difference.
pub(super) fn run(sides: [&[LogPath]; 2], keyring: Option<&Keyring>, format: ReportFormat) -> Result<Exit> {
    let all = sides.concat();
    check_stdin_once(&all)?;
    let sizes: Vec<_> = all.iter().map(LogPath::size).collect::<Result<_>>()?;
    let progress = WorkProgress::new(&"compare", sizes.into_iter().sum());
    let open = |log: &LogPath| Ok(log.open_input(keyring)?);
    let comparison = same(sides, open, &mut |bytes| progress.at(bytes));
    drop(progress);
    let comparison = comparison
        .map_err(|trouble| CommandFailure::reading(log(sides, trouble.side, trouble.log), &trouble.error))?;
    for &(side, number, cut) in &comparison.cuts {
        warn_cut(log(sides, side, number), cut, "; they are not compared");
    }
    match format {
        ReportFormat::Text => print(|out| write_text(sides, &comparison, out))?,
        ReportFormat::Json => {
            let answer = Answer::of(sides, &comparison);
            print(|out| writeln!(out, "{}", serde_json::to_string_pretty(&answer)?))?;
        }
    }
    Ok(if comparison.difference.is_none() { Exit::Done } else { Exit::Negative })
}

/// A log by its side and number.
#[expect(clippy::indexing_slicing, reason = "both come from the comparison of these logs")]
fn log(sides: [&[LogPath]; 2], side: usize, number: usize) -> &LogPath {
    &sides[side][number]
}

fn write_text(sides: [&[LogPath]; 2], comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let transactions = counted(comparison.transactions, "transactions");
    let events = grouped(comparison.events);
    let Some(difference) = &comparison.difference else {
        return writeln!(out, "same: {transactions}, {}", counted(comparison.events, "events"));
    };
    writeln!(out, "different: {}, after {events} equal events", difference.what())?;
    for (side, found) in difference.found.iter().enumerate() {
        match found {
            Some(found) => {
                let log = log(sides, side, found.log).to_string();
                let log = printable(&log);
                writeln!(out, "  {log} at {}: {}", found.place.offset, Description(found))?;
            }
            None => match sides.get(side).and_then(|logs| logs.last()) {
                Some(log) => writeln!(out, "  {}: no more events", printable(&log.to_string()))?,
                None => writeln!(out, "  no log")?,
            },
        }
    }
    Ok(())
}

/// An event in words.
struct Description<'a>(&'a FoundEvent);

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FoundEvent { place, header, body_size, gtid, .. } = self.0;
        write!(f, "{} event", header.event_type)?;
        if place.payload_end_log_pos.is_some() {
            write!(f, " in a payload")?;
        }
        if let Some(gtid) = gtid {
            write!(f, " of transaction {gtid}")?;
        }
        let timestamp = header.timestamp;
        let server_id = header.server_id;
        let flags = header.flags;
        write!(
            f,
            ", timestamp {timestamp}, server id {server_id}, flags {flags:?}, body of {body_size} bytes"
        )
    }
}

/// The answer for machines.
#[derive(Serialize)]
struct Answer {
    same: bool,
    transactions: u64,
    events: u64,
    difference: Option<DifferenceReport>,
}

#[derive(Serialize)]
struct DifferenceReport {
    what: &'static str,
    found: [Option<FoundReport>; 2],
}

#[derive(Serialize)]
struct FoundReport {
    file: String,
    offset: u64,
    in_payload: bool,
    gtid: Option<String>,
    event_type: String,
    timestamp: u32,
    server_id: u32,
    flags: u16,
    body_bytes: u64,
}

impl Answer {
    fn of(sides: [&[LogPath]; 2], comparison: &Comparison) -> Self {
        let difference = comparison.difference.as_ref().map(|difference| {
            let Difference { found: [a, b] } = difference;
            let report = |side: usize, found: &FoundEvent| FoundReport {
                file: log(sides, side, found.log).to_string(),
                offset: found.place.offset,
                in_payload: found.place.payload_end_log_pos.is_some(),
                gtid: found.gtid.map(|gtid| gtid.to_string()),
                event_type: found.header.event_type.to_string(),
                timestamp: found.header.timestamp,
                server_id: found.header.server_id,
                flags: found.header.flags.0,
                body_bytes: found.body_size,
            };
            let found = [a.as_ref().map(|found| report(0, found)), b.as_ref().map(|found| report(1, found))];
            DifferenceReport { what: difference.what(), found }
        });
        Answer {
            same: difference.is_none(),
            transactions: comparison.transactions,
            events: comparison.events,
            difference,
        }
    }
}
