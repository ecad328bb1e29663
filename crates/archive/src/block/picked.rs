//! Picks columns of one table out of a block, without putting its events together: only the streams of those columns are
//! unpacked, and those that say which rows and images there are. As the layout does ([`crate::block::rows`]), an image is found
//! where it was before, and a value from the older one that it differs from; but columns that aren't picked are never
//! looked at.
//!
//! In two steps, as unpacking: [`prepare`] takes the streams, for several blocks at once, and `gather` goes through
//! the events in order.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{PostHeaderLengths, RowsEvent, RowsKind, TableId, TableMapEvent};
use binlogz_binlog::row::{CellContent, RowDecoder, TableSchema};

use crate::block::cells::{bit, is_set};
use crate::block::form::Form;
use crate::block::former::Unpacked;
use crate::block::layout::{BODY, KNOWN, TABLES_MAX, TYPE};
use crate::block::packed::{self, Front};
use crate::block::rows::{
    DIFFERENCE, DIFFERS, MORE, NULLS, NUMBER, OPTIONS, PARTIAL, PARTIAL_JSON, REFERENCES_MAX, Role, SAME,
    SOURCE, VALUES,
};
use crate::block::streams::{Column, SparseStreams};
use crate::block::walk::{Order, number_of};
use crate::codec::delta;
use crate::codec::strings::Strings;
use crate::error::{Error, Result};
use crate::log::events::TABLE_MAP_POST_HEADER;
use crate::log::{BLOCK_SIZE_MAX, events};

/// Chooses columns of a table, by their places; `None`: they can't be picked.
pub type Choose<'a> = dyn Fn(&TableSchema) -> Option<Vec<usize>> + Sync + 'a;

/// What is picked.
pub struct Pick<'a> {
    /// The table's database.
    pub database: &'a [u8],
    /// Its name.
    pub table: &'a [u8],
    /// Its columns. No documents: of those that were changed in part the rest would be missing.
    pub columns: &'a Choose<'a>,
}

impl std::fmt::Debug for Pick<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pick").finish_non_exhaustive()
    }
}

/// What was picked out of a block.
#[derive(Debug, Default)]
pub struct Picked {
    /// The table, once for each of its definitions.
    pub tables: Vec<PickedTable>,
    /// Rows that follow each other: the table's number, their kind, and which of its rows they are.
    pub runs: Vec<(usize, RowsKind, Range<usize>)>,
    /// The table's maps in force where the block ends.
    pub(crate) maps: Vec<Vec<u8>>,
}

/// Rows of a table.
#[derive(Debug)]
pub struct PickedTable {
    /// The table.
    pub schema: Arc<TableSchema>,
    /// The columns that were picked.
    pub columns: Vec<usize>,
    /// Its table map without the table's id.
    name: Vec<u8>,
    cells: Vec<Cells>,
    /// The images of each row before and after the change, by their numbers in `cells`.
    rows: Vec<[Option<u32>; 2]>,
    /// The images that later blocks may refer to.
    images: Vec<u32>,
    /// Images so far: there may be no columns.
    image_count: usize,
}

/// A column's values, by image.
#[derive(Debug)]
struct Cells {
    form: Form,
    states: Vec<State>,
    bytes: Vec<u8>,
    /// Where each value ends, if it isn't of a fixed size.
    ends: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Null,
    Value,
}

/// A value, or why there is none.
#[derive(Debug, Clone, Copy)]
enum Content<'a> {
    None(State),
    Value(&'a [u8]),
}

impl Cells {
    fn new(form: Form) -> Self {
        Cells { form, states: Vec::new(), bytes: Vec::new(), ends: Vec::new() }
    }

    /// The bytes of each value, if they are as many.
    fn stride(&self) -> Option<usize> {
        match self.form {
            Form::Number { size, .. } | Form::Fixed { size } => Some(size),
            Form::Prefixed { .. } => None,
        }
    }

    /// Where the bytes of a value are, or why there are none.
    #[inline]
    fn range(&self, image: usize) -> Result<Range<usize>, State> {
        match self.states.get(image).copied().unwrap_or(State::Absent) {
            State::Value => {}
            state => return Err(state),
        }
        Ok(match self.stride() {
            Some(stride) => image * stride..(image + 1) * stride,
            None => {
                let start = image.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
                let end = self.ends.get(image).copied().unwrap_or_default();
                start.unwrap_or_default() as usize..end as usize
            }
        })
    }

