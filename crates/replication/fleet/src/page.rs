//! The rows as a table, and as a page on the shell that all reports have.

use std::io::{self, Write};
use std::time::Duration;

use binlogz_figures::{
    Card, Chart, FigureUnit, Page, Section, SparkRow, Sparks, TableCell, Tile, Tone, counted, utc_second,
};
use jiff::Timestamp;

use crate::row::{FleetRow, FleetRowKind, Restorable};

/// How many findings are listed above the rows.
const FINDINGS_SHOWN: usize = 10;
/// Lag below this is drawn on the same scale, so that a second does not look like an hour.
const LAG_SECONDS_MIN: f64 = 10.0;

/// The columns that a page has room for.
const COLUMNS: &[&str] = &[
    "target",
    "source",
    "state",
    "server",
    "lag",
    "bytes",
    "saved_bytes",
    "last_durable",
    "last_archived",
    "last_restorable",
    "last_gtid",
    "gaps",
    "checked",
    "check",
    "replicas",
    "need_uncompressed",
    "finding",
];
/// The columns that a terminal has room for; findings are lines below.
const COLUMNS_OF_TEXT: &[&str] = &[
    "target",
    "source",
    "state",
    "lag",
    "saved_bytes",
    "last_durable",
    "last_archived",
    "last_restorable",
    "gaps",
    "checked",
    "check",
    "replicas",
    "need_uncompressed",
];

/// All rows for a terminal; `shown` writes times, in its zone for example.
pub fn text_table(rows: &[FleetRow], shown: fn(u32) -> String) -> Section {
    table(rows, COLUMNS_OF_TEXT, shown)
}

/// The findings, the worst first.
pub fn findings(rows: &[FleetRow]) -> impl Iterator<Item = String> {
    rows.iter().filter(|row| row.tone > Tone::Neutral).flat_map(|row| {
        row.findings.iter().map(|said| match row.label() {
            label if said.starts_with(&format!("{label}:")) => said.clone(),
            label => format!("{label}: {said}"),
        })
    })
}

fn table(rows: &[FleetRow], columns: &'static [&'static str], shown: fn(u32) -> String) -> Section {
    let cells = |row: &FleetRow| columns.iter().map(|column| cell(row, column, shown)).collect();
    Section { name: "fleet", title: "Fleet", columns, rows: rows.iter().map(cells).collect() }
}

fn cell(row: &FleetRow, column: &str, shown: fn(u32) -> String) -> TableCell {
    let last = row.last_restorable.as_ref();
    match column {
        "target" => row.target.as_str().into(),
        "source" => row.source.clone().filter(|source| *source != row.target).into(),
        "state" => row.state.as_str().into(),
        "server" => row.server.clone().into(),
        "lag" => row.lag_seconds.map(duration).into(),
        "bytes" => row.bytes.into(),
        "saved_bytes" => row.saved_bytes.into(),
        "last_durable" => row.last_durable.clone().into(),
        "last_archived" => row.last_archived.clone().into(),
        "last_restorable" => last.and_then(|last| last.time).map(shown).into(),
        "last_gtid" => last.map(|last| last.gtids.clone()).filter(|gtids| !gtids.is_empty()).into(),
        "gaps" => row.gaps.as_ref().map(|gaps| gaps.len() as u64).into(),
        "checked" => row.checked.map(|time| shown(u32::try_from(time).unwrap_or(u32::MAX))).into(),
        "check" => row.check_in_words().into(),
        "replicas" => row.replicas.into(),
        "need_uncompressed" => row.replicas_uncompressed.into(),
        "finding" => row.findings.first().cloned().into(),
        _ => TableCell::Null,
    }
}

/// `age`: how long ago the targets were asked.
pub fn write(rows: &[FleetRow], age: Duration, out: &mut impl Write) -> io::Result<()> {
    let red = rows.iter().filter(|row| row.tone == Tone::Bad).count();
    let worst = rows.first().map_or(Tone::Neutral, |row| row.tone);
    let word = match worst {
        Tone::Bad => "Needs attention",
        Tone::Warning => "To be watched",
        Tone::Neutral | Tone::Good => "Well",
    };
    let reasons: Vec<String> = findings(rows).take(FINDINGS_SHOWN).collect();
    let sparks = Sparks {
        of: "lag".to_owned(),
        none: "There is no target.".to_owned(),
        full: LAG_SECONDS_MIN,
        rows: rows.iter().map(spark).collect(),
    };
    let lead = match red {
        0 => format!("{} of {} are well, and nothing is red", sparks.well(), rows.len()),
        red => format!("{red} of {} need somebody", rows.len()),
    };
    let page = Page {
        title: "binlogz fleet",
        subtitle: "",
        as_of: Some(u64::from(now()).saturating_sub(age.as_secs())),
        state: Some((worst, word)),
        lead: &lead,
        reasons: &reasons,
        steps: &[],
        tiles: &tiles(rows, red),
        charts: &[Card {
            title: "Sources and archives".to_owned(),
            note: "Those that need somebody come first. A line is the lag behind the server during the last hour, or how long ago an \
                   archive's last restorable moment was."
                .to_owned(),
            is_wide: true,
            chart: Chart::Sparks(sparks),
        }],
        tables: &[table(rows, COLUMNS, utc_second)],
        figures: &[],
    };
    page.write(out)
}

