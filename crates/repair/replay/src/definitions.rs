//! Reads and compares the definitions on two servers: databases, tables with their keys, views, routines, triggers, events and
//! accounts, each as its server shows it.

use std::collections::{BTreeMap, BTreeSet};

use binlogz_source::{AnswerFields, Error as ServerError};
use serde::Serialize;

use crate::error::Result;
use crate::quoting::{identifier, literal};
use crate::target::{OWN_SCHEMAS, TargetServer};

/// Accounts that each server has of its own.
const OWN_ACCOUNTS: &str = "('mysql.sys', 'mysql.session', 'mysql.infoschema')";

/// Objects by name, as in `view shop.v`, each with its definition; `Err`: it can't be read.
type Definitions = BTreeMap<String, std::result::Result<String, String>>;

/// An object whose definitions differ, or aren't both known.
#[derive(Debug, Serialize)]
pub struct DifferentDefinition {
    /// The object's kind and name, such as `view shop.v`.
    pub object: String,
    /// The source's definition; `None`: it is not there.
    pub source: Option<String>,
    /// The definition at the restored server.
    pub restored: Option<String>,
}

impl DifferentDefinition {
    /// In one line: where the definitions first differ.
    pub fn line(&self) -> String {
        let DifferentDefinition { object, source, restored } = self;
        match (source, restored) {
            (Some(source), Some(restored)) => {
                let mut lines = source.lines().zip(restored.lines());
                let (source, restored) =
                    lines.find(|(one, other)| one != other).unwrap_or((&**source, &**restored));
                format!("{object}: differs: source {}, restored {}", source.trim(), restored.trim())
            }
            (Some(source), None) if source.starts_with(UNREAD) => {
                format!("{object}: those of the source {source}")
            }
            (Some(_), None) => format!("{object}: isn't in the restored server"),
            (None, _) => format!("{object}: isn't at the source"),
        }
    }
}

/// Why there is no definition, before its cause.
const UNREAD: &str = "can't be read";

/// Compares what two servers have; returns how many objects are equal, and the others. Accounts that only the restored server has are
/// its own.
pub(crate) fn compare(
    source: &mut TargetServer,
    restored: &mut TargetServer,
) -> Result<(usize, Vec<DifferentDefinition>)> {
    // A dump brings accounts as rows.
    restored.ask("FLUSH PRIVILEGES")?;
    let mut theirs = definitions(source)?;
    let ours = definitions(restored)?;
    unseen(source, &mut theirs)?;
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let mut equal = 0;
    let mut different = Vec::new();
    for object in names {
        let known = match (theirs.get(object), ours.get(object)) {
            (Some(Ok(one)), Some(Ok(other))) if one == other => {
                equal += 1;
                continue;
            }
            (None, Some(_)) if object.starts_with(ACCOUNT) => continue,
            both => both,
        };
        let shown = |definition: Option<&std::result::Result<String, String>>| match definition? {
            Ok(text) => Some(text.clone()),
            Err(why) => Some(format!("{UNREAD}: {why}")),
        };
        different.push(DifferentDefinition {
            object: object.clone(),
            source: shown(known.0),
            restored: shown(known.1),
        });
    }
    Ok((equal, different))
}

/// The kind of an account, before its name.
const ACCOUNT: &str = "account ";

/// A kind of objects in databases: its name, the query for database and name, the statement that shows one, and which columns of the answer
/// define it.
const KINDS: [(&str, &str, &str, &[usize]); 5] = [
    (
        "table",
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema",
        "SHOW CREATE TABLE",
        &[1],
    ),
    (
        "view",
        "SELECT table_schema, table_name FROM information_schema.views WHERE table_schema",
        "SHOW CREATE VIEW",
        &[1, 2, 3],
    ),
    (
        "procedure",
        "SELECT routine_schema, routine_name FROM information_schema.routines WHERE routine_type = 'PROCEDURE' AND routine_schema",
        "SHOW CREATE PROCEDURE",
        &[1, 2, 3, 4, 5],
    ),
    (
        "function",
        "SELECT routine_schema, routine_name FROM information_schema.routines WHERE routine_type = 'FUNCTION' AND routine_schema",
        "SHOW CREATE FUNCTION",
        &[1, 2, 3, 4, 5],
    ),
    // Not when it was made.
    (
        "trigger",
        "SELECT trigger_schema, trigger_name FROM information_schema.triggers WHERE trigger_schema",
        "SHOW CREATE TRIGGER",
        &[1, 2, 3, 4, 5],
    ),
];

