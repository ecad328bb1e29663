//! A table on its server: its columns and its key, and temporary tables with which its rows are joined.
//!
//! ```text
//! binlogz_touched    the keys that were changed after the moment      temporary tables of the session,
//! binlogz_past       their rows as they were                          beside the table
//! ```
//!
//! If the rows are written out, they come from a snapshot of the session, so the table may be changed meanwhile. If they
//! go into a table, the server itself copies them. That loses nothing that a text can't say (JSON). Until the new table
//! is whole it has another name.
//!
//! Where statements changed the table after the moment, [`LiveTable::follow`] gives it the columns that it had.

use std::io::{self, Read, Write};
use std::sync::Arc;

use binlogz_schema::SchemaFile;

use super::PastError;
use super::create::{ColumnsThen, ParentsThen, create_then};
use super::logged_statements::LoggedStatements;
use super::restriction::ColumnValues;
use super::routes::TableRoutes;
use super::session::{PastAnswerRow, PastSession, TableInProgress, column, names_of};
use super::touched_rows::{SqlValues, TouchedRows};
use super::write::{LiveColumn, PastFormat, RowWriter, begin_script, end_script, quoted};

/// Bytes of rows in a statement, unless a row has more.
const STATEMENT_SIZE_MAX: usize = 256 << 10;
/// The most characters of a name.
const NAME_LENGTH_MAX: usize = 64;
/// Databases of the server itself, in small letters.
const OF_SERVER: [&str; 4] = ["mysql", "sys", "performance_schema", "information_schema"];
/// The name of each primary key.
const PRIMARY: &str = "PRIMARY";
const TOUCHED: &str = "binlogz_touched";
const PAST: &str = "binlogz_past";
/// The reason why rows of a partitioned table can't be told apart.
const MISPLACED: &str = "has rows in partitions that they don't belong to, as EXCHANGE PARTITION … WITHOUT VALIDATION leaves them (CHECK TABLE names \
     them): its rows of then can't be told by their keys";
/// The suffix of a table's name until it is whole.
const UNFINISHED: &str = "_unfinished";
/// Stands before the CREATE TABLE of a table that was altered since.
const ALTERED: &str = "-- The columns are those of the moment; keys, defaults, comments and options are those of now, as far as they fit.";
const UNLIKE_THEN: &str = "was altered since the moment: its columns are those of then; keys, defaults, comments and options are those \
     of now, as far as they fit";

/// A table on its server: its columns and its key.
#[derive(Debug)]
pub struct LiveTable {
    /// Database and name of the table at the moment.
    pub(super) asked: (String, String),
    pub(super) database: String,
    pub(super) table: String,
    pub(super) schema: SchemaFile,
    /// The columns of a key that no two rows have in common, none of them NULL, by their places among all columns.
    pub(super) key: Vec<usize>,
    /// All keys that no two rows have in common, none of their columns NULL, by the columns' places among all.
    keys: Vec<Vec<usize>>,
    /// All columns of now.
    all: Vec<KnownColumn>,
    /// The columns of the moment that have values of their own, so not the generated ones.
    columns: Vec<LiveColumn>,
    /// All columns of the moment in their order, generated ones too: their names now and then.
    pub(super) then: Vec<(String, String)>,
    create: String,
    /// When a statement last made or altered it, in seconds since 1970, as the server tells; TRUNCATE leaves that time as it is.
    pub(super) made: Option<u64>,
    /// The statements by which the table of now differs from that of the moment.
    pub(super) since: Option<TableFollowed>,
    has_primary_key: bool,
    /// The name of the index of the first key.
    key_index: String,
    pub(super) is_partitioned: bool,
    /// The condition of the rows that are wanted, in SQL, of a table `t`; `None`: all are.
    restriction: Option<String>,
    /// Which of several it is: its temporary tables have this number.
    number: usize,
}

/// The statements by which a table of now differs from that of the moment.
#[derive(Debug)]
pub(super) struct TableFollowed {
    pub(super) logged: Arc<LoggedStatements>,
    /// All names that the table had since.
    pub(super) names: Vec<(String, String)>,
    /// The columns of the key, by their places at the moment.
    pub(super) key: Vec<usize>,
    /// The statement that makes the table, without foreign keys.
    create_alone: String,
}

/// A column of a table on its server.
#[derive(Debug)]
struct KnownColumn {
    column: LiveColumn,
    is_generated: bool,
}

