//! A cell's text, and the page of all tables.

use std::fmt;
use std::fmt::Write as _;

/// How one who follows fared.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    /// It has every row, once, after a restart too.
    Works,
    /// It stopped, and says why.
    Stops(String),
    /// It says nothing, and lacks rows or has too many.
    Differs(String),
    /// It was not tried, for this reason.
    NotTried(String),
}

impl Verdict {
    /// Whether rows are missing without a reason, or a server takes its log for damaged.
    fn is_fault(&self) -> bool {
        match self {
            Verdict::Works | Verdict::NotTried(_) => false,
            Verdict::Differs(_) => true,
            Verdict::Stops(why) => {
                why.contains("corrupt")
                    || why.contains("Could not parse relay log event")
                    || why.contains("XAER_")
            }
        }
    }

    /// This verdict, with `when` before its reason.
    pub(crate) fn prefixed(self, when: &str) -> Verdict {
        match self {
            Verdict::Stops(why) => Verdict::Stops(format!("{when}: {why}")),
            Verdict::Differs(how) => Verdict::Differs(format!("{when}: {how}")),
            other => other,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Works => f.write_str("works"),
            Verdict::Stops(why) => write!(f, "**stops**: {}", brief(why)),
            Verdict::Differs(how) => write!(f, "**silently wrong**: {}", brief(how)),
            Verdict::NotTried(why) if why.is_empty() => f.write_str("not tried"),
            Verdict::NotTried(why) => write!(f, "not tried: {}", brief(why)),
        }
    }
}

