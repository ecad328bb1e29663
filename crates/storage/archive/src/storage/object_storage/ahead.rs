//! Decides which ranges of an object are requested together. Keeps the requests on their way and the answers, and says
//! what the next request covers. It makes no request itself: [`super::object`] does.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use object_store::Result;

/// The most bytes read ahead in one request.
const AHEAD_MAX: u64 = 1 << 20;
/// The first reading ahead; each further one doubles.
const AHEAD_MIN: u64 = 128 << 10;
/// Ranges with more bytes between them are not near each other.
const GAP_MAX: u64 = 128 << 10;
/// Ranges of more bytes come alone, and are not kept.
const SMALL_MAX: u64 = 256 << 10;
/// Answers that are kept, together with requests on their way that read ahead. Workers that take ranges in turn may be one window
/// apart, and one more is on its way.
const WINDOWS: usize = 3;

const _: () = assert!(AHEAD_MIN < AHEAD_MAX && GAP_MAX + SMALL_MAX <= AHEAD_MAX);

/// A request for a range, which all readers that want a part of it share.
pub(super) struct RangeRequest {
    range: Range<u64>,
    extent: Extent,
    answer: OnceLock<Result<Vec<u8>>>,
}

/// The kind of a request: how much it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// One range, too large to be kept.
    Large,
    /// One small range: nothing is known to be wanted beside it.
    Alone,
    /// A range, and what is near it.
    Ahead,
}

impl RangeRequest {
    /// The answer. The first reader has `fetch` get it; others wait for that, and share its error as well.
    pub(super) fn answer(&self, fetch: impl FnOnce(Range<u64>) -> Result<Vec<u8>>) -> &Result<Vec<u8>> {
        self.answer.get_or_init(|| fetch(self.range.clone()))
    }

    /// The bytes asked for.
    pub(super) fn size(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// A range's bytes in those of the answer; `None`: the answer is shorter or longer than it should be.
    pub(super) fn part(&self, bytes: &[u8], range: &Range<u64>) -> Option<Vec<u8>> {
        part(&self.range, bytes, range)
    }

    fn covers(&self, range: &Range<u64>) -> bool {
        self.range.start <= range.start && range.end <= self.range.end
    }

    /// Whether a range begins in this one or soon after it.
    fn is_near(&self, range: &Range<u64>) -> bool {
        (self.range.start..=self.range.end + GAP_MAX).contains(&range.start)
    }

    fn is_on_its_way(&self) -> bool {
        self.answer.get().is_none()
    }

    fn is_reading_ahead(&self) -> bool {
        self.is_on_its_way() && self.extent == Extent::Ahead
    }
}

/// The bytes of `range`, if `bytes` are exactly those of `all`.
pub(super) fn part(all: &Range<u64>, bytes: &[u8], range: &Range<u64>) -> Option<Vec<u8>> {
    if bytes.len() as u64 != all.end - all.start {
        return None;
    }
    let from = usize::try_from(range.start.checked_sub(all.start)?).ok()?;
    let size = usize::try_from(range.end - range.start).ok()?;
    Some(bytes.get(from..)?.get(..size)?.to_vec())
}

/// The next step for a reader of a range.
pub(super) enum NextRead {
    /// It takes its bytes from the answer to this request.
    Take(Arc<RangeRequest>),
    /// It waits for the answer to this one and asks again: enough is being read ahead.
    Wait(Arc<RangeRequest>),
}

/// The requests for an object.
#[derive(Default)]
pub(super) struct ReadAhead {
    /// The requests whose answers are kept and those on their way, the newest last.
    requests: VecDeque<Arc<RangeRequest>>,
    /// Ranges that will be read, those near each other as one.
    expected: Vec<Range<u64>>,
    /// Bytes to read in the next request, if that goes on where an earlier one ended.
    next: u64,
}

impl ReadAhead {
    /// The request for a range: one that there is, or a new one. Nothing is read ahead beyond `end`.
    pub(super) fn request(&mut self, range: &Range<u64>, end: u64) -> NextRead {
        if let Some(request) = self.with(range) {
            return NextRead::Take(request);
        }
        if range.end - range.start > SMALL_MAX {
            return self.begin(range.clone(), Extent::Large);
        }
        let before = self.before(range);
        let Some(all) = self.plan(range, before, end) else {
            return self.begin(range.clone(), Extent::Alone);
        };
        let mut reading_ahead = self.requests.iter().filter(|request| request.is_reading_ahead());
        if reading_ahead.clone().count() >= WINDOWS
            && let Some(oldest) = reading_ahead.next()
        {
            return NextRead::Wait(Arc::clone(oldest));
        }
        if before.is_some() {
            self.next = 2 * self.ahead_size();
        }
        self.begin(all, Extent::Ahead)
    }

