//! Tables and scans as bytes, on their way to the machines of a cluster. They hold places, conditions and columns; no key, no
//! password and no open file: each machine reads with its own.
//!
//! ```text
//! magic    9       zero, which begins no protocol buffer; "binlogz"; version
//! json     bytes   length as 4 bytes, little-endian; then what it is
//! schemas  bytes   for each schema: length as 4 bytes, then Arrow's IPC stream of it without batches
//! ```

use std::io::Cursor;
use std::sync::Arc;

use binlogz_schema::TablesOfLogs;
use datafusion::arrow::datatypes::{Fields, Schema, SchemaRef};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::error::DataFusionError;
use datafusion::physical_plan::ExecutionPlan;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::catalog::table::LogTable;
use crate::error::LogError;
use crate::logs::division::Division;
use crate::logs::wanted::WantedLogs;
use crate::logs::{Logs, Site, apart};
use crate::scan::ScanPlan;
use crate::scan::pieces::PieceScan;
use crate::tables::{MadeColumn, TableShape};

const MAGIC: [u8; 8] = *b"\0binlogz";
/// Machines of a cluster have the same.
const VERSION: u8 = 1;

/// The threads of a scan: tasks run beside each other, so each decodes with one.
const WORKERS: usize = 1;

/// A shape without its columns, which are Arrow's.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ShapeName {
    Transactions,
    Changes,
    Events,
    Table,
}

#[derive(Debug, Serialize, Deserialize)]
struct ShippedTable {
    shape: ShapeName,
    all: WantedLogs,
    division: Division,
    /// CREATE TABLE statements.
    schema: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ShippedScan {
    shape: ShapeName,
    wanted: WantedLogs,
    outputs: Vec<MadeColumn>,
    limit: Option<usize>,
    schema: Option<String>,
}

/// A table as bytes; `None`: it is none over logs that a cluster reads.
///
/// # Errors
///
/// None that an input causes.
pub fn encode_table(table: &dyn TableProvider) -> Result<Option<Vec<u8>>> {
    let Some(table) = table.downcast_ref::<LogTable>() else { return Ok(None) };
    let Some((logs, shape, all, division)) = table.shipped() else {
        return internal_err!("a table that this process reads can't be sent to others");
    };
    let (shape, fields) = named(shape);
    let schema = schema_for(&shape, logs, all)?;
    let shipped = ShippedTable { shape, all: all.clone(), division: division.clone(), schema };
    encode(&shipped, &[&Schema::new(fields)]).map(Some)
}

/// The table of these bytes; `None`: they are of something else.
///
/// # Errors
///
/// Bytes of another version of this program.
pub fn decode_table(bytes: &[u8]) -> Result<Option<Arc<dyn TableProvider>>> {
    let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Ok(None) };
    let (table, [fields]): (ShippedTable, _) = decode(rest)?;
    let reader = shape(table.shape, &fields).reader();
    let logs = no_logs(table.schema)?;
    let table = LogTable::new(logs, reader, table.all, WORKERS).divided(Some(table.division.into()));
    Ok(Some(Arc::new(table)))
}

/// A scan as bytes, without the source of its pieces; `None`: the plan is another.
///
/// # Errors
///
/// None that an input causes.
pub fn encode_scan(plan: &dyn ExecutionPlan) -> Result<Option<Vec<u8>>> {
    let Some(plan) = plan.downcast_ref::<PieceScan>() else { return Ok(None) };
    let scan = plan.scan();
    let (shape, fields) = named(scan.reader.shape());
    let shipped = ShippedScan {
        schema: schema_for(&shape, &scan.logs, &scan.wanted)?,
        shape,
        wanted: scan.wanted.clone(),
        outputs: scan.outputs.clone(),
        limit: scan.limit,
    };
    encode(&shipped, &[&Schema::new(fields), &scan.schema]).map(Some)
}

/// The scan of these bytes, over a source of pieces; `None`: they are of something else. `site`: where it is to read.
///
/// # Errors
///
/// Bytes of another version of this program.
pub fn decode_scan(
    bytes: &[u8],
    inputs: &[Arc<dyn ExecutionPlan>],
    site: &Arc<Site>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Ok(None) };
    let [pieces] = inputs else { return internal_err!("a scan without pieces") };
    let (scan, [fields, schema]): (ShippedScan, _) = decode(rest)?;
    let scan = ScanPlan {
        logs: no_logs(scan.schema)?,
        reader: shape(scan.shape, &fields).reader(),
        wanted: scan.wanted,
        outputs: scan.outputs,
        schema,
        limit: scan.limit,
        workers: WORKERS,
        // Nothing is planned any more.
        bytes: None,
    };
    Ok(Some(Arc::new(PieceScan::new(scan, Arc::clone(pieces), Arc::clone(site)))))
}