    #[inline]
    fn get(&self, image: usize) -> Content<'_> {
        match self.range(image) {
            Ok(range) => Content::Value(self.bytes.get(range).unwrap_or_default()),
            Err(state) => Content::None(state),
        }
    }

    #[inline]
    fn push(&mut self, content: Content<'_>) -> Result<()> {
        let (state, value) = match content {
            Content::None(state) => (state, None),
            Content::Value(value) => (State::Value, Some(value)),
        };
        match (self.stride(), value) {
            (Some(stride), Some(value)) if value.len() == stride => self.bytes.extend_from_slice(value),
            (Some(_), Some(value)) => {
                return Err(Error::damaged(
                    "value",
                    format!("{} bytes", value.len()),
                    "as many as its type has",
                ));
            }
            (Some(stride), None) => self.bytes.resize(self.bytes.len() + stride, 0),
            (None, value) => {
                self.bytes.extend_from_slice(value.unwrap_or_default());
                self.ends.push(u32::try_from(self.bytes.len()).map_err(|_| too_many())?);
            }
        }
        self.states.push(state);
        Ok(())
    }

    /// The same value as that of an image here.
    fn push_again(&mut self, image: usize) -> Result<()> {
        match self.range(image) {
            Err(state) => self.push(Content::None(state)),
            Ok(range) if range.end > self.bytes.len() => Err(no_row()),
            Ok(range) => {
                self.bytes.extend_from_within(range);
                if self.stride().is_none() {
                    self.ends.push(u32::try_from(self.bytes.len()).map_err(|_| too_many())?);
                }
                self.states.push(State::Value);
                Ok(())
            }
        }
    }

    fn memory(&self) -> usize {
        self.states.len() + self.bytes.len() + self.ends.len() * 4
    }
}

fn too_many() -> Error {
    Error::damaged("block", "more values than its bytes can hold", "as many as its size allows")
}

impl PickedTable {
    fn new(name: &[u8], schema: TableSchema, columns: Vec<usize>) -> Self {
        let form = |&column: &usize| schema.columns().get(column).map(|column| Form::of(column.kind));
        let cells = columns.iter().filter_map(form).map(Cells::new).collect();
        PickedTable {
            schema: Arc::new(schema),
            columns,
            name: name.to_vec(),
            cells,
            rows: Vec::new(),
            images: Vec::new(),
            image_count: 0,
        }
    }

    /// Whether a row has an image before, or after the change.
    pub fn has_image(&self, row: usize, is_after: bool) -> bool {
        self.image(row, is_after).is_some()
    }

    /// The value of one of the picked columns, before or after the change; `None`: it isn't there.
    #[inline]
    pub fn cell(&self, row: usize, is_after: bool, picked: usize) -> Option<CellContent<'_>> {
        match self.cells.get(picked)?.get(self.image(row, is_after)? as usize) {
            Content::None(State::Null) => Some(CellContent::Null),
            Content::None(_) => None,
            Content::Value(bytes) => Some(CellContent::Value(bytes)),
        }
    }

    /// Takes a whole image, to which later blocks may refer.
    fn leave(&mut self, bytes: &[u8]) -> Result<()> {
        let schema = Arc::clone(&self.schema);
        let nulls = 0..schema.columns().len().div_ceil(8);
        let mut at = nulls.end;
        let mut values = vec![Content::None(State::Null); self.columns.len()];
        for (index, column) in schema.columns().iter().enumerate() {
            if is_set(bytes, &nulls, index) {
                continue;
            }
            let form = Form::of(column.kind);
            let end = form.end(bytes, at)?;
            let start = at + if let Form::Prefixed { prefix } = form { prefix } else { 0 };
            if let Some(place) = self.columns.iter().position(|&picked| picked == index)
                && let Some(value) = values.get_mut(place)
            {
                *value = Content::Value(bytes.get(start..end).ok_or_else(no_row)?);
            }
            at = end;
        }
        self.new_image(true)?;
        self.cells.iter_mut().zip(values).try_for_each(|(cells, value)| cells.push(value))
    }

    #[inline]
    fn image(&self, row: usize, is_after: bool) -> Option<u32> {
        *self.rows.get(row)?.get(usize::from(is_after))?
    }

    /// The number of a new image, whose values follow.
    fn new_image(&mut self, leaves: bool) -> Result<u32> {
        let number = u32::try_from(self.image_count).map_err(|_| too_many())?;
        self.image_count += 1;
        if leaves {
            self.images.push(number);
        }
        Ok(number)
    }
}

