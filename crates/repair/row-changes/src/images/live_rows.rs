//! Columns of which no image of a row has a value: nothing in the logs changed them, so they are what the server's row has now. That
//! holds only where the server has exactly the transactions that were read.
//!
//! ```text
//! executed ⊇ read     all that was read is there
//! snapshot
//! executed ∪ owned ⊆ read ∪ purged    nothing more can be seen in it
//! SELECT … WHERE key OR key …    many rows at a time, compared with what their last images have
//! ```

use std::collections::HashMap;
use std::io;

use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::row::Cell;
use binlogz_schema::{DefinedColumn, DefinedTable};
use binlogz_source::{ConnectOptions, Connection};

use super::earlier_images::{EarlierImages, KeyDigest, RowNumber, key_digest};
use super::live_values::{live_cell, live_expression};
use crate::digest::Digests;
use crate::owned_gtids::without_owners;
use crate::record::{CellSpool, ImageCells, SpooledImage, read_cells};
use crate::sql::defaults::DefaultCell;
use crate::sql::literal::push_equal;
use crate::sql::text::push_quoted;
use crate::table::{TableColumn, WrittenTable};

/// Memory for the rows; the rest goes to a temporary file.
const LIVE_MEMORY: usize = 8 << 20;
/// Rows that are asked for in one statement.
const BATCH_ROWS_MAX: usize = 200;
/// Bytes of conditions in one statement, unless a row's key has more.
const BATCH_SIZE_MAX: usize = 256 << 10;
/// The words for a column that the server's row of now doesn't tell.
const NOTHING_TOLD: &str = "nor does the server's row of now, for certain";

/// Columns of rows as a server has them now, for rows none of whose images has these columns.
pub struct LiveRows {
    cells: CellSpool,
    /// The spooled cells of each row, by the row's number among those that are followed.
    spans: HashMap<RowNumber, SpooledImage>,
    /// The reason, in words, for which the server's rows don't tell a column.
    pub(super) why: String,
}

/// A table whose rows are asked for: as the server has it, and as the last images of its rows do.
pub(super) struct LiveRowTable<'t> {
    /// The table's number among those that are followed.
    pub(super) number: usize,
    pub(super) written: &'t WrittenTable,
    pub(super) key: &'t [usize],
    pub(super) told: &'t DefinedTable,
    /// The rows, by the digests of their keys.
    pub(super) rows: Vec<KeyDigest>,
}

/// A reason for which none of the server's rows may be used.
enum LiveTrouble {
    /// It isn't certain, for this reason, that the server's rows are those at the end of the logs.
    Doubt(String),
    /// A temporary file.
    Io(io::Error),
}

impl From<io::Error> for LiveTrouble {
    fn from(error: io::Error) -> Self {
        LiveTrouble::Io(error)
    }
}

impl From<binlogz_source::Error> for LiveTrouble {
    fn from(error: binlogz_source::Error) -> Self {
        LiveTrouble::Doubt(error.to_string())
    }
}

impl LiveRows {
    fn nothing(why: String) -> Self {
        LiveRows { cells: CellSpool::new(LIVE_MEMORY), spans: HashMap::new(), why }
    }