/// The CREATE TABLE statements that rows of this shape need.
///
/// # Errors
///
/// Logs whose statements may have changed the tables that are wanted: parts of logs don't tell what a table was.
fn schema_for(shape: &ShapeName, logs: &Logs, wanted: &WantedLogs) -> Result<Option<String>> {
    let may_change = |tables: &TablesOfLogs| match wanted.one_table() {
        Some((database, table)) => tables.may_change(database, table),
        None => tables.has_statements(),
    };
    match shape {
        ShapeName::Changes | ShapeName::Table if apart(|| logs.tables())?.is_some_and(may_change) => {
            let what = "the logs have DDL of these tables, which executors don't see; expected no --cluster with --schema there";
            Err(LogError(what.to_owned()).into())
        }
        ShapeName::Changes | ShapeName::Table => Ok(logs.schema_text().map(str::to_owned)),
        ShapeName::Transactions | ShapeName::Events => Ok(None),
    }
}

/// No logs, with these CREATE TABLE statements.
fn no_logs(schema: Option<String>) -> Result<Arc<Logs>> {
    let logs = Logs::default();
    let logs = match schema {
        Some(text) => logs.with_schema(text).map_err(|error| DataFusionError::External(Box::new(error)))?,
        None => logs,
    };
    Ok(Arc::new(logs))
}

fn named(shape: TableShape) -> (ShapeName, Fields) {
    match shape {
        TableShape::Transactions => (ShapeName::Transactions, Fields::empty()),
        TableShape::Changes => (ShapeName::Changes, Fields::empty()),
        TableShape::Events => (ShapeName::Events, Fields::empty()),
        TableShape::Table(fields) => (ShapeName::Table, fields),
    }
}

fn shape(name: ShapeName, fields: &Schema) -> TableShape {
    match name {
        ShapeName::Transactions => TableShape::Transactions,
        ShapeName::Changes => TableShape::Changes,
        ShapeName::Events => TableShape::Events,
        ShapeName::Table => TableShape::Table(fields.fields().clone()),
    }
}

fn encode(shipped: &impl Serialize, schemas: &[&Schema]) -> Result<Vec<u8>> {
    let mut out = MAGIC.to_vec();
    out.push(VERSION);
    let json = serde_json::to_vec(shipped).map_err(|error| DataFusionError::External(Box::new(error)))?;
    push(&mut out, &json)?;
    for schema in schemas {
        let mut stream = Vec::new();
        StreamWriter::try_new(&mut stream, schema)?.finish()?;
        push(&mut out, &stream)?;
    }
    Ok(out)
}

fn push(out: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    let size = u32::try_from(bytes.len()).map_err(|_| internal_datafusion_err!("a plan beyond 4 GiB"))?;
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// Decodes the bytes after the magic.
fn decode<T: DeserializeOwned, const N: usize>(bytes: &[u8]) -> Result<(T, [SchemaRef; N])> {
    let Some((&VERSION, mut rest)) = bytes.split_first() else {
        return internal_err!(
            "the plan is of another version of binlogz: expected {VERSION}, found {:?}",
            bytes.first()
        );
    };
    let json = take(&mut rest)?;
    let shipped = serde_json::from_slice(json).map_err(|error| DataFusionError::External(Box::new(error)))?;
    let mut schemas = Vec::with_capacity(N);
    for _ in 0..N {
        schemas.push(StreamReader::try_new(Cursor::new(take(&mut rest)?), None)?.schema());
    }
    match (<[SchemaRef; N]>::try_from(schemas), rest.is_empty()) {
        (Ok(schemas), true) => Ok((shipped, schemas)),
        _ => internal_err!("a plan with {} bytes too many", rest.len()),
    }
}

fn take<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    let taken = rest.split_first_chunk::<4>().and_then(|(size, after)| {
        let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
        after.split_at_checked(size)
    });
    let Some((taken, after)) = taken else { return internal_err!("a plan that ends early") };
    *rest = after;
    Ok(taken)
}
