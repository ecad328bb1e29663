//! The page of a relay whose sources have names: each with its state and its last hour, those with a problem first.

use binlogz_figures::{Card, Chart, Page, Section, SparkRow, Sparks, TableCell, Tile, Tone};

use super::charts::LAG_SECONDS_MIN;
use super::{duration, size, subtitle, text};
use crate::watch::relay_status::{NamedStatus, RelayStatus};

/// How many troubles are listed above the sources.
const TROUBLES_SHOWN: usize = 10;
pub(in crate::watch::http) fn html(relay: &RelayStatus) -> String {
    let mut sources: Vec<_> = relay.sources.iter().collect();
    sources.sort_by_key(|source| std::cmp::Reverse(tone(source)));
    let worst = sources.first().map_or((Tone::Neutral, "Beginning"), |source| (tone(source), source.state));
    let sparks = Sparks {
        of: "lag".to_owned(),
        none: "There is no source.".to_owned(),
        full: LAG_SECONDS_MIN,
        rows: sources.iter().map(|source| spark(source)).collect(),
    };
    let well = sparks.well();
    let mut reasons: Vec<String> = relay.troubles.iter().take(TROUBLES_SHOWN).cloned().collect();
    reasons.push("add ?source=NAME to the address of this page to see one source with its charts".to_owned());
    let statuses = || relay.sources.iter().filter_map(|source| source.status.as_ref());
    let replicas: usize = statuses().map(|status| status.replicas.len()).sum();
    let on_disk: u64 = statuses().filter_map(|status| Some(status.log.as_ref()?.bytes)).sum();
    text(&Page {
        title: "binlogz relay",
        subtitle: &subtitle(relay.version, relay.uptime_seconds),
        as_of: Some(crate::time::now()),
        state: Some(worst),
        lead: &format!("{well} of {} sources are live", relay.sources.len()),
        reasons: &reasons,
        steps: &[],
        tiles: &[
            Tile { tone: worst.0, ..Tile::new(relay.sources.len().to_string(), "sources") },
            Tile::new(replicas.to_string(), "replicas"),
            Tile::new(relay.clients.logged_in.to_string(), "clients"),
            Tile::new(size(on_disk), "logs on disk"),
            Tile::new(size(statuses().map(|status| status.bytes.received).sum()), "received since the start"),
            Tile::new(size(statuses().map(|status| status.bytes.served).sum()), "served since the start"),
        ],
        charts: &[Card {
            title: "Sources now, and their lag during the last hour".to_owned(),
            note: "Those that need somebody come first.".to_owned(),
            is_wide: true,
            chart: Chart::Sparks(sparks),
        }],
        tables: &[table(&sources)],
        figures: &[],
    })
}

fn tone(source: &NamedStatus) -> Tone {
    Tone::of_name(source.tone).unwrap_or(Tone::Neutral)
}

fn spark(source: &NamedStatus) -> SparkRow {
    let status = source.status.as_ref();
    let server = status.map_or("", |status| &status.source.server);
    let lag = status.and_then(|status| status.source.lag_seconds);
    let replicas = status.map_or(0, |status| status.replicas.len());
    let history = source.lag_history_seconds.iter().flatten().copied().chain([lag]);
    SparkRow {
        label: source.name.clone(),
        detail: source.troubles().first().map_or_else(|| server.to_owned(), |why| format!("{server} {why}")),
        tone: tone(source),
        word: source.state.to_owned(),
        now: lag.map_or("–".to_owned(), duration),
        more: binlogz_figures::counted(replicas as u64, "replicas"),
        values: history.map(|lag| lag.map(|lag| lag as f64)).collect(),
    }
}

fn table(rows: &[&NamedStatus]) -> Section {
    let columns = &[
        "source",
        "state",
        "server",
        "lag",
        "durable_file",
        "durable_position",
        "archived",
        "waiting_files",
        "replicas",
        "bytes",
        "trouble",
    ];
    let row = |source: &&NamedStatus| -> Vec<TableCell> {
        let status = source.status.as_ref();
        let log = status.and_then(|status| status.log.as_ref());
        let archive = status.and_then(|status| status.archive.as_ref());
        vec![
            source.name.as_str().into(),
            source.state.into(),
            status.map(|status| status.source.server.clone()).into(),
            status.and_then(|status| status.source.lag_seconds).map(duration).into(),
            log.map(|log| log.durable.file.clone()).into(),
            log.map(|log| log.durable.position).into(),
            archive
                .map(|archive| archive.last_file.clone().unwrap_or_else(|| "not known yet".to_owned()))
                .into(),
            archive.map(|archive| archive.waiting_files as u64).into(),
            status.map(|status| status.replicas.len() as u64).into(),
            log.map(|log| log.bytes).into(),
            source.troubles().first().cloned().into(),
        ]
    };
    Section { name: "sources", title: "Sources", columns, rows: rows.iter().map(row).collect() }
}
