//! The relay's spans as OpenTelemetry traces, sent by OTLP (protobuf over HTTP) to the collector that the standard
//! variables name. The relay decides which spans there are; this file decides which of them are sent.

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::resource::ResourceDetector;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::failure::{CommandFailure, Result};

/// Either says where a collector is; without both nothing is sent.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
/// Either says how it is spoken to.
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
/// The only way that is built in.
const PROTOCOL: &str = "http/protobuf";
/// Says that nothing is sent, whatever the others say.
const DISABLED: &str = "OTEL_SDK_DISABLED";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
/// The service's name where no variable gives one.
const DEFAULT_SERVICE: &str = "binlogz-relay";
/// Spans of threads that never end: they would never be sent.
const ENDLESS: &str = "duty";

/// Sends spans whose target begins with `own`, if the environment says where to. A thread sends those that have ended
/// every five seconds, or when there are 512; if that fails, it logs a line.
///
/// # Errors
///
/// Variables that make no sense.
pub(crate) fn layer<S>(own: &'static str) -> Result<Option<impl Layer<S>>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    if set(&[DISABLED]).is_some_and(|(_, value)| value.eq_ignore_ascii_case("true"))
        || set(&ENDPOINTS).is_none()
    {
        return Ok(None);
    }
    if let Some((name, value)) = set(&PROTOCOLS).filter(|(_, value)| value != PROTOCOL) {
        return Err(CommandFailure::Line(format!("{name}: {value:?}, expected {PROTOCOL}")));
    }
    // The provider is process-wide; an existing one works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = SpanExporter::builder().with_http().build();
    let exporter =
        exporter.map_err(|error| CommandFailure::Line(format!("begin to send traces: {error}")))?;
    let provider =
        SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer(own)).with_threads(false);
    Ok(Some(
        layer.with_filter(filter_fn(move |metadata| metadata.target().starts_with(own) && is_sent(metadata))),
    ))
}

/// The first of these variables that isn't empty.
fn set(names: &[&'static str]) -> Option<(&'static str, String)> {
    let value =
        |name: &&'static str| Some((*name, std::env::var(name).ok()?)).filter(|(_, value)| !value.is_empty());
    names.iter().find_map(value)
}

/// The sender, by its name and version.
fn resource() -> Resource {
    let named = EnvResourceDetector::new().detect().get(&"service.name".into()).is_some();
    let builder =
        Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    match named || set(&[SERVICE_NAME]).is_some() {
        true => builder.build(),
        false => builder.with_service_name(DEFAULT_SERVICE).build(),
    }
}

/// Spans, and the warnings and errors inside them.
fn is_sent(metadata: &Metadata<'_>) -> bool {
    match metadata.is_span() {
        true => metadata.name() != ENDLESS,
        false => *metadata.level() <= Level::WARN,
    }
}
