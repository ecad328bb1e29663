//! The table on its server: its columns and its key, a consistent view of its rows, and temporary tables with which the
//! rows are joined.
//!
//! ```text
//! binlogz_touched    the keys that were changed after the moment      temporary tables of the session,
//! binlogz_past       their rows as they were                          beside the table
//! ```
//!
//! If the rows are written out, they come from a snapshot of the session, so the table may be changed meanwhile. If they
//! go into a table, the server itself copies them. That loses nothing that a text can't say (JSON). Until the new table
//! is whole it has another name.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::GtidSet;
use binlogz_schema::SchemaFile;
use binlogz_source::{ConnectOptions, Connection};

use super::PastError;
use super::indirect::IsolatedTables;
use super::touched_rows::{SqlValues, TouchedRows};
use super::write::{LiveColumn, PastFormat, RowWriter, SETTINGS, quoted};
use crate::sql::text::push_quoted;

/// A copy of a table takes as long as it takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// How long transactions that are being committed may take.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);
const COMMIT_PERIOD: Duration = Duration::from_millis(50);
/// Bytes of rows in a statement, unless a row has more.
const STATEMENT_SIZE_MAX: usize = 256 << 10;
/// The most characters of a name.
const NAME_LENGTH_MAX: usize = 64;
const GTID_OWNED: &str = "SELECT REPLACE(@@GLOBAL.gtid_owned, '\\n', '')";
const TOUCHED: &str = "binlogz_touched";
const PAST: &str = "binlogz_past";
/// The suffix of a table's name until it is whole.
const UNFINISHED: &str = "_unfinished";

/// The table on its server: its columns and its key, a consistent view of its rows, and the tables that its rows are
/// joined with.
pub struct LiveTable {
    connection: Connection,
    pub(super) database: String,
    pub(super) table: String,
    pub(super) schema: SchemaFile,
    /// The columns of a key that no two rows have in common, none of them NULL, by their places among all columns.
    pub(super) key: Vec<usize>,
    key_names: Vec<String>,
    /// The columns that have values of their own, so not the generated ones.
    columns: Vec<LiveColumn>,
    create: String,
    making: Option<TableInProgress>,
}

/// A table whose changes foreign keys carry on to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CascadingParent {
    /// The database and the table.
    pub(super) name: (String, String),
    /// The columns that foreign keys refer to, by their places among all columns; none if the account may not see the table, and
    /// then its own foreign keys are not known either.
    pub(super) columns: Vec<usize>,
}

impl CascadingParent {
    /// Whether the account may not see the table.
    pub fn is_hidden(&self) -> bool {
        self.columns.is_empty()
    }
}

impl std::fmt::Display for CascadingParent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.name.0, self.name.1)
    }
}

/// A table that is being made: its database, its name, its name until then.
struct TableInProgress {
    database: String,
    table: String,
    unfinished: String,
}

impl std::fmt::Debug for LiveTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveTable").field("table", &self.shown()).finish_non_exhaustive()
    }
}

type Row = Vec<Option<Vec<u8>>>;

impl LiveTable {
    /// Connects and looks at the table.
    ///
    /// # Errors
    ///
    /// A server that can't be asked; a table that isn't there, has no key, or an engine without transactions.
    pub fn open(connect: &ConnectOptions, (database, table): (&str, &str)) -> Result<Self, PastError> {
        let mut connect = connect.clone();
        connect.timeouts.answer = ANSWER_TIMEOUT;
        let connection = Connection::open(&connect).map_err(PastError::server("connecting"))?;
        let mut live = LiveTable {
            connection,
            database: database.to_owned(),
            table: table.to_owned(),
            schema: SchemaFile::default(),
            key: Vec::new(),
            key_names: Vec::new(),
            columns: Vec::new(),
            create: String::new(),
            making: None,
        };
        live.run(&format!("USE {}", quoted(database)))?;
        live.run("SET NAMES utf8mb4")?;
        live.run(&format!(
            "SET {SETTINGS}, SESSION sql_quote_show_create = 1, SESSION wait_timeout = 31536000"
        ))?;
        live.look()?;
        Ok(live)
    }

