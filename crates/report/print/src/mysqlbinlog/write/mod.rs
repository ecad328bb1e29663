//! How values become text: strings, times, base64, and the memory that text is in.

pub(super) mod base64_lines;
pub(super) mod hexdump;
pub(super) mod local_time;
pub(super) mod quote;
pub(super) mod text_memory;
