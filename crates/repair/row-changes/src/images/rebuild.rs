//! Follows all rows of tables in the order of the logs, and renders chosen ones with the columns that they lack.
//!
//! ```text
//! change  the image before it                 the image after it
//! INSERT  -                                   what it has; what it lacks, from the columns' defaults
//! UPDATE  what it lacks, from earlier images  what it lacks, from before: the change left that alone
//! DELETE  what it lacks, from earlier images  -
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::mem;
use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{Bitmap, RowsEvent, RowsFlags, ServerFamily, TableId};
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::row::json::{JsonDiffs, JsonDocument};
use binlogz_binlog::row::{CellContent, Row, RowDecoder, TableSchema};
use binlogz_schema::{DefinedTable, HistoryPlace, ReferentialRule, SchemaFile, TableHistory, TableThen};
use binlogz_source::ConnectOptions;

use super::earlier_images::{EarlierImage, EarlierImages, RowNumber, key_digest};
use super::live_rows::{LiveRowTable, LiveRows};
use crate::choose::{Condition, ConditionError, Operation};
use crate::digest::Digests;
use crate::pass::{
    Error, FollowedTransaction, HistoryUse, OmittedColumns, REPLACED, RebuiltColumns, Renderer, RowRendering,
    StatementWords, TableRow, TransactionEnding, UNSURE, lacks_columns, row_digest, written_table,
};
use crate::record::{ImageCells, RowImages, cell_bytes, family_of_kept, read_cells, schema_of_kept};
use crate::sql::defaults::{DefaultCell, default_cells};
use crate::table::{Structure, WrittenTable};

/// Follows all rows of tables, and renders chosen ones with the columns that they lack.
pub(crate) struct ImageRebuilder<'o, R> {
    schema: Option<&'o SchemaFile>,
    history: Option<HistoryUse<'o>>,
    /// Tells the columns' defaults.
    defaults: Option<&'o TableHistory>,
    renderer: R,
    decoder: RowDecoder,
    digests: Digests,
    images: EarlierImages,
    layout: Option<ImageLayout>,
    /// The row of the last image, with the columns that are known.
    row: Option<KnownImages>,
    /// Images that begin before this may be of rows that foreign keys changed below the log since.
    below: Option<u64>,
    /// Tables that the open transaction changed, and those of prepared ones.
    changed: BTreeSet<usize>,
    prepared: HashMap<String, BTreeSet<usize>>,
    /// The number of rows that came up so far.
    rows: RowNumber,
    /// The rows that were chosen and lack columns.
    incomplete: BTreeSet<RowNumber>,
    /// The tables of the rows, as they are last, with the columns of their keys.
    last: BTreeMap<usize, (Arc<WrittenTable>, Vec<usize>)>,
    /// Columns that no image has, from the server's rows of now, if it was asked.
    live: Option<LiveRows>,
    /// Whether statements in the logs took foreign keys away that may have changed rows: no table tells them.
    loses_keys: bool,
    /// The statement of the images that come, if MariaDB noted it.
    statement: Option<String>,
}

/// The table of the images that come.
struct ImageLayout {
    table: usize,
    map: Vec<u8>,
    family: ServerFamily,
    written: Arc<WrittenTable>,
    /// The columns of the key that it had then.
    key: Option<Vec<usize>>,
    /// Whether the log itself names the key's columns, rather than a schema or history.
    is_logged_key: bool,
    /// Columns that foreign keys may change on account of other rows. `None`: it isn't known which.
    foreign: Option<Vec<usize>>,
    /// The values of columns that an INSERT leaves out; `None`: the default isn't known.
    defaults: Vec<Option<DefaultCell>>,
}

