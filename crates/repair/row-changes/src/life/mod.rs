//! The history of rows: each change as it was, with its transaction.
//!
//! ```text
//! pass → Listener: the rows of a transaction, in a spool, until its end says what became of it → output
//! ```

mod render;
mod statements;
mod summary;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::mem;
use std::sync::Arc;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::printable;
use binlogz_figures::{counted, moment};
use binlogz_flow::Input;
use binlogz_flow::events::RunSummary;
use binlogz_payload::{Spool, SpoolMemory};
use binlogz_print::jsonl::push_string;
use binlogz_schema::{HistoryPlace, SchemaFile, TableHistory, TableThen, names_lacking};
use binlogz_source::ConnectOptions;

use crate::choose::{Condition, ConditionError, Range, RowSelection};
use crate::images::{ImageRebuilder, LiveRows, RebuiltRow};
use crate::pass::{
    Break, CarryingKeys, ChoiceListener, Error, FollowedTables, FollowedTransaction, Follower, HistoryUse,
    OTHER_SCHEMA, Search, StatementAt, StatementWords, TransactionEnding, early_end, read_log, shortened,
};
use crate::record::{RecordReader, RowAt, RowFlags, RowImages, ShownRow};
use crate::sql::text::push;
use crate::table::Structure;
use render::{ChangeRenderer, push_csv};
pub use statements::StatementsAhead;
use summary::ChangeSummary;

/// Memory for the rows of a transaction; the rest goes to a temporary file.
const ROWS_MEMORY: usize = 4 << 20;
/// The most characters of a statement in text.
const STATEMENT_LENGTH_MAX: usize = 300;

/// How changes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifeFormat {
    /// A paragraph for each change, for people.
    Text,
    /// An object a line for each change.
    Json,
    /// A line for each column of each change.
    Csv,
}

/// The changes in the making. Read all logs, in their order.
pub struct Life<'o> {
    selection: &'o RowSelection,
    schema: Option<&'o SchemaFile>,
    history: Option<&'o TableHistory>,
    /// The history that tells the columns' defaults.
    defaults: Option<&'o TableHistory>,
    /// The foreign keys that may have changed the table's rows below the log.
    carrying: Option<&'o CarryingKeys<'o>>,
    changes: ChangeRenderer,
    follower: Follower<Writer<'o>>,
}

impl<'o> Life<'o> {
    /// Begins a pass over logs that shows the life of chosen rows.
    ///
    /// # Errors
    ///
    /// An output that fails.
    pub fn new(
        selection: &'o RowSelection,
        schema: Option<&'o SchemaFile>,
        history: Option<&'o TableHistory>,
        format: LifeFormat,
        out: &'o mut dyn Write,
    ) -> io::Result<Self> {
        if format == LifeFormat::Csv {
            out.write_all(CSV_HEAD)?;
        }
        let rows = Spool::new(&SpoolMemory::new(ROWS_MEMORY), Vec::new());
        let has_names = schema.is_some();
        let parts = Spool::on_disk();
        let writer = Writer {
            out,
            format,
            rows,
            parts,
            count: 0,
            written_before: 0,
            has_names,
            tables: BTreeMap::new(),
            statements: history.map(|_| TableHistory::default()),
            summary: None,
            images: None,
            may_look_back: false,
            needs_images: false,
            is_lacking: false,
            table: Default::default(),
            incomplete: BTreeMap::new(),
            looks_ahead: false,
            read: GtidSet::new(),
            may_learn: false,
            needs_tables: false,
            unnamed: BTreeSet::new(),
        };
        Ok(Life {
            selection,
            schema,
            history,
            defaults: None,
            carrying: None,
            changes: ChangeRenderer { format, followed: None, defers_conditions: false },
            follower: Follower::new(writer),
        })
    }

    /// Ends the pass at the first chosen row whose images lack columns, so that [`Life::with_images`] can show it whole; without this it
    /// is shown as it was logged, and a condition on such a column is an error.
    #[must_use]
    pub fn looking_back(mut self) -> Self {
        self.follower.listener.may_look_back = true;
        self.changes.defers_conditions = true;
        self
    }

    /// Whether the pass ended at a row whose images lack columns: the logs are to be read once more, with [`Life::with_images`].
    pub fn needs_images(&self) -> bool {
        self.follower.listener.needs_images
    }

    /// Ends the pass at the first chosen row of a table whose columns have no names, so that [`Life::with_tables`] can show it with those
    /// that statements in the logs tell.
    #[must_use]
    pub fn learning_tables(mut self) -> Self {
        self.follower.listener.may_learn = true;
        self
    }

