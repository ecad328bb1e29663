//! `--print-table-metadata`: a table map's columns and primary key as comments.
//!
//! ```text
//! # Columns(`id` INT NOT NULL,
//! #         `name` VARCHAR(20) CHARSET utf8mb4 COLLATE utf8mb4_0900_ai_ci)
//! # Primary Key(id)
//! ```

use binlogz_binlog::charset::{Charset, collation_name};
use binlogz_binlog::event::PrimaryKeyPart;
use binlogz_binlog::row::{ColumnKind, ColumnSchema, TableSchema};

use crate::mysqlbinlog::write::quote::{push_identifier, push_quoted};
use crate::number::push_unsigned;

/// The collation of binary strings.
const BINARY: u64 = 63;

/// The server's name for the primary key that it generated: the first column, named or not in the log.
const GENERATED_KEY: &[u8] = b"my_row_id";

/// Appends the lines of a table. `has_generated_key`: its first column is a generated invisible primary key.
pub(crate) fn push_columns(out: &mut Vec<u8>, schema: &TableSchema, has_generated_key: bool) {
    out.extend_from_slice(b"# Columns(");
    for (index, column) in schema.columns().iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b",\n#         ");
        }
        let generated = has_generated_key && index == 0;
        if let Some(name) = column.name.as_deref().or(generated.then_some(GENERATED_KEY)) {
            push_identifier(out, name);
            out.push(b' ');
        }
        push_type(out, column);
        if column.unsigned == Some(true) && column.kind != ColumnKind::Year {
            out.extend_from_slice(b" UNSIGNED");
        }
        if !column.nullable {
            out.extend_from_slice(b" NOT NULL");
        }
        push_members(out, column);
        push_collation(out, column);
        if generated {
            out.extend_from_slice(b" INVISIBLE AUTO_INCREMENT");
        } else if column.visible == Some(false) {
            out.extend_from_slice(b" INVISIBLE");
        }
    }
    out.extend_from_slice(b")\n");
    if has_generated_key {
        out.extend_from_slice(b"# Primary Key(");
        out.extend_from_slice(GENERATED_KEY);
        out.extend_from_slice(b")\n");
    } else {
        push_primary_key(out, schema);
    }
}

fn push_primary_key(out: &mut Vec<u8>, schema: &TableSchema) {
    let mut parts: Vec<(PrimaryKeyPart, usize)> = schema
        .columns()
        .iter()
        .enumerate()
        .filter_map(|(index, column)| Some((column.primary_key?, index)))
        .collect();
    if parts.is_empty() {
        return;
    }
    parts.sort_by_key(|(part, _)| part.place);
    out.extend_from_slice(b"# Primary Key(");
    for (count, (part, index)) in parts.into_iter().enumerate() {
        if count > 0 {
            out.extend_from_slice(b", ");
        }
        match schema.columns().get(index).and_then(|column| column.name.as_deref()) {
            Some(name) => out.extend_from_slice(name),
            None => push_unsigned(out, index as u64),
        }
        if part.prefix != 0 {
            out.push(b'(');
            push_unsigned(out, part.prefix);
            out.push(b')');
        }
    }
    out.extend_from_slice(b")\n");
}

fn push_collation(out: &mut Vec<u8>, column: &ColumnSchema) {
    let Some(id) = column.collation else { return };
    let has_members = matches!(column.kind, ColumnKind::Enum { .. } | ColumnKind::Set { .. });
    if (id == BINARY && !has_members) || matches!(column.kind, ColumnKind::Vector { .. }) {
        return;
    }
    if let (Some(charset), Some(collation)) = (Charset::of_collation(id), collation_name(id)) {
        for text in [" CHARSET ", charset.name(), " COLLATE ", collation] {
            out.extend_from_slice(text.as_bytes());
        }
    }
}

