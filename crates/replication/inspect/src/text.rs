//! A report for people: of several servers a line each, then each server's rows and plan.

use std::io::{self, Write};

use binlogz_binlog::printable;

use crate::answer::answer;
use crate::findings::NOBODY;
use crate::report::{
    ChangedRow, ConsumerFinding, Finding, FindingVerdict, InspectReport, Reads, ServerReport,
};

/// Where lines are broken at the latest: longer ones read badly.
const WIDTH_MAX: usize = 100;
/// Names of rows that are longer have a line of their own.
const NAME_WIDTH_MAX: usize = 30;

/// Writes the report, for a terminal of this width if it goes to one. `shows_all`: also what is well beside an answer whether to turn
/// compression on, and what our knowledge of consumers rests on.
///
/// # Errors
///
/// An error from `out`.
pub fn write_text(
    report: &InspectReport,
    (width, shows_all): (Option<usize>, bool),
    out: &mut impl Write,
) -> io::Result<()> {
    let columns = width.map_or(WIDTH_MAX, |width| width.min(WIDTH_MAX));
    if report.servers.len() > 1 {
        fleet(&report.servers, out)?;
    }
    // There is nothing more to say about a server that could not be examined.
    for (server, number) in report.servers.iter().filter(|server| server.error.is_none()).zip(0..) {
        if number > 0 || report.servers.len() > 1 {
            writeln!(out)?;
        }
        verdict(server, columns, out)?;
        // The headline is one line, unless a terminal has no room for it.
        let said = format!(
            "{} ({}): turning compression on {}",
            server.server,
            server.version.as_deref().unwrap_or_default(),
            headline(server)
        );
        write_wrapped(&said, "", "  ", width.unwrap_or(usize::MAX), out)?;
        details(server, (columns, shows_all || server.answer.is_none()), out)?;
    }
    if let Some(changes) = &report.changes {
        writeln!(out)?;
        write_changes(changes, columns, out)?;
    }
    Ok(())
}

fn fleet(servers: &[ServerReport], out: &mut impl Write) -> io::Result<()> {
    let name_width =
        servers.iter().map(|server| printable(&server.server).chars().count()).max().unwrap_or(0).max(6);
    writeln!(out, "{:name_width$}  verdict  turning compression on", "server")?;
    for server in servers {
        writeln!(
            out,
            "{:name_width$}  {:7}  {}",
            printable(&server.server),
            server.verdict.name(),
            headline(server)
        )?;
    }
    Ok(())
}

/// A server's summary, in a line.
fn headline(server: &ServerReport) -> String {
    if let Some(error) = &server.error {
        return error.clone();
    }
    if let Some(version) = server
        .findings
        .iter()
        .find(|finding| finding.what == "version" && finding.verdict > FindingVerdict::Warn)
    {
        return format!("is not possible: {}", version.found);
    }
    let count = |reads| server.consumers().filter(|consumer| consumer.reads == reads).count();
    let yes = count(Reads::Yes);
    let no = count(Reads::No);
    let unknown = count(Reads::Unknown);
    let hidden = server
        .findings
        .iter()
        .any(|finding| finding.what == "consumers" && finding.verdict > FindingVerdict::Warn);
    let consumers = match yes {
        1 => format!("1 consumer reads it, {no} don't, {unknown} unknown"),
        _ => format!("{yes} consumers read it, {no} don't, {unknown} unknown"),
    };
    match (server.safe, no, hidden) {
        (false, 0, true) if nobody_is_connected(server) => {
            "can't be judged: nobody is connected, so there is no telling whom it breaks".to_owned()
        }
        (true, ..) => format!("breaks no connected consumer: {consumers}"),
        (false, 0, true) => "is not known to be safe: consumers are not visible to this account".to_owned(),
        (false, 0, false) => format!("is not known to be safe: {consumers}"),
        (false, ..) => format!("breaks consumers: {consumers}"),
    }
}

fn nobody_is_connected(server: &ServerReport) -> bool {
    server.findings.iter().any(|finding| finding.what == "consumers" && finding.found == NOBODY)
}

/// The answer whether to turn compression on, with its savings and the consumers it breaks.
fn verdict(server: &ServerReport, columns: usize, out: &mut impl Write) -> io::Result<()> {
    let Some(((answer, why), estimate)) = answer(server).zip(server.estimate.as_ref()) else { return Ok(()) };
    writeln!(out, "Turn compression on at {}?", printable(&server.server))?;
    write_wrapped(&format!("{}: {why}", answer.name()), "  ", "  ", columns, out)?;
    writeln!(out, "What it saves and costs:")?;
    for said in std::iter::once(&estimate.said).chain(&estimate.reasons) {
        write_wrapped(said, "  - ", "    ", columns, out)?;
    }
    writeln!(out, "What it breaks:")?;
    let broken = |finding: &&Finding| finding.consumer.as_ref().is_some_and(|c| c.reads != Reads::Yes);
    for finding in server.findings.iter().filter(broken) {
        let subject = finding.subject.as_deref().unwrap_or_default();
        write_wrapped(&format!("{subject}: {}", finding.found), "  - ", "    ", columns, out)?;
    }
    write_wrapped(&headline(server), "  - turning it on ", "    ", columns, out)?;
    writeln!(out, "The SQL to paste is in the plan below.\n")
}

