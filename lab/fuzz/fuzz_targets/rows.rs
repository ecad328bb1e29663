#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| binlogz_fuzz::rows(bytes));