/// The images of a row's change, with the columns that are known.
struct KnownImages {
    operation: Operation,
    /// The number of the row, if it could be followed.
    row: Option<RowNumber>,
    /// The images' cells, encoded for [`read_cells`].
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
    /// Whether the log has each column of an image as a whole.
    logged_before: Vec<bool>,
    logged_after: Vec<bool>,
    /// The reason, in words, for which the other columns aren't known.
    why: String,
    /// The reason for which it isn't known what an update did with columns that the image after it lacks. `None`: it left them alone.
    unsure: Option<&'static str>,
}

/// A row as the logs tell it so far.
#[derive(Clone, Copy)]
struct FollowedRow {
    number: RowNumber,
    /// Whether its INSERT was seen, so that what isn't known is what that left out.
    is_inserted: bool,
}

impl ImageLayout {
    /// Gives columns that an image lacks their defaults, as far as these are known.
    fn fill_defaults<'l>(&'l self, image: &mut ImageCells<'l>) {
        let lacking = image.iter_mut().zip(&self.defaults).filter(|(cell, _)| cell.is_none());
        lacking.for_each(|(cell, default)| *cell = default.as_ref().map(DefaultCell::content));
    }

    /// Whether an image lacks columns that statements give values.
    fn lacks_stored(&self, image: &ImageCells<'_>) -> bool {
        let mut columns = self.written.columns.iter().filter(|column| !column.is_generated);
        columns.any(|column| image.get(column.index).is_none_or(Option::is_none))
    }

    /// The reason for which columns aren't known after an update, if the image, with the known defaults, lacks some.
    fn unsure(&self, after: &ImageCells<'_>, omitted: OmittedColumns) -> Option<&'static str> {
        match omitted {
            OmittedColumns::LeftAlone => None,
            OmittedColumns::Defaults => self.lacks_stored(after).then_some(REPLACED),
            OmittedColumns::Unknown => Some(UNSURE),
        }
    }

    fn is_of(&self, database: &str, table: &str) -> bool {
        let schema = &self.written.schema;
        (&*schema.database, &*schema.table) == (database.as_bytes(), table.as_bytes())
    }
}

impl KnownImages {
    /// Hands over the row, decoded as an event of its own. `None`: there is none.
    fn decoded<T>(
        &self,
        layout: &ImageLayout,
        decoder: &mut RowDecoder,
        take: impl FnOnce(Operation, &Row<'_, '_>) -> T,
    ) -> io::Result<Option<T>> {
        let schema = &layout.written.schema;
        let mut images = Vec::new();
        let mut bitmaps = Vec::new();
        let mut is_partial = false;
        for (number, bytes) in [&self.before, &self.after].into_iter().enumerate() {
            let Some(bytes) = bytes else { continue };
            let cells = read_cells(bytes)?;
            let has_options =
                number == 1 && cells.iter().any(|cell| matches!(cell, Some(CellContent::JsonDiffs(_))));
            is_partial |= has_options;
            let bitmap = schema.put_image(&cells, has_options, &mut images);
            bitmaps.push(bitmap.map_err(io::Error::other)?);
        }
        let event_type = match self.operation {
            Operation::Update if is_partial => EventType::PARTIAL_UPDATE_ROWS,
            operation => operation.event_type(),
        };
        let event = RowsEvent {
            event_type,
            table_id: TableId(0),
            flags: RowsFlags(0),
            extra_data: b"",
            width: schema.columns().len() as u64,
            columns: Bitmap(bitmaps.first().map_or(&[][..], Vec::as_slice)),
            columns_after: bitmaps.get(1).map(|bitmap| Bitmap(bitmap)),
            rows: &images,
        };
        let mut rows = decoder.rows(schema, &event).map_err(io::Error::other)?;
        let row = rows.next_row().map_err(io::Error::other)?;
        Ok(row.map(|row| take(self.operation, &row)))
    }
}

/// How a row is rendered with the columns that are known.
pub(crate) enum RebuiltRow {
    /// The text, and the renderer's flags.
    Text(u8, Vec<u8>),
    /// The row needs no statement.
    Nothing,
}

