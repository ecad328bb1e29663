//! What a client of Flight SQL is told over logs of MySQL 9.7.4 (`sample/`), compared with `answers.txt` beside this file. It
//! needs no server but the one in this process. How sessions and statements end is in `binlogz-sql`'s tests.
//!
//! This program is the server's worker, too, so it has a `main` of its own. Run with `UPDATE_GOLDEN=1` to write the answers
//! anew.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::env;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{CommandGetDbSchemas, CommandGetTables};
use arrow_flight::{FlightInfo, IpcMessage};
use binlogz_flight::{FlightAnswers, serve};
use binlogz_query::{Logs, QueryEngine, QueryOptions};
use binlogz_query_server::{
    AccountLogs, ProtocolServer, QueryAccounts, StatementLimits, WorkerCommand, Workers, questions, work,
};
use binlogz_testkit::assert_golden;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::util::display::array_value_to_string;
use futures_util::TryStreamExt;
use prost::bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tonic::transport::{Channel, Endpoint};

type Client = FlightSqlServiceClient<Channel>;

/// Set in the environment of workers.
const WORKER: &str = "BINLOGZ_GOLDEN_WORKER";
const PASSWORD: &str = "s3cret of reader";
const PATIENCE: Duration = Duration::from_secs(60);
const MEMORY: usize = 1 << 28;

/// Statements, and what is shown of each: its columns and rows, or why it is refused.
const STATEMENTS: [&str; 6] = [
    "SELECT log, event_type, count(*) AS events FROM binlog.events GROUP BY ALL ORDER BY log, event_type",
    "SELECT gtid, committed_at FROM binlog.transactions ORDER BY log, position LIMIT 3",
    "SELECT * FROM mix.numbers WHERE operation = 'insert' ORDER BY position, \"row\"",
    "SELECT 1 AS one WHERE false",
    "COPY binlog.events TO 'x.csv'",
    "SELECT nothing FROM mix.numbers",
];

fn main() {
    if env::var_os(WORKER).is_some() {
        return be_worker();
    }
    let answers = answers();
    let path = root().join("tests/golden/answers.txt");
    assert_golden(&path, &answers);
    // As the harness that this program doesn't have.
    println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}

/// Plans and runs statements for the server in the other process.
fn be_worker() {
    let (ask, asked) = questions();
    let engine = QueryEngine::asking(logs(), &options(), ask).unwrap();
    runtime().block_on(work(engine.queries(), asked, &[&FlightAnswers])).unwrap();
}

/// All that clients are told.
fn answers() -> String {
    let engine = QueryEngine::new(logs(), &options()).unwrap();
    let mut accounts = QueryAccounts::default();
    assert!(accounts.add("reader", PASSWORD));
    let command = WorkerCommand {
        program: env::current_exe().unwrap(),
        arguments: Vec::new(),
        environment: vec![(WORKER.into(), "1".into())],
        is_for_one: false,
    };
    let limits = StatementLimits {
        memory: MEMORY,
        queries: 2,
        queries_of_account: 2,
        time: PATIENCE,
        planning_time: PATIENCE,
    };
    let tell = Arc::new(|line: &str| eprintln!("{line}"));
    let logs = AccountLogs { accounts: vec!["reader".to_owned()], queries: engine.queries(), command };
    let workers = Workers::new(vec![logs], limits, tell.clone());
    let server = ProtocolServer {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        tls: None,
        accounts,
        logins: Arc::default(),
        open: Arc::default(),
        prepared: Arc::default(),
        workers: Arc::clone(&workers),
        idle: PATIENCE,
    };
    let runtime = runtime();
    let (heard, listening) = oneshot::channel();
    let (end, ended) = oneshot::channel::<()>();
    runtime.spawn(async move {
        let listening = |address| heard.send(address).unwrap();
        workers.begin().await.unwrap();
        serve(server, tell, listening, async { drop(ended.await) }).await.unwrap();
    });
    let text = runtime.block_on(async {
        let address = listening.await.expect("the server ended");
        asked(address).await
    });
    drop(end);
    runtime.shutdown_background();
    engine.close();
    text
}

