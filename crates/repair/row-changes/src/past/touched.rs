//! The keys that were changed after a moment, and for each key the row before its first change.
//!
//! For each row change, a worker writes the keys that it touches as records (see `record/touch.rs`), with the row as it was before.
//! Key and row are their values as SQL, in parentheses.
//!
//! Where statements changed a table after the moment, the logs are read twice: the first pass has all statements, and by them the second
//! knows which rows are the table's, and where its columns stand in them.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_flow::Input;
use binlogz_flow::events::RunSummary;
use binlogz_payload::SpoolMemory;
use binlogz_schema::SchemaFile;

use super::PastError;
use super::heads::LogHead;
use super::indirect::IndirectStatements;
use super::key_touches::{ColumnsOnWay, ConcernedTables, ParentWay, TouchedTable, Touches, WantedKeyValues};
use super::live::LiveTable;
use super::logged_databases::LoggedDatabases;
use super::logged_statements::{LoggedStatements, place_of};
use super::moment::{MomentPhase, PastMoment, TableMoment};
use super::restriction::ColumnValues;
use super::routes::TableRoutes;
use super::touched_rows::{SqlValues, TouchedRows};
use crate::choose::{Range, RowSelection};
use crate::digest::Digests;
use crate::pass::{
    Break, ChoiceListener, Error, FollowedTransaction, Follower, HistoryUse, Search, StatementAt,
    StatementWords, TransactionEnding, read_log,
};
use crate::record::{KeyRecord, KeyState, RecordFields, RowAt, RowFlags, TouchOfTable, broken};

/// Memory for the rows of all tables as they were; the rest goes to a temporary file.
const ROWS_MEMORY: usize = 16 << 20;
/// Memory for all keys; the rest goes to a temporary file.
const KEYS_MEMORY: usize = 8 << 20;

/// The keys in the making, of one table or several. Read all logs, in their order.
pub struct TouchedKeys<'o> {
    selection: RowSelection,
    tables: Vec<TouchedTable<'o>>,
    /// The values of the keys of the only table's rows that matter; none: all of them do.
    wanted: Vec<WantedKeyValues>,
    concerned: ConcernedTables,
    follower: Follower<FirstTouches>,
    /// The moment comes before the first log there ever was.
    is_before_logs: bool,
    /// Whether parts of logs are passed over.
    is_partial: bool,
}

/// The result of a pass over the logs.
pub enum TouchedOutcome {
    /// The changed rows by table, in the order of their keys; and the statements that were met.
    Rows(Vec<TouchedRows>, Box<LoggedStatements>),
    /// Statements changed tables after the moment in a way that wasn't known before the logs were read: tables are to be followed by these
    /// statements, and the logs to be read again.
    Altered(Box<LoggedStatements>),
}

impl<'o> TouchedKeys<'o> {
    /// Begins a pass over logs. Statements that may have changed a table without naming it by the ways that the server has are refused, or
    /// counted, if they are to be passed over.
    pub fn new(
        tables: &'o [LiveTable],
        routes: &TableRoutes,
        moment: impl Into<PastMoment>,
        passes_statements: bool,
    ) -> Self {
        let mut listener = FirstTouches::new(moment.into());
        let memory = (SpoolMemory::new(KEYS_MEMORY), SpoolMemory::new(ROWS_MEMORY));
        let mut selection = RowSelection::default();
        let mut concerned = ConcernedTables::default();
        let mut touched = Vec::new();
        for (number, table) in tables.iter().enumerate() {
            let own = (table.database.clone(), table.table.clone());
            let logged = table.since.as_ref().map(|since| &*since.logged);
            let mut parents = routes.cascading_parents(&own, logged);
            let mut doubt = None;
            for parent in &mut parents {
                let followed = logged.and_then(|logged| parent.follow(logged));
                doubt = doubt.or(followed);
            }
            let indirect = IndirectStatements::new(routes.isolated_from(&own), passes_statements);
            let names = match &table.since {
                Some(since) => since.names.clone(),
                None => vec![own],
            };
            let of_parents: Vec<_> = parents.iter().flat_map(|parent| &parent.names).cloned().collect();
            for name in names.iter().chain(&of_parents) {
                concerned.add(name, number);
                selection.tables.push(name.clone());
            }
            let mut touches = TableTouches::new(&table.asked, (names, of_parents), indirect, &memory);
            touches.doubt = doubt;
            touches.is_partitioned = table.is_partitioned;
            listener.tables.push(touches);
            touched.push(TouchedTable { table, parents });
        }
        selection.tables.sort();
        selection.tables.dedup();
        listener.followed = tables.iter().find_map(|table| Some(Arc::clone(&table.since.as_ref()?.logged)));
        let follower = Follower::new(listener);
        TouchedKeys {
            selection,
            tables: touched,
            wanted: Vec::new(),
            concerned,
            follower,
            is_before_logs: false,
            is_partial: false,
        }
    }

