//! Variables that a later statement needs to give the same result on a replica: INTVAR, RAND and USER_VAR.
//!
//! ```text
//! INTVAR   size field
//!             1 variable      1 LAST_INSERT_ID, 2 INSERT_ID
//!             8 value
//! RAND        8 seed1
//!             8 seed2
//! USER_VAR    4 name_length   then the name
//!             1 is_null       not 0: nothing follows
//!             1 value_type    0 string, 1 real, 2 integer, 4 decimal
//!             4 collation     a collation id
//!             4 value_length  then the value
//!             1 flags         only where the writer has it: integers since 5.6
//! ```
//!
//! The value of a user variable: a real is a double, an integer eight bytes. A decimal is one byte of
//! precision, one of scale and the digits as DECIMAL columns store them. (Facts of MySQL 9.7.4's
//! `Intvar_event`, `Rand_event`, `User_var_event`.)

use crate::error::{Error, Result};
use crate::event::narrow;
use crate::frame::decode_whole;
use crate::put::PutFields;

/// Which variable an INTVAR event sets. Unknown values survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntvarVariable(pub u8);

impl IntvarVariable {
    /// The value of `LAST_INSERT_ID()` in the next statement.
    pub const LAST_INSERT_ID: Self = IntvarVariable(1);
    /// The first AUTO_INCREMENT value of the next statement.
    pub const INSERT_ID: Self = IntvarVariable(2);
}

/// A decoded INTVAR event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntvarEvent {
    /// Which variable is set.
    pub variable: IntvarVariable,
    /// To what.
    pub value: u64,
}

impl IntvarEvent {
    /// Reads a body without its checksum.
    pub fn decode(body: &[u8]) -> Result<Self> {
        decode_whole(body, "intvar event", |cursor| {
            Ok(IntvarEvent { variable: IntvarVariable(cursor.u8("variable")?), value: cursor.u64("value")? })
        })
    }

    /// The body as it stands in a file, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = vec![self.variable.0];
        body.put_u64(self.value);
        body
    }
}

/// A decoded RAND event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandEvent {
    /// `@@RAND_SEED1`.
    pub seed1: u64,
    /// `@@RAND_SEED2`.
    pub seed2: u64,
}

impl RandEvent {
    /// Reads a body without its checksum.
    pub fn decode(body: &[u8]) -> Result<Self> {
        decode_whole(body, "rand event", |cursor| {
            Ok(RandEvent { seed1: cursor.u64("seed1")?, seed2: cursor.u64("seed2")? })
        })
    }

    /// The body as it stands in a file, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(16);
        body.put_u64(self.seed1);
        body.put_u64(self.seed2);
        body
    }
}

/// How a user variable's value is stored. Unknown values survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UserVarType(pub u8);

impl UserVarType {
    /// Bytes in a character set.
    pub const STRING: Self = UserVarType(0);
    /// An IEEE double.
    pub const REAL: Self = UserVarType(1);
    /// Eight bytes.
    pub const INT: Self = UserVarType(2);
    /// Precision, scale, digits.
    pub const DECIMAL: Self = UserVarType(4);
}

/// A decoded USER_VAR event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserVarEvent<'a> {
    /// Name of the variable, without the `@`.
    pub name: &'a [u8],
    /// The variable's new value; `None` for NULL.
    pub value: Option<UserVarValue<'a>>,
}

/// The value of a user variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserVarValue<'a> {
    /// How the bytes are to be read.
    pub value_type: UserVarType,
    /// Collation id of the value.
    pub collation: u32,
    /// The value's bytes.
    pub bytes: &'a [u8],
    /// [`UserVarValue::UNSIGNED`] or 0; `None` where the writer has no such byte.
    pub flags: Option<u8>,
}

impl UserVarValue<'_> {
    /// The bit of `flags` that marks an unsigned integer.
    pub const UNSIGNED: u8 = 1;

    /// Whether an integer is unsigned.
    pub fn is_unsigned(&self) -> bool {
        self.flags.is_some_and(|flags| flags & Self::UNSIGNED != 0)
    }
}

const USER_VAR: &str = "user var event";