    /// Whether the pass ended at a row whose columns have no names: the logs are to be read once more, with [`Life::with_tables`].
    pub fn needs_tables(&self) -> bool {
        self.follower.listener.needs_tables
    }

    /// Whether the pass ended for either reason.
    pub fn is_interrupted(&self) -> bool {
        self.needs_images() || self.needs_tables()
    }

    /// Shows rows of what the tables were by this history. All logs are to be read from their beginning; changes that were written
    /// aren't written again.
    #[must_use]
    pub fn with_tables(self, history: Option<&'o TableHistory>) -> Self {
        let last = self.follower.listener;
        let writer = Writer {
            statements: history.map(|_| TableHistory::default()),
            may_learn: false,
            needs_tables: false,
            ..last.anew()
        };
        Life { history, follower: Follower::new(writer), ..self }
    }

    /// Follows all rows of the chosen tables, so that rows get columns that their images lack from earlier images, and from the
    /// columns' defaults, as far as a history of tables tells them. All logs are to be read from their beginning; changes that were
    /// written aren't written again.
    #[must_use]
    pub fn with_images(
        self,
        history: Option<&'o TableHistory>,
        defaults: Option<&'o TableHistory>,
        live: Option<LiveRows>,
    ) -> Self {
        let tables: FollowedTables = self.selection.tables.iter().cloned().collect();
        let changes = ChangeRenderer { followed: Some(Arc::new(tables)), ..self.changes };
        let tables_then = (self.schema, history.map(|history| HistoryUse { history, as_now: false }));
        let images = ImageRebuilder::new(tables_then, defaults, changes.clone()).with_live(live);
        let last = self.follower.listener;
        let writer = Writer {
            statements: history.or(defaults).map(|_| TableHistory::default()),
            images: Some(images),
            needs_images: false,
            looks_ahead: false,
            ..last.anew()
        };
        Life { history, defaults, changes, follower: Follower::new(writer), ..self }
    }

    /// Writes nothing in this pass, which only learns which rows lack columns after all: [`Life::live_rows`].
    #[must_use]
    pub fn looking_ahead(mut self) -> Self {
        self.follower.listener.looks_ahead = true;
        self
    }

    /// Asks the server that has the logs, up to their end, for the rows of which the images don't tell all columns, once all logs are
    /// read. `None`: there are none.
    ///
    /// # Errors
    ///
    /// A temporary file that fails.
    pub fn live_rows(&mut self, connect: &ConnectOptions) -> io::Result<Option<LiveRows>> {
        // A transaction that is cut off was rolled back, or its end is to come.
        self.follower.finish()?;
        let Writer { images, read, .. } = &self.follower.listener;
        let images = images.as_ref().filter(|images| images.has_incomplete_rows());
        images.map(|images| images.live_rows(connect, read)).transpose()
    }

    /// The tables with rows that are shown without some of their columns, line by line, once all logs are read.
    pub fn incomplete_notes(&self) -> Vec<String> {
        let line = |((database, table), count): (&(String, String), &u64)| {
            format!(
                "{database}.{table}: {} that lack columns in the log, which nothing else tells; the output names them",
                counted(*count, "changes")
            )
        };
        self.follower.listener.incomplete.iter().map(line).collect()
    }

    /// Names what these foreign keys did to the rows below the log.
    #[must_use]
    pub fn with_keys_below(mut self, keys: Option<&'o CarryingKeys<'o>>) -> Self {
        self.carrying = keys;
        self
    }

    /// Shows only this many changes as text, the first ones; the others are counted, by transaction.
    #[must_use]
    pub fn with_shown_max(mut self, shown_max: u64) -> Self {
        let is_text = self.changes.format == LifeFormat::Text;
        self.follower.listener.summary = is_text.then(|| ChangeSummary::new(shown_max));
        self
    }

    /// The foreign keys that changed rows below the log, line by line, once all logs are read.
    pub fn keys_below_notes(&self) -> Vec<String> {
        let keys = self.carrying;
        let mut notes = keys.map(|keys| self.follower.carried.notes(keys, "shown")).unwrap_or_default();
        notes.extend(keys.into_iter().flat_map(|keys| self.follower.carried.lost_notes(keys, "shown")));
        notes
    }

