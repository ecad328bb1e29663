//! The log on standard error of the commands that serve: a line for people, or a JSON object for machines. The lines are events of
//! `tracing`; here we decide which of them are shown, and how.
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

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

use crate::failure::{CommandFailure, Result, say};

/// Our own targets begin with it; a level without a target is theirs.
const OWN: &str = "binlogz";
/// Other crates that log are heard from this level on, unless they are named.
const OTHERS: LevelFilter = LevelFilter::WARN;
/// The fields that each JSON line has.
const ALWAYS: [&str; 3] = ["source", "client", "duty"];

/// The format of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// The format of the log, and the levels that are shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogSettings {
    pub(crate) format: LogFormat,
    pub(crate) levels: Targets,
}

/// Changes the levels while the program runs.
#[derive(Debug, Clone)]
pub(crate) struct Levels(reload::Handle<Targets, Registry>);

impl Levels {
    pub(crate) fn set(&self, levels: Targets) {
        // It fails only once the subscriber is gone, which lives as long as the process.
        let _ = self.0.reload(levels);
    }
}

/// The levels of a configuration that names none.
pub(crate) fn default_levels() -> Targets {
    with_level(LevelFilter::INFO)
}

fn with_level(level: LevelFilter) -> Targets {
    Targets::new().with_default(level.min(OTHERS)).with_target(OWN, level)
}

/// Reads levels: `info`, or `info,binlogz_relay::serve=debug` with a level for a part.
pub(crate) fn levels(text: &str) -> Result<Targets, String> {
    let unfit = |part: &str| {
        format!(
            "{part:?}, expected error, warn, info, debug, trace or off, or TARGET=LEVEL, with commas between several"
        )
    };
    let level = |name: &str, part: &str| match name.trim().to_ascii_lowercase().as_str() {
        "off" => Ok(LevelFilter::OFF),
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        "trace" => Ok(LevelFilter::TRACE),
        _ => Err(unfit(part)),
    };
    let mut own = LevelFilter::INFO;
    let mut named = Vec::new();
    for part in text.split(',') {
        match part.split_once('=') {
            None => own = level(part, part)?,
            Some((target, _)) if target.trim().is_empty() => return Err(unfit(part)),
            Some((target, name)) => named.push((target.trim().to_owned(), level(name, part)?)),
        }
    }
    Ok(with_level(own).with_targets(named))
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
    let registry = registry.with(crate::traces::layer(OWN)?);
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

    #[test]
    fn levels_are_for_all_of_binlogz_and_for_parts() {
        let relay = "binlogz_relay::serve::server";
        for (text, target, level, shown) in [
            ("info", relay, Level::INFO, true),
            ("info", relay, Level::DEBUG, false),
            ("info", "reqwest::connect", Level::INFO, false),
            ("info", "reqwest::connect", Level::WARN, true),
            ("error", "reqwest::connect", Level::WARN, false),
            ("debug,binlogz_relay::serve=warn", relay, Level::INFO, false),
            ("debug,binlogz_relay::serve=warn", "binlogz_relay::receive", Level::DEBUG, true),
            ("binlogz_relay::serve=off", relay, Level::ERROR, false),
            ("WARN, reqwest = trace", "reqwest::connect", Level::TRACE, true),
            ("off", relay, Level::ERROR, false),
        ] {
            assert_eq!(levels(text).unwrap().would_enable(target, &level), shown, "{text} {target} {level}");
        }
        for text in ["", "inof", "=info", "binlogz_relay", "binlogz_relay=loud", "info,"] {
            assert!(levels(text).unwrap_err().contains("expected error, warn"), "{text}");
        }
    }

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
