//! Columns as a table map describes them: its types, metadata and optional fields, assigned to each column.
//! For callers that show or interpret rows; skipping over rows only needs [`TableMapEvent::columns`].
//!
//! The optional fields cover only some columns: signedness of the numeric ones (including YEAR), collations
//! of the character ones (CHAR, VARCHAR, BLOB and TEXT, VECTOR; a binary one has 63) and, in fields of their
//! own, of ENUM and SET. Anything the fields don't cover stays `None`. Which columns count was observed on a
//! live MySQL 9.7.4. MariaDB 10.11 and 11.4 count geometry columns among the character ones: [`ServerFamily`] tells
//! whose table map it is.

use std::collections::BTreeMap;

use super::table_map_metadata::{DefaultCharset, HighFirstBits, MetadataField, MetadataStrings};
use super::{Column, ColumnType, TableMapEvent};
use crate::error::{Error, Result};
use crate::event::ServerFamily;

const WHAT: &str = "optional metadata";
/// The collation `binary`.
const BINARY: u64 = 63;

/// A column as far as the log describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnDefinition<'a> {
    /// Type and metadata.
    pub column: Column<'a>,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether a numeric column is unsigned.
    pub unsigned: Option<bool>,
    /// Collation id of a character, ENUM or SET column.
    pub collation: Option<u64>,
    /// Name of the column (`binlog_row_metadata=FULL`).
    pub name: Option<&'a [u8]>,
    /// Members of an ENUM or SET column (FULL).
    pub members: Option<MetadataStrings<'a>>,
    /// Type of a geometry column, 0 to 7.
    pub geometry_type: Option<u64>,
    /// Dimensions of a VECTOR column.
    pub dimensionality: Option<u64>,
    /// Whether `SELECT *` shows it (FULL, since 8.0.23).
    pub visible: Option<bool>,
    /// How the column takes part in the primary key (FULL).
    pub primary_key: Option<PrimaryKeyPart>,
}

/// A column's part in the primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrimaryKeyPart {
    /// Place in the key, counted from 0.
    pub place: usize,
    /// How many characters of the column; 0 for all.
    pub prefix: u64,
}

impl<'a> TableMapEvent<'a> {
    /// The columns with all that the event says of them, written by a server of this family.
    ///
    /// # Errors
    ///
    /// Metadata or optional fields that are cut, and fields that cover more columns than there are. Fields of
    /// unknown type are skipped.
    pub fn column_definitions(&self, family: ServerFamily) -> Result<Vec<ColumnDefinition<'a>>> {
        let mut definitions = Vec::with_capacity(self.column_count());
        for (index, column) in self.columns().enumerate() {
            definitions.push(ColumnDefinition {
                column: column?,
                nullable: self.null_bitmap.is_set(index),
                unsigned: None,
                collation: None,
                name: None,
                members: None,
                geometry_type: None,
                dimensionality: None,
                visible: None,
                primary_key: None,
            });
        }
        for field in self.optional_metadata.iter() {
            deal_out(field?, family, &mut definitions)?;
        }
        Ok(definitions)
    }
}

