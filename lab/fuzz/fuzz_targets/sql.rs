#![no_main]

#[path = "../src/sql.rs"]
#[allow(dead_code)] // seeds are for runs without a fuzzer
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::sql(bytes));
