//! Answers the protocol's requests with queries. A plain statement travels in its ticket, so the server keeps nothing for
//! it between planning and fetching; a prepared statement belongs to its session.

use std::net::{IpAddr, Ipv4Addr};
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
    FlightInfo, HandshakeRequest, HandshakeResponse, Ticket,
};
use binlogz_query::{Error, Names};
use binlogz_query_server::{DENIAL, Logins, QueryConnection, TellLine, Workers};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::ipc::writer::StreamWriter;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::{Stream, TryStreamExt, stream};
use prost::Message;
use prost::bytes::Bytes;
use tokio::time::Instant;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};

use crate::sessions::{FlightSession, FlightSessions};
use crate::status;
use crate::{listings, statements};

/// The method that logs in.
const BASIC: &str = "basic ";

const CANCEL_FLIGHT_INFO: &str = "CancelFlightInfo";
const CLOSE_SESSION: &str = "CloseSession";

type DataStream = <LogService as FlightService>::DoGetStream;
type Answer<T> = Result<Response<T>, Status>;

/// The protocol's requests, as clients send them.
#[derive(Clone)]
pub(crate) struct LogService {
    sessions: Arc<FlightSessions>,
    tell: TellLine,
    workers: Arc<Workers>,
    logins: Arc<Logins>,
    idle: Duration,
}

impl LogService {
    pub(crate) fn new(
        sessions: Arc<FlightSessions>,
        tell: TellLine,
        (workers, logins): (Arc<Workers>, Arc<Logins>),
        idle: Duration,
    ) -> Self {
        LogService { sessions, tell, workers, logins, idle }
    }

    /// Runs a query and sends its rows. It ends if the client goes, is stopped, or doesn't take rows for long; a prepared one has
    /// its statement's name.
    async fn rows(
        &self,
        (query, values): (String, Bytes),
        session: Arc<FlightSession>,
        (ticket, statement): (Vec<u8>, Option<Vec<u8>>),
    ) -> Answer<DataStream> {
        let (stopper, stopped) = AbortHandle::new_pair();
        let entry = Arc::new(session.begins(ticket, statement, stopper)?);
        // It is given back when the query ends, not when its client notices.
        let held = Arc::clone(&entry);
        let begins = statements::run(&self.workers, &session.account, (query, values), self.idle, held);
        let begun = Abortable::new(begins, stopped).await;
        let rows = begun.map_err(|_| status(Error::Stopped))??;
        entry.has_begun(rows.stopper());
        Ok(Response::new(Box::pin(rows)))
    }

    /// A listing that may read logs: those of the session's account.
    async fn listing(
        &self,
        request: &Request<Ticket>,
        make: impl FnOnce(&Names) -> binlogz_query::Result<RecordBatch> + Send + 'static,
    ) -> Answer<DataStream> {
        let session = session(request)?;
        let queries = self.workers.queries(&session.account).map_err(statements::status)?;
        let batch = queries.apart(make).await.map_err(status)?;
        Ok(Response::new(one(batch)))
    }

    fn stop(&self, info: Option<&FlightInfo>, session: &FlightSession) -> bool {
        let tickets = info.into_iter().flat_map(|info| &info.endpoint).filter_map(|end| end.ticket.as_ref());
        tickets.filter(|ticket| session.stop(&ticket.ticket)).count() > 0
    }
}

/// The session that the guard found.
fn session<T>(request: &Request<T>) -> Result<Arc<FlightSession>, Status> {
    let session = request.extensions().get::<Arc<FlightSession>>();
    session.cloned().ok_or_else(|| Status::unauthenticated("log in first"))
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
    let info =
        FlightInfo::new().try_with_schema(schema).map_err(|error| Status::internal(error.to_string()))?;
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

/// Where the rows of a query are fetched: here, with this ticket. A worker has told the query's schema as bytes.
fn query_info(
    columns: Bytes,
    ticket: &impl ProstMessageExt,
    descriptor: FlightDescriptor,
) -> Answer<FlightInfo> {
    let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(ticket.as_any().encode_to_vec()));
    let info = FlightInfo { schema: columns, ..FlightInfo::new() };
    Ok(Response::new(info.with_endpoint(endpoint).with_descriptor(descriptor)))
}

fn only_reads() -> Status {
    Status::invalid_argument("statements can only read")
}

/// The values of parameters: one row with a column for each, in their order. As Arrow's IPC stream, with their names.
async fn values(request: Request<PeekableFlightDataStream>, parameters: &Schema) -> Result<Bytes, Status> {
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
    let given = batch.num_columns();
    let expected = parameters.fields().len();
    if given != expected {
        let what = format!("there are {given} parameters, the statement has {expected}");
        return Err(Status::invalid_argument(what));
    }
    let schema = batch.schema();
    let named = parameters.fields().iter().zip(schema.fields());
    let named = named.map(|(parameter, given)| given.as_ref().clone().with_name(parameter.name()));
    let schema: SchemaRef = Arc::new(Schema::new(named.collect::<Vec<_>>()));
    let write = || {
        let batch = RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec())?;
        let mut stream = StreamWriter::try_new(Vec::new(), &schema)?;
        stream.write(&batch)?;
        stream.into_inner()
    };
    write().map(Bytes::from).map_err(|error| Status::invalid_argument(error.to_string()))
}

