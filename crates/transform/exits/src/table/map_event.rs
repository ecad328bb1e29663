//! The table map of a table that leaves: without labels of masked columns, and without metadata that we can't read.
//!
//! The labels of an ENUM or SET may be what has to be hidden. Their numbers take their place; servers don't read them.
//! Where a reader comes next that has to know columns, the map gets the names, signs, collations, members and key that a schema tells.

use binlogz_binlog::Result;
use binlogz_binlog::event::table_map_metadata::{
    DefaultCharset, HighFirstBits, MetadataNumbers, MetadataStrings, StringLists,
};
use binlogz_binlog::event::{ColumnType, MetadataField, OptionalMetadata, ServerFamily, TableMapEvent};
use binlogz_binlog::row::{ColumnClass, ColumnSchema, TableSchema};
use binlogz_schema::CompletedTable;

use super::plan::TablePlan;

/// utf8mb4_0900_ai_ci: that of members that a schema names, and of texts whose collation it doesn't tell.
const UTF8MB4: u64 = 255;
/// That of binary strings, and of MariaDB's geometries.
const BINARY: u64 = 63;

/// What a map says beside its types.
pub(crate) struct MapContent<'t> {
    /// `None`: the table leaves as it is.
    pub(crate) plan: Option<&'t TablePlan>,
    /// The table with all that is known of it; `None`: nothing is added.
    pub(crate) completed: Option<&'t CompletedTable>,
    /// The family of the server that wrote the map.
    pub(crate) family: ServerFamily,
}

/// The body of a map.
///
/// # Errors
///
/// Metadata that can't be read.
pub(crate) fn rewritten(
    map: &TableMapEvent<'_>,
    content: &MapContent<'_>,
    post_header_length: u8,
) -> Result<Vec<u8>> {
    let mut metadata = Vec::new();
    let mut has_names = false;
    let mut has_key = false;
    let mut has_signs = false;
    let mut has_collations = false;
    let mut missing = vec![ColumnType::ENUM, ColumnType::SET];
    for field in map.optional_metadata.iter() {
        let field = field?;
        match field {
            MetadataField::EnumStrValue(lists) => {
                missing.retain(|other| *other != ColumnType::ENUM);
                put_members(&lists, ColumnType::ENUM, content, &mut metadata)?;
            }
            MetadataField::SetStrValue(lists) => {
                missing.retain(|other| *other != ColumnType::SET);
                put_members(&lists, ColumnType::SET, content, &mut metadata)?;
            }
            // Nobody here knows what it holds.
            MetadataField::Unknown { .. } if content.plan.is_some() => {}
            other => {
                has_names |= matches!(other, MetadataField::ColumnName(_));
                has_key |= matches!(
                    other,
                    MetadataField::SimplePrimaryKey(_) | MetadataField::PrimaryKeyWithPrefix(_)
                );
                has_signs |= matches!(other, MetadataField::Signedness(_));
                has_collations |=
                    matches!(other, MetadataField::DefaultCharset(_) | MetadataField::ColumnCharset(_));
                other.encode(&mut metadata);
            }
        }
    }
    if let Some(completed) = content.completed {
        let (schema, key) = (&*completed.schema, &*completed.key);
        if !has_names {
            put_names(schema, &mut metadata);
        }
        if !has_signs {
            put_signs(schema, &mut metadata);
        }
        if !has_collations && completed.is_told && completed.problem.is_none() {
            put_collations(schema, content.family, &mut metadata);
        }
        if !has_key && !key.is_empty() {
            let mut value = Vec::new();
            MetadataNumbers::encode(key.iter().map(|&index| index as u64), &mut value);
            MetadataField::SimplePrimaryKey(MetadataNumbers(&value)).encode(&mut metadata);
        }
        let mut added = false;
        for column_type in missing {
            added |= put_known_members(schema, column_type, content.plan, &mut metadata);
        }
        if added {
            let mut value = Vec::new();
            DefaultCharset::encode(UTF8MB4, [], &mut value);
            MetadataField::EnumAndSetDefaultCharset(DefaultCharset(&value)).encode(&mut metadata);
        }
    }
    TableMapEvent { optional_metadata: OptionalMetadata(&metadata), ..*map }.encode(post_header_length)
}

