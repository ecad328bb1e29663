//! A status as Prometheus scrapes it: OpenMetrics text. The metrics of a source have its name as a label, unless it is
//! the only source and has no name.

use std::fmt::{self, Debug};

use binlogz_relay_forms::ConversionCounts;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::receive::control::Phase;
use crate::watch::WatchedRelay;
use crate::watch::relay_status::RelayStatus;
use crate::watch::status::{LineageStatus, LogStatus, ReplicaStatus, SourceReport};

const PREFIX: &str = "binlogz_relay";
/// The content type of the answer.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn text(watch: &WatchedRelay, relay: &RelayStatus) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    let syncs = watch.sources().into_iter().filter_map(|watched| {
        let source = watched.source.ok()?;
        Some((watched.name, source.telemetry.meters.syncs.clone()))
    });
    let snapshot =
        Snapshot { relay: relay.clone(), syncs: syncs.collect(), conversions: watch.conversions.counts() };
    registry.register_collector(Box::new(snapshot));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// The counters that were written already.
#[derive(Debug)]
struct Snapshot {
    relay: RelayStatus,
    /// By the sources' names.
    syncs: Vec<(String, Histogram)>,
    conversions: ConversionCounts,
}

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut out = Encoder { encoder, relay: &self.relay };
        out.syncs(&self.syncs)?;
        out.received()?;
        out.blocks(&self.conversions)?;
        out.rates()?;
        out.archive()?;
        out.stored_damage()?;
        out.source()?;
        out.health()?;
        out.logs()?;
        out.clients()?;
        out.errors()?;
        out.replicas_of_sources()
    }
}