    /// Looks at statements alone, since one of the tables isn't there now.
    pub(crate) fn of_statements(moment: impl Into<PastMoment>) -> Self {
        let mut keys = TouchedKeys {
            selection: RowSelection::default(),
            tables: Vec::new(),
            wanted: Vec::new(),
            concerned: ConcernedTables::default(),
            follower: Follower::new(FirstTouches::new(moment.into())),
            is_before_logs: false,
            is_partial: false,
        };
        // Without any it has all tables.
        keys.selection.tables.push((String::new(), String::new()));
        keys.follower.listener.is_altered = true;
        keys
    }

    /// The logs are all that there ever were, and the first of them has this head. A table that they don't make may have been changed
    /// before them: the server may have had others, or none, as after a RESET or for rows that were copied to it.
    pub fn begin_with(&mut self, first: &LogHead) {
        if let PastMoment::InLog(moment) = &self.follower.listener.moment {
            self.is_before_logs = first.begins_after(*moment);
        }
    }

    /// Passes over parts of the coming log, which have these transactions: they have no statement, and no change that is wanted.
    pub fn pass_over(&mut self, gtids: &GtidSet) {
        self.is_partial = true;
        self.follower.listener.is_partial = true;
        self.follower.listener.held.union(gtids);
        self.follower.pass_over(gtids);
    }

    /// The log that was read had the moment, a transaction or a set of them, in a part that was passed over: all that comes is after it. The first
    /// transaction after it was not before this time, in microseconds since 1970.
    pub fn pass_moment(&mut self, time: u64) {
        self.follower.listener.pass_moment(time);
    }

    /// The coming log has the moment, a transaction or a set of them, in a part that is passed over as all before it: each transaction that is
    /// read of it comes after the moment. The first after it was not before this time, in microseconds since 1970.
    pub fn begin_past_moment(&mut self, time: u64) {
        self.follower.listener.passed_moment = Some(time);
    }

    /// Whether the log has passed the last transaction before the moment, or is in it.
    pub fn is_past_moment(&self) -> bool {
        self.follower.listener.now != MomentPhase::Before
    }

    /// Whether parts were passed over that had to be read: a transaction was committed that may have been prepared there.
    pub fn needs_what_was_passed(&self) -> bool {
        self.follower.listener.lacks_prepared
    }

    /// Whether rows of a table of this name may be those of one of the tables.
    pub fn has_table(&self, database: &[u8], table: &[u8]) -> bool {
        self.has_name(database, table, |touches| &touches.names)
    }

    /// Whether foreign keys may carry changes of a table of this name on to one of the tables.
    pub fn has_parent(&self, database: &[u8], table: &[u8]) -> bool {
        self.has_name(database, table, |touches| &touches.of_parents)
    }

    fn has_name(&self, database: &[u8], table: &[u8], names: impl Fn(&TableTouches) -> &TableNames) -> bool {
        let is_it = |own: &(String, String)| (own.0.as_bytes(), own.1.as_bytes()) == (database, table);
        self.follower.listener.tables.iter().any(|touches| names(touches).iter().any(is_it))
    }