/// Kinds of objects that one query lists whole: databases, and events, which a replica has switched off.
const ROWS: [(&str, &str); 2] = [
    (
        "database",
        "SELECT schema_name, '', default_character_set_name, default_collation_name FROM information_schema.schemata WHERE schema_name",
    ),
    (
        "event",
        "SELECT event_schema, event_name, definer, time_zone, event_definition, event_type, execute_at, interval_value, interval_field, \
         sql_mode, starts, ends, on_completion, event_comment FROM information_schema.events WHERE event_schema",
    ),
];

fn definitions(server: &mut TargetServer) -> Result<Definitions> {
    let mut found = Definitions::new();
    for (kind, query) in ROWS {
        for row in server.ask(&format!("{query} NOT IN ({OWN_SCHEMAS})"))? {
            let [database, name, definition @ ..] = row.as_slice() else { continue };
            let name = if name.is_empty() { database.clone() } else { format!("{database}.{name}") };
            found.insert(format!("{kind} {name}"), Ok(definition.join(", ")));
        }
    }
    for (kind, query, show, columns) in KINDS {
        for row in server.ask(&format!("{query} NOT IN ({OWN_SCHEMAS})"))? {
            let [database, name] = row.as_slice() else { continue };
            let shown = server.first_row(&format!("{show} {}.{}", identifier(database), identifier(name)));
            let definition =
                shown.and_then(|row| definition_of(&row, columns)).map_err(|error| error.to_string());
            found.insert(format!("{kind} {database}.{name}"), definition);
        }
    }
    accounts(server, &mut found)?;
    Ok(found)
}

/// The texts in these columns of the answer to SHOW CREATE. Servers answer NULL for a routine whose body the account may not see.
fn definition_of(row: &AnswerFields, columns: &[usize]) -> std::result::Result<String, ServerError> {
    let cells: std::result::Result<Vec<_>, ServerError> =
        columns.iter().map(|column| row.text(*column).map(without_counter)).collect();
    Ok(cells?.join("\n"))
}

/// Kinds of objects, each with the right on all databases without which a server hides some of them (manual, INFORMATION_SCHEMA
/// tables). For routines SELECT is enough since 8.0.20.
const SEEN_WITH: [(&str, &str); 4] = [
    ("tables, procedures and functions", "SELECT"),
    ("views", "SHOW VIEW"),
    ("triggers", "TRIGGER"),
    ("events", "EVENT"),
];

/// Notes what the account doesn't see all of: the server leaves it out, without an error.
fn unseen(server: &mut TargetServer, found: &mut Definitions) -> Result<()> {
    // There are no roles before 8.0.
    let using = match server.first_row("SELECT CURRENT_ROLE()") {
        Ok(roles) if roles.text(0)? == "NONE" => String::new(),
        Ok(roles) => format!(" USING {}", roles.text(0)?),
        Err(error) if error.server_error().is_some() => String::new(),
        Err(error) => return Err(error.into()),
    };
    let grants: Vec<String> =
        server.ask(&format!("SHOW GRANTS FOR CURRENT_USER(){using}"))?.into_iter().flatten().collect();
    let global = grants.iter().filter_map(|grant| grant.strip_prefix("GRANT ")?.split_once(" ON *.* TO "));
    let rights: BTreeSet<&str> = global.flat_map(|(rights, _)| rights.split(", ")).collect();
    let is_restricted = grants.iter().any(|grant| grant.starts_with("REVOKE "));
    for (kind, right) in SEEN_WITH {
        if is_restricted || !rights.contains(right) && !rights.contains("ALL PRIVILEGES") {
            let why = format!("the account sees all of them only with {right} on all databases");
            found.insert(kind.to_owned(), Err(why));
        }
    }
    Ok(())
}

