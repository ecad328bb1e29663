//! A table as its rows are written: names and types of its columns, its key. Names that the log lacks come from a schema.
//! A name that neither has is an error, since a message without names would be mistaken for another.

use std::sync::Arc;

use binlogz_binlog::charset::Charset;
use binlogz_binlog::event::ColumnType;
use binlogz_binlog::row::{ColumnKind, ColumnSchema, TableSchema};
use binlogz_binlog::{Error, Result};
use binlogz_print::EventSelection;
use binlogz_print::jsonl::JsonState;
use binlogz_print::line_printer::LineState;
use binlogz_schema::CompletedTable;

use crate::java::{Escapes, push_string};
use crate::settings::{BigintUnsigned, ChangeFormat, ChangeSettings};

/// utf8mb4_0900_ai_ci: the character set of columns whose own is unknown.
const UTF8MB4: u64 = 255;

/// A table as its rows are written: names and types of its columns, and its key.
#[derive(Debug)]
pub(crate) struct ChangeTable {
    schema: Arc<TableSchema>,
    /// The statements that were known when it was made: later ones may have changed it.
    era: usize,
    pub(crate) database: String,
    pub(crate) name: String,
    /// The name in quotes.
    pub(crate) columns: Vec<ChangeColumn>,
    /// The columns of the key.
    pub(crate) key: Vec<usize>,
    pub(crate) is_asked_for: bool,
    /// The table's place in `--table`, counted from 0.
    pub(crate) place: Option<usize>,
    problem: Option<String>,
}

/// A column of a [`ChangeTable`].
#[derive(Debug)]
pub(crate) struct ChangeColumn {
    /// As the log has it, completed.
    pub(crate) schema: ColumnSchema,
    pub(crate) name: String,
    /// `"name":`.
    pub(crate) field: Vec<u8>,
    pub(crate) shortcut: Shortcut,
    pub(crate) is_binary: bool,
}

/// The kinds of values that have a short cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortcut {
    Signed,
    Unsigned,
    /// Text of a character set in which ASCII is ASCII.
    Text,
    None,
}

impl ChangeTable {
    fn new(
        schema: &Arc<TableSchema>,
        (state, era): (&JsonState, usize),
        selection: &EventSelection,
        settings: &ChangeSettings<'_>,
    ) -> Self {
        let shown = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let mut table = ChangeTable {
            schema: Arc::clone(schema),
            era,
            database: shown(&schema.database),
            name: shown(&schema.table),
            columns: Vec::new(),
            key: Vec::new(),
            is_asked_for: selection.has_table(&schema.database, &schema.table),
            place: selection.place_of(&schema.database, &schema.table),
            problem: None,
        };
        let completed = settings.tables.complete(schema, state.place(), state.tables());
        let CompletedTable { schema: completed, key, keys: _, problem, is_told } = completed;
        // What only some columns lack, they tell below.
        let problem = problem.filter(|_| !is_told);
        table.problem = problem.map(|problem| format!("{}.{}: {problem}", table.database, table.name));
        let escapes =
            if settings.format == ChangeFormat::Canal { Escapes::Fastjson } else { Escapes::Jackson };
        for (index, column) in completed.columns().iter().enumerate() {
            match ChangeColumn::new(column, is_told, settings, escapes) {
                Ok(column) => table.columns.push(column),
                Err(lacking) => {
                    table.problem.get_or_insert_with(|| {
                        format!("{}.{} column {}: {lacking}", table.database, table.name, index + 1)
                    });
                }
            }
        }
        table.key = primary_key(schema);
        if table.key.is_empty() {
            table.key = key;
        }
        table
    }

    /// Whether its rows can be written.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.problem {
            None => Ok(()),
            Some(problem) => Err(Error::invalid(
                "table map event",
                "table",
                problem,
                "the metadata of binlog_row_metadata=FULL, or --schema=FILE.sql|SERVER",
            )),
        }
    }
}

/// The columns of the primary key, in the key's order.
fn primary_key(schema: &TableSchema) -> Vec<usize> {
    let parts = schema.columns().iter().enumerate();
    let mut parts: Vec<_> =
        parts.filter_map(|(index, column)| Some((column.primary_key?.place, index))).collect();
    parts.sort_unstable();
    parts.into_iter().map(|(_, index)| index).collect()
}