fn tiles(rows: &[FleetRow], red: usize) -> Vec<Tile> {
    let of = |kind| rows.iter().filter(|row| row.kind == kind).count().to_string();
    let lag = rows.iter().filter_map(|row| row.lag_seconds).max();
    let saved: i64 = rows.iter().filter_map(|row| row.saved_bytes).fold(0, i64::saturating_add);
    let oldest = rows.iter().filter(|row| row.kind == FleetRowKind::Archive);
    let oldest = oldest.filter_map(|row| row.last_restorable.as_ref()?.time).min();
    let replicas: u64 = rows.iter().filter_map(|row| row.replicas).sum();
    let expanded: u64 = rows.iter().filter_map(|row| row.replicas_uncompressed).sum();
    let red_tone = if red > 0 { Tone::Bad } else { Tone::Good };
    vec![
        Tile { tone: red_tone, ..Tile::new(red.to_string(), "need somebody") },
        Tile::new(of(FleetRowKind::Relay), "sources of relays"),
        Tile::new(of(FleetRowKind::Archive), "archives"),
        Tile::new(of(FleetRowKind::Server), "servers"),
        Tile::new(lag.map_or("–".to_owned(), duration), "largest lag behind a server"),
        Tile::new(FigureUnit::Bytes.text(saved.max(0) as f64), "saved"),
        Tile::new(oldest.map_or("–".to_owned(), ago), "oldest last restorable moment"),
        Tile::new(replicas.to_string(), format!("replicas, of which {expanded} can't read compression")),
    ]
}

fn spark(row: &FleetRow) -> SparkRow {
    let restorable = row.last_restorable.as_ref().map(in_words);
    let detail = row.findings.first().cloned().or_else(|| restorable.clone()).or_else(|| row.server.clone());
    let (now, more) = match row.kind {
        FleetRowKind::Relay => {
            let replicas = row.replicas.map(|replicas| counted(replicas, "replicas"));
            (row.lag_seconds.map(duration), replicas)
        }
        FleetRowKind::Archive => {
            let age = row.last_restorable.as_ref().and_then(|last| last.time).map(ago);
            let checked = row.checked.map(|time| ago(u32::try_from(time).unwrap_or(u32::MAX)));
            let checked = checked.map_or("never checked".to_owned(), |ago| format!("checked {ago}"));
            let bytes = row.bytes.map(|bytes| FigureUnit::Bytes.text(bytes as f64));
            (age, Some(bytes.into_iter().chain([checked]).collect::<Vec<_>>().join(", ")))
        }
        FleetRowKind::Server => {
            let cannot = row.replicas_uncompressed.map(|cannot| format!("{cannot} can't read"));
            (cannot, row.replicas.map(|all| counted(all, "consumers")))
        }
    };
    let history = row.lag_history_seconds.iter().copied();
    SparkRow {
        label: row.label(),
        detail: detail.unwrap_or_default(),
        tone: row.tone,
        word: row.state.clone(),
        now: now.unwrap_or("–".to_owned()),
        more: more.unwrap_or_default(),
        values: history.map(|lag| lag.map(|lag| lag as f64)).collect(),
    }
}

fn in_words(last: &Restorable) -> String {
    let time = last.time.map(utc_second).unwrap_or_default();
    format!("restorable up to {time}, {}", last.log)
}

fn duration(seconds: u64) -> String {
    FigureUnit::Seconds.text(seconds as f64)
}

fn ago(time: u32) -> String {
    duration(u64::from(now().saturating_sub(time))) + " ago"
}

