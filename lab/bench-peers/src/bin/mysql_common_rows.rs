//! Decodes every row value of binary logs with mysql_common, in payloads too, and counts rows and values.

use std::fs::File;
use std::io::{self, BufReader};

use mysql_common::binlog::consts::BinlogVersion;
use mysql_common::binlog::events::{Event, EventData, RowsEventData};
use mysql_common::binlog::{BinlogFile, EventStreamReader};

fn main() -> io::Result<()> {
    for path in std::env::args().skip(1) {
        let mut file = BinlogFile::new(BinlogVersion::Version4, BufReader::new(File::open(path)?))?;
        let mut rows = 0;
        let mut values = 0;
        while let Some(event) = file.next() {
            count(&event?, file.reader_mut(), &mut rows, &mut values)?;
        }
        println!("{rows} rows, {values} values");
    }
    Ok(())
}

fn count(event: &Event, reader: &mut EventStreamReader, rows: &mut u64, values: &mut u64) -> io::Result<()> {
    match event.read_data()? {
        Some(EventData::RowsEvent(data)) => count_rows(&data, reader, rows, values),
        Some(EventData::TransactionPayloadEvent(payload)) => {
            let mut events = payload.decompressed()?;
            while let Some(event) = reader.read_decompressed(&mut events)? {
                if let Some(EventData::RowsEvent(data)) = event.read_data()? {
                    count_rows(&data, reader, rows, values)?;
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn count_rows(
    data: &RowsEventData<'_>,
    reader: &EventStreamReader,
    rows: &mut u64,
    values: &mut u64,
) -> io::Result<()> {
    let table = reader.get_tme(data.table_id()).ok_or_else(|| io::Error::other("no table map"))?;
    for row in data.rows(table) {
        let (before, after) = row?;
        *rows += 1;
        for image in before.into_iter().chain(after) {
            *values += image.unwrap().len() as u64;
        }
    }
    Ok(())
}
