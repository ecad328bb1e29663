//! The session settings before a statement in a query event.
//!
//! ```text
//! code variable                   value
//!    0 flags2                     u32
//!    1 sql_mode                   u64
//!    2 catalog, NUL-terminated    length u8, bytes, 0       (5.0.0 to 5.0.3)
//!    3 auto_increment             increment u16, offset u16
//!    4 charset                    client u16, connection u16, server u16
//!    5 time_zone                  length u8, bytes
//!    6 catalog                    length u8, bytes
//!    7 lc_time_names              u16
//!    8 charset_database           u16
//!    9 table_map_for_update       u64
//!   10 source_data_written        u32                       (5.x)
//!   11 invoker                    length u8, user, length u8, host
//!   12 updated_db_names           count u8, names each ended by 0; none if count is above 16
//!   13 microseconds               u24
//!   16 explicit_defaults_ts       u8
//!   17 ddl_xid                    u64
//!   18 default_collation_utf8mb4  u16
//!   19 sql_require_primary_key    u8
//!   20 default_table_encryption   u8
//!   21 enable_cascade_triggers    u8                        (since 9.7)
//!  128 hrnow                      u24                       (MariaDB)
//!  129 xid                        u64                       (MariaDB)
//!  130 alter_step                 flags u8, the start's sequence number u64 if it isn't the start   (MariaDB 10.8)
//! ```
//!
//! A code is one byte, followed by its value. There is no length, so nothing after an unknown code can be read: the rest
//! is kept raw. (Facts of MySQL 9.7.4's `Query_event`.)

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::narrow;
use crate::put::PutFields;

const WHAT: &str = "status variables";

/// The most databases that are named.
const UPDATED_DBS_MAX: u8 = 16;
/// `count` of updated databases where there are more than can be named.
pub const OVER_MAX_UPDATED_DBS: u8 = 254;

/// The bytes of all status variables of an event; read by [`StatusVariables::iter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusVariables<'a>(pub &'a [u8]);

