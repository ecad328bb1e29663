//! The columns of a table as its server describes them, and the table map that says so in a log.
//!
//! ```text
//! information_schema, CREATE TABLE → ServerColumn: type, metadata, collation, members → table map with all that FULL metadata have
//! ```

use binlogz_binlog::event::table_map_metadata::{
    HighFirstBits, MetadataNumbers, MetadataStrings, StringLists,
};
use binlogz_binlog::event::{
    Bitmap, ColumnType, MetadataField, OptionalMetadata, ServerFamily, TableId, TableMapEvent, TableMapFlags,
};
use binlogz_schema::{ColumnFacts, DefinedColumn};

use super::PastError;
use super::session::{PastAnswerRow, PastSession, column, names_of};
use crate::record::kept_map;
use crate::sql::text::push_quoted;

/// The collation of bytes.
const BINARY: u64 = 63;
/// Bytes of the length of JSON, GEOMETRY and VECTOR.
const LONG_LENGTH: u8 = 4;
/// Character sets in which texts have the bytes that the server's descriptions have.
const UTF8: [&str; 3] = ["utf8mb4", "utf8mb3", "ascii"];

/// A column of a table on its server.
#[derive(Debug, Clone)]
pub(super) struct ServerColumn {
    pub(super) name: String,
    /// The type's name, in small letters: `int`.
    data_type: String,
    /// The type with its parameters, as CREATE TABLE has it: `int unsigned`.
    full_type: String,
    is_nullable: bool,
    is_visible: bool,
    /// The most bytes of a string.
    octets: u64,
    precision: u64,
    scale: u64,
    fraction_digits: u64,
    collation: Option<u64>,
    facts: ColumnFacts,
    /// The members of an ENUM or SET, in the column's character set.
    members: Vec<Vec<u8>>,
}

/// Asks for the columns of a table, which its CREATE TABLE defines so, and for the columns of its primary key.
pub(super) fn columns_of(
    session: &mut PastSession,
    (database, table): (&str, &str),
    told: &[DefinedColumn],
) -> Result<(Vec<ServerColumn>, Vec<String>), PastError> {
    let names = names_of(database, table);
    let rows = session.rows(&format!(
        "SELECT c.column_name, c.data_type, c.column_type, c.is_nullable, c.extra, c.character_octet_length, c.numeric_precision, \
         c.numeric_scale, c.datetime_precision, l.id, c.character_set_name FROM information_schema.columns c LEFT JOIN \
         information_schema.collations l ON l.collation_name = c.collation_name WHERE (c.table_schema, c.table_name) = ({names}) ORDER \
         BY c.ordinal_position"
    ))?;
    let mut columns = Vec::new();
    for row in &rows {
        let name = column(row, 0);
        let facts =
            told.iter().find(|told| told.name == name).and_then(|told| told.facts.clone()).ok_or_else(
                || PastError::Refused(format!("{database}.{table}: the definition of {name} can't be read")),
            )?;
        let members = members(session, &facts.members, &column(row, 10))?;
        let own = ServerColumn::of(row, name.clone(), facts, members);
        columns.push(
            own.map_err(|what| PastError::Refused(format!("{database}.{table}: column {name}: {what}")))?,
        );
    }
    let key = session.rows(&format!(
        "SELECT column_name FROM information_schema.statistics WHERE (table_schema, table_name) = ({names}) AND index_name = 'PRIMARY' \
         AND sub_part IS NULL ORDER BY seq_in_index"
    ))?;
    Ok((columns, key.iter().map(|row| column(row, 0)).collect()))
}