/// The indexes of the columns of a type.
fn columns_of(schema: &TableSchema, column_type: ColumnType) -> impl Iterator<Item = usize> {
    let columns = schema.columns().iter().enumerate();
    columns.filter(move |(_, column)| column.column_type == column_type).map(|(index, _)| index)
}

fn put_members(
    lists: &StringLists<'_>,
    column_type: ColumnType,
    content: &MapContent<'_>,
    metadata: &mut Vec<u8>,
) -> Result<()> {
    let mut value = Vec::new();
    let changed: Vec<bool> = match content.plan {
        Some(plan) => columns_of(&plan.schema, column_type).map(|index| plan.is_changed(index)).collect(),
        None => Vec::new(),
    };
    for (place, list) in lists.iter().enumerate() {
        let list = list?;
        let members = list.iter().collect::<Result<Vec<_>>>()?;
        put_list(&members, changed.get(place).copied().unwrap_or(content.plan.is_some()), &mut value);
    }
    put_field(column_type, &value, metadata);
    Ok(())
}

/// A list of members, or as many numbers.
fn put_list(members: &[&[u8]], is_changed: bool, value: &mut Vec<u8>) {
    if !is_changed {
        StringLists::encode_list(members, value);
        return;
    }
    let numbers: Vec<String> = (1..=members.len()).map(|number| number.to_string()).collect();
    let numbers: Vec<&[u8]> = numbers.iter().map(String::as_bytes).collect();
    StringLists::encode_list(&numbers, value);
}

fn put_field(column_type: ColumnType, value: &[u8], metadata: &mut Vec<u8>) {
    let lists = StringLists(value);
    match column_type {
        ColumnType::SET => MetadataField::SetStrValue(lists).encode(metadata),
        _ => MetadataField::EnumStrValue(lists).encode(metadata),
    }
}

fn put_names(schema: &TableSchema, metadata: &mut Vec<u8>) {
    let names: Option<Vec<&[u8]>> = schema.columns().iter().map(|column| column.name.as_deref()).collect();
    // Servers write a length of one byte: a name has at most 64 characters, 256 bytes.
    if let Some(names) = names.filter(|names| names.iter().all(|name| name.len() <= 250)) {
        let mut value = Vec::new();
        MetadataStrings::encode(names, &mut value);
        MetadataField::ColumnName(MetadataStrings(&value)).encode(metadata);
    }
}

/// Which numbers are unsigned, if that is known of any.
fn put_signs(schema: &TableSchema, metadata: &mut Vec<u8>) {
    let numbers = || schema.columns().iter().filter(|column| column.column_type.is_numeric());
    if numbers().any(|column| column.unsigned.is_some()) {
        let mut value = Vec::new();
        HighFirstBits::encode(numbers().map(|column| column.unsigned == Some(true)), &mut value);
        MetadataField::Signedness(HighFirstBits(&value)).encode(metadata);
    }
}

/// The collations of strings in a table that is known. Servers name those of all, or of none.
fn put_collations(schema: &TableSchema, family: ServerFamily, metadata: &mut Vec<u8>) {
    let collations = schema.columns().iter().filter_map(|column| collation(column, family));
    let mut value = Vec::new();
    MetadataNumbers::encode(collations, &mut value);
    if !value.is_empty() {
        MetadataField::ColumnCharset(MetadataNumbers(&value)).encode(metadata);
    }
}

/// The collation of a column that counts as a string in the map of a server of this family.
fn collation(column: &ColumnSchema, family: ServerFamily) -> Option<u64> {
    match column.kind.class() {
        ColumnClass::String => Some(column.collation.unwrap_or(UTF8MB4)),
        ColumnClass::Vector => Some(BINARY),
        ColumnClass::Geometry => (family == ServerFamily::Mariadb).then_some(BINARY),
        ColumnClass::Integer | ColumnClass::Decimal | ColumnClass::Float | ColumnClass::Bit => None,
        ColumnClass::Year | ColumnClass::Date | ColumnClass::Time(_) => None,
        ColumnClass::DateTime(_) | ColumnClass::Timestamp(_) => None,
        ColumnClass::Member | ColumnClass::Json | ColumnClass::Hidden => None,
    }
}

