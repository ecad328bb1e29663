//! The protocol's requests as queries. A plain statement travels in its ticket, so the server keeps nothing for it between planning
//! and fetching; a prepared one is its session's.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::server::{FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, CommandGetCatalogs,
    CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
    CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementIngest,
    CommandStatementQuery, CommandStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt, SqlInfo,
    TicketStatementQuery,
};
use arrow_flight::{
    Action, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightDescriptor, FlightEndpoint,
    FlightInfo, HandshakeRequest, HandshakeResponse, IpcMessage, SchemaAsIpc, Ticket,
};
use binlogz_query::{Error, Names, Queries, Query, Values};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::ipc::writer::IpcWriteOptions;
use datafusion::common::ScalarValue;
use futures_util::future::{AbortHandle, Abortable, ready};
use futures_util::{Stream, TryStreamExt, stream};
use prost::Message;
use tokio::sync::Semaphore;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};

use crate::Tell;
use crate::listings;
use crate::sessions::{Session, Sessions};

/// Before a login is denied: guessing is slow.
const DENIAL: Duration = Duration::from_secs(1);
/// Logins that are denied at once; more wait, so that guessing isn't quicker in parallel.
const DENIALS_MAX: usize = 8;
/// The method that logs in.
const BASIC: &str = "basic ";

const CANCEL_FLIGHT_INFO: &str = "CancelFlightInfo";
const CLOSE_SESSION: &str = "CloseSession";

type DataStream = <Service as FlightService>::DoGetStream;
type Answer<T> = Result<Response<T>, Status>;

/// What clients reach.
#[derive(Clone)]
pub(crate) struct Service {
    queries: Queries,
    sessions: Arc<Sessions>,
    tell: Tell,
    slots: Arc<Semaphore>,
    denials: Arc<Semaphore>,
    idle: Duration,
}

impl Service {
    pub(crate) fn new(
        queries: Queries,
        sessions: Arc<Sessions>,
        tell: Tell,
        queries_max: usize,
        idle: Duration,
    ) -> Self {
        let (slots, denials) = (Arc::new(Semaphore::new(queries_max)), Arc::new(Semaphore::new(DENIALS_MAX)));
        Service { queries, sessions, tell, slots, denials, idle }
    }

    /// Runs a query and sends its rows. It ends if the client goes, is stopped, or doesn't take rows for long; a prepared one has
    /// its statement's name.
    async fn rows(
        &self,
        planned: impl Future<Output = Result<Query, Status>>,
        values: &Values,
        session: Arc<Session>,
        (ticket, statement): (Vec<u8>, Option<Vec<u8>>),
    ) -> Answer<DataStream> {
        let (stopper, stopped) = AbortHandle::new_pair();
        let entry = Arc::new(session.begins(ticket, statement, stopper)?);
        // Both are given back when the query ends, not when its client notices.
        let held = Arc::clone(&entry);
        let begins = async {
            let query = planned.await?;
            let slot = Arc::clone(&self.slots).acquire_owned().await;
            let slot = slot.map_err(|_| Status::unavailable("the server ends"))?;
            self.queries.run(query, values, self.idle, (held, slot)).await.map_err(status)
        };
        let begun = Abortable::new(begins, stopped).await;
        let rows = begun.map_err(|_| status(Error::Stopped))??;
        entry.has_begun(rows.stopper());
        let schema = rows.schema();
        let rows = rows.map_err(|error| FlightError::Tonic(Box::new(status(error))));
        Ok(Response::new(encoded(schema, rows)))
    }

    /// A listing that may read logs.
    async fn listing(
        &self,
        make: impl FnOnce(&Names) -> binlogz_query::Result<RecordBatch> + Send + 'static,
    ) -> Answer<DataStream> {
        let batch = self.queries.apart(make).await.map_err(status)?;
        Ok(Response::new(one(batch)))
    }

    fn stop(&self, info: Option<&FlightInfo>, session: &Session) -> bool {
        let tickets = info.into_iter().flat_map(|info| &info.endpoint).filter_map(|end| end.ticket.as_ref());
        tickets.filter(|ticket| session.stop(&ticket.ticket)).count() > 0
    }
}

