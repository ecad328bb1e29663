//! The CREATE TABLE statement of a table as it was, made of the one that the server shows now.
//!
//! The server writes each column and each key in a line of its own. Columns that came later go, the others get the names and the order
//! that they had; keys that came later go as well. Foreign keys refer to the tables that they refer to now, by the names that these had.
//! The rest is of now: other keys, defaults, comments, options.

use std::collections::HashMap;

/// Between a foreign key's columns and the table to which it refers.
const REFERENCES: &str = " REFERENCES ";

/// The differences between a table's columns of now and of the moment.
#[derive(Debug, Default)]
pub(super) struct ColumnsThen<'n> {
    /// The columns of then in their order, each with its name now and then.
    pub(super) columns: Vec<(&'n str, &'n str)>,
    /// All columns of now.
    pub(super) now: Vec<&'n str>,
    /// The unique keys of whole columns that there were then, by the columns' names then.
    pub(super) unique: Vec<Vec<&'n str>>,
}

/// A table to which a foreign key refers, at the moment.
#[derive(Debug)]
pub(super) struct ParentThen {
    /// Database and table.
    pub(super) name: (String, String),
    /// The names of its columns, now and at the moment.
    pub(super) columns: Vec<(String, String)>,
}

/// What is known of the tables to which foreign keys refer.
pub(super) struct ParentsThen<'n> {
    /// The table's database now.
    pub(super) database: &'n str,
    /// The table's database then.
    pub(super) database_then: &'n str,
    /// Finds the name that a table of now had, and its columns' names; `None`: they aren't known, and those of now are taken.
    pub(super) find: &'n dyn Fn(&(String, String)) -> Option<ParentThen>,
}

/// The statement that makes the table of then; `None`: the server's statement can't be read. Without parents foreign keys are left out.
pub(super) fn create_then(
    create: &str,
    table: &str,
    then: &ColumnsThen<'_>,
    parents: Option<&ParentsThen<'_>>,
) -> Option<String> {
    let (first, rest) = create.split_once('\n')?;
    let begin = first.find('`')?;
    let (inside, tail) = rest.split_at_checked(rest.find("\n)")?)?;
    let mut definitions: HashMap<String, &str> = HashMap::new();
    let mut keys = Vec::new();
    for line in inside.lines() {
        let line = line.trim_start().trim_end_matches(',');
        match name_at(line) {
            Some((name, definition)) => drop(definitions.insert(name, definition)),
            None => keys.push(line),
        }
    }
    if definitions.len() != then.now.len() {
        return None;
    }
    let names: HashMap<&str, &str> = then.columns.iter().copied().collect();
    let names = ColumnRenames { names, now: &then.now };
    let mut lines = Vec::new();
    for (now, own) in &then.columns {
        // A generated column's expression names others.
        lines.push(format!("  {}{}", quoted(own), names.replaced(definitions.get(*now)?)?));
    }
    for key in keys {
        let is_foreign = key.contains(" FOREIGN KEY ");
        let is_unique = key.starts_with("PRIMARY KEY") || key.starts_with("UNIQUE KEY");
        if is_foreign && parents.is_none() {
            continue;
        }
        let Some(begin) = key.find('(') else { continue };
        // A foreign key's other table has columns of its own.
        let end = key.find(REFERENCES).filter(|_| is_foreign).unwrap_or(key.len());
        let (Some(front), Some(columns), Some(rest)) =
            (key.get(..begin), key.get(begin..end), key.get(end..))
        else {
            continue;
        };
        let Some(columns) = names.replaced(columns) else { continue };
        if is_unique && !then.unique.iter().any(|key| is_key_of(&columns, key)) {
            continue;
        }
        // The name of a check is one in its database.
        let front = match (key.contains(" CHECK "), parents) {
            (true, None) => "CHECK ",
            _ => front,
        };
        let reference = parents.filter(|_| is_foreign).map(|parents| parents.reference(rest));
        let rest = reference.unwrap_or_else(|| Some(rest.to_owned()))?;
        lines.push(format!("  {front}{columns}{rest}"));
    }
    let (options, partitions) = tail.split_at(tail.find("\n/*!50").unwrap_or(tail.len()));
    let partitions = names.replaced(partitions).unwrap_or_default();
    let front = first.get(..begin)?;
    Some(format!("{front}{} (\n{}{options}{partitions}", quoted(table), lines.join(",\n")))
}

/// Whether the text in parentheses is a list of just these columns, of which prefixes and orders count as the columns.
fn is_key_of(text: &str, key: &[&str]) -> bool {
    let mut names: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('`') {
        let Some((name, after)) = closed(after) else { return false };
        names.push(name);
        rest = after;
    }
    names.len() == key.len()
        && key.iter().all(|column| names.iter().any(|name| name.eq_ignore_ascii_case(column)))
}

impl ParentsThen<'_> {
    /// ` REFERENCES …` of now with the names of then; `None`: it can't be read.
    fn reference(&self, now: &str) -> Option<String> {
        let (first, rest) = name_at(now.strip_prefix(REFERENCES)?)?;
        let (name, rest) = match rest.strip_prefix('.') {
            Some(rest) => name_at(rest).map(|(table, rest)| ((first, table), rest))?,
            None => ((self.database.to_owned(), first), rest),
        };
        let (columns, rules) = rest.split_at_checked(rest.find(')')?)?;
        let parent = (self.find)(&name).unwrap_or(ParentThen { name, columns: Vec::new() });
        let names = parent.columns.iter().map(|(now, then)| (&**now, &**then)).collect();
        let columns = ColumnRenames { names, now: &[] }.replaced(columns)?;
        let (database, table) = parent.name;
        let front = match database == self.database_then {
            true => String::new(),
            false => format!("{}.", quoted(&database)),
        };
        Some(format!("{REFERENCES}{front}{}{columns}{rules}", quoted(&table)))
    }
}