async fn asked(address: SocketAddr) -> String {
    let mut text = String::new();
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut client = FlightSqlServiceClient::new(endpoint.connect().await.unwrap());
    let refused = client.execute("SELECT 1".to_owned(), None).await.unwrap_err();
    writeln!(text, "without login: {}", told(&refused)).unwrap();
    client.handshake("reader", PASSWORD).await.unwrap();
    let info = client.get_catalogs().await.unwrap();
    show(&mut text, "catalogs", &mut client, &info).await;
    let info = client.get_db_schemas(CommandGetDbSchemas::default()).await.unwrap();
    show(&mut text, "schemas", &mut client, &info).await;
    let info = client.get_table_types().await.unwrap();
    show(&mut text, "table types", &mut client, &info).await;
    for pattern in [None, Some("mi%")] {
        let tables = CommandGetTables {
            db_schema_filter_pattern: pattern.map(str::to_owned),
            include_schema: pattern.is_some(),
            ..CommandGetTables::default()
        };
        let info = client.get_tables(tables).await.unwrap();
        show(&mut text, &format!("tables, of {}", pattern.unwrap_or("all")), &mut client, &info).await;
    }
    for statement in STATEMENTS {
        match client.execute(statement.to_owned(), None).await {
            Ok(info) => show(&mut text, statement, &mut client, &info).await,
            Err(error) => writeln!(text, "{statement}: {}", told(&error)).unwrap(),
        }
    }
    prepared(&mut text, &mut client).await;
    text
}

/// A prepared statement, with values and without them.
async fn prepared(text: &mut String, client: &mut Client) {
    let statement = "SELECT count(*) AS bigger FROM binlog.events WHERE size > $size";
    let mut prepared = client.prepare(statement.to_owned(), None).await.unwrap();
    writeln!(text, "{statement}: parameters {}", columns(prepared.parameter_schema().unwrap())).unwrap();
    for size in [19, 1000] {
        let schema = Schema::new(vec![Field::new("size", DataType::Int64, false)]);
        let values = Arc::new(Int64Array::from(vec![size]));
        prepared.set_parameters(RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap()).unwrap();
        let info = prepared.execute().await.unwrap();
        show(text, &format!("  of {size}"), client, &info).await;
    }
    prepared.close().await.unwrap();
}

/// Writes an answer: its columns, then its rows.
async fn show(text: &mut String, what: &str, client: &mut Client, info: &FlightInfo) {
    let planned = info.clone().try_decode_schema().unwrap();
    writeln!(text, "{what}: {}", columns(&planned)).unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let batches: Vec<RecordBatch> = client.do_get(ticket).await.unwrap().try_collect().await.unwrap();
    for batch in batches {
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            let columns = schema.fields().iter().zip(batch.columns());
            let values: Vec<_> = columns.map(|(field, column)| shown(field, column, row)).collect();
            writeln!(text, "  {}", values.join(" | ")).unwrap();
        }
    }
}

/// A value; of a table's columns, which are bytes, what they say.
fn shown(field: &Field, column: &ArrayRef, row: usize) -> String {
    match field.name().as_str() {
        "table_schema" => columns(&schema_of(column.as_binary::<i32>().value(row))),
        _ => array_value_to_string(column, row).unwrap(),
    }
}

/// The columns of a table, as a listing has them.
fn schema_of(bytes: &[u8]) -> Schema {
    Schema::try_from(IpcMessage(Bytes::copy_from_slice(bytes))).unwrap()
}

fn columns(schema: &Schema) -> String {
    let columns = schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
    columns.collect::<Vec<_>>().join(", ")
}

/// An error's code, and its text.
fn told(error: &FlightError) -> String {
    match error {
        FlightError::Tonic(status) => format!("{:?}: {}", status.code(), status.message()),
        other => other.to_string(),
    }
}

fn logs() -> Logs {
    let logs: Vec<PathBuf> =
        ["binlog.000006", "binlog.000009"].map(|log| root().join("sample").join(log)).to_vec();
    Logs::new(logs, None, |line| assert!(line.ends_with(": @1 is the first column"), "{line}")).unwrap()
}

fn options() -> QueryOptions {
    QueryOptions { memory: MEMORY, jobs: 2, temporary: env::temp_dir() }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