/// The session that the guard found.
fn session<T>(request: &Request<T>) -> Result<Arc<Session>, Status> {
    let session = request.extensions().get::<Arc<Session>>();
    session.cloned().ok_or_else(|| Status::unauthenticated("log in first"))
}

/// An error as gRPC has it, sorted by blame.
fn status(error: Error) -> Status {
    let line = error.to_string();
    match error {
        Error::Sql(_) => Status::invalid_argument(line),
        Error::Memory { .. } | Error::Temporary(_) => Status::resource_exhausted(line),
        Error::Log(_) => Status::data_loss(line),
        Error::Stopped => Status::cancelled(line),
        _ => Status::internal(line),
    }
}

fn encoded(
    schema: SchemaRef,
    batches: impl Stream<Item = Result<RecordBatch, FlightError>> + Send + 'static,
) -> DataStream {
    let encoder = FlightDataEncoderBuilder::new().with_schema(schema).build(batches);
    Box::pin(encoder.map_err(|error| match error {
        FlightError::Tonic(status) => *status,
        other => Status::internal(other.to_string()),
    }))
}

fn one(batch: RecordBatch) -> DataStream {
    encoded(batch.schema(), stream::iter([Ok(batch)]))
}

/// Where the rows of a command are fetched: here, with this ticket.
fn info(schema: &Schema, ticket: &impl ProstMessageExt, descriptor: FlightDescriptor) -> Answer<FlightInfo> {
    let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(ticket.as_any().encode_to_vec()));
    let info = FlightInfo::new().try_with_schema(schema);
    let info = info.map_err(|error| Status::internal(error.to_string()))?;
    Ok(Response::new(info.with_endpoint(endpoint).with_descriptor(descriptor)))
}

/// The info of a listing: its schema doesn't depend on what is in it.
fn listing_info(
    batch: binlogz_query::Result<RecordBatch>,
    ticket: &impl ProstMessageExt,
    request: Request<FlightDescriptor>,
) -> Answer<FlightInfo> {
    info(&batch.map_err(status)?.schema(), ticket, request.into_inner())
}

fn schema_bytes(schema: &Schema) -> Result<prost::bytes::Bytes, Status> {
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &IpcWriteOptions::default()));
    message.map(|message| message.0).map_err(|error| Status::internal(error.to_string()))
}

fn only_reads() -> Status {
    Status::invalid_argument("statements can only read")
}

/// The values of parameters: one row with a column for each, in their order.
async fn values(request: Request<PeekableFlightDataStream>, parameters: &Schema) -> Result<Values, Status> {
    let data = request.into_inner().into_peekable().map_err(|status| FlightError::Tonic(Box::new(status)));
    let batches: Vec<RecordBatch> = FlightRecordBatchStream::new_from_flight_data(data)
        .try_collect()
        .await
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let batch = batches.iter().find(|batch| batch.num_rows() == 1).filter(|_| rows == 1);
    let Some(batch) = batch else {
        return Err(Status::invalid_argument(format!("there are {rows} rows of parameters, expected one")));
    };
    let (given, expected) = (batch.num_columns(), parameters.fields().len());
    if given != expected {
        let what = format!("there are {given} parameters, the statement has {expected}");
        return Err(Status::invalid_argument(what));
    }
    let mut values = Values::default();
    for (field, column) in parameters.fields().iter().zip(batch.columns()) {
        let value = ScalarValue::try_from_array(column, 0);
        values.set(field.name(), value.map_err(|error| Status::invalid_argument(error.to_string()))?);
    }
    Ok(values)
}

