//! mysql_async's binlog stream: prints the rows of compat.t and where to go on; see crates/interfaces/cli/tests/compat/clients.

use futures_util::StreamExt;
use mysql_async::binlog::EventType;
use mysql_async::binlog::events::{EventData, RowsEventData};
use mysql_async::binlog::row::BinlogRow;
use mysql_async::binlog::value::BinlogValue;
use mysql_async::{BinlogStreamRequest, Conn, OptsBuilder, SslOpts, Value};

type Error = Box<dyn std::error::Error + Send + Sync>;

fn text(row: &BinlogRow, column: usize) -> String {
    match row.as_ref(column) {
        Some(BinlogValue::Value(Value::NULL)) => "NULL".into(),
        Some(BinlogValue::Value(Value::Bytes(bytes))) => String::from_utf8_lossy(bytes).into_owned(),
        Some(BinlogValue::Value(Value::Date(year, month, day, hour, minute, second, _))) => {
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
        }
        Some(BinlogValue::Value(value)) => value.as_sql(true),
        other => format!("{other:?}"),
    }
}

async fn follow(arguments: &[String]) -> Result<(), Error> {
    let [port, user, password, by, place] = arguments else { return Err("five arguments".into()) };
    let tls = std::env::var_os("TLS").map(|_| SslOpts::default().with_danger_accept_invalid_certs(true));
    let options = OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(port.parse()?)
        .user(Some(user))
        .pass(Some(password))
        .prefer_socket(false)
        .ssl_opts(tls);
    let by_gtid = by == "gtid";
    let (before, after) = place.rsplit_once(':').ok_or("no place")?;
    let request = BinlogStreamRequest::new(std::process::id());
    let request = match by_gtid {
        true => request.with_gtid().with_gtid_set([place.parse()?]),
        false => request.with_filename(before.as_bytes()).with_pos(after.parse()?),
    };
    let mut file = before.to_owned();
    let mut last = String::new();
    let mut payload_end = None;
    let mut stream = Conn::new(options).await?.get_binlog_stream(request).await?;
    while let Some(event) = stream.next().await {
        let event = event?;
        let next_position = u64::from(event.header().log_pos());
        if event.header().event_type() == Ok(EventType::TRANSACTION_PAYLOAD_EVENT) {
            payload_end = Some(next_position);
            continue;
        }
        match event.read_data()? {
            Some(EventData::RotateEvent(rotate)) => file = rotate.name().into_owned(),
            Some(EventData::GtidEvent(gtid)) => (last, payload_end) = (gtid.gno().to_string(), None),
            Some(EventData::RowsEvent(RowsEventData::WriteRowsEvent(rows))) => {
                let table = stream.get_tme(rows.table_id()).ok_or("rows of an unknown table")?;
                if table.table_name() != "t" {
                    continue;
                }
                for row in rows.rows(table) {
                    let (_, row) = row?;
                    let row = row.ok_or("a row without an image")?;
                    let columns: Vec<_> = (0..row.len()).map(|column| text(&row, column)).collect();
                    println!("row {}", columns.join("\t"));
                }
            }
            // Its set has no holes: the source is the only one that writes.
            Some(EventData::XidEvent(_)) if by_gtid => {
                println!("at {}:1-{last}", before.split(':').next().unwrap_or(before));
            }
            Some(EventData::XidEvent(_)) => println!("at {file}:{}", payload_end.unwrap_or(next_position)),
            _ => {}
        }
    }
    Err("the stream ends".into())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let Err(error) = follow(&arguments).await {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}
