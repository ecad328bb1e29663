//! The troubles of a relay, for people at 3 a.m. and for supervisors that restart processes or call people.
//!
//! ```text
//! red at once        what is kept or archived is damaged · a clock has jumped · receiving has failed · a duty has ended or panicked · this machine gives no threads, descriptors or memory
//! red after 60 s     receiving makes no progress though the source has more · the source refuses to give its log · a sync that
//!                    does not end · archiving fails
//! red after longer   closed files wait, and none is archived; the archive can't be checked (`overdue` of `[archive]`)
//! not red            a source that can't be reached (the lag tells), receiving that a user stopped
//! ```

use std::time::Duration;

use crate::error::Hindrance;
use crate::receive::control::{ControlState, Phase};
use crate::telemetry::duties::DutyStatus;
use crate::telemetry::lag::STANDSTILL;

/// The known signs; see [`troubles`].
#[derive(Debug)]
pub(super) struct Signs<'a> {
    /// Damage of the stored logs, one line each.
    pub(super) damage: &'a [String],
    /// Problems with archiving, with archives and with purging, one line each.
    pub(super) housekeeping: &'a [String],
    pub(super) control: &'a ControlState,
    pub(super) duties: &'a [DutyStatus],
    /// How long receiving has made no progress though there is more.
    pub(super) standstill: Option<Duration>,
    /// How long the current sync has been running.
    pub(super) syncing: Option<Duration>,
}

/// Problems that a person must look at, the gravest first; empty if all is well.
pub(super) fn troubles(known: &Signs<'_>) -> Vec<String> {
    let Signs { damage, housekeeping, control, duties, standstill, syncing } = known;
    let mut troubles = damage.to_vec();
    if control.phase == Phase::Failed {
        let why = control.failure.as_deref().unwrap_or("no reason is known");
        troubles.push(format!("receiving has failed: {why}"));
    }
    troubles.extend(duties.iter().filter_map(DutyStatus::trouble));
    let is_tried = !matches!(control.phase, Phase::Failed | Phase::Stopped);
    let without = control.without.as_secs();
    match &control.hindrance {
        Some((Hindrance::Here, why)) if is_tried => {
            troubles.push(format!("nothing has been received for {without} s: {why}"));
        }
        Some((Hindrance::Refused, why)) if is_tried && control.without >= STANDSTILL => {
            troubles.push(format!("nothing has been received for {without} s: {why}"));
        }
        _ => {}
    }
    if let Some(still) = standstill.filter(|_| is_tried) {
        let why = control.hindrance.as_ref().map_or(String::new(), |(_, why)| format!(": {why}"));
        let seconds = still.as_secs();
        troubles.push(format!("receiving has stood still for {seconds} s though the source has more{why}"));
    }
    if let Some(long) = syncing.filter(|long| *long >= STANDSTILL) {
        troubles.push(format!("the disk has not ended a sync for {} s", long.as_secs()));
    }
    troubles.extend_from_slice(housekeeping);
    troubles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(phase: Phase, without: u64) -> ControlState {
        ControlState {
            phase,
            since: Duration::ZERO,
            server: "db1:3306".into(),
            failure: None,
            hindrance: None,
            without: Duration::from_secs(without),
        }
    }

    #[track_caller]
    fn told(control: &ControlState, duties: &[DutyStatus], standstill: Option<u64>) -> Vec<String> {
        let standstill = standstill.map(Duration::from_secs);
        troubles(&Signs { damage: &[], housekeeping: &[], control, duties, standstill, syncing: None })
    }

    #[test]
    fn what_is_red_says_why() {
        let up = DutyStatus { name: "receive", up: true, seconds: 9, failure: None };
        assert!(told(&seen(Phase::Receiving, 0), &[up], None).is_empty());
        let down = DutyStatus {
            name: "receive",
            up: false,
            seconds: 9,
            failure: Some("receive panicked: no".into()),
        };
        let said = told(&seen(Phase::Receiving, 0), &[down], None);
        assert_eq!(said, ["the duty receive is not done: receive panicked: no"]);
        let failed = ControlState { failure: Some("disk full".into()), ..seen(Phase::Failed, 5) };
        assert_eq!(told(&failed, &[], None), ["receiving has failed: disk full"]);
        let still = told(&seen(Phase::Receiving, 0), &[], Some(61));
        assert_eq!(still, ["receiving has stood still for 61 s though the source has more"]);
        let long = Signs {
            damage: &[],
            housekeeping: &[],
            control: &seen(Phase::Receiving, 0),
            duties: &[],
            standstill: None,
            syncing: Some(STANDSTILL),
        };
        assert_eq!(troubles(&long), ["the disk has not ended a sync for 60 s"]);
    }

    #[test]
    fn what_hinders_here_is_red_at_once_a_source_that_is_away_is_not() {
        let hindered = |hindrance, without| ControlState {
            hindrance: Some((hindrance, "why".into())),
            ..seen(Phase::Waiting, without)
        };
        assert_eq!(
            told(&hindered(Hindrance::Here, 0), &[], None),
            ["nothing has been received for 0 s: why"]
        );
        assert!(told(&hindered(Hindrance::Refused, 59), &[], None).is_empty());
        assert_eq!(told(&hindered(Hindrance::Refused, 60), &[], None).len(), 1);
        assert!(told(&hindered(Hindrance::Unreachable, 9999), &[], None).is_empty());
        assert_eq!(told(&hindered(Hindrance::Unreachable, 9999), &[], Some(70)).len(), 1, "it has more");
        let stopped = ControlState { phase: Phase::Stopped, ..hindered(Hindrance::Here, 100) };
        assert!(told(&stopped, &[], Some(100)).is_empty(), "somebody wants it so");
    }
}