    /// Tells which ranges will be read next, in ascending order.
    pub(super) fn expect(&mut self, ranges: impl Iterator<Item = Range<u64>>) {
        self.expected = together(ranges);
    }

    /// Drops all answers.
    pub(super) fn forget(&mut self) {
        self.requests.retain(|request| request.is_on_its_way());
    }

    /// Drops answers that no other reader needs, and the oldest answers if they exceed the memory for them.
    pub(super) fn trim(&mut self) {
        self.requests.retain(|request| match request.answer.get() {
            Some(Ok(bytes)) => request.extent != Extent::Large && bytes.len() as u64 == request.size(),
            Some(Err(_)) => false,
            None => true,
        });
        let is_held = |request: &&Arc<RangeRequest>| !request.is_on_its_way() || request.is_reading_ahead();
        while self.requests.iter().filter(is_held).count() > WINDOWS {
            let Some(oldest) = self.requests.iter().position(|request| !request.is_on_its_way()) else {
                return;
            };
            self.requests.remove(oldest);
        }
    }

    fn begin(&mut self, range: Range<u64>, extent: Extent) -> NextRead {
        let request = Arc::new(RangeRequest { range, extent, answer: OnceLock::new() });
        self.requests.push_back(Arc::clone(&request));
        self.trim();
        NextRead::Take(request)
    }

    /// The request that has a range, rather than one that will have it.
    fn with(&self, range: &Range<u64>) -> Option<Arc<RangeRequest>> {
        let with = self.requests.iter().filter(|request| request.covers(range));
        with.min_by_key(|request| request.is_on_its_way()).cloned()
    }

    /// Where the request ends after which reading goes on with a range. Several workers may each go on at a place of their own.
    fn before(&self, range: &Range<u64>) -> Option<u64> {
        let small = self.requests.iter().filter(|request| request.extent != Extent::Large);
        small.filter(|request| request.is_near(range)).map(|request| request.range.end).max()
    }

    fn ahead_size(&self) -> u64 {
        self.next.clamp(AHEAD_MIN, AHEAD_MAX)
    }

