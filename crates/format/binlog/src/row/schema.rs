//! A table map compiled for reading rows. It is owned, so it outlives the event, and is shared by the threads
//! that decode the statement's rows.
//!
//! [`TableSchemas`] keeps the table maps in force and avoids recompiling repeated ones: each transaction
//! brings its own.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::kind::{ColumnKind, ColumnSize, Leap};
use crate::charset::Charset;
use crate::error::{Error, Result};
use crate::event::{
    Column, ColumnDefinition, ColumnType, PostHeaderLengths, PrimaryKeyPart, ServerFamily, TableId,
    TableMapEvent,
};
use crate::event_type::EventType;

const WHAT: &str = "table map event";
/// The most columns of a table (`MAX_FIELDS` in the server).
pub(crate) const COLUMNS_MAX: usize = 4096;
/// Bytes that the table maps of one statement may take: forty of the widest tables. No statement comes near it.
const STATEMENT_BYTES_MAX: usize = 32 << 20;
/// Bytes that remembered table maps may take where nothing else is said: thousands of tables of usual width. A log that
/// keeps on mapping tables must not fill the memory.
const REMEMBERED_BYTES: usize = 8 << 20;
/// Bytes of an allocation besides its contents.
const ALLOCATION: usize = 16;

/// A table as its map describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSchema {
    /// Name of the database.
    pub database: Box<[u8]>,
    /// Name of the table.
    pub table: Box<[u8]>,
    columns: Box<[ColumnSchema]>,
    sizes: Box<[ColumnSize]>,
    leaps: Box<[Leap]>,
    /// The sizes in rows whose compressed values were expanded, if the table has compressed columns.
    expanded_sizes: Option<Box<[ColumnSize]>>,
    json_columns: usize,
    has_old_temporals: bool,
}

/// A column as its table map describes it. Anything the map does not say is `None`: see `binlog_row_metadata`
/// in the manual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSchema {
    /// How the column's values are stored.
    pub kind: ColumnKind,
    /// The type; ENUM and SET, which a table map stores as CHAR, are their own types.
    pub column_type: ColumnType,
    /// The metadata as the number that the server (and mysqlbinlog) makes of its bytes.
    pub metadata: u16,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether a numeric column is unsigned.
    pub unsigned: Option<bool>,
    /// Collation id of a character, ENUM or SET column.
    pub collation: Option<u64>,
    /// Name of the column.
    pub name: Option<Box<[u8]>>,
    /// Members of an ENUM or SET column, in its character set.
    pub members: Option<Box<[Box<[u8]>]>>,
    /// Type of a geometry column, 0 to 7.
    pub geometry_type: Option<u64>,
    /// Dimensions of a VECTOR column.
    pub dimensionality: Option<u64>,
    /// Whether `SELECT *` shows it.
    pub visible: Option<bool>,
    /// How the column takes part in the primary key.
    pub primary_key: Option<PrimaryKeyPart>,
}

impl TableSchema {
    /// Compiles a table map that a server of this family wrote.
    ///
    /// # Errors
    ///
    /// More columns than a table can have, a type that rows can't hold, metadata that don't fit it.
    pub fn new(event: &TableMapEvent<'_>, family: ServerFamily) -> Result<Self> {
        let count = event.column_count();
        if count > COLUMNS_MAX {
            return Err(Error::invalid(WHAT, "column count", count, "at most 4096"));
        }
        let definitions = event.column_definitions(family);
        if definitions.is_err() {
            // The cause may be a type that isn't known, with which nothing after it is either.
            for (index, column) in event.columns().enumerate() {
                ColumnKind::new(&column?, None).map_err(|error| error.in_column(index))?;
            }
        }
        let columns = definitions?
            .iter()
            .enumerate()
            .map(|(index, definition)| ColumnSchema::new(definition).map_err(|error| error.in_column(index)))
            .collect::<Result<Box<[_]>>>()?;
        let sizes: Box<[_]> = columns.iter().map(ColumnSchema::size).collect();
        let expanded = |size: &ColumnSize| if size.is_compressed() { ColumnSize::EXPANDED } else { *size };
        let has_compressed = sizes.iter().any(|size| size.is_compressed());
        Ok(TableSchema {
            database: event.database.into(),
            table: event.table.into(),
            leaps: Leap::all(&sizes),
            expanded_sizes: has_compressed.then(|| sizes.iter().map(expanded).collect()),
            sizes,
            json_columns: columns.iter().filter(|column| column.is_json()).count(),
            has_old_temporals: columns.iter().any(|column| column.kind.is_old_temporal()),
            columns,
        })
    }

