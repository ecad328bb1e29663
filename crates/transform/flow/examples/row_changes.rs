//! `row_changes FILE|- [POSITION]`: every row change of a binary log, inside payloads too, with its position,
//! its GTID, its table and its values; given a position, only those after it.

use binlogz_binlog::row::{RowImage, Value};
use binlogz_flow::{Input, RowChanges};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: row_changes FILE|- [POSITION]")?;
    let input = if path == "-" { Input::stdin()? } else { Input::open(path.as_ref())? };
    let changes = match args.next() {
        Some(position) => RowChanges::after(input, position.parse()?),
        None => RowChanges::new(input),
    };
    for change in changes {
        let change = change?;
        let gtid = change.gtid.as_ref().map_or_else(|| "ANONYMOUS".to_owned(), ToString::to_string);
        let [before, after] = [change.row().before, change.row().after].map(values);
        println!("{} {gtid} {} {:?} -> {:?}", change.position, change.table_name(), before?, after?);
    }
    Ok(())
}

/// The values of an image, if there is one.
fn values<'a>(image: Option<RowImage<'_, 'a>>) -> Result<Option<Vec<Value<'a>>>, binlogz_binlog::Error> {
    image.map(|image| image.cells().map(|cell| cell.value()).collect()).transpose()
}
