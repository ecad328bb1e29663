//! Text in SQL, whatever the session's mode.

/// A text as hexadecimal digits.
pub(super) fn hexadecimal(text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("CONVERT(x'{digits}' USING utf8mb4)")
}