    /// Compiles a table map of which the family isn't known. `None`: the families mean different things by it.
    ///
    /// # Errors
    ///
    /// As [`TableSchema::new`].
    pub fn of_any_family(event: &TableMapEvent<'_>) -> Result<Option<Self>> {
        let schema = Self::new(event, ServerFamily::Mysql)?;
        if !event.column_types.contains(&ColumnType::GEOMETRY.0) {
            return Ok(Some(schema));
        }
        let is_alike = Self::new(event, ServerFamily::Mariadb)? == schema;
        Ok(is_alike.then_some(schema))
    }

    /// Approximately the bytes that it takes.
    pub fn memory(&self) -> usize {
        let members = |column: &ColumnSchema| {
            let sizes = column
                .members
                .iter()
                .flatten()
                .map(|member| size_of::<Box<[u8]>>() + ALLOCATION + member.len());
            sizes.sum::<usize>()
        };
        let columns = self.columns.iter().map(|column| {
            let name = column.name.as_ref().map_or(0, |name| name.len() + ALLOCATION);
            size_of::<ColumnSchema>() + size_of::<ColumnSize>() + size_of::<Leap>() + name + members(column)
        });
        size_of::<TableSchema>()
            + self.database.len()
            + self.table.len()
            + 4 * ALLOCATION
            + columns.sum::<usize>()
    }

    /// The columns in their order.
    pub fn columns(&self) -> &[ColumnSchema] {
        &self.columns
    }

    /// Returns a copy to whose columns `complete` adds what the map lacks: names, members, signedness, collations. It must
    /// leave alone how values are stored.
    pub fn completed(&self, mut complete: impl FnMut(usize, &mut ColumnSchema)) -> Self {
        let mut table = self.clone();
        table.columns.iter_mut().enumerate().for_each(|(index, column)| complete(index, column));
        table
    }

    /// How values are skipped, column by column.
    pub(super) fn sizes(&self) -> &[ColumnSize] {
        &self.sizes
    }

    /// How values are skipped once compressed ones were expanded; `None` if the table has none.
    pub(super) fn expanded_sizes(&self) -> Option<&[ColumnSize]> {
        self.expanded_sizes.as_deref()
    }

    /// How rows without NULLs are passed over.
    pub(super) fn leaps(&self) -> &[Leap] {
        &self.leaps
    }

    /// Whether it has temporal columns from before 5.6.4. In MariaDB they may hold a fraction of a second; the log tells
    /// neither that nor how many digits it has.
    pub(super) fn has_old_temporals(&self) -> bool {
        self.has_old_temporals
    }

    /// How many columns are JSON: each has a bit in a partial update's after-image.
    pub(super) fn json_columns(&self) -> usize {
        self.json_columns
    }
}

impl ColumnSchema {
    fn new(definition: &ColumnDefinition<'_>) -> Result<Self> {
        let column = &definition.column;
        let members = definition.members.map(|members| members.iter().map(|member| Ok(member?.into())));
        Ok(ColumnSchema {
            kind: ColumnKind::new(column, definition.unsigned)?,
            column_type: column.real_type(),
            metadata: metadata_number(column),
            nullable: definition.nullable,
            unsigned: definition.unsigned,
            collation: definition.collation,
            name: definition.name.map(Into::into),
            members: members.map(|members| members.collect::<Result<_>>()).transpose()?,
            geometry_type: definition.geometry_type,
            dimensionality: definition.dimensionality,
            visible: definition.visible,
            primary_key: definition.primary_key,
        })
    }

    fn size(&self) -> ColumnSize {
        match self.column_type.is_mariadb_compressed() {
            true => ColumnSize::of_compressed(self.kind),
            false => self.kind.size(),
        }
    }

    /// The character set of a character, ENUM or SET column, where the map names its collation and
    /// MySQL 9.7 knows it.
    pub fn charset(&self) -> Option<Charset> {
        self.collation.and_then(Charset::of_collation)
    }

