//! Listings: catalogs, schemas, tables, keys, types, and facts about the server. Logs have no foreign keys, and don't
//! always tell primary keys, so both listings are empty.

use std::sync::Arc;

use arrow_flight::sql::metadata::{SqlInfoDataBuilder, XdbcTypeInfoDataBuilder};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables,
    CommandGetXdbcTypeInfo, SqlInfo, SqlSupportedCaseSensitivity,
};
use binlogz_query::{Error, Names, Result};
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

const TABLE: &str = "TABLE";
/// A table's type in information_schema: Grafana's data source asks for it.
const BASE_TABLE: &str = "BASE TABLE";

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Sql(error.to_string())
}

pub(crate) fn catalogs(query: CommandGetCatalogs) -> Result<RecordBatch> {
    let mut listing = query.into_builder();
    listing.append(Names::CATALOG);
    listing.build().map_err(failed)
}

pub(crate) fn schemas(query: CommandGetDbSchemas, names: &Names) -> Result<RecordBatch> {
    let mut listing = query.into_builder();
    let mut schemas: Vec<_> = names.tables()?.into_iter().map(|(schema, _)| schema).collect();
    schemas.sort();
    schemas.dedup();
    schemas.iter().for_each(|schema| listing.append(Names::CATALOG, schema));
    listing.build().map_err(failed)
}

/// Tables; their columns are looked for only of those that are asked for, since that reads logs.
pub(crate) fn tables(mut query: CommandGetTables, names: &Names) -> Result<RecordBatch> {
    if query.table_types.iter().any(|kind| kind == BASE_TABLE) {
        query.table_types.push(TABLE.to_owned());
    }
    let mut listing = CommandGetTables { include_schema: false, ..query.clone() }.into_builder();
    let none = Schema::empty();
    for (schema, table) in names.tables()? {
        listing.append(Names::CATALOG, schema, table, TABLE, &none).map_err(failed)?;
    }
    let found = listing.build().map_err(failed)?;
    if !query.include_schema {
        return Ok(found);
    }
    let mut listing = query.into_builder();
    let text =
        |name: &str| found.column_by_name(name).and_then(|column| column.as_string_opt::<i32>().cloned());
    let (Some(schemas), Some(tables)) = (text("db_schema_name"), text("table_name")) else {
        return Ok(found);
    };
    for (schema, table) in schemas.iter().flatten().zip(tables.iter().flatten()) {
        let columns = names.columns(schema, table)?.unwrap_or_else(|| Arc::new(Schema::empty()));
        listing.append(Names::CATALOG, schema, table, TABLE, &columns).map_err(failed)?;
    }
    listing.build().map_err(failed)
}

pub(crate) fn table_types(query: CommandGetTableTypes) -> Result<RecordBatch> {
    let mut listing = query.into_builder();
    listing.append(TABLE);
    listing.build().map_err(failed)
}

/// The abilities of the server.
pub(crate) fn info(query: CommandGetSqlInfo) -> Result<RecordBatch> {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "binlogz");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    info.append(SqlInfo::FlightSqlServerReadOnly, true);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerTransaction, 0_i32);
    info.append(SqlInfo::FlightSqlServerCancel, true);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, false);
    info.append(SqlInfo::SqlDdlCatalog, false);
    info.append(SqlInfo::SqlDdlSchema, false);
    info.append(SqlInfo::SqlDdlTable, false);
    info.append(SqlInfo::SqlAllTablesAreSelectable, true);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(SqlInfo::SqlIdentifierCase, SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32);
    info.append(
        SqlInfo::SqlQuotedIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityCaseInsensitive as i32,
    );
    info.append(SqlInfo::SqlCatalogTerm, "catalog");
    info.append(SqlInfo::SqlSchemaTerm, "database");
    let info = info.build().map_err(failed)?;
    query.into_builder(&info).build().map_err(failed)
}

/// No types: each tool has names of its own for Arrow's.
pub(crate) fn types(query: CommandGetXdbcTypeInfo) -> Result<RecordBatch> {
    let types = XdbcTypeInfoDataBuilder::new().build().map_err(failed)?;
    query.into_builder(&types).build().map_err(failed)
}

fn text(name: &str, is_nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, is_nullable)
}

/// No primary keys, in the columns of the protocol.
pub(crate) fn primary_keys() -> RecordBatch {
    empty(Schema::new(vec![
        text("catalog_name", true),
        text("db_schema_name", true),
        text("table_name", false),
        text("column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("key_name", true),
    ]))
}

/// No foreign keys, in the columns of the protocol.
pub(crate) fn foreign_keys() -> RecordBatch {
    empty(Schema::new(vec![
        text("pk_catalog_name", true),
        text("pk_db_schema_name", true),
        text("pk_table_name", false),
        text("pk_column_name", false),
        text("fk_catalog_name", true),
        text("fk_db_schema_name", true),
        text("fk_table_name", false),
        text("fk_column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name", true),
        text("pk_key_name", true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}

fn empty(schema: Schema) -> RecordBatch {
    let schema: SchemaRef = Arc::new(schema);
    RecordBatch::new_empty(schema)
}
