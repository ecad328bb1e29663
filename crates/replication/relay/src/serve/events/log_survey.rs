//! Counts what clients of some profiles would not be sent as it is, in a log that goes by.
//!
//! ```text
//! events, payloads opened (`binlogz_flow::walk`)
//!   └ for each profile, for each thing that it isn't passed: a fitting for that thing alone → how many transactions, the first place
//! ```
//!
//! The rules are those of serving: every event goes through `fitting` itself, with the profile's treatment of one thing and all
//! others passed, so that what comes out is that thing's. What the form and the login see to, compressed transactions and
//! checksums, is told from the log.

use std::ops::ControlFlow;
use std::time::Instant;

use binlogz_binlog::event::{AnyGtidEvent, TransactionPayloadHeader};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::{ChecksumAlgorithm, EventClass, EventHeader};
use binlogz_flow::{EventSpan, LogStart, Walker};

use super::fitting::{EventCare, EventFitting, EventPlace, FittedEvent, HELD_SIZE_MAX};
use super::profiles::{FillerKind, ReaderProfile, Treatment, Treatments};
use super::table_choice::TableChoice;

/// How often the clock is asked: after so many events.
const EVENTS_PER_LOOK: u64 = 256;

/// A place in a server's logs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SurveyPlace {
    /// The log's name.
    pub log: String,
    /// The offset of the transaction in it, or of the event if that is in no transaction.
    pub offset: u64,
    /// The transaction's GTID, if it has one.
    pub gtid: Option<String>,
}

/// A thing of the log that a profile isn't sent as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurveyFinding {
    /// The profile's name.
    pub profile: &'static str,
    /// The thing, as the profile's treatments name it.
    pub thing: &'static str,
    /// How it is sent instead, or that it isn't.
    pub treatment: Treatment,
    /// How many transactions have it.
    pub transactions: u64,
    /// The first of them.
    pub first: SurveyPlace,
    /// Why the dump would end there, if it would.
    pub why: Option<String>,
}

/// Looks at logs for some profiles: a [`Walker`].
#[derive(Debug)]
pub struct LogSurvey {
    /// Events before this are passed over, in seconds since 1970.
    since: u32,
    until: Instant,
    log: String,
    checksum: ChecksumAlgorithm,
    things: Vec<SurveyedThing>,
    /// The transaction that goes by, and how many there were before it.
    place: SurveyPlace,
    transactions: u64,
    /// Whether the log's transactions begin with events of their own.
    has_beginnings: bool,
    current: Option<LookedAtEvent>,
    events: u64,
    is_out_of_time: bool,
}

#[derive(Debug)]
struct SurveyedThing {
    profile: &'static str,
    name: &'static str,
    treatment: Treatment,
    /// `None`: it is no matter of single events.
    fitting: Option<EventFitting>,
    /// Where the dump goes on.
    passed_over: ThingCount,
    /// Where it would end.
    refused: ThingCount,
}

/// The transactions with a thing.
#[derive(Debug, Default)]
struct ThingCount {
    found: Option<SurveyFinding>,
    /// The last of them.
    last: Option<u64>,
}

#[derive(Debug)]
struct LookedAtEvent {
    header: EventHeader,
    place: EventSpan,
    /// `None`: its header tells enough.
    body: Option<Vec<u8>>,
}

