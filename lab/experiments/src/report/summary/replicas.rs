//! Which replicas can follow a source that compresses.

use binlogz_figures::{Bar, Card, Paint, Section};

use super::figures::optional;
use super::{ExperimentSummary, bar_row, card, percent_bars};
use crate::results::Results;

/// The result of the study of 2020-05.
const PUBLISHED: &str = "Published (study of 2020-05): a replica of MySQL 8.0.19 stops its SQL thread at the first compressed \
    transaction with error 13121, \"Relay log read failure: Could not parse relay log event entry\"; filters, \
    multi-threaded appliers and semi-sync work with payloads; sql_slave_skip_counter counts a payload as one event.";

pub(super) fn summary(results: &Results) -> ExperimentSummary {
    let mut rows = Vec::new();
    for replica in &results.replicas {
        rows.push(vec![
            replica.replica.as_str().into(),
            replica.follows.as_str().into(),
            replica.with.as_str().into(),
            replica.outcome.as_str().into(),
            optional(replica.rows_percent, 1),
            replica.said.as_deref().into(),
        ]);
    }
    let mut conclusions: Vec<String> = Vec::new();
    let (skips, replicas): (Vec<_>, Vec<_>) =
        results.replicas.iter().partition(|replica| replica.outcome == "skips");
    let mut followed: Vec<&str> = replicas.iter().map(|replica| replica.follows.as_str()).collect();
    followed.dedup();
    for follows in ["source"].into_iter().chain(followed.into_iter().filter(|name| *name != "source")) {
        let found: Vec<String> = replicas
            .iter()
            .filter(|replica| replica.follows == follows)
            .map(|replica| match replica.with.as_str() {
                "" => format!("{} {}", replica.replica, replica.outcome),
                with => format!("{} with {with} {}", replica.replica, replica.outcome),
            })
            .collect();
        if !found.is_empty() {
            conclusions.push(format!("Behind the {follows}: {}.", found.join("; ")));
        }
    }
    conclusions.extend(skips.iter().filter_map(|replica| {
        let said = replica.said.as_deref()?;
        Some(format!("{} with {}: {said}.", replica.replica, replica.with))
    }));
    conclusions.push(PUBLISHED.to_owned());
    ExperimentSummary {
        tables: vec![Section {
            name: "replicas",
            title: "Replicas of a source that compresses",
            columns: &["replica", "follows", "with", "outcome", "rows_percent", "said"],
            rows,
        }],
        grids: Vec::new(),
        plots: Vec::new(),
        charts: vec![chart(results)],
        headlines: vec![headline(results)],
        conclusions,
    }
}

fn headline(results: &Results) -> String {
    let of_source = || results.replicas.iter().filter(|replica| replica.follows == "source");
    let works = of_source().filter(|replica| replica.outcome == "works").count();
    format!("{works} of {} replicas and readers follow a source that compresses", of_source().count())
}

/// Rows that arrive, by the stream that is followed.
fn chart(results: &Results) -> Card {
    let rows = results.replicas.iter().map(|replica| {
        let with = match replica.with.as_str() {
            "" => String::new(),
            with => format!(" with {with}"),
        };
        let bar =
            replica.rows_percent.map(|percent| Bar { more: replica.outcome.clone(), ..Bar::new(0, percent) });
        bar_row(&format!("{}{with}", replica.replica), &format!("follows {}", replica.follows), [bar])
    });
    Card {
        is_wide: true,
        ..card(
            "Rows that arrive",
            "Of those that a compressing source wrote, by who follows it and what it follows.",
            percent_bars(&[("rows", Paint::First)], rows.collect()),
        )
    }
}