impl<'o, R: Renderer> ImageRebuilder<'o, R> {
    pub(crate) fn new(
        (schema, history): (Option<&'o SchemaFile>, Option<HistoryUse<'o>>),
        defaults: Option<&'o TableHistory>,
        renderer: R,
    ) -> Self {
        ImageRebuilder {
            schema,
            history,
            defaults,
            renderer,
            decoder: RowDecoder::new(),
            digests: Digests::default(),
            images: EarlierImages::new(),
            layout: None,
            row: None,
            below: None,
            changed: BTreeSet::new(),
            prepared: HashMap::new(),
            rows: 0,
            incomplete: BTreeSet::new(),
            last: BTreeMap::new(),
            live: None,
            loses_keys: history.is_some_and(|it| it.history.loses_carrying_keys()),
            statement: None,
        }
    }

    /// The images that come are of this statement; none if it isn't known.
    pub(crate) fn annotation(&mut self, statement: &[u8]) {
        let text = String::from_utf8_lossy(statement);
        self.statement = Some(text.into_owned()).filter(|text| !text.is_empty());
    }

    /// Takes columns that no image has from these.
    pub(crate) fn with_live(mut self, live: Option<LiveRows>) -> Self {
        self.live = live;
        self
    }

    /// Whether rows that were chosen lack columns which their images don't tell.
    pub(crate) fn has_incomplete_rows(&self) -> bool {
        !self.incomplete.is_empty()
    }

    /// Asks the server for the rows that lack columns, at the end of all logs. `read` are the transactions of the logs, and all before them.
    pub(crate) fn live_rows(&self, connect: &ConnectOptions, read: &GtidSet) -> io::Result<LiveRows> {
        let mut tables = Vec::new();
        for (&number, (written, key)) in &self.last {
            let told = self.schema.and_then(|schema| {
                let names = &written.schema;
                schema.table(&names.database, &names.table).filter(|told| told.unfit(names).is_none())
            });
            // Foreign keys may have changed columns that no image has.
            let Some(told) = told.filter(|told| self.below.is_none() && told.keys.contains(key)) else {
                continue;
            };
            let rows = self.images.keys_of(number, &self.incomplete);
            if written.has_names && !rows.is_empty() {
                tables.push(LiveRowTable { number, written, key, told, rows });
            }
        }
        LiveRows::of_server(connect, read, (&self.images, &self.digests), &tables)
    }

    /// The number of a row that comes up, and what the server's row of now tells of it.
    fn next_row(&mut self) -> io::Result<(RowNumber, Option<Vec<u8>>)> {
        self.rows += 1;
        let told = self.live.as_ref().map(|live| live.load(self.rows)).transpose()?;
        Ok((self.rows, told.flatten()))
    }

    /// The reason, in words, for which columns of a row aren't known.
    fn why(&self, row: &KnownImages) -> String {
        match &self.live {
            Some(live) => format!("{}; {}", row.why, live.why),
            None => row.why.clone(),
        }
    }