fn log_labels(log: &LineageStatus) -> [(&'static str, String); 2] {
    [("lineage", log.lineage.to_string()), ("source_uuid", log.source_uuid.clone())]
}

fn labels(replica: &ReplicaStatus) -> [(&'static str, String); 6] {
    [
        ("connection", replica.connection.to_string()),
        ("user", replica.user.clone()),
        ("server_id", replica.server_id.to_string()),
        ("server_uuid", replica.server_uuid.clone()),
        ("form", replica.form.to_owned()),
        ("lineage", replica.lineage.to_string()),
    ]
}

/// The label of a source; none for the only one, and for metrics that belong to none.
type SourceLabel = Vec<(&'static str, String)>;

/// The label of a source of this name.
fn source_label(name: &str) -> SourceLabel {
    if name.is_empty() { Vec::new() } else { vec![("source", name.to_owned())] }
}

/// Writes one metric after the other, each for all sources.
struct Encoder<'a, 'r> {
    encoder: DescriptorEncoder<'a>,
    relay: &'r RelayStatus,
}

impl Encoder<'_, '_> {
    /// Bytes and transactions that were received, stored and sent.
    fn received(&mut self) -> fmt::Result {
        self.counter("received_bytes", "Bytes of events of the source's files", |s| s.bytes.received)?;
        self.counter("stored_bytes", "Bytes appended to the log", |s| s.bytes.stored)?;
        self.counter("served_bytes", "Bytes sent to replicas", |s| s.bytes.served)?;
        self.counter("transactions", "Transactions received", |s| s.bytes.transactions)
    }

    /// Blocks of the log in another form.
    fn blocks(&mut self, conversions: &ConversionCounts) -> fmt::Result {
        let ConversionCounts { made, shared } = *conversions;
        self.count("blocks_converted", "Pieces of the log converted into a form", made)?;
        self.count("blocks_shared", "Pieces sent that had been converted for another replica", shared)
    }

    /// Limits in bytes a second, and how long they made duties wait.
    fn rates(&mut self) -> fmt::Result {
        self.gauge("receive_rate_limit_bytes", "Bytes a second received at most", |s| {
            s.rates.receive.lowest()
        })?;
        self.gauge("archive_rate_limit_bytes", "Bytes a second read for the archive at most", |s| {
            s.rates.archive.lowest()
        })?;
        self.seconds("receive_rate_waited_seconds", "Time that receiving waited for its rate", |s| {
            s.rates.receive.waited_seconds
        })?;
        self.seconds("archive_rate_waited_seconds", "Time that archiving waited for its rate", |s| {
            s.rates.archive.waited_seconds
        })
    }

    /// The archive: what waits for it, and what its checks found.
    fn archive(&mut self) -> fmt::Result {
        self.gauge("archive_waiting_files", "Closed files that are not archived yet", |s| {
            Some(s.archive.as_ref()?.waiting_files as u64)
        })?;
        self.gauge("archive_still_seconds", "How long no file was archived though some wait", |s| {
            Some(s.archive.as_ref()?.still_seconds)
        })?;
        self.gauge("archive_failing_seconds", "How long archiving has been failing", |s| {
            Some(s.archive.as_ref()?.failing_seconds.unwrap_or(0))
        })?;
        self.gauge(
            "archive_check_age_seconds",
            "How long ago all of the archive was checked, or was new",
            |s| s.archive.as_ref()?.check.as_ref()?.age_seconds,
        )?;
        self.gauge("archive_damaged_logs", "Archived logs that were found damaged or missing", |s| {
            Some(s.archive.as_ref()?.check.as_ref()?.damaged_logs as u64)
        })?;
        self.gauge("archive_check_failing_seconds", "How long checking the archive has been failing", |s| {
            Some(s.archive.as_ref()?.check.as_ref()?.failing_seconds.unwrap_or(0))
        })
    }

    /// Damage of stored files, and the search for it.
    fn stored_damage(&mut self) -> fmt::Result {
        self.gauge(
            "damaged_stretches",
            "Stretches of stored files that are damaged and not repaired",
            |s| Some(s.damage.len() as u64),
        )?;
        self.counter("repaired_stretches", "Stretches of closed files that were repaired", |s| {
            s.scrub.repaired
        })?;
        self.counter("scrubbed_bytes", "Bytes of closed files read to find damage", |s| s.scrub.read_bytes)?;
        self.gauge(
            "scrub_age_seconds",
            "How long ago those closed bytes were read that were not for longest",
            |s| s.scrub.rate.map(|_| s.scrub.age_seconds),
        )
    }

    /// The source, and how far what is kept is behind it.
    fn source(&mut self) -> fmt::Result {
        self.float("stored_ratio", "Bytes stored for each that was received", SourceReport::ratio)?;
        self.value("uptime_seconds", "Since the start", self.relay.uptime_seconds)?;
        self.gauge(
            "source_lag_seconds",
            "How far what is kept lags behind the source, by the source's clock",
            |s| s.source.lag_seconds,
        )?;
        self.gauge("replicas_waited_for", "Before the relay acknowledges to the source", |s| {
            Some(s.source.replicas_waited_for as u64)
        })?;
        self.gauge("source_up", "Whether the source is followed", |s| {
            Some(u64::from(s.source.phase == Phase::Receiving))
        })?;
        self.gauge("source_failed", "Whether somebody must decide or repair something", |s| {
            Some(u64::from(s.source.phase == Phase::Failed))
        })
    }

    /// The logs that are kept: files, sizes, positions.
    fn logs(&mut self) -> fmt::Result {
        self.log("lineage", "Which of the logs that are kept is served", |log| log.lineage)?;
        self.log("log_bytes", "Size of the log on disk", |log| log.bytes)?;
        self.log("log_files", "Files of the log", |log| log.files as u64)?;
        self.log("received_file", "Number of the file that is received", |log| log.written.number)?;
        self.log("received_position", "Up to where it was received", |log| log.written.position)?;
        self.log("durable_file", "Number of the file that is made durable", |log| log.durable.number)?;
        self.log("durable_position", "Up to where it is durable, and served", |log| log.durable.position)?;
        self.family("lineage_bytes", "Size on disk of each log that is kept", MetricType::Gauge, |s| {
            s.lineages.iter().map(|log| (log_labels(log), log.bytes)).collect()
        })
    }

    /// Clients of all sources together.
    fn clients(&mut self) -> fmt::Result {
        let clients = self.relay.clients;
        self.value("clients", "Clients that are logged in", clients.logged_in as u64)?;
        self.value("clients_logging_in", "Clients that are logging in", clients.logging_in as u64)?;
        self.count("clients_turned_away", "Too many or too slow", clients.turned_away)
    }

    /// Each replica: what it was sent, and what it acknowledged.
    fn replicas_of_sources(&mut self) -> fmt::Result {
        self.replicas("replica_lag_bytes", "Stored bytes not sent yet", |r| Some(r.lag_bytes))?;
        self.replicas("replica_lag_seconds", "Age of the last transaction sent", |r| r.lag_seconds)?;
        self.replicas("replica_served_file", "File it is sent", |r| Some(r.place.number))?;
        self.replicas("replica_served_position", "Up to where", |r| Some(r.place.position))?;
        self.replicas("replica_acknowledged_file", "File it has acknowledged", |r| {
            Some(r.acknowledged.as_ref()?.number)
        })?;
        self.replicas("replica_acknowledged_position", "Up to where", |r| {
            Some(r.acknowledged.as_ref()?.position)
        })?;
        self.replicas("replica_semi_sync", "Whether it acknowledges what it is sent", |r| {
            Some(u64::from(r.semi_sync))
        })?;
        self.family("replica_acknowledgements", "How often it did", MetricType::Counter, |s| {
            let semi_sync = s.replicas.iter().filter(|replica| replica.semi_sync);
            semi_sync.map(|replica| (labels(replica), replica.acknowledgements)).collect()
        })?;
        self.family("replica_served_bytes", "Bytes sent", MetricType::Counter, |s| {
            s.replicas.iter().map(|replica| (labels(replica), replica.bytes)).collect()
        })
    }

    fn counter(&mut self, name: &str, help: &str, value: fn(&SourceReport) -> u64) -> fmt::Result {
        let values = self.of_sources(|status| Some(ConstCounter::new(value(status))));
        self.each(name, help, MetricType::Counter, values)
    }

    fn seconds(&mut self, name: &str, help: &str, value: fn(&SourceReport) -> f64) -> fmt::Result {
        let values = self.of_sources(|status| Some(ConstCounter::new(value(status))));
        self.each(name, help, MetricType::Counter, values)
    }

    fn gauge(&mut self, name: &str, help: &str, value: fn(&SourceReport) -> Option<u64>) -> fmt::Result {
        let values = self.of_sources(|status| Some(ConstGauge::new(value(status)? as i64)));
        self.each(name, help, MetricType::Gauge, values)
    }

    fn log(&mut self, name: &str, help: &str, value: fn(&LogStatus) -> u64) -> fmt::Result {
        let values = self.of_sources(|status| Some(ConstGauge::new(value(status.log.as_ref()?) as i64)));
        self.each(name, help, MetricType::Gauge, values)
    }

    fn float(&mut self, name: &str, help: &str, value: fn(&SourceReport) -> Option<f64>) -> fmt::Result {
        let values = self.of_sources(|status| Some(ConstGauge::new(value(status)?)));
        self.each(name, help, MetricType::Gauge, values)
    }

    fn syncs(&mut self, syncs: &[(String, Histogram)]) -> fmt::Result {
        let values = syncs.iter().map(|(name, syncs)| (source_label(name), syncs.clone())).collect();
        let help = "How long it took to make the log durable";
        self.each("sync_duration_seconds", help, MetricType::Histogram, values)
    }

    /// Something of the whole relay that grows.
    fn count(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.each(name, help, MetricType::Counter, vec![(Vec::new(), ConstCounter::new(value))])
    }

    /// Something else of the whole relay.
    fn value(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.each(name, help, MetricType::Gauge, vec![(Vec::new(), ConstGauge::new(value as i64))])
    }

    /// Health of each source, and of the state that they share.
    fn health(&mut self) -> fmt::Result {
        let healthy = self
            .relay
            .sources
            .iter()
            .map(|source| {
                let is_healthy = source.troubles().is_empty();
                (source_label(&source.name), ConstGauge::new(i64::from(is_healthy)))
            })
            .collect();
        self.each("healthy", "Whether nobody need look at anything", MetricType::Gauge, healthy)?;
        let common =
            self.relay.duties.iter().map(|duty| (Vec::new(), [("duty", duty.name)], u64::from(duty.up)));
        // Those of an only source are the relay's.
        let common: Vec<_> = common.filter(|_| self.relay.only().is_none()).collect();
        let values = common
            .into_iter()
            .chain(self.in_sources(|status| {
                status.duties.iter().map(|duty| ([("duty", duty.name)], u64::from(duty.up))).collect()
            }))
            .collect();
        self.families("duty_up", "Whether what must be done is being done", MetricType::Gauge, values)
    }

    fn errors(&mut self) -> fmt::Result {
        let common: Vec<_> = self
            .relay
            .errors
            .iter()
            .map(|(kind, count)| (Vec::new(), [("kind", *kind)], *count))
            .filter(|_| self.relay.only().is_none())
            .collect();
        let values = common
            .into_iter()
            .chain(self.in_sources(|status| {
                status.errors.iter().map(|(kind, count)| ([("kind", *kind)], *count)).collect()
            }))
            .collect();
        self.families("errors", "Errors by whose they are", MetricType::Counter, values)
    }

    fn replicas(&mut self, name: &str, help: &str, value: fn(&ReplicaStatus) -> Option<u64>) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, |status| {
            let replicas = status.replicas.iter();
            replicas.filter_map(|replica| Some((labels(replica), value(replica)?))).collect()
        })
    }

    fn family<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: impl Fn(&SourceReport) -> Vec<(L, u64)>,
    ) -> fmt::Result {
        let values = self.in_sources(values);
        self.families(name, help, kind, values)
    }

    /// A value of each source that has it.
    fn of_sources<V>(&self, value: impl Fn(&SourceReport) -> Option<V>) -> Vec<(SourceLabel, V)> {
        let sources = self.relay.sources.iter();
        let values =
            sources.filter_map(|source| Some((source_label(&source.name), value(source.status.as_ref()?)?)));
        values.collect()
    }

    /// The values of each source, with labels of their own.
    fn in_sources<L>(&self, values: impl Fn(&SourceReport) -> Vec<(L, u64)>) -> Vec<(SourceLabel, L, u64)> {
        let each = self.of_sources(|status| Some(values(status))).into_iter().flat_map(|(source, values)| {
            values.into_iter().map(move |(labels, value)| (source.clone(), labels, value))
        });
        each.collect()
    }

    fn each<V: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: Vec<(SourceLabel, V)>,
    ) -> fmt::Result {
        if values.is_empty() {
            return Ok(());
        }
        let mut metric = self.encoder.encode_descriptor(name, help, None, kind)?;
        for (source, value) in values {
            if source.is_empty() {
                // There is no other.
                return value.encode(metric);
            }
            value.encode(metric.encode_family(&source)?)?;
        }
        Ok(())
    }

    fn families<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: Vec<(SourceLabel, L, u64)>,
    ) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, kind)?;
        for (source, labels, value) in values {
            let labels = (source, labels);
            let metric = metric.encode_family(&labels)?;
            match kind {
                MetricType::Counter => ConstCounter::new(value).encode(metric)?,
                _ => ConstGauge::new(value as i64).encode(metric)?,
            }
        }
        Ok(())
    }
}