fn now() -> u32 {
    u32::try_from(Timestamp::now().as_second()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use binlogz_testkit::browser::assert_readable;
    use binlogz_testkit::{Tool, require_tool};

    use super::*;

    const EVIL: &str = "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>";

    /// Each state, with an hour of lag, names that are long and names that are hostile.
    fn rows() -> Vec<FleetRow> {
        let states = [
            (
                Tone::Bad,
                "Source down",
                "db1.example.com:3306 is down for 5 min: Connection refused (os error 111)",
            ),
            (Tone::Bad, "Needs attention", EVIL),
            (
                Tone::Warning,
                "Behind",
                "the relay itself is 12 min behind db1.example.com:3306, and so is each replica",
            ),
            (Tone::Neutral, "Beginning", ""),
            (Tone::Good, "Live", ""),
        ];
        let relays = states.into_iter().zip(1..).map(|((tone, state, said), number)| FleetRow {
            target: if number == 2 { EVIL.to_owned() } else { "eu-central-1".repeat(number) },
            reached: true,
            source: Some(format!("orders-{number}")),
            state: state.to_owned(),
            tone,
            server: Some(format!("db{number}.example.com:3306")),
            lag_seconds: Some(number as u64 * 700),
            bytes: Some(9_000_000_000),
            saved_bytes: Some(6_000_000_000),
            last_durable: Some("binlog.000042 at 123456789".to_owned()),
            last_archived: Some("binlog.000041".to_owned()),
            replicas: Some(3),
            replicas_uncompressed: Some(1),
            findings: Some(said.to_owned()).filter(|said| !said.is_empty()).into_iter().collect(),
            lag_history_seconds: (0..90).map(|at| (at % 31 > 2).then_some(at % 17 * number as u64)).collect(),
            ..FleetRow::default()
        });
        let archive = FleetRow {
            target: "s3://backup/production/europe/orders-and-payments".to_owned(),
            kind: FleetRowKind::Archive,
            reached: true,
            source: Some("s3://backup/production/europe/orders-and-payments/db1".to_owned()),
            state: "Gaps".to_owned(),
            tone: Tone::Warning,
            bytes: Some(9_000_000_000_000),
            saved_bytes: Some(8_000_000_000_000),
            last_restorable: Some(Restorable {
                time: Some(1_700_000_000),
                log: "binlog.000041".to_owned(),
                gtids: "7d2a1f0e-0000-11ef-8000-0242ac120002:123456789".to_owned(),
            }),
            gaps: Some(vec![
                "binlog.000030: gap: binlog.000029 came before it and is not in the archive".to_owned(),
            ]),
            findings: vec![
                "binlog.000030: gap: binlog.000029 came before it and is not in the archive".to_owned(),
            ],
            ..FleetRow::default()
        };
        let why = "http://10.1.2.3:3308/: Connection refused (os error 111)".to_owned();
        let dead = FleetRow::unreachable("dead", FleetRowKind::Relay, None, why);
        let server = |target: &str, tone, state: &str, said: &[&str], cannot| FleetRow {
            target: target.to_owned(),
            kind: FleetRowKind::Server,
            reached: true,
            source: Some(format!("{target}.production.eu-central-1.example.com:3306")),
            state: state.to_owned(),
            tone,
            server: Some("8.0.36-28-debug-log".to_owned()),
            replicas: Some(12),
            replicas_uncompressed: Some(cannot),
            findings: said.iter().map(|&said| said.to_owned()).collect(),
            ..FleetRow::default()
        };
        let cannot = [
            "a consumer that can't read compressed transactions: maxwell@'10.20.30.40' (server id 4294967295): it loses every row of \
             a compressed transaction, without an error",
            EVIL,
        ];
        let servers = [
            server("orders-primary", Tone::Warning, "Consumers can't read compression", &cannot, 11),
            server(
                "payments",
                Tone::Neutral,
                "Not known",
                &["who reads is not known: SELECT on performance_schema is denied"],
                0,
            ),
            server("users", Tone::Good, "Can compress", &[], 0),
        ];
        crate::row::joined(relays.chain([archive, dead]).chain(servers).collect())
    }

    fn html(rows: &[FleetRow]) -> String {
        let mut out = Vec::new();
        write(rows, Duration::ZERO, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_worst_comes_first_and_no_name_becomes_part_of_the_page() {
        let page = html(&rows());
        assert!(
            page.contains("<section class=\"lead bad\">") && page.contains("3 of 10 need somebody"),
            "{page}"
        );
        let tones: Vec<_> =
            page.split("<div class=\"row ").skip(1).filter_map(|row| row.split('"').next()).collect();
        assert_eq!(tones, [&["bad"; 3][..], &["warning"; 3], &["neutral"; 2], &["good"; 2]].concat());
        assert!(!page.contains("<script>") && !page.contains("<img"), "{page}");
        // An archive and a server have no lag.
        assert_eq!(page.matches("class=\"spark\"").count(), 5);
        let well = html(&rows()[8..]);
        assert!(well.contains("<section class=\"lead good\">") && well.contains("2 of 2 are well"), "{well}");
        assert!(page.contains("11 can't read") || page.contains("11 can&#39;t read"), "{page}");
    }

    #[test]
    fn the_page_can_be_read_on_every_screen() {
        let chromium = require_tool!(Tool::Chromium);
        let rows = rows();
        assert_readable(chromium, &[("fleet", html(&rows)), ("fleet-well", html(&rows[8..]))]);
    }
}