    /// Reads a log, in the order of the logs. `false`: nothing after it is asked for.
    ///
    /// # Errors
    ///
    /// A log that can't be read, a condition that doesn't fit its tables, an output or a temporary file that fails.
    pub fn read(
        &mut self,
        input: Input,
        name: &str,
        range: Range,
        workers: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(RunSummary, bool), Error> {
        let history = self.history.map(|history| HistoryUse { history, as_now: false });
        let search = Search {
            selection: self.selection,
            schema: self.schema,
            history,
            carrying: self.carrying,
            renderer: &self.changes,
            workers,
        };
        let read = read_log(input, (name, range), &search, &mut self.follower, progress);
        let is_unnamed = matches!(read, Err(Error::Condition(ConditionError::NoNames { .. })));
        if is_unnamed && self.follower.listener.may_learn {
            self.follower.listener.needs_tables = true;
            return Ok((RunSummary::default(), false));
        }
        let (ran, goes_on) = read?;
        // The log is read once more, and tells then what can't be read.
        let ran = if self.is_interrupted() { RunSummary::default() } else { ran };
        Ok((ran, goes_on && !self.follower.is_over))
    }

    /// Whether the statements in the logs are those of its history, once all logs are read: logs in use may have more by then.
    pub fn is_of_its_history(&self) -> bool {
        let read = self.follower.listener.statements.as_ref();
        self.history
            .or(self.defaults)
            .is_none_or(|history| read.is_some_and(|read| read.has_statements_of(history)))
    }

    /// The tables whose columns' names were not those of the rows perhaps, line by line, once all logs are read: the log has none,
    /// and a later statement changed the table.
    pub fn name_notes(&self) -> Vec<String> {
        let changed = |((database, table), by): (&(String, String), &Option<String>)| {
            let by = by.as_ref()?;
            Some(format!(
                "{database}.{table} was changed after its first rows here ({by}): the log has no column names, and those given may \
                 be of other columns before that"
            ))
        };
        let disputed =
            |(database, table): &(String, String)| match self.history?.at(HistoryPlace::END, database, table)
            {
                TableThen::Disagrees(turn) => {
                    Some(format!("{database}.{table}: {OTHER_SCHEMA} ({})", shortened(&turn.statement)))
                }
                _ => None,
            };
        let tables = &self.follower.listener.tables;
        tables.iter().filter_map(changed).chain(tables.keys().filter_map(disputed)).collect()
    }

    /// The tables whose columns are shown without names, in one line, once all logs are read.
    pub fn unnamed_note(&self) -> Option<String> {
        let unnamed = &self.follower.listener.unnamed;
        let names: Vec<_> = unnamed.iter().map(|(database, table)| format!("{database}.{table}")).collect();
        (!names.is_empty())
            .then(|| format!("{}: @1 is the first column", names_lacking(Some(&names.join(", ")))))
    }

    /// Writes the rest; returns how many changes there were.
    ///
    /// # Errors
    ///
    /// An output or a temporary file that fails.
    pub fn finish(mut self) -> io::Result<u64> {
        self.follower.finish()?;
        let Writer { out, count, summary, .. } = self.follower.listener;
        if let Some(summary) = &summary {
            summary.write(out)?;
        }
        out.flush()?;
        Ok(count + summary.map_or(0, |summary| summary.hidden()))
    }
}

const CSV_HEAD: &[u8] =
    b"time,gtid,thread_id,log,position,in_payload,row,ending,database,table,operation,column,before,after,changed\n";

struct Writer<'o> {
    out: &'o mut dyn Write,
    format: LifeFormat,
    /// The rows of the open transaction: for each the size of its place and of its text (u32 each), where its parts end in
    /// `parts` (u64), then place and text.
    rows: Spool,
    /// The fronts of long texts.
    parts: Spool,
    /// Changes that were written, by this pass or the one before.
    count: u64,
    /// Changes that come which the pass before wrote.
    written_before: u64,
    /// Whether names come from elsewhere where the log has none.
    has_names: bool,
    /// The tables that had rows whose columns' names the log lacks, and the first statement that changed each since.
    tables: BTreeMap<(String, String), Option<String>>,
    /// The statements that were read, to be compared with those of a history.
    statements: Option<TableHistory>,
    /// Counts the changes if only the first are written.
    summary: Option<ChangeSummary>,
    /// The rows of the chosen tables, followed from the beginning of the logs.
    images: Option<ImageRebuilder<'o, ChangeRenderer>>,
    /// Whether the pass ends at a row that needs earlier images.
    may_look_back: bool,
    needs_images: bool,
    /// Whether the row that follows lacks columns.
    is_lacking: bool,
    /// The table of the rows that come, by database and name.
    table: (String, String),
    /// Counts, by table, of changes that were shown without some columns.
    incomplete: BTreeMap<(String, String), u64>,
    /// Whether nothing is written yet.
    looks_ahead: bool,
    /// The transactions that were read, and all before them.
    read: GtidSet,
    /// Whether the pass ends at a row whose columns have no names.
    may_learn: bool,
    needs_tables: bool,
    /// The tables that had rows whose columns have no names.
    unnamed: BTreeSet<(String, String)>,
}