    /// Whether changes of rows are looked for, and not statements alone.
    pub fn looks_for_rows(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Where rows of the only table have a column of its primary key, by the name that it had at the moment. `None`: there are several, or
    /// the table was altered since the moment, or the values aren't those of such a column.
    pub fn key_place(&self, values: &ColumnValues) -> Option<usize> {
        match self.tables.as_slice() {
            [TouchedTable { table, parents: _ }] => table.key_place(values),
            _ => None,
        }
    }

    /// Looks only for rows whose keys have these values, before or after a change: of the others nothing is told. The columns are such as
    /// [`Self::key_place`] tells.
    pub fn look_only_for(&mut self, wanted: Vec<WantedKeyValues>) {
        self.is_partial |= !wanted.is_empty();
        self.wanted = wanted;
    }

    /// Reads a log, in the order of the logs.
    ///
    /// # Errors
    ///
    /// A log that can't be read or doesn't follow the one before it; a change that can't be taken back; a temporary file
    /// that can't be written.
    pub fn read(
        &mut self,
        input: Input,
        name: &str,
        workers: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<RunSummary, PastError> {
        let ways = self.tables.iter().map(ColumnsOnWay::of).collect::<Result<Vec<_>, _>>()?;
        let parents: Vec<_> = self.tables.iter().map(ParentWay::of_table).collect();
        let schema = SchemaFile::of_all(self.tables.iter().map(|table| &table.table.schema));
        let renderer = Touches {
            tables: &self.tables,
            wanted: &self.wanted,
            concerned: &self.concerned,
            columns: &ways,
            parents: &parents,
        };
        let followed = self.follower.listener.followed.clone();
        let history = followed.as_ref().map(|logged| HistoryUse { history: logged.history(), as_now: false });
        let search = Search {
            selection: &self.selection,
            history,
            carrying: None,
            schema: Some(&schema),
            renderer: &renderer,
            workers,
        };
        let whole = Range { start: 0, stop: u64::MAX };
        let (ran, _) = read_log(input, (name, whole), &search, &mut self.follower, progress)?;
        // The first pass may be over tables that were other ones.
        if self.follower.listener.followed.is_some() {
            self.follower.listener.refusal()?;
        }
        Ok(ran)
    }

    /// By table: the first change of another one that foreign keys may have carried on to it without a trace in the log. Servers
    /// before 9.6, and later ones with `innodb_native_foreign_keys`, do that below it.
    pub fn unlogged_cascades(&self) -> Vec<Option<String>> {
        self.follower.listener.tables.iter().map(|table| table.cascaded.clone()).collect()
    }

    /// By table: a statement after the moment that leaves open which changes foreign keys carried on to it.
    pub(crate) fn doubtful_keys(&self) -> Vec<Option<String>> {
        self.follower.listener.tables.iter().map(|table| table.doubt.clone()).collect()
    }

    /// By table: a parent from which foreign keys carry changes on to it, and which the account may not see.
    pub(crate) fn hidden_parents(&self) -> Vec<Option<String>> {
        let hidden = |table: &TouchedTable<'_>| {
            table.parents.iter().find(|parent| parent.is_hidden()).map(ToString::to_string)
        };
        self.tables.iter().map(hidden).collect()
    }

    /// By table: a parent from which foreign keys carry changes on to it, in a database that the server doesn't log.
    pub(crate) fn unlogged_parents(&self, logged: &LoggedDatabases) -> Vec<Option<String>> {
        self.tables.iter().map(|table| table.unlogged_parent(logged)).collect()
    }

    /// By table: when it was made or altered, in seconds since 1970, if that was after the moment and these logs have no such
    /// statement. A moment that is a transaction counts as the time of the next one.
    pub(crate) fn unlogged_remakings(&self) -> Vec<Option<u64>> {
        let listener = &self.follower.listener;
        let moment = match &listener.moment {
            PastMoment::InLog(TableMoment::Before(time)) => u64::try_from(*time).ok(),
            PastMoment::InLog(TableMoment::After(_)) | PastMoment::Executed(_) => listener.first_later,
        };
        let tables = self.tables.iter().zip(&listener.tables);
        tables
            .map(|(own, touches)| own.table.made.filter(|made| touches.lacks_statement_of(*made, moment)))
            .collect()
    }

    /// The number of statements that were passed over and may have changed a table.
    pub fn passed_statements(&self) -> u64 {
        self.follower.listener.tables.iter().map(|table| table.indirect.passed()).max().unwrap_or(0)
    }

    /// Ends the pass. The logs must hold all transactions of `needed`, which the tables may have in them.
    ///
    /// # Errors
    ///
    /// The logs lack some, or the moment; a change that can't be taken back.
    pub fn finish(mut self, needed: &GtidSet) -> Result<TouchedOutcome, PastError> {
        self.follower.finish().map_err(PastError::Temporary)?;
        let mut touches = self.follower.listener;
        if let Some(line) =
            touches.no_moment.take().or_else(|| touches.moment.unmet(&touches.held, touches.now))
        {
            return Err(PastError::Unmet(line));
        }
        if !touches.is_altered {
            touches.refusal()?;
        }
        let mut missing = needed.clone();
        missing.subtract(&touches.held);
        if !missing.is_empty() {
            return Err(PastError::Refused(format!(
                "the logs lack {}, which the server has executed: a table may have been changed there",
                missing.brief()
            )));
        }
        let has_same = |table: &TableTouches, logged| {
            [&table.names, &table.of_parents]
                .iter()
                .all(|names| touches.logged.has_statements_on(names, logged))
        };
        let is_same = touches
            .followed
            .as_ref()
            .is_none_or(|logged| touches.tables.iter().all(|table| has_same(table, logged)));
        if touches.is_altered || !is_same {
            return Ok(TouchedOutcome::Altered(Box::new(touches.logged)));
        }
        if self.is_before_logs {
            let line = "the first log begins after the moment, and the logs don't make the table: what it was before them isn't known";
            return Err(PastError::Unmet(line.to_owned()));
        }
        let rows = touches.tables.into_iter().map(|table| TouchedRows {
            key_count: table.seen.len() as u64,
            keys: table.keys,
            rows: table.rows,
            row_count: table.row_count,
            are_partial: self.is_partial,
        });
        Ok(TouchedOutcome::Rows(rows.collect(), Box::new(touches.logged)))
    }
}

/// The rows that were changed after the moment, by table and key, each as it was before its first change.
struct FirstTouches {
    moment: PastMoment,
    now: MomentPhase,
    /// If the log has the moment in a part that is passed over, and no transaction of it was read yet: as [`Self::pass_moment`] takes it.
    passed_moment: Option<u64>,
    /// When the open transaction was committed, and the first one after the moment, in microseconds since 1970.
    time: u64,
    first_later: Option<u64>,
    /// All transactions before the end of the logs.
    held: GtidSet,
    tables: Vec<TableTouches>,
    /// The statements of these logs.
    logged: LoggedStatements,
    /// The statements of an earlier pass, by which the tables are followed.
    followed: Option<Arc<LoggedStatements>>,
    /// Whether statements changed a table that isn't followed: rows mean nothing any more.
    is_altered: bool,
    digests: Digests,
    /// Transactions that are prepared, by their identifiers; which tables they changed before the moment.
    prepared: HashMap<String, Vec<bool>>,
    /// The reason for which these logs can't have the moment, whatever is in them.
    no_moment: Option<String>,
    refused: Option<String>,
    /// Whether parts of the logs are passed over, and whether a transaction was committed after the moment that may have been prepared there.
    is_partial: bool,
    lacks_prepared: bool,
}

/// The changes of one table after the moment.
struct TableTouches {
    /// Database and name at the moment, for messages.
    shown: String,
    /// All names that the table had since the moment.
    names: Vec<(String, String)>,
    /// All names that its parents had: foreign keys carry their changes on to the table.
    of_parents: Vec<(String, String)>,
    is_partitioned: bool,
    /// Keys, by their digests.
    seen: HashSet<u128>,
    keys: SqlValues,
    rows: SqlValues,
    row_count: u64,
    /// Whether the open transaction has rows of it.
    has_rows: bool,
    /// When the last DDL on it was committed, in microseconds since 1970; 0 without any.
    last_ddl: u64,
    indirect: IndirectStatements,
    cascaded: Option<String>,
    /// The statement that leaves open which foreign keys carried changes on to it.
    doubt: Option<String>,
}

/// Tables by database and name.
type TableNames = Vec<(String, String)>;

impl TableTouches {
    fn new(
        (database, table): &(String, String),
        (names, of_parents): (TableNames, TableNames),
        indirect: IndirectStatements,
        (keys, rows): &(SpoolMemory, SpoolMemory),
    ) -> TableTouches {
        TableTouches {
            shown: format!("{database}.{table}"),
            names,
            of_parents,
            is_partitioned: false,
            seen: HashSet::new(),
            keys: SqlValues::new(keys),
            rows: SqlValues::new(rows),
            row_count: 0,
            has_rows: false,
            last_ddl: 0,
            indirect,
            cascaded: None,
            doubt: None,
        }
    }

