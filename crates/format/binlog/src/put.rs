//! Writes fields at the end of a buffer: the other direction of [`crate::cursor`].

/// Appends little-endian fields to a buffer.
pub trait PutFields {
    /// Appends bytes as they are.
    fn put(&mut self, bytes: &[u8]);

    /// Appends one byte.
    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    /// Appends two bytes.
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    /// Appends four bytes.
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    /// Appends eight bytes.
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// Appends eight bytes of a signed number.
    fn put_i64(&mut self, value: i64) {
        self.put(&value.to_le_bytes());
    }

    /// Appends the `width` low bytes of a number, at most 8.
    fn put_uint(&mut self, value: u64, width: usize) {
        for byte in value.to_le_bytes().iter().take(width) {
            self.put_u8(*byte);
        }
    }

    /// Appends a length-encoded integer in its shortest form, as the server does.
    fn put_lei(&mut self, value: u64) {
        match value {
            0..=250 => self.put_u8(value as u8),
            251..=0xffff => {
                self.put_u8(252);
                self.put_uint(value, 2);
            }
            0x1_0000..=0xff_ffff => {
                self.put_u8(253);
                self.put_uint(value, 3);
            }
            _ => {
                self.put_u8(254);
                self.put_u64(value);
            }
        }
    }

    /// Appends an unsigned variable-length integer of `mysql::serialization`.
    fn put_vli(&mut self, value: u64) {
        match vli_size(value) {
            9 => {
                self.put_u8(0xff);
                self.put_u64(value);
            }
            8 => {
                self.put_u8(0x7f);
                self.put_uint(value, 7);
            }
            size => {
                let marked = value << size | ((1 << (size - 1)) - 1);
                self.put_uint(marked, size);
            }
        }
    }

    /// Appends a signed variable-length integer (zig-zag, sign in bit 0).
    fn put_vli_signed(&mut self, value: i64) {
        self.put_vli(zig_zag(value));
    }

    /// Appends a name as events store it: length-encoded length, bytes, NUL.
    fn put_name_nul(&mut self, name: &[u8]) {
        self.put_lei(name.len() as u64);
        self.put(name);
        self.put_u8(0);
    }
}

impl PutFields for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Bytes that [`PutFields::put_lei`] appends.
pub fn lei_size(value: u64) -> usize {
    match value {
        0..=250 => 1,
        251..=0xffff => 3,
        0x1_0000..=0xff_ffff => 4,
        _ => 9,
    }
}

/// Bytes that [`PutFields::put_vli`] appends: seven bits of value a byte, nine bytes at most.
pub(crate) fn vli_size(value: u64) -> usize {
    let bits = (u64::BITS - value.leading_zeros()).max(1) as usize;
    bits.div_ceil(7).min(9)
}

fn zig_zag(value: i64) -> u64 {
    if value >= 0 { (value as u64) << 1 } else { ((!value) as u64) << 1 | 1 }
}
