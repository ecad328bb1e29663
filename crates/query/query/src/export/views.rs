//! Views of the data sets for DuckDB: each table under its own name, where DuckDB can tell it from others. To DuckDB upper and lower
//! case are the same, and some names are its own.
//!
//! ```text
//! shop.orders              "shop"."orders"
//! S1.T and s1.T            "S1@1f3a…"."T" and "s1@90bd…"."T": neither has the name that would be both
//! temp.t                   "temp@a5f1…"."t"
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use super::TRANSACTIONS;
use super::digest::sha256;
use super::names::DataPath;

/// How a file of views begins.
const HEAD: &str = "-- Views of the tables for DuckDB: duckdb -init views.sql. Each export writes this file anew.
-- DuckDB 2.0.0 fails at ORDER BY … LIMIT over a condition on a field, as in after.id = 42, with this optimizer.
SET disabled_optimizers = 'late_materialization';
";
/// Schemas and catalogs that DuckDB has. In `main` is the view of transactions.
const DUCKDBS_OWN: [&str; 6] = ["information_schema", "main", "memory", "pg_catalog", "system", "temp"];
/// The character between a name and the hash that tells it from another.
const MARK: char = '@';
const MARK_DIGITS: usize = 8;

/// Database and table of a data set, its folder in the target, and its files as DuckDB finds them.
type Set = ([String; 2], String, String);

/// Views of the data sets in a folder that have files, for these tables and their folders: all files that are there.
pub(super) fn of_folder(folder: &Path, has_transactions: bool, sets: Vec<([String; 2], String)>) -> String {
    let place = without_patterns(&folder.display().to_string());
    let files = |data_set: &str| quoted(&format!("{place}/{data_set}/**/*.parquet"), '\'');
    let sets = sets.into_iter().map(|(names, data_set)| {
        let files = files(&data_set);
        (names, data_set, files)
    });
    statements(has_transactions.then(|| files(TRANSACTIONS)), sets.collect())
}

/// Views of these files below a place, and of no others.
pub(super) fn of_files(place: &str, sets: Vec<([String; 2], String, Vec<&DataPath>)>) -> String {
    let place = without_patterns(place);
    let list = |files: Vec<&DataPath>| {
        let files: Vec<_> = files.iter().map(|file| quoted(&format!("{place}/{file}"), '\'')).collect();
        format!("[{}]", files.join(", "))
    };
    let sets: Vec<Set> = sets.into_iter().map(|(names, set, files)| (names, set, list(files))).collect();
    let (transactions, tables): (Vec<_>, Vec<_>) =
        sets.into_iter().partition(|(_, set, _)| set == TRANSACTIONS);
    statements(transactions.into_iter().map(|(_, _, files)| files).next(), tables)
}

/// The statements, for where the files of transactions are and those of tables.
fn statements(transactions: Option<String>, mut sets: Vec<Set>) -> String {
    let mut text = HEAD.to_owned();
    if let Some(files) = transactions {
        text.push_str(&view("transactions", &files));
    }
    sets.sort();
    let databases = told_apart(sets.iter().map(|([database, _], _, _)| database.as_str()), &DUCKDBS_OWN);
    let mut tables: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for ([database, table], _, _) in &sets {
        tables.entry(database).or_default().push(table);
    }
    let tables: BTreeMap<&str, BTreeMap<&str, String>> = tables
        .into_iter()
        .map(|(database, tables)| (database, told_apart(tables.into_iter(), &[])))
        .collect();
    let mut last = None;
    for ([database, table], _, files) in &sets {
        let own = tables.get(database.as_str()).and_then(|tables| tables.get(table.as_str()));
        let (Some(schema), Some(name)) = (databases.get(database.as_str()), own) else { continue };
        if last != Some(schema) {
            text.push_str(&format!("CREATE SCHEMA IF NOT EXISTS {};\n", quoted(schema, '"')));
            last = Some(schema);
        }
        if schema != database || name != table {
            let said = |name: &str| name.replace(char::is_control, "?");
            text.push_str(&format!("-- Table {} of database {}:\n", said(table), said(database)));
        }
        text.push_str(&view(&format!("{}.{}", quoted(schema, '"'), quoted(name, '"')), files));
    }
    text
}

fn view(name: &str, files: &str) -> String {
    format!(
        "CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet({files}, union_by_name = true, hive_partitioning = true);\n"
    )
}

/// Each name, with a hash of it where DuckDB could not tell it from another one or from one of its own.
fn told_apart<'n>(names: impl Iterator<Item = &'n str>, own: &[&str]) -> BTreeMap<&'n str, String> {
    let mut apart: BTreeMap<&str, String> = names.map(|name| (name, name.to_lowercase())).collect();
    let mut same: BTreeMap<String, usize> = BTreeMap::new();
    for lower in apart.values() {
        *same.entry(lower.clone()).or_default() += 1;
    }
    for (name, lower) in &mut apart {
        let is_clear = same.get(lower) == Some(&1) && !own.contains(&lower.as_str()) && !is_marked(name);
        *lower = match is_clear {
            true => (*name).to_owned(),
            false => {
                format!("{name}{MARK}{}", sha256(name.as_bytes()).get(..MARK_DIGITS).unwrap_or_default())
            }
        };
    }
    apart
}

/// Whether a name ends as one with a hash does: it could be taken for another's.
fn is_marked(name: &str) -> bool {
    name.rsplit_once(MARK).is_some_and(|(_, hash)| hash.len() == MARK_DIGITS)
}

fn quoted(text: &str, quote: char) -> String {
    format!("{quote}{}{quote}", text.replace(quote, &format!("{quote}{quote}")))
}

/// A path in which no character stands for others.
fn without_patterns(path: &str) -> String {
    let mut text = String::new();
    for c in path.chars() {
        match c {
            '*' | '?' | '[' => text.extend(['[', c, ']']),
            c => text.push(c),
        }
    }
    text
}
