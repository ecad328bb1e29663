//! SHOW, DESCRIBE and EXPLAIN of a table, as queries of system tables: so LIKE and WHERE after them work as in any query.

use binlogz_query::Names;
use binlogz_query_server::StatementRefusal;

use super::syntax_near;
use super::tables::{KnownTables, no_table};
use super::words::Words;
use crate::errors::{NOT_SUPPORTED, UNKNOWN_DATABASE, refused};
use crate::session::MysqlSession;
use crate::system;

/// A list that stands for a statement.
#[derive(Debug)]
pub(super) struct ListStatement {
    /// A query.
    pub(super) query: String,
    /// Names of its columns.
    pub(super) names: Vec<String>,
}

/// The columns of a list: what each is called, and its expression.
type ListColumns<'c> = &'c [(&'c str, &'c str)];

const COLUMNS: ListColumns<'static> = &[
    ("Field", "column_name"),
    ("Type", "column_type"),
    ("Null", "is_nullable"),
    ("Key", "column_key"),
    ("Default", "column_default"),
    ("Extra", "extra"),
];
const FULL_COLUMNS: ListColumns<'static> = &[
    ("Field", "column_name"),
    ("Type", "column_type"),
    ("Collation", "collation_name"),
    ("Null", "is_nullable"),
    ("Key", "column_key"),
    ("Default", "column_default"),
    ("Extra", "extra"),
    ("Privileges", "privileges"),
    ("Comment", "column_comment"),
];
const TABLE_STATUS: ListColumns<'static> = &[
    ("Name", "table_name"),
    ("Engine", "engine"),
    ("Version", "version"),
    ("Row_format", "row_format"),
    ("Rows", "table_rows"),
    ("Avg_row_length", "avg_row_length"),
    ("Data_length", "data_length"),
    ("Max_data_length", "max_data_length"),
    ("Index_length", "index_length"),
    ("Data_free", "data_free"),
    ("Auto_increment", "auto_increment"),
    ("Create_time", "create_time"),
    ("Update_time", "update_time"),
    ("Check_time", "check_time"),
    ("Collation", "table_collation"),
    ("Checksum", "checksum"),
    ("Create_options", "create_options"),
    ("Comment", "table_comment"),
];
const INDEX: ListColumns<'static> = &[
    ("Table", "table_name"),
    ("Non_unique", "non_unique"),
    ("Key_name", "index_name"),
    ("Seq_in_index", "seq_in_index"),
    ("Column_name", "column_name"),
    ("Collation", "collation"),
    ("Cardinality", "cardinality"),
    ("Sub_part", "sub_part"),
    ("Packed", "packed"),
    ("Null", "nullable"),
    ("Index_type", "index_type"),
    ("Comment", "comment"),
    ("Index_comment", "index_comment"),
];
const VARIABLES: ListColumns<'static> = &[("Variable_name", "variable_name"), ("Value", "variable_value")];
const CHARACTER_SETS: ListColumns<'static> = &[
    ("Charset", "character_set_name"),
    ("Description", "description"),
    ("Default collation", "default_collate_name"),
    ("Maxlen", "maxlen"),
];
const COLLATIONS: ListColumns<'static> = &[
    ("Collation", "collation_name"),
    ("Charset", "character_set_name"),
    ("Id", "id"),
    ("Default", "is_default"),
    ("Compiled", "is_compiled"),
    ("Sortlen", "sortlen"),
    ("Pad_attribute", "pad_attribute"),
];
const ENGINES: ListColumns<'static> = &[
    ("Engine", "engine"),
    ("Support", "support"),
    ("Comment", "comment"),
    ("Transactions", "transactions"),
    ("XA", "xa"),
    ("Savepoints", "savepoints"),
];
const PLUGINS: ListColumns<'static> = &[
    ("Name", "plugin_name"),
    ("Status", "plugin_status"),
    ("Type", "plugin_type"),
    ("Library", "plugin_library"),
    ("License", "plugin_license"),
];
const PROCESSES: ListColumns<'static> = &[
    ("Id", "id"),
    ("User", "user"),
    ("Host", "host"),
    ("db", "db"),
    ("Command", "command"),
    ("Time", "time"),
    ("State", "state"),
    ("Info", "info"),
];
const TRIGGERS: ListColumns<'static> = &[
    ("Trigger", "trigger_name"),
    ("Event", "event_manipulation"),
    ("Table", "event_object_table"),
    ("Statement", "action_statement"),
    ("Timing", "action_timing"),
    ("Created", "created"),
    ("sql_mode", "sql_mode"),
    ("Definer", "definer"),
    ("character_set_client", "character_set_client"),
    ("collation_connection", "collation_connection"),
    ("Database Collation", "database_collation"),
];
const ROUTINES: ListColumns<'static> = &[
    ("Db", "routine_schema"),
    ("Name", "routine_name"),
    ("Type", "routine_type"),
    ("Definer", "definer"),
    ("Modified", "last_altered"),
    ("Created", "created"),
    ("Security_type", "security_type"),
    ("Comment", "routine_comment"),
];
const EVENTS: ListColumns<'static> = &[
    ("Db", "event_schema"),
    ("Name", "event_name"),
    ("Definer", "definer"),
    ("Time zone", "time_zone"),
    ("Type", "event_type"),
    ("Status", "status"),
];

