//! A status as Prometheus scrapes it: OpenMetrics text.

use std::fmt::{self, Debug};
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::forms::conversions::ConversionCounts;
use crate::receive::control::Phase;
use crate::watch::Watch;
use crate::watch::status::{LineageStatus, ReplicaStatus, Status};

const PREFIX: &str = "binlogz_relay";
/// The content type of the answer.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn text(watch: &Watch, status: Status) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    let syncs = watch.telemetry.meters.syncs.clone();
    registry.register("sync_duration_seconds", "How long it took to make the log durable", syncs);
    registry.register_collector(Box::new(Snapshot(Arc::new(status), watch.server.conversions.counts())));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// The counters that were written already.
#[derive(Debug)]
struct Snapshot(Arc<Status>, ConversionCounts);

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let status = self.0.as_ref();
        let mut out = Encoder(encoder);
        let bytes = status.bytes;
        out.counter("received_bytes", "Bytes of events of the source's files", bytes.received)?;
        out.counter("stored_bytes", "Bytes appended to the log", bytes.stored)?;
        out.counter("served_bytes", "Bytes sent to replicas", bytes.served)?;
        out.counter("transactions", "Transactions received", bytes.transactions)?;
        let ConversionCounts { made, shared } = self.1;
        out.counter("blocks_converted", "Pieces of the log converted into a form", made)?;
        out.counter("blocks_shared", "Pieces sent that had been converted for another replica", shared)?;
        out.float("stored_ratio", "Bytes stored for each that was received", status.ratio())?;
        out.gauge("uptime_seconds", "Since the start", Some(status.uptime_seconds))?;
        out.gauge(
            "source_lag_seconds",
            "How far what is kept lags behind the source, by the source's clock",
            status.source.lag_seconds,
        )?;
        let waited_for = status.source.replicas_waited_for as u64;
        out.gauge("replicas_waited_for", "Before the relay acknowledges to the source", Some(waited_for))?;
        let receiving = status.source.phase == Phase::Receiving;
        out.gauge("source_up", "Whether the source is followed", Some(u64::from(receiving)))?;
        let failed = status.source.phase == Phase::Failed;
        out.gauge(
            "source_failed",
            "Whether somebody must decide or repair something",
            Some(u64::from(failed)),
        )?;
        out.gauge("healthy", "Whether nobody need look at anything", Some(u64::from(status.is_healthy())))?;
        let duties = status.duties.iter().map(|duty| ([("duty", duty.name)], u64::from(duty.up)));
        out.family("duty_up", "Whether what must be done is being done", MetricType::Gauge, duties)?;
        if let Some(log) = &status.log {
            out.gauge("lineage", "Which of the logs that are kept is served", Some(log.lineage))?;
            out.gauge("log_bytes", "Size of the log on disk", Some(log.bytes))?;
            out.gauge("log_files", "Files of the log", Some(log.files as u64))?;
            out.gauge("received_file", "Number of the file that is received", Some(log.written.number))?;
            out.gauge("received_position", "Up to where it was received", Some(log.written.position))?;
            out.gauge("durable_file", "Number of the file that is made durable", Some(log.durable.number))?;
            out.gauge(
                "durable_position",
                "Up to where it is durable, and served",
                Some(log.durable.position),
            )?;
        }
        let lineages = status.lineages.iter().map(|log| (log_labels(log), log.bytes));
        out.family("lineage_bytes", "Size on disk of each log that is kept", MetricType::Gauge, lineages)?;
        out.gauge("clients", "Clients that are logged in", Some(status.clients.logged_in as u64))?;
        out.gauge(
            "clients_logging_in",
            "Clients that are logging in",
            Some(status.clients.logging_in as u64),
        )?;
        out.counter("clients_turned_away", "Too many or too slow", status.clients.turned_away)?;
        let errors = status.errors.iter().map(|(kind, count)| ([("kind", *kind)], *count));
        out.family("errors", "Errors by whose they are", MetricType::Counter, errors)?;
        let replicas = |value: fn(&ReplicaStatus) -> Option<u64>| {
            status.replicas.iter().filter_map(move |replica| Some((labels(replica), value(replica)?)))
        };
        let gauge = MetricType::Gauge;
        out.family("replica_lag_bytes", "Stored bytes not sent yet", gauge, replicas(|r| Some(r.lag_bytes)))?;
        out.family(
            "replica_lag_seconds",
            "Age of the last transaction sent",
            gauge,
            replicas(|r| r.lag_seconds),
        )?;
        out.family("replica_served_file", "File it is sent", gauge, replicas(|r| Some(r.place.number)))?;
        out.family("replica_served_position", "Up to where", gauge, replicas(|r| Some(r.place.position)))?;
        let acknowledged = |r: &ReplicaStatus| Some(r.acknowledged.as_ref()?.number);
        out.family("replica_acknowledged_file", "File it has acknowledged", gauge, replicas(acknowledged))?;
        let acknowledged = |r: &ReplicaStatus| Some(r.acknowledged.as_ref()?.position);
        out.family("replica_acknowledged_position", "Up to where", gauge, replicas(acknowledged))?;
        let semi_sync = |r: &ReplicaStatus| Some(u64::from(r.semi_sync));
        out.family(
            "replica_semi_sync",
            "Whether it acknowledges what it is sent",
            gauge,
            replicas(semi_sync),
        )?;
        let counter = MetricType::Counter;
        let acknowledgements = |r: &ReplicaStatus| r.semi_sync.then_some(r.acknowledgements);
        out.family("replica_acknowledgements", "How often it did", counter, replicas(acknowledgements))?;
        out.family("replica_served_bytes", "Bytes sent", MetricType::Counter, replicas(|r| Some(r.bytes)))
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

/// Writes one metric after the other.
struct Encoder<'a>(DescriptorEncoder<'a>);

impl Encoder<'_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, MetricType::Counter, &ConstCounter::new(value))
    }

    fn gauge(&mut self, name: &str, help: &str, value: Option<u64>) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        self.one(name, help, MetricType::Gauge, &ConstGauge::new(value as i64))
    }

    fn float(&mut self, name: &str, help: &str, value: Option<f64>) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        self.one(name, help, MetricType::Gauge, &ConstGauge::new(value))
    }

    fn one(&mut self, name: &str, help: &str, kind: MetricType, value: &impl EncodeMetric) -> fmt::Result {
        value.encode(self.0.encode_descriptor(name, help, None, kind)?)
    }

    fn family<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: impl Iterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in values {
            let metric = metric.encode_family(&labels)?;
            match kind {
                MetricType::Counter => ConstCounter::new(value).encode(metric)?,
                _ => ConstGauge::new(value as i64).encode(metric)?,
            }
        }
        Ok(())
    }
}