    /// Whether a table that was made or altered in this second, was it after the moment and all DDL on it that the logs have.
    fn lacks_statement_of(&self, made: u64, moment: Option<u64>) -> bool {
        moment.is_some_and(|moment| made.saturating_mul(1_000_000) > moment)
            && made > self.last_ddl / 1_000_000
    }

    /// Takes a change that foreign keys carry on, unless the log has what they did, or they were off.
    fn may_cascade(&mut self, transaction: &FollowedTransaction, row: &RowAt<'_>, what: &str) {
        if !row.flags.has(RowFlags::NO_FOREIGN_KEYS) && !row.flags.has(RowFlags::SQL_FOREIGN_KEYS) {
            self.cascaded.get_or_insert_with(|| transaction.changed_by(what));
        }
    }

    /// Takes what a row change says of a key; the reason if the table can't be told any more.
    fn touch(&mut self, touch: &KeyRecord<'_>, digest: u128) -> io::Result<Option<String>> {
        let text = || Some(String::from_utf8_lossy(touch.text).into_owned());
        if touch.state == KeyState::NoKey {
            return Ok(text());
        }
        if !self.seen.insert(digest) {
            return Ok(None);
        }
        self.keys.append(touch.key)?;
        match touch.state {
            KeyState::There => {
                self.row_count += 1;
                self.rows.append(touch.text)?;
                Ok(None)
            }
            KeyState::Unknown => Ok(text()),
            KeyState::Absent | KeyState::NoKey => Ok(None),
        }
    }
}

impl FirstTouches {
    fn new(moment: PastMoment) -> Self {
        FirstTouches {
            moment,
            now: MomentPhase::Before,
            passed_moment: None,
            time: 0,
            first_later: None,
            held: GtidSet::new(),
            tables: Vec::new(),
            logged: LoggedStatements::default(),
            followed: None,
            is_altered: false,
            digests: Digests::default(),
            prepared: HashMap::new(),
            no_moment: None,
            refused: None,
            is_partial: false,
            lacks_prepared: false,
        }
    }

