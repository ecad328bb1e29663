//! Asks workers: statements as plans and as messages of rows, in the protocol's types.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow_flight::{FlightData, IpcMessage};
use binlogz_query_server::{AskedStatement, Blame, RowMessages, StatementRefusal, Workers, sized};
use datafusion::arrow::datatypes::Schema;
use futures_util::Stream;
use prost::Message;
use prost::bytes::Bytes;
use tokio::task::AbortHandle;
use tonic::Status;

use crate::worker::FLIGHT;

/// A statement that was planned.
#[derive(Debug, Clone)]
pub(crate) struct PlannedStatement {
    /// The schema of its rows, as Arrow's IPC has it.
    pub(crate) columns: Bytes,
    /// The schema of its parameters, as Arrow's IPC has it.
    pub(crate) parameters: Bytes,
}

impl PlannedStatement {
    fn of(mut plan: Bytes) -> Result<Self, Status> {
        let parts = sized(&mut plan).and_then(|columns| Some((columns, sized(&mut plan)?)));
        let (columns, parameters) = parts.ok_or_else(|| Status::internal("a schema that ends early"))?;
        Ok(PlannedStatement { columns, parameters })
    }

    /// The columns of its parameters.
    pub(crate) fn parameters(&self) -> Result<Schema, Status> {
        let schema = Schema::try_from(IpcMessage(self.parameters.clone()));
        schema.map_err(|error| Status::internal(error.to_string()))
    }

    /// Bytes that it takes.
    pub(crate) fn size(&self) -> usize {
        self.columns.len() + self.parameters.len()
    }
}

/// The rows of a query as they come. Without it the query ends.
#[derive(Debug)]
pub(crate) struct FlightRows(RowMessages);

impl FlightRows {
    /// Ends the query when it is called; its rows end with an error then.
    pub(crate) fn stopper(&self) -> AbortHandle {
        self.0.stopper()
    }
}

impl Stream for FlightRows {
    type Item = Result<FlightData, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(context).map(|next| {
            next.map(|message| {
                let data = FlightData::decode(message.map_err(status)?);
                data.map_err(|error| Status::internal(format!("rows: {error}")))
            })
        })
    }
}

fn asked(statement: String, values: Bytes) -> AskedStatement {
    AskedStatement { protocol: FLIGHT, statement, values, ..AskedStatement::default() }
}

/// Plans a statement.
pub(crate) async fn plan(
    workers: &Arc<Workers>,
    account: &str,
    statement: String,
    values: Bytes,
) -> Result<PlannedStatement, Status> {
    PlannedStatement::of(workers.plan(account, asked(statement, values)).await.map_err(status)?)
}

/// Plans a statement and runs it, as [`Workers::run`].
pub(crate) async fn run(
    workers: &Arc<Workers>,
    account: &str,
    (statement, values): (String, Bytes),
    patience: Duration,
    kept: impl Send + 'static,
) -> Result<FlightRows, Status> {
    let rows = workers.run(account, asked(statement, values), patience, kept).await;
    rows.map(FlightRows).map_err(status)
}

/// A refusal as gRPC has it.
pub(crate) fn status(refusal: StatementRefusal) -> Status {
    let StatementRefusal { blame, number: _, line } = refusal;
    match blame {
        Blame::Statement => Status::invalid_argument(line),
        Blame::Limit => Status::resource_exhausted(line),
        Blame::Logs => Status::data_loss(line),
        Blame::Stopped => Status::cancelled(line),
        Blame::Time => Status::deadline_exceeded(line),
        Blame::Unavailable => Status::unavailable(line),
        Blame::Program => Status::internal(line),
    }
}
