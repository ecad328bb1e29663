//! Every event of every real log comes out once, in order, whatever the batches: compared with a reader
//! that knows no batches.

use std::io::Read;
use std::sync::Arc;

use binlogz_binlog::event::{CompressionType, TransactionPayloadEvent};
use binlogz_binlog::row::RowDecoder;
use binlogz_binlog::{Boundary, EventReader, EventType, Framing, TransactionBoundaryParser};
use binlogz_payload::Expander;
use binlogz_testkit::{corpus, mutate};

use super::*;
use crate::read::BatchSize;

/// An event as it was handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// Offset in the log, index and offset inside a payload.
    place: (u64, Option<(u64, u64)>),
    event_type: EventType,
    boundary: Boundary,
    body: Vec<u8>,
}

/// The result for a whole log.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    events: Vec<Seen>,
    /// Sizes of payloads, in order.
    payloads: Vec<(u64, u64)>,
    rows: u64,
    gtids: Vec<Option<u64>>,
    error: Option<String>,
}

const TINY: MemoryPlan = MemoryPlan {
    batch: BatchSize { target: 1, max: 300 },
    small_payload_max: 150,
    work_max: 1,
    verify: true,
};
const SMALL: MemoryPlan = MemoryPlan {
    batch: BatchSize { target: 3000, max: 20_000 },
    small_payload_max: 5_000,
    work_max: 10_000,
    verify: true,
};
const NO_SMALL_PAYLOADS: MemoryPlan = MemoryPlan {
    batch: BatchSize { target: 100_000, max: 200_000 },
    small_payload_max: 0,
    work_max: 1 << 20,
    verify: true,
};

/// A log read without batches.
fn reference(bytes: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut reader = EventReader::new(bytes);
    let mut transaction = TransactionBoundaryParser::new();
    while let Some((offset, frame)) = reader.next_event().unwrap() {
        let header = *frame.header();
        let is_payload = header.event_type == EventType::TRANSACTION_PAYLOAD;
        let boundary = transaction.feed(&header, frame.body()).boundary;
        let mut body = frame.body().to_vec();
        if is_payload {
            let payload = TransactionPayloadEvent::decode(frame.body()).unwrap();
            body.truncate(body.len() - payload.payload.len() - payload.trailing.len());
        }
        let seen = Seen { place: (offset, None), event_type: header.event_type, boundary, body };
        outcome.events.push(seen);
        if is_payload {
            let payload = TransactionPayloadEvent::decode(frame.body()).unwrap();
            let events = expand(&payload);
            outcome.payloads.push((payload.payload.len() as u64, events.len() as u64));
            let mut place = 0;
            let mut index = 0;
            while let Some(inner) = Framing::new().next_frame(&events[place..]).unwrap() {
                let inner = inner.unchecked().unwrap();
                outcome.events.push(Seen {
                    place: (offset, Some((index, place as u64))),
                    event_type: inner.event_type(),
                    boundary: Boundary::Inside,
                    body: inner.body().to_vec(),
                });
                place += inner.bytes().len();
                index += 1;
            }
        }
    }
    outcome
}

fn expand(payload: &TransactionPayloadEvent<'_>) -> Vec<u8> {
    let mut events = Vec::new();
    if payload.header.compression_type() == CompressionType::NONE {
        return payload.payload.to_vec();
    }
    let mut expander = Expander::new().unwrap();
    expander.begin().unwrap();
    let collect = |bytes: &[u8]| {
        events.extend_from_slice(bytes);
        Ok::<(), binlogz_payload::Error>(())
    };
    expander.push(payload.payload, collect).unwrap();
    expander.finish().unwrap();
    events
}

/// A log read in batches, each decoded with only what it carries.
fn in_batches(input: Input, workers: usize, plan: MemoryPlan) -> Outcome {
    let work = |_: &mut (), batch: &mut EventBatch<'_>| {
        let mut outcome = Outcome::default();
        let mut tables = WorkerTables::new();
        if let Err(error) = tables.begin(batch) {
            batch.fail(error);
        }
        let mut gtid = batch.carried().gtid.as_ref().map(|gtid| gtid.offset);
        let mut decoder = RowDecoder::new();
        while let Some(item) = batch.next_item() {
            let event = match item {
                BatchItem::Event(event) => event,
                BatchItem::PayloadEnd(end) => {
                    outcome.payloads.push((end.sizes.compressed, end.sizes.uncompressed));
                    gtid = None;
                    continue;
                }
            };
            let inside = event.position.inside.map(|inside| (inside.index, inside.offset));
            outcome.events.push(Seen {
                place: (event.position.offset, inside),
                event_type: event.header.event_type,
                boundary: event.placement.boundary,
                body: event.body.to_vec(),
            });
            if event.header.event_type.is_gtid() {
                gtid = Some(event.position.offset);
            }
            let is_payload = event.header.event_type == EventType::TRANSACTION_PAYLOAD;
            if matches!(event.placement.boundary, Boundary::End | Boundary::Single) && !is_payload {
                gtid = None;
            }
            match count_rows(&mut tables, &mut decoder, &event) {
                Ok(None) => {}
                Ok(Some(rows)) => {
                    outcome.rows += rows;
                    outcome.gtids.push(gtid);
                }
                Err(error) => {
                    batch.fail(error);
                    break;
                }
            }
        }
        Ok(outcome)
    };
    let mut all = Outcome::default();
    let sink = |part: Outcome| {
        all.events.extend(part.events);
        all.payloads.extend(part.payloads);
        all.gtids.extend(part.gtids);
        all.rows += part.rows;
        Ok(())
    };
    let result = run_planned(input, workers, plan, || Ok(()), work, sink, &mut |_| {});
    all.error = result.err().map(|error| error.to_string());
    all
}

