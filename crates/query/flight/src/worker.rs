//! A worker's half of the protocol: a statement as rows in Flight's messages.
//!
//! ```text
//! planned: the columns, then the parameters, as schemas of Arrow's IPC, each after its size of 4 bytes
//! rows:    FlightData
//! values of parameters: one row, as Arrow's IPC stream
//! ```

use std::io::Cursor;

use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::{IpcMessage, SchemaAsIpc};
use binlogz_query::{ParameterValues, Queries, Query};
use binlogz_query_server::{
    AnswerFuture, AskedStatement, Blame, ROWS_PATIENCE, StatementRefusal, StatementWork, WorkerOutput,
    WorkerProtocol,
};
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::IpcWriteOptions;
use datafusion::common::ScalarValue;
use futures_util::TryStreamExt;
use prost::Message;
use prost::bytes::Bytes;

/// The number of this protocol.
pub(crate) const FLIGHT: u8 = b'f';

/// Answers statements that came by Flight SQL.
#[derive(Debug, Clone, Copy, Default)]
pub struct FlightAnswers;

impl WorkerProtocol for FlightAnswers {
    fn code(&self) -> u8 {
        FLIGHT
    }

    fn answer<'a>(
        &'a self,
        queries: &'a Queries,
        work: StatementWork,
        asked: AskedStatement,
        output: &'a WorkerOutput,
    ) -> AnswerFuture<'a> {
        Box::pin(answer(queries, work, asked, output))
    }
}

fn fault(error: impl std::fmt::Display) -> StatementRefusal {
    StatementRefusal::new(Blame::Program, error.to_string())
}

async fn answer(
    queries: &Queries,
    work: StatementWork,
    asked: AskedStatement,
    output: &WorkerOutput,
) -> Result<(), StatementRefusal> {
    let query = queries.plan(&asked.statement).await?;
    let values = values_of(asked.values)?;
    let has_values = values.names().next().is_some();
    let query = match has_values {
        true => queries.bound(query, values).await?,
        false => query,
    };
    if work == StatementWork::Plan {
        return planned(output, &query).await;
    }
    let rows = queries.run(query.clone(), &ParameterValues::default(), ROWS_PATIENCE, ()).await?;
    planned(output, &query).await?;
    let schema = rows.schema();
    let rows = rows.map_err(|error| FlightError::ExternalError(Box::new(StatementRefusal::from(error))));
    let mut data = FlightDataEncoderBuilder::new().with_schema(schema).build(rows);
    loop {
        match data.try_next().await {
            Ok(Some(data)) => output.rows(&data.encode_to_vec()).await?,
            Ok(None) => return output.end().await,
            Err(FlightError::ExternalError(error)) => {
                return Err(match error.downcast::<StatementRefusal>() {
                    Ok(refusal) => *refusal,
                    Err(other) => fault(other),
                });
            }
            Err(other) => return Err(fault(other)),
        }
    }
}

async fn planned(output: &WorkerOutput, query: &Query) -> Result<(), StatementRefusal> {
    let columns = schema_bytes(&query.schema())?;
    let parameters = schema_bytes(&query.parameters())?;
    let size = |bytes: &Bytes| u32::try_from(bytes.len()).map(u32::to_le_bytes);
    let (Ok(columns_size), Ok(parameters_size)) = (size(&columns), size(&parameters)) else {
        return Err(fault("too many columns"));
    };
    output.planned(&[&columns_size, &columns, &parameters_size, &parameters]).await
}

fn schema_bytes(schema: &Schema) -> Result<Bytes, StatementRefusal> {
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &IpcWriteOptions::default()));
    message.map(|message| message.0).map_err(fault)
}

/// The values of parameters, by the names of their columns.
fn values_of(stream: Bytes) -> Result<ParameterValues, StatementRefusal> {
    let mut values = ParameterValues::default();
    if stream.is_empty() {
        return Ok(values);
    }
    for batch in StreamReader::try_new(Cursor::new(stream), None).map_err(wrong)? {
        let batch = batch.map_err(wrong)?;
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            values.set(field.name(), ScalarValue::try_from_array(column, 0).map_err(wrong)?);
        }
    }
    Ok(values)
}

fn wrong(error: impl std::fmt::Display) -> StatementRefusal {
    StatementRefusal::new(Blame::Statement, error.to_string())
}
