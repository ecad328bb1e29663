//! The worker process: it plans and runs statements for a server, one at a time. A statement can harm only this process:
//! the server then ends it and starts another.

use std::io::Cursor;
use std::pin::pin;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::{IpcMessage, SchemaAsIpc};
use binlogz_query::{AskTables, ParameterValues, Queries, Query};
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::IpcWriteOptions;
use datafusion::common::ScalarValue;
use futures_util::TryStreamExt;
use prost::Message;
use prost::bytes::Bytes;
use tokio::io::{AsyncWriteExt, Stdout};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tonic::{Code, Status};

use crate::Error;
use crate::frames::{AskedStatement, FrameKind, Frames, frame};
use crate::status;

/// The server ends a worker whose rows nobody takes.
const PATIENCE: Duration = Duration::from_secs(365 * 86_400);

/// The most bytes of a message of rows. Several rows are cut into messages of some megabytes, but one is not, and the server holds
/// messages until their clients take them.
const ROWS_SIZE_MAX: usize = 64 << 20;

/// Someone who waits for the user tables that there are.
type WaitsForTables = SyncSender<Result<Vec<u8>, String>>;

/// A worker's questions for its server.
#[derive(Debug)]
pub struct WorkerQuestions(UnboundedReceiver<WaitsForTables>);

/// Two ends: the one by which a worker's engine asks for the user tables, and the one that takes its questions to the
/// server.
pub fn questions() -> (AskTables, WorkerQuestions) {
    let (sender, receiver) = unbounded_channel::<WaitsForTables>();
    let ask = move || {
        let (answer, answered) = sync_channel(1);
        let asked = sender.send(answer).map_err(|_| ());
        asked
            .and_then(|()| answered.recv().map_err(|_| ()))
            .unwrap_or_else(|()| Err("the server ended".to_owned()))
    };
    (Arc::new(ask), WorkerQuestions(receiver))
}

/// Answers a server on standard input and output, until it ends.
///
/// # Errors
///
/// A server that says something else.
pub async fn work(queries: Queries, mut questions: WorkerQuestions) -> Result<(), Error> {
    let mut frames = Frames::new(tokio::io::stdin());
    let output = Output::new(tokio::io::stdout());
    let failed = |error: &dyn std::fmt::Display| Error::of(&"server", error);
    send(&output, FrameKind::Ready, &[]).await?;
    // A request that came before the last answer was all written: the server has read it already.
    let mut early = None;
    loop {
        let next = match early.take() {
            Some(early) => Some(early),
            None => frames.next().await.map_err(|error| failed(&error))?,
        };
        let Some((kind, body)) = next else { return Ok(()) };
        let asked = AskedStatement::of(body).ok_or_else(|| failed(&"a request that is none"))?;
        let mut answered = pin!(answer(&queries, kind, asked, &output));
        let mut waiting = Vec::new();
        let answered = loop {
            tokio::select! {
                answered = answered.as_mut() => break answered,
                Some(waits) = questions.0.recv() => {
                    waiting.push(waits);
                    send(&output, FrameKind::AskTables, &[]).await?;
                }
                told = frames.next(), if early.is_none() => {
                    let told = match told {
                        Ok(Some((FrameKind::Tables, body))) => Ok(body.to_vec()),
                        Ok(Some((FrameKind::NoTables, body))) => Err(String::from_utf8_lossy(&body).into_owned()),
                        Ok(Some(request)) => {
                            early = Some(request);
                            continue;
                        }
                        // The server has ended.
                        Ok(None) | Err(_) => process::exit(0),
                    };
                    if let Some(waits) = waiting.pop() {
                        // The statement that asked may have been stopped.
                        let _ = waits.send(told);
                    }
                }
            }
        };
        if let Err(status) = answered {
            let blame = [u8::try_from(i32::from(status.code())).unwrap_or_default()];
            send(&output, FrameKind::Failed, &[&blame, status.message().as_bytes()]).await?;
        }
    }
}

/// Standard output, for one frame at a time.
type Output = Mutex<Stdout>;