    /// Notes that the moment is passed, and that the first transaction after it was committed at this time or later, in microseconds since 1970.
    fn pass_moment(&mut self, time: u64) {
        self.passed_moment = None;
        self.now = MomentPhase::After;
        self.first_later = Some(self.first_later.map_or(time, |first| first.min(time)));
    }

    /// The first reason wins. Of several tables it names the one that can't be told.
    fn refuse(&mut self, number: usize, why: impl FnOnce() -> String) {
        if self.refused.is_none() {
            let table = self.tables.get(number).filter(|_| self.tables.len() > 1);
            let why = why();
            self.refused = Some(table.map_or_else(|| why.clone(), |table| format!("{}: {why}", table.shown)));
        }
    }

    /// Refuses tables into which a statement put rows without a look at the partitions that these belong to, or from which one takes such rows
    /// after the moment.
    fn misplaces(
        &mut self,
        transaction: &FollowedTransaction,
        statement: &StatementAt<'_>,
        (text, words): (&str, &StatementWords),
    ) {
        let is_exchanged = words.is_ddl()
            && has_words(text, &["EXCHANGE", "PARTITION"])
            && has_words(text, &["WITHOUT", "VALIDATION"]);
        let repairs: [&[&str]; 4] = [
            &["REPAIR", "TABLE"],
            &["REPAIR", "LOCAL", "TABLE"],
            &["REPAIR", "NO_WRITE_TO_BINLOG", "TABLE"],
            &["REPAIR", "PARTITION"],
        ];
        let is_repaired =
            self.now == MomentPhase::After && repairs.iter().any(|words| has_words(text, words));
        if !is_exchanged && !is_repaired {
            return;
        }
        let current = String::from_utf8_lossy(statement.database);
        // The other table has the rows of one partition, in which no two have one key.
        let is_named = |table: &TableTouches| {
            let is_it = |(database, name): &(String, String)| {
                words.may_change(&current, database, name) || is_repaired && words.mention(database, name)
            };
            table.is_partitioned && table.names.iter().any(is_it)
        };
        if let Some(number) = self.tables.iter().position(is_named) {
            let why = if is_repaired { REPAIRED } else { UNSEEN };
            self.refuse(number, || format!("{}: {why}", transaction.changed_by(text)));
        }
    }