    /// The bytes of a string as its column has them. A log leaves out the zeros at the end of a BINARY(n) (the server's
    /// `Field_string::pack`), and its column has all n bytes. Strings of other columns are as in the log, also those of
    /// which the map names no collation: whether they are BINARY isn't known.
    pub fn padded<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match self.kind {
            ColumnKind::Char { length_max }
                if bytes.len() < usize::from(length_max) && self.charset() == Some(Charset::Binary) =>
            {
                let mut padded = bytes.to_vec();
                padded.resize(length_max.into(), 0);
                Cow::Owned(padded)
            }
            _ => Cow::Borrowed(bytes),
        }
    }

    /// A member of an ENUM by its number from 1.
    pub fn member(&self, number: u16) -> Option<&[u8]> {
        let index = usize::from(number).checked_sub(1)?;
        self.members.as_ref()?.get(index).map(AsRef::as_ref)
    }

    /// The members of a SET that a value has, in the column's order; none where they are not known.
    pub fn set_members(&self, bits: u64) -> impl Iterator<Item = &[u8]> {
        let members = self.members.iter().flatten().enumerate();
        let has = move |index: usize| index < 64 && bits >> index & 1 == 1;
        members.filter(move |(index, _)| has(*index)).map(|(_, member)| &**member)
    }

    /// Whether it is a JSON column, whose updates may be logged as differences.
    pub fn is_json(&self) -> bool {
        matches!(self.kind, ColumnKind::Json { .. })
    }
}

fn metadata_number(column: &Column<'_>) -> u16 {
    match (column.column_type, column.metadata) {
        (_, [byte]) => u16::from(*byte),
        (
            ColumnType::VARCHAR
            | ColumnType::VAR_STRING
            | ColumnType::BIT
            | ColumnType::MARIADB_VARCHAR_COMPRESSED,
            [low, high],
        ) => u16::from(*high) << 8 | u16::from(*low),
        (_, [high, low]) => u16::from(*high) << 8 | u16::from(*low),
        _ => 0,
    }
}

/// The table maps in force in a stream, by the table number used in row events.
#[derive(Debug)]
pub struct TableSchemas {
    tables: HashMap<TableId, Entry>,
    /// Total memory of all entries.
    bytes: usize,
    /// The bytes that those of earlier statements may take.
    bytes_max: usize,
    /// The size at which cached tables are dropped: at least `bytes_max`, more while one statement takes so much.
    forget_at: usize,
    /// Counts statements, so that a map of an earlier one isn't taken for one in force.
    statement: u64,
}

#[derive(Debug)]
struct Entry {
    /// The event's body, to recognise it when it is repeated.
    body: Box<[u8]>,
    family: ServerFamily,
    schema: Arc<TableSchema>,
    statement: u64,
}

impl Default for TableSchemas {
    fn default() -> Self {
        Self::new()
    }
}

impl TableSchemas {
    /// No table maps.
    pub fn new() -> Self {
        Self::one_of(1)
    }

    /// No table maps yet, for one of this many threads: together they remember as many as one would alone.
    pub fn one_of(threads: usize) -> Self {
        let bytes_max = REMEMBERED_BYTES / threads.max(1);
        TableSchemas { tables: HashMap::new(), bytes: 0, bytes_max, forget_at: bytes_max, statement: 0 }
    }

    /// Notes a table map, given the event's body (without checksum) and what the format description announced. It is in force up to [`TableSchemas::end_statement`].
    ///
    /// # Errors
    ///
    /// A map that can't be compiled; more maps in one statement than any has.
    pub fn note(&mut self, body: &[u8], lengths: &PostHeaderLengths) -> Result<Arc<TableSchema>> {
        let post_header_length = lengths.of(EventType::TABLE_MAP);
        let family = lengths.family();
        let table_id = TableMapEvent::decode_table_id(body, post_header_length)?;
        if let Some(entry) = self.tables.get_mut(&table_id)
            && entry.family == family
            && *entry.body == *body
        {
            entry.statement = self.statement;
            return Ok(Arc::clone(&entry.schema));
        }
        let map = TableMapEvent::decode(body, post_header_length)?;
        let schema = Arc::new(TableSchema::new(&map, family)?);
        let entry =
            Entry { body: body.into(), family, schema: Arc::clone(&schema), statement: self.statement };
        self.bytes += entry.weight();
        if let Some(replaced) = self.tables.insert(table_id, entry) {
            self.bytes -= replaced.weight();
        }
        if self.bytes > self.forget_at {
            self.forget()?;
        }
        Ok(schema)
    }

