//! Days and microseconds since 1970 as MySQL's dates and times, of the Gregorian calendar and in UTC.

const DAY: i64 = 86_400_000_000;
/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;
/// Days from 1 March of year 0 to 1 January 1970.
const TO_1970: i64 = 719_468;

/// A date of a year from 0 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DateParts {
    pub(super) year: u16,
    pub(super) month: u8,
    pub(super) day: u8,
}

/// A time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeParts {
    pub(super) hour: u8,
    pub(super) minute: u8,
    pub(super) second: u8,
    pub(super) micros: u32,
}

impl DateParts {
    /// The date of a number of days since 1970; `None`: its year has more than four digits, or is before 0.
    pub(super) fn of_days(days: i64) -> Option<Self> {
        // Years begin in March here, so that a leap day is a year's last.
        let days = days.checked_add(TO_1970)?;
        let era = days.div_euclid(ERA_DAYS);
        let day_of_era = days.rem_euclid(ERA_DAYS);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era.checked_mul(400)? + year_of_era + i64::from(month <= 2);
        let year = u16::try_from(year).ok().filter(|year| *year <= 9999)?;
        Some(DateParts { year, month: u8::try_from(month).ok()?, day: u8::try_from(day).ok()? })
    }

    /// Days since 1970.
    pub(crate) fn days(self) -> i64 {
        let month = i64::from(self.month);
        let year = i64::from(self.year) - i64::from(month <= 2);
        let from_march = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * from_march + 2) / 5 + i64::from(self.day) - 1;
        let year_of_era = year.rem_euclid(400);
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        year.div_euclid(400) * ERA_DAYS + day_of_era - TO_1970
    }
}

/// The date and the time of microseconds since 1970.
pub(super) fn moment(micros: i64) -> Option<(DateParts, TimeParts)> {
    let date = DateParts::of_days(micros.div_euclid(DAY))?;
    let rest = micros.rem_euclid(DAY);
    let seconds = rest / 1_000_000;
    Some((
        date,
        TimeParts {
            hour: u8::try_from(seconds / 3600).ok()?,
            minute: u8::try_from(seconds / 60 % 60).ok()?,
            second: u8::try_from(seconds % 60).ok()?,
            micros: u32::try_from(rest % 1_000_000).ok()?,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_come_back_from_their_dates() {
        for (days, year, month, day) in [
            (0, 1970, 1, 1),
            (-1, 1969, 12, 31),
            (19_782, 2024, 2, 29),
            (11_016, 2000, 2, 29),
            (2_932_896, 9999, 12, 31),
            (-719_528, 0, 1, 1),
        ] {
            let date = DateParts { year, month, day };
            assert_eq!(DateParts::of_days(days), Some(date));
            assert_eq!(date.days(), days);
        }
        assert_eq!(DateParts::of_days(2_932_897), None);
        assert_eq!(DateParts::of_days(-719_529), None);
        assert_eq!(DateParts::of_days(i64::MAX), None);
        for days in (-719_528..2_932_897).step_by(1009) {
            assert_eq!(DateParts::of_days(days).unwrap().days(), days);
        }
    }

    #[test]
    fn times_before_1970_are_of_their_day() {
        let (date, time) = moment(-1).unwrap();
        assert_eq!((date.year, date.month, date.day), (1969, 12, 31));
        assert_eq!(time, TimeParts { hour: 23, minute: 59, second: 59, micros: 999_999 });
    }
}