impl Picked {
    fn add_run(&mut self, table: usize, kind: RowsKind, rows: Range<usize>) {
        match self.runs.last_mut() {
            Some((last, last_kind, run)) if *last == table && *last_kind == kind => run.end = rows.end,
            _ => self.runs.push((table, kind, rows)),
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        let of = |table: &PickedTable| {
            let cells: usize = table.cells.iter().map(Cells::memory).sum();
            cells + table.rows.len() * 16 + table.images.len() * 4 + table.name.len()
        };
        self.tables.iter().map(of).sum::<usize>() + self.runs.len() * 40
    }

    /// Picks out of a block that was unpacked as a whole. `maps`: the table maps in force where it begins.
    pub(crate) fn of_unpacked(
        block: &Unpacked,
        maps: &[Vec<u8>],
        lengths: &PostHeaderLengths,
        offset: u64,
        pick: &Pick<'_>,
    ) -> Result<Picked> {
        let mut whole = OfWhole { pick, picked: Picked::default(), by_id: HashMap::new() };
        let map_length = lengths.of(EventType::TABLE_MAP);
        maps.iter().try_for_each(|map| whole.map(map, map_length))?;
        let mut decoder = RowDecoder::new();
        for event in events::events(&block.log, offset) {
            let Some(frame) = events::frame(event) else { continue };
            let event_type = frame.event_type();
            if event_type == EventType::TABLE_MAP {
                whole.map(frame.body(), map_length)?;
            } else if event_type.is_rows() {
                let rows = RowsEvent::decode(event_type, frame.body(), lengths.of(event_type))?;
                whole.rows(&rows, &mut decoder)?;
            }
        }
        let mut picked = whole.picked;
        let maps = whole.by_id.into_iter();
        picked.maps = maps.filter_map(|(_, known)| known.map(|(_, body)| body)).collect();
        for table in &mut picked.tables {
            let images = block.tables.get(&table.name).and_then(|number| block.images.get(*number));
            for place in images.into_iter().flatten() {
                let bytes = block.log.get(place.start as usize..place.end as usize).ok_or_else(no_row)?;
                table.leave(bytes)?;
            }
        }
        Ok(picked)
    }
}

/// Picks out of a log.
struct OfWhole<'w> {
    pick: &'w Pick<'w>,
    picked: Picked,
    by_id: HashMap<TableId, Option<(usize, Vec<u8>)>>,
}

impl OfWhole<'_> {
    fn map(&mut self, body: &[u8], post_header_length: u8) -> Result<()> {
        let map = TableMapEvent::decode(body, post_header_length)?;
        let name = body.get(6..).unwrap_or_default();
        let mut found = None;
        if map.database == self.pick.database && map.table == self.pick.table {
            found = self.picked.tables.iter().position(|table| table.name == name);
            if found.is_none() {
                let schema = TableSchema::new(&map)?;
                let columns = (self.pick.columns)(&schema);
                let columns = columns.ok_or_else(|| {
                    Error::damaged("table", "other columns", "those that its archive tells")
                })?;
                found = Some(self.picked.tables.len());
                self.picked.tables.push(PickedTable::new(name, schema, columns));
            }
        }
        self.by_id.insert(map.table_id, found.map(|found| (found, body.to_vec())));
        Ok(())
    }

    fn rows(&mut self, rows: &RowsEvent<'_>, decoder: &mut RowDecoder) -> Result<()> {
        let Some(&Some((number, _))) = self.by_id.get(&rows.table_id) else { return Ok(()) };
        let Some(table) = self.picked.tables.get_mut(number) else { return Ok(()) };
        let schema = Arc::clone(&table.schema);
        let start = table.rows.len();
        let mut read = decoder.rows(&schema, rows)?;
        while let Some(row) = read.next_row()? {
            let mut images = [None; 2];
            for (place, image) in images.iter_mut().zip([row.before, row.after]) {
                let Some(image) = image else { continue };
                *place = Some(table.new_image(false)?);
                for (cells, column) in table.cells.iter_mut().zip(&table.columns) {
                    cells.push(match image.cell(*column).map(|cell| cell.content) {
                        None => Content::None(State::Absent),
                        Some(CellContent::Null) => Content::None(State::Null),
                        Some(CellContent::Value(bytes) | CellContent::JsonDiffs(bytes)) => {
                            Content::Value(bytes)
                        }
                    })?;
                }
            }
            table.rows.push(images);
        }
        let end = table.rows.len();
        self.picked.add_run(number, rows.kind(), start..end);
        Ok(())
    }
}

/// A block's first step.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// Its streams.
    Columns(Box<Columns>),
    /// It was unpacked: it isn't packed by columns. With the table maps that it begins with.
    Unpacked(Box<Unpacked>, Vec<Vec<u8>>),
    /// It has to be unpacked, with the blocks that it refers to: it has events of unknown layout.
    Whole(Vec<Vec<u8>>),
}