impl LogSurvey {
    /// A survey for these profiles of what was logged since a time, in seconds since 1970, which ends at `until` in any case.
    pub fn new(profiles: &[&'static ReaderProfile], since: u32, until: Instant) -> Self {
        LogSurvey {
            since,
            until,
            log: String::new(),
            checksum: ChecksumAlgorithm::NONE,
            things: profiles.iter().flat_map(|profile| SurveyedThing::all_of(profile)).collect(),
            place: SurveyPlace::default(),
            transactions: 0,
            has_beginnings: false,
            current: None,
            events: 0,
            is_out_of_time: false,
        }
    }

    /// The next log has this name.
    pub fn begin_log(&mut self, name: &str) {
        name.clone_into(&mut self.log);
        self.has_beginnings = false;
    }

    /// How many transactions were looked at.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// Where it ended before the end of the logs, for want of time.
    pub fn stopped_at(&self) -> Option<&SurveyPlace> {
        self.is_out_of_time.then_some(&self.place)
    }

    /// The findings of each profile: first what would end its dump, then what is left out, then what is translated.
    pub fn findings(self) -> Vec<SurveyFinding> {
        let counts = self.things.into_iter().flat_map(|thing| [thing.refused, thing.passed_over]);
        let mut found: Vec<_> = counts.filter_map(|count| count.found).collect();
        found.sort_by_key(|finding| match finding.treatment {
            Treatment::Refused => 0,
            Treatment::LeftOut => 1,
            Treatment::Translated => 2,
            Treatment::Passed => 3,
        });
        found
    }

    /// A thing that no fitting sees to is there.
    fn note_named(&mut self, name: &str) {
        let (transaction, place) = (self.transactions, &self.place);
        for thing in self.things.iter_mut().filter(|thing| thing.fitting.is_none() && thing.name == name) {
            thing.note(transaction, place, None);
        }
    }

    fn begin_transaction(&mut self, place: EventSpan) {
        self.transactions += 1;
        self.place = SurveyPlace { log: self.log.clone(), offset: place.offset, gtid: None };
        if self.checksum.size() > 0 {
            self.note_named("checksums");
        }
    }

    fn look(&mut self, event: LookedAtEvent) {
        let LookedAtEvent { header, place, body } = event;
        if header.event_type.class() == EventClass::Gtid {
            let body = body.as_deref().unwrap_or_default();
            let begun = AnyGtidEvent::decode(body, header.event_type);
            self.place.gtid =
                begun.ok().flatten().and_then(|event| event.gtid()).map(|gtid| gtid.to_string());
        }
        let whole = body.map(|body| encode_event(header, &body, self.checksum));
        let at = EventPlace { offset: place.offset, transaction: Some(self.place.offset), is_sent: true };
        for thing in &mut self.things {
            match thing.look(&header, whole.as_deref(), at) {
                None => {}
                Some(DumpCourse::GoesOn) => thing.note(self.transactions, &self.place, None),
                Some(DumpCourse::Ends(why)) => thing.note(self.transactions, &self.place, Some(why)),
            }
        }
    }
}

/// The course of a dump at an event that its client is not sent as it is.
enum DumpCourse {
    GoesOn,
    /// It ends, for this reason.
    Ends(String),
}

impl SurveyedThing {
    /// The things that a profile isn't passed.
    fn all_of(profile: &'static ReaderProfile) -> Vec<SurveyedThing> {
        let things = profile.treatments.each().into_iter().zip(profile.treatments.each_alone());
        let not_passed = things.filter(|((_, treatment), _)| *treatment != Treatment::Passed);
        not_passed.map(|((name, treatment), alone)| Self::new(profile, name, treatment, alone)).collect()
    }

    fn new(
        profile: &'static ReaderProfile,
        name: &'static str,
        treatment: Treatment,
        alone: Treatments,
    ) -> SurveyedThing {
        let only = ReaderProfile { treatments: alone, fillers: FillerKind::Ignorable, ..*profile };
        SurveyedThing {
            profile: profile.name,
            name,
            treatment,
            fitting: EventFitting::new(&only, &TableChoice::default()),
            passed_over: ThingCount::default(),
            refused: ThingCount::default(),
        }
    }