impl ChangeColumn {
    fn new(
        column: &ColumnSchema,
        is_told: bool,
        settings: &ChangeSettings<'_>,
        escapes: Escapes,
    ) -> Result<Self, &'static str> {
        let mut schema = column.clone();
        let Some(name) = &column.name else { return Err("name unknown") };
        let name = String::from_utf8_lossy(name).into_owned();
        // Text, if it isn't binary: of a log without character sets, from before 8.0.
        if is_told && schema.collation.is_none() {
            schema.collation = Some(UTF8MB4);
        }
        if matches!(schema.kind, ColumnKind::Enum { .. } | ColumnKind::Set { .. })
            && schema.members.is_none()
            && settings.format != ChangeFormat::Canal
        {
            return Err("members unknown");
        }
        let is_text = matches!(
            schema.kind,
            ColumnKind::Char { .. } | ColumnKind::Varchar { .. } | ColumnKind::Blob { .. }
        );
        if is_text && schema.collation.is_none() {
            return Err("character set unknown");
        }
        let is_binary = is_text && schema.charset() == Some(Charset::Binary);
        let mut field = Vec::new();
        push_string(&mut field, &name, escapes);
        field.push(b':');
        let shortcut = Shortcut::of(&schema, settings);
        Ok(ChangeColumn { schema, name, field, shortcut, is_binary })
    }
}

impl Shortcut {
    fn of(column: &ColumnSchema, settings: &ChangeSettings<'_>) -> Self {
        let is_quoted = settings.format == ChangeFormat::Canal;
        match column.kind {
            // canal writes numbers as strings.
            _ if is_quoted => match column.kind {
                ColumnKind::Char { .. } | ColumnKind::Varchar { .. } | ColumnKind::Blob { .. } => {
                    Self::of_text(column)
                }
                _ => Shortcut::None,
            },
            ColumnKind::BigInt { unsigned: true } if settings.format == ChangeFormat::Debezium => {
                match settings.bigint_unsigned {
                    BigintUnsigned::Long => Shortcut::Signed,
                    BigintUnsigned::Precise => Shortcut::None,
                }
            }
            ColumnKind::TinyInt { unsigned }
            | ColumnKind::SmallInt { unsigned }
            | ColumnKind::Int { unsigned }
            | ColumnKind::BigInt { unsigned } => {
                if unsigned {
                    Shortcut::Unsigned
                } else {
                    Shortcut::Signed
                }
            }
            ColumnKind::Char { .. } | ColumnKind::Varchar { .. } | ColumnKind::Blob { .. } => {
                Self::of_text(column)
            }
            _ => Shortcut::None,
        }
    }

    fn of_text(column: &ColumnSchema) -> Self {
        match column.charset() {
            Some(Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Latin1 | Charset::Ascii) => Shortcut::Text,
            _ => Shortcut::None,
        }
    }
}

/// Tables that a worker remembers: more than a transaction usually has.
const REMEMBERED: usize = 64;

/// The tables of a worker.
#[derive(Debug, Default)]
pub(crate) struct ChangeTables(Vec<Arc<ChangeTable>>);

impl ChangeTables {
    /// The table of the next rows.
    pub(crate) fn take(
        &mut self,
        schema: &Arc<TableSchema>,
        state: &JsonState,
        selection: &EventSelection,
        settings: &ChangeSettings<'_>,
    ) -> Arc<ChangeTable> {
        let era = settings.tables.era(state.place(), state.tables());
        let is_it = |table: &&Arc<ChangeTable>| Arc::ptr_eq(&table.schema, schema) && table.era == era;
        if let Some(found) = self.0.iter().rev().find(is_it) {
            return Arc::clone(found);
        }
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        let table = Arc::new(ChangeTable::new(schema, (state, era), selection, settings));
        self.0.push(Arc::clone(&table));
        table
    }
}