impl<'a> UserVarEvent<'a> {
    /// Reads a body without its checksum. An empty name is refused, as the server does.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, USER_VAR, |cursor| {
            let name_length = cursor.u32("name length")?;
            if name_length == 0 {
                return Err(Error::invalid(USER_VAR, "name length", 0, "the name of a variable"));
            }
            let name = cursor.bytes_u64(u64::from(name_length), "name")?;
            match cursor.u8("is_null")? {
                0 => {}
                1 => return Ok(UserVarEvent { name, value: None }),
                other => return Err(Error::invalid(USER_VAR, "is_null", other, "0 or 1")),
            }
            let value_type = UserVarType(cursor.u8("value type")?);
            let collation = cursor.u32("collation")?;
            let value_length = cursor.u32("value length")?;
            let bytes = cursor.bytes_u64(u64::from(value_length), "value")?;
            let flags = if cursor.is_empty() { None } else { Some(cursor.u8("flags")?) };
            Ok(UserVarEvent { name, value: Some(UserVarValue { value_type, collation, bytes, flags }) })
        })
    }

    /// The body as it stands in a file, without the checksum.
    ///
    /// # Errors
    ///
    /// A name or a value of 4 GiB or more: their lengths do not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut body = Vec::with_capacity(self.name.len() + 32);
        body.put_u32(narrow(self.name.len(), USER_VAR, "name length", "at most 4294967295 bytes")?);
        body.put(self.name);
        body.put_u8(u8::from(self.value.is_none()));
        if let Some(value) = self.value {
            body.put_u8(value.value_type.0);
            body.put_u32(value.collation);
            body.put_u32(narrow(value.bytes.len(), USER_VAR, "value length", "at most 4294967295 bytes")?);
            body.put(value.bytes);
            if let Some(flags) = value.flags {
                body.put_u8(flags);
            }
        }
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intvar_and_rand_round_trip() {
        let body = b"\x02\x2a\0\0\0\0\0\0\0";
        let event = IntvarEvent { variable: IntvarVariable::INSERT_ID, value: 42 };
        assert_eq!(IntvarEvent::decode(body).unwrap(), event);
        assert_eq!(event.encode(), body);
        assert!(IntvarEvent::decode(&body[..8]).is_err());
        assert!(IntvarEvent::decode(&[0; 10]).is_err());

        let body = b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0";
        let event = RandEvent { seed1: 1, seed2: 2 };
        assert_eq!(RandEvent::decode(body).unwrap(), event);
        assert_eq!(event.encode(), body);
        assert!(RandEvent::decode(&body[..15]).is_err());
        assert!(RandEvent::decode(&[0; 17]).is_err());
    }

    #[test]
    fn user_variables_round_trip_with_and_without_flags() {
        let string =
            UserVarValue { value_type: UserVarType::STRING, collation: 255, bytes: b"hello", flags: None };
        let unsigned = UserVarValue {
            value_type: UserVarType::INT,
            collation: 8,
            bytes: &[255; 8],
            flags: Some(UserVarValue::UNSIGNED),
        };
        let unknown = UserVarValue { value_type: UserVarType(3), ..unsigned };
        for value in [None, Some(string), Some(unsigned), Some(unknown)] {
            let event = UserVarEvent { name: b"a", value };
            let body = event.encode().unwrap();
            assert_eq!(UserVarEvent::decode(&body).unwrap(), event);
            let without_flags = usize::from(value.is_some_and(|value| value.flags.is_some()));
            for length in 0..body.len() - without_flags {
                assert!(UserVarEvent::decode(&body[..length]).is_err(), "{length}");
            }
            if value.is_none_or(|value| value.flags.is_some()) {
                let long = [&body[..], &[0]].concat();
                assert!(UserVarEvent::decode(&long).is_err());
            }
        }
        let event = UserVarEvent { name: b"a", value: Some(string) };
        assert_eq!(event.encode().unwrap(), b"\x01\0\0\0a\0\0\xff\0\0\0\x05\0\0\0hello");
    }

    #[test]
    fn a_name_is_needed_and_is_null_is_a_truth_value() {
        assert!(UserVarEvent::decode(b"\0\0\0\0\x01").is_err());
        let error = UserVarEvent::decode(b"\x01\0\0\0a\x02").unwrap_err();
        assert_eq!(error.to_string(), "user var event: is_null is 2, expected 0 or 1");
    }
}