impl LiveTable {
    /// Looks at a table, the `number`th of several.
    ///
    /// # Errors
    ///
    /// A server that can't be asked; a table that has no key, or an engine without transactions. `None`: it isn't there.
    pub fn open(
        session: &mut PastSession,
        (database, table): (&str, &str),
        number: usize,
    ) -> Result<Option<Self>, PastError> {
        let mut live = LiveTable {
            asked: (database.to_owned(), table.to_owned()),
            database: database.to_owned(),
            table: table.to_owned(),
            schema: SchemaFile::default(),
            key: Vec::new(),
            keys: Vec::new(),
            all: Vec::new(),
            columns: Vec::new(),
            then: Vec::new(),
            create: String::new(),
            made: None,
            since: None,
            has_primary_key: false,
            key_index: String::new(),
            is_partitioned: false,
            restriction: None,
            number,
        };
        Ok(live.look(session)?.then_some(live))
    }

    /// Looks for the table on the server; `false`: it isn't there.
    fn look(&mut self, session: &mut PastSession) -> Result<bool, PastError> {
        if OF_SERVER.contains(&&*self.database.to_lowercase()) {
            return Err(PastError::Refused(format!(
                "{} is a table of the server itself: statements such as CREATE USER change it, and logs don't have its rows",
                self.shown()
            )));
        }
        let names = self.names();
        let found = session.rows(&format!(
            "SELECT t.engine, e.transactions, UNIX_TIMESTAMP(t.create_time), t.create_options FROM information_schema.tables t LEFT JOIN information_schema.engines e ON \
             e.engine = t.engine WHERE (t.table_schema, t.table_name) = ({names}) AND t.table_type = 'BASE TABLE'"
        ))?;
        let shown = self.shown();
        let Some(row) = found.first() else { return Ok(false) };
        if column(row, 1) != "YES" {
            let engine = column(row, 0);
            return Err(PastError::Refused(format!(
                "{shown} has the engine {engine}, which has no transactions"
            )));
        }
        self.made = column(row, 2).parse().ok();
        self.is_partitioned = column(row, 3).contains("partitioned");
        let all = session.rows(&format!(
            "SELECT column_name, data_type, extra, character_set_name FROM information_schema.columns WHERE \
             (table_schema, table_name) = ({names}) ORDER BY ordinal_position"
        ))?;
        self.all = all.iter().map(KnownColumn::of).collect();
        let stored = self.all.iter().filter(|known| !known.is_generated);
        self.columns = stored.map(|known| known.column.clone()).collect();
        let names = self.all.iter().map(|known| (known.column.name.clone(), known.column.name.clone()));
        self.then = names.collect();
        self.find_keys(session)?;
        self.create = self.create_now(session)?;
        let statements = format!("USE {};\n{};\n", quoted(&self.database), self.create);
        self.schema = SchemaFile::parse(&statements)
            .map_err(|error| PastError::Refused(format!("{shown}: {error}")))?;
        Ok(true)
    }

    fn create_now(&self, session: &mut PastSession) -> Result<String, PastError> {
        session.field(&format!("SHOW CREATE TABLE {}", self.quoted()), 1)
    }

    /// The primary key, then the unique ones.
    fn find_keys(&mut self, session: &mut PastSession) -> Result<(), PastError> {
        let parts = session.rows(&format!(
            "SELECT index_name, column_name, nullable, sub_part FROM information_schema.statistics WHERE \
             (table_schema, table_name) = ({}) AND non_unique = 0 ORDER BY index_name <> 'PRIMARY', index_name, \
             seq_in_index",
            self.names()
        ))?;
        let place = |part: &PastAnswerRow| {
            let name = column(part, 1);
            let place = self.all.iter().position(|known| known.column.name == name && !known.is_generated)?;
            let is_whole = part.get(3).is_some_and(Option::is_none);
            // Either YES or an empty text.
            let is_never_null = part.get(2).and_then(Option::as_deref).is_some_and(<[u8]>::is_empty);
            (is_never_null && is_whole).then_some(place)
        };
        let named = parts.chunk_by(|one, other| one.first() == other.first());
        let keys = named.filter_map(|key| {
            Some((column(key.first()?, 0), key.iter().map(place).collect::<Option<Vec<_>>>()?))
        });
        let keys: Vec<(String, Vec<usize>)> = keys.collect();
        let mut primary = parts.iter().filter(|part| column(part, 0) == PRIMARY).peekable();
        self.has_primary_key = primary.peek().is_some() && primary.all(|part| place(part).is_some());
        let Some((index, first)) = keys.first() else {
            return Err(PastError::Keyless(format!(
                "{} has no primary key, and no unique key of whole columns that are never NULL: its rows can't be told apart",
                self.shown()
            )));
        };
        self.key_index.clone_from(index);
        self.key.clone_from(first);
        self.keys = keys.into_iter().map(|(_, key)| key).collect();
        Ok(())
    }