    /// The images that come are of the table of this map, which stands at this place.
    pub(crate) fn table(&mut self, place: HistoryPlace, map: &[u8]) -> binlogz_binlog::Result<()> {
        self.row = None;
        if self.history.is_none() && self.layout.as_ref().is_some_and(|layout| layout.map == map) {
            return Ok(());
        }
        let schema = Arc::new(schema_of_kept(map)?);
        let [database, name] =
            [&schema.database, &schema.table].map(|name| String::from_utf8_lossy(name).into_owned());
        let table = self.images.table(&database, &name);
        let structure = Structure::of(&schema);
        let differs = self.images.tables.get_mut(table).is_some_and(|rows| {
            rows.structure.replace(structure).is_some_and(|earlier| !earlier.fits(structure))
        });
        if differs {
            self.images.lose(table, "its columns in the log became others");
        }
        let then = self.history.map(|HistoryUse { history, .. }| HistoryUse { history, as_now: false });
        let written = Arc::new(written_table(&schema, (self.schema, self.history), place));
        let then = written_table(&schema, (self.schema, then), place);
        let defined: Option<&DefinedTable> =
            match self.history.map(|it| it.history.at(place, &database, &name)) {
                Some(TableThen::Known(then)) => Some(then),
                Some(_) => None,
                None => self.schema.and_then(|schema| schema.table(database.as_bytes(), name.as_bytes())),
            };
        let is_logged_key = schema.columns().iter().any(|column| column.primary_key.is_some());
        let foreign = defined.filter(|_| then.unfit.is_none() && !self.loses_keys).and_then(foreign_columns);
        let defaults = self.defaults_at(place, &schema);
        let map = map.to_vec();
        let key = then.key;
        match &key {
            Some(key) => drop(self.last.insert(table, (Arc::clone(&written), key.clone()))),
            // Its rows aren't followed from here on.
            None => self.images.lose(table, "images of its table without a known key"),
        }
        let family = family_of_kept(&map);
        self.layout =
            Some(ImageLayout { table, map, family, key, is_logged_key, written, foreign, defaults });
        Ok(())
    }

    /// The defaults of a table's columns at a place of the logs.
    fn defaults_at(&self, place: HistoryPlace, schema: &TableSchema) -> Vec<Option<DefaultCell>> {
        let [database, table] = [&schema.database, &schema.table].map(|name| String::from_utf8_lossy(name));
        let told = match self.defaults.map(|defaults| defaults.at(place, &database, &table)) {
            Some(TableThen::Known(then)) => Some(then),
            Some(TableThen::UnknownSince(_) | TableThen::Disagrees(_) | TableThen::NotTold) | None => None,
        };
        default_cells(schema, told)
    }

    /// A row of the table was changed, chosen or not: the operation, and its images.
    pub(crate) fn image(&mut self, change: RowImages<'_>) -> io::Result<()> {
        self.row = None;
        let Some(layout) = self.layout.take() else { return Ok(()) };
        let followed = self.follow(&layout, change);
        self.layout = Some(layout);
        self.row = followed?;
        Ok(())
    }

    fn follow(&mut self, layout: &ImageLayout, change: RowImages<'_>) -> io::Result<Option<KnownImages>> {
        self.changed.insert(layout.table);
        let [logged_before, logged_after] = [&change.before, &change.after].map(logged_columns);
        let RowImages { operation, mut before, mut after } = change;
        let is_insert = before.is_none();
        let omitted = match (&before, &after) {
            (Some(_), Some(after)) => self.omitted(layout, after),
            _ => OmittedColumns::LeftAlone,
        };
        if let Some(after) = after.as_mut().filter(|_| is_insert || omitted == OmittedColumns::Defaults) {
            layout.fill_defaults(after);
        }
        let mut known = KnownImages {
            operation,
            row: None,
            before: before.as_ref().map(cell_bytes),
            after: after.as_ref().map(cell_bytes),
            logged_before,
            logged_after,
            why: if is_insert { INSERTED } else { KEYLESS }.to_owned(),
            unsure: after.as_ref().and_then(|after| layout.unsure(after, omitted)),
        };
        let Some(key) = layout.key.as_deref() else { return Ok(Some(known)) };
        // Cells of the images borrow from what is read here.
        let (earlier, told);
        let row = match &mut before {
            None => {
                let number;
                (number, told) = self.next_row()?;
                if let (Some(told), Some(after)) = (&told, &mut after) {
                    overlay(after, &read_cells(told)?);
                    known.after = Some(cell_bytes(after));
                }
                FollowedRow { number, is_inserted: true }
            }
            Some(before) => {
                let Some(id) = key_digest(&self.digests, layout.table, key, before) else {
                    self.lose_rows(layout, &mut known, "a change whose images lack the key of its row");
                    return Ok(Some(known));
                };
                earlier = self.images.load(layout.table, id)?;
                let of_log = self.earlier_row(layout, before, earlier.as_ref(), &mut known)?;
                if earlier.is_some() {
                    self.images.remove(layout.table, id);
                }
                let row = match of_log {
                    Some(row) => row,
                    None => {
                        let number;
                        (number, told) = self.next_row()?;
                        if let Some(told) = &told {
                            overlay(before, &read_cells(told)?);
                        }
                        FollowedRow { number, is_inserted: false }
                    }
                };
                known.before = Some(cell_bytes(before));
                row
            }
        };
        known.row = Some(row.number);
        if let Some(after) = after {
            self.keep_after(layout, before.as_ref(), after, omitted, row, &mut known)?;
        }
        Ok(Some(known))
    }

