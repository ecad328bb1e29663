//! Commands of the prompt that are no SQL, as psql has them.

use std::io::{self, Write};
use std::sync::Arc;

use binlogz_cli_common::companions::sql::SqlFormat;
use binlogz_query::Error;
use binlogz_query::engine::BatchOutput;
use binlogz_query::print::RowsFormat;
use clap::ValueEnum;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};

use super::{Prompt, sql_names};
use crate::rows_format;

const HELP: &str = "\\d               tables
\\d TABLE         columns of a table, as in \\d \"shop\".\"orders\"
\\format [NAME]   format of answers: table, csv, tsv, json
\\timing          tell how long each statement takes, or no longer
\\q               end, as Ctrl-D; quit and exit do so too
\\?               this help
Ctrl-C stops the statement that runs, or drops the one that is written.";

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptCommand {
    Tables,
    Columns(String, String),
    Format(Option<String>),
    Timing,
    Help,
    End,
}

/// The words with which commands begin, for completion.
pub(super) const WORDS: [&str; 5] = ["\\d", "\\format", "\\q", "\\timing", "\\?"];

impl PromptCommand {
    /// The command that a text is; `None`: it is SQL.
    pub(super) fn of(text: &str) -> Option<Result<PromptCommand, Error>> {
        let text = text.trim_end_matches(';').trim();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        Some(Ok(match (word.to_ascii_lowercase().as_str(), rest.is_empty()) {
            ("\\q" | "quit" | "exit", true) => PromptCommand::End,
            ("\\?" | "\\h" | "help", true) => PromptCommand::Help,
            ("\\timing", true) => PromptCommand::Timing,
            ("\\format", true) => PromptCommand::Format(None),
            ("\\format", false) => PromptCommand::Format(Some(rest.to_owned())),
            ("\\d" | "\\dt", true) => PromptCommand::Tables,
            ("\\d", false) => {
                let (schema, table) = sql_names::parsed(rest);
                PromptCommand::Columns(schema, table)
            }
            _ if text.starts_with('\\') => {
                return Some(Err(Error::Sql(format!("there is no command {word}: \\? lists them"))));
            }
            _ => return None,
        }))
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
            PromptCommand::Timing => {
                self.is_timing = !self.is_timing;
                writeln!(out, "Timing is {}.", if self.is_timing { "on" } else { "off" })?;
            }
            PromptCommand::Format(None) => writeln!(out, "Format: {}", name_of(self.format))?,
            PromptCommand::Format(Some(text)) => {
                let format = SqlFormat::from_str(&text, true).ok().filter(|format| {
                    // The others are no text.
                    !matches!(format, SqlFormat::Arrow | SqlFormat::Parquet)
                });
                let format = format
                    .ok_or_else(|| Error::Sql(format!("format {text}: expected table, csv, tsv or json")))?;
                self.format = rows_format(format);
                writeln!(out, "Format: {}", name(format))?;
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
        let mut printer = self.printer(io::stdout());
        printer.begin(&batch.schema())?;
        printer.batch(&batch)?;
        printer.end()?;
        printer.finish()
    }
}

/// The name of the printer's format.
fn name_of(format: RowsFormat) -> String {
    let named = SqlFormat::value_variants().iter().find(|named| rows_format(**named) == format);
    named.map_or_else(String::new, |named| name(*named))
}

/// The name of a format.
fn name(format: SqlFormat) -> String {
    format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
