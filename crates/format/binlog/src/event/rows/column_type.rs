//! The type byte that a table map holds for each column.

use std::fmt;

/// A column's type as the storage layer sees it. Unknown values survive.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ColumnType(pub u8);

macro_rules! column_types {
    ($($(#[$doc:meta])* $constant:ident = $code:literal;)*) => {
        impl ColumnType {
            $($(#[$doc])* pub const $constant: Self = ColumnType($code);)*

            /// The type's name as the server spells it in `enum_field_types`, without prefix.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(stringify!($constant)),)*
                    _ => None,
                }
            }
        }
    };
}

column_types! {
    /// DECIMAL before 5.0.
    DECIMAL = 0;
    /// TINYINT, BOOL.
    TINY = 1;
    /// SMALLINT.
    SHORT = 2;
    /// INT.
    LONG = 3;
    /// FLOAT.
    FLOAT = 4;
    /// DOUBLE.
    DOUBLE = 5;
    /// Only NULL.
    NULL = 6;
    /// TIMESTAMP before 5.6.4.
    TIMESTAMP = 7;
    /// BIGINT.
    LONGLONG = 8;
    /// MEDIUMINT.
    INT24 = 9;
    /// DATE.
    DATE = 10;
    /// TIME before 5.6.4.
    TIME = 11;
    /// DATETIME before 5.6.4.
    DATETIME = 12;
    /// YEAR.
    YEAR = 13;
    /// DATE inside the server; a table map has 10.
    NEWDATE = 14;
    /// VARCHAR, VARBINARY.
    VARCHAR = 15;
    /// BIT.
    BIT = 16;
    /// TIMESTAMP with a fraction.
    TIMESTAMP2 = 17;
    /// DATETIME with a fraction.
    DATETIME2 = 18;
    /// TIME with a fraction.
    TIME2 = 19;
    /// The hidden column of a multi-valued index; the element's type begins its metadata.
    TYPED_ARRAY = 20;
    /// BLOB or TEXT COMPRESSED of MariaDB.
    MARIADB_BLOB_COMPRESSED = 140;
    /// VARCHAR or VARBINARY COMPRESSED of MariaDB.
    MARIADB_VARCHAR_COMPRESSED = 141;
    /// VECTOR, since 9.0.
    VECTOR = 242;
    /// JSON.
    JSON = 245;
    /// DECIMAL.
    NEWDECIMAL = 246;
    /// ENUM; a table map stores it inside the metadata of a STRING.
    ENUM = 247;
    /// SET; a table map stores it inside the metadata of a STRING.
    SET = 248;
    /// A BLOB type; in a table map all of them are BLOB.
    TINY_BLOB = 249;
    /// A BLOB type; in a table map all of them are BLOB.
    MEDIUM_BLOB = 250;
    /// A BLOB type; in a table map all of them are BLOB.
    LONG_BLOB = 251;
    /// BLOB and TEXT of every size.
    BLOB = 252;
    /// VARCHAR before 5.0.
    VAR_STRING = 253;
    /// CHAR, BINARY, ENUM, SET.
    STRING = 254;
    /// GEOMETRY.
    GEOMETRY = 255;
}

impl ColumnType {
    /// Bytes that a column of this type has in a table map's metadata block; for typed arrays see
    /// [`super::Column`].
    pub(crate) fn metadata_size(self) -> usize {
        match self {
            Self::FLOAT
            | Self::DOUBLE
            | Self::TIMESTAMP2
            | Self::DATETIME2
            | Self::TIME2
            | Self::TINY_BLOB
            | Self::MEDIUM_BLOB
            | Self::LONG_BLOB
            | Self::BLOB
            | Self::MARIADB_BLOB_COMPRESSED
            | Self::GEOMETRY
            | Self::JSON
            | Self::VECTOR => 1,
            Self::VARCHAR
            | Self::MARIADB_VARCHAR_COMPRESSED
            | Self::BIT
            | Self::NEWDECIMAL
            | Self::ENUM
            | Self::SET
            | Self::VAR_STRING
            | Self::STRING => 2,
            _ => 0,
        }
    }

    /// Whether the type counts as numeric: the optional metadata tell its signedness. YEAR does.
    pub fn is_numeric(self) -> bool {
        matches!(
            self,
            Self::TINY
                | Self::SHORT
                | Self::INT24
                | Self::LONG
                | Self::LONGLONG
                | Self::NEWDECIMAL
                | Self::FLOAT
                | Self::DOUBLE
                | Self::YEAR
        )
    }

    /// Whether the type counts as a character string: the optional metadata tell its collation.
    /// VECTOR does, with collation 63. MariaDB, unlike MySQL, counts GEOMETRY too.
    pub(crate) fn is_character(self) -> bool {
        matches!(
            self,
            Self::STRING
                | Self::VAR_STRING
                | Self::VARCHAR
                | Self::MARIADB_VARCHAR_COMPRESSED
                | Self::BLOB
                | Self::MARIADB_BLOB_COMPRESSED
                | Self::VECTOR
        )
    }

    /// Whether its values are compressed, each by itself.
    pub(crate) fn is_mariadb_compressed(self) -> bool {
        matches!(self, Self::MARIADB_BLOB_COMPRESSED | Self::MARIADB_VARCHAR_COMPRESSED)
    }

    /// Whether the type is ENUM or SET: the optional metadata tell its members.
    pub(crate) fn is_enum_or_set(self) -> bool {
        matches!(self, Self::ENUM | Self::SET)
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#04x}", self.0),
        }
    }
}

impl fmt::Debug for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
