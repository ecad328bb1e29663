//! Views of the data sets for DuckDB: each table under its own name.

use std::collections::BTreeMap;
use std::path::Path;

use super::TRANSACTIONS;
use super::target::name_of;

/// How a file of views begins.
const HEAD: &str = "-- Views of the tables for DuckDB: duckdb -init views.sql. Each export writes this file anew.
-- DuckDB 2.0.0 fails at ORDER BY … LIMIT over a condition on a field, as in after.id = 42, with this optimizer.
SET disabled_optimizers = 'late_materialization';
";

/// Views of the data sets in a folder, for the tables with these folders: all files that are there.
pub(super) fn of_folder(folder: &Path, tables: Vec<(String, String)>) -> String {
    let files = |data_set: &str| quoted(&format!("{}/{data_set}/**/*.parquet", folder.display()), '\'');
    let transactions = (TRANSACTIONS.to_owned(), files(TRANSACTIONS));
    let tables = tables.into_iter().map(|(database, table)| {
        let data_set = format!("{database}/{table}");
        let files = files(&data_set);
        (data_set, files)
    });
    statements(std::iter::once(transactions).chain(tables))
}

/// Views of these files below a place, and of no others.
pub(super) fn of_files(place: &str, files: Vec<&str>) -> String {
    let mut sets: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in files {
        let depth = if file.starts_with(TRANSACTIONS) { 0 } else { 1 };
        let end = file.match_indices('/').nth(depth).map_or(file.len(), |(end, _)| end);
        let (set, _) = file.split_at_checked(end).unwrap_or((file, ""));
        sets.entry(set).or_default().push(quoted(&format!("{place}/{file}"), '\''));
    }
    statements(sets.into_iter().map(|(set, files)| (set.to_owned(), format!("[{}]", files.join(", ")))))
}

/// The statements, for data sets and where their files are.
fn statements(sets: impl Iterator<Item = (String, String)>) -> String {
    let mut text = HEAD.to_owned();
    let mut last = None;
    for (data_set, files) in sets {
        let name = match data_set.split_once('/') {
            None => "transactions".to_owned(),
            Some((database, table)) => {
                let schema = quoted(&name_of(database), '"');
                if last.as_ref() != Some(&schema) {
                    text.push_str(&format!("CREATE SCHEMA IF NOT EXISTS {schema};\n"));
                }
                let name = format!("{schema}.{}", quoted(&name_of(table), '"'));
                last = Some(schema);
                name
            }
        };
        text.push_str(&format!(
            "CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet({files}, union_by_name = true, hive_partitioning = true);\n"
        ));
    }
    text
}

fn quoted(text: &str, quote: char) -> String {
    format!("{quote}{}{quote}", text.replace(quote, &format!("{quote}{quote}")))
}