/// The columns of now by their names then.
struct ColumnRenames<'n> {
    names: HashMap<&'n str, &'n str>,
    now: &'n [&'n str],
}

impl ColumnRenames<'_> {
    /// A text with the names that columns had; `None`: it names one that there wasn't.
    fn replaced(&self, text: &str) -> Option<String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['`', '\'']) {
            out.push_str(rest.get(..at)?);
            let (quote, after) = rest.get(at..)?.split_at_checked(1)?;
            if quote == "'" {
                let end = end_of_text(after)?;
                out.push('\'');
                out.push_str(after.get(..end)?);
                rest = after.get(end..)?;
                continue;
            }
            let (name, after) = closed(after)?;
            match (self.names.get(&*name), self.now.contains(&&*name)) {
                (Some(then), _) => out.push_str(&quoted(then)),
                (None, true) => return None,
                (None, false) => out.push_str(&quoted(&name)),
            }
            rest = after;
        }
        out.push_str(rest);
        Some(out)
    }
}

/// The length of a text in quotes from after the first one to after the last.
fn end_of_text(text: &str) -> Option<usize> {
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()?),
            '\'' if letters.peek().is_some_and(|(_, next)| *next == '\'') => drop(letters.next()),
            '\'' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The name in backticks at the begin of a text, and what follows it.
fn name_at(text: &str) -> Option<(String, &str)> {
    closed(text.strip_prefix('`')?)
}

/// A name up to its backtick.
fn closed(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('`')?;
        name.push_str(part);
        match after.strip_prefix('`') {
            Some(after) => {
                name.push('`');
                rest = after;
            }
            None => return Some((name, after)),
        }
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "CREATE TABLE `new` (\n  `id` int NOT NULL,\n  `later` int DEFAULT NULL COMMENT 'x,\\n`id`',\n  `b``x` \
        varchar(9) DEFAULT 'it''s `id`',\n  `g` int GENERATED ALWAYS AS ((`b``x` + 1)) VIRTUAL,\n  PRIMARY KEY (`id`),\n  UNIQUE KEY \
        `u` (`b``x`(3),`id` DESC),\n  UNIQUE KEY `z` (`b``x`),\n  KEY `later` (`later`),\n  KEY `b` (`b``x`),\n  KEY `f` ((`later` + \
        1)),\n  CONSTRAINT `fk` FOREIGN KEY (`b``x`) REFERENCES `p` (`later`),\n  CONSTRAINT `new_chk_1` CHECK ((`b``x` <> \
        _utf8mb4'`later`'))\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4\n/*!50100 PARTITION BY HASH (`id`)\nPARTITIONS 3 */";

    #[test]
    fn the_statement_of_then_has_the_columns_of_then() {
        let then = ColumnsThen {
            columns: vec![("b`x", "a"), ("id", "number"), ("g", "g")],
            now: vec!["id", "later", "b`x", "g"],
            unique: vec![vec!["number"], vec!["number", "a"]],
        };
        let find = |now: &(String, String)| {
            let columns = vec![("later".to_owned(), "former".to_owned())];
            (now.1 == "p").then(|| ParentThen { name: ("shop".to_owned(), "q`".to_owned()), columns })
        };
        let parents = |database_then| ParentsThen { database: "shop", database_then, find: &find };
        let create = |parents: Option<&ParentsThen<'_>>| create_then(NOW, "old", &then, parents).unwrap();
        let expected = "CREATE TABLE `old` (\n  `a` varchar(9) DEFAULT 'it''s `id`',\n  `number` int NOT NULL,\n  `g` int GENERATED \
            ALWAYS AS ((`a` + 1)) VIRTUAL,\n  PRIMARY KEY (`number`),\n  UNIQUE KEY `u` (`a`(3),`number` DESC),\n  KEY `b` (`a`),\n  \
            CONSTRAINT `fk` FOREIGN KEY (`a`) REFERENCES `q``` (`former`),\n  CONSTRAINT `new_chk_1` CHECK ((`a` <> \
            _utf8mb4'`later`'))\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4\n/*!50100 PARTITION BY HASH (`number`)\nPARTITIONS 3 */";
        assert_eq!(create(Some(&parents("shop"))), expected);
        let elsewhere = expected.replace("`q```", "`shop`.`q```");
        assert_eq!(create(Some(&parents("old_shop"))), elsewhere);
        let unknown = ParentsThen { find: &|_| None, ..parents("shop") };
        assert!(create(Some(&unknown)).contains(" REFERENCES `p` (`later`),"));
        let alone = create(None);
        assert!(
            !alone.contains("FOREIGN") && alone.contains("  CHECK ((`a` <> _utf8mb4'`later`'))\n)"),
            "{alone}"
        );
        // Not what a server shows.
        assert_eq!(create_then("CREATE TABLE t (a INT)", "old", &then, None), None);
        let fewer = ColumnsThen { now: vec!["id"], ..then };
        assert_eq!(create_then(NOW, "old", &fewer, None), None);
    }
}