    fn look(&mut self) -> Result<(), PastError> {
        let names = self.names();
        let version = self.text("SELECT VERSION()")?;
        if version.contains("MariaDB") {
            return Err(PastError::Refused(format!("is MariaDB {version}, expected MySQL")));
        }
        let found = self.rows(&format!(
            "SELECT t.engine, e.transactions FROM information_schema.tables t LEFT JOIN information_schema.engines e ON \
             e.engine = t.engine WHERE (t.table_schema, t.table_name) = ({names}) AND t.table_type = 'BASE TABLE'"
        ))?;
        let shown = self.shown();
        let Some(row) = found.first() else {
            return Err(PastError::Refused(format!(
                "{shown} is not on the server, or this account may not see it"
            )));
        };
        if column(row, 1) != "YES" {
            let engine = column(row, 0);
            return Err(PastError::Refused(format!(
                "{shown} has the engine {engine}, which has no transactions"
            )));
        }
        let all = self.rows(&format!(
            "SELECT column_name, data_type, extra, character_set_name FROM information_schema.columns WHERE \
             (table_schema, table_name) = ({names}) ORDER BY ordinal_position"
        ))?;
        let is_generated = |row: &Row| {
            let extra = column(row, 2).to_uppercase();
            extra.contains("VIRTUAL GENERATED") || extra.contains("STORED GENERATED")
        };
        let stored = all.iter().filter(|row| !is_generated(row)).map(|row| LiveColumn {
            name: column(row, 0),
            data_type: column(row, 1).to_lowercase(),
            charset: row
                .get(3)
                .and_then(Option::as_ref)
                .map(|name| String::from_utf8_lossy(name).into_owned()),
        });
        self.columns = stored.collect();
        self.find_key(&all.iter().map(|row| (column(row, 0), is_generated(row))).collect::<Vec<_>>())?;
        let rows = self.rows(&format!("SHOW CREATE TABLE {}", self.quoted()))?;
        self.create = rows.first().map(|row| column(row, 1)).unwrap_or_default();
        let statements = format!("USE {};\n{};\n", quoted(&self.database), self.create);
        self.schema = SchemaFile::parse(&statements)
            .map_err(|error| PastError::Refused(format!("{shown}: {error}")))?;
        Ok(())
    }

    /// The primary key, else a unique one.
    fn find_key(&mut self, columns: &[(String, bool)]) -> Result<(), PastError> {
        let parts = self.rows(&format!(
            "SELECT index_name, column_name, nullable, sub_part FROM information_schema.statistics WHERE \
             (table_schema, table_name) = ({}) AND non_unique = 0 ORDER BY index_name <> 'PRIMARY', index_name, \
             seq_in_index",
            self.names()
        ))?;
        let place = |part: &Row| {
            let name = column(part, 1);
            let place = columns.iter().position(|(column, is_generated)| *column == name && !is_generated)?;
            let is_whole = part.get(3).is_some_and(Option::is_none);
            (column(part, 2) != "YES" && is_whole).then_some((place, name))
        };
        for key in parts.chunk_by(|one, other| one.first() == other.first()) {
            if let Some(key) = key.iter().map(place).collect::<Option<Vec<_>>>() {
                (self.key, self.key_names) = key.into_iter().unzip();
                return Ok(());
            }
        }
        Err(PastError::Refused(format!(
            "{} has no primary key, and no unique key of whole columns that are never NULL: its rows can't be told apart",
            self.shown()
        )))
    }