    /// Completes the image before a change by the earlier images of its row, if they agree with it. `None`: the log has no such row.
    fn earlier_row<'i>(
        &mut self,
        layout: &ImageLayout,
        before: &mut ImageCells<'i>,
        earlier: Option<&'i EarlierImage>,
        known: &mut KnownImages,
    ) -> io::Result<Option<FollowedRow>> {
        known.why = self.images.why_unknown(layout.table);
        let Some(earlier) = earlier else { return Ok(None) };
        let mut cells = read_cells(&earlier.cells)?;
        let is_certain = self.leave_certain(layout, &mut cells, earlier.start);
        if contradicts(&layout.written.schema, before, &cells) {
            self.lose_rows(layout, known, "an image that contradicts an earlier one");
            return Ok(None);
        }
        overlay(before, &cells);
        match (is_certain, earlier.is_inserted) {
            (false, _) => known.why = FOREIGN.to_owned(),
            (true, true) => known.why = INSERTED.to_owned(),
            (true, false) => {}
        }
        Ok(Some(FollowedRow { number: earlier.row, is_inserted: earlier.is_inserted && is_certain }))
    }

    /// Completes the image after a change, and keeps it for later changes of the row.
    fn keep_after<'i>(
        &mut self,
        layout: &ImageLayout,
        before: Option<&ImageCells<'i>>,
        mut after: ImageCells<'i>,
        omitted: OmittedColumns,
        row: FollowedRow,
        known: &mut KnownImages,
    ) -> io::Result<()> {
        if let Some(before) = before.filter(|_| omitted == OmittedColumns::LeftAlone) {
            overlay(&mut after, before);
        }
        let Ok(documents) = documents(before, &after) else {
            self.lose_rows(layout, known, "differences that don't fit the document that they are for");
            return Ok(());
        };
        let cells = after.into_iter().zip(&documents);
        let whole: ImageCells<'_> =
            cells.map(|(cell, document)| document.as_deref().map(CellContent::Value).or(cell)).collect();
        known.after = Some(cell_bytes(&whole));
        let kept: ImageCells<'_> = whole
            .into_iter()
            .map(|cell| cell.filter(|cell| !matches!(cell, CellContent::JsonDiffs(_))))
            .collect();
        let key = layout.key.as_deref().unwrap_or_default();
        let Some(id) = key_digest(&self.digests, layout.table, key, &kept) else {
            self.images.lose(layout.table, "a new row whose image lacks its key");
            return Ok(());
        };
        let is_inserted = row.is_inserted || omitted == OmittedColumns::Defaults;
        let is_new = self.images.put(layout.table, id, &kept, (row.number, is_inserted))?;
        // Of what is said to be a key, one of the log is certain. Below the log rows may be gone.
        if !is_new && !layout.is_logged_key && self.below.is_none() {
            self.images.lose(layout.table, "a second row with the same key, which isn't one then");
        }
        Ok(())
    }

    /// Follows the rows of a table no further, and says so of a change.
    fn lose_rows(&mut self, layout: &ImageLayout, known: &mut KnownImages, why: &str) {
        self.images.lose(layout.table, why);
        known.why = self.images.why_unknown(layout.table);
    }

    /// Tells whether an update left the columns alone that the image after it lacks, or gave them defaults.
    fn omitted(&self, layout: &ImageLayout, after: &ImageCells<'_>) -> OmittedColumns {
        if layout.family != ServerFamily::Mariadb || !layout.lacks_stored(after) {
            return OmittedColumns::LeftAlone;
        }
        let schema = &layout.written.schema;
        let [database, table] = [&schema.database, &schema.table].map(|name| String::from_utf8_lossy(name));
        let has = |index: &usize| after.get(*index).is_some_and(Option::is_some);
        let has_key = layout.key.iter().flatten().all(has);
        OmittedColumns::of(self.statement.as_deref(), (&database, &table), has_key)
    }

    /// Leaves what foreign keys can't have changed below the log since; `false`: something may not be certain.
    fn leave_certain(&self, layout: &ImageLayout, cells: &mut ImageCells<'_>, start: u64) -> bool {
        if self.below.is_none_or(|below| start >= below) {
            return true;
        }
        let key = layout.key.as_deref().unwrap_or_default();
        let is_moved = |foreign: &&Vec<usize>| foreign.iter().any(|index| key.contains(index));
        match layout.foreign.as_ref().filter(|foreign| !is_moved(foreign)) {
            Some(foreign) => {
                for index in foreign {
                    if let Some(cell) = cells.get_mut(*index) {
                        *cell = None;
                    }
                }
                foreign.is_empty()
            }
            None => {
                cells.fill(None);
                false
            }
        }
    }

    /// The row of the last image, with the columns that are known, if it is of this table. `None`: it has no more than its images.
    pub(crate) fn rebuilt(&mut self, database: &str, table: &str) -> io::Result<Option<RebuiltRow>> {
        let (Some(row), Some(layout)) = (self.row.take(), &self.layout) else { return Ok(None) };
        if !layout.is_of(database, table) {
            return Ok(None);
        }
        let renderer = &self.renderer;
        let why = self.why(&row);
        let mut text = Vec::new();
        let mut is_incomplete = false;
        let rendering = row.decoded(layout, &mut self.decoder, |operation, decoded| {
            let KnownImages { logged_before, logged_after, .. } = &row;
            let columns = RebuiltColumns { logged_before, logged_after, why: &why };
            is_incomplete = lacks_columns(&layout.written, decoded);
            let row_of_table = TableRow { table: &layout.written, operation, row: decoded };
            match row.unsure {
                Some(why) => {
                    let columns = RebuiltColumns { why, ..columns };
                    renderer.render_unsure(row_of_table, Some(&columns), &mut text)
                }
                None => renderer.render_rebuilt(row_of_table, &columns, &mut text),
            }
        })?;
        self.incomplete.extend(row.row.filter(|_| is_incomplete));
        Ok(rendering.map(|rendering| match rendering {
            RowRendering::Text(flags) | RowRendering::Lacking(flags) => RebuiltRow::Text(flags, text),
            RowRendering::Nothing => RebuiltRow::Nothing,
        }))
    }

    /// The digests of the row of the last image before and after its change, if it is of this table, with the columns that are known: of its
    /// key, or of all columns where it has none.
    pub(crate) fn whole_digests(
        &self,
        digests: &Digests,
        (database, table): &(String, String),
    ) -> Option<Vec<u128>> {
        let is_it = |layout: &&ImageLayout| layout.is_of(database, table);
        let row = self.row.as_ref()?;
        let layout = self.layout.as_ref().filter(is_it)?;
        let before = row.before.as_ref().and_then(|bytes| read_cells(bytes).ok());
        let mut after = row.after.as_ref().and_then(|bytes| read_cells(bytes).ok());
        if let (Some(after), Some(before), None) = (&mut after, &before, row.unsure) {
            overlay(after, before);
        }
        let key = layout.written.key.as_deref();
        let mut both: Vec<u128> = [before, after]
            .into_iter()
            .flatten()
            .filter_map(|cells| Some(row_digest(digests, &layout.written.schema, &values_of(&cells, key)?)))
            .collect();
        both.dedup();
        Some(both)
    }

    /// Whether the row of the last image meets a condition, with the columns that are known, if it is of this table. `None`: it has no
    /// more than its images. An error says why a column isn't known.
    pub(crate) fn meets(
        &mut self,
        (database, table): (&str, &str),
        condition: &Condition,
    ) -> Result<Option<bool>, Error> {
        let (Some(row), Some(layout)) = (&self.row, &self.layout) else { return Ok(None) };
        if !layout.is_of(database, table) {
            return Ok(None);
        }
        if let Some(why) = row.unsure {
            return Err(Error::Refused(why.to_owned()));
        }
        let is_met =
            row.decoded(layout, &mut self.decoder, |_, decoded| condition.is_met(&layout.written, decoded))?;
        match is_met.transpose() {
            Err(error @ ConditionError::NotLogged { .. }) => {
                let text = format!("{error}: {}", self.why(row));
                self.incomplete.extend(row.row);
                Err(Error::Refused(text))
            }
            is_met => Ok(is_met?),
        }
    }

    /// Forgets the images of a table, or of all tables; `since` says in words why they count no longer.
    pub(crate) fn lose(&mut self, table: Option<(&str, &str)>, since: &str) {
        for number in 0..self.images.tables.len() {
            let is_it = self.images.tables.get(number).is_some_and(|own| {
                table.is_none_or(|(database, name)| own.database == database && own.table == name)
            });
            if is_it {
                self.images.lose(number, since);
            }
        }
    }

    /// A row was changed, on account of which foreign keys may have changed others that aren't in the log.
    pub(crate) fn keys_below(&mut self) {
        self.below = Some(self.images.end());
    }

    /// A statement that may have changed rows or tables.
    pub(crate) fn statement(
        &mut self,
        transaction: &FollowedTransaction,
        (text, current): (&str, &str),
        words: &StatementWords,
    ) {
        if words.leaves_rows_alone() {
            return;
        }
        if let Some(schema) = self.layout.as_ref().map(|layout| Arc::clone(&layout.written.schema)) {
            let place = HistoryPlace { log: transaction.log_number, offset: transaction.offset + 1 };
            let defaults = self.defaults_at(place, &schema);
            self.layout.iter_mut().for_each(|layout| layout.defaults.clone_from(&defaults));
        }
        for number in 0..self.images.tables.len() {
            // What a statement changes through a view, a trigger or a foreign key it doesn't name.
            let is_about = !words.is_ddl()
                || self
                    .images
                    .tables
                    .get(number)
                    .is_some_and(|own| words.may_change(current, &own.database, &own.table));
            if is_about {
                self.images.lose(number, &transaction.changed_by(text));
            }
        }
    }

    /// The end of a transaction.
    pub(crate) fn passed(&mut self, transaction: &FollowedTransaction, ending: TransactionEnding) {
        self.statement = None;
        let changed = mem::take(&mut self.changed);
        match &transaction.prepared {
            Some(xid) => drop(self.prepared.insert(xid.clone(), changed)),
            None if ending == TransactionEnding::Whole => {}
            None => self.roll_back(changed),
        }
    }

    /// A prepared transaction was committed or rolled back.
    pub(crate) fn decided(&mut self, xid: &str, is_committed: bool) {
        let changed = self.prepared.remove(xid).filter(|_| !is_committed);
        changed.into_iter().for_each(|changed| self.roll_back(changed));
    }

    fn roll_back(&mut self, changed: BTreeSet<usize>) {
        changed.into_iter().for_each(|table| self.images.lose(table, "a transaction that was rolled back"));
    }
}