/// The list that a statement asks for; `None`: it is no such statement.
pub(super) fn list(
    words: Words<'_>,
    session: &MysqlSession,
    known: &dyn KnownTables,
) -> Result<Option<ListStatement>, StatementRefusal> {
    let mut words = words;
    match words.take(&["SHOW", "DESCRIBE", "DESC", "EXPLAIN"]) {
        None => Ok(None),
        Some("SHOW") => ShowStatement { words, session, known }.list().map(Some),
        Some(_) => {
            // EXPLAIN SELECT is a query of its own.
            if words
                .take(&["SELECT", "WITH", "ANALYZE", "FORMAT", "EXTENDED", "PARTITIONS", "VERBOSE"])
                .is_some()
            {
                return Ok(None);
            }
            let mut shown = ShowStatement { words, session, known };
            let Some((database, table)) = shown.words.table() else { return Ok(None) };
            let database = shown.database_of(database, &table)?;
            shown.columns((database, table), COLUMNS, true).map(Some)
        }
    }
}

/// The words after SHOW, and FULL or GLOBAL, that begin a list.
const LISTS: [&str; 27] = [
    "DATABASES",
    "SCHEMAS",
    "TABLES",
    "TABLE",
    "COLUMNS",
    "FIELDS",
    "INDEX",
    "INDEXES",
    "KEYS",
    "CREATE",
    "VARIABLES",
    "STATUS",
    "CHARSET",
    "CHARACTER",
    "COLLATION",
    "ENGINES",
    "STORAGE",
    "PLUGINS",
    "PROCESSLIST",
    "TRIGGERS",
    "FUNCTION",
    "PROCEDURE",
    "EVENTS",
    "GRANTS",
    "OPEN",
    "ERRORS",
    "PRIVILEGES",
];

struct ShowStatement<'s> {
    words: Words<'s>,
    session: &'s MysqlSession,
    known: &'s dyn KnownTables,
}