/// The name of a column's type in CREATE TABLE, as far as the log tells it: neither display widths nor digits of FLOAT and
/// DOUBLE.
pub(crate) fn type_name(column: &ChangeColumn) -> String {
    let schema = &column.schema;
    let unsigned = if schema.unsigned == Some(true) { " unsigned" } else { "" };
    let fraction = |name: &str, digits: u8| match digits {
        0 => name.to_owned(),
        digits => format!("{name}({digits})"),
    };
    let length = |bytes: u16| u32::from(bytes) / schema.charset().map_or(1, character_size_max);
    match schema.kind {
        ColumnKind::TinyInt { .. } => format!("tinyint{unsigned}"),
        ColumnKind::SmallInt { .. } => format!("smallint{unsigned}"),
        ColumnKind::MediumInt { .. } => format!("mediumint{unsigned}"),
        ColumnKind::Int { .. } => format!("int{unsigned}"),
        ColumnKind::BigInt { .. } => format!("bigint{unsigned}"),
        ColumnKind::Decimal(format) => {
            format!("decimal({},{}){unsigned}", format.precision(), format.scale())
        }
        ColumnKind::Float => format!("float{unsigned}"),
        ColumnKind::Double => format!("double{unsigned}"),
        ColumnKind::Bit { bits } => format!("bit({bits})"),
        ColumnKind::Year => "year".into(),
        ColumnKind::Date => "date".into(),
        ColumnKind::Time { fraction_digits } => fraction("time", fraction_digits),
        ColumnKind::DateTime { fraction_digits } => fraction("datetime", fraction_digits),
        ColumnKind::Timestamp { fraction_digits } => fraction("timestamp", fraction_digits),
        ColumnKind::OldTime => "time".into(),
        ColumnKind::OldDateTime => "datetime".into(),
        ColumnKind::OldTimestamp => "timestamp".into(),
        ColumnKind::Enum { .. } => members("enum", schema),
        ColumnKind::Set { .. } => members("set", schema),
        ColumnKind::Char { length_max } if column.is_binary => format!("binary({length_max})"),
        ColumnKind::Char { length_max } => format!("char({})", length(length_max)),
        ColumnKind::Varchar { length_max } if column.is_binary => format!("varbinary({length_max})"),
        ColumnKind::Varchar { length_max } => format!("varchar({})", length(length_max)),
        ColumnKind::Blob { length_size } => {
            let size = match length_size {
                1 => "tiny",
                2 => "",
                3 => "medium",
                _ => "long",
            };
            format!("{size}{}", if column.is_binary { "blob" } else { "text" })
        }
        ColumnKind::Json { .. } => "json".into(),
        ColumnKind::Geometry { .. } => match schema.geometry_type {
            Some(1) => "point",
            Some(2) => "linestring",
            Some(3) => "polygon",
            Some(4) => "multipoint",
            Some(5) => "multilinestring",
            Some(6) => "multipolygon",
            Some(7) => "geomcollection",
            _ => "geometry",
        }
        .into(),
        ColumnKind::Vector { .. } => match schema.dimensionality {
            Some(dimensions) => format!("vector({dimensions})"),
            None => "vector".into(),
        },
        ColumnKind::Null | ColumnKind::TypedArray => schema.column_type.to_string().to_lowercase(),
    }
}

fn members(name: &str, schema: &ColumnSchema) -> String {
    let mut text = format!("{name}(");
    for (index, member) in schema.members.iter().flatten().enumerate() {
        if index > 0 {
            text.push(',');
        }
        let decoded = schema.charset().and_then(|charset| charset.decode(member));
        let member = decoded.unwrap_or_else(|| String::from_utf8_lossy(member));
        text.push('\'');
        text.push_str(&member.replace('\'', "''"));
        text.push('\'');
    }
    text.push(')');
    text
}

/// The most bytes of a character.
fn character_size_max(charset: Charset) -> u32 {
    match charset {
        Charset::Utf8mb4 | Charset::Utf16 | Charset::Utf16le | Charset::Utf32 => 4,
        Charset::Utf8mb3 | Charset::Ujis | Charset::Eucjpms => 3,
        Charset::Ucs2
        | Charset::Big5
        | Charset::Gbk
        | Charset::Gb2312
        | Charset::Sjis
        | Charset::Cp932
        | Charset::Euckr => 2,
        Charset::Gb18030 => 4,
        _ => 1,
    }
}

/// The number of a type in `java.sql.Types`, as canal has it.
pub(crate) fn java_type(column: &ChangeColumn) -> i32 {
    match column.schema.kind {
        ColumnKind::TinyInt { .. } => -6,
        ColumnKind::SmallInt { .. } => 5,
        ColumnKind::MediumInt { .. } | ColumnKind::Int { .. } | ColumnKind::Enum { .. } => 4,
        ColumnKind::BigInt { .. } => -5,
        ColumnKind::Decimal(_) => 3,
        ColumnKind::Float => 7,
        ColumnKind::Double => 8,
        ColumnKind::Bit { .. } | ColumnKind::Set { .. } => -7,
        ColumnKind::Date => 91,
        ColumnKind::Time { .. } | ColumnKind::OldTime => 92,
        ColumnKind::DateTime { .. }
        | ColumnKind::OldDateTime
        | ColumnKind::Timestamp { .. }
        | ColumnKind::OldTimestamp => 93,
        ColumnKind::Char { .. } if !column.is_binary => 1,
        ColumnKind::Blob { .. } if !column.is_binary => 2005,
        ColumnKind::Varchar { .. } if !column.is_binary => 12,
        ColumnKind::Char { .. }
        | ColumnKind::Varchar { .. }
        | ColumnKind::Blob { .. }
        | ColumnKind::Geometry { .. } => 2004,
        ColumnKind::Year | ColumnKind::Json { .. } => 12,
        ColumnKind::Vector { .. } | ColumnKind::Null | ColumnKind::TypedArray => 2004,
    }
}

/// Whether a geometry column holds nothing but points.
pub(crate) fn is_point(column: &ColumnSchema) -> bool {
    column.column_type == ColumnType::GEOMETRY && column.geometry_type == Some(1)
}