/// Members in the character set of their column.
fn members(session: &mut PastSession, members: &[String], charset: &str) -> Result<Vec<Vec<u8>>, PastError> {
    if members.is_empty() || UTF8.contains(&charset) {
        return Ok(members.iter().map(|member| member.clone().into_bytes()).collect());
    }
    let mut statement = b"SELECT ".to_vec();
    for (number, member) in members.iter().enumerate() {
        statement.extend_from_slice(if number > 0 { b", " } else { b"" });
        statement.extend_from_slice(b"CAST(CONVERT(");
        push_quoted(&mut statement, member.as_bytes());
        statement.extend_from_slice(format!(" USING {charset}) AS BINARY)").as_bytes());
    }
    let rows = session.rows(&String::from_utf8_lossy(&statement))?;
    Ok(rows.into_iter().flatten().map(Option::unwrap_or_default).collect())
}

impl ServerColumn {
    /// # Errors
    ///
    /// An answer that isn't as documented, and what was expected.
    fn of(
        row: &PastAnswerRow,
        name: String,
        facts: ColumnFacts,
        members: Vec<Vec<u8>>,
    ) -> Result<Self, String> {
        let is_nullable = match &*column(row, 3) {
            "YES" => true,
            "NO" => false,
            other => return Err(format!("is_nullable is {other:?}, expected YES or NO")),
        };
        Ok(ServerColumn {
            name,
            data_type: column(row, 1).to_lowercase(),
            full_type: column(row, 2),
            is_nullable,
            is_visible: !column(row, 4).to_uppercase().contains("INVISIBLE"),
            octets: number(row, 5)?.unwrap_or(0),
            precision: number(row, 6)?.unwrap_or(0),
            scale: number(row, 7)?.unwrap_or(0),
            fraction_digits: number(row, 8)?.unwrap_or(0),
            collation: number(row, 9)?,
            facts,
            members,
        })
    }

    /// Copies the column under another name.
    pub(super) fn called(&self, name: &str) -> Self {
        ServerColumn { name: name.to_owned(), ..self.clone() }
    }

    pub(super) fn is_generated(&self) -> bool {
        self.facts.is_generated
    }

    /// Whether the column's values are texts in a character set.
    pub(super) fn is_text(&self) -> bool {
        self.collation.is_some() && matches!(self.role(), ColumnRole::Character(_))
    }

    /// The type that a table map has for it, and its metadata; `None`: not known here.
    fn map_type(&self) -> Option<(ColumnType, Vec<u8>)> {
        let fraction = || u8::try_from(self.fraction_digits).ok().map(|digits| vec![digits]);
        let length = |bytes: u8| Some(vec![bytes]);
        let (column_type, metadata) = match &*self.data_type {
            "tinyint" => (ColumnType::TINY, Some(Vec::new())),
            "smallint" => (ColumnType::SHORT, Some(Vec::new())),
            "mediumint" => (ColumnType::INT24, Some(Vec::new())),
            "int" => (ColumnType::LONG, Some(Vec::new())),
            "bigint" => (ColumnType::LONGLONG, Some(Vec::new())),
            "year" => (ColumnType::YEAR, Some(Vec::new())),
            "date" => (ColumnType::DATE, Some(Vec::new())),
            "float" => (ColumnType::FLOAT, length(4)),
            "double" => (ColumnType::DOUBLE, length(8)),
            "decimal" => {
                let sizes = [u8::try_from(self.precision).ok()?, u8::try_from(self.scale).ok()?];
                (ColumnType::NEWDECIMAL, Some(sizes.to_vec()))
            }
            "bit" => {
                let bits = u8::try_from(self.precision).ok()?;
                (ColumnType::BIT, Some(vec![bits % 8, bits / 8]))
            }
            "time" => (ColumnType::TIME2, fraction()),
            "datetime" => (ColumnType::DATETIME2, fraction()),
            "timestamp" => (ColumnType::TIMESTAMP2, fraction()),
            "char" | "binary" => (ColumnType::STRING, Some(self.char_metadata()?)),
            "varchar" | "varbinary" => {
                (ColumnType::VARCHAR, Some(u16::try_from(self.octets).ok()?.to_le_bytes().to_vec()))
            }
            "tinytext" | "tinyblob" => (ColumnType::BLOB, length(1)),
            "text" | "blob" => (ColumnType::BLOB, length(2)),
            "mediumtext" | "mediumblob" => (ColumnType::BLOB, length(3)),
            "longtext" | "longblob" => (ColumnType::BLOB, length(4)),
            "enum" => {
                let size = if self.members.len() < 256 { 1 } else { 2 };
                (ColumnType::STRING, Some(vec![ColumnType::ENUM.0, size]))
            }
            "set" => {
                let size = u8::try_from(self.members.len().div_ceil(8)).ok()?;
                let size = if size > 4 { 8 } else { size };
                (ColumnType::STRING, Some(vec![ColumnType::SET.0, size]))
            }
            "json" => (ColumnType::JSON, length(LONG_LENGTH)),
            "vector" => (ColumnType::VECTOR, length(LONG_LENGTH)),
            _ if self.geometry_type().is_some() => (ColumnType::GEOMETRY, length(LONG_LENGTH)),
            _ => return None,
        };
        Some((column_type, metadata?))
    }

