//! The intact parts of a damaged log are saved, the others are named.

use std::sync::Arc;

use binlogz_binlog::{EventReader, EventType};
use binlogz_flow::{Input, LostRange, ReadAt, Rewrite, Rewriter, survey, verify};
use binlogz_testkit::corpus;

/// Where each event of a log begins, with its type, and where the last one ends.
fn events(bytes: &[u8]) -> Vec<(u64, EventType)> {
    let mut reader = EventReader::new(bytes);
    let mut events = Vec::new();
    while let Some((offset, frame)) = reader.next_event().unwrap() {
        events.push((offset, frame.event_type()));
    }
    events.push((bytes.len() as u64, EventType::UNKNOWN));
    events
}

fn salvage(bytes: Vec<u8>) -> (Vec<LostRange>, Vec<u8>) {
    let places: Arc<dyn ReadAt> = Arc::new(bytes);
    let lost = survey(&places).unwrap();
    let mut out = Vec::new();
    Rewriter::new(Rewrite::Expand).workers(2).without(&lost).run(Input::Places(places), &mut out).unwrap();
    (lost, out)
}

fn gtids(bytes: &[u8]) -> usize {
    events(bytes).iter().filter(|(_, event_type)| event_type.is_gtid()).count()
}

#[test]
fn whole_logs_lose_nothing() {
    for file in corpus::binlogs() {
        let places: Arc<dyn ReadAt> = Arc::new(std::fs::read(&file.path).unwrap());
        assert_eq!(survey(&places).unwrap(), [], "{}", file.path.display());
    }
}

#[test]
fn damage_anywhere_loses_the_transaction_it_is_in_and_no_other() {
    let bytes = std::fs::read(corpus::path("binlog.000001")).unwrap();
    let events = events(&bytes);
    let whole = gtids(&bytes);
    for pair in events.windows(2).skip(2) {
        let [(begin, _), (end, _)] = pair else { unreachable!() };
        // The last event belongs to no transaction.
        if *end == bytes.len() as u64 {
            continue;
        }
        for place in [*begin + 4, *begin + 9, (*begin + *end) / 2, *end - 1] {
            let mut damaged = bytes.clone();
            damaged[place as usize] ^= 0x55;
            let (lost, saved) = salvage(damaged);
            let [lost] = lost.as_slice() else { panic!("damage at {place}: {lost:?}") };
            assert!(lost.range.contains(&place), "damage at {place}: {lost:?}");
            assert_eq!(lost.damage, *begin, "{lost:?}");
            assert_eq!(gtids(&saved), whole - 1, "damage at {place}: {lost:?}");
            let verdict = verify(Input::Places(Arc::new(saved)), 1, &mut |_| {}).unwrap();
            assert_eq!(verdict.problems(), [], "damage at {place}");
        }
    }
}

#[test]
fn a_cut_loses_the_transaction_it_is_in() {
    let bytes = std::fs::read(corpus::path("binlog.000001")).unwrap();
    for &(begin, _) in events(&bytes).iter().skip(3) {
        let (lost, saved) = salvage(bytes[..begin as usize - 1].to_vec());
        let [lost] = lost.as_slice() else { panic!("cut at {begin}: {lost:?}") };
        assert_eq!(lost.range.end, begin - 1);
        let verdict = verify(Input::Places(Arc::new(saved)), 1, &mut |_| {}).unwrap();
        assert_eq!(
            (verdict.problems(), verdict.findings.ends_inside_transaction),
            (&[][..], false),
            "cut at {begin}"
        );
    }
}