/// The reason for which columns aren't known of a row without a key.
const KEYLESS: &str = "neither the log nor a schema tells a key of its table by which its rows could be followed (binlog_row_metadata=FULL, --schema)";
/// The reason for which a column isn't known that an INSERT left out.
const INSERTED: &str = "its INSERT left the rest to defaults, which neither the logs nor a schema tell (CREATE TABLE in the logs, --schema)";
/// The reason for which a column isn't known that a foreign key may have changed.
const FOREIGN: &str = "foreign keys may have changed the rest below the log, as servers before 9.6 do; --schema tells which columns can't be";

/// Tells of each column whether an image has it as a whole.
fn logged_columns(cells: &Option<ImageCells<'_>>) -> Vec<bool> {
    let is_whole =
        |cell: &Option<CellContent<'_>>| cell.is_some_and(|cell| !matches!(cell, CellContent::JsonDiffs(_)));
    cells.iter().flatten().map(is_whole).collect()
}

/// The values of an image in the columns of a key, or in all; `None`: it lacks some.
fn values_of<'a>(cells: &ImageCells<'a>, key: Option<&[usize]>) -> Option<Vec<Option<&'a [u8]>>> {
    let value = |cell: &Option<CellContent<'a>>| match (*cell)? {
        CellContent::Null => Some(None),
        CellContent::Value(bytes) => Some(Some(bytes)),
        CellContent::JsonDiffs(_) => None,
    };
    match key {
        Some(key) => key.iter().map(|index| value(cells.get(*index)?)).collect(),
        None => cells.iter().map(value).collect(),
    }
}