impl ChoiceListener for Writer<'_> {
    /// A statement after the chosen part of the logs may have changed the tables of its rows.
    fn wants_statements_after(&self) -> bool {
        self.has_names || self.statements.is_some()
    }

    fn follows(&mut self, previous: &GtidSet) {
        self.read.union(previous);
    }

    fn begin(&mut self, gtid: Option<&Gtid>, _: u64) {
        gtid.into_iter().for_each(|gtid| self.read.add(*gtid));
    }

    fn breaks(&mut self, logs: &Break) -> Result<(), Error> {
        self.lost_images(None, &logs.line);
        Ok(())
    }

    fn table(&mut self, database: &[u8], table: &[u8], structure: Structure) -> io::Result<()> {
        let [database, table] = [database, table].map(|name| String::from_utf8_lossy(name).into_owned());
        self.table = (database, table);
        if self.has_names && !structure.has_names() && !structure.is_settled {
            self.tables.entry(self.table.clone()).or_default();
        }
        if !structure.is_named {
            if self.may_learn {
                self.needs_tables = true;
                return Err(early_end());
            }
            self.unnamed.insert(self.table.clone());
        }
        Ok(())
    }

    fn lacking(&mut self) {
        self.is_lacking = true;
    }

    fn decide(&mut self, condition: Option<&Condition>, why: &str) -> Result<bool, Error> {
        let (Some(images), Some(condition)) = (&mut self.images, condition) else {
            self.needs_images = true;
            return Err(early_end().into());
        };
        let is_met = images.meets((&self.table.0, &self.table.1), condition);
        // The row of now may tell.
        if self.looks_ahead && matches!(is_met, Err(Error::Refused(_))) {
            return Ok(false);
        }
        is_met?.ok_or_else(|| Error::Refused(why.to_owned()))
    }

    fn images_table(&mut self, place: HistoryPlace, map: &[u8]) -> Result<(), Error> {
        match &mut self.images {
            Some(images) => Ok(images.table(place, map)?),
            None => Ok(()),
        }
    }

    fn image(&mut self, change: RowImages<'_>) -> io::Result<()> {
        self.images.as_mut().map_or(Ok(()), |images| images.image(change))
    }

    fn lost_images(&mut self, table: Option<(&str, &str)>, why: &str) {
        self.images.iter_mut().for_each(|images| images.lose(table, why));
    }

    fn annotation(&mut self, statement: &[u8]) {
        self.images.iter_mut().for_each(|images| images.annotation(statement));
    }

    fn keys_below(&mut self) {
        self.images.iter_mut().for_each(ImageRebuilder::keys_below);
    }

    fn passed(&mut self, transaction: &FollowedTransaction, ending: TransactionEnding) {
        self.images.iter_mut().for_each(|images| images.passed(transaction, ending));
    }

    fn row_part(&mut self, text: &[u8]) -> io::Result<()> {
        self.parts.append(text)
    }

    fn row(&mut self, transaction: &FollowedTransaction, row: &RowAt<'_>) -> io::Result<()> {
        let is_shown = self.summary.as_mut().is_none_or(|summary| summary.count(row.text));
        if !is_shown && self.images.is_none() {
            self.is_lacking = false;
            return Ok(());
        }
        let rebuilt = self.rebuilt()?;
        if !is_shown {
            return Ok(());
        }
        let text = rebuilt.as_deref().unwrap_or(row.text);
        let mut place = Vec::new();
        match self.format {
            LifeFormat::Text => {
                let inside = row.inside.map(|index| format!("+{index}")).unwrap_or_default();
                place.extend_from_slice(format!("{}{inside}#{}", row.offset, row.row).as_bytes());
                if let Some(statement) = &transaction.statement {
                    let text = String::from_utf8_lossy(statement);
                    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    let short: String = line.chars().take(STATEMENT_LENGTH_MAX).collect();
                    let dots = if short.len() < line.len() { " …" } else { "" };
                    let line = format!("\n  statement: {}{dots}", printable(&short));
                    place.extend_from_slice(line.as_bytes());
                }
            }
            LifeFormat::Json => {
                let inside = row.inside.map(|index| format!(",\"in_payload\":{index}")).unwrap_or_default();
                let text = format!("\"position\":{}{inside},\"row\":{}", row.offset, row.row);
                place.extend_from_slice(text.as_bytes());
                if let Some(statement) = &transaction.statement {
                    place.extend_from_slice(b",\"statement\":");
                    push_string(&mut place, &String::from_utf8_lossy(statement));
                }
            }
            LifeFormat::Csv => {
                let inside = row.inside.map(|index| index.to_string()).unwrap_or_default();
                place.extend_from_slice(format!("{},{inside},{}", row.offset, row.row).as_bytes());
            }
        }
        ShownRow { parts_end: self.parts.size(), place }.put(&mut self.rows, text)
    }

    fn statement(&mut self, transaction: &FollowedTransaction, statement: StatementAt<'_>) -> io::Result<()> {
        if let Some(statements) = &mut self.statements {
            statement.record(transaction, statements);
        }
        if self.tables.is_empty() && self.images.is_none() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(statement.text);
        let words = StatementWords::of(&text);
        if let Some(images) = &mut self.images {
            let database = String::from_utf8_lossy(statement.database);
            images.statement(transaction, (&text, &database), &words);
        }
        if words.leaves_rows_alone() || !words.is_ddl() {
            return Ok(());
        }
        let current = String::from_utf8_lossy(statement.database);
        for ((database, table), by) in self.tables.iter_mut().filter(|(_, by)| by.is_none()) {
            if words.redefines(&current, database, table) {
                *by = Some(transaction.changed_by(&text));
            }
        }
        Ok(())
    }

    fn decided(&mut self, xid: &str, is_committed: bool) {
        self.images.iter_mut().for_each(|images| images.decided(xid, is_committed));
    }

    fn end(&mut self, transaction: &FollowedTransaction, ending: TransactionEnding) -> io::Result<()> {
        if let Some(summary) = &mut self.summary {
            summary.end(transaction, ending);
        }
        if self.rows.size() == 0 {
            return Ok(());
        }
        let rows = mem::replace(&mut self.rows, Spool::new(&SpoolMemory::new(ROWS_MEMORY), Vec::new()));
        let parts = mem::replace(&mut self.parts, Spool::on_disk());
        let mut reader = RecordReader::new(rows.reader(0..rows.size()));
        let mut parts_begin = 0;
        let outcome = outcome(transaction, ending);
        while let Some((ShownRow { parts_end, place }, rest)) = ShownRow::next(&mut reader)? {
            // A value may be larger than all the rest: it is not held.
            let mut text = BufReader::new(parts.reader(parts_begin..parts_end)).chain(rest);
            parts_begin = parts_end;
            if self.looks_ahead || self.written_before > 0 {
                self.written_before = self.written_before.saturating_sub(1);
                io::copy(&mut text, &mut io::sink())?;
                continue;
            }
            self.change(transaction, outcome, &place, &mut text)?;
            self.count += 1;
        }
        Ok(())
    }
}

