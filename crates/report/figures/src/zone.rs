//! The time zone of the process, found as the C library finds it: all local times that are shown or given are
//! in this zone, as with mysqlbinlog.
//!
//! ```text
//! TZ not set      /etc/localtime; if that is missing, UTC
//! TZ empty        UTC
//! TZ=/PATH        that file
//! TZ=NAME         NAME in $TZDIR or /usr/share/zoneinfo; if that is missing, NAME in the built-in database
//! TZ=RULE         a rule such as CET-1CEST,M3.5.0,M10.5.0/3
//! anything else   UTC, and [`Zone::problem`] says so
//! ```
//!
//! A colon before any of these is allowed. The database is built in because minimal containers have none;
//! there mysqlbinlog silently shows UTC.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};

const LOCALTIME: &str = "/etc/localtime";
const DATABASE: &str = "/usr/share/zoneinfo";

/// When daylight saving time begins and ends for a rule that names it without giving dates: the C library's
/// default.
const DEFAULT_RULE: &str = ",M3.2.0,M11.1.0";

const HOUR: i64 = 3600;
const BACK_AN_HOUR: i64 = -HOUR;

/// How often mysqlbinlog corrects its first guess of a local time.
const CORRECTIONS: usize = 2;

/// The fewest letters in a rule's name.
const NAME_SIZE_MIN: usize = 3;

/// A time zone, and how it was found.
#[derive(Debug, Clone)]
pub struct Zone {
    zone: TimeZone,
    /// The zone's name, if the zone itself doesn't give one.
    name: Option<String>,
    problem: Option<String>,
}

/// The environment's time zone settings.
#[derive(Debug, Default)]
struct Environment {
    tz: Option<OsString>,
    database: Option<PathBuf>,
}

impl Zone {
    /// The zone of the process, looked up once.
    pub fn of_process() -> &'static Self {
        static ZONE: OnceLock<Zone> = OnceLock::new();
        ZONE.get_or_init(|| {
            let database = env::var_os("TZDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
            Self::find(&Environment { tz: env::var_os("TZ"), database })
        })
    }

    /// Why this is not the requested zone; times are then UTC.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    fn find(environment: &Environment) -> Self {
        let Some(tz) = &environment.tz else { return Self::of_machine() };
        let text = tz.to_string_lossy();
        let asked = text.strip_prefix(':').unwrap_or(&text);
        if asked.is_empty() {
            return TimeZone::UTC.into();
        }
        let database = environment.database.as_deref().unwrap_or(Path::new(DATABASE));
        match read(&database.join(asked), asked) {
            Ok(Some(zone)) => return zone.into(),
            Ok(None) => {}
            Err(problem) => return Self::unknown(&text, asked, &problem),
        }
        let zone = bundled(asked).or_else(|| rule(asked));
        zone.map_or_else(|| Self::unknown(&text, asked, "no such time zone is known"), Self::from)
    }

    fn of_machine() -> Self {
        match read(Path::new(LOCALTIME), "") {
            Ok(zone) => zone.unwrap_or(TimeZone::UTC).into(),
            Err(problem) => {
                let problem = Some(format!("{LOCALTIME}: {problem}; local times are UTC"));
                Zone { zone: TimeZone::UTC, name: None, problem }
            }
        }
    }

    fn unknown(tz: &str, asked: &str, problem: &str) -> Self {
        // The C library then calls UTC by the letters at the start of the text.
        let letters = asked.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(asked.len());
        let (name, rest) = asked.split_at(letters);
        let is_name =
            letters >= NAME_SIZE_MIN && !rest.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c));
        Zone {
            zone: TimeZone::UTC,
            name: Some(if is_name { name } else { "" }.to_owned()),
            problem: Some(format!("TZ={tz}: {problem}; local times are UTC")),
        }
    }

    /// The local time in the zone, and the zone's name at that time.
    pub fn local(&self, timestamp: Timestamp) -> (DateTime, String) {
        let info = self.zone.to_offset_info(timestamp);
        let name = self.name.as_deref().unwrap_or_else(|| info.abbreviation());
        (info.offset().to_datetime(timestamp), name.to_owned())
    }

    /// How far clocks of the zone are from Greenwich when they show this: once, twice, or never.
    pub fn offsets(&self, time: DateTime) -> AmbiguousOffset {
        self.zone.to_ambiguous_timestamp(time).offset()
    }

    /// When a day begins, which is not at midnight where clocks skip it. `None`: beyond all times.
    pub fn start_of_day(&self, day: Date) -> Option<Timestamp> {
        Some(day.to_zoned(self.zone.clone()).ok()?.start_of_day().ok()?.timestamp())
    }

    /// The zone that `TZ` set so would give.
    pub fn named(tz: &str) -> Self {
        Self::find(&Environment { tz: Some(tz.into()), database: None })
    }

    /// Whether clocks of the zone show this once: not twice, as when they are put back, and not never.
    pub fn shows_once(&self, time: DateTime) -> bool {
        !self.zone.to_ambiguous_timestamp(time).is_ambiguous()
    }

    /// When clocks of the zone show this, in seconds since 1970, as mysqlbinlog finds it. If they show it
    /// twice, the second time. If they never do, the moment they were put forward, if that was by an hour on
    /// the hour.
    ///
    /// It begins an hour late and corrects itself twice. There remains a time that clocks never show, of
    /// which the begun hour counts.
    pub fn seconds(&self, time: DateTime) -> Option<i64> {
        let shown = Offset::UTC.to_timestamp(time).ok()?.as_second();
        let offset = |seconds: i64| {
            let timestamp = Timestamp::from_second(seconds).ok()?;
            Some(i64::from(self.zone.to_offset(timestamp).seconds()))
        };
        let mut seconds = shown - offset(shown)? + HOUR;
        for _ in 0..CORRECTIONS {
            seconds += shown - (seconds + offset(seconds)?);
        }
        Some(match shown - (seconds + offset(seconds)?) {
            HOUR => seconds + HOUR - shown.rem_euclid(HOUR),
            BACK_AN_HOUR => seconds - shown.rem_euclid(HOUR),
            _ => seconds,
        })
    }
}

