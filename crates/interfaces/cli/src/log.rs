//! The log on standard error of the commands that serve: a line for people, or a JSON object for machines. The lines are events of
//! `tracing`; `binlogz_relay_config` reads which of them are shown, here is how.
//!
//! ```text
//! text   binlogz: source orders: listening on 127.0.0.1:3311
//! json   {"time":1763000000.1,"level":"info","message":"listening on 127.0.0.1:3311","target":"binlogz_relay::sources",
//!         "source":"orders","client":null,"duty":"open"}
//! ```
//!
//! `source`, `client` and `duty` are there in every line; other fields of an event or of the spans around it come after
//! them.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_relay_config::{LogFormat, LogSettings};
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

use crate::failure::{CommandFailure, Result, say};

/// The fields that each JSON line has.
const ALWAYS: [&str; 3] = ["source", "client", "duty"];

/// Changes the levels while the program runs.
#[derive(Debug, Clone)]
pub(crate) struct Levels(reload::Handle<Targets, Registry>);

impl Levels {
    pub(crate) fn set(&self, levels: Targets) {
        // It fails only once the subscriber is gone, which lives as long as the process.
        let _ = self.0.reload(levels);
    }
}

/// From now on events of `tracing` are shown. Once in a process.
///
/// # Errors
///
/// Something listens to them already; variables for traces that make no sense.
pub(crate) fn install(settings: &LogSettings) -> Result<Levels> {
    let (levels, handle) = reload::Layer::new(settings.levels.clone());
    let lines = Lines { format: settings.format }.with_filter(levels);
    let registry = tracing_subscriber::registry().with(lines);
    #[cfg(feature = "otel")]
    let registry = registry.with(crate::traces::layer(binlogz_relay_config::OWN_TARGETS)?);
    let failed = |error| CommandFailure::Line(format!("begin the log: {error}"));
    registry.try_init().map_err(failed)?;
    Ok(Levels(handle))
}

/// Whether the process is ending, and its threads meet files that were removed under them.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Shows no further line. To be called before files that serving threads still use are removed: their errors would be
/// the last thing that a user sees after Ctrl-C.
pub(crate) fn end() {
    IS_ENDING.store(true, Ordering::SeqCst);
}

/// Writes a line for each event.
struct Lines {
    format: LogFormat,
}

/// Fields of a span, or of an event and the spans around it.
#[derive(Debug, Clone, Default)]
struct Fields {
    message: String,
    named: Vec<(&'static str, Value)>,
}

impl Fields {
    /// Sets a field. If two fields have one name, the inner one counts.
    fn set(&mut self, field: &Field, value: Value) {
        self.put(field.name(), value);
    }

    fn put(&mut self, name: &'static str, value: Value) {
        match self.named.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.named.push((name, value)),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.named.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            _ => self.set(field, text.into()),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_owned(),
            _ => self.set(field, value.into()),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if IS_ENDING.load(Ordering::SeqCst) {
            return;
        }
        let fields = fields_of(event, &context);
        let metadata = event.metadata();
        match self.format {
            LogFormat::Text => say(&text(&fields)),
            LogFormat::Json => {
                let line = object(metadata.level(), metadata.target(), now(), fields);
                // If even that fails, there is nowhere to report it.
                let _ = writeln!(io::stderr(), "{line}");
            }
        }
    }
}

/// The fields of an event and of the spans around it.
fn fields_of<S: Subscriber + for<'a> LookupSpan<'a>>(event: &Event<'_>, context: &Context<'_, S>) -> Fields {
    let mut fields = Fields::default();
    for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
        if let Some(of_span) = span.extensions().get::<Fields>() {
            of_span.named.iter().for_each(|(name, value)| fields.put(name, value.clone()));
        }
    }
    let mut own = Fields::default();
    event.record(&mut own);
    // Some libraries say in fields alone what happened.
    fields.message = match own.message.is_empty() {
        true => own.named.iter().map(|(_, value)| words(value)).collect::<Vec<_>>().join(": "),
        false => own.message,
    };
    own.named.into_iter().for_each(|(name, value)| fields.put(name, value));
    fields
}

fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64())
}

fn text(fields: &Fields) -> String {
    match fields.get("source").and_then(Value::as_str) {
        Some(source) => format!("source {source}: {}", fields.message),
        None => fields.message.clone(),
    }
}

fn object(level: &Level, target: &str, time: f64, fields: Fields) -> Value {
    let mut line = Map::new();
    line.insert("time".to_owned(), json!((time * 1e6).round() / 1e6));
    line.insert("level".to_owned(), level.as_str().to_ascii_lowercase().into());
    line.insert("message".to_owned(), fields.message.as_str().into());
    line.insert("target".to_owned(), target.into());
    for name in ALWAYS {
        line.insert(name.to_owned(), fields.get(name).cloned().unwrap_or(Value::Null));
    }
    for (name, value) in fields.named {
        line.entry(name).or_insert(value);
    }
    Value::Object(line)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps the fields of a line.
    struct Kept(Arc<Mutex<Vec<(String, Value)>>>);

    impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Kept {
        fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
            Lines { format: LogFormat::Json }.on_new_span(attributes, id, context);
        }

        fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
            Lines { format: LogFormat::Json }.on_record(id, values, context);
        }

        fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
            let fields = fields_of(event, &context);
            let metadata = event.metadata();
            let line = (text(&fields), object(metadata.level(), "target", 1.5, fields));
            self.0.lock().unwrap().push(line);
        }
    }

    #[test]
    fn a_line_has_its_own_fields_and_those_of_the_spans_around_it() {
        let kept = Arc::<Mutex<Vec<_>>>::default();
        let subscriber = tracing_subscriber::registry().with(Kept(Arc::clone(&kept)));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("alone");
            let client =
                tracing::error_span!("client", client = 7_u32, user = tracing::field::Empty, source = "all");
            let entered = client.enter();
            client.record("user", "repl");
            tracing::warn!(source = "orders", kind = "refused", "{}", "purged");
            drop(entered);
            tracing::warn!(name = "Exporter.Failed", error = "refused", count = 3_u64);
        });
        let kept = kept.lock().unwrap();
        let expected = |level: &str, message: &str, client: Value, source: Value| {
            json!({"time": 1.5, "level": level, "message": message, "target": "target", "source": source,
                "client": client, "duty": null})
        };
        assert_eq!(kept[0], ("alone".to_owned(), expected("info", "alone", Value::Null, Value::Null)));
        let mut line = expected("warn", "purged", json!(7), json!("orders"));
        line["user"] = json!("repl");
        line["kind"] = json!("refused");
        assert_eq!(kept[1], ("source orders: purged".to_owned(), line));
        assert_eq!(kept[2].0, "Exporter.Failed: refused: 3");
        assert_eq!(kept[2].1["message"], "Exporter.Failed: refused: 3");
    }
}