impl ShowStatement<'_> {
    fn list(&mut self) -> Result<ListStatement, StatementRefusal> {
        let is_full = self.words.take(&["FULL"]).is_some() | self.words.take(&["EXTENDED"]).is_some();
        let is_full = is_full | self.words.take(&["FULL"]).is_some();
        let is_global = self.words.take(&["GLOBAL", "SESSION", "LOCAL"]) == Some("GLOBAL");
        let begun = self.words;
        match self.words.take(&LISTS) {
            Some("DATABASES" | "SCHEMAS") => self.filtered(&[("Database", "schema_name")], "schemata", None),
            Some("TABLES") => self.tables(is_full),
            Some("OPEN") if self.words.take(&["TABLES"]).is_some() => self.tables(false),
            Some("TABLE") if self.words.take(&["STATUS"]).is_some() => {
                let database = self.database()?;
                self.filtered(TABLE_STATUS, "tables", Some(("table_schema", &database)))
            }
            Some("COLUMNS" | "FIELDS") => {
                let table = self.of_table()?;
                self.columns(table, if is_full { FULL_COLUMNS } else { COLUMNS }, false)
            }
            Some("INDEX" | "INDEXES" | "KEYS") => {
                let (database, table) = self.of_table()?;
                self.exists(&database, &table)?;
                self.filtered(INDEX, "statistics", Some(("table_name", &table)))
            }
            Some("CREATE") => self.create(),
            Some("VARIABLES") => {
                let table = if is_global { "global_variables" } else { "session_variables" };
                self.of_performance(table)
            }
            Some("STATUS") => {
                let table = if is_global { "global_status" } else { "session_status" };
                self.of_performance(table)
            }
            Some("CHARSET") => self.filtered(CHARACTER_SETS, "character_sets", None),
            Some("CHARACTER") if self.words.take(&["SET"]).is_some() => {
                self.filtered(CHARACTER_SETS, "character_sets", None)
            }
            Some("COLLATION") => self.filtered(COLLATIONS, "collations", None),
            Some("ENGINES") => self.filtered(ENGINES, "engines", None),
            Some("STORAGE") if self.words.take(&["ENGINES"]).is_some() => {
                self.filtered(ENGINES, "engines", None)
            }
            Some("PLUGINS") => self.filtered(PLUGINS, "plugins", None),
            Some("PROCESSLIST") => self.filtered(PROCESSES, "processlist", None),
            Some("TRIGGERS") => {
                self.database()?;
                self.filtered(TRIGGERS, "triggers", None)
            }
            Some("FUNCTION" | "PROCEDURE") if self.words.take(&["STATUS"]).is_some() => {
                self.filtered(ROUTINES, "routines", None)
            }
            Some("EVENTS") => {
                self.database()?;
                self.filtered(EVENTS, "events", None)
            }
            Some("GRANTS") => Ok(self.grants()),
            Some("ERRORS") => Ok(rows(&["Level", "Code", "Message"], &[])),
            Some("PRIVILEGES") => {
                Ok(rows(&["Privilege", "Context", "Comment"], &["Select", "Tables", "To read rows"]))
            }
            _ => Err(syntax_near(begun.rest(), 0)),
        }
    }

    /// `[FROM | IN] database`, by default the session's.
    fn database(&mut self) -> Result<String, StatementRefusal> {
        let named = match self.words.take(&["FROM", "IN"]) {
            Some(_) => Some(self.words.name().ok_or_else(|| syntax_near(self.words.rest(), 0))?),
            None => None,
        };
        let database = named.unwrap_or_else(|| self.default());
        self.database_exists(&database)?;
        Ok(database)
    }

    fn default(&self) -> String {
        match self.session.database.as_str() {
            "" => Names::LOG_SCHEMA.to_owned(),
            database => database.to_owned(),
        }
    }

    /// The database of a table. The tables that all logs have are found from everywhere.
    fn database_of(&self, named: Option<String>, table: &str) -> Result<String, StatementRefusal> {
        let default = self.default();
        let is_of_logs =
            named.is_none() && Names::LOG_TABLES.contains(&table) && default != Names::LOG_SCHEMA;
        let is_own =
            is_of_logs && self.known.user_tables()?.iter().any(|(of, name)| *of == default && name == table);
        Ok(match named {
            Some(database) => database,
            None if is_of_logs && !is_own => Names::LOG_SCHEMA.to_owned(),
            None => default,
        })
    }

    fn database_exists(&self, database: &str) -> Result<(), StatementRefusal> {
        if database == Names::LOG_SCHEMA || system::is_database(database) {
            return Ok(());
        }
        match self.known.user_tables()?.iter().any(|(of, _)| of == database) {
            true => Ok(()),
            false => Err(refused(UNKNOWN_DATABASE, format!("Unknown database '{database}'"))),
        }
    }

    fn exists(&self, database: &str, table: &str) -> Result<(), StatementRefusal> {
        self.database_exists(database)?;
        let is_of_logs = database == Names::LOG_SCHEMA && Names::LOG_TABLES.contains(&table);
        let name = (database.to_ascii_lowercase(), table.to_ascii_lowercase());
        let is_there = is_of_logs
            || system::is_table(&name)
            || database != Names::LOG_SCHEMA
                && self.known.user_tables()?.iter().any(|(of, name)| of == database && name == table);
        is_there.then_some(()).ok_or_else(|| no_table(&format!("{database}.{table}")))
    }

    /// `FROM [database.]table [FROM database]`.
    fn of_table(&mut self) -> Result<(String, String), StatementRefusal> {
        self.words.take(&["FROM", "IN"]).ok_or_else(|| syntax_near(self.words.rest(), 0))?;
        let table = self.words.table().ok_or_else(|| syntax_near(self.words.rest(), 0))?;
        let of = match self.words.take(&["FROM", "IN"]) {
            Some(_) => Some(self.words.name().ok_or_else(|| syntax_near(self.words.rest(), 0))?),
            None => None,
        };
        let (database, table) = table;
        Ok((self.database_of(of.or(database), &table)?, table))
    }

    fn columns(
        &mut self,
        (database, table): (String, String),
        columns: ListColumns<'_>,
        is_describe: bool,
    ) -> Result<ListStatement, StatementRefusal> {
        self.exists(&database, &table)?;
        if is_describe && !self.words.is_end() {
            // DESCRIBE table column
            let column = self.words.name().or_else(|| self.words.quoted());
            let column = column.ok_or_else(|| syntax_near(self.words.rest(), 0))?;
            let place = of(&database, &table);
            let place = format!("{place} AND lower(column_name) LIKE lower({})", quoted(&column));
            return Ok(listed(columns, "columns", &place, ""));
        }
        let rest = self.condition(columns)?;
        Ok(listed(columns, "columns", &of(&database, &table), &rest))
    }

    fn tables(&mut self, is_full: bool) -> Result<ListStatement, StatementRefusal> {
        let database = self.database()?;
        let title = format!("Tables_in_{database}");
        let columns: &[(&str, &str)] = &[(&title, "table_name"), ("Table_type", "table_type")];
        let columns = if is_full { columns } else { columns.get(..1).unwrap_or_default() };
        self.filtered(columns, "tables", Some(("table_schema", &database)))
    }

    fn of_performance(&mut self, table: &str) -> Result<ListStatement, StatementRefusal> {
        let rest = self.condition(VARIABLES)?;
        Ok(listed_of(VARIABLES, &format!("performance_schema.{table}"), "TRUE", &rest))
    }

    fn filtered(
        &mut self,
        columns: ListColumns<'_>,
        table: &str,
        only: Option<(&str, &str)>,
    ) -> Result<ListStatement, StatementRefusal> {
        let rest = self.condition(columns)?;
        let place =
            only.map_or_else(|| "TRUE".to_owned(), |(column, value)| format!("{column} = {}", quoted(value)));
        Ok(listed(columns, table, &place, &rest))
    }

    /// LIKE or WHERE, as a condition on the list's columns.
    fn condition(&mut self, columns: ListColumns<'_>) -> Result<String, StatementRefusal> {
        if self.words.take(&["LIKE"]).is_some() {
            let pattern = self.words.quoted().ok_or_else(|| syntax_near(self.words.rest(), 0))?;
            if !self.words.is_end() {
                return Err(syntax_near(self.words.rest(), 0));
            }
            let first = columns.first().map(|(name, _)| *name).unwrap_or_default();
            return Ok(format!("WHERE lower(`{}`) LIKE lower({})", first.to_lowercase(), quoted(&pattern)));
        }
        let rest = self.words.rest();
        match self.words.take(&["WHERE"]) {
            Some(_) => Ok(rest.to_owned()),
            None if self.words.is_end() => Ok(String::new()),
            None => Err(syntax_near(rest, 0)),
        }
    }

    fn create(&mut self) -> Result<ListStatement, StatementRefusal> {
        match self.words.take(&["TABLE", "DATABASE", "SCHEMA", "VIEW"]) {
            Some("TABLE") => {
                let table = self.words.table().ok_or_else(|| syntax_near(self.words.rest(), 0))?;
                let (database, table) = table;
                let database = self.database_of(database, &table)?;
                self.exists(&database, &table)?;
                let columns: ListColumns<'_> = &[("Table", "table_name"), ("Create Table", "create_table")];
                Ok(listed_of(columns, "information_schema.binlogz_create_table", &of(&database, &table), ""))
            }
            Some("DATABASE" | "SCHEMA") => {
                self.words.take_all(&["IF", "NOT", "EXISTS"]);
                let database = self.words.name().ok_or_else(|| syntax_near(self.words.rest(), 0))?;
                self.database_exists(&database)?;
                let statement = format!(
                    "CREATE DATABASE `{}` /*!40100 DEFAULT CHARACTER SET utf8mb4 */",
                    database.replace('`', "``")
                );
                Ok(rows(&["Database", "Create Database"], &[&database, &statement]))
            }
            _ => Err(refused(
                NOT_SUPPORTED,
                "This server has tables alone: SHOW CREATE TABLE or DATABASE is possible",
            )),
        }
    }

    fn grants(&self) -> ListStatement {
        let user = format!("'{}'@'%'", self.session.user.replace('\'', "''"));
        let name = format!("Grants for {}@%", self.session.user);
        rows(&[&name], &[&format!("GRANT SELECT ON *.* TO {user}")])
    }
}