    /// Refuses a partitioned table in which rows stand in partitions that they don't belong to: EXCHANGE PARTITION … WITHOUT VALIDATION puts
    /// them there. The server doesn't find them by their key, and two rows may have one key.
    ///
    /// # Errors
    ///
    /// There is such a row; a server that can't be asked.
    pub(super) fn check_partitions(&self, session: &mut PastSession) -> Result<(), PastError> {
        if !self.is_partitioned {
            return Ok(());
        }
        let names: Vec<_> = self.key_columns().map(|column| quoted(&column.name)).collect();
        let Some(first) = names.first() else { return Ok(()) };
        let table = self.quoted();
        let key = names.join(", ");
        let same: Vec<_> = names.iter().map(|name| format!("b.{name} = a.{name}")).collect();
        let twice = format!("SELECT 1 FROM {table} GROUP BY {key} HAVING COUNT(*) > 1 LIMIT 1");
        // A row is looked up in the partition that it belongs to.
        let lost = format!(
            "SELECT 1 FROM {table} a LEFT JOIN {table} b FORCE INDEX ({}) ON {} WHERE b.{first} IS NULL LIMIT 1",
            quoted(&self.key_index),
            same.join(" AND ")
        );
        for query in [twice, lost] {
            if !session.rows(&query)?.is_empty() {
                return Err(PastError::Refused(format!("{} {MISPLACED}", self.shown())));
            }
        }
        Ok(())
    }

    /// Leads statements in the logs back from these tables and those from which foreign keys carry changes on to them, as they are now.
    ///
    /// # Errors
    ///
    /// A server that can't be asked.
    pub fn settle(
        tables: &[LiveTable],
        session: &mut PastSession,
        logged: &mut LoggedStatements,
    ) -> Result<(), PastError> {
        let own: Vec<_> = tables.iter().map(|table| (table.database.clone(), table.table.clone())).collect();
        let mut parents = Vec::new();
        for (database, table) in TableRoutes::of(session)?.visible_parents(&own) {
            let place = format!("{}.{}", quoted(&database), quoted(&table));
            // Of a parent that can't be read all changes count: an account may see its columns, but not the table.
            let Ok(create) = session.field(&format!("SHOW CREATE TABLE {place}"), 1) else { continue };
            parents.extend(SchemaFile::parse(&format!("USE {};\n{create};\n", quoted(&database))));
        }
        logged.settle(SchemaFile::of_all(tables.iter().map(|table| &table.schema).chain(&parents)));
        Ok(())
    }

    /// Becomes the table that had a name at the moment, by the statements in the logs, which
    /// [`LiveTable::settle`] led back from the tables of now.
    ///
    /// # Errors
    ///
    /// What it was can't be told: a column whose values aren't known, no key since then.
    pub fn follow(&mut self, logged: &Arc<LoggedStatements>, asked: (&str, &str)) -> Result<(), PastError> {
        let way = logged.way(asked)?;
        let is_known = |known: &KnownColumn, name: &str| known.column.name.eq_ignore_ascii_case(name);
        for column in &way.columns {
            if let Some(turn) = column.changed_by {
                let (database, name) = asked;
                let what = format!(
                    "a statement changed the table, which can't be taken back: what the column {} of {database}.{name} had before \
                     isn't known",
                    column.then.name
                );
                return Err(PastError::Refused(logged.line(turn, &what)));
            }
        }
        let mut columns = Vec::new();
        let mut then = ColumnsThen::default();
        for column in &way.columns {
            let now = column.place_now().and_then(|place| way.now.columns.get(place));
            let known = now
                .and_then(|now| self.all.iter().find(|known| is_known(known, &now.name)))
                .ok_or_else(|| self.misread())?;
            then.columns.push((&known.column.name, &column.then.name));
            if !known.is_generated {
                let name_then = column.then.name.clone();
                columns.push(LiveColumn { name_then, ..known.column.clone() });
            }
        }
        then.now = self.all.iter().map(|known| &*known.column.name).collect();
        let name_of = |place: &usize| way.then.columns.get(*place).map(|column| &*column.name);
        then.unique = way.then.keys.iter().filter_map(|key| key.iter().map(name_of).collect()).collect();
        let mut keys = self.keys.iter().filter_map(|key| Some((key.clone(), way.key_of(key)?)));
        let Some((key, key_then)) = keys.next() else {
            return Err(PastError::Keyless(format!(
                "{} has no key of whole columns that are never NULL that it had at the moment as well: its rows can't be told apart",
                self.shown()
            )));
        };
        let find = |now: &(String, String)| logged.parent_then(now);
        let parents = ParentsThen { database: &self.database, database_then: asked.0, find: &find };
        let create = |parents| create_then(&self.create, asked.1, &then, parents);
        let (create, create_alone) =
            create(Some(&parents)).zip(create(None)).ok_or_else(|| self.misread())?;
        let names = logged.names(asked)?;
        let then: Vec<_> =
            then.columns.iter().map(|(now, then)| ((*now).to_owned(), (*then).to_owned())).collect();
        let is_altered = way.is_altered;
        drop(way);
        self.columns = columns;
        self.then = then;
        self.key = key;
        self.create = if is_altered { format!("{ALTERED}\n{create}") } else { create };
        self.asked = (asked.0.to_owned(), asked.1.to_owned());
        self.since = Some(TableFollowed { logged: Arc::clone(logged), names, key: key_then, create_alone });
        Ok(())
    }