fn count_rows(
    tables: &mut WorkerTables,
    decoder: &mut RowDecoder,
    event: &Event<'_>,
) -> Result<Option<u64>, Error> {
    let Some(TableEvent::Rows(schema, rows)) = tables.event(event)? else { return Ok(None) };
    let located = |error| event.error(error);
    let mut rows = decoder.rows(&schema, &rows).map_err(located)?;
    let mut count = 0;
    while rows.next_row().map_err(located)?.is_some() {
        count += 1;
    }
    Ok(Some(count))
}

fn memory(bytes: &[u8]) -> Input {
    Input::Places(Arc::new(bytes.to_vec()))
}

/// Gives its bytes one at a time where headers are, and in odd pieces elsewhere.
struct Trickle(std::io::Cursor<Vec<u8>>);

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = buffer.len().min(1 + self.0.position() as usize % 4099);
        self.0.read(&mut buffer[..count])
    }
}

/// Compares outcomes; reports the first difference, not everything.
fn same(got: &Outcome, expected: &Outcome, what: &str) {
    assert_eq!(got.error, expected.error, "{what}");
    let differ = got.events.iter().zip(&expected.events).find(|(got, expected)| got != expected);
    assert_eq!(differ, None, "{what}");
    assert_eq!(got.events.len(), expected.events.len(), "{what}");
    assert_eq!((got.rows, &got.payloads), (expected.rows, &expected.payloads), "{what}");
    assert!(got.gtids == expected.gtids, "{what}: {:?} instead of {:?}", got.gtids, expected.gtids);
}

#[test]
fn every_event_comes_once_and_in_order() {
    for file in corpus::binlogs() {
        let bytes = file.read();
        let expected = reference(&bytes);
        let usual = in_batches(memory(&bytes), 1, MemoryPlan::for_workers(1));
        assert_eq!(usual.error, None, "{}", file.name);
        assert!(usual.events == expected.events, "{}", file.name);
        assert_eq!(usual.payloads, expected.payloads, "{}", file.name);
        for (workers, plan) in
            [(3, MemoryPlan::for_workers(3)), (2, TINY), (1, SMALL), (4, NO_SMALL_PAYLOADS)]
        {
            same(&in_batches(memory(&bytes), workers, plan), &usual, &format!("{} {plan:?}", file.name));
        }
        let pipe = Input::Stream(Box::new(Trickle(std::io::Cursor::new(bytes))));
        same(&in_batches(pipe, 2, SMALL), &usual, &format!("{} through a pipe", file.name));
    }
}

#[test]
fn logs_one_behind_the_other_are_read_as_one_stream() {
    let bytes = std::fs::read(corpus::path("binlog.000001")).unwrap();
    let twice = [&bytes[..], &bytes].concat();
    let once = in_batches(memory(&bytes), 2, SMALL);
    let both = in_batches(memory(&twice), 2, SMALL);
    assert_eq!(both.error, None);
    assert_eq!(both.events.len(), 2 * once.events.len());
    assert!(both.events[once.events.len()..] == once.events[..]);
}

#[test]
fn damaged_logs_give_the_same_events_and_the_same_error_whatever_the_batches() {
    let seed = mutate::seed();
    for (number, file) in corpus::binlogs().iter().enumerate() {
        let original = file.read();
        if original.len() > 200_000 {
            continue;
        }
        for index in 0..40 {
            let (bytes, what) = mutate::mutate(&original, seed, number as u64 * 1000 + index);
            let small = in_batches(
                memory(&bytes),
                1,
                MemoryPlan { small_payload_max: 5_000, ..MemoryPlan::for_workers(1) },
            );
            for (workers, plan) in [(3, SMALL), (1, MemoryPlan { small_payload_max: 5_000, ..TINY })] {
                let other = in_batches(memory(&bytes), workers, plan);
                same(&other, &small, &format!("{} {what}", file.name));
            }
        }
    }
}

#[test]
fn a_log_in_use_that_ends_inside_an_event_says_where() {
    let mut bytes = std::fs::read(corpus::path("binlog.000001")).unwrap();
    // The in-use flag of the format description, which its checksum does not cover.
    bytes[4 + 17] |= 1;
    let whole = in_batches(memory(&bytes), 2, SMALL);
    assert_eq!(whole.error, None);
    bytes.truncate(bytes.len() - 5);
    let mut count = 0;
    let work = |_: &mut (), batch: &mut EventBatch<'_>| {
        let mut events = 0;
        while let Some(item) = batch.next_item() {
            events += usize::from(matches!(item, BatchItem::Event(_)));
        }
        Ok(events)
    };
    let sink = |events| {
        count += events;
        Ok(())
    };
    let RunSummary { read: summary, unread } =
        run(memory(&bytes), 2, || Ok(()), work, sink, &mut |_| {}).unwrap();
    assert!(unread.is_empty());
    let last = whole.events.last().unwrap();
    assert_eq!(count, whole.events.len() - 1);
    assert_eq!(summary.cut.unwrap().offset, last.place.0);
    assert_eq!(summary.bytes_read, last.place.0);
}