/// The members of all columns of a type, if all are known; whether there are any.
fn put_known_members(
    schema: &TableSchema,
    column_type: ColumnType,
    plan: Option<&TablePlan>,
    metadata: &mut Vec<u8>,
) -> bool {
    let mut value = Vec::new();
    for index in columns_of(schema, column_type) {
        let members = schema.columns().get(index).and_then(|column| column.members.as_deref());
        let Some(members) = members else { return false };
        let members: Vec<&[u8]> = members.iter().map(AsRef::as_ref).collect();
        put_list(&members, plan.is_some_and(|plan| plan.is_changed(index)), &mut value);
    }
    if !value.is_empty() {
        put_field(column_type, &value, metadata);
    }
    !value.is_empty()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use binlogz_binlog::event::{Bitmap, TableId, TableMapFlags};

    use super::*;

    /// A map of BIGINT, INT, VARCHAR(40), VARBINARY(40) and GEOMETRY, as servers before 8.0.1 write it.
    fn old_map(optional: &[u8]) -> TableMapEvent<'_> {
        TableMapEvent {
            table_id: TableId(1),
            flags: TableMapFlags::default(),
            database: b"d",
            table: b"t",
            column_types: &[8, 3, 15, 15, 255],
            column_metadata: &[40, 0, 40, 0, 4],
            null_bitmap: Bitmap(&[0]),
            optional_metadata: OptionalMetadata(optional),
        }
    }

    /// What a reader learns of the columns from the map that leaves: signs and collations.
    fn learnt(
        optional: &[u8],
        problem: Option<&str>,
        family: ServerFamily,
    ) -> (Vec<Option<bool>>, Vec<Option<u64>>) {
        let map = old_map(optional);
        let schema = TableSchema::new(&map, family).unwrap().completed(|index, column| {
            column.name = Some(format!("c{index}").into_bytes().into());
            if column.column_type.is_numeric() && column.unsigned.is_none() {
                column.unsigned = Some(index == 0);
            }
            if index == 3 {
                column.collation.get_or_insert(BINARY);
            }
        });
        let completed = CompletedTable {
            schema: Arc::new(schema),
            key: vec![0],
            keys: Vec::new(),
            problem: problem.map(str::to_owned),
            is_told: true,
        };
        let content = MapContent { plan: None, completed: Some(&completed), family };
        let body = rewritten(&map, &content, 8).unwrap();
        let read = TableSchema::new(&TableMapEvent::decode(&body, 8).unwrap(), family).unwrap();
        let columns = read.columns().iter();
        columns.map(|column| (column.unsigned, column.collation)).unzip()
    }

    #[test]
    fn a_map_gets_the_signs_and_collations_that_a_schema_tells() {
        let signs = vec![Some(true), Some(false), None, None, None];
        for family in [ServerFamily::Mysql, ServerFamily::Mariadb] {
            let collations = vec![None, None, Some(UTF8MB4), Some(BINARY), None];
            assert_eq!(learnt(b"", None, family), (signs.clone(), collations), "{family:?}");
        }
        // Its own are left as they are.
        let own = b"\x01\x01\x40\x03\x02\x08\x3f";
        let (own_signs, own_collations) = learnt(own, None, ServerFamily::Mysql);
        assert_eq!(own_signs[..2], [Some(false), Some(true)]);
        assert_eq!(own_collations[2..4], [Some(8), Some(BINARY)]);
        // It isn't known which strings are bytes.
        let (known, unknown) = learnt(b"", Some("not all is known"), ServerFamily::Mysql);
        assert_eq!((known, unknown), (signs, vec![None; 5]));
    }
}
