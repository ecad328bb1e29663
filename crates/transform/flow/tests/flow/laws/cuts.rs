//! Law 4: a log that ends inside an event is an error with its place or, while it is in use, reported as cut;
//! never a short log.

use binlogz_binlog::{EventType, HeaderFlags, MAGIC};
use binlogz_flow::{CutEvent, Rewrite, verify};
use binlogz_testkit::corpus;

use super::support::{compression, events, expand, is_soak, places, run, same};

/// Logs up to this size are cut as they are. In larger ones each transaction is cut alone, after the log's
/// head: the events before it, some of them 38 MB expanded, were covered already.
const WHOLE_LOG_MAX: usize = 6000;

/// Cuts of large transactions are this far apart, but for their first and last bytes; 1 in `make soak`.
fn stride() -> usize {
    if is_soak() { 1 } else { 61 }
}

/// A log, and how it may be cut.
struct Subject {
    name: String,
    log: Vec<u8>,
    /// The first cut that was not already made in another subject.
    from: usize,
}

fn subjects() -> Vec<Subject> {
    let mut subjects = Vec::new();
    for file in corpus::binlogs().into_iter().filter(|file| file.name.starts_with("corpus/")) {
        let log = file.read();
        if log.len() <= WHOLE_LOG_MAX {
            subjects.push(Subject { name: file.name, log, from: 0 });
            continue;
        }
        let all = events(&log);
        let first = all.iter().position(|event| event.header.event_type.is_gtid()).expect("a transaction");
        let (head, rest) = all.split_at(first);
        let head =
            [&MAGIC[..], &head.iter().flat_map(|event| &event.bytes).copied().collect::<Vec<_>>()].concat();
        for transaction in rest.chunk_by(|_, next| !next.header.event_type.is_gtid()) {
            let bytes = transaction.iter().flat_map(|event| &event.bytes).copied();
            let log = head.iter().copied().chain(bytes).collect();
            let name = format!("{} from {}", file.name, transaction[0].offset);
            subjects.push(Subject { name, log, from: head.len() });
        }
    }
    subjects
}

impl Subject {
    fn cuts(&self) -> impl Iterator<Item = usize> + '_ {
        let size = self.log.len();
        let near_an_end = move |cut: usize| cut - self.from < 300 || size - cut < 100;
        let every = if size > WHOLE_LOG_MAX { stride() } else { 1 };
        (self.from..size).filter(move |cut| near_an_end(*cut) || cut % every == 0)
    }

    /// The log is cut at an offset at which an event ends.
    fn is_whole_at(&self, ends: &[usize], cut: usize) -> bool {
        // Without a format description there is no log.
        ends.contains(&cut) && cut > MAGIC.len()
    }
}

#[test]
fn a_log_cut_at_any_byte_is_never_a_short_log() {
    let mut count = 0;
    for subject in subjects() {
        let in_use = subject.log[4 + 17] & HeaderFlags::IN_USE.0 as u8 != 0;
        let ends: Vec<_> = events(&subject.log).iter().map(|event| event.end()).collect();
        for cut in subject.cuts() {
            let is_whole = subject.is_whole_at(&ends, cut);
            let description_is_cut = cut < ends[0];
            for as_if_in_use in [false, true] {
                // The other outcome is tried now and then.
                if as_if_in_use && (in_use || cut % 7 != 0) {
                    continue;
                }
                let mut log = subject.log[..cut].to_vec();
                if let Some(flags) = log.get_mut(4 + 17) {
                    *flags |= u8::from(as_if_in_use);
                }
                let begin = ends.iter().rev().find(|end| **end <= cut).copied().unwrap_or_default();
                let expected = match () {
                    () if is_whole => Expected::Whole,
                    () if (in_use || as_if_in_use) && !description_is_cut => {
                        Expected::Cut(CutEvent { offset: begin as u64, size: (cut - begin) as u64 })
                    }
                    () => Expected::Error,
                };
                check(&subject, &log, expected);
                count += 1;
            }
        }
    }
    assert!(count > 30_000, "only {count} cuts");
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    Whole,
    Cut(CutEvent),
    Error,
}

fn check(subject: &Subject, log: &[u8], expected: Expected) {
    let place = || format!("{} cut at {}", subject.name, log.len());
    for how in [compression(1), Rewrite::Expand] {
        let result = run(places(log), how, 1);
        match (&result, expected) {
            (Ok((_, summary)), Expected::Whole) => {
                assert_eq!((summary.cut, summary.bytes_read), (None, log.len() as u64), "{}", place());
            }
            (Ok((_, summary)), Expected::Cut(cut)) => {
                assert_eq!((summary.cut, summary.bytes_read), (Some(cut), cut.offset), "{}", place());
            }
            (Err(error), Expected::Error) => {
                let said = error.to_string();
                assert!(
                    said.contains("the log ends inside an event") || log.len() < 4,
                    "{}: {said}",
                    place()
                );
            }
            _ => panic!("{}: {how:?} gives {:?}, expected {expected:?}", place(), result.map(|done| done.1)),
        }
    }
    let result = verify(places(log), 1, &mut |_| {});
    match (&result, expected) {
        (Ok(verdict), Expected::Whole) => assert_eq!(verdict.cut, None, "{}", place()),
        (Ok(verdict), Expected::Cut(cut)) => assert_eq!(verdict.cut, Some(cut), "{}", place()),
        (Err(_), Expected::Error) => {}
        _ => panic!("{}: verify gives {result:?}, expected {expected:?}", place()),
    }
}

#[test]
fn what_is_whole_of_a_log_in_use_is_expanded_as_ever() {
    let file = corpus::binlogs().into_iter().find(|file| file.name == "corpus/binlog.000005");
    let mut log = file.expect("a fixture").read();
    log[4 + 17] |= HeaderFlags::IN_USE.0 as u8;
    let whole = expand(&log);
    for cut in (events(&log)[0].end()..log.len()).step_by(97) {
        let (part, _) = run(places(&log[..cut]), Rewrite::Expand, 2).expect("it is in use");
        // A GTID event whose transaction is not there keeps the length that it has.
        let mut of_whole = events(&part);
        of_whole.retain(|event| !event.is(EventType::GTID) || event.end() < part.len());
        let size = of_whole.last().expect("a format description").end();
        same("binlog.000005", &format!("cut at {cut}"), &part[..size], &whole[..size]);
    }
}
