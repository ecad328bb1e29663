//! Tells whether the machine was busy with something else while times were measured. Compressing waits for nothing but
//! the processor, so the machine was busy if much more time passed than processor time.

use std::time::Instant;

use binlogz_flow::measure::CpuClock;

/// The machine is busy with something else if compressing takes this many times its processor time.
const BUSY: f64 = 1.3;

/// Time spent on measuring, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MeasuringTime {
    /// Elapsed.
    pub(crate) wall: u64,
    /// Processor time of the threads that measured.
    pub(crate) cpu: u64,
}

impl MeasuringTime {
    /// Measures something, and adds what that took.
    pub(crate) fn time<T>(&mut self, clock: CpuClock, measure: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let (measured, cpu) = clock.time(measure);
        let wall = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.add(MeasuringTime { wall, cpu });
        measured
    }

    pub(crate) fn add(&mut self, more: MeasuringTime) {
        self.wall += more.wall;
        self.cpu += more.cpu;
    }

    /// How many times its processor time measuring took: 1 on a machine that does nothing else.
    pub(crate) fn waiting(self) -> f64 {
        if self.cpu == 0 { 1.0 } else { (self.wall as f64 / self.cpu as f64).max(1.0) }
    }

    /// Whether measuring waited for the processor.
    pub(crate) fn was_disturbed(self) -> bool {
        self.wall as f64 > BUSY * self.cpu as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_the_processor_is_told_from_using_it() {
        let disturbed = |wall, cpu| MeasuringTime { wall, cpu }.was_disturbed();
        assert!(!disturbed(0, 0) && !disturbed(1_000, 1_000) && !disturbed(1_290, 1_000));
        assert!(disturbed(1_310, 1_000) && disturbed(2_000, 1_000));
        let waiting = |wall, cpu| MeasuringTime { wall, cpu }.waiting();
        assert_eq!([waiting(0, 0), waiting(900, 1_000), waiting(8_000, 1_000)], [1.0, 1.0, 8.0]);
    }
}