async fn send(output: &Output, kind: FrameKind, parts: &[&[u8]]) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::of(&"server", &error);
    let mut output = output.lock().await;
    output.write_all(&frame(kind, parts).map_err(failed)?).await.map_err(failed)?;
    output.flush().await.map_err(failed)
}

async fn answer(
    queries: &Queries,
    kind: FrameKind,
    asked: AskedStatement,
    output: &Output,
) -> Result<(), Status> {
    let memory = usize::try_from(asked.memory).unwrap_or(usize::MAX);
    let queries = queries.within(memory).map_err(status)?;
    let query = queries.plan(&asked.statement).await.map_err(status)?;
    let values = values_of(asked.values)?;
    let has_values = values.names().next().is_some();
    let query = match has_values {
        true => queries.bound(query, values).await.map_err(status)?,
        false => query,
    };
    let lost = |error: Error| Status::internal(error.to_string());
    match kind {
        FrameKind::Plan => planned(output, &query).await,
        FrameKind::Run => {
            let rows = queries
                .run(query.clone(), &ParameterValues::default(), PATIENCE, ())
                .await
                .map_err(status)?;
            planned(output, &query).await?;
            let schema = rows.schema();
            let rows = rows.map_err(|error| FlightError::Tonic(Box::new(status(error))));
            let mut data = FlightDataEncoderBuilder::new().with_schema(schema).build(rows);
            loop {
                match data.try_next().await {
                    Ok(Some(data)) => {
                        let size = data.encoded_len();
                        if size > ROWS_SIZE_MAX {
                            return Err(too_large(size));
                        }
                        send(output, FrameKind::Rows, &[&data.encode_to_vec()]).await.map_err(lost)?;
                    }
                    Ok(None) => return send(output, FrameKind::End, &[]).await.map_err(lost),
                    Err(FlightError::Tonic(status)) => return Err(*status),
                    Err(other) => return Err(Status::internal(other.to_string())),
                }
            }
        }
        FrameKind::Tables
        | FrameKind::NoTables
        | FrameKind::AskTables
        | FrameKind::Ready
        | FrameKind::Planned
        | FrameKind::Rows
        | FrameKind::End
        | FrameKind::Failed => Err(Status::new(Code::Internal, "a request that is none")),
    }
}

fn too_large(size: usize) -> Status {
    let size = size >> 20;
    let max = ROWS_SIZE_MAX >> 20;
    Status::resource_exhausted(format!(
        "a row takes {size} MiB as a message, expected at most {max} MiB: leave its large columns out, or ask binlogz sql, which has no \
         such limit"
    ))
}

async fn planned(output: &Output, query: &Query) -> Result<(), Status> {
    let columns = schema_bytes(&query.schema())?;
    let parameters = schema_bytes(&query.parameters())?;
    let size = |bytes: &Bytes| u32::try_from(bytes.len()).map(u32::to_le_bytes);
    let (Ok(columns_size), Ok(parameters_size)) = (size(&columns), size(&parameters)) else {
        return Err(Status::internal("too many columns"));
    };
    let parts: [&[u8]; 4] = [&columns_size, &columns, &parameters_size, &parameters];
    send(output, FrameKind::Planned, &parts).await.map_err(|error| Status::internal(error.to_string()))
}

fn schema_bytes(schema: &Schema) -> Result<Bytes, Status> {
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &IpcWriteOptions::default()));
    message.map(|message| message.0).map_err(|error| Status::internal(error.to_string()))
}

/// The values of parameters, by the names of their columns.
fn values_of(stream: Bytes) -> Result<ParameterValues, Status> {
    let mut values = ParameterValues::default();
    if stream.is_empty() {
        return Ok(values);
    }
    let failed = |error: &dyn std::fmt::Display| Status::invalid_argument(error.to_string());
    for batch in StreamReader::try_new(Cursor::new(stream), None).map_err(|error| failed(&error))? {
        let batch = batch.map_err(|error| failed(&error))?;
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            let value = ScalarValue::try_from_array(column, 0);
            values.set(field.name(), value.map_err(|error| failed(&error))?);
        }
    }
    Ok(values)
}
