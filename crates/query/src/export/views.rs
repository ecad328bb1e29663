//! Views of the data sets for DuckDB: each table under its own name.

use std::path::Path;

use super::TRANSACTIONS;
use super::target::name_of;

/// The statements, for the tables with these folders.
pub(super) fn statements(folder: &Path, tables: Vec<(String, String)>) -> String {
    let mut text =
        "-- Views of the tables for DuckDB: duckdb -init views.sql. Each export writes this file anew.\n"
            .to_owned();
    text.push_str(&view("transactions", folder, TRANSACTIONS));
    let mut last = None;
    for (database, table) in tables {
        let schema = quoted(&name_of(&database), '"');
        if last.as_ref() != Some(&schema) {
            text.push_str(&format!("CREATE SCHEMA IF NOT EXISTS {schema};\n"));
        }
        let name = format!("{schema}.{}", quoted(&name_of(&table), '"'));
        text.push_str(&view(&name, folder, &format!("{database}/{table}")));
        last = Some(schema);
    }
    text
}

fn view(name: &str, folder: &Path, data_set: &str) -> String {
    let files = quoted(&format!("{}/{data_set}/**/*.parquet", folder.display()), '\'');
    format!(
        "CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet({files}, union_by_name = true, hive_partitioning = true);\n"
    )
}

fn quoted(text: &str, quote: char) -> String {
    format!("{quote}{}{quote}", text.replace(quote, &format!("{quote}{quote}")))
}
