//! Damages a log event by event, then makes sizes and checksums fit again, so that the error is found after
//! framing.

use binlogz_binlog::frame::encode_event;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, HeaderFlags, MAGIC};
use binlogz_testkit::random::Random;

use super::support::{Event, events};

/// Disorder `index` under `seed`, and what was done, in words.
pub(crate) fn disorder(log: &[u8], seed: u64, index: u64) -> (Vec<u8>, String) {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(index));
    let mut events = events(log);
    let mut done = Vec::new();
    for _ in 0..=random.below(3) {
        done.push(change(&mut events, &mut random));
    }
    // Half of them numbered anew: then every position is the event's own place.
    let renumbered = random.below(2) == 0;
    if renumbered {
        done.push("renumbered".into());
    }
    (write(&events, renumbered), format!("SEED={seed} disorder {index}: {}", done.join(", ")))
}

/// Changes one event after the format description.
fn change(events: &mut Vec<Event>, random: &mut Random) -> String {
    let at = 1 + random.below(events.len().max(2) - 1);
    let Some(event) = events.get(at).cloned() else { return "nothing".into() };
    let body = HEADER_SIZE..event.bytes.len() - event.checksum_size;
    let place = body.start + random.below(body.len().max(1));
    let changed = &mut events[at];
    match random.below(11) {
        0 => {
            events.remove(at);
            format!("event {at} removed")
        }
        1 => {
            events.insert(at, event);
            format!("event {at} doubled")
        }
        2 => {
            let other = 1 + random.below(events.len() - 1);
            events.swap(at, other);
            format!("events {at} and {other} swapped")
        }
        3 => {
            changed.header.event_type = EventType(random.below(43) as u8);
            format!("event {at} has type {}", changed.header.event_type.0)
        }
        4 => {
            let near = [0, 1, event.header.event_size, u32::MAX - 5][random.below(4)];
            changed.header.end_log_pos =
                event.header.end_log_pos.wrapping_add(near).wrapping_mul(near.min(1));
            format!("event {at} has position {}", changed.header.end_log_pos)
        }
        5 => {
            changed.header.flags = HeaderFlags(1 << random.below(10));
            format!("event {at} has flags {:?}", changed.header.flags)
        }
        6 => {
            changed.header.timestamp ^= 1;
            changed.header.server_id ^= 2;
            format!("event {at} has another time and server")
        }
        7 if place < body.end => {
            let end = body.end.min(place + 1 + random.below(40));
            changed.bytes.drain(place..end);
            format!("{} bytes of event {at} removed at {place}", end - place)
        }
        8 => {
            let noise = (0..1 + random.below(300)).map(|_| random.bits() as u8).collect::<Vec<_>>();
            let count = noise.len();
            changed.bytes.splice(body.end..body.end, noise);
            format!("{count} bytes more in event {at}")
        }
        9 if place < body.end => {
            changed.bytes[place] = [0, 1, 250, 251, 252, 253, 254, 255][random.below(8)];
            format!("byte {} at {place} of event {at}", changed.bytes[place])
        }
        _ if place < body.end => {
            changed.bytes[place] ^= 1 << random.below(8);
            format!("bit flipped at {place} of event {at}")
        }
        _ => "nothing".into(),
    }
}

fn write(events: &[Event], renumbered: bool) -> Vec<u8> {
    let mut log = MAGIC.to_vec();
    for event in events {
        let body = &event.bytes[HEADER_SIZE..event.bytes.len() - event.checksum_size];
        let checksum =
            if event.checksum_size > 0 { ChecksumAlgorithm::CRC32 } else { ChecksumAlgorithm::NONE };
        let end = (log.len() + HEADER_SIZE + body.len() + event.checksum_size) as u32;
        let end_log_pos = if renumbered { end } else { event.header.end_log_pos };
        log.extend(encode_event(EventHeader { end_log_pos, ..event.header }, body, checksum));
    }
    log
}
