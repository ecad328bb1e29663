//! Days since 1970-01-01 of dates in the proleptic Gregorian calendar, and back. (Howard Hinnant, "chrono-compatible low-level
//! date algorithms", 2013: `days_from_civil`, `civil_from_days`.)

/// Days of 400 years.
const ERA_DAYS: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: i64 = 719_468;

/// A date of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CalendarDate {
    pub(super) year: u16,
    pub(super) month: u8,
    pub(super) day: u8,
}

impl CalendarDate {
    /// `None`: there is no such day.
    pub(super) fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        let date = CalendarDate { year, month, day };
        ((1..=12).contains(&month) && (1..=31).contains(&day) && Self::of_days(date.days()) == date)
            .then_some(date)
    }

    pub(super) fn days(self) -> i64 {
        let [year, month, day] = [i64::from(self.year), i64::from(self.month), i64::from(self.day)];
        let year = if month <= 2 { year - 1 } else { year };
        let era = year.div_euclid(400);
        let of_era = year.rem_euclid(400);
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH
    }

    pub(super) fn of_days(days: i64) -> Self {
        let days = days + EPOCH;
        let era = days.div_euclid(ERA_DAYS);
        let of_era = days.rem_euclid(ERA_DAYS);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let shifted = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = year + era * 400 + i64::from(month <= 2);
        CalendarDate { year: year as u16, month: month as u8, day: day as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree() {
        for (year, month, day, days) in [
            (1970, 1, 1, 0),
            (2000, 2, 29, 11_016),
            (2026, 11, 29, 20_786),
            (1, 1, 1, -719_162),
            (9999, 12, 31, 2_932_896),
        ] {
            let date = CalendarDate::new(year, month, day).unwrap();
            assert_eq!(date.days(), days);
            assert_eq!(CalendarDate::of_days(days), date);
        }
        for (year, month, day) in [(2026, 2, 29), (2026, 0, 1), (2026, 1, 0), (2026, 13, 1), (2026, 4, 31)] {
            assert_eq!(CalendarDate::new(year, month, day), None);
        }
    }
}
