//! Columns of a row as a JSON object, as keys and the images of `changes` have them.

use binlogz_binlog::Result;
use binlogz_binlog::row::Cell;
use binlogz_print::jsonl::push_value;

/// Writes cells in place of what `out` holds, each under its column's name. `scratch` is memory for values.
pub(super) fn write_object<'a>(
    out: &mut Vec<u8>,
    cells: impl Iterator<Item = Cell<'a>>,
    names: &[String],
    scratch: &mut Vec<u8>,
) -> Result<()> {
    out.clear();
    out.push(b'{');
    for cell in cells {
        if out.len() > 1 {
            out.push(b',');
        }
        let name = names.get(cell.index).map_or("", String::as_str);
        // Text is always written.
        let _ = serde_json::to_writer(&mut *out, name);
        out.push(b':');
        push_value(out, &cell, scratch)?;
    }
    out.push(b'}');
    Ok(())
}