/// Streams of the events, and of the table.
#[derive(Debug)]
pub(crate) struct Columns {
    patterns: Vec<Pattern>,
    /// Rows events of the table, in order: which pattern each has.
    steps: Vec<usize>,
    tables: Vec<(PickedTable, TableStreams)>,
    maps: Vec<Vec<u8>>,
    size: usize,
}

/// Rows events that are alike: most of a table's are.
#[derive(Debug)]
struct Pattern {
    table: usize,
    kind: RowsKind,
    /// The columns of each image.
    bitmaps: [Vec<u8>; 2],
}

/// Numbers that are taken one after the other.
#[derive(Debug, Default)]
struct Numbers(Vec<i64>, usize);

impl Numbers {
    #[inline]
    fn next(&mut self) -> Result<i64> {
        let next = self.0.get(self.1).copied();
        self.1 += 1;
        next.ok_or_else(|| Error::damaged("column of numbers", "its end", "another number"))
    }
}

#[derive(Debug, Default)]
struct Texts(Strings, usize);

impl Texts {
    #[inline]
    fn next(&mut self) -> Result<&[u8]> {
        self.1 += 1;
        self.0.get(self.1 - 1).ok_or_else(|| Error::damaged("column of strings", "its end", "another string"))
    }
}

/// The streams of a table's rows.
#[derive(Debug)]
struct TableStreams {
    more: Numbers,
    nulls: [(Numbers, Texts); ROLES],
    sources: [(Numbers, Numbers); ROLES],
    options: Numbers,
    partial: Texts,
    /// For each picked column and role: values, and how they relate to older ones.
    values: Vec<[Values; ROLES]>,
    next: Vec<i64>,
    json: usize,
}

const ROLES: usize = crate::block::rows::ROLES;

#[derive(Debug, Default)]
struct Values {
    numbers: Numbers,
    texts: Texts,
    relations: Numbers,
    differences: Texts,
}

/// Takes the streams of a block of `size` bytes.
pub(crate) fn prepare(packed: &[u8], size: usize, pick: &Pick<'_>) -> Result<Prepared> {
    let Front { maps, count, mut from } = match packed::front(packed, size)? {
        (_, Some(front)) => front,
        (maps, None) => {
            let unpacked = packed::open(packed, size)?.gather(0, Vec::new())?;
            return Ok(Prepared::Unpacked(Box::new(unpacked), maps));
        }
    };
    let mut streams = SparseStreams::find(&mut from, size)?;
    from.bytes()?;
    if from.left() > 0 {
        let found = format!("{} bytes after its last event", from.left());
        return Err(Error::damaged("block", found, "none"));
    }
    let types = streams.numbers(TYPE)?;
    if types.len() != count {
        return Err(Error::damaged("block", format!("{} event types", types.len()), "one for each event"));
    }
    let of_type = |event_type: EventType, slot: usize| Column::new(usize::from(event_type.0), slot);
    let mut rows_types = HashMap::new();
    for event_type in types.iter().copied().collect::<BTreeSet<_>>() {
        let Ok(code) = u8::try_from(event_type) else { continue };
        let event_type = EventType(code);
        if event_type != EventType::TABLE_MAP && !event_type.is_rows() {
            continue;
        }
        let known = streams.numbers(of_type(event_type, KNOWN))?;
        let Some(kind) = kind_of(event_type).filter(|_| known.iter().all(|&known| known == 1)) else {
            if event_type == EventType::TABLE_MAP && known.iter().all(|&known| known == 1) {
                continue;
            }
            return Ok(Prepared::Whole(maps));
        };
        let ids = Numbers(streams.numbers(of_type(event_type, BODY))?, 0);
        let first = streams.strings(of_type(event_type, BODY + 5))?;
        let second = streams.strings(of_type(event_type, BODY + 6))?;
        rows_types.insert(event_type, (kind, ids, Texts(first, 0), Texts(second, 0)));
    }
    let mut map_ids = Numbers(streams.numbers(of_type(EventType::TABLE_MAP, BODY))?, 0);
    let mut map_bodies = Texts(streams.strings(of_type(EventType::TABLE_MAP, BODY + 1))?, 0);
    let mut maps_seen = Maps::default();
    for map in &maps {
        if let Some((id, rest)) = map.split_at_checked(6) {
            maps_seen.note(number_of(id, Order::Low), rest, pick)?;
        }
    }
    let (mut steps, mut patterns) = (Vec::new(), Vec::<Pattern>::new());
    // The last pattern of each table and kind.
    let mut latest: HashMap<(usize, EventType), usize> = HashMap::new();
    let mut last_id = 0i64;
    for event_type in types {
        let Some(event_type) = u8::try_from(event_type).ok().map(EventType) else { continue };
        if event_type == EventType::TABLE_MAP {
            last_id = map_ids.next()?.wrapping_add(last_id);
            maps_seen.note(last_id, map_bodies.next()?, pick)?;
        } else if let Some((kind, ids, first, second)) = rows_types.get_mut(&event_type) {
            last_id = ids.next()?.wrapping_add(last_id);
            let table = maps_seen.ids.get(&last_id).and_then(|number| maps_seen.picked.get(number));
            let two = matches!(kind, RowsKind::Update | RowsKind::PartialUpdate);
            let bitmaps = [first.next()?, if two { second.next()? } else { &[] }];
            let Some(&table) = table else { continue };
            let is_same =
                |number: &&usize| patterns.get(**number).is_some_and(|known| known.bitmaps == bitmaps);
            let number = match latest.get(&(table, event_type)).filter(is_same) {
                Some(&number) => number,
                None => {
                    latest.insert((table, event_type), patterns.len());
                    patterns.push(Pattern { table, kind: *kind, bitmaps: bitmaps.map(<[u8]>::to_vec) });
                    patterns.len() - 1
                }
            };
            steps.push(number);
        }
    }
    if maps_seen.is_unfit {
        return Ok(Prepared::Whole(maps));
    }
    let maps = maps_seen.in_force();
    let tables = maps_seen.tables.into_iter().map(|(number, table)| {
        let group = Column::TABLES + number;
        TableStreams::take(&mut streams, group, &table).map(|streams| (table, streams))
    });
    let tables = tables.collect::<Result<_>>()?;
    Ok(Prepared::Columns(Box::new(Columns { patterns, steps, tables, maps, size })))
}