fn details(
    server: &ServerReport,
    (columns, shows_all): (usize, bool),
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out)?;
    let is_shown = |finding: &&Finding| shows_all || finding.verdict > FindingVerdict::Ok;
    let shown: Vec<_> = server.findings.iter().filter(is_shown).collect();
    let names = shown.iter().map(|finding| finding.what.len());
    let width = names.filter(|width| *width <= NAME_WIDTH_MAX).max().unwrap_or(0).max("what".len());
    writeln!(out, "verdict  {:width$}  found, and what to do", "what")?;
    for finding in &shown {
        row(finding, (width, columns, shows_all), out)?;
    }
    let well = server.findings.len() - shown.len();
    if well > 0 {
        let ok = FindingVerdict::Ok.name();
        writeln!(out, "{ok:7}  {:width$}  --details shows them", format!("{well} more"))?;
    }
    if let Some(surveyed) = &server.surveyed {
        writeln!(out)?;
        write_wrapped(&surveyed.looked_at(), "Not as it is through a relay, ", "  ", columns, out)?;
        for finding in &surveyed.findings {
            write_wrapped(&finding.said(), "  - ", "    ", columns, out)?;
        }
        if surveyed.findings.is_empty() {
            writeln!(out, "  nothing")?;
        }
    }
    if !server.plan.is_empty() {
        writeln!(out, "\nRollout plan of {}, to review:", printable(&server.server))?;
    }
    for (step, number) in server.plan.iter().zip(1..) {
        writeln!(out, "\n{number}. {}", printable(&step.title))?;
        for line in &step.lines {
            // A remark goes on as a remark; a statement stays in one piece, to be copied.
            match line.strip_prefix("-- ") {
                Some(remark) => write_wrapped(remark, "   -- ", "   -- ", columns, out)?,
                None => writeln!(out, "   {}", printable(line))?,
            }
        }
    }
    Ok(())
}

fn row(
    finding: &Finding,
    (width, columns, shows_all): (usize, usize, bool),
    out: &mut impl Write,
) -> io::Result<()> {
    let mut head = format!("{:7}  {:width$}  ", finding.verdict.name(), printable(&finding.what));
    let indent = " ".repeat(7 + 2 + width + 2);
    if finding.what.len() > width {
        writeln!(out, "{}", head.trim_end())?;
        head.clone_from(&indent);
    }
    let found = match &finding.subject {
        Some(subject) => format!("{subject}: {}", finding.found),
        None => finding.found.clone(),
    };
    write_wrapped(&found, &head, &indent, columns, out)?;
    let has_source = |consumer: &&ConsumerFinding| shows_all && !consumer.source.is_empty();
    if let Some(consumer) = finding.consumer.as_ref().filter(has_source) {
        let ConsumerFinding { certainty, tried, date, source, .. } = consumer;
        let tried = if tried.is_empty() { String::new() } else { format!(" with {tried}") };
        let date = if date.is_empty() { String::new() } else { format!(", entry of {date}") };
        write_wrapped(&format!("[{certainty}{tried}{date}: {source}]"), &indent, &indent, columns, out)?;
    }
    if !finding.remedy.is_empty() {
        write_wrapped(&finding.remedy, &format!("{indent}-> "), &format!("{indent}   "), columns, out)?;
    }
    Ok(())
}

fn write_changes(changes: &[ChangedRow], columns: usize, out: &mut impl Write) -> io::Result<()> {
    if changes.is_empty() {
        return writeln!(out, "Nothing changed since the baseline.");
    }
    writeln!(out, "Changed since the baseline:")?;
    for change in changes {
        let subject = change.subject.as_deref().map(|subject| format!(" {subject}")).unwrap_or_default();
        let side = |found: &Option<String>, verdict: Option<FindingVerdict>| match (found, verdict) {
            (Some(found), Some(verdict)) => format!("{}: {found}", verdict.name()),
            _ => "not there".to_owned(),
        };
        let before = side(&change.before, change.verdict_before);
        let now = side(&change.now, change.verdict_now);
        writeln!(out, "  {} {}{}", printable(&change.server), printable(&change.what), printable(&subject))?;
        write_wrapped(&before, "    was  ", "         ", columns, out)?;
        write_wrapped(&now, "    is   ", "         ", columns, out)?;
    }
    Ok(())
}

/// Writes words, line by line: `first` before the first line, `next` before the others. A server's text may
/// contain anything: control characters are shown as such.
fn write_wrapped(
    text: &str,
    first: &str,
    next: &str,
    columns: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "{}", binlogz_figures::wrapped(&printable(text), first, next, Some(columns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_findings_are_wrapped_and_control_characters_shown() {
        let remedy = "word ".repeat(30);
        let finding = Finding::new("row", "a\u{1b}[31m", FindingVerdict::Warn, remedy.trim_end());
        let server = ServerReport {
            error: None,
            findings: vec![finding],
            version: Some("9.7.4".into()),
            verdict: FindingVerdict::Warn,
            ..ServerReport::failed("db1", "")
        };
        let mut out = Vec::new();
        let report = InspectReport::new(vec![server, ServerReport::failed("db2", "gone")]);
        write_text(&report, (None, false), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "server  verdict  turning compression on
db2     bad      gone
db1     warn     is not known to be safe: 0 consumers read it, 0 don't, 0 unknown

db1 (9.7.4): turning compression on is not known to be safe: 0 consumers read it, 0 don't, 0 unknown

verdict  what  found, and what to do
warn     row   a\\u{1b}[31m
               -> word word word word word word word word word word word word word word word word
                  word word word word word word word word word word word word word word
";
        assert_eq!(text, expected);
    }
}
