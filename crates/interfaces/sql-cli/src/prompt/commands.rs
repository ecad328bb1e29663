//! Commands of the prompt that are no SQL, as psql and DuckDB have them.

use std::io::{self, Write};
use std::sync::Arc;

use binlogz_query::Error;
use binlogz_query::engine::BatchOutput;
use binlogz_query::print::RowsFormat;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};

use super::{Prompt, sql_names};

const HELP: &str = "\\d, .tables      tables
\\d TABLE         columns of a table, as in \\d \"shop\".\"orders\"
.mode [NAME]     format of answers: table, line, csv, tsv, json; also \\format
.timer [on|off]  tell how long each statement takes; also \\timing
.pager [on|off]  show answers that are longer than the screen in a pager
\\q, .quit        end, as Ctrl-D; quit and exit do so too
\\?, .help        this help
A statement ends with ; or with \\G, which has a line for each column.
Ctrl-C stops the statement that runs, or drops the one that is written.";

/// Formats by their names; the first name of each is shown.
const MODES: [(&str, RowsFormat); 7] = [
    ("table", RowsFormat::Table),
    ("text", RowsFormat::Table),
    ("line", RowsFormat::Tall),
    ("csv", RowsFormat::Csv),
    ("tsv", RowsFormat::Tsv),
    ("tabs", RowsFormat::Tsv),
    ("json", RowsFormat::Json),
];

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptCommand {
    Tables,
    Columns(String, String),
    Format(Option<String>),
    /// On or off; `None`: the other one.
    Timing(Option<bool>),
    Pager(Option<bool>),
    Help,
    End,
}

/// The words with which commands begin, for completion.
pub(super) const WORDS: [&str; 11] =
    ["\\d", "\\format", "\\q", "\\timing", "\\?", ".help", ".mode", ".pager", ".quit", ".tables", ".timer"];

impl PromptCommand {
    /// The command that a text is; `None`: it is SQL.
    pub(super) fn of(text: &str) -> Option<Result<PromptCommand, Error>> {
        let text = text.trim_end_matches(';').trim();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        Some(Ok(match (word.to_ascii_lowercase().as_str(), rest.is_empty()) {
            ("\\q" | ".quit" | ".exit" | "quit" | "exit", true) => PromptCommand::End,
            ("\\?" | "\\h" | ".help" | "help", true) => PromptCommand::Help,
            ("\\timing" | ".timer", _) => return Some(switch(word, rest).map(PromptCommand::Timing)),
            (".pager", _) => return Some(switch(word, rest).map(PromptCommand::Pager)),
            ("\\format" | ".mode", true) => PromptCommand::Format(None),
            ("\\format" | ".mode", false) => PromptCommand::Format(Some(rest.to_owned())),
            ("\\d" | "\\dt" | ".tables", true) => PromptCommand::Tables,
            ("\\d", false) => {
                let (schema, table) = sql_names::parsed(rest);
                PromptCommand::Columns(schema, table)
            }
            _ if text.starts_with(['\\', '.']) => {
                return Some(Err(Error::Sql(format!("there is no command {word}: \\? lists them"))));
            }
            _ => return None,
        }))
    }
}

/// What follows the name of a switch.
fn switch(word: &str, text: &str) -> Result<Option<bool>, Error> {
    match text.to_ascii_lowercase().as_str() {
        "" => Ok(None),
        "on" => Ok(Some(true)),
        "off" => Ok(Some(false)),
        _ => Err(Error::Sql(format!("{word} {text}: expected on or off"))),
    }
}