impl From<TimeZone> for Zone {
    fn from(zone: TimeZone) -> Self {
        Zone { zone, name: None, problem: None }
    }
}

/// The zone in a file; `None` if there is no such file.
fn read(path: &Path, name: &str) -> Result<Option<TimeZone>, String> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if is_nothing(&error) => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let zone = TimeZone::tzif(name, &bytes);
    zone.map(Some).map_err(|error| format!("{}: no time zone file: {error}", path.display()))
}

/// Whether there is no file, or a folder such as `Europe`.
fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::InvalidFilename
    ) || error.kind() == ErrorKind::InvalidInput
}

/// The zone in the built-in database. Names are case-sensitive, as on disk.
fn bundled(name: &str) -> Option<TimeZone> {
    let zone = TimeZoneDatabase::bundled().get(name).ok()?;
    (zone.iana_name() == Some(name)).then_some(zone)
}

fn rule(text: &str) -> Option<TimeZone> {
    let zone = TimeZone::posix(text).or_else(|_| TimeZone::posix(&format!("{text}{DEFAULT_RULE}")));
    zone.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(tz: Option<&str>, database: &str) -> Zone {
        Zone::find(&Environment { tz: tz.map(Into::into), database: Some(database.into()) })
    }

    fn shown(zone: &Zone, seconds: i64) -> String {
        let (time, name) = zone.local(Timestamp::from_second(seconds).unwrap());
        format!("{time} {name}")
    }

    /// 2026-11-21 04:37:38 UTC, and the same day in July.
    const WINTER: i64 = 1_795_235_858;
    const SUMMER: i64 = 1_784_608_658;

    #[test]
    fn zones_are_found_where_there_is_no_database() {
        for (tz, winter, summer) in [
            ("Europe/Berlin", "2026-11-21T05:37:38 CET", "2026-07-21T06:37:38 CEST"),
            (":America/New_York", "2026-11-20T23:37:38 EST", "2026-07-21T00:37:38 EDT"),
            ("CET-1", "2026-11-21T05:37:38 CET", "2026-07-21T05:37:38 CET"),
            ("CET-1CEST", "2026-11-21T05:37:38 CET", "2026-07-21T06:37:38 CEST"),
            ("<+0330>-3:30", "2026-11-21T08:07:38 +0330", "2026-07-21T08:07:38 +0330"),
            ("", "2026-11-21T04:37:38 UTC", "2026-07-21T04:37:38 UTC"),
        ] {
            let zone = zone(Some(tz), "/nonexistent");
            assert_eq!((zone.problem(), shown(&zone, WINTER)), (None, winter.to_owned()), "{tz}");
            assert_eq!(shown(&zone, SUMMER), summer, "{tz}");
        }
    }

    #[test]
    fn what_is_no_zone_is_utc_and_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("broken"), b"no zone").unwrap();
        for (tz, name, problem) in [
            (
                "Nonsense/Zone",
                "Nonsense",
                "TZ=Nonsense/Zone: no such time zone is known; local times are UTC",
            ),
            ("europe/berlin", "europe", "TZ=europe/berlin: no such time zone is known; local times are UTC"),
            ("x", "", "TZ=x: no such time zone is known; local times are UTC"),
        ] {
            let zone = zone(Some(tz), folder.path().to_str().unwrap());
            assert_eq!(zone.problem(), Some(problem));
            assert_eq!(shown(&zone, WINTER), format!("2026-11-21T04:37:38 {name}"));
        }
        let broken = zone(Some("broken"), folder.path().to_str().unwrap());
        assert!(broken.problem().unwrap().contains("/broken: no time zone file: "), "{:?}", broken.problem());
    }

    #[test]
    fn local_times_are_found_also_where_clocks_change() {
        let berlin = zone(Some("Europe/Berlin"), "/nonexistent");
        let at = |text: &str| berlin.seconds(text.parse().unwrap()).unwrap();
        assert_eq!(at("2026-11-21T05:37:38"), WINTER);
        // Never shown: clocks go from 02:00 to 03:00.
        assert_eq!(at("2026-03-29T02:30:00"), at("2026-03-29T03:00:00"));
        assert_eq!(at("2026-03-29T03:00:00") - at("2026-03-29T01:59:59"), 1);
        // Shown twice: the second time.
        assert_eq!(at("2026-10-25T02:30:00") - at("2026-10-25T01:59:59"), 5401);
        assert_eq!(at("2026-10-25T03:00:00") - at("2026-10-25T02:30:00"), 1800);
    }
}
