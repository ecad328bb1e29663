//! The table map of a table that leaves: without labels of masked columns, and without metadata that we can't read.
//!
//! The labels of an ENUM or SET may be what has to be hidden. Their numbers take their place; servers don't read them.
//! Where a reader comes next that has to know columns, the map gets the names, members and key that a schema tells.

use binlogz_binlog::Result;
use binlogz_binlog::event::table_map_metadata::{
    DefaultCharset, MetadataNumbers, MetadataStrings, StringLists,
};
use binlogz_binlog::event::{ColumnType, MetadataField, OptionalMetadata, TableMapEvent};
use binlogz_binlog::row::TableSchema;

use super::plan::TablePlan;

/// utf8mb4_0900_ai_ci: that of members that a schema names.
const UTF8MB4: u64 = 255;

/// What a map says beside its types.
pub(crate) struct MapContent<'t> {
    /// `None`: the table leaves as it is.
    pub(crate) plan: Option<&'t TablePlan>,
    /// The table with all that is known of it, and its key; `None`: nothing is added.
    pub(crate) completed: Option<(&'t TableSchema, &'t [usize])>,
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
                other.encode(&mut metadata);
            }
        }
    }
    if let Some((schema, key)) = content.completed {
        if !has_names {
            put_names(schema, &mut metadata);
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
