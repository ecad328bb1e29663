//! Assertions that the tests of all messages share.

use binlogz_binlog::Result;

/// Checks that a decoder refuses a message cut at every byte, and one with a byte too many.
pub(crate) fn assert_every_cut_is_an_error(message: &[u8], decode: impl Fn(&[u8]) -> Result<()>) {
    assert_cuts_are_errors(message, &decode);
    assert!(decode(&[message, b"\x01"].concat()).is_err(), "one byte too many");
}

/// Asserts that each cut of a message is an error of the decoder, and that bytes after the last field are ignored, as a
/// server does.
pub(crate) fn assert_cuts_are_errors_and_more_is_ignored(
    message: &[u8],
    decode: impl Fn(&[u8]) -> Result<()>,
) {
    assert_cuts_are_errors(message, &decode);
    decode(&[message, b"\x01\0\0"].concat()).unwrap();
}

fn assert_cuts_are_errors(message: &[u8], decode: &dyn Fn(&[u8]) -> Result<()>) {
    decode(message).unwrap();
    for length in 0..message.len() {
        assert!(decode(&message[..length]).is_err(), "the first {length} bytes of {message:02x?}");
    }
}