    /// The bytes to ask for to get a range that isn't at hand; `None`: alone, since nothing is known to be wanted beside it.
    fn plan(&self, range: &Range<u64>, before: Option<u64>, end: u64) -> Option<Range<u64>> {
        let expected = self.expected.iter().find(|all| all.start <= range.start && range.end <= all.end);
        let Some(before) = before else { return expected.cloned() };
        // A worker may be ahead of the one that reads what lies between.
        let start = range.start.min(before);
        let to = range.end.max((start + self.ahead_size()).min(end));
        Some(start..expected.map_or(to, |expected| to.max(expected.end)))
    }
}

/// Ranges near each other as one, if that isn't too large.
fn together(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in ranges.filter(|range| range.end - range.start <= SMALL_MAX) {
        match all.last_mut() {
            Some(last)
                if (last.start..=last.end + GAP_MAX).contains(&range.start)
                    && range.end.saturating_sub(last.start) <= AHEAD_MAX =>
            {
                last.end = last.end.max(range.end);
            }
            _ => all.push(range),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u64 = 10 << 20;

    fn kib(from: u64, to: u64) -> Range<u64> {
        from << 10..to << 10
    }

    /// The range that is requested in order to read `range`, and the request.
    fn asked(ahead: &mut ReadAhead, range: &Range<u64>) -> (Range<u64>, Arc<RangeRequest>) {
        match ahead.request(range, END) {
            NextRead::Take(request) => (request.range.clone(), request),
            NextRead::Wait(oldest) => panic!("{range:?} waits for {:?}", oldest.range),
        }
    }

    /// The range that is requested in order to read `range`, answered.
    fn read(ahead: &mut ReadAhead, range: &Range<u64>) -> Range<u64> {
        let (all, request) = asked(ahead, range);
        let answer = request.answer(|range| Ok(vec![1; (range.end - range.start) as usize]));
        assert_eq!(
            request.part(answer.as_ref().unwrap(), range).unwrap().len() as u64,
            range.end - range.start
        );
        ahead.trim();
        all
    }

    #[test]
    fn ranges_near_each_other_come_together() {
        let together = |ranges: &[Range<u64>]| together(ranges.iter().cloned());
        let near = [kib(0, 30), kib(31, 60), kib(180, 200)];
        assert_eq!(together(&near), [kib(0, 200)]);
        assert_eq!(together(&[kib(0, 30), kib(159, 160)]), [kib(0, 30), kib(159, 160)], "a gap");
        assert_eq!(
            together(&[kib(0, 30), kib(31, 288), kib(288, 300)]),
            [kib(0, 30), kib(288, 300)],
            "a large one"
        );
        let many: Vec<_> = (0..10).map(|number| kib(number * 200, number * 200 + 200)).collect();
        assert_eq!(together(&many), [kib(0, 1000), kib(1000, 2000)], "no more than may be read at once");
    }

    #[test]
    fn reading_on_reads_ahead_and_reading_elsewhere_does_not() {
        let mut ahead = ReadAhead::default();
        assert_eq!(read(&mut ahead, &(100..200)), 100..200);
        assert_eq!(read(&mut ahead, &kib(5000, 5001)), kib(5000, 5001));
        // The range also covers what another worker reads in between.
        let mut at = 200 + AHEAD_MIN;
        assert_eq!(read(&mut ahead, &(300..400)), 200..at);
        for size in [2 * AHEAD_MIN, 4 * AHEAD_MIN, AHEAD_MAX, AHEAD_MAX] {
            assert_eq!(read(&mut ahead, &(at..at + 9)), at..at + size);
            at += size;
        }
        let NextRead::Take(last) = ahead.request(&(at..at + 100), at + 50) else {
            panic!("nothing is on its way")
        };
        assert_eq!(last.range, at..at + 100, "the tail is at hand");
        assert_eq!(read(&mut ahead, &(99..400)), 99..400);
        ahead.expect([kib(8000, 8030), kib(8031, 8200)].into_iter());
        assert_eq!(read(&mut ahead, &kib(8040, 8041)), kib(8000, 8200));
        assert_eq!(read(&mut ahead, &kib(9000, 9300)), kib(9000, 9300), "a large one");
        assert_eq!(read(&mut ahead, &kib(9300, 9301)), kib(9300, 9301), "what follows a large one");
    }

    #[test]
    fn what_is_on_its_way_is_shared_and_only_so_much_is_read_ahead() {
        let mut ahead = ReadAhead::default();
        let far = [0, 2000, 4000, 6000];
        ahead.expect(far.into_iter().flat_map(|at| [kib(at, at + 30), kib(at + 30, at + 60)]));
        let begun: Vec<_> =
            far.iter().take(WINDOWS).map(|&at| asked(&mut ahead, &kib(at, at + 30))).collect();
        assert!(begun.iter().zip(far).all(|((all, _), at)| *all == kib(at, at + 60)));
        let (_, shared) = asked(&mut ahead, &kib(2030, 2060));
        assert!(Arc::ptr_eq(&shared, &begun[1].1));
        // A range alone, also a large one, needs no more than is asked for.
        let (_, alone) = asked(&mut ahead, &kib(8000, 8001));
        let (_, large) = asked(&mut ahead, &kib(9000, 9300));
        assert!(Arc::ptr_eq(&large, &asked(&mut ahead, &kib(9100, 9200)).1));
        let NextRead::Wait(oldest) = ahead.request(&kib(6000, 6030), END) else {
            panic!("more is read ahead")
        };
        assert!(Arc::ptr_eq(&oldest, &begun[0].1));
        for request in begun.iter().map(|(_, request)| request).chain([&alone, &large]) {
            assert!(request.answer(|range| Ok(vec![1; (range.end - range.start) as usize])).is_ok());
            ahead.trim();
        }
        let kept: Vec<_> = ahead.requests.iter().map(|request| request.range.clone()).collect();
        assert_eq!(kept, [kib(2000, 2060), kib(4000, 4060), kib(8000, 8001)], "the newest, no large one");
        assert_eq!(read(&mut ahead, &kib(6000, 6030)), kib(6000, 6060));
    }

    #[test]
    fn what_failed_is_asked_for_again() {
        let mut ahead = ReadAhead::default();
        for answer in [
            Err(object_store::Error::NotImplemented { operation: "x".into(), implementer: "y".into() }),
            Ok(vec![1; 9]),
        ] {
            let (_, request) = asked(&mut ahead, &(0..10));
            assert!(request.is_on_its_way());
            let answer = request.answer(|_| answer);
            assert!(answer.as_ref().map_or(true, |bytes| request.part(bytes, &(0..10)).is_none()));
            ahead.trim();
        }
        assert!(ahead.requests.is_empty());
    }
}