/// The documents that differences make of those in the image before, for each column.
fn documents(
    before: Option<&ImageCells<'_>>,
    after: &ImageCells<'_>,
) -> binlogz_binlog::Result<Vec<Option<Vec<u8>>>> {
    let document = |(index, cell): (usize, &Option<CellContent<'_>>)| {
        let Some(CellContent::JsonDiffs(diffs)) = cell else { return Ok(None) };
        let Some(Some(CellContent::Value(before))) = before.and_then(|before| before.get(index)) else {
            return Ok(None);
        };
        let mut document = Vec::new();
        JsonDiffs::new(diffs).apply(JsonDocument::new(before))?.put_document(&mut document)?;
        Ok(Some(document))
    };
    after.iter().enumerate().map(document).collect()
}

/// Fills in the columns that an image lacks.
fn overlay<'a>(cells: &mut ImageCells<'a>, earlier: &ImageCells<'a>) {
    for (cell, earlier) in cells.iter_mut().zip(earlier) {
        if cell.is_none() {
            *cell = *earlier;
        }
    }
}

/// Whether two images of one row have different values in a column.
fn contradicts(schema: &TableSchema, one: &ImageCells<'_>, other: &ImageCells<'_>) -> bool {
    let columns = schema.columns().iter().zip(one.iter().zip(other));
    let mut known = columns.filter_map(|(column, (one, other))| Some((column, (*one)?, (*other)?)));
    known.any(|(column, one, other)| match (one, other) {
        // Bytes of a document that differences made are in another order on the server.
        (CellContent::Value(one), CellContent::Value(other)) if column.is_json() => {
            one != other && text_of_document(one) != text_of_document(other)
        }
        _ => one != other,
    })
}

/// The text of a document; `None`: it can't be read.
pub(crate) fn text_of_document(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    JsonDocument::new(bytes).write_text(&mut text).ok()?;
    Some(text)
}

/// The columns that foreign keys of a table may change on account of other rows. `None`: not all of them are known.
fn foreign_columns(table: &DefinedTable) -> Option<Vec<usize>> {
    let changing = table
        .foreign_keys
        .iter()
        .filter(|key| key.on_delete != ReferentialRule::Refuse || key.on_update != ReferentialRule::Refuse);
    let place =
        |name: &String| table.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
    changing.flat_map(|key| key.columns.iter().map(place)).collect()
}
