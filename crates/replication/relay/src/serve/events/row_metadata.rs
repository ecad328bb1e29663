//! The optional metadata of table maps, as a client is to have it: names of columns, members of ENUM, the primary key.
//!
//! ```text
//! as logged (FULL)        minimal              none
//! 1 signedness            1 signedness
//! 2 default charset       2 default charset
//! 7 geometry types        7 geometry types,    7 geometry types,
//! 4 names of columns        then zeros           then zeros
//! 8 primary key …
//! ```
//!
//! A table map keeps its size. What is left out becomes zeros after the geometry types (field 7): every reader takes as many
//! of these as there are geometry columns, and none checks that there are no more. A field with a number of its own would end
//! readers that don't know it, as column visibility (12) of MySQL 8.0.23 ends mysql-binlog-connector-java 0.20.

use std::fmt;

use binlogz_binlog::event::{MetadataField, OptionalMetadata, TableMapEvent};

use super::profiles::Treatment;

/// The number of the field with geometry types.
const GEOMETRY_TYPES: u8 = 7;

/// How much of the optional metadata an account is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowMetadata {
    /// All that the source logged.
    AsReceived,
    /// Nothing but the types of geometry columns and the dimensions of vectors.
    None,
    /// As much as a source logs with `binlog_row_metadata = MINIMAL`.
    Minimal,
    /// All. The dump ends before rows that were logged without names of columns.
    Full,
}

/// A word that is no [`RowMetadata`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRowMetadata(String);

impl fmt::Display for UnknownRowMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, expected as received, none, minimal or full", self.0)
    }
}

impl std::error::Error for UnknownRowMetadata {}

impl std::str::FromStr for RowMetadata {
    type Err = UnknownRowMetadata;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "as received" => Ok(RowMetadata::AsReceived),
            "none" => Ok(RowMetadata::None),
            "minimal" => Ok(RowMetadata::Minimal),
            "full" => Ok(RowMetadata::Full),
            _ => Err(UnknownRowMetadata(text.to_owned())),
        }
    }
}

impl RowMetadata {
    /// The treatment of the metadata of table maps.
    pub(crate) fn treatment(self) -> Treatment {
        match self {
            RowMetadata::AsReceived => Treatment::Passed,
            RowMetadata::None => Treatment::LeftOut,
            RowMetadata::Minimal => Treatment::Translated,
            RowMetadata::Full => Treatment::Refused,
        }
    }
}

/// The body of a table map, of the same size, with the metadata that a client gets; `None`: it needs no change.
///
/// # Errors
///
/// Why the client can't have it, after "the table map …".
pub(super) fn fitted_body(
    body: &[u8],
    map: &TableMapEvent<'_>,
    treatment: Treatment,
) -> Result<Option<Vec<u8>>, String> {
    let metadata = map.optional_metadata;
    let fitted = match treatment {
        Treatment::Passed => return Ok(None),
        Treatment::LeftOut => fields(metadata, is_needed)?,
        Treatment::Translated => fields(metadata, is_minimal)?,
        Treatment::Refused => return check_names(metadata).map(|()| None),
    };
    let fitted = fitted.ok_or_else(|| {
        format!("has {} bytes of optional metadata that can't be left out", metadata.0.len())
    })?;
    if fitted == metadata.0 {
        return Ok(None);
    }
    let front = body.len().checked_sub(metadata.0.len()).and_then(|size| body.get(..size));
    Ok(front.map(|front| [front, &fitted].concat()))
}