    /// The tables whose deleted rows or changed keys foreign keys carry on to this table, over any number of tables in between.
    ///
    /// # Errors
    ///
    /// A server that can't be asked.
    pub fn cascading_parents(&mut self) -> Result<Vec<CascadingParent>, PastError> {
        let rows = self.rows(
            "SELECT k.table_schema, k.table_name, k.referenced_table_schema, k.referenced_table_name, c.ordinal_position FROM \
             information_schema.referential_constraints r JOIN information_schema.key_column_usage k USING (constraint_schema, \
             constraint_name, table_name) LEFT JOIN information_schema.columns c ON (c.table_schema, c.table_name, c.column_name) = \
             (k.referenced_table_schema, k.referenced_table_name, k.referenced_column_name) WHERE r.delete_rule NOT IN \
             ('RESTRICT', 'NO ACTION') OR r.update_rule NOT IN ('RESTRICT', 'NO ACTION')",
        )?;
        let mut reached = vec![(self.database.clone(), self.table.clone())];
        let mut parents: Vec<CascadingParent> = Vec::new();
        let mut next = 0;
        while let Some(child) = reached.get(next).cloned() {
            next += 1;
            for row in rows.iter().filter(|row| (column(row, 0), column(row, 1)) == child) {
                let name = (column(row, 2), column(row, 3));
                let place = column(row, 4).parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                match parents.iter_mut().find(|parent| parent.name == name) {
                    Some(parent) => parent.columns.extend(place),
                    None => {
                        parents.push(CascadingParent { name: name.clone(), columns: Vec::from_iter(place) })
                    }
                }
                if !reached.contains(&name) {
                    reached.push(name);
                }
            }
        }
        Ok(parents)
    }

    /// Whether the server logs the rows that its foreign keys change.
    ///
    /// # Errors
    ///
    /// A server that can't be asked.
    pub fn logs_cascades(&mut self) -> Result<bool, PastError> {
        let version = self.text("SELECT VERSION()")?;
        let native = self.pairs("SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'")?;
        Ok(logs_cascades(&version) && !native.iter().any(|(_, value)| value == "on"))
    }

    /// The tables whose changes leave this one alone: base tables without triggers, from which no foreign key leads to this one or
    /// to one with triggers. None for an account that may not see all triggers and stored functions.
    ///
    /// # Errors
    ///
    /// A server that can't be asked.
    pub fn isolated_tables(&mut self) -> Result<IsolatedTables, PastError> {
        let rights = self.pairs(
            "SELECT privilege_type, '' FROM information_schema.user_privileges WHERE grantee = CONCAT('''', LEFT(CURRENT_USER(), \
             CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), '''@''', \
             SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')",
        )?;
        let may = |right: &str| rights.iter().any(|(own, _)| own == right);
        // With partial revokes a global right doesn't hold in every database.
        let revokes = self.pairs("SHOW GLOBAL VARIABLES LIKE 'partial_revokes'")?;
        let is_restricted = revokes.iter().any(|(_, value)| value == "on");
        if is_restricted || !(may("trigger") && (may("select") || may("show_routine"))) {
            return Ok(IsolatedTables::default());
        }
        let mut leading: HashSet<_> = self
            .pairs("SELECT event_object_schema, event_object_table FROM information_schema.triggers")?
            .into_iter()
            .collect();
        leading.insert((self.database.to_lowercase(), self.table.to_lowercase()));
        let parents = self.rows(
            "SELECT unique_constraint_schema, referenced_table_name, constraint_schema, table_name FROM \
             information_schema.referential_constraints WHERE delete_rule NOT IN ('RESTRICT', 'NO ACTION') OR update_rule NOT \
             IN ('RESTRICT', 'NO ACTION')",
        )?;
        let pair =
            |row: &Row, index| (column(row, index).to_lowercase(), column(row, index + 1).to_lowercase());
        let parents: Vec<_> = parents.iter().map(|row| (pair(row, 0), pair(row, 2))).collect();
        loop {
            let found = parents.iter().filter(|(_, child)| leading.contains(child));
            let found: Vec<_> =
                found.map(|(parent, _)| parent.clone()).filter(|parent| !leading.contains(parent)).collect();
            if found.is_empty() {
                break;
            }
            leading.extend(found);
        }
        let views = self.pairs(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type <> 'BASE TABLE'",
        )?;
        leading.extend(views.iter().cloned());
        let mut tables: HashSet<_> = self
            .pairs("SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'")?
            .into_iter()
            .collect();
        tables.retain(|table| !leading.contains(table));
        let functions = self.pairs(
            "SELECT routine_name, '' FROM information_schema.routines WHERE routine_type = 'FUNCTION'",
        )?;
        let mut programs: HashSet<_> = functions.into_iter().map(|(name, _)| name).collect();
        if !programs.is_empty() {
            programs.extend(views.into_iter().map(|(_, name)| name));
        }
        Ok(IsolatedTables { tables, programs })
    }

