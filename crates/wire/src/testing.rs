//! Shared by the tests of all messages.

use binlogz_binlog::Result;

/// Checks that a decoder refuses a message cut at every byte, and one with a byte too many.
pub(crate) fn assert_every_cut_is_an_error(message: &[u8], decode: impl Fn(&[u8]) -> Result<()>) {
    decode(message).unwrap();
    for length in 0..message.len() {
        assert!(decode(&message[..length]).is_err(), "the first {length} bytes of {message:02x?}");
    }
    assert!(decode(&[message, b"\x01"].concat()).is_err(), "one byte too many");
}