/// Some of these fields, in as many bytes; `None`: that is impossible, for what no server writes.
fn fields(
    metadata: OptionalMetadata<'_>,
    is_wanted: fn(&MetadataField<'_>) -> bool,
) -> Result<Option<Vec<u8>>, String> {
    // Those before and after the geometry types.
    let mut sides = [Vec::new(), Vec::new()];
    let mut geometry: Option<&[u8]> = None;
    for field in metadata.iter() {
        let field = field.map_err(unreadable)?;
        let [before, after] = &mut sides;
        match field {
            MetadataField::GeometryType(types) => geometry = Some(types.0),
            field if is_wanted(&field) => field.encode(if geometry.is_some() { after } else { before }),
            _ => {}
        }
    }
    let [before, after] = sides;
    let Some(size) = metadata.0.len().checked_sub(before.len() + after.len()) else { return Ok(None) };
    Ok(geometry_types(geometry.unwrap_or_default(), size).map(|types| [before, types, after].concat()))
}

/// Whether replicas need the field: 9.7.4 takes no rows of a VECTOR whose dimensions it isn't told.
fn is_needed(field: &MetadataField<'_>) -> bool {
    matches!(field, MetadataField::GeometryType(_) | MetadataField::VectorDimensionality(_))
}

/// Whether a source writes the field with `binlog_row_metadata = MINIMAL` too, as 9.7.4 does.
fn is_minimal(field: &MetadataField<'_>) -> bool {
    matches!(
        field,
        MetadataField::Signedness(_)
            | MetadataField::DefaultCharset(_)
            | MetadataField::ColumnCharset(_)
            | MetadataField::GeometryType(_)
            | MetadataField::VectorDimensionality(_)
    )
}

/// A field of this size, its head included, with these geometry types and zeros after them; without either if the size is
/// 0. `None`: that is impossible.
fn geometry_types(types: &[u8], size: usize) -> Option<Vec<u8>> {
    if size == 0 && types.is_empty() {
        return Some(Vec::new());
    }
    // A length has 1, 3 or 4 bytes. A longer one than it needs is read as well.
    let head = match size {
        2..=252 => vec![GEOMETRY_TYPES, u8::try_from(size - 2).ok()?],
        253..=0x1_0003 => {
            let [low, high] = u16::try_from(size - 4).ok()?.to_le_bytes();
            vec![GEOMETRY_TYPES, 0xfc, low, high]
        }
        0x1_0004..=0x100_0004 => {
            let [low, middle, high, _] = u32::try_from(size - 5).ok()?.to_le_bytes();
            vec![GEOMETRY_TYPES, 0xfd, low, middle, high]
        }
        _ => return None,
    };
    let mut field = [&head, types].concat();
    if field.len() > size {
        return None;
    }
    field.resize(size, 0);
    Some(field)
}

fn check_names(metadata: OptionalMetadata<'_>) -> Result<(), String> {
    for field in metadata.iter() {
        if matches!(field.map_err(unreadable)?, MetadataField::ColumnName(_)) {
            return Ok(());
        }
    }
    Err("has no names of columns: the source did not log it with binlog_row_metadata = FULL".into())
}

fn unreadable(error: binlogz_binlog::Error) -> String {
    format!("has optional metadata that can't be read: {error}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_binlog::event::{Bitmap, ColumnType, ServerFamily, TableId, TableMapFlags};
    use binlogz_testkit::random::Random;

    use super::*;

    const POST_HEADER: u8 = 8;

    /// Types of columns, with the metadata that each needs.
    const TYPES: [(ColumnType, &[u8]); 16] = [
        (ColumnType::TINY, &[]),
        (ColumnType::LONG, &[]),
        (ColumnType::LONGLONG, &[]),
        (ColumnType::NEWDECIMAL, &[10, 2]),
        (ColumnType::DOUBLE, &[8]),
        (ColumnType::YEAR, &[]),
        (ColumnType::DATETIME2, &[6]),
        (ColumnType::BIT, &[1, 1]),
        (ColumnType::VARCHAR, &[40, 0]),
        (ColumnType::STRING, &[254, 20]),
        (ColumnType::STRING, &[247, 1]),
        (ColumnType::STRING, &[248, 1]),
        (ColumnType::BLOB, &[2]),
        (ColumnType::JSON, &[4]),
        (ColumnType::GEOMETRY, &[4]),
        (ColumnType::VECTOR, &[4]),
    ];

    struct Table {
        types: Vec<u8>,
        metadata: Vec<u8>,
        nulls: Vec<u8>,
        full: Vec<u8>,
    }

    impl Table {
        fn random(random: &mut Random) -> Table {
            let most = if random.below(20) == 0 { 900 } else { 30 };
            let count = 1 + random.below(most);
            let columns: Vec<_> = (0..count).map(|_| TYPES[random.below(16)]).collect();
            let has = |wanted: ColumnType| columns.iter().filter(|(kind, _)| *kind == wanted).count();
            let members =
                |wanted: u8| columns.iter().filter(|(_, rest)| rest.first() == Some(&wanted)).count();
            let mut full = Vec::new();
            let field = |number: u8, value: &[u8]| {
                let mut bytes = vec![];
                MetadataField::Unknown { field_type: number, value }.encode(&mut bytes);
                bytes
            };
            let numeric =
                columns.iter().filter(|(kind, _)| matches!(kind.0, 1 | 3 | 8 | 246 | 5 | 13)).count();
            if numeric > 0 {
                full.extend(field(1, &vec![0xa5; numeric.div_ceil(8)]));
            }
            if has(ColumnType::VARCHAR) > 0 {
                full.extend(field(2, &[0xfc, 255, 0]));
            }
            if has(ColumnType::GEOMETRY) > 0 {
                full.extend(field(7, &vec![1; has(ColumnType::GEOMETRY)]));
            }
            if has(ColumnType::VECTOR) > 0 {
                full.extend(field(13, &vec![3; has(ColumnType::VECTOR)]));
            }
            let name = vec![b'n'; 1 + random.below(64)];
            let names: Vec<u8> = (0..count).flat_map(|_| [&[name.len() as u8][..], &name].concat()).collect();
            full.extend(field(4, &names));
            for (number, real) in [(5, 248), (6, 247)] {
                if members(real) > 0 {
                    full.extend(field(number, &[2, 1, b'a', 1, b'b'].repeat(members(real))));
                }
            }
            full.extend(field(8, &[0]));
            if random.below(2) == 0 {
                full.extend(field(12, &vec![0xff; count.div_ceil(8)]));
            }
            if random.below(8) == 0 {
                full.extend(field(99, &[1, 2, 3]));
            }
            Table {
                types: columns.iter().map(|(kind, _)| kind.0).collect(),
                metadata: columns.iter().flat_map(|(_, rest)| rest.iter().copied()).collect(),
                nulls: vec![0; count.div_ceil(8)],
                full,
            }
        }

        fn map<'a>(&'a self, optional: &'a [u8]) -> TableMapEvent<'a> {
            TableMapEvent {
                table_id: TableId(7),
                flags: TableMapFlags::BIT_LEN_EXACT,
                database: b"shop",
                table: b"t",
                column_types: &self.types,
                column_metadata: &self.metadata,
                null_bitmap: Bitmap(&self.nulls),
                optional_metadata: OptionalMetadata(optional),
            }
        }
    }

    fn definitions(map: &TableMapEvent<'_>) -> Vec<String> {
        let defined = map.column_definitions(ServerFamily::Mysql).unwrap();
        defined.iter().map(|column| format!("{column:?}")).collect()
    }

    fn fitted(map: &TableMapEvent<'_>, treatment: Treatment) -> Result<Vec<u8>, String> {
        let body = map.encode(POST_HEADER).unwrap();
        let fitted = fitted_body(&body, map, treatment)?.unwrap_or_else(|| body.clone());
        assert_eq!(fitted.len(), body.len());
        Ok(fitted)
    }

    #[test]
    fn a_table_map_keeps_its_size_and_its_columns_whatever_is_left_out() {
        let seed = binlogz_testkit::mutate::seed();
        let random = &mut Random::new(seed);
        for _ in 0..400 {
            let table = Table::random(random);
            let map = table.map(&table.full);
            let full = map.encode(POST_HEADER).unwrap();
            assert_eq!(fitted(&map, Treatment::Passed), Ok(full.clone()));
            assert_eq!(fitted(&map, Treatment::Refused), Ok(full.clone()));
            for (treatment, expected) in [
                (Treatment::Translated, &only(&table.full, is_minimal)),
                (Treatment::LeftOut, &only(&table.full, is_needed)),
            ] {
                let body = fitted(&map, treatment).unwrap();
                let read = TableMapEvent::decode(&body, POST_HEADER).unwrap();
                assert_eq!(
                    definitions(&read),
                    definitions(&table.map(expected)),
                    "{treatment:?}, seed {seed}"
                );
                let again = fitted_body(&body, &read, treatment).unwrap();
                assert_eq!(again, None, "what was fitted fits");
            }
        }
    }

    /// Some of these fields.
    fn only(full: &[u8], is_wanted: fn(&MetadataField<'_>) -> bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let fields = OptionalMetadata(full).iter().map(Result::unwrap);
        fields.filter(is_wanted).for_each(|field| field.encode(&mut bytes));
        bytes
    }

    #[test]
    fn every_size_can_be_filled() {
        for size in (2..600).chain(65_000..66_200) {
            let field = geometry_types(&[], size).unwrap();
            assert_eq!(field.len(), size);
            let fields: Vec<_> = OptionalMetadata(&field).iter().collect::<Result<_, _>>().unwrap();
            assert!(matches!(fields[..], [MetadataField::GeometryType(_)]), "{size}: {fields:?}");
        }
        assert_eq!(geometry_types(&[], 0), Some(Vec::new()));
        assert_eq!((geometry_types(&[], 1), geometry_types(&[1, 2], 3)), (None, None));
    }

    #[test]
    fn metadata_without_names_is_not_full_and_cut_metadata_is_refused() {
        let table = Table { types: vec![ColumnType::LONG.0], metadata: vec![], nulls: vec![0], full: vec![] };
        let error = fitted(&table.map(&[1, 1, 0]), Treatment::Refused).unwrap_err();
        assert!(error.starts_with("has no names of columns"), "{error}");
        for treatment in [Treatment::Refused, Treatment::Translated, Treatment::LeftOut] {
            let error = fitted(&table.map(&[4, 9, 1]), treatment).unwrap_err();
            assert!(error.starts_with("has optional metadata that can't be read"), "{error}");
        }
        assert!("most".parse::<RowMetadata>().is_err());
    }
}