    fn misread(&self) -> PastError {
        PastError::Refused(format!("{}: the server's CREATE TABLE can't be read", self.shown()))
    }

    /// The words for what isn't as it was at the moment, though the columns are.
    pub fn unlike_then(&self) -> Option<&'static str> {
        self.create.starts_with(ALTERED).then_some(UNLIKE_THEN)
    }

    /// Whether the server still has the table as [`LiveTable::open`] saw it.
    ///
    /// # Errors
    ///
    /// A server that can't be asked.
    pub(crate) fn is_unchanged(&self, session: &mut PastSession) -> Result<bool, PastError> {
        let now = format!("USE {};\n{};\n", quoted(&self.database), self.create_now(session)?);
        let now = SchemaFile::parse(&now).map_err(|_| self.misread())?;
        let names = (self.database.as_bytes(), self.table.as_bytes());
        Ok(now.table(names.0, names.1) == self.schema.table(names.0, names.1))
    }

    /// Keeps others from changing its columns until the session's transaction ends.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub fn keep_columns(&self, session: &mut PastSession) -> Result<(), PastError> {
        session.rows(&format!("SELECT 1 FROM {} LIMIT 0", self.quoted())).map(drop)
    }

    /// Copies the table as it is now into one that doesn't exist.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub fn copy_into(
        &self,
        session: &mut PastSession,
        (database, table): (&str, &str),
    ) -> Result<(), PastError> {
        let kept: String = table.chars().take(NAME_LENGTH_MAX - UNFINISHED.len()).collect();
        let unfinished = format!("{kept}{UNFINISHED}");
        let place = format!("{}.{}", quoted(database), quoted(&unfinished));
        match &self.since {
            Some(since) => {
                let name = format!("CREATE TABLE {}", quoted(&self.asked.1));
                session.run(&since.create_alone.replacen(&name, &format!("CREATE TABLE {place}"), 1))?;
            }
            None => session.run(&format!("CREATE TABLE {place} LIKE {}", self.quoted()))?,
        }
        session.making.push(TableInProgress {
            database: database.to_owned(),
            table: table.to_owned(),
            unfinished,
        });
        // Nothing is locked: a row that is changed meanwhile is replaced afterwards.
        session.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        let now = self.column_names();
        let then = self.names_then();
        session.run(&format!("INSERT INTO {place} ({then}) SELECT {now} FROM {}", self.quoted()))
    }

    /// Hands what logs tell to the server.
    ///
    /// # Errors
    ///
    /// The server refuses it; a temporary file that can't be read.
    pub fn take_back(&self, session: &mut PastSession, touched: &TouchedRows) -> Result<(), PastError> {
        let keys = self.temporary(TOUCHED);
        let past = self.temporary(PAST);
        let names = self.column_names();
        // Two spellings of one key that are equal for the server are one key.
        insert(session, (&*format!("INSERT IGNORE INTO {keys} VALUES "), ""), &touched.keys)?;
        // Among rows that aren't wanted one may be there that came later, under a key that is equal to that of a wanted one.
        let first =
            self.key_columns().next().filter(|_| touched.are_partial).map(|column| quoted(&column.name));
        let end = first.map(|key| format!(" ON DUPLICATE KEY UPDATE {key} = {key}")).unwrap_or_default();
        insert(session, (&*format!("INSERT INTO {past} ({names}) VALUES "), &*end), &touched.rows)
    }

    /// Wants only the rows that have one of these values in each of these columns, and maybe others; `None`: no row.
    pub fn restrict(&mut self, wanted: Option<&[ColumnValues]>) {
        self.restriction = match wanted {
            None => Some("FALSE".to_owned()),
            Some(wanted) => {
                let conditions: Vec<_> = wanted.iter().filter_map(|values| self.condition(values)).collect();
                (!conditions.is_empty()).then(|| conditions.join(" AND "))
            }
        };
    }

    /// The condition that a row of the table `t` has one of the values; `None`: the server may compare the column in another way.
    fn condition(&self, values: &ColumnValues) -> Option<String> {
        let column = self.columns.iter().find(|column| column.name_then == values.column)?;
        values.condition(
            &format!("t.{}", quoted(&column.name)),
            (&*column.data_type, column.charset.as_deref()),
        )
    }

    /// Where rows have a column of the primary key that can have these values, and had it all the time since the moment.
    pub(super) fn key_place(&self, values: &ColumnValues) -> Option<usize> {
        if !self.has_primary_key || self.since.is_some() || self.condition(values).is_none() {
            return None;
        }
        let is_it =
            |place: &&usize| self.all.get(**place).is_some_and(|known| known.column.name == values.column);
        self.key.iter().find(is_it).copied()
    }

    /// Writes the table as it was; returns how many rows it had.
    ///
    /// # Errors
    ///
    /// The server, or the output.
    pub fn write(
        &self,
        session: &mut PastSession,
        format: PastFormat,
        out: &mut dyn Write,
    ) -> Result<u64, PastError> {
        let expressions: Vec<_> = self.columns.iter().map(|column| column.expression(format)).collect();
        let mut writer = RowWriter::new(format, &self.asked.1, &self.columns, out);
        writer.begin(&self.create, &self.columns).map_err(PastError::Output)?;
        for select in self.selects(&expressions.join(", ")) {
            let mut failed: Option<io::Error> = None;
            let asked = session.connection.query_each(&select, &mut |rows| {
                failed = rows.iter().try_for_each(|row| writer.row(row)).err();
                failed.is_none()
            });
            if let Some(error) = failed {
                return Err(PastError::Output(error));
            }
            asked.map_err(PastError::server(format!("reading {}", self.shown())))?;
        }
        writer.end().map_err(PastError::Output)
    }

    /// The statements that select the rows as they were: those that nothing changed since, then the others.
    pub(super) fn selects(&self, expressions: &str) -> [String; 2] {
        let wanted = self.restriction.as_deref().unwrap_or("TRUE");
        let unchanged = format!(
            "SELECT {expressions} FROM {} t WHERE {wanted} AND NOT EXISTS (SELECT 1 FROM {} k WHERE {})",
            self.quoted(),
            self.temporary(TOUCHED),
            self.same_key(|column| &column.name)
        );
        [unchanged, format!("SELECT {expressions} FROM {} t WHERE {wanted}", self.temporary(PAST))]
    }

    /// Whether its key that there was at the moment, too, has just these columns, by their places among those named.
    pub(super) fn is_key(&self, names: &[&str], places: &[usize]) -> bool {
        let own = self.key_columns().map(|column| &*column.name);
        own.eq(places.iter().filter_map(|place| names.get(*place).copied()))
    }

    /// Writes a script of tables as they were, one after the other.
    ///
    /// # Errors
    ///
    /// As [`LiveTable::write`].
    pub fn write_script(
        tables: &[LiveTable],
        session: &mut PastSession,
        title: &str,
        out: &mut dyn Write,
    ) -> Result<(), PastError> {
        begin_script(title, out).map_err(PastError::Output)?;
        let mut counts = Vec::new();
        for table in tables {
            counts.push((&*table.asked.1, table.write(session, PastFormat::Sql, out)?));
        }
        end_script(&counts, out).map_err(PastError::Output)
    }

    /// The columns of the moment that have values of their own, so not the generated ones, in their order.
    pub fn stored_columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| &*column.name_then)
    }

    /// The columns of the key by which its rows are told apart: what each is called now, and was called at the moment. `None`: one of them
    /// is generated.
    pub fn key_names(&self) -> Option<Vec<(&str, &str)>> {
        let names: Vec<_> = self.key_columns().map(|column| (&*column.name, &*column.name_then)).collect();
        (names.len() == self.key.len()).then_some(names)
    }

    /// Database and name of the table at the moment.
    pub fn asked(&self) -> (&str, &str) {
        (&self.asked.0, &self.asked.1)
    }

    /// Makes its copy the table as it was, under a name of its own for now; returns how many rows it has.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub fn finish_copy(
        &self,
        session: &mut PastSession,
        (database, table): (&str, &str),
    ) -> Result<u64, PastError> {
        let making =
            session.making.iter().find(|making| making.database == database && making.table == table);
        let Some(making) = making else { return Ok(0) };
        let place = making.place();
        let now = self.column_names();
        let then = self.names_then();
        let touched = self.temporary(TOUCHED);
        let past = self.temporary(PAST);
        session.run("START TRANSACTION")?;
        let same = self.same_key(|column| &column.name_then);
        session.run(&format!("DELETE t FROM {place} t JOIN {touched} k ON {same}"))?;
        session.run(&format!("INSERT INTO {place} ({then}) SELECT {now} FROM {past}"))?;
        session.run("COMMIT")?;
        let count = format!("SELECT COUNT(*) FROM {place}");
        let rows = session.text(&count)?;
        rows.parse().map_err(|_| PastError::Refused(format!("{count} answered {rows:?}, expected a number")))
    }

    /// Makes the tables of the session. Their key lets servers make them that require one.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub(crate) fn make_temporary(&self, session: &mut PastSession) -> Result<(), PastError> {
        // A DELETE of more than one table wants one.
        session.run(&format!("USE {}", quoted(&self.database)))?;
        let key: Vec<_> = self.key_columns().map(|column| quoted(&column.name)).collect();
        let key = key.join(", ");
        let from = self.quoted();
        for (name, columns) in [(TOUCHED, key.clone()), (PAST, self.column_names())] {
            session.run(&format!(
                "CREATE TEMPORARY TABLE {} (PRIMARY KEY ({key})) AS SELECT {columns} FROM {from} LIMIT 0",
                self.temporary(name)
            ))?;
        }
        Ok(())
    }

    fn temporary(&self, name: &str) -> String {
        let number = if self.number == 0 { String::new() } else { format!("_{}", self.number + 1) };
        format!("{}.{}", quoted(&self.database), quoted(&format!("{name}{number}")))
    }

    fn key_columns(&self) -> impl Iterator<Item = &LiveColumn> {
        let known = self.key.iter().filter_map(|place| self.all.get(*place));
        known.filter_map(|known| self.columns.iter().find(|column| column.name == known.column.name))
    }

    /// The condition that a row of the table `t`, whose columns are named so, has a key of `k`.
    fn same_key(&self, name: impl Fn(&LiveColumn) -> &str) -> String {
        let same = self
            .key_columns()
            .map(|column| format!("k.{} = t.{}", quoted(&column.name), quoted(name(column))));
        same.collect::<Vec<_>>().join(" AND ")
    }

    fn column_names(&self) -> String {
        self.columns.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ")
    }

    fn names_then(&self) -> String {
        self.columns.iter().map(|column| quoted(&column.name_then)).collect::<Vec<_>>().join(", ")
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
}