    /// A CHAR's type byte hides the upper bits of its length; see `binlogz_binlog::row::ColumnKind`.
    fn char_metadata(&self) -> Option<Vec<u8>> {
        let length = u16::try_from(self.octets).ok()?;
        let upper = u8::try_from((length & 0x300) >> 4).ok()?;
        Some(vec![ColumnType::STRING.0 ^ upper, length as u8])
    }

    /// The number of a geometry's type.
    fn geometry_type(&self) -> Option<u64> {
        Some(match &*self.data_type {
            "geometry" => 0,
            "point" => 1,
            "linestring" => 2,
            "polygon" => 3,
            "multipoint" => 4,
            "multilinestring" => 5,
            "multipolygon" => 6,
            "geomcollection" | "geometrycollection" => 7,
            _ => return None,
        })
    }

    fn role(&self) -> ColumnRole {
        match &*self.data_type {
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float" | "double" => {
                ColumnRole::Number(self.facts.is_unsigned)
            }
            "year" => ColumnRole::Number(true),
            "enum" => ColumnRole::Enum,
            "set" => ColumnRole::Set,
            "char" | "varchar" | "binary" | "varbinary" | "vector" => {
                ColumnRole::Character(self.collation.unwrap_or(BINARY))
            }
            kind if kind.ends_with("text") || kind.ends_with("blob") => {
                ColumnRole::Character(self.collation.unwrap_or(BINARY))
            }
            _ => ColumnRole::Other,
        }
    }

    /// The dimensions of a VECTOR.
    fn dimensions(&self) -> Option<u64> {
        let inside = self.full_type.strip_prefix("vector(")?.strip_suffix(')')?;
        inside.parse().ok()
    }
}

/// The optional metadata that a table map has of a column, beside its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnRole {
    /// A number; whether it is unsigned.
    Number(bool),
    /// A text, with the number of its collation.
    Character(u64),
    Enum,
    Set,
    Other,
}

/// A number of an answer; `None`: NULL.
fn number(row: &PastAnswerRow, index: usize) -> Result<Option<u64>, String> {
    let Some(bytes) = row.get(index).and_then(Option::as_deref) else { return Ok(None) };
    let text = String::from_utf8_lossy(bytes);
    text.parse().map(Some).map_err(|_| format!("found {text:?} in information_schema, expected a number"))
}