fn kind_of(event_type: EventType) -> Option<RowsKind> {
    match event_type {
        EventType::WRITE_ROWS | EventType::WRITE_ROWS_V1 => Some(RowsKind::Write),
        EventType::DELETE_ROWS | EventType::DELETE_ROWS_V1 => Some(RowsKind::Delete),
        EventType::UPDATE_ROWS | EventType::UPDATE_ROWS_V1 => Some(RowsKind::Update),
        EventType::PARTIAL_UPDATE_ROWS => Some(RowsKind::PartialUpdate),
        _ => None,
    }
}

/// The table maps of a block, numbered as its layout numbers them.
#[derive(Debug, Default)]
struct Maps {
    numbers: HashMap<Vec<u8>, usize>,
    /// The table of each table id.
    ids: HashMap<i64, usize>,
    /// By number: which of `tables` it is.
    picked: HashMap<usize, usize>,
    tables: Vec<(usize, PickedTable)>,
    /// A table map of the table can't be understood.
    is_unfit: bool,
}

impl Maps {
    fn note(&mut self, id: i64, rest: &[u8], pick: &Pick<'_>) -> Result<()> {
        let number = match self.numbers.get(rest) {
            Some(&number) => number,
            None if self.numbers.len() == TABLES_MAX => {
                self.is_unfit = true;
                return Ok(());
            }
            None => {
                let number = self.numbers.len();
                self.numbers.insert(rest.to_vec(), number);
                self.table(number, rest, pick);
                number
            }
        };
        self.ids.insert(id, number);
        Ok(())
    }

    /// The table's maps in force.
    fn in_force(&self) -> Vec<Vec<u8>> {
        let maps = self.ids.iter().filter_map(|(id, number)| {
            let (_, table) = self.tables.get(*self.picked.get(number)?)?;
            Some([id.to_le_bytes().get(..6)?, &table.name].concat())
        });
        maps.collect()
    }

    fn table(&mut self, number: usize, rest: &[u8], pick: &Pick<'_>) {
        let body = [&[0; 6], rest].concat();
        let Ok(map) = TableMapEvent::decode(&body, TABLE_MAP_POST_HEADER) else { return };
        if map.database != pick.database || map.table != pick.table {
            return;
        }
        let schema = TableSchema::new(&map).ok();
        let chosen = schema.and_then(|schema| (pick.columns)(&schema).map(|columns| (schema, columns)));
        match chosen {
            Some((schema, columns)) => {
                self.picked.insert(number, self.tables.len());
                self.tables.push((number, PickedTable::new(rest, schema, columns)));
            }
            None => self.is_unfit = true,
        }
    }
}

