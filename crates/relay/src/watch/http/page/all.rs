//! The page of a relay whose sources have names: one row for each, those that need somebody first.

use binlogz_figures::{Cell, Page, Section, Tile, Tone};

use super::{duration, size, state, subtitle, text};
use crate::watch::relay_status::{NamedStatus, RelayStatus};

/// Troubles told above the table.
const TROUBLES_SHOWN: usize = 10;

pub(in crate::watch::http) fn html(relay: &RelayStatus) -> String {
    let mut rows: Vec<_> = relay.sources.iter().map(|source| (how(source), source)).collect();
    rows.sort_by_key(|((tone, _), _)| std::cmp::Reverse(*tone));
    let worst = rows.first().map_or((Tone::Neutral, "Beginning"), |(how, _)| *how);
    let well = rows.iter().filter(|((tone, _), _)| *tone == Tone::Good).count();
    let mut reasons: Vec<String> = relay.troubles.iter().take(TROUBLES_SHOWN).cloned().collect();
    reasons.push("add ?source=NAME to the address of this page to see one source with its charts".to_owned());
    let statuses = || relay.sources.iter().filter_map(|source| source.status.as_ref());
    let replicas: usize = statuses().map(|status| status.replicas.len()).sum();
    let on_disk: u64 = statuses().filter_map(|status| Some(status.log.as_ref()?.bytes)).sum();
    text(&Page {
        title: "binlogz relay",
        subtitle: &subtitle(relay.version, relay.uptime_seconds),
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
        charts: &[],
        tables: &[sources(&rows)],
        figures: &[],
    })
}

fn how(source: &NamedStatus) -> (Tone, &'static str) {
    source.status.as_ref().map_or((Tone::Bad, "Not served"), state::tone)
}

fn sources(rows: &[((Tone, &'static str), &NamedStatus)]) -> Section {
    let columns = &[
        "source",
        "state",
        "server",
        "lag",
        "durable_file",
        "durable_position",
        "replicas",
        "bytes",
        "trouble",
    ];
    let row = |((_, word), source): &((Tone, &'static str), &NamedStatus)| -> Vec<Cell> {
        let status = source.status.as_ref();
        let log = status.and_then(|status| status.log.as_ref());
        vec![
            source.name.as_str().into(),
            (*word).into(),
            status.map(|status| status.source.server.clone()).into(),
            status.and_then(|status| status.source.lag_seconds).map(duration).into(),
            log.map(|log| log.durable.file.clone()).into(),
            log.map(|log| log.durable.position).into(),
            status.map(|status| status.replicas.len() as u64).into(),
            log.map(|log| log.bytes).into(),
            source.troubles().first().cloned().into(),
        ]
    };
    Section { name: "sources", title: "Sources", columns, rows: rows.iter().map(row).collect() }
}