impl Prompt<'_> {
    /// Executes a command; false: it asks for the end.
    pub(super) fn obey(&mut self, command: PromptCommand) -> Result<bool, Error> {
        let names = self.engine.names();
        let mut out = io::stdout();
        match command {
            PromptCommand::End => return Ok(false),
            PromptCommand::Help => writeln!(out, "{HELP}")?,
            PromptCommand::Timing(on) => {
                self.is_timing = on.unwrap_or(!self.is_timing);
                writeln!(out, "Timing is {}.", if self.is_timing { "on" } else { "off" })?;
            }
            PromptCommand::Pager(on) => {
                self.has_pager = on.unwrap_or(!self.has_pager);
                writeln!(out, "The pager is {}.", if self.has_pager { "on" } else { "off" })?;
            }
            PromptCommand::Format(None) => writeln!(out, "Format: {}", name_of(self.format))?,
            PromptCommand::Format(Some(text)) => {
                let (name, format) = mode(&text).ok_or_else(|| {
                    Error::Sql(format!("format {text}: expected table, line, csv, tsv or json"))
                })?;
                self.format = format;
                writeln!(out, "Format: {name}")?;
            }
            PromptCommand::Tables => {
                let progress = self.begin("looking for tables");
                let tables = names.tables();
                drop(progress);
                let (schemas, tables) = tables?.into_iter().unzip();
                self.show(["schema", "table"], [schemas, tables])?;
            }
            PromptCommand::Columns(schema, table) => {
                let progress = self.begin("looking for columns");
                let columns = names.columns(&schema, &table);
                drop(progress);
                let columns = columns?.ok_or_else(|| {
                    let names = sql_names::written(&(schema.clone(), table.clone()));
                    Error::Sql(format!("there is no table {names}: \\d lists them"))
                })?;
                let (mut columns_out, mut types): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
                for field in columns.fields() {
                    let name = sql_names::quoted(field.name());
                    match field.data_type() {
                        DataType::Struct(fields) => fields.iter().for_each(|inner| {
                            columns_out.push(format!("{name}.{}", sql_names::quoted(inner.name())));
                            types.push(inner.data_type().to_string());
                        }),
                        other => {
                            columns_out.push(name);
                            types.push(other.to_string());
                        }
                    }
                }
                self.show(["column", "type"], [columns_out, types])?;
            }
        }
        Ok(true)
    }

    /// Prints two columns of texts.
    fn show(&self, names: [&str; 2], columns: [Vec<String>; 2]) -> Result<(), Error> {
        let fields = names.map(|name| Field::new(name, DataType::Utf8, false));
        let columns = columns.map(|texts| -> ArrayRef { Arc::new(StringArray::from(texts)) });
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns.to_vec())
            .map_err(|error| Error::Sql(error.to_string()))?;
        let mut printer = self.printer(self.format, io::stdout());
        printer.begin(&batch.schema())?;
        printer.batch(&batch)?;
        printer.end()?;
        printer.finish()
    }
}

/// The format with this name, and the name that is shown.
fn mode(text: &str) -> Option<(&'static str, RowsFormat)> {
    let (_, format) = MODES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text))?;
    Some((name_of(*format), *format))
}

/// The name of the printer's format.
fn name_of(format: RowsFormat) -> &'static str {
    match format {
        RowsFormat::Table => "table",
        RowsFormat::Tall => "line",
        RowsFormat::Csv => "csv",
        RowsFormat::Tsv => "tsv",
        RowsFormat::Json => "json",
        RowsFormat::Arrow => "arrow",
        RowsFormat::Parquet => "parquet",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_names_of_psql_and_of_duckdb() {
        let command =
            |text| PromptCommand::of(text).map(|command| command.map_err(|error| error.to_string()));
        for (of_psql, of_duckdb) in [
            ("\\q", ".quit"),
            ("\\?", ".help;"),
            ("\\timing", ".timer"),
            ("\\timing off", ".timer OFF"),
            ("\\format csv", ".mode csv"),
            ("\\d", ".tables"),
        ] {
            assert!(command(of_psql).is_some_and(|known| known.is_ok()), "{of_psql}");
            assert_eq!(command(of_psql), command(of_duckdb), "{of_duckdb}");
        }
        assert_eq!(command(".timer maybe"), Some(Err(".timer maybe: expected on or off".to_owned())));
        assert_eq!(
            command(".nonsense"),
            Some(Err("there is no command .nonsense: \\? lists them".to_owned()))
        );
        assert_eq!(command("SELECT 1"), None);
        assert_eq!(mode("TABS"), Some(("tsv", RowsFormat::Tsv)));
        assert_eq!(mode("box"), None);
        assert!(MODES.iter().all(|(name, _)| mode(name).is_some()));
    }
}