/// A transaction's outcome, as programs and people read it.
fn outcome(transaction: &FollowedTransaction, ending: TransactionEnding) -> (&'static str, &'static str) {
    match ending {
        TransactionEnding::Whole if transaction.prepared.is_some() => {
            ("prepared", "only prepared here (XA): a later XA COMMIT or XA ROLLBACK decides")
        }
        TransactionEnding::Whole => ("committed", ""),
        TransactionEnding::RolledBack => ("rolled_back", "its transaction ended with ROLLBACK"),
        TransactionEnding::PartlyRolledBack => {
            ("partly_rolled_back", "its transaction went back to a savepoint, perhaps to before this")
        }
        TransactionEnding::Cut => {
            ("cut", "the log ends within its transaction, which may not have been committed")
        }
    }
}

impl Writer<'_> {
    /// Before another pass: what was written counts as written, all else is read and counted again.
    fn anew(self) -> Self {
        Writer {
            rows: Spool::new(&SpoolMemory::new(ROWS_MEMORY), Vec::new()),
            parts: Spool::on_disk(),
            written_before: self.count,
            summary: self.summary.as_ref().map(ChangeSummary::anew),
            tables: BTreeMap::new(),
            is_lacking: false,
            read: GtidSet::new(),
            incomplete: BTreeMap::new(),
            unnamed: BTreeSet::new(),
            ..self
        }
    }

    /// The text of the row that comes, if its images lack columns and others tell more of it.
    fn rebuilt(&mut self) -> io::Result<Option<Vec<u8>>> {
        if !mem::take(&mut self.is_lacking) {
            return Ok(None);
        }
        if self.images.is_none() && self.may_look_back {
            self.needs_images = true;
            return Err(early_end());
        }
        let database = &self.table.0;
        let table = &self.table.1;
        let rebuilt = match &mut self.images {
            Some(images) => images.rebuilt(database, table)?,
            None => None,
        };
        let (flags, text) = match rebuilt {
            Some(RebuiltRow::Text(flags, text)) => (RowFlags(flags), Some(text)),
            Some(RebuiltRow::Nothing) | None => (RowFlags(RowFlags::MISSING), None),
        };
        if flags.has(RowFlags::MISSING) {
            *self.incomplete.entry(self.table.clone()).or_default() += 1;
        }
        Ok(text)
    }

    /// The front of a line, up to what its row tells.
    fn begin_line(
        &mut self,
        transaction: &FollowedTransaction,
        ending: &str,
        place: &[u8],
    ) -> io::Result<()> {
        let mut line = b"{\"time\":".to_vec();
        push_string(&mut line, &utc(transaction.time));
        line.extend_from_slice(b",\"gtid\":");
        match &transaction.gtid {
            Some(gtid) => push_string(&mut line, gtid),
            None => line.extend_from_slice(b"null"),
        }
        let thread = transaction.thread_id.map_or("null".to_owned(), |id| id.to_string());
        line.extend_from_slice(format!(",\"thread_id\":{thread},\"log\":").as_bytes());
        push_string(&mut line, &transaction.log);
        line.push(b',');
        line.extend_from_slice(place);
        line.extend_from_slice(format!(",\"ending\":\"{ending}\",").as_bytes());
        self.out.write_all(&line)
    }

    fn change(
        &mut self,
        transaction: &FollowedTransaction,
        (ending, remark): (&str, &str),
        place: &[u8],
        text: &mut dyn BufRead,
    ) -> io::Result<()> {
        let gtid = transaction.gtid.as_deref();
        let out = &mut self.out;
        match self.format {
            LifeFormat::Text => {
                let time = moment(transaction.time);
                let mut whole = Vec::new();
                text.read_to_end(&mut whole)?;
                let (what, columns) = split(&whole);
                let thread = transaction.thread_id.map(|id| format!("thread {id}, ")).unwrap_or_default();
                let gtid = gtid.map_or("no GTID".to_owned(), |gtid| format!("GTID {gtid}"));
                if self.count > 0 {
                    writeln!(out)?;
                }
                writeln!(out, "{time}  {}", String::from_utf8_lossy(what))?;
                write!(out, "  {gtid}, {thread}{} at ", printable(&transaction.log))?;
                out.write_all(place)?;
                writeln!(out)?;
                if !remark.is_empty() {
                    writeln!(out, "  not certain: {remark}")?;
                }
                out.write_all(columns)
            }
            LifeFormat::Json => {
                self.begin_line(transaction, ending, place)?;
                io::copy(text, &mut self.out)?;
                self.out.write_all(b"}\n")
            }
            LifeFormat::Csv => {
                let mut front = Vec::new();
                let thread = transaction.thread_id.map(|id| id.to_string()).unwrap_or_default();
                for field in [&utc(transaction.time), gtid.unwrap_or_default(), &thread, &transaction.log] {
                    push_csv(&mut front, field.as_bytes());
                    front.push(b',');
                }
                front.extend_from_slice(place);
                push(&mut front, format_args!(",{ending},"));
                let mut is_new_line = true;
                loop {
                    let buffer = text.fill_buf()?;
                    if buffer.is_empty() {
                        return Ok(());
                    }
                    for piece in buffer.split_inclusive(|byte| *byte == b'\n') {
                        if is_new_line {
                            out.write_all(&front)?;
                        }
                        out.write_all(piece)?;
                        is_new_line = piece.ends_with(b"\n");
                    }
                    let size = buffer.len();
                    text.consume(size);
                }
            }
        }
    }
}

/// The first line, and the others.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    (text.get(..end).unwrap_or_default(), text.get(end + 1..).unwrap_or_default())
}

fn utc(microseconds: u64) -> String {
    let time =
        jiff::Timestamp::from_microsecond(i64::try_from(microseconds).unwrap_or(0)).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