/// The map of a table of these columns, as records keep it. `key` are the columns of its primary key, by their places.
///
/// # Errors
///
/// A column whose type isn't known here.
pub(super) fn map_of(
    (database, table): (&str, &str),
    columns: &[ServerColumn],
    key: &[usize],
) -> Result<Vec<u8>, PastError> {
    let mut types = Vec::new();
    let mut column_metadata = Vec::new();
    for column in columns {
        let (column_type, metadata) = column.map_type().ok_or_else(|| {
            PastError::Refused(format!(
                "{database}.{table}: the column {} has the type {}, expected one that MySQL 9.7 has",
                column.name, column.full_type
            ))
        })?;
        types.push(column_type.0);
        column_metadata.extend(metadata);
    }
    let mut nulls = vec![0_u8; columns.len().div_ceil(8)];
    for (index, _) in columns.iter().enumerate().filter(|(_, column)| column.is_nullable) {
        if let Some(byte) = nulls.get_mut(index / 8) {
            *byte |= 1 << (index % 8);
        }
    }
    let optional = optional_metadata(columns, key);
    let map = TableMapEvent {
        table_id: TableId(0),
        flags: TableMapFlags::BIT_LEN_EXACT,
        database: database.as_bytes(),
        table: table.as_bytes(),
        column_types: &types,
        column_metadata: &column_metadata,
        null_bitmap: Bitmap(&nulls),
        optional_metadata: OptionalMetadata(&optional),
    };
    kept_map(&map, ServerFamily::Mysql)
        .map_err(|error| PastError::Refused(format!("{database}.{table}: {error}")))
}

fn optional_metadata(columns: &[ServerColumn], key: &[usize]) -> Vec<u8> {
    let roles = || columns.iter().map(|column| (column.role(), column));
    let mut values: [Vec<u8>; 10] = Default::default();
    let [signs, charsets, names, sets, enums, geometries, primary, member_charsets, visible, dimensions] =
        &mut values;
    let numbers = roles().filter_map(|(role, _)| match role {
        ColumnRole::Number(is_unsigned) => Some(is_unsigned),
        _ => None,
    });
    HighFirstBits::encode(numbers, signs);
    let collations = roles().filter_map(|(role, _)| match role {
        ColumnRole::Character(collation) => Some(collation),
        _ => None,
    });
    MetadataNumbers::encode(collations, charsets);
    MetadataStrings::encode(columns.iter().map(|column| column.name.as_bytes()), names);
    for (role, column) in roles() {
        let members: Vec<&[u8]> = column.members.iter().map(Vec::as_slice).collect();
        match role {
            ColumnRole::Set => StringLists::encode_list(&members, sets),
            ColumnRole::Enum => StringLists::encode_list(&members, enums),
            ColumnRole::Number(_) | ColumnRole::Character(_) | ColumnRole::Other => continue,
        }
        MetadataNumbers::encode([column.collation.unwrap_or(BINARY)], member_charsets);
    }
    MetadataNumbers::encode(columns.iter().filter_map(ServerColumn::geometry_type), geometries);
    MetadataNumbers::encode(key.iter().map(|index| *index as u64), primary);
    HighFirstBits::encode(columns.iter().map(|column| column.is_visible), visible);
    MetadataNumbers::encode(columns.iter().filter_map(ServerColumn::dimensions), dimensions);
    let fields = [
        MetadataField::Signedness(HighFirstBits(signs)),
        MetadataField::ColumnCharset(MetadataNumbers(charsets)),
        MetadataField::ColumnName(MetadataStrings(names)),
        MetadataField::SetStrValue(StringLists(sets)),
        MetadataField::EnumStrValue(StringLists(enums)),
        MetadataField::GeometryType(MetadataNumbers(geometries)),
        MetadataField::SimplePrimaryKey(MetadataNumbers(primary)),
        MetadataField::EnumAndSetColumnCharset(MetadataNumbers(member_charsets)),
        MetadataField::ColumnVisibility(HighFirstBits(visible)),
        MetadataField::VectorDimensionality(MetadataNumbers(dimensions)),
    ];
    let mut optional = Vec::new();
    // Each has a type and a length before its value.
    const EMPTY: usize = 2;
    for field in fields {
        let begin = optional.len();
        field.encode(&mut optional);
        if optional.len() == begin + EMPTY {
            optional.truncate(begin);
        }
    }
    optional
}