    fn refusal(&mut self) -> Result<(), PastError> {
        self.refused.take().map_or(Ok(()), |why| Err(PastError::Refused(why)))
    }

    /// Takes a change of one of the tables.
    fn take_own(
        &mut self,
        transaction: &FollowedTransaction,
        row: &RowAt<'_>,
        (number, records): (usize, &[u8]),
    ) -> io::Result<()> {
        let Some(table) = self.tables.get_mut(number) else { return Err(broken()) };
        table.has_rows = true;
        if self.now != MomentPhase::After {
            return Ok(());
        }
        let mut refused = None;
        let mut fields = RecordFields::of(records);
        while !fields.is_empty() {
            let touch = KeyRecord::take(&mut fields)?;
            let why = table.touch(&touch, self.digests.of(touch.key))?;
            refused = refused.or(why);
        }
        if let Some(why) = refused {
            self.refuse(number, || format!("{}: {why}", place_of(transaction, row.offset)));
        }
        Ok(())
    }
}

/// Whether a statement has these words one after the other.
fn has_words(text: &str, wanted: &[&str]) -> bool {
    let words: Vec<_> =
        text.split_whitespace().map(|word| word.trim_end_matches(';').to_uppercase()).collect();
    words.windows(wanted.len()).any(|words| words.iter().zip(wanted).all(|(word, wanted)| word == wanted))
}

/// Why a table can't be told any more.
const UNSEEN: &str =
    "rows may stand in partitions that they don't belong to since, and two of them may have one key";
const REPAIRED: &str = "it may have moved rows that stood in partitions they don't belong to, or taken them away, which no log tells";

impl ChoiceListener for FirstTouches {
    fn breaks(&mut self, logs: &Break) -> Result<(), Error> {
        Err(Error::Refused(logs.line.clone()))
    }

    fn follows(&mut self, previous: &GtidSet) {
        if self.now == MomentPhase::Before
            && let Some(line) = self.moment.begun_too_late(previous)
        {
            self.no_moment.get_or_insert(line);
        }
        self.held.union(previous);
    }

    fn begin(&mut self, gtid: Option<&Gtid>, time: u64) {
        if let Some(passed) = self.passed_moment.take() {
            self.pass_moment(passed);
        }
        gtid.into_iter().for_each(|gtid| self.held.add(*gtid));
        self.tables.iter_mut().for_each(|table| table.has_rows = false);
        match self.moment.phase(self.now, gtid, time) {
            Ok(phase) => self.now = phase,
            Err(line) => {
                self.no_moment.get_or_insert(line);
            }
        }
        self.time = time;
        if self.now == MomentPhase::After {
            self.first_later.get_or_insert(time);
        }
    }