#[tonic::async_trait]
impl FlightSqlService for LogService {
    type FlightService = LogService;

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
        let connection = request.extensions().get::<Arc<QueryConnection>>();
        let from = connection.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |connection| connection.address());
        let Some((user, password)) = login else {
            return Err(Status::unauthenticated("log in with user and password (Basic)"));
        };
        let Some(turn) = self.logins.turn(&user, from, Instant::now()) else {
            return Err(Status::resource_exhausted("too many logins: try again later"));
        };
        tokio::time::sleep_until(turn).await;
        let Some(token) = self.sessions.log_in(&user, &password)? else {
            if let Some(line) = self.logins.denied(from, Instant::now()) {
                (self.tell)(&line);
            }
            tokio::time::sleep(DENIAL).await;
            return Err(Status::unauthenticated("wrong user or password"));
        };
        self.logins.accepted(&user, from, Instant::now());
        if let Some(connection) = connection {
            connection.is_known_now();
        }
        let answer = HandshakeResponse { protocol_version: 0, payload: token.clone().into() };
        let answers: Pin<Box<dyn Stream<Item = _> + Send>> = Box::pin(stream::iter([Ok(answer)]));
        let mut response = Response::new(answers);
        let header =
            MetadataValue::try_from(format!("Bearer {token}")).map_err(|_| Status::internal("token"))?;
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }

    // Statements.

    async fn get_flight_info_statement(
        &self,
        command: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let session = session(&request)?;
        let planned =
            statements::plan(&self.workers, &session.account, command.query.clone(), Bytes::new()).await?;
        // Two runs of one statement are told apart when one is stopped.
        let handle = format!("{}\0{}", crate::sessions::secret()?, command.query);
        let ticket = TicketStatementQuery { statement_handle: handle.into() };
        query_info(planned.columns, &ticket, request.into_inner())
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        let session = session(&request)?;
        let handle = String::from_utf8(ticket.statement_handle.to_vec()).ok();
        let sql = handle
            .as_deref()
            .and_then(|handle| handle.split_once('\0'))
            .map(|(_, sql)| sql.to_owned())
            .ok_or_else(|| Status::invalid_argument("the ticket is none of this server's"))?;
        self.rows((sql, Bytes::new()), session, (request.into_inner().ticket.to_vec(), None)).await
    }

    // Prepared statements.

    async fn do_action_create_prepared_statement(
        &self,
        command: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let session = session(&request)?;
        let planned =
            statements::plan(&self.workers, &session.account, command.query.clone(), Bytes::new()).await?;
        let dataset_schema = planned.columns.clone();
        let parameter_schema = planned.parameters.clone();
        let prepared_statement_handle = session.prepare(command.query, planned)?.into();
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
        let values = values(request, &prepared.parameters).await?;
        session.bind(&handle, values)?;
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) })
    }

    async fn get_flight_info_prepared_statement(
        &self,
        command: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let session = session(&request)?;
        let prepared = session.prepared(&command.prepared_statement_handle)?;
        // A column may have the type of a value.
        let columns = if let Some(parameter) = prepared.parameters.fields().first() {
            if prepared.values.is_empty() {
                let line = format!("parameter ${} has no value", parameter.name());
                return Err(Status::invalid_argument(line));
            }
            let statement = prepared.statement.to_string();
            statements::plan(&self.workers, &session.account, statement, prepared.values).await?.columns
        } else {
            prepared.planned.columns
        };
        query_info(columns, &command, request.into_inner())
    }

    async fn do_get_prepared_statement(
        &self,
        command: CommandPreparedStatementQuery,
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        let session = session(&request)?;
        let prepared = session.prepared(&command.prepared_statement_handle)?;
        let query = (request.into_inner().ticket.to_vec(), Some(command.prepared_statement_handle.to_vec()));
        self.rows((prepared.statement.to_string(), prepared.values), session, query).await
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

    async fn do_get_catalogs(
        &self,
        command: CommandGetCatalogs,
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(&request, move |_| listings::catalogs(command)).await
    }

    async fn get_flight_info_schemas(
        &self,
        command: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&command.clone().into_builder().schema(), &command, request.into_inner())
    }

    async fn do_get_schemas(
        &self,
        command: CommandGetDbSchemas,
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(&request, move |names| listings::schemas(command, names)).await
    }

    async fn get_flight_info_tables(
        &self,
        command: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&command.clone().into_builder().schema(), &command, request.into_inner())
    }

    async fn do_get_tables(&self, command: CommandGetTables, request: Request<Ticket>) -> Answer<DataStream> {
        self.listing(&request, move |names| listings::tables(command, names)).await
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
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(&request, move |_| listings::table_types(command)).await
    }

    async fn get_flight_info_sql_info(
        &self,
        command: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        listing_info(listings::info(command.clone()), &command, request)
    }

    async fn do_get_sql_info(
        &self,
        command: CommandGetSqlInfo,
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(&request, move |_| listings::info(command)).await
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
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(&request, move |_| listings::types(command)).await
    }

    async fn get_flight_info_primary_keys(
        &self,
        command: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        listing_info(Ok(listings::primary_keys()), &command, request)
    }

    async fn do_get_primary_keys(
        &self,
        _: CommandGetPrimaryKeys,
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(&request, |_| Ok(listings::primary_keys())).await
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
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(&request, |_| Ok(listings::foreign_keys())).await
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
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(&request, |_| Ok(listings::foreign_keys())).await
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
        request: Request<Ticket>,
    ) -> Answer<DataStream> {
        self.listing(&request, |_| Ok(listings::foreign_keys())).await
    }

    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}