/// Assigns the values of a field to the columns.
fn deal_out<'a>(
    field: MetadataField<'a>,
    family: ServerFamily,
    definitions: &mut [ColumnDefinition<'a>],
) -> Result<()> {
    let any = |_: ColumnType| true;
    match field {
        MetadataField::Signedness(bits) => {
            each_bit(definitions, ColumnType::is_numeric, bits, |to, bit| to.unsigned = Some(bit));
            Ok(())
        }
        MetadataField::ColumnVisibility(bits) => {
            each_bit(definitions, any, bits, |to, bit| to.visible = Some(bit));
            Ok(())
        }
        MetadataField::DefaultCharset(charset) => {
            let given = |to: &mut [_], of_kind: fn(ColumnType) -> bool| default_charset(to, of_kind, charset);
            character_collations(definitions, family, given, |columns| is_most_frequent(columns, charset))
        }
        MetadataField::EnumAndSetDefaultCharset(charset) => {
            default_charset(definitions, ColumnType::is_enum_or_set, charset)
        }
        MetadataField::ColumnCharset(numbers) => {
            let given = |to: &mut [_], of_kind: fn(ColumnType) -> bool| {
                each(to, of_kind, numbers.iter(), |to, it| to.collation = Some(it))
            };
            character_collations(definitions, family, given, |_| true)
        }
        MetadataField::EnumAndSetColumnCharset(numbers) => {
            each(definitions, ColumnType::is_enum_or_set, numbers.iter(), |to, it| to.collation = Some(it))
        }
        MetadataField::ColumnName(names) => {
            each(definitions, any, names.iter(), |to, name| to.name = Some(name))
        }
        MetadataField::SetStrValue(lists) => {
            let is_set = |column_type| column_type == ColumnType::SET;
            each(definitions, is_set, lists.iter(), |to, members| to.members = Some(members))
        }
        MetadataField::EnumStrValue(lists) => {
            let is_enum = |column_type| column_type == ColumnType::ENUM;
            each(definitions, is_enum, lists.iter(), |to, members| to.members = Some(members))
        }
        MetadataField::GeometryType(numbers) => {
            let is_geometry = |column_type| column_type == ColumnType::GEOMETRY;
            // Zeros after the last one are padding: binlogz's relay replaces fields by them.
            let mut columns = definitions.iter_mut().filter(|column| is_geometry(column.column.real_type()));
            for number in numbers.iter() {
                let geometry_type = number?;
                match columns.next() {
                    Some(column) => column.geometry_type = Some(geometry_type),
                    None if geometry_type == 0 => {}
                    None => return Err(too_many_columns()),
                }
            }
            Ok(())
        }
        MetadataField::VectorDimensionality(numbers) => {
            let is_vector = |column_type| column_type == ColumnType::VECTOR;
            each(definitions, is_vector, numbers.iter(), |to, it| to.dimensionality = Some(it))
        }
        MetadataField::SimplePrimaryKey(numbers) => {
            primary_key(definitions, numbers.iter().map(|column| Ok((column?, 0))))
        }
        MetadataField::PrimaryKeyWithPrefix(pairs) => primary_key(definitions, pairs.iter()),
        MetadataField::Unknown { .. } => Ok(()),
    }
}