    /// The table of a row event.
    ///
    /// # Errors
    ///
    /// No map of this statement has that number.
    #[inline]
    pub fn get(&self, table_id: TableId) -> Result<&Arc<TableSchema>> {
        match self.tables.get(&table_id) {
            Some(entry) if entry.statement == self.statement => Ok(&entry.schema),
            _ => Err(unknown_table(table_id)),
        }
    }

    /// Ends the statement; call it after a row event with the flag [`crate::event::RowsFlags::STMT_END`].
    pub fn end_statement(&mut self) {
        self.statement += 1;
    }

    /// Drops the maps of earlier statements.
    fn forget(&mut self) -> Result<()> {
        self.tables.retain(|_, entry| entry.statement == self.statement);
        self.bytes = self.tables.values().map(Entry::weight).sum();
        self.forget_at = self.bytes_max.max(2 * self.bytes);
        if self.bytes > STATEMENT_BYTES_MAX {
            return Err(Error::invalid(WHAT, "size of the statement's maps", self.bytes, "at most 32 MiB"));
        }
        Ok(())
    }
}

impl Entry {
    /// Approximate size of the entry.
    fn weight(&self) -> usize {
        size_of::<Entry>() + self.body.len() + ALLOCATION + self.schema.memory()
    }
}

fn unknown_table(table_id: TableId) -> Error {
    Error::invalid("rows event", "table id", table_id, "one that a table map of the statement gave")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChecksumAlgorithm;
    use crate::event::{
        Bitmap, FormatDescription, OptionalMetadata, POST_HEADER_LENGTHS, SERVER_VERSION_SIZE, TableMapFlags,
    };

    fn event(column_types: &'static [u8]) -> TableMapEvent<'static> {
        TableMapEvent {
            table_id: TableId(90),
            flags: TableMapFlags::default(),
            database: b"test",
            table: b"t",
            column_types,
            // VARCHAR(80), BIT(12), ENUM, TIME(3)
            column_metadata: &[80, 0, 4, 1, 247, 1, 3],
            null_bitmap: Bitmap(&[0b10]),
            optional_metadata: OptionalMetadata(b"\x06\x05\x02\x01a\x01b\x0a\x01\x08\x02\x01\x2d"),
        }
    }

    #[test]
    fn columns_are_compiled() {
        let schema = TableSchema::new(&event(&[15, 16, 254, 19]), ServerFamily::Unknown).unwrap();
        let [varchar, bit, member, time] = schema.columns() else { panic!("four columns") };
        assert_eq!((varchar.metadata, bit.metadata, member.metadata, time.metadata), (80, 260, 63233, 3));
        assert_eq!(bit.kind, ColumnKind::Bit { bits: 12 });
        assert_eq!((varchar.nullable, bit.nullable), (false, true));
        assert_eq!(varchar.charset(), Some(Charset::Utf8mb4));
        assert_eq!((member.column_type, member.charset()), (ColumnType::ENUM, Some(Charset::Latin1)));
        assert_eq!(member.member(2), Some(&b"b"[..]));
        assert_eq!((member.member(0), member.member(3), varchar.member(1)), (None, None, None));
        assert_eq!(member.set_members(0b110).collect::<Vec<_>>(), [b"b"]);
        assert_eq!(varchar.set_members(u64::MAX).count(), 0);
    }

    #[test]
    fn a_binary_string_has_the_zeros_that_the_log_leaves_out() {
        let map = TableMapEvent {
            // BINARY(4), CHAR(4), VARBINARY(4)
            column_types: &[254, 254, 15],
            column_metadata: &[254, 4, 254, 4, 4, 0],
            optional_metadata: OptionalMetadata(b"\x03\x03\x3f\x08\x3f"),
            ..event(&[])
        };
        let schema = TableSchema::new(&map, ServerFamily::Unknown).unwrap();
        let [binary, text, varying] = schema.columns() else { panic!("three columns") };
        assert_eq!(&*binary.padded(b"a\0b"), b"a\0b\0");
        assert_eq!(&*binary.padded(b""), b"\0\0\0\0");
        assert!(matches!(binary.padded(b"abcd"), Cow::Borrowed(b"abcd")));
        for other in [text, varying] {
            assert!(matches!(other.padded(b"a"), Cow::Borrowed(b"a")));
        }
        let unknown = TableMapEvent { optional_metadata: OptionalMetadata(b""), ..map };
        let unknown = TableSchema::new(&unknown, ServerFamily::Unknown).unwrap();
        assert!(unknown.columns().iter().all(|column| &*column.padded(b"a") == b"a"));
    }

    #[test]
    fn an_error_names_its_column() {
        let old = TableMapEvent { optional_metadata: OptionalMetadata(b""), ..event(&[15, 16, 0]) };
        let error = TableSchema::new(&old, ServerFamily::Unknown).unwrap_err().to_string();
        assert_eq!(error, "column 3: table map event: column type is DECIMAL, expected one that rows hold");
        let wide = TableMapEvent { column_types: &[3; COLUMNS_MAX + 1], ..event(&[]) };
        assert!(
            TableSchema::new(&wide, ServerFamily::Unknown).unwrap_err().to_string().contains("at most 4096")
        );
    }

    #[test]
    fn maps_are_in_force_for_one_statement_and_compiled_once() {
        let body = event(&[15, 16, 254, 19]).encode(8).unwrap();
        let mut schemas = TableSchemas::new();
        assert!(schemas.get(TableId(90)).is_err());
        let first = schemas.note(&body, &PostHeaderLengths::default()).unwrap();
        assert!(Arc::ptr_eq(&first, schemas.get(TableId(90)).unwrap()));
        schemas.end_statement();
        let error = schemas.get(TableId(90)).unwrap_err().to_string();
        assert_eq!(error, "rows event: table id is 90, expected one that a table map of the statement gave");
        assert!(Arc::ptr_eq(&first, &schemas.note(&body, &PostHeaderLengths::default()).unwrap()));

        // The same bytes of another server may mean something else.
        let of_mysql = PostHeaderLengths::from(&FormatDescription {
            binlog_version: 4,
            server_version: [b'9'; SERVER_VERSION_SIZE],
            created: 0,
            header_length: 19,
            post_header_lengths: POST_HEADER_LENGTHS.to_vec(),
            checksum_algorithm: ChecksumAlgorithm::NONE,
        });
        assert!(!Arc::ptr_eq(&first, &schemas.note(&body, &of_mysql).unwrap()));

        let other = TableMapEvent { table: b"u", ..event(&[15, 16, 254, 19]) }.encode(8).unwrap();
        assert_eq!(&*schemas.note(&other, &PostHeaderLengths::default()).unwrap().table, b"u");
        assert_eq!(&*first.table, b"t");
    }

    fn note_many(schemas: &mut TableSchemas, between: impl Fn(&mut TableSchemas)) -> Result<()> {
        let types = [3; COLUMNS_MAX];
        let nullable = [0; COLUMNS_MAX / 8];
        for id in 0..200 {
            let event = TableMapEvent {
                table_id: TableId(id),
                column_types: &types,
                null_bitmap: Bitmap(&nullable),
                optional_metadata: OptionalMetadata(b""),
                ..event(&[])
            };
            schemas.note(&event.encode(8).unwrap(), &PostHeaderLengths::default())?;
            between(schemas);
        }
        Ok(())
    }

    #[test]
    fn old_maps_are_forgotten_when_there_are_many() {
        let mut schemas = TableSchemas::new();
        note_many(&mut schemas, TableSchemas::end_statement).unwrap();
        assert!(schemas.tables.len() < 60 && schemas.bytes <= REMEMBERED_BYTES);
        assert_eq!(schemas.bytes, schemas.tables.values().map(Entry::weight).sum());
    }

    #[test]
    fn one_statement_may_not_map_tables_without_end() {
        let error = note_many(&mut TableSchemas::new(), |_| {}).unwrap_err().to_string();
        assert!(error.ends_with("expected at most 32 MiB"), "{error}");
    }
}