/// Accounts with what they may do. That of the private server's own session is another.
fn accounts(server: &mut TargetServer, found: &mut Definitions) -> Result<()> {
    let query = format!(
        "SELECT user, host FROM mysql.user WHERE user NOT IN {OWN_ACCOUNTS} AND NOT (user = 'root' AND host = 'localhost')"
    );
    let rows = match server.ask(&query) {
        Ok(rows) => rows,
        Err(error) => {
            found.insert("accounts".to_owned(), Err(error.to_string()));
            return Ok(());
        }
    };
    // Otherwise salts are shown as bytes that are no text.
    server.ask("SET SESSION print_identified_with_as_hex = ON")?;
    for row in rows {
        let [user, host] = row.as_slice() else { continue };
        let account = format!("{}@{}", literal(user), literal(host));
        let mut lines = Vec::new();
        let mut why = None;
        for statement in [format!("SHOW CREATE USER {account}"), format!("SHOW GRANTS FOR {account}")] {
            match server.ask(&statement) {
                Ok(rows) => {
                    let mut shown: Vec<String> = rows.into_iter().flatten().collect();
                    shown.sort();
                    lines.append(&mut shown);
                }
                Err(error) => why = Some(error.to_string()),
            }
        }
        found.insert(format!("{ACCOUNT}{account}"), why.map_or_else(|| Ok(lines.join("\n")), Err));
    }
    Ok(())
}

/// A table's definition without the next number that it gives: it may be another after a restart.
fn without_counter(definition: &str) -> String {
    const COUNTER: &str = " AUTO_INCREMENT=";
    let Some(options) = definition.rfind("\n) ENGINE=") else { return definition.to_owned() };
    let (columns, options) = definition.split_at(options);
    let Some((before, after)) = options.split_once(COUNTER) else { return definition.to_owned() };
    format!("{columns}{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_that_is_hidden_is_no_empty_one() {
        let shown = |cells: &[Option<&str>]| {
            let row = cells.iter().map(|cell| cell.map(|text| text.as_bytes().to_vec())).collect();
            let row = AnswerFields::first_of("db:3306", "SHOW CREATE PROCEDURE `a`.`p`", vec![row]).unwrap();
            definition_of(&row, &[1, 2]).map_err(|error| error.to_string())
        };
        assert_eq!(shown(&[Some("p"), Some("ANSI"), Some("BEGIN END")]).unwrap(), "ANSI\nBEGIN END");
        let hidden = shown(&[Some("p"), Some("ANSI"), None]).unwrap_err();
        assert_eq!(hidden, "db:3306: SHOW CREATE PROCEDURE `a`.`p` answered NULL, expected a text");
    }

    #[test]
    fn a_counter_is_no_part_of_a_table() {
        let table = "CREATE TABLE `t` (\n  `a` int DEFAULT ' AUTO_INCREMENT=3'\n) ENGINE=InnoDB";
        assert_eq!(
            without_counter(&format!("{table} AUTO_INCREMENT=17 COMMENT='x'")),
            format!("{table} COMMENT='x'")
        );
        assert_eq!(without_counter(table), table);
    }

    #[test]
    fn a_difference_is_one_line_where_it_begins() {
        let line = |source: Option<&str>, restored: Option<&str>| {
            let source = source.map(str::to_owned);
            let restored = restored.map(str::to_owned);
            DifferentDefinition { object: "view a.v".to_owned(), source, restored }.line()
        };
        assert_eq!(
            line(Some("a\n  b INT,\nc"), Some("a\n  b BIGINT,\nd")),
            "view a.v: differs: source b INT,, restored b BIGINT,"
        );
        assert_eq!(line(Some("a"), None), "view a.v: isn't in the restored server");
        assert_eq!(line(None, Some("a")), "view a.v: isn't at the source");
        assert_eq!(
            line(Some("can't be read: no right"), None),
            "view a.v: those of the source can't be read: no right"
        );
    }
}
