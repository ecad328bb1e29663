//! VECTOR: numbers of four bytes, little-endian IEEE 754, one for each dimension. (9.0, WL#16081.)

use crate::error::{Error, Result};

/// The numbers of a VECTOR value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vector<'a>(&'a [[u8; 4]]);

impl<'a> Vector<'a> {
    /// Takes the value's bytes: whole numbers only.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self> {
        match bytes.as_chunks() {
            (numbers, []) => Ok(Vector(numbers)),
            _ => Err(Error::invalid("vector", "size", bytes.len(), "a multiple of 4")),
        }
    }

    /// How many numbers there are.
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }

    /// The numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = f32> + use<'a> {
        self.0.iter().map(|&bytes| f32::from_le_bytes(bytes))
    }

    /// The numbers' bytes, as they are in the row.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0.as_flattened()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_order() {
        let vector = Vector::new(b"\0\0\x80\x3f\0\0\x20\x40").unwrap();
        assert_eq!(vector.iter().collect::<Vec<_>>(), [1.0, 2.5]);
        assert_eq!((vector.dimensions(), vector.as_bytes().len()), (2, 8));
        assert_eq!(Vector::new(b"").unwrap().dimensions(), 0);
        assert!(Vector::new(b"\0\0\x80").is_err());
    }
}
