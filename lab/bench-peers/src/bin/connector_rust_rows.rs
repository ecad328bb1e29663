//! Decodes every row value of binary logs with mysql-binlog-connector-rust, fed from memory, and counts rows
//! and values.

use std::collections::HashMap;
use std::error::Error;
use std::io::Cursor;

use mysql_binlog_connector_rust::binlog_parser::BinlogParser;
use mysql_binlog_connector_rust::event::event_data::EventData;

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(path)?;
        let size = bytes.len() as u64;
        let mut log = Cursor::new(bytes);
        let mut parser = BinlogParser { checksum_length: 0, table_map_event_by_table_id: HashMap::new() };
        parser.check_magic(&mut log)?;
        let mut rows = 0;
        let mut values = 0;
        while log.position() < size {
            let (_, data) = parser.next(&mut log)?;
            count(&data, &mut rows, &mut values);
        }
        println!("{rows} rows, {values} values");
    }
    Ok(())
}

fn count(data: &EventData, rows: &mut usize, values: &mut usize) {
    match data {
        EventData::WriteRows(event) => {
            *rows += event.rows.len();
            *values += event.rows.iter().map(|row| row.column_values.len()).sum::<usize>();
        }
        EventData::DeleteRows(event) => {
            *rows += event.rows.len();
            *values += event.rows.iter().map(|row| row.column_values.len()).sum::<usize>();
        }
        EventData::UpdateRows(event) => {
            *rows += event.rows.len();
            let row = |(before, after): &(_, _)| image_size(before) + image_size(after);
            *values += event.rows.iter().map(row).sum::<usize>();
        }
        EventData::TransactionPayload(event) => {
            event.uncompressed_events.iter().for_each(|(_, data)| count(data, rows, values));
        }
        _ => {}
    }
}

fn image_size(row: &mysql_binlog_connector_rust::event::row_event::RowEvent) -> usize {
    row.column_values.len()
}