#[tonic::async_trait]
impl FlightSqlService for Service {
    type FlightService = Service;

    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Answer<Pin<Box<dyn Stream<Item = Result<HandshakeResponse, Status>> + Send>>> {
        let header = request.metadata().get("authorization").and_then(|header| header.to_str().ok());
        let login = header.and_then(|text| {
            let basic =
                text.get(..BASIC.len())?.eq_ignore_ascii_case(BASIC).then(|| text.get(BASIC.len()..))??;
            let bytes = base64_simd::forgiving_decode_to_vec(basic.trim().as_bytes()).ok()?;
            let text = String::from_utf8(bytes).ok()?;
            text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
        });
        let from = request.remote_addr().map_or_else(|| "?".to_owned(), |address| address.to_string());
        let Some((user, password)) = login else {
            return Err(Status::unauthenticated("log in with user and password (Basic)"));
        };
        let Some(token) = self.sessions.log_in(&user, &password)? else {
            (self.tell)(&format!("{from}: login denied"));
            let _turn = self.denials.acquire().await;
            tokio::time::sleep(DENIAL).await;
            return Err(Status::unauthenticated("wrong user or password"));
        };
        let answer = HandshakeResponse { protocol_version: 0, payload: token.clone().into() };
        let answers: Pin<Box<dyn Stream<Item = _> + Send>> = Box::pin(stream::iter([Ok(answer)]));
        let mut response = Response::new(answers);
        let header = MetadataValue::try_from(format!("Bearer {token}"));
        let header = header.map_err(|_| Status::internal("token"))?;
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }

    // Statements.

    async fn get_flight_info_statement(
        &self,
        command: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let query = self.queries.plan(&command.query).await.map_err(status)?;
        // Two runs of one statement are told apart when one is stopped.
        let handle = format!("{}\0{}", crate::sessions::secret()?, command.query);
        let ticket = TicketStatementQuery { statement_handle: handle.into() };
        info(&query.schema(), &ticket, request.into_inner())
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        let session = session(&request)?;
        let handle = String::from_utf8(ticket.statement_handle.to_vec()).ok();
        let sql = handle.as_deref().and_then(|handle| handle.split_once('\0')).map(|(_, sql)| sql);
        let sql = sql.ok_or_else(|| Status::invalid_argument("the ticket is none of this server's"))?;
        let planned = async { self.queries.plan(sql).await.map_err(status) };
        self.rows(planned, &Values::default(), session, (request.into_inner().ticket.to_vec(), None)).await
    }

    // Prepared statements.