fn push_type(out: &mut Vec<u8>, column: &ColumnSchema) {
    let is_binary = column.collation == Some(BINARY) || column.collation.is_none();
    let bytes_per_character = column.collation.filter(|_| !is_binary).map_or(1, bytes_per_character);
    let characters = |bytes: u64| bytes / bytes_per_character;
    let (name, numbers): (&str, [Option<u64>; 2]) = match column.kind {
        ColumnKind::TinyInt { .. } => ("TINYINT", [None; 2]),
        ColumnKind::SmallInt { .. } => ("SMALLINT", [None; 2]),
        ColumnKind::MediumInt { .. } => ("MEDIUMINT", [None; 2]),
        ColumnKind::Int { .. } => ("INT", [None; 2]),
        ColumnKind::BigInt { .. } => ("BIGINT", [None; 2]),
        ColumnKind::Decimal(format) => {
            ("DECIMAL", [Some(format.precision().into()), Some(format.scale().into())])
        }
        ColumnKind::Float => ("FLOAT", [None; 2]),
        ColumnKind::Double => ("DOUBLE", [None; 2]),
        ColumnKind::Bit { bits } => ("BIT", [Some(bits.into()), None]),
        ColumnKind::Year => ("YEAR", [None; 2]),
        ColumnKind::Date => ("DATE", [None; 2]),
        ColumnKind::Time { fraction_digits } => ("TIME", [fraction(fraction_digits), None]),
        ColumnKind::DateTime { fraction_digits } => ("DATETIME", [fraction(fraction_digits), None]),
        ColumnKind::Timestamp { fraction_digits } => ("TIMESTAMP", [fraction(fraction_digits), None]),
        ColumnKind::OldTime => ("TIME", [None; 2]),
        ColumnKind::OldDateTime => ("DATETIME", [None; 2]),
        ColumnKind::OldTimestamp => ("TIMESTAMP", [None; 2]),
        ColumnKind::Enum { .. } => ("ENUM", [None; 2]),
        ColumnKind::Set { .. } => ("SET", [None; 2]),
        ColumnKind::Char { length_max } if is_binary => ("BINARY", [Some(length_max.into()), None]),
        ColumnKind::Char { length_max } => ("CHAR", [Some(characters(length_max.into())), None]),
        ColumnKind::Varchar { length_max } if is_binary => ("VARBINARY", [Some(length_max.into()), None]),
        ColumnKind::Varchar { length_max } => ("VARCHAR", [Some(characters(length_max.into())), None]),
        ColumnKind::Blob { length_size } => (blob_name(length_size, is_binary), [None; 2]),
        ColumnKind::Json { .. } => ("JSON", [None; 2]),
        ColumnKind::Geometry { .. } => (geometry_name(column.geometry_type), [None; 2]),
        ColumnKind::Vector { .. } => ("VECTOR", [column.dimensionality, None]),
        ColumnKind::Null | ColumnKind::TypedArray => ("INVALID_TYPE", [None; 2]),
    };
    out.extend_from_slice(name.as_bytes());
    for (index, number) in numbers.into_iter().flatten().enumerate() {
        out.push(if index == 0 { b'(' } else { b',' });
        push_unsigned(out, number);
    }
    if numbers.iter().any(Option::is_some) {
        out.push(b')');
    }
}

fn fraction(digits: u8) -> Option<u64> {
    (digits > 0).then_some(digits.into())
}

/// Appends the members of an ENUM or SET, which stand after everything but its character set.
fn push_members(out: &mut Vec<u8>, column: &ColumnSchema) {
    let Some(members) = &column.members else { return };
    out.push(b'(');
    for (index, member) in members.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        push_quoted(out, member);
    }
    out.push(b')');
}

fn blob_name(length_size: u8, is_binary: bool) -> &'static str {
    match (length_size, is_binary) {
        (1, true) => "TINYBLOB",
        (2, true) => "BLOB",
        (3, true) => "MEDIUMBLOB",
        (_, true) => "LONGBLOB",
        (1, false) => "TINYTEXT",
        (2, false) => "TEXT",
        (3, false) => "MEDIUMTEXT",
        (_, false) => "LONGTEXT",
    }
}

fn geometry_name(geometry_type: Option<u64>) -> &'static str {
    match geometry_type {
        Some(0) | None => "GEOMETRY",
        Some(1) => "POINT",
        Some(2) => "LINESTRING",
        Some(3) => "POLYGON",
        Some(4) => "MULTIPOINT",
        Some(5) => "MULTILINESTRING",
        Some(6) => "MULTIPOLYGON",
        Some(7) => "GEOMCOLLECTION",
        Some(_) => "INVALID_GEOMETRY_TYPE",
    }
}

/// The most bytes of a character, which lengths are divided by.
fn bytes_per_character(collation: u64) -> u64 {
    match Charset::of_collation(collation).map(Charset::name) {
        Some("utf8mb4" | "utf16" | "utf16le" | "utf32" | "gb18030") => 4,
        Some("utf8mb3" | "ujis" | "eucjpms") => 3,
        Some("big5" | "sjis" | "euckr" | "gb2312" | "gbk" | "ucs2" | "cp932") => 2,
        _ => 1,
    }
}