    /// The first two columns of rows, in small letters.
    fn pairs(&mut self, statement: &str) -> Result<Vec<(String, String)>, PastError> {
        let rows = self.rows(statement)?;
        Ok(rows.iter().map(|row| (column(row, 0).to_lowercase(), column(row, 1).to_lowercase())).collect())
    }

    /// Sees the table as it is now, until the end.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub fn hold(&mut self) -> Result<(), PastError> {
        self.make_temporary()?;
        self.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        self.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        // From here on nothing changes its columns.
        self.rows(&format!("SELECT 1 FROM {} LIMIT 0", self.quoted())).map(drop)
    }

    /// Copies the table as it is now into one that doesn't exist.
    ///
    /// # Errors
    ///
    /// The server refuses it; the table exists.
    pub fn copy_into(&mut self, (database, table): (&str, &str)) -> Result<(), PastError> {
        self.make_temporary()?;
        let exists = format!(
            "SELECT table_name FROM information_schema.tables WHERE (table_schema, table_name) = ({})",
            names_of(database, table)
        );
        if !self.rows(&exists)?.is_empty() {
            return Err(PastError::Refused(format!("--into {database}.{table}: there is such a table")));
        }
        let kept: String = table.chars().take(NAME_LENGTH_MAX - UNFINISHED.len()).collect();
        let unfinished = format!("{kept}{UNFINISHED}");
        let place = format!("{}.{}", quoted(database), quoted(&unfinished));
        self.run(&format!("CREATE TABLE {place} LIKE {}", self.quoted()))?;
        self.making =
            Some(TableInProgress { database: database.to_owned(), table: table.to_owned(), unfinished });
        // Nothing is locked: a row that is changed meanwhile is replaced afterwards.
        self.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        let columns = self.column_names();
        self.run(&format!("INSERT INTO {place} ({columns}) SELECT {columns} FROM {}", self.quoted()))
    }

    /// The transactions that the rows seen may have in them. With `commits` also those that were being committed then: logs
    /// that are read from the server afterwards have them anyway.
    ///
    /// # Errors
    ///
    /// The server can't be asked, or has no GTIDs and logs are compared with it.
    pub fn executed(&mut self, commits: bool) -> Result<GtidSet, PastError> {
        let mode = self.text("SELECT @@GLOBAL.gtid_mode")?;
        if commits && mode != "ON" {
            return Err(PastError::Refused(format!(
                "gtid_mode is {mode}: without GTIDs nothing tells whether logs reach to what the server has now; it can be \
                 told for the server's own logs"
            )));
        }
        let parse = |text: String| {
            text.parse::<GtidSet>()
                .map_err(|error| PastError::Refused(format!("GTIDs of the server: {error}")))
        };
        // A transaction is seen a moment before its GTID counts as executed; until then a session owns it.
        let being_committed =
            if commits { parse(without_owners(&self.text(GTID_OWNED)?))? } else { GtidSet::new() };
        let begin = Instant::now();
        loop {
            let mut executed = parse(self.text("SELECT REPLACE(@@GLOBAL.gtid_executed, '\\n', '')")?)?;
            let mut open = being_committed.clone();
            open.subtract(&executed);
            if !open.is_empty() {
                open.intersect(&parse(without_owners(&self.text(GTID_OWNED)?))?);
            }
            // Sessions of a replica's applier own a GTID all the time.
            if open.is_empty() || begin.elapsed() > COMMIT_TIMEOUT {
                executed.union(&open);
                return Ok(executed);
            }
            std::thread::sleep(COMMIT_PERIOD);
        }
    }

    /// Hands what logs tell to the server.
    ///
    /// # Errors
    ///
    /// The server refuses it; a temporary file that can't be read.
    pub fn take_back(&mut self, touched: &TouchedRows) -> Result<(), PastError> {
        let temporary = |name: &str| format!("{}.{}", quoted(&self.database), quoted(name));
        let (keys, past, names) = (temporary(TOUCHED), temporary(PAST), self.column_names());
        // Two spellings of one key that are equal for the server are one key.
        self.insert(&format!("INSERT IGNORE INTO {keys} VALUES "), &touched.keys)?;
        self.insert(&format!("INSERT INTO {past} ({names}) VALUES "), &touched.rows)
    }

    fn insert(&mut self, front: &str, values: &SqlValues) -> Result<(), PastError> {
        let mut reader = values.reader();
        let mut statement = Vec::new();
        while !reader.is_at_end() {
            statement.extend_from_slice(if statement.is_empty() { front.as_bytes() } else { b", " });
            reader.append_next(&mut statement).map_err(PastError::Temporary)?;
            if statement.len() > STATEMENT_SIZE_MAX || reader.is_at_end() {
                self.connection
                    .execute(&statement)
                    .map_err(PastError::server("handing rows to the server"))?;
                statement.clear();
            }
        }
        Ok(())
    }

    /// Writes the table as it was; returns how many rows it had.
    ///
    /// # Errors
    ///
    /// The server, or the output.
    pub fn write(&mut self, format: PastFormat, title: &str, out: &mut dyn Write) -> Result<u64, PastError> {
        let expressions: Vec<_> = self.columns.iter().map(|column| column.expression(format)).collect();
        let expressions = expressions.join(", ");
        let database = quoted(&self.database);
        let same: Vec<_> = self.key_names.iter().map(|name| format!("k.{0} = t.{0}", quoted(name))).collect();
        let unchanged = format!(
            "SELECT {expressions} FROM {} t WHERE NOT EXISTS (SELECT 1 FROM {database}.{TOUCHED} k WHERE {})",
            self.quoted(),
            same.join(" AND ")
        );
        let past = format!("SELECT {expressions} FROM {database}.{PAST}");
        let mut writer = RowWriter::new(format, &self.table, &self.columns, out);
        writer.begin(title, &self.create, &self.columns).map_err(PastError::Output)?;
        for select in [unchanged, past] {
            let mut failed: Option<io::Error> = None;
            let asked = self.connection.query_each(&select, &mut |rows| {
                failed = rows.iter().try_for_each(|row| writer.row(row)).err();
                failed.is_none()
            });
            if let Some(error) = failed {
                return Err(PastError::Output(error));
            }
            asked.map_err(PastError::server(format!("reading {}", self.shown())))?;
        }
        writer.end().map_err(PastError::Output)?;
        Ok(writer.rows)
    }

    /// Makes the copy the table as it was, under its name; returns how many rows it has.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub fn finish_into(&mut self) -> Result<u64, PastError> {
        let Some(making) = &self.making else { return Ok(0) };
        let database = quoted(&making.database);
        let (place, whole) = (
            format!("{database}.{}", quoted(&making.unfinished)),
            format!("{database}.{}", quoted(&making.table)),
        );
        let own = quoted(&self.database);
        let same: Vec<_> = self.key_names.iter().map(|name| format!("k.{0} = t.{0}", quoted(name))).collect();
        let names = self.column_names();
        self.run("START TRANSACTION")?;
        self.run(&format!("DELETE t FROM {place} t JOIN {own}.{TOUCHED} k ON {}", same.join(" AND ")))?;
        self.run(&format!("INSERT INTO {place} ({names}) SELECT {names} FROM {own}.{PAST}"))?;
        self.run("COMMIT")?;
        let rows = self.text(&format!("SELECT COUNT(*) FROM {place}"))?;
        self.run(&format!("RENAME TABLE {place} TO {whole}"))?;
        self.making = None;
        Ok(rows.parse().unwrap_or(0))
    }

    /// The tables of the session. Their key lets servers make them that require one.
    fn make_temporary(&mut self) -> Result<(), PastError> {
        let key: Vec<_> = self.key_names.iter().map(|name| quoted(name)).collect();
        let (key, database, from) = (key.join(", "), quoted(&self.database), self.quoted());
        for (name, columns) in [(TOUCHED, key.clone()), (PAST, self.column_names())] {
            self.run(&format!(
                "CREATE TEMPORARY TABLE {database}.{name} (PRIMARY KEY ({key})) AS SELECT {columns} FROM {from} LIMIT 0"
            ))?;
        }
        Ok(())
    }

    fn column_names(&self) -> String {
        self.columns.iter().map(LiveColumn::quoted).collect::<Vec<_>>().join(", ")
    }

    fn quoted(&self) -> String {
        format!("{}.{}", quoted(&self.database), quoted(&self.table))
    }

    /// The database and the table as two SQL strings, separated by a comma.
    fn names(&self) -> String {
        names_of(&self.database, &self.table)
    }

    fn shown(&self) -> String {
        format!("{}.{}", self.database, self.table)
    }

    fn run(&mut self, statement: &str) -> Result<(), PastError> {
        let doing = || statement.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
        self.connection
            .execute(statement.as_bytes())
            .map(drop)
            .map_err(|error| PastError::server(doing())(error))
    }

    fn rows(&mut self, statement: &str) -> Result<Vec<Row>, PastError> {
        let shown = self.shown();
        self.connection.query(statement).map_err(PastError::server(format!("looking at {shown}")))
    }

    fn text(&mut self, statement: &str) -> Result<String, PastError> {
        Ok(self.rows(statement)?.first().map(|row| column(row, 0)).unwrap_or_default())
    }
}

