//! The processor time of a thread, which excludes that of other programs.

use rustix::time::{ClockId, clock_gettime};

/// Measures times shorter than the cost of reading the clock.
#[derive(Debug, Clone, Copy)]
pub struct CpuClock {
    /// The cost of reading the clock, in nanoseconds.
    cost: u64,
}

/// How often the clock is read to measure that cost.
const LOOKS: usize = 200;

impl Default for CpuClock {
    fn default() -> Self {
        let mut last = now();
        let looks = (0..LOOKS).map(|_| {
            let before = std::mem::replace(&mut last, now());
            last - before
        });
        CpuClock { cost: looks.min().unwrap_or(0) }
    }
}

impl CpuClock {
    /// Runs a closure; returns its result and the nanoseconds of processor time that this thread took for it.
    pub fn time<T>(self, work: impl FnOnce() -> T) -> (T, u64) {
        let start = now();
        let result = work();
        (result, (now() - start).saturating_sub(self.cost))
    }
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn sleeping_takes_no_processor_time() {
        let clock = CpuClock::default();
        let ((), slept) = clock.time(|| std::thread::sleep(Duration::from_millis(200)));
        let (sum, worked) = clock.time(|| (0..20_000_000u64).map(std::hint::black_box).sum::<u64>());
        assert!(sum > 0 && slept < 100_000_000 && worked > 1_000_000, "{slept} {worked}");
    }
}