impl KnownColumn {
    fn of(row: &PastAnswerRow) -> KnownColumn {
        let extra = column(row, 2).to_uppercase();
        let charset = row.get(3).and_then(Option::as_ref);
        let column = LiveColumn {
            data_type: column(row, 1).to_lowercase(),
            charset: charset.map(|name| String::from_utf8_lossy(name).into_owned()),
            ..LiveColumn::named(&column(row, 0))
        };
        let is_generated = extra.contains("VIRTUAL GENERATED") || extra.contains("STORED GENERATED");
        KnownColumn { column, is_generated }
    }
}

fn insert(
    session: &mut PastSession,
    (front, end): (&str, &str),
    values: &SqlValues,
) -> Result<(), PastError> {
    let mut reader = values.reader();
    let mut statement = Vec::new();
    while let Some(mut values) = reader.next_content().map_err(PastError::Temporary)? {
        statement.extend_from_slice(if statement.is_empty() { front.as_bytes() } else { b", " });
        values.read_to_end(&mut statement).map_err(PastError::Temporary)?;
        if statement.len() > STATEMENT_SIZE_MAX || reader.is_at_end().map_err(PastError::Temporary)? {
            statement.extend_from_slice(end.as_bytes());
            session
                .connection
                .execute(&statement)
                .map_err(PastError::server("handing rows to the server"))?;
            statement.clear();
        }
    }
    Ok(())
}