impl Drop for LiveTable {
    fn drop(&mut self) {
        if let Some(TableInProgress { database, unfinished, .. }) = &self.making {
            let drop = format!("DROP TABLE IF EXISTS {}.{}", quoted(database), quoted(unfinished));
            // If even that fails, its name says what it is.
            let _ = self.connection.execute(drop.as_bytes());
        }
    }
}

/// Whether a server of this version logs what its foreign keys change.
pub(super) fn logs_cascades(version: &str) -> bool {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let number: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    number >= (9, 6) && !version.contains("MariaDB")
}

fn names_of(database: &str, table: &str) -> String {
    let mut names = Vec::new();
    push_quoted(&mut names, database.as_bytes());
    names.extend_from_slice(b", ");
    push_quoted(&mut names, table.as_bytes());
    String::from_utf8_lossy(&names).into_owned()
}

fn column(row: &Row, index: usize) -> String {
    let bytes = row.get(index).and_then(Option::as_deref).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// `UUID:5#12:7#13,UUID:1#2` without the sessions that own them.
fn without_owners(owned: &str) -> String {
    let mut set = String::with_capacity(owned.len());
    let mut in_owner = false;
    for letter in owned.chars() {
        in_owner = letter == '#' || in_owner && letter.is_ascii_digit();
        if !in_owner {
            set.push(letter);
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_gtids_are_a_set() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let set: GtidSet = without_owners(&format!("{uuid}:5#12:7#13:tag:9#8")).parse().unwrap();
        assert_eq!(set, format!("{uuid}:5:7:tag:9").parse().unwrap());
        assert!(without_owners("").parse::<GtidSet>().unwrap().is_empty());
    }
}
