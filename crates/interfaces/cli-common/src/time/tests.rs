//! Every form of a moment, and what is none.

use binlogz_figures::{Zone, moment, moment_of_second, utc_second};

use super::*;

/// 2026-11-22 01:02:03 UTC.
const SECONDS: i64 = 1_795_309_323;
/// 2026-11-27 09:30:00.25 UTC, 10:30 in Berlin.
const NOW: i64 = 1_795_771_800_250_000;

fn parse(text: &str) -> Result<i64, NoTime> {
    text.parse::<GivenTime>().map(GivenTime::microseconds)
}

/// Of a moment of a whole second.
fn parse_seconds(text: &str) -> Result<i64, NoTime> {
    let microseconds = parse(text)?;
    match microseconds % MICROSECONDS {
        _ if microseconds == i64::MAX => Ok(i64::MAX),
        0 => Ok(microseconds / MICROSECONDS),
        fraction => panic!("{text}: {fraction} microseconds"),
    }
}

fn in_zone(text: &str, zone: &Zone, rule: LocalRule) -> Result<i64, NoTime> {
    let now = PresentMoment { timestamp: Timestamp::from_microsecond(NOW).unwrap(), zone };
    read(text, now, rule).map(GivenTime::microseconds)
}

/// The moment in UTC, to the microsecond.
fn in_berlin(text: &str) -> String {
    match in_zone(text, &Zone::named("Europe/Berlin"), LocalRule::Exact) {
        Ok(microseconds) => Timestamp::from_microsecond(microseconds).unwrap().to_string(),
        Err(no_time) => no_time.to_string(),
    }
}