    /// Asks the server for the rows, if it has exactly the transactions that were read.
    pub(super) fn of_server(
        connect: &ConnectOptions,
        read: &GtidSet,
        (images, digests): (&EarlierImages, &Digests),
        tables: &[LiveRowTable<'_>],
    ) -> io::Result<Self> {
        let mut live = LiveRows::nothing(NOTHING_TOLD.to_owned());
        match live.ask(connect, read, (images, digests), tables) {
            Ok(()) => Ok(live),
            Err(LiveTrouble::Io(error)) => Err(error),
            Err(LiveTrouble::Doubt(why)) => {
                Ok(LiveRows::nothing(format!("nor does the row of now of {}: {why}", connect.server())))
            }
        }
    }

    /// The columns of a followed row, for [`read_cells`].
    pub(super) fn load(&self, row: RowNumber) -> io::Result<Option<Vec<u8>>> {
        self.spans.get(&row).map(|span| self.cells.load(*span)).transpose()
    }

    fn ask(
        &mut self,
        connect: &ConnectOptions,
        read: &GtidSet,
        images: (&EarlierImages, &Digests),
        tables: &[LiveRowTable<'_>],
    ) -> Result<(), LiveTrouble> {
        let mut session = Connection::open(connect)?;
        session.plain_sql_mode()?;
        session.execute(b"SET NAMES utf8mb4, SESSION time_zone = '+00:00'")?;
        session.execute(b"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        check_end(&mut session, read)?;
        for table in tables {
            check_engine(&mut session, table.written)?;
            self.table(&mut session, images, table)?;
        }
        Ok(())
    }

    fn table(
        &mut self,
        session: &mut Connection,
        (images, digests): (&EarlierImages, &Digests),
        table: &LiveRowTable<'_>,
    ) -> Result<(), LiveTrouble> {
        let columns = expressions(table);
        let select = format!(
            "SELECT {} FROM {} WHERE ",
            columns.iter().map(|column| column.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(", "),
            String::from_utf8_lossy(&table.written.name)
        );
        let mut statement = select.clone();
        let mut count = 0;
        for (number, digest) in table.rows.iter().enumerate() {
            if let Some(image) = images.load(table.number, *digest)?
                && let Ok(cells) = read_cells(&image.cells)
                && let Some(condition) = key_condition(table, &cells)
            {
                statement.push_str(if count > 0 { " OR " } else { "" });
                statement.push_str(&condition);
                count += 1;
            }
            let is_last = number + 1 == table.rows.len();
            if count > 0 && (is_last || count >= BATCH_ROWS_MAX || statement.len() >= BATCH_SIZE_MAX) {
                for answer in session.query(&statement)? {
                    let cells = live_cells(table, &columns, &answer);
                    self.take((images, digests), table, &cells)?;
                }
                statement.clone_from(&select);
                count = 0;
            }
        }
        Ok(())
    }

    /// Keeps a row's columns that its last image lacks, unless both contradict each other.
    fn take(
        &mut self,
        (images, digests): (&EarlierImages, &Digests),
        table: &LiveRowTable<'_>,
        live: &[Option<DefaultCell>],
    ) -> Result<(), LiveTrouble> {
        let live: ImageCells<'_> = live.iter().map(|cell| cell.as_ref().map(DefaultCell::content)).collect();
        let Some(digest) = key_digest(digests, table.number, table.key, &live) else { return Ok(()) };
        let Some(image) = images.load(table.number, digest)? else { return Ok(()) };
        let last = read_cells(&image.cells)?;
        let mut both = last.iter().zip(&live).filter_map(|(last, live)| last.as_ref().zip(live.as_ref()));
        if both.any(|(last, live)| last != live) {
            return Ok(());
        }
        let missing: ImageCells<'_> =
            last.iter().zip(&live).map(|(last, live)| live.filter(|_| last.is_none())).collect();
        self.spans.insert(image.row, self.cells.put(&missing)?);
        Ok(())
    }
}

/// Begins a snapshot that has exactly the transactions that were read.
fn check_end(session: &mut Connection, read: &GtidSet) -> Result<(), LiveTrouble> {
    const EXECUTED: &str = "SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_mode";
    let before = session.first_row(EXECUTED)?;
    let mode = before.text(1)?;
    if mode != "ON" {
        return Err(LiveTrouble::Doubt(format!(
            "gtid_mode is {mode}, and without GTIDs nothing tells whether the logs reach to it"
        )));
    }
    if !read.is_subset(&before.gtid_set(0)?) {
        return Err(LiveTrouble::Doubt("the server hasn't all transactions of the logs".to_owned()));
    }
    session.execute(b"START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
    // A transaction is seen a moment before its GTID counts as executed; until then a session owns it.
    let owned = session.first_row("SELECT @@GLOBAL.gtid_owned")?;
    let mut seen: GtidSet = without_owners(&owned.text(0)?.replace('\n', ""))
        .parse()
        .map_err(|_| owned.unexpected(0, "a GTID set with owners"))?;
    seen.union(&session.first_row(EXECUTED)?.gtid_set(0)?);
    // Of a server that was made from a copy no log names those of the copy. A log that wasn't read is purged after those that were.
    let purged = session.first_row("SELECT @@GLOBAL.gtid_purged")?.gtid_set(0)?;
    seen.subtract(&purged);
    match seen.is_subset(read) && !read.is_subset(&purged) {
        true => Ok(()),
        false => Err(LiveTrouble::Doubt("it has transactions that weren't read".to_owned())),
    }
}

/// Rows of other engines have no part in a snapshot.
fn check_engine(session: &mut Connection, table: &WrittenTable) -> Result<(), LiveTrouble> {
    let [mut database, mut name] = [Vec::new(), Vec::new()];
    push_quoted(&mut database, &table.schema.database);
    push_quoted(&mut name, &table.schema.table);
    let [database, name] = [database, name].map(|text| String::from_utf8_lossy(&text).into_owned());
    let found = session.query(&format!(
        "SELECT 1 FROM information_schema.tables WHERE table_schema = {database} AND table_name = {name} AND engine = 'InnoDB'"
    ))?;
    match found.is_empty() {
        true => Err(LiveTrouble::Doubt(format!("{} isn't a table of InnoDB", table.shown()))),
        false => Ok(()),
    }
}

/// The SELECT expression for each column; `None`: the server isn't asked for it.
fn expressions(table: &LiveRowTable<'_>) -> Vec<Option<String>> {
    let schema = table.written.schema.columns();
    let columns = schema.iter().zip(&table.told.columns).zip(&table.written.columns);
    let expression = |((column, told), written): ((_, &DefinedColumn), &TableColumn)| {
        let mut name = Vec::new();
        written.push_name(&mut name);
        live_expression(column, told.facts.as_ref()?, &String::from_utf8_lossy(&name))
    };
    columns.map(expression).collect()
}

/// A condition that the row of a key meets. `None`: its key can't be told.
fn key_condition(table: &LiveRowTable<'_>, cells: &ImageCells<'_>) -> Option<String> {
    let mut out = b"(".to_vec();
    for (number, index) in table.key.iter().enumerate() {
        let column = table.written.schema.columns().get(*index)?;
        let content = (*cells.get(*index)?)?;
        out.extend_from_slice(if number > 0 { b" AND " } else { b"" });
        let cell = Cell { index: *index, column, content };
        push_equal(&mut out, table.written.columns.get(*index)?, &cell, false).ok()?;
    }
    out.push(b')');
    String::from_utf8(out).ok()
}

fn live_cells(
    table: &LiveRowTable<'_>,
    expressions: &[Option<String>],
    answer: &[Option<Vec<u8>>],
) -> Vec<Option<DefaultCell>> {
    let schema = table.written.schema.columns();
    let columns = schema.iter().zip(&table.told.columns);
    let mut cells = Vec::new();
    for ((column, told), (expression, answer)) in columns.zip(expressions.iter().zip(answer)) {
        let facts = told.facts.as_ref().filter(|_| expression.is_some());
        cells.push(facts.and_then(|facts| live_cell(column, facts, answer.as_deref())));
    }
    cells
}