impl TableStreams {
    fn take(streams: &mut SparseStreams<'_>, group: usize, table: &PickedTable) -> Result<Self> {
        let at = |slot: usize| Column::new(group, slot);
        let mut numbers = |slot: usize| streams.numbers(at(slot)).map(|numbers| Numbers(numbers, 0));
        let more = numbers(MORE)?;
        let options = numbers(OPTIONS)?;
        let mut sources: [(Numbers, Numbers); ROLES] = Default::default();
        for role in [Role::Deleted as usize, Role::Before as usize] {
            if let Some(place) = sources.get_mut(role) {
                *place = (numbers(SOURCE + role)?, numbers(NUMBER + role)?);
            }
        }
        let partial = Texts(streams.strings(at(PARTIAL))?, 0);
        let mut nulls: [(Numbers, Texts); ROLES] = Default::default();
        for (role, place) in nulls.iter_mut().enumerate() {
            let slot = at(NULLS + role);
            *place = (Numbers(streams.numbers(slot)?, 0), Texts(streams.strings(slot)?, 0));
        }
        let mut values = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            let mut of_roles: [Values; ROLES] = Default::default();
            for (role, place) in of_roles.iter_mut().enumerate() {
                let slot = at(VALUES + 8 * column + 2 * role);
                let relation = at(VALUES + 8 * column + 2 * role + 1);
                *place = Values {
                    numbers: Numbers(streams.numbers(slot)?, 0),
                    texts: Texts(streams.strings(slot)?, 0),
                    relations: Numbers(streams.numbers(relation)?, 0),
                    differences: Texts(streams.strings(relation)?, 0),
                };
            }
            values.push(of_roles);
        }
        let columns = table.schema.columns();
        Ok(TableStreams {
            more,
            nulls,
            sources,
            options,
            partial,
            values,
            next: Vec::new(),
            json: columns.iter().filter(|column| column.is_json()).count(),
        })
    }
}

impl Columns {
    /// The blocks that it needs, by their places among those that it refers to.
    pub(crate) fn needs(&self) -> BTreeSet<usize> {
        let sources = self.tables.iter().flat_map(|(_, streams)| &streams.sources);
        let sources =
            sources.flat_map(|(sources, _)| &sources.0).filter_map(|&source| usize::try_from(source).ok());
        let plain = sources.map(|source| if source > DIFFERS { source - DIFFERS } else { source });
        plain.filter_map(|source| source.checked_sub(2)).collect()
    }

    /// Goes through the rows. `sources`: what was picked out of the blocks that it refers to, as far as it needs them.
    pub(crate) fn gather(self, sources: &[Option<Arc<Picked>>]) -> Result<Picked> {
        let Columns { patterns, steps, tables, maps, size } = self;
        let mut picked = Picked { maps, ..Picked::default() };
        let mut streams = Vec::with_capacity(tables.len());
        for (table, of_table) in tables {
            // The same table in the other blocks.
            let elsewhere = sources.iter().map(|source| {
                source.as_ref().and_then(|source| source.tables.iter().find(|other| other.name == table.name))
            });
            streams.push((of_table, elsewhere.collect::<Vec<_>>()));
            picked.tables.push(table);
        }
        // More than any block of its size has: a row takes at least a byte, and an image takes these bytes here.
        let memory_max = size.saturating_mul(MEMORY_FACTOR).saturating_add(MEMORY_SMALL);
        let sides = patterns.iter().map(|pattern| {
            let table = picked.tables.get(pattern.table);
            table.map(|table| pattern.sides(table)).unwrap_or_default()
        });
        let sides: Vec<Vec<Side>> = sides.collect();
        for step in steps {
            let Some((&Pattern { table: number, kind, .. }, sides)) = patterns.get(step).zip(sides.get(step))
            else {
                continue;
            };
            let (Some(table), Some((streams, elsewhere))) =
                (picked.tables.get_mut(number), streams.get_mut(number))
            else {
                continue;
            };
            let start = table.rows.len();
            let mut gatherer = Gatherer { table, streams, elsewhere };
            gatherer.event(kind == RowsKind::PartialUpdate, sides, memory_max)?;
            let end = gatherer.table.rows.len();
            picked.add_run(number, kind, start..end);
        }
        Ok(picked)
    }
}

/// Memory of what is picked for each plain byte of a block, at most, and what a small block may take besides.
const MEMORY_FACTOR: usize = 48;
const MEMORY_SMALL: usize = 1 << 20;

/// Gathers the rows of a table.
struct Gatherer<'g, 's> {
    table: &'g mut PickedTable,
    streams: &'g mut TableStreams,
    elsewhere: &'g [Option<&'s PickedTable>],
}

