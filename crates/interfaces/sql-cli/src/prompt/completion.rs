//! Completion of keywords, functions, tables and columns. Columns of a user table are known
//! once the logs were read for them; reading begins when a statement names the table, and goes on while the user types.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use binlogz_query::{Names, QualifiedName};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use rustyline::Context;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};

use super::commands::WORDS;
use super::ending::is_over;
use super::sql_names::{HERE, KEYWORDS, quoted, written};

/// How long the Tab key waits for columns.
const COLUMNS_WAIT: Duration = Duration::from_millis(500);

/// The answers to the line editor.
pub(super) struct PromptHelper {
    names: Names,
    /// Tables whose columns were asked for.
    asked: Mutex<BTreeSet<QualifiedName>>,
}

impl PromptHelper {
    pub(super) fn new(names: Names) -> Self {
        PromptHelper { names, asked: Mutex::default() }
    }

    /// Where the word before the cursor begins, and what it may become.
    fn candidates(&self, before: &str, statement: &str) -> (usize, Vec<String>) {
        let is_part = |c: char| c.is_alphanumeric() || "_.\"@\\".contains(c);
        let begin = before
            .char_indices()
            .rev()
            .take_while(|(_, c)| is_part(*c))
            .last()
            .map_or(before.len(), |(at, _)| at);
        let word = before.get(begin..).unwrap_or_default();
        if word.starts_with('\\') || begin == 0 && word.starts_with('.') {
            return (
                begin,
                WORDS.iter().filter(|known| known.starts_with(word)).map(|&known| known.to_owned()).collect(),
            );
        }
        let tables = self.names.known_tables();
        let users = tables.into_iter().flatten().filter(|table| is_named(statement, table));
        let of_logs = self.log_tables().filter(|table| is_named(statement, table));
        let named: Vec<SchemaRef> =
            users.cloned().chain(of_logs).filter_map(|table| self.columns(&table)).collect();
        // A field of an image: after.total, o.after.total.
        if let Some((image, part)) = word.rsplit_once('.').filter(|(image, _)| is_image(image)) {
            // Images are often named before the table is: then those of all tables that are known.
            let known = || {
                tables
                    .into_iter()
                    .flatten()
                    .filter_map(|(schema, name)| self.names.known_columns(schema, name))
                    .collect()
            };
            let named = if named.iter().any(|columns| has_fields(columns, image)) { named } else { known() };
            let fields = named.iter().flat_map(|columns| fields_of(columns, last_name(image)));
            let fitting: BTreeSet<_> = fields.filter(|name| fits(name, part)).collect();
            return (begin, fitting.iter().map(|name| format!("{image}.{}", quoted(name))).collect());
        }
        let mut found: Vec<String> = Vec::new();
        let columns: BTreeSet<_> =
            named.iter().flat_map(|columns| columns.fields()).map(|field| field.name().clone()).collect();
        found.extend(columns.iter().filter(|name| fits(name, word)).map(|name| quoted(name)));
        let users = tables.into_iter().flatten().cloned();
        let fitting = self
            .log_tables()
            .chain(users)
            .filter(|(schema, table)| fits(table, word) || fits(&format!("{schema}.{table}"), word));
        found.extend(fitting.map(|table| written(&table)));
        if !word.is_empty() {
            let is_small = word.chars().any(char::is_lowercase);
            let keywords = KEYWORDS.iter().filter(|known| fits(known, word));
            found.extend(
                keywords.map(|&known| if is_small { known.to_lowercase() } else { known.to_owned() }),
            );
            let functions = self.names.functions().iter().filter(|known| known.starts_with(word));
            found.extend(functions.map(|known| format!("{known}(")));
        }
        found.dedup();
        (begin, found)
    }

    fn log_tables(&self) -> impl Iterator<Item = QualifiedName> {
        Names::LOG_TABLES.into_iter().map(|table| (HERE.to_owned(), table.to_owned()))
    }

    /// The columns of a table, if they are there soon.
    fn columns(&self, table: &QualifiedName) -> Option<SchemaRef> {
        let (schema, name) = table.clone();
        if let Some(known) = self.names.known_columns(&schema, &name) {
            return Some(known);
        }
        if !self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(table.clone()) {
            return None;
        }
        let (sender, receiver) = mpsc::channel();
        let names = self.names.clone();
        thread::spawn(move || sender.send(names.columns(&schema, &name).ok().flatten()));
        receiver.recv_timeout(COLUMNS_WAIT).ok().flatten()
    }
}

/// Whether a name may follow from what is typed of it.
fn fits(name: &str, typed: &str) -> bool {
    let typed = typed.replace('"', "").to_lowercase();
    name.to_lowercase().starts_with(&typed)
}

/// Whether a statement names a table.
fn is_named(statement: &str, table: &QualifiedName) -> bool {
    let (schema, name) = table;
    let plain = statement.replace('"', "").to_lowercase();
    match schema == HERE {
        true => plain.contains(name.as_str()),
        false => plain.contains(&format!("{schema}.{name}").to_lowercase()),
    }
}

fn is_image(text: &str) -> bool {
    matches!(last_name(text), "before" | "after")
}

fn last_name(text: &str) -> &str {
    text.rsplit('.').next().unwrap_or(text)
}

fn has_fields(columns: &SchemaRef, image: &str) -> bool {
    !fields_of(columns, last_name(image)).is_empty()
}

fn fields_of(columns: &SchemaRef, image: &str) -> Vec<String> {
    match columns.field_with_name(image).map(|field| field.data_type()) {
        Ok(DataType::Struct(fields)) => fields.iter().map(|field| field.name().clone()).collect(),
        _ => Vec::new(),
    }
}

impl Completer for PromptHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.candidates(line.get(..position).unwrap_or(line), line))
    }
}

impl Validator for PromptHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let is_over = is_over(context.input());
        Ok(if is_over { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for PromptHelper {
    type Hint = String;
}

impl Highlighter for PromptHelper {}

impl rustyline::Helper for PromptHelper {}