    /// The course of a dump at this event; `None`: it is sent as it is.
    fn look(&mut self, header: &EventHeader, whole: Option<&[u8]>, at: EventPlace) -> Option<DumpCourse> {
        let fitting = self.fitting.as_mut()?;
        if fitting.translates_xa() {
            // A dump makes whole transactions plain; here the events come singly.
            return fitting.is_xa(header, whole).then_some(DumpCourse::GoesOn);
        }
        match fitting.care(header, &[], at) {
            Err(why) => Some(DumpCourse::Ends(why)),
            Ok(EventCare::Fill | EventCare::Blank) => Some(DumpCourse::GoesOn),
            Ok(EventCare::Front | EventCare::Look) => match fitting.fit(whole?, at) {
                Err(why) => Some(DumpCourse::Ends(why)),
                Ok(
                    FittedEvent::Other(_)
                    | FittedEvent::EmptyTransaction(_)
                    | FittedEvent::XaRollback(_)
                    | FittedEvent::Filler,
                ) => Some(DumpCourse::GoesOn),
                Ok(FittedEvent::AsIs | FittedEvent::Later) => None,
            },
            Ok(EventCare::Send | EventCare::Queue | EventCare::Skip) => None,
        }
    }

    fn note(&mut self, transaction: u64, place: &SurveyPlace, why: Option<String>) {
        // What is too short to be left out, or can't be translated, ends the dump as well.
        let (count, treatment) = match why.is_some() {
            true => (&mut self.refused, Treatment::Refused),
            false => (&mut self.passed_over, self.treatment),
        };
        if count.last == Some(transaction) {
            return;
        }
        count.last = Some(transaction);
        if let Some(found) = &mut count.found {
            found.transactions += 1;
            return;
        }
        count.found = Some(SurveyFinding {
            profile: self.profile,
            thing: self.name,
            treatment,
            transactions: 1,
            first: place.clone(),
            why,
        });
    }
}

impl Walker for LogSurvey {
    fn format_description(&mut self, start: &LogStart) -> ControlFlow<()> {
        self.checksum = start.context.framing.checksum();
        let version = start.description.server_version_number();
        let fittings = self.things.iter_mut().filter_map(|thing| thing.fitting.as_mut());
        fittings.for_each(|fitting| fitting.begin_file(self.checksum, version));
        ControlFlow::Continue(())
    }

    fn payload(
        &mut self,
        _: EventSpan,
        header: &EventHeader,
        _: &TransactionPayloadHeader<'_>,
    ) -> ControlFlow<()> {
        if header.timestamp >= self.since {
            self.note_named("payloads");
        }
        ControlFlow::Continue(())
    }

    fn begin(&mut self, place: EventSpan, header: &EventHeader) -> ControlFlow<()> {
        self.events += 1;
        if self.events.is_multiple_of(EVENTS_PER_LOOK) && Instant::now() >= self.until {
            self.is_out_of_time = true;
            return ControlFlow::Break(());
        }
        if header.timestamp < self.since {
            return ControlFlow::Continue(());
        }
        let class = header.event_type.class();
        let begins = matches!(class, EventClass::Gtid | EventClass::MariadbGtid);
        self.has_beginnings |= begins;
        if begins || class == EventClass::Statement && !self.has_beginnings {
            self.begin_transaction(place);
        }
        // No fitting looks into rows.
        let is_held = class != EventClass::Rows && header.event_size <= HELD_SIZE_MAX;
        self.current = Some(LookedAtEvent { header: *header, place, body: is_held.then(Vec::new) });
        ControlFlow::Continue(())
    }

    fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        if let Some(LookedAtEvent { body: Some(body), .. }) = &mut self.current {
            body.extend_from_slice(bytes);
        }
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        if let Some(event) = self.current.take() {
            self.look(event);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use binlogz_binlog::{EventType, HeaderFlags};
    use binlogz_flow::{Input, WalkEnd, walk};
    use binlogz_testkit::builder::{EndPositions, LogBuilder, Release, query};

    use super::*;

    fn log(fill: impl FnOnce(&mut LogBuilder)) -> Vec<u8> {
        let mut log = LogBuilder::with(Release::MYSQL_9_7, ChecksumAlgorithm::CRC32, HeaderFlags::default());
        log.positions(EndPositions::Own);
        fill(&mut log);
        log.take()
    }

    fn surveyed(bytes: &[u8], profiles: &[&str], since: u32) -> LogSurvey {
        let profiles: Vec<_> = profiles.iter().map(|name| ReaderProfile::of_name(name).unwrap()).collect();
        let mut survey = LogSurvey::new(&profiles, since, Instant::now() + Duration::from_secs(600));
        survey.begin_log("binlog.000007");
        let end = walk(Input::Stream(Box::new(std::io::Cursor::new(bytes.to_vec()))), &mut survey);
        assert_eq!(end.unwrap(), WalkEnd::Whole);
        survey
    }

    fn shown(bytes: &[u8], profiles: &[&str]) -> Vec<String> {
        let shown = |finding: SurveyFinding| {
            let SurveyFinding { profile, thing, treatment, transactions, why, .. } = finding;
            let ends = if why.is_some() { "!" } else { "" };
            format!("{profile} {} {thing} {transactions}{ends}", treatment.word())
        };
        surveyed(bytes, profiles, 0).findings().into_iter().map(shown).collect()
    }

    #[test]
    fn each_thing_is_counted_by_transactions_with_its_first_place() {
        let bytes = log(|log| {
            log.transaction(&[b"one"]);
            let long = " IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$'";
            for number in 0..4 {
                log.transaction_of(&[(
                    EventType::QUERY,
                    query(&format!("CREATE USER u{number}{}", if number < 3 { long } else { "" })),
                )]);
            }
            log.transaction_of(&[
                (EventType::QUERY, query("XA START X'7131',X'',1")),
                (EventType::QUERY, query("XA END X'7131',X'',1")),
                (EventType::XA_PREPARE, vec![0; 13]),
            ]);
            log.transaction_of(&[(EventType::PARTIAL_UPDATE_ROWS, vec![0; 40])]);
        });
        let all = shown(&bytes, &["mysql-5.7", "mysql-8.3", "maxwell-1"]);
        assert_eq!(
            all,
            [
                "mysql-5.7 refused partial JSON 1!",
                "mysql-5.7 refused accounts 1!",
                "maxwell-1 refused partial JSON 1!",
                "mysql-5.7 left out accounts 3",
            ]
        );
        let accounts = surveyed(&bytes, &["mysql-5.7"], 0).findings().pop().unwrap().first;
        assert_eq!(accounts.log, "binlog.000007");
        assert!(accounts.offset > 4 && accounts.gtid.is_some_and(|gtid| gtid.ends_with(":2")));
        assert!(surveyed(&bytes, &["mysql-5.7"], u32::MAX).findings().is_empty(), "nothing is that new");
    }

    #[test]
    fn what_a_survey_finds_is_what_a_dump_does() {
        let one = |event_type: EventType, body: &[u8]| {
            log(|log| {
                log.transaction_of(&[(event_type, body.to_vec())]);
            })
        };
        for profile in ReaderProfile::all() {
            for (event_type, thing) in
                [(EventType::PARTIAL_UPDATE_ROWS, "partial JSON"), (EventType::VIEW_CHANGE, "group")]
            {
                let bytes = one(event_type, &[0; 60]);
                let treatment = profile.treatments.each().into_iter().find(|(name, _)| *name == thing);
                let (_, treatment) = treatment.unwrap();
                let found = surveyed(&bytes, &[profile.name], 0).findings();
                let found = found.iter().find(|finding| finding.thing == thing);
                assert_eq!(
                    found.map(|finding| (finding.treatment, finding.why.is_some())),
                    (treatment != Treatment::Passed).then_some((treatment, treatment == Treatment::Refused)),
                    "{} {thing}",
                    profile.name
                );
            }
        }
    }

    #[test]
    fn a_survey_ends_when_its_time_is_over() {
        let bytes = log(|log| {
            for _ in 0..2_000 {
                log.transaction(&[b"one"]);
            }
        });
        let profile = ReaderProfile::of_name("mariadb-11.4").unwrap();
        let mut survey = LogSurvey::new(&[profile], 0, Instant::now());
        survey.begin_log("binlog.000001");
        let end = walk(Input::Stream(Box::new(std::io::Cursor::new(bytes))), &mut survey);
        assert_eq!(end.unwrap(), WalkEnd::Stopped);
        assert!(survey.stopped_at().is_some_and(|place| place.offset > 4) && survey.transactions() < 2_000);
    }
}
