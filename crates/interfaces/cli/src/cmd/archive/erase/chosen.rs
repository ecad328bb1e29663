//! The rows that are to be erased, as options and a file name them.
//!
//! ```text
//! shop.customers id = 42          a table, and after a space a condition
//! # a comment                     as is an empty line
//! ```

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use binlogz_row_changes::Condition;

use crate::cmd::row_changes::table;
use crate::failure::{CommandFailure, Result};

/// Rows of a table.
pub(super) type ChosenRows = ((String, String), Condition);

/// The most bytes of such a file.
const SIZE_MAX: u64 = 64 << 20;

/// The rows that options and a file name.
pub(super) fn rows(
    (tables, conditions): (&[(String, String)], &[String]),
    file: Option<&Path>,
) -> Result<Vec<ChosenRows>> {
    if tables.len() != conditions.len() {
        return Err(CommandFailure::Line(format!(
            "--table is given {} times and --where {} times, expected a --where for each --table",
            tables.len(),
            conditions.len()
        )));
    }
    let mut chosen = Vec::new();
    for (table, condition) in tables.iter().zip(conditions) {
        let condition =
            Condition::parse(condition).map_err(|error| CommandFailure::Line(error.to_string()))?;
        chosen.push((table.clone(), condition));
    }
    if let Some(path) = file {
        let text = text_of(path).map_err(|error| CommandFailure::of(&path.display(), error))?;
        for (number, line) in (1..).zip(text.lines()) {
            let chosen_there = of_line(line.trim());
            let chosen_there = chosen_there
                .map_err(|why| CommandFailure::of(&path.display(), format_args!("line {number}: {why}")))?;
            chosen.extend(chosen_there);
        }
        if chosen.is_empty() {
            return Err(CommandFailure::of(
                &path.display(),
                "names no rows, expected lines of DB.TABLE CONDITION",
            ));
        }
    }
    Ok(chosen)
}

fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let input: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(fs::File::open(path)?),
    };
    let size = input.take(SIZE_MAX + 1).read_to_string(&mut text)?;
    match size as u64 > SIZE_MAX {
        true => Err(io::Error::other(format!("has more than {SIZE_MAX} bytes"))),
        false => Ok(text),
    }
}

/// The rows of a line; `None`: it names none.
fn of_line(line: &str) -> std::result::Result<Option<ChosenRows>, String> {
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (name, condition) =
        line.split_once(char::is_whitespace).ok_or_else(|| format!("{line}: expected DB.TABLE CONDITION"))?;
    let condition = Condition::parse(condition.trim()).map_err(|error| error.to_string())?;
    Ok(Some((table(name)?, condition)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_rows_and_options_come_in_pairs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            rows((&[], &[]), Some(&path))
        };
        let chosen = read("# persons\n\nshop.customers id = 42\n  shop.people\tname = 'x y'  \r\n").unwrap();
        let names: Vec<_> = chosen.iter().map(|((_, table), _)| table.as_str()).collect();
        assert_eq!(names, ["customers", "people"]);
        for (text, words) in [
            ("# none\n", "names no rows"),
            ("shop.customers\n", "line 1: shop.customers: expected DB.TABLE CONDITION"),
            ("\ncustomers id = 1", "line 2: "),
            ("shop.customers id =", "line 1: --where: "),
        ] {
            let Err(CommandFailure::Line(line)) = read(text) else { panic!("{text}: was read") };
            assert!(line.contains(words), "{line}");
        }
        let shop = ("shop".to_owned(), "customers".to_owned());
        let Err(CommandFailure::Line(line)) = rows((&[shop], &[]), None) else { panic!("was taken") };
        assert!(line.starts_with("--table is given 1 times and --where 0 times"), "{line}");
    }
}