fn of(database: &str, table: &str) -> String {
    // Names of system databases may be in any case.
    let of = |name: &str| match system::is_database(database) {
        true => quoted(&name.to_ascii_lowercase()),
        false => quoted(name),
    };
    match system::is_database(database) {
        true => format!("lower(table_schema) = {} AND lower(table_name) = {}", of(database), of(table)),
        false => format!("table_schema = {} AND table_name = {}", of(database), of(table)),
    }
}

fn listed(columns: ListColumns<'_>, table: &str, place: &str, rest: &str) -> ListStatement {
    listed_of(columns, &format!("information_schema.{table}"), place, rest)
}

/// A list of a system table. The condition that the client gave is about the list's columns, by their names there.
fn listed_of(columns: ListColumns<'_>, table: &str, place: &str, rest: &str) -> ListStatement {
    let items: Vec<_> = columns
        .iter()
        .map(|(name, from)| format!("{from} AS `{}`", name.to_lowercase().replace('`', "``")))
        .collect();
    let query =
        format!("SELECT * FROM (SELECT {} FROM {table} WHERE {place}) AS shown {rest}", items.join(", "));
    ListStatement { query, names: columns.iter().map(|(name, _)| (*name).to_owned()).collect() }
}

/// At most one row of texts.
fn rows(names: &[&str], values: &[&str]) -> ListStatement {
    let items: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(number, _)| format!("{} AS c{number}", quoted(values.get(number).unwrap_or(&""))))
        .collect();
    let only = if values.is_empty() { " WHERE FALSE" } else { "" };
    let query = format!("SELECT {} FROM information_schema.engines{only}", items.join(", "));
    ListStatement { query, names: names.iter().map(|name| (*name).to_owned()).collect() }
}

/// A text as MySQL's grammar reads it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