/// One status variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatusVariable<'a> {
    /// Session options as bits, see [`Flags2`].
    Flags2(Flags2),
    /// `sql_mode` as bits.
    SqlMode(u64),
    /// The catalog with a closing NUL, as the first 5.0 wrote it.
    CatalogNul(&'a [u8]),
    /// `auto_increment_increment` and `auto_increment_offset`.
    AutoIncrement {
        /// Step between two values.
        increment: u16,
        /// Where the steps begin.
        offset: u16,
    },
    /// Collation ids of the session.
    Charset {
        /// `character_set_client`.
        client: u16,
        /// `collation_connection`.
        connection: u16,
        /// `collation_server`.
        server: u16,
    },
    /// `time_zone` by name.
    TimeZone(&'a [u8]),
    /// The catalog, always `std`.
    Catalog(&'a [u8]),
    /// `lc_time_names` by number; 0 is en_US.
    LcTimeNames(u16),
    /// Collation id of the default database.
    CharsetDatabase(u16),
    /// Bits of the tables that a multi-table update changes.
    TableMapForUpdate(u64),
    /// Bytes that the source wrote; obsolete.
    SourceDataWritten(u32),
    /// The user a statement runs as, if it names CURRENT_USER.
    Invoker {
        /// User name.
        user: &'a [u8],
        /// Host name.
        host: &'a [u8],
    },
    /// The databases that the statement changes, for parallel replicas.
    UpdatedDatabases(UpdatedDatabases<'a>),
    /// Fraction of the event's timestamp.
    Microseconds(u32),
    /// `explicit_defaults_for_timestamp`.
    ExplicitDefaultsForTimestamp(u8),
    /// The transaction number of atomic DDL, as an XID event would carry it.
    DdlXid(u64),
    /// `default_collation_for_utf8mb4` as a collation id.
    DefaultCollationForUtf8mb4(u16),
    /// `sql_require_primary_key`.
    SqlRequirePrimaryKey(u8),
    /// `default_table_encryption`.
    DefaultTableEncryption(u8),
    /// `enable_cascade_triggers`, since 9.7.
    EnableCascadeTriggers(u8),
    /// Fraction of the event's timestamp, MariaDB.
    HrNow(u32),
    /// The transaction number of atomic DDL, MariaDB.
    MariaDbXid(u64),
    /// A step of an ALTER in two phases (`binlog_alter_two_phase`), MariaDB.
    MariaDbAlterStep(MariaDbAlterStep),
    /// A code that is not known here, with all bytes after it; always the last item.
    Unknown(&'a [u8]),
}

/// Which step of an ALTER in two phases a statement is. MariaDB logs the whole statement at each of them: where it starts, and where it
/// commits or is rolled back. Flags that aren't known survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MariaDbAlterStep {
    flags: u8,
    /// The sequence number of the GTID of its start; none at the start itself.
    start: Option<u64>,
}

impl MariaDbAlterStep {
    const START: u8 = 0x02;
    const COMMIT: u8 = 0x04;
    const ROLLBACK: u8 = 0x08;

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let flags = cursor.u8("alter step")?;
        let start = match flags & (Self::COMMIT | Self::ROLLBACK) {
            0 => None,
            _ => Some(cursor.u64("start of the alter")?),
        };
        Ok(MariaDbAlterStep { flags, start })
    }

    /// Whether the table stays as it is: the ALTER only starts, or is rolled back.
    pub fn changes_nothing(self) -> bool {
        self.flags & (Self::START | Self::ROLLBACK) != 0
    }
}

/// Session options in the variable [`StatusVariable::Flags2`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flags2(pub u32);

impl Flags2 {
    /// `sql_auto_is_null`.
    pub const AUTO_IS_NULL: Self = Flags2(1 << 14);
    /// `autocommit` is off.
    pub const NOT_AUTOCOMMIT: Self = Flags2(1 << 19);
    /// `foreign_key_checks` is off.
    pub const NO_FOREIGN_KEY_CHECKS: Self = Flags2(1 << 26);
    /// `unique_checks` is off.
    pub const RELAXED_UNIQUE_CHECKS: Self = Flags2(1 << 27);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The databases that a statement changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdatedDatabases<'a> {
    /// How many; [`OVER_MAX_UPDATED_DBS`] if there were more than 16, and then there are no names.
    pub count: u8,
    names: &'a [u8],
}

impl<'a> UpdatedDatabases<'a> {
    /// The names; empty if there were too many.
    pub fn names(&self) -> impl Iterator<Item = &'a [u8]> {
        let count = self.names.iter().filter(|&&byte| byte == 0).count();
        self.names.split(|&byte| byte == 0).take(count)
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Self> {
        let count = cursor.u8("number of updated databases")?;
        let names = if count > UPDATED_DBS_MAX { 0 } else { count };
        let start = cursor.peek();
        for _ in 0..names {
            let length = cursor.peek().iter().take_while(|&&byte| byte != 0).count();
            cursor.bytes(length + 1, "updated database")?;
        }
        let size = start.len() - cursor.remaining();
        Ok(UpdatedDatabases { count, names: start.get(..size).unwrap_or_default() })
    }
}

impl<'a> StatusVariables<'a> {
    /// The variables in stored order. An error ends the iteration.
    pub fn iter(&self) -> impl Iterator<Item = Result<StatusVariable<'a>>> + use<'a> {
        let mut cursor = Cursor::new(self.0, WHAT);
        std::iter::from_fn(move || {
            if cursor.is_empty() {
                return None;
            }
            let variable = StatusVariable::read(&mut cursor);
            if variable.is_err() {
                cursor.rest();
            }
            Some(variable)
        })
    }
}

impl<'a> StatusVariable<'a> {
    /// Takes one variable; an unknown code takes all remaining bytes.
    fn read(cursor: &mut Cursor<'a>) -> Result<Self> {
        let whole = cursor.peek();
        Ok(match cursor.u8("code")? {
            0 => Self::Flags2(Flags2(cursor.u32("flags2")?)),
            1 => Self::SqlMode(cursor.u64("sql mode")?),
            2 => {
                let catalog = read_short(cursor, "catalog")?;
                match cursor.u8("NUL after the catalog")? {
                    0 => Self::CatalogNul(catalog),
                    other => return Err(Error::invalid(WHAT, "NUL after the catalog", other, "0")),
                }
            }
            3 => Self::AutoIncrement {
                increment: cursor.u16("auto_increment_increment")?,
                offset: cursor.u16("auto_increment_offset")?,
            },
            4 => Self::Charset {
                client: cursor.u16("character_set_client")?,
                connection: cursor.u16("collation_connection")?,
                server: cursor.u16("collation_server")?,
            },
            5 => Self::TimeZone(read_short(cursor, "time zone")?),
            6 => Self::Catalog(read_short(cursor, "catalog")?),
            7 => Self::LcTimeNames(cursor.u16("lc_time_names")?),
            8 => Self::CharsetDatabase(cursor.u16("charset of the database")?),
            9 => Self::TableMapForUpdate(cursor.u64("table map for update")?),
            10 => Self::SourceDataWritten(cursor.u32("source data written")?),
            11 => Self::Invoker { user: read_short(cursor, "user")?, host: read_short(cursor, "host")? },
            12 => Self::UpdatedDatabases(UpdatedDatabases::read(cursor)?),
            13 => Self::Microseconds(cursor.u24("microseconds")?),
            16 => Self::ExplicitDefaultsForTimestamp(cursor.u8("explicit_defaults_for_timestamp")?),
            17 => Self::DdlXid(cursor.u64("ddl xid")?),
            18 => Self::DefaultCollationForUtf8mb4(cursor.u16("default_collation_for_utf8mb4")?),
            19 => Self::SqlRequirePrimaryKey(cursor.u8("sql_require_primary_key")?),
            20 => Self::DefaultTableEncryption(cursor.u8("default_table_encryption")?),
            21 => Self::EnableCascadeTriggers(cursor.u8("enable_cascade_triggers")?),
            128 => Self::HrNow(cursor.u24("hrnow")?),
            129 => Self::MariaDbXid(cursor.u64("xid")?),
            130 => Self::MariaDbAlterStep(MariaDbAlterStep::read(cursor)?),
            _ => {
                cursor.rest();
                Self::Unknown(whole)
            }
        })
    }

    /// Appends the variable as it is stored in an event.
    ///
    /// # Errors
    ///
    /// A string above 255 bytes: its length does not fit.
    pub fn encode(&self, bytes: &mut Vec<u8>) -> Result<()> {
        match *self {
            Self::Flags2(Flags2(bits)) => put_coded(bytes, 0, u64::from(bits), 4),
            Self::SqlMode(bits) => put_coded(bytes, 1, bits, 8),
            Self::CatalogNul(catalog) => {
                bytes.put_u8(2);
                put_short(bytes, catalog, "catalog")?;
                bytes.put_u8(0);
            }
            Self::AutoIncrement { increment, offset } => {
                put_coded(bytes, 3, u64::from(increment), 2);
                bytes.put_u16(offset);
            }
            Self::Charset { client, connection, server } => {
                put_coded(bytes, 4, u64::from(client), 2);
                bytes.put_u16(connection);
                bytes.put_u16(server);
            }
            Self::TimeZone(name) => {
                bytes.put_u8(5);
                put_short(bytes, name, "time zone")?;
            }
            Self::Catalog(catalog) => {
                bytes.put_u8(6);
                put_short(bytes, catalog, "catalog")?;
            }
            Self::LcTimeNames(number) => put_coded(bytes, 7, u64::from(number), 2),
            Self::CharsetDatabase(collation) => put_coded(bytes, 8, u64::from(collation), 2),
            Self::TableMapForUpdate(bits) => put_coded(bytes, 9, bits, 8),
            Self::SourceDataWritten(size) => put_coded(bytes, 10, u64::from(size), 4),
            Self::Invoker { user, host } => {
                bytes.put_u8(11);
                put_short(bytes, user, "user")?;
                put_short(bytes, host, "host")?;
            }
            Self::UpdatedDatabases(UpdatedDatabases { count, names }) => {
                put_coded(bytes, 12, u64::from(count), 1);
                bytes.put(names);
            }
            Self::Microseconds(value) => put_coded(bytes, 13, u64::from(value), 3),
            Self::ExplicitDefaultsForTimestamp(value) => put_coded(bytes, 16, u64::from(value), 1),
            Self::DdlXid(xid) => put_coded(bytes, 17, xid, 8),
            Self::DefaultCollationForUtf8mb4(collation) => put_coded(bytes, 18, u64::from(collation), 2),
            Self::SqlRequirePrimaryKey(value) => put_coded(bytes, 19, u64::from(value), 1),
            Self::DefaultTableEncryption(value) => put_coded(bytes, 20, u64::from(value), 1),
            Self::EnableCascadeTriggers(value) => put_coded(bytes, 21, u64::from(value), 1),
            Self::HrNow(value) => put_coded(bytes, 128, u64::from(value), 3),
            Self::MariaDbXid(xid) => put_coded(bytes, 129, xid, 8),
            Self::MariaDbAlterStep(step) => {
                put_coded(bytes, 130, u64::from(step.flags), 1);
                if let Some(start) = step.start {
                    bytes.put(&start.to_le_bytes());
                }
            }
            Self::Unknown(raw) => bytes.put(raw),
        }
        Ok(())
    }
}

/// A string after one byte of length.
fn read_short<'a>(cursor: &mut Cursor<'a>, field: &'static str) -> Result<&'a [u8]> {
    let length = cursor.u8(field)?;
    cursor.bytes(usize::from(length), field)
}

fn put_short(bytes: &mut Vec<u8>, value: &[u8], field: &'static str) -> Result<()> {
    bytes.put_u8(narrow(value.len(), WHAT, field, "at most 255 bytes")?);
    bytes.put(value);
    Ok(())
}

fn put_coded(bytes: &mut Vec<u8>, code: u8, value: u64, width: usize) {
    bytes.put_u8(code);
    bytes.put_uint(value, width);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each code, with values that differ from each other.
    const EVERY_CODE: &[u8] = b"\x00\x01\x40\x08\x0c\
        \x01\x20\x00\xa0\x45\x00\x00\x00\x00\
        \x02\x03std\x00\
        \x03\x02\x00\x01\x00\
        \x04\xff\x00\x21\x00\x08\x00\
        \x05\x06SYSTEM\
        \x06\x03std\
        \x07\x05\x00\
        \x08\x2d\x00\
        \x09\x03\x00\x00\x00\x00\x00\x00\x00\
        \x0a\x01\x02\x03\x04\
        \x0b\x04root\x09localhost\
        \x0c\x02db1\x00db2\x00\
        \x0d\x40\xe2\x01\
        \x10\x01\
        \x11\x2a\x00\x00\x00\x00\x00\x00\x00\
        \x12\xff\x00\
        \x13\x01\
        \x14\x00\
        \x15\x01\
        \x80\x40\xe2\x01\
        \x81\x2a\x00\x00\x00\x00\x00\x00\x00\
        \x82\x02\
        \x82\x04\x0b\x00\x00\x00\x00\x00\x00\x00\
        \x82\x08\x09\x00\x00\x00\x00\x00\x00\x00";

    fn read(bytes: &[u8]) -> Vec<StatusVariable<'_>> {
        StatusVariables(bytes).iter().collect::<Result<_>>().unwrap()
    }

    #[test]
    fn every_code_round_trips() {
        let variables = read(EVERY_CODE);
        assert_eq!(variables.len(), 25);
        assert_eq!(variables[11], StatusVariable::Invoker { user: b"root", host: b"localhost" });
        assert_eq!(variables[13], StatusVariable::Microseconds(123_456));
        assert_eq!(variables[19], StatusVariable::EnableCascadeTriggers(1));
        let changes_nothing = |variable: &StatusVariable<'_>| match variable {
            StatusVariable::MariaDbAlterStep(step) => step.changes_nothing(),
            _ => panic!("a step of an ALTER"),
        };
        let steps: Vec<_> = variables[22..].iter().map(changes_nothing).collect();
        assert_eq!(steps, [true, false, true], "start, commit, rollback");
        let StatusVariable::Flags2(flags) = variables[0] else { panic!("flags2 first") };
        assert!(flags.contains(Flags2::AUTO_IS_NULL) && flags.contains(Flags2::NO_FOREIGN_KEY_CHECKS));
        let StatusVariable::UpdatedDatabases(databases) = variables[12] else { panic!("databases") };
        assert_eq!(databases.names().collect::<Vec<_>>(), [b"db1", b"db2"]);
        let mut bytes = Vec::new();
        for variable in &variables {
            variable.encode(&mut bytes).unwrap();
        }
        assert_eq!(bytes, EVERY_CODE);
    }

    #[test]
    fn cut_inside_a_variable_it_is_an_error_and_the_last_item() {
        let mut ends = vec![0];
        let mut bytes = Vec::new();
        for variable in read(EVERY_CODE) {
            variable.encode(&mut bytes).unwrap();
            ends.push(bytes.len());
        }
        for length in 0..EVERY_CODE.len() {
            let items: Vec<_> = StatusVariables(&EVERY_CODE[..length]).iter().collect();
            let whole = items.iter().all(Result::is_ok);
            assert_eq!(whole, ends.contains(&length), "{length}");
            assert!(items.iter().rev().skip(1).all(Result::is_ok), "{length}");
        }
    }

    #[test]
    fn an_unknown_code_keeps_the_rest() {
        let variables = read(b"\x10\x01\xc8\x01\x02\x03");
        assert_eq!(variables[1], StatusVariable::Unknown(b"\xc8\x01\x02\x03"));
        let mut bytes = Vec::new();
        variables[1].encode(&mut bytes).unwrap();
        assert_eq!(bytes, b"\xc8\x01\x02\x03");
    }

    #[test]
    fn too_many_databases_have_no_names() {
        let variables = read(b"\x0c\xfe\x10\x01");
        assert_eq!(variables.len(), 2);
        let StatusVariable::UpdatedDatabases(databases) = variables[0] else { panic!("databases") };
        assert_eq!((databases.count, databases.names().count()), (OVER_MAX_UPDATED_DBS, 0));
    }
}