impl Pattern {
    fn sides(&self, table: &PickedTable) -> Vec<Side> {
        let roles: &[Role] = match self.kind {
            RowsKind::Write => &[Role::Inserted],
            RowsKind::Delete => &[Role::Deleted],
            RowsKind::Update | RowsKind::PartialUpdate => &[Role::Before, Role::After],
        };
        let width = table.schema.columns().len();
        let sides = roles.iter().zip(&self.bitmaps);
        sides.map(|(role, bitmap)| Side::new(*role, bitmap, table, width)).collect()
    }
}

/// One side of an event's rows.
struct Side {
    role: Role,
    is_whole: bool,
    /// How many columns its images have.
    width: usize,
    /// Of each picked column: its place among those of the image.
    places: Vec<Option<usize>>,
}

impl Side {
    fn new(role: Role, bitmap: &[u8], table: &PickedTable, width: usize) -> Self {
        let place = |&column: &usize| {
            bit(bitmap, column).then(|| (0..column).filter(|&before| bit(bitmap, before)).count())
        };
        let count = (0..width).filter(|&column| bit(bitmap, column)).count();
        Side {
            role,
            is_whole: count == width,
            width: count,
            places: table.columns.iter().map(place).collect(),
        }
    }
}

/// Where an image was before.
#[derive(Debug, Clone, Copy)]
enum Former {
    Unknown,
    /// Here, or in another block: by its number among the cells there.
    Same(Option<usize>, usize),
    Differs(Option<usize>, usize),
}

/// The image that one differs from: in which block, and its number.
#[derive(Debug, Clone, Copy)]
struct Base(Option<usize>, usize);

impl Gatherer<'_, '_> {
    fn event(&mut self, partial: bool, sides: &[Side], memory_max: usize) -> Result<()> {
        let cost = 24 + 9 * self.table.columns.len();
        while self.streams.more.next()? == 1 {
            let mut row = [None; 2];
            for side in sides {
                let is_after = matches!(side.role, Role::Inserted | Role::After);
                let before = if side.role == Role::After { row.first().copied().flatten() } else { None };
                let image = self.image(side, partial, before)?;
                if let Some(place) = row.get_mut(usize::from(is_after)) {
                    *place = Some(image);
                }
            }
            self.table.rows.push(row);
            if self.table.rows.len().saturating_mul(cost) > memory_max {
                return Err(too_many());
            }
        }
        Ok(())
    }

    /// Takes an image, and returns its number.
    fn image(&mut self, side: &Side, partial: bool, before: Option<u32>) -> Result<u32> {
        let role = side.role;
        let old = matches!(role, Role::Deleted | Role::Before);
        let leaves = side.is_whole && if partial { role == Role::Before } else { !old };
        let former = if side.is_whole && old { self.former(role)? } else { Former::Unknown };
        let base = match former {
            Former::Same(None, image) => {
                let image = u32::try_from(image).map_err(|_| too_many())?;
                if leaves {
                    self.table.images.push(image);
                }
                return Ok(image);
            }
            Former::Same(Some(source), image) => {
                let number = self.table.new_image(leaves)?;
                let other = self.elsewhere.get(source).copied().flatten().ok_or_else(no_row)?;
                for (cells, others) in self.table.cells.iter_mut().zip(&other.cells) {
                    cells.push(others.get(image))?;
                }
                return Ok(number);
            }
            Former::Differs(source, image) => Some(Base(source, image)),
            Former::Unknown => before.map(|before| Base(None, before as usize)),
        };
        if partial && role == Role::After && self.streams.options.next()? == PARTIAL_JSON {
            let bits = self.streams.partial.next()?;
            if bits.len() != self.streams.json.div_ceil(8) {
                return Err(Error::damaged("row image", "bits of partial columns", "one for each document"));
            }
        }
        let nulls = self.nulls(role, side.width)?;
        let number = self.table.new_image(leaves)?;
        for (picked, place) in side.places.iter().enumerate() {
            match place {
                None => self.push(picked, Content::None(State::Absent))?,
                Some(place) if bit(nulls.bytes(&self.streams.nulls), *place) => {
                    self.push(picked, Content::None(State::Null))?;
                }
                Some(_) => self.value(picked, role, base)?,
            }
        }
        Ok(number)
    }

    fn push(&mut self, picked: usize, content: Content<'_>) -> Result<()> {
        self.table.cells.get_mut(picked).map_or(Ok(()), |cells| cells.push(content))
    }