    async fn do_action_create_prepared_statement(
        &self,
        command: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let session = session(&request)?;
        let query = self.queries.plan(&command.query).await.map_err(status)?;
        let (dataset_schema, parameter_schema) =
            (schema_bytes(&query.schema())?, schema_bytes(&query.parameters())?);
        let prepared_statement_handle = session.prepare(query)?.into();
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle,
            dataset_schema,
            parameter_schema,
        })
    }

    async fn do_put_prepared_statement_query(
        &self,
        command: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let session = session(&request)?;
        let handle = command.prepared_statement_handle;
        let prepared = session.prepared(&handle)?;
        let values = values(request, &prepared.query.parameters()).await?;
        session.bind(&handle, values)?;
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) })
    }

    async fn get_flight_info_prepared_statement(
        &self,
        command: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let prepared = session(&request)?.prepared(&command.prepared_statement_handle)?;
        // A column may have the type of a value.
        let query = prepared.query.with(&prepared.values).map_err(status)?;
        info(&query.schema(), &command, request.into_inner())
    }

    async fn do_get_prepared_statement(
        &self,
        command: CommandPreparedStatementQuery,
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        let session = session(&request)?;
        let prepared = session.prepared(&command.prepared_statement_handle)?;
        let query = (request.into_inner().ticket.to_vec(), Some(command.prepared_statement_handle.to_vec()));
        self.rows(ready(Ok(prepared.query)), &prepared.values, session, query).await
    }

    async fn do_action_close_prepared_statement(
        &self,
        command: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        session(&request)?.close(&command.prepared_statement_handle);
        Ok(())
    }

    // Stopping.

    async fn do_action_cancel_query(
        &self,
        command: ActionCancelQueryRequest,
        request: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        let info =
            FlightInfo::decode(command.info).map_err(|error| Status::invalid_argument(error.to_string()))?;
        match self.stop(Some(&info), session(&request)?.as_ref()) {
            // "Cancelled", of the protocol's enumeration.
            true => Ok(ActionCancelQueryResult { result: 1 }),
            false => Err(Status::not_found("no such query runs")),
        }
    }

    async fn do_action_fallback(
        &self,
        request: Request<Action>,
    ) -> Answer<<Self as FlightService>::DoActionStream> {
        let session = session(&request)?;
        let action = request.into_inner();
        let body = match action.r#type.as_str() {
            CANCEL_FLIGHT_INFO => {
                let command = CancelFlightInfoRequest::decode(action.body)
                    .map_err(|error| Status::invalid_argument(error.to_string()))?;
                if !self.stop(command.info.as_ref(), &session) {
                    return Err(Status::not_found("no such query runs"));
                }
                let mut result = CancelFlightInfoResult::default();
                result.set_status(CancelStatus::Cancelled);
                result.encode_to_vec()
            }
            CLOSE_SESSION => {
                self.sessions.log_out(&session);
                // "Closed", of the protocol's enumeration: field 1, value 1.
                vec![0x08, 0x01]
            }
            other => return Err(Status::unimplemented(format!("there is no action {other}"))),
        };
        let result = arrow_flight::Result { body: body.into() };
        Ok(Response::new(Box::pin(stream::iter([Ok(result)]))))
    }

    // Writing.

    async fn do_put_statement_update(
        &self,
        _: CommandStatementUpdate,
        _: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        Err(only_reads())
    }

    async fn do_put_prepared_statement_update(
        &self,
        _: CommandPreparedStatementUpdate,
        _: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        Err(only_reads())
    }

    async fn do_put_statement_ingest(
        &self,
        _: CommandStatementIngest,
        _: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        Err(only_reads())
    }

    // Listings.

    async fn get_flight_info_catalogs(
        &self,
        command: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        listing_info(listings::catalogs(command), &command, request)
    }

    async fn do_get_catalogs(&self, command: CommandGetCatalogs, _: Request<Ticket>) -> Answer<DataStream> {
        self.listing(move |_| listings::catalogs(command)).await
    }

    async fn get_flight_info_schemas(
        &self,
        command: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&command.clone().into_builder().schema(), &command, request.into_inner())
    }

    async fn do_get_schemas(&self, command: CommandGetDbSchemas, _: Request<Ticket>) -> Answer<DataStream> {
        self.listing(move |names| listings::schemas(command, names)).await
    }

    async fn get_flight_info_tables(
        &self,
        command: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&command.clone().into_builder().schema(), &command, request.into_inner())
    }

    async fn do_get_tables(&self, command: CommandGetTables, _: Request<Ticket>) -> Answer<DataStream> {
        self.listing(move |names| listings::tables(command, names)).await
    }

    async fn get_flight_info_table_types(
        &self,
        command: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        listing_info(listings::table_types(command), &command, request)
    }

    async fn do_get_table_types(
        &self,
        command: CommandGetTableTypes,
        _: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(move |_| listings::table_types(command)).await
    }

    async fn get_flight_info_sql_info(
        &self,
        command: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        listing_info(listings::info(command.clone()), &command, request)
    }

    async fn do_get_sql_info(&self, command: CommandGetSqlInfo, _: Request<Ticket>) -> Answer<DataStream> {
        self.listing(move |_| listings::info(command)).await
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        command: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        listing_info(listings::types(command), &command, request)
    }

    async fn do_get_xdbc_type_info(
        &self,
        command: CommandGetXdbcTypeInfo,
        _: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(move |_| listings::types(command)).await
    }

    async fn get_flight_info_primary_keys(
        &self,
        command: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        listing_info(Ok(listings::primary_keys()), &command, request)
    }

    async fn do_get_primary_keys(&self, _: CommandGetPrimaryKeys, _: Request<Ticket>) -> Answer<DataStream> {
        self.listing(|_| Ok(listings::primary_keys())).await
    }

    async fn get_flight_info_exported_keys(
        &self,
        command: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        listing_info(Ok(listings::foreign_keys()), &command, request)
    }

    async fn do_get_exported_keys(
        &self,
        _: CommandGetExportedKeys,
        _: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(|_| Ok(listings::foreign_keys())).await
    }

    async fn get_flight_info_imported_keys(
        &self,
        command: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        listing_info(Ok(listings::foreign_keys()), &command, request)
    }

    async fn do_get_imported_keys(
        &self,
        _: CommandGetImportedKeys,
        _: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(|_| Ok(listings::foreign_keys())).await
    }

    async fn get_flight_info_cross_reference(
        &self,
        command: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        listing_info(Ok(listings::foreign_keys()), &command, request)
    }

    async fn do_get_cross_reference(
        &self,
        _: CommandGetCrossReference,
        _: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(|_| Ok(listings::foreign_keys())).await
    }

    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}
