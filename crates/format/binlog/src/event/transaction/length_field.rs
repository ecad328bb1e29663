//! Where the transaction length stands in a GTID event of either kind: found beside their codecs, rewritten in
//! `transaction_length.rs`.

/// Offset of the transaction length in a body, its size in bytes, and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::event) struct LengthField {
    pub(in crate::event) offset: usize,
    pub(in crate::event) size: usize,
    pub(in crate::event) value: u64,
}