    /// Where a whole image was before.
    fn former(&mut self, role: Role) -> Result<Former> {
        let Some((sources, numbers)) = self.streams.sources.get_mut(role as usize) else {
            return Ok(Former::Unknown);
        };
        let source = usize::try_from(sources.next()?).unwrap_or(usize::MAX);
        let differs = source > DIFFERS;
        let source = if differs { source - DIFFERS } else { source };
        if source > 1 + REFERENCES_MAX {
            return Err(Error::damaged(
                "row image",
                "a reference to no block",
                "one of those that it refers to",
            ));
        }
        let Some(place) = source.checked_sub(1) else { return Ok(Former::Unknown) };
        let next = &mut self.streams.next;
        if next.len() < source {
            next.resize(source, 0);
        }
        let next = next.get_mut(place).ok_or_else(no_row)?;
        let number = next.wrapping_add(numbers.next()?);
        *next = number.wrapping_add(1);
        let number = usize::try_from(number).map_err(|_| no_row())?;
        let reference = source.checked_sub(2);
        let images = match reference {
            None => &self.table.images,
            Some(reference) => &self.elsewhere.get(reference).copied().flatten().ok_or_else(no_row)?.images,
        };
        let image = *images.get(number).ok_or_else(no_row)? as usize;
        Ok(if differs { Former::Differs(reference, image) } else { Former::Same(reference, image) })
    }

    /// The bits that say which values are NULL.
    fn nulls(&mut self, role: Role, count: usize) -> Result<Nulls> {
        let Some((numbers, texts)) = self.streams.nulls.get_mut(role as usize) else { return Err(no_row()) };
        match count.div_ceil(8) {
            0 => Ok(Nulls::Number([0; 8])),
            1..=8 => numbers.next().map(|number| Nulls::Number(number.to_le_bytes())),
            size => match texts.next()?.len() == size {
                true => Ok(Nulls::Text(role as usize, texts.1 - 1)),
                false => Err(Error::damaged("row image", "other null bits", "one for each column")),
            },
        }
    }

    /// Takes a value that is there.
    fn value(&mut self, picked: usize, role: Role, base: Option<Base>) -> Result<()> {
        let Some(cells) = self.table.cells.get_mut(picked) else { return Ok(()) };
        let form = cells.form;
        let values = self.streams.values.get_mut(picked).and_then(|values| values.get_mut(role as usize));
        let Values { numbers, texts, relations, differences } = values.ok_or_else(no_row)?;
        if matches!(form, Form::Number { size: 0, .. } | Form::Fixed { size: 0 }) {
            return cells.push(Content::Value(&[]));
        }
        let other = match base {
            Some(Base(Some(source), _)) => {
                let other = self.elsewhere.get(source).copied().flatten().ok_or_else(no_row)?;
                Some(other.cells.get(picked).ok_or_else(no_row)?)
            }
            _ => None,
        };
        if let Form::Number { size, order } = form {
            let older = match base {
                Some(Base(_, image)) => match other.unwrap_or(&*cells).get(image) {
                    Content::Value(bytes) => number_of(bytes, order),
                    Content::None(_) => 0,
                },
                None => 0,
            };
            let number = numbers.next()?.wrapping_add(older) as u64;
            let eight = match order {
                Order::Low => number,
                Order::High => number.checked_shl(64 - 8 * size as u32).unwrap_or_default().swap_bytes(),
            };
            return cells.push(Content::Value(eight.to_le_bytes().get(..size).unwrap_or_default()));
        }
        let older =
            base.filter(|Base(_, image)| matches!(other.unwrap_or(&*cells).get(*image), Content::Value(_)));
        let Some(Base(_, image)) = older else { return cells.push(Content::Value(texts.next()?)) };
        match (relations.next()?, form, other) {
            (SAME, _, None) => cells.push_again(image),
            (SAME, _, Some(other)) => cells.push(other.get(image)),
            (DIFFERENCE, Form::Prefixed { prefix }, _) => {
                let size_max = u32::MAX as usize >> (32 - 8 * prefix.clamp(1, 4));
                let Content::Value(old) = other.unwrap_or(&*cells).get(image) else { return Err(no_row()) };
                let new = delta::apply(old, differences.next()?, size_max.min(BLOCK_SIZE_MAX))?;
                cells.push(Content::Value(&new))
            }
            _ => cells.push(Content::Value(texts.next()?)),
        }
    }
}

/// Null bits: few, or which of a role's texts.
enum Nulls {
    Number([u8; 8]),
    Text(usize, usize),
}

impl Nulls {
    fn bytes<'n>(&'n self, nulls: &'n [(Numbers, Texts); ROLES]) -> &'n [u8] {
        match self {
            Nulls::Number(bytes) => bytes,
            Nulls::Text(role, text) => {
                nulls.get(*role).and_then(|(_, texts)| texts.0.get(*text)).unwrap_or_default()
            }
        }
    }
}

fn no_row() -> Error {
    Error::damaged("block", "a reference to a missing row", "a row of the block that it refers to")
}