    fn row(&mut self, transaction: &FollowedTransaction, row: &RowAt<'_>) -> io::Result<()> {
        if self.is_altered {
            return Ok(());
        }
        if self.now == MomentPhase::After {
            self.logged.begin_later(transaction);
        }
        let mut fields = RecordFields::of(row.text);
        while !fields.is_empty() {
            match TouchOfTable::take(&mut fields)? {
                TouchOfTable::Own(number, records) => self.take_own(transaction, row, (number, records))?,
                TouchOfTable::Parent(number, what) => {
                    let what = String::from_utf8_lossy(what);
                    let table = self.tables.get_mut(number).filter(|_| self.now == MomentPhase::After);
                    table.into_iter().for_each(|table| table.may_cascade(transaction, row, &what));
                }
            }
        }
        Ok(())
    }

    fn statement(&mut self, transaction: &FollowedTransaction, statement: StatementAt<'_>) -> io::Result<()> {
        let text = String::from_utf8_lossy(statement.text);
        let words = StatementWords::of(&text);
        if self.now == MomentPhase::After {
            self.logged.begin_later(transaction);
        }
        self.logged.take(transaction, &statement, words.is_ddl());
        self.misplaces(transaction, &statement, (&text, &words));
        if self.now != MomentPhase::After || self.is_altered {
            return Ok(());
        }
        let current = String::from_utf8_lossy(statement.database);
        let mut refused = None;
        for (number, table) in self.tables.iter_mut().enumerate() {
            let is_of = |(database, name): &(String, String)| words.may_change(&current, database, name);
            let is_named = table.names.iter().any(is_of);
            if is_named && words.is_ddl() {
                table.last_ddl = self.time;
            }
            let is_of_family = is_named || words.is_ddl() && table.of_parents.iter().any(is_of);
            let followed = self.followed.as_ref();
            if is_of_family
                && words.drops_foreign_key()
                && followed.is_none_or(|logged| logged.loses_carrying_key(transaction))
            {
                table.doubt.get_or_insert_with(|| transaction.changed_by(&text));
            }
            if is_named && !words.is_ddl() {
                let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let place = place_of(transaction, transaction.offset);
                refused.get_or_insert_with(|| {
                    (
                        number,
                        format!("{place}: a statement changed the table, which can't be taken back: {line}"),
                    )
                });
            } else if is_of_family && self.followed.is_none() {
                self.is_altered = true;
                return Ok(());
            } else if let Some(why) =
                table.indirect.take(&text, &words, &current, &transaction.changed_by(&text))
            {
                refused.get_or_insert((number, why));
            }
        }
        if let Some((number, why)) = refused {
            self.refuse(number, || why);
        }
        Ok(())
    }

    fn decided(&mut self, xid: &str, is_committed: bool) {
        let changed_before = self.prepared.remove(xid);
        if self.now != MomentPhase::After || !is_committed {
            return;
        }
        let Some(changed) = changed_before else {
            self.lacks_prepared |= self.is_partial;
            let line = format!(
                "the XA transaction {xid} was prepared before the logs: it may have changed the table"
            );
            self.refused.get_or_insert(line);
            return;
        };
        if let Some(number) = changed.iter().position(|is_changed| *is_changed) {
            self.refuse(number, || {
                format!(
                    "the XA transaction {xid} had changed the table at that moment, and was committed later: what it \
                     changed can't be told from what was there"
                )
            });
        }
    }

    fn end(&mut self, transaction: &FollowedTransaction, _: TransactionEnding) -> io::Result<()> {
        if let Some(xid) = &transaction.prepared {
            let is_before = self.now != MomentPhase::After;
            let changed = self.tables.iter().map(|table| table.has_rows && is_before).collect();
            self.prepared.insert(xid.clone(), changed);
        }
        Ok(())
    }
}