/// Gives the next value to each column of a kind.
fn each<'a, T>(
    definitions: &mut [ColumnDefinition<'a>],
    of_kind: impl Fn(ColumnType) -> bool,
    values: impl Iterator<Item = Result<T>>,
    give: impl Fn(&mut ColumnDefinition<'a>, T),
) -> Result<()> {
    let mut columns = definitions.iter_mut().filter(|definition| of_kind(definition.column.real_type()));
    for value in values {
        give(columns.next().ok_or_else(too_many_columns)?, value?);
    }
    Ok(())
}

/// Gives the next bit to each column of a kind; bits after the last are padding.
fn each_bit<'a>(
    definitions: &mut [ColumnDefinition<'a>],
    of_kind: impl Fn(ColumnType) -> bool,
    bits: HighFirstBits<'a>,
    give: impl Fn(&mut ColumnDefinition<'a>, bool),
) {
    let columns = definitions.iter_mut().filter(|definition| of_kind(definition.column.real_type()));
    for (index, column) in columns.enumerate() {
        if let Some(bit) = bits.get(index) {
            give(column, bit);
        }
    }
}

/// Gives the character columns their collations.
///
/// MariaDB counts geometry columns among them, whose collation is binary. Its own table maps are read so, those of MySQL by MySQL's
/// rules. If that is impossible, the other reading is taken where it is possible: a server may call itself by a version of its
/// choice. So it is where the family isn't known, which is MySQL's if both readings are possible.
fn character_collations<'a>(
    definitions: &mut [ColumnDefinition<'a>],
    family: ServerFamily,
    give: impl Fn(&mut [ColumnDefinition<'a>], fn(ColumnType) -> bool) -> Result<()>,
    is_possible: impl Fn(&[ColumnDefinition<'a>]) -> bool,
) -> Result<()> {
    let mut of_mysql = definitions.to_vec();
    let given = give(&mut of_mysql, ColumnType::is_character);
    let is_mysqls = given.is_ok() && is_possible(&of_mysql);
    let tries_mariadb = match family {
        ServerFamily::Mariadb => true,
        ServerFamily::Mysql | ServerFamily::Unknown => !is_mysqls,
    };
    if tries_mariadb {
        let mut of_mariadb = definitions.to_vec();
        let is_given = give(&mut of_mariadb, |column_type| {
            column_type.is_character() || column_type == ColumnType::GEOMETRY
        })
        .is_ok();
        let mut geometries =
            of_mariadb.iter_mut().filter(|definition| definition.column.real_type() == ColumnType::GEOMETRY);
        if is_given && geometries.all(|column| column.collation.take() == Some(BINARY)) {
            definitions.copy_from_slice(&of_mariadb);
            return Ok(());
        }
    }
    given?;
    definitions.copy_from_slice(&of_mysql);
    Ok(())
}

/// Whether no collation is that of more columns than the default. Servers choose it so.
fn is_most_frequent(definitions: &[ColumnDefinition<'_>], charset: DefaultCharset<'_>) -> bool {
    let Ok((default, _)) = charset.decode() else { return false };
    let characters = definitions.iter().filter(|column| column.column.real_type().is_character());
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    characters
        .filter_map(|column| column.collation)
        .for_each(|collation| *counts.entry(collation).or_default() += 1);
    let of_default = counts.get(&default).copied().unwrap_or(0);
    counts.values().all(|count| *count <= of_default)
}

fn default_charset<'a>(
    definitions: &mut [ColumnDefinition<'a>],
    of_kind: impl Fn(ColumnType) -> bool,
    charset: DefaultCharset<'a>,
) -> Result<()> {
    let (default, exceptions) = charset.decode()?;
    let mut columns: Vec<_> =
        definitions.iter_mut().filter(|definition| of_kind(definition.column.real_type())).collect();
    for column in &mut columns {
        column.collation = Some(default);
    }
    for exception in exceptions.iter() {
        let (index, collation) = exception?;
        nth(&mut columns, index)?.collation = Some(collation);
    }
    Ok(())
}

fn primary_key(
    definitions: &mut [ColumnDefinition<'_>],
    parts: impl Iterator<Item = Result<(u64, u64)>>,
) -> Result<()> {
    for (place, part) in parts.enumerate() {
        let (column, prefix) = part?;
        nth(definitions, column)?.primary_key = Some(PrimaryKeyPart { place, prefix });
    }
    Ok(())
}

fn nth<T>(columns: &mut [T], index: u64) -> Result<&mut T> {
    usize::try_from(index).ok().and_then(|index| columns.get_mut(index)).ok_or_else(too_many_columns)
}

fn too_many_columns() -> Error {
    Error::invalid(WHAT, "number of columns", "above the table's", "a field for columns of the table")
}

#[cfg(test)]
mod tests {
    use super::super::{Bitmap, OptionalMetadata, TableId, TableMapFlags};
    use super::*;

    fn table(optional_metadata: &[u8]) -> TableMapEvent<'_> {
        TableMapEvent {
            table_id: TableId(90),
            flags: TableMapFlags::default(),
            database: b"test",
            table: b"t",
            // INT, VARCHAR, ENUM, SET, GEOMETRY, VECTOR, CHAR, YEAR, TINYINT
            column_types: &[3, 15, 254, 254, 255, 242, 254, 13, 1],
            column_metadata: &[80, 0, 247, 1, 248, 1, 4, 4, 254, 10],
            null_bitmap: Bitmap(&[0b0000_0010, 0]),
            optional_metadata: OptionalMetadata(optional_metadata),
        }
    }

    #[test]
    fn fields_reach_their_columns() {
        let mut metadata = Vec::new();
        let mut put = |field_type: u8, value: &[u8]| {
            MetadataField::Unknown { field_type, value }.encode(&mut metadata);
        };
        put(1, &[0b0110_0000]);
        put(2, &[45, 1, 63, 2, 8]);
        put(4, b"\x01a\x01b\x01c\x01d\x01e\x01f\x01g\x01h\x01i");
        put(5, b"\x02\x01p\x01q");
        put(6, b"\x01\x01r");
        put(7, &[1]);
        put(9, &[1, 10, 0, 0]);
        put(11, &[8, 33]);
        put(12, &[0b0111_1111, 0b1000_0000]);
        put(13, &[4]);
        put(99, b"tomorrow");
        let definitions = table(&metadata).column_definitions(ServerFamily::Unknown).unwrap();
        let column = |index: usize| definitions[index];
        assert_eq!(
            (column(0).unsigned, column(8).unsigned, column(1).unsigned),
            (Some(false), Some(true), None)
        );
        let collations: Vec<_> = definitions.iter().map(|definition| definition.collation).collect();
        assert_eq!(collations, [None, Some(45), Some(8), Some(33), None, Some(63), Some(8), None, None]);
        assert_eq!((column(0).name, column(8).name), (Some(b"a".as_slice()), Some(b"i".as_slice())));
        assert_eq!(column(2).members.unwrap().0, b"\x01r");
        assert_eq!(column(3).members.unwrap().0, b"\x01p\x01q");
        assert_eq!((column(4).geometry_type, column(5).dimensionality), (Some(1), Some(4)));
        assert_eq!(column(1).primary_key, Some(PrimaryKeyPart { place: 0, prefix: 10 }));
        assert_eq!(column(0).primary_key, Some(PrimaryKeyPart { place: 1, prefix: 0 }));
        assert_eq!((column(0).visible, column(8).visible), (Some(false), Some(true)));
        assert_eq!((column(0).nullable, column(1).nullable), (false, true));
    }

    /// The fields are written by the rules above, not recorded from servers.
    #[test]
    fn collations_beside_geometry_columns_are_those_that_the_server_meant() {
        let collations = |column_types: &[u8], column_metadata: &[u8], optional: &[u8]| -> Vec<Option<u64>> {
            let map = TableMapEvent {
                column_types,
                column_metadata,
                null_bitmap: Bitmap(&[0]),
                optional_metadata: OptionalMetadata(optional),
                ..table(&[])
            };
            let definitions = map.column_definitions(ServerFamily::Unknown).unwrap();
            definitions.iter().map(|definition| definition.collation).collect()
        };
        // GEOMETRY, TEXT: MariaDB lists both of them.
        let types = [255, 252];
        assert_eq!(collations(&types, &[4, 2], &[2, 3, 63, 1, 45]), [None, Some(45)]);
        // The default would be that of no column.
        assert_eq!(collations(&types, &[4, 2], &[2, 3, 45, 0, 63]), [None, Some(45)]);
        assert_eq!(collations(&types, &[4, 2], &[3, 2, 63, 45]), [None, Some(45)]);
        // MySQL only the second.
        assert_eq!(collations(&types, &[4, 2], &[2, 1, 45]), [None, Some(45)]);
        assert_eq!(collations(&types, &[4, 2], &[2, 1, 63]), [None, Some(63)]);
        assert_eq!(collations(&types, &[4, 2], &[3, 1, 45]), [None, Some(45)]);
        // GEOMETRY, BLOB, TEXT, TEXT.
        let types = [255, 252, 252, 252];
        assert_eq!(
            collations(&types, &[4, 2, 2, 2], &[2, 3, 45, 0, 63]),
            [None, Some(63), Some(45), Some(45)]
        );
        // GEOMETRY, TEXT, TEXT: both readings are possible. The first of MariaDB's three columns is binary, or of MySQL's two.
        let types = [255, 252, 252];
        let columns = |family: ServerFamily, optional: &[u8]| {
            let map = TableMapEvent {
                column_types: &types,
                column_metadata: &[4, 2, 2],
                null_bitmap: Bitmap(&[0]),
                optional_metadata: OptionalMetadata(optional),
                ..table(&[])
            };
            let definitions = map.column_definitions(family).unwrap();
            definitions.iter().map(|definition| definition.collation).collect::<Vec<_>>()
        };
        let default = [2, 3, 45, 0, 63];
        assert_eq!(columns(ServerFamily::Mariadb, &default), [None, Some(45), Some(45)]);
        assert_eq!(columns(ServerFamily::Mysql, &default), [None, Some(63), Some(45)]);
        // Of two columns only MySQL can speak, whatever the server calls itself, and of three only MariaDB.
        for family in [ServerFamily::Mysql, ServerFamily::Mariadb, ServerFamily::Unknown] {
            assert_eq!(columns(family, &[3, 2, 45, 33]), [None, Some(45), Some(33)]);
            assert_eq!(columns(family, &[3, 3, 63, 45, 33]), [None, Some(45), Some(33)]);
        }
        // One more than there are columns of both kinds.
        let map = table(&[3, 3, 63, 45, 45]);
        let map = TableMapEvent { column_types: &[255, 252], column_metadata: &[4, 2], ..map };
        assert!(map.column_definitions(ServerFamily::Unknown).is_err());
    }

    #[test]
    fn without_optional_metadata_only_types_are_known() {
        let definitions = table(&[]).column_definitions(ServerFamily::Unknown).unwrap();
        assert_eq!(definitions.len(), 9);
        assert!(definitions.iter().all(|definition| definition.name.is_none()));
    }

    #[test]
    fn fields_that_speak_of_too_many_columns_are_errors() {
        for (field_type, value) in [
            (2, [45, 3, 63].as_slice()),
            (3, &[1, 2, 3, 4]),
            (4, &[0; 10]),
            (6, &[0, 0]),
            (8, &[9]),
            (8, &[254, 255, 255, 255, 255, 255, 255, 255, 255]),
            (11, &[1, 2, 3]),
        ] {
            let mut metadata = Vec::new();
            MetadataField::Unknown { field_type, value }.encode(&mut metadata);
            assert!(table(&metadata).column_definitions(ServerFamily::Unknown).is_err(), "{field_type}");
        }
    }
}