/// The beginning of a message on one line; ports and paths of this run are left out.
fn brief(message: &str) -> String {
    let is_path = |word: &str| word.trim_start_matches(['\'', '"', '(']).starts_with('/');
    let words: Vec<_> =
        message.split_whitespace().map(|word| if is_path(word) { "…" } else { word }).collect();
    let mut line = words.join(" ").replace('|', "\\|").replace('`', "'");
    if let Some((front, behind)) = line.split_once("127.0.0.1:") {
        line = format!("{front}127.0.0.1{}", behind.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    if let Some((end, _)) = line.char_indices().nth(160) {
        line.truncate(end);
        line.push('…');
    }
    line
}

pub(crate) struct Table {
    title: &'static str,
    introduction: &'static str,
    columns: Vec<String>,
    rows: Vec<(String, Vec<Verdict>)>,
    /// Whether each cell has to be all rows, or a reason.
    is_strict: bool,
}

impl Table {
    pub(crate) fn new(title: &'static str, introduction: &'static str, columns: Vec<String>) -> Self {
        Table { title, introduction, columns, rows: Vec::new(), is_strict: false }
    }

    /// One whose cells each have to be all rows, or a reason.
    pub(crate) fn strict(self) -> Self {
        Table { is_strict: true, ..self }
    }

    /// Of a strict one, the cells that are neither.
    pub(crate) fn faults(&self) -> Vec<String> {
        let cells = self.rows.iter().filter(|_| self.is_strict).flat_map(|(name, verdicts)| {
            let columns = self.columns.iter().zip(verdicts);
            columns
                .filter(|(_, verdict)| verdict.is_fault())
                .map(move |(column, verdict)| format!("{name}, {column}: {verdict}"))
        });
        cells.collect()
    }

    pub(crate) fn row(&mut self, name: impl Into<String>, cells: Vec<Verdict>) {
        let name = name.into();
        eprintln!("{name}: {}", cells.iter().map(Verdict::to_string).collect::<Vec<_>>().join(" · "));
        self.rows.push((name, cells));
    }
}

/// The page that `make compat` writes, a section for each table. A section that isn't run again stays as it was, with its date.
pub(crate) struct Page {
    sections: Vec<(String, String)>,
}

impl Page {
    /// Sections stand in this order.
    const TITLES: [&str; 13] = [
        "Replicas of MySQL 9.7",
        "Replicas of MySQL 8.0",
        "What a replica may not know",
        "A large transaction",
        "Another server takes the source's place",
        "Acknowledgements and channels",
        "The way to the source",
        "Change-data-capture clients",
        "The same with `forward_sql`",
        "The same over TLS",
        "Maxwell with one host",
        "Clients that ask in SQL",
        "Sources of the relay",
    ];

    /// The page as it is.
    pub(crate) fn read() -> Self {
        let text = path().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let sections = text.split("\n## ").skip(1);
        let sections = sections.filter_map(|section| section.split_once('\n'));
        Page { sections: sections.map(|(title, body)| (title.to_owned(), body.trim().to_owned())).collect() }
    }

    pub(crate) fn add(&mut self, table: Table) {
        let Table { title, introduction, columns, rows, .. } = table;
        let date = std::process::Command::new("date").args(["-u", "+%Y-%m-%d"]).output().unwrap().stdout;
        let date = String::from_utf8(date).unwrap();
        let named = ["BINLOGZ_COMPAT_REPLICAS", "BINLOGZ_COMPAT_CLIENTS"];
        let some = named.iter().find_map(|name| std::env::var(name).ok());
        let when = match (&some, self.run_on(title)) {
            (Some(some), Some(before)) => format!("{before}, {some} on {}", date.trim()),
            _ => date.trim().to_owned(),
        };
        let mut body = format!("{introduction} Run on {when}.\n\n| | {} |\n", columns.join(" | "));
        let _ = writeln!(body, "|---|{}", "---|".repeat(columns.len()));
        let mut lines = Vec::new();
        for (name, cells) in rows {
            let cells: Vec<_> = cells.iter().map(Verdict::to_string).collect();
            lines.push(format!("| {name} | {} |", cells.join(" | ")));
        }
        // A run with some replicas or clients leaves the rows of others as they are.
        if some.is_some() {
            lines = self.merged(title, &lines);
        }
        lines.iter().for_each(|line| body.extend([line, "\n"]));
        self.sections.retain(|(other, _)| other != title);
        self.sections.push((title.to_owned(), body.trim().to_owned()));
        let place = |title: &str| Self::TITLES.iter().position(|other| *other == title);
        self.sections.sort_by_key(|(title, _)| place(title));
    }

    /// When a section was run.
    fn run_on(&self, title: &str) -> Option<String> {
        let (_, body) = self.sections.iter().find(|(other, _)| other == title)?;
        let (_, when) = body.lines().next()?.rsplit_once("Run on ")?;
        Some(when.trim_end_matches('.').to_owned())
    }

    /// The rows of a section, with these in the places of those of their names; new ones come last.
    fn merged(&self, title: &str, new: &[String]) -> Vec<String> {
        let name = |line: &str| line.split(" | ").next().unwrap_or_default().to_owned();
        let before = self.sections.iter().find(|(other, _)| other == title).map_or("", |(_, body)| body);
        let rows = before.lines().filter(|line| line.starts_with("| ")).skip(1);
        let mut merged: Vec<String> = rows.map(str::to_owned).collect();
        for line in new {
            match merged.iter_mut().find(|other| name(other) == name(line)) {
                Some(other) => line.clone_into(other),
                None => merged.push(line.clone()),
            }
        }
        merged
    }

    /// Writes it where `BINLOGZ_COMPAT_PAGE` says, or to standard output.
    pub(crate) fn write(&self) {
        let mut text = format!(
            "# Compatibility\n\nWritten by `make compat`; nothing here is edited by hand. binlogz {}, a source with \
             `binlog_transaction_compression = ON` at level 3, `binlog_row_metadata = FULL` and the default collation of its version. \
             [CDC clients](../../docs/guides/cdc-clients.md) has the settings.\n\n\
             *works*: every row, once, and after a restart in between. *stops*: it says why, and goes no further. \
             *silently wrong*: it says nothing, and lacks rows or has some twice. What stands in no table was not tried.\n",
            env!("CARGO_PKG_VERSION"),
        );
        for (title, body) in &self.sections {
            let _ = write!(text, "\n## {title}\n\n{body}\n");
        }
        match path() {
            Some(path) => std::fs::write(path, text).unwrap(),
            None => println!("{text}"),
        }
    }
}

fn path() -> Option<std::ffi::OsString> {
    std::env::var_os("BINLOGZ_COMPAT_PAGE")
}
