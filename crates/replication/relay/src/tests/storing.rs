//! The end of the thread that writes.

use std::cell::OnceCell;
use std::sync::Arc;

use binlogz_testkit::builder::UUID;
use binlogz_testkit::disk::SimulatedDisk;
use binlogz_testkit::random::Random;
use crossbeam_channel::bounded;

use super::crashes::{OneDisk, options};
use super::open_source;
use crate::error::Error;
use crate::receive::storing::{Batches, STORE_WRITER, StoreProgress, write_all};

#[test]
fn nobody_waits_for_a_writer_that_has_ended() {
    let progress = StoreProgress::default();
    progress.state.lock().brought = 1;
    let disk = Arc::new(OneDisk(SimulatedDisk::new()));
    let relay = open_source(options(&mut Random::new(1)), disk).unwrap();
    let kept = relay.intake.keep("binlog", UUID, false).unwrap();
    let (to_writer, in_order) = bounded(1);
    drop(to_writer);
    write_all(&relay.intake, &kept, &progress, in_order);
    let start = || Err(Error::Ended(STORE_WRITER));
    let threads = OnceCell::new();
    let batches = Batches { intake: &relay.intake, kept: &kept, threads, start: &start, progress: &progress };
    assert!(matches!(batches.drain(), Err(Error::Ended(STORE_WRITER))));
}