#[test]
fn every_form_is_a_moment() {
    for (text, expected) in [
        ("now", "2026-11-27T09:30:00.25Z"),
        ("-1h", "2026-11-27T08:30:00.25Z"),
        ("-1h30m", "2026-11-27T08:00:00.25Z"),
        ("-2d", "2026-11-25T09:30:00.25Z"),
        ("-0.25s", "2026-11-27T09:30:00Z"),
        ("10:42", "2026-11-27T09:42:00Z"),
        ("9:05", "2026-11-27T08:05:00Z"),
        ("10:42:17", "2026-11-27T09:42:17Z"),
        ("10:42:17.123456", "2026-11-27T09:42:17.123456Z"),
        ("10:42Z", "2026-11-27T10:42:00Z"),
        ("10:42 UTC", "2026-11-27T10:42:00Z"),
        ("23:59+14:00", "2026-11-27T09:59:00Z"),
        ("10:42 CET", "2026-11-27T09:42:00Z"),
        ("today", "2026-11-26T23:00:00Z"),
        ("today 00:30", "2026-11-26T23:30:00Z"),
        ("yesterday", "2026-11-25T23:00:00Z"),
        ("Yesterday 10:42", "2026-11-26T09:42:00Z"),
        ("yesterday 10:42:17.5", "2026-11-26T09:42:17.5Z"),
        ("yesterday 10:42 UTC", "2026-11-26T10:42:00Z"),
        ("yesterday +02:00", "2026-11-25T22:00:00Z"),
        ("tomorrow 10:42", "2026-11-28T09:42:00Z"),
        ("2026-11-27", "2026-11-26T23:00:00Z"),
        ("2026-07-01", "2026-06-30T22:00:00Z"),
        ("2026-11-27 UTC", "2026-11-27T00:00:00Z"),
        ("2026-11-27Z", "2026-11-27T00:00:00Z"),
        ("2026-11-22T01:02:03Z", "2026-11-22T01:02:03Z"),
        ("2026-11-22t01:02:03.5z", "2026-11-22T01:02:03.5Z"),
        ("2026-11-22T01:02:03.123456+01:00", "2026-11-22T00:02:03.123456Z"),
        ("2026-11-22 01:02:03.123456 CET", "2026-11-22T00:02:03.123456Z"),
        ("2026-07-22 01:02:03 CEST", "2026-07-21T23:02:03Z"),
        ("261122  1:02:03", "2026-11-22T00:02:03Z"),
        ("#261122 11:02:03", "2026-11-22T10:02:03Z"),
        ("991231 23:59:59 UTC", "1999-12-31T23:59:59Z"),
        ("@1795309323.25", "2026-11-22T01:02:03.25Z"),
    ] {
        assert_eq!(in_berlin(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_moment_is_an_error() {
    let expected = NoTime::Text.to_string();
    for text in
        ["", "foo", "25:00", "10:60", "10:42:17.x", "10", "yesterday 25:00", "20261127", "+1h", "261122"]
    {
        assert_eq!(in_berlin(text), expected, "{text}");
    }
    for (text, expected) in [
        ("-", "expected a time before now"),
        ("-1", "expected a time before now"),
        ("--table", "expected a time before now"),
        ("-1y", "expected a time before now"),
        ("2026-02-30", "there is no 2026-02-30"),
        ("260230 1:02:03", "there is no 2026-02-30"),
        ("0000-01-01", "there is no 0000-01-01"),
        ("10:42 CEST", "\"CEST\" is not what the time zone here is called then"),
        ("2026-11-22 10:42 EST", "\"EST\" is not"),
        ("10:42 pm", "\"pm\" is not"),
        ("yesterday foo", "\"foo\" is not"),
        ("10:42:17.1234567", "expected at most six digits"),
        ("2026-11-27 +01:00", "may end with an hour or an offset"),
        ("2026-11-27-05", "may end with an hour or an offset"),
    ] {
        let said = in_berlin(text);
        assert!(said.starts_with(expected), "{text}: {said}");
    }
}

#[test]
fn a_time_that_clocks_show_twice_or_never_is_an_error() {
    assert_eq!(
        in_berlin("2026-10-25 02:30"),
        "clocks show it twice, as they are put back: write '2026-10-25 02:30:00+02:00' or '2026-10-25 02:30:00+01:00'"
    );
    assert_eq!(in_berlin("2026-10-25 02:30:00+02:00"), "2026-10-25T00:30:00Z");
    assert_eq!(in_berlin("2026-10-25 02:30 CEST"), "2026-10-25T00:30:00Z");
    assert_eq!(in_berlin("2026-10-25 02:30 CET"), "2026-10-25T01:30:00Z");
    for text in ["2026-03-29 02:30", "2026-03-29 02:30 CET", "2026-03-29 02:30 CEST"] {
        assert_eq!(in_berlin(text), "clocks skip it: they are put forward from +01:00 to +02:00", "{text}");
    }
    // A day begins, even where clocks skip midnight, or show it twice.
    let day = |zone: &str, text: &str| {
        let microseconds = in_zone(text, &Zone::named(zone), LocalRule::Exact).unwrap();
        Timestamp::from_microsecond(microseconds).unwrap().to_string()
    };
    assert_eq!(day("America/Sao_Paulo", "2018-11-04"), "2018-11-04T03:00:00Z");
    assert_eq!(day("America/Havana", "2026-11-01"), "2026-11-01T04:00:00Z");
}

#[test]
fn mysqlbinlogs_options_take_what_it_takes() {
    let berlin = Zone::named("Europe/Berlin");
    let both =
        |text: &str| [LocalRule::Mysqlbinlog, LocalRule::Exact].map(|rule| in_zone(text, &berlin, rule));
    // The second time; the moment that clocks were put forward.
    assert_eq!(both("2026-10-25 02:30:00")[0], in_zone("2026-10-25 02:30 CET", &berlin, LocalRule::Exact));
    assert_eq!(both("2026-03-29 02:30:00")[0], in_zone("2026-03-29 03:00", &berlin, LocalRule::Exact));
    // 2010-11-12 05:00, or of today.
    let [theirs, ours] = both("10:11:12.5");
    assert_eq!((theirs, ours.is_ok()), (Err(NoTime::DateOrClock), true));
    let [theirs, ours] = both("2026-11-27-05");
    assert_eq!(
        (theirs, ours),
        (in_zone("2026-11-27 05:00", &berlin, LocalRule::Exact), Err(NoTime::HourOrOffset))
    );
    for text in
        ["10:42", "yesterday 10:42", "2026-11-27", "-1h", "now", "2026-11-22 01:02:03 CET", "261122  1:02:03"]
    {
        let [theirs, ours] = both(text);
        assert!(ours.is_ok() && theirs == ours, "{text}");
    }
}

#[test]
fn what_is_printed_is_taken() {
    for (zone, seconds) in [
        ("Europe/Berlin", 1_792_884_600),
        ("Europe/Berlin", 1_792_888_200),
        ("Asia/Kathmandu", 1_795_309_323),
        ("America/Sao_Paulo", 1_795_309_323),
        ("America/St_Johns", 1_795_309_323),
        ("", 1_795_309_323),
        ("<+0330>-3:30", 1_795_309_323),
    ] {
        let zone = Zone::named(zone);
        let (time, name) = zone.local(Timestamp::from_second(seconds).unwrap());
        for rule in [LocalRule::Exact, LocalRule::Mysqlbinlog] {
            let text = format!("{} {name}", time.strftime("%Y-%m-%d %H:%M:%S.123456"));
            assert_eq!(in_zone(&text, &zone, rule), Ok(seconds * MICROSECONDS + 123_456), "{text}");
        }
    }
    assert_eq!(parse(&moment(1_795_309_323_123_456)), Ok(1_795_309_323_123_456));
    assert_eq!(parse_seconds(&moment_of_second(1_795_309_323)), Ok(SECONDS));
    assert_eq!(parse_seconds(&utc_second(1_795_309_323)), Ok(SECONDS));
}

#[test]
fn dates_that_do_not_exist_are_refused() {
    for (text, date) in [
        ("2026-02-31 00:00:00", "there is no 2026-02-31"),
        ("2026-02-29 23:59:59Z", "there is no 2026-02-29"),
        ("2026-04-31 10:00:00", "there is no 2026-04-31"),
        ("20260231000000", "there is no 2026-02-31"),
        ("0000-00-00 00:00:00", "there is no 0000-00-00"),
        ("2026-00-10 00:00:00", "there is no 2026-00-10"),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), date, "{text}");
    }
    assert!(parse("2028-02-29 00:00:00").is_ok());
}

#[test]
fn offsets_count_from_greenwich() {
    for text in [
        "2026-11-22 01:02:03Z",
        "2026-11-22T01:02:03.5 z",
        "2026-11-22 02:02:03+01:00",
        "2026-11-22 02:02:03 +0100",
        "2026-11-21 20:02:03-05",
        "20261122063203+0530",
        "20261122T010203Z",
        "@1795309323",
    ] {
        let text = text.replace("03.5", "03.0");
        assert_eq!(parse_seconds(&text), Ok(1_795_309_323), "{text}");
        assert_eq!(parse(&text), Ok(1_795_309_323_000_000), "{text}");
    }
    assert_eq!(parse_seconds("2026-11-22 02:02+01:00"), Ok(1_795_309_320));
    for text in [
        "2026-11-22 01:02:03+15:00",
        "2026-11-22 01:02:03+1",
        "2026-11-22 01:02:03+01:60",
        "@",
        "@-1",
        "@1x",
        "Z",
    ] {
        assert_eq!(parse(text), Err(NoTime::Text), "{text}");
    }
    // Later than any log.
    assert_eq!(parse("9999-12-31 23:59:59"), Ok(i64::MAX));
}

#[test]
fn no_fraction_of_a_second_is_dropped() {
    for (text, micros) in [
        ("2026-11-22 01:02:03.5Z", 500_000),
        ("2026-11-22T01:02:03.000001 Z", 1),
        ("20261122010203.25+00:00", 250_000),
        ("@1795309323.999999", 999_999),
        ("2026-11-22 01:02:03.1234560Z", 123_456),
        ("2026-11-22 01.02.03Z", 0),
    ] {
        assert_eq!(parse(text), Ok(1_795_309_323_000_000 + micros), "{text}");
    }
    for text in ["2026-11-22 01:02:03.1234567Z", "@1.0000001"] {
        assert_eq!(parse(text), Err(NoTime::TooFine), "{text}");
    }
    assert_eq!(parse("@1.x"), Err(NoTime::Text));
}
